"""Align loops: the iterations of a loop before the first whole line that it stores, and after the last, are peeled.

Before:
    scf.for %i = %c0 to %c4000 step %c1 {
      %a = memref.load %x[%i] : memref<4000xf32>
      %b = arith.mulf %a, %k : f32
      memref.store %b, %x[%i] : memref<4000xf32>
    }
After:
    %address = memref.extract_aligned_pointer_as_index %x : memref<4000xf32> -> index
    ...
    %head = ...                                              // the number of elements before the first whole line
    %end = ...                                               // the end of the last one
    scf.for %i = %c0 to %head step %c1 {
      ...
    } {llvm.loop_annotation = #llvm.loop_annotation<vectorize = <predicateEnable = true>, ...>}
    scf.for %i = %head to %end step %c1 {
      ...
    }
    scf.for %i = %end to %c4000 step %c1 {
      ...
    } {llvm.loop_annotation = #llvm.loop_annotation<vectorize = <predicateEnable = true>, ...>}

NumPy's large arrays start 16 bytes after the start of a line of 64, so that each vector of 64 bytes is in two lines,
and each load and store accesses the first-level cache twice. The arrays of a caller are mostly misaligned alike: what
aligns the stores aligns the loads, too. LLVM makes one masked vector of each of the peeled loops.

Only arrays of the caller, into which a program stores its results in place, are not aligned by allocation. A loop that
carries values, as a sum, has the same order of iterations with any arrays, and is left. Those that compute more than
they load and store gain nothing; how long the others have to be for a gain was measured on a processor with vectors of
64 bytes (Zen 4, rows of 16 to 1,024 vectors). Normalised rows of 64 vectors take 0.7 of their time.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from mlirml.analysis.affine import flat_index
from mlirml.analysis.constants import constant_of
from mlirml.analysis.cost import element_bytes, vector_cycles
from mlirml.analysis.memory import array_of, memory_of
from mlirml.analysis.trip_counts import trip_count
from mlirml.codegen.cpu.nest import is_contiguous
from mlirml.core.affine import Linear
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, main_function, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.memref.annotate_loops import ANNOTATION, stores_what_it_loads
from mlirml.pipelines.memref.invariants import Invariants
from mlirml.pipelines.memref.nontemporal.build import address, after, whole_lines
from mlirml.pipelines.memref.nontemporal.match import LINE_BYTES
from mlirml.targets.machine import Processor

_STREAMS, _FACTOR = 4, 4
"""Loops that access fewer arrays have to be longer by a factor."""
_COMPUTED = 2.0
"""The cycles of arithmetic for each access above which a loop waits for it."""
_ACCESSES = ("memref.load", "memref.store")
_MASKED = "#llvm.loop_annotation<vectorize = <predicateEnable = true>, interleave = <count = 1 : i32>>"
_PLAIN = ("arith.", "math.", *_ACCESSES)


@register(when=("memref.store",), optional=True)
class AlignLoopsPass(Pass):
    """Peel what innermost loops store before the first whole line of an array of the caller, and after the last.

    `vectors`: the fewest vectors of a loop that accesses several arrays.
    """

    processor: Processor = Processor()
    vectors: int = 64

    def run(self, module: mlir.Operation) -> None:
        if self.processor.vector_bits < 8 * LINE_BYTES:
            return
        main = main_function(module)
        arrays = stored_arguments(main)
        if not arrays:
            return
        for loop in named_operations(main, ("scf.for",)):
            with suppress(NoMatch):
                peel(loop, *match_loop(loop, arrays, self.vectors))


def stored_arguments(main: mlir.Operation) -> list[mlir.Value]:
    """The parameters of results that lie in the arrays of the caller."""
    if "mlirml.in_place" not in main.attributes:
        return []
    first = len(mlir.ArrayAttr(main.attributes["mlirml.inputs"]))
    arguments = list(main.regions[0].blocks[0].arguments)
    return [arguments[first + number] for number in mlir.DenseI64ArrayAttr(main.attributes["mlirml.in_place"])]


def match_loop(loop: mlir.Operation, arrays: Collection[mlir.Value], vectors: int) -> tuple[mlir.Value, Linear]:
    """The array that a loop stores into element by element, and the index of the element; else raises `NoMatch`."""
    block = loop.regions[0].blocks[0]
    *ops, end = block_ops(block)
    if end.operands or ANNOTATION in loop.attributes:
        raise NoMatch("it carries values, or has a schedule")
    if any(op.regions or not op.name.startswith(_PLAIN) for op in ops):
        raise NoMatch("not an innermost loop of scalars")
    if stores_what_it_loads(ops):
        raise NoMatch("LLVM does not vectorise it")
    streams: dict[mlir.Value, list[mlir.Operation]] = {}
    for op in ops:
        if op.name in _ACCESSES and block.arguments[0] in index_of_access(op).factors:
            streams.setdefault(memory_of(op), []).append(op)
    accesses = sum(map(len, streams.values()))
    if sum(vector_cycles(op.name) for op in ops if op.name not in _ACCESSES) > _COMPUTED * accesses:
        raise NoMatch("it computes more than it accesses")
    stores = [op for op in ops if op.name == "memref.store"]
    if not all(block.arguments[0] in index_of_access(op).factors for op in stores):
        raise NoMatch("it stores into one element")
    store = next((op for op in stores if array_of(memory_of(op)) in arrays), None)
    if store is None or not is_contiguous(memory_of(store).type):
        raise NoMatch("it stores no results in place")
    size, count = element_bytes(memory_of(store).type.element_type), trip_count(loop)
    least = vectors if accesses >= _STREAMS else vectors * _FACTOR
    if size not in (4, 8) or count is None or count * size < least * LINE_BYTES:
        raise NoMatch("short, or of narrow elements")
    index, others = index_of_access(store), Invariants(loop)
    if index.factors[block.arguments[0]] != 1 or constant_of(loop.operands[2]) != 1:
        raise NoMatch("its stores do not follow each other")
    if not all(others.has(value) for value in index.factors if value != block.arguments[0]):
        raise NoMatch("its index depends on the iteration in another way")
    return memory_of(store), index


def index_of_access(access: mlir.Operation) -> Linear:
    """The row-major index of the element of a load or a store, in its memref."""
    indices = list(access.operands)[1 + (access.name == "memref.store") :]
    return flat_index(indices, memory_of(access).type.shape)


def peel(loop: mlir.Operation, array: mlir.Value, index: Linear) -> None:
    """Split a loop where the first whole line of the array starts, and where the last one ends."""
    variable = loop.regions[0].blocks[0].arguments[0]
    size = element_bytes(array.type.element_type)
    lower, upper = list(loop.operands)[:2]
    invariants, first = Invariants(loop), Linear(index.constant)
    for value, factor in index.factors.items():
        first += Linear.of(lower if value == variable else invariants.hoist(value)) * factor
    with loop.location, mlir.InsertionPoint(loop):
        start, end = whole_lines(address(array, first), size, lower, upper)
        copy_masked(loop, lower, start)
        with after(loop):
            copy_masked(loop, end, upper)
    loop.operands[0], loop.operands[1] = start, end


def copy_masked(loop: mlir.Operation, lower: mlir.Value, upper: mlir.Value) -> None:
    """Clone a loop for other bounds, fewer iterations than a vector has lanes.

    LLVM chooses the width itself: it prints a remark where it does not vectorise a loop with a width in its annotation.
    """
    block = loop.regions[0].blocks[0]
    copy = emit.create("scf.for", [lower, upper, loop.operands[2]], regions=1)
    with mlir.InsertionPoint(emit.block(copy, [mlir.IndexType.get()])):
        values = {block.arguments[0]: copy.regions[0].blocks[0].arguments[0]}
        for op in block_ops(block):
            clone_with(op, values)
    copy.attributes[ANNOTATION] = mlir.Attribute.parse(_MASKED)
