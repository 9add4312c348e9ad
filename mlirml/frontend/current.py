"""The trace that is running in this thread: what calls of public functions ask first, so that it imports nothing."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

CURRENT: ContextVar[Trace | None] = ContextVar("mlirml_trace", default=None)


def current_trace() -> Trace | None:
    """The trace that is running in this thread, if any."""
    return CURRENT.get()
