"""Replacements of `np.mgrid` and `np.ogrid` in traced code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.sizes import Size, static_needed
from mlirml.errors import ShapeError
from mlirml.frontend import advice
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text.builder import Body

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


def dynamic_grid(trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], **options: Any) -> Traced:
    """`np.arange` from one size to another, and `np.eye` and `np.tri`, of dynamic sizes."""
    function_name = function.__name__
    if function_name == "arange" and len(args) < 3 and not set(options) - {"dtype"}:
        start, stop = args if len(args) == 2 else (0, *args)
        return _counted(trace, start, stop - start, options.get("dtype"))
    if function_name in ("eye", "identity", "tri") and len(args) <= 3 and not set(options) - {"dtype"}:
        rows, columns, k = (*args, *(None, 0)[len(args) - 1 :]) if len(args) < 3 else args
        first = _counted(trace, 0, rows, None)
        second = _counted(trace, 0, rows if columns is None else columns, None)
        compare = np.greater_equal if function_name == "tri" else np.equal
        found: Traced = trace.call_ufunc(compare, "__call__", (first.reshape(rows, 1) + k, second), {})
        return found.astype(options.get("dtype") or float)
    if function_name == "linspace" and len(args) == 3 and not set(options) - {"dtype", "endpoint"}:
        return _spaced(trace, *args, **options)
    if function_name == "indices":
        (shape,) = args
        found = trace.call_function(np.stack, (_grids([_counted(trace, 0, n, None) for n in shape], full=True),), {})
        return found.astype(options.get("dtype") or int)
    raise static_needed(next(x for x in args if type(x) is Size), f"its value for `np.{function_name}`")


def _counted(trace: Trace, start: Any, count: Any, dtype: Any) -> Traced:
    """The integers from `start` on."""
    if count < 0:
        raise ShapeError("arange: the range is empty")
    kind, b = np.dtype(np.int64), trace.builder

    def body(block: Body, _: list[str]) -> str:
        number = block.op(f"arith.index_cast {block.op('linalg.index 0', 'index')}", "index to i64")
        if type(start) is int and start == 0:
            return number
        first = b.sizes.number(start) if type(start) is Size else block.constant(start, kind)
        return block.op(f"arith.addi {number}, {first}", "i64")

    found: Traced = trace.wrap(b.elementwise([], [], kind, (count,), body))
    return found if dtype is None else found.astype(dtype)


def _spaced(trace: Trace, start: Any, stop: Any, num: Any, endpoint: bool = True, dtype: Any = None) -> Traced:
    """`np.linspace` between two numbers."""
    steps = _counted(trace, 0, num, None).astype(np.float64)
    last = num - 1 if endpoint else num
    found: Any = steps * ((stop - start) / last) + start
    if endpoint:
        found = trace.call_function(np.where, (steps == last, stop, found), {})
    return found if dtype is None else found.astype(dtype)


def _grids(ranges: Sequence[Traced], *, full: bool) -> list[Any]:
    """The ranges along axes of their own, in the shape of all of them with `full`."""
    rank = len(ranges)
    places = [(*[None] * d, slice(None), *[None] * (rank - 1 - d)) for d in range(rank)]
    parts: list[Any] = [r[place] for r, place in zip(ranges, places)]
    if not full:
        return parts
    trace, shape = ranges[0]._trace, tuple(r.shape[0] for r in ranges)
    return [trace.call_function(np.broadcast_to, (part, shape), {}) for part in parts]


class Grid:
    """Replaces `np.mgrid` or `np.ogrid`: grids as arrays of the program, with constant bounds."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name

    def __getitem__(self, key: Any) -> Any:
        with at_user_line():
            parts = tuple(map(self._known, key)) if isinstance(key, tuple) else self._known(key)
            if (dynamic := self._of_sizes(parts)) is not None:
                return dynamic
            found = getattr(np, self._name)[parts]
            if isinstance(found, np.ndarray):
                return self._trace.known(found)
            return type(found)(map(self._trace.known, found))

    def _of_sizes(self, parts: Any) -> Any:
        """The grids of ranges that end at dynamic sizes; None for others."""
        listed = parts if isinstance(parts, tuple) else (parts,)
        ends = [part for part in listed if isinstance(part, slice)]
        if len(ends) < len(listed) or not any(type(x) is Size for part in ends for x in (part.start, part.stop)):
            return None
        for part in ends:
            if part.step not in (None, 1):
                raise static_needed(next(x for x in (part.start, part.stop) if type(x) is Size), "its value for a step")
        starts = [part.start or 0 for part in ends]
        ranges = [_counted(self._trace, first, part.stop - first, None) for first, part in zip(starts, ends)]
        if not isinstance(parts, tuple):
            return ranges[0]
        grids = _grids(ranges, full=self._name == "mgrid")
        return self._trace.call_function(np.stack, (grids,), {}) if self._name == "mgrid" else tuple(grids)

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
