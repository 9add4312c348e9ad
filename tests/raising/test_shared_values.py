"""Loops over values that are used twice, many times in a row: a walk of their tree would never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.loop_generator import function_of

# mypy: disable-error-code="no-untyped-def"

DOUBLINGS = 60
X = np.linspace(0.1, 0.9, 12)


def chain(line: str, count: int = DOUBLINGS, end: str = "y", start: str = "") -> Callable[..., Any]:
    """A function that computes a line `count` times: as a loop it would be one of the program."""
    lines = ["def program(y):", f"    {start}", *(f"    {line.replace('J', str(j))}" for j in range(count))]
    return function_of("\n".join([*lines, f"    return {end}", ""]))


FLOATS = {
    "scaled": chain("y = y * 0.5 + y * 0.49"),
    "squared": chain("y = y * y"),
    "added": chain("y = (y + 0.1) + (y - 0.2)", end=f"y * 0.5**{DOUBLINGS}"),
    "divided": chain("y = (1.0 + y) / (2.0 + y)"),
    "clamped": chain("y = np.minimum(np.maximum(y, 0.2), np.maximum(y - 0.01, 0.3))"),
    "selected": chain("y = np.where(y > 0.5, y - 0.1, y + 0.1)"),
    "masked": chain("c = (c & (y > 0.2)) & (c & (y < 0.8 + J))", end="np.where(c, y, 0.0)", start="c = y > 0.3"),
}
INTEGERS = {
    "mixed": chain("y = (y ^ (y << 3)) + (y >> 2) & 1023"),
    "summed": chain("y = (y + J) + (y + 1) - y"),
    "limited": chain("y = min(max(y, J - 40), max(y - 1, 2))"),
    "multiplied": chain("y = y * y % 1009 + y"),
}


def of_elements(chain):
    def function(x):
        out = np.zeros(12)
        for i in range(12):
            out[i] = chain(x[i])
        return out

    return function


def of_a_sum(chain):
    def function(x):
        total = 0.0
        for i in range(12):
            total += chain(x[i])
        return total

    return function


def of_an_invariant(chain):
    def function(x):
        out = np.zeros(12)
        factor = chain(x[3])
        for i in range(12):
            out[i] = factor * x[i]
        return out

    return function


def of_a_condition(chain):
    def function(x):
        total = 0.0
        for i in range(12):
            if chain(x[i]) > 0.2 and x[i] > 0.3:
                total += x[i]
        return total

    return function


def of_products(chain):
    def function(x):
        out = np.zeros((12, 12))
        for i in range(12):
            for j in range(12):
                for k in range(4):
                    out[i, j] += chain(x[i - k]) * x[j - k]
        return out

    return function


def of_a_recurrence(chain):
    def function(x):
        total = x[0]
        for i in range(12):
            total = chain(total) * 0.5 + x[i]
        return total

    return function


def of_a_maximum(chain):
    def function(x):
        best, at = -1.0, 0
        for i in range(12):
            found = chain(x[i])
            if found > best:
                best, at = found, i
        return best * (at >= 0)

    return function


CONTEXTS = (of_elements, of_a_sum, of_an_invariant, of_a_condition, of_products, of_a_recurrence, of_a_maximum)


def check(function: Callable[..., Any], rtol: float = 1e-12) -> None:
    """Compare a compiled function with NumPy."""
    np.testing.assert_allclose(ml.compile(function, frontend="loops")(X), function(X), rtol=rtol)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_chains_of_floats(context: Callable[..., Any], name: str) -> None:
    check(context(FLOATS[name]))


def as_index(chain):
    def function(x):
        out = np.zeros(12)
        for i in range(12):
            out[chain(i) % 12] += x[i]
        return out

    return function


def as_read(chain):
    def function(x):
        total = 0.0
        for i in range(12):
            total += x[chain(i) % 12] * x[i]
        return total

    return function


def as_condition(chain):
    def function(x):
        total = 0.0
        for i in range(12):
            for j in range(12):
                if chain(i) % 7 <= j:
                    total += x[j]
        return total

    return function


def as_bound(chain):
    def function(x):
        out = np.zeros(12)
        for i in range(12):
            for j in range(chain(i) % 13):
                out[i] += x[j]
        return out

    return function


def as_number(chain):
    def function(x):
        total = 0.0
        for i in range(12):
            total += float(chain(i) % 50) * x[i]
        return total

    return function


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("context", [as_index, as_read, as_condition, as_bound, as_number])
def test_chains_of_integers(context: Callable[..., Any], name: str) -> None:
    check(context(INTEGERS[name]))


def test_conditions_of_loop_variables() -> None:
    both = chain("c = (c & (y < 9 + J)) & (c & (y > -J - 1))", end="c", start="c = y > -20")
    either = chain("c = (c & (y < 12 + J)) | (c ^ (y > 5 + J))", end="c", start="c = y > 0")
    for holds in (both, either):

        def function(x):
            total = 0.0
            for i in range(12):
                for j in range(12):
                    if holds(j - i):  # noqa: B023
                        total += x[i] * x[j]
            return total

        check(function)


@pytest.mark.parametrize("name", ["scaled", "added", "divided", "clamped", "selected"])
def test_derivatives(name: str) -> None:
    element = FLOATS[name]

    def summed(x):
        total = 0.0
        for i in range(12):
            total += element(x[i])
        return total

    found = ml.compile(ml.grad(summed), frontend="loops")(X)
    np.testing.assert_allclose(found, ml.vmap(ml.grad(element))(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FLOATS)
def test_softmax_of_rows(name: str) -> None:
    element = FLOATS[name]

    def softmax(x):
        scores = element(x) - np.max(element(x), axis=1, keepdims=True)
        return np.exp(scores) / np.sum(np.exp(scores), axis=1, keepdims=True)

    x = np.outer(X, X) + 0.1
    np.testing.assert_allclose(ml.compile(softmax)(x), softmax(x), rtol=1e-9)


LONG = {
    "floats": of_elements(chain("y = np.maximum(y * 0.999, J * 1e-5)", 800)),
    "integers": as_read(chain("y = (y ^ J) + 1", 800)),
}


@pytest.mark.parametrize("name", LONG)
def test_chains_are_longer_than_the_stack_of_python(name: str) -> None:
    check(LONG[name])
