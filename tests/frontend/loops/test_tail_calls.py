"""Functions that call themselves last are loops where data decide how often."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import same


def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


def heapify(a, index, n):
    largest = index
    left, right = 2 * index + 1, 2 * index + 2
    if left < n and a[left] > a[largest]:
        largest = left
    if right < n and a[right] > a[largest]:
        largest = right
    if largest != index:
        a[largest], a[index] = a[index], a[largest]
        heapify(a, largest, n)


def heap_sort(a):
    for i in range(len(a) // 2 - 1, -1, -1):
        heapify(a, i, len(a))
    for i in range(len(a) - 1, 0, -1):
        a[0], a[i] = a[i], a[0]
        heapify(a, 0, i)
    return a


def power(x, n, product=1.0):
    if n == 0:
        return product
    if n % 2 == 1:
        return power(x * x, n // 2, product=product * x)
    return power(n=n // 2, x=x * x, product=product)


def search(x, target, low, high):
    if low > high:
        return -1
    middle = (low + high) // 2
    if x[middle] == target:
        return middle
    elif x[middle] > target:
        return search(x, target, low, middle - 1)
    else:
        return search(x, target, middle + 1, high)


def steps(n, count=0):
    if n == 1:
        return count
    n = n // 2 if n % 2 == 0 else 3 * n + 1
    return steps(n, count + 1)


def bubble(a, n):
    swapped = False
    for i in range(n - 1):
        if a[i] > a[i + 1]:
            a[i], a[i + 1] = a[i + 1], a[i]
            swapped = True
    return a if not swapped else bubble(a, n - 1)


def in_loop(x):
    total = 0
    for v in x:
        total += gcd(v, 12) * steps(v)
    return total


def by_static_depth(x, depth=6):
    if depth == 0:
        return x
    return by_static_depth(np.sin(x)[1:] if len(x) > 3 else x, depth - 1)


def by_halves(x):
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return by_halves(x[:middle] + x[middle:])


RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize(
    "function, arguments",
    [
        (gcd, (48, 18)), (gcd, (np.int64(48), np.int64(0))), (heap_sort, (RANDOM.integers(0, 50, 20),)),
        (heap_sort, ([5, 3, 9, 1, 4, 8, 2],)), (power, (1.1, 25)), (search, (np.arange(50), 37, 0, 49)),
        (search, (np.arange(50), 77, 0, 49)), (steps, (27,)), (bubble, (RANDOM.normal(size=12), 12)),
        (in_loop, (np.arange(1, 20),)), (by_static_depth, (np.arange(5.0),)), (by_halves, (np.arange(8.0),)),
    ],
)  # fmt: skip
def test_programs(function: Any, arguments: Any, frontend: Any) -> None:
    found_arguments, expected_arguments = copy.deepcopy(arguments), copy.deepcopy(arguments)
    expected = function(*expected_arguments)
    found = ml.compile(function, frontend=frontend)(*found_arguments)
    same(np.asarray(found), np.asarray(expected), True, "the result")
    for one, other in zip(found_arguments, expected_arguments):
        np.testing.assert_allclose(one, other)


def left_over(x, n):
    if n > 3:
        t = x
    if n == 0:
        return t
    return left_over(x + 1.0, n - 1)


def test_a_variable_of_another_call_is_not_read() -> None:
    with pytest.raises(UnboundLocalError):
        left_over(1.0, 6)
    with pytest.raises(ml.MlirmlError):
        ml.compile(left_over, frontend="loops")(1.0, np.int64(6))


def not_last(n):
    return 1 if n <= 1 else n * not_last(n - 1)


def test_other_recursion_on_data_is_an_error() -> None:
    with pytest.raises(ml.UnboundedRecursionError, match="calls itself without an end"):
        ml.compile(not_last, frontend="loops")(np.int64(5))


def changing_shapes(x):
    if np.sum(x) > 3 or len(x) == 1:
        return x[0]
    return changing_shapes(x[1:] * 2)


def test_parameters_that_change_their_shapes_are_unfolded() -> None:
    x = np.array([0.1, 0.2, -0.3, 0.5, 0.1, -0.5, 0.25])
    np.testing.assert_allclose(ml.compile(changing_shapes)(x), changing_shapes(x))
