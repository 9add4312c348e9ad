"""Limits on Python loops in traced array code, beyond which a loop of the program is better."""

from __future__ import annotations

from contextvars import ContextVar

from mlirml.errors import NOTED

LIMITED: ContextVar[bool] = ContextVar("LIMITED", default=False)
"""True while tracing a function whose loops could also be captured as loops."""
MOST_OPERATIONS = 2000
"""The number of operations it may emit then."""
MOST_COPIES = 64
"""The number of times that the same position in a loop body may be traced then, and of rows of an array iterated
over.
"""

MOST_STORES = 4
"""The number of stores into slices of arrays at one position in a loop body then: compile time grows faster than the
number of such stores, which are fused with each other, and a loop of them is as fast.
"""


class LongIteration(BaseException):
    """Raised when a Python loop exceeds the limits. No error: user code must not catch it."""

    def __init__(self) -> None:
        note = NOTED.get()
        if note is not None:
            note(self)
