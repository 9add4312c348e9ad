"""The names that a package offers, which are those of its modules."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def is_public(name: str, value: Any) -> bool:
    """True for a name that `from module import *` has brought into a package."""
    return not name.startswith("_") and name != "annotations" and not isinstance(value, ModuleType)
