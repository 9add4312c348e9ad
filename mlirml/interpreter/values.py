"""The values of the reference interpreter: element types, poison, buffers, and attributes as arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import TargetError
from mlirml.ir.bindings import mlir
from mlirml.ir.text.dtypes import bfloat16

Array = np.ndarray[Any, Any]
Value = Any
"""An ndarray or a NumPy scalar for MLIR scalars, vectors and tensors; a `Buffer` for memrefs.

Signless integers and `index` are held as signed NumPy integers; an operation that means unsigned reinterprets them.
"""

DYNAMIC: int = mlir.ShapedType.get_dynamic_size()

_DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_), "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64), "index": np.dtype(np.int64), "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "bf16": bfloat16(),
}  # fmt: skip
_SHAPED = (mlir.RankedTensorType, mlir.MemRefType, mlir.VectorType)


class Trap(Exception):
    """The program has undefined behaviour; the text explains it."""


def is_shaped(value_type: mlir.Type) -> bool:
    """True if values of the type have dimensions: tensors, memrefs and vectors."""
    return isinstance(value_type, _SHAPED)


def is_memref(value_type: mlir.Type) -> bool:
    """True if values of the type are `Buffer`s."""
    return isinstance(value_type, mlir.MemRefType)


def dtype_of(value_type: mlir.Type) -> np.dtype[Any]:
    """The NumPy dtype of a scalar type, or of the elements of a shaped one."""
    name = str(value_type.element_type if is_shaped(value_type) else value_type)
    if name not in _DTYPES:
        raise TargetError(f"the reference target does not hold values of type {name}")
    return _DTYPES[name]


def shape_of(value_type: mlir.Type) -> list[int]:
    """The dimensions of a shaped type, `DYNAMIC` where unknown; those of a scalar are empty."""
    return list(value_type.shape) if is_shaped(value_type) else []


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """True if the dtype is a float of 16 bits, whose arithmetic is done in f32 and rounded after each operation."""
    return dtype.itemsize == 2 and dtype.kind not in "iub"


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned dtype of the same width."""
    return np.dtype(f"u{dtype.itemsize}")


