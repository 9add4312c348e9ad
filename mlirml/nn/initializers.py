"""Initial values of parameters: functions of a key, a shape and a dtype.

A weight is [outputs, inputs, kernel...], as `linear` and the convolutions take it; the fans are those of torch's
`torch.nn.init`: inputs, and outputs, times the elements of the kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml import random
from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.control import fori_loop
from mlirml.frontend.frames import at_user_line
from mlirml.nn.define import known

__all__ = [
    "constant", "dirac", "eye", "he_normal", "he_uniform", "normal", "ones", "orthogonal", "sparse",
    "truncated_normal", "uniform", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Shape = tuple[int, ...]
_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def fans(name: str, shape: Shape) -> tuple[int, int]:
    """The number of inputs of each output, and of outputs of each input, of a weight."""
    if len(shape) < 2:
        with at_user_line():
            raise ShapeError(f"{name}: a weight has at least two dimensions, [outputs, inputs, ...], got {list(shape)}")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _gain(name: str, nonlinearity: str, slope: float) -> float:
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope * slope))
    if nonlinearity not in _GAINS:
        with at_user_line():
            known_ = ", ".join(map(repr, [*_GAINS, "leaky_relu"]))
            raise ArgumentError(f"{name}: nonlinearity {nonlinearity!r} is not known", help=f"it is one of {known_}")
    return _GAINS[nonlinearity]


def _drawn_in(dtype: Any) -> np.dtype:
    return np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def uniform(key: Any, shape: Shape, dtype: Any = np.float32, *, low: float = -1.0, high: float = 1.0) -> Any:
    """Uniform numbers of [low, high)."""
    return random.uniform(key, shape, _drawn_in(dtype), low=low, high=high).astype(dtype)


def normal(key: Any, shape: Shape, dtype: Any = np.float32, *, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normal numbers."""
    return random.normal(key, shape, _drawn_in(dtype), loc=mean, scale=std).astype(dtype)


def truncated_normal(
    key: Any, shape: Shape, dtype: Any = np.float32, *, std: float = 1.0, low: float = -2.0, high: float = 2.0
) -> Any:
    """Normal numbers of [low * std, high * std], drawn with mean 0 and deviation `std` before they are truncated."""
    return (random.truncated_normal(key, low, high, shape, _drawn_in(dtype)) * std).astype(dtype)


def xavier_uniform(key: Any, shape: Shape, dtype: Any = np.float32, *, gain: float = 1.0) -> Any:
    """Uniform numbers with variance gain**2 * 2 / (fan_in + fan_out).

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", equation 16.
    """
    bound = gain * math.sqrt(6 / sum(fans("xavier_uniform", shape)))
    return uniform(key, shape, dtype, low=-bound, high=bound)


def xavier_normal(key: Any, shape: Shape, dtype: Any = np.float32, *, gain: float = 1.0) -> Any:
    """Normal numbers with variance gain**2 * 2 / (fan_in + fan_out)."""
    return normal(key, shape, dtype, std=gain * math.sqrt(2 / sum(fans("xavier_normal", shape))))


def he_uniform(
    key: Any, shape: Shape, dtype: Any = np.float32, *, nonlinearity: str = "relu", slope: float = 0.01
) -> Any:
    """Uniform numbers with variance gain**2 / fan_in; the gain is that of "relu", "leaky_relu", "tanh", ...

    He, Zhang, Ren and Sun, "Delving deep into rectifiers", equations 10 and 15.
    """
    bound = _gain("he_uniform", nonlinearity, slope) * math.sqrt(3 / fans("he_uniform", shape)[0])
    return uniform(key, shape, dtype, low=-bound, high=bound)


def he_normal(
    key: Any, shape: Shape, dtype: Any = np.float32, *, nonlinearity: str = "relu", slope: float = 0.01
) -> Any:
    """Normal numbers with variance gain**2 / fan_in; the gain is that of "relu", "leaky_relu", "tanh", ..."""
    std = _gain("he_normal", nonlinearity, slope) / math.sqrt(fans("he_normal", shape)[0])
    return normal(key, shape, dtype, std=std)


