"""`assert` and `raise` on dynamic values: the call fails as in Python, and leaves its arguments as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS


def positive(x: Any) -> Any:
    s = np.sum(x)
    assert s > 0, "the sum must be positive"
    return s


def finite(x: Any) -> Any:
    assert np.all(np.isfinite(x))
    return x * 2


def of_a_helper(x: Any) -> Any:
    return _root(x[0]) + 1


def _root(x: Any) -> Any:
    if x < 0:
        raise ValueError("no root of a negative number")
    return np.sqrt(x)


def of_one_branch(x: Any) -> Any:
    if x[0] < 0:
        raise KeyError("negative")
    elif x[0] > 100:
        raise ArithmeticError
    else:
        y = x * 2
    return y


def of_elements(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        assert x[i] >= -1.5, "small"
        if x[i] < -0.5:
            raise ValueError("an element is negative")
        total += np.sqrt(abs(x[i]))
    return total


def after_a_store(x: Any) -> Any:
    x[0] = 5.0
    assert x[1] > 0
    x[1] = 9.0
    return x.copy()


GOOD, BAD = np.array([1.0, 2.0, 3.0]), np.array([-1.0, -2.0, np.inf])
FUNCTIONS = [positive, finite, of_a_helper, of_one_branch, of_elements, after_a_store]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_calls_that_fail(function: Any, target: str) -> None:
    program = ml.compile(function, target)
    for x in (GOOD, BAD, GOOD, -GOOD, np.array([np.nan, 1.0, 2.0]), GOOD * 200):
        given, error = x.copy(), None
        try:
            expected = function(x.copy())
        except Exception as raised:
            error = raised
        if error is None:
            np.testing.assert_allclose(program(given), expected)
            continue
        with pytest.raises(type(error)) as caught:
            program(given)
        np.testing.assert_array_equal(given, x, err_msg="a call that fails leaves its arguments as they were")
        if type(error) is not AssertionError:  # whose message pytest writes
            assert str(error) in str(caught.value)
        assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_words() -> None:
    with pytest.raises(ml.FailedAssertionError) as caught:
        ml.compile(finite)(BAD)
    assert str(caught.value).startswith("`np.all(np.isfinite(x))` does not hold\n")
    assert "    assert np.all(np.isfinite(x))" in str(caught.value)

    def numbered(x: Any) -> Any:
        for i in range(len(x)):
            assert x[i] > 0, f"element {i} is {x[i]}"
        return x

    with pytest.raises(AssertionError, match=r"`x\[i\] > 0` does not hold"):
        ml.compile(numbered)(BAD)


def test_each_call_raises_an_exception_of_its_own() -> None:
    program, found = ml.compile(of_a_helper), []
    for _ in range(3):
        with pytest.raises(ValueError, match="no root") as caught:
            program(BAD)
        found.append(caught.value)
    assert len({id(error) for error in found}) == 3


def test_what_is_known_when_tracing() -> None:
    def shape(x: Any) -> Any:
        assert x.shape == (3,), "three numbers"
        return x

    np.testing.assert_array_equal(ml.compile(shape)(GOOD), GOOD)
    with pytest.raises(AssertionError, match=r"^three numbers"):
        ml.compile(shape)(np.ones(4))


def test_transforms() -> None:
    gradient = ml.compile(ml.grad(lambda x: positive(x * x)))
    np.testing.assert_allclose(gradient(GOOD), 2 * GOOD)
    with pytest.raises(AssertionError, match="the sum must be positive"):
        gradient(GOOD * 0)
    rows = ml.compile(ml.vmap(positive))
    np.testing.assert_allclose(rows(np.stack([GOOD, GOOD * 2])), [6, 12])
    with pytest.raises(AssertionError, match="the sum must be positive"):
        rows(np.stack([GOOD, -GOOD]))


def halvings(x: Any) -> Any:
    n = 0
    while x > 1:
        x = x * 0.5
        n += 1
        if n > 20:
            raise RuntimeError("no end")
    return n


def row_sums(a: Any, out: Any) -> Any:
    i = 0
    while True:
        if i >= a.shape[0]:
            break
        j = 0
        while a[i, j] != 0:
            out[i] += a[i, j]
            j += 1
            if j == a.shape[1]:
                raise IndexError("a row without an end")
        i += 1
    return i


def steps(x: Any) -> Any:
    i = 0
    while i < len(x):  # for ever, were it not for the exception
        if x[i] < 0:
            raise ValueError("a negative number")
        else:
            i += 1
    return i


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_while_loops(target: str) -> None:
    program = ml.compile(halvings, target=target)
    assert program(8.0) == 3
    with pytest.raises(RuntimeError, match=r"^no end"):
        program(1e30)
    program = ml.compile(steps, target=target)
    assert program(GOOD) == len(GOOD)
    with pytest.raises(ValueError, match=r"^a negative number"):
        program(-GOOD)
    program, out = ml.compile(row_sums, target=target), np.zeros(2)
    assert program(np.array([[1.0, 2, 0], [3, 0, 0]]), out) == 2
    np.testing.assert_array_equal(out, [3, 3])
    with pytest.raises(IndexError, match=r"^a row without an end"):
        program(np.array([[1.0, 2, 0], [3, 4, 5]]), out)
    np.testing.assert_array_equal(out, [3, 3])  # a call that fails leaves its arguments as they were


def test_what_pytest_makes_of_assertions_is_no_state() -> None:
    assert len(ml.trace(positive, GOOD).guards) < 10


def by_format(x: Any, most: int) -> Any:
    message = "no convergence after {} iterations"
    count = 0
    while x > 1:
        x, count = x / 2, count + 1
        if count > most:
            raise ValueError(message.format(count))
    return x


def by_percent(x: Any, most: int) -> Any:
    count = 0
    while x > 1:
        x, count = x / 2, count + 1
        if count > most:
            raise RuntimeError("no convergence after %d iterations" % count)  # noqa: UP031
    return x


def by_text(x: Any, most: int) -> Any:
    count = 0
    while x > 1:
        x, count = x / 2, count + 1
        if count > most:
            raise ArithmeticError("no convergence, iterations: " + str(count), count)
    return x


@pytest.mark.parametrize("function", [by_format, by_percent, by_text], ids=lambda f: f.__name__)
def test_messages_that_are_made_of_dynamic_numbers_show_their_text(function: Any) -> None:
    compiled = ml.compile(function)
    assert compiled(5.0, 10) == function(5.0, 10)
    with pytest.raises((ValueError, RuntimeError, ArithmeticError)) as expected:
        function(1e9, 10)
    with pytest.raises(expected.type, match=r"no convergence|message\.format"):
        compiled(1e9, 10)
