"""Texts and keys of numbers in loops: they are needed when the function is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

NAMES = {0: 1.0, 1: 2.0}
WORDS = {"w0": 1.0, "w1": 4.0}


def text(x: Any) -> None:
    for i in range(len(x)):
        x[i] = len(str(x[i]))


def formatted(x: Any) -> None:
    for i in range(len(x)):
        WORDS[f"{x[i]} of {i}"] = 1
        x[i] = 0.0


def looked_up(x: Any) -> None:
    for i in range(len(x)):
        x[i] = NAMES[x[i]]


def by_round(x: Any) -> None:
    for i in range(len(x)):
        x[i] = NAMES[i] + WORDS[f"w{i}"] + WORDS["w" + str(i)]


def many(x: Any) -> None:
    for i in range(len(x)):
        x[i] = NAMES[i % 2]


def test_text_of_an_element() -> None:
    check_error(
        lambda: ml.compile(text)(np.ones(3)),
        """
        mlirml.TracedValueError: `str()` needs the value of f64[], known only at run time
          --> test_loops_text.py:18:20 (text)
            |
         18 |         x[i] = len(str(x[i]))
            |                    ^^^^^^^^^
           = help: `print(x)` shows the value when the program runs; the text itself is made before
        """,
    )


def test_a_format_without_a_specification() -> None:
    check_error(
        lambda: ml.compile(formatted)(np.ones(3)),
        """
        mlirml.TracedValueError: formatting needs the value of f64[], known only at run time
          --> test_loops_text.py:23:15 (formatted)
            |
         23 |         WORDS[f"{x[i]} of {i}"] = 1
            |               ^^^^^^^^^^^^^^^^
           = help: `print(x)` shows the value when the program runs; the text itself is made before
        """,
    )


def test_an_element_as_a_key() -> None:
    check_error(
        lambda: ml.compile(looked_up)(np.ones(3)),
        """
        mlirml.TracedValueError: an index needs the value of f64[], known only at run time
          --> test_loops_text.py:29:16 (looked_up)
            |
         29 |         x[i] = NAMES[x[i]]
            |                ^^^^^^^^^^^
           = help: index an array of the program, `np.asarray(table)[i]`, or `np.stack(items)[i]` for a list; or make the argument static (`static_argnums`)
        """,  # noqa: E501
    )


def test_the_number_of_a_round_unrolls_the_loop() -> None:
    ml.compile(by_round)(x := np.zeros(2))
    assert x.tolist() == [3.0, 10.0]


def test_too_many_rounds_to_unroll() -> None:
    check_error(
        lambda: ml.compile(many)(np.ones(300)),
        """
        mlirml.TracedValueError: an index needs the value of i64[], known only at run time
          --> test_loops_text.py:39:16 (many)
            |
         39 |         x[i] = NAMES[i % 2]
            |                ^^^^^^^^^^^^
           = note: it differs between iterations of a loop with 300 iterations; up to 256 would be unrolled
           = help: index an array of the program, `np.asarray(table)[i]`, or `np.stack(items)[i]` for a list; or make the argument static (`static_argnums`)
        """,  # noqa: E501
    )
