"""Functions of shapes and dtypes alone, and functions over several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

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
