"""The choice of a front end for a function: traced as it is, or with its loops and branches taken from its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.iteration_limits import LongIteration
from mlirml.frontend.source.choose import is_of_calls, says_more, short_loops, turns_on_data, wants_loops
from mlirml.frontend.source.tail_calls import with_tail_loops

if TYPE_CHECKING:
    from mlirml.frontend.captured import Captured


def with_frontend(
    function: Callable[..., Any], frontend: str, has_lists: bool, captured: Callable[[bool], Captured]
) -> Captured:
    """The captured function: `captured` is called with True where loops are to be taken from the source.

    A function whose iterations are many, or that turns on data, is captured once more with its loops. Where that is
    refused as well, the error is the one that says more.
    """
    loops = wants_loops(function, frontend) or has_lists

    def captured_so(loops: bool) -> Captured:
        return with_tail_loops(partial(captured, loops))

    try:
        with short_loops(function, "loops" if loops else frontend):
            return captured_so(loops)
    except LongIteration:
        try:
            return captured_so(True)
        except CaptureError as error:
            refused = error
        try:
            found = captured_so(False)
        except CaptureError as error:
            raise refused if turns_on_data(function, frontend, error) else error from None
        why = refused.location, f"cannot stay a loop: {refused.message}"
        return replace(found, unrolled=(why, *found.unrolled))
    except CaptureError as error:
        if loops or not turns_on_data(function, frontend, error):
            raise
        try:
            return captured_so(True)
        except CaptureError as other:
            error.sizes = other.sizes = error.sizes | other.sizes
            if is_of_calls(error) and isinstance(other, UnsupportedSyntaxError):
                error.notes += (f"nor can its calls be replaced: {other.message}",)
            if says_more(error, other):
                raise error from None
            raise
