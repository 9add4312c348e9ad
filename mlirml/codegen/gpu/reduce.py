"""Reductions of any sizes, static or dynamic: some threads share the elements of each result.

    part = identity
    for k from member to length by group: part = combine(part, x[row, k])
    total = merge over the group
    if member == 0: store(total)

Accumulations without a combiner are reduced in order by one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.codegen.gpu.combiners import Combiner
from mlirml.codegen.gpu.elements import Elements, apply, out_map, structured, uses_dim
from mlirml.codegen.gpu.groups import merge_group
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.gpu.sizes import (
    Size,
    below,
    blocks_of,
    cover,
    cut,
    each_element,
    extents,
    length,
    loop_extents,
    product,
)
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

StoreElement = Callable[[Kernel, Elements, Sequence[Form], mlir.Value], None]
"""Stores an element of a result, given its indices."""

_ROW_THREADS = 32
"""The number of threads that share a row; the whole block if there is only one row."""


def reduce_each(host: Host, op: mlir.Operation, results: Sequence[int], stores: Sequence[StoreElement]) -> None:
    """Kernels for some results of a reduction, whose elements go to the `stores`."""
    try:
        reduce_in_groups(host, Combiner(op), results, stores)
    except NoMatch:
        for number, store in zip(results, stores, strict=True):
            reduce_by_one(host, op, number, store)


def reduce_by_one(host: Host, op: mlir.Operation, number: int, store: StoreElement) -> None:
    """A thread for each element of a result, which reduces its elements sequentially."""
    result = op.results[number]

    def body(kernel: Kernel, indices: list[Form]) -> None:
        elements = Elements(kernel)
        store(kernel, elements, indices, structured(elements, op, result, tuple(indices)))

    each_element(host, "reduce", extents(host, result), body)


def reduce_in_groups(host: Host, combiner: Combiner, results: Sequence[int], stores: Sequence[StoreElement]) -> None:
    """A group of threads for each element of the results; raises NoMatch before anything is built."""
    op = combiner.op
    sizes = loop_extents(host, op)
    if any(number not in combiner.carried for number in results):
        raise NoMatch("a result is not reduced")
    maps = [out_map(op, n) for n in combiner.carried]
    reduced_dims = [d for d in range(len(sizes)) if not uses_dim(maps[0], d)]
    if any(uses_dim(m, d) == (d in reduced_dims) for m in maps for d in range(len(sizes))):
        raise NoMatch("the outputs have different loops")
    rows = [size for d, size in enumerate(sizes) if d not in reduced_dims]
    columns = [size for d, size in enumerate(sizes) if d in reduced_dims]
    count, total = product(host, rows), product(host, columns)
    if count == 0:
        return
    group = THREADS if count == 1 else min(_ROW_THREADS, THREADS)
    per_block = THREADS // group
    blocks = blocks_of(host, count, per_block)
    with host.kernel("reduce", (group * per_block,)) as kernel:
        _Groups(kernel, combiner, reduced_dims, rows, columns).build(
            count, total, group, cover(kernel, blocks), results, stores
        )


class _Groups:
    """The kernel: rows, which groups of threads reduce."""

    def __init__(
        self,
        kernel: Kernel,
        combiner: Combiner,
        reduced_dims: Sequence[int],
        rows: Sequence[Size],
        columns: Sequence[Size],
    ) -> None:
        self.kernel = kernel
        self.combiner = combiner
        self.reduced_dims = reduced_dims
        self.rows = rows
        self.columns = columns
        self.elements = Elements(kernel)

    def point(self, row: Sequence[Form], column: Sequence[Form]) -> list[Form]:
        """The indices of all loops at a point."""
        outer, inner = iter(row), iter(column)
        return [next(inner) if d in self.reduced_dims else next(outer) for d in range(len(row) + len(column))]

    def build(
        self,
        count: Size,
        total: Size,
        group: int,
        block: Form,
        results: Sequence[int],
        stores: Sequence[StoreElement],
    ) -> None:
        """Reduce, merge, store."""
        kernel, combiner = self.kernel, self.combiner
        per_block = kernel.threads[0] // group
        slot, member = form(0), kernel.thread()
        if per_block > 1:
            thread = Digit(kernel.thread().terms[0][0].base)
            slot, member = form(Digit(thread.base, group)), form(Digit(thread.base, 1, group))
        number = block * per_block + slot
        valid = below(kernel, number, count)
        row = cut(kernel, number, self.rows)
        upper = kernel.at(length(kernel, total))
        if valid is not None:
            upper = emit.same_type("arith.select", valid, upper, kernel.constant(0))
        start = combiner.start(self.elements, self.point(row, [form(0)] * len(self.columns)))

        def step(k: Form, state: list[mlir.Value]) -> list[mlir.Value]:
            column = cut(kernel, k, self.columns)
            return combiner.take(self.elements, self.point(row, column), state, None)

        state = kernel.loop((member, form(Digit(Base(upper))), group), step, start)
        state = merge_group(kernel, combiner, state, member, slot, group, per_block)

        def finish() -> None:
            point = self.point(row, [form(0)] * len(self.columns))
            combiner.finish(self.elements, point, state)
            for result, store in zip(results, stores, strict=True):
                indices = apply(out_map(combiner.op, result), point)
                store(kernel, self.elements, indices, self.elements.get(combiner.op.results[result], indices))

        kernel.guarded([valid, kernel.below(member, 1)], finish)
