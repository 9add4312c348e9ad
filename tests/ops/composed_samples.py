"""Samples for statistics, numeric functions and composed views and joins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlirml.ops import OPS
from tests.ops.samples import Arguments, Draw, sampler


def _holed(draw: Draw, *shape: int) -> np.ndarray:
    """Random elements, of floats some NaN."""
    array = draw.array(*shape)
    if draw.is_float and draw.dtype.name != "bfloat16":  # NumPy takes the NaN of a bfloat16 for a number
        array = np.where(draw.random.random(shape) < 0.3, np.nan, array).astype(draw.dtype)
    return array


@sampler("average")
def _average(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    if draw.thorough:
        weights = np.array([1, 2, 3, 4], draw.dtype)
        yield (draw.array(3, 4), 1, weights), {}
        yield (draw.array(3, 4), 1, np.ones((3, 4), draw.dtype)), {"keepdims": True}


@sampler("median", "nanmedian")
def _median(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5), 1), {}
    if draw.thorough:
        yield (draw.array(3, 4),), {}
        yield (draw.array(2, 3, 4), (0, 2)), {"keepdims": True}
        yield (draw.array(7), -1), {}
        yield (_holed(draw, 4, 6), 1), {}


@sampler("quantile")
def _quantile(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5), 0.3, 1), {}
    if draw.thorough:
        yield (draw.array(3, 5), [0, 0.25, 1]), {}
        yield (draw.array(3, 5), 0.5), {"axis": 0, "keepdims": True}
        yield (_holed(draw, 4, 6), [[0.1, 0.9]], 1), {}
        for method in ("lower", "higher", "midpoint", "nearest", "hazen", "median_unbiased"):
            yield (draw.array(9), 0.33), {"method": method}


@sampler("percentile")
def _percentile(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5), 30, 1), {}
    if draw.thorough:
        yield (draw.array(3, 5), [0, 25, 99.5]), {"axis": 0}


@sampler("nanargmax", "nanargmin")
def _nan_positions(draw: Draw) -> Iterator[Arguments]:
    x = draw.array(5, 6)
    if draw.is_float:
        x[np.arange(5), [0, 3, 5, 1, 2]] = np.nan
    yield (x,), {}
    yield (x, 1), {}
    if draw.thorough:
        yield (x, 1), {"keepdims": True}
        yield (draw.array(3, 4, 2), 0), {}


@sampler("multi_dot")
def _multi_dot(draw: Draw) -> Iterator[Arguments]:
    yield ([draw.array(3, 4), draw.array(4, 5), draw.array(5, 2)],), {}
    if draw.thorough:
        yield ([draw.array(4), draw.array(4, 5), draw.array(5, 2), draw.array(2)],), {}
        yield ([draw.array(3, 4), draw.array(4, 2)],), {}


@sampler("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd")
def _nan_reductions(draw: Draw) -> Iterator[Arguments]:
    yield (_holed(draw, 3, 5),), {}
    if draw.thorough:
        yield (_holed(draw, 3, 5), 1), {}
        yield (_holed(draw, 2, 3, 5), (0, 2)), {"keepdims": True}
        yield (_holed(draw, 3, 5),), {"axis": 0, "where": draw.random.random((3, 5)) < 0.8, **(
            {"initial": 1} if draw.record.name in ("nanmax", "nanmin") else {})}  # fmt: skip
        if draw.is_float:
            yield (np.full((2, 3), np.nan, draw.dtype), 1), {}


@sampler("cov")
def _cov(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5),), {}
    if draw.thorough:
        yield (draw.array(5), draw.array(5)), {}
        yield (draw.array(5, 3),), {"rowvar": False, "bias": True}
        yield (draw.array(2, 5), draw.array(3, 5)), {"ddof": 0}


@sampler("corrcoef")
def _corrcoef(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 9),), {}
    if draw.thorough:
        yield (draw.array(9), draw.array(9)), {}


@sampler("digitize")
def _digitize(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5), [-1, 0, 2]), {}
    if draw.thorough:
        yield (draw.array(9), [2, 1, 0]), {"right": True}


@sampler("histogram")
def _histogram(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 20), [0, 1, 2, 4]), {}
    if draw.thorough:
        yield (draw.array(50), 5, (-3, 3)), {}
        yield (draw.array(50),), {"range": (0, 3), "density": True}


@sampler("histogram_bin_edges")
def _histogram_bin_edges(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 20), 4), {}
    if draw.thorough:
        yield (draw.array(20), 5, (-3, 3)), {}
        yield (draw.array(20), [0, 1, 2, 4]), {}
        yield (np.full_like(draw.array(3), 2), 3), {}


@sampler("histogram2d")
def _histogram2d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(20), draw.array(20), [[0, 1, 2, 4], [0, 2, 3]]), {}
    if draw.thorough:
        yield (draw.array(50), draw.array(50), (3, 4), ((-3, 3), (0, 2))), {"density": True}
        yield (draw.array(50), draw.array(50), np.array([-1.0, 0.0, 2.0, 3.0])), {"weights": draw.array(50)}


@sampler("histogramdd")
def _histogramdd(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(20, 3), [[0, 1, 2, 4], [0, 2, 3], 2]), {"range": [None, None, (-3, 3)]}
    if draw.thorough:
        yield (draw.array(50, 2), 3, ((-3, 3), (0, 2))), {"density": True}
        yield ([draw.array(50)] * 3, 4), {"range": [(-3, 3)] * 3}


@sampler("trapezoid")
def _trapezoid(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5),), {}
    if draw.thorough:
        yield (draw.array(3, 5), np.sort(draw.array(5))), {}
        yield (draw.array(3, 5),), {"dx": 0.5, "axis": 0}
        yield (draw.array(3, 5), draw.array(3, 5)), {"axis": 0}


@sampler("gradient")
def _gradient(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(7),), {}
    if draw.thorough:
        yield (draw.array(4, 5),), {}
        yield (draw.array(4, 5), 2.0), {"axis": 1, "edge_order": 2}
        yield (draw.array(4, 5), 2.0, [0.0, 1.0, 3.0, 3.5, 5.0]), {}
        yield (draw.array(5), [0.0, 1.0, 3.0, 3.5, 5.0]), {"edge_order": 2}


@sampler("ediff1d")
def _ediff1d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    if draw.thorough:
        yield (draw.array(5),), {"to_begin": draw.array(2), "to_end": draw.array(1)}


@sampler("polyval")
def _polyval(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4), draw.array(3, 5)), {}
    if draw.thorough:
        yield (draw.array(0), draw.array(3)), {}
        yield ([1, 2, 3], draw.array(3)), {}


@sampler("vander")
def _vander(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(4),), {}
    if draw.thorough:
        yield (draw.array(4), 3, True), {}
        yield (draw.array(4), 1), {}
        yield (draw.array(4), 0), {}


@sampler("interp")
def _interp(draw: Draw) -> Iterator[Arguments]:
    def points(*shape: int) -> np.ndarray:
        return draw.array(*shape).real  # those of complex values are real, too

    places = np.unique(points(9))
    yield (points(3, 7), places, draw.array(len(places))), {}
    if draw.thorough:
        yield (places, places, draw.array(len(places))), {}
        yield (points(20), places, draw.array(len(places))), {"left": -7, "right": 9.5}
        yield (points(20), places[:1], draw.array(1)), {}
        yield (points(20), draw.random.permutation(places), draw.array(len(places))), {"period": 11}
        if draw.is_float:
            yield (np.array([np.nan, np.inf, -np.inf, 0.5], places.dtype), places, draw.array(len(places))), {}


@sampler("correlate", "convolve")
def _correlate(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(9), draw.array(4), "full"), {}
    if draw.thorough:
        for mode in ("valid", "same", "full"):
            yield (draw.array(9), draw.array(4), mode), {}
            yield (draw.array(3), draw.array(8), mode), {}
        yield (draw.array(40), draw.array(12)), {}
        yield (draw.array(1), draw.array(1)), {}


@sampler("unwrap")
def _unwrap(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 9),), {}
    if draw.thorough:
        yield (draw.array(3, 9),), {"axis": 0, "period": 2.0}


@sampler("isin")
def _isin(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 5), draw.array(4)), {}
    if draw.thorough:
        yield (draw.array(5), [1, 2]), {"invert": True}
        yield (draw.array(5), draw.array(0)), {}


@sampler("rot90")
def _rot90(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    if draw.thorough:
        for turns in (-1, 0, 2, 3):
            yield (draw.array(2, 3, 4), turns, (2, 0)), {}


@sampler("flipud", "fliplr", "vsplit", "hsplit")
def _planes(draw: Draw) -> Iterator[Arguments]:
    sections = (2,) if draw.record.name.endswith("split") else ()
    yield (draw.array(4, 6), *sections), {}
    if draw.thorough:
        yield (draw.array(2, 2, 3), *sections), {}


@sampler("dsplit")
def _dsplit(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4), [1, 3]), {}


@sampler("rollaxis")
def _rollaxis(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(2, 3, 4), 2), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4), 0, 3), {}
        yield (draw.array(2, 3, 4), 0, -1), {}


@sampler("atleast_3d")
def _atleast_3d(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3),), {}
    if draw.thorough:
        yield (draw.array(), draw.array(2, 3), draw.array(2, 3, 4, 1)), {}


@sampler(*{"unstack"} & set(OPS))
def _unstack(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4),), {}
    if draw.thorough:
        yield (draw.array(2, 3, 4),), {"axis": -1}
        yield (draw.array(3),), {}


@sampler("meshgrid")
def _meshgrid(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3), draw.array(4)), {}
    if draw.thorough:
        yield (draw.array(3), draw.array(4), draw.array(2)), {"indexing": "ij"}
        yield (draw.array(3), draw.array(4)), {"sparse": True, "copy": False}
        yield (draw.array(3),), {}


@sampler("append")
def _append(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3, 4), draw.array(2)), {}
    if draw.thorough:
        yield (draw.array(3, 4), draw.array(3, 1), 1), {}


@sampler("column_stack", "dstack")
def _columns(draw: Draw) -> Iterator[Arguments]:
    yield ([draw.array(3), draw.array(3)],), {}
    if draw.thorough:
        yield ([draw.array(3, 2), draw.array(3, 2)],), {}


@sampler("linspace")
def _linspace(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3), draw.array(3), 5), {}
    if draw.thorough:
        yield (0, draw.array(2, 1), 4), {"endpoint": False, "axis": -1}
        yield (draw.array(), 7, 5), {"dtype": np.int64}
        yield (draw.array(2), draw.array(2), 1), {}
        yield (draw.array(2), draw.array(2), 0), {}


@sampler("logspace")
def _logspace(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3), draw.array(3), 5), {}
    if draw.thorough:
        yield (0, draw.array(), 4), {"endpoint": False, "base": 2.0}


@sampler("geomspace")
def _geomspace(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(3) + draw.dtype.type(1), draw.array(3) + draw.dtype.type(1), 5), {}
    if draw.thorough:
        yield (1, draw.array(2, 1) + 1, 4), {"endpoint": False, "axis": -1}
        yield (-(draw.array(3) + 1), -2, 4), {}
        yield (draw.array(2) + 1, draw.array(2) + 1, 1), {}
        yield (draw.array(2) + 1, draw.array(2) + 1, 0), {}


@sampler("block")
def _block(draw: Draw) -> Iterator[Arguments]:
    yield ([[draw.array(2, 2), draw.array(2, 1)], [draw.array(1, 3)]],), {}
    if draw.thorough:
        yield ([draw.array(3), draw.array(2)],), {}
        yield ([[draw.array(3)], [draw.array(3)]],), {}
        yield (draw.array(2, 2),), {}


@sampler("sliding_window_view")
def _windows(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(7), 3), {}
    if draw.thorough:
        yield (draw.array(4, 5), (2, 3)), {}
        yield (draw.array(4, 5), 2, 0), {}
        yield (draw.array(5), (2, 2), (0, 0)), {}


def _of_degree(draw: Draw, degree: int) -> np.ndarray:
    """Coefficients of which the first is not 0."""
    p = draw.array(degree + 1)
    p[0] = 2
    return p


@sampler("polyadd", "polysub", "polymul")
def _polynomials(draw: Draw) -> Iterator[Arguments]:
    yield (_of_degree(draw, 3), _of_degree(draw, 5)), {}
    if draw.thorough:
        yield (_of_degree(draw, 4), _of_degree(draw, 0)), {}
        yield ([1, 2, 3], _of_degree(draw, 2)), {}


@sampler("polydiv")
def _polydiv(draw: Draw) -> Iterator[Arguments]:
    yield (_of_degree(draw, 5), _of_degree(draw, 2)), {}
    if draw.thorough:
        yield (_of_degree(draw, 3), _of_degree(draw, 3)), {}
        yield (_of_degree(draw, 4), _of_degree(draw, 0)), {}
        yield (_of_degree(draw, 1), _of_degree(draw, 3)), {}
        yield ([5, 3, 1, 2], _of_degree(draw, 1)), {}


@sampler("polyder")
def _polyder(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(5),), {}
    if draw.thorough:
        for order in (0, 2, 5, 7):
            yield (draw.array(5), order), {}


@sampler("polyint")
def _polyint(draw: Draw) -> Iterator[Arguments]:
    yield (draw.array(5),), {}
    if draw.thorough:
        yield (draw.array(5), 2), {}
        yield (draw.array(5), 2, 3.0), {}
        yield (draw.array(5), 2, [1, 2]), {}
        yield (draw.array(5), 0), {}


def _holed_after_one(draw: Draw, *shape: int) -> np.ndarray:
    """Random elements, of floats some NaN, but for the first of each slice: its dtype is that of all for NumPy."""
    array = _holed(draw, *shape)
    array[0, :], array[:, 0] = 1, 1
    return array


@sampler("nanquantile")
def _nanquantile(draw: Draw) -> Iterator[Arguments]:
    yield (_holed_after_one(draw, 4, 6), 0.3, 1), {}
    if draw.thorough:
        yield (_holed_after_one(draw, 4, 6), [0, 0.25, 1]), {}
        yield (_holed_after_one(draw, 4, 6), [[0.1, 0.9]], 1), {}
        yield (_holed_after_one(draw, 4, 6), 0.6), {"axis": 0, "keepdims": True}
        empty = draw.array(3, 2)
        yield (np.full_like(empty, np.nan) if draw.is_float else empty, 0.4, 1), {}


@sampler("nanpercentile")
def _nanpercentile(draw: Draw) -> Iterator[Arguments]:
    yield (_holed_after_one(draw, 4, 6), 30, 1), {}
    if draw.thorough:
        yield (_holed_after_one(draw, 4, 6), [0, 25, 99.5]), {"axis": 0}
