"""Decorators that define the functions of this package, from op records or from other functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from mlirml.errors import DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text.dtypes import describe, is_float
from mlirml.ops.registry import FLOATS, NN, OpDef, define, named

F = TypeVar("F", bound=Callable[..., Any])


def from_record(name: str) -> Callable[..., Any]:
    """The function of a record: NumPy's way on real arrays, the record's `build` where an argument is traced."""
    record = NN[name]
    signature = record.signature

    def call(*args: Any, **kwargs: Any) -> Any:
        with at_user_line():
            trace = current_trace()
            given = (*args, *kwargs.values())
            if trace is None or not any(isinstance(x, Traced) for x in given):
                return record.reference(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return trace._apply(record, bound.args, bound.kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = record.doc
    call.__module__ = "mlirml.nn.functional"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def composite(*, dtypes: tuple[str, ...] = FLOATS, **options: Any) -> Callable[[F], F]:
    """Decorator: a function written in NumPy, for traced and real arrays alike, enters the records for tests and docs.

    Errors show the user's line.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with at_user_line(), np.errstate(over="ignore", under="ignore"):
                return function(*args, **kwargs)

        call.__module__ = "mlirml.nn.functional"
        doc = (function.__doc__ or "").strip()
        define(OpDef(function.__name__, "composite", call, call, dtypes=dtypes, doc=doc, **options))
        return cast(F, call)

    return decorate


def composites(
    function: Callable[..., Any], names: str, docs: Mapping[int, str], **options: Any
) -> Iterator[Callable[..., Any]]:
    """The functions `function(name, rank, ...)`, one for each rank with a docstring; `names` has {} for the rank."""
    for rank, doc in docs.items():
        yield composite(**options)(named(function, names.format(rank), doc, names.format(rank), rank))


def as_array(x: Any) -> Any:
    """A traced array as it is, anything else as a NumPy array."""
    return x if isinstance(x, Traced) else np.asarray(x)


def table(x: Any) -> Any:
    """An array that may be indexed by dynamic integers."""
    x, trace = as_array(x), current_trace()
    return x if isinstance(x, Traced) or trace is None else trace.array(x, copy=False)


def shown(x: Any) -> str:
    """An array's dtype and shape as messages show them: `f32[4,8]`."""
    return describe(tuple(x.shape), x.dtype)


def floats(name: str, *arrays: Any) -> tuple[list[Any], np.dtype]:
    """Float operands to compute with, None left alone, and the dtype of the result; 16-bit floats become f32."""
    operands = [None if x is None else as_array(x) for x in arrays]
    given = [x for x in operands if x is not None]
    for x in given:
        if not is_float(x.dtype) and x.dtype.kind != "f":
            raise DTypeError(
                f"{name}: the operands must be floats, got {shown(x)}", help="convert it with `.astype(np.float32)`"
            )
    result = np.result_type(*(x.dtype for x in given))
    wide = [x if x is None or x.dtype.itemsize > 2 else x.astype(np.float32) for x in operands]
    return wide, result


def rounded(x: Any, dtype: np.dtype) -> Any:
    """A result in the dtype that it should have."""
    return x if x.dtype == dtype else x.astype(dtype)


def axis_of(name: str, dim: Any, shape: tuple[int, ...]) -> int:
    """A dimension counted from the front; `ShapeError` where there is none."""
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        raise ShapeError(f"{name}: dim must be an integer, got {dim!r}")
    if not -len(shape) <= dim < len(shape):
        raise ShapeError(f"{name}: dim {dim} is out of bounds for an array of shape {list(shape)}")
    return int(dim) % len(shape)


def known(array: np.ndarray) -> Any:
    """A constant: known to the trace that is running, if there is one."""
    trace = current_trace()
    return array if trace is None else trace.known(array)


def refuse_random(name: str, instead: str, other: str) -> None:
    """Raise `UnsupportedSyntaxError`: a function that needs random numbers got no key."""
    raise UnsupportedSyntaxError(
        f"{name}: random numbers are drawn by keys alone", help=f"pass `{instead}`, or {other}"
    )
