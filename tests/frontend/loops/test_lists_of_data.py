"""Lists to which loops append as often as the data say, against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import check, same

X = np.random.default_rng(0).standard_normal(200)
Y = np.random.default_rng(1).standard_normal((12, 15))


def sieve(limit):
    flags = [True] * limit
    flags[0] = flags[1] = False
    primes = []
    for i in range(limit):
        if flags[i]:
            primes.append(i)
            for n in range(i * i, limit, i):
                flags[n] = False
    return primes


def first_of_each(w):
    out, seen, calls = [], np.zeros(4), [0]

    def mark(a):
        calls[0] += 1
        if seen[a] > 0:
            return False
        seen[a] = 1.0
        return True

    for i in range(len(w)):
        if mark(w[i]):
            out.append(i)
    return out, seen, calls[0]


def after_some(w):
    """The condition is computed of the loop variable alone, and changes an array."""
    out, total = [], np.zeros(2, np.int64)

    def has_enough(i):
        total[1] += i
        return total[1] > 30

    for i in range(len(w)):
        if has_enough(i) and w[i] > 0:
            out.append(w[i])
        elif has_enough(1):
            out.append(i)
    return out, total


def positive(x):
    out = []
    for v in x:
        if v > 0:
            out.append(2 * v)
    return np.array(out)


def measured(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i])
    return [len(out), sum(out), max(out), min(out), out[0], out[3], out[-1], out[len(out) // 2]]


def split(x):
    above, below = [], []
    for i in range(len(x)):
        if x[i] > 0.5:
            above.append(x[i])
        elif x[i] < -0.5:
            below.append(i)
            below.append(-i)
    return above, below


def nested(x):
    out = []
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                out.append(x[i, j])
    return out


def begun_and_continued(x):
    out = [1.0]
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i])
    for i in range(len(x)):
        if x[i] < -1:
            out.append(-x[i])
    total = 0.0
    for v in out:
        total += v
    return total, out


def in_pairs(x):
    pairs = []
    for i in range(len(x)):
        if x[i] > 0:
            pairs.append((x[i], i))
    total = 0.0
    for v, i in pairs:
        total += v * i
    return total


def limited(x, most):
    out = []
    for i in range(len(x)):
        if x[i] > 0 and len(out) < most:
            out.append(x[i])
    return out


def several_at_once(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            for j in range(3):
                out.append(x[i] + j)
    return out


def none(x):
    out = []
    for v in x:
        if v > 100:
            out.append(v)
    return out


def changed_afterwards(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    out.append(0.5)
    out.append(-1.0)
    out.sort()
    out[0] = 7.0
    total = 0.0
    for i, v in enumerate(out):
        total += i * v
    return np.array(out), len(out), total, np.array(sorted(out))


def made_in_each_iteration(x):
    total = 0.0
    for i in range(len(x)):
        smaller = []
        for j in range(len(x)):
            if x[j] < x[i]:
                smaller.append(x[j])
        if len(smaller) > 0:
            total += max(smaller)
    return total


def asked_if_empty(x):
    out = []
    total = 0.0
    for v in x:
        if v > 1:
            out.append(v)
        if out:
            total += out[-1]
    return total, 1 if out else 0


def of_rows(x):
    out = []
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            out.append(2 * x[i])
    return np.array(out)


def under_another_name(x):
    out = []
    other = out
    for v in x:
        if v > 0:
            out.append(v)
    return len(other), other[1]


def of_integers(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(i)
    total = 0.0
    for k in found:
        total += x[k] * k
    return total, found[3], 7 in found


def in_one_of_two_branches(x):
    out = []
    for v in x:
        if v > 0:
            if v > 1:
                continue
            out.append(v)
        else:
            out.append(-v)
            out.append(v)
    return np.array(out)


FUNCTIONS: list[tuple[Any, tuple[Any, ...]]] = [
    (positive, (X,)), (measured, (X,)), (split, (X,)), (nested, (Y,)), (begun_and_continued, (X,)), (in_pairs, (X,)),
    (limited, (X, 5)), (several_at_once, (X,)), (none, (X,)), (changed_afterwards, (X,)),
    (made_in_each_iteration, (X[:40],)), (of_rows, (Y,)), (under_another_name, (X,)), (of_integers, (X,)),
    (in_one_of_two_branches, (X,)), (asked_if_empty, (X,)), (asked_if_empty, (0 * X,)),
]  # fmt: skip


@pytest.mark.parametrize("function, arguments", FUNCTIONS)
def test_against_python(function: Any, arguments: tuple[Any, ...]) -> None:
    check(function, *arguments, exact=False)


def test_a_sieve() -> None:
    same(ml.compile(sieve)(100), sieve(100), True, "primes")


@pytest.mark.parametrize("seed", range(4))
def test_one_program_for_all_data(seed: int) -> None:
    compiled, x = ml.compile(split), np.random.default_rng(seed).standard_normal(30)
    for scale in (0.0, 0.4, 1.0, 10.0):
        same(compiled(scale * x), split(scale * x), False, f"scale {scale}")
    assert compiled.entries == 1


def test_what_is_not_there() -> None:
    def at(x, k):
        out = []
        for v in x:
            if v > 0:
                out.append(v)
        return out[k]

    compiled = ml.compile(at, frontend="loops")
    assert compiled(X, 2) == at(X, 2)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(X, 190)

    def largest(x):
        out = []
        for v in x:
            if v > 100:
                out.append(v)
        return max(out)

    with pytest.raises(ValueError, match="empty"):
        ml.compile(largest)(X)


def joined(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out + [1.0]  # noqa: RUF005


def branched(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    if x[0] > 0:
        out.append(5.0)
    return np.array(out)


def in_a_while_loop(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    k = x[0] * 0
    while k < 3:
        for v in x:
            if v < 0:
                out.append(v)
        k += 1
    return np.array(out)


def removed(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    out.pop()
    return np.array(out)


def iterated(x):
    out = [1.0, 2.0]
    for v in x:
        if v > 0:
            out.append(v)
    for i, v in enumerate(out):
        if v > 1.5:
            out.append(i)
    return out


def iterated_short(x):
    out = [0.5, 1.0] * 50
    for v in out:
        if x[0] > v:
            out.append(v + 1)
    return out


@pytest.mark.parametrize("function", [iterated, iterated_short])
def test_a_list_that_grows_while_it_is_iterated(function: Any) -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match=r"changes its length while|in one branch|as often as"):
        ml.compile(function, frontend="loops")(X + 1)


def test_a_list_joined_with_another() -> None:
    check(joined, X)


def compared(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out == out[:1]


def test_what_is_refused() -> None:
    with pytest.raises(ml.UnsupportedSyntaxError, match="as often as the data say"):
        ml.compile(compared, frontend="loops")(X)


@pytest.mark.parametrize("function", [branched, in_a_while_loop, removed])
def test_what_takes_room_for_any_number_of_items(function: Any) -> None:
    check(function, X)


def test_the_error_is_that_of_the_loops() -> None:
    """Not that of the branch, which tracing without loops cannot take."""
    with pytest.raises(ml.UnsupportedSyntaxError, match="a comparison of a list to which a loop") as caught:
        ml.compile(compared)(np.arange(300.0) - 5)
    assert caught.value.location is not None and caught.value.location.file == __file__


@pytest.mark.parametrize("function", [first_of_each, after_some])
def test_conditions_that_change_something(function: Any) -> None:
    """A condition is traced once more to see in which iterations it holds, which changes nothing of the program."""
    for length in (6, 40):
        check(function, np.resize(np.array([3, 1, 2, 1, 0, 3, 2]), length), exact=False)


def test_conditions_that_fail_in_other_iterations() -> None:
    def chosen(x, k):
        out, seen, table = [], 0, (0, 5, 0, 7)
        for i in range(8):
            if i < 4 and x[i] > k:
                seen += 1
                if table[i] > 1:
                    out.append(x[i])
        return out, seen

    for k in (0, 9):
        check(chosen, np.arange(8.0) + 1, k, exact=False)


def moved(x):
    a = [1.0, 2.0, 3.0]
    for i in range(len(x)):
        a[i] = a[i] + x[i]
    return a


def grown(x):
    a = []
    for i in range(len(x)):
        a.append(x[i] * 2)
    return a


@pytest.mark.parametrize("made", [moved, grown])
def test_operators_of_a_list_and_an_array_are_those_of_the_array(made):
    y = np.array([5.0, 6.0, 7.0])

    def added(x):
        a = made(x)
        a += x
        return a

    def operators(x):
        a = made(x)
        return a + x, x + a, a * x, a == x, a != 2 * x, a < x, a + y, a * y, a - x, a + x[0], a * 2

    check(added, np.array([1.0, 2.0, -3.0]))
    check(operators, np.array([1.0, 2.0, -3.0]))


def test_a_list_times_a_number_of_the_program_is_refused():
    with pytest.raises(ml.MlirmlError):
        ml.compile(lambda x, n: moved(x) * n, frontend="loops")(np.ones(3), np.int64(2))
