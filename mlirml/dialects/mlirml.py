"""The names of operations and attributes of the `mlirml` dialect (`ir/dialect.py`), and calls of parallel loops."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.ir.bindings import mlir
from mlirml.ir.library_calls import TRANSFORMS

SORTS = ("mlirml.sort", "mlirml.argsort")
OF_DEVICES = (*SORTS, *TRANSFORMS)
"""Operations that libraries compute for the CPU, and kernels on devices."""
HOST_CALLS = ("mlirml.host_value", "mlirml.host_call", "mlirml.host_result")
"""Operations that call a Python function, in program order: pass an operand, call the function, take one result."""
PARALLEL_FOR = "mlirml.parallel_for"
LONG_CHUNKS = "mlirml.long_chunks"
"""On a parallel loop or call: the prologue of a chunk is expensive, so each thread should get few chunks."""
CHECK = "mlirml.check"
"""The index of a `cf.assert` in the table of checks that capture made; the runtime reports it when the check fails."""

CHECK_BASE = "mlirml.check_base"
"""On a `cf.assert` about an integer: the offset that was added before the comparison; 0 for an unsigned integer."""

FLUSH_DENORMALS = "mlirml.flush_denormals"
"""On @main: subnormal floats are flushed to zero."""
TILE = "mlirml.tile"
"""On a `func.func` that computes a tile of a contraction, in bounded time."""
DISPATCH = "mlirml.dispatch"
"""On an `scf.execute_region`: "device" if its operations become one kernel, "host" if they stay in @main."""
KERNEL = "mlirml.kernel"
"""On a function on tensors that one kernel computes, and on its calls; the last operands of a call are its inits."""
STREAMED = "mlirml.streamed"
"""On operations on scores that one kernel computes together: its number."""
LAUNCH = "__launch"
"""Suffix of the name of the function on memrefs that launches a kernel."""
HOST = "mlirml.host"
"""On an allocation in @main: it is in host memory; allocations without it are in device memory."""
WHY = "mlirml.why"
"""On an operation on tensors or memrefs: the reason why it stays on the host."""
HOST_WORK = "mlirml.host_work"
"""On @main: the array operations that run on the host, one line of `.explain()` each."""
HOST_INPUTS = "mlirml.host_inputs"
"""On @main: the indices of the inputs that stay in host memory."""
DIMS = "mlirml.dims"
"""On @main of dynamic sizes: the number of the size of each dynamic dimension of the arguments, then of the results.

The sizes are the last of the inputs.
"""
CONSTANTS = "mlirml.constants"
"""On @main: the bytes of the constants that kernels read; they are uploaded once, when the program is loaded."""
DEFERRED_CHECKS = "mlirml.deferred_checks"
"""On @main: the checks whose operands stay on the device, in the order of their slots."""
TILE = "mlirml.tile"
"""On a `gpu.func`: its values are tiles; a dictionary of hints for their assembler."""
KERNELS = "mlirml.kernels"
"""On @main: its kernels in the order of the kernel table, each with its name and the sizes of its arguments."""


def parallel_for(
    callee: str, lower: mlir.Value, upper: mlir.Value, captures: Sequence[mlir.Value], *, grain: int, long: bool = False
) -> mlir.Operation:
    """Build the call of `callee(lo, hi, captures...)` over chunks of [lower, upper) on the native pool.

        func.call @body(%lower, %upper, %a, %s) {mlirml.parallel_for = 64 : i64}
            : (index, index, memref<8xf32>, f32) -> ()

    `callee` is a private `func.func` whose first two arguments are `index`. `grain` is the least number of iterations
    worth a chunk; `long` asks for few chunks (LONG_CHUNKS). The attribute promises that calls over any partition of the
    range, in any order, do the same as this one, so a pass that ignores it is still right. It is an attribute of a
    call, and no operation of our dialect, because IRDL gives all values of a variadic operand one type, and captures
    have many.
    """
    attributes = {
        "callee": mlir.FlatSymbolRefAttr.get(callee),
        PARALLEL_FOR: mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), grain),
    }
    if long:
        attributes[LONG_CHUNKS] = mlir.UnitAttr.get()
    return mlir.Operation.create("func.call", operands=[lower, upper, *captures], attributes=attributes)


def parallel_grain(op: mlir.Operation) -> int | None:
    """The grain of a call that may run in parallel chunks; None for every other operation."""
    if op.name != "func.call" or PARALLEL_FOR not in op.attributes:
        return None
    return int(mlir.IntegerAttr(op.attributes[PARALLEL_FOR]).value)
