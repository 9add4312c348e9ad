"""A call that fails is run once, raises once, and leaves the arguments on the host as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from benchmarks.checks import gather
from mlirml import IndexOutOfBoundsError
from mlirml.runtime import Dispatcher
from tests.targets.drivers import needs_vulkan

I32, F32 = np.int32, np.float32


def store_then_check(a: Any, b: Any, i: Any) -> Any:
    a += 1
    return b[i]


def check_then_store(a: Any, b: Any, i: Any) -> Any:
    found = b[i]
    a += found
    return found


def store_slices_around_a_check(a: Any, b: Any, i: Any) -> Any:
    a[1:] = 5
    a[i] = b[0]
    a[:1] = 6


def check_what_was_stored(a: Any, b: Any, i: Any) -> Any:
    a += i
    return b[a.astype(np.int64)]


def store_in_a_loop(a: Any, b: Any, i: Any) -> Any:
    for k in range(a.shape[0]):
        a[k] += b[k * i]


def store_before_a_loop(a: Any, b: Any, i: Any) -> Any:
    a[0] = 8
    s = a[0] * 0
    for k in range(a.shape[0]):
        s += b[k * i]
    return s


FUNCTIONS = (
    store_then_check,
    check_then_store,
    store_slices_around_a_check,
    check_what_was_stored,
    store_in_a_loop,
    store_before_a_loop,
)


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("target", ["cpu", "reference", pytest.param("vulkan", marks=needs_vulkan)])
def test_a_failed_call_leaves_its_arguments_as_they_were(target: str, fn: Callable[..., Any], strided: bool) -> None:
    with ml.config.override(checks=True):
        compiled = ml.compile(fn, target=target)
        a = np.zeros(6, F32)[::2] if strided else np.zeros(3, F32)
        b = np.ones(3, F32)
        for _ in range(2):  # the second call is known to the native dispatcher
            again, expected = a.copy(), a.copy()
            compiled(again, b, 1)
            fn(expected, b, 1)
            np.testing.assert_array_equal(again, expected)
        for _ in range(3):
            with pytest.raises(IndexOutOfBoundsError, match="out of bounds for axis 0 with size 3") as caught:
                compiled(a, b, 7)
            assert caught.value.location is not None and caught.value.location.function == fn.__name__
            np.testing.assert_array_equal(a, np.zeros(3))


def test_a_failed_call_is_run_once() -> None:
    compiled = ml.compile(store_then_check)
    missed: list[Any] = []
    compiled(np.zeros(3), np.ones(3), 1)
    Dispatcher.__init__(compiled, lambda args, kwargs: missed.append(args))
    with pytest.raises(IndexOutOfBoundsError):
        compiled(np.zeros(3), np.ones(3), 7)
    assert missed == [], "the native dispatcher has run the program, which must not be asked for again"


def test_checks_that_come_first_leave_stores_in_place() -> None:
    lowered = ml.compile(store_then_check).ir("schedule", np.zeros(3), np.ones(3), 1)
    assert "mlirml.in_place = array<i64: 1>" in lowered
    lowered = ml.compile(check_what_was_stored).ir("schedule", np.zeros(3), np.ones(3), 1)
    assert "mlirml.in_place" not in lowered
    lowered = ml.compile(gather).ir("schedule", np.zeros(3), np.zeros(1000, int), np.zeros(1000))
    assert "mlirml.in_place = array<i64: 0>" in lowered, "the check is fused with the stores"


@needs_vulkan
def test_a_check_of_arrays_on_a_device_fails_once() -> None:
    where = ml.device("vulkan")
    compiled = ml.compile(check_what_was_stored, target="vulkan")
    b = np.ones(3, F32)
    compiled(ml.put(np.zeros(3, F32), where), ml.put(b, where), 1)
    a = ml.put(np.zeros(3, F32), where)
    with pytest.raises(IndexOutOfBoundsError):
        compiled(a, ml.put(b, where), 7).numpy()
    np.testing.assert_array_equal(a.numpy(), np.full(3, 7))  # stored once: the call had returned before the check
