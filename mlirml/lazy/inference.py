"""Shapes and dtypes of results, by a trace of the one operation, whose errors are those of compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, DTypeError, MlirmlError, TracedValueError, UnsupportedSyntaxError
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.lazy.calls import Call
from mlirml.runtime.node import ArrayType, Node, array_type

_MOST_RESULTS = 1 << 12
_REFUSED = ("not compiled", "would depend on the data")
"""What messages say of operations that NumPy has and compiled functions have not."""


class NotCompiledError(Exception):
    """The operation is not compiled: NumPy computes it."""


class ChangesArrayError(Exception):
    """The operation stores into one of its operands."""


class Constant:
    """A result that is no array, such as a shape."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Several:
    """A result of several arrays: their types, and the container that they are in."""

    __slots__ = ("tree", "types")

    def __init__(self, tree: Any, types: tuple[ArrayType, ...]) -> None:
        self.tree, self.types = tree, types


class Checked:
    """The type of a result, or `Several`, of an operation that is checked when it runs."""

    __slots__ = ("type",)

    def __init__(self, type: Any) -> None:
        self.type = type


def number_key(x: Any, by_value: bool) -> Any:
    """The part of a number that the type of a result may depend on."""
    kind = type(x)
    if by_value:
        return kind, x
    if kind is int:
        return int, x.bit_length() > 6 and x.bit_length(), x < 0, x == 2
    return (bool, x) if kind is bool else kind


def result_of(call: Call, operands: tuple[Any, ...]) -> Any:
    """The type of a call's result, `Several` or `Checked`, or a `Constant`.

    Raises the error of a compiled function for these operands, `ArgumentError` for arrays on several devices,
    `NotCompiledError` and `ChangesArrayError`.
    """
    by_value = call.by_value
    key = tuple([x.type if type(x) is Node else number_key(x, by_value) for x in operands])
    found = call.results.get(key)
    if found is None:
        if len(call.results) >= _MOST_RESULTS:
            call.results.clear()
        try:
            found = _inferred(call, operands)
        except (NotCompiledError, ChangesArrayError) as error:
            found = error
        call.results[key] = found
    if isinstance(found, Exception):
        raise type(found) from None
    return found


def common_type(operands: tuple[Any, ...], what: str) -> ArrayType:
    """The type of one of the arrays; raises `ArgumentError` where they are on several devices or of several targets."""
    types = [x.type for x in operands if type(x) is Node]
    types = [part for t in types for part in (t if isinstance(t, tuple) else (t,))]
    first: ArrayType = types[0]
    for other in types:
        if (other.device, other.target) != (first.device, first.target):
            raise ArgumentError(
                f"{what}: one array is on {first.where}, another one on {other.where}",
                location=user_location(2),
                help=f'move one of them: `x.to("{first.device.id}")`'
                if other.device is not first.device
                else f'make both for one target: `ml.asarray(x, target="{first.target}")`',
            )
    return first


def _inferred(call: Call, operands: tuple[Any, ...]) -> Any:
    from mlirml.core.tree import flatten
    from mlirml.frontend.arrays.array import Traced
    from mlirml.frontend.arrays.indexing import is_dynamic
    from mlirml.frontend.arrays.tracer import Cell
    from mlirml.frontend.capture import HANDLERS
    from mlirml.frontend.current import CURRENT
    from mlirml.frontend.tracing.trace import Trace

    where = common_type(operands, call.name)
    trace = Trace(call.name, HANDLERS)
    cells = []

    def traced(type: ArrayType) -> Traced:
        cell = Cell(trace.builder.argument(type.shape, type.dtype, False))
        cells.append(cell)
        return Traced(trace, cell)

    values = [_value_of(x, traced) for x in operands]
    token = CURRENT.set(trace)
    try:
        with at_user_line():
            result = call.apply(trace, values)
    except MlirmlError as error:
        raise _refusal(error) or error from None
    finally:
        CURRENT.reset(token)
        trace.done = True
    if any(cell.written for cell in cells):
        raise ChangesArrayError
    leaves, tree = flatten(result)
    if any(map(is_dynamic, leaves)):
        raise NotCompiledError
    if not any(isinstance(leaf, Traced) for leaf in leaves):
        return Constant(result)
    if not all(isinstance(leaf, Traced) for leaf in leaves):
        raise NotCompiledError
    types = tuple(array_type(x.shape, x.dtype, where.device, where.target) for x in leaves)
    found = types[0] if leaves[0] is result else Several(tree, types)
    return Checked(found) if trace.builder.checks else found


def _value_of(operand: Any, traced: Any) -> Any:
    if type(operand) is not Node:
        return operand
    if isinstance(operand.type, tuple):
        return tuple(map(traced, operand.type))
    return traced(operand.type)


def _refusal(error: MlirmlError) -> Exception | None:
    """`NotCompiledError` for what compiled functions cannot do, where NumPy can."""
    if isinstance(error, (UnsupportedSyntaxError, TracedValueError)):
        return NotCompiledError()
    return NotCompiledError() if any(reason in error.message for reason in _REFUSED) else None


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise `DTypeError` for the dtype of an array that is not compiled."""
    from mlirml.ir.text.dtypes import is_supported

    if not is_supported(dtype):
        raise DTypeError(f"an array of dtype {dtype} cannot be used in compiled code", location=user_location(2))
