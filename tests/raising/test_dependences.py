"""Which dependences a loop nest has, by the loop that carries them."""

from __future__ import annotations

import numpy as np
import pytest

from mlirml.ir.bindings import block_ops, main_function, parse
from mlirml.passes import NoMatch
from mlirml.raising.nests.dependences import Isl, dependences
from mlirml.raising.nests.model import match_nest
from tests.raising.loop_text import loop_module

N = 8
A = {"A": np.zeros((N, N)), "x": np.zeros(N)}


def found(body: str) -> set[tuple[int, int, int, str]]:
    """The dependences of loops over i and j around statements: numbers of two statements, level and kind."""
    module = parse(loop_module(f"def main(A, x):\n{body}", A, {"N": N}))
    ops = block_ops(main_function(module).regions[0].blocks[0])
    nest = match_nest(next(op for op in ops if op.name == "scf.for"))
    numbers = {statement: number for number, statement in enumerate(nest.statements)}
    return {(numbers[d.source], numbers[d.sink], d.level, d.kind) for d in dependences(nest, Isl())}


def test_a_value_of_the_round_before_is_carried_by_the_loop() -> None:
    assert found("  for i in range(1, N):\n    x[i] = x[i - 1]") == {(0, 0, 0, "flow")}


def test_a_value_of_the_next_round_is_read_before_it_is_overwritten() -> None:
    assert found("  for i in range(N - 1):\n    x[i] = x[i + 1]") == {(0, 0, 0, "anti")}


def test_elements_that_no_two_rounds_share_carry_nothing() -> None:
    assert found("  for i in range(N):\n    x[i] = x[i] * 2.0") == set()


def test_even_and_odd_elements_do_not_meet() -> None:
    assert found("  for i in range(3):\n    x[2 * i] = x[2 * i + 1]".replace("2 * i", "i + i")) == set()


def test_a_triangle_and_its_mirror_do_not_meet() -> None:
    body = "  for i in range(N):\n    for j in range(i):\n      A[i, j] = A[j, i]"
    assert found(body) == set()


def test_a_row_that_the_inner_loop_reads_is_carried_by_the_outer() -> None:
    body = "  for i in range(1, N):\n    for j in range(N):\n      A[i, j] = A[i - 1, j]"
    assert found(body) == {(0, 0, 0, "flow")}


def test_statements_of_one_round_have_the_level_of_their_common_loops() -> None:
    body = "  for i in range(N):\n    x[i] = 1.0\n    A[i, i] = x[i]"
    assert found(body) == {(0, 1, 1, "flow")}


def test_arrays_that_change_places_are_no_memory() -> None:
    text = """
func.func @main(%a: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf64>, tensor<4xf64>) {
    scf.yield %y, %x : tensor<4xf64>, tensor<4xf64>
  }
  return %0#0 : tensor<4xf64>
}
"""
    module = parse(text)
    loop = block_ops(main_function(module).regions[0].blocks[0])[3]
    with pytest.raises(NoMatch, match="arrays are exchanged"):
        match_nest(loop)
