"""Promote elements: what a loop reads and stores at one place of an array in all rounds becomes a number.

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

The loop may read and store other elements of the array, where the indices tell that they are others. Where the loop may
have no round, and the place is not known to be in bounds, the place is 0 then. Inner loops come first, so that an
element goes out of as many loops as do not move it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.distances import Distances
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.find_loops import loop_functions

_CLEAN = "canonicalize,cse"


@register(when=ANY_LOOP)
@dataclass(frozen=True)
class PromoteElementsPass(Pass):
    """Carry the elements that loops update as numbers."""

    name = "mlirml-promote-elements"

    def run(self, module: mlir.Operation) -> None:
        changed = False
        for function in loop_functions(module):
            for op in reversed([op for op in operations(function) if op.name == "scf.for"]):
                changed |= promote_in_loop(op)
        if changed:
            run_upstream(module, _CLEAN)


@dataclass(frozen=True)
class Element:
    """An element that a loop updates: of what array it carries, at what place, and the stores of it."""

    carried: int
    place: list[mlir.Value]
    states: list[mlir.Value]
    stores: list[mlir.Operation]


def promote_in_loop(loop: mlir.Operation) -> bool:
    """Carry the elements that a loop updates as numbers; whether there are some."""
    places = _Places(loop)
    found = [e for number in range(len(loop.results)) for e in match_elements(loop, number, places)]
    if found:
        with loop.location:
            build_carried(loop, found, places)
    return bool(found)


def match_elements(loop: mlir.Operation, number: int, places: _Places) -> list[Element]:
    """The elements of one of the arrays of a loop that may be carried."""
    block = loop.regions[0].blocks[0]
    array = block.arguments[1 + number]
    if not isinstance(array.type, mlir.RankedTensorType) or not array.type.rank or not array.type.has_static_shape:
        return []
    if any(size == 0 for size in array.type.shape):
        return []
    states, stores = states_of(array, block_ops(block)[-1], number)
    reads = [use.owner.operation for state in states for use in state.uses if use.owner.name == "tensor.extract"]
    accesses = [place_of(op) for op in (*reads, *stores)]
    chosen: list[list[mlir.Value]] = []
    for store in stores:
        place = place_of(store)
        if place in chosen or not places.are_fixed(place):
            continue
        if all(place == other or places.differ(place, other) for other in accesses):
            chosen.append(place)
    return [Element(number, place, states, [s for s in stores if place_of(s) == place]) for place in chosen]


def place_of(op: mlir.Operation) -> list[mlir.Value]:
    """The indices of an access."""
    return list(op.operands)[1 if op.name == "tensor.extract" else 2 :]


def states_of(array: mlir.Value, final: mlir.Operation, number: int) -> tuple[list[mlir.Value], list[mlir.Operation]]:
    """An array of a loop after each store in a round, and the stores; none where more than elements is used of it."""
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


class _Places:
    """What is known of places in a loop."""

    def __init__(self, loop: mlir.Operation) -> None:
        self._loop = loop
        self._distances = Distances()
        self.ranges = self._distances.ranges

    def are_fixed(self, place: Sequence[mlir.Value]) -> bool:
        """True if indices are the same in all rounds, being from outside."""
        return not any(self._is_inside(index) for index in place)

    def _is_inside(self, value: mlir.Value) -> bool:
        owner = defining_op(value)
        around = owner.parent if owner is not None else value.owner.owner
        while around is not None and around.operation != self._loop:
            around = around.operation.parent
        return around is not None

    def differ(self, place: Sequence[mlir.Value], other: Sequence[mlir.Value]) -> bool:
        """True if two places are known to be different in every round."""
        return any(self._distances.is_never_zero(a, b) for a, b in zip(place, other, strict=True))


def build_carried(loop: mlir.Operation, found: Sequence[Element], places: _Places) -> None:
    """Build the loop anew, with the elements as numbers."""
    with mlir.InsertionPoint(loop):
        safe = [_safe_place(loop, element, places) for element in found]
        firsts = [
            emit.value(
                "tensor.extract", [loop.operands[3 + e.carried], *place], loop.results[e.carried].type.element_type
            )
            for e, place in zip(found, safe, strict=True)
        ]
        kinds = [r.type for r in (*loop.results, *firsts)]
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        new = emit.create("scf.for", [*loop.operands, *firsts], kinds, attributes, regions=1)
    block = loop.regions[0].blocks[0]
    block.append_to(new.regions[0])
    for element, first in zip(found, firsts, strict=True):
        _carry(element, block.add_argument(first.type, loop.location))
    # Only now: what is stored of one element may have been a read of another one.
    lasts = [element.stores[-1].operands[0] for element in found]
    final = block_ops(block)[-1]
    with final.location, mlir.InsertionPoint(final):
        emit.create("scf.yield", [*final.operands, *lasts])
    final.erase()
    for store in (store for element in found for store in element.stores):
        store.results[0].replace_all_uses_with(store.operands[1])
        store.erase()
    results = list(new.results)[: len(loop.results)]
    with mlir.InsertionPoint(loop):
        for element, place, value in zip(found, safe, list(new.results)[len(results) :], strict=True):
            array = results[element.carried]
            results[element.carried] = emit.value("tensor.insert", [value, array, *place], array.type)
    for old, result in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(result)
    loop.erase()


def _carry(element: Element, number: mlir.Value) -> None:
    """Let the reads of the element in a round, which starts with it as a number, be numbers."""
    for state in element.states:
        store = defining_op(state)
        if store is not None and store in element.stores:
            number = store.operands[0]
        for read in [use.owner.operation for use in state.uses if use.owner.name == "tensor.extract"]:
            if place_of(read) == element.place:
                read.results[0].replace_all_uses_with(number)
                read.erase()


def _safe_place(loop: mlir.Operation, element: Element, places: _Places) -> list[mlir.Value]:
    """The place, in bounds also where the loop has no round."""
    shape = loop.results[element.carried].type.shape
    lower, upper = (places.ranges.of(bound) for bound in list(loop.operands)[:2])
    if lower[1] < upper[0]:
        return element.place
    safe = []
    for index, size in zip(element.place, shape, strict=True):
        if not places.ranges.within(index, 0, size - 1):
            runs = emit.compare("slt", *list(loop.operands)[:2])
            index = emit.same_type("arith.select", runs, index, emit.index(0))
        safe.append(index)
    return safe
