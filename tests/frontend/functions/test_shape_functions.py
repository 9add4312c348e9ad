"""Functions of shapes and dtypes alone, and functions over several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

INDICES = np.array([[5, 0, 19], [7, 8, 3]])
X = np.arange(20.0).reshape(4, 5)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tril": lambda x: x[np.tril_indices_from(x)], "tril k": lambda x: x[np.tril_indices_from(x, -1)],
    "triu": lambda x: x[np.triu_indices_from(x, k=1)], "diag": lambda x: x[:, :4][np.diag_indices_from(x[:, :4])],
    "common type": lambda x: x.astype(np.common_type(x, np.float32(1))),
    "over axes": lambda x: np.apply_over_axes(np.sum, x.reshape(4, 5, 1), [0, -1]),
    "over one axis": lambda x: np.apply_over_axes(lambda a, axis: np.cumsum(a, axis) * 2, x, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_as_in_numpy(name: str, dtype: Any) -> None:
    x, function = X.astype(dtype), FUNCTIONS[name]
    for target in ("cpu", "reference"):
        found, expected = ml.compile(function, target=target)(x), function(x)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)


def test_errors() -> None:
    with pytest.raises((ValueError, ml.ShapeError)):
        ml.compile(lambda x: x[np.diag_indices_from(x)])(X)
    with pytest.raises(ml.ShapeError, match="keeps the dimensions"):
        ml.compile(lambda x: np.apply_over_axes(lambda a, axis: a[0, 0], x, 0))(X)


INDEX_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "unravel": (lambda i: np.unravel_index(i, (4, 5)), (INDICES,)),
    "unravel columns": (lambda i: np.unravel_index(i, (2, 2, 5), order="F"), (INDICES.astype(np.uint8),)),
    "unravel an argmax": (lambda x: np.unravel_index(np.argmax(x), x.shape), (np.sin(X),)),
    "unravel a number": (lambda x: x[np.unravel_index(7, x.shape)], (X,)),
    "unravel nothing": (lambda i: np.unravel_index(i, (4, 5)), (INDICES[:0],)),
    "ravel": (lambda i, j: np.ravel_multi_index((i, j), (4, 5)), (INDICES % 4, INDICES % 5)),
    "ravel rows": (lambda i: np.ravel_multi_index(i, (4, 5, 3), order="F"), (np.array([[1, 2], [3, 0], [2, 2]]),)),
    "ravel and wrap": (lambda i, j: np.ravel_multi_index((i, j), (4, 5), mode="wrap"), (INDICES - 9, -INDICES)),
    "ravel in two modes": (
        lambda i, j: np.ravel_multi_index((i, j), (4, 5), mode=("clip", "wrap")), (INDICES - 9, -INDICES)),
    "there and back": (lambda i: np.ravel_multi_index(np.unravel_index(i, (4, 5)), (4, 5)), (INDICES,)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEX_FUNCTIONS)
def test_indices_of_flat_and_of_shaped_arrays(name: str) -> None:
    function, args = INDEX_FUNCTIONS[name]
    expected = function(*args)
    for target in ("cpu", "reference"):
        found = ml.compile(function, target=target)(*args)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            assert np.asarray(one).dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("wrong", [-1, 20])
def test_indices_outside_of_a_shape(wrong: int) -> None:
    with pytest.raises(ml.IndexOutOfBoundsError, match="not below the 20 elements of the shape"):
        ml.compile(lambda i: np.unravel_index(i, (4, 5)))(np.array([0, wrong, 2]))
    with pytest.raises(ml.IndexOutOfBoundsError, match="along axis 1 is negative, or not below 5"):
        ml.compile(lambda i: np.ravel_multi_index((i * 0, i), (4, 5)))(np.array([0, wrong, 2]))


def test_wrong_arguments_of_index_functions() -> None:
    with pytest.raises(ml.DTypeError, match="unravel_index: indices of float64"):
        ml.compile(lambda i: np.unravel_index(i, (4, 5)))(X)
    with pytest.raises(ml.ShapeError, match="1 arrays of indices"):
        ml.compile(lambda i: np.ravel_multi_index((i,), (4, 5)))(INDICES)
    with pytest.raises(ml.ShapeError, match="the order 'K'"):
        ml.compile(lambda i: np.unravel_index(i, (4, 5), "K"))(INDICES)


@pytest.mark.parametrize("values", [[7.0], [7.0, 8.5, 9.0], np.arange(40, dtype=np.int8).reshape(8, 5)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_values_in_the_places_of_a_mask(values: Any, dtype: Any) -> None:
    def placed(x: Any, mask: Any) -> Any:
        x = x + 0
        np.place(x, mask, values)
        return x

    for mask in (X % 3 == 1, X < 0, (X > 4).reshape(-1)):
        for target in ("cpu", "reference"):
            found = ml.compile(placed, target=target)(X.astype(dtype), mask)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, placed(X.astype(dtype), mask))


def test_no_values_for_a_mask() -> None:
    def placed(x: Any, mask: Any) -> Any:
        np.place(x, mask, [])
        return x

    assert np.array_equal(ml.compile(placed)(X.copy(), X < 0), X)
    with pytest.raises(ml.ShapeError, match="there are no values"):
        ml.compile(placed)(X.copy(), X > 4)
    with pytest.raises(ml.DTypeError, match="cannot store float64 into an array of int32"):
        ml.compile(lambda x, v: np.place(x, x > 4, v))(X.astype(np.int32), X[0])
    with pytest.raises(ml.ShapeError, match="a mask of 3 elements"):
        ml.compile(placed)(X.copy(), np.ones(3, bool))
