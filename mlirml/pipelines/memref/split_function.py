"""Split a function: a long @main is partitioned into functions that LLVM compiles in linear time.

Before:
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
      scf.for ...   // 1000 loops over %x and %y in sequence
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

LLVM's time for a loop (dominators, loop guards) is proportional to the length of its function. Functions are split at
points where only buffers and constants are live; views of buffers are cloned into each chunk. The arguments of @main do
not overlap where one of them is written, and no chunk gets two views of one workspace. The bodies of long loops are
split in the same way. If a chunk stays long, as each of its operations needs the previous one, its loops are outlined:
the remaining code runs once, so the few passes for vector code are enough for it.

Programs are repetitive: layers, time steps. A split is preferred where the next chunk starts like an earlier one, so
that chunks are equal, and equal chunks share one function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mlirml.analysis.captures import REBUILT, Captures
from mlirml.analysis.values import used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, operations
from mlirml.ir.erase import is_unused
from mlirml.passes import Pass, register

NO_INLINE = "mlirml.no_inline"
"""Marks functions that LLVM must not inline."""

_REBUILT = ("memref.view", *REBUILT)
_STAY = ("memref.alloca", *_REBUILT)
_ALIKE = 4
"""The number of similar segments in sequence that indicate the start of a repetition."""
_LONG = 4
"""A chunk of more than this times `max_ops` operations that cannot be split gets its loops outlined."""


@register(optional=True)
class SplitFunctionPass(Pass):
    """Split @main into functions of about `max_ops` operations, if it has more than twice as many."""

    max_ops: int = 512

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        if len(main.regions[0].blocks) > 1:
            return
        outlined = Outlined(main, "part")
        self._cut(main.regions[0].blocks[0], outlined)

    def _cut(self, body: mlir.Block, outlined: Outlined) -> None:
        """Split a block that is too long, after the loops in it."""
        if count_ops(block_ops(body)) <= 2 * self.max_ops:
            return
        for op in block_ops(body):
            if op.name == "scf.for" and not _carries_buffers(op):
                self._cut(op.regions[0].blocks[0], outlined)
        if count_ops(block_ops(body)) <= 2 * self.max_ops:
            return
        runs = list(parts(body, self.max_ops))
        for part in runs:
            if len(part) > _LONG * self.max_ops:
                part[:] = outlined.without_loops(part)
        if len(runs) == 1 and body.owner.name == "func.func":  # the chunk is the whole body without its allocations
            return
        for part in runs:
            outlined.add(part)
        erase_unused(body)


def erase_unused(body: mlir.Block) -> None:
    """Erase the constants, views and stack buffers of a block that nothing uses any more."""
    for op in reversed(block_ops(body)):
        if op.name in _STAY and is_unused(op):
            op.erase()


def _carries_buffers(loop: mlir.Operation) -> bool:
    """True if a loop carries buffers, which may overlap with the arguments of @main."""
    return any(isinstance(result.type, mlir.MemRefType) for result in loop.results)


def count_ops(ops: Sequence[mlir.Operation]) -> int:
    return sum(1 for op in ops for _ in operations(op))


@dataclass(frozen=True)
class Segment:
    """Operations that stay together, as they use each other's results; similar ones have the same `shape`."""

    ops: list[mlir.Operation]
    size: int
    shape: int


def parts(body: mlir.Block, max_ops: int) -> Iterator[list[mlir.Operation]]:
    """Chunks: runs of operations whose results are not used after them."""
    segments = list(segments_of(body))
    begun: set[tuple[int, ...]] = set()
    start = 0
    while start < len(segments):
        begun.add(_beginning(segments, start))
        end = _end(segments, start, begun, max_ops)
        yield [op for segment in segments[start:end] for op in segment.ops]
        start = end


def _beginning(segments: Sequence[Segment], start: int) -> tuple[int, ...]:
    return tuple(segment.shape for segment in segments[start : start + _ALIKE])


def _end(segments: Sequence[Segment], start: int, beginnings: Collection[tuple[int, ...]], max_ops: int) -> int:
    """End of a chunk of about `max_ops`, preferably where the next chunk starts like an earlier one."""
    size, first, best = 0, 0, (max_ops, 0)
    for end in range(start + 1, len(segments) + 1):
        size += segments[end - 1].size
        first = first or (end if size >= max_ops or end == len(segments) else 0)
        if end < len(segments) and 2 * size >= max_ops and _beginning(segments, end) in beginnings:
            best = min(best, (abs(size - max_ops), end))
        if size >= 2 * max_ops:
            break
    return best[1] or first


