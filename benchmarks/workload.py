"""What a workload is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Arguments = tuple[Any, ...]
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Workload:
    """A function to time. `sizes`, or `quick` in a trial, go to `inputs`, and to `work`, which counts `unit`s.

    `narrow`: peers get the inputs as bfloat16, which they hold exactly, and NumPy as float32, since it is slow at that.
    `loops` is the same work as loops over elements, for mlirml and Numba: it takes the inputs, and arrays of the shapes
    that `made` gives, zeros at first, and stores into argument `stored`.
    `transform` says what peers make of the function: its gradient for arguments `wrt`, the function's value with it, or
    another derivative. NumPy has none of them. `value` gives numbers whose differences are to be those derivatives,
    where `function` itself does not; `derivative` gives the derivatives themselves. `double`: the numbers are float64.
    """

    name: str
    function: Callable[..., Any]
    inputs: Callable[..., Arguments]
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    unit: str = ""  # "flop", "byte", or "" where only the time matters
    work: Callable[..., float] = lambda *sizes: 0.0
    narrow: bool = False
    loops: Callable[..., None] | None = None
    made: Callable[..., Shapes] = lambda *arguments: ()
    stored: int = -1
    # "gradient", "value and gradient", "jacobian" of each example, "jacobian of few" parameters, "hvp", "step", or ""
    transform: str = ""
    wrt: tuple[int, ...] = (0,)
    value: Callable[..., Any] | None = None
    derivative: Callable[..., Any] | None = None
    double: bool = False

    def arguments(self, quick: bool) -> Arguments:
        """The inputs: the same ones in every run."""
        return self.inputs(*(self.quick if quick else self.sizes))

    def amount(self, quick: bool) -> float:
        """How much work one call is, in flops or bytes."""
        return self.work(*(self.quick if quick else self.sizes))
