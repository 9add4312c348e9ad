"""Iterations of loops: one as a function without parameters, and those over lists, which keep their lengths."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.loops.for_loop import ForLoop
from mlirml.frontend.loops.variables import UNBOUND, Variables


class Iteration:
    """An iteration of a loop as a function without parameters, with the variables of the loop's body.

    The variables `unassigned` have no value at its start.
    """

    def __init__(self, body: types.FunctionType, item: Any, unassigned: Sequence[str] = ()) -> None:
        self.__code__, self.__closure__ = body.__code__, body.__closure__
        self._body, self._item, self._unassigned = body, item, unassigned

    def __call__(self) -> None:
        variables = Variables(self._body)
        for name in self._unassigned:
            variables.set(name, UNBOUND)
        self._body(self._item)


def run_over(loop: ForLoop, lists: Sequence[Any]) -> None:
    """Trace a loop over lists, which may not change their lengths in it."""
    lengths = [one.counts() for one in lists]
    loop.run()
    if lengths != [one.counts() for one in lists]:
        raise UnsupportedSyntaxError(
            "a list changes its length while a loop iterates over it",
            help="iterate over a copy, `for x in list(items)`",
        )
