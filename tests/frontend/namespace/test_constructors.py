"""`np.ndarray` called, grids with bounds that are known, and assignments to `.shape`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy import ndarray

import mlirml as ml
from tests.fuzz.oracle import check


def test_ndarray_is_a_constructor() -> None:
    def arrays(x: Any) -> Any:
        a, b = np.ndarray(3), ndarray((2, 3), dtype=np.int32)
        a[:] = x
        b[...] = 1
        b[0] += 2
        return a, b, isinstance(a, np.ndarray), isinstance(b, (int, ndarray)), isinstance(1, np.ndarray)

    def loop(x: Any) -> Any:
        out = np.ndarray((x.shape[0], 2), dtype=np.int64)
        rows = ndarray(shape=x.shape)
        for i in range(x.shape[0]):
            rows[i] = x[i] * 2
            for j in range(2):
                out[i, j] = x[i] + j
        return out, rows

    check(arrays, np.arange(3.0))
    check(loop, np.arange(3.0))
    with pytest.raises(ml.errors.UnsupportedSyntaxError, match="of a buffer"):
        ml.compile(lambda x: np.ndarray(3, float, x))(np.zeros(3))


def test_grids() -> None:
    def f(x: Any) -> Any:
        m, (a, b) = np.mgrid[0 : x.shape[0], 0:3], np.ogrid[0 : len(x), 1:4:2]
        m[0, 0] = x[0, 0]
        a[0] = 5
        return m, a * b, np.mgrid[0:1:5j] * x[0, 0], np.ogrid[2:5]

    check(f, np.arange(6.0).reshape(2, 3) + 1)
    check(lambda n, x: np.mgrid[0:n, 0:n] * x, 3, 2.0, static_argnums=0)
    for grid in (lambda n: np.mgrid[0:n, 0:n], lambda n: np.ogrid[0:n]):
        with pytest.raises(ml.errors.ShapeError, match="the shape depends on a bound") as caught:
            ml.compile(grid)(np.int64(3))
        np.testing.assert_array_equal(ml.compile(grid)(3), grid(3))
        assert "static" in str(caught.value)


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # of NumPy 2.5
def test_assignments_to_shape() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        y = y.copy()
        row = y[0]
        y.shape = 3, -1
        y[0, 0] = 9
        y.shape = -1
        y[2:] *= 2
        z = np.zeros((2, 2))
        z.shape = (4, 1)
        z[1] = x[0, 0]
        return y, row, z

    check(f, np.arange(6.0).reshape(2, 3))
    with pytest.raises(ml.errors.UnsupportedSyntaxError, match="would change the caller's array"):
        ml.compile(lambda x: setattr(x, "shape", (6,)))(np.zeros((2, 3)))
    with pytest.raises(ml.errors.ShapeError, match="in one piece"):
        ml.compile(lambda x: setattr((x + 1).copy().T, "shape", (6,)))(np.zeros((2, 3)))
    with pytest.raises(ml.errors.ShapeError, match="6 elements"):
        ml.compile(lambda x: setattr(x + 1, "shape", (5,)))(np.zeros((2, 3)))
