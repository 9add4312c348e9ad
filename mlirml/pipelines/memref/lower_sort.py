"""Lower sorts: `mlirml.sort` and `mlirml.argsort` on memrefs become calls of the native runtime.

Before:
    "mlirml.argsort"(%x, %order) {descending = false, kind = "f32"} : (memref<4x8xf32>, memref<4x3xi64>) -> ()
After:
    %p = memref.extract_aligned_pointer_as_index %x : memref<4x8xf32> -> index
    %q = memref.extract_aligned_pointer_as_index %order : memref<4x3xi64> -> index
    %in, %out = arith.index_cast ... : index to i64
    call @mlirml_argsort(%in, %out, %c4, %c8, %c3, %kind, %c0, %c0, %c-1)
        : (i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()

The last two numbers are the positions of `kth`, or 0 and -1 where all are to be in order. The dtype is encoded as
NumPy's letter with the size in bytes above it, as `runtime/native/sort.h` decodes it.
"""

from __future__ import annotations

from mlirml.dialects.mlirml import SORTS
from mlirml.ir.bindings import mlir
from mlirml.ir.text.dtypes import from_short_name
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.pipelines.memref.runtime_calls import Number, lower_to_calls


@register(when=ANY_REQUEST)
class LowerSortPass(Pass):
    """Lower sorts of rows to calls of the native runtime."""

    def run(self, module: mlir.Operation) -> None:
        lower_to_calls(module, SORTS, numbers_of)


def numbers_of(op: mlir.Operation, sizes: list[list[Number]]) -> list[Number]:
    """The rows, their length, the number of positions of an argsort, the dtype, the direction and the positions."""
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    letter = "h" if dtype.name == "bfloat16" else dtype.kind
    numbers = [*sizes[0], *([sizes[1][1]] if op.name == "mlirml.argsort" else [])]
    descending = int(mlir.BoolAttr(op.attributes["descending"]).value)
    range_ = list(mlir.DenseI64ArrayAttr(op.attributes["kth"])) if "kth" in op.attributes else [0, -1]
    return [*numbers, ord(letter) | dtype.itemsize << 8, descending, *range_]
