"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.nn.define import as_array, composite, floats, known, rounded, shown
from mlirml.nn.normalizations import log_probabilities


def _reduced(name: str, x: Any, reduction: str) -> Any:
    if reduction not in ("mean", "sum", "none"):
        raise ShapeError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return x if reduction == "none" else np.mean(x) if reduction == "mean" else np.sum(x)


@composite(tolerance=16)
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """The mean of (input - target) ** 2; their sum, or each of them, with `reduction` "sum" or "none"."""
    (x, y), dtype = floats("mse_loss", input, target)
    if tuple(x.shape) != tuple(y.shape):
        raise ShapeError(f"mse_loss: shapes differ, {shown(x)} and {shown(y)}")
    return rounded(_reduced("mse_loss", np.square(x - y), reduction), dtype)


@composite(tolerance=16)
def cross_entropy(input: Any, target: Any, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """-log(softmax(input)) of the target's class, over [N, C, ...]; `target` holds classes [N, ...] or probabilities.

    A class out of range counts as no class: its loss is 0 before the mean.
    """
    (x,), dtype = floats("cross_entropy", input)
    y = as_array(target)
    if not x.shape:
        raise ShapeError(f"cross_entropy: the input must be [N, C, ...] or [C], got {shown(x)}")
    axis = 1 if len(x.shape) > 1 else 0
    classes = x.shape[axis]
    rest = tuple(x.shape[:axis]) + tuple(x.shape[axis + 1 :])
    if tuple(y.shape) == tuple(x.shape) and y.dtype.kind not in "iub":
        weights = rounded(y, x.dtype)
    elif tuple(y.shape) == rest and y.dtype.kind in "iu":
        kind = y.dtype if classes - 1 <= np.iinfo(y.dtype).max else np.int64  # not all devices have int64
        numbers = known(np.arange(classes, dtype=kind).reshape(-1, *[1] * (len(x.shape) - axis - 1)))
        spread = y.reshape(*rest[:axis], 1, *rest[axis:])
        weights = (spread == numbers).astype(x.dtype)
    elif y.dtype.kind == "b":
        raise DTypeError(f"cross_entropy: the target must hold classes or probabilities, got {shown(y)}")
    else:
        raise ShapeError(
            f"cross_entropy: the target must be integers of shape {list(rest)} or probabilities of shape "
            f"{list(x.shape)}, got {shown(y)}"
        )
    if label_smoothing:
        weights = weights * (1 - label_smoothing) + label_smoothing / classes
    loss = -np.sum(log_probabilities(x, axis) * weights, axis=axis)
    return rounded(_reduced("cross_entropy", loss, reduction), dtype)
