"""Activations. None overflows on the way to a finite result."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml import random
from mlirml.errors import DTypeError, ShapeError
from mlirml.nn.define import as_array, axis_of, composite, floats, from_record, refuse_random, rounded, shown
from mlirml.ops import activations  # noqa: F401  (makes the record of gelu)
from mlirml.ops.registry import NUMBERS

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_sigmoid",
    "mish", "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold",
]  # fmt: skip

# Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks", equation 2 and appendix 1.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805

gelu = from_record("gelu")


def _number(name: str, x: Any) -> Any:
    x = as_array(x)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: the input must hold real numbers, got {shown(x)}")
    return x


def _below(x: Any) -> Any:
    # -abs(x), with the derivative of one of its branches at 0: what is put together of both sides is smooth there.
    return np.where(x >= 0, -x, x)


def _logistic(x: Any) -> Any:
    power = np.exp(_below(x))
    return np.where(x >= 0, 1, power) / (1 + power)


@composite(dtypes=NUMBERS)
def relu(input: Any) -> Any:
    """max(x, 0); NaN stays NaN."""
    return np.maximum(_number("relu", input), 0)


@composite(dtypes=NUMBERS, domain=(-8.0, 8.0))
def relu6(input: Any) -> Any:
    """min(max(x, 0), 6)."""
    return np.minimum(np.maximum(_number("relu6", input), 0), 6)


@composite(domain=(-2.0, 2.0))
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x, but not below `min_val` or above `max_val`."""
    (x,), dtype = floats("hardtanh", input)
    return rounded(np.minimum(np.maximum(x, min_val), max_val), dtype)


@composite()
def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """x, times `negative_slope` where it is negative."""
    (x,), dtype = floats("leaky_relu", input)
    return rounded(np.where(x > 0, x, x * negative_slope), dtype)


@composite()
def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, key: Any = None) -> Any:
    """x, times a slope where it is negative: in training drawn of [lower, upper) by `key`, else (lower + upper) / 2.

    Xu, Wang, Chen and Li, "Empirical evaluation of rectified activations in convolutional network", section 2.4.
    """
    (x,), dtype = floats("rrelu", input)
    if lower > upper:
        raise ShapeError(f"rrelu: lower must not be above upper, got {lower!r} and {upper!r}")
    if not training:
        return rounded(np.where(x >= 0, x, x * ((lower + upper) / 2)), dtype)
    if key is None:
        refuse_random("rrelu", "training=False", "a `key` of `mlirml.random`")
    slope = random.uniform(key, tuple(x.shape), x.dtype, low=lower, high=upper)
    return rounded(np.where(x >= 0, x, x * slope), dtype)


@composite(tolerance=8)
def elu(input: Any, alpha: float = 1.0) -> Any:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, equation 14)."""
    (x,), dtype = floats("elu", input)
    return rounded(np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x))), dtype)


@composite(tolerance=8)
def selu(input: Any) -> Any:
    """`elu` with the constants that keep mean 0 and variance 1 (Klambauer et al., equation 2)."""
    (x,), dtype = floats("selu", input)
    negative = _SELU_ALPHA * np.expm1(np.where(x > 0, 0, x))
    return rounded(_SELU_SCALE * np.where(x > 0, x, negative), dtype)


@composite(tolerance=8)
def sigmoid(input: Any) -> Any:
    """1 / (1 + exp(-x)), from exp(-abs(x))."""
    (x,), dtype = floats("sigmoid", input)
    return rounded(_logistic(x), dtype)


@composite(tolerance=8)
def silu(input: Any) -> Any:
    """x * sigmoid(x)."""
    (x,), dtype = floats("silu", input)
    return rounded(x * _logistic(x), dtype)


def _softplus(x: Any) -> Any:
    return np.where(x >= 0, x, 0) + np.log1p(np.exp(_below(x)))


@composite(tolerance=8)
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta * x)) / beta, from exp(-abs(beta * x)); x itself where beta * x is above `threshold`."""
    (x,), dtype = floats("softplus", input)
    scaled = x if beta == 1 else x * beta
    result = _softplus(scaled) if beta == 1 else _softplus(scaled) / beta
    return rounded(np.where(scaled > threshold, x, result), dtype)


