"""Dynamic sizes of memrefs: the values that they were made with, looked for through views."""

from __future__ import annotations

import math

from mlirml.ir.bindings import defining_op, mlir, named_operations, replace_op

_MOST_FACTORS = 16

Factors = tuple[int, tuple[mlir.Value, ...]]
"""A product of a constant and of values."""


def size_of(value: mlir.Value, d: int) -> Factors | None:
    """The size of a dimension; None where the operation that made the memref does not tell it."""
    kind = value.type
    if not kind.is_dynamic_dim(d):
        return kind.shape[d], ()
    op = defining_op(value)
    if op is None:
        return None
    dynamic = sum(kind.is_dynamic_dim(i) for i in range(d))
    if op.name == "memref.alloc":
        return 1, (op.operands[dynamic],)
    if op.name == "memref.view":
        return 1, (op.operands[2 + dynamic],)
    if op.name == "memref.expand_shape":
        return 1, (op.operands[1 + dynamic],)
    if op.name == "memref.cast":
        return size_of(op.operands[0], d)
    if op.name == "memref.collapse_shape":
        group = [int(mlir.IntegerAttr(i).value) for i in mlir.ArrayAttr(op.attributes["reassociation"])[d]]
        return product([size_of(op.operands[0], i) for i in group])
    if op.name == "memref.subview":
        return _of_subview(op, value, d)
    return None


def product(parts: list[Factors | None]) -> Factors | None:
    """The product of sizes; None if one of them is not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return math.prod(factor for factor, _ in known), tuple(value for _, values in known for value in values)


def _of_subview(op: mlir.Operation, value: mlir.Value, d: int) -> Factors | None:
    """The size of a dimension of a slice; None for one that drops dimensions of several sizes."""
    sizes = list(mlir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    kept = (
        [i for i, size in enumerate(sizes) if size != 1] if len(sizes) != value.type.rank else list(range(len(sizes)))
    )
    if len(kept) != value.type.rank:
        return None
    segments = list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    unknown = mlir.ShapedType.get_dynamic_size()
    before = sum(sizes[i] == unknown for i in range(kept[d]))
    return 1, (op.operands[segments[0] + segments[1] + before],)


def factors_of(value: mlir.Value, known: dict[mlir.Value, Factors] | None = None) -> Factors:
    """A value of type `index` as a product, looked for through `memref.dim` and multiplications.

    A product of too many factors is one itself; `known` are those of the values of this search.
    """
    known = {} if known is None else known
    if value not in known:
        found = _factors_of(value, known)
        known[value] = found if len(found[1]) <= _MOST_FACTORS else (1, (value,))
    return known[value]


def _factors_of(value: mlir.Value, known: dict[mlir.Value, Factors]) -> Factors:
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        return int(mlir.IntegerAttr(op.attributes["value"]).value), ()
    if op is not None and op.name == "arith.muli":
        found = product([factors_of(operand, known) for operand in op.operands])
        assert found is not None
        return found
    if op is not None and op.name == "memref.dim":
        number = defining_op(op.operands[1])
        if number is not None and number.name == "arith.constant":
            size = size_of(op.operands[0], int(mlir.IntegerAttr(number.attributes["value"]).value))
            if size is not None:
                found = product([(size[0], ()), *(factors_of(part, known) for part in size[1])])
                assert found is not None
                return found
    return 1, (value,)


def fold_dims(module: mlir.Operation) -> None:
    """Replace each `memref.dim` of a known size by the value that the size is."""
    for op in named_operations(module, ("memref.dim",)):
        factor, values = factors_of(op.results[0])
        if factor == 1 and len(values) == 1 and values[0] != op.results[0]:
            replace_op(op, values[0])
