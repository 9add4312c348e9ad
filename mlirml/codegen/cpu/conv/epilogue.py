"""The epilogue of a convolution: an elementwise operation on the sums before they are stored, as text, on vectors."""

from __future__ import annotations

import re

from mlirml.codegen.cpu.emitter import Emitter, Index, View, vector
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

MOST_OPS = 40


@dataclass(frozen=True)
class Epilogue:
    """`steps` compute values from numbered ones: 0 is the sum, then come the inputs, then the steps' own results.

    `indexed_by` is the dimension of the output that indexes each input, "filter" or "pixel". In a step, `$n$` is value
    n and `@` the number of lanes.
    """

    indexed_by: tuple[str, ...]
    steps: tuple[str, ...]
    result: int

    def apply(
        self,
        e: Emitter,
        total: str,
        views: list[View],
        filter_: Index,
        out: Index,
        lanes: int,
        valid: int | Index | None,
    ) -> str:
        """Emit the steps on a vector of pixels of one filter; returns the result."""
        values = [total]
        for dimension, view in zip(self.indexed_by, views, strict=True):
            if dimension == "filter":
                scalar = e.load_scalar(view, filter_)
                values.append(e.let(f"vector.broadcast {scalar} : {view.element} to {vector(lanes, view.element)}"))
            else:
                values.append(e.load(view, out, lanes, valid))
        for step in self.steps:
            text = re.sub(r"\$(\d+)\$", lambda found: values[int(found[1])], step)
            values.append(e.let(text.replace("@", str(lanes))))
        return values[self.result]


def read_epilogue(op: mlir.Operation, numbers: dict[mlir.Value, int], indexed_by: tuple[str, ...]) -> Epilogue:
    """The body of an elementwise operation; `numbers` are those of its block arguments.

    Raises `NoMatch` for operations without a vector form.
    """
    values: dict[mlir.Value, int] = dict(numbers)
    steps: list[str] = []
    *body, final = block_ops(op.regions[0].blocks[0])
    if len(body) > MOST_OPS:
        raise NoMatch("the operation after it is long")

    def number(value: mlir.Value) -> int:
        if value not in values:
            owner = defining_op(value)
            if owner is None or owner.name != "arith.constant":
                raise NoMatch("the body uses a value from outside")
            add(owner)
        return values[value]

    def add(inner: mlir.Operation) -> None:
        steps.append(step(inner, [number(operand) for operand in inner.operands]))
        values[inner.results[0]] = len(indexed_by) + len(steps)

    for inner in body:
        add(inner)
    return Epilogue(indexed_by, tuple(steps), number(final.operands[0]))


def step(op: mlir.Operation, operands: list[int]) -> str:
    """One operation of a body on vectors of `@` lanes."""
    if not op.name.startswith(("arith.", "math.")) or op.regions or len(op.results) != 1:
        raise NoMatch(f"{op.name} is no elementwise operation")
    types = [spread(value.type) for value in op.operands]
    result = spread(op.results[0].type)
    if op.name == "arith.constant":
        return f"arith.constant dense<{str(op.attributes['value']).partition(' : ')[0]}> : {result}"
    attributes = ", ".join(f"{name} = {op.attributes[name]}" for name in op.attributes)
    listed = ", ".join(f"${operand}$" for operand in operands)
    return f'"{op.name}"({listed}) {{{attributes}}} : ({", ".join(types)}) -> {result}'


def spread(type_: mlir.Type) -> str:
    """The vector type for a scalar type."""
    if not isinstance(type_, (mlir.FloatType, mlir.IntegerType)):
        raise NoMatch(f"{type_} is no element of a vector here")
    return f"vector<@x{type_}>"
