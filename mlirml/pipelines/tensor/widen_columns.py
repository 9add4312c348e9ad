"""Widen columns: a loop over columns that are reduced and updated works on several adjacent ones at a time.

Before:
    %r:2 = scf.for %j = %first to %c60 step %c1 iter_args(%a = %a0, %s = %s0) ... {
      %column = tensor.extract_slice %a[0, %j] [70, 1] [1, 1] : tensor<70x60xf64> to tensor<70xf64>
      %d = linalg.dot ins(%q, %column : tensor<70xf64>, tensor<70xf64>) outs(%zero) -> tensor<f64>
      %e = tensor.extract %d[] : tensor<f64>
      %s1 = tensor.insert %e into %s[%k, %j] : tensor<60x60xf64>
      %new = linalg.generic ... ins(%q, %d, %column) -> tensor<70xf64>
      %a1 = tensor.insert_slice %new into %a[0, %j] [70, 1] [1, 1] : tensor<70xf64> into tensor<70x60xf64>
      scf.yield %a1, %s1
    }
After:
    %m:2 = scf.for %j = %first to %middle step %c16 iter_args(%a = %a0, %s = %s0) ... {
      %columns = tensor.extract_slice %a[0, %j] [70, 16] [1, 1] : tensor<70x60xf64> to tensor<70x16xf64>
      %d = linalg.generic ... ins(%q, %columns) -> tensor<16xf64>          // sums over 70 rows
      %s1 = tensor.insert_slice %d into %s[%k, %j] [1, 16] [1, 1]
      %new = linalg.generic ... ins(%q, %d, %columns) -> tensor<70x16xf64>
      %a1 = tensor.insert_slice %new into %a[0, %j] [70, 16] [1, 1]
      scf.yield %a1, %s1
    }
    /* the same for four columns, and for one */

The elements of a column are far from each other, those of a row adjacent: vectors that run along rows are loaded at
once, and need no sum over their lanes. Each iteration may read and write only its own column of what the loop carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from mlirml.analysis.constants import constant_of
from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.traits import TENSOR_READS, TENSOR_STARTS, TENSOR_STORES
from mlirml.analysis.values import captured_values, is_static_tensor, used_values
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, replace_op
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST

_FEWER = 4
"""The number of columns of the second loop."""
_SCALAR = ("arith.", "math.")
_Now = Callable[[mlir.Value], mlir.Value]
"""The value of a loop over several columns that takes the place of one in the body; others are as they are."""
_DYNAMIC = mlir.ShapedType.get_dynamic_size()


@register(when=LOOP_OR_REQUEST, optional=True)
class WidenColumnsPass(Pass):
    """Make loops over columns, of at most `longest` operations, work on `columns` of them at a time."""

    columns: int = 16
    longest: int = 32

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                wide = match(loop, self.longest)
                build(loop, wide, self.columns)


def match(loop: mlir.Operation, longest: int) -> set[mlir.Value]:
    """The values of the body that differ from column to column; raises `NoMatch`."""
    block = loop.regions[0].blocks[0]
    number, *carried = block.arguments
    *body, end = block_ops(block)
    if not carried or constant_of(loop.operands[2]) != 1 or len(body) > longest:
        raise NoMatch("no short loop over a matrix")
    if not all(is_static_tensor(value) for value in carried):
        raise NoMatch("something else than arrays is carried")
    versions = {value: position for position, value in enumerate(carried)}
    wide: set[mlir.Value] = set()
    reduces = False
    for op in body:
        used = used_values(op)
        if op.name in TENSOR_READS and _reads_column(op, number, wide):
            wide.update(op.results)
        elif op.name in TENSOR_STORES and op.operands[1] in versions:
            if not _has_column(op, number, wide) or op.operands[0] in versions:
                raise NoMatch("a store to another column")
            versions[op.results[0]] = versions[op.operands[1]]
        elif any(value in versions or value == number for value in used):
            raise NoMatch("another use of the column's index, or of what the loop carries")
        elif any(value in wide for value in used):
            reduces |= _check_widened(op, wide)
            wide.update(op.results)
        elif op.regions and not op.name.startswith("linalg."):
            raise NoMatch("a loop or a branch")
    if not reduces or [versions.get(value) for value in end.operands] != list(range(len(carried))):
        raise NoMatch("no sum over a column, or other values are carried")
    return wide


def _reads_column(op: mlir.Operation, number: mlir.Value, wide: set[mlir.Value]) -> bool:
    """True if an operation reads the column of the iteration from an array that is not made of columns."""
    return op.operands[0] not in wide and number in list(op.operands) and _has_column(op, number, wide)


def _has_column(op: mlir.Operation, number: mlir.Value, wide: set[mlir.Value]) -> bool:
    """True if the last index of an access is the column of the iteration, and the others are loop-invariant."""
    *others, last = _offsets(op)
    values = [offset for offset in others if not isinstance(offset, int)]
    if isinstance(last, int) or last != number or any(value in wide or value == number for value in values):
        return False
    if not op.name.endswith("_slice"):
        return True
    sizes = list(op.attributes["static_sizes"])
    part = op.results[0] if op.name == "tensor.extract_slice" else op.operands[0]
    return (
        sizes[-1] == 1
        and _DYNAMIC not in sizes
        and set(op.attributes["static_strides"]) == {1}
        and list(part.type.shape) == [size for size in sizes[:-1] if size != 1]
    )


def _offsets(op: mlir.Operation) -> list[int | mlir.Value]:
    if op.name.endswith("_slice"):
        return slice_offsets(op)
    return list(op.operands)[1 if op.name == "tensor.extract" else 2 :]


def _check_widened(op: mlir.Operation, wide: set[mlir.Value]) -> bool:
    """Raise `NoMatch` if an operation cannot work on several columns; True if it sums over a column."""
    if op.name == "tensor.extract":
        if list(op.operands)[1:]:
            raise NoMatch("an element of a column")
        return False
    if op.name == "tensor.from_elements":
        if len(op.operands) != 1 or op.results[0].type.shape:
            raise NoMatch("an array of several numbers")
        return False
    if op.name.startswith(_SCALAR):
        if op.regions or len(op.results) != 1:
            raise NoMatch("an operation with a region")
        return False
    if not op.name.startswith("linalg.") or not op.results:
        raise NoMatch("another operation")
    maps, body = indexing_maps(op), op.regions[0].blocks[0]
    if any(inner.name == "linalg.index" or inner.regions for inner in block_ops(body)):
        raise NoMatch("it depends on indices")
    owners = map(defining_op, captured_values(op))
    if any(owner is not None and owner.block == op.block for owner in owners):
        raise NoMatch("its body uses a number of the loop that is no operand")
    if not all(m.is_projected_permutation for m in maps) or not all(map(is_static_tensor, op.operands)):
        raise NoMatch("it is not a plain loop nest")
    for init in list(op.operands)[-len(op.results) :]:
        if init not in wide and not _is_uniform(init):
            raise NoMatch("an array from outside of the loop is the init")
    return any(len(m.results) < m.n_dims for m in maps[-len(op.results) :])


def _is_uniform(init: mlir.Value) -> bool:
    """True if all elements of an init have one number, or any."""
    op = defining_op(init)
    if op is not None and op.name == "arith.constant":
        return bool(mlir.DenseElementsAttr(op.attributes["value"]).is_splat)
    return op is not None and op.name in TENSOR_STARTS


def build(loop: mlir.Operation, wide: set[mlir.Value], columns: int) -> None:
    """Replace a loop by one over many columns at a time, one over a few, and one over those that are left."""
    lower, upper, one, *values = loop.operands
    block = loop.regions[0].blocks[0]
    *body, end = block_ops(block)

    def several(count: int, number: mlir.Value, carried: Sequence[mlir.Value]) -> list[mlir.Value]:
        made = dict(zip(block.arguments, [number, *carried], strict=True))
        for op in body:
            if any(value in wide for value in (*used_values(op), *op.results)) or "insert" in op.name:
                made.update(zip(op.results, _widened(op, wide, made, count), strict=True))
            else:
                clone_with(op, made)
        return [made[value] for value in end.operands]

    def single(number: mlir.Value, carried: Sequence[mlir.Value]) -> list[mlir.Value]:
        made = dict(zip(block.arguments, [number, *carried], strict=True))
        for op in body:
            clone_with(op, made)
        return [made[value] for value in end.operands]

    with loop.location, mlir.InsertionPoint(loop):
        for count in (columns, _FEWER):
            step = emit.index(count)
            span = emit.same_type("arith.maxsi", emit.same_type("arith.subi", upper, lower), emit.index(0))
            whole = emit.same_type("arith.subi", span, emit.same_type("arith.remsi", span, step))
            middle = emit.same_type("arith.addi", lower, whole)
            values = emit.for_loop(lower, middle, step, partial(several, count), values)
            lower = middle
        values = emit.for_loop(lower, upper, one, single, values)
    replace_op(loop, *values)


def _widened(
    op: mlir.Operation, wide: set[mlir.Value], made: dict[mlir.Value, mlir.Value], count: int
) -> list[mlir.Value]:
    """The results of an operation for `count` columns, which are their last dimension."""

    def now(value: mlir.Value) -> mlir.Value:
        return made.get(value, value)

    if op.name in ("tensor.extract", "tensor.from_elements") and op.operands[0] in wide:
        return [now(op.operands[0])]
    if op.name in TENSOR_READS:
        sizes = _sizes(op, count)
        offsets = [offset if isinstance(offset, int) else now(offset) for offset in _offsets(op)]
        return [emit.extract_slice(now(op.operands[0]), offsets, sizes, _shape(sizes))]
    if op.name in TENSOR_STORES:
        return [_inserted(op, wide, now, count)]
    if op.name.startswith(_SCALAR):
        return [_on_numbers(op, wide, now, count)]
    maps, first = indexing_maps(op), len(op.operands) - len(op.results)
    dims = maps[0].n_dims
    inits = [_init(value, wide, now, count) for value in list(op.operands)[first:]]
    accesses = []
    for position, (value, access) in enumerate(zip(op.operands, maps, strict=True)):
        more = [mlir.AffineDimExpr.get(dims)] if position >= first or value in wide else []
        accesses.append(mlir.AffineMap.get(dims + 1, 0, [*access.results, *more]))
    kept = set.intersection(*({mlir.AffineDimExpr(e).position for e in m.results} for m in maps[first:]))
    iterators = ["parallel" if d in kept or d == dims else "reduction" for d in range(dims + 1)]
    body = op.regions[0].blocks[0]
    inputs = list(map(now, list(op.operands)[:first]))
    return list(emit.generic(inputs, inits, accesses, iterators, lambda xs: emit.body_again(body, xs)).results)


def _inserted(op: mlir.Operation, wide: set[mlir.Value], now: _Now, count: int) -> mlir.Value:
    """An array with several columns replaced."""
    sizes = _sizes(op, count)
    offsets = [offset if isinstance(offset, int) else now(offset) for offset in _offsets(op)]
    columns, into = (now(value) for value in list(op.operands)[:2])
    if op.operands[0] not in wide:
        columns = _repeated(columns, _shape(sizes))
    return emit.insert_slice(columns, into, offsets, sizes)


def _repeated(value: mlir.Value, shape: list[int]) -> mlir.Value:
    """A number, or a column, in each of several columns."""
    if not isinstance(value.type, mlir.RankedTensorType):
        return emit.fill(value, emit.empty(mlir.RankedTensorType.get(shape, value.type))).results[0]
    rank = len(shape)
    maps = [mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(d) for d in range(n)]) for n in (rank - 1, rank)]
    out = emit.empty(mlir.RankedTensorType.get(shape, value.type.element_type))
    return emit.generic([value], [out], maps, ["parallel"] * rank, lambda xs: xs[:1]).results[0]


def _on_numbers(op: mlir.Operation, wide: set[mlir.Value], now: _Now, count: int) -> mlir.Value:
    """An operation on numbers, one for each column."""
    inputs = [value for value in dict.fromkeys(used_values(op)) if value in wide]
    others = {value: now(value) for value in used_values(op) if value not in wide}

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        environment = {**others, **dict(zip(inputs, arguments))}
        emit.body_op(op, environment)
        return [environment[op.results[0]]]

    whole = mlir.AffineMap.get_identity(1)
    out = emit.empty(mlir.RankedTensorType.get([count], op.results[0].type))
    return emit.generic(list(map(now, inputs)), [out], [whole] * (len(inputs) + 1), ["parallel"], body).results[0]


def _init(init: mlir.Value, wide: set[mlir.Value], now: _Now, count: int) -> mlir.Value:
    """An init for several columns."""
    if init in wide:
        return now(init)
    kind = mlir.ShapedType(init.type)
    out, op = emit.empty(mlir.RankedTensorType.get([*kind.shape, count], kind.element_type)), defining_op(init)
    if op is None or op.name == "tensor.empty":
        return out
    if op.name == "linalg.fill":
        return emit.fill(now(op.operands[0]), out).results[0]
    return emit.fill(emit.constant(mlir.DenseElementsAttr(op.attributes["value"]).get_splat_value()), out).results[0]


def _sizes(op: mlir.Operation, count: int) -> list[int]:
    if op.name.endswith("_slice"):
        return [*list(op.attributes["static_sizes"])[:-1], count]
    return [1] * (len(_offsets(op)) - 1) + [count]


def _shape(sizes: Sequence[int]) -> list[int]:
    """The shape of a slice of several columns without dimensions of size 1."""
    return [*(size for size in sizes[:-1] if size != 1), sizes[-1]]
