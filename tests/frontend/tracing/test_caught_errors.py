"""Refusals that a function catches decide nothing: the call fails, or is traced for a static argument."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(2.0, 5.0)


def with_default(x: Any) -> Any:
    try:
        v = 1 / float(x[0])
    except Exception:
        v = 0.0
    return v * x


def in_a_branch(x: Any) -> Any:
    try:
        v = 1.0 if x[0] > 0 else 2.0
    except:  # noqa: E722
        v = 0.0
    return v * x


def raised_from(x: Any) -> Any:
    try:
        v = 1 / float(x[0])
    except Exception as error:
        raise RuntimeError("no number") from error
    return v * x


def suppressed(x: Any) -> Any:
    v = 0.0
    with suppress(Exception):
        v = 1 / float(x[0])
    return v * x


def by_a_helper(x: Any) -> Any:
    def inverse() -> Any:
        return 1 / float(x[0])

    try:
        return inverse() * x
    except Exception:
        return x


FUNCTIONS = [with_default, in_a_branch, raised_from, suppressed, by_a_helper]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_refusal_that_is_caught_is_an_error(function: Any) -> None:
    with pytest.raises(ml.errors.CaptureError, match="the function catches this error"):
        ml.compile(function)(X)


def test_errors_of_python_are_caught() -> None:
    def shaped(x: Any) -> Any:
        try:
            return x.reshape(2, 7)
        except ValueError:
            pass
        try:
            return x[9]
        except IndexError:
            return x * 2

    np.testing.assert_array_equal(ml.compile(shaped)(X), X * 2)


def test_a_static_argument_is_found_in_a_try() -> None:
    def zeros(x: Any, n: int) -> Any:
        try:
            found = np.zeros(n)
        except:  # noqa: E722
            found = x
        return found

    np.testing.assert_array_equal(ml.compile(zeros)(X, 2), np.zeros(2))


def test_long_loops_are_traced_in_a_try() -> None:
    def added(x: Any) -> Any:
        total = 0.0
        try:
            for _ in range(200):
                total = total + x[0]
        except:  # noqa: E722
            total = -1.0
        return total

    assert ml.compile(added)(X) == 400
