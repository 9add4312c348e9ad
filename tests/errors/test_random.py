"""Random numbers of some generators would be drawn once in a compiled function."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

GENERATOR = np.random.default_rng(0)


def drawn(x: Any) -> Any:
    return x + np.random.bytes(3)


def new_generator(x: Any) -> Any:
    return x + np.random.default_rng().normal(size=3)


def global_generator(x: Any) -> Any:
    return x + GENERATOR.normal(size=3)


def python_random(x: Any) -> Any:
    return x + random.betavariate(1, 2)


def imported(x: Any) -> Any:
    from numpy.random import bytes

    return x + bytes(3)


def test_a_function() -> None:
    check_error(
        lambda: ml.compile(drawn)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.random.bytes` would draw once, when the function is traced
          --> test_random.py:17:16 (drawn)
            |
         17 |     return x + np.random.bytes(3)
            |                ^^^^^^^^^^^^^^^
           = help: draw with `np.random.default_rng(seed)`, or pass the numbers as an argument
        """,
    )


def test_a_generator_without_a_seed() -> None:
    check_error(
        lambda: ml.compile(new_generator)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.random.default_rng()` without a seed would draw other numbers at each call
          --> test_random.py:21:16 (new_generator)
            |
         21 |     return x + np.random.default_rng().normal(size=3)
            |                ^^^^^^^^^^^^^^^^^^^^^^^
           = help: pass an integer, `np.random.default_rng(0)`, which may be an argument of the function
        """,
    )


def test_a_global_generator() -> None:
    check_error(
        lambda: ml.compile(global_generator)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `Generator.normal` would draw once, when the function is traced
          --> test_random.py:25:16 (global_generator)
            |
         25 |     return x + GENERATOR.normal(size=3)
            |                ^^^^^^^^^^^^^^^^
           = help: draw outside, and pass the numbers as an argument
        """,
    )


def test_the_module_random() -> None:
    check_error(
        lambda: ml.compile(python_random)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `random.betavariate` would draw once, when the function is traced
          --> test_random.py:29:16 (python_random)
            |
         29 |     return x + random.betavariate(1, 2)
            |                ^^^^^^^^^^^^^^^^^^
           = help: draw outside, and pass the numbers as an argument
        """,
    )


def test_an_import_inside() -> None:
    check_error(
        lambda: ml.compile(imported)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `np.random.bytes` would draw once, when the function is traced
          --> test_random.py:33:5 (imported)
            |
         33 |     from numpy.random import bytes
            |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: draw with `np.random.default_rng(seed)`, or pass the numbers as an argument
        """,
    )
