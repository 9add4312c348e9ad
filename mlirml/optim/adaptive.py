"""Further optimisers of single parameters, with torch's formulae and the defaults of `torch.optim`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text.dtypes import describe
from mlirml.optim.optimiser import Optimiser, Rate, Step, by_parameter, decayed, zeros

__all__ = ["adadelta", "adamax", "asgd", "muon", "nadam", "radam", "rprop"]

Slots = dict[str, Any]


def adadelta(rate: Rate = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0) -> Optimiser:
    """Steps in the units of the parameters (Zeiler, "ADADELTA", algorithm 1), as `torch.optim.Adadelta`."""

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, _ = decayed(g, p, weight_decay, step)
        square = rho * slots["square"] + (1 - rho) * (g * g)
        change = np.sqrt(slots["change"] + eps) / np.sqrt(square + eps) * g
        kept = {"square": square, "change": rho * slots["change"] + (1 - rho) * (change * change)}
        return p - step.rate * change, kept

    return by_parameter(rate, zeros("square", "change"), rule)


def adamax(
    rate: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
) -> Optimiser:
    """Adam by the largest gradients (Kingma and Ba, algorithm 2), as `torch.optim.Adamax`."""
    first, second = betas

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, _ = decayed(g, p, weight_decay, step)
        mean = first * slots["mean"] + (1 - first) * g
        largest = np.maximum(second * slots["largest"], np.abs(g) + eps)
        return p - step.rate / step.one_minus_power(first) * (mean / largest), {"mean": mean, "largest": largest}

    return by_parameter(rate, zeros("mean", "largest"), rule)


def nadam(
    rate: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
    momentum_decay: float = 4e-3, decoupled: bool = False,
) -> Optimiser:  # fmt: skip
    """Adam with Nesterov's momentum (Dozat, algorithm 8), as `torch.optim.NAdam`.

    With `decoupled` weights decay by themselves, as those of `adamw`.
    """
    first, second = betas

    def momentum(count: Any) -> Any:
        return first * (1 - 0.5 * np.exp(count * (momentum_decay * math.log(0.96))))

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, p = decayed(g, p, weight_decay, step, decoupled)
        now, later = momentum(step.count), momentum(step.count + 1)
        product = slots["product"] * now
        mean, square = first * slots["mean"] + (1 - first) * g, second * slots["square"] + (1 - second) * (g * g)
        root = np.sqrt(square / step.one_minus_power(second)) + eps
        factors = (1 - now) / (1 - product), later / (1 - product * later)
        change = (factors[0] * g + factors[1] * mean) / root
        return p - step.rate * change, {"mean": mean, "square": square, "product": product}

    def slots_of(p: Any) -> Slots:
        return {**zeros("mean", "square")(p), "product": np.ones((), p.dtype)}

    return by_parameter(rate, slots_of, rule)


def radam(
    rate: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
    decoupled: bool = False,
) -> Optimiser:  # fmt: skip
    """Adam whose first steps are those of momentum alone (Liu et al., algorithm 2), as `torch.optim.RAdam`.

    With `decoupled` weights decay by themselves, as those of `adamw`.
    """
    first, second = betas
    log = -math.log(second)
    limit = 2 / (1 - second) - 1

    def length(count: Any) -> Any:
        """limit - 2 * count * second ** count / (1 - second ** count), whose terms nearly cancel at first."""
        x = count * log
        series = (limit - 2 / log) + count * (1 - x / 6 * (1 - x * x / 60 * (1 - x * x / 42)))
        return np.where(x < 0.25, series, limit - 2 * count / np.expm1(np.maximum(x, 0.25)))

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, p = decayed(g, p, weight_decay, step, decoupled)
        mean, square = first * slots["mean"] + (1 - first) * g, second * slots["square"] + (1 - second) * (g * g)
        rho = length(step.count)
        safe = np.maximum(rho, 5.0)
        scale = np.sqrt((safe - 4) * (safe - 2) * limit / ((limit - 4) * (limit - 2) * safe))
        scale = scale * np.sqrt(step.one_minus_power(second))
        factor = np.where(rho > 5, scale / (np.sqrt(square) + eps), 1.0)
        return p - (step.rate / step.one_minus_power(first)) * mean * factor, {"mean": mean, "square": square}

    return by_parameter(rate, zeros("mean", "square"), rule)


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
        return {**zeros("gradient")(p), "size": np.full(p.shape, rate, p.dtype)}

    return by_parameter(rate, slots_of, rule)


def asgd(
    rate: Rate = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0.0
) -> Optimiser:
    """Gradient descent with falling rates and a mean of the parameters, as `torch.optim.ASGD`.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging". The means, from update `t0` on, are
    `state["average"]`; before it they are the parameters.
    """

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        g, _ = decayed(g, p, weight_decay, step)
        done = step.count - 1
        eta = step.rate / (1 + lambd * step.rate * done) ** alpha
        p = p * (1 - lambd * eta) - eta * g
        return p, {"average": slots["average"] + (p - slots["average"]) / np.maximum(done - t0, 1.0)}

    return by_parameter(rate, zeros("average"), rule)


_QUINTIC = (3.4445, -4.7750, 2.0315)
"""Coefficients of an odd polynomial whose iterates bring numbers of (0, 1] near 1 (Jordan et al., "Muon")."""


def muon(
    rate: Rate = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True, steps: int = 5,
    eps: float = 1e-7, match_adamw: bool = False,
) -> Optimiser:  # fmt: skip
    """Momentum of matrices made nearly orthogonal (Jordan et al., "Muon", 2024), as `torch.optim.Muon`.

    All parameters are matrices; others raise `ShapeError`, and are for another optimiser. `steps` iterations of Newton
    and Schulz bring the singular values near 1, in f32 or f64 where torch takes bf16. The rate is multiplied by
    max(1, rows / columns) ** 0.5, or with `match_adamw` by 0.2 * max(rows, columns) ** 0.5.
    """

    def rule(g: Any, p: Any, slots: Slots, step: Step) -> tuple[Any, Slots]:
        rows, columns = p.shape
        buffer = momentum * slots["momentum"] + (1 - momentum) * g
        x = (1 - momentum) * g + momentum * buffer if nesterov else buffer
        x = x.T if rows > columns else x
        x = x / np.maximum(np.sqrt(np.sum(x * x)), eps)
        for _ in range(steps):
            gram = x @ x.T
            x = _QUINTIC[0] * x + (_QUINTIC[1] * gram + _QUINTIC[2] * (gram @ gram)) @ x
        factor = 0.2 * math.sqrt(max(rows, columns)) if match_adamw else math.sqrt(max(1.0, rows / columns))
        p = p * (1 - step.rate * weight_decay) - step.rate * factor * (x.T if rows > columns else x)
        return p, {"momentum": buffer}

    def slots_of(p: Any) -> Slots:
        if len(p.shape) != 2:
            with at_user_line():
                raise ShapeError(
                    f"muon: each parameter is a matrix, got {describe(tuple(p.shape), p.dtype)}",
                    help="give other parameters to another optimiser, as adamw",
                )
        return zeros("momentum")(p)

    return by_parameter(rate, slots_of, rule)
