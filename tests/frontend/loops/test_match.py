"""`match` statements: on data, on Python's values, and in functions that loops call."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.array([0.3, -0.2, 0.5, 0.9, -0.4, 0.77])


class Operation(enum.Enum):
    TRIPLE = 1
    HALVE = 2


def alternatives(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        match n % 3:
            case 0:
                total += x[i]
            case 1 | 2:
                total -= x[i] * i
    return total


def pairs(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        match i % 4, x[i] > 0:
            case 0, True:
                total += x[i]
            case 1, _:
                total -= x[i]
            case _, False:
                total *= 0.5
            case _:
                total += 100
    return total


def guards(x: Any) -> Any:
    n = 0
    for v in x:
        match int(v * 10) % 5:
            case 0:
                n += 1
            case k if k > 2:
                n += k
            case 1 as one:
                n -= one
            case _:
                continue
        n += 1
    return n


def returns(x: Any) -> Any:
    for _ in range(3):
        match np.argmax(x):
            case 0:
                return x * 2
            case 1:
                x = np.roll(x, 1)
            case 2:
                x = x[::-1]
    return x


def of_values(x: Any) -> Any:
    for operation in ("negate", None, Operation.TRIPLE, Operation.HALVE, True):
        match operation:
            case "negate":
                x = -x
            case None:
                x = x + 1
            case Operation.TRIPLE:
                x = x * 3
            case Operation.HALVE | True:
                x = x / 2
            case _:
                raise ValueError(operation)
    return x


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (alternatives, (X, 3)),
        (alternatives, (X, 4)),
        (pairs, (X,)),
        (guards, (X,)),
        (returns, (X[:3],)),
        (returns, (X[3:],)),
        (of_values, (X,)),
    ],
)
def test_matches(function: Any, arguments: Any, frontend: Any) -> None:
    found = ml.compile(function, frontend=frontend)(*arguments)
    np.testing.assert_allclose(found, function(*arguments), rtol=1e-14)


def exchanged(x: Any, y: Any) -> Any:
    for _ in range(3):
        match x, y:
            case y, x:
                x = x + 1
    return x, y


def test_names_are_bound_together() -> None:
    for found, expected in zip(ml.compile(exchanged, frontend="loops")(X, X[::-1]), exchanged(X, X[::-1]), strict=True):
        np.testing.assert_array_equal(found, expected)


class Dice:
    """Numbers of an iterator."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = iter(numbers)

    def below(self, n: int) -> int:
        return next(self.numbers) % n


def step(dice: Dice, items: list[Any]) -> None:
    match ("grow", "change")[dice.below(2)]:
        case "grow":
            items.append(items[dice.below(len(items))] * 2)
        case "change":
            items[0][0] += 1


def opaque(dice: Dice, items: list[Any]) -> None:
    match {"number": dice.below(3)}:
        case {"number": n}:
            items.append(items[0] * n)


def rolled(x: Any, function: Any) -> Any:
    dice, items = Dice([4, 2, 7, 5, 4, 1, 0, 9, 8, 8, 3]), [x]
    for _ in range(5):
        function(dice, items)
    return np.stack(items)


def test_a_called_function_takes_items_of_an_iterator() -> None:
    expected = rolled(X.copy(), step)
    np.testing.assert_array_equal(ml.compile(rolled, static_argnums=1)(X.copy(), step), expected)


def test_items_taken_by_a_function_without_hooks() -> None:
    """An attempt to trace the loop takes items, which cannot be put back; without attempts there is no such problem."""
    np.testing.assert_array_equal(ml.compile(rolled, static_argnums=1)(X.copy(), opaque), rolled(X.copy(), opaque))
    with pytest.raises(ml.UnsupportedSyntaxError, match=r"an item of the iterator `dice\.numbers` is taken") as caught:
        ml.compile(rolled, static_argnums=1, frontend="loops")(X.copy(), opaque)
    assert "for _ in range(5):" in str(caught.value)


def mapping(x: Any) -> Any:
    for i in range(3):
        match {"a": i}:
            case {"a": 1}:
                x = x + 1
    return x


def test_other_patterns_are_refused() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="`match` with patterns of mappings, sequences"):
        ml.compile(mapping, frontend="loops")(X)
    np.testing.assert_array_equal(ml.compile(mapping)(X), mapping(X))


NUMBERS = iter([1.0, 2.0, 3.0])


def test_an_iterator_from_outside_is_refused() -> None:
    def scaled(x: Any) -> Any:
        return x * next(NUMBERS)

    with pytest.raises(ml.UnsupportedSyntaxError, match="items of an iterator would be drawn once"):
        ml.compile(scaled)(X)


@dataclass
class Reading:
    """Two numbers."""

    first: Any
    second: Any


def by_class(x: Any) -> Any:
    match x:
        case bool():
            return 0
        case int(n) if n > 3:
            return n + 1
        case int():
            return x + 2
        case float() | np.float32():
            return x + 3
        case np.ndarray():
            return x + 4
        case Reading(first=1, second=n):
            return n + 5
        case Reading(first=int(k), second=n) if n > k:
            return n + 6
        case Reading(second=n):
            return n + 7
        case _:
            return 8


@pytest.mark.parametrize("frontend", ["auto", "loops"])
@pytest.mark.parametrize(
    "x",
    [True, 2, 5, 0.5, np.float32(2), X, None, (1, 2), *(Reading(*n) for n in ((1, 2.0), (2, 3.0), (3, 2.0), (2.0, 3)))],
)
def test_classes_are_those_of_numbers_of_the_program(x: Any, frontend: Any) -> None:
    np.testing.assert_array_equal(ml.compile(by_class, frontend=frontend)(x), by_class(x))


def kept(x: Any) -> Any:
    n = 1
    match x:
        case int(n) if n == 7:
            return n * 100
        case int(k) if k > 9:
            n += 3
    return n


@pytest.mark.parametrize("x", [1, 7, 12, 0.5])
def test_a_name_is_bound_where_only_the_guard_is_false(x: Any) -> None:
    assert ml.compile(kept)(x) == kept(x)
