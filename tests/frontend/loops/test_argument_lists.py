"""Lists of numbers among the arguments, short and long, against plain Python."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import same


def scaled(n: int, a: float, x: list[float], y: list[float]) -> None:
    for i in range(n):
        y[i] = a * x[i] + y[i]


def largest(prices: list[float], n: int) -> float:
    best = prices[0]
    for i in range(1, n):
        best = max(best, prices[i])
    return best


def partition(items: list[int], low: int, high: int) -> int:
    pivot = items[high]
    i = low - 1
    for j in range(low, high):
        if items[j] <= pivot:
            i += 1
            items[i], items[j] = items[j], items[i]
    items[i + 1], items[high] = items[high], items[i + 1]
    return i + 1


def mirrored(table: list[list[float]], p: int) -> list[list[float]]:
    for i in range(p):
        table[i][p] += table[p][i]
    return table


def halved(counts: list[int], n: int) -> int:
    total = 0
    for i in range(n):
        counts[i] = counts[i] // 2
        total += counts[i]
    return total + sum(counts) + len(counts)


def widened(counts: list[int], n: int) -> float:
    for i in range(n):
        counts[i] = counts[i] / 2  # type: ignore[call-overload]
    return counts[0]


def sieve(limit: int) -> int:
    flags = [True] * limit
    flags[0] = flags[1] = False
    total = 0
    for i, is_prime in enumerate(flags):
        if is_prime:
            total += i
            for n in range(i * i, limit, i):
                flags[n] = False
    return total


def chained(n: int) -> tuple[int, list[int]]:
    items = [1] * n
    total = 0
    for x, i in zip(items, range(n)):
        total = (total * 3 + x) % 1001
        for j in range(n):
            items[j] += j + i
    return total, items


def growing() -> list[int]:
    items = [1]
    for x in items:
        if x < 100:
            items.append(x * 2)
    return items


def check(function: Callable[..., Any], *args: Any) -> None:
    """The results and the arguments after the call are those of Python."""
    ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
    found, expected = ml.compile(function)(*ours), function(*theirs)
    for one, other in ((found, expected), (ours, theirs)):
        flat, wanted = (ml.core.tree.flatten(x)[0] for x in (one, other))
        assert len(flat) == len(wanted)
        for x, y in zip(flat, wanted):
            np.testing.assert_allclose(x, y, rtol=1e-14)
            assert np.asarray(x).dtype == np.asarray(y).dtype


@pytest.mark.parametrize("n", [3, 40, 90, 1000])
def test_items_at_dynamic_indices(n: int) -> None:
    numbers = [float(i * 7919 % 101) for i in range(n)]
    check(scaled, n - 1, 0.5, numbers, numbers[::-1])
    check(largest, numbers, n)
    check(partition, [int(x) for x in numbers], 0, n - 1)
    check(halved, [int(x) for x in numbers], n - 2)


def correlated(images: list[Any], output: list[Any], n: int) -> None:
    for i in range(n):
        for j in range(n):
            for k in range(n):
                output[i][j][k] += images[k][j][i] * images[i][j][k]


@pytest.mark.parametrize("n", [2, 6])
def test_lists_of_lists_of_lists(n: int) -> None:
    images = [[[float(i * n * n + j * n + k) for k in range(n)] for j in range(n)] for i in range(n)]
    check(correlated, images, copy.deepcopy(images), n)


@pytest.mark.parametrize("n", [4, 20])
def test_rows(n: int) -> None:
    check(mirrored, [[float(i * n + j) for j in range(n)] for i in range(n)], n - 2)


def test_items_of_another_type() -> None:
    """Items that become floats do not fit an array of integers: the numbers are passed one by one."""
    check(widened, list(range(100)), 100)


def test_one_program_for_lists_of_one_length() -> None:
    program = ml.compile(largest)
    for shift in (0.0, 1.0, 2.0):
        numbers = [float(i * 31 % 97) + shift for i in range(200)]
        assert program(numbers, 200) == max(numbers)
    assert "1 signature(s)" in program.explain()


def test_numbers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(ml.IntegerRangeError, match="out of bounds for i64"):
        ml.compile(halved)([2**70] * 100, 3)


def test_the_empty_list() -> None:
    check(lambda items, n: [n, *items], [], 3)


@pytest.mark.parametrize("n", [10, 30, 100, 400])
def test_items_that_change_before_their_turn(n: int) -> None:
    check(sieve, n)
    check(chained, n)


def test_a_list_that_grows_while_it_is_iterated() -> None:
    check(growing)


def overwritten(a: list[float], b: list[float]) -> float:
    a[0] = 5.0
    return b[0]


def test_a_list_that_is_passed_twice() -> None:
    """A long one is one array; of a short one the numbers are arguments, of which one would not change."""
    short, program = [1.0, 2.0], ml.compile(overwritten)
    with pytest.raises(ml.ArgumentError, match=r"one list is passed twice, .* stores into it"):
        program(short, short)
    assert short == [1.0, 2.0]
    assert program([1.0, 2.0], [3.0, 4.0]) == 3.0
    numbers = [1.0] * 100
    check(lambda a, b: [overwritten(a, b), b[0]], numbers, [2.0] * 100)

    def last(a: list[float], b: list[float], n: int) -> float:
        for i in range(n):
            a[i] = a[i] + 1.0
        return b[0]

    assert ml.compile(last)(numbers, numbers, 100) == 2.0
    assert numbers == [2.0] * 100


def test_dicts_and_nested_lists_that_are_passed_twice() -> None:
    def store(pair: Any) -> Any:
        pair[0]["n"] = 3
        return pair[1]["n"]

    item = {"n": 1}
    with pytest.raises(ml.ArgumentError, match="one dict is passed twice"):
        ml.compile(store)([item, item])
    assert ml.compile(store)([{"n": 1}, item]) == 1


def summed(xs):
    return np.sum(np.array(xs)), sum(xs) / len(xs), max(xs), min(xs), np.dot(xs, xs), xs[3] + xs[-1]


def plus_one(v):
    return v + 1


def made(xs):
    one = [1.0]
    return [2 * x for x in xs], xs + one, one + xs, xs[5:9], list(map(plus_one, xs)), xs[:2] * 2


def binned(xs):
    low, high = min(xs), max(xs)
    out = [0] * 11
    for x in xs:
        out[int(10 * (x - low) / (high - low))] += 1
    out[-2] += out[-1]
    out.pop()
    return out


@pytest.mark.parametrize("n", [20, 100, 3000])
def test_functions_of_whole_lists(n: int) -> None:
    """They get one array in place of many numbers, with loops over elements or without."""
    numbers = [float(i * 7919 % 101) / 8 for i in range(n)]
    for function in (summed, made, binned):
        compiled = ml.compile(function)
        same(compiled(numbers), function(numbers), False, function.__name__)
        if n > 64:
            assert "(f64[" in compiled.explain(numbers)


def table(n: int, m: int) -> list[list[float]]:
    return [[0.0 for _ in range(n)] for _ in range(m)]


def product(one: list[list[float]], other: list[list[float]]) -> list[list[float]]:
    new = table(len(one), len(other[0]))
    for i in range(len(one)):
        for j in range(len(other[0])):
            total = 0.0
            for k in range(len(other)):
                total += one[i][k] * other[k][j]
            new[i][j] = total
    return new


def test_a_helper_that_returns_a_new_list() -> None:
    """Loops of its caller index the list: unrolled, 27,000 copies would be more than the most."""
    rows = [[float(i - j) for j in range(30)] for i in range(30)]
    check(product, rows, rows[::-1])


def put_in_places(items: list[int]) -> list[int]:
    index = 0
    while index < len(items):
        place = items[index] - 1
        if index != place:
            items[index], items[place] = items[place], items[index]
        else:
            index += 1
    return items


def sorted_by_gaps(items: list[int]) -> list[int]:
    gap = len(items)
    while gap > 1:
        gap = int(gap / 1.3)
        for i in range(gap, len(items)):
            item, j = items[i], i
            while j >= gap and items[j - gap] > item:
                items[j] = items[j - gap]
                j -= gap
            items[j] = item
    return items


@pytest.mark.parametrize("function", [put_in_places, sorted_by_gaps])
def test_empty_lists_end_a_loop_before_its_body(function: Callable[..., Any]) -> None:
    for items in ([], [1], [3, 1, 2]):
        same(ml.compile(function)([*items]), sorted(items), True, "the result")