def orthogonal(key: Any, shape: Shape, dtype: Any = np.float32, *, gain: float = 1.0) -> Any:
    """A random matrix [shape[0], rest] with orthonormal rows, or columns where these are fewer, times `gain`.

    Rows of normal numbers are made orthonormal by Gram and Schmidt's method, each against those before it twice, which
    is enough for orthogonality up to rounding (Giraud, Langou and Rozloznik, "The loss of orthogonality in the
    Gram-Schmidt orthogonalization process", section 3). So drawn, all such matrices are equally likely.
    """
    fans("orthogonal", shape)
    rows, columns = shape[0], math.prod(shape[1:])
    few, many = min(rows, columns), max(rows, columns)
    drawn = random.normal(key, (few, many), _drawn_in(dtype))

    def step(i: Any, basis: Any) -> Any:
        row = drawn[i]
        for _ in range(2):
            row = row - (basis @ row) @ basis  # rows that are not made yet are 0
        basis[i] = row / np.sqrt(np.sum(row * row))
        return basis

    basis = fori_loop(0, few, step, known(np.zeros((few, many), drawn.dtype)))
    return (gain * (basis.T if rows > columns else basis)).reshape(shape).astype(dtype)


def constant(key: Any, shape: Shape, dtype: Any = np.float32, *, value: float = 0.0) -> Any:
    """The same number everywhere; the key is not used, and may be None."""
    return known(np.full(shape, value, dtype))


def zeros(key: Any, shape: Shape, dtype: Any = np.float32) -> Any:
    """Zeros; the key is not used, and may be None."""
    return constant(key, shape, dtype)


def ones(key: Any, shape: Shape, dtype: Any = np.float32) -> Any:
    """Ones; the key is not used, and may be None."""
    return constant(key, shape, dtype, value=1.0)


def eye(key: Any, shape: Shape, dtype: Any = np.float32) -> Any:
    """Ones on the diagonal of a matrix, zeros elsewhere; the key is not used, and may be None."""
    if len(shape) != 2:
        with at_user_line():
            raise ShapeError(f"eye: a weight has two dimensions, [outputs, inputs], got {list(shape)}")
    return known(np.eye(*shape, dtype=dtype))


def dirac(key: Any, shape: Shape, dtype: Any = np.float32, *, groups: int = 1) -> Any:
    """The weight of a convolution whose outputs are its inputs, in each of `groups` groups of outputs.

    Outputs of a group without an input of their number are 0, as those of `torch.nn.init.dirac_`; the key is not used,
    and may be None.
    """
    if not 3 <= len(shape) <= 5 or groups < 1 or shape[0] % groups:
        with at_user_line():
            raise ShapeError(
                f"dirac: a weight is [outputs, inputs, kernel...], with a kernel of 1 to 3 dimensions and outputs that "
                f"{groups} groups share, got {list(shape)}"
            )
    weight, each = np.zeros(shape, dtype), shape[0] // groups
    for output in range(shape[0]):
        if output % each < shape[1]:
            index = (output, output % each, *(n // 2 for n in shape[2:]))
            weight[index] = 1
    return known(weight)


def sparse(key: Any, shape: Shape, dtype: Any = np.float32, *, sparsity: float, std: float = 0.01) -> Any:
    """Normal numbers in a matrix, of which a part `sparsity` of each column is 0.

    Martens, "Deep learning via Hessian-free optimization", section 5.
    """
    if len(shape) != 2 or not 0 <= sparsity <= 1:
        with at_user_line():
            raise ArgumentError(
                f"sparse: a weight has two dimensions and a sparsity from 0 to 1, got {list(shape)} and {sparsity!r}"
            )
    numbers, order = random.split(key, 2)
    zeros_of_column = math.ceil(sparsity * shape[0])
    rank = np.argsort(np.argsort(random.uniform(order, shape, np.float32), axis=0), axis=0)
    drawn = random.normal(numbers, shape, _drawn_in(dtype)) * std
    return np.where(rank < zeros_of_column, 0, drawn).astype(dtype)
