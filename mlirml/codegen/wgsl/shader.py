"""Kernels as the text of a WGSL shader: one entry point for each, and the memory that it uses.

Buffers are bound in the order of a kernel's arguments, in group 0, so that a host finds them as with SPIR-V.
"""

from __future__ import annotations

from mlirml.codegen.c_like import CLikePrinter
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


def shader(kernels: mlir.Operation) -> str:
    """The text of a gpu.module; raises `TargetError` at the user's source line for types that WGSL lacks."""
    functions = [op for op in block_ops(kernels.regions[0].blocks[0]) if op.name == "gpu.func"]
    return "\n".join(_Kernel(number, op).text() for number, op in enumerate(functions))


class _Kernel(CLikePrinter):
    """One entry point under construction."""

    language = "WGSL"
    counter = "var"
    endless = "loop {"
    expressions = EXPRESSIONS

    def __init__(self, number: int, function: mlir.Operation) -> None:
        super().__init__()
        self.number = number
        self.function = function
        self.globals: list[str] = []
        self.lanes: dict[mlir.Value, list[str]] = {}  # of vectors
        self.memories: dict[mlir.Value, Memory] = {}

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
            self.values[argument] = self.let(argument.type, memory.number())
        else:
            self.memories[argument] = memory

    # The language.

    def type_name(self, type_: mlir.Type, location: mlir.Location) -> str:
        return type_name(type_, location)

    def declaration(self, type_: mlir.Type, name: str, value: str | None, *, constant: bool) -> str:
        if constant:
            return f"let {name} = {value};"
        start = "" if value is None else f" = {value}"
        return f"var {name}: {type_name(type_, self.function.location)}{start};"

    def condition(self, text: str) -> str:
        return text

    # Operations.

    def operation(self, op: mlir.Operation) -> None:
        if op.name.startswith("vector.") or (op.results and isinstance(op.results[0].type, mlir.VectorType)):
            self.vector(op)
        else:
            super().operation(op)

    def vector(self, op: mlir.Operation) -> None:
        """Emit the remaining vector operations, those that build vectors and extract lanes."""
        if op.name == "vector.extract":
            (lane,) = op.attributes["static_position"]
            self.values[op.results[0]] = self.lanes[op.operands[0]][lane]
            return
        (size,) = mlir.VectorType(op.results[0].type).shape
        if op.name == "arith.constant":
            texts = [literal(x) for x in lanes_of(op)]
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
        self.values[op.results[0]] = self.let(op.results[0].type, text)

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
        self.values[op.results[0]] = self.let(op.results[0].type, text)

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


_Kernel.statements = {
    "memref.load": _Kernel.load,
    "memref.store": _Kernel.store,
    "memref.atomic_rmw": _Kernel.combine,
    "memref.alloc": _Kernel.shared,
    "memref.alloca": _Kernel.private,
    "gpu.barrier": _Kernel.barrier,
}


def lanes_of(constant: mlir.Operation) -> list[mlir.Attribute]:
    """The elements of a constant vector."""
    vector = mlir.VectorType(constant.results[0].type)
    value, element = mlir.DenseElementsAttr(constant.attributes["value"]), vector.element_type
    if value.is_splat:
        return [value.get_splat_value()] * vector.shape[0]
    if isinstance(element, mlir.FloatType):
        return [mlir.FloatAttr.get(element, float(x)) for x in mlir.DenseFPElementsAttr(value)]
    return [mlir.IntegerAttr.get(element, int(x)) for x in mlir.DenseIntElementsAttr(value)]
