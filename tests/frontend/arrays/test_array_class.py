"""`isinstance` and `np.isscalar` give inside of a compiled function what they give outside."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten

KINDS = (
    np.ndarray,
    np.generic,
    np.floating,
    np.float64,
    np.int32,
    np.bool_,
    int,
    float,
    bool,
    complex,
    numbers.Real,
    str,
)


def test_what_arguments_and_results_are() -> None:
    found: list[list[Any]] = []

    def ask(values: Any) -> Any:
        x = values[0]
        asked = [*values, x[0], x.sum(), x[:1], x * 2, x > 1, (x > 1).any(), 3.0, None, np.zeros(2), [x]]
        found.append(
            [
                [isinstance(v, kind) for kind in KINDS] + [np.isscalar(v), isinstance(v, (str, list, np.ndarray))]
                for v in asked
            ]
        )
        return x

    values = (np.arange(3.0), np.array(2.0), np.float32(1), np.int32(2), np.bool_(True), 2.5, 7, True, 2j)
    ask(values)
    ml.compile(ask, "reference")(values)
    assert found[0] == found[1]


@pytest.mark.parametrize("value", [np.ones(3), 2.0])
def test_a_branch_on_the_kind_of_an_argument(value: Any) -> None:
    def total(x: Any) -> Any:
        return x.sum() if isinstance(x, np.ndarray) else x * 10

    assert ml.compile(total)(value) == total(value)


def test_the_kind_of_the_number_of_a_round() -> None:
    def numbered(x: Any) -> Any:
        for i in range(x.shape[0]):
            x[i] += 1.0 if isinstance(i, int) and not isinstance(i, np.ndarray) else 5.0
        return x

    np.testing.assert_array_equal(flatten(ml.compile(numbered)(np.zeros(300)))[0][0], np.ones(300))
