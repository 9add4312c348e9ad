"""How many rows of an array Python may iterate over while array code is traced, before a loop is better."""

from __future__ import annotations

from contextvars import ContextVar

MOST_ROWS: ContextVar[int | None] = ContextVar("MOST_ROWS", default=None)
"""None for any number."""


class LongIteration(BaseException):
    """An array of more rows is iterated over. No error: user code must not catch it."""
