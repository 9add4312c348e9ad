"""Triangles: constant masks that a comparison of indices computes, so that they need no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirml.core.dataclass import dataclass

if TYPE_CHECKING:
    from mlirml.ir.text.builder import Body


@dataclass(frozen=True)
class Triangle:
    """A matrix that is True up to the diagonal `offset` of each row; with `above` in all elements after it instead."""

    offset: int
    above: bool

    def body(self, block: Body) -> str:
        """The element at the loops of a body."""
        row, column = (block.op(f"linalg.index {loop}", "index") for loop in (0, 1))
        edge = block.op(f"arith.addi {row}, {block.op(f'arith.constant {self.offset}', 'index')}", "index")
        return block.op(f"arith.cmpi {'sgt' if self.above else 'sle'}, {column}, {edge}", "index")


def match_triangle(array: np.ndarray) -> Triangle | None:
    """The triangle that an array of booleans is, if it is one."""
    if array.dtype != np.bool_ or array.ndim != 2 or 0 in array.shape:
        return None
    rows, columns = array.shape
    counts = np.count_nonzero(array, axis=1)
    row = int(np.argmax((counts > 0) & (counts < columns)))
    if not 0 < counts[row] < columns:
        return None
    above = not array[row, 0]
    offset = (columns - int(counts[row]) if above else int(counts[row])) - 1 - row
    lower = np.tri(rows, columns, offset, dtype=np.bool_)
    return Triangle(offset, above) if np.array_equal(array, ~lower if above else lower) else None
