"""The functions of Python that a call runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def frames_of(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a call, and the functions of Python that it ran."""
    frames: list[str] = []
    sys.setprofile(lambda frame, event, _: frames.append(frame.f_code.co_name) if event == "call" else None)
    try:
        return call(), frames
    finally:
        sys.setprofile(None)
