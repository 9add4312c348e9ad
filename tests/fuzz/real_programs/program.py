"""The list of programs: a function as people write it, the inputs to try it on, and how exact it has to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Array = np.ndarray
Function = TypeVar("Function", bound=Callable[..., Any])

FLOATS = ("float64", "float32")


class Draw:
    """Makes inputs of one dtype; the same ones for the same program."""

    def __init__(self, dtype: np.dtype, seed: int) -> None:
        self.dtype = dtype
        self.random = np.random.default_rng(seed)

    def normal(self, *shape: int) -> Array:
        """Numbers of mean 0 and deviation 1."""
        return self.random.standard_normal(shape).astype(self.dtype)

    def uniform(self, low: float, high: float, *shape: int) -> Array:
        """Numbers between two bounds."""
        return self.random.uniform(low, high, shape).astype(self.dtype)

    def integers(self, low: int, high: int, *shape: int, dtype: Any = None) -> Array:
        """Whole numbers from `low` up to `high`, which is left out."""
        return self.random.integers(low, high, shape).astype(self.dtype if dtype is None else dtype)

    def scalar(self, value: float) -> Any:
        """A NumPy scalar of the dtype."""
        return self.dtype.type(value)


@dataclass(frozen=True)
class Program:
    """A function with its inputs. `ulps` is the error allowed, in units of the largest result's last place."""

    function: Callable[..., Any]
    inputs: Callable[[Draw], tuple[Any, ...]]
    dtypes: tuple[str, ...]
    ulps: float
    static_argnums: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self, dtype: str) -> tuple[Any, ...]:
        """Fresh arguments."""
        return self.inputs(Draw(np.dtype(dtype), sum(map(ord, self.name))))

    def tolerance(self, dtype: str) -> float:
        """The error allowed relative to the largest magnitude; 0 for integers."""
        kind = np.dtype(dtype)
        return self.ulps * float(np.finfo(kind).eps) if kind.kind == "f" else 0.0


PROGRAMS: dict[str, Program] = {}


def program(
    inputs: Callable[[Draw], tuple[Any, ...]],
    dtypes: tuple[str, ...] = FLOATS,
    ulps: float = 50,
    static_argnums: tuple[int, ...] = (),
) -> Callable[[Function], Function]:
    """Decorator: enter a function into the list and leave it as it is."""

    def enter(function: Function) -> Function:
        record = Program(function, inputs, dtypes, ulps, static_argnums)
        assert record.name not in PROGRAMS, record.name
        PROGRAMS[record.name] = record
        return function

    return enter
