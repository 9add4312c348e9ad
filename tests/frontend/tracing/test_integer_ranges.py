"""Ranges of integers by which buffers get their sizes and index checks are omitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check, same

Array = Any


def size_of_branches(x: Array) -> Array:
    a, b = int(x[0]), np.argmax(x)
    if a <= b:
        m, q = b, 1
        if x[1] > 0:
            m, q = a, 0
        r = m + q - q
    else:  # a is greater than b here, which bounds m only
        r = a
    return np.zeros(max(r, 0))


def index_of_branches(x: Array) -> Array:
    a, b = int(x[0]), np.argmax(x)
    if a >= b:
        m, q = b, 1
        if x[1] > 0:
            m, q = a, 0
        r = m + q - q
    else:
        r = a
    y = np.arange(10.0)
    y[r] = 50
    return y, r


@pytest.mark.parametrize("function", [size_of_branches, index_of_branches])
@pytest.mark.parametrize("x", [(-3.0, 1.0), (7.0, 1.0), (7.0, -1.0), (3.0, -1.0)])
def test_limits_that_a_condition_implies_hold_in_its_branch_only(function: Callable[..., Any], x: Array) -> None:
    check(function, np.array(x))
    with ml.config.override(checks=False):
        same(ml.compile(function)(np.array(x)), function(np.array(x)), True, "without checks")


def sizes_of_sums(x: Array) -> Array:
    n = np.sum(x > 0, initial=3)
    y = np.zeros(n)
    y[-1] = 1.0
    return y, np.ones(sum(x > 0, 2))


@pytest.mark.parametrize("x", [(1.0, 2.0, 3.0), (-1.0, -2.0, -3.0), (1.0,)])
def test_the_first_term_of_a_sum_counts(x: Array) -> None:
    check(sizes_of_sums, np.array(x))


def positions_in_lists(x: Array) -> Array:
    return np.zeros(np.searchsorted([0.0, 1.0, 2.0], x[0])), np.ones(np.argmax([x[0], x[1], x[2]]))


def test_positions_in_lists_are_limited_by_their_lengths() -> None:
    check(positions_in_lists, np.array([1.5, 3.0, 2.0]))


def counter_of_a_nested_loop_in_a_branch(x: Array) -> Array:
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            for j in range(i):
                if x[j] < 0:
                    n += 1
    return np.zeros(n)


def test_counters_of_loops_in_branches_are_limited() -> None:
    x = np.array([-1.0, 2.0, -3.0, 4.0, 5.0])
    check(counter_of_a_nested_loop_in_a_branch, x)


@pytest.mark.parametrize("find", [np.argmax, np.argmin, np.count_nonzero])
def test_limits_that_are_dynamic_sizes_are_not_known(find: Callable[..., Any]) -> None:
    def up_to(x: Array) -> Array:
        i = find(x)
        return np.zeros(i), x[i - 1]

    compiled = ml.compile(up_to, dynamic={"x": ("n",)})
    for x in (np.array([1.0, 3.0, 0.0]), np.array([0.0, 1.0, 2.0, -1.0, 4.0])):
        same(compiled(x), up_to(x), True, "the result")
