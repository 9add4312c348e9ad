from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

Z = np.ones(3, np.complex64)


def unwrapped(x: Any) -> Any:
    return np.unwrap(x)


def floor(x: Any) -> Any:
    return np.floor(x)


def store(x: Any) -> Any:
    x[0] = 1j


def add_in_place(x: Any, z: Any) -> Any:
    x += z


def test_an_operation_without_a_complex_form() -> None:
    check_error(
        lambda: ml.compile(unwrapped)(Z),
        """
        mlirml.DTypeError: unwrap: not compiled for complex numbers
          --> test_complex.py:14:12 (unwrapped)
            |
         14 |     return np.unwrap(x)
            |            ^^^^^^^^^^^^
           = help: compute real and imaginary parts apart: `x.real`, `x.imag`
        """,
    )


def test_an_operation_that_numpy_refuses() -> None:
    check_error(
        lambda: ml.compile(floor)(Z),
        """
        mlirml.DTypeError: floor: not defined for c64, as in NumPy
          --> test_complex.py:18:12 (floor)
            |
         18 |     return np.floor(x)
            |            ^^^^^^^^^^^
        """,
    )


def test_a_store_into_a_real_array() -> None:
    check_error(
        lambda: ml.compile(store)(np.ones(3)),
        """
        mlirml.DTypeError: assignment: a complex number cannot be stored into f64[]
          --> test_complex.py:22:5 (store)
            |
         22 |     x[0] = 1j
            |     ^^^^
           = help: store its real part, or make the array complex: `x.astype(complex)`
        """,
    )


def test_in_place_into_a_real_array() -> None:
    check_error(
        lambda: ml.compile(add_in_place)(np.ones(3), Z),
        """
        mlirml.DTypeError: cannot store c128[3] in place into f64[3]
          --> test_complex.py:26:5 (add_in_place)
            |
         26 |     x += z
            |     ^^^^^^
           = help: make a new array, `x = x + y`, or convert the result with `.astype(np.float64)`
        """,
    )


def test_a_byte_swapped_array() -> None:
    check_error(
        lambda: ml.compile(floor)(Z.astype(">c8")),
        """
        mlirml.DTypeError: argument `x` has byte-swapped dtype '>c8'
           = help: convert it with `x.astype(x.dtype.newbyteorder('='))`
        """,
    )
