"""Further optimisers of single parameters, with torch's formulae and the defaults of `torch.optim`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.optim.optimiser import Optimiser, Rate, Step, by_parameter

Slots = dict[str, Any]


def _zeros(*names: str) -> Any:
    return lambda p: {name: np.zeros(p.shape, p.dtype) for name in names}


def adadelta(rate: Rate = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0) -> Optimiser:
    """Steps in the units of the parameters (Zeiler, "ADADELTA", algorithm 1), as `torch.optim.Adadelta`."""

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        if weight_decay:
            g = g + weight_decay * p
        square = rho * slots["square"] + (1 - rho) * (g * g)
        change = np.sqrt(slots["change"] + eps) / np.sqrt(square + eps) * g
        kept = {"square": square, "change": rho * slots["change"] + (1 - rho) * (change * change)}
        return p - step.rate * change, kept

    return by_parameter(rate, _zeros("square", "change"), rule)


def adamax(
    rate: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
) -> Optimiser:
    """Adam by the largest gradients (Kingma and Ba, algorithm 2), as `torch.optim.Adamax`."""
    first, second = betas

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        if weight_decay:
            g = g + weight_decay * p
        mean = first * slots["mean"] + (1 - first) * g
        largest = np.maximum(second * slots["largest"], np.abs(g) + eps)
        return p - step.rate / step.one_minus_power(first) * (mean / largest), {"mean": mean, "largest": largest}

    return by_parameter(rate, _zeros("mean", "largest"), rule)


def nadam(
    rate: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
    momentum_decay: float = 4e-3,
) -> Optimiser:  # fmt: skip
    """Adam with Nesterov's momentum (Dozat, algorithm 8), as `torch.optim.NAdam`."""
    first, second = betas

    def momentum(count: Any) -> Any:
        return first * (1 - 0.5 * np.exp(count * (momentum_decay * math.log(0.96))))

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        if weight_decay:
            g = g + weight_decay * p
        now, later = momentum(step.count), momentum(step.count + 1)
        product = slots["product"] * now
        mean, square = first * slots["mean"] + (1 - first) * g, second * slots["square"] + (1 - second) * (g * g)
        root = np.sqrt(square / step.one_minus_power(second)) + eps
        factors = (1 - now) / (1 - product), later / (1 - product * later)
        change = (factors[0] * g + factors[1] * mean) / root
        return p - step.rate * change, {"mean": mean, "square": square, "product": product}

    def slots_of(p: Any) -> Slots:
        return {**_zeros("mean", "square")(p), "product": np.ones((), p.dtype)}

    return by_parameter(rate, slots_of, rule)


def radam(
    rate: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
) -> Optimiser:
    """Adam whose first steps are those of momentum alone (Liu et al., algorithm 2), as `torch.optim.RAdam`."""
    first, second = betas
    log = -math.log(second)
    limit = 2 / (1 - second) - 1

    def length(count: Any) -> Any:
        """limit - 2 * count * second ** count / (1 - second ** count), whose terms nearly cancel at first."""
        x = count * log
        series = (limit - 2 / log) + count * (1 - x / 6 * (1 - x * x / 60 * (1 - x * x / 42)))
        return np.where(x < 0.25, series, limit - 2 * count / np.expm1(np.maximum(x, 0.25)))

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        if weight_decay:
            g = g + weight_decay * p
        mean, square = first * slots["mean"] + (1 - first) * g, second * slots["square"] + (1 - second) * (g * g)
        rho = length(step.count)
        safe = np.maximum(rho, 5.0)
        scale = np.sqrt((safe - 4) * (safe - 2) * limit / ((limit - 4) * (limit - 2) * safe))
        scale = scale * np.sqrt(step.one_minus_power(second))
        factor = np.where(rho > 5, scale / (np.sqrt(square) + eps), 1.0)
        return p - (step.rate / step.one_minus_power(first)) * mean * factor, {"mean": mean, "square": square}

    return by_parameter(rate, _zeros("mean", "square"), rule)


def rprop(
    rate: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50.0)
) -> Optimiser:
    """Steps by the signs of gradients alone (Riedmiller and Braun, section 3), as `torch.optim.Rprop`.

    `rate` is the length of the first steps.
    """

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        product = g * slots["gradient"]
        factor = np.where(product > 0, etas[1], np.where(product < 0, etas[0], 1.0)).astype(p.dtype)
        size = np.minimum(np.maximum(slots["size"] * factor, step_sizes[0]), step_sizes[1])
        g = np.where(product < 0, 0 * g, g)
        return p - np.sign(g) * size, {"gradient": g, "size": size}

    def slots_of(p: Any) -> Slots:
        return {**_zeros("gradient")(p), "size": np.full(p.shape, rate, p.dtype)}

    return by_parameter(rate, slots_of, rule)
