"""Connected components of arrays, and measurements of the regions with a label."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend import control
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.ndimage.arguments import integer, public, stored_into, taken
from mlirml.ndimage.binary import generate_binary_structure
from mlirml.ops.registry import BOOL
from mlirml.special.floats import as_array

__all__ = [
    "center_of_mass", "histogram", "label", "maximum", "mean", "minimum", "standard_deviation", "sum_labels",
    "variance",
]  # fmt: skip


def _offsets(name: str, structure: Any, rank: int) -> list[tuple[int, ...]]:
    """The offsets of the neighbours of an element."""
    found = np.asarray(generate_binary_structure(rank, 1) if structure is None else structure, dtype=np.bool_)
    if found.shape != (3,) * rank:
        raise ShapeError(f"{name}: the structure must have 3 elements along each of {rank} axes")
    if not np.array_equal(found, np.flip(found)):
        raise ShapeError(f"{name}: the structure must be symmetric about its centre")
    return [tuple(int(i) - 1 for i in index) for index in np.argwhere(found) if any(index != 1)]


def _shifted(x: Any, offset: tuple[int, ...]) -> Any:
    """The part of an array with a margin of one element that is at an offset."""
    return x[tuple(slice(1 + o, n - 1 + o) for o, n in zip(offset, x.shape))]


def _first_of_runs(member: Any, here: Any) -> Any:
    """The flat index of the first of the elements in a row along the last axis that an element is joined to."""
    before = np.pad(member, [*[(0, 0)] * (member.ndim - 1), (1, 0)])[..., :-1]
    return np.maximum.accumulate(np.where(member & ~before, here, -1), axis=-1)


def _by_forest(start: Any, member: Any, offsets: list[tuple[int, ...]], sentinel: Any) -> Any:
    """The index of the first element of each component, from those of runs: all elements at once."""
    size = math.prod(member.shape)

    def improve(carry: Any) -> Any:
        parent, grandparent, _ = carry
        around = np.pad(grandparent, 1, constant_values=sentinel)
        least = grandparent
        for offset in offsets:
            least = np.minimum(least, _shifted(around, offset))
        least = np.where(member, least, sentinel)
        flat = np.append(parent.reshape(-1), sentinel)
        np.minimum.at(flat, parent.reshape(-1), least.reshape(-1))
        parent = np.minimum(np.minimum(flat[:size].reshape(member.shape), least), grandparent)
        after = np.append(parent.reshape(-1), sentinel)[parent]
        return parent, after, np.any(after != grandparent)

    return control.while_loop(lambda carry: carry[2], improve, (start, start, np.any(member)))[1]


def _by_unions(start: Any, member: Any, offsets: list[tuple[int, ...]], sentinel: Any) -> Any:
    """`_by_forest`, where elements are united in order; a parent is never after its children.

    K. Wu, E. Otoo, K. Suzuki: Optimizing two-pass connected-component labeling algorithms. Pattern Analysis and
    Applications 12, 2009.
    """
    shape, size = member.shape, math.prod(member.shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    before = (*(0,) * (len(shape) - 1), -1)
    parent = np.append(start.reshape(-1), sentinel)
    wide = np.pad(member, 1)

    def root(parent: Any, i: Any) -> Any:
        # The array is no part of the carry: a batch of these loops would copy it in each iteration.
        return control.while_loop(lambda i: taken(parent, i, 0) != i, lambda i: taken(parent, i, 0), i)

    for offset in offsets:
        if offset > (0,) * len(shape) or offset == before:
            continue  # the other element is united with this one, or in its run
        joined = member & _shifted(wide, offset)
        if before in offsets:  # once for two runs that touch
            joined = joined & ~np.pad(joined, [*[(0, 0)] * (len(shape) - 1), (1, 0)])[..., :-1]
        distance = sum(o * stride for o, stride in zip(offset, strides))

        joined = joined.reshape(-1)

        def unite(i: Any, parent: Any, joined: Any = joined, distance: int = distance) -> Any:
            ends = [np.where(joined[i], end, size).astype(start.dtype) for end in (i, i + distance)]
            first_of_both = np.minimum(*(roots := [root(parent, end) for end in ends]))
            # The paths from both, and from the starts of their runs, become short.
            for end in (*(taken(parent, end, 0) for end in ends), *ends, *roots):
                parent[end] = first_of_both
            return parent

        parent = control.fori_loop(0, size, unite, parent)

    def flatten(i: Any, parent: Any) -> Any:
        parent[i] = taken(parent, parent[i], 0)
        return parent

    return control.fori_loop(0, size, flatten, parent)[:size].reshape(shape)


@public(dtypes=BOOL)
def label(input: Any, structure: Any = None, output: Any = None) -> Any:
    """The connected components of elements other than zero, numbered from 1 on, and their number.

    Labels are i32, or of the dtype `output`; where `output` is an array they are stored into it, and the number alone
    is returned. `structure` has 3 elements along each axis, and is symmetric about its centre; by default neighbours
    differ in one index. Components are numbered by their first elements.

    Runs along the last axis are united in order in compiled code. Elsewhere all parents of a forest are
    updated at once (Y. Zhang, A. Azad, Z. Hu: FastSV, SIAM PP 2020), in a number of iterations that grows with the
    logarithm of the longest path.
    """
    x = as_array(input)
    if x.dtype.kind == "c":
        raise DTypeError("label: complex numbers are neither in nor out of a set")
    member, size = x != 0, math.prod(x.shape)
    offsets = _offsets("label", structure, x.ndim)
    here = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64).reshape(x.shape)
    sentinel = here.dtype.type(size)  # for elements that are in no component
    start = np.where(member, _first_of_runs(member, here) if (*(0,) * (x.ndim - 1), 1) in offsets else here, sentinel)

    if current_trace() is None:
        first = _by_forest(start, member, offsets, sentinel)
    else:
        first = _by_unions(start, member, offsets, sentinel)
    number = np.cumsum((member & (first == here)).reshape(-1))
    count = number[-1] if size else np.zeros((), np.int64)
    found = np.where(member, np.append(number, 0)[first], 0)
    if hasattr(output, "shape") and hasattr(output, "dtype") and not isinstance(output, type):
        output[...] = found.astype(output.dtype)
        return count
    return found.astype(np.int32 if output is None else np.dtype(output)), count


@dataclass(frozen=True)
class _Regions:
    """Elements and the regions that they belong to.

    `place` is for each element the index of its region among the `labels`, and their number where it is in none; None
    if the elements of one region are those of the mask.
    """

    x: Any
    mask: Any
    place: Any
    labels: np.ndarray
    shape: tuple[int, ...] | None

    def sums(self, x: Any) -> Any:
        """The sums of an array in all regions."""
        if self.place is None:
            return np.sum(x if self.mask is None else np.where(self.mask, x, 0))
        total = stored_into(np.zeros(len(self.labels) + 1))
        np.add.at(total, self.place, x.astype(np.float64).reshape(-1))
        return self.of_each(total)

    def counts(self) -> Any:
        """The numbers of elements in all regions."""
        return self.sums(np.ones(self.x.shape))

    def of_each(self, found: Any) -> Any:
        """Results of the regions in the order in which they were asked for."""
        assert self.shape is not None
        return found[:-1].reshape(self.shape)

    def of_elements(self, found: Any) -> Any:
        """For each element the result of its region."""
        if self.place is None:
            return found
        return np.append(found.reshape(-1), 0)[self.place].reshape(self.x.shape)

    def ends(self, ufunc: Any, start: Callable[[Any], Any]) -> Any:
        """The least or greatest elements of all regions, 0 in empty ones."""
        x, worst = self.x, start(self.x.dtype)
        if self.place is None:
            return ufunc.reduce((x if self.mask is None else np.where(self.mask, x, worst)).reshape(-1))
        found = stored_into(np.full(len(self.labels) + 1, worst, x.dtype))
        ufunc.at(found, self.place, x.reshape(-1))
        return np.where(self.counts() > 0, self.of_each(found), 0).astype(x.dtype)


def _regions(name: str, input: Any, labels: Any, index: Any) -> _Regions:
    x = as_array(input)
    if x.dtype.kind not in "biuf" and x.dtype.itemsize != 2:
        raise DTypeError(f"{name}: not defined for {x.dtype}")
    if labels is None:
        if index is not None:
            raise ShapeError(f"{name}: an `index` without `labels`")
        return _Regions(x, None, None, np.zeros(0), None)
    labels = np.broadcast_to(as_array(labels), x.shape)
    if index is None:
        return _Regions(x, labels > 0, None, np.zeros(0), None)
    if isinstance(index, Traced) and index._known() is None:
        raise ShapeError(f"{name}: `index` must be known when the function is traced", help="pass a list or a range")
    asked = np.asarray(index)
    flat = asked.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    repeated = np.concatenate([[False], ordered[1:] == ordered[:-1]]) if len(flat) else np.zeros(0, bool)
    if np.any(repeated):
        raise ShapeError(f"{name}: the label {ordered[repeated][0]} is in `index` twice")
    if not len(flat):
        return _Regions(x, None, np.zeros(x.size, np.int64), flat, asked.shape)
    place = np.clip(np.searchsorted(ordered, labels.reshape(-1)), 0, len(flat) - 1)
    is_asked = taken(ordered, place, 0) == labels.reshape(-1)
    place = np.where(is_asked, taken(order, place, 0), len(flat))
    return _Regions(x, None, place, flat, asked.shape)


@public("input")
def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The sum of the elements whose label is `index`, for each of a static sequence of labels.

    Without `index` the sum of those with labels above 0, without `labels` of all. Sums of labels are f64.
    """
    regions = _regions("sum_labels", input, labels, index)
    return regions.sums(regions.x)


