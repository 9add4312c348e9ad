"""Parameters of distributions: their dtypes, shapes and values, as far as these are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.sizes import same_shape
from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.current import current_trace
from mlirml.frontend.tracing.regions import trace_while_loop
from mlirml.ir.text.dtypes import common_shape, is_float
from mlirml.random.keys import as_array, dtype_in, dtype_of, known_value, sizes


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """The dtype of a result, f16, bf16, f32 or f64."""
    found = dtype_of(name, dtype)
    if not is_float(found):
        raise DTypeError(f"{name}: the dtype must be a float, not {found.name}")
    return found


def computed(dtype: np.dtype) -> np.dtype:
    """The dtype that a result is computed in: f32 for those of 16 bits."""
    return np.dtype(np.float32) if dtype.itemsize < 8 else dtype


def check_real(name: str, *parameters: Any) -> None:
    """An error where a parameter has no real numbers: None, which NumPy converts to NaN, text, complex numbers."""
    for x in parameters:
        dtype = dtype_in(x)
        if type(x) is not int and dtype.kind not in "biu" and not is_float(dtype):
            given = repr(x) if dtype.kind in "OUS" else dtype.name
            raise DTypeError(f"{name}: parameters must be real numbers, got {given}")


def shape_of(name: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of a result: the one that is asked for, or that of the parameters, which must be real."""
    check_real(name, *parameters)
    shapes = [np.shape(x) for x in parameters]
    try:
        common = common_shape(*shapes) if shapes else ()
        wanted = common if shape is None else sizes(name, shape)
        if not same_shape(common_shape(common, wanted), wanted):
            raise ValueError
    except ShapeError:
        raise
    except ValueError:
        given = ", ".join(str(list(s)) for s in shapes)
        to = "" if shape is None else f" to {shape!r}"
        raise ShapeError(f"{name}: parameters of shape {given} do not broadcast{to}") from None
    return wanted


def refuse(name: str, message: str, x: Any, wrong: Callable[[np.ndarray], Any], help: str | None = None) -> None:
    """A `ShapeError`, which is a `ValueError` as NumPy's, where the known value of a parameter is wrong."""
    check_real(name, x)
    found = known_value(x)
    if found is not None and np.any(wrong(found)):
        raise ShapeError(f"{name}: {message}", help=help)


def refuse_negative(name: str, **parameters: Any) -> None:
    """An error where a parameter is known to be negative."""
    for parameter, x in parameters.items():
        refuse(name, f"{parameter} cannot be negative", x, lambda value: value < 0)


def refuse_not_positive(name: str, **parameters: Any) -> None:
    """An error where a parameter is known to be 0 or negative."""
    for parameter, x in parameters.items():
        refuse(name, f"{parameter} must be above 0", x, lambda value: value <= 0)


def refuse_no_probability(name: str, **parameters: Any) -> None:
    """An error where a parameter is known not to be in [0, 1], or NaN."""
    for parameter, x in parameters.items():
        refuse(name, f"{parameter} must be in [0, 1]", x, lambda value: ~((value >= 0) & (value <= 1)))


def check_vectors(name: str, what: str, x: Any) -> None:
    """An error unless the last dimension of an array is there and has an element."""
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"{name}: {what} is a vector of at least one number, got shape {list(x.shape)}")


def refuse_probabilities(name: str, p: Any) -> None:
    """An error where probabilities are known to be negative, or not to sum to one, within NumPy's tolerance."""
    refuse(name, "probabilities cannot be negative or NaN", p, lambda value: ~(value >= 0))
    tolerance = np.sqrt(np.finfo(np.float64).eps)
    refuse(name, "probabilities do not sum to 1", p, lambda value: abs(value.astype(np.float64).sum() - 1) > tolerance)


def spread(x: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A parameter in the shape and dtype of the result."""
    return np.broadcast_to(as_array(x).astype(dtype), shape)


def placed(x: Any, loc: Any, scale: Any, dtype: np.dtype) -> Any:
    """`loc + scale * x`, in the dtype."""
    x = x.astype(dtype, copy=False)
    if not (type(scale) in (int, float) and scale == 1):
        x = x * as_array(scale).astype(dtype)
    if not (type(loc) in (int, float) and loc == 0):
        x = x + as_array(loc).astype(dtype)
    return x


def repeated(condition: Callable[[Any], Any], body: Callable[[Any], Any], carry: Any, attributes: str = "") -> Any:
    """`ml.while_loop`, with attributes of its operation."""
    trace = current_trace()
    if trace is not None:
        return trace_while_loop(trace, condition, body, carry, attributes)
    while condition(carry):
        carry = body(carry)
    return carry
