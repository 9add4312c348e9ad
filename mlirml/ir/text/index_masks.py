"""Index masks: constant arrays that comparisons of indices, or sums of indices, compute, so that they need no memory.

    np.tri(n, dtype=bool)          column <= row
    np.abs(i - j) < 8              (column > row - 8) & (column <= row + 7)
    i // 64 == j // 64             (column >= row // 64 * 64) & (column <= row // 64 * 64 + 63)
    i - j                          row - column
    np.triu(np.full(s, -inf), 1)   -inf if column > row else 0

What computes a mask is known to be an interval of columns for each row, and blocks outside of it can be skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.ir.text.dtypes import mlir_name

if TYPE_CHECKING:
    from mlirml.ir.text.builder import Body


@dataclass(frozen=True)
class Edge:
    """The column `row // block * block * slope + offset` of each row; `slope` is 0 or 1."""

    slope: int
    offset: int
    block: int = 1

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The columns of these rows."""
        return rows // self.block * self.block * self.slope + self.offset

    def body(self, block: Body, row: str) -> str:
        """The column of a row, an index."""
        offset = block.op(f"arith.constant {self.offset}", "index")
        if not self.slope:
            return offset
        if self.block > 1:
            size = block.op(f"arith.constant {self.block}", "index")
            row = block.op(f"arith.muli {block.op(f'arith.divui {row}, {size}', 'index')}, {size}", "index")
        return block.op(f"arith.addi {row}, {offset}", "index")


@dataclass(frozen=True)
class IndexMask:
    """A matrix of booleans: those of each row after column `first` and up to column `last` are True, or all others.

    None for an edge that is no limit. `rank` is that of the array, whose other dimensions have size 1.
    """

    first: Edge | None
    last: Edge | None
    others: bool
    rank: int

    def body(self, block: Body) -> str:
        """The element at the loops of a body."""
        row, column = (block.op(f"linalg.index {loop}", "index") for loop in (self.rank - 2, self.rank - 1))
        names = ("sle", "sgt") if self.others else ("sgt", "sle")
        found = [
            block.op(f"arith.cmpi {name}, {column}, {edge.body(block, row)}", "index")
            for name, edge in zip(names, (self.first, self.last), strict=True)
            if edge is not None
        ]
        return (
            found[0]
            if len(found) == 1
            else block.op(f"arith.{'ori' if self.others else 'andi'} {found[0]}, {found[1]}", "i1")
        )


def match_index_mask(array: np.ndarray) -> IndexMask | None:
    """The mask that an array of booleans is, if the True or the False ones of each row are next to each other."""
    if array.dtype != np.bool_ or array.ndim < 2 or 0 in array.shape or array[..., 0, 0].size > 1:
        return None
    matrix = array.reshape(array.shape[-2:])
    for others in (False, True):
        found = _match_rows(~matrix if others else matrix)
        if found is not None:
            return IndexMask(*found, others, array.ndim)
    return None


def _match_rows(matrix: np.ndarray) -> tuple[Edge | None, Edge | None] | None:
    """The edges before the first True element of each row and at the last one; None if there are no such edges."""
    columns = matrix.shape[1]
    changes = np.count_nonzero(matrix[:, 1:] != matrix[:, :-1], axis=1)
    if np.any(changes + matrix[:, 0] + matrix[:, -1] > 2):
        return None  # several intervals in a row
    some: np.ndarray = np.any(matrix, axis=1)
    first = np.where(some, matrix.argmax(axis=1), columns) - 1
    last = np.where(some, columns - 1 - matrix[:, ::-1].argmax(axis=1), -1)
    rows = np.arange(len(matrix))
    for before in _edges(first, some, -1, columns - 1):
        for until in _edges(last, some, -1, columns - 1):
            if before is None and until is None:
                continue
            low = np.full(len(rows), -1) if before is None else np.clip(before.at(rows), -1, columns - 1)
            high = np.full(len(rows), columns - 1) if until is None else np.clip(until.at(rows), -1, columns - 1)
            same = np.where(some, (low == first) & (high == last), low >= high)
            if same.all():
                return before, until
    return None


