"""Forward inits: a result of a structured operation that no iteration changes is replaced by its init.

Before:
    %r:2 = linalg.generic ... ins(%x : tensor<25xf64>) outs(%true, %zero : tensor<i1>, tensor<f64>) {
    ^bb0(%in: f64, %all: i1, %total: f64):
      %sum = arith.addf %in, %total : f64
      linalg.yield %all, %sum : i1, f64
    }
After:
    %r = linalg.generic ... ins(%x : tensor<25xf64>) outs(%zero : tensor<f64>) {
      ...
    }                                                           // and %true for %r#0

What is left of a check that always holds is such a result: an array is compared with itself once the operations that
computed it twice are fused. The other results are reductions that kernels know.
"""

from __future__ import annotations

from mlirml.analysis.structured import indexing_maps
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.passes import Pass, register, run_upstream


@register(when=("cf.assert",), optional=True)
class ForwardInitsPass(Pass):
    """Drop results of structured operations that are their inits."""

    def run(self, module: mlir.Operation) -> None:
        changed = [forward(op) for op in named_operations(module, ("linalg.generic",))]
        if any(changed):
            run_upstream(module, "canonicalize")


def forward(op: mlir.Operation) -> bool:
    """Replace the results of an operation that are their inits; True if there were any."""
    body = op.regions[0].blocks[0]
    arguments, yielded = list(body.arguments)[-len(op.results) :], list(block_ops(body)[-1].operands)
    kept = [n for n, (argument, value) in enumerate(zip(arguments, yielded)) if argument != value]
    if not op.results or len(kept) == len(yielded):
        return False
    first = len(op.operands) - len(op.results)
    inputs, inits, maps = list(op.operands)[:first], list(op.operands)[first:], indexing_maps(op)
    for number, (result, init) in enumerate(zip(op.results, inits)):
        if number not in kept:
            result.replace_all_uses_with(init)
    if kept:
        # What is not changed is read as an input, if it is read.
        dropped = [n for n in range(len(inits)) if n not in kept]
        order = [*range(first), *(first + n for n in dropped), *(first + n for n in kept)]
        iterators = [str(attribute) for attribute in op.attributes["iterator_types"]]
        reduced = ["reduction" if "reduction" in text else "parallel" for text in iterators]

        def again(arguments: list[mlir.Value]) -> list[mlir.Value]:
            given = dict(zip(order, arguments))
            values = emit.body_again(body, [given[n] for n in range(len(order))])
            return [values[n] for n in kept]

        with op.location, mlir.InsertionPoint(op):
            new = emit.generic(
                [*inputs, *(inits[n] for n in dropped)],
                [inits[n] for n in kept],
                [maps[n] for n in order],
                reduced,
                again,
            )
        for number, result in zip(kept, new.results):
            op.results[number].replace_all_uses_with(result)
    op.erase()
    return True
