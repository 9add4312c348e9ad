"""Prepare SPIR-V: kernels are rewritten to the forms that `convert-gpu-to-spirv` and shader compilers accept.

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

The pass runs after `mlirml-inline-library`: f16 and bf16 are left as bits only, which are loaded as i16. The types and
operations of a kernel, such as f64 or subgroups, determine the capabilities that the module declares.
"""

from __future__ import annotations

import math
import struct

from mlirml.analysis.constants import float_of
from mlirml.analysis.traits import INDEX_CASTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
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
"""The operations whose rounding must be preserved, with the users before which it must be."""


@register
class PrepareSpirvPass(Pass):
    """Rewrite gpu.modules to the form that converts to SPIR-V."""

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for names, rewrite in _REWRITES:
                for op in [op for op in operations(kernels) if op.name in names]:
                    with op.location:
                        rewrite(op)
            convert_small_floats(kernels)
            for function in kernel_functions(kernels):
                with function.location:
                    keep_roundings(function)
            for op in operations(kernels):
                set_storage_class(op)
            for op in kernel_functions(kernels):
                set_entry_point(op)
            environment = target_environment(kernels)
            kernels.attributes["targets"] = mlir.ArrayAttr.get([environment])
            kernels.attributes["spirv.target_env"] = environment  # read by `convert-math-to-spirv`
            cast_launches(module)


def kernel_functions(kernels: mlir.Operation) -> list[mlir.Operation]:
    return [op for op in block_ops(kernels.regions[0].blocks[0]) if op.name == "gpu.func"]


def scalarize_access(op: mlir.Operation) -> None:
    """Replace a load or store of a vector by those of its lanes: buffers have one element type in a shader."""
    with mlir.InsertionPoint(op):
        store = op.name == "vector.store"
        vector = op.operands[0] if store else op.results[0]
        memory, *outer, index = list(op.operands)[1:] if store else list(op.operands)
        kind = mlir.VectorType(vector.type).element_type
        indices = [index]
        for lane in range(1, mlir.VectorType(vector.type).shape[0]):
            indices.append(emit.same_type("arith.addi", index, emit.index(lane)))
        if store:
            for lane, lane_index in enumerate(indices):
                emit.create("memref.store", [element(vector, lane), memory, *outer, lane_index])
            op.erase()
            owner = defining_op(vector)
            if owner is not None and owner.name in _MADE_OF_ELEMENTS and not any(True for _ in vector.uses):
                owner.erase()
            return
        values = [emit.value("memref.load", [memory, *outer, lane_index], kind) for lane_index in indices]
        for use in [use.owner.operation for use in vector.uses]:
            if use.name == "vector.extract":
                replace_op(use, values[use.attributes["static_position"][0]])
        if any(True for _ in vector.uses):
            whole = emit.value("vector.from_elements", values, vector.type)
            vector.replace_all_uses_with(whole)
    op.erase()


_OPPOSITES = {8: 6, 9: 5, 10: 4, 11: 3, 12: 2, 13: 1, 14: 7}
"""The ordered comparison that is false exactly if an unordered one is true."""


def lower_unordered_comparison(op: mlir.Operation) -> None:
    """Replace a comparison that is true for NaNs by the negation of an ordered one: shaders have only ordered ones."""
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
    replace_op(op, value)


def lower_extsi(op: mlir.Operation) -> None:
    """Extend a signed 32-bit integer to 64 bits by a form that drivers do not mistake for a zero extension.

    Mesa 22 compares sign-extended values with constants as if they were zero-extended. An index has 32 bits, too.
    """
    source, kind = op.operands[0], op.results[0].type
    is_index = isinstance(source.type, mlir.IndexType)
    if not isinstance(kind, mlir.IntegerType) or (32 if is_index else source.type.width, kind.width) != (32, 64):
        return
    with mlir.InsertionPoint(op):
        if is_index:
            source = emit.value("arith.index_cast", [source], mlir.IntegerType.get_signless(32))
        sign = emit.number(kind, 1 << 31)
        flipped = emit.same_type("arith.xori", emit.value("arith.extui", [source], kind), sign)
        value = emit.same_type("arith.subi", flipped, sign)
    replace_op(op, value)


