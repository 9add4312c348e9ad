"""Inline library: the functions that `mlirml-expand-math` made are inlined into the kernels that call them.

Before:
    gpu.func @k(%x: memref<8xf32>) kernel {
      %y = func.call @mlirml.twice.f32(%a) : (f32) -> f32
      gpu.return
    }
    func.func private @mlirml.twice.f32(%a: f32) -> f32 {
      %b = arith.addf %a, %a : f32
      return %b : f32
    }
After:
    gpu.func @k(%x: memref<8xf32>) kernel {
      %y = arith.addf %a, %a : f32
      gpu.return
    }

The gpu dialect does not allow upstream's inliner to inline into a gpu.func.
"""

from __future__ import annotations

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, mlir, operations
from mlirml.passes import Pass, register


@register
class InlineLibraryPass(Pass):
    """Inline every function of a gpu.module that is not a kernel."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            functions = block_ops(kernels.regions[0].blocks[0])
            library = {op.attributes["sym_name"].value: op for op in functions if op.name == "func.func"}
            done: set[str] = set()
            for name in library:
                inline_callees(name, library, done)
            for op in functions:
                if op.name == "gpu.func":
                    inline_calls(op, library)
            for op in library.values():
                op.erase()


def inline_callees(name: str, library: dict[str, mlir.Operation], done: set[str]) -> None:
    """Inline the callees of a library function, innermost first."""
    if name in done:
        return
    done.add(name)
    for call in calls_of(library[name], library):
        inline_callees(callee_of(call), library, done)
    inline_calls(library[name], library)


def calls_of(function: mlir.Operation, library: dict[str, mlir.Operation]) -> list[mlir.Operation]:
    """The calls of library functions in a function."""
    calls = [op for op in operations(function) if op.name == "func.call"]
    return [op for op in calls if op.attributes["callee"].value in library]


def inline_calls(function: mlir.Operation, library: dict[str, mlir.Operation]) -> None:
    """Replace calls by the bodies of the callees."""
    for call in calls_of(function, library):
        block = library[callee_of(call)].regions[0].blocks[0]
        values = dict(zip(block.arguments, call.operands, strict=True))
        *ops, end = block_ops(block)
        with mlir.InsertionPoint(call):
            for op in ops:
                emit.body_op(op, values)
        for result, value in zip(call.results, end.operands, strict=True):
            result.replace_all_uses_with(values[value])
        call.erase()
