"""State reachable from a function: it determines the guards of its program, before and after the trace.

The walk goes from a function to the names in its code: globals, closure variables, attributes; from an object to the
attributes that some reached code names, methods among them (rapid type analysis, Bacon and Sweeney, OOPSLA 1996, with
names for call sites); from a container to all of its items. Each binding on the way becomes a guard.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
import weakref
from collections import deque
from typing import Any

import numpy as np

from mlirml.frontend.captured import Guard, function_parts
from mlirml.frontend.user_objects import (  # fmt: skip
    is_layer_class,
    is_library,
    is_library_class,
    is_package,
    is_random,
    slots_of,
    unreplaced,
)

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), np.dtype, type(...), range, slice)
_LOAD_GLOBAL, _LOAD_NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]
_SHIFT = 1 if sys.version_info >= (3, 11) else 0  # the last bit of LOAD_GLOBAL says whether a call follows

# Code with one of these names may read any attribute.
_REFLECTION = frozenset(
    [
        "getattr",
        "hasattr",
        "setattr",
        "vars",
        "dir",
        "eval",
        "exec",
        "__dict__",
        "__getattribute__",
        "attrgetter",
        "methodcaller",
        "asdict",
        "astuple",
        "fields",
        "replace",
        "copy",
        "deepcopy",
    ]
)
# Special methods that Python calls implicitly, except those that a trace does not call.
_UNCALLED = frozenset(
    ["__init__", "__new__", "__del__", "__repr__", "__str__", "__reduce__", "__getstate__", "__setstate__"]
)

_NAMES: weakref.WeakKeyDictionary[types.CodeType, tuple[frozenset[str], frozenset[str]]] = weakref.WeakKeyDictionary()


def names_of(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names in code and in the functions defined in it: all of them, and those of globals."""
    found = _NAMES.get(code)
    if found is None:
        every, globals_ = set(code.co_names), set()
        extended = 0
        for opcode, argument in zip(code.co_code[::2], code.co_code[1::2]):
            argument |= extended
            extended = argument << 8 if opcode == dis.EXTENDED_ARG else 0
            if opcode in (_LOAD_GLOBAL, _LOAD_NAME):
                globals_.add(code.co_names[argument >> _SHIFT if opcode == _LOAD_GLOBAL else argument])
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                inner = names_of(const)
                every |= inner[0]
                globals_ |= inner[1]
            elif isinstance(const, str) and const.isidentifier():
                every.add(const)  # names in `getattr(x, "name")`, and the functions that loops are rewritten to
        found = _NAMES[code] = frozenset(every), frozenset(globals_)
    return found


class _Attributes:
    """An object with attributes, or a module: the reached attributes are those whose names are in reached code."""

    def __init__(self, owner: Any, held: dict[str, Any] | None, live: bool) -> None:
        self.owner, self.held, self.live = owner, held, live
        self.before = {} if held is None else dict(held)
        self.shared = isinstance(owner, types.ModuleType)
        self.seen: set[str] = set()


