"""`mlirml.numpy`: NumPy's functions by their array-API names, in compiled code and outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
import mlirml.numpy as mnp
from mlirml.ops import OPS
from tests.fuzz.oracle import assert_same, check

X = np.array([[0.5, 0.25, 1.0], [1.0, 0.75, 0.5]])
RENAMED: dict[str, Any] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "pow": np.power, "concat": np.concatenate, "permute_dims": np.transpose,
    "abs": np.absolute, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "bitwise_invert": np.invert,
}  # fmt: skip


def test_every_record_has_its_name() -> None:
    assert [name for name in OPS if not hasattr(mnp, name)] == []
    assert [name for name in mnp.__all__ if not hasattr(mnp, name)] == []


@pytest.mark.parametrize("name", [n for n in mnp.__all__ if callable(getattr(mnp, n))])
def test_functions_are_documented(name: str) -> None:
    assert getattr(mnp, name).__doc__
    assert getattr(mnp, name).__name__ in (name, getattr(mnp, name).__name__.rstrip("_"))


@pytest.mark.parametrize("name", RENAMED)
def test_renamed_functions(name: str) -> None:
    function, theirs = getattr(mnp, name), RENAMED[name]
    if name == "concat":
        arguments: tuple[Any, ...] = ([X, X],)
    elif name.startswith("bitwise"):
        arguments = (np.array([1, 2, 3]),) * theirs.nin
    elif name == "permute_dims":
        arguments = (X,)
    else:
        arguments = (X,) * theirs.nin
    shifted = (arguments[0] + 1,) if name == "acosh" else arguments
    with np.errstate(all="ignore"):
        assert_same(function(*shifted), theirs(*shifted), name)
    check(lambda *a: function(*a), *shifted, rtol=1e-15)


def test_functions_outside_of_a_trace_are_numpy_s() -> None:
    assert isinstance(mnp.zeros((2, 3)), np.ndarray)
    assert_same(mnp.arange(4), np.arange(4), "arange")
    assert_same(mnp.matrix_transpose(X), X.T, "matrix_transpose")
    assert_same(mnp.astype(X, np.float32), X.astype(np.float32), "astype")
    assert mnp.pi == np.pi
    assert mnp.float32 is np.float32


def test_arrays_made_by_it_can_be_stored_into() -> None:
    def f(x: Any) -> Any:
        y = mnp.zeros((2, 3))
        y[0] = x[1]
        z = mnp.full(3, 2.0)
        z[1:] += x[0, 1:]
        w = mnp.asarray([1.0, 2, 3])
        w[0] = x[0, 0]
        return y, z, mnp.stack([w, mnp.arange(3) * 1.0]), mnp.matrix_transpose(x), mnp.astype(x, mnp.int32)

    check(f, X)


def test_functions_taken_by_name() -> None:
    zeros, tanh = mnp.zeros, mnp.tanh

    def f(x: Any) -> Any:
        y = zeros(3)
        y[1:] = x[0, 1:]
        return tanh(y)

    check(f, X, rtol=1e-15)
    assert ml.compile(tanh)(X).shape == X.shape
