"""Calls that the native dispatcher recognises, those with long lists of numbers by the arrays of these lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.number_lists import FEWEST, ListArray, NumberList
from mlirml.driver.calls import Build, Call, has_lists, leaf_numbers
from mlirml.runtime import Dispatcher, Program, pack_numbers

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
        self._known = Dispatcher(lambda args, kwargs: UNKNOWN)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The result of a call, or `UNKNOWN`."""
        if not self._known.entries or (found := packed(args, {})) is None:
            return UNKNOWN
        return self._known(*_plain(found[0]))

    def add(self, call: Call, build: Build, result: Any, explain: Any) -> None:
        """Recognise calls like this one, if all that they do is to run the program."""
        given = call.dynamic[0]
        are_plain = all(type(x) is NumberList or isinstance(x, _PLAIN) for x in given)
        if call.kwargs or call.statics or call.constants or build.captured.writebacks or not are_plain:
            return
        order = [*range(1, len(given) + 1)]
        self._known.add(_plain(given), {}, build.program, result, order, [0], build.captured.guards, explain)

    def clear(self) -> None:
        """Forget all calls."""
        self._known.clear()


def _plain(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with arrays for lists, after a text that says which ones are lists."""
    arrays = [x.array.view(np.ndarray) if type(x) is NumberList else x for x in arguments]
    return "".join("l" if type(x) is NumberList else "." for x in arguments), *arrays


def remember(
    dispatcher: Dispatcher, lists: ListCalls, call: Call, build: Build, explain: Callable[[Any], BaseException]
) -> None:
    """Let the native dispatcher recognise calls like this one from now on."""
    if not isinstance(build.program, Program):
        return
    try:
        result: Any = build.captured.out_tree.nested(iter(build.captured.result_positions()))
    except ValueError:
        result = build.captured.result
    if has_lists(call):
        form: Any = "lists", *(type(x) is NumberList for x in call.dynamic[0])
        if form not in build.remembered:
            lists.add(call, build, result, explain)
            build.remembered.add(form)
        return
    numbers = leaf_numbers(call)
    if numbers is None:
        return
    order, static = numbers
    # Calls whose dicts have their keys in another order are of another form. Each is added once: an equal static
    # argument that is another object would be added at each call.
    form = len(call.args), *call.given(), *order
    if form in build.remembered or len(build.remembered) == FORMS:
        return
    guards = build.captured.guards
    if dispatcher.add(call.args, call.given(), build.program, result, order, static, guards, explain):
        build.remembered.add(form)
