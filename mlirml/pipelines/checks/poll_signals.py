"""Poll signals: loops that may be long or endless call the native runtime now and then to check for Ctrl-C.

Before:
    scf.while (%x = %x0) : (f64) -> f64 {
      ...
      scf.condition(%going) %x : f64
    } do {
    ^bb0(%x: f64):
      ...
    }
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f64) { ... }
After:
    func.func private @mlirml_poll()
    %count = memref.alloca() : memref<i32>
    scf.while (%x = %x0) : (f64) -> f64 {
      ...
      scf.condition(%going) %x : f64
    } do {
    ^bb0(%x: f64):
      %before = memref.load %count[] : memref<i32>
      %after = arith.addi %before, %c1 : i32
      memref.store %after, %count[] : memref<i32>
      %rest = arith.andi %after, %c255 : i32
      %is_due = arith.cmpi eq, %rest, %c0 : i32
      scf.if %is_due { func.call @mlirml_poll() : () -> () }
      ...
    }
    %sum = scf.for %k = %c0 to %chunks step %c1 iter_args(%t = %zero) -> (f64) {
      func.call @mlirml_poll() : () -> ()
      scf.for %i = %first to %end step %c1 iter_args(%s = %t) -> (f64) { ... }
    }

LLVM keeps the counter in a register. The loops that poll are `while`, an outermost `for` of unknown trip count, and one
that takes more than about a hundredth of a second. A `for` with iterations of known short duration is split into
chunks, so that the inner loop can still be vectorised. A poll does not return if a signal handler raises, nor in other
threads that run the same parallel loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from mlirml.analysis.traits import SEQUENTIAL_LOOPS
from mlirml.analysis.trip_counts import most_trips, trip_count
from mlirml.dialects.mlirml import TILE
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, has_op, mlir
from mlirml.passes import Pass, register
from mlirml.passes.presence import PROGRAM_LOOP

RUNTIME = "mlirml_poll"
_LONG = 1 << 26
"""The number of operations above which a user may lose patience."""
_BETWEEN_POLLS = 1 << 12
"""The number of operations between two polls, each of which takes as long as about ten of them."""
_CHUNK = 1 << 20
_USUAL_TRIPS = 8
"""The assumed trip count of an inner loop of unknown trip count."""
_UNKNOWN = float("inf")

LoopCost: TypeAlias = tuple[mlir.Operation, tuple[float, float]]
"""A loop, and the number of operations of an iteration: an upper bound, and an estimate."""


@register(when=PROGRAM_LOOP)
class PollSignalsPass(Pass):
    """Insert polls for signals into long loops."""

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, SEQUENTIAL_LOOPS):
            return
        functions = {op.attributes["sym_name"].value: op for op in top_level(module) if op.name == "func.func"}
        costs = Costs(functions)
        found: list[LoopCost] = []
        for function in functions.values():
            if TILE not in function.attributes:
                found += loops_to_poll(function, costs)
        if found:
            declare(module, found[0][0])
        for loop, (most, usual) in found:
            if loop.name == "scf.for" and most <= _BETWEEN_POLLS:
                split(loop, int(_CHUNK / usual))
            else:
                poll_in_body(loop, usual)


class Costs:
    """Estimates of the operations that an operation executes, from known trip counts; `inf` for unknown ones."""

    def __init__(self, functions: dict[str, mlir.Operation]) -> None:
        self._functions = functions
        self._known: dict[str, tuple[float, float]] = {}

    def of(self, op: mlir.Operation) -> tuple[float, float]:
        """An upper bound, and an estimate."""
        if op.name == "func.call":
            return self._of_function(callee_of(op))
        if not op.regions:
            return 1, 1
        most, usual = self.of_body(op)
        if op.name == "scf.while":
            return _UNKNOWN, _USUAL_TRIPS * usual
        if op.name == "scf.for":
            count = most_trips(op)
            return (_UNKNOWN, _USUAL_TRIPS * usual) if count is None else (count * most, count * usual)
        return most, usual

    def of_body(self, op: mlir.Operation) -> tuple[float, float]:
        """The same for the regions of an operation."""
        both = [self.of(inner) for region in op.regions for block in region.blocks for inner in block_ops(block)]
        return sum(most for most, _ in both) or 1, sum(usual for _, usual in both) or 1

    def _of_function(self, name: str) -> tuple[float, float]:
        if name not in self._functions or name in self._known:
            return self._known.get(name, (1, 1))
        self._known[name] = 1, 1
        most, usual = self.of_body(self._functions[name])
        self._known[name] = usual if TILE in self._functions[name].attributes else most, usual
        return self._known[name]


def top_level(module: mlir.Operation) -> list[mlir.Operation]:
    """The operations of a module."""
    return block_ops(module.regions[0].blocks[0])


def loops_to_poll(op: mlir.Operation, costs: Costs) -> Iterable[LoopCost]:
    """The loops in the regions of an operation that poll, and the cost of an iteration."""
    for inner in (inner for region in op.regions for block in region.blocks for inner in block_ops(block)):
        if inner.name == "scf.parallel" or not inner.regions:
            continue
        polls = inner.name == "scf.while"
        if inner.name == "scf.for" and costs.of(inner)[0] >= _LONG:
            # An inner loop of unknown trip count in a loop that polls is assumed to be short.
            most = costs.of_body(inner)[0]
            polls = trip_count(inner) is None or most < _LONG or most == _UNKNOWN
        if polls:
            yield inner, costs.of_body(inner)
        if polls and inner.name == "scf.for":
            yield from long_loops_in(inner, costs)
        else:
            yield from loops_to_poll(inner, costs)


def long_loops_in(op: mlir.Operation, costs: Costs) -> Iterable[LoopCost]:
    """The loops nested in a polling loop that poll themselves: `while`, and a `for` that is known to be long."""
    for loop, cost in loops_to_poll(op, costs):
        if loop.name == "scf.while" or trip_count(loop) is not None:
            yield loop, cost


def declare(module: mlir.Operation, first: mlir.Operation) -> None:
    """Declare the runtime's function, before all others."""
    attributes = {
        "sym_name": mlir.StringAttr.get(RUNTIME),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(mlir.FunctionType.get([], [])),
    }
    with first.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        emit.create("func.func", (), (), attributes, regions=1)


