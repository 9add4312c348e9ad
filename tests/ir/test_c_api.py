"""The census of a module: operations, attributes and types by name; operations that use values from outside."""

from __future__ import annotations

from collections import Counter

from mlirml.analysis.values import outer_variables
from mlirml.ir.bindings import operations, parse
from mlirml.ir.c_api import census, has_captures
from mlirml.passes.presence import Presence, Several, every, program_names

TEXT = """
#sum = affine_map<(i, j) -> (i + j)>
#first = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<8xf32>, %w: tensor<3xf32>, %s: tensor<f32>, %m: memref<4xi1>) -> tensor<6xf32> attributes {mlirml.raised} {
  %out = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#sum, affine_map<(i, j) -> (j)>, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%out : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}
"""  # noqa: E501  one operation a line


def test_operations_are_counted_with_windows_types_and_attributes() -> None:
    module = parse(TEXT)
    counted = Counter(op.name for op in operations(module))
    extra = {"linalg.window": 1, "!tensor<0d>": 1, "!memref<i1>": 1, "#mlirml.raised": 1}
    assert census(module.operation) == counted | extra


def test_conditions_are_judged_by_the_module_as_it_is() -> None:
    module = parse(TEXT)
    presence = Presence(module.operation)
    presence.begin_program()
    assert presence.fulfils(("linalg.conv", "linalg.window")) and presence.fulfils(("#mlirml.raised",))
    assert presence.fulfils(every(("arith.add",), ("tensor.empty",))) and not presence.fulfils(
        every(("arith.add",), ("scf.",))
    )
    assert presence.fulfils(Several(2, ("arith.",))) and not presence.fulfils(Several(3, ("arith.",)))
    del next(op for op in operations(module) if op.name == "func.func").attributes["mlirml.raised"]
    presence.changed()
    assert not presence.fulfils(("#mlirml.raised",)) and presence.fulfils(program_names(("#mlirml.raised",)))


DOUBLED = """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<8xf32>, %n: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %two = arith.constant 2.0 : f32
  %out = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.mulf %a, %two : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.mulf %a, %n : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}
"""


def test_regions_that_use_values_from_outside() -> None:
    module = parse(DOUBLED)
    function = next(op for op in operations(module) if op.name == "func.func")
    one, other = [op for op in operations(module) if op.name == "linalg.generic"]
    assert not has_captures(one) and has_captures(other) and has_captures(module.operation) is False
    assert list(outer_variables(one)) == list(one.operands)
    assert function.regions[0].blocks[0].arguments[1] in outer_variables(other)
