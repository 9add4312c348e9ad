"""NumPy's functions of arrays whose lengths depend on the data, of which the code is captured, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import same

Array = Any
RNG = np.random.default_rng(0)
X = np.round(RNG.random(10), 2)
K = RNG.integers(0, 8, 10)
W = np.array([0.5, 0.25, 0.75])
MASKS = [X > 0.3, X > 0.5, np.ones(10, bool), np.arange(10) == 4, np.zeros(10, bool)]


def interpolations(x: Array, m: Array, k: Array) -> Any:
    y = np.sort(np.concatenate([x[m], W]))
    z = np.cos(y * 3)
    return (
        np.interp(0.5, y, z), np.interp(x, y, z), np.interp(y, np.sort(x), x), np.interp(k[m], y, z, left=-1.0),
        np.interp(x[m], y, z, right=2.0), np.interp(x, y, z, period=0.7), np.trapezoid(z), np.trapezoid(z, y),
        np.trapezoid(z, dx=0.5), np.gradient(y), np.gradient(y, 0.5), np.gradient(z, np.cumsum(y) + y),
        np.gradient(y, edge_order=2), np.unwrap(y * 20), np.polyval(y, 0.5), np.polyval([1.0, 2.0, 3.0], y),
        np.ediff1d(y), np.ediff1d(x[m], to_begin=0.0, to_end=[1.0, 2.0]),
    )  # fmt: skip


def convolutions(x: Array, m: Array, k: Array) -> Any:
    y = np.concatenate([x[m], W[:1]])
    z = np.cos(y * 3)
    found = []
    for mode in ("full", "same", "valid"):
        found += [
            np.convolve(y, W, mode),
            np.convolve(W, y, mode),
            np.convolve(y, z, mode),
            np.convolve(y * 1j, W, mode),
        ]
        found += [np.correlate(y, W, mode), np.correlate(W, y, mode), np.correlate(W * 1j, y + 1j, mode)]
    return found, np.convolve(np.append(k[m], 2), k[:3]), np.correlate(x, y)


def histograms(x: Array, m: Array, k: Array) -> Any:
    y, z = x[m], np.cos(x[m])
    edges = np.array([0.0, 0.25, 0.5, 1.0])
    return (
        np.histogram(y), np.histogram(y, bins=4, range=(0.0, 1.0), weights=z), np.histogram(y, edges),
        np.histogram(k[m]), np.histogram(k[m], bins=np.arange(9)), np.histogram(x, np.append(np.sort(y), [2.0, 3.0])),
        np.histogram(y, 3, (0.2, 0.6), density=True), np.histogram(y.astype(np.float32), bins=4),
        np.histogram_bin_edges(y, 4), np.digitize(y, edges), np.digitize(x, np.sort(y)),
        np.digitize(y, np.sort(y), right=True), np.digitize(k[m], [6, 4, 1]), np.digitize(0.5, np.sort(y)),
        np.bincount(k[m], minlength=12), np.bincount(k[m], minlength=len(y)), np.bincount(k, minlength=len(y)),
    )  # fmt: skip


def members(x: Array, m: Array, k: Array) -> Any:
    y, z = x[m], np.cos(x[m])
    return (
        np.isin(y, W), np.isin(x, y), np.isin(y, y[1:]), np.isin(y, W, invert=True), np.isin(k, k[m]),
        np.isin(np.arange(40), k[m]), np.isin(k[m], np.arange(40) * 2), np.array_equal(y, y), np.array_equal(y, z),
        np.array_equal(y, W), np.array_equal(y, y[1:]), np.array_equal(y / 0.0, y / 0.0, equal_nan=True),
        np.allclose(y, y + 1e-12), np.allclose(y, 0.0), np.select([y > 0.7, y > 0.2], [y, z], -1.0),
        np.choose(k[m] % 3, [y, z, 0.0]), np.piecewise(y, [y < 0.3, y > 0.6], [lambda t: t * 2, 5.0, -1.0]),
    )  # fmt: skip


def edits(x: Array, m: Array, k: Array) -> Any:
    y = np.append(x[m], W[:2])
    at = np.flatnonzero(x > 0.5)
    table = np.outer(x, x)
    return (
        np.delete(y, 0), np.delete(y, -1), np.delete(y, [0, 1]), np.delete(y, slice(0, 2)), np.delete(x, at),
        np.delete(x, m), np.delete(y, np.argmax(y)), np.delete(x, np.argmax(x)), np.delete(table, np.argmax(x), axis=1),
        np.delete(table, m, axis=1), np.delete(table[m], [0, 2], axis=1), np.tile(y, 2), np.tile(y, (2, 2)),
        np.tile(x, len(y)), np.tile(y, len(y)), np.insert(y, [1, 0, 0], [7.0, 8.0, 9.0]), np.insert(x, at, x[at]),
        np.resize(y, 17), np.resize(x, len(y)), np.array_split(y, 3), np.split(y, [1, 2]), np.roll(table[m], 1, axis=0),
        np.flip(table[m]), np.rot90(table[m]), np.take(table, at, axis=1), np.take(y, [5, -7], mode="wrap"),
        np.take(y, [5, -7], mode="clip"), np.r_[0.5, y, x], np.c_[y, y + 1], table[np.ix_(m, m)],
        table[np.ix_(at, [0, 1])],
    )  # fmt: skip


def pads(x: Array, m: Array, k: Array) -> Any:
    y = np.append(x[m], W[:1])
    found = [np.pad(y, (1, 2)), np.pad(y, 2, constant_values=(3.0, 4.0)), np.pad(x, (0, len(y)))]
    for mode in ("edge", "wrap", "reflect", "symmetric"):
        found += [np.pad(y, 1, mode=mode), np.pad(y, (3, len(y)), mode=mode)]
    return found, np.pad(y, (0, 20 - len(y)))


def running(x: Array, m: Array, k: Array) -> Any:
    y, z = x[m], np.where(x[m] > 0.6, np.nan, x[m])
    table = np.outer(x, x)[m]
    return (
        np.cumprod(y), y.cumprod(), np.cumprod(k[m].astype(np.int32)), np.maximum.accumulate(k[m]),
        np.minimum.accumulate(z), np.logical_or.accumulate(y > 0.5), np.cumsum(table, axis=0),
        np.cumprod(table, axis=1), np.cumsum(table), np.nancumsum(z), np.nancumprod(z), np.sort(table, axis=0),
        np.sort(table), np.argsort(table), np.argmax(table, axis=1), np.median(table, axis=1), np.kron(y, W),
    )  # fmt: skip


def without_nan(x: Array, m: Array, k: Array) -> Any:
    z = np.append(np.where(x[m] > 0.6, np.nan, x[m]), 0.25)
    table = np.where(np.outer(x, x)[m] > 0.3, np.nan, 1.0)
    return (
        np.nansum(z), np.nanmean(z), np.nanmax(z), np.nanmin(z), np.nanstd(z), np.nanvar(z, ddof=1), np.nanprod(z),
        np.nanmedian(z), np.nanpercentile(z, 25), np.nanargmax(z), np.nanargmin(z), np.nansum(table, axis=1),
        np.nanmax(table, axis=1), np.sum(z, where=z < 0.4), np.mean(z, where=z < 0.4), np.any(z, where=z < 0.4),
        np.max(z, where=z < 0.4, initial=0.0), np.fmax.reduce(z), np.bitwise_xor.reduce(k[m]), np.gcd.reduce(k[m]),
        np.hypot.reduce(x[m]), np.logaddexp.reduce(z[z < 2]), np.linalg.norm(x[m], 1), np.linalg.norm(x[m], 3),
    )  # fmt: skip


def matrices(x: Array, m: Array, k: Array) -> Any:
    y, z = x[m], np.cos(x[m])
    table = np.outer(y, z)
    return (
        np.cov(y, z), np.corrcoef(y, z), np.vander(y, 3), np.diag(y), np.diag(y, -2), np.diag(table, 1),
        np.trace(table), np.triu(table, 1), np.tril(table), table.diagonal(), np.einsum("i,i->", y, z),
        np.einsum("ij,jk->ik", table, table), np.einsum("ij->ji", table), np.einsum("i,ij->j", y, table),
        np.cross(np.stack([y, z, y], 1), W), np.expand_dims(y, (0, 2)), np.moveaxis(np.stack([y, z]), -1, 0),
        np.swapaxes(np.stack([y, z]), 0, 1), np.broadcast_to(y, (3, len(y))), np.squeeze(np.stack([y]), 0),
        np.atleast_2d(y), np.dstack([y, z]), np.full_like(y, 2), np.compress(y > 0.5, z), y.compress(z > 0.7),
        np.extract(y > 0.5, z), y.repeat(2), y.nonzero(), y.tolist(),
    )  # fmt: skip


def beside_slices(x: Array, m: Array, k: Array) -> Any:
    table = np.outer(x, x)
    cube = np.stack([table, table * 2, table - 1])
    at, mask = np.flatnonzero(m), m & (x > 0.4)
    table[:, at] = 7.0
    table[at, 1:] = table[at, 1:] * 2
    table[1:, at] += 1
    table[:, at[:1]] = np.arange(10.0)[:, None]
    cube[1:, :, at] = at * 1.0
    cube[:, at] = np.arange(10.0)
    rows = table[at]
    return (
        table, cube, table[:, at], table[1:, at], table[..., at], cube[:, at], cube[:, :, at], cube[1:, at, 2:],
        table[:, m], rows[:, at], rows[::-1, at], rows[:, mask],
    )  # fmt: skip


def at_lists(x: Array, m: Array, k: Array) -> Any:
    at = []
    for i in range(len(x)):
        if m[i]:
            at.append(i)
    table = np.outer(x, x)
    table[at] += 1
    x[at] = 0.5
    return (
        x[at], x, x[x > 0.4][at[:0]], table[at, 1], table[:, at], np.delete(table, at, axis=0), np.take(x, at),
        np.take(table, at, axis=1), np.isin(np.arange(5), at), np.bincount(np.array(at, np.int64)),
        np.sum(x[at]),
    )  # fmt: skip


FUNCTIONS = (
    beside_slices, at_lists,
    interpolations, convolutions, histograms, members, edits, pads, running, without_nan, matrices,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function(function: Any) -> None:
    compiled = ml.compile(function)
    for mask in MASKS:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same(compiled(X.copy(), mask, K.copy()), function(X.copy(), mask, K.copy()), True, "the result")


def bad_split(x: Array) -> Any:
    return np.split(x[x > 0], 2)[0]


def bad_delete(x: Array) -> Any:
    return np.delete(x[x > 0], 3)


def bad_choice(x: Array) -> Any:
    return np.choose(x[x > 0].astype(np.int64), [1.0, 2.0])


def no_points(x: Array) -> Any:
    return np.interp(0.5, x[x > 0], x[x > 0])


def no_convolution(x: Array) -> Any:
    return np.convolve(x[x > 0], x)


def points_of_other_length(x: Array) -> Any:
    return np.interp(0.5, x[x > 0], x[x > 2])


@pytest.mark.parametrize(
    ("function", "bad", "message"),
    [
        (bad_split, [1, 1, 1], "no multiple"),
        (bad_delete, [1, 1, 1], "out of bounds"),
        (bad_choice, [2, 1, 1, 1], "no array to choose from"),
        (no_points, [0, 0], "no points to interpolate"),
        (no_convolution, [0, 0], "an array is empty"),
        (points_of_other_length, [1, 2], "must be of 1 dimension and alike"),
    ],
)
def test_what_does_not_fit_is_an_error_of_the_call(function: Any, bad: list[int], message: str) -> None:
    compiled = ml.compile(function)
    good = np.array([3.0, 3.5, 4.0, 4.5, 0.0]) if function is not bad_choice else np.array([1.0, 1.0, 1.0, 0.0])
    same(compiled(good), function(good), True, "the result")
    with pytest.raises(ml.errors.MlirmlError, match=message):
        compiled(np.array(bad + [0] * (len(good) - len(bad)), np.float64))


def rolled(x: Any) -> Any:
    return np.roll(x[x > 0], 2, axis=1)


def joined(x: Any) -> Any:
    rows = []
    for i in range(len(x)):
        rows.append(x * x[i])
    return np.concatenate(rows, 1)


@pytest.mark.parametrize("function", [rolled, joined])
def test_axes_out_of_bounds(function: Any) -> None:
    with pytest.raises(ml.MlirmlError, match="axis 1 is out of bounds") as caught:
        ml.compile(function, frontend="loops")(np.ones(3))
    assert f"({function.__name__})" in str(caught.value)
