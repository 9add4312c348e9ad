"""Groups of operations by what they do, by name; it needs no MLIR bindings.

A set that a pass needs for a reason of its own, such as what it knows how to rewrite, stays with the pass.
"""

from __future__ import annotations

RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
TENSOR_VIEWS = (*RESHAPES, "tensor.extract_slice")
"""Operations whose result may share the memory of their first operand."""
CASTED_VIEWS = (*TENSOR_VIEWS, "tensor.cast")
TENSOR_STORES = ("tensor.insert", "tensor.insert_slice")
TENSOR_READS = ("tensor.extract", "tensor.extract_slice")
ELEMENTS = ("tensor.extract", "tensor.insert")
"""Operations on one element of a tensor."""
TENSOR_STARTS = ("tensor.empty", "linalg.fill")
"""Tensors that hold nothing yet, or one value."""

SEQUENTIAL_LOOPS = ("scf.for", "scf.while")
PARALLEL_LOOPS = ("scf.parallel", "scf.forall")
LOOPS = (*SEQUENTIAL_LOOPS, *PARALLEL_LOOPS)
COUNTED_LOOPS = ("scf.for", "scf.parallel")
"""Loops whose bounds are their first operands."""
BRANCHES = ("scf.if", "scf.index_switch")
CONTROL = (*SEQUENTIAL_LOOPS, *BRANCHES)
"""Control flow of one thread, with results."""

COMPARISONS = ("arith.cmpf", "arith.cmpi")
FLOAT_CASTS = ("arith.extf", "arith.truncf")
INDEX_CASTS = ("arith.index_cast", "arith.index_castui")
INTEGER_DIVISIONS = (
    "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi", "arith.floordivsi",
)  # fmt: skip
"""Divisions and remainders, which trap if the divisor is zero."""
INTEGER_STEPS = ("arith.addi", "arith.subi")
AFFINE_VALUES = ("affine.apply", "affine.min", "affine.max")
