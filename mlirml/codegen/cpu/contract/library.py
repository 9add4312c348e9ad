"""Contractions that a library's product of matrices computes: where the rows of its operands are, row after row.

a[m, k] @ b[k, n]              gemm; a row or a column of the result is gemv
a[k, m] or b[n, k] in memory   the same, with an operand that is stored transposed
a[m, k] @ a[n, k]              syrk, whose triangle is copied to the other one
"""

from __future__ import annotations

from mlirml.codegen.cpu.contract.problem import Axis, Problem
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch

TRANSPOSED_A, TRANSPOSED_B, ADDS, SAME = 1, 2, 4, 8
"""Bits of the mode of `mlirml_product` (`runtime/native/blas.h`)."""


@dataclass(frozen=True)
class Form:
    """The distances between rows of a, b and out, and the mode."""

    a: int
    b: int
    c: int
    mode: int


def match_library(problem: Problem) -> Form:
    """The form of a product of two matrices of f32 or f64; raises `NoMatch` for other problems."""
    operands = problem.a, problem.b, problem.c
    if problem.compute not in ("f32", "f64") or any(x.element != problem.compute or x.casts for x in operands):
        raise NoMatch("libraries multiply f32 and f64, without conversions")
    if problem.outer or problem.outer_m or len(problem.k) != 1:
        raise NoMatch("it is no single product of two matrices")
    m, n, k = problem.m, problem.n, problem.k[0]
    if (n.size > 1 and n.c != 1) or (m.size > 1 and m.c < n.size):
        raise NoMatch("rows of the result are not contiguous")
    a, transposes_a = _rows(m.a, m, k.a, k)
    b, transposes_b = _rows(k.b, k, n.b, n)
    mode = transposes_a * TRANSPOSED_A | transposes_b * TRANSPOSED_B | (SAME if problem.symmetric else 0)
    return Form(a, b, m.c if m.size > 1 else n.size, mode)


def _rows(across: int, rows: Axis, along: int, columns: Axis) -> tuple[int, bool]:
    """The distance between rows of an operand, and whether it is stored transposed.

    `across` and `along` are its strides along its rows and columns.
    """
    if (along == 1 or columns.size == 1) and (rows.size == 1 or across >= columns.size):
        return across if rows.size > 1 else columns.size, False
    if (across == 1 or rows.size == 1) and along >= rows.size:
        return along, True
    raise NoMatch("the rows of an operand are not contiguous")
