"""Random programs of arrays whose lengths depend on data, against NumPy: on the CPU and interpreted."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

COUNT = int(os.environ.get("MLIRML_FUZZ", "40"))


def positive(y: Any, x: Any) -> Any:
    return y[y > 0]


def small(y: Any, x: Any) -> Any:
    return y[abs(y) < 1.5]


def all_but_equal(y: Any, x: Any) -> Any:
    return y[y != y]


def scaled(y: Any, x: Any) -> Any:
    return y * 2 - 0.5


def rooted(y: Any, x: Any) -> Any:
    return np.sqrt(np.abs(y)) + np.sin(y)


def chosen(y: Any, x: Any) -> Any:
    return np.where(y > 0.3, y, -y)


def ordered(y: Any, x: Any) -> Any:
    return np.sort(y)


def reversed_(y: Any, x: Any) -> Any:
    return y[::-1]


def rest(y: Any, x: Any) -> Any:
    return y[1:]


def every_other(y: Any, x: Any) -> Any:
    return y[::2]


def different(y: Any, x: Any) -> Any:
    return np.unique(np.round(y * 4) / 4)


def counts(y: Any, x: Any) -> Any:
    return np.unique(np.round(y), return_counts=True)[1] * 0.5


def inverse(y: Any, x: Any) -> Any:
    return np.unique(np.round(y * 2), return_inverse=True)[1] - 0.25


def firsts(y: Any, x: Any) -> Any:
    return y[np.unique(np.round(y), return_index=True)[1]]


def sums(y: Any, x: Any) -> Any:
    return np.cumsum(y) / 8


def positions(y: Any, x: Any) -> Any:
    return np.flatnonzero(y > 0) * 0.125 - 0.5


def at_positions(y: Any, x: Any) -> Any:
    return y[np.flatnonzero(y > -0.5)]


def of_the_whole(y: Any, x: Any) -> Any:
    return x[np.flatnonzero(y > 0)]


def joined(y: Any, x: Any) -> Any:
    return np.concatenate([y[y > 0], x[:3], y[:2]])


def sorted_by(y: Any, x: Any) -> Any:
    return y[np.argsort(-y)]


def stored(y: Any, x: Any) -> Any:
    z = y.copy()
    z[z > 1] = 0.75
    z[np.flatnonzero(z < -1)] = -0.75
    return z


def added_at(y: Any, x: Any) -> Any:
    z = np.array(y)
    if len(z) > 0:
        z[np.array([0, -1])] += 0.5
        np.add.at(z, [0, 0, -1], 0.25)
        z = z + z[[-1, 0]].sum()
    return z


def of_one_type(y: Any, x: Any) -> Any:
    return np.asarray(np.array(y, dtype=np.float64))


def without(y: Any, x: Any) -> Any:
    return np.setdiff1d(np.round(y), np.round(x[:2]))


def both(y: Any, x: Any) -> Any:
    return np.intersect1d(np.round(y), np.round(x)) + np.float64(0.25)


def either(y: Any, x: Any) -> Any:
    return np.union1d(np.round(y), x[:3])


def trimmed(y: Any, x: Any) -> Any:
    return np.trim_zeros(np.where(y > 0, y, 0))


def differences(y: Any, x: Any) -> Any:
    return np.diff(y)


def filled(y: Any, x: Any) -> Any:
    z = np.zeros(len(y))
    for i in range(len(y)):
        z[i] = y[i] - 0.125 * i
    return z


def stored_at(y: Any, x: Any) -> Any:
    z = y * 0.5
    for i in range(1, len(z)):
        z[i] = z[i - 1] + z[i] * 0.5
    return z


def numbered(y: Any, x: Any) -> Any:
    return y * np.arange(len(y)) + np.linspace(0, 1, len(y))


def positives(y: Any, x: Any) -> Any:
    count = 0
    for v in y:
        if v > 0:
            count += 1
    z = np.full((count, 2), 0.5)
    k = 0
    for v in y:
        if v > 0:
            z[k, 0] = v
            k += 1
    return z[:, 0]


def pairs(y: Any, x: Any) -> Any:
    return np.array([a - b for a, b in zip(y, y[1:])])  # noqa: RUF007


def strided(y: Any, x: Any) -> Any:
    z = np.ones(len(y))
    for k in range(1, 4):
        z[k::k] += y[k::k] * 0.25
    return z


def _table(y: Any) -> Any:
    return np.stack([y, y * 2, y + 1, y * 0], axis=1)


def columns(y: Any, x: Any) -> Any:
    return _table(y)[:, 1:3]


def every_other_column(y: Any, x: Any) -> Any:
    rows = np.vstack([y, y - 1, y + 2])
    return np.concatenate([rows[::2].T, _table(y)[:, :1]], axis=1)


def kept_rows(y: Any, x: Any) -> Any:
    table = np.stack([x, x * 2, x - 1], 1)
    kept = table[x > 0.25]
    kept[:, 0] += 1
    return np.column_stack([kept[:, :2], kept[:, 2]])


def rows_apart(y: Any, x: Any) -> Any:
    total = 0.0
    for i, (a, b, c, d) in enumerate(_table(y)):
        total += a * b - c * i + d
    return y + total / (1 + len(y))


def sorted_by_two(y: Any, x: Any) -> Any:
    return y[np.lexsort((y, np.round(y)))]


def of_each(y: Any, x: Any) -> Any:
    return np.repeat(y, (np.abs(y) * 2).astype(np.int64) % 3)


def counted(y: Any, x: Any) -> Any:
    return np.bincount(np.abs(np.round(y)).astype(np.int64)) * 0.25


def interpolated(y: Any, x: Any) -> Any:
    points = np.unique(np.append(np.round(y, 1), [-1.0, 1.0]))
    return np.interp(y, points, np.cos(points * 2))


def smoothed(y: Any, x: Any) -> Any:
    return np.convolve(np.append(y, 0.5), [0.25, 0.5, 0.25], "same")


def correlated(y: Any, x: Any) -> Any:
    return np.correlate(np.append(y, 0.5), x[:3], "full") / 4


def counts_in_bins(y: Any, x: Any) -> Any:
    return np.histogram(y, bins=5, range=(-2.0, 2.0))[0] * 0.25 - np.histogram(np.append(y, 0.5), 5)[0] * 0.125


def deleted(y: Any, x: Any) -> Any:
    z = np.append(y, [0.25, -0.75])
    return np.delete(np.delete(z, np.argmax(z)), np.flatnonzero(z[1:] > 1.25))


def tiled(y: Any, x: Any) -> Any:
    return np.tile(y, 2)[: 2 + len(x)]


def members(y: Any, x: Any) -> Any:
    return np.isin(np.round(y), np.round(x[:2])) * 0.5 + np.isin(np.round(x), np.round(y)).sum()


def products(y: Any, x: Any) -> Any:
    return np.cumprod(np.cos(y)) + np.maximum.accumulate(y)


def padded(y: Any, x: Any) -> Any:
    return np.pad(np.pad(np.append(y, 0.5), 1, mode="reflect"), (0, 2), constant_values=0.25)[: 4 + len(x)]


def digits(y: Any, x: Any) -> Any:
    return np.digitize(y, np.sort(x)) * 0.125 - np.digitize(y, [-1.0, 0.0, 1.0])


def without_nan(y: Any, x: Any) -> Any:
    z = np.append(np.where(y > 1, np.nan, y), 0.5)
    return z[~np.isnan(z)] - np.nanmean(z) + np.nanmax(z) * np.nanstd(z)


def slopes(y: Any, x: Any) -> Any:
    return np.gradient(np.append(y, [0.5, 1.0])) + np.trapezoid(y) * 0.125


def rows_in_order(y: Any, x: Any) -> Any:
    table = np.sort(np.stack([y, -y, y * y], 1), axis=1)
    return np.cumsum(table, axis=1)[:, 1] + np.argmax(table, axis=1) + np.median(table, axis=1)


def outer_products(y: Any, x: Any) -> Any:
    table = np.outer(y, np.cos(y))
    return np.einsum("ij,j->i", table, y) * 0.125 + np.trace(table) * 0.125 - table.diagonal()


def inserted_at(y: Any, x: Any) -> Any:
    return np.insert(y, np.flatnonzero(y > 0.5), -0.25)[: 3 + len(x)]


def chosen_of_three(y: Any, x: Any) -> Any:
    return np.select([y > 1, y > 0], [y * 0.5, -y], default=0.25)


def grown(y: Any, x: Any) -> Any:
    z = y[:2]
    for v in x:
        if v > 0.5:
            z = np.append(z, v)
        elif v < -1:
            z = np.concatenate([z[1:], z[:1] + 0.5, z[2:3]])
    return z[: 4 + len(x)]


STEPS: tuple[Callable[..., Any], ...] = (
    positive, small, all_but_equal, scaled, rooted, chosen, ordered, reversed_, rest, every_other, different, counts,
    inverse, firsts, sums, positions, at_positions, of_the_whole, joined, sorted_by, stored, without, both, either,
    trimmed, differences, filled, stored_at, numbered, positives, pairs, strided, added_at, of_one_type,
    rows_apart, sorted_by_two, of_each, counted, interpolated, smoothed, correlated, counts_in_bins, deleted, tiled,
    members, products, padded, digits, without_nan, slopes, rows_in_order, outer_products, inserted_at,
    chosen_of_three, grown,
)  # fmt: skip


TABLES: tuple[Callable[..., Any], ...] = (columns, every_other_column, kept_rows)
"""The last step of a program may give one of these."""


def program(x: Any, steps: tuple[int, ...], table: int) -> Any:
    y = x
    found = []
    for step in steps:
        y = STEPS[step](y, x)
        found.append(y)
    return [*found, TABLES[table](y, x)], np.sum(y), len(y), np.count_nonzero(y > 0)


def arrays(rng: np.random.Generator) -> list[Any]:
    x = np.round(rng.standard_normal(int(rng.integers(3, 24))) * 1.5, 2)
    return [x, np.abs(x) + 0.125, -np.abs(x) - 0.125, x * 0]


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = tuple(int(n) for n in rng.integers(0, len(STEPS), int(rng.integers(1, 5))))
    table = int(rng.integers(len(TABLES)))
    names = [*(STEPS[n].__name__ for n in steps), TABLES[table].__name__]
    target = "cpu" if seed % 3 else "reference"
    compiled = ml.compile(program, static_argnums=(1, 2), target=target)
    for x in arrays(rng):
        try:
            expected = program(x, steps, table)
        except IndexError:  # positions past the end
            continue
        found = compiled(x, steps, table)
        for one, other in zip([*found[0], *found[1:]], [*expected[0], *expected[1:]]):
            one, other = np.asarray(one), np.asarray(other)
            assert (one.shape, one.dtype) == (other.shape, other.dtype), (names, x)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=str(names))
