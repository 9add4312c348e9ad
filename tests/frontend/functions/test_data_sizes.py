"""Arrays whose lengths depend on data: what NumPy returns, of NumPy's dtypes, whatever lies behind them in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}


def function(f: Function) -> Function:
    FUNCTIONS[f.__name__] = f
    return f


@function
def under_masks(x: Any, a: Any, b: Any) -> Any:
    return x[x > 0], a[a > 2], a[a[:, 0] > 2], a[:, a[0] > 2], (x + 1j * x)[x > 0], (x > 1)[x > 0]


@function
def of_small_dtypes(x: Any, a: Any, b: Any) -> Any:
    m = x > 0
    return x.astype(np.float32)[m], b.astype(np.int8)[b > 4], b.astype(np.uint16)[b > 4], x.astype(np.float16)[m]


@function
def positions(x: Any, a: Any, b: Any) -> Any:
    return np.flatnonzero(a > 2), np.nonzero(a > 2), np.argwhere(a > 2), np.where(x > 0), np.nonzero(x), b.nonzero()


@function
def elementwise(x: Any, a: Any, b: Any) -> Any:
    y = np.sqrt(x[x > 0]) + 1
    y *= 2
    return y, 2**y, y[y > 3], -x[x > 0], np.where(x[x > 0] > 1, 1.0, x[x > 0]), x[x > 0][:, None] * np.arange(3.0)


@function
def reductions(x: Any, a: Any, b: Any) -> Any:
    y = x[np.flatnonzero(x > 0)]
    return y.sum(), np.prod(y), y @ y, len(y), y.shape[0] * 2, np.cumsum(y), np.count_nonzero(y > 1), np.any(y > 1)


@function
def gathers(x: Any, a: Any, b: Any) -> Any:
    i, j = np.nonzero(a > 2)
    return a[i, j], a[i], i * 10 + j, x[np.flatnonzero(x > 0)], x[np.flatnonzero(x > 0)[::-1]]


@function
def stores(x: Any, a: Any, b: Any) -> Any:
    y, w = x.copy(), a.copy()
    y[np.flatnonzero(x > 0)] = 0.0
    y[np.flatnonzero(x < -1)] += 5
    w[np.nonzero(a > 2)] = -1
    z = np.zeros(x.shape)
    z[x > 0] = np.sort(x[x > 0])
    return y, w, z


@function
def uniques(x: Any, a: Any, b: Any) -> Any:
    return np.unique(a), np.unique(a, return_index=True, return_inverse=True, return_counts=True), np.unique(x > 0)


@function
def uniques_of_some(x: Any, a: Any, b: Any) -> Any:
    every = np.unique(a[a > 2], return_counts=True, return_index=True, return_inverse=True)
    return np.unique(a[a > 2], return_counts=True), every, np.unique(x[x > 0])


@function
def sets(x: Any, a: Any, b: Any) -> Any:
    return np.setdiff1d(a, b), np.intersect1d(a, b), np.union1d(a, b), np.setdiff1d(b, x), np.intersect1d(b, x)


@function
def sets_of_some(x: Any, a: Any, b: Any) -> Any:
    return np.setdiff1d(a[a > 1], b), np.intersect1d(a, b[b > 4]), np.union1d(a[a > 2], b), np.isin(b, a)


@function
def conditions(x: Any, a: Any, b: Any) -> Any:
    rows = np.compress(a[:, 0] > 2, a, axis=0), np.compress(a[0] > 2, a, axis=1), np.compress(x[:3] > 0, x)
    return np.compress(x > 0, x), *rows, np.extract(a > 2, a), np.extract(x, x)


@function
def joins(x: Any, a: Any, b: Any) -> Any:
    y, z = x[x > 0], x[x < 0]
    return np.concatenate([y, z]), np.concatenate((y, b)), np.hstack([b, z]), np.sort(y), np.argsort(y), y[1:], y[:2]


@function
def loops(x: Any, a: Any, b: Any) -> Any:
    total, weighted = 0.0, 0.0
    y = x[x > 0]
    for v in y:
        total += v
    for i in np.flatnonzero(x > 1):
        weighted += x[i] * i
    for i in range(len(y)):
        weighted += y[i] * i
    return total, weighted


@function
def trimmed(x: Any, a: Any, b: Any) -> Any:
    z = np.where(x > 1, x, 0)
    return np.trim_zeros(z), np.trim_zeros(z, "f"), np.trim_zeros(z, "b")


def same(found: Any, expected: Any, where: str = "result") -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected), where
        for number, (one, other) in enumerate(zip(found, expected)):
            same(one, other, f"{where}[{number}]")
        return
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), where
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=where)


def arguments(seed: int, size: int = 40) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(size), rng.integers(0, 6, (7, 9)), rng.integers(3, 9, 20)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_return_what_numpy_does(name: str, target: str) -> None:
    plain = FUNCTIONS[name]
    compiled = ml.compile(plain, target=target)
    x, a, b = arguments(0)
    same(compiled(x, a, b), plain(x, a, b))
    for factor in (0, 1, -1):  # nothing, everything, and again nothing where only positive numbers are taken
        others = np.abs(x) * factor, np.full_like(a, 3 + factor), b + factor
        same(compiled(*others), plain(*others))


def test_random_masks_of_many_lengths() -> None:
    rng = np.random.default_rng(1)

    def f(m: Any, x: Any, y: Any) -> Any:
        return np.flatnonzero(m), x[m], y[m]

    compiled = ml.compile(f)
    for size in (1, 7, 8, 63, 64, 65, 200, 16384, 16385, 50000):
        x, y = rng.standard_normal(size), rng.integers(-9, 9, (size, 3)).astype(np.int16)
        for share in (0.0, 0.01, 0.1, 0.5, 0.9, 0.999, 1.0):
            m = rng.random(size) < share
            same(compiled(m, x, y), f(m, x, y))


def test_long_runs_of_true_and_false_elements() -> None:
    m = np.zeros(100_000, bool)
    m[10:70], m[20_000:60_000], m[99_999] = True, True, True

    def f(m: Any, x: Any, y: Any, z: Any) -> Any:
        return np.flatnonzero(m), x[m], y[m], z[m]

    x = np.arange(100_000)
    given = m, x.astype(np.float32), x.astype(np.uint8), x * 1j
    same(ml.compile(f)(*given), f(*given))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_empty_arrays(target: str) -> None:
    def f(x: Any, a: Any) -> Any:
        return x[x > 0], np.flatnonzero(x), np.nonzero(a), np.unique(x), a[a > 0], np.argwhere(a), np.union1d(x, x)

    given = np.zeros(0), np.zeros((3, 0))
    same(ml.compile(f, target=target)(*given), f(*given))


def test_nan_and_zeros_in_unique() -> None:
    def f(x: Any) -> Any:
        return np.unique(x), np.unique(x, equal_nan=False), np.unique(x, return_counts=True)

    x = np.array([1.0, np.nan, 2.0, np.nan, 1.0, -np.inf, np.inf, np.nan])
    same(ml.compile(f)(x), f(x))


def test_padding_is_not_read() -> None:
    """The buffers hold numbers behind their elements, from the call before."""

    def f(x: Any) -> Any:
        y = x[x > 0]
        z = y[y < 10]
        return np.sort(z), z.sum(), z.max(), z.mean(), np.argmax(z), np.concatenate([z, y]), np.median(z), np.unique(z)

    compiled = ml.compile(f)
    compiled(np.full(64, 7.0))
    for count in (1, 2, 63):
        x = np.full(64, -np.inf)
        x[-count:] = np.arange(1.0, count + 1) / 7
        same(compiled(x), f(x))


def test_a_result_that_is_a_small_part_does_not_keep_its_buffer() -> None:
    few = ml.compile(lambda x: x[x > 0])(np.r_[np.zeros(1000), 1.0])
    assert few.base is None
    many = ml.compile(lambda x: x[x > 0])(np.r_[np.ones(1000), 0.0])
    assert many.shape == (1000,) and many.flags.writeable


def test_slices_with_a_length_of_run_time_are_returned() -> None:
    def f(x: Any, n: Any) -> Any:
        return x[:n], x[n:] * 2, x[:n][::-1]

    compiled = ml.compile(f)
    x = np.arange(6.0)
    for n in (0, 2, 6):
        same(compiled(x, np.int64(n)), f(x, n))


def sorted_norm(x: Any) -> Any:
    y = np.sort(x[x > 0])
    return np.sum(y * y * np.arange(1.0, x.size + 1)[: len(y)])


def of_gathered(x: Any) -> Any:
    y = x[np.flatnonzero(x > 0)]
    return np.sum(y**3)


def of_a_loop(x: Any) -> Any:
    y, total = x[x > 0], 0.0
    for i in range(len(y)):
        total += y[i] ** 2 * i
    return total


def of_running_sums(x: Any) -> Any:
    return np.cumsum(x[x > 0])[-1] ** 2


@pytest.mark.parametrize("f", [sorted_norm, of_gathered, of_a_loop, of_running_sums])
def test_gradients_go_back_to_the_elements(f: Function) -> None:
    x = np.random.default_rng(3).standard_normal(12)
    expected = np.zeros(12)
    for i in range(12):
        step = np.eye(12)[i] * 1e-6
        expected[i] = (f(x + step) - f(x - step)) / 2e-6
    np.testing.assert_allclose(ml.grad(f)(x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ml.jvp(f, (x,), (np.ones(12),))[1], expected.sum(), rtol=1e-5)


def test_batches_of_what_has_a_length_of_its_own() -> None:
    def count(x: Any) -> Any:
        return len(np.unique(x))

    x = np.random.default_rng(4).integers(-3, 3, (5, 8)).astype(np.float64)
    for f in (of_a_loop, of_gathered, count):
        np.testing.assert_allclose(ml.vmap(f)(x), [f(row) for row in x])


def test_membership_in_many_elements() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.isin(x, y), np.isin(x, y, invert=True)

    rng = np.random.default_rng(5)
    compiled = ml.compile(f)
    for dtype in (np.int64, np.uint8, np.float32):
        x, y = rng.integers(0, 90, (4, 9)).astype(dtype), rng.integers(0, 90, 40).astype(dtype)
        if dtype == np.float32:
            x[0, :3], y[:3] = np.nan, (np.nan, -np.inf, np.inf)
        same(compiled(x, y), f(x, y))


def test_functions_without_source_return_what_they_pick() -> None:
    space: dict[str, Any] = {"np": np}
    exec("def f(x): return np.sqrt(x[x > 0]), x[x > 0], np.flatnonzero(x > 0), np.unique(x)", space)
    x = np.random.default_rng(6).standard_normal(30)
    same(ml.compile(space["f"])(x), space["f"](x))
    exec("def g(x): return np.sort(x[x > 0])", space)
    with pytest.raises(ml.errors.ShapeError, match="the shape of the result would depend on the data"):
        ml.compile(space["g"])(x)
