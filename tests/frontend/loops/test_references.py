"""Arrays that variables refer to: exchanged, rebound, chosen by branches, iterated over."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from mlirml.frontend.loops.for_loop import ForLoop

from .against_python import check

RNG = np.random.default_rng(2)
V = RNG.standard_normal(9)


@pytest.mark.parametrize("rounds", [0, 3, 4])
def test_arrays_exchanged_in_each_round(rounds: int) -> None:
    def sweep(a, b):
        for _ in range(rounds):
            for i in range(1, 8):
                b[i] = a[i - 1] + a[i + 1]
            a, b = b, a
        a[0] = 100
        return a[3], b[2]

    check(sweep, V, np.zeros(9))


@pytest.mark.parametrize("rounds", [0, 3, 4])
def test_arrays_exchanged_as_often_as_told_at_run_time(rounds: int) -> None:
    def sweep(a, b, n):
        for _ in range(n):
            for i in range(1, 8):
                b[i] = a[i - 1] + a[i + 1]
            a, b = b, a
        return a[3], b[2]

    check(sweep, V, np.zeros(9), rounds)


@pytest.mark.parametrize("rounds", [0, 3, 4])
def test_arrays_exchanged_in_a_while(rounds: int) -> None:
    def count(a, b, n):
        while n > 0 and a[2] < 100:
            b[1:-1] = a[:-2] + a[2:]
            b[0] = n
            a, b = b, a
            n -= 1
        return a + 2 * b

    def until(a, b, tolerance):
        error = 1.0
        while error > tolerance:
            error = 0.0
            for i in range(1, 8):
                b[i] = 0.5 * (a[i - 1] + a[i + 1])
                error = max(error, abs(b[i] - a[i]))
            a, b = b, a
        return a[3]

    check(count, V, np.zeros(9), rounds)
    check(until, V, V.copy(), 0.2 / (rounds + 1))


def test_arrays_exchanged_in_a_branch() -> None:
    def sweep(a, b, c):
        if c > 0:
            for _ in range(3):
                for i in range(9):
                    b[i] += a[i]
                a, b = b, a

    check(sweep, V, 2 * V, 1.0)
    check(sweep, V, 2 * V, -1.0)


def test_three_arrays_in_turn() -> None:
    def sweep(a, b, c):
        for _ in range(4):
            for i in range(1, 8):
                c[i] += a[i - 1] + b[i + 1]
            a, b, c = b, c, a
        return a

    check(sweep, V, 2 * V, 3 * V)


def test_a_name_for_a_new_array_in_each_round() -> None:
    def jacobi(a):
        x = np.zeros(9)
        for _ in range(10):
            new = np.zeros(9)
            for i in range(9):
                new[i] = a[i] + x[i] / 2
            x = new
        x[0] = 5
        return x

    def relax(x, n):
        for _ in range(n):
            x = x * 0.5 + 1
        return x

    check(jacobi, V)
    check(relax, V, 5)


def test_one_array_or_another() -> None:
    def total(a, b, c):
        x = a if c > 0 else b
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s

    check(total, V, 2 * V, 1.0)
    check(total, V, 2 * V, -1.0)


def test_a_store_into_one_of_them_is_not_missed() -> None:
    def wrong(a, b, n):
        x = a
        s = 0.0
        for i in range(n):
            a[i] = 5
            s += x[i]
            x = b
        return s

    with pytest.raises(ml.CaptureError, match="`x` refers to an array that the loop stores into"):
        ml.compile(wrong)(V.copy(), V.copy(), 3)

    def late(a, b, c):
        x = a if c > 0 else b
        a[0] = 1
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s

    with pytest.raises(ml.CaptureError, match="one of them was stored into since then"):
        ml.compile(late)(V.copy(), V.copy(), 3)


def test_iterables() -> None:
    def walk(a, v):
        s = 0.0
        for row in a:
            for k, x in enumerate(row):
                s += k * x
        for x, y in zip(v, v[::-1]):
            s += x * y
        for i in reversed(range(5)):
            s = s * 0.5 + i
        for k, i in enumerate(range(2, 9, 3)):
            v[k] = i
        for x in [1, 2.5]:
            s += x
        return s

    check(walk, RNG.random((3, 4)), V)


def test_tuples_of_numbers() -> None:
    def largest(x):
        best = (0.0, -1)
        for i in range(len(x)):
            if x[i] > best[0]:
                best = (x[i], i)
        return best

    def fibonacci(n):
        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        return a

    check(largest, V)
    check(fibonacci, 30)


def test_windows() -> None:
    def windows(x, y):
        for i in range(len(x) - 2):
            y[i] = np.sum(x[i : i + 3])
            x[i : i + 2] *= 2

    def columns(a):
        b = a.T
        for i in range(a.shape[1]):
            column = a[:, i]
            for j in range(a.shape[0]):
                column[j] += b[i, j] * a[0, i]
                b[i, j] -= a[j][i]
            a[1:-1, i] = a[:-2, i] + column[2:]
            a[:, i][::-1] += 1

    check(windows, V, np.zeros(9))
    check(columns, RNG.random((5, 7)))


def test_loops_over_lists_and_triangular_slices_are_unrolled() -> None:
    def layers(x, ws):
        for i in range(len(ws)):
            ws[i] *= 2
            x = np.maximum(x @ ws[i], 0)
        return x

    def eliminate(a):
        for k in range(a.shape[0]):
            for i in range(k + 1, a.shape[0]):
                a[i, k] /= a[k, k]
                a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]

    check(layers, RNG.random((2, 4)), [RNG.random((4, 4)) for _ in range(3)])
    check(eliminate, RNG.random((5, 5)) + 5 * np.eye(5), exact=False)


def test_steps_known_at_run_time() -> None:
    def sieve(n):
        flags = np.ones(50, dtype=bool)
        flags[0] = flags[1] = False
        i = n
        while i * i < 50:
            if flags[i]:
                for j in range(i * i, 50, i):
                    flags[j] = False
            i += 1
        return flags

    check(sieve, 2)


def test_temporaries_of_one_name_in_nested_rounds() -> None:
    def program(a, b):
        for i in range(len(a)):
            for j in range(3):
                t = np.zeros((2, 2))
                t[0, j % 2] = a[i]
                b[j] += t[0, 0] + t[0, 1]
                for k in range(2):
                    t = np.zeros(5)
                    t[k] = b[j]
                    a[k] += t[k]

    check(program, V, np.zeros(9))


def test_arrays_that_are_seen_to_be_new_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop is not written a first time to learn that `h + x` is another array than `h`."""
    attempts = []
    write = ForLoop.write
    monkeypatch.setattr(ForLoop, "write", lambda self, *given: attempts.append(self) or write(self, *given))

    def recurrence(x, h, n):
        u, v = h, h * 0.5
        for _ in range(n):
            u, v = 2 * u - v + x, u
        return u, v

    check(recurrence, V, np.ones(9), 70, targets=("cpu",))
    assert len(attempts) == 1


def test_new_arrays_next_to_those_that_are_stored_into() -> None:
    def sweep(x, h):
        a = x
        for i in range(70):
            b = a
            a = a + 1.0
            b[0] = i
        return a, x, h

    def kept(x, h):
        a, b = x, h
        for i in range(70):
            a = b
            b = b * 1.01 + x
            x[i % 9] = a[3]
        a[0] = 5.0
        return a, b, x

    def constant(x, h):
        a = x
        for _ in range(70):
            a = V * 2
        return a + h

    check(constant, V, np.ones(9), targets=("cpu",))
    for function in (sweep, kept):
        with pytest.raises(ml.errors.CaptureError, match=r"in (the next|other) iterations?"):
            ml.compile(function, frontend="loops")(V.copy(), np.ones(9))
