"""Structured control flow and scalar operations as the statements of a language whose blocks are in braces.

A printer of a language derives from `CLikePrinter`: it has the declarations and types, and tables of expressions and
statements. Every operation becomes a constant of its value, loops and branches those of the language; loop-carried
values and results are variables.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from mlirml.errors import LoweringError
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.location import source_location

Texts = Sequence[str]
Expression = Callable[[mlir.Operation, Texts], str]
"""The expression of an operation, from the texts of its operands."""

_FREE = frozenset(["arith.constant", "arith.index_cast"])
"""Operations that are inlined at their uses, if they have no effect."""
_TERMINATORS = frozenset(["func.return", "gpu.return", "scf.condition", "scf.yield"])


def infix(sign: str) -> Expression:
    """`a + b`."""
    return lambda op, x: f"{x[0]} {sign} {x[1]}"


def call(name: str) -> Expression:
    """`name(a, b)`."""
    return lambda op, x: f"{name}({', '.join(x)})"


def float_literal(number: float) -> str:
    """A finite f32, by the shortest decimal that is parsed as it."""
    for digits in range(6, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", number):
            break
    if not any(mark in text for mark in ".e"):
        text += ".0"
    return f"{text}f"


class CLikePrinter:
    """The statements of one function under construction."""

    language: ClassVar[str]
    counter: ClassVar[str]
    """The declaration of a loop counter: its type, or a keyword."""
    endless: ClassVar[str]
    """The head of a loop without an end."""
    expressions: ClassVar[Mapping[str, Expression]]
    statements: ClassVar[Mapping[str, Callable[[Any, mlir.Operation], None]]]

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.values: dict[mlir.Value, str] = {}
        self.count = 0

    # The language.

    def type_name(self, type_: mlir.Type, location: mlir.Location) -> str:
        """The name of a type; raises `TargetError` at the user's line for types that the language lacks."""
        raise NotImplementedError

    def declaration(self, type_: mlir.Type, name: str, value: str | None, *, constant: bool) -> str:
        """The statement that declares a constant or a variable."""
        raise NotImplementedError

    def condition(self, text: str) -> str:
        """The condition of an `if`."""
        return f"({text})"

    # Statements.

    def line(self, text: str) -> None:
        """One line at the depth of the block."""
        self.lines.append("  " * self.depth + text)

    def name(self, prefix: str = "v") -> str:
        """A new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def let(self, type_: mlir.Type, text: str) -> str:
        """Name the value of an expression."""
        name = self.name()
        self.line(self.declaration(type_, name, text, constant=True))
        return name

    def variables(self, results: Sequence[mlir.Value], values: Sequence[str | None]) -> list[str]:
        """Declare the variables for the results of an operation with regions."""
        names = []
        for result, value in zip(results, values, strict=True):
            names.append(self.name())
            self.line(self.declaration(result.type, names[-1], value, constant=False))
        self.values.update(zip(results, names))
        return names

    def assign(self, names: Sequence[str], values: Sequence[mlir.Value]) -> None:
        """Assign variables simultaneously."""
        texts = [(value.type, self.values[value]) for value in values]
        moved = [
            self.let(type_, text) if text in names and text != name else text
            for name, (type_, text) in zip(names, texts)
        ]
        for name, text in zip(names, moved):
            if name != text:
                self.line(f"{name} = {text};")

    def nested(self, head: str, write: Callable[[], None]) -> None:
        """A block of statements between braces."""
        self.line(head)
        self.depth += 1
        write()
        self.depth -= 1
        self.line("}")

    # Operations.

    def body(self, block: mlir.Block) -> None:
        """Emit the operations of a block except for its terminator."""
        for op in block_ops(block):
            if op.name not in _TERMINATORS:
                self.operation(op)

    def operation(self, op: mlir.Operation) -> None:
        """Emit one operation; raises `LoweringError` at the user's line for one that the language has no form for."""
        write = self.statements.get(op.name) or _CONTROL.get(op.name)
        if write is not None:
            write(self, op)
            return
        expression = self.expressions.get(op.name)
        if expression is None or len(op.results) != 1:
            raise LoweringError(f"`{op.name}` has no form in {self.language}", location=source_location(op.location))
        for value in (*op.operands, op.results[0]):
            self.type_name(value.type, op.location)
        texts = [self.values[operand] for operand in op.operands]
        text = expression(op, texts)
        free = op.name in _FREE and (not texts or text == texts[0])
        self.values[op.results[0]] = text if free else self.let(op.results[0].type, text)

    def if_(self, op: mlir.Operation) -> None:
        """`scf.if`."""
        names = self.variables(op.results, [None] * len(op.results))
        branches = [list(region.blocks) for region in op.regions]
        head = f"if {self.condition(self.values[op.operands[0]])} {{"
        self.nested(head, lambda: self.branch(branches[0][0], names))
        if branches[1] and len(block_ops(branches[1][0])) > (0 if names else 1):
            self.lines[-1] += " else {"
            self.depth += 1
            self.branch(branches[1][0], names)
            self.depth -= 1
            self.line("}")

    def branch(self, block: mlir.Block, names: Sequence[str]) -> None:
        """Emit the body of a loop or branch, whose yielded values are assigned to variables."""
        self.body(block)
        self.assign(names, list(block_ops(block)[-1].operands))

    def for_(self, op: mlir.Operation) -> None:
        """`scf.for`."""
        lower, upper, step, *inits = (self.values[operand] for operand in op.operands)
        names = self.variables(op.results, inits)
        block = op.regions[0].blocks[0]
        counter = self.name("n")
        self.values.update(zip(block.arguments, (counter, *names)))
        head = f"for ({self.counter} {counter} = {lower}; {counter} < {upper}; {counter} += {step}) {{"
        self.nested(head, lambda: self.branch(block, names))

    def while_(self, op: mlir.Operation) -> None:
        """`scf.while`."""
        before, after = (region.blocks[0] for region in op.regions)
        carried = self.variables(before.arguments, [self.values[operand] for operand in op.operands])
        names = self.variables(op.results, [None] * len(op.results))

        def write() -> None:
            self.body(before)
            proceed, *values = block_ops(before)[-1].operands
            self.assign(names, values)
            self.line(f"if {self.condition(f'!{self.values[proceed]}')} {{ break; }}")
            self.values.update(zip(after.arguments, names))
            self.branch(after, carried)

        self.nested(self.endless, write)


_CONTROL: dict[str, Callable[[CLikePrinter, mlir.Operation], None]] = {
    "scf.if": CLikePrinter.if_,
    "scf.for": CLikePrinter.for_,
    "scf.while": CLikePrinter.while_,
}
