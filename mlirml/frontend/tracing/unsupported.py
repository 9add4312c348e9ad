"""NumPy's functions that are not compiled: the reason, and the code to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import CaptureError, ShapeError, UnsupportedSyntaxError
from mlirml.ops import BY_FUNCTION

_OUTSIDE = "call it outside, and pass its result as an argument"

# Functions whose result has a size that depends on the data.
_DATA_DEPENDENT: dict[Callable[..., Any], str] = {
    **dict.fromkeys((np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values), "use `np.unique`"),
}
_INSTEAD: dict[Callable[..., Any], str] = {
    np.copyto: "write `x[...] = y`",
    np.place: "write `x[mask] = value`",
}


def refuse(function: Callable[..., Any], name: str) -> CaptureError:
    """The error for a NumPy function that has no record; `name` is the user's name for it."""
    if function in _DATA_DEPENDENT:
        return ShapeError(f"`{name}`: the shape of the result would depend on the data", help=_DATA_DEPENDENT[function])
    helps = [_INSTEAD.get(function, _OUTSIDE)]
    similar = _similar(name.rpartition(".")[2])
    if similar:
        helps.append(f"compiled functions with a similar name: {', '.join(similar)}")
    return UnsupportedSyntaxError(f"`{name}` is not compiled", help="; ".join(helps))


def _similar(name: str) -> list[str]:
    """Compiled functions with similar names: one is part of the other, or they nearly match."""
    import difflib  # takes 2 ms, which only errors should cost

    records = {getattr(function, "__name__", ""): function for function in BY_FUNCTION}
    names = sorted(n for n, function in records.items() if getattr(np, n, None) is function)
    found = [n for n in names if (len(n) > 2 and n in name) or (len(name) > 3 and name in n)]
    found += difflib.get_close_matches(name, names, n=3, cutoff=0.8)
    return [f"np.{n}" for n in dict.fromkeys(found)][:3]
