"""Generator functions in functions whose loops are compiled: they call a function for each item."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, NoReturn

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.frames import at_user_line


class Generator:
    """A generator function. `version` makes the function that takes a consumer, which may end it or may not."""

    def __init__(self, name: str, version: Callable[[bool], types.FunctionType]) -> None:
        self.__name__ = name
        self.version = functools.cache(version)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        with at_user_line():
            raise UnsupportedSyntaxError(
                f"the generator `{self.__name__}` is called, but not consumed where it is called by its name",
                help="write `for v in g(x)`, with `enumerate` or `zip` at most, or `list(g(x))`, `sum(g(x))`",
            )


def generator_of(callee: Any) -> tuple[Generator, tuple[Any, ...]] | None:
    """The generator function that a callee is, or is a method for, and the object of that; None for others."""
    if isinstance(callee, types.MethodType) and isinstance(callee.__func__, Generator):
        return callee.__func__, (callee.__self__,)
    return (callee, ()) if isinstance(callee, Generator) else None
