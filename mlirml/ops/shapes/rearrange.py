"""Rearrangements: operations that permute, repeat or omit the elements of an array in a new one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import is_dynamic_shape, is_size, sampled
from mlirml.errors import DTypeError, ShapeError, TracedValueError, UnsupportedSyntaxError
from mlirml.ir.text.builder import Body, Builder, Operand, Scalar, Value
from mlirml.ir.text.dtypes import mlir_name
from mlirml.ops import elementwise as ew
from mlirml.ops.reductions import as_value, normalized_axes, sum_, with_axis
from mlirml.ops.registry import ALL, operation
from mlirml.ops.shapes import sized_edits
from mlirml.ops.shapes.joins import concat
from mlirml.ops.shapes.views import ViewOp, integers


def known(name: str, what: str, value: Any) -> np.ndarray:
    """Numbers that decide a shape, as an array; an error for dynamic values."""
    sizes: frozenset[str] = frozenset()
    roots: frozenset[Any] = frozenset()
    try:
        if not isinstance(value, Value):
            return np.asarray(value.value if isinstance(value, Scalar) else value)
    except TracedValueError as found:
        sizes, roots = found.sizes, found.roots
    error = ShapeError(
        f"{name}: {what} must be known when the function is traced",
        help="pass Python integers, and list the argument in `static_argnums`",
    )
    error.sizes, error.roots, error.subject = sizes, roots, f"{what} of `{name}`"
    error.asked = value.name if isinstance(value, Value) else ""
    raise error


def taken(b: Builder, value: Value, tables: Sequence[np.ndarray | None]) -> Value:
    """`value[np.ix_(*tables)]` for constant non-negative indices along each axis; None selects all of an axis."""
    shape = tuple(n if table is None else len(table) for n, table in zip(value.shape, tables))
    if 0 in shape:
        return b.empty(shape, value.dtype)
    runs = [(0, n, 1) if table is None else _run(table) for n, table in zip(value.shape, tables)]
    slices = [run for run in runs if run is not None]
    if len(slices) == len(runs):
        starts, sizes, steps = zip(*slices) if slices else ((), (), ())
        return b.extract_slice(value, starts, sizes, steps)
    moved = [i for i, run in enumerate(runs) if run is None]
    inputs = [b.constant(np.asarray(tables[i], np.int64)) for i in moved]

    def body(block: Body, xs: list[str], accumulator: str) -> str:
        indices = [block.op(f"linalg.index {i}", "index") for i in range(len(shape))]
        for axis, run in enumerate(runs):
            if run is None:
                indices[axis] = block.op(f"arith.index_cast {xs[moved.index(axis)]}", "i64 to index")
            elif run[0] or run[2] != 1:
                start, step = (block.op(f"arith.constant {k}", "index") for k in (run[0], run[2]))
                scaled = block.op(f"arith.muli {indices[axis]}, {step}", "index")
                indices[axis] = block.op(f"arith.addi {scaled}, {start}", "index")
        return block.op(f"tensor.extract {value.name}[{', '.join(indices)}]", value.type)

    iterators = ["parallel"] * len(shape)
    return b.generic(inputs, [[i] for i in moved], b.empty(shape, value.dtype), range(len(shape)), iterators, body)


def _run(table: np.ndarray) -> tuple[int, int, int] | None:
    """Start, size and step of indices with one positive step."""
    steps = np.diff(table)
    if len(table) > 1 and (steps[0] < 1 or (steps != steps[0]).any()):
        return None
    return int(table[0]), len(table), int(steps[0]) if len(table) > 1 else 1


def _per_axis(name: str, value: Any, count: int) -> list[tuple[Any, ...]]:
    """A number, pair or list of pairs as one pair for each axis, as `np.pad` reads it."""
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (count, 2)).tolist()]
    except ValueError:
        raise ShapeError(f"pad: {name} {value!r} gives no pair for each of {count} axes") from None


@operation("rearrangement", np.roll, dtypes=ALL, scalars=False)
def roll(b: Builder, a: Operand, shift: Any, axis: Any = None) -> Value:
    """Elements moved along axes; those that leave at one end come in at the other. Without an axis, flattened."""
    value = as_value(b, a)
    if axis is None:
        total = sum(integers("roll", "shifts", np.atleast_1d(known("roll", "the shift", shift))))
        return b.reshape(_rolled(b, b.reshape(value, (value.size,)), {0: total}), value.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = [normalized_axes("roll", value.shape, i)[0] for i in axes]
    try:
        shifts, repeated = np.broadcast_arrays(known("roll", "the shift", shift), places)
    except ValueError:
        raise ShapeError(f"roll: {np.size(shift)} shifts do not fit {len(places)} axes") from None
    moves: dict[int, int] = {}
    for dim, distance in zip(repeated.tolist(), integers("roll", "shifts", shifts)):
        moves[dim] = moves.get(dim, 0) + distance
    return _rolled(b, value, moves)


def _rolled(b: Builder, value: Value, shifts: dict[int, int]) -> Value:
    """Split along each axis in two, and join the halves in reverse order."""
    if value.size == 0:
        return value
    parts = []
    for axis, n in enumerate(value.shape):
        cut = -shifts[axis] % n if shifts.get(axis, 0) else 0
        parts.append([(cut, 0, n - cut), (0, n - cut, cut)] if cut else [(0, 0, n)])
    if all(len(part) == 1 for part in parts):
        return value
    result, ones = b.empty(value.shape, value.dtype), [1] * len(value.shape)
    for corner in itertools.product(*parts):
        sources, targets, sizes = zip(*corner)
        result = b.insert_slice(b.extract_slice(value, sources, sizes, ones), result, targets, sizes, ones)
    return result


@operation("rearrangement", np.tile, dtypes=ALL, scalars=False)
def tile(b: Builder, A: Operand, reps: Any) -> Value:
    """The whole array repeated along each axis."""
    value = as_value(b, A)
    counts = integers("tile", "reps", np.atleast_1d(known("tile", "reps", reps)))
    if min(counts, default=0) < 0:
        raise ShapeError(f"tile: reps cannot be negative, got {list(counts)}")
    rank = max(len(counts), len(value.shape))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(value.shape)) + value.shape
    narrow = [size for n in shape for size in (1, n)]
    wide = [size for pair in zip(counts, shape) for size in pair]
    return _spread(b, value, narrow, wide, [c * n for c, n in zip(counts, shape)])


def _spread(b: Builder, value: Value, narrow: list[int], wide: list[int], shape: list[int]) -> Value:
    """Repeat by a reshape, a broadcast and a reshape."""
    if 0 in shape:
        return b.empty(shape, value.dtype)
    spread = b.broadcast(b.reshape(value, tuple(narrow)), tuple(wide), value.dtype)
    return b.reshape(spread, tuple(shape))


@operation("rearrangement", np.repeat, dtypes=ALL, methods=("repeat",), scalars=False)
def repeat(b: Builder, a: Operand, repeats: Any, axis: Any = None) -> Value:
    """Every element repeated along an axis, all alike or each by its own known number."""
    value = as_value(b, a)
    counts = np.atleast_1d(known("repeat", "repeats", repeats))
    if counts.ndim != 1 or counts.dtype.kind not in "biu":
        raise DTypeError(f"repeat: repeats must be integers, one or one for each element, got {repeats!r}")
    if axis is None:
        value, axis = b.reshape(value, (value.size,)), 0
    value = with_axis(b, value)
    (dim,) = normalized_axes("repeat", value.shape, axis)
    n = value.shape[dim]
    if (counts < 0).any():
        raise ShapeError("repeat: repeats cannot be negative")
    if len(counts) == 1:
        before, after = value.shape[:dim], value.shape[dim + 1 :]
        count = int(counts[0])
        return _spread(b, value, [*before, n, 1, *after], [*before, n, count, *after], [*before, n * count, *after])
    if len(counts) != n:
        raise ShapeError(f"repeat: {len(counts)} repeats for {n} elements along axis {dim} of {value}")
    table = np.repeat(np.arange(n), counts)
    return taken(b, value, [table if i == dim else None for i in range(len(value.shape))])


_TABLES = ("edge", "reflect", "symmetric", "wrap")


@operation("rearrangement", np.pad, dtypes=ALL, scalars=False)
def pad(
    b: Builder,
    array: Operand,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: str = "even",
) -> Value:
    """The array with elements added at both ends of its axes: constants, or its own by edge, reflect or wrap."""
    value = as_value(b, array)
    rank = len(value.shape)
    if isinstance(pad_width, dict):
        pairs = {normalized_axes("pad", value.shape, k)[0]: pair for k, pair in pad_width.items()}
        pad_width = [np.broadcast_to(pairs.get(i, 0), 2).tolist() for i in range(rank)]
    if not rank:
        return value
    given = known("pad", "pad_width", pad_width).tolist()
    widths = [integers("pad", "widths", p) for p in _per_axis("pad_width", given, rank)]
    if any(w < 0 for pair in widths for w in pair):
        raise ShapeError(f"pad: widths cannot be negative, got {pad_width!r}")
    if mode not in ("constant", "empty", *_TABLES):
        raise UnsupportedSyntaxError(
            f"pad: mode {mode!r} is not compiled", help=f"compiled are {', '.join(('constant', *_TABLES))}"
        )
    if reflect_type != "even":
        raise UnsupportedSyntaxError(f"pad: reflect_type {reflect_type!r} is not compiled", help="compiled is 'even'")
    for axis, (before, after) in enumerate(widths):
        if mode in _TABLES and is_size(value.shape[axis]) and before + after:
            value, widths[axis] = sized_edits.padded(b, value, axis, (before, after), mode), (0, 0)
    shape = [n + sum(pair) for n, pair in zip(value.shape, widths)]
    ones, inner = [1] * rank, [before for before, _ in widths]
    result = b.insert_slice(value, b.empty(shape, value.dtype), inner, value.shape, ones)
    if mode in ("constant", "empty"):
        fills = _fills(b, constant_values if mode == "constant" else 0, rank, value.dtype)
        tables = []
    else:
        if any(n == 0 and sum(pair) for n, pair in zip(value.shape, widths)):
            raise ShapeError(f"pad: {value} has no elements to take for mode {mode!r}")
        tables = [_padded_indices(n, pair, mode) for n, pair in zip(value.shape, widths)]
    for axis, pair in enumerate(widths):
        # The whole of the earlier axes, this axis's margin, the inner range of the later axes: each element is written
        # once.
        for side, width in enumerate(pair):
            offsets = [*[0] * axis, 0 if side == 0 else shape[axis] - width, *inner[axis + 1 :]]
            sizes = (*shape[:axis], width, *value.shape[axis + 1 :])
            if 0 in sizes:
                continue
            if tables:
                margin = tables[axis][:width] if side == 0 else tables[axis][-width:]
                slab = taken(b, value, [*tables[:axis], margin, *[None] * (rank - axis - 1)])
            else:
                slab = b.broadcast(fills[axis][side], sizes, value.dtype)
            result = b.insert_slice(slab, result, offsets, sizes, ones)
    return result


def _padded_indices(size: int, pair: Any, mode: str) -> Any:
    """The indices along a padded axis; None for an axis that is not padded, whose size may be dynamic."""
    return np.pad(np.arange(size), pair, mode) if sum(pair) else None  # type: ignore[call-overload]


def _fills(b: Builder, given: Any, rank: int, dtype: np.dtype) -> list[tuple[Operand, ...]]:
    """The constants of each axis, cast as a store does; a traced scalar applies to all axes."""
    if isinstance(given, Value):
        if given.size != 1:
            raise ShapeError(f"pad: traced constant_values must be one scalar, not {given}")
        return [(b.reshape(given, ()),) * 2] * rank
    pairs = _per_axis("constant_values", given.value if isinstance(given, Scalar) else given, rank)
    return [tuple(Scalar(np.asarray(x).astype(dtype).reshape(1)[0], weak=False) for x in pair) for pair in pairs]


def _triangle(b: Builder, name: str, m: Operand, k: Any, *, lower: bool) -> Value:
    value = as_value(b, m)
    if not value.shape:
        raise ShapeError(f"{name}: needs at least 1 dimension, {value}")
    shape = value.shape if len(value.shape) > 1 else value.shape * 2
    offset, rank = int(known(name, "k", k)), len(shape)

    def body(block: Body, xs: list[str]) -> str:
        row, column = (block.op(f"linalg.index {i}", "index") for i in (rank - 2, rank - 1))
        edge = block.op(f"arith.addi {row}, {block.op(f'arith.constant {offset}', 'index')}", "index")
        keep = block.op(f"arith.cmpi {'sle' if lower else 'sge'}, {column}, {edge}", "index")
        return block.op(f"arith.select {keep}, {xs[0]}, {block.constant(0, value.dtype)}", mlir_name(value.dtype))

    return b.elementwise([value], [value.dtype], value.dtype, shape, body)


@operation("rearrangement", np.tril, dtypes=ALL)
def tril(b: Builder, m: Operand, k: Any = 0) -> Value:
    """The matrices with zeros above the k-th diagonal."""
    return _triangle(b, "tril", m, k, lower=True)


@operation("rearrangement", np.triu, dtypes=ALL)
def triu(b: Builder, m: Operand, k: Any = 0) -> Value:
    """The matrices with zeros below the k-th diagonal."""
    return _triangle(b, "triu", m, k, lower=False)


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    """The number of elements of a diagonal."""
    return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)


@operation("rearrangement", np.diagonal, dtypes=ALL, methods=("diagonal",))
def diagonal(b: Builder, a: Operand, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The elements whose indices along two axes differ by the offset, along a new last axis."""
    value = as_value(b, a)
    if len(value.shape) < 2:
        raise ShapeError(f"diagonal: needs at least 2 dimensions, {value}")
    (row,), (column,) = (normalized_axes("diagonal", value.shape, i) for i in (axis1, axis2))
    if row == column:
        raise ShapeError(f"diagonal: axis1 and axis2 are both {row}")
    k = int(known("diagonal", "the offset", offset))
    m, n = value.shape[row], value.shape[column]
    size = diagonal_length(m, n, k)
    rest = [i for i in range(len(value.shape)) if i not in (row, column)]
    shape = (*(value.shape[i] for i in rest), size)
    if 0 in shape:
        return b.empty(shape, value.dtype)
    if (row, column, len(value.shape)) == (0, 1, 2):
        return b.extract_slice(b.reshape(value, (m * n,)), [k if k > 0 else -k * n], [size], [n + 1])

    def index(block: Body, loops: list[str]) -> list[str]:
        indices = dict(zip(rest, loops))
        for axis, start in ((row, max(-k, 0)), (column, max(k, 0))):
            first = block.op(f"arith.constant {start}", "index")
            indices[axis] = block.op(f"arith.addi {loops[-1]}, {first}", "index")
        return [indices[i] for i in range(len(value.shape))]

    return b.gather(value, shape, index)


