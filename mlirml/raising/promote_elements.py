"""Promote elements: an array element that all iterations of a loop read and store becomes a loop-carried scalar.

Before, with %i and %j from outside of the loop:
    %r = scf.for %k = %lb to %ub step %c1 iter_args(%c = %c0) -> (tensor<4x6xf32>) {
      %a = tensor.extract %c[%i, %j] : tensor<4x6xf32>
      ...
      %c1 = tensor.insert %b into %c[%i, %j] : tensor<4x6xf32>
      scf.yield %c1 : tensor<4x6xf32>
    }
After:
    %a0 = tensor.extract %c0[%i, %j] : tensor<4x6xf32>
    %b1 = scf.for %k = %lb to %ub step %c1 iter_args(%a = %a0) -> (f32) {
      ...
      scf.yield %b : f32
    }
    %r = tensor.insert %b1 into %c0[%i, %j] : tensor<4x6xf32>

The loop may access other elements of the array, if the indices show that they are others. If the loop may be zero-trip,
and the index is not known to be in bounds, the index is 0 then. Inner loops come first, so that an element is hoisted
out of all loops that do not index it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.distances import Distances
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
from mlirml.passes import Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.find_loops import loop_functions

_CLEAN = "canonicalize,cse"


@register(when=ANY_LOOP, optional=True)
class PromoteElementsPass(Pass):
    """Carry the elements that loops update as scalars."""

    def run(self, module: mlir.Operation) -> None:
        changed = False
        for function in loop_functions(module):
            for op in reversed([op for op in operations(function) if op.name == "scf.for"]):
                changed |= promote_in_loop(op)
        if changed:
            run_upstream(module, _CLEAN)


@dataclass(frozen=True)
class Element:
    """An element that a loop updates: the position of the carried array, the indices, and the stores to it."""

    carried: int
    indices: list[mlir.Value]
    states: list[mlir.Value]
    stores: list[mlir.Operation]


def promote_in_loop(loop: mlir.Operation) -> bool:
    """Carry the elements that a loop updates as scalars; True if there are some."""
    known = _Indices(loop)
    found = [e for number in range(len(loop.results)) for e in match_elements(loop, number, known)]
    if found:
        with loop.location:
            build_carried(loop, found, known)
    return bool(found)


def match_elements(loop: mlir.Operation, number: int, known: _Indices) -> list[Element]:
    """The elements of one of the arrays of a loop that may be carried."""
    block = loop.regions[0].blocks[0]
    array = block.arguments[1 + number]
    if not isinstance(array.type, mlir.RankedTensorType) or not array.type.rank or not array.type.has_static_shape:
        return []
    if any(size == 0 for size in array.type.shape):
        return []
    states, stores = states_of(array, block_ops(block)[-1], number)
    reads = [use.owner.operation for state in states for use in state.uses if use.owner.name == "tensor.extract"]
    accesses = [indices_of(op) for op in (*reads, *stores)]
    chosen: list[list[mlir.Value]] = []
    for store in stores:
        indices = indices_of(store)
        if indices in chosen or not known.are_fixed(indices):
            continue
        if all(indices == other or known.differ(indices, other) for other in accesses):
            chosen.append(indices)
    return [Element(number, indices, states, [s for s in stores if indices_of(s) == indices]) for indices in chosen]


def indices_of(op: mlir.Operation) -> list[mlir.Value]:
    """The indices of an access."""
    return list(op.operands)[1 if op.name == "tensor.extract" else 2 :]


def states_of(array: mlir.Value, final: mlir.Operation, number: int) -> tuple[list[mlir.Value], list[mlir.Operation]]:
    """The versions of a carried array after each store of an iteration, and the stores; none with other uses."""
    states: list[mlir.Value] = [array]
    stores: list[mlir.Operation] = []
    while True:
        state, following = states[-1], []
        for use in state.uses:
            op = use.owner.operation
            if op == final and use.operand_number == number:
                continue
            if op.name == "tensor.insert" and use.operand_number == 1 and op.block == final.block:
                following.append(op)
            elif op.name != "tensor.extract":
                return [], []
        if not following:
            return (states, stores) if final.operands[number] == state else ([], [])
        if len(following) > 1:
            return [], []
        stores.append(following[0])
        states.append(following[0].results[0])


class _Indices:
    """Facts about the indices of accesses in a loop."""

    def __init__(self, loop: mlir.Operation) -> None:
        self._loop = loop
        self._distances = Distances()
        self.ranges = self._distances.ranges

    def are_fixed(self, indices: Sequence[mlir.Value]) -> bool:
        """True if indices are loop-invariant, since they are defined outside."""
        return not any(self._is_inside(index) for index in indices)

    def _is_inside(self, value: mlir.Value) -> bool:
        owner = defining_op(value)
        around = owner.parent if owner is not None else value.owner.owner
        while around is not None and around.operation != self._loop:
            around = around.operation.parent
        return around is not None

    def differ(self, indices: Sequence[mlir.Value], other: Sequence[mlir.Value]) -> bool:
        """True if two indices are known to differ in every iteration."""
        return any(self._distances.is_never_zero(a, b) for a, b in zip(indices, other, strict=True))


def build_carried(loop: mlir.Operation, found: Sequence[Element], known: _Indices) -> None:
    """Build the loop again, with the elements as scalars."""
    with mlir.InsertionPoint(loop):
        safe = [_safe_indices(loop, element, known) for element in found]
        firsts = [
            emit.value(
                "tensor.extract", [loop.operands[3 + e.carried], *indices], loop.results[e.carried].type.element_type
            )
            for e, indices in zip(found, safe, strict=True)
        ]
        kinds = [r.type for r in (*loop.results, *firsts)]
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        new = emit.create("scf.for", [*loop.operands, *firsts], kinds, attributes, regions=1)
    block = loop.regions[0].blocks[0]
    block.append_to(new.regions[0])
    for element, first in zip(found, firsts, strict=True):
        _carry(element, block.add_argument(first.type, loop.location))
    # Only now: the stored value of one element may have been a read of another one.
    lasts = [element.stores[-1].operands[0] for element in found]
    final = block_ops(block)[-1]
    with final.location, mlir.InsertionPoint(final):
        emit.create("scf.yield", [*final.operands, *lasts])
    final.erase()
    for store in (store for element in found for store in element.stores):
        replace_op(store, store.operands[1])
    results = list(new.results)[: len(loop.results)]
    with mlir.InsertionPoint(loop):
        for element, indices, value in zip(found, safe, list(new.results)[len(results) :], strict=True):
            array = results[element.carried]
            results[element.carried] = emit.value("tensor.insert", [value, array, *indices], array.type)
    replace_op(loop, *results)


def _carry(element: Element, number: mlir.Value) -> None:
    """Replace the reads of the element in an iteration, which starts with `number` as its value."""
    for state in element.states:
        store = defining_op(state)
        if store is not None and store in element.stores:
            number = store.operands[0]
        for read in [use.owner.operation for use in state.uses if use.owner.name == "tensor.extract"]:
            if indices_of(read) == element.indices:
                replace_op(read, number)


def _safe_indices(loop: mlir.Operation, element: Element, known: _Indices) -> list[mlir.Value]:
    """The element's index, clamped so that a zero-trip loop does not read out of bounds."""
    shape = loop.results[element.carried].type.shape
    lower, upper = (known.ranges.of(bound) for bound in list(loop.operands)[:2])
    if lower[1] < upper[0]:
        return element.indices
    safe = []
    for index, size in zip(element.indices, shape, strict=True):
        if not known.ranges.within(index, 0, size - 1):
            runs = emit.compare("slt", *list(loop.operands)[:2])
            index = emit.same_type("arith.select", runs, index, emit.index(0))
        safe.append(index)
    return safe
