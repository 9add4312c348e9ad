"""The effects of a function on the state that it reaches, which a program must have at each call.

    self.total += x[0]      the attribute is an input and an output of the program, which is written back after a call
    self.mode = "fast"      done in Python, while tracing: a function that does so is traced at each call
    self.log.append(x)      an error: a value of the program in a container that grows
    rng.normal()            an error: the number would be drawn once

All other effects of tracing are undone, and all effects if tracing fails.
"""

from __future__ import annotations

import functools
import pickle
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass, replace
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, LeakedTracerError, SourceLocation, UnsupportedSyntaxError
from mlirml.frontend.advice import DRAW
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.captured import ANY, Guard, function_parts, holds
from mlirml.frontend.frames import code_location, is_internal, user_location
from mlirml.frontend.positions import position
from mlirml.frontend.state.concrete_arrays import original
from mlirml.frontend.state.reachable import Reached, is_clock

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "nothing"})()
NEVER: Guard = ([], None, (None,))  # never holds: the function must be traced at each call
Item = dict[tuple[str, TreeDef], list[Any]]
_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, eq=False)
class StateVariable:
    """A variable, attribute or item that outlives a call; `path` is its name in errors.

    `tree` is the structure of the function's new value, if the current value is nothing that a program takes.
    """

    holder: Any
    key: Any
    path: str
    tree: TreeDef | None = None

    @property
    def name(self) -> tuple[int, Any]:
        """A key that identifies the state variable."""
        return id(self.holder), self.key

    def get(self) -> Any:
        """The current value, or `MISSING`."""
        holder, key = self.holder, self.key
        if isinstance(holder, types.CellType):
            with suppress(ValueError):
                return holder.cell_contents
            return MISSING
        if isinstance(key, types.MemberDescriptorType):
            return getattr(holder, key.__name__, MISSING)
        if isinstance(holder, type):
            return vars(holder).get(key, MISSING)
        if isinstance(holder, dict):
            return holder.get(key, MISSING)
        return holder[key] if key < len(holder) else MISSING

    for_call = get
    """The value for a call."""

    def after_call(self, value: Any) -> None:
        """Assign the value after a call."""
        if value is not self.get():
            self.set(value)

    def after_failure(self) -> None:
        """Forget what `for_call` has made for a call that failed."""

    def set(self, value: Any) -> None:
        """Assign a value; `MISSING` deletes it."""
        holder, key = self.holder, self.key
        if value is MISSING and self.get() is MISSING:
            return
        if isinstance(holder, types.CellType):
            if value is MISSING:
                del holder.cell_contents
            else:
                holder.cell_contents = value
        elif isinstance(key, types.MemberDescriptorType):
            object.__delattr__(holder, key.__name__) if value is MISSING else key.__set__(holder, value)
        elif isinstance(holder, type):
            delattr(holder, key) if value is MISSING else setattr(holder, key, value)
        elif value is MISSING:
            del holder[key]
        else:
            holder[key] = value


@dataclass(frozen=True)
class Change:
    """A change made by tracing: of a state variable, or of all items of a container."""

    variable: StateVariable
    before: Any
    after: Any
    whole: bool = False

    def undo(self) -> None:
        """Restore the value before the change."""
        self._put(self.before)

    def redo(self) -> None:
        """Restore the value after the change."""
        self._put(self.after)

    def _put(self, value: Any) -> None:
        holder = self.variable.holder
        if not self.whole:
            self.variable.set(value)
        elif isinstance(holder, types.FunctionType):
            holder.__code__, holder.__defaults__, holder.__kwdefaults__ = value
        elif isinstance(holder, list):
            holder[:] = value
        else:
            holder.clear()
            if isinstance(holder, deque):
                holder.extend(value)
            else:
                holder.update(zip(value[::2], value[1::2]) if isinstance(holder, dict) else value)


class StateChanged(BaseException):
    """The function changes state variables that must become inputs and outputs of its program. No error: users do not
    see it.
    """

    def __init__(self, variables: Sequence[StateVariable], numbers: Sequence[StateVariable]) -> None:
        super().__init__()
        self.variables, self.numbers = variables, numbers


