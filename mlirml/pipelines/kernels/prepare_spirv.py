"""Prepare SPIR-V: kernels are put into the forms that `convert-gpu-to-spirv` and shader compilers take.

Before:
    gpu.module @kernels {
      gpu.func @k(%x: memref<8xbf16>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
        %s = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
        %low = arith.constant 0xFF800000 : f32
        %v = vector.load %x[%i] : memref<8xbf16>, vector<2xbf16>
After:
    gpu.module @kernels [#spirv.target_env<...>] {
      gpu.func @k(%x: memref<8xi16>) kernel attributes {spirv.entry_point_abi = ..., ...} {
        %s = memref.alloc() : memref<8xf32, #spirv.storage_class<Workgroup>>
        %low = arith.bitcast %bits : i32 to f32                      // shaders may hold no infinity
        %a = memref.load %x[%i] : memref<8xi16>
        %b = memref.load %x[%j] : memref<8xi16>

It stands behind `mlirml-inline-library`: of f16 and bf16 only bits are left, which are read as i16. What a
kernel uses, as f64 or subgroups, decides which capabilities the module declares.
"""

from __future__ import annotations

import math
import struct

from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.passes import Pass, register

_CAPABILITIES = {
    "i64": ("Int64",), "f64": ("Float64",),
    "gpu.shuffle": ("GroupNonUniform", "GroupNonUniformShuffle"),
    "gpu.subgroup_reduce": ("GroupNonUniform", "GroupNonUniformArithmetic"),
    "atomic": ("AtomicFloat32AddEXT",),
}  # fmt: skip
_SMALL = ("f16", "bf16")
_SUMS = frozenset(["arith.addf", "arith.subf", "arith.mulf"])
_ROUNDED = {"arith.addf": _SUMS, "arith.subf": _SUMS, "arith.mulf": frozenset(["arith.mulf"])}
"""Whose roundings are kept, in front of what."""


@register
@dataclass(frozen=True)
class PrepareSpirvPass(Pass):
    """Put gpu.modules into the form that converts to SPIR-V."""

    name = "mlirml-prepare-spirv"

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for names, rewrite in _REWRITES:
                for op in [op for op in operations(kernels) if op.name in names]:
                    with op.location:
                        rewrite(op)
            as_bits(kernels)
            for function in kernel_functions(kernels):
                with function.location:
                    keep_roundings(function)
            for op in operations(kernels):
                storage(op)
            for op in kernel_functions(kernels):
                entry_point(op)
            environment = target_environment(kernels)
            kernels.attributes["targets"] = mlir.ArrayAttr.get([environment])
            kernels.attributes["spirv.target_env"] = environment  # where `convert-math-to-spirv` looks for it
            cast_launches(module)


def kernel_functions(kernels: mlir.Operation) -> list[mlir.Operation]:
    return [op for op in block_ops(kernels.regions[0].blocks[0]) if op.name == "gpu.func"]


def one_by_one(op: mlir.Operation) -> None:
    """A load or store of a vector as those of its lanes: buffers have one element type in a shader."""
    with mlir.InsertionPoint(op):
        store = op.name == "vector.store"
        vector = op.operands[0] if store else op.results[0]
        memory, *outer, index = list(op.operands)[1:] if store else list(op.operands)
        kind = mlir.VectorType(vector.type).element_type
        places = [index]
        for lane in range(1, mlir.VectorType(vector.type).shape[0]):
            places.append(emit.same_type("arith.addi", index, emit.index(lane)))
        if store:
            for lane, place in enumerate(places):
                emit.create("memref.store", [element(vector, lane), memory, *outer, place])
            op.erase()
            if vector.owner.name == "vector.from_elements" and not any(True for _ in vector.uses):
                vector.owner.erase()
            return
        values = [emit.value("memref.load", [memory, *outer, place], kind) for place in places]
        for use in [use.owner.operation for use in vector.uses]:
            if use.name == "vector.extract":
                use.results[0].replace_all_uses_with(values[use.attributes["static_position"][0]])
                use.erase()
        if any(True for _ in vector.uses):
            whole = emit.value("vector.from_elements", values, vector.type)
            vector.replace_all_uses_with(whole)
    op.erase()


_OPPOSITES = {8: 6, 9: 5, 10: 4, 11: 3, 12: 2, 13: 1, 14: 7}
"""The ordered comparison that is false where an unordered one is true, and the other way round."""


