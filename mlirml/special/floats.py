"""The dtypes of special functions: those of floats, f16 and bf16 computed in f32."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text.dtypes import is_float
from mlirml.ops.functions import library
from mlirml.transforms import custom_jvp

Function = Callable[..., Any]


def as_array(x: Any) -> Any:
    """An array, traced or real, of anything that NumPy takes for one."""
    return x if isinstance(x, Traced) else np.asarray(x)


def float_dtype(name: str, *args: Any) -> np.dtype:
    """The dtype of the result: that of the floats among the arguments, or f64."""
    numbers = [x if isinstance(x, Traced) or type(x) in (bool, int, float) else np.asarray(x) for x in args]
    dtype = np.dtype(np.result_type(*numbers))
    if is_float(dtype):
        return dtype
    if dtype.kind not in "biu":
        with at_user_line():
            raise DTypeError(f"special.{name}: a function of real numbers, not of {dtype}", help="give it floats")
    return np.dtype(np.float64)


def of_floats(function: Function) -> Function:
    """The function of arguments of any real dtypes, for one of arrays of f32 or f64."""

    @functools.wraps(function)
    def converted(*args: Any) -> Any:
        dtype = float_dtype(function.__name__, *args)
        wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
        with np.errstate(all="ignore"):
            result = function(*(as_array(x).astype(wide) for x in args))
        result = as_array(result).astype(dtype)
        return result if isinstance(result, Traced) else result[()]

    return converted


def differentiable(
    *rules: Function, fixed: int = 0, slope_of: str = "", public: str = ""
) -> Callable[[Function], Function]:
    """A decorator: the function of any real dtypes, with a derivative for each argument but the first `fixed` ones.

    `rule(tangent, result, *args)` is the part of the tangent of the result that is due to the argument. A function
    of this package enters the records, of which those of public names are kept. Errors name a function that is the
    derivative of the functions `slope_of` by a fixed argument by these, and one that computes `public` by that.
    """

    def decorated(function: Function) -> Function:
        name, module = function.__qualname__, function.__module__
        if module.startswith(f"{__package__}.") and name == function.__name__ and not name.startswith("_"):
            library("mlirml.special", *[*inspect.signature(function).parameters][fixed:])(function)
        made = custom_jvp(function, tuple(range(fixed)))
        if slope_of:
            made.refusal = _no_second_derivative(slope_of, [*inspect.signature(function).parameters][:fixed])
        elif public:
            made.refusal = (
                f"`special.{public}` has no derivative in its first argument",
                "`ml.stop_gradient` takes an argument out of a derivative",
            )

        def rule(*args: Any) -> tuple[Any, Any]:
            *first, primals, tangents = args
            every = (*first, *primals)
            result = made(*every)
            parts = [part(tangent, result, *every) for part, tangent in zip(rules, tangents)]
            return result, sum(parts[1:], parts[0]) if parts else result * 0

        made.defjvp(rule)
        return of_floats(made)

    return decorated


def _no_second_derivative(functions: str, parameters: list[str]) -> tuple[str, str]:
    """The message and the help of the error for a derivative of a derivative, both by parameters."""
    names = " and ".join(f"`{name}`" for name in parameters)
    return (
        f"{functions} have no second derivatives in {names}",
        f"differentiate in {names} once only: `ml.stop_gradient` takes an argument out of a derivative, and "
        "differences of first derivatives are near the second",
    )


def times_slope(y: Any, slope: Any) -> Any:
    """A density times the derivative of its logarithm, 0 where the density is."""
    zero = y == 0
    return np.where(zero, 0, y * np.where(zero, 0, slope))


def is_double(x: Any) -> bool:
    """True for f64, which needs more terms of a series than f32."""
    return bool(x.dtype.itemsize > 4)