def call_runtime() -> None:
    emit.create("func.call", (), (), {"callee": mlir.FlatSymbolRefAttr.get(RUNTIME)})


def poll_in_body(loop: mlir.Operation, cost: float) -> None:
    """Poll at the start of every iteration, or of every 2^n-th if iterations are short."""
    body = loop.regions[-1].blocks[0]
    interval = 1 << max(0, int(_BETWEEN_POLLS / cost).bit_length() - 1)
    if interval == 1:
        with loop.location, mlir.InsertionPoint.at_block_begin(body):
            call_runtime()
        return
    counter = counter_of(loop)
    with loop.location, mlir.InsertionPoint.at_block_begin(body):
        kind = mlir.IntegerType.get_signless(32)
        after = emit.same_type("arith.addi", emit.value("memref.load", [counter], kind), emit.number(kind, 1))
        emit.create("memref.store", [after, counter])
        rest = emit.same_type("arith.andi", after, emit.number(kind, interval - 1))
        due = emit.create("scf.if", [emit.compare("eq", rest, emit.number(kind, 0))], (), regions=2)
        with mlir.InsertionPoint(emit.block(due, [])):
            call_runtime()
            emit.create("scf.yield")


def counter_of(loop: mlir.Operation) -> mlir.Value:
    """A counter for a loop, allocated at the start of its function."""
    function = loop
    while function.name != "func.func":
        function = function.parent.operation
    kind = mlir.IntegerType.get_signless(32)
    with loop.location, mlir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        memory = emit.value("memref.alloca", (), mlir.MemRefType.get([], kind), operandSegmentSizes=emit.segments(0, 0))
        emit.create("memref.store", [emit.number(kind, 0), memory])
    return memory


def split(loop: mlir.Operation, iterations: int) -> None:
    """Strip-mine a loop into chunks of `iterations` iterations, each of which polls first."""
    lower, upper, step, *inits = loop.operands
    kind = lower.type
    with loop.location, mlir.InsertionPoint(loop):
        size = emit.same_type("arith.muli", step, emit.number(kind, iterations))
        extent = emit.same_type("arith.subi", upper, lower)
        whole = emit.same_type("arith.divsi", extent, size)  # rounds up without overflow
        some = emit.compare("sgt", emit.same_type("arith.remsi", extent, size), emit.zero(kind))
        one_more = emit.same_type("arith.select", some, emit.number(kind, 1), emit.zero(kind))
        chunks = emit.same_type("arith.addi", whole, one_more)
        chunk_loop = emit.create(
            "scf.for",
            [emit.number(kind, 0), chunks, emit.number(kind, 1), *inits],
            [value.type for value in inits],
            regions=1,
        )
        body = emit.block(chunk_loop, [kind, *[value.type for value in inits]])
        with mlir.InsertionPoint(body):
            call_runtime()
            first = emit.same_type("arith.addi", lower, emit.same_type("arith.muli", body.arguments[0], size))
            left = emit.same_type("arith.subi", upper, first)
            end = emit.same_type("arith.addi", first, emit.same_type("arith.minsi", left, size))
            final = emit.create("scf.yield", list(loop.results))
        for old, new in zip(list(loop.results), list(chunk_loop.results)):
            old.replace_all_uses_except(new, final)
        loop.move_before(final)
        for position, value in enumerate((first, end, step, *list(body.arguments)[1:])):
            loop.operands[position] = value
