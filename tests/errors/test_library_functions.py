"""Functions of C that ask a number for a value that it does not have yet, and raise an error of their own."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import mlirml as ml
from tests.errors.shown import check_error


def bits(x: Any) -> Any:
    return struct.unpack(">i", struct.pack(">f", x))[0]


def decimal(x: Any) -> Any:
    return Decimal(x) + 1


def test_an_error_of_a_library_instead_of_ours() -> None:
    check_error(
        lambda: ml.compile(bits)(2.5),
        """
        mlirml.TracedValueError: `struct.pack()` needs the value of f64[], known only at run time
          --> test_library_functions.py:14:32 (bits)
            |
         14 |     return struct.unpack(">i", struct.pack(">f", x))[0]
            |                                ^^^^^^^^^^^^^^^^^^^^
           = help: write it with `np.` functions, or call it outside and pass its result as an argument
        """,
    )
    assert ml.compile(bits)(3) == bits(3)


def test_a_class_that_knows_no_numbers_of_the_program() -> None:
    check_error(
        lambda: ml.compile(decimal)(2.5),
        """
        mlirml.DTypeError: conversion from Traced to Decimal is not supported: its value is known only at run time
          --> test_library_functions.py:18:12 (decimal)
            |
         18 |     return Decimal(x) + 1
            |            ^^^^^^^^^^
           = help: write it with numbers of Python's and NumPy's, or call it outside and pass its result
        """,
    )
