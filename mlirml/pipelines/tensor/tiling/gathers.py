"""Gather from each term of a sum over blocks: the sum itself, which is larger, is never stored as a whole.

Before:
    %t = scf.for %n = ... iter_args(%sum = %zeros) -> tensor<25x64x64xf64> {
      %new = scf.for %k = 0 to 25 step 1 iter_args(%s = %sum) {
        %old = tensor.extract_slice %s[%k, 0, 0] [1, 64, 64]
        %d = linalg.contract ... outs(%old)
        tensor.insert_slice %d into %s[%k, 0, 0]
      }
    }
    %packed:2 = scf.for %p = 0 to 2016 step 1 iter_args(%a = %t, %b = %start) {
      %e = tensor.extract_slice %a[0, %i, %j] [25, 1, 1]          // and zeros are stored there
      %f = tensor.extract_slice %b[0, %p] [25, 1]
      %g = linalg.generic ins(%f, %e) { arith.addf }
      tensor.insert_slice %g into %b[0, %p] [25, 1]
    }
After:
    %packed = scf.for %n = ... iter_args(%sum = %start) -> tensor<25x2016xf64> {
      %new = scf.for %k = 0 to 25 step 1 iter_args(%s = %sum) {
        %d = linalg.contract ... outs(%zeros)
        %old = tensor.extract_slice %s[%k, 0] [1, 2016]
        %b:2 = scf.for %p = 0 to 2016 step 1 iter_args(%a = %d, %b = %old) { ... }
        tensor.insert_slice %b#1 into %s[%k, 0]
      }
    }

The derivative of stores at dynamic indices has this form: it adds elements of its operand to another tensor, so that
the elements of a sum may be added term by term.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mlirml.analysis.constants import float_of
from mlirml.analysis.cost import bytes_of
from mlirml.analysis.dimensions import slice_numbers
from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, operations
from mlirml.passes import NoMatch

_STARTS = ("tensor.empty", "linalg.fill")
_DYNAMIC = mlir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class Gather:
    """A loop that adds elements of `source`, a carried tensor, to another one, `into`, for a whole batch of `size`.

    `dims` are the positions of the batch in both; the numbers are those of the loop's results.
    """

    loop: mlir.Operation
    source: int
    into: int
    size: int
    dims: dict[int, int]

    def argument(self, number: int) -> mlir.Value:
        return self.loop.regions[0].blocks[0].arguments[1 + number]


@dataclass(frozen=True)
class Sum:
    """A contraction that a loop over a batch, in a loop over blocks, adds to a slice of a tensor that both carry."""

    loop: mlir.Operation
    number: int
    contraction: mlir.Operation
    old: mlir.Operation
    put: mlir.Operation


def gather_sums(loops: Sequence[mlir.Operation], least: int) -> None:
    """Gather from sums of at least `least` bytes in consecutive loops over blocks."""
    for number, result in enumerate(loops[-1].results):
        uses = list(result.uses)
        if len(uses) != 1 or uses[0].owner.operation.name != "scf.for":
            continue
        try:
            if bytes_of(result) < least:
                raise NoMatch("a small sum")
            sums = [match_sum(loop, number) for loop in loops]
            gather = match_gather(uses[0].owner.operation, uses[0].operand_number - 3, _batch_dim(sums[0]))
            check_before(gather, loops, number)
        except NoMatch:
            continue
        build_gather(gather, loops, number, sums)
        return


def match_sum(loop: mlir.Operation, number: int) -> Sum:
    """Match a contraction that is added to a loop-carried tensor; raises `NoMatch`."""
    body = loop.regions[0].blocks[0]
    inner = defining_op(block_ops(body)[-1].operands[number])
    if inner is None or inner.name != "scf.for" or inner.block != body:
        raise NoMatch("no loop over a batch")
    position = list(inner.results).index(block_ops(body)[-1].operands[number])
    carried = body.arguments[1 + number]
    argument = inner.regions[0].blocks[0].arguments[1 + position]
    put = defining_op(block_ops(inner.regions[0].blocks[0])[-1].operands[position])
    if (
        inner.operands[3 + position] != carried
        or len(list(carried.uses)) != 1
        or len(list(inner.results[position].uses)) != 1
    ):
        raise NoMatch("it is read on the way")
    if put is None or put.name != "tensor.insert_slice" or put.operands[1] != argument:
        raise NoMatch("no slice is stored")
    contraction = defining_op(put.operands[0])
    if contraction is None or contraction.name != "linalg.contract" or len(list(contraction.results[0].uses)) != 1:
        raise NoMatch("no contraction is stored")
    old = defining_op(contraction.operands[2])
    if (
        old is None
        or old.name != "tensor.extract_slice"
        or old.operands[0] != argument
        or slice_numbers(old) != slice_numbers(put)
    ):
        raise NoMatch("it does not add to what was there")
    if (
        list(old.operands)[1:] != list(put.operands)[2:]
        or len(list(argument.uses)) != 2
        or len(list(old.operands)) != 2
    ):
        raise NoMatch("it does not add to what was there")
    return Sum(inner, position, contraction, old, put)


def _batch_dim(found: Sum) -> int:
    return slice_numbers(found.put)[0].index(_DYNAMIC)


def match_gather(loop: mlir.Operation, source: int, dim: int) -> Gather:
    """Match a loop that only adds elements of one tensor to another one; raises `NoMatch`."""
    if len(loop.results) != 2 or list(loop.results[source].uses):
        raise NoMatch("more is carried")
    into = 1 - source
    block = loop.regions[0].blocks[0]
    *ops, end = block_ops(block)
    size = loop.results[source].type.shape[dim]
    parts: set[mlir.Value] = set()
    sources, target, stored = {block.arguments[1 + source]}, block.arguments[1 + into], None
    taken: mlir.Operation | None = None
    dims = {source: dim}
    for op in ops:
        used = used_values(op)
        tensors = [x for x in used if x in sources or x in parts or x == target]
        if not tensors and not (taken is not None and taken.results[0] in used):
            if op.name not in _STARTS and any(isinstance(r.type, mlir.RankedTensorType) for r in op.results):
                raise NoMatch("other tensors are computed")
            continue
        if op.name == "tensor.extract_slice" and op.operands[0] in sources and _takes_batch(op, dim, size):
            parts.add(op.results[0])
        elif op.name == "tensor.insert_slice" and op.operands[1] in sources and _takes_batch(op, dim, size):
            if not _is_zero(op.operands[0]):
                raise NoMatch("something else is stored")
            sources.add(op.results[0])
        elif op.name == "tensor.extract_slice" and op.operands[0] == target and taken is None:
            taken = op
            offsets, sizes, _ = slice_numbers(op)
            there = [d for d, (o, n) in enumerate(zip(offsets, sizes)) if o == 0 and n == size]
            if len(there) != 1 or not _takes_batch(op, there[0], size):
                raise NoMatch("not all of the batch")
            dims[into] = there[0]
        elif op.name == "linalg.generic" and taken is not None and _adds(op, taken.results[0], parts):
            stored = op
        elif op.name == "tensor.insert_slice" and stored is not None and taken is not None and op.operands[1] == target:
            same = slice_numbers(op) == slice_numbers(taken) and list(op.operands)[2:] == list(taken.operands)[1:]
            if op.operands[0] != stored.results[0] or not same or end.operands[into] != op.results[0]:
                raise NoMatch("it is stored elsewhere")
        else:
            raise NoMatch("another operation")
    if into not in dims or end.operands[source] not in sources or defining_op(end.operands[into]) is None:
        raise NoMatch("nothing is added")
    return Gather(loop, source, into, size, dims)


def _takes_batch(op: mlir.Operation, dim: int, size: int) -> bool:
    """True if a slice is a vector along the whole batch."""
    offsets, sizes, strides = slice_numbers(op)
    part = op.results[0] if op.name == "tensor.extract_slice" else op.operands[0]
    others = [n for d, n in enumerate(sizes) if d != dim]
    whole = (offsets[dim], sizes[dim]) == (0, size) and set(strides) == {1}
    return whole and list(part.type.shape) == [size] and all(n == 1 for n in others)


def _is_zero(value: mlir.Value) -> bool:
    fill = defining_op(value)
    return fill is not None and fill.name == "linalg.fill" and float_of(fill.operands[0]) == 0


def _adds(op: mlir.Operation, old: mlir.Value, parts: set[mlir.Value]) -> bool:
    """True if the result is the sum of `old` and one of `parts`."""
    inputs = list(op.operands)[:-1]
    body = block_ops(op.regions[0].blocks[0])
    if len(inputs) != 2 or len(body) != 2 or body[0].name != "arith.addf" or len(op.results) != 1:
        return False
    arguments = list(op.regions[0].blocks[0].arguments)[:2]
    if set(body[0].operands) != set(arguments) or body[1].operands[0] != body[0].results[0]:
        return False
    return old in inputs and any(x in parts for x in inputs)


def check_before(gather: Gather, loops: Sequence[mlir.Operation], number: int) -> None:
    """Raise `NoMatch` unless all operands of the gather are defined before the loops, whose sum starts with zeros."""
    if not _is_zero(loops[0].operands[3 + number]):
        raise NoMatch("the sum does not begin with zeros")
    for before, after in itertools.pairwise(loops):
        if after.operands[3 + number] != before.results[number] or len(list(before.results[number].uses)) != 1:
            raise NoMatch("the sum is read on the way")
    start = gather.loop.operands[3 + gather.into]
    available = {r for op in operations(gather.loop) if op != gather.loop for r in op.results}
    available.update(
        a for op in operations(gather.loop) for region in op.regions for b in region.blocks for a in b.arguments
    )
    available.add(gather.loop.operands[3 + gather.source])
    used = {x for op in operations(gather.loop) for x in op.operands if x not in available}
    starts = {value for value in used if (op := defining_op(value)) is not None and op.name in _STARTS}
    for value in (start, *(used - starts)):
        op = defining_op(value)
        if (
            op is not None
            and op.name != "arith.constant"
            and not (op.block == loops[0].block and op.is_before_in_block(loops[0]))
        ):
            raise NoMatch("something comes after the loops")


def build_gather(gather: Gather, loops: Sequence[mlir.Operation], number: int, sums: Sequence[Sum]) -> None:
    """Make the loops carry the target of the gather."""
    start = gather.loop.operands[3 + gather.into]
    tensor_type = start.type
    constants = [op for op in block_ops(gather.loop.block) if op.name == "arith.constant"]
    for op in constants:
        if not op.is_before_in_block(loops[0]):
            op.move_before(loops[0])
    loops[0].operands[3 + number] = start
    for loop, found in zip(loops, sums):
        for value in (
            loop.regions[0].blocks[0].arguments[1 + number],
            loop.results[number],
            found.loop.regions[0].blocks[0].arguments[1 + found.number],
            found.loop.results[found.number],
        ):
            value.set_type(tensor_type)
        _gather_in(gather, found)
    gather.loop.results[gather.into].replace_all_uses_with(loops[-1].results[number])
    gather.loop.erase()


def _gather_in(gather: Gather, found: Sum) -> None:
    """Gather from one matrix of the batch."""
    carried = found.loop.regions[0].blocks[0].arguments[1 + found.number]
    index = found.old.operands[1]
    contraction = found.contraction
    dim = gather.dims[gather.into]
    sizes = list(carried.type.shape)
    sizes[dim] = 1
    offsets = [0] * len(sizes)
    offsets[dim] = _DYNAMIC
    attributes = {
        "static_offsets": mlir.DenseI64ArrayAttr.get(offsets),
        "static_sizes": mlir.DenseI64ArrayAttr.get(sizes),
        "static_strides": mlir.DenseI64ArrayAttr.get([1] * len(sizes)),
    }
    with contraction.location, mlir.InsertionPoint(contraction):
        zero = emit.zero(contraction.results[0].type.element_type)
        contraction.operands[2] = emit.fill(zero, emit.empty(contraction.results[0].type)).results[0]
    with gather.loop.location, mlir.InsertionPoint(found.put):
        part = mlir.RankedTensorType.get(sizes, carried.type.element_type)
        segments = {"operandSegmentSizes": emit.segments(1, 1, 0, 0)}
        old = emit.value("tensor.extract_slice", [carried, index], part, **attributes, **segments)
        inits = [old, old]
        inits[gather.source] = contraction.results[0]
        lower, upper, step = list(gather.loop.operands)[:3]
        new = emit.for_loop(lower, upper, step, lambda i, values: _gather_element(gather, i, values), inits)[
            gather.into
        ]
        segments = {"operandSegmentSizes": emit.segments(1, 1, 1, 0, 0)}
        whole = emit.value("tensor.insert_slice", [new, carried, index], carried.type, **attributes, **segments)
    found.put.results[0].replace_all_uses_with(whole)
    found.put.erase()
    found.old.erase()


def _gather_element(gather: Gather, i: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
    """The body of the gather for a batch of one, on a single element."""
    block = gather.loop.regions[0].blocks[0]
    environment: dict[mlir.Value, mlir.Value] = dict(zip(block.arguments, [i, *values]))
    *ops, end = block_ops(block)
    for op in ops:
        if op.name == "tensor.extract_slice":
            tensor = environment[op.operands[0]]
            here = _indices(op, list(op.operands)[1:], environment)
            found = emit.value("tensor.extract", [tensor, *here], tensor.type.element_type)
        elif op.name == "tensor.insert_slice":
            tensor = environment[op.operands[1]]
            scalar = environment.get(op.operands[0]) or emit.zero(tensor.type.element_type)
            here = _indices(op, list(op.operands)[2:], environment)
            found = emit.value("tensor.insert", [scalar, tensor, *here], tensor.type)
        elif op.name == "linalg.generic":
            found = emit.same_type("arith.addf", *(environment[x] for x in list(op.operands)[:2]))
        elif op.name in _STARTS:
            continue
        else:
            clone_with(op, environment)
            continue
        environment[op.results[0]] = found
    return [environment[x] for x in end.operands]


def _indices(
    op: mlir.Operation, dynamic: Sequence[mlir.Value], environment: dict[mlir.Value, mlir.Value]
) -> list[mlir.Value]:
    """The indices of a slice of one element."""
    given = iter(dynamic)
    offsets = slice_numbers(op)[0]
    return [environment.get(x := next(given), x) if o == _DYNAMIC else emit.index(o) for o in offsets]
