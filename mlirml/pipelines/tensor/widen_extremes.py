"""Widen extremes: maxima and minima of f16 and bf16 are found among the same numbers as f32.

Before:
    %m = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)], ["parallel", "reduction"]}
        ins(%x : tensor<8x64xbf16>) outs(%lowest : tensor<8xbf16>) {
    ^bb0(%a: bf16, %best: bf16):
      %most = arith.maximumf %a, %best : bf16
      linalg.yield %most : bf16
    } -> tensor<8xbf16>
After:
    %w = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)], ["parallel", "reduction"]}
        ins(%x : tensor<8x64xbf16>) outs(%wide_lowest : tensor<8xf32>) {
    ^bb0(%a: bf16, %best: f32):
      %wide = arith.extf %a : bf16 to f32
      %most = arith.maximumf %wide, %best : f32
      linalg.yield %most : f32
    } -> tensor<8xf32>
    %m = linalg.generic ... ins(%w : tensor<8xf32>) outs(%empty : tensor<8xbf16>) { arith.truncf } -> tensor<8xbf16>

Processors compare narrow floats as f32 anyway, and LLVM would round each intermediate extreme, which it does not
vectorise. The result is exact: it is one of the elements. The value of an argmax or argmin is widened, too.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.reductions import argmaxes_of, combination_of
from mlirml.analysis.structured import index_dim, reductions_of
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register

_COMPARED = ("arith.cmpf", "arith.select", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")


@register(when=("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf", "arith.cmpf"), optional=True)
class WidenExtremesPass(Pass):
    """Reduce f16 and bf16 to extremes in f32."""

    def run(self, module: mlir.Operation) -> None:
        for generic in named_operations(module, ("linalg.generic",)):
            for number in range(len(generic.results)):
                with suppress(NoMatch):
                    widen(match_extreme(generic, number))


@dataclass(frozen=True)
class Extreme:
    """Result `number` of an operation is the extreme of `term`; `ops` compare it with the `best` one so far."""

    generic: mlir.Operation
    number: int
    term: mlir.Value
    best: mlir.Value
    ops: tuple[mlir.Operation, ...]


def match_extreme(generic: mlir.Operation, number: int) -> Extreme:
    """A narrow extreme of elements; raises `NoMatch` for other results."""
    tensor = generic.results[number].type
    if not isinstance(tensor, mlir.RankedTensorType) or not is_narrow(tensor.element_type):
        raise NoMatch("not a narrow float")
    reduced = [d for d, is_reduced in enumerate(reductions_of(generic)) if is_reduced]
    block = generic.regions[0].blocks[0]
    *ops, end = block_ops(block)
    arguments = list(block.arguments)[len(block.arguments) - len(generic.results) :]
    best, value = arguments[number], end.operands[number]
    found = combination_of(value, best)
    term = found.term if found is not None and found.combiner.is_extreme else None
    if term is None:
        pairs = argmaxes_of(list(end.operands), arguments, lambda position: [index_dim(position)] == reduced)
        term = next((pair.term for pair in pairs if pair.value == number), None)
    if not reduced or term is None:
        raise NoMatch("not an extreme")
    readers = [use.owner.operation for use in best.uses]
    compared = tuple(op for op in ops if op in readers or is_test(op, term))
    if not all(op in ops and op.name in _COMPARED and is_between(op, term, best) for op in (*readers, *compared)):
        raise NoMatch("the extreme so far is read by something else")
    users = [use.owner.operation for use in value.uses]
    if users != [end] or defining_op(value) not in compared:
        raise NoMatch("the extreme is read in the body")
    return Extreme(generic, number, term, best, compared)


def is_narrow(type_: mlir.Type) -> bool:
    """True for f16 and bf16."""
    return isinstance(type_, (mlir.F16Type, mlir.BF16Type))


def is_test(op: mlir.Operation, term: mlir.Value) -> bool:
    """True for a comparison of a term with itself, which tells NaN."""
    return bool(op.name == "arith.cmpf" and list(op.operands) == [term, term])


def is_between(op: mlir.Operation, term: mlir.Value, best: mlir.Value) -> bool:
    """True if an operation takes no floats but the term and the best one so far."""
    return all(value in (term, best) for value in op.operands if isinstance(value.type, mlir.FloatType))


def widen(extreme: Extreme) -> None:
    """Compute an extreme in f32, and narrow the result."""
    generic, number = extreme.generic, extreme.number
    wide = mlir.F32Type.get()
    result = generic.results[number]
    narrow = result.type
    position = len(generic.operands) - len(generic.results) + number
    with generic.location, mlir.InsertionPoint(generic):
        generic.operands[position] = widened(generic.operands[position])
    widen_body(extreme)
    result.set_type(mlir.RankedTensorType.get(narrow.shape, wide))
    with generic.location, mlir.InsertionPoint(following(generic)):
        short = cast(result, "arith.truncf", narrow)
    result.replace_all_uses_except(short.results[0], short)


def widen_body(extreme: Extreme) -> None:
    """Compare in f32."""
    extreme.best.set_type(mlir.F32Type.get())
    environment: dict[mlir.Value, mlir.Value] = {}
    for op in extreme.ops:
        with op.location, mlir.InsertionPoint(op):
            if extreme.term not in environment and extreme.term in list(op.operands):
                environment[extreme.term] = emit.value("arith.extf", [extreme.term], mlir.F32Type.get())
            operands = [environment.get(value, value) for value in op.operands]
            is_float = isinstance(op.results[0].type, mlir.FloatType)
            result = mlir.F32Type.get() if is_float else op.results[0].type
            new = emit.value(op.name, operands, result, **{name: op.attributes[name] for name in op.attributes})
        op.results[0].replace_all_uses_with(new)
        environment[op.results[0]] = new
        op.erase()


def following(op: mlir.Operation) -> mlir.Operation:
    """The next operation of the block."""
    ops = block_ops(op.block)
    return ops[ops.index(op) + 1]


def widened(init: mlir.Value) -> mlir.Value:
    """A tensor as f32."""
    shape = mlir.RankedTensorType(init.type).shape
    wide = mlir.RankedTensorType.get(shape, mlir.F32Type.get())
    owner = defining_op(init)
    if owner is not None and owner.name == "linalg.fill":
        scalar = emit.value("arith.extf", [owner.operands[0]], mlir.F32Type.get())
        return emit.fill(scalar, emit.empty(wide)).results[0]
    return cast(init, "arith.extf", wide).results[0]


def cast(tensor: mlir.Value, name: str, to: mlir.Type) -> mlir.Operation:
    """The elements of a tensor in another type."""
    identity = mlir.AffineMap.get_identity(to.rank)

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        return [emit.value(name, arguments[:1], to.element_type)]

    return emit.generic([tensor], [emit.empty(to)], [identity] * 2, ["parallel"] * to.rank, body)
