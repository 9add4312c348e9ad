"""Jam recurrences: sums over the elements that earlier iterations stored are computed for eight iterations at a time.

Before:
    scf.for %j = %c0 to %n step %c1 {
      %s = scf.for %k = %c0 to %j step %c1 iter_args(%total = %zero) -> (f64) {
        %a = memref.load %l[%j, %k] : memref<64x64xf64>
        %b = memref.load %x[%k] : memref<64xf64>              // stored by iteration %k
        %ab = arith.mulf %a, %b fastmath<contract> : f64
        %sum = arith.addf %total, %ab fastmath<reassoc,contract> : f64
        scf.yield %sum : f64
      }
      ...
      memref.store %new, %x[%j] : memref<64xf64>
    }
After:
    scf.for %j = %c0 to %whole step %c8 {
      %t:8 = scf.for %k = %c0 to %j step %c8 iter_args(...) -> (vector<8xf64>, ...) {
        %x = vector.load %x[%k] ...
        %0 = vector.load %l[%j, %k] ...                       // and the rows %j + 1 to %j + 7
        ...
      }
      // For each of the eight: the lanes of its vector summed up, the at most seven terms that are left, the rest.
    }
    scf.for %j = %whole to %n step %c1 { ... }                // as before

The trip count of the inner loop is the number of iterations of the outer loop so far, so that the first terms of eight
iterations, those of the elements stored before all of them, are the same ones. Lanes are those terms where the loads
are contiguous along %k, and the eight iterations where they are contiguous along %j (LU decomposition). One iteration
after the other waits for seven terms at most, and eight rows are read at once. This is unroll-and-jam of a triangular
loop (Carr and Kennedy, "Compiler blockability of numerical algorithms", Supercomputing 1992).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from mlirml.analysis.distances import Distances
from mlirml.analysis.memory import may_overlap
from mlirml.analysis.reductions import Combination, combination_of, is_only_use
from mlirml.analysis.values import is_within
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP
from mlirml.pipelines.memref.lanes import Values, on_lanes, shifted, value_of
from mlirml.targets.machine import Processor

_ROWS = 8
"""Iterations that are jammed, and the most lanes of a vector."""
_UNROLLED = 4
"""Terms of an iteration of the jammed inner loop where the lanes are rows: sums that do not wait for each other."""
_MOST_INNER, _MOST_OUTER = 16, 48
"""Operations that may be cloned, of the inner and of the outer loop."""
_WIDTHS = (32, 64)


@register(when=PROGRAM_LOOP, optional=True)
class JamRecurrencesPass(Pass):
    """Jam eight iterations of loops with sums over what earlier iterations stored."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        if not self.processor.vector_bits:
            return
        # Inner loops first: a loop that is replaced takes its inner loop along.
        for loop in reversed(named_operations(module, ("scf.for",))):
            with suppress(NoMatch):
                build(match(loop), self.processor)


@dataclass(frozen=True, eq=False)
class Recurrence:
    """A loop with a sum over earlier iterations; `indices` are those of each load of the sum.

    `along_rows`: the lanes of vectors are iterations of `loop`, else they are those of `inner`.
    """

    loop: mlir.Operation
    inner: mlir.Operation
    combination: Combination
    indices: dict[mlir.Operation, tuple[Linear, ...]]
    upper: Linear
    along_rows: bool

    @property
    def row(self) -> mlir.Value:
        return variable_of(self.loop)

    @property
    def term(self) -> mlir.Value:
        return variable_of(self.inner)


def variable_of(loop: mlir.Operation) -> mlir.Value:
    """The induction variable of a loop."""
    return loop.regions[0].blocks[0].arguments[0]


def match(loop: mlir.Operation) -> Recurrence:
    """Raises `NoMatch` for loops that are no recurrences, or whose first terms depend on the iteration before."""
    inner, stores = match_body(loop)
    distances = Distances()
    accumulator = inner.regions[0].blocks[0].arguments[1]
    *terms, final = block_ops(inner.regions[0].blocks[0])
    combination = combination_of(final.operands[0], accumulator)
    if combination is None or not is_jammable(combination) or not is_only_use(combination, accumulator):
        raise NoMatch("no sum that may be reordered")
    indices = {op: match_load(op, loop, inner, distances) for op in terms if op.name == "memref.load"}
    check_operations(terms, loop)
    upper = match_bounds(loop, inner, distances)
    recurrent = [
        (load, store) for load in indices for store in stores if may_overlap(load.operands[0], store.operands[1])
    ]
    if not recurrent:
        raise NoMatch("no element that an earlier iteration stored")
    found = Recurrence(loop, inner, combination, indices, upper, choose_lanes(loop, inner, indices))
    for load, store in recurrent:
        if not is_settled(found, load, store, distances):
            raise NoMatch("the iteration before may store what the sum loads")
    return found


