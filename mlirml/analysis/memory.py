"""The buffers that operations read and write, and the operations that may be reordered.

The analysis follows views and looks into regions. An operation that is not known may have any effect; a buffer that is
not known, such as a loop-carried one, may alias any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import SEQUENTIAL_LOOPS
from mlirml.analysis.values import ancestor_in
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import SORTS
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, seen_through
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS

VIEWS = (
    "memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.reinterpret_cast",
    "memref.view",
)  # fmt: skip
"""Operations whose result is memory of their first operand."""
ELEMENT_VIEWS = tuple(name for name in VIEWS if name != "memref.view")
"""Those of them that count offsets in elements of their operand, from its first one: the offset is in the type."""

_READS = {
    "memref.load": (0,), "affine.load": (0,), "vector.load": (0,), "vector.maskedload": (0,), "vector.gather": (0,),
    "vector.transfer_read": (0,), "affine.vector_load": (0,), "memref.copy": (0,), "gpu.memcpy": (1,),
    "memref.prefetch": (0,), **dict.fromkeys(SORTS, (0,)),
    **{name: tuple(range(call.inputs)) for name, call in LIBRARY_CALLS.items()},
    **{name: tuple(range(inputs)) for name, inputs in COMPACTIONS.items()},
}  # fmt: skip
"""The operands of which an operation reads elements."""
_WRITES = {
    "memref.store": (1,), "affine.store": (1,), "vector.store": (1,), "vector.maskedstore": (0,),
    "vector.scatter": (0,), "vector.transfer_write": (1,), "affine.vector_store": (1,), "memref.copy": (1,),
    "gpu.memcpy": (0,), "memref.dealloc": (0,), "memref.atomic_rmw": (1,),
    **dict.fromkeys(SORTS, (1,)), **{name: (call.inputs,) for name, call in LIBRARY_CALLS.items()},
    **{name: (inputs,) for name, inputs in COMPACTIONS.items()},
}  # fmt: skip
"""The operands of which an operation writes elements."""
_ASYNC_COPY = "nvgpu.device_async_copy"  # into its first operand; it ends later, and may not be reordered as others are
_PURE = ("arith.", "math.", "complex.", "index.", "tensor.", "vector.", "ub.", "affine.apply", "affine.m")
"""Operations that have memory effects only if they have memref operands."""
_NUMBERS = ("arith.", "math.")
"""Those of them that have no memref operands, except for `arith.select`."""
_NOTHING = frozenset([
    "memref.alloc", "memref.alloca", "memref.get_global", "memref.dim", "memref.extract_strided_metadata", *VIEWS,
    "linalg.index", "linalg.yield", "scf.yield", "scf.condition", "scf.reduce", "affine.yield", "func.return",
])  # fmt: skip
_REGIONS = ("scf.", "affine.for", "affine.if", "affine.parallel")
"""Operations whose effects are those of the operations in their regions."""
_MEMORY = (mlir.MemRefType, mlir.UnrankedMemRefType)
_PASS_ON = ("scf.yield", "scf.condition", "affine.yield")


def memory_of(access: mlir.Operation) -> mlir.Value:
    """The memref of a `memref.load` or `memref.store`."""
    return access.operands[0 if access.name == "memref.load" else 1]


def buffer_of(value: mlir.Value) -> mlir.Value:
    """The buffer that a memref is a view of."""
    return seen_through(value, VIEWS)


def array_of(value: mlir.Value) -> mlir.Value:
    """The array that a value is a view of; a part of the workspace that `memref.view` makes counts as an array."""
    owner = defining_op(value)
    while owner is not None and owner.name in ELEMENT_VIEWS:
        value = owner.operands[0]
        owner = defining_op(value)
    return value


def is_known(buffer: mlir.Value) -> bool:
    """True if a buffer overlaps with no other: an argument of the function, an allocation, a constant.

    A loop-carried buffer, or a result of a branch, may alias another buffer.
    """
    owner = defining_op(buffer)
    if owner is None:
        return bool(buffer.owner.owner.operation.name == "func.func")
    return owner.name in ("memref.alloc", "memref.alloca", "memref.get_global")


def may_overlap(one: mlir.Value, other: mlir.Value) -> bool:
    """True if two memrefs may have common elements, going by their buffers."""
    one, other = buffer_of(one), buffer_of(other)
    return bool(one == other) or not (is_known(one) and is_known(other))


def slice_of(memory: mlir.Value) -> tuple[mlir.Value, int, int] | None:
    """The bytes, begin and end, of a buffer that a memref is a view of; None for others than slices of known size."""
    root = seen_through(memory, ELEMENT_VIEWS)
    view = defining_op(root)
    if view is None or view.name != "memref.view" or not root.type.has_static_shape:
        return None
    begin = constant_of(view.operands[1])
    element = root.type.element_type
    if begin is None or not isinstance(element, mlir.IntegerType | mlir.FloatType):
        return None
    return view.operands[0], begin, begin + math.prod(root.type.shape) * -(-element.width // 8)


def are_apart(one: mlir.Value, other: mlir.Value) -> bool:
    """True if two memrefs have no common elements: those of different buffers, or of separate slices of one."""
    if not may_overlap(one, other):
        return True
    a, b = slice_of(one), slice_of(other)
    return a is not None and b is not None and a[0] == b[0] and (a[2] <= b[1] or b[2] <= a[1])


@dataclass(frozen=True)
class Effects:
    """The buffers that an operation reads and writes, in its regions too; `unknown`: it may read and write any."""

    reads: frozenset[mlir.Value] = frozenset()
    writes: frozenset[mlir.Value] = frozenset()
    unknown: bool = False

    def reads_from(self, memory: mlir.Value) -> bool:
        """True if a buffer or view may be read."""
        return self.unknown or any(may_overlap(memory, buffer) for buffer in self.reads)

    def writes_to(self, memory: mlir.Value) -> bool:
        """True if a buffer or view may be written."""
        return self.unknown or any(may_overlap(memory, buffer) for buffer in self.writes)

    def touches(self, memory: mlir.Value) -> bool:
        """True if a buffer or view may be read or written."""
        return self.reads_from(memory) or self.writes_to(memory)


def effects(op: mlir.Operation) -> Effects:
    """The memory effects of an operation and of the operations in its regions."""
    return _effects(operations(op) if len(op.regions) else (op,))


def body_effects(op: mlir.Operation) -> Effects:
    """The memory effects of the operations in the regions of an operation; a failing `cf.assert` does not count."""
    nested = operations(op)
    next(nested)
    return _effects(each for each in nested if each.name != "cf.assert")


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


def conflict(one: Effects, other: Effects) -> bool:
    """True if one of two operations accesses a buffer that the other writes."""
    if one.unknown or other.unknown:
        return one != Effects() and other != Effects()
    return any(other.touches(buffer) for buffer in one.writes) or any(one.reads_from(buffer) for buffer in other.writes)


def after(op: mlir.Operation, count: int) -> list[mlir.Operation]:
    """The next `count` operations after `op` in its block, or fewer at its end."""
    ops = (other.operation for other in op.block.operations)
    any(other == op for other in ops)  # now `op` is the last that was taken
    return list(islice(ops, count))


def aliases(user: mlir.Operation) -> Iterator[mlir.Value]:
    """The memrefs that may alias a memref which an operation uses: its results, and the values it forwards to.

    A terminator forwards its operands to the results of the parent operation and to the arguments of its blocks, and a
    loop forwards its inits to the arguments of its blocks.
    """
    around = user.parent.operation if user.name in _PASS_ON else user
    values = list(around.results)
    if user.name in _PASS_ON or user.name in SEQUENTIAL_LOOPS:
        values += [argument for region in around.regions for block in region.blocks for argument in block.arguments]
    yield from (value for value in values if isinstance(value.type, mlir.MemRefType))


def uses_of(buffer: mlir.Value) -> tuple[bool, bool]:
    """Two booleans: a buffer is read, and it is written, through its aliases too. An unknown operation does both."""
    is_read = is_written = False
    todo, seen = [buffer], set[mlir.Value]()
    while todo:
        for use in todo.pop().uses:
            user, number = use.owner.operation, use.operand_number
            reads = number in _READS.get(user.name, ())
            writes = number in _WRITES.get(user.name, ())
            if user.name == _ASYNC_COPY:
                reads, writes = number > 0, number == 0
            elif not reads and not writes and user.name not in (*_NOTHING, *SEQUENTIAL_LOOPS):
                reads = writes = True
            is_read, is_written = is_read or reads, is_written or writes
            fresh = [value for value in aliases(user) if value not in seen]
            seen.update(fresh)
            todo += fresh
    return is_read, is_written


def users_of(buffers: Iterable[mlir.Value]) -> list[mlir.Operation]:
    """The operations, nested ones included, that use buffers or their aliases, such as views."""
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
    """The operations of a block that may access the buffer of a memref, or contain one that may, in no order."""
    for user in users_of([buffer_of(memory)]):
        ancestor = ancestor_in(user, block)
        if ancestor is not None and ancestor.name not in VIEWS:
            yield ancestor


def is_touched(memory: mlir.Value, first: mlir.Operation, last: mlir.Operation) -> bool:
    """True if an operation between two others of a block may access the buffer of a memref."""
    users = touching(memory, last.block)
    return any(first.is_before_in_block(user) and user.is_before_in_block(last) for user in users)
