"""Gradients of convolutions by their images, written as sums that are scattered, are convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.cpu import RAISE


def strided(gx, g, w):
    for b in range(g.shape[0]):
        for f in range(g.shape[1]):
            for y in range(g.shape[2]):
                for x in range(g.shape[3]):
                    for c in range(w.shape[1]):
                        for i in range(w.shape[2]):
                            for j in range(w.shape[3]):
                                gx[b, c, 2 * y + i, 3 * x + j] += g[b, f, y, x] * w[f, c, i, j]


def padded(gx, g, w):
    for b in range(g.shape[0]):
        for f in range(g.shape[1]):
            for y in range(g.shape[2]):
                for x in range(g.shape[3]):
                    for c in range(w.shape[1]):
                        for i in range(w.shape[2]):
                            for j in range(w.shape[3]):
                                if 0 <= y + i - 1 < gx.shape[2] and 0 <= x + j - 2 < gx.shape[3]:
                                    gx[b, c, y + i - 1, x + j - 2] += g[b, f, y, x] * w[f, c, i, j]


def strided_and_padded(gx, g, w):
    for b in range(g.shape[0]):
        for i in range(w.shape[2]):
            for j in range(w.shape[3]):
                for y in range(g.shape[2]):
                    row = 2 * y + i - 1
                    if row < 0 or row >= gx.shape[2]:
                        continue
                    for x in range(g.shape[3]):
                        column = 2 * x + 2 * j - 1  # dilated
                        if column >= 0:  # noqa: SIM102
                            if column < gx.shape[3]:
                                for f in range(g.shape[1]):
                                    for c in range(w.shape[1]):
                                        gx[b, c, row, column] += g[b, f, y, x] * w[f, c, i, j]


def of_one_dimension(gx, g, w):
    for f in range(g.shape[0]):
        for c in range(w.shape[1]):
            for i in range(g.shape[1]):
                for k in range(w.shape[2]):
                    if 0 <= 2 * i + k - 1 < gx.shape[1]:
                        gx[c, 2 * i + k - 1] += g[f, i] * w[f, c, k]


def by_weights(gw, g, x):
    for b in range(g.shape[0]):
        for f in range(g.shape[1]):
            for y in range(g.shape[2]):
                for z in range(g.shape[3]):
                    for c in range(x.shape[1]):
                        for i in range(gw.shape[2]):
                            for j in range(gw.shape[3]):
                                if 0 <= 2 * y + i - 1 < x.shape[2] and 0 <= 2 * z + j - 1 < x.shape[3]:
                                    gw[f, c, i, j] += g[b, f, y, z] * x[b, c, 2 * y + i - 1, 2 * z + j - 1]


def weighed_by_rounds(gx, g, w):
    for f in range(g.shape[0]):
        for c in range(w.shape[1]):
            for i in range(g.shape[1]):
                for k in range(w.shape[2]):
                    gx[c, 2 * i + k] += g[f, i] * w[f, c, k] * i


def where_positive(gx, g, w):
    for f in range(g.shape[0]):
        for c in range(w.shape[1]):
            for i in range(g.shape[1]):
                for k in range(w.shape[2]):
                    if 2 * i + k < gx.shape[1] and g[f, i] > 0:
                        gx[c, 2 * i + k] += g[f, i] * w[f, c, k]


def of_what_it_stores(gx, g, w):
    for f in range(g.shape[0]):
        for c in range(w.shape[1]):
            for i in range(g.shape[1]):
                for k in range(w.shape[2]):
                    gx[c, 2 * i + k] += gx[0, i] * w[f, c, k]


PLANE = [(2, 4, 9, 13), (2, 3, 4, 4), (3, 4, 3, 3)]
LINE = [(4, 22), (3, 10), (3, 4, 3)]
NAMED = {
    strided: ("linalg.conv_2d_nchw_fchw", PLANE),
    padded: ("linalg.conv_2d_nchw_fchw", [(2, 4, 5, 6), (2, 3, 5, 8), (3, 4, 3, 3)]),
    strided_and_padded: ("linalg.conv_2d_nchw_fchw", [(2, 4, 7, 8), (2, 3, 4, 4), (3, 4, 3, 3)]),
    of_one_dimension: ("linalg.conv_1d_ncw_fcw", [(4, 19), (3, 10), (3, 4, 3)]),
    by_weights: ("linalg.generic", [(3, 4, 3, 3), (2, 3, 4, 4), (2, 4, 7, 8)]),
}
STAY = {weighed_by_rounds: LINE, where_positive: [(4, 20), *LINE[1:]], of_what_it_stores: LINE}


def numbers(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, shape).astype(np.float64) for shape in shapes]


def after_raising(function: Any, shapes: list[tuple[int, ...]]) -> list[str]:
    """The names of the operations that are left."""
    module = parse(ml.compile(function, frontend="loops").trace(*numbers(shapes)).text)
    parse_pipeline(",".join(RAISE)).run(module)
    return [op.name for op in operations(module)]


def check(function: Any, shapes: list[tuple[int, ...]]) -> None:
    for target in ("cpu", "reference"):
        expected, given = numbers(shapes), numbers(shapes)
        function(*expected)
        ml.compile(function, target, frontend="loops")(*given)
        for want, got in zip(expected, given):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", NAMED)
def test_they_are_named(function: Any) -> None:
    name, shapes = NAMED[function]
    names = after_raising(function, shapes)
    assert name in names and "scf.for" not in names
    check(function, shapes)


@pytest.mark.parametrize("function", STAY)
def test_what_only_looks_alike_stays(function: Any) -> None:
    assert "scf.for" in after_raising(function, STAY[function])
    check(function, STAY[function])
