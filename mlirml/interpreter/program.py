"""The core of the reference interpreter: the table of rules, and functions prepared once and run many times.

Preparation assigns each SSA value of a function a slot in a list, the environment, and turns each operation into a step
over it. A rule gets an operation once and returns the function that evaluates it:

    @evaluates("arith.addf")                          @controls("scf.if")
    def rule(op, function):                           def rule(op, function):
        return lambda lhs, rhs: lhs + rhs                 return step   # step(environment) -> None
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.errors import CheckFailed, InternalError, LaunchError, MlirmlError, TargetError
from mlirml.interpreter.values import Buffer, Trap, Value, constant, dtype_of, shape_of
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.location import source_location

Environment = list[Value]
Step = Callable[[Environment], None]
Kernel = Callable[..., Value]
"""A function of the operands that returns nothing, the one result, or a sequence of as many results as the op has."""

EvaluatesRule = Callable[[mlir.Operation, "Function"], Kernel]
ControlsRule = Callable[[mlir.Operation, "Function"], Step]

EVALUATES: dict[str, EvaluatesRule] = {}
CONTROLS: dict[str, ControlsRule] = {}
ELEMENTWISE: set[str] = set()
"""The operations whose kernel, called with arrays instead of scalars, works element by element."""

NOT_EVALUATED = {
    "affine.dma_start": "transfers between memory spaces have no meaning on arrays",
    "affine.dma_wait": "transfers between memory spaces have no meaning on arrays",
    "arith.scaling_extf": "micro-scaling floats are not element types of mlirml",
    "arith.scaling_truncf": "micro-scaling floats are not element types of mlirml",
    "bufferization.dealloc": "ownership-based deallocation is not used",
    "cf.switch": "no pass makes it",
    "func.call_indirect": "functions are no values here",
    "func.constant": "functions are no values here",
    "linalg.pack": "packing is part of the kernels",
    "linalg.unpack": "packing is part of the kernels",
    "linalg.winograd_filter_transform": "it has no body; upstream decomposes it",
    "linalg.winograd_input_transform": "it has no body; upstream decomposes it",
    "linalg.winograd_output_transform": "it has no body; upstream decomposes it",
    "memref.dma_start": "transfers between memory spaces have no meaning on arrays",
    "memref.dma_wait": "transfers between memory spaces have no meaning on arrays",
    "memref.extract_aligned_pointer_as_index": "addresses are not numbers here",
    "memref.realloc": "no pass makes it",
    "ub.unreachable": "no pass makes it",
    "vector.print": "a program's only effects are its results and its memrefs",
    "vector.scalable.extract": "scalable vectors have no shape to interpret",
    "vector.scalable.insert": "scalable vectors have no shape to interpret",
    "vector.type_cast": "memrefs of vectors are not element types of mlirml",
    "vector.vscale": "scalable vectors have no shape to interpret",
}
"""The operations without a rule in dialects that have rules, and the reason."""

TERMINATORS = {
    "affine.yield", "cf.br", "cf.cond_br", "func.return", "linalg.yield", "memref.alloca_scope.return",
    "memref.atomic_yield", "scf.condition", "scf.forall.in_parallel", "scf.reduce", "scf.reduce.return", "scf.yield",
    "tensor.yield", "vector.yield",
}  # fmt: skip


def evaluates(*names: str, elementwise: bool = False) -> Callable[[EvaluatesRule], EvaluatesRule]:
    """Register a rule for operations that are functions of their operands."""

    def add(rule: EvaluatesRule) -> EvaluatesRule:
        for name in names:
            EVALUATES[name] = rule
            if elementwise:
                ELEMENTWISE.add(name)
        return rule

    return add


def controls(*names: str) -> Callable[[ControlsRule], ControlsRule]:
    """Register a rule for operations with regions, which need the environment."""

    def add(rule: ControlsRule) -> ControlsRule:
        for name in names:
            CONTROLS[name] = rule
        return rule

    return add


def unsupported(op: mlir.Operation, reason: str = "") -> TargetError:
    """The error for an operation that the reference target cannot run."""
    reason = reason or NOT_EVALUATED.get(op.name, "")
    notes = (reason, _op_and_location(op)) if reason else (_op_and_location(op),)
    text = f"the reference target does not run {op.name}"
    return TargetError(text, location=source_location(op.location), notes=notes)


def _op_and_location(op: mlir.Operation) -> str:
    return f"{op.name} at {op.location}"


@dataclass(eq=False)
class Code:
    """A prepared block: the slots of its arguments, its steps, and the slots of its terminator's operands."""

    arguments: list[int]
    operations: list[mlir.Operation]
    steps: list[Step]
    terminator: mlir.Operation | None
    results: list[int]

    def run(self, environment: Environment, arguments: Sequence[Value] = ()) -> list[Value]:
        """Bind the arguments, run the steps, return the terminator's operands."""
        for slot, value in zip(self.arguments, arguments, strict=True):
            environment[slot] = value
        self.execute(environment)
        return [environment[slot] for slot in self.results]

    def execute(self, environment: Environment) -> None:
        """Run the steps; the arguments are bound already."""
        step = None
        try:
            for step in self.steps:
                step(environment)
        except (MlirmlError, CheckFailed):
            raise
        except Trap as trap:
            raise _error(LaunchError, self._operation(step), str(trap)) from None
        except Exception as error:
            raise _error(InternalError, self._operation(step), f"{type(error).__name__}: {error}") from error

    def _operation(self, step: Step | None) -> mlir.Operation:
        return next(op for op, other in zip(self.operations, self.steps) if other is step)

    def without(self, skipped: set[mlir.Operation]) -> Code:
        """The same code without some of its operations."""
        kept = [(op, step) for op, step in zip(self.operations, self.steps) if op not in skipped]
        return Code(self.arguments, [op for op, _ in kept], [step for _, step in kept], self.terminator, self.results)


