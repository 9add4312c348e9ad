"""Memory to value: functions on memrefs, as other front ends emit them, become functions on tensors.

Before:
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
      affine.for %i = 1 to 8 {
        %a = affine.load %x[%i - 1] : memref<8xf32>
        affine.store %a, %y[%i] : memref<8xf32>
      }
      return
    }
After:
    func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
      %r = scf.for %i = %c1 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8xf32>) {
        %p = affine.apply (d0) -> (d0 - 1) (%i)
        %a = tensor.extract %x[%p] : tensor<8xf32>
        %y1 = tensor.insert %a into %y0[%i] : tensor<8xf32>
        scf.yield %y1 : tensor<8xf32>
      }
      return %r : tensor<8xf32>
    }

An argument that is stored into becomes a result too, after the function's own ones, in the order of the arguments;
`mlirml.writebacks` has the pairs of result and argument, so that targets write in place. Two arguments are assumed not
to alias, as elsewhere in MLIR when functions are bufferized; with `may-alias` a function that stores into one of
several arguments of one element type is not converted. A function is unchanged, with a remark, if a memref escapes into
a call, a branch or a container, or is used by operations other than loads, stores, copies, views and `linalg`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, callee_of, defining_op, has_op, mlir, operations
from mlirml.passes import NoMatch, Pass, register, run_upstream
from mlirml.raising.nests.memory_values import LOADS, STORES, VIEWS, root_of, stored_operands, to_values
from mlirml.raising.nests.remarks import remark

_CLEAN = "canonicalize,cse"
_ROOTS = ("memref.alloc", "memref.alloca")
_OTHERS = frozenset({*_ROOTS, *VIEWS, *LOADS, *STORES, "memref.dealloc", "memref.copy", "memref.dim", "func.return"})
_REGIONS = frozenset(
    {"affine.for", "affine.if", "affine.parallel", "scf.for", "scf.if", "scf.while", "scf.parallel", "func.func"}
)
_TERMINATORS = ("affine.yield", "scf.yield", "scf.condition", "scf.reduce", "func.return")


@register
@dataclass(frozen=True)
class MemoryToValuePass(Pass):
    """Turn functions on memrefs into functions on tensors, with the memrefs that they store into as results."""

    name = "mlirml-memory-to-value"
    may_alias: bool = False

    def run(self, module: mlir.Operation) -> None:
        if not has_op(module, (*LOADS, *STORES, "memref.copy", "memref.alloc", "memref.alloca", "affine.for")):
            return
        changed = False
        called = set(called_with_memory(module))
        for function in block_ops(module.regions[0].blocks[0]):
            if function.name == "func.func" and function.regions[0].blocks:
                try:
                    match_function(function, self.may_alias)
                    if mlir.StringAttr(function.attributes["sym_name"]).value in called:
                        raise _Stays(function, "another one calls it with an array")
                except _Stays as stays:
                    remark(stays.op, f"the function stays on memory: {stays}")
                    continue
                to_values(function)
                changed = True
        if changed:
            run_upstream(module, _CLEAN)


class _Stays(NoMatch):
    """Raised if a function cannot be converted because of an operation."""

    def __init__(self, op: mlir.Operation, reason: str) -> None:
        super().__init__(reason)
        self.op = op


def called_with_memory(module: mlir.Operation) -> Iterator[str]:
    """The functions that are called with arrays."""
    if has_op(module, ("func.call",)):
        for op in operations(module):
            if op.name == "func.call" and any(True for _ in memory_of(op)):
                yield callee_of(op)


def match_function(function: mlir.Operation, may_alias: bool) -> None:
    """Check that all memrefs of a function can become values; raises `NoMatch`."""
    if len(function.regions[0].blocks) != 1:
        raise _Stays(function, "it has several blocks")
    arguments = [a for a in function.regions[0].blocks[0].arguments if is_memory(a.type)]
    for argument in arguments:
        _check_type(function, argument.type)
    for op in list(operations(function))[1:]:
        _check(op)
    if may_alias:
        _check_aliases(function, arguments)


def is_memory(type_: mlir.Type) -> bool:
    """True for memref types."""
    return isinstance(type_, mlir.MemRefType | mlir.UnrankedMemRefType)


def memory_of(op: mlir.Operation) -> Iterator[mlir.Value]:
    """The memref operands and results of an operation."""
    yield from (v for v in (*op.operands, *op.results) if is_memory(v.type))


def _check_type(op: mlir.Operation, type_: mlir.Type) -> None:
    scalar = (mlir.IntegerType, mlir.FloatType, mlir.IndexType, mlir.ComplexType)
    if not isinstance(type_, mlir.MemRefType) or not isinstance(type_.element_type, scalar):
        raise _Stays(op, f"{type_} is no array of numbers")


def _check(op: mlir.Operation) -> None:
    structured = any(o is not None and o.name.startswith("linalg.") for o in (op, op.parent))
    if op.regions and op.name not in _REGIONS and not structured:
        raise _Stays(op, f"`{op.name}` has regions of its own")
    if op.name in ("affine.parallel", "scf.parallel") and op.results:
        raise _Stays(op, "parallel iterations are reduced to a number")
    for value in memory_of(op):
        _check_type(op, value.type)
    if not any(True for _ in memory_of(op)) or op.name.startswith("linalg."):
        if op.name.startswith("linalg."):
            _check_structured(op)
        return
    if op.name not in _OTHERS:
        raise _Stays(op, f"`{op.name}` works on an array")
    if op.name in STORES and is_memory(op.operands[0].type):
        raise _Stays(op, "an array is stored")
    if op.name == "memref.subview" and any(s in _DYNAMIC for s in op.attributes["static_strides"]):
        raise _Stays(op, "a view has strides that are not known")
    if op.name == "func.return" and any(defining_op(v) is not None and root_of(v) != v for v in memory_of(op)):
        raise _Stays(op, "a view is returned")


_DYNAMIC = (mlir.ShapedType.get_dynamic_size(), -(2**63))


def _check_structured(op: mlir.Operation) -> None:
    """Check that a structured operation reads its inputs before it stores, as on values."""
    inits = list(stored_operands(op))
    roots = [root_of(v) for v in inits]
    if len(set(roots)) != len(roots):
        raise _Stays(op, "it stores into one array twice")
    for value in op.operands:
        if is_memory(value.type) and value not in inits and root_of(value) in roots:
            raise _Stays(op, "it reads the array that it stores into")
    if any(isinstance(v.type, mlir.RankedTensorType) for v in op.operands) and any(True for _ in memory_of(op)):
        raise _Stays(op, "it mixes memory and values")


def _check_aliases(function: mlir.Operation, arguments: list[mlir.Value]) -> None:
    stored = {root_of(v) for op in operations(function) for v in stored_operands(op)}
    types = [str(a.type.element_type) for a in arguments]
    for argument in arguments:
        if argument in stored and types.count(str(argument.type.element_type)) > 1:
            raise _Stays(function, f"argument {argument.arg_number} is stored into, and others may be the same memory")
