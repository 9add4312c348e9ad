"""A list or tuple times an integer is repeated, as Python does; the integer must be known while tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml


@pytest.mark.parametrize(
    ("function", "argument"),
    [(lambda n: [0.5] * n, np.int64(3)), (lambda n: n * (1, 2), np.int64(3)), (lambda x: [0] * x[0], np.array([3]))],
)
def test_a_list_times_a_dynamic_integer_is_no_product(function: Callable[[Any], Any], argument: Any) -> None:
    with pytest.raises(ml.errors.MlirmlError, match="needs the value of i64"):
        ml.compile(function)(argument)


def test_a_list_times_an_array_is_a_product() -> None:
    np.testing.assert_array_equal(ml.compile(lambda x: [1, 2] * x)(np.array([3, 4])), [3, 8])


def test_a_list_times_a_static_integer_is_repeated() -> None:
    assert ml.compile(lambda n, x: [x] * n)(2, 1.0) == [1.0, 1.0]
    assert ml.compile(lambda n, x: [x] * n, static_argnums=0)(2, 1.0) == [1.0, 1.0]
