"""Embed tiles: tile kernels are written as text for NVIDIA's assembler of tiles.

Before:
    gpu.module @kernels {
      gpu.func @k0(%x: memref<64x64xf16, strided<[64, 1]>>) kernel attributes {mlirml.tile = {warps = 4}} {...}
      gpu.func @k1(...) kernel {...}
    }
After:
    gpu.binary @k0 [#gpu.object<#nvvm.target, properties = {
        mlirml.tile = {arguments = [memref<64x64xf16, strided<[64, 1]>>], warps = 4}}, "def kernel(x0): ...">]
    gpu.module @kernels {
      gpu.func @k1(...) kernel {...}
    }
"""

from __future__ import annotations

from mlirml.codegen.tile.cutile import kernel_text
from mlirml.dialects.mlirml import TILE
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import Pass, register


@register
class EmbedTilesPass(Pass):
    """Replace each tile kernel by a `gpu.binary` that holds its text."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for function in [op for op in block_ops(kernels.regions[0].blocks[0]) if TILE in op.attributes]:
                with function.location, mlir.InsertionPoint(kernels):
                    embed(function)
                function.erase()
            if not block_ops(kernels.regions[0].blocks[0]):
                kernels.erase()


def embed(function: mlir.Operation) -> None:
    """Build the `gpu.binary` of a kernel."""
    types = [mlir.TypeAttr.get(argument.type) for argument in function.regions[0].blocks[0].arguments]
    hints = {entry.name: entry.attr for entry in mlir.DictAttr(function.attributes[TILE])}
    text = mlir.StringAttr.get(kernel_text(function))
    properties = mlir.DictAttr.get({TILE: mlir.DictAttr.get({**hints, "arguments": mlir.ArrayAttr.get(types)})})
    attributes = {
        "sym_name": function.attributes["sym_name"],
        "objects": mlir.Attribute.parse(f"[#gpu.object<#nvvm.target, properties = {properties}, {text}>]"),
        "offloadingHandler": mlir.Attribute.parse("#gpu.select_object"),
    }
    emit.create("gpu.binary", (), (), attributes)
