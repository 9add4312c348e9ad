"""The state of a compiled function: what it changes outside of its arguments, an input and output of its programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mlirml.errors import CaptureError, InternalError

if TYPE_CHECKING:
    from mlirml.driver.calls import Call
    from mlirml.frontend.state.effects import Place, StateChanged
    from mlirml.frontend.tracing.captured import Captured

_Result = TypeVar("_Result")
_ATTEMPTS = 100


class State:
    """The places that tracing has found to change, and those among them that tracing needs the numbers of."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.python: frozenset[Any] = frozenset()
        self._numbers: list[Place] = []

    def settled(self, run: Callable[[], _Result]) -> _Result:
        """What `run` returns, which traces the function, once all places are known."""
        from mlirml.frontend.state.effects import StateChanged

        failed: CaptureError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return run()
            except StateChanged as found:
                self._adopt(found)
            except CaptureError as error:
                if failed is not None or not self._numbers:
                    raise failed or error from None
                failed = error  # maybe over a number that is not known any more
                self.python |= {place.name for place in self._numbers}
                self.places = [place for place in self.places if place.name not in self.python]
                self._numbers = []
        raise InternalError("the state of a function does not settle")

    def _adopt(self, found: StateChanged) -> None:
        new = {place.name for place in found.places}
        self.places = [*(place for place in self.places if place.name not in new), *found.places]
        self._numbers += found.numbers

    def items(self) -> list[Any]:
        """The values for a call."""
        from mlirml.frontend.state.effects import items_of

        return items_of(self.places)

    def named(self, paths: list[str]) -> list[str]:
        """The paths of all leaves, in the user's words for those of the state."""
        if not self.places:
            return paths
        found = [re.match(r"<state>\[(\d+)\]", path) for path in paths]
        return [self.places[int(m[1])].path if m else path for m, path in zip(found, paths)]

    def write_back(self, call: Call, captured: Captured) -> None:
        """What a call has made of the state."""
        from mlirml.frontend.state.effects import write_back
        from mlirml.frontend.tracing.trace import STATE

        write_back(self.places, call.kwargs[STATE], captured.unset)
