"""Arguments that share memory: compiled functions do to it what plain Python does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import mlirml as ml
from tests.fuzz.oracle import TARGETS

Views = Callable[[np.ndarray], tuple[Any, ...]]


def check(fn: Callable[..., Any], memory: np.ndarray, views: Views, targets: tuple[str, ...] = TARGETS) -> None:
    """`fn` called with views of a copy of `memory`, twice; results and the whole memory are as without compilation."""
    __tracebackhide__ = True
    for target in targets:
        compiled = ml.compile(fn, target)
        expected, given_ = memory.copy(), memory.copy()
        for _ in range(2):
            wanted, result = fn(*views(expected)), compiled(*views(given_))
            np.testing.assert_array_equal(given_, expected)
            np.testing.assert_array_equal(result, wanted)


def shift(x: Any, y: Any) -> Any:
    """Stores that depend on earlier ones through the other argument."""
    x[1:] += y[:-1]
    y[0] = x[2]
    x[-1] = y[1] - 1
    return x * 2 + y


def spread(x: Any, y: Any) -> Any:
    x[...] = 2 * y  # NumPy itself copies overlapping lines of different steps element by element: `x[...] = y`
    y += x
    return x.sum() - y.sum()


LINE = np.arange(1.0, 25.0)
TABLE = np.arange(1.0, 43.0).reshape(6, 7)
SQUARE = TABLE[:, 1:].copy()

PAIRS: dict[str, tuple[np.ndarray, Views]] = {
    "the same array twice": (LINE, lambda a: (a, a)),
    "two array objects": (LINE, lambda a: (a, a[:])),
    "one behind the other": (LINE, lambda a: (a[1:], a[:-1])),
    "reversed": (LINE, lambda a: (a[::-1], a)),
    "every other element": (LINE, lambda a: (a[::2], a[:12])),
    "same matrix twice": (TABLE, lambda a: (a, a)),
    "transposed": (SQUARE, lambda a: (a, a.T)),
    "rows below": (TABLE, lambda a: (a[1:], a[:-1])),
    "windows": (TABLE, lambda a: (a[1:, 1:], a[:-1, :-1])),
    "windows whose first elements are in two columns": (TABLE, lambda a: (a[:-1, 1:], a[1:, :-1])),
    "rows reversed": (TABLE, lambda a: (a[::-1, 1:], a[:, :-1])),
    "steps": (TABLE, lambda a: (a[::2, 1::3], a[:3, 1:3])),
    "step and window transposed": (TABLE, lambda a: (a[1:4, 1:4], a[::2, ::3].T)),
    "row and column": (SQUARE, lambda a: (a[2], a[:, 3])),
    "matrix and its first row": (TABLE, lambda a: (a, np.broadcast_to(a[:1], a.shape))),
    "diagonal and flat": (SQUARE, lambda a: (a.reshape(-1)[::7], a.reshape(-1)[5:11])),
    "rows of two lengths": (LINE, lambda a: (a[1:13].reshape(3, 4), a[2:23].reshape(3, 7)[:, :4])),
    "new axes": (TABLE, lambda a: (a[:, None, 1:], a[:, None, :-1])),
    "Fortran order": (np.asfortranarray(SQUARE), lambda a: (a[1:], a[:-1])),
}


@pytest.mark.parametrize("name", PAIRS)
def test_stores_are_seen_through_the_other_argument(name: str) -> None:
    memory, views = PAIRS[name]
    _, y = views(memory)
    if y.flags.writeable:
        check(shift, memory, views)
        check(spread, memory, views, ("cpu",))
        check(lambda x, y: spread(y, x), memory, views, ("reference",))
    else:
        check(lambda x, y: add(x, y) + y, memory, views)


def add(x: Any, y: Any) -> Any:
    x += 2 * y
    return x


def test_reads_of_a_sliding_window() -> None:
    def filled(x: Any, windows: Any) -> Any:
        x[1:] = windows[1:].sum(axis=1)
        return windows @ np.array([1.0, 10.0, 100.0])

    check(filled, LINE, lambda a: (a[:-2], sliding_window_view(a, 3)))
    check(filled, LINE, lambda a: (a[2:], sliding_window_view(a[::-1], 3)))


def test_three_arguments_in_two_groups() -> None:
    def turn(p: Any, a: Any, b: Any, q: Any, unrelated: Any) -> Any:
        p[:] = q * unrelated
        a += b
        q[0] += b[0]
        return p + q + a + b

    fresh = np.arange(3.0)
    check(turn, LINE, lambda m: (m[:3], m[10:13], m[11:14], m[1:4], fresh))


def test_groups_that_interlace_are_one() -> None:
    def turn(a: Any, b: Any, c: Any, d: Any) -> Any:
        a += b
        c -= d
        return a + c

    check(turn, TABLE, lambda m: (m[1:, 0], m[:-1, 0], m[1:, 1], m[:-1, 1]))


def test_an_argument_that_is_only_read_stays_apart() -> None:
    a = np.arange(6.0)
    compiled = ml.compile(lambda x, y, z: add(x, z) + y.sum())
    other = np.ones(6)
    np.testing.assert_array_equal(compiled(other, a, a[::-1]), 1.0 + 2 * np.arange(6.0)[::-1] + 15)
    assert compiled.trace(other, a, a[::-1]).inputs == compiled.trace(other, a, a.copy()).inputs


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_dtypes(dtype: Any) -> None:
    def turn(x: Any, y: Any) -> Any:
        x[1:] = y[:-1]
        return y

    check(turn, LINE.astype(dtype), lambda a: (a[2:], a[:-2]))


def test_memory_that_is_not_aligned() -> None:
    memory = np.zeros(24 * 8 + 3, np.uint8)
    memory[3:].view(np.float64)[:] = LINE

    def views(m: np.ndarray) -> tuple[Any, ...]:
        line = m[3:].view(np.float64)
        return line[1:], line[:-1]

    check(shift, memory, views)


def test_elements_of_containers() -> None:
    def turn(state: Any, scale: Any) -> Any:
        state["w"][1:] *= state["v"][0]
        return state["w"] + scale

    check(turn, LINE, lambda a: ({"w": a[2:5], "v": a[3:6]}, 2.0))


def test_between_calls_with_and_without_overlap() -> None:
    compiled = ml.compile(shift)
    for _ in range(2):
        for make in (lambda a: (a, a.copy()), lambda a: (a, a), lambda a: (a, a[::-1]), lambda a: (a.copy(), a)):
            expected, given_ = LINE.copy(), LINE.copy()
            wanted, result = shift(*make(expected)), compiled(*make(given_))
            np.testing.assert_array_equal(given_, expected)
            np.testing.assert_array_equal(result, wanted)
    assert compiled.explain().count("because") == 3
    assert "this call: runs signature" in compiled.explain(LINE, LINE)
    assert "other arguments share memory" in compiled.explain(LINE[:-1], LINE[1:])


def test_results_that_are_given() -> None:
    memory, out = LINE.copy(), np.empty(23)
    expected = LINE.copy()
    wanted = shift(expected[1:], expected[:-1])
    assert ml.compile(shift)(memory[1:], memory[:-1], out=out) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(memory, expected)


def test_a_function_that_changes_with_a_global() -> None:
    compiled = ml.compile(store_or_not)
    for stores in (False, True, False):
        globals()["STORES"] = stores
        a = np.arange(4.0)
        result = compiled(a[1:], a[:-1])
        expected = np.arange(4.0)
        wanted = store_or_not(expected[1:], expected[:-1])
        np.testing.assert_array_equal(result, wanted)
        np.testing.assert_array_equal(a, expected)


STORES = False


def store_or_not(x: Any, y: Any) -> Any:
    if STORES:
        x += y
        x -= 2 * y
    return x * y


@st.composite
def windows(draw: st.DrawFn, shape: tuple[int, int], count: int) -> list[tuple[Any, ...]]:
    """Indices of windows of one shape: for each axis a slice of any direction and step, then transposed or not."""
    sizes = [draw(st.integers(1, 4)), draw(st.integers(1, 4))]
    result = []
    for _ in range(count):
        transposed = draw(st.booleans())
        wanted = sizes[::-1] if transposed else sizes
        index = []
        for size, n in zip(wanted, shape):
            step = draw(st.integers(1, (n - 1) // max(size - 1, 1)))
            start = draw(st.integers(0, n - 1 - (size - 1) * step))
            stop = start + (size - 1) * step
            forward = draw(st.booleans())
            ends = (start, stop + 1, step) if forward else (stop, start - 1 if start else None, -step)
            index.append(slice(*ends))
        result.append((tuple(index), transposed))
    return result


@settings(max_examples=12, deadline=None, database=None, derandomize=True)
@given(windows((5, 7), 3), st.booleans())
def test_random_windows(places: list[tuple[Any, ...]], flat: bool) -> None:
    def views(memory: np.ndarray) -> tuple[Any, ...]:
        table = as_strided(memory[2:], (5, 7), (7 * 8, 8)) if flat else memory.reshape(5, 7)
        return tuple(table[index].T if transposed else table[index] for index, transposed in places)

    def turn(x: Any, y: Any, z: Any) -> Any:
        x += y
        z[0] = x[-1]
        y[:, -1] -= z[:, 0]
        return x + 2 * y + 4 * z

    check(turn, np.arange(1.0, 38.0 if flat else 36.0), views)
