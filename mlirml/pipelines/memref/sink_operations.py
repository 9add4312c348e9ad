"""Sink operations: in loops that are not vectorised, slow operations that only one side of a select needs get a branch.

Before:
    %e = math.exp %x : f64
    %below = arith.cmpf olt, %u, %e : f64
    %taken = arith.select %always, %true, %below : i1
After:
    %taken = scf.if %always -> (i1) {
      scf.yield %true : i1
    } else {
      %e = math.exp %x : f64
      %below = arith.cmpf olt, %u, %e : f64
      scf.yield %below : i1
    }

Before:
    %old = memref.load %x[%i] : memref<8xf64>
    %new = arith.select %better, %y, %old : f64
    memref.store %new, %x[%i] : memref<8xf64>
After:
    scf.if %better {
      memref.store %y, %x[%i] : memref<8xf64>
    }

`if` and `or` are captured as selects, since those can be raised and vectorised. In a loop with a recurrence selects are
executed as scalars, and both of their sides. Selects by one condition share the branch, also with a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cmp_to_key

from mlirml.analysis.cost import instructions_of
from mlirml.analysis.traits import COMPARISONS, INTEGER_DIVISIONS, LOOPS, SEQUENTIAL_LOOPS
from mlirml.analysis.values import ancestor_in, operands_first, used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations, replace_op
from mlirml.passes import Pass, register
from mlirml.passes.presence import PROGRAM_LOOP

_CHOICES = ("arith.select", "arith.andi", "arith.ori")
_LIKELY = ((False, ("oeq", "uno")), (True, ("one", "une", "ord")))
_MANY = 8
"""Selects and operations of a side that is rarely chosen, from which on a misprediction now and then costs less."""
_STORE = "memref.store"
_STORES = (_STORE, "memref.copy", "func.call", "linalg.", "vector.", "scf.", "cf.", "llvm.", "mlirml.")


@register(when=PROGRAM_LOOP, optional=True)
class SinkOperationsPass(Pass):
    """Sink operations that take at least `least` cycles into branches."""

    least: int = 12

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, SEQUENTIAL_LOOPS):
            if is_serial(loop):
                for store in [op for block in _own_blocks(loop) for op in block_ops(block)[::-1] if op.name == _STORE]:
                    while (found := match_conditional_store(store)) is not None:  # once for each of nested selects
                        build_store(store, found)
                for block in _own_blocks(loop):
                    join_branches(block)
                for branch in [op for block in _own_blocks(loop) for op in block_ops(block) if op.name == "scf.if"]:
                    choice = match_joined(branch)
                    if choice is not None:
                        branch.move_before(build_branch(choice))
                for block in list(_own_blocks(loop)):
                    self.sink_in(block)
                for block in _own_blocks(loop):
                    join_branches(block)

    def sink_in(self, block: mlir.Block) -> None:
        """Create branches in a block, and in those branches.

        From its end to its start: a branch is after all operations that are looked at later, so that it is no barrier
        for them.
        """
        ops = block_ops(block)
        positions = {op.results[0]: position for position, op in enumerate(ops) if len(op.results) == 1}
        left = [op.name in _CHOICES and len(op.results) > 0 for op in ops]
        for position, barrier in reversed(list(enumerate(barriers_in(ops)))):
            if left[position]:
                choice = match_choice(ops[position], self.least, barrier)
                if choice is not None:
                    for op in (*choice.selects, *choice.sides[0], *choice.sides[1]):
                        left[positions[op.results[0]]] = False
                    for region in build_branch(choice).regions:
                        self.sink_in(region.blocks[0])


@dataclass(frozen=True)
class Choice:
    """Selects by one condition, the last of which is `insertion`, and the operations that only one side needs."""

    condition: mlir.Value
    insertion: mlir.Operation
    selects: tuple[mlir.Operation, ...]
    sides: tuple[list[mlir.Operation], list[mlir.Operation]]


def _own_blocks(loop: mlir.Operation) -> Iterator[mlir.Block]:
    """The blocks of a loop and of branches in it, without those of inner loops."""
    for region in loop.regions:
        for block in region.blocks:
            yield block
            for op in block_ops(block):
                if op.name == "scf.if":
                    yield from _own_blocks(op)


def is_serial(loop: mlir.Operation) -> bool:
    """True if LLVM cannot vectorise a loop: it is a `while`, has inner loops, or has a recurrence."""
    if loop.name == "scf.while" or any(op.name in LOOPS for op in operations(loop) if op != loop):
        return True
    return _waits(loop) or _reads_other_elements(loop)


def _waits(loop: mlir.Operation) -> bool:
    """True if a comparison depends on loop-carried values, other than that of a minimum or maximum."""
    block = loop.regions[0].blocks[0]
    known: set[mlir.Value] = set()
    for carried in list(block.arguments)[1:]:
        users = [use.owner.operation for use in carried.uses]
        compared = [op for op in users if op.name in COMPARISONS]
        by_result = [use.owner.operation for op in compared for use in op.results[0].uses]
        if not (len(users) == 2 and len(compared) == len(by_result) == 1 and by_result[0] in users):
            known.add(carried)
    for op in operations(loop):
        if op != loop and any(value in known for value in used_values(op)):
            chosen = op.name == "arith.select" and op.operands[0] in known
            if chosen or op.name in COMPARISONS:
                return True
            known.update(op.results)
    return False


def _reads_other_elements(loop: mlir.Operation) -> bool:
    """True if a loop loads other elements of an array that it stores to."""
    found = list(operations(loop))
    stores = [op for op in found if op.name == "memref.store"]
    for op in found:
        if op.name == "memref.load":
            same = [store for store in stores if store.operands[1] == op.operands[0]]
            if any(list(store.operands)[2:] != list(op.operands)[1:] for store in same):
                return True
    return False


def match_choice(last: mlir.Operation, least: int, barrier: mlir.Operation | None) -> Choice | None:
    """The selects by the condition of `last`, if one side of them is slow; else None.

    `barrier` is the last operation before `last` that may store to memory.
    """
    if any(isinstance(value.type, (mlir.VectorType, mlir.ShapedType)) for value in last.results):
        return None
    for condition in list(last.operands)[: 1 if last.name == "arith.select" else 2]:
        if not _is_bool(condition):
            return None
        selects = [op for op in _selects_by(condition, last) if _users_follow(op, last)]
        then, otherwise = (_needed_by_one(last, condition, selects, side, barrier) for side in (True, False))
        likely = likely_side(condition)
        saved = [sum(map(cost, ops)) for side, ops in ((True, then), (False, otherwise)) if side is not likely]
        if max(saved) >= least:
            return Choice(condition, last, tuple(selects), (then, otherwise))
        rare = rare_side(condition)
        if rare is not None and len(selects) + len(then if rare else otherwise) >= _MANY:
            return Choice(condition, last, tuple(selects), (then, otherwise))
    return None


def match_joined(branch: mlir.Operation) -> Choice | None:
    """The selects after a branch by the same condition, or its negation, that may move into it; None if none may.

    The branch exists in any case, and after it the processor need not wait for operations of the other side.
    """
    if branch.name != "scf.if" or len(branch.results):
        return None
    condition = negated(branch.operands[0]) or branch.operands[0]
    selects = []
    ops = block_ops(branch.block)
    for op in ops[ops.index(branch) + 1 :]:
        if op.regions or not op.name.startswith(("arith.", "math.")):
            break
        if op.name == "arith.select" and op.operands[0] == condition and list(op.operands).count(condition) == 1:
            selects.append(op)
    if not selects:
        return None
    last = selects[-1]
    joined = [op for op in selects if _users_follow(op, last)]
    then, otherwise = (_needed_by_one(last, condition, joined, side, branch) for side in (True, False))
    return Choice(condition, last, tuple(joined), (then, otherwise))


def join_branches(block: mlir.Block) -> None:
    """Join branches without results with a later one by the same condition or its negation, if scalars alone are
    computed between them.
    """
    before: mlir.Operation | None = None
    for op in block_ops(block):
        if op.name == "scf.if":
            if before is not None and base_of(before)[0] == base_of(op)[0]:
                move_branch(before, op)
            before = op if not len(op.results) else None
        elif op.regions or not op.name.startswith(("arith.", "math.")):
            before = None


def base_of(branch: mlir.Operation) -> tuple[mlir.Value, bool]:
    """The condition of a branch without its negation, and whether it is negated."""
    condition = branch.operands[0]
    base = negated(condition)
    return (condition, False) if base is None else (base, True)


def move_branch(first: mlir.Operation, second: mlir.Operation) -> None:
    """Move the operations of a branch to the starts of the sides of a later one where they are executed as well."""
    swapped = base_of(first)[1] != base_of(second)[1]
    for number, region in enumerate(first.regions):
        ops = [op for block in region.blocks for op in block_ops(block)[:-1]]
        if not ops:
            continue
        side = second.regions[1 - number if swapped else number]
        if not len(side.blocks):
            with second.location, mlir.InsertionPoint(emit.block(second, [], 1 - number if swapped else number)):
                emit.create("scf.yield")
        start = block_ops(side.blocks[0])[0]
        for op in ops:
            op.move_before(start)
    first.erase()


def negated(condition: mlir.Value) -> mlir.Value | None:
    """The operand of a negated condition; None for other conditions."""
    op = defining_op(condition)
    if op is None or op.name != "arith.xori" or not is_true(op.operands[1]):
        return None
    return op.operands[0]


def is_true(value: mlir.Value) -> bool:
    """True if a value is the constant `true`."""
    op = defining_op(value)
    return op is not None and op.name == "arith.constant" and str(op.attributes["value"]) == "true"


@dataclass(frozen=True)
class ConditionalStore:
    """A store of a `select` between a new value and the old element, which is the false value if `side`."""

    select: mlir.Operation
    side: bool


def match_conditional_store(store: mlir.Operation) -> ConditionalStore | None:
    """Match a store that either stores a new value or the element that is in memory already."""
    select = defining_op(store.operands[0]) if store.name == _STORE else None
    if select is None or select.name != "arith.select" or select.block != store.block or not _is_used_once(select):
        return None
    for side in (True, False):
        load = defining_op(select.operands[2 if side else 1])
        if load is None or load.name != "memref.load" or load.block != store.block:
            continue
        ops = block_ops(store.block)
        between = ops[ops.index(load) + 1 : ops.index(store)]
        if list(load.operands) == list(store.operands)[1:] and not any(o.name.startswith(_STORES) for o in between):
            return ConditionalStore(select, side)
    return None


def _is_used_once(op: mlir.Operation) -> bool:
    return sum(1 for _ in op.results[0].uses) == 1


def build_store(store: mlir.Operation, conditional: ConditionalStore) -> None:
    """Store only if the value is new, and sink the operations that only the new value needs."""
    select, block = conditional.select, store.block
    chosen, value = select.operands[0], select.operands[1 if conditional.side else 2]
    condition = chosen
    with store.location, mlir.InsertionPoint(store):
        if not conditional.side:
            condition = emit.same_type("arith.xori", condition, emit.number(condition.type, 1))
        branch = emit.create("scf.if", [condition], regions=2)
        with mlir.InsertionPoint(emit.block(branch, [])):
            final = emit.create("scf.yield")
    store.operands[0] = value
    store.move_before(final)
    select.erase()
    found = [store]
    stored = False
    ops = block_ops(block)
    for op in ops[: ops.index(branch)][::-1]:
        stored = stored or op.name.startswith(_STORES)
        users = [use.owner.operation for result in op.results for use in result.uses]
        if _may_move(op, stored) and all(user in found for user in users):
            op.move_before(found[-1])
            found.append(op)
    for op in found:  # selects by the same condition are decided in the branch
        if op.name == "arith.select" and op.operands[0] == chosen:
            op.results[0].replace_all_uses_with(op.operands[1 if conditional.side else 2])


def _is_bool(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.IntegerType) and mlir.IntegerType(value.type).width == 1


def likely_side(condition: mlir.Value) -> bool | None:
    """True or False if a condition nearly always is: floats are rarely equal, and rarely NaN; None if unknown."""
    sides: dict[mlir.Value, bool | None] = {}
    for value in operands_first(condition, _combined):
        op = defining_op(value)
        if op is not None and op.name == "arith.cmpf":
            found = mlir.IntegerAttr(op.attributes["predicate"]).value
            likely = (side for side, names in _LIKELY if found in map(emit.FLOAT_PREDICATES.get, names))
            sides[value] = next(likely, None)
        else:
            wanted = op is not None and op.name == "arith.ori"
            sides[value] = wanted if wanted in {sides[part] for part in _combined(value)} else None
    return sides[condition]


def _combined(condition: mlir.Value) -> Sequence[mlir.Value]:
    """The conditions that another one combines."""
    op = defining_op(condition)
    return op.operands if op is not None and op.name in ("arith.andi", "arith.ori") else ()


def rare_side(condition: mlir.Value) -> bool | None:
    """The outcome that a comparison of integers rarely has: they are rarely equal; None for other conditions.

    This is a heuristic of T. Ball and J. Larus, Branch prediction for free, PLDI 1993.
    """
    op = defining_op(condition)
    if op is None or op.name != "arith.cmpi" or _is_bool(op.operands[0]):
        return None
    predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
    return {emit.INTEGER_PREDICATES["eq"]: True, emit.INTEGER_PREDICATES["ne"]: False}.get(predicate)


def _selects_by(condition: mlir.Value, last: mlir.Operation) -> Iterator[mlir.Operation]:
    """`last`, and the selects by the same condition before it."""
    yield last
    for use in condition.uses:
        op = use.owner.operation
        chosen = op.name == "arith.select" and op.operands[0] == condition and list(op.operands).count(condition) == 1
        if chosen and op.block == last.block and op.is_before_in_block(last):
            yield op


def _users_follow(op: mlir.Operation, last: mlir.Operation) -> bool:
    """True if all users of a select come after `last`."""
    users = [ancestor_in(use.owner.operation, last.block) for use in op.results[0].uses]
    return op == last or all(user is not None and last.is_before_in_block(user) for user in users)


def side_value(op: mlir.Operation, condition: mlir.Value, side: bool) -> mlir.Value | None:
    """The operand that a select returns if its condition is `side`; None for the condition itself."""
    if op.name == "arith.select":
        return op.operands[1 if side else 2]
    other = op.operands[1] if op.operands[0] == condition else op.operands[0]
    return other if side == (op.name == "arith.andi") else None


def _needed_by_one(
    last: mlir.Operation,
    condition: mlir.Value,
    selects: list[mlir.Operation],
    side: bool,
    barrier: mlir.Operation | None,
) -> list[mlir.Operation]:
    """The operations that only one side of some selects needs, in order; no loads before `barrier`."""
    chosen, others = (
        {value for op in selects if (value := side_value(op, condition, one)) is not None} for one in (side, not side)
    )
    own = chosen - others - {condition}
    found: set[mlir.Operation] = set()
    pending = list(own)
    while pending:  # an operation is looked at once for each of its users, and found at the last of them
        op = defining_op(pending.pop())
        if op is None or op in found or op.block != last.block or not _may_move(op, False):
            continue
        (result,) = op.results
        users = [use.owner.operation for use in result.uses]
        needed = all(user in found or (user in selects and result in own) for user in users)
        may_change = op.name == "memref.load" and barrier is not None and op.is_before_in_block(barrier)
        if needed and not may_change:
            found.add(op)
            pending.extend(op.operands)
    return sorted(found, key=_IN_ORDER)


def barriers_in(ops: Sequence[mlir.Operation]) -> list[mlir.Operation | None]:
    """For each operation of a block the last one before it that may store to memory."""
    found: list[mlir.Operation | None] = []
    last = None
    for op in ops:
        found.append(last)
        last = op if op.name.startswith(_STORES) else last
    return found


def _order(one: mlir.Operation, other: mlir.Operation) -> int:
    """-1 if an operation is before another one of its block, 1 if it is after it."""
    return 0 if one == other else -1 if one.is_before_in_block(other) else 1


_IN_ORDER = cmp_to_key(_order)


def _may_move(op: mlir.Operation, stored: bool) -> bool:
    """True if an operation computes scalars, or loads an element that cannot have been overwritten since."""
    if op.name == "memref.load":
        return not stored
    return op.name.startswith(("arith.", "math.")) and op.name != "arith.constant" and len(op.results) == 1


def cost(op: mlir.Operation) -> int:
    """Estimate of the cycles that an operation takes, beyond those of an addition."""
    divisor = defining_op(op.operands[1]) if op.name in INTEGER_DIVISIONS else None
    return 2 if divisor is not None and divisor.name == "arith.constant" else max(0, instructions_of(op.name) - 1)


def build_branch(choice: Choice) -> mlir.Operation:
    """Replace selects by a branch."""
    insertion = choice.insertion
    selects = sorted(choice.selects, key=_IN_ORDER)
    with insertion.location, mlir.InsertionPoint(insertion):
        new = emit.create("scf.if", [choice.condition], [op.results[0].type for op in selects], regions=2)
        for number, (side, ops) in enumerate(zip((True, False), choice.sides)):
            with mlir.InsertionPoint(emit.block(new, [], number)):
                values = [side_value(op, choice.condition, side) for op in selects]
                known = [emit.number(choice.condition.type, int(side)) if v is None else v for v in values]
                final = emit.create("scf.yield", known)
            for op in ops:
                op.move_before(final)
    for op, result in zip(selects, new.results):
        replace_op(op, result)
    return new
