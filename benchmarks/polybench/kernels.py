"""What the table knows of a kernel: the function, its arguments for a size, and what should become of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., None]
Arguments = Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True)
class Kernel:
    """A loop nest that works on its arguments in place.

    `arguments(n)` makes the same arguments each time. `dense` kernels are matrix products at heart, and should have no
    loop left. `medium` is the size at which the time is taken.
    """

    name: str
    function: Function
    arguments: Arguments
    medium: int
    dense: bool = False


KERNELS: dict[str, Kernel] = {}
SMALL = (5, 9)


def kernel(arguments: Arguments, medium: int, *, dense: bool = False) -> Callable[[Function], Function]:
    """Enter a function into the table, under its name with dashes."""

    def enter(function: Function) -> Function:
        name = function.__name__.strip("_").replace("_", "-")
        KERNELS[name] = Kernel(name, function, arguments, medium, dense)
        return function

    return enter


def array(seed: int, *shape: int) -> np.ndarray:
    """Numbers between -1 and 1, the same in each run."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


def dominant(seed: int, n: int) -> np.ndarray:
    """A symmetric positive definite matrix."""
    a = array(seed, n, n)
    return a @ a.T / n + np.eye(n)