def _error(error_class: type[MlirmlError], op: mlir.Operation, text: str) -> MlirmlError:
    return error_class(f"{op.name}: {text}", location=source_location(op.location), notes=(_op_and_location(op),))


class Function:
    """A `func.func` prepared to run."""

    def __init__(self, op: mlir.Operation, program: Program) -> None:
        self.program = program
        self.op = op
        self.name = mlir.StringAttr(op.attributes["sym_name"]).value
        self.slots: dict[mlir.Value, int] = {}
        self.size = 0
        self.index_slots: list[list[int]] = []
        """For each linalg operation being prepared, outermost first: the slots of its iteration indices."""
        blocks = list(op.regions[0].blocks)
        if not blocks:
            raise unsupported(op, f"@{self.name} has no body")
        self.entry = blocks[0]
        self.codes = {block: self.block(block) for block in blocks}

    def new_slot(self) -> int:
        """A new slot in the environment."""
        self.size += 1
        return self.size - 1

    def slot(self, value: mlir.Value) -> int:
        """The slot of an SSA value in the environment."""
        if value not in self.slots:
            self.slots[value] = self.new_slot()
        return self.slots[value]

    def block(self, block: mlir.Block) -> Code:
        """Prepare a block and its nested regions."""
        arguments = [self.slot(argument) for argument in block.arguments]
        operations = block_ops(block)
        terminator = operations.pop() if operations and operations[-1].name in TERMINATORS else None
        kept, steps = [], []
        for op in operations:
            step = self.step(op)
            if step is not None:
                kept.append(op)
                steps.append(step)
        results = [self.slot(value) for value in terminator.operands] if terminator is not None else []
        return Code(arguments, kept, steps, terminator, results)

    def step(self, op: mlir.Operation) -> Step | None:
        """The function that runs an operation; None if it does nothing."""
        name = op.name
        if name == "linalg.index":
            self.slots[op.results[0]] = self.index_slots[-1][op.attributes["dim"].value]
            return None
        if name in EVALUATES:
            kernel = EVALUATES[name](op, self)
            return _step(kernel, [self.slot(v) for v in op.operands], [self.slot(v) for v in op.results])
        control = CONTROLS.get(name)
        if control is None and name.startswith("linalg.") and len(op.regions) == 1:
            control = CONTROLS["linalg.generic"]
        if control is None:
            raise unsupported(op)
        return control(op, self)

    def __call__(self, arguments: Sequence[Value]) -> list[Value]:
        """Run the function in a fresh environment."""
        environment: Environment = [None] * self.size
        block, values = self.entry, list(arguments)
        while True:
            code = self.codes[block]
            results = code.run(environment, values)
            terminator = code.terminator
            if terminator is None or terminator.name == "func.return":
                return results
            block, values = _branch(terminator, results)


