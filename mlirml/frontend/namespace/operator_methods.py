"""Operators and properties of the user's classes: while a trace runs, their functions are those of the trace.

Python calls `__add__` and the functions of a property itself, and not by a name that the trace could replace. The
attributes of a class that a trace has reached are functions that ask for the current trace, until it ends. Other
threads, which have no trace, call the functions themselves.
"""

from __future__ import annotations

import functools
import threading
import types
from abc import ABCMeta
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.frontend.current import CURRENT
from mlirml.frontend.user_objects import ORIGINAL, has_attributes, is_package

_UNARY = ("neg", "pos", "abs", "invert")
_BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "divmod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
_NAMES = frozenset(
    f"__{name}__"
    for name in (
        *_UNARY, *_BINARY, *(prefix + name for prefix in "ri" for name in _BINARY), "lt", "le", "gt", "ge", "eq", "ne",
        "getitem", "setitem", "enter", "exit",
    )
)  # fmt: skip
"""The methods that are replaced: those whose results Python does not convert."""
_PLAIN = (type, ABCMeta)


@dataclass
class _Replaced:
    """The attributes of a class before and now, and the number of traces that have reached it."""

    before: dict[str, Any]
    now: dict[str, Any]
    traces: int = 1


_CLASSES: dict[type, _Replaced] = {}
_LOCK = threading.Lock()


class OperatorMethods:
    """The classes that a trace has reached. A context manager: at its end they are as before."""

    def __init__(self) -> None:
        self._classes: dict[type, None] = {}

    def __enter__(self) -> OperatorMethods:
        return self

    def __exit__(self, *error: object) -> None:
        with _LOCK:
            for class_ in self._classes:
                _leave(class_)
            self._classes.clear()

    def add(self, value: Any) -> None:
        """Replace the methods of a class, or of that of an object, and of its base classes."""
        for class_ in (value if isinstance(value, type) else type(value)).__mro__[:-1]:
            if class_ in self._classes or type(class_) not in _PLAIN or not has_attributes(class_):
                continue
            if not is_package(class_.__module__):
                self._classes[class_] = None
                with _LOCK:
                    _enter(class_)


def _enter(class_: type) -> None:
    known = _CLASSES.get(class_)
    if known is not None:
        known.traces += 1
        return
    before, now = {}, {}
    for name, attribute in list(vars(class_).items()):
        new = _replacement(name, attribute)
        if new is not None:
            before[name], now[name] = attribute, new
            type.__setattr__(class_, name, new)
    _CLASSES[class_] = _Replaced(before, now)


def _leave(class_: type) -> None:
    known = _CLASSES[class_]
    known.traces -= 1
    if known.traces:
        return
    del _CLASSES[class_]
    for name, attribute in known.before.items():
        if vars(class_).get(name) is known.now[name]:  # and not another one that was set since
            type.__setattr__(class_, name, attribute)


def _replacement(name: str, attribute: Any) -> Any:
    """The attribute that asks for the current trace; None for one that stays."""
    if type(attribute) is property:
        functions: tuple[Any, Any] = attribute.fget, attribute.fset
        getter, setter = (_of_trace(x) if _is_of_user(x) else x for x in functions)
        new = _Property(getter, setter, attribute.fdel, attribute.__doc__)
        setattr(new, ORIGINAL, attribute)
        return new
    return _of_trace(attribute) if name in _NAMES and _is_of_user(attribute) else None


class _Property(property):
    """A property that has further attributes."""


def _is_of_user(function: Any) -> bool:
    """True for a function that is written in a class, and not made by a decorator such as `dataclass`."""
    return isinstance(function, types.FunctionType) and function.__code__.co_filename != "<string>"


def _of_trace(function: types.FunctionType) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = CURRENT.get()
        if trace is None:
            return function(*args, **kwargs)
        return trace.handlers.retarget(function, trace, trace._loops_memo)(*args, **kwargs)

    setattr(call, ORIGINAL, function)
    return call
