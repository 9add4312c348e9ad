"""Activations that NumPy has no functions for: the Gaussian error linear unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import describe, is_float, mlir_name
from mlirml.ops.elementwise import select
from mlirml.ops.reductions import as_value
from mlirml.ops.registry import FLOATS, operation

_SINGLE = np.dtype(np.float32)
_TANH_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715
_LOW_OF_ROOT = 4.833646656726457e-17  # what float(-sqrt(1/2)) lacks
_END_OF_TAIL = 28  # where erfc is 0

# Rational approximations of erf and erfc (Cody, "Rational Chebyshev approximations for the error function",
# Mathematics of Computation 23, 1969), highest power first.
ERF_SMALL = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e0,
        1.13864154151050156e2,
        3.77485237685302021e2,
        3.20937758913846947e3,
    ),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
ERFC_MIDDLE = (
    (
        2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
        2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
        1.23033935479799725e3,
    ),
    (
        1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
        3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
    ),
)  # fmt: skip
ERFC_LARGE = (
    (
        1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
        1.60837851487422766e-2, 6.58749161529837803e-4,
    ),
    (
        1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)  # fmt: skip


def ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    above, below = (np.polyval(np.array(c, x.dtype), x) for c in coefficients)
    return np.asarray(above / below)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of real f64 (or wider) arrays, to about 1e-16."""
    small, rest = _error_function(x)
    return np.asarray(np.where(np.abs(x) <= 0.46875, small, np.copysign(1 - rest, x)))


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), to about 1e-16 of itself."""
    small, rest = _error_function(x)
    return np.asarray(np.where(np.abs(x) <= 0.46875, 1 - small, np.where(x < 0, 2 - rest, rest)))


def _error_function(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """erf(x) near 0, and erfc(|x|) further out."""
    size = np.abs(x)
    with np.errstate(all="ignore"):
        small = x * ratio(ERF_SMALL, np.minimum(size, 0.5) ** 2)
        middle = ratio(ERFC_MIDDLE, np.clip(size, 0.46875, 4))
        inverse = 1 / np.maximum(size, 4) ** 2
        large = (1 / math.sqrt(math.pi) - inverse * ratio(ERFC_LARGE, inverse)) / np.maximum(size, 4)
        # exp(-x^2) in two parts, as the rounding of a large square would show.
        coarse = np.trunc(np.minimum(size, 30) * 16) / 16
        power = np.exp(-coarse * coarse) * np.exp(-(np.minimum(size, 30) - coarse) * (np.minimum(size, 30) + coarse))
        rest = power * np.where(size <= 4, middle, large)
    return small, np.where(np.isinf(x), 0.0, rest)


def _check(input: Any, approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise ShapeError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    if not is_float(input.dtype) and input.dtype.kind != "f":
        raise DTypeError(
            f"gelu: the input must be a float, not {describe(tuple(input.shape), input.dtype)}",
            help="convert it with `.astype(np.float32)`",
        )


def _gelu(input: Any, approximate: str = "none") -> np.ndarray:
    x = np.asarray(input)
    _check(x, approximate)
    wide = x.astype(np.float64 if x.dtype.itemsize < 8 else x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if approximate == "tanh":
            inner = 2 * _TANH_SCALE * (wide + _CUBIC * wide**3)
            power = np.exp(-np.abs(inner))
            factor = np.where(inner >= 0, 2, 2 * power) / (1 + power)
        else:
            exact = -wide.astype(np.longdouble) / np.sqrt(np.longdouble(2))
            z = exact.astype(wide.dtype)
            factor = erfc(z)
            factor -= np.where((z > 0) & (z < _END_OF_TAIL), 2 * z * (exact - z), 0).astype(wide.dtype) * factor
    return (0.5 * wide * factor).astype(x.dtype)


def _tanh_and_one(block: Body, twice: str, dtype: np.dtype) -> str:
    """1 + tanh(twice / 2), as a ratio, which does not cancel far to the left."""
    kind = mlir_name(dtype)
    one, two, zero = (block.constant(number, dtype) for number in (1, 2, 0))
    right = block.op(f"arith.cmpf oge, {twice}, {zero}", kind)
    opposite = block.op(f"arith.negf {twice}", kind)
    power = block.op(f"math.exp {select(block, right, opposite, twice, dtype)}", kind)
    above = select(block, right, two, block.op(f"arith.mulf {power}, {two}", kind), dtype)
    return block.op(f"arith.divf {above}, {block.op(f'arith.addf {power}, {one}', kind)}", kind)


def _normal_tail(block: Body, x: str, dtype: np.dtype) -> str:
    """erfc(-x / sqrt(2)), twice the normal distribution, as exact as its left tail needs.

    There a relative error of the argument z counts 2 z**2 times: what rounding takes from z comes in to first order.
    """
    kind = mlir_name(dtype)
    root = math.sqrt(0.5)
    high = float(dtype.type(-root))
    low = -root - high if dtype.itemsize < 8 else _LOW_OF_ROOT
    slope, rest, zero = (block.constant(number, dtype) for number in (high, low, 0))
    z = block.op(f"arith.mulf {x}, {slope}", kind)
    lost = block.op(f"math.fma {x}, {slope}, {block.op(f'arith.negf {z}', kind)}", kind)
    lost = block.op(f"math.fma {x}, {rest}, {lost}", kind)
    change = block.op(f"arith.mulf {z}, {block.op(f'arith.mulf {lost}, {block.constant(-2, dtype)}', kind)}", kind)
    above, below = (
        block.op(f"arith.cmpf {order}, {z}, {block.constant(end, dtype)}", kind)
        for order, end in (("ogt", 0), ("olt", _END_OF_TAIL))
    )
    inside = block.op(f"arith.andi {above}, {below}", "i1")
    change = select(block, inside, change, zero, dtype)
    tail = block.op(f"math.erfc {z}", kind)
    return block.op(f"math.fma {change}, {tail}, {tail}", kind)


@operation("nn", _gelu, dtypes=FLOATS, arrays=1, tolerance=16)
def gelu(b: Builder, input: Operand, approximate: str = "none") -> Value:
    """The Gaussian error linear unit x * Phi(x), by `erf`, or by tanh with `approximate="tanh"`.

    Hendrycks and Gimpel, "Gaussian error linear units", section 2.
    """
    _check(input, approximate)
    x = as_value(b, input)
    wide = _SINGLE if x.dtype.itemsize == 2 else x.dtype
    kind = mlir_name(wide)

    def body(block: Body, xs: list[str]) -> str:
        v = block.cast(xs[0], x.dtype, wide)
        half, one = block.constant(0.5, wide), block.constant(1, wide)
        halved = block.op(f"arith.mulf {v}, {half}", kind)
        if approximate == "tanh":
            square = block.op(f"arith.mulf {v}, {v}", kind)
            scaled = block.op(f"arith.mulf {square}, {block.constant(_CUBIC, wide)}", kind)
            inner = block.op(f"arith.mulf {v}, {block.op(f'arith.addf {scaled}, {one}', kind)}", kind)
            inner = block.op(f"arith.mulf {inner}, {block.constant(2 * _TANH_SCALE, wide)}", kind)
            factor = _tanh_and_one(block, inner, wide)
        else:
            factor = _normal_tail(block, v, wide)
        return block.cast(block.op(f"arith.mulf {halved}, {factor}", kind), wide, x.dtype)

    return b.elementwise([x], [x.dtype], x.dtype, x.shape, body)
