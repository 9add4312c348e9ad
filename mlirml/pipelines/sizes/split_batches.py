"""Split batches: operations on images of a batch of dynamic size become a loop over the images, whose sizes are static.

Before:
    %x = memref.view %arg0[%c0][%n] : memref<1xi8> to memref<?x8x16x16xf32>
    %t = memref.alloc(%n) : memref<?x8x16x16xf32>
    linalg.generic ins(%x) outs(%t) { arith.maximumf }
    linalg.fill ins(%low) outs(%y : memref<?x8x8x8xf32>)
    linalg.generic ins(%t, %window) outs(%y) { arith.maximumf }             // with subscripts 2 * i + k
After:
    %t = memref.alloc() : memref<1x8x16x16xf32>
    scf.for %b = %c0 to %n step %c1 {
      %x = memref.view %arg0[%b * 8192][] : memref<1xi8> to memref<1x8x16x16xf32>
      %y = memref.view %arg1[%b * 2048][] : memref<1xi8> to memref<1x8x8x8xf32>
      linalg.generic ins(%x) outs(%t) { arith.maximumf }
      linalg.fill ins(%low) outs(%y : memref<1x8x8x8xf32>)
      linalg.generic ins(%t, %window) outs(%y) { arith.maximumf }
    } {mlirml.images}

So they have the kernels of static sizes. Only runs of operations with a window that slides over the image are split.
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.memref_sizes import Factors, size_of
from mlirml.analysis.structured import indexing_maps, reductions_of
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_WINDOW
from mlirml.pipelines.sizes.subscripts import expression_uses

IMAGES = "mlirml.images"
_RESHAPES = ("memref.expand_shape", "memref.collapse_shape")
_VIEWS = ("memref.subview", *_RESHAPES)
_HARMLESS = ("memref.alloc", "memref.view", "memref.dim", "memref.get_global", *_VIEWS)
_BODIES = ("arith.", "math.", "linalg.yield", "linalg.index", "complex.")


@register(when=ANY_WINDOW)
class SplitBatchesPass(Pass):
    """Loop over the images of batches."""

    def run(self, module: mlir.Operation) -> None:
        for run in runs_of(main_function(module).regions[0].blocks[0]):
            if any(map(has_window, run)):
                Split(run).build()


def runs_of(block: mlir.Block) -> list[list[mlir.Operation]]:
    """Sequences of operations on images of the same batch, with nothing between them but views and allocations."""
    found: list[list[mlir.Operation]] = [[]]
    size: Factors | None = None
    for op in block_ops(block):
        if op.name in _HARMLESS or op.name.startswith("arith."):
            continue
        try:
            own = batch_of(op)
        except NoMatch:
            found.append([])
            continue
        if found[-1] and own != size:
            found.append([])
        found[-1].append(op)
        size = own
    return [run for run in found if run]


def batch_of(op: mlir.Operation) -> Factors:
    """The size of the batch whose images an operation computes one by one; raises `NoMatch` for another operation."""
    if op.name == "memref.copy":
        operands = list(op.operands)
        loops: list[tuple[mlir.Value, mlir.AffineMap | None]] = [(value, None) for value in operands]
    elif op.name.startswith("linalg.") and op.regions and not op.results and op.name not in CONTRACTIONS:
        check_body(op)
        loops = list(zip(op.operands, indexing_maps(op), strict=True))
    else:
        raise NoMatch("it is no structured operation")
    sizes = {image_count(value) for value, _ in loops if is_batch(value)}
    if len(sizes) != 1 or None in sizes or not is_batch(list(op.operands)[-1]):
        raise NoMatch("its arrays are no images of one batch")
    if op.name != "memref.copy":
        check_loop(op, loops)
    size = sizes.pop()
    assert size is not None
    return size


def check_loop(op: mlir.Operation, loops: Sequence[tuple[mlir.Value, mlir.AffineMap | None]]) -> None:
    """Raise `NoMatch` unless one parallel loop is the first subscript of all batches, and no other subscript."""
    firsts = {first_loop(map_) for value, map_ in loops if map_ is not None and is_batch(value)}
    loop = firsts.pop() if len(firsts) == 1 else None
    if loop is None or reductions_of(op)[loop]:
        raise NoMatch("no loop goes over the images")
    for value, map_ in loops:
        assert map_ is not None
        others = map_.results[1:] if is_batch(value) else map_.results
        if any(expression_uses(expression, loop) for expression in others):
            raise NoMatch("an image is used for another one")
    for inner in operations(op):
        if inner.name == "linalg.index" and int(inner.attributes["dim"].value) == loop:
            raise NoMatch("the number of the image is used")


def check_body(op: mlir.Operation) -> None:
    """Raise `NoMatch` for a body that accesses memory, and for several outputs of which one is no batch."""
    if not all(inner.name.startswith(_BODIES) for inner in list(operations(op))[1:]):
        raise NoMatch("its body is no arithmetic of elements")
    outputs = list(op.operands)[-len(block_ops(op.regions[0].blocks[0])[-1].operands) :]
    if not all(map(is_batch, outputs)):
        raise NoMatch("an output is no batch")


def first_loop(map_: mlir.AffineMap) -> int | None:
    """The loop that is the first subscript; None for another subscript."""
    first = map_.results[0]
    return int(first.position) if isinstance(first, mlir.AffineDimExpr) else None


def is_batch(value: mlir.Value) -> bool:
    """True for an array of dynamic size."""
    return isinstance(value.type, mlir.MemRefType) and not value.type.has_static_shape


def image_count(value: mlir.Value) -> Factors | None:
    """The size of the first dimension of an array, which is the only dynamic one and has images; else `NoMatch`."""
    type_ = value.type
    if type_.rank < 2 or any(type_.is_dynamic_dim(d) for d in range(1, type_.rank)):
        raise NoMatch("its images have dynamic sizes")
    check_source(value)
    return size_of(value, 0)


def check_source(value: mlir.Value) -> None:
    """Raise `NoMatch` unless an array is an argument or an allocation, seen through views that keep the batch."""
    op = defining_op(value)
    while op is not None and op.name in _VIEWS:
        if op.name == "memref.subview":
            check_slice(op)
        else:
            first = next(iter(mlir.ArrayAttr(op.attributes["reassociation"])))
            if [int(mlir.IntegerAttr(d).value) for d in mlir.ArrayAttr(first)] != [0]:
                raise NoMatch("the batch is reshaped")
        value = op.operands[0]
        op = defining_op(value)
    layout = None if op is None else op.results[0].type.layout
    if op is None or op.name not in ("memref.alloc", "memref.view") or not isinstance(layout, mlir.AffineMapAttr):
        raise NoMatch("neither an argument nor an allocation")


def check_slice(op: mlir.Operation) -> None:
    """Raise `NoMatch` unless a view is the same static slice of each image."""
    offsets, sizes, strides = slices_of(op)
    dynamic = mlir.ShapedType.get_dynamic_size()
    is_whole = (offsets[0], sizes[0], strides[0]) == (0, dynamic, 1) and len(sizes) == op.results[0].type.rank
    if not is_whole or dynamic in (*offsets, *sizes[1:], *strides):
        raise NoMatch("a slice of the batch")


def slices_of(op: mlir.Operation) -> tuple[list[int], list[int], list[int]]:
    """The static offsets, sizes and strides of a slice."""
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    return offsets, sizes, strides


def has_window(op: mlir.Operation) -> bool:
    """True for an operation whose subscripts have sums of loops."""
    if op.name == "memref.copy":
        return False
    return any(isinstance(e, mlir.AffineAddExpr) for map_ in indexing_maps(op) for e in map_.results)


class Split:
    """Builds the loop over images of a run."""

    def __init__(self, run: Sequence[mlir.Operation]) -> None:
        self.run = run
        self.before = run[0]  # where arrays of one image are allocated
        self.known: dict[mlir.Value, mlir.Value] = {}
        self.image: mlir.Value | None = None

    def build(self) -> None:
        """Replace the operations by a loop."""
        last = self.run[-1]
        factor, values = batch_of(last)
        with last.location, mlir.InsertionPoint(last):
            size = emit.index(factor)
            for value in values:
                size = emit.same_type("arith.muli", size, value)
            marked = {IMAGES: mlir.UnitAttr.get()}
            loop = emit.create("scf.for", [emit.index(0), size, emit.index(1)], (), marked, 1)
            body = emit.block(loop, [mlir.IndexType.get()])
            self.image = body.arguments[0]
            with mlir.InsertionPoint(body):
                for op in self.run:
                    with op.location:
                        self.copy(op)
                emit.create("scf.yield")
        for op in reversed(self.run):
            op.erase()

    def copy(self, op: mlir.Operation) -> None:
        """The operation on one image."""
        parts = [self.of_image(value) if is_batch(value) else value for value in op.operands]
        operands = op.clone().operation.operands
        for position, part in enumerate(parts):
            operands[position] = part

    def of_image(self, value: mlir.Value) -> mlir.Value:
        """The part of a batch that is the current image."""
        if value not in self.known:
            self.known[value] = self.part(value, defining_op(value))
        return self.known[value]

    def part(self, value: mlir.Value, op: mlir.Operation) -> mlir.Value:
        type_ = image_type(value.type)
        if op.name == "memref.alloc":
            return self.part_of_allocation(op, type_)
        if op.name == "memref.view":
            return self.viewed(op.operands[0], type_, op.operands[1])
        source = self.of_image(op.operands[0])
        if op.name == "memref.subview":
            offsets, sizes, strides = slices_of(op)
            return emit.slice_op(op.name, [source], type_, offsets, [1, *sizes[1:]], strides)
        attributes = {"reassociation": op.attributes["reassociation"]}
        if op.name == "memref.expand_shape":
            attributes["static_output_shape"] = mlir.DenseI64ArrayAttr.get(list(type_.shape))
        return emit.value(op.name, [source], type_, **attributes)

    def part_of_allocation(self, op: mlir.Operation, type_: mlir.MemRefType) -> mlir.Value:
        """An array of one image where only the run uses it, else a view of all."""
        if self.is_private(op.results[0]):
            with mlir.InsertionPoint(self.before):
                return allocated(type_, [])
        with mlir.InsertionPoint(op):
            bytes_ = emit.times(op.operands[0], image_bytes(type_))
            dynamic = mlir.ShapedType.get_dynamic_size()
            memory = mlir.MemRefType.get([dynamic], mlir.IntegerType.get_signless(8))
            buffer = allocated(memory, [bytes_])
            view = emit.value("memref.view", [buffer, emit.index(0), op.operands[0]], op.results[0].type)
        op.results[0].replace_all_uses_with(view)
        self.known[view] = found = self.viewed(buffer, type_, None)
        return found

    def viewed(self, memory: mlir.Value, type_: mlir.MemRefType, offset: mlir.Value | None) -> mlir.Value:
        """The view of the image's bytes."""
        assert self.image is not None
        at = emit.times(self.image, image_bytes(type_))
        if offset is not None:
            at = emit.same_type("arith.addi", offset, at)
        return emit.value("memref.view", [memory, at], type_)

    def is_private(self, value: mlir.Value) -> bool:
        """True if only the operations of the run use an array or its views."""
        for use in value.uses:
            user = use.owner.operation
            if user.name in _VIEWS:
                if not self.is_private(user.results[0]):
                    return False
            elif user.name != "memref.dim" and user not in self.run:
                return False
        return True


def allocated(type_: mlir.MemRefType, sizes: list[mlir.Value]) -> mlir.Value:
    """A new array with these dynamic sizes."""
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(len(sizes), 0)}
    return emit.value("memref.alloc", sizes, type_, **attributes)


def image_type(type_: mlir.MemRefType) -> mlir.MemRefType:
    """The type of one image of a batch."""
    return mlir.MemRefType.get([1, *list(type_.shape)[1:]], type_.element_type, type_.layout)


def image_bytes(type_: mlir.MemRefType) -> int:
    return int(math.prod(type_.shape)) * element_bytes(type_.element_type)