def segments_of(body: mlir.Block) -> Iterator[Segment]:
    """The segments of a block, in order, without the operations that stay."""
    ops = block_ops(body)
    last = last_uses(ops)
    segment: list[mlir.Operation] = []
    needed = 0
    moving: set[mlir.Value] = set()
    shapes: dict[tuple[str, ...], int] = {}
    for number, op in enumerate(ops[:-1]):
        if _stays(op) and not any(operand in moving for operand in op.operands):
            continue
        moving.update(op.results)
        segment.append(op)
        needed = max(needed, last[number])
        if needed <= number:
            names = tuple(inner.name for op in segment for inner in operations(op))
            yield Segment(segment, len(names), shapes.setdefault(names, len(shapes)))
            segment = []


def _stays(op: mlir.Operation) -> bool:
    """True if an operation stays outside of chunks: it creates a buffer, a view, or a scalar operand of chunks."""
    if op.name.startswith("arith."):
        return not any(isinstance(result.type, mlir.MemRefType) for result in op.results)
    return op.name in _STAY


def last_uses(ops: Sequence[mlir.Operation]) -> list[int]:
    """For each operation of a block the index of the last one that uses its results, or views of them."""
    last = list(range(len(ops)))
    defined = {result: number for number, op in enumerate(ops) for result in op.results}
    for number, op in enumerate(ops):
        for operand in used_values(op):
            if operand in defined:
                last[defined[operand]] = number
    for number in reversed(range(len(ops))):
        if ops[number].name in _REBUILT:
            for operand in ops[number].operands:
                if operand in defined:
                    last[defined[operand]] = max(last[defined[operand]], last[number])
    return last


class Outlined:
    """The functions that chunks of @main were outlined into, named by a stem: `main.part0`.

    With `takes_views` views of the workspace are arguments, so that the functions do not depend on where they begin;
    then no two buffers that a chunk uses may overlap. Otherwise the workspace is one argument.
    """

    def __init__(self, main: mlir.Operation, stem: str, *, takes_views: bool = False) -> None:
        self._main, self._stem = main, stem
        self._takes_views = takes_views
        self._names: dict[str, str] = {}  # by text

    def without_loops(self, part: Sequence[mlir.Operation]) -> list[mlir.Operation]:
        """The chunk with its loops replaced by calls of outlined functions."""
        return [self.add([op]) if op.name == "scf.for" and _can_be_outlined(op) else op for op in part]

    def add(self, part: Sequence[mlir.Operation]) -> mlir.Operation:
        """Outline operations into a function before @main, unless there is an equal one; returns the call."""
        captures = Captures(part, names=REBUILT if self._takes_views else _REBUILT)
        name = f"main.{self._stem}{len(self._names)}"
        captured = list(captures.values)
        arguments = set(self._main.regions[0].blocks[0].arguments)
        separate = [
            isinstance(value.type, mlir.MemRefType) and (self._takes_views or value in arguments) for value in captured
        ]
        last = part[-1]  # all operands of the chunk are defined before it
        with last.location:
            body = build_function(name, self._main, captured, separate)
            with mlir.InsertionPoint(body):
                environment = captures.rebuild(list(body.arguments))
                end = emit.create("func.return")
            with mlir.InsertionPoint(last):
                callee = mlir.FlatSymbolRefAttr.get(name)
                call = emit.create("func.call", captured, (), {"callee": callee})
            for op in part:
                op.move_before(end)
            captures.replace(environment)
        function = body.owner.operation
        known = self._names.setdefault(_text(function, name), name)
        if known != name:
            call.attributes["callee"] = mlir.FlatSymbolRefAttr.get(known)
            function.erase()
        return call


def _can_be_outlined(loop: mlir.Operation) -> bool:
    """True if a loop has no results, and captures no stack cells, which it would force into memory."""
    owners = map(defining_op, Captures([loop], names=_REBUILT).values)
    return not len(loop.results) and not any(op is not None and op.name == "memref.alloca" for op in owners)


def _text(function: mlir.Operation, name: str) -> str:
    """The text of a function without its name and locations: equal for functions with equal code."""
    text: str = function.get_asm(use_local_scope=True)
    return text.replace(f"@{name}(", "@(", 1)


def build_function(
    name: str, main: mlir.Operation, captured: Sequence[mlir.Value], separate: Sequence[bool]
) -> mlir.Block:
    """Create a private function of the captured values, of which the `separate` ones overlap no others.

    Returns its entry block.
    """
    types = [value.type for value in captured]
    flag, none = mlir.DictAttr.get({"llvm.noalias": mlir.UnitAttr.get()}), mlir.DictAttr.get({})
    flags = [flag if alone else none for alone in separate]
    attributes = {
        "sym_name": mlir.StringAttr.get(name),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(mlir.FunctionType.get(types, [])),
        "arg_attrs": mlir.ArrayAttr.get(flags),
        NO_INLINE: mlir.UnitAttr.get(),
    }
    with mlir.InsertionPoint(main):
        function = emit.create("func.func", (), (), attributes, regions=1)
    return emit.block(function, types)
