"""Values captured by operations that are outlined into a function: arguments to pass, constants and views to clone."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.ir.bindings import defining_op, mlir, operations

VIEWS = (
    "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast", "memref.subview", "memref.cast",
    "memref.extract_strided_metadata",
)  # fmt: skip
REBUILT = ("arith.constant", "memref.get_global", *VIEWS)


class Captures:
    """Values that operations capture: `values` become arguments, `rebuilt` operations are cloned into the function.

    `own` are values of the surrounding block that move with the operations; `names` are the operations that may be
    cloned.
    """

    def __init__(
        self, ops: Sequence[mlir.Operation], own: Sequence[mlir.Value] = (), names: Sequence[str] = REBUILT
    ) -> None:
        self.values: dict[mlir.Value, None] = {}
        self.rebuilt: dict[mlir.Operation, None] = {}
        self._names = names
        self._uses: list[tuple[mlir.Operation, int, mlir.Value]] = []
        local_values = set(own)
        for op in ops:
            for inner in operations(op):
                local_values.update(inner.results)
                for region in inner.regions:
                    for block in region.blocks:
                        local_values.update(block.arguments)
                for position, operand in enumerate(inner.operands):
                    if operand not in local_values:
                        self.add(operand)
                        self._uses.append((inner, position, operand))

    def add(self, value: mlir.Value) -> None:
        """Note a captured value."""
        owner = defining_op(value)
        if owner is None or owner.name not in self._names:
            self.values[value] = None
        elif owner not in self.rebuilt:
            for operand in owner.operands:
                self.add(operand)
            self.rebuilt[owner] = None

    def rebuild(self, arguments: Sequence[mlir.Value]) -> dict[mlir.Value, mlir.Value]:
        """Clone constants and views at the insertion point; returns the inner value of each captured one."""
        environment = dict(zip(self.values, arguments, strict=True))
        for op in self.rebuilt:
            copy = op.clone().operation
            for position, operand in enumerate(op.operands):
                copy.operands[position] = environment[operand]
            environment.update(zip(op.results, copy.results, strict=True))
        return environment

    def replace(self, environment: dict[mlir.Value, mlir.Value]) -> None:
        """Let the operations, none of which may have been erased, use the inner values."""
        for op, position, value in self._uses:
            op.operands[position] = environment[value]
