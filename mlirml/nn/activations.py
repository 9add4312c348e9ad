"""Activations. None overflows on the way to a finite result."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import DTypeError
from mlirml.nn.define import as_array, composite, floats, from_record, rounded, shown
from mlirml.ops import activations  # noqa: F401  (makes the record of gelu)  # noqa: F401  (makes the record of gelu)
from mlirml.ops.registry import NUMBERS

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
def mish(input: Any) -> Any:
    """x * tanh(softplus(x)) (Misra, "Mish: a self regularized non-monotonic activation function", equation 1)."""
    # The tanh of a logarithm is a ratio: ((1 + e)**2 - 1) / ((1 + e)**2 + 1) for e = exp(x).
    (x,), dtype = floats("mish", input)
    power = np.exp(_below(x))
    above = np.where(x >= 0, 1 + 2 * power, power * (power + 2))
    return rounded(x * above / (above + np.where(x >= 0, 2 * power * power, 2)), dtype)
