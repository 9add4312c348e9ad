"""Kernels as the text of a WGSL shader: one entry point for each, and the memory that it uses.

Every operation becomes a `let` of its value, and loops and branches those of WGSL; loop-carried values and results are
`var`s. Buffers are bound in the order of a kernel's arguments, in group 0, so that a host finds them as with SPIR-V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.codegen.wgsl.expressions import EXPRESSIONS
from mlirml.codegen.wgsl.memory import Memory, buffer, local
from mlirml.codegen.wgsl.types import literal, type_name
from mlirml.dialects.atomics import kind_of
from mlirml.errors import LoweringError
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.ir.location import source_location

_BUILTINS = {
    "gpu.thread_id": "@builtin(local_invocation_id) thread: vec3<u32>",
    "gpu.block_id": "@builtin(workgroup_id) block: vec3<u32>",
    "gpu.grid_dim": "@builtin(num_workgroups) blocks: vec3<u32>",
}
_ATOMICS = {
    "addi": "atomicAdd", "andi": "atomicAnd", "assign": "atomicExchange", "maxs": "atomicMax", "mins": "atomicMin",
    "ori": "atomicOr", "xori": "atomicXor",
}  # fmt: skip
"""Functions on words, which are signed."""
_FREE = frozenset(["arith.constant", "arith.index_cast"])
"""Operations that are inlined at their uses, if they have no effect."""


def shader(kernels: mlir.Operation) -> str:
    """The text of a gpu.module; raises `TargetError` at the user's source line for types that WGSL lacks."""
    functions = [op for op in block_ops(kernels.regions[0].blocks[0]) if op.name == "gpu.func"]
    return "\n".join(_Kernel(number, op).text() for number, op in enumerate(functions))