def poison(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Contents of uninitialized memory: NaN, or conspicuous integers.

    Bytes are all ones, because they may be raw memory: read as floats they are NaN, as indices out of bounds.
    """
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind == "i":
        byte = b"\xff" if dtype.itemsize == 1 else b"\xa5"
        return np.full(shape, scalar_of(int.from_bytes(byte * dtype.itemsize, "little"), dtype))
    return np.full(shape, np.nan, dtype)


@dataclass(frozen=True, eq=False)
class Buffer:
    """A memref: `array` is the view that its type describes, `memory` the bytes from the aligned pointer on."""

    array: Array
    memory: Array

    @staticmethod
    def allocate(shape: Sequence[int], dtype: np.dtype[Any]) -> Buffer:
        """A fresh row-major buffer full of poison."""
        return Buffer.around(np.ascontiguousarray(poison(shape, dtype)).reshape(shape))

    @staticmethod
    def around(array: Array) -> Buffer:
        """The buffer whose memory starts at the first element of a row-major array."""
        return Buffer(array, array.reshape(-1).view(np.uint8))

    @property
    def strides(self) -> list[int]:
        """Strides in elements."""
        return [stride // self.array.itemsize for stride in self.array.strides]

    @property
    def offset(self) -> int:
        """Elements from the aligned pointer to the first element of `array`."""
        if self.array.size == 0:
            return 0
        distance: int = self.array.ctypes.data - self.memory.ctypes.data
        return distance // self.array.itemsize

    def view(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Buffer:
        """A view of the same memory; offset and strides count elements from the aligned pointer."""
        dtype = self.array.dtype
        if 0 in shape:
            return Buffer(np.empty(shape, dtype), self.memory)
        steps = [stride * dtype.itemsize for stride in strides]
        try:
            array: Array = np.ndarray(tuple(shape), dtype, self.memory, offset * dtype.itemsize, steps)
        except ValueError:
            text = f"offset {offset}, sizes {list(shape)}, strides {list(strides)}"
            raise Trap(f"{text} reach outside the {self.memory.size} bytes of the buffer") from None
        return Buffer(array, self.memory)

    def reinterpret(self, offset: int, shape: Sequence[int], dtype: np.dtype[Any]) -> Buffer:
        """A row-major view of another dtype, `offset` bytes after the aligned pointer."""
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if offset < 0 or offset + count > self.memory.size:
            raise Trap(f"{count} bytes from {offset} reach outside the {self.memory.size} bytes of the buffer")
        memory = self.memory[offset:]
        return Buffer(memory[:count].view(dtype).reshape(shape), memory)


def row_major(shape: Sequence[int]) -> list[int]:
    """The strides, in elements, of a row-major array."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return strides


def checked(indices: Iterable[Value], shape: Sequence[int]) -> tuple[Value, ...]:
    """Indices, scalars or arrays, after a check that each is in bounds."""
    result = tuple(indices)
    for axis, (index, size) in enumerate(zip(result, shape, strict=True)):
        outside = (index < 0) | (index >= size)
        if outside.any() if isinstance(outside, np.ndarray) else outside:
            shown = index[outside].flat[0] if isinstance(index, np.ndarray) and index.ndim else index
            raise Trap(f"index {int(shown)} is out of bounds for dimension {axis} of size {size}")
    return result


def window(starts: Sequence[Value], vector_shape: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """The index of the box of `vector_shape` at `starts`, in the last dimensions."""
    padded = [1] * (len(shape) - len(vector_shape)) + list(vector_shape)
    starts = checked(starts, shape)
    checked([start + size - 1 for start, size in zip(starts, padded)], shape)
    return tuple(slice(int(start), int(start) + size) for start, size in zip(starts, padded))


def check_slice(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> None:
    """Trap unless a strided slice is in bounds of `shape`."""
    for axis, (offset, size, stride, limit) in enumerate(zip(offsets, sizes, strides, shape, strict=True)):
        last = offset + (size - 1) * stride
        if size < 0 or (size > 0 and not (0 <= offset < limit and 0 <= last < limit)):
            raise Trap(f"the slice [{offset}:{size}:{stride}] is out of bounds for dimension {axis} of size {limit}")


def integers(op: mlir.Operation, name: str) -> list[int]:
    """An attribute that is an array of integers."""
    return [int(getattr(item, "value", item)) for item in op.attributes[name]]


def integer(op: mlir.Operation, name: str) -> int:
    """An integer attribute."""
    return int(op.attributes[name].value)


def segments(op: mlir.Operation) -> list[slice]:
    """The operand groups of an operation with `operandSegmentSizes`."""
    groups, start = [], 0
    for size in integers(op, "operandSegmentSizes"):
        groups.append(slice(start, start + size))
        start += size
    return groups


def mixed(static: Sequence[int]) -> Callable[[Sequence[Value]], list[int]]:
    """A reader of index lists that are partly attributes: each `DYNAMIC` entry takes the next operand."""
    if DYNAMIC not in static:
        return lambda _: list(static)

    def read(operands: Sequence[Value]) -> list[int]:
        rest = iter(operands)
        return [int(next(rest)) if item == DYNAMIC else item for item in static]

    return read


def mixed_groups(op: mlir.Operation, *names: str) -> Callable[[Sequence[Value]], list[list[int]]]:
    """A reader of the `static_*` attributes of an operation, whose last operand groups fill them in order."""
    groups = segments(op)[-len(names) :]
    readers = [mixed(integers(op, name)) for name in names]
    return lambda operands: [read(operands[group]) for read, group in zip(readers, groups)]


def scalar_of(value: bool | int | float, dtype: np.dtype[Any]) -> Value:
    """A Python number as a NumPy scalar; integers wrap around."""
    if dtype.kind == "i":
        bits = int(value) & ((1 << 8 * dtype.itemsize) - 1)
        return np.array(bits, unsigned(dtype)).view(dtype)[()]
    return np.array(value, dtype)[()]


def constant(attribute: mlir.Attribute, resource: Callable[[str], bytes]) -> Value:
    """The value of a typed constant attribute; `resource` returns the bytes of a `dense_resource`."""
    dtype = dtype_of(attribute.type)
    if not is_shaped(attribute.type):
        return scalar_of(attribute.value, dtype)
    shape = shape_of(attribute.type)
    if isinstance(attribute, mlir.DenseElementsAttr):
        return _dense(attribute, shape, dtype)
    found = re.match(r"dense_resource<([^>]*)>", str(attribute))
    if found is None:
        raise TargetError(f"the reference target does not read the attribute {str(attribute)[:80]}")
    return np.frombuffer(resource(found[1].strip('"')), dtype).reshape(shape)


def _dense(attribute: mlir.Attribute, shape: list[int], dtype: np.dtype[Any]) -> Array:
    if attribute.is_splat:
        splat = attribute.get_splat_value()
        return np.full(shape, scalar_of(splat.value, dtype), dtype)
    if dtype != bfloat16():
        return np.array(attribute).astype(dtype, copy=False).reshape(shape)
    # The bindings have no buffer for bf16, so its elements are parsed from the text, as bits after `0x`.
    body = str(attribute).removeprefix("dense<").split("> : ")[0]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype).reshape(shape)
    words = re.findall(r"[^\[\],\s]+", body)
    return np.array([_bfloat(word) for word in words]).astype(dtype).reshape(shape)


def _bfloat(word: str) -> float:
    if word.startswith("0x"):
        return float(np.array(int(word, 16), np.uint16).view(bfloat16())[()])
    return float(word)
