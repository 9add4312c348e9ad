"""Gathers: reads of elements at positions given by arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirml.errors import DTypeError, InvalidIndexError, ShapeError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import common_shape
from mlirml.ops.indexing.positions import INT64, Positions, checked_mode, positions
from mlirml.ops.reductions import as_value, normalized_axes, with_axis
from mlirml.ops.registry import ALL, operation


def broadcast_indices(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of index arrays."""
    try:
        return common_shape(*shapes)
    except ValueError:
        shown = ", ".join(str(list(shape)) for shape in shapes)
        raise InvalidIndexError(
            f"index arrays of shapes {shown} do not broadcast together",
            help="one array for each axis picks single elements; for rows and columns use `x[np.ix_(rows, columns)]`",
        ) from None


def gather(b: Builder, base: Value, axes: Sequence[int], indices: Sequence[Positions], first_dim: int) -> Value:
    """The elements of `base` at `indices` along `axes`, as one `linalg.generic` with a body that extracts them.

    The dimensions of the indices, broadcast together, are inserted at `first_dim` among the other dimensions of `base`.
    """
    common = broadcast_indices([i.values.shape for i in indices])
    rest = [d for d in range(len(base.shape)) if d not in axes]
    sizes = [base.shape[d] for d in rest]
    shape = (*sizes[:first_dim], *common, *sizes[first_dim:])
    if 0 in shape:
        return b.empty(shape, base.dtype)
    loop_of = {d: i if i < first_dim else i + len(common) for i, d in enumerate(rest)}
    squeezed = [b.squeezed(i.values, common) for i in indices]

    def index(block: Body, loops: list[str], inputs: list[str]) -> list[str]:
        found = {axis: item.write(block, x) for axis, item, x in zip(axes, indices, inputs)}
        return [found[d] if d in found else loops[loop_of[d]] for d in range(len(base.shape))]

    maps = [[first_dim + d for d in map_] for _, map_ in squeezed]
    return b.gather_at(base, shape, [value for value, _ in squeezed], maps, index)


def _indices(b: Builder, name: str, indices: Operand) -> Value:
    """Indices of a dtype that NumPy converts to its own."""
    if not np.can_cast(indices.dtype, INT64, "safe"):
        raise DTypeError(
            f"{name}: indices of {indices.dtype}, which NumPy does not convert to int64",
            help="convert them with `.astype(np.int64)`",
        )
    value = as_value(b, indices)
    return b.cast(value, INT64) if value.dtype == np.bool_ else value


@operation("indexing", np.take, dtypes=ALL, arrays=2, methods=("take",))
def take(
    b: Builder, a: Operand, indices: Operand, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Value:
    """Elements, or slices along an axis, at positions; without an axis, of the flattened array.

    A position out of bounds raises an `IndexError`, or is wrapped or clamped by mode "wrap" or "clip".
    """
    base, values = as_value(b, a), _indices(b, "take", indices)
    if axis is None:
        base, dim = b.reshape(base, (base.size,)), 0
    else:
        base = with_axis(b, base)
        (dim,) = normalized_axes("take", base.shape, axis)
    mode = checked_mode("take", mode)
    # Where NumPy looks at no index, or moves those of nothing.
    if 0 in base.shape[:dim] or (mode != "raise" and 0 in base.shape[dim + 1 :]):
        return b.empty((*base.shape[:dim], *values.shape, *base.shape[dim + 1 :]), base.dtype)
    found = positions(b, values, base.shape[dim], dim, mode)
    return gather(b, base, [dim], [found], dim)


@operation("indexing", np.take_along_axis, dtypes=ALL, arrays=2)
def take_along_axis(b: Builder, arr: Operand, indices: Operand, axis: int | None = -1) -> Value:
    """For each element of the indices the element at that index along an axis, as `argmax` and `argsort` return
    them.
    """
    base, values = as_value(b, arr), as_value(b, indices)
    if values.dtype.kind not in "iu":
        raise InvalidIndexError(f"take_along_axis: the indices must be integers, not {values.dtype}")
    if axis is None:
        base, axis = b.reshape(base, (base.size,)), 0
    if len(base.shape) != len(values.shape):
        raise ShapeError(
            f"take_along_axis: {values} has not as many dimensions as the array, {base}",
            help="add an axis to the indices, `np.expand_dims(indices, axis)`",
        )
    (dim,) = normalized_axes("take_along_axis", base.shape, axis)
    rest = broadcast_along(base.shape, values.shape, dim)
    shape = (*rest[:dim], values.shape[dim], *rest[dim:])
    if 0 in shape:
        return b.empty(shape, base.dtype)
    found = positions(b, values, base.shape[dim], dim)
    squeezed, map_ = b.squeezed(found.values, shape)

    def index(block: Body, loops: list[str], inputs: list[str]) -> list[str]:
        zero = block.op("arith.constant 0", "index")
        at = [zero if n == 1 else loop for n, loop in zip(base.shape, loops)]
        at[dim] = found.write(block, inputs[0])
        return at

    return b.gather_at(base, shape, [squeezed], [map_], index)


def broadcast_along(shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The sizes of the dimensions but for the axis, in which an array and indices broadcast."""
    first, second = ((*s[:axis], *s[axis + 1 :]) for s in (shape, indices))
    try:
        return common_shape(first, second)
    except ValueError:
        raise InvalidIndexError(
            f"indices of shape {list(indices)} and an array of shape {list(shape)} do not broadcast but for axis {axis}"
        ) from None


@operation("indexing", np.compress, dtypes=ALL, arrays=2)
def compress(b: Builder, condition: Operand, a: Operand, axis: int | None = None, out: None = None) -> Value:
    """The elements, or slices along an axis, where a condition is true; it must be known when tracing."""
    known = b.contents(condition) if isinstance(condition, Value) else np.asarray(condition.value)
    if known is None:
        raise ShapeError(
            "`np.compress`: the shape of the result would depend on the data",
            help="keep the shape: `np.where(condition, x, 0)`",
        )
    if known.ndim != 1:
        raise ShapeError(f"compress: the condition has {known.ndim} dimensions, not 1")
    (chosen,) = np.nonzero(known)
    return take.build(b, a, b.constant(chosen), axis)
