"""Lower launches: kernel launches and copies become calls of the functions of upstream's GPU runtime wrappers.

Before:
    func.func @main(%x: memref<8xf32>, %out: memref<8xf32>) {
      gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%x, %out)
      gpu.memcpy %out, %x
      return
    }
After:
    func.func @main(%x: memref<8xf32>, %out: memref<8xf32>, %kernels: memref<2xi64>) {
      ...                                   // the pointers of %x and %out, and a stack array of their addresses
      %k0 = memref.load %kernels[%c1]
      llvm.call @mgpuLaunchKernel(%k0, %c1, %c1, %c1, %c256, %c1, %c1, %zero, %stream, %parameters, %null, %count)
      llvm.call @mgpuMemcpy(%to, %from, %bytes, %stream)
      return
    }

The last argument is the table of the call: the stream, followed by the loaded kernels in the order of
`mlirml.kernels`. The program itself loads no module and creates no stream.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from mlirml.analysis.memory import uses_of
from mlirml.analysis.shared_memory import dynamic_bytes
from mlirml.dialects.mlirml import KERNELS, TILE
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, main_function, mlir, operations, set_function_type
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register

LAUNCH_KERNEL = "mgpuLaunchKernel"
MEMCPY = "mgpuMemcpy"
RUNTIME = frozenset([LAUNCH_KERNEL, MEMCPY])
"""The runtime functions that the host code calls."""


@register
class LowerLaunchesPass(Pass):
    """Replace launches and copies by calls of the runtime."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        ops = [op for op in operations(main) if op.name in ("gpu.launch_func", "gpu.memcpy")]
        kernels = [op for op in operations(module) if op.name == "gpu.func"]
        with main.location:
            names = [mlir.StringAttr(kernel.attributes["sym_name"]).value for kernel in kernels]
            counts = launch_counts(ops)
            main.attributes[KERNELS] = mlir.ArrayAttr.get(
                [entry_of(kernel, counts.get(name, 0)) for kernel, name in zip(kernels, names)]
            )
            tiled = {name for kernel, name in zip(kernels, names) if TILE in kernel.attributes}
            most = max((len(passed_by(op, tiled)) for op in ops if op.name == "gpu.launch_func"), default=0)
            shared = {name: dynamic_bytes(kernel) for kernel, name in zip(kernels, names)}
            lowering = _Lowering(module, main, names, tiled, most, shared)
            for op in ops:
                with op.location, mlir.InsertionPoint(op):
                    lowering.launch(op) if op.name == "gpu.launch_func" else lowering.memcpy(op)
                op.erase()