def lower_absi(op: mlir.Operation) -> None:
    """Replace an absolute value of integers by arithmetic where shaders have no function."""
    number, kind = op.operands[0], op.results[0].type
    if not isinstance(kind, mlir.IntegerType) or kind.width == 32:
        return
    with mlir.InsertionPoint(op):
        zero = emit.zero(kind)
        negative = emit.compare("slt", number, zero)
        value = emit.same_type("arith.select", negative, emit.same_type("arith.subi", zero, number), number)
    replace_op(op, value)


def lower_ctpop(op: mlir.Operation) -> None:
    """Count the set bits of a small integer in 32 bits, as shaders do."""
    number, kind = op.operands[0], op.results[0].type
    if not isinstance(kind, mlir.IntegerType) or kind.width >= 32:
        return
    with mlir.InsertionPoint(op):
        wide = emit.value("arith.extui", [number], mlir.IntegerType.get_signless(32))
        value = emit.value("arith.trunci", [emit.same_type("math.ctpop", wide)], kind)
    replace_op(op, value)


_MADE_OF_ELEMENTS = ("vector.from_elements", "vector.broadcast", "arith.constant")


def element(vector: mlir.Value, lane: int) -> mlir.Value:
    """A lane of a vector; the element itself if the vector is made of elements."""
    owner = defining_op(vector)
    if owner is not None and owner.name == "vector.from_elements":
        return owner.operands[lane]
    if (
        owner is not None
        and owner.name == "vector.broadcast"
        and not isinstance(owner.operands[0].type, mlir.VectorType)
    ):
        return owner.operands[0]
    if owner is not None and owner.name == "arith.constant":
        dense = mlir.DenseElementsAttr(owner.attributes["value"])
        if dense.is_splat:
            return emit.constant(dense.get_splat_value())
    position = mlir.DenseI64ArrayAttr.get([lane])
    return emit.value("vector.extract", [vector], mlir.VectorType(vector.type).element_type, static_position=position)


def hide_non_finite(op: mlir.Operation) -> None:
    """Replace infinite and NaN constants by bits that depend on the thread index, so that they are not folded back."""
    dtype = op.results[0].type
    element = dtype.element_type if isinstance(dtype, mlir.VectorType) else dtype
    if not isinstance(element, (mlir.F32Type, mlir.F64Type)):
        return
    attribute = op.attributes["value"]
    numbers = list(attribute) if isinstance(dtype, mlir.VectorType) else [attribute.value]
    if all(map(math.isfinite, numbers)):
        return
    with mlir.InsertionPoint(op):
        values = [emit.number(element, x) if math.isfinite(x) else hidden(element, x) for x in numbers]
        made = emit.value("vector.from_elements", values, dtype) if isinstance(dtype, mlir.VectorType) else values[0]
        op.results[0].replace_all_uses_with(made)
    op.erase()


def hidden(dtype: mlir.Type, number: float) -> mlir.Value:
    """A number whose bits depend on the thread index, for the compiler of the shader."""
    wide = isinstance(dtype, mlir.F64Type)
    bits = struct.unpack("<q" if wide else "<i", struct.pack("<d" if wide else "<f", number))[0]
    integer = mlir.IntegerType.get_signless(64 if wide else 32)
    dimension = mlir.Attribute.parse("#gpu<dim x>")
    thread = emit.value("gpu.thread_id", (), mlir.IndexType.get(), dimension=dimension)
    thread = emit.value("arith.index_cast", [thread], integer)
    nothing = emit.same_type("arith.shrui", thread, emit.number(integer, 16))  # blocks have at most 1024 threads
    return emit.value("arith.bitcast", [emit.same_type("arith.ori", nothing, emit.number(integer, bits))], dtype)