def match_body(loop: mlir.Operation) -> tuple[mlir.Operation, list[mlir.Operation]]:
    """The one loop in another one, with one result, and the stores beside it."""
    ops = block_ops(loop.regions[0].blocks[0])[:-1]
    loops = [op for op in ops if op.name == "scf.for"]
    others = [op for op in ops if op.name != "scf.for"]
    if loop.results or len(loops) != 1 or len(loops[0].results) != 1:
        raise NoMatch("not one loop in another one")
    if not all(op.name.startswith(("arith.", "math.", "memref.load", "memref.store")) for op in others):
        raise NoMatch("something else than arithmetic beside the sum")
    inside = block_ops(loops[0].regions[0].blocks[0])
    if len(others) > _MOST_OUTER or len(inside) > _MOST_INNER:
        raise NoMatch("too large to be cloned")
    return loops[0], [op for op in others if op.name == "memref.store"]


def is_jammable(combination: Combination) -> bool:
    """True for sums and extremes of numbers that fill lanes, and are reassociated where that changes them."""
    kind, op = combination.term.type, combination.op
    if combination.combiner.several is not None or not isinstance(kind, mlir.IntegerType | mlir.FloatType):
        return False
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    return kind.width in _WIDTHS and (not combination.combiner.is_rounded or "reassoc" in flags)


def is_outside(value: mlir.Value, loop: mlir.Operation) -> bool:
    """True if a value is defined outside of a loop."""
    op = defining_op(value)
    if op is not None:
        return not is_within(op, loop)
    around = value.owner.owner.operation
    return bool(around != loop) and not is_within(around, loop)


def match_load(
    load: mlir.Operation, loop: mlir.Operation, inner: mlir.Operation, distances: Distances
) -> tuple[Linear, ...]:
    """The indices of a load as linear expressions of both induction variables."""
    found = []
    for value in list(load.operands)[1:]:
        index = distances.linear(value)
        if index is None or not is_affine(index, loop, inner):
            raise NoMatch("an index that is not linear")
        found.append(index)
    if not is_outside(load.operands[0], loop):
        raise NoMatch("a view of the loop")
    return tuple(found)


def is_affine(expression: Linear, loop: mlir.Operation, inner: mlir.Operation) -> bool:
    """True for an expression of the induction variables and of indices from outside."""
    own = (variable_of(loop), variable_of(inner))
    return all(v in own or (is_outside(v, loop) and isinstance(v.type, mlir.IndexType)) for v in expression.factors)


def check_operations(terms: Iterable[mlir.Operation], loop: mlir.Operation) -> None:
    """Raises `NoMatch` for a term with anything but loads, and arithmetic on them and on numbers from outside."""
    seen: set[mlir.Value] = set()
    for op in terms:
        if (op.name != "memref.load" and not op.name.startswith("arith.")) or len(op.results) != 1:
            raise NoMatch("a term with more than arithmetic")
        if op.name != "memref.load" and not isinstance(op.results[0].type, mlir.IndexType):
            for value in op.operands:
                if isinstance(value.type, mlir.IndexType) or (value not in seen and is_row_value(value, loop)):
                    raise NoMatch("a term of the index, or of a number of the iteration")
        seen.update(op.results)


def is_row_value(value: mlir.Value, loop: mlir.Operation) -> bool:
    """True for a value that an operation of a loop's own block defines."""
    op = defining_op(value)
    return op is not None and bool(op.block == loop.regions[0].blocks[0])


