"""The parameters of a function, and the names of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def parameters_of(fn: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function; none for a builtin that does not tell."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return []


def positional_names(fn: Callable[..., Any]) -> list[str]:
    """The parameters that may be passed by position."""
    return [p.name for p in parameters_of(fn) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def takes_out(fn: Callable[..., Any]) -> bool:
    return any(p.name == "out" or p.kind is p.VAR_KEYWORD for p in parameters_of(fn))


def argument_names(fn: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """The names of the positional arguments; those of `*args` are `args[0]` and so on."""
    positional = positional_names(fn)
    rest = next((p.name for p in parameters_of(fn) if p.kind is p.VAR_POSITIONAL), "args")
    return [positional[i] if i < len(positional) else f"{rest}[{i - len(positional)}]" for i in range(len(args))]


def readable(path: str, names: list[str]) -> str:
    """`[0][2]['w']`, a path into (args, kwargs), as the user's `params['w']`."""
    which, _, rest = path[1:].partition("]")
    inner, _, tail = rest[1:].partition("]")
    if which == "0":
        return names[int(inner)] + tail
    return inner.strip("'\"") + tail
