"""Sums scattered with large strides, as sums scattered with stride one from an array with zeros in between.

    for y in 0..H: for k in 0..K: g[2 * y + k] += d[y] * w[k]

becomes, with e[2 * y] = d[y] and zeros elsewhere,

    for z in 0..2 * H - 1: for k in 0..K: g[z + k] += e[z] * w[k]

If w is not finite, the products with zero are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirml.analysis.affine import Loop, Reader
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import match_combination
from mlirml.raising.nests.model import Access, Array, Statement, is_pure


@dataclass(frozen=True)
class Dilated:
    """An array with zeros between its elements: `steps` has their distance, for each dimension."""

    array: Array
    source: Array
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Stretched:
    """A statement in which some loops have stride one instead; `loops` maps the old ones to the new ones."""

    statement: Statement
    loops: Mapping[Loop, Loop]
    dilated: tuple[Dilated, ...]
    steps: Mapping[Loop, int]

    def moved(self, expression: Linear) -> Linear:
        """An expression in terms of the stride-one loops. Raises `NoMatch`."""
        return in_steps(expression, self.steps, self.loops)


def stretched(statement: Statement, steps: Mapping[Loop, int], reader: Reader) -> Stretched:
    """Replace loops of which only multiples index the stored array by stride-one loops. Raises `NoMatch`."""
    if not steps:
        return Stretched(statement, {}, (), {})
    check_uses(statement, steps, reader)
    loops = {loop: stretched_loop(loop, step) for loop, step in steps.items()}
    old = match_combination(statement).old
    made: dict[Array, Dilated] = {}
    reads: dict[mlir.Value, Access] = {}
    write = Access(
        statement.write.array, tuple(in_steps(index, steps, loops) for index in statement.write.indices or ())
    )
    for value, access in statement.reads.items():
        if value == old:
            reads[value] = write
        elif access.indices is not None and any(loop in index.factors for index in access.indices for loop in steps):
            reads[value] = dilated_access(access, steps, loops, made)
        else:
            reads[value] = access
    if not made:
        raise NoMatch("no array has the elements that are scattered")
    around = tuple(loops.get(loop, loop) for loop in statement.loops)
    moved = Statement(statement.op, around, statement.position, statement.value, write, reads)
    return Stretched(moved, loops, tuple(made.values()), steps)


def check_uses(statement: Statement, steps: Mapping[Loop, int], reader: Reader) -> None:
    """Refuse loops whose variable is used in other computations than indices."""
    todo, seen = [statement.value], {statement.value}
    while todo:
        value = todo.pop()
        access = statement.reads.get(value)
        linear = reader.indices.get(value)
        if linear is not None and any(loop in linear.factors for loop in steps):
            raise NoMatch("it computes with the iteration index")
        if access is not None and access.indices is None:
            raise NoMatch("it reads at indices that are not linear in the loops")
        op = defining_op(value)
        if access is None and op is not None and is_pure(op):
            todo += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)


def stretched_loop(loop: Loop, step: int) -> Loop:
    """The loop over all indices between the first and the last one."""
    if len(loop.lowers) != 1 or len(loop.uppers) != 1:
        raise NoMatch("the bounds of a loop change")
    return Loop(
        loop.op,
        (loop.lowers[0] * step,),
        ((loop.uppers[0] - 1) * step + 1,),
        independent=loop.independent,
    )


def in_steps(index: Linear, steps: Mapping[Loop, int], loops: Mapping[Loop, Loop]) -> Linear:
    """An index in terms of the stride-one loops."""
    for loop, step in steps.items():
        factor, rest = divmod(index.factor(loop), step)
        if rest:
            raise NoMatch("loops index a dimension with other steps")
        index = index.replaced(loop, Linear()) + Linear.of(loops[loop]) * factor
    return index


def dilated_access(
    access: Access, steps: Mapping[Loop, int], loops: Mapping[Loop, Loop], made: dict[Array, Dilated]
) -> Access:
    """The access to the array with zeros in between."""
    array, found, apart = access.array, [], []
    assert access.indices is not None
    for index in access.indices:
        walking = [loop for loop in steps if loop in index.factors]
        if not walking:
            found.append(index)
            apart.append(1)
            continue
        (loop, *more) = walking
        if more or index.factors != {loop: 1}:
            raise NoMatch("what is scattered is read in other steps")
        found.append(index * steps[loop] + Linear.of(loops[loop]) - Linear.of(loop) * steps[loop])
        apart.append(steps[loop])
    known = made.get(array)
    if array.local or (known is not None and known.steps != tuple(apart)):
        raise NoMatch("what is scattered is read in several ways")
    if known is None:
        shape = tuple((size - 1) * step + 1 if size else 0 for size, step in zip(array.shape, apart, strict=True))
        known = made[array] = Dilated(Array(array.element_type, shape), array, tuple(apart))
    return Access(known.array, tuple(found))
