"""Turn scalars that bodies of `linalg.generic` capture into operands, so that rules see them.

Before:
    %1 = linalg.generic {indexing_maps = [#id, #id]} ins(%x) outs(%e) {
    ^bb0(%in: f64, %out: f64):
      %2 = arith.mulf %in, %s : f64
      linalg.yield %2 : f64
    }
After:
    %t = tensor.from_elements %s : tensor<f64>
    %1 = linalg.generic {indexing_maps = [#id, #scalar, #id]} ins(%x, %t) outs(%e) {
    ^bb0(%in: f64, %in_0: f64, %out: f64):
      %2 = arith.mulf %in, %in_0 : f64
      linalg.yield %2 : f64
    }

CSE merges common scalars of bodies and of the code before them into the code before them.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.values import outer_variables
from mlirml.autodiff.arithmetic import is_float
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, operations, replace_op

_OWN = ("indexing_maps", "operandSegmentSizes", "linalg.memoized_indexing_maps")


def scalars_to_operands(ops: Iterable[mlir.Operation]) -> None:
    """Rewrite every `linalg.generic` among operations, and in them, that captures scalars."""
    for op in [inner for outer in ops for inner in operations(outer) if inner.name == "linalg.generic"]:
        operands = set(op.operands)
        found = [x for x in outer_variables(op) if x not in operands and _is_number(x)]
        if found:
            with op.location, mlir.InsertionPoint(op):
                _rewrite(op, found)


def _is_number(x: mlir.Value) -> bool:
    if isinstance(x.type, mlir.RankedTensorType):
        return False
    owner = defining_op(x)
    is_constant = owner is not None and owner.name == "arith.constant"
    return not is_constant and (isinstance(x.type, mlir.IntegerType) or is_float(x.type))


def _rewrite(op: mlir.Operation, numbers: list[mlir.Value]) -> None:
    results = len(op.results)
    count = len(op.operands) - results
    maps = indexing_maps(op)
    block = op.regions[0].blocks[0]
    types = [mlir.RankedTensorType.get([], x.type) for x in numbers]
    tensors = [emit.value("tensor.from_elements", [x], type_) for x, type_ in zip(numbers, types)]
    scalar = mlir.AffineMap.get(maps[0].n_dims, 0, [])

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        own = [*xs[:count], *xs[len(xs) - results :]]
        environment = dict(zip([*block.arguments, *numbers], [*own, *xs[count : len(xs) - results]]))
        *inner, last = block_ops(block)
        for each in inner:
            clone_with(each, environment)
        return [environment.get(x, x) for x in last.operands]

    new = emit.generic(
        [*list(op.operands)[:count], *tensors],
        list(op.operands)[count:],
        [*maps[:count], *[scalar] * len(numbers), *maps[count:]],
        ["parallel"] * maps[0].n_dims,
        body,
    )
    for name in op.attributes:
        if name not in _OWN:
            new.attributes[name] = op.attributes[name]
    replace_op(op, *new.results)
