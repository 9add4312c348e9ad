"""`if`, `while`, `break`, `continue` and `return` on numbers of the program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_branches_give_what_both_assign(dtype: type) -> None:
    def largest(x):
        m = x[0]
        k = 0
        for i in range(1, len(x)):
            if x[i] > m:
                m = x[i]
                k = i
            elif x[i] < -1:
                x[i] = 0
            else:
                x[i] += 1
        return m, k

    check(largest, (10 * RNG.standard_normal(12)).astype(dtype))


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_break_and_else(limit: float) -> None:
    def first(x, limit):
        k = -1
        for i in range(len(x)):
            if x[i] > limit:
                k = i
                break
        else:
            k = -5
        return k, i

    check(first, RNG.standard_normal(9), limit)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_return_from_nested_loops(limit: float) -> None:
    def place(x, limit):
        for i in range(len(x)):
            for j in range(2):
                if x[i] * (j + 1) > limit:
                    return i * 10 + j
        return -1

    check(place, RNG.standard_normal(9), limit)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_the_end_of_a_loop_around_another_one(limit: float) -> None:
    def search(x, limit):
        found = False
        for i in range(len(x)):
            last = x[i]
            for j in range(3):
                if x[j] + last > limit:
                    found = True
                    break
                x[j] -= 0.25
            if found:
                break
            x[i] += 1
        return i, last, found

    check(search, RNG.standard_normal(5), limit)


def test_continue() -> None:
    def positive(x):
        s = 0.0
        for i in range(len(x)):
            if x[i] < 0:
                continue
            if x[i] > 1:
                s += 1
                continue
            s += x[i]
        return s

    check(positive, RNG.standard_normal(9))


def test_while_with_a_swap_of_numbers() -> None:
    def gcd(a, b):
        while b != 0:
            a, b = b, a % b
        return a

    check(gcd, 48, 36)


def test_the_right_side_of_and_is_guarded() -> None:
    def insertion_sort(x):
        for i in range(1, len(x)):
            key = x[i]
            j = i - 1
            while j >= 0 and x[j] > key:
                x[j + 1] = x[j]
                j -= 1
            x[j + 1] = key

    check(insertion_sort, RNG.standard_normal(9))


def test_expressions() -> None:
    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    check(collatz, 27)


def test_early_returns() -> None:
    def clip(x):
        if x[0] > 0:
            return 1.0
        if x[1] > 0:
            return x[1]
        return 0.0

    for x in ([1.0, 2.0], [-1.0, 2.0], [-1.0, -2.0]):
        check(clip, np.array(x))


def test_softmax() -> None:
    def softmax(x):
        y = np.zeros_like(x)
        for i in range(x.shape[0]):
            m = -np.inf
            for j in range(x.shape[1]):
                m = max(m, x[i, j])
            s = 0.0
            for j in range(x.shape[1]):
                y[i, j] = math.exp(x[i, j] - m)
                s += y[i, j]
            for j in range(x.shape[1]):
                y[i, j] /= s
        return y

    check(softmax, RNG.standard_normal((3, 5)).astype(np.float32))


def test_convolution_with_padding() -> None:
    def convolution(x, w, y, stride, pad):
        for n in range(x.shape[0]):
            for o in range(w.shape[0]):
                for i in range(y.shape[2]):
                    for j in range(y.shape[3]):
                        acc = 0.0
                        for c in range(x.shape[1]):
                            for p in range(w.shape[2]):
                                for q in range(w.shape[3]):
                                    ii = i * stride - pad + p
                                    jj = j * stride - pad + q
                                    if 0 <= ii < x.shape[2] and 0 <= jj < x.shape[3]:
                                        acc += x[n, c, ii, jj] * w[o, c, p, q]
                        y[n, o, i, j] = acc

    x = RNG.standard_normal((2, 3, 6, 6)).astype(np.float32)
    check(convolution, x, x[:1, :, :3, :3], np.zeros((2, 1, 6, 6), np.float32), 1, 1)


def test_conditional_expressions_do_not_learn_from_each_other() -> None:
    def nested(b: Any, p: Any, q: Any) -> None:
        for i in range(3):
            for j in range(2, 0, -2):
                p[j, -i - 1] -= min(
                    b[j] + (p[j, i - 1] + q[j // 2, 2]),
                    (-b[j] if j % 2 == 0 and p[0, i] > 0 else (q[i, j] - p[i, 2])),
                )

    rng = np.random.default_rng(0)
    b, p, q = (rng.integers(-3, 4, shape).astype(np.int32) for shape in (3, (3, 3), (3, 3)))
    # What an `and` gives was taken for what the expression gives, where that lay at the address of the former.
    texts = set()
    for _ in range(40):
        held = [bytearray(size) for size in range(99)]
        texts.add(ml.compile(nested, frontend="loops").ir("capture", b, p, q))
        del held
    assert len(texts) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_message_with_values_of_the_program_shows_their_source(sign: int) -> None:
    limit = 3

    def roots(x):
        for i in range(len(x)):
            if x[i] < 0:
                raise ValueError(f"{x[i]:.3f} at {i!r} of {limit + 1:>4}")
            x[i] = np.sqrt(x[i])
        return x

    x = sign * np.array([1.0, 4.0])
    if sign < 0:
        with pytest.raises(ValueError, match=r"^\{x\[i\]\} at \{i\} of    4$"):
            ml.compile(roots)(x)
    else:
        check(roots, x)


def test_number_of_a_tuple_by_an_index_of_the_program() -> None:
    def chosen(x):
        return (1.5, 2.5, 3.5)[np.argmax(x)], x * [10, 20, 30][np.argmin(x)]

    x = np.array([1.0, 3.0, 2.0])
    found = ml.compile(chosen)(x)
    assert found[0] == 2.5
    np.testing.assert_array_equal(found[1], 10 * x)


def test_arrays_that_are_copied_before_a_break() -> None:
    """Both ways through a branch yield one array as two."""

    def program(x: Any, n: Any) -> Any:
        w, q, count, left = np.zeros(5, int), np.zeros(5, int), np.zeros(1, int), np.zeros(1, int)
        for i in range(n + 2):
            w = q.copy()
            left = count.copy()
            if x[i] < 0:
                break
            q[count[0]] = x[i]
            count[0] += 1
            while left[0] > 0 and w[left[0] - 1] > 2:
                left[0] -= 1
        return w, left, q

    check(program, np.array([3, 1, 4, -1, 2]), 2)
