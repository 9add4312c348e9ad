"""The schedule of a cluster, attached to the operations of its program."""

from __future__ import annotations

import math

from mlirml.analysis.structured import reductions_of, sizes_of
from mlirml.codegen.cpu.contract.attribute import NAME, from_words, to_attribute
from mlirml.codegen.cpu.contract.plan import Schedule
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, match_contraction
from mlirml.codegen.cpu.loop_schedule import from_words as loops_from_words
from mlirml.ir.bindings import block_ops, main_function, mlir, named_operations
from mlirml.pipelines.tensor.schedule_loops import schedule


def attach(module: mlir.Operation, text: str) -> bool:
    """Attach a schedule to the operations of a cluster's program; False for a text that is none."""
    with module.context:
        if text.startswith("conv=") or loops_from_words(text) is not None:
            schedule(block_ops(main_function(module).regions[0].blocks[0]), text)
            return True
        fields = from_words(text)
        if fields is None:
            return False
        (op,) = named_operations(module, CONTRACTIONS)
        op.attributes[NAME] = to_attribute(Schedule(**fields))
        return True


def terms_of(module: mlir.Operation) -> int:
    """The number of terms of the longest sums of a cluster's program."""
    contractions = named_operations(module, CONTRACTIONS)
    if contractions:
        contraction = match_contraction(contractions[0])
        return max(1, math.prod(contraction.sizes[d] for d in contraction.k))
    ops = block_ops(main_function(module).regions[0].blocks[0])
    loops = [op for op in ops if op.name.startswith("linalg.") and op.regions]
    counts = [
        math.prod(size for size, reduced in zip(sizes_of(op), reductions_of(op), strict=True) if reduced)
        for op in loops
    ]
    return max(1, *counts)
