"""Calls that the native dispatcher recognises, those with long lists of numbers by the arrays of these lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.number_lists import FEWEST, ListArray, NumberList
from mlirml.core.tree import TreeDef, flatten
from mlirml.driver.calls import Build, Call, LeafNumbers, has_lists, leaf_numbers
from mlirml.driver.state import Group, State
from mlirml.runtime import Dispatcher, Program, pack_numbers

if TYPE_CHECKING:
    from mlirml.frontend.captured import Captured

FORMS = 64
"""The most forms of calls of one program that the native dispatcher gets to know."""
UNKNOWN: Any = object()
"""What a call that is not recognised returns."""
_PLAIN = (np.ndarray, np.generic, bool, int, float, complex)


def packed(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call with long lists of numbers as arrays; None without such lists.

    One list that is passed twice is one array.
    """
    made: dict[int, Any] = {}

    def one(value: Any) -> Any:
        if type(value) is not list or len(value) == 0:
            return value
        if id(value) not in made:
            made[id(value)] = _array(value) or value
        return made[id(value)]

    found = tuple(map(one, arguments)), {name: one(value) for name, value in named.items()}
    return found if any(type(value) is NumberList for value in made.values()) else None


def _array(value: list[Any]) -> NumberList | None:
    """The array of a long list of numbers of one type, or of distinct lists of them as long as each other."""
    numbers = pack_numbers(value, FEWEST)
    if numbers is None:
        return None
    array = numbers.view(ListArray)
    array.source = value
    return NumberList(type(array.flat[0].item()), array)


class ListCalls:
    """Calls of one function by position, with long lists, arrays and numbers as arguments, whose programs are known."""

    def __init__(self) -> None:
        self._known = Dispatcher(_unknown)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The result of a call, or `UNKNOWN`."""
        if not self._known.entries or (found := packed(args, {})) is None:
            return UNKNOWN
        result = self._known(*_plain(found[0]))
        if type(result) is not _Stored:
            return result
        for value in found[0]:
            if type(value) is NumberList:
                value.array.restore()
        return result.result

    def add(self, call: Call, build: Build, result: Any, explain: Any) -> None:
        """Recognise calls like this one, if all that they do is to run the program and to store into lists."""
        given, captured = call.dynamic[0], build.captured
        are_plain = all(type(x) is NumberList or isinstance(x, _PLAIN) for x in given)
        if call.kwargs or call.statics or call.constants or captured.replaced or not are_plain:
            return
        if captured.writebacks:
            result = partial(_stored, captured)
        order = [*range(1, len(given) + 1)]
        self._known.add(_plain(given), {}, build.program, result, order, [0], captured.guards, explain)

    def clear(self) -> None:
        """Forget all calls."""
        self._known.clear()


class StateCalls:
    """Calls of one function with state whose programs are known: the values of its variables are one more argument."""

    def __init__(self, state: Group) -> None:
        self._state = state
        self._known = Dispatcher(_unknown)
        self._remembered: dict[int, set[Any]] = {}  # of programs: the forms of calls
        self._variables: Any = None
        self._trees: list[TreeDef | None] = []  # of the values that are containers

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call, or `UNKNOWN`."""
        if self._state.variables is not self._variables:
            return UNKNOWN
        from mlirml.frontend.captured import STATE

        items, before = [], []
        for variable, tree in zip(self._variables, self._trees):
            item, structure = _item(variable.for_call())
            if structure != tree:
                return UNKNOWN
            before.append(item if tree is None else [*item])
            items.append(item)
        try:
            result = self._known(*args, **kwargs, **{STATE: items})
        except BaseException:
            for variable in self._variables:
                variable.after_failure()
            raise
        if result is UNKNOWN:
            return UNKNOWN
        for variable, tree, old, new in zip(self._variables, self._trees, before, items):
            if tree is None:
                variable.after_call(new)
            elif any(one is not other for one, other in zip(old, new)):
                variable.set(tree.unflatten(new))
        return result

    def add(self, call: Call, build: Build, result: Any, explain: Any) -> None:
        """Recognise calls like this one."""
        from mlirml.frontend.captured import STATE

        items: list[Any] = []
        trees: list[TreeDef | None] = []
        for item in call.kwargs[STATE]:
            (((mode, tree), leaves),) = item.items()
            if mode != "value":
                return
            item, structure = _item(tree.unflatten(leaves))
            items.append(item)
            trees.append(structure)
        if self._variables is not self._state.variables or self._trees != trees:
            self._known.clear()
            self._remembered.clear()
            self._variables, self._trees = self._state.variables, trees
        numbers = leaf_numbers(call, items)
        if numbers is not None:
            known = self._remembered.setdefault(build.number, set())
            _add(self._known, known, call, {**call.kwargs, STATE: items}, build, numbers, result, explain)