def _branch(terminator: mlir.Operation, operands: list[Value]) -> tuple[mlir.Block, list[Value]]:
    if terminator.name == "cf.br":
        return terminator.successors[0], operands
    true_count = mlir.DenseI32ArrayAttr(terminator.attributes["operandSegmentSizes"])[1]
    if operands[0]:
        return terminator.successors[0], operands[1 : 1 + true_count]
    return terminator.successors[1], operands[1 + true_count :]


def _step(kernel: Kernel, operands: list[int], results: list[int]) -> Step:
    if len(results) == 1:
        (result,) = results
        if len(operands) == 2:
            lhs, rhs = operands

            def binary(environment: Environment) -> None:
                environment[result] = kernel(environment[lhs], environment[rhs])

            return binary

        def single(environment: Environment) -> None:
            environment[result] = kernel(*[environment[slot] for slot in operands])

        return single

    def several(environment: Environment) -> None:
        values = kernel(*[environment[slot] for slot in operands])
        for slot, value in zip(results, values if results else ()):
            environment[slot] = value

    return several


@dataclass(eq=False)
class Program:
    """A module: its functions, prepared on first call, and its globals."""

    module: mlir.Operation
    functions: dict[str, Function] = field(default_factory=dict)
    globals: dict[str, Buffer] = field(default_factory=dict)
    symbols: dict[str, mlir.Operation] = field(default_factory=dict)
    accesses: dict[mlir.AffineMap, Any] = field(default_factory=dict)  # of structured operations, by their maps

    def __post_init__(self) -> None:
        for op in block_ops(self.module.regions[0].blocks[0]):
            if "sym_name" in op.attributes:
                self.symbols[mlir.StringAttr(op.attributes["sym_name"]).value] = op

    def function(self, name: str) -> Function:
        """The function of that name, prepared."""
        if name not in self.functions:
            if name not in self.symbols:
                raise InternalError(f"the module has no function @{name}")
            self.functions[name] = Function(self.symbols[name], self)
        return self.functions[name]

    def global_buffer(self, name: str) -> Buffer:
        """The memory of a `memref.global`, the same at each use."""
        if name not in self.globals:
            op = self.symbols[name]
            kind = op.attributes["type"].value
            buffer = Buffer.allocate(shape_of(kind), dtype_of(kind))
            initial = op.attributes.get("initial_value", None)
            if initial is not None and not isinstance(initial, mlir.UnitAttr):
                buffer.array[...] = constant(initial, self.resource)
            self.globals[name] = buffer
        return self.globals[name]

    def resource(self, key: str) -> bytes:
        """The bytes of a `dense_resource`, without the leading four that encode the alignment.

        The bindings do not read them, so they are parsed from the text of the module.
        """
        found = re.search(rf'\b{re.escape(key)}"?: "0x([0-9A-Fa-f]*)"', str(self.module))
        if found is None:
            raise InternalError(f"the module has no resource {key}")
        return bytes.fromhex(found[1])[4:]
