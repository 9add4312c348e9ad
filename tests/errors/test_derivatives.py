"""Transforms of functions that have no derivative, or no batch, of the kind asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones(3)


def doubled(x: Any) -> Any:
    return x * 2


def until(x: Any) -> Any:
    return ml.while_loop(lambda c: c < 10.0, lambda c: c * 2, np.sum(x))


def repeated(x: Any, n: Any) -> Any:
    return ml.fori_loop(0, n, lambda i, c: np.sin(c), np.sum(x) * x)[0]


def stores(x: Any) -> Any:
    x[0] = 1.0
    return np.sum(x)


def test_a_result_that_is_no_number() -> None:
    check_error(
        lambda: ml.grad(doubled)(X),
        """
        mlirml.ShapeError: grad: the function must return one float, got f64[3]
          --> test_derivatives.py:16:12 (doubled)
            |
         16 |     return x * 2
            |            ^^^^^
           = help: return a scalar such as `np.sum(...)`; for more outputs use `ml.jacrev`, or `ml.vjp`; for further results `has_aux=True`
        """,  # noqa: E501
    )


def test_an_argument_of_integers() -> None:
    check_error(
        lambda: ml.grad(doubled)(3),
        """
        mlirml.DTypeError: grad: argument[0] is i64[], and derivatives are by floats
          --> test_derivatives.py:48:17 (<lambda>)
            |
         48 |         lambda: ml.grad(doubled)(3),
            |                 ^^^^^^^^^^^^^^^^^^^
           = help: convert it with `.astype(float)`, or leave it out by `argnums`
        """,
    )


def test_a_loop_that_ends_when_the_data_say_so() -> None:
    check_error(
        lambda: ml.grad(until)(X),
        """
        mlirml.NoDerivativeError: `scf.while` has no derivative: the number of rounds is only known when it has ended
          --> test_derivatives.py:20:12 (until)
            |
         20 |     return ml.while_loop(lambda c: c < 10.0, lambda c: c * 2, np.sum(x))
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = stage: transform
           = note: pass: mlirml-expand
           = help: use `ml.fori_loop` or `ml.scan` with a bound, and `ml.cond` or `np.where` to stop changing earlier
        """,
    )


def test_a_loop_without_a_bound_that_carries_much() -> None:
    with ml.config.override(checkpoint_bytes=1000):
        gradient = ml.compile(ml.grad(repeated))
    check_error(
        lambda: gradient(X, 3),
        """
        mlirml.NoDerivativeError: `scf.for` has no derivative: its derivative reads what each round began with, 24 bytes, and how many rounds there may be is not known
          --> test_derivatives.py:24:12 (repeated)
            |
         24 |     return ml.fori_loop(0, n, lambda i, c: np.sin(c), np.sum(x) * x)[0]
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = stage: transform
           = note: pass: mlirml-expand{checkpoint-bytes=1000}
           = help: give a bound: `ml.fori_loop(0, 1000, ...)` with `np.where(i < n, new, old)`; or make `n` static
        """,  # noqa: E501
    )


def test_a_store_into_the_argument() -> None:
    check_error(
        lambda: ml.grad(stores)(X),
        """
        mlirml.CaptureError: grad: the function stores into an argument that it is differentiated by
          --> test_derivatives.py:28:5 (stores)
            |
         28 |     x[0] = 1.0
            |     ^^^^
           = help: store into a copy, `x = x.copy()`
        """,
    )


def test_axes_of_batches() -> None:
    check_error(
        lambda: ml.vmap(doubled, in_axes=1)(X),
        """
        mlirml.ShapeError: vmap: in_axes=1 of argument[0], which has 1 dimensions, [3]
          --> test_derivatives.py:110:17 (<lambda>)
             |
         110 |         lambda: ml.vmap(doubled, in_axes=1)(X),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
    check_error(
        lambda: ml.vmap(np.add)(X, np.ones(4)),
        """
        mlirml.ShapeError: vmap: batches of different sizes, 3 of argument[0] and 4 of argument[1]
          --> test_derivatives.py:120:17 (<lambda>)
             |
         120 |         lambda: ml.vmap(np.add)(X, np.ones(4)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_tangents_of_another_shape() -> None:
    check_error(
        lambda: ml.jvp(doubled, (X,), (np.ones(4),)),
        """
        mlirml.ShapeError: jvp: tangents[0] is f64[4], and what it belongs to f64[3]
          --> test_derivatives.py:133:17 (<lambda>)
             |
         133 |         lambda: ml.jvp(doubled, (X,), (np.ones(4),)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )
