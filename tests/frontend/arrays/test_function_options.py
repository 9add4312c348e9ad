"""Options of functions of arrays whose lengths the data decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

Array = Any
X = np.array([0.5, -1.0, 2.25, 0.75, -0.5, 3.0])


def likes(x: Array) -> Array:
    y = x[x > 0]
    return np.ones_like(y, dtype=int), np.zeros_like(y, bool), np.zeros_like(y.copy(), order="C")


def differences(x: Array) -> Array:
    y = x[x > 0]
    return (
        np.diff(y, prepend=0),
        np.diff(y, append=[1.0, 2.0]),
        np.diff(y, n=2, prepend=y[:1]),
        np.diff(y, n=0, append=1),
    )


@pytest.mark.parametrize("function", [likes, differences])
@pytest.mark.parametrize("sign", [1, -1, 0])
def test_results_are_those_of_numpy(function: Callable[..., Any], sign: int) -> None:
    check(function, X * sign)


def of_elements(x: Array) -> Array:
    return np.zeros_like(x[x > 0], shape=(3,))


def of_a_slice(x: Array) -> Array:
    return np.zeros_like(x[x > 0].copy(), shape=(3,))


def of_a_method(x: Array) -> Array:
    return x[x > 0].copy().cumsum(where=x[0] > 0)


@pytest.mark.parametrize("function", [of_elements, of_a_slice, of_a_method])
def test_others_are_refused_at_their_line(function: Callable[..., Any]) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="unexpected keyword argument") as error:
        ml.compile(function, frontend="loops")(X)
    assert f"({function.__name__})" in str(error.value)