def match_bounds(loop: mlir.Operation, inner: mlir.Operation, distances: Distances) -> Linear:
    """The upper bound of the inner loop, where its trip count is the number of iterations of the outer one so far."""
    one = Linear(1)
    if any("unsignedCmp" in op.attributes or distances.linear(op.operands[2]) != one for op in (loop, inner)):
        raise NoMatch("a step other than 1")
    first, lower, upper = (distances.linear(v) for v in (loop.operands[0], inner.operands[0], inner.operands[1]))
    if first is None or lower is None or upper is None:
        raise NoMatch("bounds that are not linear")
    row = variable_of(loop)
    if lower.factor(row) or upper.factor(row) != 1 or upper.replaced(row, first) != lower:
        raise NoMatch("not as many terms as iterations so far")
    if not is_affine(lower, loop, inner) or not is_affine(upper, loop, inner):
        raise NoMatch("bounds that change")
    return upper


def choose_lanes(
    loop: mlir.Operation, inner: mlir.Operation, indices: dict[mlir.Operation, tuple[Linear, ...]]
) -> bool:
    """True if loads are contiguous along the outer loop, False if along the inner one."""
    for lane, along_rows in ((variable_of(loop), True), (variable_of(inner), False)):
        steps = [[index.factor(lane) for index in found] for found in indices.values()]
        if all(not any(each) or is_contiguous(load, each) for load, each in zip(indices, steps, strict=True)):
            return along_rows
    raise NoMatch("loads that are not contiguous")


def is_contiguous(load: mlir.Operation, steps: list[int]) -> bool:
    """True if the elements of a load, whose indices change by `steps`, are adjacent."""
    strides, _ = load.operands[0].type.get_strides_and_offset()
    return not any(steps[:-1]) and steps[-1:] == [1] and strides[-1] == 1


def is_settled(found: Recurrence, load: mlir.Operation, store: mlir.Operation, distances: Distances) -> bool:
    """True if no store of an iteration is to what the sum of the next seven loads in its jammed terms.

    The jammed terms are those before the first of the eight iterations, so before the bound of the one that stores.
    """
    targets = [distances.linear(value) for value in list(store.operands)[2:]]
    if load.operands[0] != store.operands[1] or None in targets:
        return False
    lower = distances.linear(found.inner.operands[0])
    assert lower is not None

    def is_positive(difference: Linear) -> bool:
        end = lower if difference.factor(found.term) > 0 else found.upper - 1
        return distances.least(difference.replaced(found.term, end)) > 0

    def is_apart(distance: int) -> bool:
        later = Linear.of(found.row) + distance
        for index, target in zip(found.indices[load], targets, strict=True):
            assert target is not None
            difference = index.replaced(found.row, later) - target
            if is_positive(difference) or is_positive(difference * -1):
                return True
        return False

    return all(is_apart(distance) for distance in range(1, _ROWS))


def build(found: Recurrence, processor: Processor) -> None:
    """Replace a loop by the one over whole blocks, and the one over the rest."""
    loop = found.loop
    lower, upper, _ = loop.operands
    with loop.location, mlir.InsertionPoint(loop):
        count = emit.same_type("arith.subi", upper, lower)
        rest = emit.same_type("arith.remsi", count, emit.index(_ROWS))
        whole = emit.same_type("arith.subi", upper, rest)
        emit.for_loop(lower, whole, emit.index(_ROWS), lambda row, _: build_block(found, row, processor))
        copy = clone_with(loop, {})
        copy.operands[0] = whole
    loop.erase()


def build_block(found: Recurrence, row: mlir.Value, processor: Processor) -> None:
    """The iterations from `row` on."""
    lower, end = found.inner.operands[0], value_of(found.upper, {found.row: row})
    build_terms = rows_as_lanes if found.along_rows else terms_as_lanes
    totals = build_terms(found, row, lower, end, processor)
    for number, total in enumerate(totals):
        build_row(found, shifted(row, number), shifted(end, 0), number, total)


def build_row(found: Recurrence, row: mlir.Value, end: mlir.Value, number: int, total: mlir.Value) -> None:
    """One iteration, with the sum of its jammed terms known: the other `number` terms follow."""
    values: Values = {found.row: row}
    for op in block_ops(found.loop.regions[0].blocks[0])[:-1]:
        if op != found.inner:
            clone_with(op, values)
            continue
        start = op.operands[3]
        total = combined(found, values.get(start, start), total)
        for term in range(number):
            total = one_term(found, shifted(end, term), total, values)
        values[op.results[0]] = total