@dataclass(frozen=True)
class _Stored:
    """The result of a program that has stored into lists."""

    result: Any


def _stored(captured: Captured, outputs: Sequence[Any]) -> _Stored:
    return _Stored(captured.result(outputs))


def _unknown(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return UNKNOWN


def _item(value: Any) -> tuple[Any, TreeDef | None]:
    """The value of a state variable as it is passed: an array, a number, or the list of a container's leaves."""
    if isinstance(value, _PLAIN):
        return value, None
    return flatten(value)


def _plain(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with arrays for lists, after a text that says which ones are lists."""
    arrays = [x.array.view(np.ndarray) if type(x) is NumberList else x for x in arguments]
    return "".join("l" if type(x) is NumberList else "." for x in arguments), *arrays


class KnownCalls:
    """The calls of one function that run a program without a look at its arguments in Python."""

    def __init__(self, dispatcher: Dispatcher, state: State) -> None:
        self._dispatcher, self._state = dispatcher, state
        self.with_lists = ListCalls()
        self._with_state: dict[Group, StateCalls] = {}

    def with_state(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of a function with state, or `UNKNOWN`."""
        calls = self._with_state.get(self._state.group(args, kwargs))
        return UNKNOWN if calls is None else calls(args, kwargs)

    def add(self, call: Call, build: Build, explain: Callable[[Any], BaseException]) -> None:
        """Recognise calls like this one from now on."""
        if not isinstance(build.program, Program):
            return
        try:
            result: Any = build.captured.out_tree.nested(iter(build.captured.result_positions()))
        except ValueError:
            result = build.captured.result
        if has_lists(call):
            form: Any = "lists", *(type(x) is NumberList for x in call.dynamic[0])
            if form not in build.remembered and not call.state.variables:
                self.with_lists.add(call, build, result, explain)
                build.remembered.add(form)
            return
        if call.state.variables:
            if call.state not in self._with_state:
                self._with_state[call.state] = StateCalls(call.state)
            self._with_state[call.state].add(call, build, result, explain)
            return
        numbers = leaf_numbers(call)
        if numbers is not None:
            _add(self._dispatcher, build.remembered, call, call.given(), build, numbers, result, explain)

    def clear(self) -> None:
        """Forget all calls."""
        self._dispatcher.clear()
        self.with_lists.clear()
        self._with_state.clear()


def _add(
    dispatcher: Dispatcher, remembered: set[Any], call: Call, named: dict[str, Any], build: Build,
    numbers: LeafNumbers, result: Any, explain: Any,
) -> None:  # fmt: skip
    # Calls whose dicts have their keys in another order are of another form. Each is added once: an equal static
    # argument that is another object would be added at each call.
    form = len(call.args), frozenset(call.exact_statics().items()), *named, *numbers.inputs
    if form in remembered or len(remembered) == FORMS:
        return
    captured, guards = build.captured, build.captured.guards
    specs = ((at, captured.outputs[at]) for at in captured.item_positions())
    stores = sorted(
        (numbers.every[leaf], at, 1 if spec.weak else 2 if spec.scalar else 0)
        for leaf, (at, spec) in zip(captured.replaced, specs)
    )
    if dispatcher.add(call.args, named, build.program, result, numbers.inputs, numbers.static, guards, explain, stores):
        remembered.add(form)
