"""The quantiles of the normal distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.ir.text.builder import Body
from mlirml.ir.text.dtypes import common_shape, mlir_name

# M. Giles: Approximating the erfinv function. GPU Computing Gems, 2010. The highest power first.
_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip
# M. Wichura: Algorithm AS 241: the percentage points of the normal distribution. Applied Statistics 37, 1988.
# Numerators and denominators, the highest power first: near the middle, in the tails, far in the tails.
_MIDDLE = (
    (
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080,
    ),
    (
        5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
        5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0,
    ),
)  # fmt: skip
_TAIL = (
    (
        7.74545014278341407640e-4, 0.0227238449892691845833, 0.241780725177450611770, 1.27045825245236838258,
        3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 0.0151986665636164571966, 0.148103976427480074590,
        0.689767334985100004550, 1.67638483018380384940, 2.05319162663775882187, 1.0,
    ),
)  # fmt: skip
_LAST = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 0.0265321895265761230930,
        0.296560571828504891230, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        0.0148753612908506148525, 0.136929880922735805310, 0.599832206555887937690, 1.0,
    ),
)  # fmt: skip


def normal_quantile(u: Any) -> Any:
    """The quantile of (1 + u) / 2 of the normal distribution, for f32 or f64 of (-1, 1)."""
    return _single(u) if u.dtype.itemsize < 8 else _double(u)


def polynomial(x: Any, coefficients: Sequence[Any]) -> Any:
    """By Horner's rule; a coefficient is a number or an array.

    In a trace it is one operation where all coefficients are numbers.
    """
    if isinstance(x, Traced) and len(coefficients) > 2 and all(isinstance(c, float | int) for c in coefficients):
        return chosen_polynomial(x, (), (coefficients,))
    result = coefficients[0]
    for c in coefficients[1:]:
        result = result * x + c
    return result


def chosen_polynomial(x: Any, masks: Sequence[Any], rows: Sequence[Sequence[float]]) -> Any:
    """A polynomial with the coefficients in the row of the first mask that is true, or, where none is, in the last."""
    trace, dtype = current_trace(), x.dtype
    if trace is None or not isinstance(x, Traced):
        number = dtype.type
        return polynomial(x, [np.select(masks, [*map(number, c[:-1])], number(c[-1])) for c in zip(*rows)])

    def body(block: Body, names: list[str]) -> str:
        name, *chosen = names
        kind, result = mlir_name(dtype), ""
        for numbers in zip(*rows):
            *first, c = (block.constant(number, dtype) for number in numbers)
            for mask, other in zip(chosen[::-1], first[::-1]):
                c = block.op(f"arith.select {mask}, {other}, {c}", kind)
            product = result and block.op(f"arith.mulf {result}, {name}", kind)
            result = block.op(f"arith.addf {product}, {c}", kind) if product else c
        return result

    operands = [trace.lift(each) for each in (x, *masks)]
    shape = common_shape(*(operand.shape for operand in operands))
    dtypes = [dtype, *[np.dtype(np.bool_)] * len(masks)]
    return trace.wrap(trace.builder.elementwise(operands, dtypes, dtype, shape, body))


def _single(u: Any) -> Any:
    w = -np.log((1 - u) * (1 + u))
    near = w < 5
    x = np.where(near, w - np.float32(2.5), np.sqrt(w) - 3)
    return np.float32(np.sqrt(2)) * (chosen_polynomial(x, [near], (_NEAR, _FAR)) * u)


def _double(u: Any) -> Any:
    q = 0.5 * u
    return quantile(q, 0.5 - np.abs(q))


def quantile(q: Any, tail: Any) -> Any:
    """The quantile of the normal distribution of 1/2 + q, where `tail` is 1/2 - |q|, above 0 (algorithm AS 241)."""
    number, middle = q.dtype.type, np.abs(q) <= 0.425
    r = np.sqrt(-np.log(np.where(middle, 0.5, tail)))
    last = r > 5
    x = np.where(middle, 0.180625 - q * q, np.where(last, r - 5.0, r - 1.6))
    top, bottom = (
        chosen_polynomial(x, (middle, last), (near, far, between)) for near, between, far in zip(_MIDDLE, _TAIL, _LAST)
    )
    return np.where(middle, q, np.where(q < 0, number(-1), number(1))) * (top / bottom)
