"""Visit the loop nests of a module: each nest that can be read as a whole, or else the nests in it."""

from __future__ import annotations

from collections.abc import Callable

from mlirml.analysis.affine import Variable
from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import ELEMENTS
from mlirml.core.affine import Span
from mlirml.ir.bindings import block_ops, has_op, mlir, operations
from mlirml.passes import NoMatch
from mlirml.raising.nests.find_loops import loop_functions
from mlirml.raising.nests.generic import Spans
from mlirml.raising.nests.model import Nest, match_nest

Visit = Callable[[Nest, Spans], None]
"""A function of a nest and the ranges of the enclosing loops' variables; it raises `NoMatch` to visit nests in it."""

Refuse = Callable[[mlir.Operation, str], None]
"""A function that is called for each loop over elements that is not part of a nest, with the reason."""


def each_nest(module: mlir.Operation, visit: Visit, refuse: Refuse = lambda op, why: None) -> None:
    """Visit the nests of all functions, in their order."""
    for function in loop_functions(module):
        for region in function.regions:
            for block in region.blocks:
                _in_block(block, {}, visit, refuse)


def _in_block(block: mlir.Block, spans: Spans, visit: Visit, refuse: Refuse) -> None:
    for op in block_ops(block):
        if op.name == "scf.for":
            _at_loop(op, spans, visit, refuse)
        elif not op.name.startswith("linalg."):
            if op.name == "scf.while" and any(_has_places(inner) for inner in operations(op)):
                refuse(op, "its trip count is known only when it ends")
            for region in op.regions:
                for inner in region.blocks:
                    _in_block(inner, spans, visit, refuse)


def _has_places(op: mlir.Operation) -> bool:
    """True if an operation reads or stores an element at indices; others unwrap scalars."""
    return op.name in ELEMENTS and len(op.operands) > (1 if op.name == "tensor.extract" else 2)


def _at_loop(op: mlir.Operation, spans: Spans, visit: Visit, refuse: Refuse) -> None:
    try:
        visit(match_nest(op), spans)
    except NoMatch as reason:
        if has_op(op, ELEMENTS):  # others have no loop over elements
            refuse(op, str(reason))
        _in_block(op.regions[0].blocks[0], {**spans, **_span(op)}, visit, refuse)


def _span(op: mlir.Operation) -> dict[Variable, Span]:
    """The range of a loop's variable, if its bounds are constants."""
    lower, upper = (constant_of(bound) for bound in list(op.operands)[:2])
    if lower is None or upper is None:
        return {}
    return {op.regions[0].blocks[0].arguments[0]: (lower, upper - 1)}
