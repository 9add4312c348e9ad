"""A reduction as the schedules see it: a nest, its combined values, and the destinations of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.codegen.cpu.elementwise.loops import nested
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Access, Nest
from mlirml.codegen.cpu.reduce.combiners import Reducer
from mlirml.codegen.cpu.reduce.lanes import Lanes
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import mlir


@dataclass(frozen=True)
class Reduction:
    """A reduction to emit.

    `values` builds the values to combine at a point; `inits[n]` is the scalar init of an output, None if it is in
    memory; `each_ns` is the cost of a point. `vectors` are for sums of rows in lanes, None for other reductions.
    """

    frame: Frame
    nest: Nest
    reducers: tuple[Reducer, ...]
    outputs: tuple[Access, ...]
    inits: tuple[mlir.Value | None, ...]
    values: Callable[[Cursor], list[mlir.Value]]
    each_ns: float
    vectors: Lanes | None = None

    def with_nest(self, nest: Nest, outputs: Sequence[Access] | None = None) -> Reduction:
        return replace(self, nest=nest, outputs=tuple(outputs or self.outputs))


def at(access: Access, dims: Sequence[int]) -> Access:
    """The access with only some of the loops."""
    return replace(access, strides=tuple(access.strides[d] for d in dims))


def parallel_rank(nest: Nest) -> int:
    """The number of parallel loops outside of the reduced ones."""
    return next((d for d, reduced in enumerate(nest.reduction) if reduced), nest.rank)


def start(task: Reduction) -> Cursor:
    """The cursor before all loops, with the outputs among the accesses."""
    known = set(task.nest.memory)
    extra = tuple(out for out in task.outputs if out not in known)
    nest = replace(task.nest, accesses=(*extra, *task.nest.accesses)) if extra else task.nest
    cursor = Cursor.start(task.frame, nest)
    return replace(cursor, nest=task.nest)


def store_inits(task: Reduction) -> None:
    """Store the inits, which are the result of a reduction without elements."""

    def inner(cursor: Cursor) -> None:
        for init, out in zip(task.inits, task.outputs, strict=True):
            if init is not None:
                cursor.store(init, out)

    nested(start(task), 0, task.nest.rank, inner)
