"""Factorizations of stacks of matrices by a library, and branches that select the library call where the target has it.

    %l = "mlirml.cholesky"(%a, %init) {kind = "f64"}
        : (tensor<2x40x40xf64>, tensor<2x40x40xf64>) -> tensor<2x40x40xf64>
    %i = "mlirml.inverse"(%a, %init) {kind = "f64"} : ...
    %d = "mlirml.lu_diagonal"(%a, %init) {kind = "f64"} : (tensor<2x40x40xf64>, tensor<2x41xf64>) -> tensor<2x41xf64>
    %x = "mlirml.solve"(%a, %b, %init) {kind = "f64"}
        : (tensor<2x40x40xf64>, tensor<2x40x3xf64>, tensor<2x40x3xf64>) -> tensor<2x40x3xf64>

`mlirml.cholesky` reads the lower triangle and gives the lower factor. `mlirml.lu_diagonal` gives the diagonal of the
upper factor of the LU decomposition, and the sign of the permutation after it. Complex matrices have a further
dimension of 2, and `kind` is then "c64" or "c128". A singular matrix has a result of NaN, or a zero on its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.ir.text import control
from mlirml.ir.text.builder import Value
from mlirml.ir.text.complex import ComplexBuilder
from mlirml.ir.text.dtypes import is_complex, part_dtype, short_name

LIBRARY = "mlirml.library"
"""Attribute of a constant `false` meaning "the target calls the library of this name". A branch on it has the
program with the library calls, and the program without.
"""
LAPACK = "lapack"


def factorization(b: ComplexBuilder, name: str, operands: Sequence[Value], shape: tuple[int, ...]) -> Value:
    """`mlirml.<name>` of stacks of matrices, whose result has a shape."""
    dtype = operands[0].dtype
    memory = [b.at_boundary(value) for value in operands]
    whole = (*shape, 2) if is_complex(dtype) else shape
    memory.append(b.empty(whole, part_dtype(dtype) if is_complex(dtype) else dtype))
    names, types = ", ".join(value.name for value in memory), ", ".join(value.type for value in memory)
    text = f'"mlirml.{name}"({names}) {{kind = "{short_name(dtype)}"}} : ({types}) -> {memory[-1].type}'
    result = b.op(text, whole, memory[-1].dtype)
    return b.from_boundary(result) if is_complex(dtype) else result


def with_library(
    b: ComplexBuilder, library: str, call: Callable[[], Sequence[Value]], own: Callable[[], Sequence[Value]]
) -> list[Value]:
    """The values of `call`, which calls a library, where the target has that, and otherwise those of `own`.

    Both are equal in number, shapes and dtypes. `mlirml-choose-library` takes one of them.
    """
    condition = b.named(f'arith.constant {{{LIBRARY} = "{library}"}} false')
    return control.conditional(b, condition, lambda: list(call()), lambda: list(own()), "a function of `np.linalg`")
