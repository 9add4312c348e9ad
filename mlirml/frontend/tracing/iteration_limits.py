"""How long Python may loop while array code is traced, before a loop of the program is better."""

from __future__ import annotations

from contextvars import ContextVar

LIMITED: ContextVar[bool] = ContextVar("LIMITED", default=False)
"""True if what is traced has loops, and a source from which these may be captured as loops."""
MOST_OPERATIONS = 2000
"""How many operations it may write then."""
MOST_COPIES = 64
"""How often it may pass one place in the body of a loop then, and how many rows of an array it may iterate over."""

MOST_STORES = 4
"""How often it may store into parts of arrays at one place in the body of a loop then: compile time grows faster than
such stores do, which are fused with each other, and a loop of them is as fast."""


class LongIteration(BaseException):
    """Python loops for longer. No error: user code must not catch it."""
