"""Products of fragments by a subgroup: `mma.sync` with sums in f32, whose registers are values of their own.

Thread 4g + t of a subgroup has, of a left factor of 16 rows, rows g and g + 8 at columns 2t, 2t + 1, 2t + 8 and 2t + 9
(t and t + 4 of tf32); of a right factor of 8 columns, column g at the same indices along k; and of the sums rows g and
g + 8 at columns 2t and 2t + 1 (PTX ISA, "Matrix fragments for mma.m16n8k16").
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.codegen.gpu.kernel import Kernel
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

ROWS, COLUMNS = 16, 8
SUMS = 4
"""The sums of a thread in a fragment: two in each of two rows."""


def multiply(
    kernel: Kernel, a: mlir.Value, b: mlir.Value, sums: Sequence[mlir.Value], *, depth: int, tf32: bool = False
) -> list[mlir.Value]:
    """The four sums of a thread after a product of fragments of `depth` indices along k."""
    attributes: dict[str, mlir.Attribute] = {
        "mmaShape": mlir.ArrayAttr.get([emit.i64(n) for n in (ROWS, COLUMNS, depth)])
    }
    if tf32:
        attributes["tf32Enabled"] = mlir.UnitAttr.get()
    type_ = mlir.VectorType.get([2, 2], sums[0].type)
    # Loops carry scalars: vectors of two dimensions cannot be lowered in branches.
    before = emit.value("vector.from_elements", list(sums), type_)
    after = emit.value("nvgpu.mma.sync", [a, b, before], type_, **attributes)
    return [element(after, row, column) for row in range(2) for column in range(2)]


def joined(kernel: Kernel, registers: Sequence[mlir.Value]) -> mlir.Value:
    """A fragment as a vector of its registers."""
    type_ = registers[0].type
    whole = mlir.VectorType.get([len(registers), *type_.shape], type_.element_type)
    result = kernel.once(("zero", whole), lambda: emit.constant(zeros(whole)))
    for number, register in enumerate(registers):
        position = mlir.DenseI64ArrayAttr.get([number])
        result = emit.value("vector.insert", [register, result], whole, static_position=position)
    return result


def zeros(type_: mlir.VectorType) -> mlir.Attribute:
    """A vector of zeros."""
    return mlir.DenseElementsAttr.get_splat(type_, mlir.FloatAttr.get(type_.element_type, 0.0))


def halves(kernel: Kernel, registers: Sequence[mlir.Value]) -> list[mlir.Value]:
    """The fragments of two adjacent groups of columns of a right factor."""
    return [joined(kernel, registers[:2]), joined(kernel, registers[2:])]


def element(vector: mlir.Value, row: int, column: int) -> mlir.Value:
    """An element of a vector of two dimensions."""
    position = mlir.DenseI64ArrayAttr.get([row, column])
    return emit.value("vector.extract", [vector], mlir.VectorType(vector.type).element_type, static_position=position)
