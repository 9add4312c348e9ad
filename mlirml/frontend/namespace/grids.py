"""Replacements of `np.mgrid` and `np.ogrid` in traced code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend import advice
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


class Grid:
    """Replaces `np.mgrid` or `np.ogrid`: grids as arrays of the program, with constant bounds."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name

    def __getitem__(self, key: Any) -> Any:
        with at_user_line():
            parts = tuple(map(self._known, key)) if isinstance(key, tuple) else self._known(key)
            found = getattr(np, self._name)[parts]
            if isinstance(found, np.ndarray):
                return self._trace.known(found)
            return type(found)(map(self._trace.known, found))

    def _known(self, part: Any) -> Any:
        if not isinstance(part, slice):
            return part
        bounds = (part.start, part.stop, part.step)
        unknown = [bound for bound in bounds if isinstance(bound, Traced) and bound._known() is None]
        if unknown:
            error = ShapeError(
                f"np.{self._name}: the shape depends on a bound that is known only at run time",
                help=f"take it from the shape of an array, or {advice.STATIC}",
            )
            error.sizes, error.subject = frozenset().union(*(b._sizes() for b in unknown)), f"`np.{self._name}`"
            raise error
        return slice(*map(_number, bounds))


def _number(bound: Any) -> Any:
    known = bound._known() if isinstance(bound, Traced) else None
    return bound if known is None else known[()]
