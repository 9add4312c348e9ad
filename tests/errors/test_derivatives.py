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
    return ml.while_loop(lambda c: c < 10.0, lambda c: c * c + 1, np.sum(x))


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


def test_a_loop_without_a_bound_that_carries_much() -> None:
    with ml.config.override(checkpoint_bytes=1000):
        gradient = ml.compile(ml.grad(repeated))
    check_error(
        lambda: gradient(X, 3),
        """
        mlirml.NoDerivativeError: `scf.for` has no derivative: its derivative reads values carried into each iteration, 24 bytes, and the trip count has no known bound
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
        mlirml.ShapeError: vmap: in_axes=1 of argument[0], which has 1 dimension, [3]
          --> test_derivatives.py:94:17 (<lambda>)
            |
         94 |         lambda: ml.vmap(doubled, in_axes=1)(X),
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: give a dimension that it has, or None if all examples share it: `in_axes=(0, None)`
        """,
    )
    check_error(
        lambda: ml.vmap(np.add)(X, np.ones(4)),
        """
        mlirml.ShapeError: vmap: batches of different sizes, 3 of argument[0] and 4 of argument[1]
          --> test_derivatives.py:105:17 (<lambda>)
             |
         105 |         lambda: ml.vmap(np.add)(X, np.ones(4)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: give the dimension of the examples of each in `in_axes`, None for what all of them share
        """,
    )


def test_tangents_of_another_shape() -> None:
    check_error(
        lambda: ml.jvp(doubled, (X,), (np.ones(4),)),
        """
        mlirml.ShapeError: jvp: tangents[0] is f64[4], and what it belongs to f64[3]
          --> test_derivatives.py:119:17 (<lambda>)
             |
         119 |         lambda: ml.jvp(doubled, (X,), (np.ones(4),)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: tangents have the shapes of the arguments; `np.broadcast_to` spreads a number
        """,
    )


