"""Sizes in MLIR text: those of dynamic dimensions are elements of one array that the program gets, `%sizes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirml.core.sizes import Extent, Size, exact_quotient, same, static_needed
from mlirml.ir.marked_sizes import collides
from mlirml.ir.text.dtypes import marked

NAME = "%sizes"
"""The hidden argument of @main that holds the sizes, after all others."""


class SizeTable:
    """The dynamic sizes that a program uses, each once: entry i of the array, and the value `%size<i>`.

    In types and as sizes of slices they are marked numbers (`mlirml.ir.marked_sizes`).
    """

    def __init__(self) -> None:
        self.entries: dict[Size, int] = {}
        self._in_types: set[Size] = set()
        self._static: set[int] = set()

    def enter(self, size: Size) -> int:
        """The index of a size in the table."""
        return self.entries.setdefault(size, len(self.entries))

    def note(self, shape: Sequence[Extent]) -> None:
        """Enter the sizes of a shape."""
        for n in shape:
            if type(n) is Size:
                self.enter(n)
                self._in_types.add(n)
            elif type(n) is int and n > MANY:
                self._static.add(n)

    @property
    def marks(self) -> list[int]:
        """The numbers that the sizes are in types, and some number for each of the others."""
        return [size.mark() if size in self._in_types else _UNUSED + i * MANY for size, i in self.entries.items()]

    def name(self, size: Size) -> str:
        """The value of type `index` that holds a size; it is defined at the start of @main."""
        return f"%size{self.enter(size)}"

    def number(self, size: Size) -> str:
        """The same as a value of type i64."""
        return f"{self.name(size)}_i64"

    def shown(self, extent: Extent | str) -> str:
        """An offset or a size as an operand: a number or the name of a value."""
        if type(extent) is Size:
            self.note([extent])
            return str(extent.mark())
        return str(extent)

    def listed(self, extents: Sequence[Any]) -> str:
        """A list of operands: `[262147, 4]`."""
        return f"[{', '.join(map(self.shown, extents))}]"

    def sliced(
        self, block: Any, loops: Sequence[str], kept: Sequence[int], offsets: Sequence[Any], strides: Sequence[int]
    ) -> list[str]:
        """The indices of an element of a slice in a body, whose loops are the dimensions `kept` of the array."""
        found = []
        for axis, (first, step) in enumerate(zip(offsets, strides)):
            place = first if type(first) is str else self.name(first) if type(first) is Size else ""
            place = place or block.op(f"arith.constant {first}", "index")
            if axis in kept:
                scale = block.op(f"arith.constant {step}", "index")
                moved = block.op(f"arith.muli {loops[kept.index(axis)]}, {scale}", "index")
                place = block.op(f"arith.addi {place}, {moved}", "index")
            found.append(place)
        return found

    @property
    def parameter(self) -> str:
        """The declaration of the hidden argument."""
        return f"{NAME}: tensor<{len(self.entries)}xi64>"

    def check(self) -> None:
        """Refuse a program with a static size that could be taken for a dynamic one."""
        if self.entries and collides(self.marks, self._static):
            raise static_needed(next(iter(self.entries)), "another size for an array of such a static one")

    def definitions(self) -> list[str]:
        """The operations that read the sizes."""
        lines = []
        for number in self.entries.values():
            name, at = f"%size{number}", f"%size{number}_at"
            lines.append(f"{at} = arith.constant {number} : index")
            lines.append(f"{name}_i64 = tensor.extract {NAME}[{at}] : tensor<{len(self.entries)}xi64>")
            lines.append(f"{name} = arith.index_cast {name}_i64 : i64 to index")
        return lines


_UNUSED = 1 << 61
MANY = 1 << 17
"""Static sizes above this number are compared with the marks."""


def is_within(shape: Sequence[Any], offsets: Sequence[Any], sizes: Sequence[Any], strides: Sequence[int]) -> bool:
    """False for a slice that is out of bounds where its dynamic sizes are the numbers that they are in types."""
    if not any(type(n) is Size for n in (*offsets, *sizes)):
        return True
    firsts = [0 if type(first) is str else marked(first) for first in offsets]
    ends = (first + (marked(n) - 1) * step for first, n, step in zip(firsts, sizes, strides))
    return all(first >= 0 for first in firsts) and all(end < marked(n) for end, n in zip(ends, shape))


def common_groups(old: tuple[Any, ...], new: tuple[Any, ...]) -> list[tuple[list[int], list[int]]] | None:
    """Groups of adjacent dimensions with equal products; None if a side has to be split both ways at once."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [], []
        a: Any = 1
        b: Any = 1
        if i < len(old):
            left, a, i = [i], old[i], i + 1
        if j < len(new):
            right, b, j = [j], new[j], j + 1
        while not same(a, b):
            grows = _left_grows(a, b)
            if grows is None or (i == len(old) if grows else j == len(new)):
                return None
            if grows:
                left, a, i = [*left, i], a * old[i], i + 1
            else:
                right, b, j = [*right, j], b * new[j], j + 1
        if left and right:
            groups.append((left, right))
        elif groups:  # units are left over on one side
            groups[-1] = (groups[-1][0] + left, groups[-1][1] + right)
    return groups


def _left_grows(a: Any, b: Any) -> bool | None:
    """True if the product `a` of the left side may be a part of `b`, False the other way; None for neither."""
    if type(a) is int and type(b) is int:
        return a < b
    if exact_quotient(b, a) is not None:
        return True
    return False if exact_quotient(a, b) is not None else None
