"""Softmax and its relatives, and normalizations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml import random
from mlirml.errors import ShapeError
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.transforms.derivatives import trace_stop_gradient
from mlirml.nn.define import as_array, axis_of, composite, floats, known, refuse_random, rounded, shown

__all__ = [
    "batch_norm", "group_norm", "gumbel_softmax", "instance_norm", "layer_norm", "local_response_norm", "log_softmax",
    "logsumexp", "normalize", "rms_norm", "softmax", "softmin",
]  # fmt: skip


@composite(tolerance=8)
def softmax(input: Any, dim: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along `dim`, from exp(x - max(x))."""
    (x,), dtype = floats("softmax", input)
    axis = axis_of("softmax", dim, x.shape)
    if x.shape[axis] == 0:
        return rounded(x, dtype)
    power = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return rounded(power / np.sum(power, axis=axis, keepdims=True), dtype)


@composite(tolerance=8)
def softmin(input: Any, dim: int = -1) -> Any:
    """exp(-x) / sum(exp(-x)) along `dim`, from exp(min(x) - x)."""
    (x,), dtype = floats("softmin", input)
    return rounded(softmax(-x, axis_of("softmin", dim, x.shape)), dtype)


@composite(tolerance=16)
def gumbel_softmax(
    logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1, key: Any = None, noise: Any = None
) -> Any:
    """softmax((logits + noise) / tau) along `dim`, for noise of a Gumbel distribution that `key` draws, or for `noise`.

    With `hard` it is 1 at the largest element and 0 elsewhere, with the derivative of the softmax (Jang, Gu and Poole,
    "Categorical reparameterization with Gumbel-softmax", equation 2 and section 2.2).
    """
    (x,), dtype = floats("gumbel_softmax", logits)
    axis = axis_of("gumbel_softmax", dim, x.shape)
    if noise is None:
        if key is None:
            refuse_random("gumbel_softmax", "noise=", "a `key` of `mlirml.random`")
        noise = random.gumbel(key, tuple(x.shape), x.dtype)
    soft = softmax((x + as_array(noise).astype(x.dtype)) / tau, axis)
    if not hard:
        return rounded(soft, dtype)
    classes = known(np.arange(x.shape[axis]).reshape(-1, *[1] * (len(x.shape) - axis - 1)))
    chosen = (classes == np.argmax(soft, axis=axis, keepdims=True)).astype(x.dtype)
    trace = current_trace()
    return rounded(chosen if trace is None else chosen + (soft - trace_stop_gradient(trace, soft)), dtype)


@composite(tolerance=8)
def log_softmax(input: Any, dim: int = -1) -> Any:
    """log(softmax(x)) along `dim`, as x - max(x) - log(sum(exp(x - max(x))))."""
    (x,), dtype = floats("log_softmax", input)
    axis = axis_of("log_softmax", dim, x.shape)
    if x.shape[axis] == 0:
        return rounded(x, dtype)
    return rounded(log_probabilities(x, axis), dtype)


def log_probabilities(x: Any, axis: int) -> Any:
    """`log_softmax` of checked operands."""
    centred = x - np.max(x, axis=axis, keepdims=True)
    return centred - np.log(np.sum(np.exp(centred), axis=axis, keepdims=True))


@composite(tolerance=8)
def logsumexp(input: Any, dim: Any = -1, keepdim: bool = False) -> Any:
    """log(sum(exp(x))) along `dim`, a number or a tuple, from exp(x - max(x)); infinities as in torch."""
    (x,), dtype = floats("logsumexp", input)
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple(axis_of("logsumexp", d, x.shape) for d in given)
    largest = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    finite = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - finite), axis=axes, keepdims=True)) + finite
    if not keepdim:
        total = np.squeeze(total, axis=axes)
    return rounded(total, dtype)


def _tail(name: str, x: Any, normalized_shape: Any) -> tuple[int, ...]:
    """The axes of `normalized_shape`, which must be the last sizes of x."""
    shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    if not shape or tuple(x.shape[len(x.shape) - len(shape) :]) != shape:
        raise ShapeError(f"{name}: normalized_shape {list(shape)} is not the last part of the shape of {shown(x)}")
    return tuple(range(len(x.shape) - len(shape), len(x.shape)))


