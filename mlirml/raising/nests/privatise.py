"""Privatise an array that each iteration of outer loops fills before it reads: one copy for each iteration.

    for i in 0..n:                           for i in 0..n:
        for j in 0..m: t[j] = A[i, j]            for j in 0..m: u[i, j] = A[i, j]
        for j in 0..m: B[i, j] = t[m - 1 - j]    for j in 0..m: B[i, j] = u[i, m - 1 - j]
                                             for j in 0..m: t[j] = u[n - 1, j]

The loop over i carried nothing but the memory of `t`; now it carries nothing (scalar and array expansion: Feautrier,
Array expansion, ICS 1988).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mlirml.analysis.affine import Loop, Variable, constant, loops_in
from mlirml.core.affine import Linear, Span
from mlirml.passes import NoMatch
from mlirml.raising.nests.dependences import Isl
from mlirml.raising.nests.generic import conditions, hull, spans_of
from mlirml.raising.nests.model import Access, Array, Nest, Position, Statement, common_loops

_MOST_BYTES = 1 << 28


def privatised(nest: Nest, known: Mapping[Variable, Span], isl: Isl) -> Nest:
    """The nest with copies of all arrays that can be privatised; raises `NoMatch` if there are none."""
    arrays = dict.fromkeys(s.write.array for s in nest.statements if not s.write.array.local)
    found = False
    for array in arrays:
        try:
            nest = privatise(nest, array, known, isl)
            found = True
        except NoMatch:
            continue
    if not found:
        raise NoMatch("no array is refilled in each iteration")
    return nest


def privatise(nest: Nest, array: Array, known: Mapping[Variable, Span], isl: Isl) -> Nest:
    """Give each iteration of the loops that do not index an array its own copy; raises `NoMatch`."""
    users = [s for s in nest.statements if array in (s.write.array, *(a.array for a in s.reads.values()))]
    accesses = [a for s in users for a in (s.write, *s.reads.values()) if a.array is array]
    if any(access.indices is None for access in accesses):
        raise NoMatch("it is stored at indices that are not linear in the loops")
    walked = {loop for a in accesses for index in a.indices or () for loop in loops_in(index)}
    around = users[0].loops
    for user in users[1:]:
        around = tuple(loop for loop, other in zip(around, user.loops) if loop is other)
    loops: list[Loop] = []
    for loop in around:
        if loop in walked or not all(bound.is_constant for bound in (*loop.lowers, *loop.uppers)):
            break
        loops.append(loop)
    spans = spans_of(loops, known)
    sizes = [spans[loop][1] - spans[loop][0] + 1 for loop in loops]
    if not loops or min(sizes) < 1:
        raise NoMatch("all loops around it index it")
    if math.prod(sizes) * math.prod(array.shape) * 8 > _MOST_BYTES:
        raise NoMatch("copies of it would take too much memory")
    check_filled(users, array, len(loops), isl)
    copy = Array(array.element_type, (*sizes, *array.shape))
    stored = [s for s in users if s.write.array is array and not is_update(s)]
    end = max(s.position for s in nest.statements)[0]
    after = [copy_out(s, copy, loops, (end + 1 + number,)) for number, s in enumerate(stored)]
    firsts = [constant(spans[loop][0]) for loop in loops]
    statements = [private(s, array, copy, loops, firsts) if s in users else s for s in nest.statements]
    return Nest(nest.op, (*statements, *after), nest.results, nest.reader)


def is_update(statement: Statement) -> bool:
    """True if a statement reads the element that it stores."""
    return any(access == statement.write for access in statement.reads.values())


def check_filled(users: Sequence[Statement], array: Array, depth: int, isl: Isl) -> None:
    """Raises `NoMatch` unless each iteration of the outer `depth` loops reads only elements that it stored before."""
    for reader in users:
        for access in reader.reads.values():
            if access.array is not array:
                continue
            writers = []
            for writer in users:
                if writer.write.array is not array:
                    continue
                common = len(common_loops(writer, reader))
                later = writer is not reader and writer.position < reader.position
                for level in [*range(depth, common), *([common] if later else [])]:
                    writers.append((writer, level))
            if not isl.is_covered(reader, access, writers):
                raise NoMatch("its elements are needed in later iterations")


def copy_out(writer: Statement, copy: Array, loops: Sequence[Loop], position: Position) -> Statement:
    """The statement that copies out the elements that the last iteration of the outer loops stored."""
    inner = writer.loops[len(loops) :]
    if any(set(loops_in(bound)) & set(loops) for loop in inner for bound in (*loop.lowers, *loop.uppers)):
        raise NoMatch("the stored value differs from iteration to iteration")
    ends = hull(inner)
    indices = writer.write.indices or ()
    walked = [loop for index in indices for loop in loops_in(index)]
    if conditions(inner, ends, {}) or len(walked) != len(set(walked)):
        raise NoMatch("it is stored into in a part of a box only")
    if any(not end.is_constant for pair in ends.values() for end in pair) or set(walked) != set(inner):
        raise NoMatch("it is stored into more than once")
    last = [constant(size - 1) for size in copy.shape[: len(loops)]]
    return Statement(
        writer.op, inner, position, writer.value, writer.write, {writer.value: Access(copy, (*last, *indices))}
    )


def private(
    statement: Statement, array: Array, copy: Array, loops: Sequence[Loop], firsts: Sequence[Linear]
) -> Statement:
    """A statement that accesses the copy."""
    iterations = tuple(Linear.of(loop) - first for loop, first in zip(loops, firsts, strict=True))

    def moved(access: Access) -> Access:
        return Access(copy, (*iterations, *(access.indices or ()))) if access.array is array else access

    reads = {value: moved(access) for value, access in statement.reads.items()}
    return Statement(statement.op, statement.loops, statement.position, statement.value, moved(statement.write), reads)
