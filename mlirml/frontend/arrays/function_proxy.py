"""Proxies that replace functions of NumPy's in traced functions."""

from __future__ import annotations

from typing import Any


class FunctionProxy:
    """A proxy for a function, to which it is equal."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __eq__(self, other: object) -> bool:
        return bool(self._function == original_function(other))

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)


def original_function(value: Any) -> Any:
    """The function of a proxy; anything else unchanged."""
    return value._function if isinstance(value, FunctionProxy) else value
