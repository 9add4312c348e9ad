"""Views: operations whose result shares the memory of their operand in NumPy, so that stores go through both ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Size, exact_quotient, is_dynamic_shape, same, same_shape, sampled
from mlirml.errors import ShapeError, UnsupportedSyntaxError
from mlirml.ir.text.builder import Body, Builder, Region, Value
from mlirml.ir.text.complex import ComplexBuilder, ComplexValue
from mlirml.ir.text.dtypes import common_shape, mlir_name
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.registry import ALL, operation


@dataclass(frozen=True)
class ViewOp:
    """One step from an array to a view of it. `shape` is the view's shape."""

    shape: tuple[int, ...]

    def forward(self, b: Builder, base: Value) -> Value:
        """The view's value."""
        raise NotImplementedError

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        """`base` after `new` was stored into the whole view."""
        raise NotImplementedError

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The same view of a real array."""
        raise NotImplementedError

    def like(self, array: np.ndarray) -> np.ndarray:
        """A view of a real array with the strides of this one; its offset may differ."""
        return self.apply(array)

    @property
    def known(self) -> bool:
        """True if the offsets in the base, and the shape, are known at trace time."""
        return not is_dynamic_shape(self.shape)

    @property
    def writable(self) -> bool:
        """True if NumPy lets one store into such a view."""
        return True


@dataclass(frozen=True)
class Slice(ViewOp):
    """Basic indexing: for each dimension of the base a start, a length and a step; `drop` were integer indices."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    drop: tuple[int, ...]

    def forward(self, b: Builder, base: Value) -> Value:
        if base.size == 0 or 0 in self.shape:
            return b.empty(self.shape, base.dtype)
        starts, steps, flips = self._ascending()
        value = base
        if not self._is_whole(starts, steps, base.shape):
            value = b.extract_slice(base, starts, self.sizes, steps, self.drop)
        return _flip(b, value, flips)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        starts, steps, flips = self._ascending()
        new = _flip(b, new, flips)
        if self._is_whole(starts, steps, base.shape):
            return new
        return b.insert_slice(new, base, starts, self.sizes, steps)

    def _is_whole(self, starts: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """True if the slice with ascending `steps` has all elements of a base of this shape."""
        if self.drop or not same_shape(self.sizes, shape):
            return False
        return all(type(start) is int and start == 0 for start in starts) and all(step == 1 for step in steps)

    def apply(self, array: np.ndarray) -> np.ndarray:
        index: list[Any] = []
        for i, (start, size, step) in enumerate(zip(self.starts, self.sizes, self.steps)):
            stop: int | None = start + size * step
            index.append(
                start if i in self.drop else slice(start, None if stop is not None and stop < 0 else stop, step)
            )
        index.append(Ellipsis)  # keeps a 0-d result an array
        return array[tuple(index)]

    def like(self, array: np.ndarray) -> np.ndarray:
        return replace(self, starts=sampled(self.starts), sizes=sampled(self.sizes)).apply(array)

    def _ascending(self) -> tuple[tuple[int, ...], tuple[int, ...], list[int]]:
        """Starts and steps with every step positive, and the result dimensions to flip."""
        starts = tuple(s + (n - 1) * d if d < 0 and n else s for s, n, d in zip(self.starts, self.sizes, self.steps))
        kept = [i for i in range(len(self.steps)) if i not in self.drop]
        flips = [j for j, i in enumerate(kept) if self.steps[i] < 0 and self.sizes[i] > 1]
        return starts, tuple(abs(d) for d in self.steps), flips


@dataclass(frozen=True)
class Select(ViewOp):
    """Integer indexing along some axes, which the view lacks, at one dynamic position each.

    `sources` are the index values that the `positions` (values of type `index`) come from: equal ones, equal views.
    Both may be used while `region` is open.
    """

    axes: tuple[int, ...]
    sources: tuple[Value, ...]
    positions: tuple[str, ...] = field(compare=False)
    region: Region = field(compare=False)

    def forward(self, b: Builder, base: Value) -> Value:
        return b.extract_slice(base, *self._slice(base.shape), self.axes)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        return b.insert_slice(new, base, *self._slice(base.shape))

    def apply(self, array: np.ndarray) -> np.ndarray:
        raise NotImplementedError("the positions are not known")

    def like(self, array: np.ndarray) -> np.ndarray:
        return array[tuple(0 if d in self.axes else slice(None) for d in range(array.ndim))]

    @property
    def known(self) -> bool:
        return False

    def _slice(self, shape: tuple[int, ...]) -> tuple[list[int | str], list[int], list[int]]:
        found = dict(zip(self.axes, self.positions))
        offsets = [found.get(d, 0) for d in range(len(shape))]
        return offsets, [1 if d in found else n for d, n in enumerate(shape)], [1] * len(shape)


def _flip(b: Builder, value: Value, axes: Sequence[int]) -> Value:
    if not axes or value.size == 0:
        return value

    def index(block: Body, loops: list[str]) -> list[str]:
        result = list(loops)
        for axis in axes:
            last = b.last_index(block, value.shape[axis])
            result[axis] = block.op(f"arith.subi {last}, {loops[axis]}", "index")
        return result

    return b.gather(value, value.shape, index)


@dataclass(frozen=True)
class Transpose(ViewOp):
    """Dimension i of the view is dimension `permutation[i]` of the base."""

    permutation: tuple[int, ...]

    def forward(self, b: Builder, base: Value) -> Value:
        return b.transpose(base, self.permutation)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        return b.transpose(new, [self.permutation.index(i) for i in range(len(self.permutation))])

    def apply(self, array: np.ndarray) -> np.ndarray:
        return array.transpose(self.permutation)


@dataclass(frozen=True)
class Reshape(ViewOp):
    """The same elements in row-major order."""

    def forward(self, b: Builder, base: Value) -> Value:
        return b.reshape(base, self.shape)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        return b.reshape(new, base.shape)

    def apply(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(self.shape)


@dataclass(frozen=True)
class Broadcast(ViewOp):
    """Elements repeated along new or stretched dimensions; read-only, as in NumPy."""

    def forward(self, b: Builder, base: Value) -> Value:
        return b.broadcast(base, self.shape, base.dtype)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        raise ShapeError("assignment destination is read-only: it is a broadcast view", help="take a `.copy()` first")

    def apply(self, array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, self.shape)

    def like(self, array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, sampled(self.shape))

    @property
    def writable(self) -> bool:
        return False


@dataclass(frozen=True)
class Part(ViewOp):
    """The real or imaginary parts of a complex array."""

    name: str

    def forward(self, b: Builder, base: Value) -> Value:
        assert isinstance(base, ComplexValue)
        return base.re if self.name == "real" else base.im

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        assert isinstance(b, ComplexBuilder) and isinstance(base, ComplexValue)
        return b.with_part(base, int(self.name == "imag"), new)

    def apply(self, array: np.ndarray) -> np.ndarray:
        return getattr(array, self.name)


@dataclass(frozen=True)
class Bits(ViewOp):
    """The bits of the elements as numbers of another dtype of the same size."""

    dtype: np.dtype

    def forward(self, b: Builder, base: Value) -> Value:
        return _with_bits(b, base, self.dtype)

    def backward(self, b: Builder, base: Value, new: Value) -> Value:
        return _with_bits(b, new, base.dtype)

    def apply(self, array: np.ndarray) -> np.ndarray:
        return array.view(self.dtype)

    def like(self, array: np.ndarray) -> np.ndarray:
        return array


def _with_bits(b: Builder, x: Value, dtype: np.dtype) -> Value:
    """The numbers of a dtype with the bits of others; those of False and True are 0 and 1."""

    def body(block: Body, xs: list[str]) -> str:
        if np.bool_ in (x.dtype, dtype):
            return block.cast(xs[0], x.dtype, dtype)
        names = mlir_name(x.dtype), mlir_name(dtype)
        return xs[0] if names[0] == names[1] else block.op(f"arith.bitcast {xs[0]}", f"{names[0]} to {names[1]}")

    return b.elementwise([x], [x.dtype], dtype, x.shape, body)


@dataclass(frozen=True)
class Window(ViewOp):
    """Windows of a one-dimensional base: elements at `start` and steps from it along each dimension, which may overlap;
    read-only.
    """

    start: int
    steps: tuple[int, ...]

    def forward(self, b: Builder, base: Value) -> Value:
        def index(block: Body, loops: list[str]) -> list[str]:
            place = block.op(f"arith.constant {self.start}", "index")
            for loop, step in zip(loops, self.steps):
                factor = block.op(f"arith.constant {step}", "index")
                offset = block.op(f"arith.muli {loop}, {factor}", "index")
                place = block.op(f"arith.addi {place}, {offset}", "index")
            return [place]

        return b.gather(base, self.shape, index)

    def apply(self, array: np.ndarray) -> np.ndarray:
        steps = [step * array.itemsize for step in self.steps]
        return np.lib.stride_tricks.as_strided(array[self.start :], self.shape, steps, writeable=False)

    @property
    def writable(self) -> bool:
        return False


Shape = tuple[int, ...]


def integers(name: str, what: str, values: Any) -> tuple[int, ...]:
    """A tuple of Python integers, or a `ShapeError` that names the argument."""
    try:
        return tuple(int(v.__index__()) for v in values)
    except (AttributeError, TypeError):
        raise ShapeError(f"{name}: {what} must be integers, got {values!r}") from None


def extents(name: str, what: str, values: Any) -> tuple[Any, ...]:
    """As `integers`, of which some may be dynamic sizes."""
    if not any(type(value) is Size for value in values):
        return integers(name, what, values)
    return tuple(v if type(v) is Size else integers(name, what, (v,))[0] for v in values)


def resolved_shape(name: str, old: Shape, new: Any) -> Shape:
    """A target shape with its -1 filled in."""
    shape = extents(name, "the shape", new if isinstance(new, (tuple, list)) else (new,))
    size, unknown = math.prod(old), [i for i, n in enumerate(shape) if n == -1]
    known = math.prod(n for n in shape if n != -1)
    if len(unknown) > 1 or any(n < -1 for n in shape):
        raise ShapeError(f"{name}: {list(shape)} is no shape; at most one size may be -1")
    quotient = exact_quotient(size, known) if unknown else None
    if unknown and quotient is None and (not known or size % known):
        raise ShapeError(f"{name}: the {size} elements of shape {list(old)} do not divide into {list(shape)}")
    filled: Any = size // known if unknown and quotient is None else quotient
    shape = tuple(filled if type(n) is int and n == -1 else n for n in shape)
    if not same(math.prod(shape), size) and math.prod(shape) != size:
        raise ShapeError(f"{name}: shape {list(old)} has {size} elements, {list(shape)} has {math.prod(shape)}")
    return shape


@operation("view", np.reshape, dtypes=ALL, methods=("reshape",))
def reshape(old: Shape, shape: Any, order: str = "C") -> ViewOp | tuple[ViewOp, ...]:
    """The same elements in another shape, row by row or (order="F") column by column; one size may be -1."""
    new = Reshape(resolved_shape("reshape", old, shape))
    if not is_column_major("reshape", order):
        return new
    return reversal(old), Reshape(new.shape[::-1]), reversal(new.shape[::-1])


def is_column_major(name: str, order: Any) -> bool:
    """True if `order` is "F" and not "C"; others go by the memory layout, which arrays do not have in compiled code."""
    if order not in ("C", "F"):
        raise UnsupportedSyntaxError(
            f"{name}: order={order!r} is not compiled: it depends on how the array lies in memory",
            help="order='C' goes row by row, order='F' column by column",
        )
    return bool(order == "F")


def reversal(shape: Shape) -> Transpose:
    """The dimensions in reverse order."""
    return Transpose(tuple(shape[::-1]), tuple(reversed(range(len(shape)))))


@operation("view", np.ravel, dtypes=ALL, methods=("ravel",))
def ravel(shape: Shape, order: str = "C") -> ViewOp | tuple[ViewOp, ...]:
    """All elements in one dimension, row by row or (order="F") column by column."""
    flat = Reshape((math.prod(shape),))
    return (reversal(shape), flat) if is_column_major("ravel", order) else flat


@operation("view", np.transpose, dtypes=ALL, methods=("transpose",))
def transpose(shape: Shape, axes: Any = None) -> ViewOp:
    """Dimensions permuted, reversed by default."""
    rank = len(shape)
    order = tuple(reversed(range(rank))) if axes is None else integers("transpose", "axes", axes)
    if sorted(a % rank if -rank <= a < rank else rank for a in order) != list(range(rank)):
        raise ShapeError(f"transpose: axes {list(order)} are no permutation of {rank} dimension(s)")
    order = tuple(a % rank for a in order)
    return Transpose(tuple(shape[a] for a in order), order)


@operation("view", np.swapaxes, dtypes=ALL, methods=("swapaxes",))
def swapaxes(shape: Shape, axis1: int, axis2: int) -> ViewOp:
    """Two dimensions exchanged."""
    (i,), (j,) = normalized_axes("swapaxes", shape, axis1), normalized_axes("swapaxes", shape, axis2)
    order = list(range(len(shape)))
    order[i], order[j] = j, i
    return Transpose(tuple(shape[a] for a in order), tuple(order))


@operation("view", np.moveaxis, dtypes=ALL)
def moveaxis(shape: Shape, source: Any, destination: Any) -> ViewOp:
    """Dimensions moved to new positions; the others keep their order."""
    lists = [list(x) if isinstance(x, (tuple, list)) else [x] for x in (source, destination)]
    if len(lists[0]) != len(lists[1]):
        raise ShapeError("moveaxis: source and destination differ in length")
    old, new = ([normalized_axes("moveaxis", shape, a)[0] for a in group] for group in lists)
    order = [i for i in range(len(shape)) if i not in old]
    for destination_axis, source_axis in sorted(zip(new, old)):
        order.insert(destination_axis, source_axis)
    return Transpose(tuple(shape[a] for a in order), tuple(order))


@operation("view", np.expand_dims, dtypes=ALL)
def expand_dims(shape: Shape, axis: Any) -> ViewOp:
    """New dimensions of size 1 at the given positions of the result."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = normalized_axes("expand_dims", (1,) * (len(shape) + count), axis)
    rest = iter(shape)
    return Reshape(tuple(1 if i in places else next(rest) for i in range(len(shape) + count)))


@operation("view", np.squeeze, dtypes=ALL, methods=("squeeze",))
def squeeze(shape: Shape, axis: Any = None) -> ViewOp:
    """Dimensions of size 1 dropped."""
    axes = [i for i, n in enumerate(shape) if n == 1] if axis is None else normalized_axes("squeeze", shape, axis)
    for i in axes:
        if shape[i] != 1:
            raise ShapeError(f"squeeze: dimension {i} has size {shape[i]}, not 1")
    return Reshape(tuple(n for i, n in enumerate(shape) if i not in axes))


@operation("view", np.broadcast_to, dtypes=ALL, operand="array")
def broadcast_to(old: Shape, shape: Any, subok: bool = False) -> ViewOp:
    """The array repeated to a larger shape."""
    target = extents("broadcast_to", "the shape", shape if isinstance(shape, (tuple, list)) else (shape,))
    try:
        fits = common_shape(old, target) == target
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"broadcast_to: shape {list(old)} does not stretch to {list(target)}")
    return Broadcast(target)


@operation("view", np.flip, dtypes=ALL, operand="m")
def flip(shape: Shape, axis: Any = None) -> ViewOp:
    """Elements in reverse order along axes."""
    axes = normalized_axes("flip", shape, axis)
    starts = tuple(max(n - 1, 0) if i in axes else 0 for i, n in enumerate(shape))
    return Slice(shape, starts, shape, tuple(-1 if i in axes else 1 for i in range(len(shape))), ())


def _sections(shape: Shape, indices_or_sections: Any, axis: int, *, equal: bool) -> list[ViewOp]:
    (place,) = normalized_axes("split", shape, axis)
    n = shape[place]
    if np.ndim(indices_or_sections):
        edges = [0, *(slice(None, i).indices(n)[1] for i in indices_or_sections), n]
    else:
        count = int(indices_or_sections)
        if count <= 0 or (equal and n % count):
            raise ShapeError(f"split: {n} elements along axis {axis} do not divide into {count} equal parts")
        size, extra = divmod(n, count)
        edges = [i * size + min(i, extra) for i in range(count + 1)]
    result: list[ViewOp] = []
    for start, stop in pairwise(edges):
        sizes = tuple(max(stop - start, 0) if i == place else m for i, m in enumerate(shape))
        starts = tuple(min(start, n) if i == place else 0 for i in range(len(shape)))
        result.append(Slice(sizes, starts, sizes, (1,) * len(shape), ()))
    return result


@operation("view", np.split, dtypes=ALL, operand="ary")
def split(shape: Shape, indices_or_sections: Any, axis: int = 0) -> list[ViewOp]:
    """Equal parts, or parts between the given indices, along an axis."""
    return _sections(shape, indices_or_sections, axis, equal=True)


@operation("view", np.array_split, dtypes=ALL, operand="ary")
def array_split(shape: Shape, indices_or_sections: Any, axis: int = 0) -> list[ViewOp]:
    """As `split`, but the parts need not be equal."""
    return _sections(shape, indices_or_sections, axis, equal=False)
