"""Steps of random programs that keep what is there: branches that compute nothing, convolutions with groups, shared
scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
import mlirml.nn.functional as F
from tests.autodiff.random_arrays import resized
from tests.autodiff.random_programs import UNTIL, step

Array = Any
_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def _kept(w: Array, v: Array, a: Array, draw: int) -> Array:
    """One of arrays that are there already: of this iteration, of the one before, or from outside of the loop."""
    first = np.ravel(w)[0]
    if draw % 3 == 0:
        return ml.cond(first < 0.6, lambda: w, lambda: v)
    if draw % 3 == 1:
        return ml.switch((np.abs(first) > 0.4) * 1, [lambda: a, lambda: w])
    return ml.cond(first < 0.3, lambda: (w, v), lambda: (a, w))[0]


@step("kept in a loop")
def _kept_in_a_loop(a: Array, b: Array, draw: int) -> Array:
    return ml.fori_loop(0, 1 + draw // 3 % 3, lambda i, v: _kept(np.sin(v * 1.3) + 0.1, v, a, draw), a * np.sum(b))


@step("kept in a scan")
def _kept_in_a_scan(a: Array, b: Array, draw: int) -> Array:
    def body(c: Any, x: Array) -> Any:
        value, flag, count = c
        new = _kept(np.cos(value) * x, value, x, draw)
        return (new, np.logical_or(flag, new[0] > 0.5), count + 1), ml.cond(flag, lambda: new, lambda: value)

    start = (np.tanh(resized(b, 2)), False, 0)
    (last, _, count), rows = ml.scan(body, start, resized(a, 3, 2))
    return rows * last + 0.1 * count


@step("kept until")
def _kept_until(a: Array, b: Array, draw: int) -> Array:
    def body(c: Any) -> Any:
        return _kept(np.sin(c[0] * 1.3) + 0.1, c[0], a, draw), c[1] + 1

    return ml.while_loop(lambda c: c[1] < 1 + draw // 3 % 3, body, (a * np.sum(b), 0))[0]


@step("grouped convolution")
def _grouped_convolution(a: Array, b: Array, draw: int) -> Array:
    rng = np.random.default_rng(draw)
    rank, groups = 1 + draw % 3, int(rng.integers(1, 4))
    sizes, kernel = rng.integers(2, 5, rank), rng.integers(1, 4, rank)
    stride, dilation = rng.integers(1, 3, rank), rng.integers(1, 3, rank)
    padding = [int(rng.integers(d * (k - 1), d * (k - 1) + 2)) for k, d in zip(kernel, dilation)]
    channels, filters = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    image = resized(a, int(rng.integers(1, 3)), groups * channels, *map(int, sizes))
    weight = resized(np.sin(b), groups * filters, channels, *map(int, kernel))
    options = {"stride": tuple(map(int, stride)), "dilation": tuple(map(int, dilation))}
    found = _CONVOLUTIONS[rank](image, weight, None, padding=tuple(padding), groups=groups, **options)
    return np.tanh(np.ravel(found)[:12])


def _minors(rows: list[list[Any]]) -> Any:
    """A determinant by recursion over minors."""
    if len(rows) == 2:
        return rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    total = 0.0
    for j in range(len(rows)):
        term = rows[0][j] * _RECURSION[0]([row[:j] + row[j + 1 :] for row in rows[1:]])
        total = total + term if j % 2 == 0 else total - term
    return total


_RECURSION = [_minors]


@step("shared scalars")
def _shared_scalars(a: Array, b: Array, draw: int) -> Array:
    size = 3 + draw % 3
    m = resized(np.sin(a), size, size)
    return np.tanh(_minors([[m[i, j] for j in range(size)] for i in range(size)])) * b


UNTIL.add("kept until")
