"""The progress of a search as one line on the standard error, where that is a terminal."""

from __future__ import annotations

import sys
import time

_WIDTH = 24
_EACH = 0.1


class Progress:
    """A bar that is drawn at most ten times a second, and removed at the end."""

    def __init__(self, title: str, seconds: float) -> None:
        self._title, self._seconds = title, seconds
        self._start, self._drawn, self._is_shown = time.monotonic(), 0.0, sys.stderr.isatty()

    def show(self, tried: int, gain: float) -> None:
        """Draw the share of the time that has passed, the candidates that were tried, and the best speed."""
        now = time.monotonic()
        if not self._is_shown or now - self._drawn < _EACH:
            return
        self._drawn = now
        share = min(1.0, (now - self._start) / max(self._seconds, 1e-9))
        filled = round(_WIDTH * share)
        bar = "#" * filled + "." * (_WIDTH - filled)
        left = max(0.0, self._seconds - (now - self._start))
        text = f"tuning {self._title} [{bar}] {tried} tried, best {gain:.2f}x, {left:.0f} s left"
        print(f"\r{text[:118]:<118}", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Remove the bar."""
        if self._is_shown and self._drawn:
            print("\r" + " " * 118 + "\r", end="", file=sys.stderr, flush=True)
