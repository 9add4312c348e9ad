"""Errors that the function raises itself come through unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.frontend.current import current_trace


def check_rows(x: Any) -> Any:
    if x.shape[0] != 4:
        raise ValueError(f"expected 4 rows, got {x.shape[0]}")
    return x


def look_up(x: Any, options: Any) -> Any:
    return x * options["scale"]


def unpack(x: Any) -> Any:
    a, b = x
    return a + b


def size_of_a_number(x: Any) -> Any:
    return len(x[0])


def call_an_array(x: Any) -> Any:
    return x(1)


def from_our_error(x: Any) -> Any:
    try:
        return x @ np.ones((7, 7))
    except ValueError as error:
        raise RuntimeError("the model does not fit the data") from error


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_an_error_of_the_function(target: str) -> None:
    compiled = ml.compile(check_rows, target)
    with pytest.raises(ValueError, match=r"^expected 4 rows, got 3$") as caught:
        compiled(np.ones((3, 2)))
    assert type(caught.value) is ValueError
    assert current_trace() is None
    np.testing.assert_array_equal(compiled(np.ones((4, 2))), np.ones((4, 2)))


def test_errors_of_python() -> None:
    with pytest.raises(KeyError, match="scale"):
        ml.compile(look_up)(np.ones(3), {})
    with pytest.raises(ValueError, match="too many values to unpack"):
        ml.compile(unpack)(np.ones(3))
    with pytest.raises(TypeError, match=r"len\(\) of unsized object"):
        ml.compile(size_of_a_number)(np.ones(3))
    with pytest.raises(TypeError, match="not callable"):
        ml.compile(call_an_array)(np.ones(3))
    with pytest.raises(AttributeError, match="has no attribute 'summ'"):
        ml.compile(lambda x: np.summ(x))(np.ones(3))


def test_an_error_raised_from_ours_keeps_its_cause() -> None:
    with pytest.raises(RuntimeError, match="does not fit the data") as caught:
        ml.compile(from_our_error)(np.ones(3))
    assert isinstance(caught.value.__cause__, ml.ShapeError)


def test_a_failed_call_leaves_nothing_behind() -> None:
    compiled = ml.compile(check_rows)
    for _ in range(3):
        with pytest.raises(ValueError, match="expected 4 rows"):
            compiled(np.ones((3, 2)))
    assert compiled.entries == 0
    assert "0 signature(s) compiled" in compiled.explain()
