"""Dimensions go through slices, reshapes and loops of structured operations, from operands to results and back."""

from __future__ import annotations

import pytest

from mlirml.analysis.dimensions import Part, follow
from mlirml.ir.bindings import mlir, operations, parse
from mlirml.passes import NoMatch

ROWS = Part(0, 6)
BATCH = Part(0, 6, single=True)
SOURCE = """
#rows = affine_map<(i, j) -> (i, j)>
#sums = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<6x4xf32>, %into: tensor<4xf32>, %whole: tensor<6x8xf32>) -> tensor<4xf32> {
  %a = tensor.extract_slice %x[0, 1] [6, 1] [1, 1] : tensor<6x4xf32> to tensor<6xf32>
  %b = tensor.insert_slice %x into %whole[0, 2] [6, 4] [1, 1] : tensor<6x4xf32> into tensor<6x8xf32>
  %c = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %d = tensor.collapse_shape %c [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %e = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["reduction", "parallel"]}
      ins(%d : tensor<6x4xf32>) outs(%into : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %p, %o : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %e : tensor<4xf32>
}
"""


def ops() -> tuple[object, dict[str, mlir.Operation]]:
    module = parse(SOURCE)
    return module, {op.name.split(".")[1]: op for op in operations(module)}


def test_slices_keep_what_they_take_whole() -> None:
    _module, found = ops()
    assert follow(found["extract_slice"], {0: (ROWS, None)}).parts == ((ROWS, None), (ROWS,))
    assert follow(found["extract_slice"], {1: (ROWS,)}).parts == ((ROWS, None), (ROWS,))
    assert follow(found["insert_slice"], {0: (ROWS, None)}).parts == ((ROWS, None), (ROWS, None), (ROWS, None))
    with pytest.raises(NoMatch, match="some of the dimension"):
        follow(found["insert_slice"], {1: (None, Part(0, 8))})


def test_reshapes_split_and_merge_a_batch_but_no_rows() -> None:
    _module, found = ops()
    split = (Part(0, 2, 3, single=True), Part(0, 3, 1, single=True), None)
    assert follow(found["expand_shape"], {0: (BATCH, None)}).parts == ((BATCH, None), split)
    assert follow(found["collapse_shape"], {0: split}).parts == (split, (BATCH, None))
    for op in ("expand_shape", "collapse_shape"):
        with pytest.raises(NoMatch):
            follow(found[op], {0: (ROWS, *[None] * (1 if op == "expand_shape" else 2))})


def test_a_loop_that_is_reduced_is_followed_and_results_lack_it() -> None:
    _module, found = ops()
    member = follow(found["generic"], {0: (ROWS, None)})
    assert member.loops == {0: ROWS}
    assert member.parts == ((ROWS, None), (None,), (None,))
    assert list(member.results.values()) == [(None,)]
