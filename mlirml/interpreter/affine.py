"""Rules of the reference interpreter for affine maps and the `affine` dialect."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from mlirml.interpreter.program import Environment, Function, Kernel, Step, controls, evaluates, unsupported
from mlirml.interpreter.values import Value, checked, integer, integers, mixed, segments, shape_of, window
from mlirml.ir.bindings import mlir

Expression = Callable[[Sequence[Value], Sequence[Value]], Value]
"""A function of dimensions and symbols, on integers or on arrays of them."""


def expression(expr: mlir.AffineExpr) -> Expression:
    """An affine expression as a Python function."""
    if isinstance(expr, mlir.AffineConstantExpr):
        constant = expr.value
        return lambda dims, symbols: constant
    if isinstance(expr, mlir.AffineDimExpr):
        position = expr.position
        return lambda dims, symbols: dims[position]
    if isinstance(expr, mlir.AffineSymbolExpr):
        position = expr.position
        return lambda dims, symbols: symbols[position]
    lhs, rhs = expression(expr.lhs), expression(expr.rhs)
    if isinstance(expr, mlir.AffineAddExpr):
        return lambda dims, symbols: lhs(dims, symbols) + rhs(dims, symbols)
    if isinstance(expr, mlir.AffineMulExpr):
        return lambda dims, symbols: lhs(dims, symbols) * rhs(dims, symbols)
    if isinstance(expr, mlir.AffineModExpr):
        return lambda dims, symbols: lhs(dims, symbols) % rhs(dims, symbols)
    if isinstance(expr, mlir.AffineFloorDivExpr):
        return lambda dims, symbols: lhs(dims, symbols) // rhs(dims, symbols)
    return lambda dims, symbols: -(-lhs(dims, symbols) // rhs(dims, symbols))


def map_function(affine_map: mlir.AffineMap) -> Callable[[Sequence[Value]], list[Value]]:
    """A map as a function of its operands, dimensions first, then symbols."""
    expressions = [expression(e) for e in affine_map.results]
    count = affine_map.n_dims
    return lambda operands: [e(operands[:count], operands[count:]) for e in expressions]


def _map(op: mlir.Operation, name: str = "map") -> Callable[[Sequence[Value]], list[Value]]:
    return map_function(op.attributes[name].value)


@evaluates("affine.apply", "affine.min", "affine.max", elementwise=True)
def apply_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The value of a map: its result, or the minimum or maximum of its results."""
    apply = _map(op)
    choose = np.maximum if op.name == "affine.max" else np.minimum

    def kernel(*operands: Value) -> Value:
        results = apply(operands)
        value = results[0]
        for other in results[1:]:
            value = choose(value, other)
        return np.asarray(value, np.int64)[()]

    return kernel


@evaluates("affine.load")
def load_rule(op: mlir.Operation, _: Function) -> Kernel:
    """One element."""
    apply = _map(op)
    return lambda buffer, *operands: buffer.array[checked(apply(operands), buffer.array.shape)]


@evaluates("affine.store")
def store_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write one element."""
    apply = _map(op)

    def kernel(value: Value, buffer: Value, *operands: Value) -> None:
        buffer.array[checked(apply(operands), buffer.array.shape)] = value

    return kernel


@evaluates("affine.prefetch")
def prefetch_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Nothing: a hint."""
    return lambda *operands: None


@evaluates("affine.vector_load")
def vector_load_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A contiguous vector."""
    apply, shape = _map(op), shape_of(op.results[0].type)
    return lambda buffer, *operands: (
        buffer.array[window(apply(operands), shape, buffer.array.shape)].reshape(shape).copy()
    )


@evaluates("affine.vector_store")
def vector_store_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write a contiguous vector."""
    apply = _map(op)

    def kernel(value: Value, buffer: Value, *operands: Value) -> None:
        part = buffer.array[window(apply(operands), value.shape, buffer.array.shape)]
        part[...] = value.reshape(part.shape)

    return kernel


