"""The exception of what looks for a form of the IR and does not find it."""

from __future__ import annotations


class NoMatch(Exception):
    """A pattern or matcher does not apply here; the text is the reason, shown as a remark."""
