"""Compiles kernels early, concurrently with the passes over the rest of their module.

The kernels of `mlirml-lower-contract` and `mlirml-lower-conv` are half of a large program, and no later pass looks at
kernels and @main together: @main calls them by name. So they are lowered on their own first, and threads compile them
while the passes continue with @main. Some of the kernels that share nothing with the others are compiled first of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mlirml.core.dataclass import dataclass

if TYPE_CHECKING:
    from mlirml.ir.bindings import mlir
    from mlirml.passes import Instrumentation, Pipeline

_LEAST_KERNELS, _LEAST_REST = 400, 150
"""The least number of operations on each side: below, lowering them together is quicker."""
_FIRST_SHARE = 0.25
"""The least fraction of the kernels in the first batch."""
_SHARED = ("memref.get_global", "func.constant", "cf.assert")
"""Operations that reference, or are lowered to references of, symbols that all functions of a module share."""

Kernels = tuple["mlir.Module", tuple[str, ...]]
"""A module, and the names of its functions that @main calls."""


@dataclass(frozen=True)
class Waiting:
    """A module of kernels, the names of those that @main calls, and the pipeline that lowers it."""

    module: mlir.Module
    exports: tuple[str, ...]
    pipeline: Pipeline
    watch: Instrumentation

    def text(self) -> str:
        """All that the code depends on."""
        text: str = self.module.operation.get_asm(use_local_scope=True)
        return f"{self.pipeline}\n{text}"

    def lowered(self) -> mlir.Module:
        """The module, lowered in place."""
        self.pipeline.run(self.module, instrumentation=self.watch)
        return self.module


@dataclass(frozen=True)
class Ahead:
    """Early compilation of kernels before the pass `before`.

    `pipeline()` lowers a module of kernels. `begin` takes an iterator of such modules, each lowered on demand only, and
    starts to compile them. Its result is passed to the target's `codegen` with the rest of the module, or else its
    `abandon()` is called.
    """

    before: str
    pipeline: Callable[[], Pipeline]
    begin: Callable[[Iterable[Waiting]], Any]

    def start(self, module: mlir.Operation, watch: Instrumentation) -> list[Any]:
        """Extract the kernels of a module and start to compile them; the result of `begin`, or [] without kernels."""
        taken = take_kernels(module)
        if not taken:
            return []
        return [self.begin(Waiting(kernels, exports, self.pipeline(), watch) for kernels, exports in taken)]


def take_kernels(module: mlir.Operation) -> list[Kernels]:
    """Move all functions but @main into modules of their own.

    Returns nothing if that is not worth it, or if they use symbols of @main's module.
    """
    from mlirml.ir.bindings import block_ops, callee_of, mlir, operations

    ops = block_ops(module.regions[0].blocks[0])
    functions = {mlir.StringAttr(op.attributes["sym_name"]).value: op for op in ops if op.name == "func.func"}
    main = functions.pop("main", None)
    if main is None or not functions:
        return []
    sizes, calls = {}, {}
    for name, function in functions.items():
        nested = list(operations(function))
        sizes[name] = len(nested)
        calls[name] = {callee_of(op) for op in nested if op.name == "func.call"}
        if not calls[name] <= functions.keys() or any(op.name in _SHARED for op in nested):
            return []
    rest = list(operations(main))
    if sum(sizes.values()) < _LEAST_KERNELS or len(rest) < _LEAST_REST:
        return []
    called = {callee_of(op) for op in rest if op.name == "func.call"}
    return [_moved(main, {name: functions[name] for name in batch}, called) for batch in _batches(sizes, calls)]


def _batches(sizes: dict[str, int], calls: dict[str, set[str]]) -> list[list[str]]:
    """The names in one batch or two, so that no function calls one of the other batch."""
    groups: list[set[str]] = []
    for name, callees in calls.items():
        joined = {name, *callees}
        for group in [group for group in groups if group & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    first: set[str] = set()
    for group in sorted(groups, key=lambda group: sum(sizes[name] for name in group))[:-1]:
        if sum(sizes[name] for name in first) < _FIRST_SHARE * sum(sizes.values()):
            first |= group
    batches = [name for name in sizes if name in first], [name for name in sizes if name not in first]
    return [batch for batch in batches if batch]


def _moved(main: mlir.Operation, functions: dict[str, mlir.Operation], called: set[str]) -> Kernels:
    """A module of these functions; @main's module keeps declarations of those that it calls."""
    from mlirml.dialects.mlirml import FLUSH_DENORMALS
    from mlirml.ir import emit
    from mlirml.ir.bindings import mlir

    with main.context, main.location:
        kernels = mlir.Module.create()
        if FLUSH_DENORMALS in main.attributes:
            kernels.operation.attributes[FLUSH_DENORMALS] = mlir.UnitAttr.get()
    for name, function in functions.items():
        if name in called:
            attributes = {key: function.attributes[key] for key in ("sym_name", "function_type", "sym_visibility")}
            with function.location, mlir.InsertionPoint(function):
                emit.create("func.func", (), (), attributes, regions=1)
        function.detach_from_parent()
        kernels.body.append(function)
    return kernels, tuple(name for name in functions if name in called)