@dataclass(frozen=True)
class Diagonal(ViewOp):
    """A diagonal as NumPy has it: a view that sees later stores, and cannot be stored into."""

    offset: int
    axis1: int
    axis2: int

    def forward(self, b: Builder, base: Value) -> Value:
        return diagonal.build(b, base, self.offset, self.axis1, self.axis2)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        raise ShapeError("assignment destination is read-only: a diagonal", help="take a `.copy()` first")

    def apply(self, array: np.ndarray) -> np.ndarray:
        return np.diagonal(array, self.offset, self.axis1, self.axis2)

    @property
    def writable(self) -> bool:
        return False


def diagonal_view(shape: tuple[int, ...], offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Diagonal | None:
    """The view for an array of this shape; None where NumPy refuses the arguments, or `np.diag` makes a matrix."""
    try:
        size = np.diagonal(np.broadcast_to(np.int8(0), sampled(shape)), offset, axis1, axis2).shape
        if is_dynamic_shape(shape):
            row, column = int(axis1) % len(shape), int(axis2) % len(shape)
            length = diagonal_length(shape[row], shape[column], int(offset))
            size = (*(n for d, n in enumerate(shape) if d not in (row, column)), length)
        return Diagonal(size, int(offset), int(axis1), int(axis2))
    except (ValueError, TypeError):
        return None


@operation("rearrangement", np.diag, dtypes=ALL)
def diag(b: Builder, v: Operand, k: Any = 0) -> Value:
    """The k-th diagonal of a matrix, or the matrix that has a vector as its k-th diagonal and zeros elsewhere."""
    value = as_value(b, v)
    if len(value.shape) == 2:
        return diagonal.build(b, value, k)
    if len(value.shape) != 1:
        raise ShapeError(f"diag: needs 1 or 2 dimensions, {value}")
    offset = int(known("diag", "k", k))
    size = value.size + abs(offset)
    flat = b.filled((size * size,), value.dtype, 0)
    first = offset if offset > 0 else -offset * size
    return b.reshape(b.insert_slice(value, flat, [first], [value.size], [size + 1]), (size, size))


@operation("rearrangement", np.diagflat, dtypes=ALL)
def diagflat(b: Builder, v: Operand, k: Any = 0) -> Value:
    """The matrix that has the flattened array as its k-th diagonal."""
    value = as_value(b, v)
    return diag.build(b, b.reshape(value, (value.size,)), k)


@operation("rearrangement", np.trace, dtypes=ALL, methods=("trace",), tolerance=8)
def trace(
    b: Builder, a: Operand, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Value:
    """Sum along a diagonal."""
    return sum_.build(b, diagonal.build(b, a, offset, axis1, axis2), -1, dtype)


@operation("rearrangement", np.delete, dtypes=ALL)
def delete(b: Builder, arr: Operand, obj: Any, axis: Any = None) -> Value:
    """The array without the slices at known indices along an axis; flattened without one."""
    value = as_value(b, arr)
    if axis is None:
        value, axis = b.reshape(value, (value.size,)), 0
    (dim,) = normalized_axes("delete", value.shape, axis)
    index = _index("delete", obj)
    if is_size(value.shape[dim]):
        return sized_edits.without(b, value, dim, index)
    kept = _edited(lambda positions: np.delete(positions, index), value.shape[dim])
    return taken(b, value, [kept if i == dim else None for i in range(len(value.shape))])


@operation("rearrangement", np.insert, dtypes=ALL, array_options=("values",))
def insert(b: Builder, arr: Operand, obj: Any, values: Any, axis: Any = None) -> Value:
    """The array with values inserted before constant indices along an axis; flattened without one."""
    value, new = as_value(b, arr), as_value(b, values if isinstance(values, (Value, Scalar)) else Scalar(values))
    new = b.cast(new, value.dtype)
    if axis is None:
        value, axis = b.reshape(value, (value.size,)), 0
    (dim,) = normalized_axes("insert", value.shape, axis)
    index = _index("insert", obj)
    new = b.reshape(new, (1,) * (len(value.shape) - len(new.shape)) + new.shape)
    if not isinstance(index, slice) and index.ndim == 0 and index.dtype.kind != "b":  # one position for all values
        order = list(range(1, len(new.shape)))
        order.insert(dim, 0)
        new = b.transpose(new, order)
        count = new.shape[dim]
    elif isinstance(index, slice) and is_size(value.shape[dim]):
        count = len(sized_edits.positions(value.shape[dim], index, 0))
    elif isinstance(index, slice):
        count = len(range(*index.indices(value.shape[dim])))
    elif index.dtype.kind != "b" and index.size == 1:  # as NumPy, which takes the one index for all values
        count = new.shape[dim]
    else:
        count = int(np.count_nonzero(index)) if index.dtype.kind == "b" else index.size
    n = value.shape[dim]
    wanted = tuple(count if i == dim else size for i, size in enumerate(value.shape))
    if ew.broadcast_shapes("insert", (new, Value("", wanted, value.dtype))) != wanted:
        raise ShapeError(f"insert: values {new} do not broadcast to shape {list(wanted)}")
    if is_size(n):
        return sized_edits.with_inserted(b, value, b.broadcast(new, wanted, value.dtype), dim, index)
    joined = concat.build(b, [value, b.broadcast(new, wanted, value.dtype)], dim)
    table = _edited(lambda positions: np.insert(positions, index, np.arange(n, n + count)), n)
    return taken(b, joined, [table if i == dim else None for i in range(len(value.shape))])


def _index(name: str, obj: Any) -> Any:
    return obj if isinstance(obj, slice) else known(name, "the indices", obj)


def _edited(edit: Any, size: int) -> np.ndarray:
    """The original indices of the elements after an edit that NumPy applies to the range of indices."""
    try:
        result: np.ndarray = edit(np.arange(size))
    except (IndexError, ValueError) as error:
        raise ShapeError(str(error)) from None
    return result


@operation("rearrangement", np.resize, dtypes=ALL, scalars=False)
def resize(b: Builder, a: Operand, new_shape: Any) -> Value:
    """The elements in a new shape, repeated or cut as its size wants."""
    value = as_value(b, a)
    shape = integers("resize", "the shape", new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,))
    if min(shape, default=0) < 0:
        raise ShapeError(f"resize: sizes cannot be negative, got {list(shape)}")
    size = math.prod(shape)
    if value.size == 0 or size == 0:
        return b.filled(shape, value.dtype, 0)
    flat = tile.build(b, b.reshape(value, (value.size,)), -(-size // value.size))
    return b.reshape(b.extract_slice(flat, [0], [size], [1]), shape)
