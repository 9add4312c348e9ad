"""Learning rates as functions of the number of updates that are done, in the closed forms of torch's schedulers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError

__all__ = [
    "constant", "cosine", "cosine_restarts", "cyclic", "exponential", "joined", "linear", "linear_warmup", "multistep",
    "one_cycle", "polynomial", "step",
]  # fmt: skip

Schedule = Callable[[Any], Any]


def _float(count: Any) -> Any:
    # f32 counts 16 million updates exactly, and all devices have it.
    return count.astype(np.float32) if hasattr(count, "astype") else np.float32(count)


def _power(base: float, exponent: Any) -> Any:
    return np.exp(exponent * math.log(base)) if base > 0 else np.power(np.float32(base), exponent)


def constant(rate: float) -> Schedule:
    """The same rate always."""
    return lambda count: np.float32(rate) + 0 * _float(count)


def cosine(rate: float, updates: int, end: float = 0.0) -> Schedule:
    """Half a period of a cosine from `rate` to `end`, where it stays (`CosineAnnealingLR` up to there)."""

    def schedule(count: Any) -> Any:
        done = np.minimum(_float(count), np.float32(updates)) * (math.pi / updates)
        return end + (rate - end) * (1 + np.cos(done)) / 2

    return schedule


def linear_warmup(rate: Schedule | float, updates: int, start: float = 0.0) -> Schedule:
    """A line from `start` times the first rate to it, then the schedule `rate`, which counts from its own begin."""
    after = rate if callable(rate) else constant(rate)

    def schedule(count: Any) -> Any:
        done = _float(count)
        line = after(0 * count) * (start + (1 - start) * np.minimum(done / updates, 1))
        return np.where(done < updates, line, after(np.maximum(count - updates, 0 * count)))

    return schedule


def exponential(rate: float, decay: float) -> Schedule:
    """rate * decay ** count (`ExponentialLR`)."""
    return lambda count: rate * _power(decay, _float(count))


def step(rate: float, decay: float, every: int) -> Schedule:
    """`rate`, multiplied by `decay` each time that `every` updates are done (`StepLR`)."""
    return lambda count: rate * _power(decay, np.floor(_float(count) / every))


def linear(rate: float, updates: int, start: float = 1.0 / 3, end: float = 1.0) -> Schedule:
    """A line from `start` times the rate to `end` times it, where it stays (`LinearLR`)."""
    return lambda count: rate * (start + (end - start) * np.minimum(_float(count) / updates, 1))


def multistep(rate: float, decay: float, milestones: Sequence[int]) -> Schedule:
    """`rate`, multiplied by `decay` at each of the milestones (`MultiStepLR`)."""

    def schedule(count: Any) -> Any:
        value = constant(rate)(count)
        for milestone in milestones:
            value = np.where(_float(count) >= milestone, value * decay, value)
        return value

    return schedule


def polynomial(rate: float, updates: int, power: float = 1.0) -> Schedule:
    """rate * (1 - count / updates) ** power, and 0 from there on (`PolynomialLR`)."""
    return lambda count: rate * (1 - np.minimum(_float(count) / updates, 1)) ** power


def cosine_restarts(rate: float, updates: int, multiple: int = 1, end: float = 0.0) -> Schedule:
    """Half periods of a cosine from `rate` to `end`, each `multiple` times as long as the last one.

    As `CosineAnnealingWarmRestarts`; the first takes `updates` (Loshchilov and Hutter, "SGDR", equation 5).
    """

    def schedule(count: Any) -> Any:
        done = _float(count)
        if multiple == 1:
            since, length = done - np.floor(done / updates) * updates, done * 0 + updates
        else:
            since, length, begin, period = done, done * 0 + updates, updates, updates * multiple
            while begin < 1 << 24:  # up to which f32 counts exactly
                since = np.where(done >= begin, done - begin, since)
                length = np.where(done >= begin, np.float32(period), length)
                begin, period = begin + period, period * multiple
        return end + (rate - end) * (1 + np.cos(math.pi * since / length)) / 2

    return schedule


def cyclic(
    low: float, high: float, up: int = 2000, down: int | None = None, mode: str = "triangular", gamma: float = 1.0
) -> Schedule:
    """Lines from `low` to `high` in `up` updates and back in `down`, which is `up` by default, again and again.

    Smith, "Cyclical learning rates for training neural networks", as `CyclicLR`: `mode` is "triangular", "triangular2",
    of which each cycle is half as high as the last one, or "exp_range", whose height falls by `gamma` in each update.
    """
    heights: dict[str, Callable[[Any, Any], Any]] = {
        "triangular": lambda cycle, done: 1.0,
        "triangular2": lambda cycle, done: np.exp2(-cycle),
        "exp_range": lambda cycle, done: _power(gamma, done),
    }
    if mode not in heights:
        raise ArgumentError(f"cyclic: mode {mode!r} is not known", help=f"it is one of {', '.join(map(repr, heights))}")
    length = up + (up if down is None else down)

    def schedule(count: Any) -> Any:
        done = _float(count)
        cycle = np.floor(done / length)
        since = done - cycle * length
        share = np.where(since <= up, since / up, (length - since) / max(length - up, 1))
        return low + (high - low) * share * heights[mode](cycle, done)

    return schedule


def one_cycle(
    rate: float, updates: int, warmup: float = 0.3, div_factor: float = 25.0, final_div_factor: float = 1e4
) -> Schedule:
    """From rate / div_factor up to `rate` by a cosine, for a part `warmup` of all updates, and down (`OneCycleLR`).

    The last rate is the first one divided by `final_div_factor` (Smith and Topin, "Super-convergence", section 3).
    """
    first, top = rate / div_factor, warmup * updates - 1

    def schedule(count: Any) -> Any:
        done = _float(count)
        up, down = done / top, np.minimum((done - top) / (updates - 1 - top), 1)
        rising = rate + (first - rate) * (1 + np.cos(math.pi * up)) / 2
        last = first / final_div_factor
        return np.where(done <= top, rising, last + (rate - last) * (1 + np.cos(math.pi * down)) / 2)

    return schedule


def joined(schedules: Sequence[Schedule], milestones: Sequence[int]) -> Schedule:
    """Schedules in sequence, each of which counts from its milestone on (`SequentialLR`)."""

    def schedule(count: Any) -> Any:
        value = schedules[0](count)
        for each, milestone in zip(schedules[1:], milestones, strict=True):
            value = np.where(_float(count) >= milestone, each(np.maximum(count - milestone, 0 * count)), value)
        return value

    return schedule
