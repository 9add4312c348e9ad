"""Arrays whose lengths depend on data: the elements under a mask, side by side at the beginning of a buffer.

    i = np.flatnonzero(x > 0)            count = the number of true elements
    y = x[i]                             i = positions[:count]

The buffer is as long as the mask, and the array is a slice of it, whose length is a number of the program. What lies
after it in the buffer is undefined, and never read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import is_size, static_needed
from mlirml.errors import CaptureError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Axis, python_integer
from mlirml.frontend.loops.dynamic_slices.slices import (
    DynamicSlice,
    check_unchanged,
    combined,
    part,
    store,
    transposed,
)
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Value
from mlirml.ops.indexing.compaction import compressed, in_rows, mask_counts, true_positions

if TYPE_CHECKING:
    from mlirml.frontend.arrays.masked import MaskedElements


@dataclass(frozen=True)
class Compaction:
    """The counts of a mask, which has been made one row, and the number of its true elements."""

    trace: Trace
    mask: Value
    counts: Value
    count: Traced

    @property
    def size(self) -> int:
        """The number of elements of the mask."""
        return self.mask.shape[1]

    def positions(self) -> DynamicSlice:
        """The positions of the true elements."""
        found = true_positions(self.trace.builder, self.mask, self.counts)
        return self._beginning(found)

    def compressed(self, values: Traced, dims: int) -> DynamicSlice:
        """The slices of an array at the true elements of the mask, which has its first `dims` dimensions."""
        b = self.trace.builder
        return self._beginning(compressed(b, self.mask, self.counts, in_rows(b, values._read(), dims)))

    def _beginning(self, rows: Value) -> DynamicSlice:
        b = self.trace.builder
        buffer = Traced(self.trace, Cell(b.reshape(rows, rows.shape[1:]), owned=True))
        return beginning(buffer, self.count)


def beginning(buffer: Traced, count: Traced) -> DynamicSlice:
    """The first `count` elements, or slices, of an array."""
    shape = [count, *buffer.shape[1:]]
    return part(buffer, [Axis(0, 1, dim) for dim in range(buffer.ndim)], shape, buffer.shape)


def compaction_of(trace: Trace, mask: Traced) -> Compaction:
    """The compaction of a mask, which is counted once."""
    b, value = trace.builder, mask._read()
    known = trace.compactions.get(value.name)
    if known is not None:
        found, region, *line = known
        if region.open and b.has_line(*line):
            return found
    for n in filter(is_size, mask.shape):
        raise static_needed(n, "the most elements under a mask")  # type: ignore[arg-type]
    rows = in_rows(b, value, mask.ndim)
    counts = mask_counts(b, rows)
    of_counts = Traced(trace, Cell(counts))
    number = of_counts[0, counts.shape[1] - 1]._read()
    trace.integers.forms[number.name] = trace.integers.symbol(Linear(0), Linear(mask.size))
    result = Compaction(trace, rows, counts, python_integer(trace, number))
    trace.compactions[value.name] = (result, b.region, *b.last_line())
    return result


def truth(trace: Trace, x: Traced) -> Traced:
    """The elements of an array as bools."""
    if x.dtype == np.bool_:
        return x
    return trace.call_ufunc(np.not_equal, "__call__", (x, 0), {})


def compacted_elements(x: MaskedElements) -> DynamicSlice:
    """The elements under a mask side by side."""
    trace, values, mask, lead = x._trace, x._values, x._mask, x._lead
    if x._origin is not None and mask.size and trace.builder.direct:
        compute, operands = x._origin
        return combined(trace, compute, lambda *_: np.ones((), x.dtype), operands)
    if not mask.size:
        empty = values.reshape((*values.shape[:lead], 0, *values.shape[lead + mask.ndim :]))
        return part(empty, [Axis(0, 1, d) for d in range(empty.ndim)], empty.shape, empty.shape)
    found = compaction_of(trace, mask)
    rank = mask.ndim
    order = [*range(lead, lead + rank), *range(lead), *range(lead + rank, values.ndim)]
    moved = values.transpose(order) if lead else values
    result = found.compressed(moved, rank)
    if not lead:
        return result
    return transposed(result, [*range(1, lead + 1), 0, *range(lead + 1, result.ndim)])


def sized_parts(x: Any) -> tuple[list[Traced], tuple[int, ...]]:
    """The buffer of a dynamic array, followed by its lengths, and the dimensions that they are the lengths of."""
    x = as_slice(x)
    trace = x._trace
    dims = tuple(d for d, length in enumerate(x._shape) if isinstance(length, Traced))
    lengths = [x._length(d) for d in dims]
    return [whole_buffer(x), *(n if isinstance(n, Traced) else trace.known(np.asarray(n)) for n in lengths)], dims


def as_slice(x: Any) -> DynamicSlice:
    """A dynamic array of any class as a slice."""
    if isinstance(x, DynamicSlice):
        return x
    if not x._trace.builder.direct and (x._origin is None or not x._trace.has_source):
        return compacted_elements(x)
    # The loop front end computes nothing for elements outside of the mask.
    return x.side_by_side()


def whole_buffer(x: DynamicSlice) -> Traced:
    """An array of the greatest lengths that begins with `x`."""
    check_unchanged(x)
    found = beginning_of(x)
    if found is not None:
        return found
    out = Traced(x._trace, Cell(x._trace.builder.empty(x._most, x.dtype), owned=True))
    store(part(out, [Axis(0, 1, dim) for dim in range(x.ndim)], x._shape, x._most), x)
    return out


def beginning_of(x: DynamicSlice) -> Traced | None:
    """The array of the greatest lengths that a slice is the beginning of; None for other slices."""
    read = x._location
    if read is None or tuple(read.base.shape) != x._most or [axis.dim for axis in read.axes] != [*range(x.ndim)]:
        return None
    return read.base if all(map(_is_beginning, read.axes)) else None


def true_everywhere(trace: Trace, x: Any, size: int | None = None) -> Traced:
    """A mask of any class as an array that is false after its elements: of its greatest length, or of `size`.

    That of a slice of an array is made once, until the array changes.
    """
    if not isinstance(x, DynamicSlice):
        return truth(trace, trace.array(x, copy=False))
    shape = x._most if size is None else (size,)
    key = _identity(trace, x, shape)
    known = None if key is None else trace.compactions.get(key)
    if known is not None:
        found, region, *line = known
        if region.open and trace.builder.has_line(*line):
            return found
    out = trace.known(np.zeros(shape, np.bool_))._copy()
    elements = x
    if x.dtype != np.bool_:
        not_zero = lambda y: trace.call_operator(np.not_equal, (y, 0))  # noqa: E731
        elements = combined(trace, not_zero, lambda y: np.not_equal(y, 0), [x])
    most = tuple(map(min, shape, x._most))
    store(part(out, [Axis(0, 1, dim) for dim in range(x.ndim)], x._shape, most), elements)
    if key is not None:
        out._read()
        trace.compactions[key] = (out, trace.builder.region, *trace.builder.last_line())
    return out


def _is_beginning(axis: Axis) -> bool:
    return type(axis.start) is int and type(axis.step) is int and (axis.start, axis.step) == (0, 1)


def _identity(trace: Trace, x: DynamicSlice, shape: tuple[int, ...]) -> Any:
    """A key for the elements of a slice that begins where its array does; None for others."""
    read = x._location
    if read is None or not all(map(_is_beginning, read.axes)):
        return None
    lengths = tuple(n if isinstance(n, int) else n._read().name for n in x._shape)
    return read.base._read().name, tuple(axis.dim for axis in read.axes), lengths, shape


# NumPy's functions.


def flatnonzero(trace: Trace, a: Any) -> DynamicSlice:
    """`np.flatnonzero`."""
    return nonzero(trace, ravelled(trace, a))[0]


def ravelled(trace: Trace, a: Any) -> Any:
    """An array in one dimension."""
    if isinstance(a, DynamicSlice):
        return a if a.ndim == 1 else _refuse_dimensions("ravel")
    return trace.array(a, copy=False).reshape(-1)


def _refuse_dimensions(name: str) -> CaptureError:
    raise ShapeError(f"{name}: an array of several dimensions, one of which depends on the data")


def nonzero(trace: Trace, a: Any) -> tuple[DynamicSlice, ...]:
    """`np.nonzero`."""
    if isinstance(a, DynamicSlice) and a.ndim != 1:
        _refuse_dimensions("nonzero")
    mask = true_everywhere(trace, a)
    if not mask.ndim:
        raise ShapeError("nonzero: needs an array of 1 dimension or more", help="use `np.atleast_1d(x)`")
    shape = mask.shape
    if not mask.size:
        return tuple(part(trace.known(np.zeros(0, np.int64)), [Axis(0, 1, 0)], [0], [0]) for _ in shape)
    flat = compaction_of(trace, mask).positions()
    return tuple(_coordinate(trace, flat, shape, dim) for dim in range(len(shape)))


def _coordinate(trace: Trace, flat: DynamicSlice, shape: Sequence[int], dim: int) -> DynamicSlice:
    """The indices along a dimension of elements at these positions in row-major order."""
    if len(shape) == 1:
        return flat
    inner, own = math.prod(shape[dim + 1 :]), shape[dim]

    def index(y: Any) -> Any:
        if inner > 1:
            y = trace.call_operator(np.floor_divide, (y, np.int64(inner)))
        return trace.call_operator(np.remainder, (y, np.int64(own))) if dim else y

    return combined(trace, index, lambda y: y, [flat])


def argwhere(trace: Trace, a: Any) -> DynamicSlice:
    """`np.argwhere`."""
    if isinstance(a, Traced) and not a.ndim:
        raise ShapeError("argwhere: needs an array of 1 dimension or more", help="use `np.atleast_1d(x)`")
    columns = nonzero(trace, a)
    first = columns[0]
    out = Traced(trace, Cell(trace.builder.empty((first._most[0], len(columns)), np.dtype(np.int64)), owned=True))
    for number, column in enumerate(columns):
        axes = [Axis(0, 1, 0), Axis(number, 1, None)]
        store(part(out, axes, first._shape, first._most), column)
    whole = [Axis(0, 1, 0), Axis(0, 1, 1)]
    return part(out, whole, [*first._shape, len(columns)], [*first._most, len(columns)])
