"""Expand rows: in nests whose dot products are batched, elementwise operations on rows become loops over elements.

Before:
    %o = tensor.extract_slice %out[%i, 0] [1, 32] [1, 1] : tensor<64x32xf64> to tensor<32xf64>
    %v = tensor.extract_slice %V[%j, 0] [1, 32] [1, 1] : tensor<64x32xf64> to tensor<32xf64>
    %s = linalg.generic {maps = [(d) -> (d), () -> (), (d) -> (d), (d) -> (d)]} ins(%o, %w, %v) { %o + %w * %v }
    %r = tensor.insert_slice %s into %out[%i, 0] [1, 32] [1, 1] : tensor<32xf64> into tensor<64x32xf64>
After:
    %r = scf.for %d = %c0 to %c32 step %c1 iter_args(%x = %out) -> (tensor<64x32xf64>) {
      %a = tensor.extract %x[%i, %d] : tensor<64x32xf64>
      %b = tensor.extract %V[%j, %d] : tensor<64x32xf64>
      %c = ... %a + %w * %b
      %y = tensor.insert %c into %x[%i, %d] : tensor<64x32xf64>
      scf.yield %y : tensor<64x32xf64>
    }

A loop-carried row is stored by the operation that yields it. All operations on arrays of the nest must be of this form;
the nest then is one over elements, and can be raised as a whole. Other nests are unchanged.
"""

from __future__ import annotations

from mlirml.analysis.values import walk
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import attempt
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.batch_dots import BATCHED, is_inside
from mlirml.raising.nests.find_loops import loop_functions

_ELEMENTS = ("tensor.extract", "tensor.insert", "tensor.from_elements", "tensor.empty", "linalg.fill", "linalg.yield")
_SCALARS = ("arith", "math", "scf", "affine")


@register(when=ANY_LOOP, optional=True)
class ExpandRowsPass(Pass):
    """Turn elementwise operations on rows into loops over elements, in nests whose dot products are batched."""

    def run(self, module: mlir.Operation) -> None:
        changed = False
        for function in loop_functions(module):
            for nest in [op for op in operations(function) if op.name == "scf.for" and BATCHED in op.attributes]:
                del nest.attributes[BATCHED]
                for op, number in attempt(match_sinks, nest) or ():
                    with op.location:
                        build_loop(read_sink(op, number))
                    changed = True
        if changed:
            run_upstream(module, "canonicalize,cse")


@dataclass(frozen=True)
class Sink:
    """Operand `number` of `op`, a computed row that is stored into `array`; the last offset is the row's start."""

    op: mlir.Operation
    number: int
    row: mlir.Value
    array: mlir.Value
    offsets: tuple[mlir.Value | int, ...]


def match_sinks(nest: mlir.Operation) -> list[tuple[mlir.Operation, int]]:
    """The operands of a nest that are computed rows; raises `NoMatch` if it has other operations on arrays."""
    sinks: list[tuple[mlir.Operation, int]] = []
    rows: list[mlir.Value] = []
    for op in operations(nest):
        if op.name == "linalg.generic":
            check_generic(op)
            rows.append(op.results[0])
        elif op.name == "tensor.insert_slice":
            sinks.append((op, 0))
        elif op.name == "tensor.extract_slice":
            check_row(op, op.results[0].type)
        elif op.name not in _ELEMENTS and op.name.partition(".")[0] not in _SCALARS:
            raise NoMatch(f"a {op.name}")
    for row in rows:
        uses = list(row.uses)
        if len(uses) != 1:
            raise NoMatch("a row is needed several times")
        user = uses[0].owner.operation
        if user.name == "scf.yield":
            sinks.append((user, uses[0].operand_number))
        elif user.block != defining_op(row).block:  # type: ignore[union-attr]
            raise NoMatch("a row is needed elsewhere")
        elif user.name not in ("linalg.generic", "tensor.insert_slice"):
            raise NoMatch(f"a row is needed by a {user.name}")
    for op, number in sinks:
        sink = read_sink(op, number)
        check_reads(sink, sink.row, nest)
    return sinks


def read_sink(op: mlir.Operation, number: int) -> Sink:
    """The destination of a row that is an operand of an operation; raises `NoMatch`."""
    if op.name == "tensor.insert_slice":
        row = op.operands[0]
        return Sink(op, 0, row, op.operands[1], check_row(op, row.type))
    return match_carried(op, number, op.operands[number])


def check_generic(op: mlir.Operation) -> None:
    """Raises `NoMatch` for operations that are not elementwise on rows and scalars."""
    block = op.regions[0].blocks[0]
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    iterators = [str(iterator) for iterator in op.attributes["iterator_types"]]
    if len(op.results) != 1 or len(iterators) != 1 or "parallel" not in iterators[0]:
        raise NoMatch("no row")
    if any(True for _ in block.arguments[len(maps) - 1].uses):
        raise NoMatch("it reads its out")
    if not mlir.ShapedType(op.results[0].type).has_static_shape:
        raise NoMatch("a row of dynamic length")
    identity = mlir.AffineMap.get_identity(1)
    if maps[-1] != identity or any(m != identity and m.results for m in maps):
        raise NoMatch("it is not elementwise")
    if any(inner.name.partition(".")[0] not in ("arith", "math", "linalg") for inner in block_ops(block)):
        raise NoMatch("it computes with more than numbers")
    if any(inner.name == "linalg.index" for inner in block_ops(block)):
        raise NoMatch("it counts")


