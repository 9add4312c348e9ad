"""Random index expressions, read and stored at, against NumPy on both targets."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, note, settings

from tests.fuzz.oracle import check

SIZES = st.integers(0, 4)
KINDS = ["slice", "slice", "integer", "place", "array", "array", "known", "mask", "new", "dots"]
DTYPES = st.sampled_from([np.int64, np.int32, np.int8])


class Place:
    """An item of an index that is an argument of the compiled function."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"argument {self.number}"


@st.composite
def expressions(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...], list[Any]]:
    """A shape, an index of an array of this shape with `Place`s in it, and the arguments that go there."""
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=4)))
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    if draw(st.integers(0, 9)) == 0:
        common = (*common, 0)
    items: list[Any] = []
    arguments: list[Any] = []
    axis, dots = 0, draw(st.booleans())
    while axis < len(shape):
        size = shape[axis]
        kind = draw(
            st.sampled_from(["slice", "slice", "integer", "place", "array", "array", "known", "mask", "new", "dots"])
        )
        if kind == "new":
            items.append(None)
            continue
        if kind == "dots":
            if not dots:
                break
            dots = False
            items.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
            continue
        axis += 1
        if kind == "slice" or size == 0:
            bound = st.none() | st.integers(-5, 5)
            items.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2]))))
        elif kind in ("integer", "place") and size:
            position = draw(st.integers(-size, size - 1))
            items.append(position if kind == "integer" else _place(arguments, draw(DTYPES)(position)))
        elif kind == "mask":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool))
            if items[-1].sum() not in (1, *common[-1:]):
                items[-1] = slice(None)
        else:
            cut = draw(st.integers(0, len(common)))
            array = np.ones([n if draw(st.booleans()) or n == 0 else 1 for n in common[cut:]], draw(DTYPES))
            for place in np.ndindex(*array.shape):
                array[place] = draw(st.integers(-size, size - 1))
            known = kind == "known" or not array.ndim
            items.append(array.tolist() if known else _place(arguments, array))
    return shape, tuple(items), arguments


def _place(arguments: list[Any], value: Any) -> Place:
    arguments.append(value)
    return Place(len(arguments) - 1)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), st.randoms(use_true_random=False))
def test_any_index(expression: Any, random: Any) -> None:
    shape, index, arguments = expression
    note(f"x{list(shape)}[{index}], {arguments}")
    x = np.array([random.randrange(-50, 50) for _ in range(int(np.prod(shape)))], np.float64).reshape(shape)
    real = tuple(arguments[item.number] if isinstance(item, Place) else item for item in index)
    picked = x[real]
    values = np.array([random.randrange(-50, 50) for _ in range(picked.size)], np.float64).reshape(picked.shape)

    def f(x: Any, values: Any, arguments: Any) -> Any:
        at = tuple(arguments[item.number] if isinstance(item, Place) else item for item in index)
        stored, added, updated = x.copy(), x.copy(), x.copy()
        stored[at] = values
        np.add.at(added, at, values)
        updated[at] -= 1
        return x[at], stored, added, updated

    check(f, x, values, arguments)