def callee(launch: mlir.Operation) -> str:
    """The name of the kernel of a launch."""
    return str(mlir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


def passed_by(launch: mlir.Operation, tiled: Collection[str]) -> list[mlir.Value | int]:
    """The arguments of a launch, and for a tile kernel the sizes and strides after each array, as i32."""
    arguments = list(launch.operands)[6:]
    return arguments if callee(launch) not in tiled else [n for v in arguments for n in (v, *extents_of(v.type))]


def extents_of(type_: mlir.Type) -> list[int]:
    """The sizes and strides of an array; none of a scalar."""
    return [*type_.shape, *type_.get_strides_and_offset()[0]] if isinstance(type_, mlir.MemRefType) else []


def launch_counts(ops: Sequence[mlir.Operation]) -> dict[str, int]:
    """The number of launches of each kernel in a call; -1 if it depends on computed values."""
    counts: dict[str, int] = {}
    for op in ops:
        if op.name == "gpu.launch_func":
            name = callee(op)
            before, count = counts.get(name, 0), executions_of(op)
            counts[name] = -1 if -1 in (before, count) else before + count
    return counts


def executions_of(op: mlir.Operation) -> int:
    """Number of executions of an operation of @main: product of the trip counts around it; -1 if not constant."""
    total, parent = 1, op.parent.operation
    while parent.name != "func.func":
        owners = [defining_op(bound) for bound in list(parent.operands)[:3]] if parent.name == "scf.for" else [None]
        if any(owner is None or owner.name != "arith.constant" for owner in owners):
            return -1
        low, high, step = (int(owner.attributes["value"].value) for owner in owners if owner is not None)
        if step <= 0:  # not a loop that capture emits
            return -1
        total *= max(0, -(-(high - low) // step))
        parent = parent.parent.operation
    return total


_MOST = (1 << 63) - 1
"""Clamp of a launch count that does not fit into an attribute, such as that of a loop from the smallest integer on."""


def entry_of(kernel: mlir.Operation, launches: int) -> mlir.DictAttr:
    """The table entry of a kernel: its name, the sizes of its arguments (0 for a buffer), the codes of their accesses,
    its line, and its number of launches.
    """
    arguments = list(kernel.regions[0].blocks[0].arguments)
    types = [argument.type for argument in arguments]
    extra = [extents_of(type_) if TILE in kernel.attributes else [] for type_ in types]
    sizes = [size for type_, more in zip(types, extra) for size in (size_of(type_), *[4] * len(more))]
    accesses = [each for value, more in zip(arguments, extra) for each in (access_code(value), *[0] * len(more))]
    location = source_location(kernel.location)
    return mlir.DictAttr.get(
        {
            "accesses": mlir.DenseI64ArrayAttr.get(accesses),
            "name": kernel.attributes["sym_name"],
            "arguments": mlir.DenseI64ArrayAttr.get(sizes),
            "launches": emit.i64(min(launches, _MOST)),
            "place": mlir.StringAttr.get("" if location is None else f"{location.file}:{location.line}"),
        }
    )


UNKNOWN_ACCESS = -1


def access_code(argument: mlir.Value) -> int:
    """The code of a kernel's use of an argument: 0 for a number, for an array 4 times its bytes, plus 1 if it is read,
    plus 2 if it is written; `UNKNOWN_ACCESS` if the bytes are not known, or may begin before the address passed.
    """
    if not isinstance(argument.type, mlir.MemRefType):
        return 0
    sizes, strides = list(argument.type.shape), argument.type.get_strides_and_offset()[0]
    if not argument.type.has_static_shape or any(stride < 0 for stride in strides):  # dynamic ones are negative, too
        return UNKNOWN_ACCESS
    elements = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if all(sizes) else 0
    is_read, is_written = uses_of(argument)
    return 4 * elements * element_bytes(argument.type.element_type) + is_read + 2 * is_written


def size_of(argument_type: mlir.Type) -> int:
    if isinstance(argument_type, mlir.MemRefType):
        return 0
    return 4 if isinstance(argument_type, mlir.IndexType) else max(4, int(argument_type.width) // 8)


class _Lowering:
    """State that all launches of a program share: the kernel table, the stack arrays, the declarations."""

    def __init__(
        self,
        module: mlir.Operation,
        main: mlir.Operation,
        names: list[str],
        tiled: Collection[str],
        most: int,
        shared: Mapping[str, int],
    ) -> None:
        self.module = module
        self.shared = shared
        self.tiled = tiled
        self.numbers = {name: number for number, name in enumerate(names)}
        self.pointer = mlir.Type.parse("!llvm.ptr")
        self.word = mlir.IntegerType.get_signless(64)
        self.int = mlir.IntegerType.get_signless(32)
        self.declared: set[str] = set()
        entry = main.regions[0].blocks[0]
        with main.location:
            table = mlir.MemRefType.get([1 + len(names)], self.word)
            self.table = entry.add_argument(table, main.location)
            set_function_type(main)
            with mlir.InsertionPoint.at_block_begin(entry):
                count = emit.number(self.word, max(most, 1))
                element = mlir.TypeAttr.get(self.word)
                self.values = emit.value("llvm.alloca", [count], self.pointer, elem_type=element)
                self.addresses = emit.value("llvm.alloca", [count], self.pointer, elem_type=element)
                self.stream = self.as_pointer(emit.value("memref.load", [self.table, emit.index(0)], self.word))

    def launch(self, op: mlir.Operation) -> None:
        sizes = [self.as_word(v) for v in list(op.operands)[:6]]
        arguments = passed_by(op, self.tiled)
        for number, argument in enumerate(arguments):
            slot = self.slot(self.values, number)
            emit.create("llvm.store", [self.passed(argument), slot], (), {"ordering": emit.i64(0)})
            emit.create("llvm.store", [slot, self.slot(self.addresses, number)], (), {"ordering": emit.i64(0)})
        number = 1 + self.numbers[callee(op)]
        kernel = self.as_pointer(emit.value("memref.load", [self.table, emit.index(number)], self.word))
        null = emit.value("llvm.mlir.zero", (), self.pointer)
        operands = [
            kernel, *sizes, emit.number(self.int, self.shared[callee(op)]), self.stream, self.addresses, null,
            emit.number(self.word, len(arguments)),
        ]  # fmt: skip
        self.call(LAUNCH_KERNEL, operands)

    def memcpy(self, op: mlir.Operation) -> None:
        target, source = op.operands
        static = [n for d, n in enumerate(target.type.shape) if not target.type.is_dynamic_dim(d)]
        size = math.prod(static) * element_bytes(target.type.element_type)
        if size:
            pointers = [self.as_pointer(self.address(v)) for v in (target, source)]
            dynamic = [d for d in range(target.type.rank) if target.type.is_dynamic_dim(d)]
            count = emit.number(self.word, size)
            for d in dynamic:
                extent = emit.value("memref.dim", [target, emit.index(d)], mlir.IndexType.get())
                count = emit.same_type("arith.muli", count, self.as_word(extent))
            self.call(MEMCPY, [*pointers, count, self.stream])

    def passed(self, argument: mlir.Value | int) -> mlir.Value:
        """The pointer or scalar, of at most eight bytes, that is passed for an argument."""
        if isinstance(argument, int):
            return emit.number(self.int, argument)
        if isinstance(argument.type, mlir.MemRefType):
            return self.address(argument)
        return self.as_word(argument) if isinstance(argument.type, mlir.IndexType) else argument

    def address(self, memref: mlir.Value) -> mlir.Value:
        """The address of the first element of a memref."""
        index = mlir.IndexType.get()
        base = emit.value("memref.extract_aligned_pointer_as_index", [memref], index)
        _, offset = mlir.MemRefType(memref.type).get_strides_and_offset()
        size = element_bytes(memref.type.element_type)
        if offset == mlir.ShapedType.get_dynamic_stride_or_offset():
            rank = len(memref.type.shape)
            whole = mlir.MemRefType.get([], memref.type.element_type)
            types = [whole, *[index] * (1 + 2 * rank)]
            shift = emit.create("memref.extract_strided_metadata", [memref], types).results[1]
            shift = emit.same_type("arith.muli", shift, emit.index(size))
            base = emit.same_type("arith.addi", base, shift)
        elif offset:
            base = emit.same_type("arith.addi", base, emit.index(offset * size))
        return self.as_word(base)

    def slot(self, array: mlir.Value, number: int) -> mlir.Value:
        indices = mlir.DenseI32ArrayAttr.get([number])
        element = mlir.TypeAttr.get(self.word)
        attributes = {"rawConstantIndices": indices, "elem_type": element}
        return emit.value("llvm.getelementptr", [array], self.pointer, **attributes)

    def as_word(self, value: mlir.Value) -> mlir.Value:
        return emit.value("arith.index_cast", [value], self.word)

    def as_pointer(self, word: mlir.Value) -> mlir.Value:
        return emit.value("llvm.inttoptr", [word], self.pointer)

    def call(self, name: str, operands: Sequence[mlir.Value]) -> None:
        if name not in self.declared:
            self.declared.add(name)
            types = ", ".join(str(v.type).removeprefix("!llvm.") for v in operands)
            attributes = {
                "sym_name": mlir.StringAttr.get(name),
                "function_type": mlir.TypeAttr.get(mlir.Type.parse(f"!llvm.func<void ({types})>")),
                "linkage": mlir.Attribute.parse("#llvm.linkage<external>"),
                "CConv": mlir.Attribute.parse("#llvm.cconv<ccc>"),
            }
            with mlir.InsertionPoint(self.module.regions[0].blocks[0]):
                emit.create("llvm.func", (), (), attributes, regions=1)
        attributes = {
            "callee": mlir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": emit.segments(len(operands), 0),
            "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
        }
        emit.create("llvm.call", operands, (), attributes)


def element_bytes(element_type: mlir.Type) -> int:
    return max(1, int(element_type.width) // 8)
