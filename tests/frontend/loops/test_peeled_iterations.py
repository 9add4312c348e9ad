"""Variables that are None, or of another structure, until the first round of a loop has run."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

LONG = np.random.default_rng(8).normal(size=1000)
SIZES = [1, 2, 1000]


@pytest.mark.parametrize("size", SIZES)
def test_the_best_so_far_is_none_at_first(size: int) -> None:
    def best_of(x):
        best = place = None
        for i in range(len(x)):
            if best is None or x[i] > best:
                best = x[i]
                place = i
        return best, place

    check(best_of, LONG[:size])


@pytest.mark.parametrize("size", SIZES)
def test_the_element_before(size: int) -> None:
    def variation(x):
        before, total = None, 0.0
        for value in x:
            if before is not None:
                total += abs(value - before)
            before = value
        return total

    check(variation, LONG[:size])


def test_arrays_and_keys_that_begin_in_the_first_round() -> None:
    def sums(x):
        total, found = None, {}
        for i in range(len(x)):
            row = np.zeros(2)
            for j in range(2):
                row[j] = x[i] * j
            total = row if total is None else total + row
            found["last"] = found.get("last", 0.0) * 0.5 + x[i]
        return total, found["last"]

    check(sums, LONG, exact=False)


def test_the_other_rounds_stay_a_loop() -> None:
    def last(x):
        pair = ()
        for i in range(len(x)):
            x[i] += len(pair)
            pair = (x[i], i)
        return pair

    check(last, LONG)
    text = ml.compile(last, frontend="loops").ir("capture", LONG)
    assert text.count("scf.for") == 1 and text.count("\n") < 40


@pytest.mark.parametrize("size", SIZES)
def test_a_list_that_the_first_iteration_replaces_by_an_array(size: int) -> None:
    def first_and_rest(x):
        first, total = [], 0.0
        for i in range(len(x)):
            if i == 0:
                first = x[i] * np.ones(2)
            else:
                total += x[i] * first[1]
        return first, total

    check(first_and_rest, LONG[:size], exact=False)


def test_strings_that_data_choose_are_named_in_the_error() -> None:
    def direction(x):
        name = "none"
        for v in x:
            name = "up" if v > 0 else "down"
        return 1 if name == "up" else 2

    with pytest.raises(ml.UnsupportedSyntaxError, match="is 'up' in one branch and 'down' in the other"):
        ml.compile(direction)(LONG)
