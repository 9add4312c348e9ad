"""Which buffers operations read and write, and which operations may be exchanged.

Views are seen through, and regions are looked into. An operation that is not known may do anything; a buffer that is
not known, as one that a loop carries, may be any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from mlirml.analysis.values import outer_values, place_in
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import FACTORIZATIONS, SORTS
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, seen_through

VIEWS = (
    "memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.reinterpret_cast",
    "memref.view",
)  # fmt: skip
"""Operations whose result is memory of their first operand."""

_READS = {
    "memref.load": (0,), "affine.load": (0,), "vector.load": (0,), "vector.maskedload": (0,), "vector.gather": (0,),
    "vector.transfer_read": (0,), "affine.vector_load": (0,), "memref.copy": (0,), "gpu.memcpy": (1,),
    "memref.prefetch": (0,), **dict.fromkeys((*SORTS, *FACTORIZATIONS), (0,)), "mlirml.solve": (0, 1),
}  # fmt: skip
"""Which operands an operation reads the elements of."""
_WRITES = {
    "memref.store": (1,), "affine.store": (1,), "vector.store": (1,), "vector.maskedstore": (0,),
    "vector.scatter": (0,), "vector.transfer_write": (1,), "affine.vector_store": (1,), "memref.copy": (1,),
    "gpu.memcpy": (0,), "memref.dealloc": (0,), "memref.atomic_rmw": (1,),
    **dict.fromkeys((*SORTS, *FACTORIZATIONS), (1,)), "mlirml.solve": (2,),
}  # fmt: skip
"""Which operands an operation writes the elements of."""
_PURE = ("arith.", "math.", "complex.", "index.", "tensor.", "vector.", "ub.", "affine.apply", "affine.m")
"""Operations that touch memory only if they have operands that are memory."""
_NUMBERS = ("arith.", "math.")
"""Those of them that have none, but for `arith.select`."""
_NOTHING = frozenset([
    "memref.alloc", "memref.alloca", "memref.get_global", "memref.dim", "memref.extract_strided_metadata", *VIEWS,
    "linalg.index", "linalg.yield", "scf.yield", "scf.condition", "scf.reduce", "affine.yield", "func.return",
])  # fmt: skip
_REGIONS = ("scf.", "affine.for", "affine.if", "affine.parallel")
"""Operations that do what those in their regions do."""
_MEMORY = (mlir.MemRefType, mlir.UnrankedMemRefType)
_PASS_ON = ("scf.yield", "scf.condition", "affine.yield")


def buffer_of(value: mlir.Value) -> mlir.Value:
    """The buffer that a memref is a view of."""
    return seen_through(value, VIEWS)


def is_known(buffer: mlir.Value) -> bool:
    """True if a buffer overlaps with no other: an argument of the function, an allocation, a constant.

    What a loop carries, or a branch gives, may be another buffer under a second name.
    """
    owner = defining_op(buffer)
    if owner is None:
        return bool(buffer.owner.owner.operation.name == "func.func")
    return owner.name in ("memref.alloc", "memref.alloca", "memref.get_global")


def may_overlap(one: mlir.Value, other: mlir.Value) -> bool:
    """True if two memrefs may have elements in common, as far as their buffers tell."""
    one, other = buffer_of(one), buffer_of(other)
    return bool(one == other) or not (is_known(one) and is_known(other))


@dataclass(frozen=True)
class Effects:
    """The buffers that an operation reads and writes, in its regions too; `unknown`: it may read and write any."""

    reads: frozenset[mlir.Value] = frozenset()
    writes: frozenset[mlir.Value] = frozenset()
    unknown: bool = False

    def reads_from(self, memory: mlir.Value) -> bool:
        """True if something may be read of a buffer or view."""
        return self.unknown or any(may_overlap(memory, buffer) for buffer in self.reads)

    def writes_to(self, memory: mlir.Value) -> bool:
        """True if something may be stored into a buffer or view."""
        return self.unknown or any(may_overlap(memory, buffer) for buffer in self.writes)

    def touches(self, memory: mlir.Value) -> bool:
        """True if a buffer or view may be read or written."""
        return self.reads_from(memory) or self.writes_to(memory)


def effects(op: mlir.Operation) -> Effects:
    """What an operation, and the operations in its regions, do to memory."""
    return _effects(operations(op) if len(op.regions) else (op,))


def body_effects(op: mlir.Operation) -> Effects:
    """What the operations in the regions of an operation do to memory, but for the end that a check may put to it."""
    inside = operations(op)
    next(inside)
    return _effects(each for each in inside if each.name != "cf.assert")


def _effects(ops: Iterable[mlir.Operation]) -> Effects:
    reads: set[mlir.Value] = set()
    writes: set[mlir.Value] = set()
    for inner in ops:
        name = inner.name
        if name in _NOTHING or (name.startswith(_NUMBERS) and name != "arith.select"):
            continue
        if name.startswith(_REGIONS) and len(inner.regions):
            continue
        if name.startswith("linalg.") and len(inner.regions):
            memory = [v for v in inner.operands if isinstance(v.type, mlir.MemRefType)]
            outs = set(written_by(inner))
            writes.update(map(buffer_of, outs))
            reads.update(buffer_of(v) for v in memory if v not in outs or memory.count(v) > 1)
        elif name in _READS or name in _WRITES:
            operands = inner.operands
            reads.update(buffer_of(operands[n]) for n in _READS.get(name, ()))
            writes.update(buffer_of(operands[n]) for n in _WRITES.get(name, ()))
        elif not name.startswith(_PURE) or any(isinstance(v.type, _MEMORY) for v in inner.operands):
            return Effects(unknown=True)
    return Effects(frozenset(reads), frozenset(writes))


def written_by(op: mlir.Operation) -> list[mlir.Value]:
    """The operands that a structured operation on memrefs writes."""
    count = len(block_ops(op.regions[0].blocks[0])[-1].operands)
    return [v for v in list(op.operands)[len(op.operands) - count :] if isinstance(v.type, mlir.MemRefType)]


def may_exchange(first: mlir.Operation, second: mlir.Operation) -> bool:
    """True if two neighbours may change places: neither uses what the other gives, or touches what it writes."""
    if any(result in outer_values(second) for result in first.results):
        return False
    one, other = effects(first), effects(second)
    return not conflict(one, other)


def conflict(one: Effects, other: Effects) -> bool:
    """True if one of two operations touches what the other writes."""
    if one.unknown or other.unknown:
        return one != Effects() and other != Effects()
    return any(other.touches(buffer) for buffer in one.writes) or any(one.reads_from(buffer) for buffer in other.writes)


def after(op: mlir.Operation, count: int) -> list[mlir.Operation]:
    """So many operations after `op` in its block, at most."""
    ops = (other.operation for other in op.block.operations)
    any(other == op for other in ops)  # now `op` is the last that was taken
    return list(islice(ops, count))


def aliases(user: mlir.Operation) -> Iterator[mlir.Value]:
    """The memrefs that a memref which an operation uses may go on as: its results, and what it passes on to.

    What ends a region passes on to the results of the operation around it and to the arguments of its blocks, and a
    loop to the arguments of its blocks.
    """
    around = user.parent.operation if user.name in _PASS_ON else user
    values = list(around.results)
    if user.name in _PASS_ON or user.name in ("scf.for", "scf.while"):
        values += [argument for region in around.regions for block in region.blocks for argument in block.arguments]
    yield from (value for value in values if isinstance(value.type, mlir.MemRefType))


def users_of(buffers: Iterable[mlir.Value]) -> list[mlir.Operation]:
    """The operations, nested ones too, that use buffers or what they may go on as, views among them."""
    found, todo, seen = [], list(buffers), set[mlir.Value]()
    while todo:
        for use in todo.pop().uses:
            user = use.owner.operation
            found.append(user)
            for value in aliases(user):
                if value not in seen:
                    seen.add(value)
                    todo.append(value)
    return found


def touching(memory: mlir.Value, block: mlir.Block) -> Iterator[mlir.Operation]:
    """The operations of a block that may touch the buffer of a memref, or hold such, in no order."""
    for user in users_of([buffer_of(memory)]):
        place = place_in(user, block)
        if place is not None and place.name not in VIEWS:
            yield place


def is_touched(memory: mlir.Value, first: mlir.Operation, last: mlir.Operation) -> bool:
    """True if an operation between two others of a block may touch the buffer of a memref."""
    users = touching(memory, last.block)
    return any(first.is_before_in_block(user) and user.is_before_in_block(last) for user in users)
