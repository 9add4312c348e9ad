"""The parameters of a function, and the names of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError


def signature_of(fn: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; None for a builtin that does not tell."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None


def parameters_of(fn: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function; none for a builtin that does not tell."""
    signature = signature_of(fn)
    return [] if signature is None else list(signature.parameters.values())


def positional_names(fn: Callable[..., Any]) -> list[str]:
    """The parameters that may be passed by position."""
    return _positional(parameters_of(fn))


def _positional(parameters: Iterable[inspect.Parameter]) -> list[str]:
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def takes_out(fn: Callable[..., Any]) -> bool:
    return any(p.name == "out" or p.kind is p.VAR_KEYWORD for p in parameters_of(fn))


def argument_names(signature: inspect.Signature | None, args: tuple[Any, ...]) -> list[str]:
    """The names of the positional arguments; those of `*args` are `args[0]` and so on."""
    parameters = () if signature is None else signature.parameters.values()
    positional = _positional(parameters)
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [positional[i] if i < len(positional) else f"{rest}[{i - len(positional)}]" for i in range(len(args))]


def readable(path: str, names: list[str]) -> str:
    """`[0][2]['w']`, a path into (args, kwargs), as the user's `params['w']`."""
    which, _, rest = path[1:].partition("]")
    inner, _, tail = rest[1:].partition("]")
    if which == "0":
        return names[int(inner)] + tail
    return inner.strip("'\"") + tail


def listed(option: str, given: Any, class_: type) -> tuple[Any, ...]:
    """The values of an option that takes one of a class, or several; raises `ArgumentError` for anything else."""
    accepted = (int, np.integer) if class_ is int else class_
    one = isinstance(given, accepted)
    try:
        values = (given,) if one else tuple(given)
    except TypeError:
        values = (given,)
    for value in values:
        if not isinstance(value, accepted):
            names = {int: "integers", str: "strings"}
            raise ArgumentError(f"compile: {option}: expected {names[class_]}, got {value!r}")
    return values


def positions_of_names(
    fn: Callable[..., Any], name: str, given: str | Sequence[str]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions of the static arguments of these names, and the names of those that have no position.

    Raises `ArgumentError` where the function, which is called `name`, has no such argument.
    """
    from mlirml.frontend.tracing.trace import definition

    names = listed("static_argnames", given, str)
    parameters, positional = parameters_of(fn), positional_names(fn)
    known, takes_names = [p.name for p in parameters], any(p.kind is p.VAR_KEYWORD for p in parameters)
    unknown = [each for each in names if known and each not in known and not takes_names]
    if unknown:
        raise ArgumentError(
            f"static_argnames: `{name}` has no argument {unknown[0]!r}",
            location=definition(fn),
            help=f"it has {', '.join(f'`{each}`' for each in known)}",
        )
    positions = tuple(positional.index(each) for each in names if each in positional)
    return positions, tuple(each for each in names if each not in positional)


def positions_of(
    fn: Callable[..., Any], name: str, option: str, given: int | Sequence[int]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions, none of them negative, and the names by which the same arguments may be passed.

    Raises `ArgumentError` where the function, which is called `name`, has no such positional argument.
    """
    from mlirml.frontend.tracing.trace import definition

    parameters, positional = parameters_of(fn), positional_names(fn)
    endless = not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    positions = []
    for number in map(int, listed(option, given, int)):
        if not -len(positional) <= number < len(positional) and not (endless and number >= 0):
            raise ArgumentError(
                f"{option}: `{name}` has no positional argument {number}",
                location=definition(fn),
                help="positions count from 0",
            )
        positions.append(number + len(positional) if number < 0 else number)
    return tuple(positions), tuple(positional[i] for i in positions if i < len(positional))