def _check_shape(name: str, what: str, array: Any, shape: tuple[int, ...]) -> None:
    if array is not None and tuple(array.shape) != shape:
        raise ShapeError(f"{name}: the {what} must have shape {list(shape)}, got {shown(array)}")


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


@composite(tolerance=16)
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias, over the last dimensions, those of `normalized_shape`.

    The variance is that of the whole population (Ba, Kiros and Hinton, "Layer normalization", equation 3).
    """
    (x, weight, bias), dtype = floats("layer_norm", input, weight, bias)
    axes = _tail("layer_norm", x, normalized_shape)
    shape = tuple(x.shape[axes[0] :])
    _check_shape("layer_norm", "weight", weight, shape)
    _check_shape("layer_norm", "bias", bias, shape)
    return rounded(_scaled(_standardized(x, axes, eps), weight, bias), dtype)


def _standardized(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    centred = x - np.mean(x, axis=axes, keepdims=True)
    variance = np.mean(centred * centred, axis=axes, keepdims=True)
    return centred / np.sqrt(variance + eps)


@composite(tolerance=16)
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """x / sqrt(mean(x * x) + eps) * weight, over the last dimensions; `eps` is that of the dtype by default.

    Zhang and Sennrich, "Root mean square layer normalization", equation 4.
    """
    (x, weight), dtype = floats("rms_norm", input, weight)
    axes = _tail("rms_norm", x, normalized_shape)
    _check_shape("rms_norm", "weight", weight, tuple(x.shape[axes[0] :]))
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    return rounded(_scaled(x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + eps), weight, None), dtype)


@composite(tolerance=16)
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """(x - running_mean) / sqrt(running_var + eps) * weight + bias for each channel of [N, C, ...].

    With `training`, mean and variance are those of the batch, and the running ones, unless they are None, change in
    place to (1 - momentum) * old + momentum * new, with the unbiased variance. Ioffe and Szegedy, "Batch
    normalization", algorithms 1 and 2.
    """
    if training:
        result, mean, variance = normalized_batch(input, running_mean, running_var, weight, bias, momentum, eps)
        for running, value in ((running_mean, mean), (running_var, variance)):
            if running is not None:
                running[...] = value
        return result
    (x, mean, variance, weight, bias), dtype = _channels(input, running_mean, running_var, weight, bias)
    if mean is None or variance is None:
        raise ShapeError("batch_norm: give running_mean and running_var, or training=True")
    return rounded(_by_channel(x, mean, variance, weight, bias, eps), dtype)


def _channels(input: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> tuple[list[Any], np.dtype]:
    """The checked operands of `batch_norm`, and the dtype of the result."""
    operands, _ = floats("batch_norm", input, mean, variance, weight, bias)
    x, dtype = operands[0], floats("batch_norm", input, weight, bias)[1]  # statistics are of f32 for inputs of 16 bits
    if len(x.shape) < 2:
        raise ShapeError(f"batch_norm: the input must be [N, C, ...], got {shown(x)}")
    for what, array in zip(("running_mean", "running_var", "weight", "bias"), operands[1:]):
        _check_shape("batch_norm", what, array, (x.shape[1],))
    return operands, dtype


def _by_channel(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    spread = (-1,) + (1,) * (len(x.shape) - 2)
    scale = 1 / np.sqrt(variance + eps)
    scale = scale if weight is None else scale * weight
    shift = bias if mean is None else -mean * scale if bias is None else bias - mean * scale
    result = x * scale.reshape(spread)
    return result if shift is None else result + shift.reshape(spread)


def normalized_batch(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """The result of `batch_norm` in training, and the next running statistics, None where there are none."""
    with at_user_line():
        (x, before_mean, before_variance, weight, bias), dtype = _channels(
            input, running_mean, running_var, weight, bias
        )
        axes = (0, *range(2, len(x.shape)))
        many = math.prod(x.shape[axis] for axis in axes)
        if many < 2:
            raise ShapeError(f"batch_norm: there is more than one value a channel in training, not in {shown(x)}")
        mean = np.mean(x, axis=axes, keepdims=True)
        centred = x - mean
        variance = np.mean(centred * centred, axis=axes)
        found = ((before_mean, mean.reshape(-1)), (before_variance, variance * (many / (many - 1))))
        after = [None if old is None else (1 - momentum) * old + momentum * new for old, new in found]
        kept = [new if new is None else rounded(new, old.dtype) for new, old in zip(after, (running_mean, running_var))]
        return rounded(_by_channel(centred, None, variance, weight, bias, eps), dtype), kept[0], kept[1]


@composite(tolerance=64)
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """`layer_norm` over the spatial dimensions of each channel of [N, C, ...], then weight and bias of each channel.

    Running statistics, unless they are None, change in place to (1 - momentum) * old + momentum * new, with the mean
    over the rows of means and of unbiased variances; without `use_input_stats` the result is `batch_norm` by them.
    Ulyanov, Vedaldi and Lempitsky, "Instance normalization", equation 4; N may not be missing.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    (x, weight, bias), dtype = floats("instance_norm", input, weight, bias)
    if len(x.shape) < 3:
        raise ShapeError(f"instance_norm: the input must be [N, C, ...], got {shown(x)}")
    for what, array in {"weight": weight, "bias": bias}.items():
        _check_shape("instance_norm", what, array, (x.shape[1],))
    if 0 in x.shape:
        return rounded(x, dtype)
    axes = tuple(range(2, len(x.shape)))
    count = math.prod(x.shape[2:])
    for running, own in ((running_mean, np.mean), (running_var, np.var)):
        if running is not None:
            _check_shape("instance_norm", "running statistics", running, (x.shape[1],))
            share = momentum if own is np.mean else momentum * count / max(count - 1, 1)
            running[...] = (1 - momentum) * running + share * np.mean(own(x, axis=axes), axis=0)
    spread = (-1,) + (1,) * (len(x.shape) - 2)
    parts = [None if array is None else array.reshape(spread) for array in (weight, bias)]
    return rounded(_scaled(_standardized(x, axes, eps), *parts), dtype)


