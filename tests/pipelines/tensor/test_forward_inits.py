"""Checks that hold once what they compare is computed once."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml


def inverse_cubes(x: Any) -> Any:
    """Both masks are the same array, computed twice."""
    d = x[:, None] - x
    r = d**2
    r[r > 0] = r[r > 0] ** (-1.5)
    return (d * r).sum(axis=1), r.sum()


def test_two_equal_masks_need_no_check() -> None:
    x = np.random.default_rng(0).standard_normal(25)
    program = ml.compile(inverse_cubes)
    for got, expected in zip(program(x), inverse_cubes(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert "cf.assert" in str(program.ir("capture", x))
    assert "cf.assert" not in str(program.ir("optimize", x))
