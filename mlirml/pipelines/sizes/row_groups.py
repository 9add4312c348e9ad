"""Groups of structured operations on memrefs that go through the same rows, one row at a time.

What one operation stores in a row the next one finds in the cache. An operation joins a group if its first loops have
the trip counts of those of the group, and if an array that is stored in the group is only accessed at the row of these
loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.memory import VIEWS, body_effects
from mlirml.analysis.memory import array_of as root_of
from mlirml.analysis.memref_sizes import Factors, size_of
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.pipelines.sizes.sized_loops import Loops

_HARMLESS = ("memref.alloc", "memref.get_global", "memref.dim", *VIEWS)


@dataclass
class Group:
    """Operations, and the number of outer loops that they share."""

    members: list[Loops]
    depth: int


def groups_of(block: mlir.Block, vector_bits: int = 0) -> list[Group]:
    """The structured operations of a block, in order, as groups, for a processor with vectors of so many bits."""
    found: list[Group] = []
    open_ = False
    for op in block_ops(block):
        if not is_structured(op):
            open_ = open_ and (op.name in _HARMLESS or op.name.startswith("arith."))
            continue
        loops = Loops(op, vector_bits)
        depth = joint_depth(found[-1], loops) if open_ else 0
        if depth:
            found[-1].members.append(loops)
            found[-1].depth = depth
        else:
            found.append(Group([loops], most_rows(loops)))
        open_ = True
    return found


def is_structured(op: mlir.Operation) -> bool:
    """True for a structured operation on memrefs, which has no results."""
    return op.name.startswith("linalg.") and bool(op.regions) and not op.results


def most_rows(loops: Loops) -> int:
    """The number of outer parallel loops that index the first dimensions of the output, up to one to vectorise."""
    dims = loops.rows()
    if loops.transposition is not None and loops.transposition.a in dims:  # which goes in tiles
        dims = dims[: dims.index(loops.transposition.a)]
    inner = loops.innermost()
    if inner is None or inner not in dims or (inner == dims[-1] and not any(loops.reduced)):
        return len(dims)
    return dims.index(inner)


def joint_depth(group: Group, loops: Loops) -> int:
    """The number of loops that a group shares if the operation joins it; 0 if it cannot."""
    members = [*group.members, loops]
    # A group of several operations does not give up the loops that it shares.
    least = group.depth if len(group.members) > 1 else 1
    for depth in range(min(group.depth, most_rows(loops)), least - 1, -1):
        if all(len(member.reduced) == depth for member in members):
            continue  # LLVM vectorises each alone
        first = row_sizes(members[0], depth)
        if first is not None and row_sizes(loops, depth) == first and are_apart(members, depth):
            return depth
    return 0


def row_sizes(loops: Loops, depth: int) -> list[Factors] | None:
    """The trip counts of the first loops; None if one is not known."""
    sizes = []
    for loop in loops.rows()[:depth]:
        number, d = loops.extent(loop)
        size = size_of(loops.operands[number], d)
        if size is None:
            return None
        sizes.append(size)
    return sizes


def are_apart(members: Sequence[Loops], depth: int) -> bool:
    """True if each array that an operation stores is accessed by all of them at the row of the first loops alone."""
    stored = {root_of(operand) for member in members for operand in member.operands[member.first_out :]}
    for member in members:
        in_body = body_effects(member.op)
        if any(in_body.touches(memory) for memory in stored):  # at any row
            return False
        dims = member.rows()[:depth]
        for operand, map_ in zip(member.operands, member.maps, strict=True):
            if not isinstance(operand.type, mlir.MemRefType) or root_of(operand) not in stored:
                continue
            results = map_.results[:depth]
            if not all(isinstance(e, mlir.AffineDimExpr) for e in results) or not keeps_rows(operand, depth):
                return False
            if [e.position for e in results] != dims:
                return False
    return True


def keeps_rows(value: mlir.Value, depth: int) -> bool:
    """True if the first dimensions of a view are those of its memory."""
    op = defining_op(value)
    while op is not None and op.name in VIEWS and op.name != "memref.view":
        if op.name not in ("memref.expand_shape", "memref.collapse_shape"):
            return False
        wide = op.results[0] if op.name == "memref.expand_shape" else op.operands[0]
        for number, group in enumerate(list(mlir.ArrayAttr(op.attributes["reassociation"]))[:depth]):
            first, *others = (int(mlir.IntegerAttr(d).value) for d in group)
            if first != number or any(wide.type.is_dynamic_dim(d) or wide.type.shape[d] != 1 for d in others):
                return False
            if others and number + 1 < depth:
                return False
        value = op.operands[0]
        op = defining_op(value)
    return True
