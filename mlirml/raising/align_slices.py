"""Start loops over slices at the offset of the slice, so that they index arrays as loops over elements do.

    for i in 0..n:                                    for i in 0..n:
        for j in 0..n - i: t[j] = A[i, i + j]             for j in i..n: t[j] = A[i, j]
        for j in 0..n - i: B[i + j, i] = t[j] * 2         for j in i..n: B[j, i] = t[j] * 2

`A[i, i:]` is captured as on the left. There, two loops index one dimension of an array, which is not a slice if both
loops are raised. The layout of a local array with elements for each iteration of the enclosing loops is free. Only
loops whose trip count differs from iteration to iteration are shifted: others are windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlirml.analysis.affine import Loop, Variable, loops_in
from mlirml.core.affine import Linear, Span
from mlirml.raising.nests.generic import spans_of
from mlirml.raising.nests.model import Access, Array, Nest, Statement

Dim = tuple[Array, int]


def aligned(nest: Nest, known: Mapping[Variable, Span]) -> Nest:
    """The nest with loops shifted where that makes all indices by them plain; the nest itself if there are none."""
    groups = groups_of(nest)
    moves: dict[Loop, Linear] = {}
    for loops, dims in groups:
        move = match_move(nest, loops, dims)
        if move is not None:
            moves.update(dict.fromkeys(loops, move))
    if not moves:
        return nest
    spans = dict(known)
    # Inner loops first: they are replaced by expressions of outer ones, which may be shifted themselves.
    depths = {loop: statement.loops.index(loop) for statement in nest.statements for loop in statement.loops}
    moved = {loop: Linear.of(loop) - moves[loop] for loop in sorted(moves, key=lambda loop: -depths[loop])}
    before = {loop: (loop.lowers, loop.uppers) for loop in loops_of(nest)}
    for loop in before:
        own = replaced(moves.get(loop, Linear()), moved)
        loop.lowers = tuple(replaced(bound, moved) + own for bound in loop.lowers)
        loop.uppers = tuple(replaced(bound, moved) + own for bound in loop.uppers)
    for statement in nest.statements:
        spans.update(spans_of(statement.loops, spans))
    arrays: dict[Array, Array] = {}
    for loops, dims in groups:
        for array, dim in dims if loops[0] in moves else ():
            if any(loop not in spans for loop in loops):
                return undone(nest, before)
            size = max(array.shape[dim], *(spans[loop][1] + 1 for loop in loops))
            new = arrays.get(array, array)
            shape = (*new.shape[:dim], size, *new.shape[dim + 1 :])
            arrays[array] = Array(array.element_type, shape, depth=array.depth)
    nest.reader.replace(moved)
    statements = tuple(moved_statement(statement, moved, arrays) for statement in nest.statements)
    return Nest(nest.op, statements, tuple(arrays.get(array, array) for array in nest.results), nest.reader)


def undone(nest: Nest, before: Mapping[Loop, tuple[tuple[Linear, ...], tuple[Linear, ...]]]) -> Nest:
    """The nest with the original bounds of its loops."""
    for loop, (lowers, uppers) in before.items():
        loop.lowers, loop.uppers = lowers, uppers
    return nest


def loops_of(nest: Nest) -> dict[Loop, None]:
    return {loop: None for statement in nest.statements for loop in statement.loops}


def accesses_of(nest: Nest) -> Iterator[tuple[Statement, Access]]:
    for statement in nest.statements:
        yield statement, statement.write
        for access in statement.reads.values():
            yield statement, access


def groups_of(nest: Nest) -> list[tuple[list[Loop], list[Dim]]]:
    """Loops that index the same dimensions of local arrays on their own, and those dimensions."""
    parent: dict[Loop | Dim, Loop | Dim] = {}

    def root(item: Loop | Dim) -> Loop | Dim:
        while parent.setdefault(item, item) is not item:
            item = parent[item]
        return item

    for loop in loops_of(nest):
        root(loop)
    kept: dict[Dim, Dim] = {}
    for _, access in accesses_of(nest):
        for number, index in enumerate(access.indices or ()):
            own = own_loop(index)
            if access.array.local and own is not None:
                dim = kept.setdefault((access.array, number), (access.array, number))
                parent[root(dim)] = root(own)
    found: dict[Loop | Dim, tuple[list[Loop], list[Dim]]] = {}
    for item in list(parent):
        loops, dims = found.setdefault(root(item), ([], []))
        if isinstance(item, Loop):
            loops.append(item)
        else:
            dims.append(item)
    return list(found.values())


def own_loop(index: Linear) -> Loop | None:
    """The loop whose variable an index is; None for other indices."""
    loops = loops_in(index)
    return loops[0] if len(loops) == 1 and index == Linear.of(loops[0]) else None


def match_move(nest: Nest, loops: list[Loop], dims: list[Dim]) -> Linear | None:
    """The offset of the loops of a group in all indices of outer arrays; None if it differs, or is zero."""
    if any(len(loop.lowers) != 1 or loop.step != 1 for loop in loops):
        return None
    if all((upper - loop.lowers[0]).is_constant for loop in loops for upper in loop.uppers):
        return None
    group, arrays, moves = set(loops), {array for array, _ in dims}, set[Linear]()
    for statement, access in accesses_of(nest):
        if access.indices is None and (group & set(statement.loops) or access.array in arrays):
            return None
        for dim, index in enumerate(access.indices or ()):
            walked = [loop for loop in loops_in(index) if loop in group]
            if not walked:
                if (access.array, dim) in dims:
                    return None
                continue
            if len(walked) > 1 or index.factor(walked[0]) != 1:
                return None
            own = index - Linear.of(walked[0])
            if not access.array.local:
                around = statement.loops[: min(statement.loops.index(loop) for loop in walked)]
                if any(loop not in around for loop in loops_in(own)) or len(loops_in(own)) != len(own.factors):
                    return None
                moves.add(own)
            elif own != Linear():
                return None
    if len(moves) != 1 or not loops_in(move := moves.pop()):
        return None
    private = all(
        loop in statement.loops[: array.depth] for statement, array in users(nest, dims) for loop in loops_in(move)
    )
    return move if private else None


def users(nest: Nest, dims: list[Dim]) -> Iterator[tuple[Statement, Array]]:
    arrays = {array for array, _ in dims}
    for statement, access in accesses_of(nest):
        if access.array in arrays:
            yield statement, access.array


def replaced(index: Linear, moved: Mapping[Loop, Linear]) -> Linear:
    """An expression in terms of the shifted loops."""
    for loop, shifted in moved.items():
        index = index.replaced(loop, shifted)
    return index


def moved_statement(statement: Statement, moved: Mapping[Loop, Linear], arrays: Mapping[Array, Array]) -> Statement:
    """A statement in terms of the shifted loops."""

    def access(old: Access) -> Access:
        indices = old.indices
        if indices is not None and old.array not in arrays:
            indices = tuple(replaced(index, moved) for index in indices)
        elif indices is not None:  # of a local array the indices are the loops
            indices = tuple(index if own_loop(index) in moved else replaced(index, moved) for index in indices)
        return Access(arrays.get(old.array, old.array), indices)

    reads = {value: access(old) for value, old in statement.reads.items()}
    write = access(statement.write)
    return Statement(statement.op, statement.loops, statement.position, statement.value, write, reads)
