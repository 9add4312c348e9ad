"""Functions with derivatives of their users' that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones(3)


def with_rule(rule: Callable[..., Any] | None) -> Callable[..., Any]:
    @ml.custom_jvp
    def double(x: Any) -> Any:
        return x * 2

    if rule is not None:
        double.defjvp(rule)
    return lambda x: np.sum(double(x))


def scaled_from_outside(w: Any) -> Any:
    function = ml.custom_jvp(lambda x: x * w)
    function.defjvp(lambda p, t: (p[0] * w, w * t[0]))
    return np.sum(function(X))


def reversed_from_outside(w: Any) -> Any:
    function = ml.custom_vjp(lambda x: x * w)
    function.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w,))
    return np.sum(function(X))


def named(x: Any, *, n: int) -> Any:
    return x * n


def test_no_rule() -> None:
    check_error(
        lambda: ml.grad(with_rule(None))(X),
        """
        mlirml.ArgumentError: custom_jvp: `double` has no derivative yet
          --> test_custom_derivatives.py:23:29 (<lambda>)
            |
         23 |     return lambda x: np.sum(double(x))
            |                             ^^^^^^^^^
           = help: call `double.defjvp(rule)` first
        """,
    )


def test_a_rule_that_returns_no_pair() -> None:
    check_error(
        lambda: ml.grad(with_rule(lambda p, t: t[0]))(X),
        """
        mlirml.CaptureError: custom_jvp: the rule of `double` must return a pair (result, tangent of the result)
          --> test_custom_derivatives.py:58:48 (<lambda>)
            |
         58 |         lambda: ml.grad(with_rule(lambda p, t: t[0]))(X),
            |                                                ^^^^
        """,
    )


def test_a_tangent_of_another_structure() -> None:
    check_error(
        lambda: ml.grad(with_rule(lambda p, t: (p[0], (t[0], t[0]))))(X),
        """
        mlirml.ArgumentError: custom_jvp: the rule of `double` returns a tangent of another structure than the result
          --> test_custom_derivatives.py:71:48 (<lambda>)
            |
         71 |         lambda: ml.grad(with_rule(lambda p, t: (p[0], (t[0], t[0]))))(X),
            |                                                ^^^^^^^^^^^^^^^^^^^^
           = note: the result ['result']
           = note: the tangent ['tangent[0]', 'tangent[1]']
        """,
    )


def test_a_tangent_of_another_shape() -> None:
    check_error(
        lambda: ml.grad(with_rule(lambda p, t: (p[0], np.sum(t[0]))))(X),
        """
        mlirml.ShapeError: custom_jvp: the tangent of result of `double` is f64[], the result f64[3]
          --> test_custom_derivatives.py:86:48 (<lambda>)
            |
         86 |         lambda: ml.grad(with_rule(lambda p, t: (p[0], np.sum(t[0]))))(X),
            |                                                ^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_floats_from_outside() -> None:
    for transform in (lambda: ml.grad(scaled_from_outside)(2.0), lambda: ml.jvp(scaled_from_outside, (2.0,), (1.0,))):
        check_error(
            transform,
            """
            mlirml.NoDerivativeError: a function with `ml.custom_jvp` uses a float from outside by which is differentiated
              --> test_custom_derivatives.py:29:19 (scaled_from_outside)
                |
             29 |     return np.sum(function(X))
                |                   ^^^^^^^^^^^
               = stage: transform
               = note: pass: mlirml-expand
               = help: pass it to the function as an argument, or put it into `ml.stop_gradient`
            """,  # noqa: E501
        )
    check_error(
        lambda: ml.grad(reversed_from_outside)(2.0),
        """
        mlirml.NoDerivativeError: a function with `ml.custom_vjp` uses a float from outside by which is differentiated
          --> test_custom_derivatives.py:35:19 (reversed_from_outside)
            |
         35 |     return np.sum(function(X))
            |                   ^^^^^^^^^^^
           = stage: transform
           = note: pass: mlirml-expand
           = help: pass it to the function as an argument, or put it into `ml.stop_gradient`
        """,
    )


def test_arguments_by_name_only() -> None:
    function = ml.custom_jvp(named)
    function.defjvp(lambda p, t: (p[0], t[0]))
    check_error(
        lambda: ml.grad(lambda x: function(x, n=2))(1.0),
        """
        mlirml.ArgumentError: `named` has a derivative of its own, and takes n by name only
          --> test_custom_derivatives.py:131:35 (<lambda>)
             |
         131 |         lambda: ml.grad(lambda x: function(x, n=2))(1.0),
             |                                   ^^^^^^^^^^^^^^^^
           = help: let it take all arguments by position
        """,
    )
