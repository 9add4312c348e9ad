"""Lower factorizations: factorizations of stacks of matrices become calls of the native runtime, which calls LAPACK.

Before:
    "mlirml.solve"(%a, %b, %x) {kind = "f64"} : (memref<2x40x40xf64>, memref<2x40x3xf64>, memref<2x40x3xf64>) -> ()
After:
    %p = memref.extract_aligned_pointer_as_index %a : memref<2x40x40xf64> -> index
    %in, %right, %out = arith.index_cast ... : index to i64
    call @mlirml_solve(%in, %right, %out, %c2, %c40, %c3, %kind) : (i64, i64, i64, i64, i64, i64, i64) -> ()

The integers are the number of matrices, their rows and, for a solution, its columns. The dtype is encoded as NumPy's
letter with the size in bytes above it, as `runtime/native/lapack.h` decodes it.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import FACTORIZATIONS
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations
from mlirml.ir.text.dtypes import from_short_name
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.pipelines.memref.lower_sort import address, declare


@register(when=ANY_REQUEST)
@dataclass(frozen=True)
class LowerFactorizationsPass(Pass):
    """Lower factorizations of matrices to calls of the native runtime."""

    name = "mlirml-lower-factorizations"

    def run(self, module: mlir.Operation) -> None:
        declared: set[str] = set()
        for op in named_operations(module, FACTORIZATIONS):
            callee, numbers = op.name.replace(".", "_"), numbers_of(op)
            with op.location:
                if callee not in declared:
                    declared.add(callee)
                    declare(module, callee, len(op.operands) + len(numbers))
                with mlir.InsertionPoint(op):
                    constants = [emit.constant(emit.i64(number)) for number in numbers]
                    operands = [*map(address, op.operands), *constants]
                    emit.create("func.call", operands, (), {"callee": mlir.FlatSymbolRefAttr.get(callee)})
            op.erase()


def numbers_of(op: mlir.Operation) -> list[int]:
    """The sizes of the matrices and the code of their dtype, which are the last arguments of the runtime function."""
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    count, size, *_ = op.operands[0].type.shape
    columns = [op.operands[1].type.shape[2]] if op.name == "mlirml.solve" else []
    return [count, size, *columns, ord(dtype.kind) | dtype.itemsize << 8]
