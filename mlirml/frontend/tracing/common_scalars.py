"""Scalars that the program has computed already: the same operator on the same scalars is written once.

Recursions over minors, and programs over lists of numbers, ask for the same products many times: the determinant of a
matrix of size 7 for 13,699 of which 448 differ. To write each costs far more than `cse` needs to find it later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.ir.text.builder import Region, Value
from mlirml.ir.text.complex import parts_of
from mlirml.ir.text.elements import ElementBuilder

Key = tuple[Any, ...]


class SharedScalars:
    """Results of operators by their operands, as far as they may be used at the end of the program so far."""

    def __init__(self, builder: ElementBuilder) -> None:
        self._builder = builder
        self._known: dict[Key, tuple[Value, Region, int, str]] = {}

    def key(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Key | None:
        """What the result of an operator is determined by; None where not all operands are scalars."""
        parts: list[Any] = [ufunc, self._builder.requests]
        for x in operands:
            if type(x) in (bool, int, float, complex):
                parts += (type(x), repr(x))  # 0.0 and -0.0 differ
                continue
            value = x._read() if getattr(x, "_scalar", False) and isinstance(x._cell.value, Value) else None
            if value is None or value.shape or (self._builder.direct and value.dtype.kind not in "fc"):
                return None  # the integers of loops are followed one by one
            parts += (*(part.name for part in parts_of(value)), value.weak)
        return tuple(parts)

    def find(self, key: Key) -> Value | None:
        """The value of a key, if its operation is there still, in a region that is open."""
        found = self._known.get(key)
        if found is None:
            return None
        value, region, place, line = found
        return value if region.open and self._builder.has_line(place, line) else None

    def note(self, key: Key, value: Any) -> None:
        """Remember the value of a key, which was just written."""
        if isinstance(value, Value) and not value.shape:
            self._known[key] = (value, self._builder.region, *self._builder.last_line())
