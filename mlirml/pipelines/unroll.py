"""Unroll `scf.for`: a loop with several bodies, and the remaining iterations after it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from mlirml.analysis.constants import constant_of
from mlirml.analysis.trip_counts import trip_count
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, replace_op

Change = Callable[[int, bool], tuple[Mapping[mlir.Value, mlir.Value], Container[mlir.Operation]]]
"""For body `n`, or an iteration of the remainder: what replaces values in it, and the operations that it lacks."""


def unroll(loop: mlir.Operation, factor: int, change: Change = lambda n, is_rest: ({}, ())) -> None:
    """Replace a loop by one with `factor` bodies, followed by the remaining iterations.

    These are clones of the body, or the loop itself where the trip count is dynamic.
    """
    block = loop.regions[0].blocks[0]
    lower, upper, step, *inits = loop.operands
    count = trip_count(loop)

    def clone(start: mlir.Value, number: int, values: list[mlir.Value], is_rest: bool) -> list[mlir.Value]:
        index = emit.same_type("arith.addi", start, times(step, number)) if number else start
        replaced, missing = change(number, is_rest)
        known = {**dict(zip(block.arguments, [index, *values], strict=True)), **replaced}
        *ops, final = block_ops(block)
        for op in ops:
            if op not in missing:
                clone_with(op, known)
        return [known.get(value, value) for value in final.operands]

    with loop.location, mlir.InsertionPoint(loop):
        middle = upper
        if count is None or count % factor:
            whole = unrolled_iterations(loop, count, factor)
            span = whole if constant_of(step) == 1 else emit.same_type("arith.muli", whole, step)
            middle = emit.same_type("arith.addi", lower, span)
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        types = [value.type for value in inits]
        main = emit.create("scf.for", [lower, middle, times(step, factor), *inits], types, attributes, regions=1)
        inner = emit.block(main, [argument.type for argument in block.arguments])
        with mlir.InsertionPoint(inner):
            variable, *values = inner.arguments
            for number in range(factor):
                values = clone(variable, number, values, is_rest=False)
            emit.create("scf.yield", values)
        values = list(main.results)
        if count is None:
            loop.operands[0] = middle
            for position, value in enumerate(values):
                loop.operands[3 + position] = value
            return
        for number in range(count % factor):
            values = clone(middle, number, values, is_rest=True)
    replace_op(loop, *values)


def unrolled_iterations(loop: mlir.Operation, count: int | None, factor: int) -> mlir.Value:
    """The number of iterations of a loop that the unrolled one executes."""
    lower, upper, step = list(loop.operands)[:3]
    if count is not None:
        return emit.number(lower.type, count - count % factor)
    span = emit.same_type("arith.ceildivsi", emit.same_type("arith.subi", upper, lower), step)
    span = emit.same_type("arith.maxsi", span, emit.number(lower.type, 0))
    rest = emit.same_type("arith.remsi", span, emit.number(lower.type, factor))
    return emit.same_type("arith.subi", span, rest)


def times(value: mlir.Value, factor: int) -> mlir.Value:
    """The product of a loop's step and a number."""
    known = constant_of(value)
    if known is not None:
        return emit.number(value.type, known * factor)
    return emit.same_type("arith.muli", value, emit.number(value.type, factor))
