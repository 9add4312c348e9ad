"""Gathering: operations on arrays become nodes, with operands as nodes and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError
from mlirml.frontend.frames import user_location
from mlirml.lazy.calls import Call, located_call, part_node
from mlirml.lazy.inference import (
    ChangesArrayError,
    Checked,
    Constant,
    NotCompiledError,
    Several,
    check_dtype,
    result_of,
)
from mlirml.lazy.templates import NoTemplateError, taken_apart
from mlirml.runtime.array import Array, put
from mlirml.runtime.node import NEXT_SERIAL, Node, stored

NUMBERS = (int, float, complex, bool)


def gathered(call: Call, operands: tuple[Any, ...]) -> Any:
    """The result of a call that is run later: an array, a container of arrays, or a property such as a shape."""
    found = result_of(call, operands)
    if type(found) is Checked:
        location, found = user_location(), found.type
        call = call if location is None else located_call(call, location)
    if type(found) is Constant:
        return found.value
    if type(found) is Several:
        parent = Node(call, operands, found.types, NEXT_SERIAL())
        parts = [Array.of_node(part_node(parent, i, NEXT_SERIAL())) for i in range(len(found.types))]
        return found.tree.unflatten(parts)
    return Array.of_node(Node(call, operands, found, NEXT_SERIAL()))


def operand_like(array: Array) -> Callable[[Any], Any]:
    """A function that turns an array into the node of an operand, on the device of `array`; None for no array.

    NumPy's arrays are copied: they may change before the operation is run.
    """

    def operand(x: Any) -> Node | None:
        if type(x) is Array:
            return x._node
        if isinstance(x, np.ndarray):
            return copied(x, array)
        return None

    return operand


def copied(x: np.ndarray, like: Array) -> Node:
    """The node of a copy of an array of NumPy, on the device and for the target of an `Array`."""
    check_dtype(x.dtype)
    type = like.type
    there: Array = put(x, type.device)
    if type.target == type.device.kind:
        return there._node
    return stored(there._storage, Array(type.device, None, x.shape, x.dtype, 0, type.target).type, there._mark)  # type: ignore[arg-type]


def call_with_template(
    array: Array,
    arguments: Any,
    call: Callable[[Any], Call],
    by_numpy: Callable[[], Any],
    first: tuple[Any, ...] = (),
    changes: bool = False,
) -> Any:
    """The result of an operation with nested arguments; NumPy computes it on the host where it is not compiled.

    `call` makes the call of the arguments' template, `first` are operands before those of the arguments. `changes` is
    true if an array that is stored into may be one of NumPy's.
    """
    operands = [*first]
    try:
        template = taken_apart(arguments, operands, operand_like(array))
        return gathered(call(template), tuple(operands))
    except (NotCompiledError, NoTemplateError):
        return on_device(by_numpy(), array)
    except ChangesArrayError:
        if not changes:
            raise immutable() from None
        return on_device(by_numpy(), array)


def immutable() -> DTypeError:
    """The error for a store into an array."""
    return DTypeError(
        "an `ml.Array` does not change: nothing can be stored into it",
        location=user_location(2),
        help="make a new array: `x = x.at[index].set(values)`; `add`, `multiply`, `min` and `max` are there, too",
    )


def on_host(tree: Any) -> Any:
    """Arguments with the arrays in host memory, as NumPy takes them."""
    if isinstance(tree, Array):
        return tree.numpy()
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(on_host, tree))
    if type(tree) in (tuple, list):
        return type(tree)(map(on_host, tree))
    if type(tree) is dict:
        return {key: on_host(value) for key, value in tree.items()}
    return tree


def on_device(result: Any, like: Array) -> Any:
    """Results of NumPy with the arrays on a device."""
    if isinstance(result, np.ndarray) and result.dtype.kind in "biufc":
        return Array.of_node(copied(result, like))
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(on_device(x, like) for x in result))
    if type(result) in (tuple, list):
        return type(result)(on_device(x, like) for x in result)
    return result