@evaluates("affine.delinearize_index")
def delinearize_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Split a linear index into one index per dimension."""
    read = mixed(integers(op, "static_basis"))
    count = len(op.results)

    def kernel(index: Value, *dynamic: Value) -> Value:
        basis = read(dynamic)
        parts = []
        for size in reversed(basis[len(basis) - count + 1 :]):
            parts.append(np.int64(index % size))
            index = index // size
        parts.append(np.int64(index))
        return parts[::-1] if count > 1 else parts[0]

    return kernel


@evaluates("affine.linearize_index")
def linearize_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Combine one index per dimension into a linear index."""
    read = mixed(integers(op, "static_basis"))
    indices, dynamic = segments(op)

    def kernel(*operands: Value) -> Value:
        multi, basis = operands[indices], read(operands[dynamic])
        basis = basis[len(basis) - len(multi) + 1 :]
        value = multi[0]
        for index, size in zip(multi[1:], basis, strict=True):
            value = value * size + index
        return np.int64(value)

    return kernel


@controls("affine.for")
def for_rule(op: mlir.Operation, function: Function) -> Step:
    """A loop from the maximum of the lower bounds to the minimum of the upper bounds."""
    lower, upper, initial = segments(op)
    slots = [function.slot(value) for value in op.operands]
    low, high = _map(op, "lowerBoundMap"), _map(op, "upperBoundMap")
    step = integer(op, "step")
    body = function.block(op.regions[0].blocks[0])
    results = [function.slot(value) for value in op.results]

    def run(environment: Environment) -> None:
        operands = [environment[slot] for slot in slots]
        values = operands[initial]
        for index in range(int(max(low(operands[lower]))), int(min(high(operands[upper]))), step):
            values = body.run(environment, [np.int64(index), *values])
        for slot, value in zip(results, values):
            environment[slot] = value

    return run


@controls("affine.parallel")
def parallel_rule(op: mlir.Operation, function: Function) -> Step:
    """A loop nest, run from the last iteration to the first."""
    if op.results:
        raise unsupported(op, "affine.parallel with reductions")
    slots = [function.slot(value) for value in op.operands]
    low, high = _grouped(op, "lower", max), _grouped(op, "upper", min)
    low_map = op.attributes["lowerBoundsMap"].value
    split = low_map.n_dims + low_map.n_symbols
    steps = integers(op, "steps")
    body = function.block(op.regions[0].blocks[0])

    def run(environment: Environment) -> None:
        values = [environment[slot] for slot in slots]
        bounds = zip(low(values[:split]), high(values[split:]), steps)
        points = list(itertools.product(*[range(first, last, step) for first, last, step in bounds]))
        for point in reversed(points):
            body.run(environment, [np.int64(index) for index in point])

    return run


def _grouped(op: mlir.Operation, side: str, choose: Callable[[list[Value]], Value]) -> Callable[..., list[int]]:
    """The bounds of an `affine.parallel`: for each loop, `choose` among its group of the map's results."""
    apply = _map(op, f"{side}BoundsMap")
    sizes = [int(size) for size in np.array(op.attributes[f"{side}BoundsGroups"])]

    def bounds(operands: Sequence[Value]) -> list[int]:
        results = iter(apply(operands))
        return [int(choose(list(itertools.islice(results, size)))) for size in sizes]

    return bounds


@controls("affine.if")
def if_rule(op: mlir.Operation, function: Function) -> Step:
    """One of two regions, by a conjunction of affine constraints."""
    holds = _condition(op)
    slots = [function.slot(value) for value in op.operands]
    blocks = [list(region.blocks) for region in op.regions]
    branches = [function.block(inner[0]) if inner else None for inner in blocks]
    results = [function.slot(value) for value in op.results]

    def run(environment: Environment) -> None:
        branch = branches[0 if holds([environment[slot] for slot in slots]) else 1]
        values = branch.run(environment) if branch is not None else []
        for slot, value in zip(results, values):
            environment[slot] = value

    return run


def _condition(op: mlir.Operation) -> Callable[[Sequence[Value]], bool]:
    # The bindings do not open an integer set, so its constraints are parsed again as the results of a map.
    text = str(op.attributes["condition"])
    space, _, constraints = text.removeprefix("affine_set<").removesuffix(">").partition(" : ")
    parts = [part.strip() for part in constraints.removeprefix("(").removesuffix(")").split(", ")]
    equalities = [part.endswith("== 0") for part in parts]
    expressions = ", ".join(part[: -len(">= 0")] for part in parts)
    apply = map_function(mlir.Attribute.parse(f"affine_map<{space} -> ({expressions})>", op.context).value)
    return lambda operands: all(
        value == 0 if equal else value >= 0 for value, equal in zip(apply(operands), equalities, strict=True)
    )
