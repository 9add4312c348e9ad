"""Memory in WGSL: declarations, loads and stores of buffers and local arrays.

Storage buffers of elements below 32 bits, i1 among them, are arrays of words. If a kernel writes such a buffer, the
words are atomic: other threads may write adjacent elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.codegen.wgsl.types import type_name, width
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir


@dataclass(frozen=True)
class Memory:
    """An array or, if `shape` is None, a scalar; `bits` are those of an element that shares its word."""

    name: str
    element: str
    shape: tuple[int, ...] | None = None
    bits: int = 0
    atomic: bool = False

    @property
    def declared(self) -> str:
        """The WGSL type of the declaration."""
        if self.shape is None:
            return "u32" if self.bits else self.element
        size = max(math.prod(self.shape), 1)
        if not self.bits:
            return f"array<{f'atomic<{self.element}>' if self.atomic else self.element}, {size}>"
        word = "atomic<u32>" if self.atomic else "u32"
        return f"array<{word}, {-(-size * self.bits // 32)}>"

    def at(self, indices: Sequence[str]) -> str:
        """The row-major index of an element, whose indices are given by name."""
        position = ""
        for size, index in zip(self.shape or (), indices, strict=True):
            position = f"({position} * {size}i + {index})" if position else index
        return position or "0i"

    def read(self, indices: Sequence[str]) -> str:
        """The value of an element."""
        position = self.at(indices)
        if not self.bits:
            return f"atomicLoad(&{self.name}[{position}])" if self.atomic else f"{self.name}[{position}]"
        per_word = 32 // self.bits
        place = f"{self.name}[u32({position}) / {per_word}u]"
        word = f"atomicLoad(&{place})" if self.atomic else place
        return self._unpacked(word, f"u32({position}) % {per_word}u * {self.bits}u")

    def update(self, function: str, value: str, indices: Sequence[str]) -> str:
        """The value of an element of 32 bits before an atomic function combines it with another."""
        return f"{function}(&{self.name}[{self.at(indices)}], {value})"

    def number(self) -> str:
        """The value of a scalar that is passed to the kernel."""
        return self._unpacked(self.name, "0u") if self.bits else self.name

    def _unpacked(self, word: str, shift: str) -> str:
        if self.element == "bool":
            return f"extractBits({word}, {shift}, 8u) != 0u"
        return f"extractBits(bitcast<i32>({word}), {shift}, {self.bits}u)"

    def write(self, value: str, indices: Sequence[str]) -> list[str]:
        """The statements that store a value."""
        position = self.at(indices)
        if not self.bits:
            place = f"{self.name}[{position}]"
            return [f"atomicStore(&{place}, {value});" if self.atomic else f"{place} = {value};"]
        per_word, mask = 32 // self.bits, (1 << self.bits) - 1
        place = f"&{self.name}[u32({position}) / {per_word}u]"
        shift = f"(u32({position}) % {per_word}u * {self.bits}u)"
        bits = f"select(0u, 1u, {value})" if self.element == "bool" else f"(u32({value}) & {mask}u)"
        return [f"atomicAnd({place}, ~({mask}u << {shift}));", f"atomicOr({place}, {bits} << {shift});"]


def buffer(name: str, type_: mlir.Type, written: bool, combined: bool, location: mlir.Location) -> Memory:
    """An argument of a kernel: memory, which may be written or combined atomically, or a number passed by value."""
    is_memory = isinstance(type_, mlir.MemRefType)
    scalar = mlir.MemRefType(type_).element_type if is_memory else type_
    element = type_name(scalar, location)
    bits = 0 if element == "f32" or width(scalar) == 32 else max(width(scalar), 8)
    shape = tuple(mlir.MemRefType(type_).shape) if is_memory else None
    return Memory(name, element, shape, bits, combined or (written and bits > 0))


def local(name: str, type_: mlir.Type, location: mlir.Location) -> Memory:
    """An array of a block or of a thread."""
    memory = mlir.MemRefType(type_)
    return Memory(name, type_name(memory.element_type, location), tuple(memory.shape))