class Reached:
    """The objects that a trace has reached, and the guards for them by holder and name."""

    def __init__(self, found_guards: dict[Any, Guard]) -> None:
        self.guards = found_guards
        self.names: set[str] = set()
        self.objects: list[_Attributes] = []
        self.random: list[Any] = []
        self.arrays: list[np.ndarray] = []
        self.opaque = False  # set if some code reads globals unnoticed
        self.clocks = False  # set if some function may read a clock or the like
        self._made: dict[int, Any] = {}  # objects of the program, held so that their addresses are not reused
        self._queue: deque[tuple[Any, bool]] = deque()
        self._seen: dict[tuple[int, bool], Any] = {}  # holds all seen objects, so that their addresses are not reused
        self._classes: dict[type, tuple[type, ...]] = {}
        self._checked = 0  # the number of names that were looked up in the first `_examined` objects
        self._examined = 0

    def add(self, value: Any, live: bool = True) -> None:
        """Continue the walk at a value; `live` if reads of globals are recorded as they happen."""
        self._queue.append((value, live))
        while self._queue or self._checked < len(self.names) or self._examined < len(self.objects):
            while self._queue:
                self._visit(*self._queue.popleft())
            # New names are looked up in all objects, names that are not new in new objects only.
            start = self._examined if self._checked == len(self.names) else 0
            self._checked, self._examined = len(self.names), len(self.objects)
            for one in self.objects[start:]:
                self._attributes(one)

    def made(self, value: Any) -> Any:
        """A new object of the program, whose attributes are no state."""
        self._made[id(value)] = value
        return value

    def has_seen(self, value: Any) -> bool:
        """True if an object is reached, so that it existed before the call."""
        return any(self._seen.get((id(value), live)) is value for live in (False, True))

    def guard(self, holder: Any, name: Any, value: Any) -> None:
        """Record the value of a binding or container as a guard, at the first time only."""
        self.guards.setdefault((id(holder), name if type(name) in (str, int) else ""), (holder, name, value))

    def _visit(self, value: Any, live: bool) -> None:
        class_ = type(value)
        if class_ in _CONSTANTS or class_ is types.MemberDescriptorType or (id(value), live) in self._seen:
            return
        if id(value) in self._made:
            self._class(class_)
            return
        self._seen[id(value), live] = value
        if isinstance(value, types.FunctionType):
            self._function(value, live)
        elif isinstance(value, types.MethodType):
            self._more((value.__func__, value.__self__), live)
        elif isinstance(value, functools.partial):
            self._more((value.func, *value.args, *value.keywords.values()), live)
        elif isinstance(value, types.ModuleType):
            self._module(value, live)
        elif isinstance(value, type):
            self._class(value)
            self._more([vars(c).get("__init__") for c in self._classes.get(value, ())], False)
        elif isinstance(value, types.BuiltinFunctionType):
            self.clocks |= is_clock(value)
            self._more((value.__self__,))
        elif isinstance(value, (staticmethod, classmethod)):
            self._more((value.__func__,), False)
        elif isinstance(value, property):
            self._more((value.fget, value.fset), False)
        elif isinstance(value, np.ndarray):
            self.arrays.append(value)
        elif not self._container(value):
            self._object(value)

    def _more(self, values: Any, live: bool = False) -> None:
        self._queue.extend((value, live) for value in values if type(value) not in _CONSTANTS)

    def _function(self, function: types.FunctionType, live: bool) -> None:
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.clocks |= _has_clock(value)
            if not isinstance(value, types.ModuleType):
                self.guard(cell, None, value)
            self._more((value,), live)
        self._more((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()), live)
        self._more(vars(function).values() if "__wrapped__" in vars(function) else (), live)
        if is_package(function.__globals__.get("__name__")):
            return
        self.guard(function, None, function_parts(function))
        if function.__kwdefaults__:
            self._container(function.__kwdefaults__)
        every, globals_ = names_of(function.__code__)
        self.names |= every
        self.opaque |= not live
        self.clocks |= not every.isdisjoint(_WITH_CLOCKS)  # which the function may import itself
        scope = getattr(function.__globals__, "real", function.__globals__)
        for name in globals_ & scope.keys():
            value = scope[name]
            self.clocks |= _has_clock(value)
            if not live and not isinstance(value, types.ModuleType):
                self.guard(scope, name, value)
            self._more((value,), live)

    def _module(self, module: types.ModuleType, live: bool) -> None:
        if not is_package(module.__name__):
            self.objects.append(_Attributes(module, vars(module), live))

    def _container(self, value: Any) -> bool:
        if isinstance(value, dict):
            self.guard(value, None, tuple(x for item in value.items() for x in item))
            self._more(value.values())
        elif isinstance(value, (list, set, deque)):
            self.guard(value, None, tuple(value))
            self._more(value)
        elif isinstance(value, (tuple, frozenset)):
            self._more(value)
        else:
            return False
        return type(value).__module__ in ("builtins", "collections")

    def _object(self, value: Any) -> None:
        class_ = type(value)
        if is_random(value) or (hasattr(class_, "__next__") and is_library(class_.__module__)):
            self.random.append(value)
            return
        if is_library_class(class_) and class_ is not types.SimpleNamespace:
            inner = getattr(value, "__dict__", None)
            if class_.__module__.partition(".")[0] == "mlirml" and isinstance(inner, dict):  # `Compiled`, `custom_vjp`
                self._more([inner.get(n) for n in ("fn", "rules", "rule", "_function") if n in inner], True)
            self._more((getattr(value, "__wrapped__", None),))  # `lru_cache`
            return
        if is_layer_class(class_):  # whose code is not looked through for the names of attributes
            self.names |= vars(value).keys()
        self._class(class_)
        held = getattr(value, "__dict__", None)
        if type(held) is dict:
            self.guard(held, None, len(held))
        self.objects.append(_Attributes(value, held if type(held) is dict else None, False))

    def _class(self, class_: type) -> None:
        if class_ in self._classes or is_package(class_.__module__):
            return
        self._classes[class_] = classes = tuple(c for c in class_.__mro__ if not is_package(c.__module__))
        for one in classes:
            self.guard(one, None, len(vars(one)))  # a new attribute may hide that of a base
            special = [unreplaced(f) for n, f in vars(one).items() if n[:2] == "__" and n not in _UNCALLED]
            self._more(f for f in special if isinstance(f, types.FunctionType))
        self.objects.append(_Attributes(class_, None, False))

    def _attributes(self, one: _Attributes) -> None:
        """Record guards for the attributes that code names."""
        wanted = self.names
        every = not wanted.isdisjoint(_REFLECTION) or hasattr(type(one.owner), "__getattr__")
        every = every and not isinstance(one.owner, types.ModuleType)
        for name in list(one.before) if every else [n for n in one.before if n in wanted]:
            if name not in one.seen:
                one.seen.add(name)
                if one.held is not None and not one.live and not isinstance(one.before[name], types.ModuleType):
                    self.guard(one.held, name, one.before[name])
                self._more((one.before[name],), one.live)
        classes = self._classes.get(one.owner, ()) if isinstance(one.owner, type) else ()
        for class_ in classes:
            for name in [n for n in vars(class_) if n not in one.seen and (n in wanted or (every and n[:2] != "__"))]:
                one.seen.add(name)
                value = unreplaced(vars(class_)[name])
                if not isinstance(value, types.MemberDescriptorType):
                    self.guard(class_, name, value)
                self._more((value,))
        if not isinstance(one.owner, (type, types.ModuleType)):
            for name, member in slots_of(type(one.owner)):
                if name not in one.seen and (every or name in wanted):
                    one.seen.add(name)
                    value = getattr(one.owner, name, member)
                    self.guards[id(one.owner), name] = one.owner, member, value
                    self._more((value,))


def is_clock(function: Any) -> bool:
    """True for a C function whose result differs between calls."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if getattr(owner, "__module__", None) == "datetime" and isinstance(owner, type):
        return name in ("now", "utcnow", "today")
    if getattr(function, "__module__", None) == "time":
        return name in _CLOCKS
    return name in ("urandom", "getrandom") or (owner is not None and type(owner).__module__ in ("random", "_random"))


_CLOCKS = frozenset(
    [
        "time",
        "time_ns",
        "perf_counter",
        "perf_counter_ns",
        "monotonic",
        "monotonic_ns",
        "process_time",
        "process_time_ns",
        "thread_time",
        "thread_time_ns",
        "localtime",
        "gmtime",
        "ctime",
        "asctime",
        "strftime",
        "clock_gettime",
    ]
)


_WITH_CLOCKS = frozenset(["time", "datetime", "random", "secrets", "uuid", "os", "posix"])
"""The modules with functions whose results differ between calls."""


def _has_clock(value: Any) -> bool:
    """True if such a function may be reachable from a global."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return home in _WITH_CLOCKS
