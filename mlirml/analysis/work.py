"""Work of an operation: the arithmetic of its elements, and the bytes that it must read and write.

Flops are additions, subtractions, multiplications, divisions, maxima, minima and square roots, a fused multiply-add is
two. Elementary functions are counted apart. Bytes are those of each array once, as if the caches held everything: the
least that an execution moves. Arithmetic of indices and predicates is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from mlirml.analysis.constants import constant_of
from mlirml.analysis.cost import element_bytes, instructions_of
from mlirml.analysis.structured import indexing_maps, sizes_of
from mlirml.analysis.traits import COUNTED_LOOPS, TENSOR_READS, TENSOR_STARTS, TENSOR_STORES, TENSOR_VIEWS
from mlirml.analysis.trip_counts import trip_count
from mlirml.analysis.values import captured_values, is_within
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, seen_through
from mlirml.ir.library_calls import axes_of

FUNCTION_FLOPS = instructions_of("math.exp")
"""About how many flops an elementary function takes the time of."""
_FLOPS = {
    **dict.fromkeys(("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf"), 1),
    **dict.fromkeys(("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"), 1),
    "math.sqrt": 1, "math.rsqrt": 2, "math.fma": 2,
    "complex.add": 2, "complex.sub": 2, "complex.mul": 6, "complex.div": 11,
}  # fmt: skip
_INTEGERS = ("arith.addi", "arith.subi", "arith.muli")
"""Arithmetic that is counted where arrays of integers are computed without their indices."""
_FLOATS = ("bf16", "f16", "f32", "f64")
_VIEWS = (*TENSOR_VIEWS, "memref.subview", "memref.collapse_shape", "memref.expand_shape", "memref.view")
_ACCESSES = ("memref.load", "memref.store", *TENSOR_READS, *TENSOR_STORES)
_SHAPED = (mlir.RankedTensorType, mlir.MemRefType)


@dataclass(frozen=True)
class Count:
    """Arithmetic: flops and evaluations of elementary functions; None where they depend on values."""

    flops: int | None = 0
    functions: int | None = 0

    def __add__(self, other: Count) -> Count:
        return Count(_both(self.flops, other.flops), _both(self.functions, other.functions))

    def times(self, trips: int | None) -> Count:
        """That of so many executions."""
        if trips is None:
            return Count(0 if self.flops == 0 else None, 0 if self.functions == 0 else None)
        return Count(
            None if self.flops is None else trips * self.flops,
            None if self.functions is None else trips * self.functions,
        )


@dataclass(frozen=True)
class Work:
    """The work of one execution of an operation.

    `reads` and `writes` are the bytes of each array, known by the value that it is a view of. `dtype` is that of the
    result, as MLIR names it.
    """

    count: Count = Count()
    reads: Mapping[mlir.Value, int] = field(default_factory=dict)
    writes: Mapping[mlir.Value, int] = field(default_factory=dict)
    dtype: str = ""


def work_of(op: mlir.Operation) -> Work:
    """The work of a structured operation, a loop, a copy, or a call of a library, on tensors or memrefs."""
    if op.name.startswith("linalg."):
        return _structured(op)
    if op.name == "memref.copy":
        source, target = op.operands
        return Work(Count(), {root_of(source): size_of(source)}, {root_of(target): size_of(target)}, dtype_of(target))
    if op.name.startswith("mlirml."):
        return _library(op)
    return _nest(op)


def root_of(value: mlir.Value) -> mlir.Value:
    """The array that a value is a view of."""
    return seen_through(value, _VIEWS)


def size_of(value: mlir.Value) -> int:
    """The bytes of a tensor or memref; 0 for one of dynamic size, and for other values."""
    if not isinstance(value.type, _SHAPED) or any(size < 0 for size in value.type.shape):
        return 0
    return int(math.prod(value.type.shape)) * element_bytes(value.type.element_type)


def dtype_of(value: mlir.Value) -> str:
    """The element type of a tensor or memref, or the type of a number."""
    return str(value.type.element_type if isinstance(value.type, _SHAPED) else value.type)


def count_of(ops: Iterable[mlir.Operation], *, integers: bool = False) -> Count:
    """The arithmetic of operations, those in their regions included; of an `scf.if` that of the longer branch."""
    total = Count()
    for op in ops:
        total += _count(op, integers)
    return total


def _count(op: mlir.Operation, integers: bool) -> Count:
    if op.name.startswith("linalg.") and len(op.regions):
        return _structured(op).count
    if op.name.startswith("mlirml."):
        return _library(op).count
    if len(op.regions):
        branches = [count_of(block_ops(block), integers=integers) for region in op.regions for block in region.blocks]
        if op.name in COUNTED_LOOPS:
            return sum(branches, Count()).times(trips_of(op))
        if op.name == "scf.while":
            return sum(branches, Count()).times(None)
        return max(branches, key=lambda count: count.flops or 0, default=Count())
    lanes = math.prod(op.results[0].type.shape) if len(op.results) and _is_vector(op.results[0]) else 1
    return _scalar(op, integers).times(lanes)


def trips_of(loop: mlir.Operation) -> int | None:
    """The number of iterations of an `scf.for` or `scf.parallel`; None if it is not constant."""
    if loop.name == "scf.for":
        return trip_count(loop)
    total, rank = 1, len(loop.regions[0].blocks[0].arguments)
    bounds = [constant_of(value) for value in list(loop.operands)[: 3 * rank]]
    for lower, upper, step in zip(bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :], strict=True):
        if lower is None or upper is None or not step:
            return None
        total *= max(0, -((lower - upper) // step))
    return total


def _scalar(op: mlir.Operation, integers: bool) -> Count:
    if (flops := _FLOPS.get(op.name)) is not None:
        return Count(flops)
    if integers and op.name in _INTEGERS:
        return Count(1)
    is_function = op.name.startswith("math.") and instructions_of(op.name) == FUNCTION_FLOPS
    return Count(0, 1) if is_function else Count()


def _is_vector(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.VectorType)


def _structured(op: mlir.Operation) -> Work:
    """The work of a structured operation: what its body does in each iteration, and its operands once."""
    maps = indexing_maps(op)
    sizes = sizes_of(op, maps)
    trips = None if -1 in sizes else math.prod(sizes)
    block = op.regions[0].blocks[0]
    body = block_ops(block)
    nested = list(operations(op))
    integers = all(dtype_of(v).startswith("i") for v in op.operands) and not any(
        inner.name == "linalg.index" for inner in nested
    )
    outputs = len(op.results) if len(op.results) else len(maps) - _inputs_of(op)
    arguments, operands = list(block.arguments), list(op.operands)[: len(maps)]
    first_output = len(operands) - outputs
    reads: dict[mlir.Value, int] = {}
    for position, (operand, argument) in enumerate(zip(operands, arguments, strict=False)):
        starts = position >= first_output and _starts(operand)
        if any(True for _ in argument.uses) and not starts:
            _add(reads, operand, size_of(operand))
    for access in (inner for inner in nested if inner.name in ("tensor.extract", "memref.load")):
        source = access.operands[0]
        if source in captured_values(op):
            accessed = size_of(source) if trips is None else trips * element_bytes(source.type.element_type)
            _add(reads, source, accessed)
    targets = list(op.results) or operands[first_output:]
    writes = {root_of(value): size_of(value) for value in targets}
    dtype = _widest(dtype_of(value) for value in operands[:first_output] or operands)
    return Work(count_of(body, integers=integers).times(trips), reads, writes, dtype)


def _inputs_of(op: mlir.Operation) -> int:
    if "operandSegmentSizes" not in op.attributes:
        return len(op.operands) - 1
    inputs, *_ = mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return int(inputs)


def _starts(value: mlir.Value) -> bool:
    """True for a tensor that holds nothing yet, or one value."""
    op = defining_op(value)
    return op is not None and op.name in TENSOR_STARTS


def _widest(dtypes: Iterable[str]) -> str:
    """The widest float type of some element types; the last one where there is no float."""
    found = list(dtypes)
    floats = [dtype for dtype in found if dtype in _FLOATS]
    return max(floats, key=_FLOATS.index) if floats else found[-1] if found else ""


def _add(reads: dict[mlir.Value, int], value: mlir.Value, size: int) -> None:
    """Add bytes that are read of an array: slices of one array together at most all of it."""
    root = root_of(value)
    whole = size_of(root)
    total = reads.get(root, 0) + size
    reads[root] = min(total, whole) if whole else total


def _library(op: mlir.Operation) -> Work:
    """The work of a sort, a compaction, or a call of a library."""
    *inputs, target = op.operands
    reads: dict[mlir.Value, int] = {}
    for value in inputs:
        _add(reads, value, size_of(value))
    written = op.results[0] if len(op.results) else target
    flops = _LIBRARY_FLOPS.get(op.name)
    shapes = [tuple(value.type.shape) for value in inputs if isinstance(value.type, _SHAPED)]
    dtype = dtype_of(inputs[0]) if inputs else ""
    return Work(
        Count(flops(op, shapes) if flops is not None else None), reads, {root_of(written): size_of(written)}, dtype
    )


Shapes = list[tuple[int, ...]]


def _cubic(numerator: int, denominator: int) -> Callable[[mlir.Operation, Shapes], int]:
    """Flops of a factorization of square matrices: a fraction of n^3 for each (Golub, Van Loan, appendix)."""
    return lambda op, shapes: numerator * shapes[0][0] * shapes[0][1] ** 3 // denominator


def _solve(op: mlir.Operation, shapes: Shapes) -> int:
    count, size = shapes[0][:2]
    return count * (2 * size**3 // 3 + 2 * size * size * shapes[1][2])


def _triangular(op: mlir.Operation, shapes: Shapes) -> int:
    count, size = shapes[0][:2]
    return count * size * size * shapes[1][2]


def _transform(op: mlir.Operation, shapes: Shapes) -> int:
    """5 n log2 n for each complex transform of n elements, as FFTW's authors count."""
    axes = axes_of(int(mlir.IntegerAttr(op.attributes["mode"]).value))
    length = math.prod(shapes[0][axis] for axis in axes)
    return int(5 * math.prod(shapes[0]) / 2 * math.log2(max(length, 2)))


