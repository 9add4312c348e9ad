"""Stores at index arrays: `x[idx] = v`, `np.add.at(x, idx, v)`, also combined with slices and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import same_shape
from mlirml.errors import ShapeError
from mlirml.frontend.arrays.indexing import Index, mask_does_not_fit, parse_index
from mlirml.ir.text.builder import Operand, Scalar, Value
from mlirml.ir.text.dtypes import check_integer, common_shape
from mlirml.ops.indexing.scatter import Scatter, Update
from mlirml.ops.registry import OpDef

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced
    from mlirml.frontend.tracing.trace import Trace


def store(part: Traced, index: Index, value: Any) -> None:
    """`x[index] = value`, where `part` is the view that the index's views lead to. Of equal positions the last one
    wins.
    """
    trace = part._trace
    if type(value) is int:
        check_integer("assignment", value, part.dtype)
    part._check_part(value)
    write(part, index, trace.lift(value), "set")


def write(part: Traced, index: Index, new: Operand, combiner: str, update: Update | None = None) -> None:
    """Store new elements, or the result of `update` on the old and the new ones."""
    b, base = part._trace.builder, part._read()
    new = fitted(part, index, new)
    if update is None and isinstance(new, Value):
        new = b.cast(new, base.dtype)
    found = tuple(index.positions(b, base.shape))
    part._write(Scatter(base, index.axes, found, index.first_dim, combiner, update).write(b, new))


def fitted(part: Traced, index: Index, new: Operand) -> Operand:
    """New elements without the dimensions that `None` adds to the elements at the index."""
    shape = assigned_shape(new, index.shape, f"the elements at the index, of shape {list(index.shape)}")
    if isinstance(new, Scalar):
        return new
    first = len(index.shape) - len(shape)
    kept = tuple(n for d, n in enumerate(shape) if first + d not in index.new_axes)
    return part._trace.builder.reshape(new, kept)


def assigned_shape(new: Operand, onto: tuple[int, ...], what: str) -> tuple[int, ...]:
    """The shape of new elements without leading sizes of 1 that `onto`, described by `what`, does not have."""
    shape = new.shape
    while len(shape) > len(onto) and shape[0] == 1:
        shape = shape[1:]
    try:
        fits = same_shape(common_shape(shape, onto), onto)
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"assignment: {new} does not broadcast to {what}",
            help="sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`",
        )
    return shape


@dataclass(frozen=True)
class Masked:
    """A mask and the `part` of an array that it indexes: it broadcasts to all but the last `free` dimensions."""

    part: Traced
    mask: Any
    free: int
    known: bool


def masked_part(array: Traced, index: Any) -> Masked | None:
    """The mask in an index without arrays of positions, or None if there is none."""
    items = list(index) if isinstance(index, tuple) else [index]
    mask_positions = [i for i, item in enumerate(items) if getattr(item, "dtype", None) == np.bool_]
    if len(mask_positions) != 1 or (isinstance(index, tuple) and np.ndim(items[mask_positions[0]]) == 0):
        return None
    part, first, mask = array, 0, items[mask_positions[0]]
    rank = np.ndim(mask)
    if isinstance(index, tuple):
        others = [item for i, item in enumerate(items) if i != mask_positions[0] and _counts(item)]
        if any(isinstance(item, list) or np.ndim(item) for item in others):
            return None
        before = items[: mask_positions[0]]
        items[mask_positions[0] : mask_positions[0] + 1] = [slice(None)] * rank
        parsed = parse_index(array._trace, array._shape, tuple(items))
        part = array._viewed(*parsed.views)
        used = sum(item is not None and item is not Ellipsis for item in items)
        sizes = [array.ndim - used if item is Ellipsis else int(not _counts(item)) for item in before]
        first = sum(sizes)
    shape = np.shape(mask)
    if shape != part.shape[first : first + rank]:
        raise mask_does_not_fit(shape, part.shape[first:] if isinstance(index, tuple) else part.shape)
    free = part.ndim - first - rank
    known = not hasattr(mask, "_known") or mask._known() is not None
    return Masked(part, mask.reshape(shape + (1,) * free), free, known)


def unknown_mask(array: Traced, index: Any) -> Masked | None:
    """The mask in an index for reading, if it is dynamic and the elements under it can keep their positions."""
    if isinstance(index, tuple):
        taking = [i for i, item in enumerate(index) if _counts(item)]
        if taking and taking[-1] - taking[0] != len(taking) - 1:  # NumPy puts their dimensions first
            return None
    masked = masked_part(array, index)
    return None if masked is None or masked.known else masked


def _counts(item: Any) -> bool:
    """True if an item of an index removes a dimension."""
    return not (item is None or item is Ellipsis or isinstance(item, slice))


def apply_at(trace: Trace, record: OpDef, name: str, array: Any, index: Any, value: Any) -> None:
    """`ufunc.at(array, index, value)`: `array[index] = ufunc(array[index], value)` for each position in order."""
    if not hasattr(array, "_cell"):
        raise trace.real_array_error()
    masked = masked_part(array, index)
    if masked is not None and not masked.known:
        part, mask = masked.part, masked.mask
        if np.ndim(value) > masked.free:
            raise ShapeError(
                f"{name}: the length that the values need would depend on the data, as the mask does",
                help="write `x[...] = np.where(mask, x + value, x)` with a value of the shape of x",
            )
        new = trace.call_function(record.reference, (part, value), {})
        part._assign(trace.call_function(np.where, (mask, new.astype(array.dtype), part), {}))
        return
    parsed = parse_index(trace, array._shape, index)
    part = array._viewed(*parsed.views)
    if not parsed.arrays:
        part._assign(trace.call_function(record.reference, (part, value), {}))
        return
    operand = trace.lift(trace.array(value) if isinstance(value, (list, tuple)) else value)

    def update(b: Any, old: Value, new: Operand) -> Value:
        result: Value = record.build(b, old, new)
        stored: Value = b.cast(result, old.dtype)  # to any dtype, as in NumPy
        return stored

    write(part, parsed, operand, record.name, update)
