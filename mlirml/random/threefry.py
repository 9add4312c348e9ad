"""Threefry-2x32 of 20 steps: two words are enciphered by a key of two words.

J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Size
from mlirml.ir.text.builder import Body

WORD = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def enciphered(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The two words of a block, for u32 arrays or `Word`s alike."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << distance) | (x1 >> (32 - distance))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + (group + 1))
    return x0, x1


@dataclass(frozen=True)
class Word:
    """A u32 in the body of a `linalg.generic`: arithmetic on it writes operations."""

    block: Body
    name: str

    def _written(self, operation: str, other: Word | int) -> Word:
        right = other.name if isinstance(other, Word) else self.block.constant(other, WORD)
        return Word(self.block, self.block.op(f"arith.{operation} {self.name}, {right}", "i32"))

    def __add__(self, other: Word | int) -> Word:
        return self._written("addi", other)

    def __xor__(self, other: Word | int) -> Word:
        return self._written("xori", other)

    def __or__(self, other: Word | int) -> Word:
        return self._written("ori", other)

    def __lshift__(self, distance: int) -> Word:
        return self._written("shli", distance)

    def __rshift__(self, distance: int) -> Word:
        return self._written("shrui", distance)


def counter(block: Body, shape: tuple[Any, ...], number: Callable[[Size], str]) -> Word:
    """The index of an element in an array of this shape, row by row; `number` names the i64 of a dynamic size."""
    total = Word(block, block.constant(0, WORD))
    for axis, size in enumerate(shape):
        index = block.op(f"linalg.index {axis}", "index")
        here = Word(block, block.op(f"arith.index_cast {index}", "index to i32"))
        factor: Word | int = size
        if type(size) is Size:
            factor = Word(block, block.op(f"arith.trunci {number(size)}", "i64 to i32"))
        total = here if axis == 0 else total._written("muli", factor) + here
    return total


def both(block: Body, high: Word, low: Word) -> str:
    """A u64 of two words."""
    wide = [block.op(f"arith.extui {word.name}", "i32 to i64") for word in (high, low)]
    shifted = block.op(f"arith.shli {wide[0]}, {block.constant(32, np.dtype(np.uint64))}", "i64")
    return block.op(f"arith.ori {shifted}, {wide[1]}", "i64")


def counters(shape: tuple[int, ...]) -> np.ndarray:
    """The index of each element of an array of this shape, as u32."""
    return np.arange(math.prod(shape), dtype=WORD).reshape(shape)