@public("input")
def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean of the elements with each label, NaN where there are none; parameters are those of `sum_labels`."""
    regions = _regions("mean", input, labels, index)
    return regions.sums(regions.x) / regions.counts()


def _variance(regions: _Regions) -> Any:
    counts = regions.counts()
    centre = regions.sums(regions.x) / counts
    return regions.sums((regions.x - regions.of_elements(centre)) ** 2) / counts


@public("input")
def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The variance of the elements with each label; parameters are those of `sum_labels`."""
    return _variance(_regions("variance", input, labels, index))


@public("input")
def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The root of the variance of the elements with each label; parameters are those of `sum_labels`."""
    return np.sqrt(_variance(_regions("standard_deviation", input, labels, index)))


def _least(dtype: Any) -> Any:
    return -math.inf if dtype.kind not in "biu" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _greatest(dtype: Any) -> Any:
    return math.inf if dtype.kind not in "biu" else True if dtype.kind == "b" else np.iinfo(dtype).max


@public("input")
def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The least element with each label, 0 where there is none; parameters are those of `sum_labels`."""
    return _regions("minimum", input, labels, index).ends(np.minimum, _greatest)


@public("input")
def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The greatest element with each label, 0 where there is none; parameters are those of `sum_labels`."""
    return _regions("maximum", input, labels, index).ends(np.maximum, _least)


@public("input")
def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean index along each axis, weighted by the elements with a label: a tuple, or a list of one for each label.

    Parameters are those of `sum_labels`.
    """
    regions = _regions("center_of_mass", input, labels, index)
    x = regions.x.astype(np.float64)
    total = regions.sums(x)
    axes = [np.arange(n).reshape([-1 if a == b else 1 for b in range(x.ndim)]) for a, n in enumerate(x.shape)]
    found = tuple(regions.sums(x * positions) / total for positions in axes)
    if not regions.shape:
        return found
    return [tuple(row) for row in zip(*(part.reshape(-1) for part in found))]


@public()
def histogram(input: Any, min: Any, max: Any, bins: int, labels: Any = None, index: Any = None) -> Any:
    """The numbers of elements with each label in `bins` intervals of equal width from `min` to `max`, as integers.

    For several labels an array with a row for each, where SciPy has an array of objects.
    """
    regions = _regions("histogram", input, labels, index)
    count = integer("histogram", "bins", bins)
    x = regions.x.reshape(-1)
    edges = np.linspace(min, max, count + 1)
    column = np.searchsorted(edges, x, side="right") - 1
    column = np.where(x == edges[-1], count - 1, column)
    member = (x >= edges[0]) & (x <= edges[-1])
    if regions.place is None:
        if regions.mask is not None:
            member = member & regions.mask.reshape(-1)
        found = stored_into(np.zeros(count + 1, np.int64))
        np.add.at(found, np.where(member, column, count), 1)
        return found[:-1]
    rows = len(regions.labels)
    member = member & (regions.place < rows)
    found = stored_into(np.zeros(rows * count + 1, np.int64))
    np.add.at(found, np.where(member, regions.place * count + column, rows * count), 1)
    return found[:-1].reshape(*(regions.shape or ()), count)
