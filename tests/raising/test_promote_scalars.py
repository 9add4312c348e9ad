"""Loops as they are captured compute the same numbers after their scalars are promoted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.raising.before_and_after import assert_same

A = np.zeros((4, 5), np.float32)


def rows(a: Any, b: Any, c: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        def inner(j: Any, state: Any) -> Any:
            c, total = state
            c[i, j] += a[i, j] * b[j, i] - c[i, j - 1]
            return c, total + c[i, j] * i

        c, total = ml.fori_loop(1, 5, inner, (c, np.float32(0)))
        c[i, 0] = total
        return c

    return ml.fori_loop(0, 4, outer, c)


def numbers(a: Any, b: Any, c: Any) -> Any:
    def body(state: Any) -> Any:
        n, x, y = state
        x = ml.cond(x > 1, lambda: x / 2, lambda: 3 * x + 1)
        y[n % 4, n % 3] = x + a[n % 4, 0]
        return n + 1, x, y * np.sum(b[0] * x)

    return ml.while_loop(lambda s: s[0] < 7, body, (np.int64(0), a[0, 1], c))


@pytest.mark.parametrize("program", [rows, numbers])
def test_captured_loops(program: Any) -> None:
    text = ml.trace(program, A, A.T.copy(), A).as_text()
    after = assert_same(text, "mlirml-promote-scalars")
    assert "iterator_types = []" not in after
    assert "tensor<f32>" not in after or program is numbers


def test_straight_code_is_left_alone() -> None:
    text = ml.trace(lambda a: a[0, 1] * 2 + a[1], A).as_text()
    assert_same(text, "mlirml-promote-scalars")


def test_narrow_integers_keep_wrapping() -> None:
    def narrow(a: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            a[i, (i + np.int8(126)).astype(np.int8) % 5] += i
            return a

        return ml.fori_loop(np.int8(0), np.int8(4), body, a)

    assert_same(ml.trace(narrow, A).as_text(), "mlirml-promote-scalars")


def test_slices_in_a_loop_of_an_array_that_is_stored_into_after_it() -> None:
    after = assert_same(
        """
        func.func @main(%a: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c4 = arith.constant 4 : index
          %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%b0 = %b) -> (tensor<4xf32>) {
            %row = tensor.extract_slice %a[1, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<4xf32>
            %x = tensor.extract %row[%i] : tensor<4xf32>
            %b1 = tensor.insert %x into %b0[%i] : tensor<4xf32>
            scf.yield %b1 : tensor<4xf32>
          }
          %x = tensor.extract %0[%c1] : tensor<4xf32>
          %1 = tensor.insert %x into %a[%c0, %c1] : tensor<4x4xf32>
          return %0, %1 : tensor<4xf32>, tensor<4x4xf32>
        }
        """,
        "mlirml-promote-scalars",
    )
    assert "tensor.extract_slice" not in after
