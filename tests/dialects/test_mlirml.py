"""The builder and the reader of `mlirml.parallel_for`."""

from __future__ import annotations

from mlirml.dialects.mlirml import parallel_for, parallel_grain
from mlirml.ir.bindings import block_ops, main_function, mlir, parse, to_text

SOURCE = """
func.func @main(%n: index, %a: memref<8xf32>, %s: f32) {
  return loc("user.py":3:1)
}
func.func private @body(index, index, memref<8xf32>, f32)
"""


def test_a_parallel_call_captures_values_of_any_type() -> None:
    module = parse(SOURCE)
    block = main_function(module).regions[0].blocks[0]
    end = block_ops(block)[-1]
    count, array, scalar = block.arguments
    with end.location, mlir.InsertionPoint(end):
        call = parallel_for("body", count, count, [array, scalar], grain=64)
    assert module.operation.verify()
    assert parallel_grain(call) == 64
    assert parallel_grain(end) is None
    assert (
        "call @body(%arg0, %arg0, %arg1, %arg2) {mlirml.parallel_for = 64 : i64}"
        " : (index, index, memref<8xf32>, f32) -> ()"
    ) in to_text(module)
    assert to_text(parse(to_text(module))) == to_text(module)


def test_a_plain_call_is_not_parallel() -> None:
    module = parse("func.func @main(%n: index) { call @f(%n) : (index) -> () return } func.func private @f(index)")
    call = block_ops(main_function(module).regions[0].blocks[0])[0]
    assert parallel_grain(call) is None
