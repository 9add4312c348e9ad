"""Losses of classes: of one, of several, and of sequences of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.control import scan
from mlirml.nn.define import as_array, composite, floats, known, rounded, shown, table
from mlirml.nn.losses import reduced
from mlirml.nn.normalizations import log_probabilities

__all__ = [
    "cross_entropy", "ctc_loss", "gaussian_nll_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss",
    "poisson_nll_loss",
]  # fmt: skip


def _classes(name: str, target: Any, shape: tuple[int, ...]) -> Any:
    """A target that holds a class for each element of `shape`."""
    y = as_array(target)
    if y.dtype.kind not in "iu":
        raise DTypeError(f"{name}: the target must hold classes, which are integers, got {shown(y)}")
    if tuple(y.shape) != shape:
        raise ShapeError(f"{name}: the target must be integers of shape {list(shape)}, got {shown(y)}")
    return y


def _chosen(y: Any, classes: int, axis: int, dtype: np.dtype) -> Any:
    """1 at the class of each element of y, which is a new dimension, and 0 elsewhere; no class is out of range."""
    spread = y.reshape(*y.shape[:axis], 1, *y.shape[axis:])
    wide = y.dtype if classes - 1 <= np.iinfo(y.dtype).max else np.dtype(np.int64)  # not all devices have int64
    numbers = known(np.arange(classes, dtype=wide).reshape(-1, *[1] * (len(y.shape) - axis)))
    return (spread == numbers).astype(dtype)


def _weights(name: str, weight: Any, classes: int, dtype: np.dtype) -> Any:
    w = as_array(weight)
    if tuple(w.shape) != (classes,):
        raise ShapeError(f"{name}: the weight must have one element for each of the {classes} classes, got {shown(w)}")
    return w.astype(dtype)


@composite(tolerance=16)
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """-log(softmax(input)) of the target's class, over [N, C, ...]; `target` holds classes [N, ...] or probabilities.

    With a `weight` of each class, the mean over classes is a weighted one. The class `ignore_index`, and those out of
    range, count as no class: their loss is 0, and the mean leaves them out.
    """
    (x,), dtype = floats("cross_entropy", input)
    y = as_array(target)
    if not x.shape:
        raise ShapeError(f"cross_entropy: the input must be [N, C, ...] or [C], got {shown(x)}")
    axis = 1 if len(x.shape) > 1 else 0
    classes, trailing = x.shape[axis], len(x.shape) - axis - 1
    if not classes:
        raise ShapeError(f"cross_entropy: needs at least one class, got {shown(x)}")
    rest = tuple(x.shape[:axis]) + tuple(x.shape[axis + 1 :])
    count = None
    if tuple(y.shape) == tuple(x.shape) and y.dtype.kind not in "iub":
        wanted = rounded(y, x.dtype)
        if label_smoothing:
            wanted = wanted * (1 - label_smoothing) + label_smoothing / classes
    elif tuple(y.shape) == rest and y.dtype.kind in "iu":
        counted = (y >= 0) & (y < classes) & (y != ignore_index)
        wanted = _chosen(y, classes, axis, x.dtype)
        if label_smoothing:
            wanted = wanted * (1 - label_smoothing) + label_smoothing / classes
        if label_smoothing or 0 <= ignore_index < classes:
            wanted = wanted * counted.reshape(*rest[:axis], 1, *rest[axis:]).astype(x.dtype)
        count = counted.astype(x.dtype)
    elif y.dtype.kind == "b":
        raise DTypeError(f"cross_entropy: the target must hold classes or probabilities, got {shown(y)}")
    else:
        raise ShapeError(
            f"cross_entropy: the target must be integers of shape {list(rest)} or probabilities of shape "
            f"{list(x.shape)}, got {shown(y)}"
        )
    if weight is not None:
        weights = _weights("cross_entropy", weight, classes, x.dtype)
        wanted = wanted * weights.reshape(-1, *[1] * trailing)
        if count is not None:
            count = count * np.take(table(weights), np.clip(y, 0, classes - 1))
    logarithms = log_probabilities(x, axis)
    if count is not None and not label_smoothing:
        logarithms = np.where(wanted == 0, 0, logarithms)  # log(0) of another class is no NaN
    loss = -np.sum(logarithms * wanted, axis=axis)
    if reduction == "mean" and count is not None:
        with np.errstate(invalid="ignore"):
            return rounded(np.sum(loss) / np.sum(count), dtype)
    return rounded(reduced("cross_entropy", loss, reduction), dtype)


@composite(tolerance=16)
def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """The mean of -input at the target's class, over logarithms of probabilities [N, C, ...]; `target` is [N, ...].

    With a `weight` of each class the mean is a weighted one. The class `ignore_index`, and those out of range, count as
    no class: their loss is 0, and the mean leaves them out.
    """
    (x,), dtype = floats("nll_loss", input)
    if not x.shape:
        raise ShapeError(f"nll_loss: the input must be [N, C, ...] or [C], got {shown(x)}")
    axis = 1 if len(x.shape) > 1 else 0
    y = _classes("nll_loss", target, (*x.shape[:axis], *x.shape[axis + 1 :]))
    kept = _chosen(y, x.shape[axis], axis, x.dtype)
    if 0 <= ignore_index < x.shape[axis]:
        others = (np.arange(x.shape[axis]) != ignore_index).astype(x.dtype)
        kept = kept * known(others.reshape(-1, *[1] * (len(x.shape) - axis - 1)))
    if weight is not None:
        weights = _weights("nll_loss", weight, x.shape[axis], x.dtype)
        kept = kept * weights.reshape(-1, *[1] * (len(x.shape) - axis - 1))
    loss = -np.sum(np.where(kept == 0, 0, x) * kept, axis=axis)  # log(0) of another class is no NaN
    if reduction == "mean":
        with np.errstate(invalid="ignore"):
            return rounded(np.sum(loss) / np.sum(kept), dtype)
    return rounded(reduced("nll_loss", loss, reduction), dtype)


@composite(tolerance=16)
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """The mean of (log(var) + (input - target) ** 2 / var) / 2, plus log(2 * pi) / 2 with `full`.

    `var`, which counts as `eps` at the least, and is NaN where it is negative, has the shape of the input, or the last
    of its sizes is 1 or missing (Nix and Weigend, "Estimating the mean and variance of the target probability
    distribution", equation 5).
    """
    (x, y, v), dtype = floats("gaussian_nll_loss", input, target, var)
    shapes = tuple(x.shape), (*x.shape[:-1], 1), tuple(x.shape[:-1])
    if tuple(x.shape) != tuple(y.shape):
        raise ShapeError(f"gaussian_nll_loss: shapes differ, {shown(x)} and {shown(y)}")
    if tuple(v.shape) not in shapes:
        wanted = " or ".join(str(list(shape)) for shape in shapes)
        raise ShapeError(f"gaussian_nll_loss: var must have shape {wanted}, got {shown(v)}")
    v = v if len(v.shape) == len(x.shape) else v[..., None]
    v = np.where(v < 0, np.nan, np.maximum(v, eps)).astype(x.dtype)
    loss = 0.5 * (np.log(v) + np.square(x - y) / v)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return rounded(reduced("gaussian_nll_loss", loss, reduction), dtype)


@composite(tolerance=16, domain=(0.1, 3.0))
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Any:
    """The mean of exp(input) - target * input, or, without `log_input`, of input - target * log(input + eps).

    With `full`, Stirling's target * log(target) - target + log(2 * pi * target) / 2 is added where the target is more
    than 1.
    """
    (x, y), dtype = floats("poisson_nll_loss", input, target)
    if tuple(x.shape) != tuple(y.shape):
        raise ShapeError(f"poisson_nll_loss: shapes differ, {shown(x)} and {shown(y)}")
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        above = np.where(y > 1, y, 1)
        loss = loss + np.where(y > 1, above * np.log(above) - above + 0.5 * np.log(2 * math.pi * above), 0)
    return rounded(reduced("poisson_nll_loss", loss, reduction), dtype)


@composite(tolerance=16)
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    """The mean over [N, C] of sum(max(0, margin - input[y] + input[j]) ** p) / C over the classes j other than y.

    A class out of range has no loss. `weight` has a factor for each class y (Crammer and Singer, "On the algorithmic
    implementation of multiclass kernel-based vector machines", section 2, with a sum over classes).
    """
    (x,), dtype = floats("multi_margin_loss", input)
    if len(x.shape) not in (1, 2):
        raise ShapeError(f"multi_margin_loss: the input must be [N, C] or [C], got {shown(x)}")
    if p not in (1, 2):
        raise ShapeError(f"multi_margin_loss: p must be 1 or 2, got {p!r}")
    classes = x.shape[-1]
    # A class out of range counts as no class: its loss is 0.
    own = _chosen(_classes("multi_margin_loss", target, tuple(x.shape[:-1])), classes, len(x.shape) - 1, x.dtype)
    far = np.maximum(margin - np.sum(np.where(own == 0, 0, x), axis=-1, keepdims=True) + x, 0)
    terms = np.where(np.sum(own, axis=-1, keepdims=True) > own, far if p == 1 else far * far, 0)
    if weight is not None:
        terms = terms * np.sum(own * _weights("multi_margin_loss", weight, classes, x.dtype), axis=-1, keepdims=True)
    loss = np.sum(terms, axis=-1) / classes
    return rounded(reduced("multi_margin_loss", loss, reduction), dtype)


@composite(tolerance=16)
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The mean over [N, C] of sum(max(0, 1 - input[y] + input[j])) / C over the labels y and the other classes j.

    The labels of a row of `target` are the integers before the first negative one; those out of range count as none.
    """
    (x,), dtype = floats("multilabel_margin_loss", input)
    if len(x.shape) not in (1, 2):
        raise ShapeError(f"multilabel_margin_loss: the input must be [N, C] or [C], got {shown(x)}")
    y, axis = _classes("multilabel_margin_loss", target, tuple(x.shape)), len(x.shape) - 1
    counted = (np.cumsum((y < 0).astype(np.int32), axis=-1) == 0).astype(x.dtype)
    labels = _chosen(y, x.shape[-1], axis + 1, x.dtype) * counted[..., None]  # [..., label, class]
    counted = counted * np.sum(labels, axis=-1)  # labels out of range count as none
    others = 1 - np.max(labels, axis=-2)
    own = np.sum(np.where(labels == 0, 0, x[..., None, :]), axis=-1)
    far = np.maximum(1 - own[..., None] + x[..., None, :], 0)
    far = np.where(counted[..., None] * others[..., None, :] == 0, 0, far)
    loss = np.sum(far, axis=(-2, -1)) / x.shape[-1]
    return rounded(reduced("multilabel_margin_loss", loss, reduction), dtype)


_NEVER = -1e30  # the logarithm of a probability that is 0, which has derivatives


@composite(tolerance=64)
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """-log of the probability that `log_probs` [T, N, C] say the labels `targets` [N, S], with blanks between them.

    The first `input_lengths` [N] times and `target_lengths` [N] labels of each row count; N may be missing. The mean is
    that of the losses divided by the numbers of labels. Where there is too little time for the labels the loss is
    infinite, or, with `zero_infinity`, 0; its derivative is 0. Where a length is negative or greater than T or S the
    loss is NaN, and outside of compiled functions an error. The sums over paths are one loop over time (Graves,
    Fernandez, Gomez and Schmidhuber, "Connectionist temporal classification", equations 5 to 8).
    """
    (x,), dtype = floats("ctc_loss", log_probs)
    y, times, lengths = (as_array(one) for one in (targets, input_lengths, target_lengths))
    single = len(x.shape) == 2
    if single:
        x, y, times, lengths = x[:, None], y[None], times.reshape(1), lengths.reshape(1)
    if len(x.shape) != 3 or not 0 <= blank < x.shape[-1] or not x.shape[0]:
        raise ShapeError(f"ctc_loss: log_probs must be [T, N, C] with T from 1 on and class {blank!r}, got {shown(x)}")
    batch = x.shape[1]
    for what, one, shape in (("targets", y, (batch, y.shape[-1])), ("input_lengths", times, (batch,)),
                             ("target_lengths", lengths, (batch,))):  # fmt: skip
        if one.dtype.kind not in "iu":
            raise DTypeError(f"ctc_loss: {what} must hold integers, got {shown(one)}")
        if tuple(one.shape) != shape:
            raise ShapeError(f"ctc_loss: {what} must have shape {list(shape)}, got {shown(one)}")
    counted = (times >= 0) & (times <= x.shape[0]) & (lengths >= 0) & (lengths <= y.shape[-1])
    if isinstance(counted, np.ndarray) and not counted.all():
        raise ShapeError(f"ctc_loss: there are {x.shape[0]} times and {y.shape[-1]} labels, fewer than a length says")
    states = 2 * y.shape[-1] + 1
    blanks = known(np.full((batch, y.shape[-1]), blank, y.dtype))
    between = np.stack([blanks, y], axis=-1).reshape(batch, states - 1)
    path = np.concatenate([between, blanks[:, :1] if y.shape[-1] else known(np.full((batch, 1), blank, y.dtype))], 1)
    number = known(np.arange(states, dtype=np.int32))
    path = np.where(number < 2 * lengths[:, None] + 1, path, blank)  # labels that do not count may be any numbers
    emitted = np.take_along_axis(x, np.broadcast_to(path[None], (x.shape[0], batch, states)), axis=2)
    fresh = (path[:, 2:] != path[:, :-2]) & (path[:, 2:] != blank)
    skips = np.concatenate([known(np.zeros((batch, min(states, 2)), np.bool_)), fresh], axis=1)
    never = known(np.full((batch, 2), _NEVER, x.dtype))
    first = np.where(number < 2, np.maximum(emitted[0], _NEVER), _NEVER)

    def step(alpha: Any, now: Any) -> tuple[Any, Any]:
        row, time = now
        before = np.concatenate([never, alpha], axis=1)
        ways = np.stack([alpha, before[:, 1:-1], np.where(skips, before[:, :-2], _NEVER)])
        after = np.maximum(np.maximum(row, _NEVER) + _log_sum(ways, 0), _NEVER)
        return np.where((time < times)[:, None], after, alpha), None

    if x.shape[0] > 1:
        clock = known(np.arange(1, x.shape[0], dtype=np.int32))
        first, _ = scan(step, first, (emitted[1:], clock))
    last = 2 * lengths[:, None]
    total = _log_sum(np.where((number == last) | (number == last - 1), first, _NEVER), 1)
    possible = np.logical_not(total <= 0.5 * _NEVER)  # NaN is none of those that are not
    loss = np.where(possible, -np.where(possible, total, 0), 0 if zero_infinity else np.inf)
    loss = np.where(counted, loss, np.nan)
    if reduction == "mean":
        loss = loss / np.maximum(lengths, 1).astype(x.dtype)
    loss = loss[0] if single and reduction == "none" else loss
    return rounded(reduced("ctc_loss", loss, reduction), dtype)


def _log_sum(x: Any, axis: int) -> Any:
    """log(sum(exp(x))) along an axis of finite numbers."""
    most = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - most), axis=axis)) + np.squeeze(most, axis=axis)
