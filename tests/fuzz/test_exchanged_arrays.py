"""Random loops in plain Python in which arrays and numbers change places, against NumPy.

`MLIRML_FUZZ=2000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, note, reject, seed
from hypothesis import strategies as st

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.fuzzing import COUNT, first_seed, settings_of
from tests.fuzz.loop_generator import function_of
from tests.fuzz.oracle import assert_same, cloned

EXCHANGES = [
    "u, v = v, u", "u, v = v, u + v", "u, v, w = v, w, u", "u, v, w = w, u * 2, v - 1", "u = v", "u, w = w + 1, u",
    "u, v = np.maximum(u, v), np.minimum(u, v)", "t = u; u = v; v = t", "u, v = a @ v % 5, u", "w = u[::-1]",
    "u, v = v + s, u - s", "s, q = q, s", "s, u = np.sum(u), v * 1",
]  # fmt: skip
CHANGES = [
    "u = u + v[::-1]", "v = np.roll(u, 1)", "u[0] = w[-1]", "u[1:] = v[:-1]", "w = np.where(u > v, u, w)", "u += v",
    "v = v.copy(); v[i % 3] += 1", "u = a @ v % 7", "s += u[i % 3]", "v[:] = u", "u[...] = w[::-1]",
    "v *= 2; v %= 11", "q = q + s - v[0]",
]  # fmt: skip
REFUSED = (
    "of which a loop around it renews one",
    "another array in the next iteration",
    "are one array, which the loop exchanges",
    "may be one of several arrays",
)
REFUSED += ("arrays are exchanged in a way that differs", "refers to an array that the loop stores into")
REFUSED += ("which is one array or another after the loop",)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a function of three arrays and a matrix."""

    def lines(indent: int, most: int) -> list[str]:
        count = draw(st.integers(1, most))
        return [" " * indent + draw(st.sampled_from([*EXCHANGES, *CHANGES])) for _ in range(count)]

    body = [f"    for i in range({draw(st.sampled_from(['1', '4', '5', '70']))}):", *lines(8, 4)]
    if draw(st.booleans()):
        body += [f"        for j in range({draw(st.sampled_from(['2', '3', 'i + 1']))}):", *lines(12, 3)]
        body += lines(8, 1)
    head = ["def program(u, v, w, a):", "    s, q = u[0], v[1]"]
    return "\n".join([*head, *body, "    return u, v, w, s, q", ""])


@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_arrays_change_places(frontend: str) -> None:
    seed(first_seed() if COUNT else 0)(
        settings_of(40)(
            given(programs(), st.integers(0, 9))(lambda source, values: leaves_the_same(source, values, frontend))
        )
    )()


def leaves_the_same(source: str, values: int, frontend: str) -> None:
    """Assert that a program gives the same and leaves the same in its arguments, or is refused."""
    note(source)
    function = function_of(source)
    rng = np.random.default_rng(values)
    dtype = (np.int64, np.float64)[values % 2]
    inputs = [rng.integers(-2, 3, 3).astype(dtype) for _ in range(3)] + [rng.integers(-1, 2, (3, 3)).astype(dtype)]
    expected_inputs, given_inputs = cloned(inputs), cloned(inputs)
    with np.errstate(all="ignore"):
        expected = function(*expected_inputs)
    if not all(np.all(np.abs(x) < 2.0**45) for x in (*expected, *expected_inputs)):
        reject()  # rounded, or wrapped around
    try:
        found = ml.compile(function, frontend=frontend)(*given_inputs)
    except CaptureError as error:
        assert any(text in error.message for text in REFUSED), error
        return
    assert_same([found, given_inputs], [expected, expected_inputs], "program")


def test_an_array_made_of_pieces_has_two_names() -> None:
    def program(u, v, a):  # type: ignore[no-untyped-def]
        for _ in range(70):
            u = a @ v % 7
            v = np.roll(u, 1)
            u = v * 1
        return u, v

    rng = np.random.default_rng(0)
    given = rng.integers(-2, 3, 3), rng.integers(-2, 3, 3), rng.integers(-1, 2, (3, 3))
    for frontend in ("auto", "loops"):
        found = ml.compile(program, frontend=frontend)(*cloned(given))
        assert_same(found, program(*cloned(given)), "program")


def test_a_loop_takes_an_array_of_pieces_from_outside() -> None:
    def program(u, v, a):  # type: ignore[no-untyped-def]
        for i in range(5):
            v = np.roll(u, 1)
            for _ in range(i + 1):
                u = v
            v = v.copy()
            v[i % 3] += 1
        return u, v

    arrays = [np.arange(5.0), np.ones(5), np.ones((5, 5))]
    for found, expected in zip(ml.compile(program)(*arrays), program(*(x.copy() for x in arrays))):
        np.testing.assert_array_equal(found, expected)
