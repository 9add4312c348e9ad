"""Sorts of all sizes: short rows in networks, few elements by insertion, others in vectors or by radix; the first k."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
import mlirml.numpy as mnp
from mlirml.ir.text.dtypes import bfloat16

DTYPES = [np.dtype(c) for c in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
SHAPES = [(1, 2), (1, 31), (1, 33), (5, 64), (8, 100), (17, 257), (40, 1024), (18, 1025), (3, 5000)]


def unsorted(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Elements with all bits in use and many equal ones; NaN, infinities and both zeros among the floats."""
    random = np.random.default_rng([shape[0], shape[1], dtype.num])
    if dtype.kind == "f":
        array = random.normal(size=shape).astype(dtype)
        array[random.random(shape) < 0.2] = 0.5
        for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            array[random.random(shape) < 0.05] = special
        return array
    if dtype == np.bool_:
        return np.asarray(random.random(shape) < 0.5)
    limits = np.iinfo(dtype)
    array = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(random.random(shape) < 0.5, array % 7, array).astype(dtype)


def same_bits(given: np.ndarray, expected: np.ndarray) -> None:
    """Equal, zeros by their sign too; any NaN for a NaN."""
    np.testing.assert_array_equal(given, expected, strict=True)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(given)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sorts_of_every_size(dtype: np.dtype) -> None:
    arrays = [unsorted(dtype, shape) for shape in SHAPES]
    sort, argsort = ml.compile(lambda xs: [np.sort(x) for x in xs]), ml.compile(lambda xs: [np.argsort(x) for x in xs])
    for given, order, x in zip(sort(arrays), argsort(arrays), arrays):
        same_bits(given, np.sort(x, kind="stable"))
        np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_first_of_many_in_either_order(dtype: np.dtype) -> None:
    arrays = [unsorted(dtype, shape) for shape in SHAPES]
    compiled = ml.compile(lambda xs: [(mnp.topk(x, 2), mnp.topk(x, x.shape[1] // 3, largest=False)) for x in xs])
    for (most, least), x in zip(compiled(arrays), arrays):
        for given, expected in zip((*most, *least), (*mnp.topk(x, 2), *mnp.topk(x, x.shape[1] // 3, largest=False))):
            same_bits(given, expected)


def test_bfloat16_sorts_with_nan_last() -> None:
    x = unsorted(np.dtype(np.float32), (17, 100)).astype(bfloat16())
    given = ml.compile(lambda x: np.argsort(x))(x)
    np.testing.assert_array_equal(given, np.argsort(x.astype(np.float32), kind="stable"))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_rows_on_several_threads(threads: int) -> None:
    x = unsorted(np.dtype(np.float64), (300, 257))
    before = ml.config.threads
    ml.config.threads = threads
    try:
        same_bits(ml.compile(lambda x: np.sort(x))(x), np.sort(x, kind="stable"))
    finally:
        ml.config.threads = before


def test_searching_agrees_with_numpy_for_tables_of_every_size() -> None:
    keys = np.linspace(-1, 41, 200)
    for size in (*range(1, 20), 31, 32, 33, 40):
        table = np.arange(size, dtype=np.float64) // 2
        compiled = ml.compile(lambda t, k: (np.searchsorted(t, k), np.searchsorted(t, k, side="right")))
        left, right = compiled(table, keys)
        np.testing.assert_array_equal(left, np.searchsorted(table, keys))
        np.testing.assert_array_equal(right, np.searchsorted(table, keys, side="right"))


def test_complex_numbers_are_found_in_numpys_order() -> None:
    parts = (0, 1, 2, np.nan, np.inf, -1.0)
    z = np.array([complex(a, b) for a in parts for b in parts])
    np.random.default_rng(0).shuffle(z)
    find = ml.compile(lambda t, k: (np.searchsorted(t, k), np.searchsorted(t, k, side="right")))
    left, right = find(np.sort(z), z)
    np.testing.assert_array_equal(left, np.searchsorted(np.sort(z), z))
    np.testing.assert_array_equal(right, np.searchsorted(np.sort(z), z, side="right"))
    numbers = z[np.isfinite(z)]
    most, places = ml.compile(lambda z: mnp.topk(z, 5))(numbers)
    np.testing.assert_array_equal(most, np.sort(numbers)[::-1][:5])
    np.testing.assert_array_equal(numbers[places], most)
    np.testing.assert_array_equal(ml.compile(np.median)(numbers), np.median(numbers))


def test_order_of_keys_that_agree_in_many_bits() -> None:
    """The order is found by 32 bits of the keys first."""
    rng = np.random.default_rng(8)
    order = ml.compile(lambda x: np.argsort(x, stable=True))
    some = ml.compile(lambda x: mnp.topk(x, 700, largest=False)[1])
    for n in (33, 1000, 5000):
        normal = rng.standard_normal(n)
        keys = [
            np.full(n, -3.0),  # no bits differ
            rng.permutation(1e9 + np.arange(n) * 1e-7),  # the last bits alone
            rng.integers(-(2**40), 2**40, n),
            rng.integers(0, 2**64, n, dtype=np.uint64) & np.uint64(0xC0000000000000FF),  # the first and the last ones
            rng.choice(normal[: n // 10 + 1], n),  # long runs
            np.where(rng.random(n) < 0.02, normal, np.nextafter(1.0, rng.integers(0, 2, n) * 2.0)),  # one long run
            np.concatenate([normal[2:], [np.nan, -np.inf]]),
        ]
        for x in keys:
            np.testing.assert_array_equal(order(x), np.argsort(x, kind="stable"))
            if n > 700:
                np.testing.assert_array_equal(some(x), np.argsort(x, kind="stable")[:700])
