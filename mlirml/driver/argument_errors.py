"""Errors for arguments that a program refuses: integers out of range, and arrays that cannot be stored into."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml import errors
from mlirml.core.tracebacks import raised_at
from mlirml.errors import (
    NAN_CHECK,
    CheckFailed,
    FloatOperationError,
    IntegerRangeError,
    LaunchError,
    MlirmlError,
    OutgrownListError,
    SourceLocation,
    nan_check,
)
from mlirml.frontend.aliasing import share_elements
from mlirml.ir.text.dtypes import short_name
from mlirml.runtime.array import Array

if TYPE_CHECKING:
    from mlirml.frontend.aliasing import NotCompiled
    from mlirml.frontend.captured import Captured


def refusal(
    captured: Captured, leaves: Sequence[Any], paths: Sequence[str], out_arrays: Sequence[Any] | None
) -> MlirmlError | None:
    """The error that names the refused argument, at the line of the function that is the reason; None if all fit."""
    return (
        _integer_out_of_range(captured, leaves, paths)
        or store_refused(captured, leaves, paths)
        or _constant_refused(captured, leaves, paths)
        or _out_refused([out for out in out_arrays or () if out is not None])
    )


def failure(captured: Captured, failed: CheckFailed) -> Exception:
    """The error for an assertion of the program that failed, located at the source line of that assertion."""
    if failed.check >= NAN_CHECK:
        locations = (p for p in captured.operation_locations() if nan_check(p.line, p.column or 0) == failed.check)
        location = next(locations, captured.entry)
        return FloatOperationError(
            "an operation makes a NaN, and its operands have none",
            location=location,
            help="`ml.config.check_nan = False` lets NaN pass",
        )
    check = captured.checks[failed.check]
    if check.raised is not None:
        error = raised_at(copy.copy(check.raised), check.location)
        if isinstance(error, MlirmlError):  # of a function of NumPy that is written with others, at the user's line
            error.location = error.location or check.location
        if isinstance(error, OutgrownListError):
            error.repeatable = not captured.host_functions
        return error
    number = failed.about if check.about is not None else None
    message = check.message if number is None else str(check.about).format(number)
    error_class: type[MlirmlError] = getattr(errors, check.kind)
    return error_class(message, location=check.location or captured.entry, help=check.help)


def failure_or_repeat(captured: Captured, failed: CheckFailed) -> Exception | None:
    """As `failure`; None where a list outgrew its room, so that the call is repeated with more."""
    error = failure(captured, failed)
    return None if isinstance(error, OutgrownListError) and error.repeatable else error


def _integer_out_of_range(captured: Captured, leaves: Sequence[Any], paths: Sequence[str]) -> MlirmlError | None:
    for (i, _, _, name), location in zip(captured.int_ranges, captured.narrowed_at):
        error = _outside(leaves[i], paths[i], np.dtype(name), location)
        if error is not None:
            return error
    narrowed = {i for i, *_ in captured.int_ranges}
    i64 = np.dtype(np.int64)
    whole = [i for i, s in enumerate(captured.inputs) if s.weak and s.dtype == i64 and i not in narrowed]
    return next((e for i in whole if (e := _outside(leaves[i], paths[i], i64, captured.entry)) is not None), None)


def _outside(number: int, path: str, dtype: np.dtype, location: SourceLocation | None) -> MlirmlError | None:
    limits, name = np.iinfo(dtype), short_name(dtype)
    if limits.min <= number <= limits.max:
        return None
    return IntegerRangeError(
        f"argument `{path}`: Python integer {number} is out of bounds for {name}",
        location=location,
        notes=(f"{name} holds the integers from {limits.min} to {limits.max}",),
        help="pass a float"
        if dtype.itemsize == 8
        else "convert the array that it meets to a wider dtype, or pass a float",
    )


def store_refused(captured: Captured, leaves: Sequence[Any], paths: Sequence[str]) -> MlirmlError | None:
    """The error for an argument that cannot be stored into, whatever the others are; None if there is none."""
    for (_, target), location in zip(captured.writebacks, captured.stored_at):
        if isinstance(leaves[target], Array):  # always dense and writable, and to look at it would copy it to the host
            continue
        array = np.asarray(leaves[target])
        what, copy = f"argument `{paths[target]}` is stored into", f"pass a copy: `{paths[target]}.copy()`"
        if not array.flags.writeable:
            return LaunchError(f"{what}, but it is read-only", location=location, help=copy)
        if _repeats_elements(array):
            return LaunchError(f"{what}, but its elements share memory", location=location, help=copy)
    return None


def _repeats_elements(array: np.ndarray) -> bool:
    """As in the runtime: whether two different indices name the same element, or may do so."""
    span = array.itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape) if size > 1):
        if stride < span:
            return bool(array.size)
        span += (size - 1) * stride
    return False


def overlap_refused(
    captured: Captured, leaves: Sequence[Any], paths: Sequence[str], reason: NotCompiled
) -> MlirmlError:
    """The error for arguments that overlap in a way that is not compiled."""
    stored = [target for _, target in captured.writebacks]
    i, j = reason.first, reason.second
    target, other = (i, j) if i in stored else (j, i)
    place = captured.stored_at[stored.index(target)] if target in stored else captured.entry
    what = f"argument `{paths[target]}` is stored into, and shares memory with argument `{paths[other]}`"
    help = f"pass a copy of one of them: `{paths[target]}.copy()`"
    return LaunchError(what, location=place, notes=(str(reason),), help=help)


def _constant_refused(captured: Captured, leaves: Sequence[Any], paths: Sequence[str]) -> MlirmlError | None:
    for (_, target), location in zip(captured.writebacks, captured.stored_at):
        if any(share_elements(leaves[target], constant) for constant in captured.constants):
            what = (
                f"argument `{paths[target]}` is stored into, and shares memory with an array from outside the function"
            )
            return LaunchError(what, location=location, help=f"pass a copy: `{paths[target]}.copy()`")
    return None


def _out_refused(out_arrays: Sequence[np.ndarray]) -> MlirmlError | None:
    for i, out in enumerate(out_arrays):
        if not out.flags.writeable:
            return LaunchError(f"`out`: the array for result {i} is read-only")
        if any(share_elements(out, other) for other in out_arrays[:i]):
            return LaunchError(f"`out`: the array for result {i} shares memory with that of another result")
    return None
