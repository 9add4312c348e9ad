"""Loops as they are captured compute the same numbers after their scalars are promoted."""

from __future__ import annotations

import random
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


@pytest.mark.parametrize("seed", range(12))
def test_counters(seed: int) -> None:
    rng = random.Random(seed)
    lines, ends = [], []
    for depth in range(3):
        bounds = [str(rng.randint(-1, 2)), rng.choice([str(rng.randint(0, 5)), *(f"%i{d}" for d in range(depth))])]
        bounds += [str(rng.randint(1, 3))]
        for name, bound in zip("lus", bounds):
            text = f"arith.addi {bound}, %c0 : index" if bound[0] == "%" else f"arith.constant {bound} : index"
            lines.append(f"%{name}{depth} = {text}")
        array, init = (f"%x{depth - 1}", f"%n{depth - 1}") if depth else ("%x", "%zero")
        lines.append(
            f"%r{depth}:2 = scf.for %i{depth} = %l{depth} to %u{depth} step %s{depth}"
            f" iter_args(%x{depth} = {array}, %n{depth} = {init}) -> (tensor<9xi64>, i64) {{"
        )
        lines.append(f"%k{depth} = arith.constant {rng.choice([-2, 1, 6])} : i64")
        inner = f"%r{depth + 1}#1" if depth < 2 else f"%n{depth}"
        ends.append(
            [f"%t{depth} = arith.addi {inner}, %k{depth} : i64"] * (rng.random() < 0.8)
            or [f"%t{depth} = arith.muli {inner}, %k{depth} : i64"]
        )
    lines += ["%at = arith.remui %n2, %nine : i64", "%p = arith.index_castui %at : i64 to index"]
    lines += ["%old = tensor.extract %x2[%p] : tensor<9xi64>", "%new = arith.addi %old, %n2 : i64"]
    lines.append("%x3 = tensor.insert %new into %x2[%p] : tensor<9xi64>")
    for depth in (2, 1, 0):
        array = "%x3" if depth == 2 else f"%r{depth + 1}#0"
        lines += [*ends[depth], f"scf.yield {array}, %t{depth} : tensor<9xi64>, i64", "}"]
    body = "\n".join(lines)
    assert_same(
        f"""
        func.func @main(%x: tensor<9xi64>) -> (tensor<9xi64>, tensor<i64>) {{
          %zero = arith.constant 0 : i64
          %nine = arith.constant 9 : i64
          %c0 = arith.constant 0 : index
          {body}
          %t = tensor.from_elements %r0#1 : tensor<i64>
          return %r0#0, %t : tensor<9xi64>, tensor<i64>
        }}""",
        "mlirml-promote-scalars",
    )
