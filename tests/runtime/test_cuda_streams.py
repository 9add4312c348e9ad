"""Copies beside kernels: what must wait for what, on a stand-in for libcuda that does work as late as it may, or in any
order that streams and events allow."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime import _native, cuda
from mlirml.runtime.device_program import DeviceProgram
from tests.runtime.test_cuda_device import fake, path  # noqa: F401  (fixtures)
from tests.runtime.test_cuda_programs import X, program  # noqa: F401

LATE = 1
ORDERS = range(LATE, 12)


@pytest.fixture(params=ORDERS)
def order(request: pytest.FixtureRequest, fake: Any) -> Any:  # noqa: F811
    fake.fake_late(request.param)
    return fake


def test_chains_see_uploads_and_kernels_before_them(order: Any, program: DeviceProgram) -> None:  # noqa: F811
    for turn in range(20):
        (y,) = program([ml.put(X + turn, "cuda")])
        (z,) = program([y])
        np.testing.assert_array_equal(z.numpy(), 6.25 * (X + turn))


def test_memory_is_used_again_behind_its_kernels(order: Any, program: DeviceProgram) -> None:  # noqa: F811
    results = []
    for turn in range(30):
        x = ml.put(X + turn, "cuda")  # in memory that a kernel may still have to read
        results.append(program([x])[0])
        del x
    for turn, y in enumerate(results):
        np.testing.assert_array_equal(y.numpy(), 2.5 * (X + turn))
    assert ml.device("cuda").statistics().reused > 20


def test_numpy_arguments_and_results(order: Any, program: DeviceProgram) -> None:  # noqa: F811
    for turn in range(20):
        (y,) = program([X + turn])
        np.testing.assert_array_equal(y, 2.5 * (X + turn))


def test_pinned_memory_is_used_again_behind_its_copies(order: Any) -> None:
    device = _native.CudaDevice(_native.CudaLibrary(cuda.LIBRARY), 0)
    sent = [np.random.default_rng(n).integers(0, 256, (1 << 19) * (n % 5 + 1) + n, np.uint8) for n in range(24)]
    order.fake_memory(64 << 20)
    there = [device.alloc(array.nbytes) for array in sent]
    for source, target in zip(sent, there, strict=True):
        device.copy_in(target, source, 0)
    for source, target in zip(sent, there, strict=True):
        back = np.zeros_like(source)
        device.copy_out(back, target)
        np.testing.assert_array_equal(back, source)


@pytest.fixture
def late(fake: Any) -> Callable[[], tuple[int, int]]:  # noqa: F811
    """Work is done when it is waited for; how many kernels and uploads have run since."""
    counts = (ctypes.c_int * 2)()

    def since() -> tuple[int, int]:
        fake.fake_run(counts)
        return counts[0] - first[0], counts[1] - first[1]

    first = (0, 0)
    fake.fake_late(LATE)
    first = since()
    return since


def hold_kernels(fake: Any) -> None:  # noqa: F811
    """Let the streams of copies do what need not wait for kernels."""
    fake.fake_run_without(ctypes.c_uint64(ml.device("cuda").driver.stream))  # type: ignore[attr-defined]


def test_uploads_are_made_beside_kernels(fake: Any, program: DeviceProgram, late: Any) -> None:  # noqa: F811
    x = ml.put(X, "cuda")
    (y,) = program([x])
    other = ml.put(X + 1, "cuda")
    hold_kernels(fake)
    assert late() == (0, 2)
    np.testing.assert_array_equal(program([other])[0].numpy(), 2.5 * (X + 1))
    np.testing.assert_array_equal(y.numpy(), 2.5 * X)


def test_an_upload_waits_for_the_kernels_that_use_its_memory(fake: Any, program: DeviceProgram, late: Any) -> None:  # noqa: F811
    x = ml.put(X, "cuda")
    address = x.address
    (y,) = program([x])
    del x
    later = program([ml.put(X + 2, "cuda")])  # in the same memory, and so behind the first kernel
    hold_kernels(fake)
    assert late() == (0, 1)
    assert ml.device("cuda").statistics().reused == 1 and address
    np.testing.assert_array_equal(later[0].numpy(), 2.5 * (X + 2))
    np.testing.assert_array_equal(y.numpy(), 2.5 * X)


def test_a_download_waits_for_no_later_kernels(fake: Any, program: DeviceProgram, late: Any) -> None:  # noqa: F811
    x = ml.put(X, "cuda")
    (y,) = program([x])
    (z,) = program([y])
    np.testing.assert_array_equal(y.numpy(), 2.5 * X)
    assert late()[0] == 1
    np.testing.assert_array_equal(z.numpy(), 6.25 * X)
    assert late()[0] == 2


def test_many_small_uploads_wait_for_nobody(fake: Any, late: Any) -> None:  # noqa: F811
    held = [ml.put(np.full(16, n, np.float32), "cuda") for n in range(100)]
    assert late() == (0, 0)
    for n, x in enumerate(held):
        np.testing.assert_array_equal(x.numpy(), n)