@composite(tolerance=16)
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """x, divided by its p-norm along `dim`, a number or a tuple, which is at least `eps`."""
    (x,), dtype = floats("normalize", input)
    axes = tuple(axis_of("normalize", d, x.shape) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    if p == 2:
        norm = np.sqrt(np.maximum(np.sum(x * x, axis=axes, keepdims=True), eps * eps))
    else:
        norm = np.maximum(np.linalg.vector_norm(x, ord=p, axis=axes, keepdims=True), eps)
    return rounded(x / norm, dtype)


@composite(tolerance=16)
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """`layer_norm` over each of `num_groups` groups of channels of [N, C, ...], then weight and bias of each channel.

    Wu and He, "Group normalization", equation 7.
    """
    (x, weight, bias), dtype = floats("group_norm", input, weight, bias)
    if len(x.shape) < 2:
        raise ShapeError(f"group_norm: the input must be [N, C, ...], got {shown(x)}")
    if num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: the {x.shape[1]} channels of {shown(x)} do not divide into {num_groups!r} groups"
        )
    for what, array in {"weight": weight, "bias": bias}.items():
        _check_shape("group_norm", what, array, (x.shape[1],))
    if 0 in x.shape:
        return rounded(x, dtype)
    # Weights are of the shape of the groups, so that all is one loop over them.
    groups = _standardized(x.reshape(x.shape[0], num_groups, x.shape[1] // num_groups, -1), (2, 3), eps)
    parts = [None if array is None else array.reshape(num_groups, -1, 1) for array in (weight, bias)]
    return rounded(_scaled(groups, *parts), dtype).reshape(x.shape)


@composite(tolerance=32)
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """x / (k + alpha * mean(x**2))**beta of [N, C, ...], the mean over `size` channels around each one, zeros outside.

    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", section 3.3.
    """
    (x,), dtype = floats("local_response_norm", input)
    if x.ndim < 3 or size < 1:
        raise ShapeError(
            f"local_response_norm: the input must be [N, C, ...], and size from 1 on, got {shown(x)}, {size!r}"
        )
    channels = x.shape[1]
    ends = [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)]
    squares = np.pad(x * x, ends)
    total = sum((squares[:, i : i + channels] for i in range(1, size)), squares[:, :channels])
    return rounded(x / (k + alpha / size * total) ** beta, dtype)
