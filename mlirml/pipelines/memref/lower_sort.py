"""Lower sorts: `mlirml.sort` and `mlirml.argsort` on memrefs become calls of the native runtime.

Before:
    "mlirml.argsort"(%x, %order) {descending = false, kind = "f32"} : (memref<4x8xf32>, memref<4x3xi64>) -> ()
After:
    %p = memref.extract_aligned_pointer_as_index %x : memref<4x8xf32> -> index
    %q = memref.extract_aligned_pointer_as_index %order : memref<4x3xi64> -> index
    %in, %out = arith.index_cast ... : index to i64
    call @mlirml_argsort(%in, %out, %c4, %c8, %c3, %kind, %false) : (i64, i64, i64, i64, i64, i64, i64) -> ()

The dtype is encoded as NumPy's letter with the size in bytes above it, as `runtime/native/sort.h` decodes it.
"""

from __future__ import annotations

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import SORTS
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations
from mlirml.ir.text.dtypes import from_short_name
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.pipelines.memref.runtime_calls import address, declare


@register(when=ANY_LOOP)
@dataclass(frozen=True)
class LowerSortPass(Pass):
    """Lower sorts of rows to calls of the native runtime."""

    name = "mlirml-lower-sort"

    def run(self, module: mlir.Operation) -> None:
        sorts = named_operations(module, SORTS)
        declared: set[str] = set()
        for op in sorts:
            callee = op.name.replace(".", "_")
            with op.location:
                if callee not in declared:
                    declared.add(callee)
                    declare(module, callee, 6 if op.name == "mlirml.sort" else 7)
                with mlir.InsertionPoint(op):
                    call(op, callee)
            op.erase()


def call(op: mlir.Operation, callee: str) -> None:
    """Call `callee` for a sort."""
    source, out = op.operands
    (rows, size), count = source.type.shape, out.type.shape[1]
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    letter = "h" if dtype.name == "bfloat16" else dtype.kind
    numbers = [rows, size, *([count] if op.name == "mlirml.argsort" else [])]
    numbers += [ord(letter) | dtype.itemsize << 8, int(mlir.BoolAttr(op.attributes["descending"]).value)]
    operands = [address(source), address(out), *(emit.constant(emit.i64(number)) for number in numbers)]
    emit.create("func.call", operands, (), {"callee": mlir.FlatSymbolRefAttr.get(callee)})
