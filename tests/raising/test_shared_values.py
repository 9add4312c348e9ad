"""Loops over values that are used twice, many times in a row: a walk of their tree would never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

# mypy: disable-error-code="no-untyped-def"

DOUBLINGS = 60
X = np.linspace(0.1, 0.9, 12)


def scaled(y):
    for _ in range(DOUBLINGS):
        y = y * 0.5 + y * 0.49
    return y


def squared(y):
    for _ in range(DOUBLINGS):
        y = y * y
    return y


def added(y):
    for _ in range(DOUBLINGS):
        y = (y + 0.1) + (y - 0.2)
    return y * 0.5**DOUBLINGS


def divided(y):
    for _ in range(DOUBLINGS):
        y = (1.0 + y) / (2.0 + y)
    return y


def clamped(y):
    for _ in range(DOUBLINGS):
        y = np.minimum(np.maximum(y, 0.2), np.maximum(y - 0.01, 0.3))
    return y


def selected(y):
    for _ in range(DOUBLINGS):
        y = np.where(y > 0.5, y - 0.1, y + 0.1)
    return y


def masked(y):
    found = y > 0.3
    for _ in range(DOUBLINGS):
        found = (found & (y > 0.2)) & (found & (y < 0.8))
    return np.where(found, y, 0.0)


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


CHAINS = (scaled, squared, added, divided, clamped, selected, masked)
CONTEXTS = (of_elements, of_a_sum, of_an_invariant, of_a_condition, of_products, of_a_recurrence, of_a_maximum)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_chains_of_floats(context: Callable[..., Any], chain: Callable[..., Any]) -> None:
    function = context(chain)
    np.testing.assert_allclose(ml.compile(function, frontend="loops")(X), function(X), rtol=1e-12)


def mixed(k):
    for _ in range(DOUBLINGS):
        k = (k ^ (k << 3)) + (k >> 2) & 1023
    return k


def summed(k):
    for j in range(DOUBLINGS):
        k = (k + j) + (k + 1) - k
    return k


def limited(k):
    for j in range(DOUBLINGS):
        k = min(max(k, j - 40), max(k - 1, 2))
    return k


def multiplied(k):
    for _ in range(DOUBLINGS):
        k = k * k % 1009 + k
    return k


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


@pytest.mark.parametrize("chain", [mixed, summed, limited, multiplied])
@pytest.mark.parametrize("context", [as_index, as_read, as_condition, as_bound, as_number])
def test_chains_of_integers(context: Callable[..., Any], chain: Callable[..., Any]) -> None:
    function = context(chain)
    np.testing.assert_allclose(ml.compile(function, frontend="loops")(X), function(X), rtol=1e-12)


def test_conditions_of_loop_variables() -> None:
    def both(x):
        total = 0.0
        for i in range(12):
            for j in range(12):
                found = j > i - 20
                for k in range(DOUBLINGS):
                    found = (found & (j < 9 + k)) & (found & (i - j < k + 1))
                if found:
                    total += x[i] * x[j]
        return total

    def either(x):
        out = np.zeros((12, 12))
        for i in range(12):
            for j in range(12):
                found = j > i
                for k in range(DOUBLINGS):
                    found = (found & (j < 12 + k)) | (found ^ (i > 5 + k))
                if found:
                    out[i, j] = x[i] * x[j]
        return out

    for function in (both, either):
        np.testing.assert_allclose(ml.compile(function, frontend="loops")(X), function(X), rtol=1e-12)


@pytest.mark.parametrize("chain", [scaled, added, divided, clamped, selected])
def test_derivatives(chain: Callable[..., Any]) -> None:
    def summed(x):
        total = 0.0
        for i in range(12):
            total += chain(x[i])
        return total

    np.testing.assert_allclose(
        ml.compile(ml.grad(summed), frontend="loops")(X), ml.vmap(ml.grad(chain))(X), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("chain", CHAINS)
def test_softmax_of_rows(chain: Callable[..., Any]) -> None:
    def softmax(x):
        scores = chain(x) - np.max(chain(x), axis=1, keepdims=True)
        return np.exp(scores) / np.sum(np.exp(scores), axis=1, keepdims=True)

    x = np.outer(X, X) + 0.1
    np.testing.assert_allclose(ml.compile(softmax)(x), softmax(x), rtol=1e-9)


LENGTH = 1500


def long_floats(y):
    for j in range(LENGTH):
        y = np.maximum(y * 0.999, j * 1e-5)
    return y


def long_integers(k):
    for j in range(LENGTH):
        k = (k ^ j) + 1
    return k


@pytest.mark.parametrize("function", [of_elements(long_floats), as_read(long_integers)], ids=["floats", "integers"])
def test_chains_are_longer_than_the_stack_of_python(function: Callable[..., Any]) -> None:
    unrolled = ml.compile(function, frontend="loops")
    np.testing.assert_allclose(unrolled(X), function(X), rtol=1e-12)
