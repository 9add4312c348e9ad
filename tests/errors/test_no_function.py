"""Transforms, loops and branches that are given a value where they want a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones(3)


def doubled(x: Any) -> Any:
    return x * 2


def test_a_number_instead_of_a_function() -> None:
    check_error(
        lambda: ml.grad(3),  # type: ignore[arg-type]
        """
        mlirml.ArgumentError: grad: expected a function, got int
          --> test_no_function.py:23:17 (<lambda>)
            |
         23 |         lambda: ml.grad(3),  # type: ignore[arg-type]
            |                 ^^^^^^^^^^
           = help: give `grad` the function itself, and its arguments to what `grad` returns
        """,
    )


def test_a_body_that_is_no_function() -> None:
    check_error(
        lambda: ml.compile(lambda x: ml.fori_loop(0, 3, 2.0, x))(1.0),  # type: ignore[arg-type]
        """
        mlirml.ArgumentError: fori_loop: body_fn must be a function, got: float
          --> test_no_function.py:37:38 (<lambda>)
            |
         37 |         lambda: ml.compile(lambda x: ml.fori_loop(0, 3, 2.0, x))(1.0),  # type: ignore[arg-type]
            |                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_branch_that_is_no_function() -> None:
    check_error(
        lambda: ml.cond(True, doubled, 3, X),  # type: ignore[arg-type]
        """
        mlirml.ArgumentError: cond: false_fn must be a function, got: int
          --> test_no_function.py:50:17 (<lambda>)
            |
         50 |         lambda: ml.cond(True, doubled, 3, X),  # type: ignore[arg-type]
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: write `lambda: x` for a value
        """,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: ml.value_and_grad(X),  # type: ignore[arg-type]
        lambda: ml.vjp(3, X),  # type: ignore[arg-type]
        lambda: ml.jvp(3, (X,), (X,)),  # type: ignore[arg-type]
        lambda: ml.linearize(3, X),  # type: ignore[arg-type]
        lambda: ml.vmap(doubled(X)),
        lambda: ml.jacrev(None),  # type: ignore[arg-type]
        lambda: ml.jacfwd(None),  # type: ignore[arg-type]
        lambda: ml.hessian("f"),  # type: ignore[arg-type]
        lambda: ml.hvp(3, (X,), (X,)),  # type: ignore[arg-type]
        lambda: ml.checkpoint(3),  # type: ignore[arg-type]
        lambda: ml.custom_vjp(3),  # type: ignore[arg-type]
        lambda: ml.custom_jvp(3),  # type: ignore[arg-type]
    ],
)
def test_every_transform_wants_a_function(call: Callable[[], Any]) -> None:
    with pytest.raises(ml.errors.ArgumentError, match=r"^\w+: expected a function, got \w+\n") as caught:
        call()
    assert caught.value.location is not None and caught.value.location.file == __file__
