"""What an array is computed by: a value in memory, or an operation that has not been run yet."""

from __future__ import annotations

import itertools
import sys
import weakref
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mlirml.runtime.device import Device


class ArrayType:
    """Shape, dtype, device and target of an array. There is one object for each while they are in use.

    `target` is the name of the target that operations on the array are compiled for.
    """

    __slots__ = ("__weakref__", "device", "dtype", "shape", "target")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device, target: str) -> None:
        self.shape, self.dtype, self.device, self.target = shape, dtype, device, target

    def __repr__(self) -> str:
        return f"ArrayType({list(self.shape)}, {self.dtype}, {self.where})"

    @property
    def where(self) -> str:
        """The device, or the target where that is not named as its device."""
        return self.device.id if self.target == self.device.kind else f"{self.device.id}, target {self.target!r}"


def array_type(shape: tuple[int, ...], dtype: npt.DTypeLike, device: Device, target: str | None = None) -> ArrayType:
    """The type of arrays of this shape and dtype on a device; `target` is that of the device if it is not given."""
    name = device.kind if target is None else target
    key = shape, dtype, device, name
    known = _TYPES.get(key)
    if known is None:
        known = _TYPES[key] = ArrayType(shape, np.dtype(dtype), device, name)
    return known


class Operation(Protocol):
    """The operation of a node that is not computed yet."""

    def evaluate(self, node: Node) -> None:
        """Compute the node, which sets its `value`."""


class Node:
    """A value: its storage, or while `value` is None the operation and the operands that it is computed from.

    `type` is the type of the array, or a tuple of them for an operation with several results. Operands are nodes and
    Python or NumPy numbers. `mark` tells when the device has computed the storage; only nodes with a value have it.
    """

    __slots__ = ("call", "mark", "operands", "serial", "type", "value")

    def __init__(self, call: Any, operands: tuple[Any, ...], type: Any, serial: int) -> None:
        self.call, self.operands, self.type, self.serial = call, operands, type, serial
        self.value: Any = None

    def settle(self, value: Any, mark: int = 0) -> None:
        """Give the node its value; what it was computed from is released."""
        self.mark = mark
        self.value = value
        self.call, self.operands = None, ()


_TYPES: weakref.WeakValueDictionary[Any, ArrayType] = weakref.WeakValueDictionary()

NEXT_SERIAL = itertools.count(1).__next__
"""The next number of a node: an operation has a greater one than its operands."""


def stored(value: Any, type: ArrayType, mark: int = 0) -> Node:
    """A node with a value."""
    node = Node(None, (), type, 0)
    node.value, node.mark = value, mark
    return node


def references(node: Node) -> int:
    """The number of references to a node, counted from a local variable of the caller, which is not counted."""
    return sys.getrefcount(node) - _BASE


def _own_references() -> int:
    node = Node(None, (), None, 0)
    return references(node)


_BASE = 0
_BASE = _own_references()

__all__ = ["NEXT_SERIAL", "ArrayType", "Node", "Operation", "array_type", "references", "stored"]
