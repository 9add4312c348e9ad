"""Operations that libraries compute, and branches that select them where the target has the library.

    %l = "mlirml.cholesky"(%a, %init) {kind = "f64"}
        : (tensor<2x40x40xf64>, tensor<2x40x40xf64>) -> tensor<2x40x40xf64>
    %i = "mlirml.inverse"(%a, %init) {kind = "f64"} : ...
    %d = "mlirml.lu_diagonal"(%a, %init) {kind = "f64"} : (tensor<2x40x40xf64>, tensor<2x41xf64>) -> tensor<2x41xf64>
    %x = "mlirml.solve"(%a, %b, %init) {kind = "f64"}
        : (tensor<2x40x40xf64>, tensor<2x40x3xf64>, tensor<2x40x3xf64>) -> tensor<2x40x3xf64>

All are on stacks of matrices. `mlirml.cholesky` reads the lower triangle and returns the lower factor.
`mlirml.lu_diagonal` returns the diagonal of the upper factor of the LU decomposition, and the sign of the permutation
after it. Factorizations into several arrays return these in order in each row of their result: `mlirml.lu`
the factors in one matrix, the row that each is exchanged with, and the permutation; `mlirml.qr` Q and R, or R, or the
reflectors and their factors; `mlirml.svd` the singular values, U and Vh; `mlirml.eigh` and `mlirml.eig` the eigenvalues
and the eigenvectors; these three have one more number, which is zero where the
iteration has converged. `mlirml.triangular_solve` solves with a triangle of the first operand.

`mlirml.fft` is a Fourier transform of some axes of an array of any rank. It has no branch without the library.

Complex arrays have a further dimension of 2, and `kind` is then "c64" or "c128". A singular matrix has a result of
NaN, or a zero on its diagonal, and so has one whose iteration does not converge. The attribute `mode` selects one of
the forms (`ir/library_calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.text import control
from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import ComplexBuilder
from mlirml.ir.text.dtypes import is_complex, short_name

LIBRARY = "mlirml.library"
"""Attribute of a constant `false` meaning "the target calls the library of this name". A branch on it has the
program with the library calls, and the program without.
"""
LAPACK = "lapack"


def library_call(b: ComplexBuilder, name: str, operands: Sequence[Value], mode: int = 0) -> Value:
    """`mlirml.<name>` of stacks."""
    call, dtype = LIBRARY_CALLS[f"mlirml.{name}"], operands[0].dtype
    shape = call.result([value.shape for value in operands], mode)
    pairs = call.complex_result(is_complex(dtype), mode)
    memory = [b.at_boundary(value) for value in operands]
    memory.append(b.empty((*shape, 2) if pairs else shape, memory[0].dtype))
    names, types = ", ".join(value.name for value in memory), ", ".join(value.type for value in memory)
    tags = f'kind = "{short_name(dtype)}"{f", mode = {mode} : i64" if call.has_mode else ""}'
    init = memory[-1]
    result = b.op(f'"mlirml.{name}"({names}) {{{tags}}} : ({types}) -> {init.type}', init.shape, init.dtype)
    return b.from_boundary(result) if pairs else result


def with_library(
    b: ComplexBuilder, library: str, call: Callable[[], Sequence[Value]], own: Callable[[], Sequence[Value]]
) -> list[Value]:
    """The values of `call`, which calls a library, where the target has that, and otherwise those of `own`.

    Both are equal in number, shapes and dtypes. `mlirml-choose-library` takes one of them.
    """
    condition = b.named(f'arith.constant {{{LIBRARY} = "{library}"}} false')
    return control.conditional(b, condition, lambda: list(call()), lambda: list(own()), "a function of `np.linalg`")