def keep_roundings(function: mlir.Operation) -> None:
    """Hide operands of sums and products that drivers would simplify, as shaders cannot forbid it.

    Sums that are operands of sums: `(a + b) - b` would be `a`. One side of `a - a`, and constant zeros: `0 * a` would
    be 0 for infinities and NaN, too, and `a + 0` the negative zero for one. Such an operand goes through `bits | 0`,
    with a zero that the driver cannot know.
    """
    zeros: dict[mlir.Type, mlir.Value] = {}
    start = mlir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])

    def hidden_bits(value: mlir.Value) -> mlir.Value:
        integer = mlir.IntegerType.get_signless(32 if isinstance(value.type, mlir.F32Type) else 64)
        if integer not in zeros:
            with start:
                dimension = mlir.Attribute.parse("#gpu<dim x>")
                blocks = emit.value("gpu.grid_dim", (), mlir.IndexType.get(), dimension=dimension)
                blocks = emit.value("arith.index_cast", [blocks], integer)
                zeros[integer] = emit.same_type("arith.shrui", blocks, emit.number(integer, 20))
        bits = emit.value("arith.bitcast", [value], integer)
        return emit.value("arith.bitcast", [emit.same_type("arith.ori", bits, zeros[integer])], value.type)

    for op in [op for op in operations(function) if op.name in _ROUNDED]:
        result = op.results[0]
        if not isinstance(result.type, (mlir.F32Type, mlir.F64Type)):
            continue
        uses = [use for use in result.uses if use.owner.name in _ROUNDED[op.name]]
        if uses:
            with op.location, mlir.InsertionPoint.after(op):
                kept = hidden_bits(result)
            for user, number in [(use.owner.operation, use.operand_number) for use in uses]:
                user.operands[number] = kept
        for number in simplified_operands(op):
            with op.location, mlir.InsertionPoint(op):
                op.operands[number] = hidden_bits(op.operands[number])


def simplified_operands(op: mlir.Operation) -> list[int]:
    """The operands to hide of `a - a`, and zeros."""
    left, right = op.operands
    if op.name == "arith.subf" and left == right:
        return [1]
    return [n for n, value in enumerate((left, right)) if float_of(value) == 0]


_UNSIGNED = (
    "arith.divui", "arith.remui", "arith.shrui", "arith.maxui", "arith.minui", "arith.uitofp", "arith.index_castui",
)  # fmt: skip
_SIGNED = (
    "arith.divsi", "arith.remsi", "arith.shrsi", "arith.maxsi", "arith.minsi", "arith.sitofp", "arith.index_cast",
)  # fmt: skip
_OF_SIGNS = (2, 3, 4, 5)
"""The comparisons of signed integers."""


def widen_narrow_integers(op: mlir.Operation) -> None:
    """Compute with 32 bits what depends on more than the low bits of narrow integers.

    Shaders have these as 32-bit integers, whose high bits are those of a sign, or of an overflow.
    """
    kind = op.operands[0].type
    if not isinstance(kind, mlir.IntegerType) or not 1 < kind.width < 32:
        return
    signed = op.name in _SIGNED or (op.name == "arith.cmpi" and op.attributes["predicate"].value in _OF_SIGNS)
    word = mlir.IntegerType.get_signless(32)
    with mlir.InsertionPoint(op):
        wide = [emit.value("arith.extsi" if signed else "arith.extui", [operand], word) for operand in op.operands]
        if op.results[0].type == kind:
            result = emit.value("arith.trunci", [emit.same_type(op.name, *wide)], kind)
            replace_op(op, result)
            return
        if op.name in INDEX_CASTS:
            replace_op(op, emit.value("arith.index_cast", wide, op.results[0].type))
            return
        for position, operand in enumerate(wide):
            op.operands[position] = operand


def extend_twice(op: mlir.Operation) -> None:
    """Extend a narrow integer to 64 bits by way of 32."""
    narrow, wide = op.operands[0].type, op.results[0].type
    if not isinstance(narrow, mlir.IntegerType) or not 1 < narrow.width < 32 < wide.width:
        return
    word = mlir.IntegerType.get_signless(32)
    with mlir.InsertionPoint(op):
        middle = emit.value(op.name, [op.operands[0]], word)
        if op.name == "arith.extsi":
            op.operands[0] = middle
            return
        # Two extensions would become one, but for the operation between them.
        op.operands[0] = emit.same_type("arith.andi", middle, emit.number(word, (1 << narrow.width) - 1))


def lower_sign_operation(op: mlir.Operation) -> None:
    """Lower `absf` and `copysign` of f64, which do not convert, to operations on the sign bit."""
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


