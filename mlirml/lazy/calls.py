"""What an operation that is gathered does to its operands, as it is replayed in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlirml.core.tracebacks import code_at
from mlirml.core.tree import flatten
from mlirml.errors import SourceLocation
from mlirml.lazy.templates import filled
from mlirml.runtime.node import Node

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

Apply = Callable[["Trace", Sequence[Any]], Any]
"""Takes the trace and the operands, traced arrays and numbers; returns the result."""

_MOST_CALLS = 1 << 13
_CALLS: dict[Any, Call] = {}


class Call:
    """An operation with its static arguments, of which there is one object.

    `results` are the types of the results, by the types of arrays and the keys of numbers among the operands.
    `by_value` is true if the result may have another shape for another number, whose key then is its value.
    """

    __slots__ = ("apply", "by_value", "name", "results")
    evaluator: ClassVar[Any]  # takes a list of nodes

    def __init__(self, name: str, apply: Apply, by_value: bool) -> None:
        self.name, self.apply, self.by_value = name, apply, by_value
        self.results: dict[Any, Any] = {}

    def evaluate(self, node: Node) -> None:
        """Compute a node of this call, and what it is computed from."""
        self.evaluator([node])


def interned(key: Any, name: str, apply: Callable[[], Apply], by_value: bool = True) -> Call:
    """The call of this key, made at its first use."""
    known = _CALLS.get(key)
    if known is None:
        if len(_CALLS) >= _MOST_CALLS:
            _CALLS.clear()  # equal calls that are other objects only mean that programs are compiled anew
        known = _CALLS[key] = Call(name, apply(), by_value)
    return known


def operator_call(ufunc: np.ufunc) -> Call:
    """A Python operator."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        return trace.call_operator(ufunc, tuple(operands))

    return interned(("operator", ufunc), ufunc.__name__, lambda: apply, by_value=False)


def ufunc_call(ufunc: np.ufunc, method: str, template: Any) -> Call:
    """A ufunc, or a method of one; the template is that of the inputs and the keyword arguments."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        inputs, kwargs = filled(template, operands)
        return trace.call_ufunc(ufunc, method, inputs, kwargs)

    return interned(("ufunc", ufunc, method, template), ufunc.__name__, lambda: apply, method != "__call__")


def plain_ufunc_call(ufunc: np.ufunc) -> Call:
    """A ufunc of arrays and numbers, without options."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        return trace.call_ufunc(ufunc, "__call__", tuple(operands), {})

    return interned(("plain ufunc", ufunc), ufunc.__name__, lambda: apply, by_value=False)


def function_call(function: Callable[..., Any], template: Any) -> Call:
    """A function of NumPy, or another that is an operation; the template is that of its arguments."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        args, kwargs = filled(template, operands)
        return trace.call_function(function, args, kwargs)

    return interned(("function", function, template), getattr(function, "__name__", "function"), lambda: apply)


def method_call(name: str, template: Any) -> Call:
    """A method of the first operand; the template is that of the other arguments."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        args, kwargs = filled(template, operands[1:])
        return getattr(operands[0], name)(*args, **kwargs)

    return interned(("method", name, template), name, lambda: apply)


def attribute_call(name: str) -> Call:
    """An attribute that is an array, such as `T`."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        return getattr(operands[0], name)

    return interned(("attribute", name), name, lambda: apply)


def part_call(number: int) -> Call:
    """One of the results of an operation that has several."""

    def apply(trace: Trace, operands: Sequence[Any]) -> Any:
        return flatten(operands[0])[0][number]

    return interned(("part", number), f"result {number}", lambda: apply)


def located_call(call: Call, location: SourceLocation) -> Call:
    """The call with the user's line as that of the operations that it is compiled to, and of their checks."""

    def located() -> Apply:
        code = code_at(location, "result = apply(trace, operands)")

        def apply(trace: Trace, operands: Sequence[Any]) -> Any:
            names = {"__name__": "<gathered>", "apply": call.apply, "trace": trace, "operands": operands}
            exec(code, names)
            return names["result"]

        return apply

    return interned(("located", call, location), call.name, located)


PART_CALLS: dict[Call, int] = {}
"""The calls that take one of several results, with its index."""


def part_node(parent: Node, number: int, serial: int) -> Node:
    """One of the results of a node of several."""
    call = part_call(number)
    PART_CALLS[call] = number
    return Node(call, (parent,), parent.type[number], serial)