_LIBRARY_FLOPS: dict[str, Callable[[mlir.Operation, Shapes], int | None]] = {
    "mlirml.cholesky": _cubic(1, 3), "mlirml.lu": _cubic(2, 3), "mlirml.lu_diagonal": _cubic(2, 3),
    "mlirml.inverse": _cubic(2, 1), "mlirml.solve": _solve, "mlirml.triangular_solve": _triangular,
    "mlirml.fft": _transform,
    **dict.fromkeys(("mlirml.sort", "mlirml.argsort"), lambda op, shapes: 0),
}  # fmt: skip
"""Flops of library calls by the usual formulas; those of iterative methods are not known."""


def _nest(op: mlir.Operation) -> Work:
    """The work of a loop nest: its arithmetic by trip counts, and the arrays from outside that it touches."""
    reads: dict[mlir.Value, int] = {}
    writes: dict[mlir.Value, int] = {}
    for access, trips in _accesses(op, trips_of(op) if op.name in COUNTED_LOOPS else None):
        stores = access.name in ("memref.store", *TENSOR_STORES)
        array = _outside(access.operands[1 if stores else 0], op)
        _add(writes if stores else reads, array, size_of(array) if trips is None else trips * _width(access, stores))
    for result in op.results:
        if isinstance(result.type, _SHAPED):
            written = writes.pop(_outside(result, op), None)
            writes[result] = written or size_of(result)
    dtype = _widest(dtype_of(value) for value in [*reads, *writes])
    return Work(_count(op, integers=False), reads, writes, dtype)