def _edges(found: np.ndarray, known: np.ndarray, lowest: int, highest: int) -> list[Edge | None]:
    """Edges that may be the columns `found` of the rows that are `known`, clamped from `lowest` to `highest`."""
    values, rows = found[known], np.flatnonzero(known)
    if not len(values):
        return []
    edges: list[Edge | None] = []
    if len(set(values.tolist())) == 1:
        edges.append(None if values[0] in (lowest, highest) else Edge(0, int(values[0])))
    free = (values > lowest) & (values < highest)
    if free.any():
        row, value = int(rows[free][0]), int(values[free][0])
        edges.append(Edge(1, value - row))
    steps = np.flatnonzero(np.diff(found)) + 1
    block = math.gcd(*steps.tolist())
    if block > 1:
        start = int(rows[free][0]) if free.any() else 0
        edges.append(Edge(1, int(found[start]) - start // block * block, block))
    return edges


@dataclass(frozen=True)
class Choice:
    """A matrix of two numbers: one where a mask is True, the other one where it is False."""

    mask: IndexMask
    chosen: np.generic
    other: np.generic

    def body(self, block: Body) -> str:
        """The element at the loops of a body."""
        dtype = self.chosen.dtype
        keep = self.mask.body(block)
        chosen, other = block.constant(self.chosen, dtype), block.constant(self.other, dtype)
        return block.op(f"arith.select {keep}, {chosen}, {other}", mlir_name(dtype))


def match_choice(array: np.ndarray) -> Choice | None:
    """The choice between two numbers that an array of real numbers is, if it is one."""
    if array.dtype.kind not in "iuf" or array.ndim < 2 or not array.size:
        return None
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")  # so that -0.0 is another number than 0.0
    first = bits == bits.reshape(-1)[0]
    others = bits[~first]
    if not others.size or np.any(others != others[0]):
        return None
    mask = match_index_mask(first)
    return None if mask is None else Choice(mask, array.reshape(-1)[0], array[~first][0])


@dataclass(frozen=True)
class IndexSum:
    """An array of integers: `offset` plus each index times its step."""

    offset: int
    steps: tuple[int, ...]
    dtype: np.dtype

    def body(self, block: Body) -> str:
        """The element at the loops of a body."""
        name = mlir_name(self.dtype)
        total = block.constant(self.offset, self.dtype) if self.offset else ""
        for loop, step in enumerate(self.steps):
            if step == 0:
                continue
            index = block.op(f"linalg.index {loop}", "index")
            value = block.op(f"arith.index_cast {index}", f"index to {name}")
            if step == -1 and total:
                total = block.op(f"arith.subi {total}, {value}", name)
                continue
            if step != 1:
                value = block.op(f"arith.muli {value}, {block.constant(step, self.dtype)}", name)
            total = block.op(f"arith.addi {total}, {value}", name) if total else value
        return total


def match_index_sum(array: np.ndarray) -> IndexSum | None:
    """The sum of indices that an array of 32 or 64-bit integers is, if it is one."""
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.int64)) or not array.size:
        return None
    offset = int(array[(0,) * array.ndim])
    steps = [
        int(array[tuple(int(d == axis) for d in range(array.ndim))]) - offset if size > 1 else 0
        for axis, size in enumerate(array.shape)
    ]
    if max(map(abs, [offset, *steps])) >= 1 << 20:
        return None
    expected = _sum_of(array.shape, offset, steps)
    return IndexSum(offset, tuple(steps), array.dtype) if np.array_equal(array, expected) else None


def _sum_of(shape: Sequence[int], offset: int, steps: Sequence[int]) -> np.ndarray:
    """The sum of the indices of an array times their steps."""
    total = np.full((1,) * len(shape), offset, np.int64)
    for axis, (size, step) in enumerate(zip(shape, steps, strict=True)):
        total = total + (np.arange(size) * step).reshape([size if d == axis else 1 for d in range(len(shape))])
    return total


def match_computed(array: np.ndarray) -> IndexMask | Choice | IndexSum | None:
    """The comparison or the sum of indices that computes an array, if there is one."""
    return match_index_mask(array) or match_index_sum(array) or match_choice(array)