def one_term(found: Recurrence, term: mlir.Value, total: mlir.Value, values: Values) -> mlir.Value:
    """The total with one more term."""
    block = found.inner.regions[0].blocks[0]
    environment = {**values, block.arguments[0]: term, block.arguments[1]: total}
    *ops, final = block_ops(block)
    for op in ops:
        clone_with(op, environment)
    return environment[final.operands[0]]


def combined(found: Recurrence, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """Two sums of terms, combined; they may be vectors."""
    op = found.combination.op
    return emit.value(op.name, [a, b], b.type, **{name: op.attributes[name] for name in op.attributes})


def rows_as_lanes(
    found: Recurrence, row: mlir.Value, lower: mlir.Value, end: mlir.Value, _: Processor
) -> list[mlir.Value]:
    """The sums of the jammed terms: one vector has one term of all rows."""
    kind = found.combination.term.type
    lanes = mlir.VectorType.get([_ROWS], kind)

    def body(term: mlir.Value, totals: list[mlir.Value]) -> list[mlir.Value]:
        return [
            vector_term(found, lanes, total, {found.row: row, found.term: shifted(term, number)})
            for number, total in enumerate(totals)
        ]

    start = identity_vector(found, lanes)
    totals = emit.for_loop(lower, end, emit.index(_UNROLLED), body, [start] * _UNROLLED)
    while len(totals) > 1:
        totals = [combined(found, a, b) for a, b in zip(totals[::2], totals[1::2], strict=True)]
    position = [mlir.DenseI64ArrayAttr.get([number]) for number in range(_ROWS)]
    return [emit.value("vector.extract", totals, kind, static_position=each) for each in position]


def terms_as_lanes(
    found: Recurrence, row: mlir.Value, lower: mlir.Value, end: mlir.Value, processor: Processor
) -> list[mlir.Value]:
    """The sums of the jammed terms: one vector has several terms of a row."""
    kind = found.combination.term.type
    width = min(_ROWS, processor.lanes(kind.width))
    lanes = mlir.VectorType.get([width], kind)

    def body(term: mlir.Value, totals: list[mlir.Value]) -> list[mlir.Value]:
        return [
            vector_term(found, lanes, total, {found.row: shifted(row, number), found.term: term})
            for number, total in enumerate(totals)
        ]

    start = identity_vector(found, lanes)
    totals = emit.for_loop(lower, end, emit.index(width), body, [start] * _ROWS)
    return [reduced(found, total) for total in totals]


def identity_vector(found: Recurrence, lanes: mlir.VectorType) -> mlir.Value:
    """A vector of the number that changes no sum."""
    number = emit.identity(found.combination.combiner, lanes.element_type)
    return emit.constant(mlir.DenseElementsAttr.get_splat(lanes, number))


def reduced(found: Recurrence, vector: mlir.Value) -> mlir.Value:
    """The combination of the lanes of a vector."""
    op, kind = found.combination.op, mlir.VectorType(vector.type).element_type
    attributes = {"kind": mlir.Attribute.parse(f"#vector.kind<{found.combination.combiner.vector_kind}>")}
    if "fastmath" in op.attributes:
        attributes["fastmath"] = op.attributes["fastmath"]
    return emit.value("vector.reduction", [vector], kind, **attributes)


def vector_term(found: Recurrence, lanes: mlir.VectorType, total: mlir.Value, values: Values) -> mlir.Value:
    """A vector of sums with one more term each; `values` has both induction variables."""
    block = found.inner.regions[0].blocks[0]
    lane = found.row if found.along_rows else found.term
    environment: Values = {block.arguments[1]: total}
    *ops, final = block_ops(block)
    for op in ops:
        if op.name == "memref.load":
            environment[op.results[0]] = loaded(op, found.indices[op], lane, lanes.shape[0], values)
        elif not isinstance(op.results[0].type, mlir.IndexType):
            environment[op.results[0]] = on_lanes(op, lanes.shape[0], environment)
    return environment[final.operands[0]]


def loaded(
    load: mlir.Operation, indices: tuple[Linear, ...], lane: mlir.Value, count: int, values: Values
) -> mlir.Value:
    """The elements of a load for each lane: a vector, or one number where it is the same for all."""
    operands = [load.operands[0], *(value_of(index, values) for index in indices)]
    kind = load.results[0].type
    if not any(index.factor(lane) for index in indices):
        return emit.value("memref.load", operands, kind)
    return emit.value("vector.load", operands, mlir.VectorType.get([count], kind))
