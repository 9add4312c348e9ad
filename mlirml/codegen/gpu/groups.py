"""Merge the states of the threads that share a row: by shuffles if the subgroup size is known, else in shared memory.

shared[thread] = state; barrier
for half = group / 2, group / 4, ..., 1:
    if member < half: shared[thread] = merge(shared[thread], shared[thread + half * apart]); barrier
total = shared[first thread of the row]; barrier
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mlirml.codegen.gpu.combiners import Values
from mlirml.codegen.gpu.index import Form
from mlirml.codegen.gpu.kernel import Kernel
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

_SMALL = (mlir.F16Type, mlir.BF16Type)
_FLOATS = (mlir.F32Type, *_SMALL)


class Merger(Protocol):
    """The types of a state, and how two states become one."""

    @property
    def types(self) -> list[mlir.Type]: ...

    def merge(self, a: Values, b: Values) -> Values: ...


def merge_group(
    kernel: Kernel, combiner: Merger, state: Values, member: Form, slot: Form, group: int, rows: int
) -> Values:
    """The merged state, in every thread. `slot` is the number of the row in its block of `rows`."""
    if group == 1:
        return state
    width = kernel.host.device.subgroup
    side_by_side = member.terms == () or not kernel.thread().terms or slot_is_above(kernel, member, group)
    if width and side_by_side and all(shuffles(type_) for type_ in combiner.types):
        step = min(group, width) // 2
        while step:
            state = combiner.merge(state, [shuffle(kernel, value, step, width) for value in state])
            step //= 2
        if group <= width:
            return state
        return across_subgroups(kernel, combiner, state, member, slot, group, rows)
    return tree(kernel, combiner, state, member, slot, (group, rows), side_by_side)


def slot_is_above(kernel: Kernel, member: Form, group: int) -> bool:
    """True if the threads of a group have consecutive numbers."""
    (digit, factor), *others = member.terms
    (thread, _), *_ = kernel.thread().terms
    return not others and factor == 1 and digit.base == thread.base and digit.stride == 1


def shuffles(type_: mlir.Type) -> bool:
    """True if values of a type can be shuffled."""
    return isinstance(type_, _FLOATS) or (isinstance(type_, mlir.IntegerType) and type_.width in (32, 64))


def shuffle(kernel: Kernel, value: mlir.Value, step: int, width: int) -> mlir.Value:
    """The value of the thread whose number differs in one bit; small floats are extended for it."""
    if isinstance(value.type, _SMALL):
        wide = shuffle(kernel, emit.value("arith.extf", [value], mlir.F32Type.get()), step, width)
        return emit.value("arith.truncf", [wide], value.type)
    integer = mlir.IntegerType.get_signless(32)
    operands = [value, kernel.constant(step, integer), kernel.constant(width, integer)]
    mode = mlir.Attribute.parse("#gpu<shuffle_mode xor>")
    valid = mlir.IntegerType.get_signless(1)
    return emit.create("gpu.shuffle", operands, [value.type, valid], {"mode": mode}).results[0]


def scratch(kernel: Kernel, types: Sequence[mlir.Type], size: int) -> list[mlir.Value]:
    """Shared arrays, the same ones for every reduction."""
    found = []
    for number, type_ in enumerate(types):
        key = ("scratch", number, type_, size)
        if key not in kernel.shared_arrays:
            kernel.shared_arrays[key] = kernel.shared([size], type_)
        found.append(kernel.shared_arrays[key])
    return found


def across_subgroups(
    kernel: Kernel, combiner: Merger, state: Values, member: Form, slot: Form, group: int, rows: int
) -> Values:
    """Merge the states of the subgroups of a row: the first thread of each writes, all read."""
    width = kernel.host.device.subgroup
    count = group // width
    arrays = scratch(kernel, combiner.types, count * rows)
    thread = kernel.at(kernel.thread())
    lane = emit.value("arith.remui", [thread, kernel.constant(width)], kernel.index)
    number = emit.value("arith.divui", [thread, kernel.constant(width)], kernel.index)

    def write() -> None:
        for memory, value in zip(arrays, state, strict=True):
            emit.create("memref.store", [value, memory, number])

    kernel.guarded([emit.compare("eq", lane, kernel.constant(0))], write)
    kernel.barrier()
    result = [kernel.read(memory, slot * count) for memory in arrays]
    for other in range(1, count):
        result = combiner.merge(result, [kernel.read(memory, slot * count + other) for memory in arrays])
    kernel.barrier()
    return result


def tree(
    kernel: Kernel,
    combiner: Merger,
    state: Values,
    member: Form,
    slot: Form,
    sizes: tuple[int, int],
    side_by_side: bool,
) -> Values:
    """Merge in shared memory, halving the active threads; adjacent threads have adjacent elements."""
    group, rows = sizes
    arrays = scratch(kernel, combiner.types, group * rows)
    row, apart = (slot * group, 1) if side_by_side else (slot, rows)
    offset = row + member * apart

    def write(values: Values) -> None:
        for memory, value in zip(arrays, values, strict=True):
            kernel.write(value, memory, offset)

    write(state)
    kernel.barrier()
    half = group // 2
    while half:
        with kernel.scope():

            def step(half: int = half) -> None:
                mine = [kernel.read(memory, offset) for memory in arrays]
                write(combiner.merge(mine, [kernel.read(memory, offset + half * apart) for memory in arrays]))

            kernel.guarded([emit.compare("ult", kernel.at(member), kernel.constant(half))], step)
            kernel.barrier()
        half //= 2
    result = [kernel.read(memory, row) for memory in arrays]
    kernel.barrier()
    return result
