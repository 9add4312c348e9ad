"""`with np.errstate`, `:=`, and variables that a loop with `else` assigns on all ways."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check

V = np.random.default_rng(3).normal(size=12)
M = V.reshape(3, 4)


def test_silenced_warnings() -> None:
    def logs(x):
        s = 0.0
        with np.errstate(all="ignore"), np.errstate(divide="ignore"):
            for i in range(len(x)):
                with np.errstate(invalid="ignore"):
                    t = np.log(abs(x[i]))
                if t > 0.5:
                    break
                s += t
        return s

    check(logs, V, exact=False)


def test_names_within_statements() -> None:
    def sums(x):
        s, n = 0.0, 0
        for i in range(len(x)):
            if (t := x[i]) > 0:
                s += t
            elif (u := t * 2) < -1:
                s += u
            n = (m := n + 1) + 0 * m
            s += (q := x[i]) * q
        return s, n, m

    check(sums, V)


@pytest.mark.parametrize("limit", [0.5, 9.0])
def test_a_search_with_else(limit: float) -> None:
    def position(x, limit):
        for i in range(len(x)):
            if x[i] > limit:
                k = i
                break
        else:
            k = -1
        return k

    def target(x, limit):
        for k in range(len(x)):
            if x[k] > limit:
                break
        else:
            k = -1
        return k

    def value(x, limit):
        i = 0
        while i < len(x):
            if x[i] > limit:
                v = x[i]
                break
            i += 1
        else:
            v = 0.5
        return v

    for search in (position, target, value):
        check(search, V, limit)


@pytest.mark.parametrize("limit", [0.1, 1.0, 9.0])
def test_searches_in_the_rounds_of_a_loop(limit: float) -> None:
    def firsts(x, limit):
        s = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if x[i, j] > limit:
                    v, k = x[i, j], j
                    break
                if x[i, j] < -limit:
                    v, k = -x[i, j], -j
                    break
            else:
                v, k = 0.5, 100
            s += v * k
        return s

    check(firsts, M, limit)


def test_an_exception_that_is_raised_for_certain_is_the_users() -> None:
    def total(x, mode):
        s = 0.0
        for i in range(len(x)):
            if mode == "abs":
                s += abs(x[i])
            else:
                raise KeyError(mode)
        return s

    with pytest.raises(KeyError, match="sum"):
        ml.compile(total, static_argnums=1)(V, "sum")
