"""Linear expressions read from affine maps and from index arithmetic."""

from __future__ import annotations

from mlirml.analysis.affine import flat_index, linear_of
from mlirml.core.affine import Linear
from mlirml.ir.bindings import block_ops, make_context, mlir


def test_results_of_maps_are_read() -> None:
    with make_context():
        text = "affine_map<(d0, d1)[s0] -> (d0 * 2 + d1 - 1, 5, d0 floordiv 2, d0 mod 3, d0 + s0)>"
        found = [linear_of(e) for e in mlir.AffineMapAttr(mlir.Attribute.parse(text)).value.results]
    assert found == [Linear(-1, {0: 2, 1: 1}), Linear(5), None, None, None]


def test_the_index_of_an_element_is_row_major() -> None:
    text = """
    func.func @f(%m: memref<?x4x5xf32>, %i: index, %j: index) -> f32 {
      %c2 = arith.constant 2 : index
      %0 = arith.addi %j, %c2 : index
      %1 = arith.divsi %i, %j : index
      %2 = memref.load %m[%i, %0, %1] : memref<?x4x5xf32>
      return %2 : f32
    }"""
    module = mlir.Module.parse(text, make_context())
    block = next(iter(module.body.operations)).regions[0].blocks[0]
    _, i, j = block.arguments
    (load,) = [op for op in block_ops(block) if op.name == "memref.load"]
    indices = list(load.operands)[1:]
    assert flat_index(indices, [9, 4, 5]) == Linear(10, {i: 20, j: 5, indices[2]: 1})
