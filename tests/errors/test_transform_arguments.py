"""Arguments of transforms that name what is not there, or do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones(3)


def doubled(x: Any) -> Any:
    return x * 2


def scaled(x: Any, n: Any) -> Any:
    return np.sum(x) * n


def test_argnums_that_is_no_number() -> None:
    check_error(
        lambda: ml.grad(scaled, argnums="x")(X, 2.0),  # type: ignore[arg-type]
        """
        mlirml.ArgumentError: grad: argnums must be the number of an argument, or several, got: 'x'
          --> test_transform_arguments.py:25:17 (<lambda>)
            |
         25 |         lambda: ml.grad(scaled, argnums="x")(X, 2.0),  # type: ignore[arg-type]
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_an_argument_named_twice() -> None:
    check_error(
        lambda: ml.grad(scaled, argnums=(0, -2))(X, 2.0),
        """
        mlirml.ArgumentError: grad: argnums=(0, -2) names an argument twice
          --> test_transform_arguments.py:38:17 (<lambda>)
            |
         38 |         lambda: ml.grad(scaled, argnums=(0, -2))(X, 2.0),
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_an_argument_that_is_missing() -> None:
    check_error(
        lambda: ml.grad(scaled)(X),
        """
        mlirml.ArgumentError: grad(scaled)(x, n): missing a required argument: 'n'
          --> test_transform_arguments.py:19 (scaled)
            |
         19 | def scaled(x: Any, n: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_complex_tangents_of_real_numbers() -> None:
    check_error(
        lambda: ml.jvp(doubled, (X,), (X * 1j,)),
        """
        mlirml.DTypeError: jvp: tangents[0] is c128[3], and what it belongs to f64[3]
          --> test_transform_arguments.py:64:17 (<lambda>)
            |
         64 |         lambda: ml.jvp(doubled, (X,), (X * 1j,)),
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: pass the real part
        """,
    )


def test_a_negative_number_of_examples() -> None:
    check_error(
        lambda: ml.vmap(doubled, in_axes=None, axis_size=-4)(X),
        """
        mlirml.ArgumentError: vmap: axis_size must be a number of examples, got: -4
          --> test_transform_arguments.py:78:17 (<lambda>)
            |
         78 |         lambda: ml.vmap(doubled, in_axes=None, axis_size=-4)(X),
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_out_axes_with_other_keys() -> None:
    check_error(
        lambda: ml.vmap(lambda x: {"a": x}, out_axes={"b": 0})(X),
        """
        mlirml.ArgumentError: vmap: out_axes {'b': 0} does not fit: the value 'a' is to be mapped
          --> test_transform_arguments.py:91:35 (<lambda>)
            |
         91 |         lambda: ml.vmap(lambda x: {"a": x}, out_axes={"b": 0})(X),
            |                                   ^^^^^^^^
           = help: `out_axes` is one number, or has the structure of what it is for
        """,
    )


def test_an_argument_of_integers_behind_others() -> None:
    check_error(
        lambda: ml.grad(np.dot, argnums=1)(X, np.arange(3)),
        """
        mlirml.DTypeError: grad: argument[1] is i64[3], and derivatives are by floats
          --> test_transform_arguments.py:105:17 (<lambda>)
             |
         105 |         lambda: ml.grad(np.dot, argnums=1)(X, np.arange(3)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: convert it with `.astype(float)`, or leave it out by `argnums`
        """,
    )


def test_a_jacobian_by_integers() -> None:
    check_error(
        lambda: ml.jacfwd(doubled)(np.arange(3)),
        """
        mlirml.DTypeError: jacfwd: argument[0] is i64[3], and derivatives are by floats
          --> test_transform_arguments.py:119:17 (<lambda>)
             |
         119 |         lambda: ml.jacfwd(doubled)(np.arange(3)),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: convert it with `.astype(float)`, or leave it out by `argnums`
        """,
    )


def test_a_gradient_of_many_results() -> None:
    check_error(
        lambda: ml.grad(ml.vmap(np.dot))(np.ones((3, 2)), np.ones((3, 2))),
        """
        mlirml.ShapeError: grad: the function must return one float, got f64[3]
          --> test_transform_arguments.py:133:17 (<lambda>)
             |
         133 |         lambda: ml.grad(ml.vmap(np.dot))(np.ones((3, 2)), np.ones((3, 2))),
             |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: return a scalar such as `np.sum(...)`; for more outputs use `ml.jacrev`, or `ml.vjp`; for further results `has_aux=True`
        """,  # noqa: E501
    )
