"""The truth of lists and of variables that may be None, beside other operands of a condition."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

ARRAYS = [[5, 3, 9], [5, 3, 8], [1, 1, 1, 1], [9, 0, 0], [7, 9, 9, 7]]


def returned(a: Any) -> Any:
    q = [0]
    while q:
        i = q.pop()
        if a[i] == 9:
            return i
        if i + 1 < len(a):
            q.append(i + 1)
    return -1


def left(a: Any) -> Any:
    q, n = deque([0]), 0
    while q:
        i = q.popleft()
        n += 1
        if a[i] == 9:
            break
        if i + 1 < len(a):
            q.append(i + 1)
    return n


def flagged(a: Any) -> Any:
    q, done, n = [0], False, 0
    while not done and q:
        i = q.pop()
        n += 1
        if a[i] == 9:
            done = True
        if i + 1 < len(a):
            q.append(i + 1)
    return n, q


def at_least_twice(a: Any) -> Any:
    q, n = [0], 0
    while n < 2 or q:
        n += 1
        if q:
            i = q.pop()
            if a[i] != 9 and i + 1 < len(a):
                q.append(i + 1)
    return n, q


def in_conditions(a: Any) -> Any:
    o = []
    for i in range(len(a)):
        if a[i] > 4:
            o.append(i)
    r = 1 if a[0] > 0 and o else 2
    if r == 1 and o:
        r += 5
    if a[1] == 0 or o or r == 2:
        r += 100
    if not (a[1] > 1 and o):
        r += 1000
    assert o or a[0] >= 0
    return r, [v for v in a if v > 1 and o]


def beside_none(a: Any) -> Any:
    found, q = None, []
    for i in range(len(a)):
        if a[i] == 9:
            found = i
        if a[i] > 4:
            q.append(i)
    if q and found:
        return found
    if q if a[0] > 3 else found:
        return 7
    return sum(1 for v in a if v > 1 and q)


def unlike_an_empty_list(a: Any) -> Any:
    q, n = [(0, 2)], 0
    while q != []:
        i, w = q.pop()
        n += w
        if a[i] != 9 and i + 1 < len(a):
            q.append((i + 1, w * 2))
        if a[i] == 3:
            break
    else:
        n += 50
    if q == []:
        n += 100
    if [] == q and a[0] > 3:  # noqa: SIM300
        n += 1000
    return n


@pytest.mark.parametrize(
    "function", [returned, left, flagged, at_least_twice, in_conditions, beside_none, unlike_an_empty_list]
)
@pytest.mark.parametrize("numbers", ARRAYS)
def test_conditions(function: Any, numbers: list[int]) -> None:
    check(function, np.array(numbers))


def beside_a_comparison(a: Any) -> Any:
    w, s = [], 0.0
    for i in range(3):
        if a[i] > 0 and w:
            s += w.pop()
    return s


def of_an_empty_list(a: Any) -> Any:
    q, n = [], 0
    while q:
        if q.pop() == a[0]:
            break
        n += 1
    return n


def of_two_lists(a: Any) -> Any:
    q, w = [1.0], []
    while q and (w or q[-1] > a[0]):
        q.pop()
    return len(q)


@pytest.mark.parametrize("function", [beside_a_comparison, of_an_empty_list, of_two_lists])
def test_lists_that_are_never_filled(function: Any) -> None:
    for frontend in ("auto", "loops"):
        x = np.array([1.0, 2.0, 3.0])
        assert ml.compile(function, frontend=frontend)(x) == function(x)


def doubled_if(x: Any, flag: bool) -> Any:
    if flag is True:
        return x * 2
    return x


def halved_unless(x: Any, flag: bool = True, other: Any = None) -> Any:
    y = x / 2 if flag is not False else x
    return y if other is None else y + other


class Layer:
    def __init__(self, bias: bool) -> None:
        self.bias = bias

    def __call__(self, x: Any) -> Any:
        return x + 1 if self.bias is True else x


def of_a_layer(x: Any, flag: bool) -> Any:
    return Layer(flag)(x)


def counted(x: Any, flag: bool) -> Any:
    done, seen, n = False, [flag] * 3, 0
    while done is False:
        n += 1
        if seen[n % 3] is not True:
            seen[n % 3] = True
        if x[n % len(x)] > 1 or n > 5:
            done = True
    return n, sum(seen), (x[0] > 1) is True, bool(x[0] > 1) is True, (x[0] > 1) is (x[1] > 1), flag is done


def found(x: Any, flag: bool) -> Any:
    answer = None
    for v in x:
        if v > 1:
            answer = flag
    return 1 if answer is True else 2 if answer is False else 3


@pytest.mark.parametrize("function", [doubled_if, halved_unless, of_a_layer, counted, found])
def test_booleans_are_compared_by_identity(function: Any) -> None:
    for frontend in ("auto", "loops"):
        compiled = ml.compile(function, frontend=frontend)
        for x in (np.array([0.5, 2.0, 1.0]), np.array([2.0, 0.5]), np.zeros(3)):
            for flag in (True, False):
                one, other = compiled(x, flag), function(x, flag)
                assert isinstance(one, tuple) == isinstance(other, tuple)
                for a, b in zip(one, other) if isinstance(one, tuple) else [(one, other)]:
                    np.testing.assert_array_equal(a, b)


def sorted_or_not(x: list[float]) -> Any:
    if list(x) != sorted(x):
        return -1.0
    return x[0]


def palindrome(x: list[float]) -> Any:
    return 1 if x == x[::-1] else 0


def comparisons(x: list[float]) -> Any:
    n = 0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        n += ((a, i) < (b, i)) + 2 * ([a, i] >= [b, i]) + 4 * ((a, 1) <= (a, b)) + 8 * ((1, (a, 2)) == (1, (b, 2)))
        n += 16 * ((a,) > ()) + 32 * ((a, 1) != (a,)) + 64 * ((a,) == [a])
    return n


def steps_to(x: list[float]) -> Any:
    i, j, n = 0, 0, 0
    while (i, j) != (len(x), int(x[0])):
        if i < len(x):
            i += 1
        else:
            j += 1
        n += 1
    return n


@pytest.mark.parametrize("function", [sorted_or_not, palindrome, comparisons, steps_to])
def test_tuples_and_lists_of_dynamic_numbers_are_compared(function: Any) -> None:
    for frontend in ("auto", "loops"):
        for x in ([1.0, 2.0, 3.0], [3.0, 2.0, 2.0], [2.0, 1.0, 2.0], [1.0, 3.0, -1.0]):
            assert ml.compile(function, frontend=frontend)(x) == function(x)


def of_complex_numbers(z: Any) -> Any:
    count = 0
    for v in z:
        if bool(v):
            count += 1
    return count, bool(z[0]), bool(z[1])


def test_complex_numbers_are_true_unless_both_parts_are_zero() -> None:
    z = np.array([0, 1j, 2, complex(np.nan, 0), -0.0])
    for dtype in (np.complex128, np.complex64):
        found, expected = ml.compile(of_complex_numbers)(z.astype(dtype)), of_complex_numbers(z.astype(dtype))
        assert [*map(int, found)] == [*map(int, expected)]


def in_arithmetic(a: Any, b: Any) -> Any:
    either, neither = a > 0 or b > 0, not (a > 0 or b > 0)
    return (not a > 0) + (not b > 0), (either + neither) * 3, ~neither, neither << 3, -(a > 1 and b > 1 and not b > 3)


def merged_by_words(x: Any, n: int) -> Any:
    first = second = False
    if x[n] > 0:
        first = True
    if x[n + 1] > 0:
        second = True
    both, either = first and second, first or second
    return both is True, either is True, (not either) is False, both + either


@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_words_between_booleans_of_python_give_such_booleans(frontend: Any) -> None:
    for a, b in ((2, 3), (0, 3), (3, 0), (-1, -1), (1.5, 0)):
        found, expected = ml.compile(in_arithmetic, frontend=frontend)(a, b), in_arithmetic(a, b)
        assert [(int(x), np.asarray(x).dtype) for x in found] == [(x, np.asarray(x).dtype) for x in expected]
    for n in range(4):
        x = np.array([1.0, 1.0, -1.0, -1.0, 1.0])
        assert ml.compile(merged_by_words, frontend=frontend)(x, n) == merged_by_words(x, n)


def mixed_in_loop(x: Any) -> Any:
    n, s, count = 0, True, 0
    while n < len(x):
        if s is True:
            count += 1
        s = x[n] > 0
        n += 1
    return count


def mixed_from_numpy(x: Any) -> Any:
    s = np.True_
    for v in x:
        if v > 2:
            s = True
    return s is True


def mixed_in_branch(x: Any) -> Any:
    s = True if x[0] > 0 else x[1] > 0
    return s is not False


def mixed_by_words(x: Any) -> Any:
    s = x[0] > 0 and (not x[1] > 5)
    return s is True


def mixed_sum(x: Any) -> Any:
    s = True
    for v in x:
        if v > 2:
            s = v > 0
    return s + s


def mixed_elsewhere(x: Any) -> Any:
    s = True
    for v in x:
        if v > 2:
            s = v > 0
    return s + 1, s == True, int(s), (not s) + (not s), 1 if s else 2, s * 2.5  # noqa: E712


@pytest.mark.parametrize(
    "function", [mixed_in_loop, mixed_from_numpy, mixed_in_branch, mixed_by_words, mixed_sum, mixed_elsewhere]
)
def test_booleans_that_are_pythons_or_numpys_are_not_told_apart(function: Any) -> None:
    x = np.array([1.0, 2.0, 3.0, -0.5])
    if function is mixed_elsewhere:
        assert ml.compile(function)(x) == function(x)
        return
    with pytest.raises(ml.UnsupportedSyntaxError, match="one of Python's or of NumPy's, depending on data"):
        ml.compile(function)(x)