def ordered(op: mlir.Operation) -> None:
    """A comparison that is true for NaNs as the opposite of one that is not: shaders have no others."""
    opposite = _OPPOSITES.get(op.attributes["predicate"].value)
    if opposite is None:
        return
    kind = op.results[0].type
    with mlir.InsertionPoint(op):
        attributes = {name: op.attributes[name] for name in op.attributes} | {"predicate": emit.i64(opposite)}
        compared = emit.create("arith.cmpf", list(op.operands), [kind], attributes).results[0]
        bit = mlir.IntegerType.get_signless(1)
        true = mlir.IntegerAttr.get(bit, 1)
        if isinstance(kind, mlir.VectorType):
            true = mlir.DenseElementsAttr.get_splat(kind, true)
        value = emit.same_type("arith.xori", compared, emit.value("arith.constant", (), kind, value=true))
    op.results[0].replace_all_uses_with(value)
    op.erase()


def extended(op: mlir.Operation) -> None:
    """A 64-bit integer of a signed one of 32 bits, without an extension that drivers mistake for an unsigned one.

    Mesa 22 compares what was extended by its sign with constants as if it were not.
    """
    source, kind = op.operands[0], op.results[0].type
    if not isinstance(kind, mlir.IntegerType) or (source.type.width, kind.width) != (32, 64):
        return
    with mlir.InsertionPoint(op):
        sign = emit.number(kind, 1 << 31)
        flipped = emit.same_type("arith.xori", emit.value("arith.extui", [source], kind), sign)
        value = emit.same_type("arith.subi", flipped, sign)
    op.results[0].replace_all_uses_with(value)
    op.erase()


def magnitude(op: mlir.Operation) -> None:
    """The magnitude of an integer that shaders have no function for."""
    number, kind = op.operands[0], op.results[0].type
    if not isinstance(kind, mlir.IntegerType) or kind.width == 32:
        return
    with mlir.InsertionPoint(op):
        zero = emit.zero(kind)
        negative = emit.compare("slt", number, zero)
        value = emit.same_type("arith.select", negative, emit.same_type("arith.subi", zero, number), number)
    op.results[0].replace_all_uses_with(value)
    op.erase()


def counted(op: mlir.Operation) -> None:
    """The bits that are set in a small integer, which shaders count in 32 bits."""
    number, kind = op.operands[0], op.results[0].type
    if not isinstance(kind, mlir.IntegerType) or kind.width >= 32:
        return
    with mlir.InsertionPoint(op):
        wide = emit.value("arith.extui", [number], mlir.IntegerType.get_signless(32))
        value = emit.value("arith.trunci", [emit.same_type("math.ctpop", wide)], kind)
    op.results[0].replace_all_uses_with(value)
    op.erase()


def element(vector: mlir.Value, lane: int) -> mlir.Value:
    """A lane of a vector, without making the vector where it is made of elements."""
    owner = vector.owner
    if not isinstance(owner, mlir.Block) and owner.name == "vector.from_elements":
        return owner.operands[lane]
    position = mlir.DenseI64ArrayAttr.get([lane])
    return emit.value("vector.extract", [vector], mlir.VectorType(vector.type).element_type, static_position=position)


def finite(op: mlir.Operation) -> None:
    """An infinite or NaN constant is made of bits; they come from a thread number, or they would be folded again."""
    kind = op.results[0].type
    if not isinstance(kind, (mlir.F32Type, mlir.F64Type)) or math.isfinite(op.attributes["value"].value):
        return
    wide = isinstance(kind, mlir.F64Type)
    number = op.attributes["value"].value
    bits = struct.unpack("<q" if wide else "<i", struct.pack("<d" if wide else "<f", number))[0]
    integer = mlir.IntegerType.get_signless(64 if wide else 32)
    with mlir.InsertionPoint(op):
        dimension = mlir.Attribute.parse("#gpu<dim x>")
        thread = emit.value("gpu.thread_id", (), mlir.IndexType.get(), dimension=dimension)
        thread = emit.value("arith.index_cast", [thread], integer)
        nothing = emit.same_type("arith.shrui", thread, emit.number(integer, 16))  # blocks have at most 1024 threads
        made = emit.same_type("arith.ori", nothing, emit.number(integer, bits))
        op.results[0].replace_all_uses_with(emit.value("arith.bitcast", [made], kind))
    op.erase()


