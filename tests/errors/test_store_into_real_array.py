"""A real NumPy array, made outside of the function, cannot be filled with traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

BUFFER = np.zeros(3)
COUNTS = np.zeros(3, int)


def store_element(x: Any) -> Any:
    BUFFER[0] = x[0]
    return BUFFER


def store_integer(x: Any) -> Any:
    COUNTS[0] = x[0]
    return COUNTS


def store_slice(x: Any) -> Any:
    BUFFER[:2] = x[:2]
    return BUFFER


def add_in_place(x: Any) -> Any:
    buffer = BUFFER
    buffer += x
    return buffer


def add_into(x: Any) -> Any:
    return np.add(x, 1, out=BUFFER)


def copy_into(x: Any) -> Any:
    np.copyto(BUFFER, x)
    return x


def test_an_element() -> None:
    check_error(
        lambda: ml.compile(store_element)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:17:5 (store_element)
            |
         17 |     BUFFER[0] = x[0]
            |     ^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_an_integer() -> None:
    check_error(
        lambda: ml.compile(store_integer)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:22:5 (store_integer)
            |
         22 |     COUNTS[0] = x[0]
            |     ^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_a_slice() -> None:
    check_error(
        lambda: ml.compile(store_slice)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:27:5 (store_slice)
            |
         27 |     BUFFER[:2] = x[:2]
            |     ^^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_an_augmented_assignment() -> None:
    check_error(
        lambda: ml.compile(add_in_place)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:33:5 (add_in_place)
            |
         33 |     buffer += x
            |     ^^^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_out() -> None:
    check_error(
        lambda: ml.compile(add_into)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:38:12 (add_into)
            |
         38 |     return np.add(x, 1, out=BUFFER)
            |            ^^^^^^^^^^^^^^^^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_copyto() -> None:
    check_error(
        lambda: ml.compile(copy_into)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:42:5 (copy_into)
            |
         42 |     np.copyto(BUFFER, x)
            |     ^^^^^^^^^^^^^^^^^^^^
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )


def test_nothing_was_stored() -> None:
    np.testing.assert_array_equal(BUFFER, np.zeros(3))
    np.testing.assert_array_equal(COUNTS, np.zeros(3))


class Counter:
    def __init__(self) -> None:
        self.counts = np.zeros(3)

    def add(self, x: Any) -> None:
        self.counts += x


def class_inside(x: Any) -> Any:
    class Inner(Counter):
        pass

    counter = Inner()
    for _ in range(2):
        counter.add(x)
    return counter.counts


def test_why_calls_are_not_replaced() -> None:
    check_error(
        lambda: ml.compile(class_inside)(np.ones(3)),
        """
        mlirml.CaptureError: the array to store into is a real NumPy array, which compiled code cannot fill
          --> test_store_into_real_array.py:140:9 (Counter.add)
             |
         140 |         self.counts += x
             |         ^^^^^^^^^^^^^^^^
           = note: nor can its calls be replaced: `class` in a function whose loops are compiled
           = help: make the array inside the function with `np.zeros` or its like, or pass it as an argument
        """,
    )