def _width(access: mlir.Operation, stores: bool) -> int:
    """The bytes of an element or a slice that an operation reads or stores."""
    moved = access.operands[0] if stores else access.results[0]
    if isinstance(moved.type, _SHAPED):
        return size_of(moved)
    return element_bytes(moved.type)


def _accesses(op: mlir.Operation, trips: int | None) -> Iterable[tuple[mlir.Operation, int | None]]:
    """The reads and stores in the regions of an operation, each with its number of executions; None if not known.

    `trips` is how often the regions are executed.
    """
    for region in op.regions:
        for block in region.blocks:
            for inner in block_ops(block):
                if inner.name in _ACCESSES:
                    yield inner, trips
                own = trips_of(inner) if inner.name in COUNTED_LOOPS else None if inner.name == "scf.while" else 1
                yield from _accesses(inner, None if trips is None or own is None else trips * own)


def _outside(value: mlir.Value, loop: mlir.Operation) -> mlir.Value:
    """The array from outside of a loop that a value in it is made of: through views, stores and `scf.for`."""
    while True:
        value = root_of(value)
        op = defining_op(value)
        if op is None:
            owner, arguments = value.owner.owner.operation, list(value.owner.arguments)
            if owner.name != "scf.for" or not is_within(owner, loop) or arguments[0] == value:
                return value
            value = owner.operands[2 + arguments.index(value)]
        elif op.name in TENSOR_STORES:
            value = op.operands[1]
        elif op.name == "scf.for" and is_within(op, loop):
            value = op.operands[3 + list(op.results).index(value)]
        else:
            return value


def _both(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
