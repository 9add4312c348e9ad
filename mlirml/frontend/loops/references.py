"""References of loop variables to arrays: the same array in each iteration, another one, or those of others in turn.

`a, b = b, a` at the end of an iteration exchanges two arrays. The loop carries the arrays that the variables refer to,
so that an iteration ends with the values exchanged; after a static number of iterations, the references are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlirml.errors import CaptureError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.loops.variables import Stored, Variables, cell_of, is_array, same

_TURNS = 8
Turns = Mapping[str, str]  # after an iteration a variable refers to the array that this one referred to before


def find_turns(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """The variables that exchange their arrays in an iteration; none if references change otherwise."""
    whole = {name: value for name, value in before.items() if is_array(value) and not value._views}
    found: dict[str, str] = {}
    for name, value in after.items():
        if name not in whole or same(whole[name], value):
            continue
        sources = [other for other, old in whole.items() if same(old, value)]
        if len(sources) > 1:
            return {}
        if not sources:  # a new array
            continue
        found[name] = sources[0]
    return found if sorted(found) == sorted(found.values()) else {}


def exchanged(
    stored: Stored, before: Mapping[str, Any], turns: Turns, values: Sequence[Any], iterations: int
) -> list[Any]:
    """The values of the allocations, from those that the variables refer to after a number of iterations."""
    result = list(values)
    for name in turns:
        result[position_of(stored, before[turned(turns, name, iterations)])] = values[position_of(stored, before[name])]
    return result


def ended(stored: Stored, before: Mapping[str, Any], turns: Turns, values: Sequence[Any]) -> list[Any]:
    """The values at the end of an iteration: for the array of each variable, the one that the variable refers to
    then.
    """
    result = list(values)
    for name, source in turns.items():
        number = position_of(stored, before[name])
        result[number] = values[position_of(stored, before[source])]
        stored.changed[number] = True
    return result


def turned(turns: Turns, name: str, iterations: int) -> str:
    """The variable whose array a variable refers to after a number of iterations."""
    period = order(turns)
    for _ in range(iterations % period):
        name = turns[name]
    return name


def order(turns: Turns) -> int:
    """The number of iterations after which every variable refers to its own array again."""
    state, count = dict(turns), 1
    while any(name != source for name, source in state.items()) and count < _TURNS:
        state, count = {name: turns[source] for name, source in state.items()}, count + 1
    return count


def position_of(stored: Stored, array: Traced) -> int:
    """The index of an array among the allocations; raises `CaptureError` for one that an enclosing loop renews."""
    for number, cell in enumerate(stored.cells):
        if cell is array._cell:
            return number
    raise CaptureError(
        "a loop exchanges arrays, of which a loop around it renews one",
        help="stack both, `rows = np.stack([u, v])`, and exchange the numbers of the rows",
    )


def check_alone(variables: Variables, before: Mapping[str, Any], turns: Turns) -> None:
    """Refuse second names for arrays that are exchanged."""
    cells = {id(before[name]._cell): name for name in turns}
    for name, value in variables.items():
        if name not in turns and is_array(value) and id(value._cell) in cells:
            raise CaptureError(
                f"`{name}` and `{cells[id(value._cell)]}` are one array, which the loop exchanges for another one",
                help=f"use only the names that are exchanged, or take `{name}` as a copy",
            )


def watch(result: Traced, leaves: Sequence[Any]) -> None:
    """Refuse later uses of a result that may be one of these arrays, once one of them is stored into.

    A result of a nested loop or branch may itself be among the arrays.
    """
    cells = [cell for cell in map(cell_of, leaves) if cell is not None]
    found = [pair for cell in cells for pair in ((cell, cell.version), *cell.watched)]
    result._cell.watched = tuple((cell, version) for cell, version in found if cell.region is None or cell.region.open)
