"""Derivatives of functions of complex numbers, by their formulae.

The programs that compute these functions branch, by the larger part for example, and take magnitudes and shortcuts on
the axes: the value is right, but the slope is not where branches meet. So derivatives are those of `ml.custom_jvp` with
the rules below, in the functions themselves, for derivatives of every order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.frontend.arrays.array import is_complex_object
from mlirml.frontend.transforms.products import product_of_pairs

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace
    from mlirml.ops import OpDef

# Rules: the tangent of f(z), from a tangent t, from z, and from the result y.
_RULES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "exp": lambda t, z, y: t * y,
    "exp2": lambda t, z, y: t * y * math.log(2),
    "expm1": lambda t, z, y: t * (y + 1),
    "log": lambda t, z, y: t / z,
    "log2": lambda t, z, y: t / z * (1 / math.log(2)),
    "log10": lambda t, z, y: t / z * (1 / math.log(10)),
    "log1p": lambda t, z, y: t / (z + 1),
    "sqrt": lambda t, z, y: t * 0.5 / y,
    "reciprocal": lambda t, z, y: -t * y * y,
    "sin": lambda t, z, y: t * np.cos(z),
    "cos": lambda t, z, y: -t * np.sin(z),
    "tan": lambda t, z, y: t * (y * y + 1),
    "sinh": lambda t, z, y: t * np.cosh(z),
    "cosh": lambda t, z, y: t * np.sinh(z),
    "tanh": lambda t, z, y: t * (1 - y) * (1 + y),
    # Roots of both factors, so that the branch cuts are those of the function.
    "arcsin": lambda t, z, y: t / (np.sqrt(1 - z) * np.sqrt(1 + z)),
    "arccos": lambda t, z, y: -t / (np.sqrt(1 - z) * np.sqrt(1 + z)),
    "arctan": lambda t, z, y: t / ((1 + 1j * z) * (1 - 1j * z)),
    "arcsinh": lambda t, z, y: t / (np.sqrt(1 + 1j * z) * np.sqrt(1 - 1j * z)),
    "arccosh": lambda t, z, y: t / (np.sqrt(z - 1) * np.sqrt(z + 1)),
    "arctanh": lambda t, z, y: t / ((1 - z) * (1 + z)),
}


def _of_base(t: Any, z: Any, w: Any) -> Any:
    """The tangent of z ** w by z; z ** 0 is 1 everywhere."""
    slope = w * np.power(z, w - 1)
    return t * (np.where(np.equal(w, 0), 0, slope) if np.ndim(w) or not isinstance(w, (int, float, complex)) else slope)


def _of_exponent(t: Any, z: Any, y: Any) -> Any:
    """The tangent of y = z ** w by w, which is 0 where z is."""
    zero = np.equal(z, 0)
    return t * y * np.log(np.where(zero, 1, z))


def with_formula(trace: Trace, record: OpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a complex function with its derivative rule, if it is differentiated; None if no rule is needed."""
    if record.name == "prod" and (trace.derivatives > 1 or is_complex_object(args[0])):
        return product_of_pairs(trace, *args, **kwargs)
    if record.name not in _RULES and record.name not in ("power", "float_power"):
        return None
    if kwargs or len(args) != record.arrays or not any(map(is_complex_object, args)):
        return None
    from mlirml.frontend.transforms.custom import call_with_jvp

    function = record.reference
    if record.name in _RULES:
        rule = _RULES[record.name]

        def of_one(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
            result = function(*primals)
            return result, rule(tangents[0], primals[0], result)

        return call_with_jvp(trace, function, of_one, args, (), record.name)
    base, exponent = args
    if type(exponent) in (int, float) and (float(exponent).is_integer() or exponent == 0.5):
        if abs(exponent) < 100 and exponent != 0.5:
            return None  # products

        def of_base(number: Any, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
            return function(primals[0], number), _of_base(tangents[0], primals[0], number)

        return call_with_jvp(trace, function, of_base, (exponent, base), (0,), record.name)

    def of_both(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
        z, w = primals
        result = function(z, w)
        return result, _of_base(tangents[0], z, w) + _of_exponent(tangents[1], z, result)

    return call_with_jvp(trace, function, of_both, tuple(map(trace.array, args)), (), record.name)
