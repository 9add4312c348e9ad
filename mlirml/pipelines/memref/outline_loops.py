"""Outline loops: the loop nests of @main become functions whose code depends on nothing else of the program.

Before:
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %w: memref<64xi8>) {
      %t = memref.view %w[%c32][] : memref<64xi8> to memref<8xf32>
      scf.for %i = %c0 to %c8 step %c1 { ... }     // from %x to %t
      scf.for %i = %c0 to %c8 step %c1 { ... }     // from %t to %y
    }
After:
    func.func private @main.loops0(%x: memref<8xf32> {llvm.noalias}, %t: memref<8xf32> {llvm.noalias})
        attributes {mlirml.no_inline} {
      scf.for %i = %c0 to %c8 step %c1 { ... }
    }
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %w: memref<64xi8>) {
      %t = memref.view %w[%c32][] : memref<64xi8> to memref<8xf32>
      call @main.loops0(%x, %t)
      call @main.loops1(%t, %y)
    }

Slices of the workspace are arguments: when another part of the program changes, so do their offsets, but not the
function, whose machine code is then found in the cache. Equal loop nests, as those of equal layers, share one function.
LLVM's time for a loop grows with its function, so that more functions are no more work.

A loop nest stays in @main if it passes scalars to later operations, can fail, allocates, or uses overlapping slices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from mlirml.analysis.captures import REBUILT, Captures
from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import SEQUENTIAL_LOOPS
from mlirml.ir.bindings import defining_op, main_function, mlir, operations
from mlirml.passes import Pass, register
from mlirml.passes.presence import Several
from mlirml.pipelines.memref.split_function import Outlined, erase_unused, segments_of

_DIALECTS = ("arith.", "math.", "scf.", "vector.", "memref.")
_STAY = ("memref.alloc", "memref.alloca", "memref.dealloc")
_SCALARS = (mlir.FloatType, mlir.IntegerType)


@register(when=Several(2, ("scf.for", "scf.while")), optional=True)
class OutlineLoopsPass(Pass):
    """Outline the loop nests of @main that have `min_ops` operations or more, if there are several."""

    min_ops: int = 16

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        if len(main.regions[0].blocks) > 1:
            return
        body = main.regions[0].blocks[0]
        found = [segment.ops for segment in segments_of(body) if segment.size >= self.min_ops and has_loop(segment.ops)]
        if len(found) < 2:
            return  # one loop nest is all of the program
        outlined = Outlined(main, "loops", takes_views=True)
        for ops in found:
            if can_be_outlined(ops, main):
                outlined.add(ops)
        erase_unused(body)


def has_loop(ops: Sequence[mlir.Operation]) -> bool:
    """True if one of the operations is a loop, or has one."""
    return any(inner.name in SEQUENTIAL_LOOPS for op in ops for inner in operations(op))


def can_be_outlined(ops: Sequence[mlir.Operation], main: mlir.Operation) -> bool:
    """True if a function can have the operations, and all buffers that they use are separate arguments of it."""
    for op in ops:
        for inner in operations(op):
            if inner.name != "func.call" and (not inner.name.startswith(_DIALECTS) or inner.name in _STAY):
                return False
    captured = list(Captures(ops, names=REBUILT).values)
    buffers = [value for value in captured if isinstance(value.type, mlir.MemRefType)]
    if not all(isinstance(value.type, _SCALARS) for value in captured if value not in buffers):
        return False
    spans = [span_of(buffer, main) for buffer in buffers]
    known = [span for span in spans if span is not None]
    return len(known) == len(spans) and not any(overlap(*pair) for pair in itertools.combinations(known, 2))


Span = tuple[mlir.Value, int, int]
"""A buffer, and the first byte and the one after the last in it that a view has."""


def span_of(buffer: mlir.Value, main: mlir.Operation) -> Span | None:
    """The bytes of an argument of @main, or of a slice of its workspace; None for other buffers."""
    if not is_plain(buffer.type):
        return None
    arguments = list(main.regions[0].blocks[0].arguments)
    view = defining_op(buffer)
    if view is None:
        return (buffer, 0, size_of(buffer.type)) if buffer in arguments else None
    start = constant_of(view.operands[1]) if view.name == "memref.view" and len(view.operands) == 2 else None
    if start is None or view.operands[0] not in arguments:
        return None
    return view.operands[0], start, start + size_of(buffer.type)


def overlap(one: Span, other: Span) -> bool:
    """True if two views have bytes in common."""
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def is_plain(buffer_type: mlir.MemRefType) -> bool:
    """True if a buffer is dense, of static shape, and has numbers as elements."""
    if not buffer_type.has_static_shape or not isinstance(buffer_type.element_type, _SCALARS):
        return False
    strides, offset = buffer_type.get_strides_and_offset()
    dense = [math.prod(buffer_type.shape[number + 1 :]) for number in range(buffer_type.rank)]
    return offset == 0 and list(strides) == dense


def size_of(buffer_type: mlir.MemRefType) -> int:
    """The bytes of a dense buffer."""
    width: int = buffer_type.element_type.width
    return int(math.prod(buffer_type.shape)) * (-(-width // 8))
