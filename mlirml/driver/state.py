"""The state of a compiled function: what it changes outside of its arguments, an input and output of its programs."""

from __future__ import annotations

import functools
import re
import types
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mlirml.errors import CaptureError, InternalError
from mlirml.frontend.user_objects import has_attributes, slots_of

if TYPE_CHECKING:
    from mlirml.driver.calls import Call
    from mlirml.frontend.captured import Captured
    from mlirml.frontend.state.effects import StateVariable

_Result = TypeVar("_Result")
_ATTEMPTS = 100
_MOST_VISITED = 10_000  # objects, in a search for what belongs to the arguments of a call
_NO_OBJECTS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, np.ndarray)
_VALUES = (str, bytes, int, float, complex, np.generic, Enum, BaseException)
_CONTAINERS = (tuple, list, set, frozenset, deque)


class State:
    """The state variables that tracing has found to change, and those whose values tracing needs.

    Variables of objects among the arguments belong to the calls with these objects: `group`. Others are `shared`.
    """

    def __init__(self) -> None:
        self.shared: list[StateVariable] = []
        self.python: frozenset[Any] = frozenset()
        self.is_used = False
        self.version = 0  # of `shared`
        self._groups: dict[tuple[int, ...], Group] = {}

    def group(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Group:
        """The state of the calls with the same objects among the arguments."""
        objects = [x for x in (*args, *kwargs.values()) if is_object(x)]
        key = tuple(map(id, objects))
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = Group(self, objects)
        return found


class Group:
    """The state of the calls of a function with the same `objects` among the arguments."""

    def __init__(self, state: State, objects: list[Any]) -> None:
        self._state, self._objects = state, objects
        self._own: list[StateVariable] = []
        self._numbers: list[StateVariable] = []
        self._variables: list[StateVariable] = []
        self._version = 0

    @property
    def variables(self) -> list[StateVariable]:
        """The state variables of its calls; another list after each change."""
        if self._version != self._state.version:
            self._version = self._state.version
            self._variables = [*self._state.shared, *self._own]
        return self._variables

    @property
    def python(self) -> frozenset[Any]:
        """The names of the variables whose values tracing needs."""
        return self._state.python

    def settled(self, run: Callable[[], _Result]) -> _Result:
        """The result of `run`, which traces the function, repeated until tracing finds no further state variable."""
        from mlirml.frontend.state.effects import StateChanged

        failed: CaptureError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return run()
            except StateChanged as found:
                self._replace({variable.name for variable in found.variables}, found.variables)
                self._numbers += found.numbers
            except CaptureError as error:
                if failed is not None or not self._numbers:
                    raise failed or error from None
                failed = error  # maybe over a number that is not known any more
                self._state.python |= {variable.name for variable in self._numbers}
                self._replace(self._state.python, ())
                self._numbers = []
        raise InternalError("the state of a function does not settle")

    def _replace(self, names: Iterable[Any], new: Sequence[StateVariable]) -> None:
        """Have new variables instead of those with some names."""
        state, names, holders = self._state, frozenset(names), holders_of(self._objects)
        shared = [variable for variable in state.shared if variable.name not in names]
        self._own = [variable for variable in self._own if variable.name not in names]
        for variable in new:
            (self._own if id(variable.holder) in holders else shared).append(variable)
        self._version = -1
        if shared != state.shared:
            state.shared, state.version = shared, state.version + 1
        state.is_used = True

    def items(self) -> list[Any]:
        """The values for a call."""
        from mlirml.frontend.state.effects import items_of

        return items_of(self.variables)

    def named(self, paths: list[str]) -> list[str]:
        """The paths of all leaves, in the user's words for those of the state."""
        if not self.variables:
            return paths
        found = [re.match(r"<state>\[(\d+)\]", path) for path in paths]
        return [self.variables[int(m[1])].path if m else path for m, path in zip(found, paths)]

    def write_back(self, call: Call, captured: Captured) -> None:
        """Store the new values of the state variables after a call."""
        from mlirml.frontend.captured import STATE
        from mlirml.frontend.state.effects import write_back

        write_back(self.variables, call.kwargs[STATE], captured.unset)


def is_object(value: Any) -> bool:
    """True for an object of a user's class, no value and no container, whose attributes may be state."""
    class_: Any = type(value)
    return _has_state(class_)


@functools.lru_cache(maxsize=1024)
def _has_state(class_: Any) -> bool:
    is_value = is_dataclass(class_) or hasattr(class_, "__array__") or issubclass(class_, _VALUES)
    return not is_value and has_attributes(class_)


def holders_of(objects: Iterable[Any]) -> frozenset[int]:
    """The identities of all that holds state variables of these objects and of what they refer to."""
    queue, seen = deque(objects), dict[int, Any]()
    while queue and len(seen) < _MOST_VISITED:
        one = queue.popleft()
        if id(one) in seen or isinstance(one, (*_NO_OBJECTS, *_VALUES)):
            continue
        seen[id(one)] = one
        if isinstance(one, dict):
            queue += one.values()
        elif isinstance(one, _CONTAINERS):
            queue += one
        else:
            queue += [vars(one)] if hasattr(one, "__dict__") else []
            queue += (getattr(one, name) for name, _ in slots_of(type(one)) if hasattr(one, name))
    return frozenset(seen)
