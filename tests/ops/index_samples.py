"""Calls of the records that take elements at positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.ops.samples import Arguments, Draw, Runtime, sampler


@sampler("take")
def _take(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 3), np.array([[0, -1], [3, 2]])), {"axis": 0}
    yield (draw.array(4, 3), np.array([-2, 2], np.int8), 1), {}
    if draw.thorough:
        yield (draw.array(4, 3), np.array([11, -12, 5])), {}
        yield (draw.array(4, 3), [1, 0, 1], -1), {}
        yield (draw.array(4, 3), Runtime(2)), {"axis": 0}
        yield (draw.array(4, 3), 7), {}
        yield (draw.array(3), np.array([9, -7, 300], np.int16)), {"mode": "wrap"}
        yield (draw.array(3), np.array([9, 0, 200], np.uint8)), {"mode": "wrap"}
        yield (draw.array(2, 3), np.array([9, -7, 1])), {"axis": 1, "mode": "clip"}
        yield (draw.array(2, 3), [9, -7, 1]), {"axis": 1, "mode": "clip"}
        yield (draw.array(0, 3), np.zeros(0, int)), {"axis": 0}
        yield (draw.array(2, 3), np.array([True, False])), {"axis": 0}


@sampler("take_along_axis")
def _take_along_axis(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 3), np.array([[0, -1, 3]])), {"axis": 0}
    yield (draw.array(2, 3), np.array([[2, 2, -3, 1]] * 2, np.int8)), {"axis": -1}
    if draw.thorough:
        yield (draw.array(2, 3, 4), np.array([[[1]], [[0]]], np.uint32), 1), {}
        yield (draw.array(1, 4), np.array([[0, 3], [1, 2], [-1, -1]]), 1), {}
        yield (draw.array(2, 3), np.array([5, 0, -6])), {"axis": None}
        yield (draw.array(2, 3), np.zeros((2, 0), int), 1), {}


@sampler("compress")
def _compress(draw: Draw) -> Iterator[Arguments]:
    yield ([True, False, True], draw.array(4, 3)), {"axis": 0}
    yield ([0, 1], draw.array(4, 3), 1), {}
    if draw.thorough:
        yield ([False] * 5 + [True] * 3, draw.array(4, 3)), {}
        yield ([False], draw.array(4)), {"axis": -1}