def check_row(op: mlir.Operation, type_: mlir.Type) -> tuple[mlir.Value | int, ...]:
    """The offsets of a slice along the last dimension; raises `NoMatch` for other slices."""
    sizes = list(op.attributes["static_sizes"])
    if len(type_.shape) != 1 or any(s != 1 for s in sizes[:-1]) or sizes[-1] != type_.shape[0]:
        raise NoMatch("a slice that is no row")
    if any(stride != 1 for stride in op.attributes["static_strides"]):
        raise NoMatch("a slice with steps")
    return tuple(slice_offsets(op))


def match_carried(final: mlir.Operation, number: int, row: mlir.Value) -> Sink:
    """A computed row that a loop or a branch yields."""
    around = final.parent.operation
    if around.name == "scf.for":
        return Sink(final, number, row, around.regions[0].blocks[0].arguments[1 + number], (0,))
    if around.name != "scf.if" or len(around.regions[1].blocks) == 0:
        raise NoMatch("a row leaves something else")
    others = [region.blocks[0] for region in around.regions if region.blocks[0] != final.block]
    other = block_ops(others[0])[-1].operands[number]
    if is_inside(other, around):
        raise NoMatch("both branches compute a row")
    return Sink(final, number, row, other, (0,))


def check_reads(sink: Sink, row: mlir.Value, nest: mlir.Operation) -> None:
    """Raises `NoMatch` where a row is computed from other elements of its destination array."""

    def inputs(each: mlir.Value) -> list[mlir.Value]:
        op = defining_op(each)
        if not is_row(each):
            return []
        if op is not None and op.name == "linalg.generic" and op.block == sink.op.block:
            return list(op.operands)[:-1]
        check_read(sink, each, nest)
        return []

    for _ in walk(row, inputs):
        pass


def is_row(value: mlir.Value) -> bool:
    """True for tensors of at least one dimension."""
    return isinstance(value.type, mlir.RankedTensorType) and len(value.type.shape) > 0


def check_read(sink: Sink, row: mlir.Value, nest: mlir.Operation) -> None:
    """Raises `NoMatch` where a row that a computation starts from has other elements of the destination array."""
    op = defining_op(row)
    if op is not None and op.name == "tensor.extract_slice":
        array, offsets = op.operands[0], tuple(slice_offsets(op))
        if (array == sink.array and offsets != sink.offsets) or (array != sink.array and is_inside(array, nest)):
            raise NoMatch("a row of an array that changes")
    elif op is not None and op.name == "linalg.fill":
        return
    elif row != sink.array and is_inside(row, nest) and (op is None or op.name != "scf.for"):
        raise NoMatch("a row that changes")


def build_loop(sink: Sink) -> None:
    """Build a loop that stores the elements of a row."""
    length = mlir.ShapedType(sink.row.type).shape[0]
    with mlir.InsertionPoint(sink.op):
        bounds = [emit.index(number) for number in (0, length, 1)]
        loop = emit.create("scf.for", [*bounds, sink.array], [sink.array.type], regions=1)
        inner = emit.block(loop, [mlir.IndexType.get(), sink.array.type])
    at, array = inner.arguments
    with mlir.InsertionPoint(inner):
        value = element(sink, sink.row, at, array, {})
        stored = emit.value("tensor.insert", [value, array, *indices_of(sink.offsets, at)], array.type)
        emit.create("scf.yield", [stored])
    if sink.op.name == "tensor.insert_slice":
        replace_op(sink.op, loop.results[0])
    else:
        sink.op.operands[sink.number] = loop.results[0]


def indices_of(offsets: tuple[mlir.Value | int, ...], at: mlir.Value) -> list[mlir.Value]:
    """The indices of an element of a row."""
    *front, start = [emit.index(offset) if isinstance(offset, int) else offset for offset in offsets]
    return [*front, at if offsets[-1] == 0 else emit.same_type("arith.addi", start, at)]


def element(
    sink: Sink, row: mlir.Value, at: mlir.Value, array: mlir.Value, known: dict[mlir.Value, mlir.Value]
) -> mlir.Value:
    """An element of a row, or a scalar; `array` is the iter_arg of the loop, for the array of the sink.

    `known` gets the elements, by their rows.
    """
    if row not in known:
        known[row] = _element(sink, row, at, array, known)
    return known[row]


def _element(
    sink: Sink, row: mlir.Value, at: mlir.Value, array: mlir.Value, known: dict[mlir.Value, mlir.Value]
) -> mlir.Value:
    if not isinstance(row.type, mlir.RankedTensorType):
        return row
    op, type_ = defining_op(row), mlir.ShapedType(row.type)
    if not type_.shape:
        return emit.value("tensor.extract", [row], type_.element_type)
    if row == sink.array:
        return emit.value("tensor.extract", [array, at], type_.element_type)
    if op is not None and op.name == "linalg.generic":
        inputs = list(op.operands)[:-1]
        values = [element(sink, operand, at, array, known) for operand in inputs]
        block = op.regions[0].blocks[0]
        return emit.body_again(block, [*values, *list(block.arguments)[len(inputs) :]])[0]
    if op is not None and op.name == "tensor.extract_slice":
        whole = array if op.operands[0] == sink.array else op.operands[0]
        return emit.value("tensor.extract", [whole, *indices_of(tuple(slice_offsets(op)), at)], type_.element_type)
    if op is not None and op.name == "linalg.fill":
        return op.operands[0]
    return emit.value("tensor.extract", [row, at], type_.element_type)
