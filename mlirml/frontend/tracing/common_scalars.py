"""Common subexpression elimination of scalars during tracing: the same operator on the same scalars is emitted once.

Recursions over minors, and programs over lists of numbers, need the same products many times: the determinant of a
matrix of size 7 has 13,699, of which 448 differ. Emitting each costs far more than finding it here; `cse` would remove
it only later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.ir.text.builder import Region, Value
from mlirml.ir.text.complex import parts_of
from mlirml.ir.text.elements import ElementBuilder

Key = tuple[Any, ...]


class SharedScalars:
    """Results of operators by their operands, as long as their values dominate the end of the program so far."""

    def __init__(self, builder: ElementBuilder) -> None:
        self._builder = builder
        self._known: dict[Key, tuple[Value, Region, int, str]] = {}

    def key(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Key | None:
        """A hashable key for the result of an operator; None if not all operands are scalars."""
        if self._builder.pointwise is not None:  # its values are none of the program
            return None
        parts: list[Any] = [ufunc, self._builder.requests]
        for x in operands:
            if type(x) in (bool, int, float, complex):
                parts += (type(x), repr(x))  # 0.0 and -0.0 differ
                continue
            value = x._read() if getattr(x, "_scalar", False) and isinstance(x._cell.value, Value) else None
            if value is None or value.shape or (self._builder.direct and value.dtype.kind not in "fc"):
                return None  # the ranges of loop integers are tracked by operation
            parts += (*(part.name for part in parts_of(value)), value.weak)
        return tuple(parts)

    def find(self, key: Key) -> Value | None:
        """The value of a key, if its operation has not been erased and its region is open."""
        found = self._known.get(key)
        if found is None:
            return None
        value, region, line_number, line = found
        return value if region.open and self._builder.has_line(line_number, line) else None

    def note(self, key: Key, value: Any) -> None:
        """Record the value of a key, which was just emitted."""
        if isinstance(value, Value) and not value.shape:
            self._known[key] = (value, self._builder.region, *self._builder.last_line())
