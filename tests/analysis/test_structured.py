"""The loops of structured operations: trip counts, iterator types, and values of a body that are their indices."""

from __future__ import annotations

from mlirml.analysis.structured import dims_in, dims_of, index_dim, is_parallel, reductions_of, sizes_of
from mlirml.ir.bindings import block_ops, defining_op, make_context, mlir

MODULE = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @f(%a: tensor<4x?xf32>, %b: tensor<?x6xf32>, %c: tensor<4x6xf32>, %d: tensor<4xindex>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x?xf32>, tensor<?x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%c : tensor<4x6xf32>) outs(%d : tensor<4xindex>) {
  ^bb0(%in: f32, %out: index):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %k = arith.index_cast %j : i64 to index
    linalg.yield %k : index
  } -> tensor<4xindex>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<4x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x6xf32>
  return
}
"""


def test_loops_of_named_operations_and_of_generics() -> None:
    module = mlir.Module.parse(MODULE, make_context())
    block = next(iter(module.body.operations)).regions[0].blocks[0]
    product, rows, elementwise, _ = block_ops(block)
    assert [sizes_of(op) for op in (product, rows, elementwise)] == [[4, 6, -1], [4, 6], [4, 6]]
    assert [reductions_of(op) for op in (product, rows)] == [(False, False, True), (False, True)]
    assert [is_parallel(op) for op in (product, rows, elementwise)] == [False, False, True]


def test_an_index_is_known_through_conversions() -> None:
    module = mlir.Module.parse(MODULE, make_context())
    block = next(iter(module.body.operations)).regions[0].blocks[0]
    rows = block_ops(block)[1]
    *_, end = block_ops(rows.regions[0].blocks[0])
    assert index_dim(end.operands[0]) == 1
    assert index_dim(rows.regions[0].blocks[0].arguments[0]) is None
    assert defining_op(end.operands[0]) is not None


def test_dimensions_of_an_expression_and_of_a_map() -> None:
    with make_context():
        text = "affine_map<(d0, d1, d2)[s0] -> (d0 floordiv 2 + s0, 3, d2)>"
        affine_map = mlir.AffineMapAttr(mlir.Attribute.parse(text)).value
    assert [dims_in(e) for e in affine_map.results] == [{0}, set(), {2}]
    assert dims_of(affine_map) == {0, 2}
