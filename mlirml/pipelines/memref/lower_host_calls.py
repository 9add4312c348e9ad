"""Lower host calls: operands of Python functions become 64-bit words, which the native runtime collects.

Before:
    "mlirml.host_value"(%x) {kind = "f64"} : (f64) -> ()
    "mlirml.host_value"(%a) {kind = "f32"} : (memref<4x8xf32>) -> ()
    "mlirml.host_call"() {number = 768 : i64} : () -> ()
    "mlirml.host_result"(%r) {kind = "f32", number = 769 : i64} : (memref<4xf32>) -> ()
After:
    call @mlirml_host_word(%f64) : (i64) -> ()     // the number of the dtype
    call @mlirml_host_word(%c0) : (i64) -> ()      // the rank
    call @mlirml_host_word(%bits) : (i64) -> ()    // arith.bitcast %x
    ...                                            // for %a, and for %r, its sizes
    call @mlirml_host_bytes(%address, %c128) : (i64, i64) -> ()  // copies %a
    call @mlirml_host_call(%c768) : (i64) -> ()
    ...
    call @mlirml_host_call(%c769) : (i64) -> ()

`runtime/host.py` decodes the words.
"""

from __future__ import annotations

import math

from mlirml.dialects.mlirml import HOST_CALLS
from mlirml.errors import InternalError
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations
from mlirml.ir.location import source_location
from mlirml.ir.text.dtypes import from_short_name
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.pipelines.memref.runtime_calls import address, declare
from mlirml.runtime.host import DTYPES

WORD, BYTES, CALL = "mlirml_host_word", "mlirml_host_bytes", "mlirml_host_call"


@register(when=ANY_REQUEST)
class LowerHostCallsPass(Pass):
    """Lower calls of Python functions to calls of the native runtime."""

    def run(self, module: mlir.Operation) -> None:
        found = named_operations(module, HOST_CALLS)
        if not found:
            return
        with found[0].location:
            for name, count in ((WORD, 1), (BYTES, 2), (CALL, 1)):
                declare(module, name, count)
        for op in found:
            with op.location, mlir.InsertionPoint(op):
                for value in op.operands:
                    pass_value(op, value)
                if "number" in op.attributes:
                    call(CALL, emit.constant(op.attributes["number"]))
            op.erase()


def call(name: str, *operands: mlir.Value) -> None:
    """Call a function of the runtime."""
    emit.create("func.call", operands, (), {"callee": mlir.FlatSymbolRefAttr.get(name)})


def pass_value(op: mlir.Operation, value: mlir.Value) -> None:
    """Pass a value, or the buffer for a result. A value is copied, as its memory may be reused before the call."""
    kind = value.type
    sizes = list(kind.shape) if isinstance(kind, mlir.MemRefType) else []
    dtype = mlir.StringAttr(op.attributes["kind"]).value
    for number in (DTYPES.index(dtype), len(sizes), *sizes):
        call(WORD, emit.constant(emit.i64(number)))
    if not isinstance(kind, mlir.MemRefType):
        call(WORD, bits(value))
        return
    if kind.layout != mlir.MemRefType.get(kind.shape, kind.element_type).layout:
        raise InternalError(f"{op.name}: {kind} does not lie in one piece", location=source_location(op.location))
    if op.name == "mlirml.host_result":
        call(WORD, address(value))
    else:
        size = math.prod(sizes) * from_short_name(dtype).itemsize
        call(BYTES, address(value), emit.constant(emit.i64(size)))


def bits(value: mlir.Value) -> mlir.Value:
    """The bits of a scalar as a 64-bit word."""
    kind = value.type
    if isinstance(kind, mlir.IndexType):
        return emit.value("arith.index_cast", [value], mlir.IntegerType.get_signless(64))
    if not isinstance(kind, mlir.IntegerType):
        kind = mlir.IntegerType.get_signless(kind.width)
        value = emit.value("arith.bitcast", [value], kind)
    return value if kind.width == 64 else emit.value("arith.extui", [value], mlir.IntegerType.get_signless(64))
