"""Learning rates as functions of the number of updates that are done, in the closed forms of torch's schedulers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Schedule = Callable[[Any], Any]


def _float(count: Any) -> Any:
    # f32 counts 16 million updates exactly, and all devices have it.
    return count.astype(np.float32) if hasattr(count, "astype") else np.float32(count)


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
    return lambda count: rate * np.exp(_float(count) * math.log(decay))


def step(rate: float, decay: float, every: int) -> Schedule:
    """`rate`, multiplied by `decay` each time that `every` updates are done (`StepLR`)."""
    return lambda count: rate * np.exp(np.floor(_float(count) / every) * math.log(decay))
