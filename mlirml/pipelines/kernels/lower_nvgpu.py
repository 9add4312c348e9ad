"""Lower nvgpu operations on memory: asynchronous copies and `ldmatrix` are lowered to NVVM, with 32-bit indices.

Before:
    %t = nvgpu.device_async_copy %x[%i], %s[%j], 8 {bypassL1} : memref<64xf16> to memref<64xf16, #workgroup>
    %f = nvgpu.ldmatrix %s[%j] {numTiles = 4, transpose = false} : memref<64xf16, #workgroup> -> vector<4x2xf16>
After:
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    %r = nvvm.ldmatrix %to {num = 4, ...} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>

where the addresses are computed by `llvm.getelementptr`, with constant offsets separate so that they are folded into
the instructions. Upstream's `convert-nvgpu-to-nvvm` computes them from memref descriptors with 64-bit fields, which do
not match those of `convert-gpu-to-nvvm` with 32-bit indices. Memory is one-dimensional. Other operations are left to
upstream.
"""

from __future__ import annotations

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
from mlirml.passes import Pass, register

_GLOBAL, _SHARED = 1, 3


@register
class LowerNvgpuPass(Pass):
    """Lower asynchronous copies and `ldmatrix` to NVVM."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for op in [op for op in operations(kernels) if op.name in _RULES]:
                with op.location, mlir.InsertionPoint(op):
                    _RULES[op.name](op)


def lower_copy(op: mlir.Operation) -> None:
    """Lower to `cp.async`, which fills the rest of the destination with zeros."""
    to, to_index, source, source_index, *count = op.operands
    element = mlir.MemRefType(source.type).element_type
    target = address(to, to_index, _SHARED)
    origin = emit.value("llvm.addrspacecast", [address(source, source_index, 0)], pointer(_GLOBAL))
    nbytes = element.width // 8
    operands = [target, origin]
    if count:
        integer = mlir.IntegerType.get_signless(32)
        number = emit.value("arith.index_cast", [count[0]], integer)
        operands.append(emit.same_type("arith.muli", number, emit.number(integer, nbytes)))
    attributes = {
        "size": emit.i32(op.attributes["dstElements"].value * nbytes),
        "modifier": mlir.Attribute.parse("#nvvm<load_cache_modifier cg>"),
    }
    emit.create("nvvm.cp.async.shared.global", operands, (), attributes)
    op.erase()


def lower_ldmatrix(op: mlir.Operation) -> None:
    """Lower to `ldmatrix`, whose registers become the rows of a vector."""
    memory, index = op.operands
    kind = mlir.VectorType(op.results[0].type)
    integer = mlir.IntegerType.get_signless(32)
    tiles = op.attributes["numTiles"].value
    registers = mlir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * tiles)})>")
    layout = "col" if op.attributes["transpose"].value else "row"
    attributes = {
        "num": emit.i32(tiles),
        "layout": mlir.Attribute.parse(f"#nvvm.mma_layout<{layout}>"),
        "eltType": mlir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
        "shape": mlir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
    }
    found = emit.value("nvvm.ldmatrix", [address(memory, index, _SHARED)], registers, **attributes)
    row = mlir.VectorType.get([kind.shape[1]], kind.element_type)
    whole = emit.constant(mlir.DenseElementsAttr.get_splat(kind, mlir.FloatAttr.get(kind.element_type, 0.0)))
    for number in range(tiles):
        position = mlir.DenseI64ArrayAttr.get([number])
        register = emit.value("llvm.extractvalue", [found], integer, position=position)
        part = emit.value("llvm.bitcast", [register], row)
        whole = emit.value("vector.insert", [part, whole], kind, static_position=position)
    replace_op(op, whole)


_RULES = {"nvgpu.device_async_copy": lower_copy, "nvgpu.ldmatrix": lower_ldmatrix}


def pointer(space: int) -> mlir.Type:
    return mlir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")


def address(memory: mlir.Value, index: mlir.Value, space: int) -> mlir.Value:
    """The address of an element of one-dimensional memory."""
    integer = mlir.IntegerType.get_signless(32)
    kind = mlir.MemRefType(memory.type)
    text = str(pointer(space))
    descriptor = mlir.Type.parse(f"!llvm.struct<({text}, {text}, i32, array<1 x i32>, array<1 x i32>)>")
    parts = emit.value("builtin.unrealized_conversion_cast", [memory], descriptor)
    start = emit.value("llvm.extractvalue", [parts], pointer(space), position=mlir.DenseI64ArrayAttr.get([1]))
    moved, constant = split_constant(index)
    number = emit.value("arith.index_cast", [moved], integer)
    found = element(start, [number], -(2**31), kind.element_type)
    return element(found, [], constant, kind.element_type) if constant else found


def element(start: mlir.Value, dynamic: list[mlir.Value], constant: int, element_type: mlir.Type) -> mlir.Value:
    """Build an `llvm.getelementptr`."""
    attributes = {
        "rawConstantIndices": mlir.DenseI32ArrayAttr.get([constant]),
        "elem_type": mlir.TypeAttr.get(element_type),
        "noWrapFlags": emit.i32(0),
    }
    return emit.value("llvm.getelementptr", [start, *dynamic], start.type, **attributes)


def split_constant(index: mlir.Value) -> tuple[mlir.Value, int]:
    """Split an index into a value and an added constant."""
    op = defining_op(index)
    if op is not None and op.name == "arith.addi":
        number = defining_op(op.operands[1])
        if number is not None and number.name == "arith.constant":
            return op.operands[0], number.attributes["value"].value
    return index, 0
