"""Optimisers of single parameters, with torch's formulae and the defaults of `torch.optim`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ArgumentError
from mlirml.optim.optimiser import Optimiser, Rate, Step, by_parameter, decayed, zeros

__all__ = ["adafactor", "adagrad", "adam", "adamw", "lion", "rmsprop", "sgd"]

Slots = dict[str, Any]


def _mixed(old: Any, new: Any, keep: float) -> Any:
    return keep * old + (1 - keep) * new


def sgd(
    rate: Rate, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False
) -> Optimiser:
    """Stochastic gradient descent; `momentum` adds up gradients, `nesterov` looks ahead (Sutskever et al., 2013).

    As `torch.optim.SGD`: the buffer of the momentum begins with the first gradient.
    """
    if nesterov and (momentum <= 0 or dampening):
        raise ArgumentError("sgd: nesterov takes a momentum and no dampening")

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, _ = decayed(g, p, weight_decay, step)
        if momentum:
            buffer = momentum * slots["momentum"] + (1 - dampening) * g
            if dampening:
                buffer = np.where(step.count == 1, g, buffer)
            slots = {"momentum": buffer}
            g = g + momentum * buffer if nesterov else buffer
        return p - step.rate * g, slots

    return by_parameter(rate, zeros("momentum") if momentum else zeros(), rule)


def adam(
    rate: Rate = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
) -> Optimiser:
    """Adam (Kingma and Ba, "Adam: a method for stochastic optimization", algorithm 1), as `torch.optim.Adam`."""
    return _adam(rate, betas, eps, weight_decay, amsgrad, decoupled=False)


def adamw(
    rate: Rate = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    amsgrad: bool = False,
) -> Optimiser:
    """Adam with weights that decay by themselves (Loshchilov and Hutter, algorithm 2), as `torch.optim.AdamW`."""
    return _adam(rate, betas, eps, weight_decay, amsgrad, decoupled=True)


def _adam(
    rate: Rate, betas: tuple[float, float], eps: float, weight_decay: float, amsgrad: bool, *, decoupled: bool
) -> Optimiser:
    first, second = betas

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, p = decayed(g, p, weight_decay, step, decoupled)
        mean, square = _mixed(slots["mean"], g, first), _mixed(slots["square"], g * g, second)
        kept = {"mean": mean, "square": square}
        largest = square
        if amsgrad:
            largest = kept["largest"] = np.maximum(slots["largest"], square)
        root = np.sqrt(largest) / np.sqrt(step.one_minus_power(second)) + eps
        return p - (step.rate / step.one_minus_power(first)) * (mean / root), kept

    return by_parameter(rate, zeros("mean", "square", *["largest"] * amsgrad), rule)


def lion(rate: Rate = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0) -> Optimiser:
    """The sign of a mean of gradients (Chen et al., "Symbolic discovery of optimization algorithms", program 1)."""
    first, second = betas

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        change = np.sign(_mixed(slots["mean"], g, first))
        if weight_decay:
            change = change + weight_decay * p
        return p - step.rate * change, {"mean": _mixed(slots["mean"], g, second)}

    return by_parameter(rate, zeros("mean"), rule)


def rmsprop(
    rate: Rate = 1e-2,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> Optimiser:
    """Gradients divided by the root of the mean of their squares (Tieleman and Hinton), as `torch.optim.RMSprop`."""

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, _ = decayed(g, p, weight_decay, step)
        square = _mixed(slots["square"], g * g, alpha)
        kept, variance = {"square": square}, square
        if centered:
            kept["mean"] = _mixed(slots["mean"], g, alpha)
            variance = square - kept["mean"] * kept["mean"]
        change = g / (np.sqrt(variance) + eps)
        if momentum:
            change = kept["momentum"] = momentum * slots["momentum"] + change
        return p - step.rate * change, kept

    return by_parameter(rate, zeros("square", *["mean"] * centered, *["momentum"] * bool(momentum)), rule)


def adagrad(
    rate: Rate = 1e-2, rate_decay: float = 0.0, weight_decay: float = 0.0, initial: float = 0.0, eps: float = 1e-10
) -> Optimiser:
    """Gradients divided by the root of the sum of their squares (Duchi, Hazan and Singer), as `torch.optim.Adagrad`."""

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, _ = decayed(g, p, weight_decay, step)
        total = slots["total"] + g * g
        scale = step.rate / (1 + (step.count - 1) * rate_decay) if rate_decay else step.rate
        return p - scale * (g / (np.sqrt(total) + eps)), {"total": total}

    return by_parameter(rate, lambda p: {"total": np.full(p.shape, initial, p.dtype)}, rule)


def adafactor(
    rate: Rate = 1e-2,
    beta2_decay: float = -0.8,
    eps: tuple[float | None, float] = (None, 1e-3),
    clipping: float = 1.0,
    weight_decay: float = 0.0,
) -> Optimiser:
    """Adam's second moments of matrices as products of those of rows and columns, as `torch.optim.Adafactor`.

    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", algorithms 4 and 5. The first
    of `eps` is that of the dtype by default.
    """

    def slots_of(p: Any) -> Slots:
        if len(p.shape) < 2:
            return {"row": np.zeros(p.shape, p.dtype), "column": np.zeros((), p.dtype)}
        shapes = {"row": (*p.shape[:-1], 1), "column": (*p.shape[:-2], 1, p.shape[-1])}
        return {name: np.zeros(shape, p.dtype) for name, shape in shapes.items()}

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        tiny = float(np.finfo(p.dtype).eps) if eps[0] is None else eps[0]
        new = step.count**beta2_decay
        scale = np.maximum(eps[1], np.sqrt(np.mean(p * p))) * np.minimum(step.rate, 1 / np.sqrt(step.count))
        if weight_decay:
            p = p * (1 - step.rate * weight_decay)
        row, column = slots["row"], slots["column"]
        if len(p.shape) < 2:
            square = row = row + new * (g * g - row)
        else:
            row = row + new * (np.mean(g * g, axis=-1, keepdims=True) - row)
            column = column + new * (np.mean(g * g, axis=-2, keepdims=True) - column)
            square = row * column / np.maximum(np.mean(row, axis=-2, keepdims=True), tiny)
        change = g / np.sqrt(np.maximum(square, tiny * tiny))
        length = np.sqrt(np.mean(change * change))
        return p - scale / np.maximum(1.0, length / clipping) * change, {"row": row, "column": column}

    return by_parameter(rate, slots_of, rule)