def test_an_argument_that_is_not_there() -> None:
    check_error(
        lambda: ml.grad(doubled, argnums=2)(X),
        """
        mlirml.ArgumentError: grad: argnums=2 of a call with 1 positional argument
          --> test_derivatives.py:133:17 (<lambda>)
             |
         133 |         lambda: ml.grad(doubled, argnums=2)(X),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_jacobian_of_complex_numbers() -> None:
    check_error(
        lambda: ml.jacrev(lambda z: z * z)(X + 1j),
        """
        mlirml.DTypeError: jacrev: Jacobians are of real floats
          --> test_derivatives.py:146:17 (<lambda>)
             |
         146 |         lambda: ml.jacrev(lambda z: z * z)(X + 1j),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: take real and imaginary parts apart; of a function of reals `ml.jacfwd` gives complex results
        """,
    )


def test_a_result_that_is_no_pair() -> None:
    check_error(
        lambda: ml.grad(lambda x: np.sum(x), has_aux=True)(X),
        """
        mlirml.ArgumentError: grad: with `has_aux` the function must return a pair, the float and the rest
          --> test_derivatives.py:160:35 (<lambda>)
             |
         160 |         lambda: ml.grad(lambda x: np.sum(x), has_aux=True)(X),
             |                                   ^^^^^^^^^
        """,
    )


def test_tangents_of_another_structure() -> None:
    check_error(
        lambda: ml.jvp(lambda p: np.sum(p["a"]), ({"a": X},), ([X],)),
        """
        mlirml.ArgumentError: jvp: the tangents have another structure than what they belong to
          --> test_derivatives.py:173:17 (<lambda>)
             |
         173 |         lambda: ml.jvp(lambda p: np.sum(p["a"]), ({"a": X},), ([X],)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: expected ["tangents[0]['a']"]
           = note: got ['tangents[0][0]']
        """,
    )


def test_tangents_that_are_too_few() -> None:
    check_error(
        lambda: ml.jvp(np.add, (X, X), (X,)),
        """
        mlirml.ArgumentError: jvp: the tangents have another structure than what they belong to
          --> test_derivatives.py:188:17 (<lambda>)
             |
         188 |         lambda: ml.jvp(np.add, (X, X), (X,)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: expected ['tangents[0]', 'tangents[1]']
           = note: got ['tangents[0]']
        """,
    )


def test_cotangents_of_another_shape() -> None:
    check_error(
        lambda: ml.vjp(doubled, X)[1](np.ones(4)),
        """
        mlirml.ShapeError: vjp: cotangents is f64[4], and what it belongs to f64[3]
          --> test_derivatives.py:203:17 (<lambda>)
             |
         203 |         lambda: ml.vjp(doubled, X)[1](np.ones(4)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: cotangents have the shapes of the results; `np.broadcast_to` spreads a number
        """,
    )


def test_results_without_cotangents() -> None:
    check_error(
        lambda: ml.vjp(lambda x: (x, x > 0), X)[1]((X, X)),
        """
        mlirml.DTypeError: vjp: 1 of the results are no floats, which have no cotangents
          --> test_derivatives.py:217:17 (<lambda>)
             |
         217 |         lambda: ml.vjp(lambda x: (x, x > 0), X)[1]((X, X)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = note: 2 cotangents were passed
           = help: differentiate a function that returns the floats only
        """,
    )


def test_in_axes_of_another_structure() -> None:
    check_error(
        lambda: ml.vmap(doubled, in_axes=(0, 0))(X),
        """
        mlirml.ArgumentError: vmap: in_axes (0, 0) does not fit: the value is to be mapped
          --> test_derivatives.py:232:17 (<lambda>)
             |
         232 |         lambda: ml.vmap(doubled, in_axes=(0, 0))(X),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: `in_axes` is one number, or has the structure of what it is for
        """,
    )


def test_batches_without_an_axis() -> None:
    check_error(
        lambda: ml.vmap(doubled, in_axes=None)(X),
        """
        mlirml.ArgumentError: vmap: no argument has a dimension of examples
          --> test_derivatives.py:246:17 (<lambda>)
             |
         246 |         lambda: ml.vmap(doubled, in_axes=None)(X),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: give an axis in `in_axes`, or `axis_size=`
        """,
    )


def test_axes_of_results() -> None:
    check_error(
        lambda: ml.vmap(doubled, out_axes=2)(X),
        """
        mlirml.ShapeError: vmap: out_axes=2 of a result with 1 dimension
          --> test_derivatives.py:16:12 (doubled)
            |
         16 |     return x * 2
            |            ^^^^^
           = help: that of the examples is one of them: give an axis from -1 to 0
        """,
    )
    check_error(
        lambda: ml.vmap(doubled, out_axes=None)(X),
        """
        mlirml.NoBatchingError: vmap: out_axes is None, and this result depends on the example
          --> test_derivatives.py:16:12 (doubled)
            |
         16 |     return x * 2
            |            ^^^^^
           = stage: transform
           = note: pass: mlirml-expand
           = help: give the axis for the examples in `out_axes`, or take one example or their mean after `ml.vmap`
        """,
    )


def test_a_checkpoint_of_an_unknown_policy() -> None:
    check_error(
        lambda: ml.grad(ml.checkpoint(doubled, policy="all"))(X),
        """
        mlirml.ArgumentError: checkpoint: policy 'all' is neither 'nothing' nor 'contractions'
          --> test_derivatives.py:287:25 (<lambda>)
             |
         287 |         lambda: ml.grad(ml.checkpoint(doubled, policy="all"))(X),
             |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_primals_that_are_no_tuple() -> None:
    check_error(
        lambda: ml.hvp(lambda x: np.sum(x**3), X, X),
        """
        mlirml.ArgumentError: hvp: primals must be a tuple with one item for each argument, got: ndarray
          --> test_derivatives.py:300:17 (<lambda>)
             |
         300 |         lambda: ml.hvp(lambda x: np.sum(x**3), X, X),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: write `(x,)` for one argument
        """,
    )


def test_tangents_that_are_no_tuple() -> None:
    check_error(
        lambda: ml.jvp(doubled, (X,), X),
        """
        mlirml.ArgumentError: jvp: tangents must be a tuple with one item for each argument, got: ndarray
          --> test_derivatives.py:314:17 (<lambda>)
             |
         314 |         lambda: ml.jvp(doubled, (X,), X),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^
           = help: write `(x,)` for one argument
        """,
    )


def test_a_loop_that_ends_when_the_data_say_so_and_carries_much() -> None:
    with ml.config.override(checkpoint_bytes=100):
        gradient = ml.compile(ml.grad(until))
    check_error(
        lambda: gradient(X),
        """
        mlirml.NoDerivativeError: `scf.for` has no derivative: its derivative reads values carried into each iteration, 8 bytes, and the trip count has no known bound
          --> test_derivatives.py:20:12 (until)
            |
         20 |     return ml.while_loop(lambda c: c < 10.0, lambda c: c * c + 1, np.sum(x))
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = stage: transform
           = note: pass: mlirml-expand{checkpoint-bytes=100}
           = help: give a bound: `ml.fori_loop(0, 1000, ...)` with `np.where(i < n, new, old)`; or make `n` static
        """,  # noqa: E501
    )


def test_a_store_into_the_lane_of_an_argument() -> None:
    check_error(
        lambda: ml.vmap(stores)(np.ones((2, 3))),
        """
        mlirml.CaptureError: vmap: the function stores into an argument that it is batched over
          --> test_derivatives.py:28:5 (stores)
            |
         28 |     x[0] = 1.0
            |     ^^^^
           = help: store into a copy, `x = x.copy()`, and return it
        """,
    )