@composite(tolerance=8)
def log_sigmoid(input: Any) -> Any:
    """log(sigmoid(x)), from exp(-abs(x)); finite wherever x is."""
    (x,), dtype = floats("log_sigmoid", input)
    return rounded(np.where(x >= 0, 0, x) - np.log1p(np.exp(_below(x))), dtype)


@composite(tolerance=8)
def tanh(input: Any) -> Any:
    """The hyperbolic tangent of x."""
    (x,), dtype = floats("tanh", input)
    return rounded(np.tanh(x), dtype)


@composite(tolerance=8, domain=(0.5, 4.0))
def tanhshrink(input: Any) -> Any:
    """x - tanh(x)."""
    (x,), dtype = floats("tanhshrink", input)
    return rounded(x - np.tanh(x), dtype)


@composite(tolerance=8)
def mish(input: Any) -> Any:
    """x * tanh(softplus(x)) (Misra, "Mish: a self regularized non-monotonic activation function", equation 1)."""
    # The tanh of a logarithm is a ratio: ((1 + e)**2 - 1) / ((1 + e)**2 + 1) for e = exp(x).
    (x,), dtype = floats("mish", input)
    power = np.exp(_below(x))
    above = np.where(x >= 0, 1 + 2 * power, power * (power + 2))
    return rounded(x * above / (above + np.where(x >= 0, 2 * power * power, 2)), dtype)


@composite()
def hardsigmoid(input: Any) -> Any:
    """min(max(x + 3, 0), 6) / 6."""
    (x,), dtype = floats("hardsigmoid", input)
    return rounded(np.minimum(np.maximum(x + 3, 0), 6) / 6, dtype)


@composite()
def hardswish(input: Any) -> Any:
    """x * hardsigmoid(x) (Howard et al., "Searching for MobileNetV3", section 5.2)."""
    (x,), dtype = floats("hardswish", input)
    return rounded(x * np.minimum(np.maximum(x + 3, 0), 6) / 6, dtype)


@composite()
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """x where its absolute value is above `lambd`, 0 elsewhere."""
    (x,), dtype = floats("hardshrink", input)
    return rounded(np.where(np.abs(x) <= lambd, 0, x), dtype)


@composite()
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """x, nearer to 0 by `lambd`, and 0 where it is nearer than that."""
    (x,), dtype = floats("softshrink", input)
    return rounded(np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)), dtype)


@composite(tolerance=8)
def softsign(input: Any) -> Any:
    """x / (1 + abs(x))."""
    (x,), dtype = floats("softsign", input)
    return rounded(x / (1 + np.abs(x)), dtype)


@composite(tolerance=8)
def celu(input: Any, alpha: float = 1.0) -> Any:
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, "Continuously differentiable ELU")."""
    (x,), dtype = floats("celu", input)
    return rounded(np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x) / alpha)), dtype)


@composite()
def threshold(input: Any, threshold: float, value: float) -> Any:
    """x, but `value` up to `threshold`."""
    (x,), dtype = floats("threshold", input)
    return rounded(np.where(x <= threshold, value, x), dtype)


@composite()
def prelu(input: Any, weight: Any) -> Any:
    """x, times `weight` where it is negative: one number, or one for each channel of [N, C, ...]."""
    (x, w), dtype = floats("prelu", input, weight)
    count = w.size
    if count != 1 and (len(x.shape) < 2 or tuple(w.shape) != (x.shape[1],)):
        raise ShapeError(f"prelu: the weight must be one number, or one for each channel of {shown(x)}, got {shown(w)}")
    w = w.reshape((1,) * len(x.shape)) if count == 1 else w.reshape(-1, *[1] * (len(x.shape) - 2))
    return rounded(np.where(x > 0, x, x * w), dtype)


@composite(tolerance=8)
def glu(input: Any, dim: int = -1) -> Any:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al., equation 1)."""
    (x,), dtype = floats("glu", input)
    axis = axis_of("glu", dim, x.shape)
    if x.shape[axis] % 2:
        raise ShapeError(f"glu: dimension {axis} of {shown(x)} has no halves")
    first, second = np.split(x, 2, axis)
    return rounded(first * _logistic(second), dtype)
