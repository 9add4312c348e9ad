"""Samples for the operations that rearrange, scan and sort arrays, and for those composed of others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlirml.ops import OPS
from tests.ops.samples import Arguments, Draw, sampler, special_values


@sampler("roll")
def _roll(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5), 2), {}
    yield (draw.array(3, 5), (1, -7), (0, 1)), {}
    if draw.thorough:
        yield (draw.array(4, 3, 2), 1, (0, -1)), {}
        yield (draw.array(7), -3), {"axis": 0}
        yield (draw.array(7), [1, 2], (0, 0)), {}
        yield (draw.array(3, 0), 2, 0), {}
        yield (draw.array(), 2), {}


@sampler("tile")
def _tile(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3), (2, 1, 3)), {}
    if draw.thorough:
        yield (draw.array(3), 4), {}
        yield (draw.array(2, 3), 2), {}
        yield (draw.array(), (2, 3)), {}
        yield (draw.array(3), (2, 0)), {}
        yield (draw.array(2, 3), ()), {}
        yield (draw.array(1, 3, 1), (4, 1, 2)), {}


@sampler("repeat")
def _repeat(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3), 3), {}
    yield (draw.array(2, 3), [1, 0, 2], 1), {}
    if draw.thorough:
        yield (draw.array(2, 3), 2), {"axis": 0}
        yield (draw.array(2, 3), [2], -1), {}
        yield (draw.array(), 3), {}
        yield (draw.array(3), 0), {}
        yield (draw.array(3), [0, 0, 0]), {}


@sampler("pad")
def _pad(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), 2), {}
    yield (draw.array(3, 4), ((1, 0), (2, 3)), "edge"), {}
    yield (draw.array(3, 4), ((5, 4), (2, 7)), "reflect"), {}
    if draw.thorough:
        yield (draw.array(3, 4), 2), {"constant_values": ((1, 2), (3, 4))}
        yield (draw.array(3, 4), (1, 2)), {"constant_values": 3}
        yield (draw.array(2, 3, 4), ((1, 1), (0, 0), (2, 3)), "symmetric"), {}
        yield (draw.array(2, 3, 4), ((5, 1), (1, 0), (2, 9)), "wrap"), {}
        yield (draw.array(5), {0: (1, 2)}), {}
        yield (draw.array(1, 3), 3, "reflect"), {}
        yield (draw.array(0, 3), 1), {}
        yield (draw.array(3), 0, "wrap"), {}


@sampler("tril", "triu")
def _triangles(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 5),), {}
    if draw.thorough:
        yield (draw.array(4, 3), 1), {}
        yield (draw.array(2, 3, 4), -1), {}
        yield (draw.array(3),), {}
        yield (draw.array(3, 4),), {"k": 9}
        yield (draw.array(0, 3),), {}


@sampler("diagonal", "trace")
def _diagonals(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 5),), {}
    yield (draw.array(2, 3, 4), 1, 0, 2), {}
    if draw.thorough:
        yield (draw.array(4, 3), -1), {}
        yield (draw.array(4, 3), 1), {"axis1": 1, "axis2": 0}
        yield (draw.array(2, 3, 4), 0, -1, 0), {}
        yield (draw.array(3, 3), 7), {}
        if draw.record.name == "trace":
            yield (draw.array(3, 3),), {"dtype": np.float64}


@sampler("diag", "diagflat")
def _diag(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4),), {}
    yield (draw.array(4, 5),), {"k": 1}
    if draw.thorough:
        yield (draw.array(3), 2), {}
        yield (draw.array(3), -2), {}
        yield (draw.array(4, 3), -1), {}
        yield (draw.array(0),), {}


@sampler("delete")
def _delete(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 5), [1, 3], 1), {}
    if draw.thorough:
        yield (draw.array(4, 5), -1, 0), {}
        yield (draw.array(4, 5), slice(1, None, 2), 1), {}
        yield (draw.array(3, 2), 2), {}
        yield (draw.array(4), [True, False, True, False]), {}


@sampler("insert")
def _insert(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 5), 1, draw.array(5), 0), {}
    yield (draw.array(4, 5), [0, 3], draw.array(4, 2), 1), {}
    if draw.thorough:
        yield (draw.array(4, 5), 2, 1), {}
        yield (draw.array(6), [1, 1, 4], draw.array(3)), {}
        yield (draw.array(4, 5), 2, draw.array(2, 4), 1), {}
        yield (draw.array(6), slice(0, 4, 2), draw.array(2)), {}


@sampler("resize")
def _resize(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3), (4, 4)), {}
    if draw.thorough:
        yield (draw.array(2, 3), 4), {}
        yield (draw.array(5), (0, 2)), {}
        yield (draw.array(0), (2, 2)), {}


@sampler("norm")
def _norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    yield (draw.array(3, 4),), {"axis": 1}
    if draw.thorough:
        yield (draw.array(7),), {}
        yield (draw.array(7), 2), {"keepdims": True}
        for order in (0, 1, 3, -1.5, np.inf, -np.inf):
            yield (draw.array(3, 4), order, 0), {"keepdims": order == 0}
        for order in ("fro", 1, -1, np.inf, -np.inf):
            yield (draw.array(3, 4), order), {}
        yield (draw.array(2, 3, 4), 1, (2, 0)), {}
        yield (draw.array(2, 3, 4), np.inf, (0, -1)), {"keepdims": True}
        yield (draw.array(0),), {}


@sampler("vector_norm")
def _vector_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4),), {"axis": (0, 2), "keepdims": True, "ord": 1}
        yield (draw.array(2, 3, 4),), {"axis": 1, "ord": np.inf}


@sampler("matrix_norm")
def _matrix_norm(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4),), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4),), {"keepdims": True, "ord": 1}


@sampler("logsumexp")
def _logsumexp(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    yield (draw.array(3, 4),), {"axis": 1, "keepdims": True}
    if draw.is_float:
        yield (np.array([[np.inf, 1.0], [-np.inf, -np.inf], [np.nan, 1.0], [88.0, 89.0]]).astype(draw.dtype), 1), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4), (0, 2)), {}
        yield (draw.array(0, 3), 0), {}


@sampler("matrix_power")
def _matrix_power(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 3), 3), {}
    if draw.thorough:
        yield (draw.array(2, 3, 3), 4), {}
        yield (draw.array(3, 3), 0), {}
        yield (draw.array(3, 3), 1), {}
        yield (draw.array(2, 2), 5), {}


def _regular(draw: Draw, size: int) -> np.ndarray:
    """A matrix that is far from singular."""
    others = 0 if draw.dtype == np.bool_ else draw.random.integers(0, 4, (size, size))
    matrix: np.ndarray = (others + 20 * np.eye(size)).astype(draw.dtype)
    return matrix


@sampler("matrix_rank", "cond")
def _ranks(draw: Draw) -> Iterator[Arguments]:
    regular = _regular(draw, 3)
    yield (regular,), {}
    if draw.thorough:
        yield (np.stack([regular, regular.T]),), {}
        if draw.record.name == "matrix_rank":
            yield (np.ones((4, 3), draw.dtype),), {}
            yield (draw.array(4),), {}
            yield (np.ones((3, 3), draw.dtype),), {"hermitian": True}
            yield (regular, 100.0), {}
        else:
            yield from (((regular, p), {}) for p in (2, -2, 1, -1, np.inf, "fro"))


@sampler("tensorsolve")
def _tensorsolve(draw: Draw) -> Iterator[Arguments]:
    matrix = _regular(draw, 6)
    yield (matrix.reshape(2, 3, 6), draw.array(2, 3)), {}
    if draw.thorough:
        yield (matrix.reshape(6, 2, 3), draw.array(6)), {}
        yield (matrix.reshape(2, 3, 3, 2), draw.array(2, 3)), {}


@sampler("tensorinv")
def _tensorinv(draw: Draw) -> Iterator[Arguments]:
    matrix = _regular(draw, 6)
    yield (matrix.reshape(2, 3, 6),), {}
    if draw.thorough:
        yield (matrix.reshape(6, 2, 3),), {"ind": 1}


@sampler("polyfit")
def _polyfit(draw: Draw) -> Iterator[Arguments]:
    x = np.arange(8).astype(draw.dtype)
    yield (x, draw.array(8), 2), {}
    if draw.thorough:
        yield (x, draw.array(8, 2), 1), {}
        yield (x, draw.array(8), 3), {"w": np.arange(1, 9).astype(draw.dtype)}
        yield (x, draw.array(8), 2), {"cov": True}
        yield (x, draw.array(8, 2), 1), {"cov": "unscaled", "w": np.arange(1, 9).astype(draw.dtype)}


@sampler("roots")
def _roots(draw: Draw) -> Iterator[Arguments]:
    yield (np.array([1, -1, 4, 7]).astype(draw.dtype),), {}
    if draw.thorough:
        yield (np.array([2]).astype(draw.dtype),), {}


@sampler("poly")
def _poly(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4),), {}
    if draw.thorough:
        yield (draw.array(0),), {}
        yield (draw.array(3, 3),), {}


@sampler("vecdot")
def _vecdot(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(3, 4)), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4), draw.array(4)), {}
        yield (draw.array(3, 4), draw.array(3, 1)), {"axis": 0}
        yield (draw.array(4), draw.array(4)), {}


@sampler(*{"matvec"} & set(OPS))
def _matvec(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(4)), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4), draw.array(2, 4)), {}


@sampler(*{"vecmat"} & set(OPS))
def _vecmat(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3), draw.array(3, 4)), {}
    if draw.thorough:
        yield (draw.array(2, 3), draw.array(2, 3, 4)), {}


@sampler("kron")
def _kron(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3), draw.array(3, 2)), {}
    if draw.thorough:
        yield (draw.array(3), draw.array(2, 2)), {}
        yield (draw.array(2, 1, 3), draw.array(4)), {}
        yield (draw.array(), draw.array(4)), {}


@sampler("cross")
def _cross(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4, 3), draw.array(4, 3)), {}
    if draw.thorough:
        yield (draw.array(3), draw.array(4, 3)), {}
        yield (draw.array(3, 4), draw.array(3, 4)), {"axis": 0}
        yield (draw.array(3, 4), draw.array(4, 3)), {"axisa": 0, "axisc": 0}


def _scans(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(9, 5), 1), {}
    yield (draw.array(9, 5), 0), {}
    if draw.is_float:
        yield (np.array([-0.0, -0.0, 1, -0.0, np.nan, 2, np.inf, -np.inf]).astype(draw.dtype), 0), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4), 1), {}
        yield (draw.array(2, 3, 4),), {"axis": -1}
        yield (draw.array(3, 1, 2), 1), {}
        yield (draw.array(0, 3), 0), {}
        yield (draw.array(3, 0), 0), {}
        yield (draw.array(1), 0), {}
        yield (special_values(draw.dtype), 0), {}


@sampler("cumsum", "cumprod", "nancumsum", "nancumprod")
def _running(draw: Draw) -> Iterator[Arguments]:
    yield from _scans(draw)
    if draw.thorough:
        yield (draw.array(3, 4),), {}
        yield (draw.array(),), {}
        yield (draw.array(3, 4), 0), {"dtype": np.float64}
    if draw.dtype.kind in "iub" and draw.dtype.itemsize < 8:
        yield (draw.array(40),), {"dtype": draw.dtype}


@sampler(*(name for name in OPS if name.endswith("_accumulate")), "cummax", "cummin")
def _accumulated(draw: Draw) -> Iterator[Arguments]:
    yield from _scans(draw)
    if draw.thorough:
        yield (draw.array(3, 4),), {}


@sampler(*(name for name in OPS if name.endswith("_reduceat")))
def _of_segments(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(9), [0, 2, 5]), {}
    yield (draw.array(3, 8), [1, 3, 5]), {"axis": 1}
    if draw.thorough:
        yield (draw.array(30, 2), [5, 4, 7, 7, 0, 20, 1]), {}
        yield (draw.array(90), [*range(80, -1, -8)]), {}
        yield (draw.array(30), [*range(0, 30, 6)]), {}


@sampler(*{"cumulative_sum", "cumulative_prod"} & set(OPS))
def _cumulative(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(7),), {}
    if draw.thorough:
        yield (draw.array(3, 4),), {"axis": 1, "include_initial": True}
        yield (draw.array(3, 4),), {"axis": 0, "include_initial": True, "dtype": np.float64}


@sampler("diff")
def _diff(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5),), {}
    yield (draw.array(3, 5), 2, 0), {}
    if draw.thorough:
        yield (draw.array(3, 5),), {"prepend": 1, "axis": 0}
        yield (draw.array(3, 5),), {"append": draw.array(3, 2)}
        yield (draw.array(3, 5), 0), {}
        yield (draw.array(3, 1), 2), {}
        yield (draw.array(3, 0),), {}


def _unsorted(draw: Draw, *shape: int) -> np.ndarray:
    """Few different values, so that many are equal; NaN, infinities and both zeros among the floats."""
    pool = special_values(draw.dtype)
    if draw.dtype.name == "bfloat16":  # NumPy sorts its NaN to any place
        pool = pool[~np.isnan(pool)]
    chosen = draw.random.integers(0, len(pool), shape)
    return np.asarray(np.where(draw.random.random(shape) < 0.5, pool[chosen], draw.array(*shape))).astype(draw.dtype)


@sampler("sort")
def _sort(draw: Draw) -> Iterator[Arguments]:
    yield (_unsorted(draw, 3, 7),), {"kind": "stable"}
    yield (_unsorted(draw, 7, 40), 0, "stable"), {}
    yield (_unsorted(draw, 300),), {"stable": True}
    if draw.thorough:
        yield (draw.array(2, 3, 4), 1), {}
        yield (_unsorted(draw, 3, 4), None, "mergesort"), {}
        yield (_unsorted(draw, 70, 33),), {"kind": "stable"}
        yield (draw.array(0, 3), 0), {}
        yield (draw.array(3, 0),), {}
        yield (draw.array(3, 1),), {}


@sampler("argsort")
def _argsort(draw: Draw) -> Iterator[Arguments]:
    yield (_unsorted(draw, 3, 7),), {"kind": "stable"}
    yield (_unsorted(draw, 7, 40), 0, "stable"), {}
    yield (_unsorted(draw, 300),), {"stable": True}
    if draw.thorough:
        yield (_unsorted(draw, 3, 4), None, "mergesort"), {}
        yield (_unsorted(draw, 70, 33), -1, "stable"), {}
        yield (draw.array(0, 3), 0), {}
        yield (draw.array(), -1), {}
        yield (draw.array(), None), {}


@sampler("partition", "argpartition")
def _partition(draw: Draw) -> Iterator[Arguments]:
    # NumPy sorts what it partitions at every place, and so do we; equal elements may lie in another order.
    ranks = draw.random.permutation(2 if draw.dtype == np.bool_ else 6).astype(draw.dtype)
    yield (ranks, list(range(ranks.size))), {}
    if draw.thorough:
        yield (np.stack([ranks, ranks[::-1]], 1), list(range(6)), 0), {}
        yield (ranks.reshape(1, 6), [0, 1, 2, 3, 4, 5], None), {}
        yield (draw.array(3, 0), 4), {}


@sampler("topk")
def _topk(draw: Draw) -> Iterator[Arguments]:
    yield (_unsorted(draw, 3, 7), 3), {}
    yield (_unsorted(draw, 40, 9), 2), {"axis": 0, "largest": False}
    if draw.thorough:
        yield (_unsorted(draw, 300), 300), {}
        yield (_unsorted(draw, 5, 300), 4), {"axis": 1}
        yield (draw.array(4), 0), {}


@sampler("searchsorted")
def _searchsorted(draw: Draw) -> Iterator[Arguments]:
    table = np.sort(_unsorted(draw, 9), kind="stable")
    yield (table, _unsorted(draw, 3, 4)), {}
    yield (table, table), {"side": "right"}
    if draw.thorough:
        yield (table, 1), {}
        yield (draw.array(0), draw.array(3)), {}
        yield (table[:1], table), {"side": "right"}
        yield (np.flip(table), table, "left", np.arange(9)[::-1]), {}
        yield (np.sort(draw.array(100)), 0.5), {}


@sampler("lexsort")
def _lexsort(draw: Draw) -> Iterator[Arguments]:
    yield ((_unsorted(draw, 20), _unsorted(draw, 20)),), {}
    if draw.thorough:
        yield ((_unsorted(draw, 3, 9), _unsorted(draw, 3, 9)),), {"axis": 0}
        yield ((draw.array(), draw.array()),), {}