def lower_rounding(op: mlir.Operation) -> None:
    """Lower roundings of f64 to integers, which do not convert: 1.5 * 2^52 is added and subtracted."""
    kind = op.results[0].type
    if not isinstance(kind, mlir.F64Type):
        return
    with mlir.InsertionPoint(op):
        (x,) = op.operands
        bits = emit.value("arith.bitcast", [x], mlir.IntegerType.get_signless(64))
        lower_absi = emit.same_type("arith.andi", bits, emit.number(bits.type, (1 << 63) - 1))
        sign = emit.same_type("arith.xori", bits, lower_absi)
        lower_absi = emit.value("arith.bitcast", [lower_absi], kind)
        start = lower_absi if op.name in ("math.trunc", "math.roundeven") else x
        large = emit.number(kind, 1.5 * 2.0**52)
        near = emit.same_type("arith.subf", emit.same_type("arith.addf", start, large), large)
        one = emit.number(kind, 1.0)
        if op.name in ("math.trunc", "math.floor"):
            beyond = emit.compare("ogt", near, start)
            near = emit.same_type("arith.select", beyond, emit.same_type("arith.subf", near, one), near)
        elif op.name == "math.ceil":
            beyond = emit.compare("olt", near, start)
            near = emit.same_type("arith.select", beyond, emit.same_type("arith.addf", near, one), near)
        if start is lower_absi:
            near = emit.value("arith.bitcast", [near], bits.type)
            near = emit.value("arith.bitcast", [emit.same_type("arith.ori", near, sign)], kind)
        small = emit.compare("olt", lower_absi, emit.number(kind, 2.0**51))
        op.results[0].replace_all_uses_with(emit.same_type("arith.select", small, near, x))
    op.erase()


_REWRITES = (
    (("math.roundeven", "math.trunc", "math.floor", "math.ceil"), lower_rounding),
    (("vector.load", "vector.store"), scalarize_access),
    (("arith.constant",), hide_non_finite),
    (("math.absf", "math.copysign"), lower_sign_operation),
    (("arith.cmpf",), lower_unordered_comparison),
    ((*_UNSIGNED, *_SIGNED, "arith.cmpi"), widen_narrow_integers),
    (("arith.extui", "arith.extsi"), extend_twice),
    (("arith.extsi", "arith.index_cast"), lower_extsi),
    (("math.absi",), lower_absi),
    (("math.ctpop",), lower_ctpop),
)


def convert_small_floats(kernels: mlir.Operation) -> None:
    """Replace the types f16 and bf16 by i16."""
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
            replace_op(op, op.operands[0])
            continue
        for result in op.results:
            result.set_type(bits_type(result.type))
        if op.name == "gpu.func":
            types = [argument.type for argument in op.regions[0].blocks[0].arguments]
            op.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


def small_bits(attribute: mlir.Attribute) -> int:
    """The bits of an f16 or bf16 constant, as a signed integer."""
    number = attribute.value
    if str(attribute.type) == "f16":
        return int(struct.unpack("<h", struct.pack("<e", number))[0])
    return int(struct.unpack("<i", struct.pack("<f", number))[0]) >> 16


def bits_type(value_type: mlir.Type) -> mlir.Type:
    """The type with i16 instead of f16 and bf16."""
    integer = mlir.IntegerType.get_signless(16)
    if str(value_type) in _SMALL:
        return integer
    if isinstance(value_type, mlir.MemRefType) and str(value_type.element_type) in _SMALL:
        return mlir.MemRefType.get(value_type.shape, integer, value_type.layout, value_type.memory_space)
    if isinstance(value_type, mlir.VectorType) and str(value_type.element_type) in _SMALL:
        return mlir.VectorType.get(value_type.shape, integer)
    return value_type


def set_storage_class(op: mlir.Operation) -> None:
    """Set the storage classes of shared and of private arrays."""
    if op.name == "memref.alloc":
        set_space(op.results[0], "Workgroup")
    elif op.name == "memref.alloca":
        set_space(op.results[0], "Function")


def set_space(memory: mlir.Value, name: str) -> None:
    kind = memory.type
    space = mlir.Attribute.parse(f"#spirv.storage_class<{name}>")
    memory.set_type(mlir.MemRefType.get(kind.shape, kind.element_type, kind.layout, space))


def set_entry_point(function: mlir.Operation) -> None:
    """Set the SPIR-V entry point attribute with the size of a block."""
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


def scalar_of(value_type: mlir.Type) -> str:
    """The element type of a shaped type, as text."""
    is_shaped = isinstance(value_type, (mlir.MemRefType, mlir.VectorType))
    return str(value_type.element_type if is_shaped else value_type)


def cast_launches(module: mlir.Operation) -> None:
    """Cast the operands of launches to the new argument types of the kernels."""
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
