"""What operations read and write, and what may be exchanged, on small modules."""

from __future__ import annotations

from mlirml.analysis.memory import Effects, effects, is_touched, users_of
from mlirml.analysis.values import captured_values, used_values, uses_any
from mlirml.ir.bindings import block_ops, main_function, mlir, parse

PROGRAM = """
func.func private @other(memref<8xf32>)
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %i: index) {
  %t = memref.alloc() : memref<8xf32>
  %v = memref.subview %t[0] [4] [1] : memref<8xf32> to memref<4xf32>
  %one = arith.constant 1.0 : f32
  memref.store %one, %v[%i] : memref<4xf32>
  linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
    ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = memref.load %t[%i] : memref<8xf32>
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  memref.copy %a, %t : memref<8xf32> to memref<8xf32>
  func.call @other(%a) : (memref<8xf32>) -> ()
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %i step %c1 iter_args(%m = %t) -> (memref<8xf32>) {
    memref.store %one, %m[%k] : memref<8xf32>
    scf.yield %b : memref<8xf32>
  }
  memref.dealloc %r : memref<8xf32>
  return
}
"""


def parts() -> tuple[mlir.Module, dict[str, mlir.Operation], list[mlir.Value]]:
    """The module, its operations by name, and the arguments and the buffer of @main."""
    module = parse(PROGRAM)
    body = main_function(module).regions[0].blocks[0]
    ops = {op.name: op for op in block_ops(body)}
    a, b, i = body.arguments
    return module, ops, [a, b, i, ops["memref.alloc"].results[0]]


def test_bodies_are_looked_into() -> None:
    _module, ops, (a, b, i, t) = parts()
    gather = ops["linalg.generic"]
    assert set(captured_values(gather)) == {t, i}
    assert t in used_values(gather) and t not in list(gather.operands)
    assert uses_any(gather, {t}) and not uses_any(ops["memref.alloc"], {t})
    assert effects(gather) == Effects(frozenset({a, t}), frozenset({b}))


def test_views_are_seen_through() -> None:
    _module, ops, (a, b, _, t) = parts()
    assert effects(ops["memref.store"]) == Effects(frozenset(), frozenset({t}))
    assert not effects(ops["memref.store"]).touches(a) and not effects(ops["memref.store"]).touches(b)


def test_what_is_not_known_may_do_anything() -> None:
    _module, ops, (a, _, _, t) = parts()
    call = ops["func.call"]
    assert effects(call).unknown and effects(call).touches(t)
    assert effects(ops["scf.for"]).writes_to(a), "what a loop carries may be any buffer"


def test_a_buffer_is_followed_through_loops() -> None:
    _module, ops, (_, b, _, t) = parts()
    assert ops["memref.dealloc"] in users_of([t]) and ops["memref.dealloc"] in users_of([b])
    assert is_touched(t, ops["memref.store"], ops["memref.copy"]), "in a body"
    assert is_touched(b, ops["func.call"], ops["memref.dealloc"]), "in a loop"
    assert not is_touched(b, ops["memref.alloc"], ops["memref.store"])
