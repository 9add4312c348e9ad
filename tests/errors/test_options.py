"""Options of wrong types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.arange(4.0)


def f(x: Any, n: Any = 1.0) -> Any:
    return np.sum(x * n)


@pytest.mark.parametrize("option", ["static_argnums", "donate_argnums", "static_argnames"])
def test_options_of_compile_name_what_they_take(option: str) -> None:
    of_numbers = option.endswith("argnums")
    for bad in (None, 1.5, [1.5], [None], {"x": 0}, "x") if of_numbers else (-1, [3], object()):
        with pytest.raises(ml.ArgumentError, match=f"compile: {option}: expected (integers|strings), got"):
            ml.compile(f, **{option: bad})  # type: ignore[arg-type]


def test_a_pipeline_is_a_list() -> None:
    for bad in (-1, object()):
        with pytest.raises(ml.PipelineError, match="a pipeline is a list of the names of passes"):
            ml.compile(f, pipeline=bad)  # type: ignore[arg-type]


def test_positions_may_be_integers_of_numpy() -> None:
    assert ml.compile(f, static_argnums=np.int64(1))(X, 2.0) == 12.0  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [-1, 1.5, "4", None])
def test_sizes_of_a_spec_are_integers_of_at_least_0(size: Any) -> None:
    with pytest.raises(ml.ShapeError, match="TensorSpec: a size is an integer of at least 0"):
        ml.TensorSpec((size,), np.dtype(np.float32))


@pytest.mark.parametrize("length", [1.5, "3", [3]])
def test_the_length_of_a_scan_is_an_integer(length: Any) -> None:
    with pytest.raises(ml.ArgumentError, match="scan: `length` is an integer"):
        ml.compile(lambda x: ml.scan(lambda c, _: (c, c), x, None, length=length))(X)


def test_stages_and_forms_of_other_types() -> None:
    compiled = ml.compile(f)
    with pytest.raises(ml.PipelineError, match="no stage `-1`"):
        compiled.ir(-1, X)
    with pytest.raises(ml.TargetError, match="has no form None"):
        compiled.lower(X).emit(None)