def keep_roundings(function: mlir.Operation) -> None:
    """Hide sums that are summed again: drivers may take `(a + b) - b` for `a`, and shaders cannot forbid it.

    A sum goes through `bits | 0`, with a zero that nobody can know before the launch.
    """
    zeros: dict[mlir.Type, mlir.Value] = {}
    start = mlir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
    for op in [op for op in operations(function) if op.name in _ROUNDED]:
        result = op.results[0]
        if not isinstance(result.type, (mlir.F32Type, mlir.F64Type)):
            continue
        uses = [use for use in result.uses if use.owner.name in _ROUNDED[op.name]]
        if not uses:
            continue
        integer = mlir.IntegerType.get_signless(32 if isinstance(result.type, mlir.F32Type) else 64)
        if integer not in zeros:
            with start:
                dimension = mlir.Attribute.parse("#gpu<dim x>")
                blocks = emit.value("gpu.grid_dim", (), mlir.IndexType.get(), dimension=dimension)
                blocks = emit.value("arith.index_cast", [blocks], integer)
                zeros[integer] = emit.same_type("arith.shrui", blocks, emit.number(integer, 20))
        with op.location, mlir.InsertionPoint.after(op):
            bits = emit.value("arith.bitcast", [result], integer)
            kept = emit.value("arith.bitcast", [emit.same_type("arith.ori", bits, zeros[integer])], result.type)
        for user, number in [(use.owner.operation, use.operand_number) for use in uses]:
            user.operands[number] = kept


def by_bits(op: mlir.Operation) -> None:
    """`absf` and `copysign` of f64, which do not convert, by the sign bit."""
    if not isinstance(op.results[0].type, mlir.F64Type):
        return
    integer, sign = mlir.IntegerType.get_signless(64), 1 << 63
    with mlir.InsertionPoint(op):
        bits = [emit.value("arith.bitcast", [operand], integer) for operand in op.operands]
        result = emit.same_type("arith.andi", bits[0], emit.number(integer, sign - 1))
        if op.name == "math.copysign":
            other = emit.same_type("arith.andi", bits[1], emit.number(integer, -sign))
            result = emit.same_type("arith.ori", result, other)
        op.results[0].replace_all_uses_with(emit.value("arith.bitcast", [result], op.results[0].type))
    op.erase()


def by_adding(op: mlir.Operation) -> None:
    """Roundings of f64 to whole numbers, which do not convert: 1.5 * 2^52 is added and taken away."""
    kind = op.results[0].type
    if not isinstance(kind, mlir.F64Type):
        return
    with mlir.InsertionPoint(op):
        (x,) = op.operands
        bits = emit.value("arith.bitcast", [x], mlir.IntegerType.get_signless(64))
        magnitude = emit.same_type("arith.andi", bits, emit.number(bits.type, (1 << 63) - 1))
        sign = emit.same_type("arith.xori", bits, magnitude)
        magnitude = emit.value("arith.bitcast", [magnitude], kind)
        start = magnitude if op.name in ("math.trunc", "math.roundeven") else x
        large = emit.number(kind, 1.5 * 2.0**52)
        near = emit.same_type("arith.subf", emit.same_type("arith.addf", start, large), large)
        one = emit.number(kind, 1.0)
        if op.name in ("math.trunc", "math.floor"):
            beyond = emit.compare("ogt", near, start)
            near = emit.same_type("arith.select", beyond, emit.same_type("arith.subf", near, one), near)
        elif op.name == "math.ceil":
            beyond = emit.compare("olt", near, start)
            near = emit.same_type("arith.select", beyond, emit.same_type("arith.addf", near, one), near)
        if start is magnitude:
            near = emit.value("arith.bitcast", [near], bits.type)
            near = emit.value("arith.bitcast", [emit.same_type("arith.ori", near, sign)], kind)
        small = emit.compare("olt", magnitude, emit.number(kind, 2.0**51))
        op.results[0].replace_all_uses_with(emit.same_type("arith.select", small, near, x))
    op.erase()


_REWRITES = (
    (("math.roundeven", "math.trunc", "math.floor", "math.ceil"), by_adding),
    (("vector.load", "vector.store"), one_by_one),
    (("arith.constant",), finite),
    (("math.absf", "math.copysign"), by_bits),
    (("arith.cmpf",), ordered),
    (("arith.extsi",), extended),
    (("math.absi",), magnitude),
    (("math.ctpop",), counted),
)