class _Kernel:
    """One entry point under construction."""

    def __init__(self, number: int, function: mlir.Operation) -> None:
        self.number = number
        self.function = function
        self.globals: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.values: dict[mlir.Value, str] = {}
        self.lanes: dict[mlir.Value, list[str]] = {}  # of vectors
        self.memories: dict[mlir.Value, Memory] = {}
        self.count = 0

    def text(self) -> str:
        """The declarations of its memory, and the function."""
        block = self.function.regions[0].blocks[0]
        stored = {op.operands[1] for op in operations(self.function) if op.name == "memref.store"}
        combined = {op.operands[1] for op in operations(self.function) if op.name == "memref.atomic_rmw"}
        for position, argument in enumerate(block.arguments):
            self.bind(position, argument, argument in stored, argument in combined)
        self.body(block)
        name = mlir.StringAttr(self.function.attributes["sym_name"]).value
        size = ", ".join(map(str, self.function.attributes["known_block_size"]))
        present = {op.name for op in operations(self.function)}
        inputs = ", ".join(text for op, text in _BUILTINS.items() if op in present)
        head = [f"@compute @workgroup_size({size})", f"fn {name}({inputs}) {{"]
        return "\n".join([*self.globals, *head, *self.lines, "}", ""])

    def bind(self, position: int, argument: mlir.Value, written: bool, combined: bool) -> None:
        """Declare the memory of an argument."""
        memory = buffer(f"buffer{self.number}_{position}", argument.type, written, combined, self.function.location)
        place = f"@group(0) @binding({position})"
        self.globals.append(f"{place} var<storage, read_write> {memory.name}: {memory.declared};")
        if memory.shape is None:
            self.values[argument] = self.let(memory.number())
        else:
            self.memories[argument] = memory

    # Statements.

    def line(self, text: str) -> None:
        """One line at the depth of the block."""
        self.lines.append("  " * self.depth + text)

    def name(self, prefix: str = "v") -> str:
        """A new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def let(self, text: str) -> str:
        """Name the value of an expression."""
        name = self.name()
        self.line(f"let {name} = {text};")
        return name

    def var(self, type_: mlir.Type, value: str | None = None) -> str:
        """Declare a variable."""
        name = self.name()
        start = "" if value is None else f" = {value}"
        self.line(f"var {name}: {type_name(type_, self.function.location)}{start};")
        return name

    def variables(self, results: Sequence[mlir.Value], values: Sequence[str | None]) -> list[str]:
        """Declare the variables for the results of an operation with regions."""
        names = [self.var(result.type, value) for result, value in zip(results, values, strict=True)]
        self.values.update(zip(results, names))
        return names

    def assign(self, names: Sequence[str], values: Sequence[mlir.Value]) -> None:
        """Assign variables simultaneously."""
        texts = [self.values[value] for value in values]
        moved = [self.let(text) if text in names and text != name else text for name, text in zip(names, texts)]
        for name, text in zip(names, moved):
            if name != text:
                self.line(f"{name} = {text};")

    def nested(self, head: str, write: Callable[[], None], end: str = "}") -> None:
        """A block of statements between braces."""
        self.line(head)
        self.depth += 1
        write()
        self.depth -= 1
        self.line(end)

    # Operations.

    def body(self, block: mlir.Block) -> None:
        """Emit the operations of a block except for its terminator."""
        for op in block_ops(block):
            if op.name not in ("gpu.return", "scf.yield", "scf.condition"):
                self.operation(op)

    def operation(self, op: mlir.Operation) -> None:
        """Emit one operation."""
        if op.name.startswith("vector.") or (op.results and isinstance(op.results[0].type, mlir.VectorType)):
            self.vector(op)
            return
        write = _STATEMENTS.get(op.name)
        if write is not None:
            write(self, op)
            return
        expression = EXPRESSIONS.get(op.name)
        if expression is None or len(op.results) != 1:
            raise LoweringError(f"`{op.name}` has no form in WGSL", location=source_location(op.location))
        for value in (*op.operands, op.results[0]):
            type_name(value.type, op.location)
        texts = [self.values[operand] for operand in op.operands]
        text = expression(op, texts)
        free = op.name in _FREE and (not texts or text == texts[0])
        self.values[op.results[0]] = text if free else self.let(text)

    def vector(self, op: mlir.Operation) -> None:
        """Emit the remaining vector operations, those that build vectors and extract lanes."""
        if op.name == "vector.extract":
            (lane,) = op.attributes["static_position"]
            self.values[op.results[0]] = self.lanes[op.operands[0]][lane]
            return
        (size,) = mlir.VectorType(op.results[0].type).shape
        splat = op.name == "arith.constant" and mlir.DenseElementsAttr(op.attributes["value"]).is_splat
        if splat:
            texts = [literal(mlir.DenseElementsAttr(op.attributes["value"]).get_splat_value())] * size
        elif op.name == "vector.broadcast":
            texts = [self.values[op.operands[0]]] * size
        elif op.name == "vector.from_elements":
            texts = [self.values[operand] for operand in op.operands]
        else:
            raise LoweringError(f"`{op.name}` has no form in WGSL", location=source_location(op.location))
        self.lanes[op.results[0]] = texts

    def load(self, op: mlir.Operation) -> None:
        """`memref.load`."""
        memory, *indices = op.operands
        text = self.memories[memory].read([self.values[i] for i in indices])
        self.values[op.results[0]] = self.let(text)

    def store(self, op: mlir.Operation) -> None:
        """`memref.store`."""
        value, memory, *indices = op.operands
        for text in self.memories[memory].write(self.values[value], [self.values[i] for i in indices]):
            self.line(text)

    def combine(self, op: mlir.Operation) -> None:
        """`memref.atomic_rmw`."""
        value, memory, *indices = op.operands
        text = self.memories[memory].update(
            _ATOMICS[kind_of(op)], self.values[value], [self.values[i] for i in indices]
        )  # fmt: skip
        self.values[op.results[0]] = self.let(text)

    def shared(self, op: mlir.Operation) -> None:
        """An array of the block."""
        memory = local(f"shared{self.number}_{len(self.globals)}", op.results[0].type, op.location)
        self.memories[op.results[0]] = memory
        self.globals.append(f"var<workgroup> {memory.name}: {memory.declared};")

    def private(self, op: mlir.Operation) -> None:
        """An array of the thread."""
        memory = local(self.name("own"), op.results[0].type, op.location)
        self.memories[op.results[0]] = memory
        self.line(f"var {memory.name}: {memory.declared};")

    def barrier(self, op: mlir.Operation) -> None:
        """`gpu.barrier`."""
        self.line("workgroupBarrier();")

    def if_(self, op: mlir.Operation) -> None:
        """`scf.if`."""
        names = self.variables(op.results, [None] * len(op.results))
        branches = [list(region.blocks) for region in op.regions]
        self.nested(f"if {self.values[op.operands[0]]} {{", lambda: self.branch(branches[0][0], names))
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
        counter = self.name("i")
        self.values.update(zip(block.arguments, (counter, *names)))
        head = f"for (var {counter} = {lower}; {counter} < {upper}; {counter} += {step}) {{"
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
            self.line(f"if !{self.values[proceed]} {{ break; }}")
            self.values.update(zip(after.arguments, names))
            self.branch(after, carried)

        self.nested("loop {", write)


_STATEMENTS: dict[str, Callable[[_Kernel, mlir.Operation], None]] = {
    "memref.load": _Kernel.load,
    "memref.store": _Kernel.store,
    "memref.atomic_rmw": _Kernel.combine,
    "memref.alloc": _Kernel.shared,
    "memref.alloca": _Kernel.private,
    "gpu.barrier": _Kernel.barrier,
    "scf.if": _Kernel.if_,
    "scf.for": _Kernel.for_,
    "scf.while": _Kernel.while_,
}
