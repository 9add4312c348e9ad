"""Unroll reductions: a reduction of few elements in a serial loop becomes scalar arithmetic.

Before:
    scf.for %i = ... {
      %s = linalg.generic {maps = [(k) -> (k), (k) -> ()], iterators = ["reduction"]}
          ins(%a : tensor<2xf64>) outs(%init : tensor<f64>) {
      ^bb0(%in: f64, %out: f64):
        %k = linalg.index 0 : index
        %j = arith.subi %i, %k : index
        %x = tensor.extract %y[%j] : tensor<100xf64>
        %p = arith.mulf %in, %x : f64
        %t = arith.addf %out, %p : f64
        linalg.yield %t : f64
      }
      ...
    }
After:
    scf.for %i = ... {
      %s0 = tensor.extract %init[] : tensor<f64>
      %a0 = tensor.extract %a[%c0] : tensor<2xf64>
      %x0 = tensor.extract %y[%i - 0] : tensor<100xf64>
      %s1 = arith.addf %s0, (arith.mulf %a0, %x0) : f64
      %a1 = tensor.extract %a[%c1] : tensor<2xf64>
      %x1 = tensor.extract %y[%i - 1] : tensor<100xf64>
      %s2 = arith.addf %s1, (arith.mulf %a1, %x1) : f64
      %s = tensor.from_elements %s2 : tensor<f64>
      ...
    }

So the enclosing loop becomes an innermost one: values that it carries through memory can stay in registers, its sums
are reassociated by their critical path, and LLVM may vectorise it. The order of the reduction is preserved.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from math import prod

from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST
from mlirml.pipelines.tensor.unroll_windows import dimensions_of

_LOOPS = ("scf.for", "scf.while", "scf.if")


@register(when=LOOP_OR_REQUEST, optional=True)
class UnrollReductionsPass(Pass):
    """Unroll reductions to a scalar of at most `most` elements, with bodies of at most `longest` operations."""

    most: int = 8
    longest: int = 64

    def run(self, module: mlir.Operation) -> None:
        for op in named_operations(module, ("linalg.generic",)):
            with suppress(NoMatch):
                build(op, match(op, self.most, self.longest))


@dataclass(frozen=True)
class Reduction:
    """The extents of the loops; for each operand that is read the loops whose sum indexes each of its dimensions."""

    sizes: tuple[int, ...]
    read: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]


def match(op: mlir.Operation, most: int, longest: int) -> Reduction:
    """Match a small reduction to tensors of rank 0 in the body of a loop; raises `NoMatch`."""
    if op.parent.operation.name not in _LOOPS:
        raise NoMatch("not in a loop")
    operands, results = list(op.operands), list(op.results)
    if not results or any(not isinstance(r.type, mlir.RankedTensorType) or r.type.shape for r in results):
        raise NoMatch("more than one element results")
    if not all(isinstance(x.type, mlir.RankedTensorType) and x.type.has_static_shape for x in operands):
        raise NoMatch("an operand is no tensor of known shape")
    accesses = [dimensions_of(item.value) for item in op.attributes["indexing_maps"]]
    sizes = [0] * len(op.attributes["iterator_types"])
    for operand, dimensions in zip(operands, accesses, strict=True):
        for (loop, *more), extent in zip(dimensions, operand.type.shape, strict=True):
            if not more:
                sizes[loop] = extent
    body = block_ops(op.regions[0].blocks[0])
    if not 1 <= prod(sizes) <= most or prod(sizes) * len(body) > longest or any(inner.regions for inner in body):
        raise NoMatch("a long reduction")
    arguments = op.regions[0].blocks[0].arguments
    used = [n for n, argument in enumerate(arguments) if any(True for _ in argument.uses)]
    return Reduction(tuple(sizes), tuple((n, accesses[n]) for n in used if n < len(operands) - len(results)))


def build(op: mlir.Operation, found: Reduction) -> None:
    """Replace a reduction by its body, once for each element."""
    block = op.regions[0].blocks[0]
    *body, last = block_ops(block)
    first = len(op.operands) - len(op.results)
    with op.location, mlir.InsertionPoint(op):
        sums = [extract(init, []) for init in list(op.operands)[first:]]
        for point in itertools.product(*map(range, found.sizes)):
            values = dict(zip(list(block.arguments)[first:], sums, strict=True))
            for n, dimensions in found.read:
                at = [sum(point[loop] for loop in added) for added in dimensions]
                values[block.arguments[n]] = extract(op.operands[n], at)
            for inner in body:
                if inner.name == "linalg.index":
                    loop = mlir.IntegerAttr(inner.attributes["dim"]).value
                    values[inner.results[0]] = emit.index(point[loop])
                else:
                    clone_with(inner, values)
            sums = [values.get(value, value) for value in last.operands]
        for result, number in zip(op.results, sums, strict=True):
            result.replace_all_uses_with(emit.value("tensor.from_elements", [number], result.type))
    op.erase()


def extract(tensor: mlir.Value, at: list[int]) -> mlir.Value:
    """One element of a tensor."""
    return emit.value("tensor.extract", [tensor, *map(emit.index, at)], tensor.type.element_type)
