"""Walks over modules."""

from __future__ import annotations

import pytest

from mlirml.ir.bindings import has_op, lent_context, named_operations, operations, parse, ready_managers

LOOPS = """
func.func @f(%x: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %i step %c1 {
      %a = memref.load %x[%j] : memref<8xf32>
      memref.store %a, %x[%i] : memref<8xf32>
    }
    %b = memref.load %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
  }
  return
}
func.func @g() {
  return
}
"""


def test_operations_are_found_by_name_in_their_order() -> None:
    module = parse(LOOPS)
    everything = list(operations(module))
    for names in (("memref.load",), ("scf.for",), ("memref.load", "memref.store"), ("scf.for", "memref.load")):
        found = named_operations(module.operation, names)
        assert found and found == [op for op in everything if op.name in names]
    assert named_operations(module.operation, ("scf.while", "no.such")) == []


def test_only_what_is_inside_is_found() -> None:
    module = parse(LOOPS)
    outer, inner, _ = named_operations(module.operation, ("scf.for",))
    assert named_operations(outer, ("scf.for",)) == [inner]
    assert has_op(outer, ("scf.for",)) and not has_op(inner, ("scf.for",))


def test_a_context_is_lent_again_until_it_holds_a_lot() -> None:
    with lent_context("a test", 100) as first:
        assert ready_managers(first) == {}
        with lent_context("a test", 100) as second:
            assert second is not first
    with lent_context("a test", 1 << 20) as third:
        assert third is first
    with lent_context("a test", 1) as fourth:
        assert fourth is second
        assert ready_managers(third) is None
    with lent_context("another test", 1) as other:
        assert other is not second


def test_a_context_in_which_something_failed_is_not_lent_again() -> None:
    with pytest.raises(ValueError), lent_context("a failure", 1) as context:
        raise ValueError
    with lent_context("a failure", 1) as other:
        assert other is not context
