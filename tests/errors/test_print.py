"""Printing shows values when the program runs; other texts would need them before."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def printing(x: Any) -> Any:
    print("x is", x, f"or {x}", np.zeros(2))
    return x


def formatted(x: Any) -> Any:
    return f"{x:.2f}"


def test_a_format() -> None:
    check_error(
        lambda: ml.compile(formatted)(2.0),
        """
        mlirml.TracedValueError: formatting needs the value of f64[], known only at run time
          --> test_print.py:21:12 (formatted)
            |
         21 |     return f"{x:.2f}"
            |            ^^^^^^^^^^
           = help: `print(x)` shows the value when the program runs; the text itself is made before
        """,
    )


def test_printing_shows_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    ml.compile(printing)(np.ones((2, 3), np.float32))
    assert capsys.readouterr().out == "x is [[1. 1. 1.]\n [1. 1. 1.]] or [[1. 1. 1.]\n [1. 1. 1.]] [0. 0.]\n"


def length_of_text(x: Any) -> Any:
    return len(str(x * 2.0))


def length_of_list(x: Any) -> Any:
    return len(str([x * 2.0]))


def of_representation(x: Any) -> Any:
    return len(repr(x * 2.0))


def by_percent(x: Any) -> Any:
    return len("%5.2f" % x)  # noqa: UP031


def in_a_loop(x: Any) -> Any:
    total = 0
    for _ in range(3):
        total += len(str([x]))
    return total


@pytest.mark.parametrize(
    ("function", "subject", "line"),
    [
        (length_of_text, "`str()`", "len(str(x * 2.0))"),
        (length_of_list, "`str()`", "len(str([x * 2.0]))"),
        (of_representation, "`repr()`", "len(repr(x * 2.0))"),
        (by_percent, "formatting", 'len("%5.2f" % x)'),
        (in_a_loop, "`str()`", "total += len(str([x]))"),
    ],
)
def test_texts_of_values_of_the_program(function: Any, subject: str, line: str) -> None:
    with pytest.raises(ml.TracedValueError, match=re.escape(f"{subject} needs the value of f64")) as failure:
        ml.compile(function)(2.5)
    assert line in str(failure.value)
    assert "`print(x)` shows the value" in str(failure.value)


def test_texts_of_integers() -> None:
    def digits(n: int) -> Any:
        by_percent = len("%d" % n)  # noqa: UP031
        return len(str(abs(n))), sum(int(c) for c in str(n)), str(n) == str(n)[::-1], by_percent, int(repr(n)) + 1

    compiled = ml.compile(digits)
    for n in (7, 12345, 12321):
        assert tuple(compiled(n)) == digits(n)


def printing_texts(x: Any, n: Any) -> Any:
    print("%s|%r" % (x, n), f"{[x, n]}")  # noqa: UP031
    print(repr(x), str([x]), " ".join(map(str, [x, n])), f"{x!r:>8}|{x!s:>8}|")
    for i in range(n):
        print(str([i]), repr(i), str(x), format(i, "03d"), str((x, i)))
    return x


@pytest.mark.parametrize("x", [2.5, np.array([1.0, 2.0])])
def test_printed_texts_are_those_of_python(x: Any, capsys: pytest.CaptureFixture[str]) -> None:
    printing_texts(x, 2)
    expected = capsys.readouterr().out
    ml.compile(printing_texts)(x, 2)
    assert capsys.readouterr().out == expected
