"""Split a function: a long @main becomes calls of functions that LLVM compiles in linear time.

Before:
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
      scf.for ...   // 1000 loops over %x and %y, one after the other
    }
After:
    func.func private @main.part0(%x: memref<8xf32> {llvm.noalias}, %y: memref<8xf32> {llvm.noalias})
        attributes {mlirml.no_inline} {
      scf.for ...   // the first of them
    }
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
      call @main.part0(%x, %y)
      call @main.part1(%x, %y)
      ...
    }

What LLVM does for a loop (dominators, loop guards) costs as much as the function around it is long. Functions are cut
where only buffers and constants are needed further on; views of them are built again in each part. The arguments of
@main do not overlap where one of them is written, and no part gets two views of one workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.ir import block_ops, main_function, mlir, operations
from mlirml.passes import Pass, register
from mlirml.pipelines.captures import REBUILT, Captures, replace_operands

NO_INLINE = "mlirml.no_inline"
"""Marks functions that LLVM must not put together again."""

_REBUILT = ("memref.view", *REBUILT)
_STAY = ("memref.alloca", *_REBUILT)


@register
@dataclass(frozen=True)
class SplitFunctionPass(Pass):
    """Cut @main into functions of about `max_ops` operations, if it has more than twice as many."""

    name = "mlirml-split-function"
    max_ops: int = 512

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        body = main.regions[0].blocks[0]
        if len(main.regions[0].blocks) > 1 or count_ops(block_ops(body)) <= 2 * self.max_ops:
            return
        for number, part in enumerate(list(parts(body, self.max_ops))):
            outline(part, main, number)
        for op in reversed(block_ops(body)):
            if op.name in _STAY and not any(True for result in op.results for _ in result.uses):
                op.erase()


def count_ops(ops: Sequence[mlir.Operation]) -> int:
    return sum(1 for op in ops for _ in operations(op))


def parts(body: mlir.Block, max_ops: int) -> Iterator[list[mlir.Operation]]:
    """Runs of operations whose results nobody uses after them."""
    ops = block_ops(body)[:-1]
    last = last_uses(ops)
    part: list[mlir.Operation] = []
    size, needed = 0, 0
    staying = set(body.arguments)
    for number, op in enumerate(ops):
        if op.name in _STAY and all(operand in staying for operand in op.operands):
            staying.update(op.results)
            continue
        part.append(op)
        size += count_ops([op])
        needed = max(needed, last[number])
        if size >= max_ops and needed <= number:
            yield part
            part, size = [], 0
    if part:
        yield part


def last_uses(ops: Sequence[mlir.Operation]) -> list[int]:
    """For each operation of a block the number of the last one that uses its results, or views of them."""
    last = list(range(len(ops)))
    defined = {result: number for number, op in enumerate(ops) for result in op.results}
    for number, op in enumerate(ops):
        for inner in operations(op):
            for operand in inner.operands:
                if operand in defined:
                    last[defined[operand]] = number
    for number in reversed(range(len(ops))):
        if ops[number].name in _REBUILT:
            for operand in ops[number].operands:
                if operand in defined:
                    last[defined[operand]] = max(last[defined[operand]], last[number])
    return last


def outline(part: Sequence[mlir.Operation], main: mlir.Operation, number: int) -> None:
    """Move operations into a function in front of @main, and call it."""
    captures = Captures(part, names=_REBUILT)
    name = f"main.part{number}"
    with part[0].location:
        body = build_function(name, main, list(captures.values))
        with mlir.InsertionPoint(body):
            environment = captures.rebuild(list(body.arguments))
            end = emit.create("func.return")
        with mlir.InsertionPoint(part[0]):
            callee = mlir.FlatSymbolRefAttr.get(name)
            emit.create("func.call", list(captures.values), (), {"callee": callee})
        for op in part:
            op.move_before(end)
            replace_operands(op, environment)


def build_function(name: str, main: mlir.Operation, captured: Sequence[mlir.Value]) -> mlir.Block:
    """A private function of the captured values; returns its entry block."""
    kinds = [value.type for value in captured]
    flag, none = mlir.DictAttr.get({"llvm.noalias": mlir.UnitAttr.get()}), mlir.DictAttr.get({})
    arguments = set(main.regions[0].blocks[0].arguments)
    flags = [flag if v in arguments and isinstance(v.type, mlir.MemRefType) else none for v in captured]
    attributes = {
        "sym_name": mlir.StringAttr.get(name),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(mlir.FunctionType.get(kinds, [])),
        "arg_attrs": mlir.ArrayAttr.get(flags),
        NO_INLINE: mlir.UnitAttr.get(),
    }
    with mlir.InsertionPoint(main):
        function = emit.create("func.func", (), (), attributes, regions=1)
    return emit.block(function, kinds)
