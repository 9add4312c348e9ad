"""Passes on operations whose bodies read what is no operand of theirs, some of it in branches inside of the body."""

from __future__ import annotations

import pytest

from mlirml.ir.bindings import main_function, mlir, named_operations, operations, parse
from mlirml.passes import parse_pipeline

PLANE = "affine_map<(i, j) -> (i, j)>"
ROW = "affine_map<(i, j) -> (i)>"
PARALLEL = 'iterator_types = ["parallel", "parallel"]'

SUMS_AND_A_BRANCH = f"""
func.func @main(%x: memref<300x400xf64>, %s: memref<300xf64>, %r: memref<300x400xf64>) {{
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%s : memref<300xf64>)
  linalg.generic {{indexing_maps = [{PLANE}, {ROW}], iterator_types = ["parallel", "reduction"]}}
    ins(%x : memref<300x400xf64>) outs(%s : memref<300xf64>) {{
  ^bb0(%a: f64, %o: f64):
    %t = arith.addf %a, %o : f64
    linalg.yield %t : f64
  }}
  linalg.generic {{indexing_maps = [{PLANE}, {PLANE}], {PARALLEL}}}
    ins(%x : memref<300x400xf64>) outs(%r : memref<300x400xf64>) {{
  ^bb0(%a: f64, %o: f64):
    %c = arith.cmpf ogt, %a, %zero : f64
    %t = scf.if %c -> f64 {{
      %k = arith.constant 299 : index
      %l = memref.load %s[%k] : memref<300xf64>
      scf.yield %l : f64
    }} else {{
      scf.yield %a : f64
    }}
    linalg.yield %t : f64
  }}
  return
}}
"""


def test_rows_are_not_shared_with_a_branch_that_reads_other_rows() -> None:
    module = parse(SUMS_AND_A_BRANCH)
    parse_pipeline("mlirml-lower-loops").run(module)
    main = main_function(module)
    sums = main.regions[0].blocks[0].arguments[1]
    (branching,) = (x for x in named_operations(main, ("scf.parallel",)) if named_operations(x, ("scf.if",)))
    stores = named_operations(branching, ("memref.store",))
    assert not any(sums in list(op.operands) for op in stores), "a row would be read before it is summed up"


KEPT = f"""
func.func @main(%h: tensor<300x300xf64>, %w: tensor<300x300xf64>, %k: tensor<300xindex>)
    -> (tensor<300x300xf64>, tensor<300x300xf64>) {{
  %z = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %e = tensor.empty() : tensor<300x300xf64>
  %p:2 = linalg.generic {{indexing_maps = [{PLANE}, {PLANE}, {PLANE}], {PARALLEL}}}
    ins(%h : tensor<300x300xf64>) outs(%e, %e : tensor<300x300xf64>, tensor<300x300xf64>) {{
  ^bb0(%a: f64, %o: f64, %o2: f64):
    %u = arith.addf %a, %one : f64
    %y = arith.mulf %u, %u : f64
    linalg.yield %u, %y : f64, f64
  }} -> (tensor<300x300xf64>, tensor<300x300xf64>)
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<300x300xf64>) -> tensor<300x300xf64>
  %m = linalg.matmul ins(%p#1, %w : tensor<300x300xf64>, tensor<300x300xf64>)
    outs(%f : tensor<300x300xf64>) -> tensor<300x300xf64>
  %d = linalg.generic {{indexing_maps = [{PLANE}, {ROW}, {PLANE}], {PARALLEL}}}
    ins(%p#0, %k : tensor<300x300xf64>, tensor<300xindex>) outs(%e : tensor<300x300xf64>) {{
  ^bb0(%a: f64, %i: index, %o: f64):
    %j = linalg.index 1 : index
    %g = tensor.extract %p#0[%i, %j] : tensor<300x300xf64>
    %s = arith.addf %a, %g : f64
    linalg.yield %s : f64
  }} -> tensor<300x300xf64>
  return %m, %d : tensor<300x300xf64>, tensor<300x300xf64>
}}
"""


@pytest.mark.parametrize("newest", ["tensor.extract", "linalg.generic"])
def test_what_a_body_reads_at_any_place_is_kept(newest: str) -> None:
    """The uses of a value are listed the newest first, and both stand in one operation of the block."""
    module = parse(KEPT)
    main = main_function(module)
    kept = next(op for op in operations(main) if op.name == "linalg.generic").results[0]
    (use,) = (u for u in kept.uses if u.owner.name == newest)
    user: mlir.Operation = use.owner.operation
    user.operands[0] = main.regions[0].blocks[0].arguments[0]
    user.operands[0] = kept
    parse_pipeline("mlirml-recompute-elements").run(module)
    assert module.operation.verify()
    assert len(named_operations(main, ("linalg.generic",))[0].results) == 2


ON_THE_HOST = f"""
func.func @main(%x: memref<8x4xf32>, %k: memref<8xi32>, %r: memref<8x4xf32>) {{
  linalg.generic {{indexing_maps = [{ROW}, {PLANE}], {PARALLEL}, mlirml.why = "there is nothing for it"}}
    ins(%k : memref<8xi32>) outs(%r : memref<8x4xf32>) {{
  ^bb0(%n: i32, %o: f32):
    %i = arith.index_cast %n : i32 to index
    %j = linalg.index 1 : index
    %g = memref.load %x[%i, %j] : memref<8x4xf32>
    linalg.yield %g : f32
  }}
  return
}}
"""


def test_what_a_body_reads_on_the_host_is_copied_there() -> None:
    module = parse(ON_THE_HOST)
    parse_pipeline("mlirml-plan-transfers").run(module)
    main = main_function(module)
    device = list(main.regions[0].blocks[0].arguments)
    (load,) = named_operations(main, ("memref.load",))
    assert load.operands[0] not in device
    copies = [list(op.operands) for op in named_operations(main, ("gpu.memcpy",))]
    assert [load.operands[0], device[0]] in copies
    assert [device[0], load.operands[0]] not in copies, "it is only read"
