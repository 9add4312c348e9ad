"""Time kernels: calls of the runtime's clock before and after each kernel of @main.

Before:
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
      scf.parallel ...                 // a kernel: a loop nest, a copy, a call
      return
    }
After:
    func.func private @mlirml_kernel_begins(i64)
    func.func private @mlirml_kernel_ends(i64)
    func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
      func.call @mlirml_kernel_begins(%c0) : (i64) -> ()
      scf.parallel ...
      func.call @mlirml_kernel_ends(%c0) : (i64) -> ()
      return
    }

A kernel is an operation of @main that loops, copies, calls a function or a library. Loops that `HOST` marks are no
kernels: those in them are timed, each of their executions. The pass is in no recipe but that of programs that are
compiled to be measured (`mlirml.driver.profiling`), and all others have no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirml.analysis.traits import CONTROL, LOOPS
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import PARALLEL_FOR, SORTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, main_function, mlir, operations
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import marks_of
from mlirml.passes import Pass, register

BEGINS, ENDS = "mlirml_kernel_begins", "mlirml_kernel_ends"
KERNEL, HOST = "kernel", "host"
"""Marks of locations: the kernels that an operation is part of, and the loops on the host whose kernels are timed."""
_CALLS = ("mlirml.host_call", *SORTS, *LIBRARY_CALLS, *COMPACTIONS)
_WORK = ("memref.copy", "func.call", *LOOPS, *_CALLS)


@dataclass(frozen=True)
class Timed:
    """A timed operation: the marks of the kernels in it, and whether threads share it."""

    op: mlir.Operation
    kernels: tuple[int, ...]
    is_parallel: bool


@register
class TimeKernelsPass(Pass):
    """Insert clocks around the kernels of @main."""

    def run(self, module: mlir.Operation) -> None:
        insert_clocks(module, [each.op for each in timed_operations(module)])


def timed_operations(module: mlir.Operation) -> list[Timed]:
    """The kernels of @main, in order."""
    functions = {
        str(mlir.StringAttr(op.attributes["sym_name"]).value): op
        for op in block_ops(module.regions[0].blocks[0])
        if op.name == "func.func"
    }
    main = main_function(module)
    ops = [op for block in main.regions[0].blocks for op in _kernels_in(block)]
    return [Timed(op, tuple(_kernels_of(op)), _is_parallel(op, functions)) for op in ops]


def insert_clocks(module: mlir.Operation, kernels: Sequence[mlir.Operation]) -> None:
    """Time operations; the clock of each has its index."""
    if not kernels:
        return
    i64 = mlir.IntegerType.get_signless(64, context=module.context)
    with module.context, module.location, mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        for name in (BEGINS, ENDS):
            declare_clock(name)
    for number, kernel in enumerate(kernels):
        with kernel.location, mlir.InsertionPoint(kernel):
            count = emit.number(i64, number)
            call_clock(BEGINS, count)
        following = mlir.InsertionPoint.after(kernel)
        with kernel.location, following:
            call_clock(ENDS, count)


def declare_clock(name: str) -> None:
    """Declare a function of the clock at the insertion point."""
    emit.create(
        "func.func",
        (),
        (),
        {
            "sym_name": mlir.StringAttr.get(name),
            "function_type": mlir.TypeAttr.get(mlir.Type.parse("(i64) -> ()")),
            "sym_visibility": mlir.StringAttr.get("private"),
        },
        regions=1,
    )


def call_clock(name: str, number: mlir.Value) -> None:
    """Call a function of the clock for the kernel of a number."""
    emit.create("func.call", [number], (), {"callee": mlir.FlatSymbolRefAttr.get(name)})


def _kernels_in(block: mlir.Block) -> Iterator[mlir.Operation]:
    for op in block_ops(block):
        if is_host_control(op):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _kernels_in(inner)
        elif op.name.startswith("linalg.") or any(inner.name in _WORK for inner in operations(op)):
            yield op


def is_host_control(op: mlir.Operation) -> bool:
    """True for a loop or branch whose kernels are timed one by one."""
    return op.name in CONTROL and bool(marks_of(op.location, HOST)) and not marks_of(op.location, KERNEL)


def _kernels_of(op: mlir.Operation) -> list[int]:
    """The marks of an operation and of those in it; not those of functions that it calls, which may have many calls."""
    found = dict.fromkeys(marks_of(op.location, KERNEL))
    for inner in operations(op):
        found.update(dict.fromkeys(marks_of(inner.location, KERNEL)))
    return list(found)


def _is_parallel(op: mlir.Operation, functions: dict[str, mlir.Operation]) -> bool:
    seen: set[str] = set()

    def shared(op: mlir.Operation) -> bool:
        for inner in operations(op):
            if inner.name == "scf.parallel" or PARALLEL_FOR in inner.attributes:
                return True
            if inner.name == "func.call" and (callee := callee_of(inner)) in functions and callee not in seen:
                seen.add(callee)
                if shared(functions[callee]):
                    return True
        return False

    return shared(op)