def as_bits(kernels: mlir.Operation) -> None:
    """f16 and bf16 become i16 everywhere."""
    for op in list(operations(kernels)):
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_type(bits_type(argument.type))
        if op.name == "arith.constant" and str(op.results[0].type) in _SMALL:
            with op.location, mlir.InsertionPoint(op):
                integer = mlir.IntegerType.get_signless(16)
                op.results[0].replace_all_uses_with(emit.number(integer, small_bits(op.attributes["value"])))
            op.erase()
            continue
        if op.name == "arith.bitcast" and {"i16"} | set(_SMALL) >= {str(v.type) for v in (*op.operands, *op.results)}:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
            continue
        for result in op.results:
            result.set_type(bits_type(result.type))
        if op.name == "gpu.func":
            kinds = [argument.type for argument in op.regions[0].blocks[0].arguments]
            op.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(kinds, []))


def small_bits(attribute: mlir.Attribute) -> int:
    """The bits of an f16 or bf16 constant, as a signed number."""
    number = attribute.value
    if str(attribute.type) == "f16":
        return int(struct.unpack("<h", struct.pack("<e", number))[0])
    return int(struct.unpack("<i", struct.pack("<f", number))[0]) >> 16


def bits_type(kind: mlir.Type) -> mlir.Type:
    """The type with i16 in the place of f16 and bf16."""
    integer = mlir.IntegerType.get_signless(16)
    if str(kind) in _SMALL:
        return integer
    if isinstance(kind, mlir.MemRefType) and str(kind.element_type) in _SMALL:
        return mlir.MemRefType.get(kind.shape, integer, kind.layout, kind.memory_space)
    if isinstance(kind, mlir.VectorType) and str(kind.element_type) in _SMALL:
        return mlir.VectorType.get(kind.shape, integer)
    return kind


def storage(op: mlir.Operation) -> None:
    """The storage classes of shared and of private arrays."""
    if op.name == "memref.alloc":
        set_space(op.results[0], "Workgroup")
    elif op.name == "memref.alloca":
        set_space(op.results[0], "Function")


def set_space(memory: mlir.Value, name: str) -> None:
    kind = memory.type
    space = mlir.Attribute.parse(f"#spirv.storage_class<{name}>")
    memory.set_type(mlir.MemRefType.get(kind.shape, kind.element_type, kind.layout, space))


def entry_point(function: mlir.Operation) -> None:
    """The size of a block stands in the shader."""
    size = list(function.attributes["known_block_size"])
    function.attributes["spirv.entry_point_abi"] = mlir.Attribute.parse(
        f"#spirv.entry_point_abi<workgroup_size = {size}>"
    )


def target_environment(kernels: mlir.Operation) -> mlir.Attribute:
    """SPIR-V 1.3 with the capabilities that the kernels need."""
    capabilities, extensions = {"Shader": None}, {"SPV_KHR_storage_buffer_storage_class": None}
    for op in operations(kernels):
        names = [op.name, *(scalar_of(v.type) for v in (*op.operands, *op.results))]
        if op.name == "memref.atomic_rmw" and isinstance(op.results[0].type, mlir.F32Type):
            names.append("atomic")
            extensions["SPV_EXT_shader_atomic_float_add"] = None
        for name in names:
            capabilities.update(dict.fromkeys(_CAPABILITIES.get(name, ())))
    listed = f"[{', '.join(capabilities)}], [{', '.join(extensions)}]"
    return mlir.Attribute.parse(f"#spirv.target_env<#spirv.vce<v1.3, {listed}>, #spirv.resource_limits<>>")


def scalar_of(kind: mlir.Type) -> str:
    """The element type of a shaped type, as text."""
    return str(kind.element_type) if isinstance(kind, (mlir.MemRefType, mlir.VectorType)) else str(kind)


def cast_launches(module: mlir.Operation) -> None:
    """Launches give buffers of the types that the kernels have now."""
    functions = {}
    for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
        for op in kernel_functions(kernels):
            functions[f"@{kernels.attributes['sym_name'].value}::@{op.attributes['sym_name'].value}"] = op
    for launch in [op for op in operations(module) if op.name == "gpu.launch_func"]:
        wanted = [a.type for a in functions[str(launch.attributes["kernel"])].regions[0].blocks[0].arguments]
        first = len(launch.operands) - len(wanted)
        with launch.location, mlir.InsertionPoint(launch):
            for number, kind in enumerate(wanted):
                operand = launch.operands[first + number]
                if operand.type != kind:
                    cast = emit.value("builtin.unrealized_conversion_cast", [operand], kind)
                    launch.operands[first + number] = cast
