"""`range` with bounds that are known only when the program runs, and `ml.parallel`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from mlirml.dataclass import dataclass
from mlirml.errors import DTypeError, ShapeError, UnsupportedSyntaxError


@dataclass(frozen=True)
class TracedRange:
    """A `range` of which a bound is a number of the program. The step is known."""

    start: Any
    stop: Any
    step: int
    parallel: bool = False

    def __iter__(self) -> Iterator[Any]:
        raise UnsupportedSyntaxError(
            "a range whose bounds are known only when the program runs is iterated outside of a `for` statement",
            help="write a `for` loop that stores into an array",
        )

    def __len__(self) -> int:
        raise UnsupportedSyntaxError(
            "the length of a range whose bounds are known only when the program runs", help="compute it from the bounds"
        )


def traced_range(*bounds: Any) -> Any:
    """`range` for bounds of which one is traced."""
    from mlirml.capture.array import Traced

    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    for bound in (start, stop, step):
        if isinstance(bound, Traced) and (bound.shape or bound.dtype.kind not in "iu"):
            raise DTypeError(
                f"range: a bound must be an integer, got {bound._describe()}", help="convert it with `int(...)`"
            )
        if isinstance(bound, float):
            raise DTypeError(f"range: a bound must be an integer, got {bound!r}", help="convert it with `int(...)`")
    if isinstance(step, Traced):
        raise UnsupportedSyntaxError(
            "the step of a range is known only when the program runs",
            help="loop over a range of step 1, and compute the number: `i = start + k * step`",
        )
    if step == 0:
        raise ShapeError("range: the step must not be zero")
    return TracedRange(start, stop, int(step.__index__()))


class Parallel:
    """A range whose rounds do not depend on each other."""

    def __init__(self, rounds: range) -> None:
        self.range = rounds

    def __iter__(self) -> Iterator[int]:
        return iter(self.range)

    def __len__(self) -> int:
        return len(self.range)


def parallel(rounds: Iterable[int]) -> Any:
    """`for i in ml.parallel(range(n))`: the rounds may run at the same time, as none reads what another one stores.

    That is taken for granted, not checked. Outside of compiled code it is the range itself.

    >>> import numpy as np, mlirml as ml
    >>> def double(x):
    ...     for i in ml.parallel(range(len(x))):
    ...         x[i] = 2 * x[i]
    >>> double(x := np.array([1, 2, 3]))
    >>> x
    array([2, 4, 6])
    """
    tracing = sys.modules.get("mlirml.capture.trace")
    if tracing is None or tracing.current_trace() is None:
        return rounds
    if isinstance(rounds, TracedRange):
        return TracedRange(rounds.start, rounds.stop, rounds.step, True)
    if isinstance(rounds, range):
        return Parallel(rounds)
    raise UnsupportedSyntaxError("`ml.parallel` takes a range", help="write `ml.parallel(range(n))`")
