"""New arrays as long as the data say, stores into what a mask picks, and loops over such arrays together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check, same

Array = Any
X = np.array([0.5, -1.0, 2.25, 0.75, -0.5, 3.0, 1.5, -2.0, 0.25, 1.0])


def filled(x: Array) -> Array:
    y = x[x > 0]
    out = np.zeros(len(y))
    for i in range(len(y)):
        out[i] = y[i] * 2 + i
    return out


def of_a_sum(x: Array) -> Array:
    out, k = np.empty(int(np.sum(x > 0))), 0
    for v in x:
        if v > 0:
            out[k] = v
            k += 1
    return out


def of_a_counter(x: Array) -> Array:
    n = 0
    for i in range(len(x)):
        for j in range(i):
            if x[i] > x[j]:
                n += 1
    table, k = np.zeros((n, 2)), 0
    for i in range(len(x)):
        for j in range(i):
            if x[i] > x[j]:
                table[k, 0], table[k, 1] = i, j
                k += 1
    return table


def of_units(x: Array) -> Array:
    n = int(np.sum(x > 0))
    product = np.eye(n)
    for _ in range(3):
        product = product @ np.full((n, n), 0.5)
    return product, np.eye(n, n + 1, 1), np.eye(n, k=-1, dtype=int), np.identity(n, "f4"), np.tri(n), np.tri(3, n, -1)


def of_two_branches(x: Array) -> Array:
    low, high = 0, 0
    for v in x:
        if v > 0:
            high += 1
        elif v < -0.75:
            low -= 1
    return np.zeros(high), np.arange(low, high), np.full(high, 2.0, "f4"), np.arange(high, low, -3)


def grids(x: Array) -> Array:
    n = len(x[x > 0])
    return np.arange(n)[::-1], np.linspace(0, 1, n), np.linspace(2, 3, num=n, endpoint=False), np.arange(2, n, 3)


def of_any_number(x: Array) -> Array:
    n = int(x[2] * 400)  # nothing bounds it: the room grows
    y = np.arange(n) * 2.0
    return y[::100].sum(), y


def matrix(x: Array) -> Array:
    n = int(x[5]) + 1
    a = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            a[i, j] = i * j + x[i]
    return a @ np.ones(n), a.sum(axis=0), a.T


def in_a_loop(x: Array) -> Array:
    total = 0.0
    for i in range(len(x)):
        y = np.ones(int(abs(x[i]) * 2) + 1)
        for j in range(1, len(y)):
            y[j] = y[j - 1] * x[i]
        total += y.sum()
    return total


def whole_and_part(x: Array) -> Array:
    y = x[x > 0]
    out = np.zeros((3, len(y)))
    out[0] = y
    out[1] = y**2
    out[2, 1:] = y[:-1]
    return out, out.shape[1]


def none_of_them(x: Array) -> Array:
    y = x[x > 5]
    return np.zeros(len(y)), np.linspace(0, 1, len(y)), np.ones((len(y), 3)).sum(), np.diff(y).sum()


def masked_elements(x: Array) -> Array:
    y = x[x > 0]
    for i in range(1, len(y)):
        y[i] = y[i - 1] * 0.5 + y[i]
    z = np.zeros_like(x[x < 0])
    z[0] = 1.0
    return y, z


def rows_of_a_mask(x: Array) -> Array:
    pairs = np.stack([x, x * 2], axis=1)[x > 0]
    out = np.zeros_like(pairs)
    for i in range(len(pairs)):
        out[i, 0], out[i, 1] = pairs[i, 1], i
    return out


def zipped(x: Array) -> Array:
    positions = np.where(x > 0)[0]
    total = 0.0
    for a, b in zip(positions[:-1], positions[1:]):  # noqa: RUF007
        total += x[a] * x[b]
    for i, (v, w) in enumerate(zip(x[x > 0], x)):
        total += i * v * w
    return total


def products_and_pairs(x: Array) -> Array:
    y, total = x[x > 0], 0.0
    for a, b in itertools.pairwise(y):
        total += a * b
    for a, b in itertools.pairwise(x):
        total += a - b
    return total, sum(p * q for p, q in itertools.product(y, x[x < 0])), sum(a for a, _ in itertools.pairwise(x[:1]))


def gaps(x: Array) -> Array:
    peaks = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            peaks.append(i)
    found = [b - a for a, b in zip(peaks, peaks[1:])]  # noqa: RUF007
    return max(found), sum(found), len(found)


def comprehensions(x: Array) -> Array:
    values = np.unique(np.floor(x))
    doubled = [v * 2 for v in x[x > 0]]
    squares = [i * i for i in range(np.argmax(x))]
    return np.array([(np.floor(x) == v).sum() for v in values]), max(doubled), sum(squares), len(squares)


def lists_of_zeros(x: Array) -> Array:
    counts = [0] * (int(x.max()) + 1)
    for v in x:
        counts[int(abs(v))] += 1
    n = len(x[x > 0])
    powers = [1.0] * (n + 1)
    for i in range(1, n + 1):
        powers[i] = powers[i - 1] * 2 + i
    return max(counts), counts[1], len(counts), powers[n]


def lists_without_loops(x: Array) -> Array:
    n = len(x[x > 0])
    c = [0] * n
    d = c
    d[2] = 5
    flags = [True] * (n + 1)
    flags[0] = False
    left = sum(1 for flag in flags if flag)
    return c, len(d), left, [x[0]] * n, n * [1.5], np.mean([0.5] * n), len([0] * (n - 100))


def functions_of_iterables(x: Array) -> Array:
    y, n = x[x > 0], int(x.max())
    total = 0.0
    for i, (v, w) in enumerate(zip(y, reversed(y)), 1):
        total += i * v * w
    numbers = sum(range(n)), max(range(n)), sum(map(lambda v, w: v * w, y, x)), any(map(np.isfinite, y))
    return total, numbers, sorted(map(abs, x[x < 0])), list(reversed(y)), min(map(abs, y)), len(list(zip(y, x)))


def lists_in_a_result(x: Array) -> Array:
    positions = [i for i in range(len(x)) if x[i] > 0]
    return [b - a for a, b in zip(positions, positions[1:])], [v * 2 for v in x[x > 0]]  # noqa: RUF007


def of_short_integers(x: Array) -> Array:
    n, m = (x > 0).sum(dtype=np.int32), np.int8(0)
    for v in x:
        if v > 1:
            m += np.int8(1)
    return (
        np.arange(n),
        np.arange(m, n),
        np.arange(n, m, -2),
        np.zeros(n),
        np.full(m, 1.5),
        [0] * n,
        np.linspace(0, 1, n),
    )


def differences(x: Array) -> Array:
    positions = np.flatnonzero(x > 0)
    return np.diff(positions), np.diff(positions, n=2), np.diff(x[x > 0]), np.diff(positions > 4)


def of_positions(x: Array) -> Array:
    c = np.argmax(x)
    left, right = np.zeros(c), np.ones(len(x) - c)
    for i in range(c):
        left[i] = x[i]
    return left, right


def one_hot(x: Array) -> Array:
    labels = np.argsort(x) % 4
    n = labels.max() + 1
    out, turned, counts = np.zeros((len(x), n)), np.zeros((n, len(x))), np.zeros((n, n), dtype=int)
    out[np.arange(len(x)), labels] = 1
    turned[labels, np.arange(len(x))] += 2
    np.add.at(counts, (labels, labels[::-1]), 1)
    return out, turned, counts, out[np.arange(len(x)), labels], turned[labels]


def at_positions(x: Array) -> Array:
    labels = np.argsort(x) % 4
    table = np.zeros((labels.max() + 1, 3))
    table[labels, 1] = x
    np.maximum.at(table, (labels, 2), x)
    table[[0, -1]] += 5
    table[np.array([[0, 1], [-1, 0]]), np.array([0, 2])] -= 3
    table[table[:, 1].astype(int) % 4, 0] = table[0, 1]
    return table, table[np.array([[0, 1], [-1, 0]])], table[[-1, 0], [1, 2]]


def arrays_of(x: Array) -> Array:
    y = x[x > 0]
    z = np.array(y)
    z[0] = 7
    centred = y - y.mean()
    return (
        y,
        z,
        np.array(y, dtype=np.float32),
        np.asarray(y),
        np.ascontiguousarray(y),
        np.array(centred @ centred / len(y)),
    )


@pytest.mark.parametrize("function", [
    one_hot, at_positions, arrays_of,
    filled, of_a_sum, of_a_counter, of_two_branches, of_units, grids, of_any_number, matrix, in_a_loop, whole_and_part,
    none_of_them, products_and_pairs, masked_elements, rows_of_a_mask, zipped, gaps, comprehensions, lists_of_zeros,
    lists_without_loops, functions_of_iterables, lists_in_a_result, of_short_integers, differences, of_positions,
])  # fmt: skip
def test_numbers_are_those_of_python(function: Callable[..., Any]) -> None:
    check(function, X)


def sieve(x: Array) -> Array:
    n = int(x[0])
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = False
    return np.flatnonzero(prime)


def sums_of_every(x: Array) -> Array:
    total = 0.0
    for k in range(1, len(x)):
        total += x[::k].sum() * k
    return total


def stores_into_every(x: Array) -> Array:
    a = np.outer(x, x)
    for k in range(1, 5):
        a[::k, k] += a[k, ::k].sum()
        a[k, k :: k + 1] = 0
    return a


def every_of_a_mask(x: Array) -> Array:
    y, total = x[x > 0], 0.0
    for k in range(1, 4):
        total += y[::k].sum() - y[k::k].mean()
    return total, y[:: int(x[5]) - 1]


@pytest.mark.parametrize("function", [sums_of_every, stores_into_every, every_of_a_mask])
def test_steps_of_slices_are_numbers_of_the_program(function: Callable[..., Any]) -> None:
    check(function, X)


def test_a_sieve() -> None:
    check(sieve, np.array([300.0]))


@pytest.mark.parametrize("function", [filled, of_a_sum, masked_elements])
def test_derivatives_follow(function: Callable[..., Any]) -> None:
    def total(x: Array) -> Array:
        found = function(x)
        return sum((a * a).sum() for a in found) if isinstance(found, tuple) else (found * found).sum()

    gradient = ml.compile(ml.grad(total))(X)
    steps = 1e-6 * np.eye(len(X))
    numeric = [(total(X + step) - total(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def test_a_list_times_an_array_is_no_longer_list() -> None:
    def scaled(k: Array) -> Array:
        items = [2] * k
        return items[0]

    with pytest.raises(ml.TracedValueError, match="known only at run time"):  # 2 * k in NumPy
        ml.compile(scaled)(np.array(3))


def test_other_lengths_need_no_new_compilation() -> None:
    compiled = ml.compile(of_a_counter)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal(len(X))
        same(compiled(x), of_a_counter(x), True, "the result")
    assert "1 signature(s) compiled" in str(compiled.explain())


def test_a_negative_size_fails_at_its_line() -> None:
    def bad(x: Array) -> Array:
        return np.zeros(int(x[0]) - 5)

    with pytest.raises(ml.ShapeError, match="negative dimensions are not allowed") as failure:
        ml.compile(bad)(X)
    assert "np.zeros(int(x[0]) - 5)" in str(failure.value)


def test_a_step_that_is_not_positive_fails_at_its_line() -> None:
    def bad(x: Array) -> Array:
        return x[:: int(x[1])].sum()

    with pytest.raises(ml.ShapeError, match="is not positive") as failure:
        ml.compile(bad)(X)
    assert "x[:: int(x[1])]" in str(failure.value)


def test_positions_are_checked() -> None:
    def bad(x: Array) -> Array:
        labels = np.argsort(x) % 4
        out = np.zeros((labels.max() + 1, 2))
        out[labels + 1, 0] = 1
        return out

    with pytest.raises(IndexError, match="out of bounds") as failure:
        ml.compile(bad)(X)
    assert "out[labels + 1, 0]" in str(failure.value)


def test_a_size_beyond_all_room_is_an_error() -> None:
    with pytest.raises(ml.OutgrownListError, match="no room"):
        ml.compile(of_any_number)(X * 1e12)


def between(start: Any, stop: Any, step: Any) -> Array:
    return np.arange(start, stop, step)


def sampled(x: Array, step: float) -> Any:
    return np.interp(np.arange(0, len(x) - 1, step), np.arange(len(x)), x).sum()


@pytest.mark.parametrize(
    "bounds",
    [
        (0.0, 1.0, 0.1),
        (1.5, 10, 1.0),
        (0.0, 3.3, 0.5),
        (5.0, 1, -0.1),
        (3.0, -12.0, -3.2),
        (1.0, 0.0, 0.5),
        (0, 9, 3.0),
    ],
)
def test_arange_of_doubles(bounds: tuple[Any, ...]) -> None:
    found, expected = ml.compile(between)(*bounds), np.arange(*bounds)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(ml.compile(sampled)(X, 0.3), sampled(X, 0.3), rtol=1e-13)


@pytest.mark.parametrize("step", [0.0, np.nan])
def test_arange_without_a_length_is_an_error(step: float) -> None:
    with pytest.raises(ml.ShapeError, match="negative dimensions"):
        ml.compile(between)(0.0, 1.0, step)
