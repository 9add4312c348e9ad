"""Indices of arrays. Positions that are integers are operands, so that `x[i]` of a loop is one program for all `i`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.tracebacks import without_own_frames
from mlirml.lazy.calls import Call, interned
from mlirml.lazy.gather import call_with_template, gathered, immutable, on_host, operand_like
from mlirml.lazy.templates import GAP, filled, taken_apart
from mlirml.runtime.array import Array

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_WINDOW = "window"  # in a template: the length and the step of a slice, whose start is an operand
_PLAIN = "plain"


def elements(array: Array, index: Any) -> Any:
    """`array[index]`."""
    found = _basic(array.shape, index)
    if found is not None:
        template, starts = found
        return gathered(_call("get", template, False), (array._node, *starts))
    return call_with_template(
        array,
        index,
        lambda template: _call("get", (_PLAIN, template), True),
        lambda: array.numpy()[on_host(index)],
        (array._node,),
    )


class At:
    """The object `x.at`; indexing it returns an `Elements`."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Elements:
        return Elements(self._array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise immutable()


def _updating(name: str, doc: str) -> Callable[[Elements, Any], Array]:
    """The method that updates elements as that of compiled functions does."""

    def update(self: Elements, values: Any) -> Array:
        return self._updated(name, values)

    update.__name__, update.__doc__ = name, doc
    return update


class Elements:
    """The elements of an array at an index; each method returns a new array, as in compiled functions."""

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any) -> None:
        self._array, self._index = array, index

    def get(self) -> Any:
        """A copy of the elements."""
        return self._array[self._index]

    set = _updating("set", "The elements replaced; of repeated positions the last one wins.")
    add = _updating("add", "Values added to the elements.")
    subtract = _updating("subtract", "Values subtracted from the elements.")
    multiply = _updating("multiply", "The elements multiplied by values.")
    divide = _updating("divide", "The elements divided by values.")
    power = _updating("power", "The elements to the power of values.")
    min = _updating("min", "The smaller of the elements and the values.")
    max = _updating("max", "The larger of the elements and the values.")

    @without_own_frames
    def _updated(self, name: str, values: Any) -> Array:
        array = self._array
        operands: list[Any] = [array._node]
        operand = operand_like(array)
        of_values = taken_apart(values, operands, operand)
        found = _basic(array.shape, self._index)
        if found is None:
            template = (_PLAIN, taken_apart(self._index, operands, operand))
            call = _call(name, template, True, of_values)
        else:
            operands += found[1]
            call = _call(name, found[0], False, of_values)
        return gathered(call, tuple(operands))


def _basic(shape: tuple[int, ...], index: Any) -> tuple[Any, list[int]] | None:
    """The template of an index of integers in bounds, slices, None and `...`, and its positions; None for another."""
    items = index if type(index) is tuple else (index,)
    consumed = 0
    for item in items:
        kind = type(item)
        if kind is int or kind is slice:
            consumed += 1
        elif item is not None and item is not Ellipsis:
            return None
    if consumed > len(shape) or sum(item is Ellipsis for item in items) > 1:
        return None
    template: list[Any] = []
    starts: list[int] = []
    axis = 0
    for item in items:
        if item is None:
            template.append(None)
        elif item is Ellipsis:
            template.append(Ellipsis)
            axis += len(shape) - consumed
        else:
            size = shape[axis]
            axis += 1
            if type(item) is int:
                if not -size <= item < size:
                    return None
                starts.append(item % size)
                template.append(GAP)
            else:
                try:
                    start, stop, step = item.indices(size)
                except (TypeError, ValueError):
                    return None
                length = len(range(start, stop, step))
                if length == size and step == 1:
                    template.append(slice(None).__reduce__()[1])
                else:
                    starts.append(start)
                    template.append((_WINDOW, length, step))
    return tuple(template), starts


def _index_of(template: Any, starts: Any) -> Any:
    """The index of a template, with positions that are numbers of Python or of the trace."""
    if template[:1] == (_PLAIN,):
        return filled(template[1], starts)
    given = iter(starts)
    items: list[Any] = []
    for item in template:
        if item is GAP:
            items.append(next(given))
        elif item is None or item is Ellipsis:
            items.append(item)
        elif item[0] != _WINDOW:
            items.append(slice(None))
        else:
            items.append(_window(next(given), item[1], item[2]))
    return tuple(items)


def _window(start: Any, length: int, step: int) -> Any:
    if type(start) is not int:
        return start + step * np.arange(length)
    stop = start + length * step
    return slice(start, None if stop < 0 else stop, step) if length else slice(0, 0)


def _call(name: str, template: Any, by_value: bool, values: Any = None) -> Call:
    def get(trace: Trace, operands: Sequence[Any]) -> Any:
        return operands[0][_index_of(template, operands[1:])]

    def update(trace: Trace, operands: Sequence[Any]) -> Any:
        from mlirml.frontend.arrays.at import At as TracedAt

        count = _gaps(values)
        index = _index_of(template, operands[1 + count :])
        value = filled(values, operands[1 : 1 + count])
        return getattr(TracedAt(operands[0])[index], name)(value)

    key = "index", name, template, values
    return interned(key, f"x[...].{name}", lambda: get if name == "get" else update, by_value)


def _gaps(template: Any) -> int:
    """The number of operands that a template takes."""
    return 1 if template is GAP else sum(map(_gaps, template)) if isinstance(template, tuple) else 0
