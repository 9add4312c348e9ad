"""How long Python may loop while array code is traced, before a loop of the program is better."""

from __future__ import annotations

from contextvars import ContextVar

MOST_ROWS: ContextVar[int | None] = ContextVar("MOST_ROWS", default=None)
"""How many rows of an array it may iterate over; None for any number, and for any number of operations."""
MOST_OPERATIONS = 2000
"""How many operations it may write, where the function has loops."""


class LongIteration(BaseException):
    """Python loops for longer. No error: user code must not catch it."""
