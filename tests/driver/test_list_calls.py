"""Calls with long lists of numbers: recognised by the arrays of the lists, with the results of plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime import pack_numbers
from tests.driver.frames import frames_of

SCALE = 2


def total(items: Any) -> Any:
    result = 0
    for item in items:
        result += item
    return result


def mixed(items: Any, x: Any, k: Any, other: Any) -> Any:
    result = x.sum() * k * items[0]
    for i in range(len(items)):
        result += items[i] * other[i % len(other)]
    return result, x * k


def scaled(items: Any) -> Any:
    return total(items) * SCALE


def reversed_in_place(items: Any) -> Any:
    for i in range(len(items) // 2):
        items[i], items[-1 - i] = items[-1 - i], items[i]
    return items[0]


def element(items: Any, i: Any) -> Any:
    return items[i]


def test_a_known_call_packs_its_lists_and_runs() -> None:
    compiled = ml.compile(total)
    for start in range(5):
        items = [*range(start, start + 300)]
        result, frames = frames_of(lambda items=items: compiled(items))
        assert result == total(items)
    assert "_prepared" not in frames and len(frames) < 20, frames


@pytest.mark.parametrize("kind", [int, float, complex, bool])
def test_results_are_those_of_python(kind: type) -> None:
    compiled = ml.compile(mixed)
    rng = np.random.default_rng(3)
    for _ in range(4):
        items = [kind(v) for v in rng.integers(0, 9, 80)]
        other, x = [float(v) for v in rng.integers(0, 9, 70)], rng.normal(size=7)
        for given in ((items, x, 2, other), (items, x, 2, items)):
            found, expected = compiled(*given), mixed(*given)
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
            np.testing.assert_array_equal(found[1], expected[1])


def test_lists_and_arrays_of_one_form_are_two_programs() -> None:
    compiled = ml.compile(lambda x: x * 2 if isinstance(x, np.ndarray) else x[0])
    items = [*range(100)]
    for _ in range(3):
        assert compiled(items) == 0
        np.testing.assert_array_equal(compiled(np.array(items)), 2 * np.arange(100))


def test_numbers_of_another_type_or_size() -> None:
    compiled = ml.compile(total)
    items: list[Any] = [*range(100)]
    for _ in range(3):
        assert compiled(items) == 4950
    assert compiled([float(v) for v in items]) == 4950.0
    assert compiled([*items[:-1], 0.5]) == 4851.5  # of two types: number by number
    for _ in range(2):
        with pytest.raises((ml.errors.MlirmlError, OverflowError)):
            compiled([*items[:-1], 1 << 70])
    assert compiled(items) == 4950


def test_lists_that_a_function_stores_into_have_the_new_numbers() -> None:
    compiled = ml.compile(reversed_in_place)
    for start in range(4):
        items = [*range(start, start + 90)]
        expected = items[::-1]
        assert compiled(items) == expected[0]
        assert items == expected


def test_lists_of_lists_and_one_list_twice() -> None:
    def product(a: Any, b: Any) -> Any:
        return [[sum(a[i][k] * b[k][j] for k in range(9)) for j in range(9)] for i in range(9)]

    compiled = ml.compile(product)
    for start in range(3):
        a = [[start + i * j for j in range(9)] for i in range(9)]
        b = [[i - j for j in range(9)] for i in range(9)]
        assert compiled(a, b) == product(a, b)
        assert compiled(a, a) == product(a, a)
    a[1] = a[0]  # one row twice
    assert compiled(a, b) == product(a, b)


def test_a_failed_check_is_explained_at_its_line() -> None:
    compiled = ml.compile(element)
    items = [float(v) for v in range(70)]
    for _ in range(3):
        assert compiled(items, 69) == 69.0
    with pytest.raises(IndexError, match="70") as raised:
        compiled(items, 70)
    assert "items[i]" in str(raised.value)


def test_another_value_of_a_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ml.compile(scaled)
    items = [*range(100)]
    for _ in range(3):
        assert compiled(items) == 9900
    monkeypatch.setitem(globals(), "SCALE", 3)
    assert compiled(items) == 14850


def test_numbers_are_packed() -> None:
    for items in (
        [True, False] * 40,
        [*range(-40, 40)],
        [0.5] * 70,
        [1j] * 70,
        [[1, 2]] and [[k, -k] for k in range(40)],
    ):
        array = pack_numbers(items, 65)
        assert array is not None and array.dtype == np.array(items).dtype
        np.testing.assert_array_equal(array, items)
    assert pack_numbers([(1 << 63) - 1, -(1 << 63)], 1).tolist() == [(1 << 63) - 1, -(1 << 63)]  # type: ignore[union-attr]
    row = [1, 2]
    for other in (
        [1] * 64,
        [1, True] * 40,
        [1.0, 1] * 40,
        [1 << 63] * 70,
        [row, row],
        [[1], [1, 2]],
        [[1], 1],
        [[]],
        ["a"],
        [],
    ):
        assert pack_numbers(other, 65 if other == [1] * 64 else 1) is None
