"""Stores into arguments happen in the memory of the arguments, wherever the order of reads and stores allows it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Array = np.ndarray


def scale_rows(x: Array) -> None:
    x[1:-1] += 1.0


def replace_all(x: Array) -> None:
    x[:] = x * 0.5 + 1


def store_row(x: Array) -> None:
    x[3] = 1.0


def from_another(x: Array, y: Array) -> None:
    x[:] = np.tanh(y)


def gradient_step(p: Array, g: Array) -> None:
    p -= 0.1 * g
    p *= 2


def step_and_sum(p: Array, g: Array) -> Any:
    p -= 0.1 * g
    return p.sum()


def store_a_stretch(x: Array) -> None:
    x[1:3, ::2] *= 0.5


def store_a_row_elsewhere(x: Array) -> None:
    x[1:3, ::2] *= 0.5
    x[-1] = x[0]


def return_the_old(x: Array) -> Array:
    old = x.copy()
    x[0] = 7
    return old


def swap(x: Array, y: Array) -> None:
    x[:], y[:] = y.copy(), x.copy()


def rotate(x: Array, y: Array, z: Array) -> None:
    kept = x.copy()
    x[:] = y
    y[:] = z
    z[:] = kept


def store_between(x: Array, y: Array) -> None:
    x[0] = 1
    y[:] = x
    x[1] = 2


def store_between_the_other_way(y: Array, x: Array) -> None:
    x[0] = 1
    y[:] = x
    x[1] = 2


def neighbours(x: Array) -> None:
    x[1:-1] = x[:-2] + x[2:]


def move_down(x: Array) -> None:
    x[1:] = x[:-1]


def backwards(x: Array) -> None:
    x[:] = x[::-1]


def transposed(x: Array) -> None:
    x.T[1] = 4
    x += x.T


def to_and_fro(x: Array, y: Array) -> None:
    y[1:3] = x[0:2]
    x[0:2] = y[2:4]
    x[1:3, 1:3] = x[0:2, 0:2]


def in_turns(x: Array, y: Array) -> Array:
    x += y
    y += x
    x += y
    return x @ y


def copies_go_apart(x: Array) -> Array:
    y = x.copy()
    x[0] = 1
    y[1] = 2
    x[2] = y[1]
    return y


def old_slice(x: Array, y: Array) -> Array:
    part = x[2:4].copy()
    x[:] = y * 2
    return part


def one_value_for_two(x: Array, y: Array) -> tuple[Array, Array]:
    x[:] = np.where(x > y, x, y)
    y[:] = x
    return x, y.T


def row_of_sums(x: Array) -> None:
    x[-1] = x.sum(0)
    x /= np.abs(x).max()


def before_and_after(x: Array, y: Array) -> tuple[Array, Array, Array]:
    after, before = x + y, x + y
    np.add.at(after, ([0, 0, 1],), 1)
    middle = after.copy()
    after[0] = 3
    return after, before, middle.T


def store_into_a_copy(x: Array) -> tuple[Array, Array]:
    double = x * 2
    new = double.copy()
    new[0] = 1
    return new, double.reshape(-1, 3)


def add_and_multiply(x: Array) -> tuple[Array, Array, Array]:
    x += x
    power = ml.fori_loop(0, 3, lambda _, v: v * x, x)
    return power, x.reshape(-1), x[::-1]


def two_loops_from_one(x: Array) -> tuple[Array, Array, Array, Array]:
    double = x * 2
    sums = ml.fori_loop(0, 3, lambda _, v: v + 1, double)
    products = ml.while_loop(lambda v: abs(v[0, 0]) < 100, lambda v: v * 1.5 + 20, double)
    return sums, products, double.T, double.reshape(-1)


WITHOUT_COPIES = [scale_rows, replace_all, store_row, from_another, gradient_step, store_a_stretch]
WITH_COPIES = [
    store_a_row_elsewhere, step_and_sum, return_the_old, swap, rotate, store_between, store_between_the_other_way,
    neighbours, move_down, backwards, transposed, to_and_fro, in_turns, copies_go_apart, old_slice,
    one_value_for_two, row_of_sums, before_and_after, store_into_a_copy, add_and_multiply, two_loops_from_one,
]  # fmt: skip


def arguments(function: Callable[..., Any], strided: bool = False, dtype: str = "float64") -> list[Array]:
    rng = np.random.default_rng(0)
    count = len(inspect.signature(function).parameters)
    numbers = 2 if dtype == "complex128" else 1
    whole = [rng.standard_normal((12, 12 * numbers)).view(dtype) for _ in range(count)]
    return [x[::2, ::-2] if strided else x[:6, :6].copy() for x in whole]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
@pytest.mark.parametrize("function", WITHOUT_COPIES + WITH_COPIES, ids=lambda f: f.__name__)
def test_stores_are_those_of_numpy(function: Callable[..., Any], strided: bool, dtype: str) -> None:
    compiled = ml.compile(function)
    for _ in range(2):  # the second call takes the fast path
        given, kept = arguments(function, strided, dtype), arguments(function, strided, dtype)
        expected = function(*kept)
        result = compiled(*given)
        for new, old in zip(given, kept, strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-13)
        if expected is not None:
            pairs = zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]
            for one, other in pairs:
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("function", WITHOUT_COPIES, ids=lambda f: f.__name__)
def test_a_store_needs_no_memory(function: Callable[..., Any]) -> None:
    text = ml.compile(function).ir("schedule", *arguments(function))
    assert "mlirml.in_place" in text
    assert "mlirml.workspace = 0 : i64" in text


def test_a_failed_check_leaves_the_argument_alone() -> None:
    compiled = ml.compile(store_row)
    x = np.zeros((6, 6))
    x.flags.writeable = False
    with pytest.raises(ml.errors.LaunchError):
        compiled(x)
    assert not x.any()


def test_a_row_that_is_stored_twice_copies_no_array() -> None:
    def thomas(a: Any) -> Any:
        c = np.zeros_like(a)
        c[0] = a[0]
        for k in range(1, a.shape[0]):
            c[k] = a[k] * 0.5
            c[k] = c[k] / (a[k] - c[k - 1])
        return c

    a = np.random.default_rng(0).uniform(2, 3, (200, 30))
    compiled = ml.compile(thomas)
    np.testing.assert_allclose(compiled(a), thomas(a))
    with ml.config.override(processor="avx512,l2=2M", threads=1):
        text = compiled.ir("schedule", a)
    inside = text.split("scf.for")[2:]
    assert not any("6000" in part for part in inside)
