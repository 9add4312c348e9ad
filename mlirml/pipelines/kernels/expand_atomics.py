"""Expand atomics: atomic operations that a device lacks become loops of exchanges, which every device has.

Before:
    %old = memref.atomic_rmw addf %v, %m[%i] : (f32, memref<8xf32>) -> f32      // nobody reads %old
After, with the memory as 32-bit words:
    %none = arith.constant 0x80000000 : i32                     // -0.0, which changes no sum
    scf.while (%held = bits of %v) {
      %taken = memref.atomic_rmw assign %none, %m[%i] : (i32, memref<8xi32>) -> i32
      %sum = bits of (%taken + %held)
      %left = memref.atomic_rmw assign %sum, %m[%i] : (i32, memref<8xi32>) -> i32
      %more = arith.cmpi ne, %left, %none : i32
      scf.condition(%more) %left
    } do { scf.yield }

A thread takes the stored value and leaves the neutral element instead; then it stores the combination. The value
that this exchange returns was stored by other threads in between: the thread combines that too, until it gets the
neutral element. So no update is lost, whatever the order of threads. A compare-and-swap loop would need one operation
instead of two, but the compiler of WebGPU (naga, up to its version 29) fails on its result in SPIR-V.

Elements below 32 bits share a word with others, which are combined with their neutral element.
"""

from __future__ import annotations

import math
import struct

from mlirml.dialects.atomics import KINDS, OPERATION_OF, kind_of
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, operations
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import Pass, register

_FORMATS = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


@register
class ExpandAtomicsPass(Pass):
    """Expand atomic operations of kernels into loops of exchanges, except for the operations in `native`.

    The native ones work on elements of 32 or 64 bits only, unless `small` is set.
    """

    native: tuple[str, ...] = ()
    small: bool = False

    def run(self, module: mlir.Operation) -> None:
        for kernels in [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]:
            for function in [op for op in block_ops(kernels.regions[0].blocks[0]) if op.name == "gpu.func"]:
                found = [op for op in operations(function) if op.name == "memref.atomic_rmw" and self.lacks(op)]
                memories = list(dict.fromkeys(op.operands[1] for op in found))
                for op in found:
                    with op.location:
                        expand_to_exchanges(op)
                for memory in memories:
                    view_as_words(memory)
                if memories:
                    types = [argument.type for argument in function.regions[0].blocks[0].arguments]
                    function.attributes["function_type"] = mlir.TypeAttr.get(
                        mlir.FunctionType.get(types, [], module.context)
                    )

    def lacks(self, op: mlir.Operation) -> bool:
        """True if an operation has to be expanded."""
        operation = kind_of(op)
        own = operation in self.native and (self.small or bits_of(op.operands[0].type) >= 32)
        return not own and operation != "assign" and not any(True for _ in op.results[0].uses)


def bits_of(element: mlir.Type) -> int:
    """The width of an element."""
    return int(element.width)


def words_of(element: mlir.Type) -> mlir.Type:
    """The integer type by which memory of these elements is exchanged."""
    return mlir.IntegerType.get_signless(max(bits_of(element), 32), element.context)


def neutral(operation: str, element: mlir.Type) -> int:
    """The bits of the neutral element of an operation."""
    bits = bits_of(element)
    combiner = COMBINERS[OPERATION_OF[operation]]
    number = math.nan if combiner.ignores_nan else combiner.identity(bits)
    if combiner.is_float:
        if str(element) == "bf16":
            return int(struct.unpack("<I", struct.pack("<f", number))[0]) >> 16
        given, taken = _FORMATS[str(element)]
        return int(struct.unpack(taken, struct.pack(given, number))[0])
    return int(number) & ((1 << bits) - 1)


def signed(number: int, bits: int) -> int:
    """The signed integer with these bits."""
    return number - (1 << bits) if number >> bits - 1 else number


