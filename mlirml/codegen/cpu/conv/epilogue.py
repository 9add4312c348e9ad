"""What is done to the sums of a convolution before they are stored: an elementwise operation as text, on vectors."""

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

    `kinds` says of each input whether it has an element for each "filter" or for each "place" of the out. In a step,
    `$n$` is value n and `@` the number of lanes.
    """

    kinds: tuple[str, ...]
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
        """The text of the steps on a vector of pixels of one filter; the result."""
        values = [total]
        for kind, view in zip(self.kinds, views, strict=True):
            if kind == "filter":
                scalar = e.load_scalar(view, filter_)
                values.append(e.let(f"vector.broadcast {scalar} : {view.element} to {vector(lanes, view.element)}"))
            else:
                values.append(e.load(view, out, lanes, valid))
        for step in self.steps:
            text = re.sub(r"\$(\d+)\$", lambda found: values[int(found[1])], step)
            values.append(e.let(text.replace("@", str(lanes))))
        return values[self.result]


def read_epilogue(op: mlir.Operation, numbers: dict[mlir.Value, int], kinds: tuple[str, ...]) -> Epilogue:
    """The body of an elementwise operation; `numbers` are those of its block arguments.

    Raises `NoMatch` for what has no vector form.
    """
    values: dict[mlir.Value, int] = dict(numbers)
    steps: list[str] = []
    *body, final = block_ops(op.regions[0].blocks[0])
    if len(body) > MOST_OPS:
        raise NoMatch("the operation behind it is long")

    def number(value: mlir.Value) -> int:
        if value not in values:
            owner = defining_op(value)
            if owner is None or owner.name != "arith.constant":
                raise NoMatch("the body uses a value from outside")
            add(owner)
        found: int = values[value]
        return found

    def add(inner: mlir.Operation) -> None:
        steps.append(step(inner, [number(operand) for operand in inner.operands]))
        values[inner.results[0]] = len(kinds) + len(steps)

    for inner in body:
        add(inner)
    return Epilogue(kinds, tuple(steps), number(final.operands[0]))


def step(op: mlir.Operation, operands: list[int]) -> str:
    """One operation of a body on vectors of `@` lanes."""
    if not op.name.startswith(("arith.", "math.")) or op.regions or len(op.results) != 1:
        raise NoMatch(f"{op.name} is no elementwise operation")
    kinds = [spread(value.type) for value in op.operands]
    result = spread(op.results[0].type)
    if op.name == "arith.constant":
        return f"arith.constant dense<{str(op.attributes['value']).partition(' : ')[0]}> : {result}"
    attributes = ", ".join(f"{name} = {op.attributes[name]}" for name in op.attributes)
    places = ", ".join(f"${operand}$" for operand in operands)
    return f'"{op.name}"({places}) {{{attributes}}} : ({", ".join(kinds)}) -> {result}'


def spread(kind: mlir.Type) -> str:
    """The vector of a scalar type."""
    if not isinstance(kind, (mlir.FloatType, mlir.IntegerType)):
        raise NoMatch(f"{kind} is no element of a vector here")
    return f"vector<@x{kind}>"
