"""The state of a compiled function: what it changes outside of its arguments, an input and output of its programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mlirml.errors import CaptureError, InternalError

if TYPE_CHECKING:
    from mlirml.driver.calls import Call
    from mlirml.frontend.captured import Captured
    from mlirml.frontend.state.effects import StateChanged, StateVariable

_Result = TypeVar("_Result")
_ATTEMPTS = 100


class State:
    """The state variables that tracing has found to change, and those whose values tracing needs."""

    def __init__(self) -> None:
        self.variables: list[StateVariable] = []
        self.python: frozenset[Any] = frozenset()
        self._numbers: list[StateVariable] = []

    def settled(self, run: Callable[[], _Result]) -> _Result:
        """The result of `run`, which traces the function, repeated until tracing finds no further state variable."""
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
                self.python |= {variable.name for variable in self._numbers}
                self.variables = [variable for variable in self.variables if variable.name not in self.python]
                self._numbers = []
        raise InternalError("the state of a function does not settle")

    def _adopt(self, found: StateChanged) -> None:
        new = {variable.name for variable in found.variables}
        self.variables = [*(variable for variable in self.variables if variable.name not in new), *found.variables]
        self._numbers += found.numbers

    def items(self) -> list[Any]:
        """The values for a call."""
        from mlirml.frontend.state.effects import items_of

        return items_of(self.variables)

    def named(self, paths: list[str]) -> list[str]:
        """The paths of all leaves, in the user's words for those of the state."""
        if not self.variables:
            return paths
        found = [re.match(r"<state>\[(\d+)\]", path) for path in paths]
        return [self.variables[int(m[1])].path if m else path for m, path in zip(found, paths)]

    def write_back(self, call: Call, captured: Captured) -> None:
        """Store the new values of the state variables after a call."""
        from mlirml.frontend.captured import STATE
        from mlirml.frontend.state.effects import write_back

        write_back(self.variables, call.kwargs[STATE], captured.unset)
