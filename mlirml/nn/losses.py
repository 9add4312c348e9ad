"""Losses."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.nn.define import as_array, axis_of, composite, floats, rounded, shown

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss",
    "multilabel_soft_margin_loss", "pairwise_distance", "pdist", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


def reduced(name: str, x: Any, reduction: str) -> Any:
    """The mean of x, its sum, or x itself, as `reduction` names it."""
    if reduction not in ("mean", "sum", "none"):
        raise ShapeError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return x if reduction == "none" else np.mean(x) if reduction == "mean" else np.sum(x)


def _weighted(name: str, x: Any, weight: Any, reduction: str, dtype: np.dtype, *, divided: bool = True) -> Any:
    """As `reduced`, with a factor for each element of x, whose sum the mean is `divided` by."""
    if weight is None:
        return rounded(reduced(name, x, reduction), dtype)
    w = as_array(weight)
    if tuple(w.shape) != tuple(x.shape):
        raise ShapeError(f"{name}: the weight must have shape {list(x.shape)}, got {shown(w)}")
    w = w.astype(x.dtype)
    if reduction == "mean" and divided:
        return rounded(np.sum(x * w) / np.sum(w), dtype)
    return rounded(reduced(name, x * w, reduction), dtype)


@composite(tolerance=16)
def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """The mean of (input - target) ** 2; their sum, or each of them, with `reduction` "sum" or "none".

    `weight` has a factor for each element; the mean is divided by their sum.
    """
    (x, y), dtype = floats("mse_loss", input, target)
    if tuple(x.shape) != tuple(y.shape):
        raise ShapeError(f"mse_loss: shapes differ, {shown(x)} and {shown(y)}")
    return _weighted("mse_loss", np.square(x - y), weight, reduction, dtype)


def _pair(name: str, input: Any, target: Any) -> tuple[Any, Any, np.dtype]:
    """Operands of one shape, and the dtype of the result."""
    (x, y), dtype = floats(name, input, target)
    if tuple(x.shape) != tuple(y.shape):
        raise ShapeError(f"{name}: shapes differ, {shown(x)} and {shown(y)}")
    return x, y, dtype


@composite(tolerance=16)
def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """The mean of abs(input - target); `weight` as in `mse_loss`."""
    x, y, dtype = _pair("l1_loss", input, target)
    return _weighted("l1_loss", np.abs(x - y), weight, reduction, dtype)


@composite(tolerance=16)
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """The mean of d ** 2 / 2 / beta for differences d smaller than `beta`, of abs(d) - beta / 2 for others.

    Girshick, "Fast R-CNN", equation 3.
    """
    x, y, dtype = _pair("smooth_l1_loss", input, target)
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss: beta must not be negative, got {beta!r}")
    far = np.abs(x - y)
    loss = far if beta == 0 else np.where(far < beta, 0.5 * far * far / beta, far - 0.5 * beta)
    return rounded(reduced("smooth_l1_loss", loss, reduction), dtype)


@composite(tolerance=16)
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """The mean of d ** 2 / 2 for differences d up to `delta`, of delta * (abs(d) - delta / 2) for others.

    `weight` has a factor for each element; the mean is that of the products, as in torch.
    """
    x, y, dtype = _pair("huber_loss", input, target)
    if delta <= 0:
        raise ShapeError(f"huber_loss: delta must be positive, got {delta!r}")
    far = np.abs(x - y)
    loss = np.where(far <= delta, 0.5 * far * far, delta * (far - 0.5 * delta))
    return _weighted("huber_loss", loss, weight, reduction, dtype, divided=False)


@composite(tolerance=16)
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """The mean of target * (log(target) - input), for logarithms of probabilities as `input`.

    With `reduction="batchmean"` the sum is divided by the first size, as the divergence is defined.
    """
    x, y, dtype = _pair("kl_div", input, target)
    entropy = np.exp(y) * y if log_target else y * np.log(np.where(y == 0, 1, y))
    loss = entropy - (np.exp(y) if log_target else y) * x
    if reduction == "batchmean":
        return rounded(np.sum(loss) / x.shape[0], dtype)
    return rounded(reduced("kl_div", loss, reduction), dtype)


@composite(tolerance=16)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    """The mean of -target * log(p) - (1 - target) * log(1 - p) for p = sigmoid(input), without overflow.

    `pos_weight` multiplies the first term, `weight` both.
    """
    x, y, dtype = _pair("binary_cross_entropy_with_logits", input, target)
    small = np.log1p(np.exp(np.where(x >= 0, -x, x)))  # of -abs(x), with a derivative at 0
    below = np.where(x >= 0, 0, -x) + small  # -log(sigmoid(x))
    factor = 1 if pos_weight is None else as_array(pos_weight).astype(x.dtype)
    loss = (1 - y) * x + (1 + (factor - 1) * y) * below
    loss = loss if weight is None else loss * as_array(weight).astype(x.dtype)
    return rounded(reduced("binary_cross_entropy_with_logits", loss, reduction), dtype)


@composite(tolerance=16, domain=(0.05, 0.95))
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """The mean of -target * log(input) - (1 - target) * log(1 - input); logarithms are at least -100."""
    x, y, dtype = _pair("binary_cross_entropy", input, target)
    with np.errstate(divide="ignore"):
        loss = -y * np.maximum(np.log(x), -100) - (1 - y) * np.maximum(np.log1p(-x), -100)
    loss = loss if weight is None else loss * as_array(weight).astype(x.dtype)
    return rounded(reduced("binary_cross_entropy", loss, reduction), dtype)


@composite(tolerance=16)
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The mean of log(1 + exp(-target * input)), for targets 1 and -1."""
    x, y, dtype = _pair("soft_margin_loss", input, target)
    z = -x * y
    loss = np.where(z >= 0, z, 0) + np.log1p(np.exp(np.where(z >= 0, -z, z)))
    return rounded(reduced("soft_margin_loss", loss, reduction), dtype)


