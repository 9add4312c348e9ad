"""Lower compactions: the counts, positions and elements of masks on memrefs become calls of the native runtime.

Before:
    "mlirml.compress"(%mask, %counts, %x, %out) {kind = "f32"}
        : (memref<1x40xi1>, memref<1x2xi64>, memref<1x40x3xf32>, memref<1x40x3xf32>) -> ()
After:
    %p = memref.extract_aligned_pointer_as_index %mask : memref<1x40xi1> -> index
    %m, %c, %in, %to = arith.index_cast ... : index to i64
    call @mlirml_compress(%m, %c, %in, %to, %c1, %c40, %c12) : (i64, i64, i64, i64, i64, i64, i64) -> ()

The integers are the rows and the elements of the mask, and the bytes of what is moved for one of them.
"""

from __future__ import annotations

from mlirml.errors import PreconditionError
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.ir.compactions import COMPACTIONS, counts_length
from mlirml.ir.location import source_location
from mlirml.ir.text.dtypes import from_short_name
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.pipelines.memref.runtime_calls import Number, lower_to_calls


@register(when=ANY_REQUEST)
class LowerCompactionsPass(Pass):
    """Lower compactions to calls of the native runtime."""

    def run(self, module: mlir.Operation) -> None:
        lower_to_calls(module, COMPACTIONS, numbers_of)


def numbers_of(op: mlir.Operation, sizes: list[list[Number]]) -> list[Number]:
    """The last arguments of the runtime function.

    Raises PreconditionError where the operands are not arrays that the function reads and writes within.
    """
    mask, *others = [tuple(x.type.shape) for x in op.operands]
    kind = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    if op.name == "mlirml.compress":
        counts, values, out = others
        fits = len(values) >= 2 and values[:2] == mask and out == values
    else:
        counts = others[0]
        fits = others[1:] == [mask] * (op.name == "mlirml.positions")
    length = counts_length(mask[1]) if len(mask) == 2 and not op.operands[0].type.is_dynamic_dim(1) else counts[1]
    if len(mask) != 2 or counts != (mask[0], length) or not fits:
        shapes = ", ".join(str(list(x)) for x in (mask, *others))
        raise PreconditionError(f"`{op.name}`: the shapes {shapes} do not fit", location=source_location(op.location))
    if op.name != "mlirml.compress":
        return sizes[0]
    total: Number = kind.itemsize
    for size in sizes[2][2:]:
        total = emit.times(total, size)
    return [*sizes[0], total]