class Effects:
    """Context manager around the run of a traced function, which sets its state `variables` to the values in `items`.

    Each item is a dict with one list of leaves: under "value" and their structure those of the current value; under
    "new" and a structure as many numbers, if the current value is nothing that a program takes. `python` are the state
    variables whose numbers tracing needs.
    """

    def __init__(self, trace: Trace, variables: Sequence[StateVariable], items: Sequence[Item], python: Any) -> None:
        self.trace, self.variables, self.items, self.python = trace, variables, items, python
        self.reached = reached = trace.reached
        self.again: Callable[[], Any] = _nothing
        self.redone: tuple[Change, ...] = ()
        self.unset: set[int] = set()
        self._objects, self._guards = list(reached.objects), list(reached.guards.values())
        self._random = [(one, _state(one)) for one in _sources(reached)]
        self._profile: Any = None
        self._watched: list[tuple[StateVariable, Any, Any]] = []
        self._replaced: list[tuple[StateVariable, Any]] = []

    def __enter__(self) -> None:
        for variable, array in self._arrays():
            watched = self.trace.watched(array)
            variable.set(watched)
            self._watched.append((variable, array, watched))
        self.trace.state_of = self._state_of
        for variable, item in zip(self.variables, self.items):
            ((mode, tree), leaves) = next(iter(item.items()))
            if mode == "value":
                self._replaced.append((variable, original(variable.get())))
                variable.set(tree.unflatten(leaves))
        if self.reached.clocks:
            self._profile = sys.getprofile()
            sys.setprofile(_refuse_clocks)

    def __exit__(self, error_type: object, error: BaseException | None, traceback: object) -> None:
        if self.reached.clocks:
            _restore_profile(self._profile)
        for variable, array, watched in self._watched:
            if variable.get() is watched:
                variable.set(array)
        changes = self.changes()
        try:
            if error is None and not _LOCATING:
                self._take(changes)
        finally:
            for change in reversed(changes):
                change.undo()
            for variable, before in self._replaced:  # maybe of an object of another call, which this one does not reach
                variable.set(before)
        if error is None and not _LOCATING:
            self._check([c for c in changes if c.variable.name not in {p.name for p in self.variables}])
            for change in self.redone:
                change.redo()

    def _take(self, changes: list[Change]) -> None:
        """Make the new state a result."""
        for number, (variable, item) in enumerate(zip(self.variables, self.items)):
            key = mode, tree = next(iter(item))
            change = next((c for c in changes if c.variable.name == variable.name), None)
            if change is None:
                if mode == "new":
                    self.unset.add(number)
                continue
            leaves, after = flatten(change.after)
            if after != tree or not is_plain(change.after):
                raise self._leak(change)
            item[key][:] = leaves

    def _check(self, changes: list[Change]) -> None:
        drawn = [one for one, state in self._random if _state(one) != state]
        if drawn:
            self._refuse_draws()
        numbers, variables = [], []
        for change in changes:
            traced = holds_traced(change.after)
            if traced and (change.whole or not is_plain(change.after)):
                raise self._leak(change)
            variable = replace(change.variable, tree=flatten(change.after)[1])
            if traced:
                variables.append(variable)
            elif not change.whole and _are_numbers(change) and variable.name not in self.python:
                numbers.append(variable)
        if variables or numbers:
            raise StateChanged([*variables, *numbers], numbers)
        self.redone = tuple(changes)

    def _arrays(self) -> Iterator[tuple[StateVariable, np.ndarray]]:
        """The arrays held by variables that can be set to a proxy meanwhile."""
        for holder, name, value in self._guards:
            if name is not None or isinstance(holder, types.CellType):
                found = [(name, value)] if not isinstance(holder, type) else []
            elif not isinstance(value, tuple) or not isinstance(holder, (dict, list)):
                found = []
            elif isinstance(holder, dict):
                found = list(zip(value[::2], value[1::2]))
            else:
                found = list(enumerate(value))
            yield from ((StateVariable(holder, key, ""), x) for key, x in found if type(x) is np.ndarray)

    def _state_of(self, array: np.ndarray) -> StateChanged | None:
        """The state changes that make an array held by objects, lists and dicts an input and output of the program,
        since it is stored into.
        """
        owners = {id(one.held): one for one in self._objects if one.held is not None and not one.shared}
        variables = []
        for variable, other, _ in self._watched:
            holder, key = variable.holder, variable.key
            if other is not array or isinstance(holder, types.CellType):
                continue
            if id(holder) in owners:
                path = f"{type(owners[id(holder)].owner).__name__}.{key}"
            elif isinstance(key, types.MemberDescriptorType):
                path = f"{type(holder).__name__}.{key.__name__}"
            elif isinstance(holder, list) or (isinstance(holder, dict) and "__builtins__" not in holder):
                path = f"item {key!r} of a {type(holder).__name__}"
            else:
                continue
            variables.append(StateVariable(holder, key, path, flatten(array)[1]))
        return StateChanged(variables, []) if variables else None

    def _contents(self) -> Iterator[Guard]:
        """Guards for the elements of arrays that were read, or may be read unnoticed."""
        seen = {id(x) for _, array, watched in self._watched if watched is not array for x in (array, watched)}
        seen |= {i for i, watched in self.trace.watches.items()}
        arrays = [w.record.array for w in self.trace.watches.values() if w.record is not None and w.record.read]
        arrays += [original(x) for x in self.reached.arrays if id(x) not in seen]
        for array in arrays:
            if not array.dtype.hasobject:
                yield array, None, array.copy()

    def changes(self) -> list[Change]:
        """The changes since the start of the context."""
        found: dict[Any, Change] = {}

        def note(holder: Any, key: Any, path: str, before: Any, *, whole: bool = False, after: Any = MISSING) -> None:
            variable = StateVariable(holder, key, path)
            now = after if whole else original(variable.get())
            if now is not before and not _is_ours(now):
                found.setdefault(variable.name, Change(variable, before, now, whole))

        for one in self._objects:
            if one.held is not None:
                owner = one.owner.__name__ if isinstance(one.owner, types.ModuleType) else type(one.owner).__name__
                for key in {**one.before, **one.held}:
                    note(one.held, key, f"{owner}.{key}", one.before.get(key, MISSING))
        for guard in self._guards:
            if not holds(guard):
                self._of_guard(note, *guard)
        return list(found.values())

    def _of_guard(self, note: Callable[..., None], holder: Any, name: Any, value: Any) -> None:
        if isinstance(holder, types.CellType):
            note(holder, None, "a variable of an enclosing function", value)
        elif isinstance(holder, types.FunctionType):
            note(holder, None, f"`{holder.__name__}`", value, whole=True, after=function_parts(holder))
        elif name is not None:
            note(holder, name, getattr(name, "__name__", str(name)), MISSING if value is name else value)
        elif isinstance(holder, dict) and isinstance(value, tuple):
            before = dict(zip(value[::2], value[1::2]))
            if list(before) == list(holder)[: len(before)]:
                for key in holder:
                    note(holder, key, f"item {key!r} of a dict", before.get(key, MISSING))
            else:
                note(holder, None, "a dict", value, whole=True, after=tuple(x for i in holder.items() for x in i))
        elif isinstance(holder, list) and len(holder) == len(value):
            for index, before in enumerate(value):
                note(holder, index, f"item {index} of a list", before)
        elif isinstance(value, tuple):
            note(holder, None, f"a {type(holder).__name__}", value, whole=True, after=tuple(holder))

    def found_guards(self) -> tuple[Guard, ...]:
        """The guards of a program whose state is passed as inputs."""
        inputs = {p.name for p, item in zip(self.variables, self.items) if any(key[0] == "value" for key in item)}
        found = []
        for holder, name, value in self.reached.guards.values():
            value = original(value)
            if (id(holder), name) in inputs or isinstance(value, Traced):
                continue
            if isinstance(holder, types.CellType) and type(value) is tuple:  # compared as one object
                if any(isinstance(x, Traced) for x in value):
                    continue
            elif name is None and type(value) is tuple:
                if isinstance(holder, dict):
                    keys = [(id(holder), key) in inputs for key in value[::2] for _ in range(2)]
                    value = tuple(ANY if hit and i % 2 else x for i, (x, hit) in enumerate(zip(value, keys)))
                else:
                    value = tuple(ANY if (id(holder), i) in inputs else x for i, x in enumerate(value))
                if any(isinstance(x, Traced) for x in value):
                    continue
                value = tuple(map(original, value))
            found.append((holder, name, value))
        found = [*self._by_object(found), *self._contents()]
        return (*found, NEVER) if self.redone else tuple(found)

    def _by_object(self, found_guards: list[Guard]) -> Iterator[Guard]:
        """One guard for all attributes of an object, which takes a third of the time of one for each."""
        objects = {id(o.held): o for o in self.reached.objects if isinstance(o.held, dict) and not o.shared}
        named: dict[int, set[Any]] = {}
        for holder, name, value in found_guards:
            if id(holder) not in objects:
                yield holder, name, value
            elif type(name) is str:
                named.setdefault(id(holder), set()).add(name)
        for number, one in objects.items():
            names, entries = named.get(number, ()), one.before.items()
            yield one.held, None, tuple(x for key, v in entries for x in (key, original(v) if key in names else ANY))

    def _refuse_draws(self) -> None:
        drawn, location = self._located(lambda: [_state(one) for one, _ in self._random])
        if not drawn:  # by another thread
            return
        items = any(isinstance(one, Iterator) and _state(one) != state for one, state in self._random)
        for one, state in self._random:
            _restore(one, state)
        raise UnsupportedSyntaxError(
            f"{'items of an iterator' if items else 'random numbers'} would be drawn once, when the function is traced",
            location=location,
            help="draw outside, and pass the numbers as an argument",
        )

    def _leak(self, change: Change) -> CaptureError:
        for one in self.changes():
            one.undo()
        variable, whole = change.variable, change.whole

        def state() -> Any:
            return len(variable.holder) if whole else id(variable.get())

        grows = "in a container that grows, " if whole else ""
        return LeakedTracerError(
            f"`{variable.path}` would keep a value of the program {grows}which only the function's own variables can",
            location=self._located(state)[1],
            help="return it, and store it outside; attributes and items hold numbers, arrays, and containers of them",
        )

    def _located(self, state: Callable[[], Any]) -> tuple[bool, SourceLocation | None]:
        """True if a second run changes `state()`, and the user's source location of the instruction that does."""
        before = state()
        last: tuple[types.CodeType, int] | None = None

        def step(frame: types.FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if last is not None and state() != before:
                raise _Found(last)
            if is_internal(frame):
                return None
            frame.f_trace = step  # before the next: CPython 3.13 has events of opcodes only for frames that have one
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            if event == "opcode":
                last = frame.f_code, frame.f_lasti
            return step

        outer, own = sys.gettrace(), sys._getframe()
        _LOCATING.append(True)
        own.f_trace_opcodes = True  # CPython 3.12 has events of opcodes only if a frame asks for them before `settrace`
        sys.settrace(step)
        try:
            self.again()
        except _Found as found:
            return True, code_location(*found.variable)
        except CaptureError:
            last = None
        finally:
            sys.settrace(outer)
            own.f_trace_opcodes = False
            _LOCATING.pop()
        changed = state() != before
        return changed, code_location(*last) if changed and last is not None else None


class _Found(BaseException):
    def __init__(self, variable: tuple[types.CodeType, int]) -> None:
        super().__init__()
        self.variable = variable


def _restore_profile(profile: Any) -> None:
    """Profile as before: by a function, or by cProfile, whose profiler is no function and is enabled anew."""
    sys.setprofile(profile if profile is None or callable(profile) else None)
    if profile is not None and not callable(profile):
        profile.enable()


_LOCATING: list[bool] = []  # set while a function is run again to find the line of an error; under the compiler's lock


def items_of(variables: Iterable[StateVariable]) -> list[Item]:
    """The current values of state variables, as leaves, for a call."""
    found: list[Item] = []
    for variable in variables:
        now = variable.for_call()
        if now is not MISSING and now is not None and is_plain(now):
            leaves, tree = flatten(now)
            found.append({("value", tree): leaves})
        else:
            assert variable.tree is not None
            found.append({("new", variable.tree): [0.0] * variable.tree.leaf_count()})
    return found


def write_back(variables: Iterable[StateVariable], items: Iterable[Item], unset: Sequence[int]) -> None:
    """Assign the items of a call to the state variables."""
    for number, (variable, item) in enumerate(zip(variables, items)):
        if number not in unset:
            ((_, tree), leaves) = next(iter(item.items()))
            variable.after_call(tree.unflatten(leaves))


def is_plain(value: Any) -> bool:
    """True for a number, an array, or a container of them."""
    return all(isinstance(x, (*_NUMBERS, np.ndarray, np.generic, Traced)) for x in flatten(value)[0])


def _are_numbers(change: Change) -> bool:
    return _is_number(change.after) and _is_number(change.before)


def _is_number(value: Any) -> bool:
    """True for a number, an array, or a tuple of them, which are values and no containers that others may share."""
    if type(value) is tuple:
        return bool(value) and all(map(_is_number, value))
    return isinstance(value, (*_NUMBERS, np.ndarray, np.generic))


def holds_traced(value: Any) -> bool:
    """True if a traced value is reachable from an object."""
    queue, seen = [value], set()
    for one in queue:
        if isinstance(one, Traced):
            return True
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            queue += one.values()
        elif isinstance(one, (list, tuple, set, frozenset, deque)):
            queue += one
        elif isinstance(one, functools.partial):
            queue += [*one.args, *one.keywords.values()]
        elif isinstance(one, types.FunctionType):
            queue += [StateVariable(cell, None, "").get() for cell in one.__closure__ or ()]
        elif not isinstance(one, (type, types.ModuleType)) and type(one).__module__.partition(".")[0] != "mlirml":
            queue += vars(one).values() if hasattr(one, "__dict__") else ()
    return False


def _is_ours(value: Any) -> bool:
    """True for objects of mlirml's own."""
    return not isinstance(value, Traced) and type(value).__module__.partition(".")[0] == "mlirml"


def _sources(reached: Reached) -> list[Any]:
    """The random number generators that are reached. Code whose globals are read through an overlay reaches none."""
    if not reached.opaque:
        return reached.random
    return [*reached.random, np.random.mtrand._rand, *filter(None, [getattr(sys.modules.get("random"), "_inst", None)])]


def _state(source: Any) -> Any:
    """The state of a generator, which a draw changes."""
    if hasattr(source, "bit_generator"):
        return pickle.dumps(source.bit_generator.state)
    if hasattr(source, "_bit_generator"):
        return pickle.dumps(source._bit_generator.state)
    if hasattr(source, "getstate"):
        with suppress(NotImplementedError):
            return source.getstate()
    if isinstance(source, Iterator):
        return position(source)
    with suppress(Exception):
        return pickle.dumps(source.state if hasattr(source, "state") else source)
    return None


def _restore(source: Any, state: Any) -> None:
    if hasattr(source, "bit_generator"):
        source.bit_generator.state = pickle.loads(state)
    elif hasattr(source, "_bit_generator"):
        source._bit_generator.state = pickle.loads(state)
    elif hasattr(source, "setstate") and state is not None:
        source.setstate(state)
    elif hasattr(source, "state"):
        source.state = pickle.loads(state)


_TIMERS = ("mlirml", "logging", "threading")
"""Packages that read clocks, but whose results do not depend on them."""


def _refuse_clocks(frame: types.FrameType, event: str, function: Any) -> None:
    caller = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if event == "c_call" and is_clock(function) and caller not in _TIMERS and not _is_import(frame):
        owner = getattr(function, "__self__", None)
        name = getattr(owner, "__name__", type(owner).__name__)
        error = UnsupportedSyntaxError(
            f"`{name}.{function.__name__}` would be called once, when the function is traced",
            location=user_location(1),
            help="call it outside, and pass what it returns as an argument",
        )
        error.subject = DRAW if owner is getattr(sys.modules.get("random"), "_inst", None) else ""
        raise error


def _is_import(frame: types.FrameType | None) -> bool:
    """True if a traced function imports a module in this frame: what that reads from clocks is in no program."""
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] != "mlirml":
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _nothing() -> None:
    return None
