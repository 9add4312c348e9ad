"""The reference target: runs MLIR modules with NumPy, slowly and plainly, as the oracle for passes and targets.

Modules of any stage before LLVM run: tensors are values, memrefs are arrays changed in place. Undefined behaviour is
made visible: uninitialized memory is NaN (bytes all ones), freed memory too, an index out of bounds raises
`LaunchError`, and parallel iterations run last to first. Operations without a rule raise `TargetError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.errors import LaunchError
from mlirml.interpreter import (  # noqa: F401  (importing them registers their rules)
    compactions,
    control,
    host_calls,
    library_calls,
    linalg,
    memref,
    sort,
    tensor,
    vector,
)
from mlirml.interpreter.program import Program
from mlirml.interpreter.values import DYNAMIC, Array, Buffer, Value, dtype_of, is_memref, is_shaped, shape_of
from mlirml.ir.bindings import mlir


def interpret(module: Any, arguments: Sequence[Any], function: str = "main") -> list[Array]:
    """Run a function of a module, or of a program made of one, on arrays and return its results.

    Arguments for tensors, vectors and scalars are arrays (or numbers) of the type's shape and dtype; an unsigned array
    is accepted for signless integers, and bool for i8. Arguments for memrefs are changed in place, so they must have
    the layout of the type. Results are fresh arrays, integers signed, memrefs the arrays they live in.

    Raises `TargetError` for an operation that has no rule, `LaunchError` when an argument does not fit or the program
    does something undefined, `InternalError` when a rule fails.
    """
    program = module if isinstance(module, Program) else Program(getattr(module, "operation", module))
    with np.errstate(all="ignore"):
        prepared = program.function(function)
        types = [argument.type for argument in prepared.entry.arguments]
        if len(types) != len(arguments):
            raise LaunchError(f"@{function} takes {len(types)} arguments, {len(arguments)} were given")
        values = [_enter(value, argument_type, n) for n, (value, argument_type) in enumerate(zip(arguments, types))]
        return [_leave(value) for value in prepared(values)]


def _enter(value: Any, argument_type: mlir.Type, position: int) -> Value:
    """An argument as a value of its MLIR type."""
    dtype = dtype_of(argument_type)
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype)
    if array.dtype != dtype:
        if array.itemsize != dtype.itemsize or array.dtype.kind not in "iub" or dtype.kind not in "iub":
            raise LaunchError(f"argument {position} has dtype {array.dtype}, not the {dtype} of {argument_type}")
        array = array.view(dtype)
    shape = shape_of(argument_type)
    if len(shape) != array.ndim or any(n not in (DYNAMIC, m) for n, m in zip(shape, array.shape)):
        raise LaunchError(f"argument {position} has shape {list(array.shape)}, which does not fit {argument_type}")
    if not is_memref(argument_type):
        return array if is_shaped(argument_type) else array[()]
    strides, _ = argument_type.get_strides_and_offset()
    buffer = _around(array)
    steps = zip(strides, buffer.strides, array.shape)
    if array.size and any(n not in (DYNAMIC, m) and size > 1 for n, m, size in steps):
        raise LaunchError(f"argument {position} has strides {buffer.strides}, which do not fit {argument_type}")
    return buffer


def _around(array: Array) -> Buffer:
    """The buffer that covers the caller's memory of an array."""
    if array.flags.c_contiguous:
        return Buffer.around(array)
    if min(array.strides) < 0:
        raise LaunchError(f"an array with strides {array.strides} cannot be a memref")
    extent = sum((size - 1) * step for size, step in zip(array.shape, array.strides)) + array.itemsize
    memory = np.lib.stride_tricks.as_strided(_first(array), [extent], [1])
    return Buffer(array, memory)


def _first(array: Array) -> Array:
    """The bytes of the first element."""
    return np.lib.stride_tricks.as_strided(array, [1], [array.itemsize]).view(np.uint8)


def _leave(value: Value) -> Array:
    return value.array if isinstance(value, Buffer) else np.array(value)