def expand_to_exchanges(op: mlir.Operation) -> None:
    """Replace an operation by the loop."""
    operation, (value, memory, index) = kind_of(op), op.operands
    element, word = value.type, words_of(value.type)
    bits, whole = bits_of(element), word.width
    lanes = whole // bits
    one = neutral(operation, element)
    nothing = sum(one << bits * lane for lane in range(lanes))
    with mlir.InsertionPoint(op):
        none = emit.number(word, signed(nothing, whole))
        held = as_integer(value, word)
        if lanes > 1:
            count = emit.index(lanes)
            lane = emit.same_type("arith.remui", index, count)
            index = emit.same_type("arith.divui", index, count)
            shift = emit.same_type(
                "arith.muli", emit.value("arith.index_cast", [lane], word), emit.number(word, bits)
            )  # fmt: skip
            other = emit.same_type("arith.xori", held, emit.number(word, one))
            held = emit.same_type("arith.xori", none, emit.same_type("arith.shli", other, shift))
        loop = emit.create("scf.while", [held], [word], regions=2)
        before = emit.block(loop, [word])
        with mlir.InsertionPoint(before):
            taken = exchange(none, memory, index)
            new = combined_words(operation, element, taken, before.arguments[0])
            left = exchange(new, memory, index)
            emit.create("scf.condition", [emit.compare("ne", left, none), left])
        after = emit.block(loop, [word], 1)
        with mlir.InsertionPoint(after):
            emit.create("scf.yield", [after.arguments[0]])
    op.erase()


def exchange(value: mlir.Value, memory: mlir.Value, index: mlir.Value) -> mlir.Value:
    """Store a word atomically; returns the old one."""
    return emit.value("memref.atomic_rmw", [value, memory, index], value.type, kind=emit.i64(KINDS.index("assign")))


def combined_words(operation: str, element: mlir.Type, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """Two words, combined element by element."""
    name = OPERATION_OF[operation]
    word, bits = a.type, bits_of(element)
    if bits == word.width:
        return as_integer(emit.same_type(name, as_element(a, element), as_element(b, element)), word)
    result = None
    for lane in range(word.width // bits):
        parts = [lane_of(x, lane, element, is_signed=operation in ("maxs", "mins")) for x in (a, b)]
        new = as_integer(emit.same_type(name, *parts), word)
        if new.type == parts[0].type:  # an integer, computed in a word
            new = emit.same_type("arith.andi", new, emit.number(word, (1 << bits) - 1))
        if lane:
            new = emit.same_type("arith.shli", new, emit.number(word, lane * bits))
        result = new if result is None else emit.same_type("arith.ori", result, new)
    assert result is not None
    return result


def lane_of(word: mlir.Value, lane: int, element: mlir.Type, is_signed: bool) -> mlir.Value:
    """An element of a word: a float, or an integer of the word's type."""
    whole, bits = word.type.width, bits_of(element)
    if isinstance(element, mlir.IntegerType):
        up = emit.number(word.type, whole - bits * (lane + 1))
        down = emit.number(word.type, whole - bits)
        name = "arith.shrsi" if is_signed else "arith.shrui"
        return emit.same_type(name, emit.same_type("arith.shli", word, up), down)
    low = emit.same_type("arith.shrui", word, emit.number(word.type, lane * bits)) if lane else word
    return as_element(emit.value("arith.trunci", [low], mlir.IntegerType.get_signless(bits)), element)


def as_element(integer: mlir.Value, element: mlir.Type) -> mlir.Value:
    """The element with the bits of an integer."""
    return integer if integer.type == element else emit.value("arith.bitcast", [integer], element)


def as_integer(value: mlir.Value, word: mlir.Type) -> mlir.Value:
    """The bits of an element, in the low bits of a word."""
    bits = bits_of(value.type)
    if isinstance(value.type, mlir.FloatType):
        value = emit.value("arith.bitcast", [value], mlir.IntegerType.get_signless(bits))
    return value if bits == word.width else emit.value("arith.extui", [value], word)


def view_as_words(memory: mlir.Value) -> None:
    """Retype an argument as memory of words: the memref that is passed has no type at run time."""
    kind = mlir.MemRefType(memory.type)
    word = words_of(kind.element_type)
    if kind.element_type == word:
        return
    (size,) = kind.shape
    words = -(-size * bits_of(kind.element_type) // word.width)
    others = [use.owner for use in memory.uses if use.owner.name != "memref.atomic_rmw"]
    assert not others, "memory that is combined atomically is read or written in another way too"
    memory.set_type(mlir.MemRefType.get([words], word))