@composite(tolerance=32)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """sum(x1 * x2) / (norm(x1) * norm(x2)) along `dim`; norms are at least `eps`."""
    (x, y), dtype = floats("cosine_similarity", x1, x2)
    if tuple(x.shape) != tuple(y.shape):
        x, y = np.broadcast_arrays(x, y)
    return rounded(_cosine(x, y, axis_of("cosine_similarity", dim, x.shape), eps), dtype)


def _cosine(x: Any, y: Any, axis: int, eps: float) -> Any:
    squares = [np.maximum(np.sum(z * z, axis=axis), eps * eps) for z in (x, y)]
    return np.sum(x * y, axis=axis) / (np.sqrt(squares[0]) * np.sqrt(squares[1]))


@composite(tolerance=32)
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """The mean of 1 - cosine for targets 1, of max(0, cosine - margin) for targets -1, of 0 for others."""
    x, y, dtype = _pair("cosine_embedding_loss", input1, input2)
    if len(x.shape) not in (1, 2):
        raise ShapeError(f"cosine_embedding_loss: the inputs must be [N, D] or [D], got {shown(x)}")
    cosine, sign = _cosine(x, y, len(x.shape) - 1, 1e-6), as_array(target)
    loss = np.where(sign == 1, 1 - cosine, np.where(sign == -1, np.maximum(cosine - margin, 0), 0))
    return rounded(reduced("cosine_embedding_loss", loss, reduction), dtype)


@composite(tolerance=32)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The mean of max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of differences + `eps`.

    With `swap`, the nearer of anchor and positive counts as distance of the negative (Balntas et al., section 3.3).
    """
    (a, b, c), dtype = floats("triplet_margin_loss", anchor, positive, negative)
    loss = _triplet(a, b, c, lambda x, y: _distance(x, y, p, eps), margin, swap)
    return rounded(reduced("triplet_margin_loss", loss, reduction), dtype)


def _distance(x: Any, y: Any, p: float, eps: float, keepdims: bool = False) -> Any:
    """The p-norms of the differences of vectors, to each of which `eps` is added."""
    far = x - y + eps
    return np.linalg.vector_norm(far, ord=p, axis=-1, keepdims=keepdims)


def _triplet(a: Any, b: Any, c: Any, distance: Callable[[Any, Any], Any], margin: float, swap: bool) -> Any:
    other = np.minimum(distance(a, c), distance(b, c)) if swap else distance(a, c)
    return np.maximum(distance(a, b) - other + margin, 0)


@composite(tolerance=32)
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`triplet_margin_loss` with a distance of one's own, a function of two arrays; without one `pairwise_distance`."""
    (a, b, c), dtype = floats("triplet_margin_with_distance_loss", anchor, positive, negative)
    distance = distance_function or (lambda x, y: _distance(x, y, 2, 1e-6))
    loss = _triplet(a, b, c, distance, margin, swap)
    return rounded(reduced("triplet_margin_with_distance_loss", loss, reduction), dtype)


@composite(tolerance=32)
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of x1 - x2 + eps along the last dimension of [..., D]."""
    (x, y), dtype = floats("pairwise_distance", x1, x2)
    return rounded(_distance(x, y, p, eps, keepdim), dtype)


@composite(tolerance=64)
def pdist(input: Any, p: float = 2.0) -> Any:
    """The p-norms of the differences of each row of [N, D] and the later ones, as [N (N - 1) / 2]."""
    (x,), dtype = floats("pdist", input)
    if x.ndim != 2 or p < 0:
        raise ShapeError(f"pdist: the input must be [N, D], and p not negative, got {shown(x)} and {p!r}")
    first, second = np.triu_indices(operator.index(x.shape[0]), 1)
    return rounded(np.linalg.norm(x[first] - x[second], p, axis=1), dtype)


@composite(tolerance=16)
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """The mean over [N, C] of the binary cross entropies of sigmoid(input), averaged over the classes.

    `weight` has a factor for each class.
    """
    x, y, dtype = _pair("multilabel_soft_margin_loss", input, target)
    small = np.log1p(np.exp(np.where(x >= 0, -x, x)))
    loss = np.where(x >= 0, (1 - y) * x, -y * x) + small
    loss = loss if weight is None else loss * as_array(weight).astype(x.dtype)
    return rounded(reduced("multilabel_soft_margin_loss", np.mean(loss, axis=-1), reduction), dtype)


@composite(tolerance=16)
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """The mean of max(0, -target * (input1 - input2) + margin), for targets 1 and -1."""
    (x, y, sign), dtype = floats("margin_ranking_loss", input1, input2, target)
    return rounded(reduced("margin_ranking_loss", np.maximum(margin - sign * (x - y), 0), reduction), dtype)


@composite(tolerance=16)
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """The mean of the input for targets 1, of max(0, margin - input) for targets -1."""
    (x,), dtype = floats("hinge_embedding_loss", input)
    loss = np.where(as_array(target) > 0, x, np.maximum(margin - x, 0))
    return rounded(reduced("hinge_embedding_loss", loss, reduction), dtype)
