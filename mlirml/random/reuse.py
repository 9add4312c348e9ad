"""Keys that are used twice: in a compiled function, in each iteration of a loop, and outside of compiled functions."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import numpy as np

from mlirml.errors import KeyReuseWarning, SourceLocation
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import user_location
from mlirml.frontend.tracing.trace import Trace

_USED: dict[tuple[int, int], tuple[Any, bytes, SourceLocation | None]] = {}
"""The keys used outside of compiled functions, by their memory: the array that has it, the words, and the first use."""
_MOST_USED = 4096


def note_eager_use(key: Any) -> None:
    """Warn of an array that was used as a key before, outside of compiled functions; an equal one is another key."""
    if not isinstance(key, np.ndarray):
        return
    owner = key
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    memory, words, location = (id(owner), key.__array_interface__["data"][0]), key.tobytes(), user_location()
    held, before, first = _USED.get(memory, (None, None, None))
    if held is not None and held() is owner and before == words:
        if first is not None and location is not None:
            message = f"this key was used at {first.file}:{first.line} already, and gives the same numbers: split it"
            warnings.warn_explicit(message, KeyReuseWarning, location.file, location.line)
        return
    _USED[memory] = weakref.ref(owner), words, location
    if len(_USED) > _MOST_USED:
        del _USED[next(iter(_USED))]


def note_use(trace: Trace, key: Any) -> None:
    """Note a key that has drawn numbers or was split before, where the code of both uses runs in one call."""
    b = trace.builder
    if not isinstance(key, (Traced, np.ndarray)) or b.region is None:
        return
    identity, location = _identity(key), user_location()
    if trace.batches and _is_shared(trace, key):
        _note(trace, location, "all examples draw the same numbers, by a key from outside of `ml.vmap`")
    if _repeats(b.region, _regions_of(key)):
        _note(trace, location, "each iteration draws the same numbers, by a key from outside of the loop")
    elif (before := trace.drawn.get(identity)) is not None:
        region, line, first, _ = before
        if _encloses(region, b.region) and b.has_line(*line):
            if first is not None:
                before = f"{first.file}:{first.line}"
                _note(trace, location, f"the key was used at {before} already, and gives the same numbers")
            return
    trace.drawn[identity] = b.region, b.last_line(), location, key


def _note(trace: Trace, location: Any, message: str) -> None:
    if location is not None:
        noted = trace.reused.setdefault((location, f"{message}: split it"), [])
        noted.append(trace.builder.last_line()[1])


def _identity(key: Any) -> Any:
    known = key._known() if isinstance(key, Traced) else key
    return known.tobytes() if known is not None else (id(key._cell), key._cell.version, key._views)


def _regions_of(key: Any) -> list[Any]:
    """The regions that a key, or the offset of a view that it is, is computed in."""
    if not isinstance(key, Traced) or key._known() is not None:
        return []
    regions = [key._cell.region, *(getattr(view, "region", None) for view in key._views)]
    return [region for region in regions if region is not None]


def _is_shared(trace: Trace, key: Any) -> bool:
    """True for a key that was there before the function which `ml.vmap` traces, or that is known."""
    if not isinstance(key, Traced) or key._known() is not None:
        return True
    if any(getattr(view, "region", None) is not None for view in key._views):
        return False  # an element at a position that may be that of the example
    value: Any = key._cell.value
    number = value.name[1:]  # names of other forms are those of a loop or branch
    return value in trace.builder.arguments or (number.isdecimal() and int(number) < trace.batches[-1])


def _repeats(inner: Any, own: list[Any]) -> bool:
    """True if a region is in a loop that is in none of these regions."""
    while inner is not None and not any(inner is region for region in own):
        if inner.repeats:
            return True
        inner = inner.parent
    return False


def _encloses(outer: Any, inner: Any) -> bool:
    """True if a region is the other one, or one around it."""
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is not None
