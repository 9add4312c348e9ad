"""Rules of the reference interpreter for `arith` and `math`, and for scalars of `ub` and `index`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mlirml.interpreter import numeric
from mlirml.interpreter.program import ELEMENTWISE, Function, Kernel, evaluates, unsupported
from mlirml.interpreter.values import (
    Value,
    constant,
    dtype_of,
    integer,
    is_memref,
    is_narrow,
    is_shaped,
    poison,
    shape_of,
    unsigned,
)
from mlirml.ir.bindings import mlir


def _in_float(function: Kernel, dtype: np.dtype[Any], *, widest: bool = False) -> Kernel:
    """`function` in an element type; floats of 16 bits are converted to f32 and back.

    With `widest`, f32 is computed in f64 too, so that a transcendental function is rounded correctly.
    """
    if dtype == np.float64 or not (widest or is_narrow(dtype)):
        return function
    compute = np.float64 if widest else np.float32
    return lambda *v: numeric.round_to(function(*[x.astype(compute) for x in v]), dtype)


_FLOAT: dict[str, Kernel] = {
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.divf": operator.truediv,
    "arith.remf": np.fmod,
    "arith.negf": operator.neg,
    "arith.maximumf": numeric.maximum,
    "arith.minimumf": numeric.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
    "math.round": numeric.round_away,
    "math.roundeven": np.rint,
    "math.copysign": np.copysign,
    "math.clampf": lambda value, low, high: numeric.maximum(numeric.minimum(value, high), low),
}

_TRANSCENDENTAL: dict[str, Kernel] = {
    "math.acos": np.arccos,
    "math.acosh": np.arccosh,
    "math.asin": np.arcsin,
    "math.asinh": np.arcsinh,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.atanh": np.arctanh,
    "math.cbrt": np.cbrt,
    "math.cos": np.cos,
    "math.cosh": np.cosh,
    "math.erf": numeric.erf,
    "math.erfc": numeric.erfc,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.fpowi": np.power,
    "math.log": np.log,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.powf": np.power,
    "math.rsqrt": lambda x: 1.0 / np.sqrt(x),
    "math.sin": np.sin,
    "math.sinh": np.sinh,
    "math.sqrt": np.sqrt,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
}

_SIGNED: dict[str, Kernel] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.divsi": numeric.divide_truncating,
    "arith.ceildivsi": numeric.divide_up,
    "arith.floordivsi": np.floor_divide,
    "arith.remsi": np.fmod,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "math.absi": np.abs,
    "math.ipowi": numeric.integer_power,
}

_UNSIGNED: dict[str, Kernel] = {
    "arith.divui": np.floor_divide,
    "arith.ceildivui": numeric.divide_up,
    "arith.remui": np.remainder,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
}


def unsigned_bits(x: Value) -> Value:
    """i1 as an unsigned integer."""
    return x.astype(np.uint8)


def signed_bits(x: Value) -> Value:
    """i1 as a signed integer: true is -1."""
    return -x.astype(np.int8)


def lowest_bit(x: Value) -> Value:
    return (x & 1) != 0


def _in_signed(function: Kernel, dtype: np.dtype[Any]) -> Kernel:
    if dtype.kind == "b":
        return lambda *v: lowest_bit(function(*[signed_bits(x) for x in v]))
    return function


def _in_unsigned(function: Kernel, dtype: np.dtype[Any]) -> Kernel:
    if dtype.kind == "b":
        return lambda *v: lowest_bit(function(*[unsigned_bits(x) for x in v]))
    kind = unsigned(dtype)
    return lambda *v: function(*[x.view(kind) for x in v]).view(dtype)


@evaluates(*_FLOAT, elementwise=True)
def float_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Operations with one rounding in the element type."""
    return _in_float(_FLOAT[op.name], dtype_of(op.operands[0].type))


@evaluates(*_TRANSCENDENTAL, elementwise=True)
def transcendental_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Functions computed in f64."""
    return _in_float(_TRANSCENDENTAL[op.name], dtype_of(op.operands[0].type), widest=True)


@evaluates("math.sincos", elementwise=True)
def sincos_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Sine and cosine."""
    dtype = dtype_of(op.operands[0].type)
    sine, cosine = (_in_float(_TRANSCENDENTAL[name], dtype, widest=True) for name in ("math.sin", "math.cos"))
    return lambda x: (sine(x), cosine(x))


@evaluates(*_SIGNED, elementwise=True)
def signed_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Integer operations on signed values, or on bits."""
    return _in_signed(_SIGNED[op.name], dtype_of(op.operands[0].type))


@evaluates(*_UNSIGNED, elementwise=True)
def unsigned_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Integer operations on unsigned values."""
    return _in_unsigned(_UNSIGNED[op.name], dtype_of(op.operands[0].type))


def binary_kernel(name: str, dtype: np.dtype[Any]) -> Kernel:
    """The `arith` operation `name` on two values of a dtype."""
    if name in _FLOAT:
        return _in_float(_FLOAT[name], dtype)
    return _in_signed(_SIGNED[name], dtype) if name in _SIGNED else _in_unsigned(_UNSIGNED[name], dtype)


@evaluates("math.fma", elementwise=True)
def fma_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Fused multiply-add: one rounding."""
    return fma_kernel(dtype_of(op.operands[0].type))


def fma_kernel(dtype: np.dtype[Any]) -> Kernel:
    """The fused multiply-add of a dtype."""
    if dtype == np.float64:
        return numeric.fma64
    return lambda a, b, c: numeric.fma_narrow(a, b, c, dtype)


_OF_FORMAT: dict[str, Kernel] = {
    "arith.flush_denormals": numeric.flush_denormals,
    "math.isfinite": np.isfinite,
    "math.isinf": np.isinf,
    "math.isnan": np.isnan,
    "math.isnormal": numeric.is_normal,
}


@evaluates(*_OF_FORMAT, elementwise=True)
def format_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Operations that look at the representation in the element type itself."""
    return _OF_FORMAT[op.name]


_COUNTS = {
    "math.ctlz": numeric.leading_zeros,
    "math.cttz": numeric.trailing_zeros,
    "math.ctpop": numeric.count_ones,
}


@evaluates(*_COUNTS, elementwise=True)
def count_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Counts of bits."""
    dtype = dtype_of(op.operands[0].type)
    width = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    return _in_unsigned(lambda x: _COUNTS[op.name](x, width), dtype)


@evaluates("arith.shli", "arith.shrsi", "arith.shrui", elementwise=True)
def shift_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Shifts; one by the width or more is poison, here a shift by the width less one."""
    dtype = dtype_of(op.operands[0].type)
    if dtype.kind == "b":
        return lambda x, amount: x
    last = unsigned(dtype).type(8 * dtype.itemsize - 1)
    shift = np.left_shift if op.name == "arith.shli" else np.right_shift
    if op.name == "arith.shrsi":
        return lambda x, amount: shift(x, np.minimum(amount.view(last.dtype), last).view(dtype))
    return _in_unsigned(lambda x, amount: shift(x, np.minimum(amount, last)), dtype)


def _add_extended(a: Value, b: Value) -> tuple[Value, Value]:
    total = a + b
    return total, total < a


def _subtract_extended(a: Value, b: Value) -> tuple[Value, Value]:
    return a - b, a < b


@evaluates("arith.addui_extended", "arith.subui_extended", elementwise=True)
def carry_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Sum or difference, and the carry out of the unsigned range."""
    function = _add_extended if op.name == "arith.addui_extended" else _subtract_extended
    dtype = dtype_of(op.operands[0].type)
    if dtype.kind == "b":
        carry = operator.and_ if function is _add_extended else operator.lt
        return lambda a, b: (a ^ b, carry(a, b))

    def kernel(a: Value, b: Value) -> tuple[Value, Value]:
        result, carry = function(a.view(unsigned(dtype)), b.view(unsigned(dtype)))
        return result.view(dtype), carry

    return kernel


@evaluates("arith.mulsi_extended", "arith.mului_extended", elementwise=True)
def product_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The low and the high half of a product."""
    dtype = dtype_of(op.operands[0].type)
    signed = op.name == "arith.mulsi_extended"
    if dtype.kind == "b":
        # Signed, true is -1 and the product 1 is 0b01; unsigned, true is 1 and so is the product.
        return lambda a, b: (a & b, a & ~a)
    high = _in_signed(numeric.multiply_high_signed, dtype) if signed else _in_unsigned(numeric.multiply_high, dtype)
    return lambda a, b: (a * b, high(a, b))


_INTEGER_ORDER: list[Kernel] = [
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
_FIRST_UNSIGNED = 6


@evaluates("arith.cmpi", elementwise=True)
def cmpi_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Integer comparison."""
    predicate = integer(op, "predicate")
    compare = _INTEGER_ORDER[predicate]
    dtype = dtype_of(op.operands[0].type)
    if dtype.kind == "b":
        bits = unsigned_bits if predicate >= _FIRST_UNSIGNED else signed_bits
        return lambda a, b: compare(bits(a), bits(b))
    if predicate < _FIRST_UNSIGNED:
        return compare
    kind = unsigned(dtype)
    return lambda a, b: compare(a.view(kind), b.view(kind))


def _ordered(a: Value, b: Value) -> Value:
    return (a == a) & (b == b)


def _not(x: Value) -> Value:
    return np.logical_not(x)


FLOAT_PREDICATES: dict[str, Kernel] = {
    "false": lambda a, b: _ordered(a, b) & _not(_ordered(a, b)),
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": _ordered,
    "ueq": lambda a, b: _not((a < b) | (a > b)),
    "ugt": lambda a, b: _not(a <= b),
    "uge": lambda a, b: _not(a < b),
    "ult": lambda a, b: _not(a >= b),
    "ule": lambda a, b: _not(a > b),
    "une": operator.ne,
    "uno": lambda a, b: _not(_ordered(a, b)),
    "true": lambda a, b: _ordered(a, b) | _not(_ordered(a, b)),
}
"""The predicates by attribute value; an unordered predicate is the negation of the opposite ordered one."""


@evaluates("arith.cmpf", elementwise=True)
def cmpf_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Float comparison."""
    return list(FLOAT_PREDICATES.values())[integer(op, "predicate")]


def _select(condition: Value, a: Value, b: Value) -> Value:
    chosen: Value = np.where(condition, a, b)
    return chosen[()]


@evaluates("arith.select", elementwise=True)
def select_rule(op: mlir.Operation, _: Function) -> Kernel:
    """One of two values, chosen by element for tensors and vectors and as a whole for memrefs."""
    if is_memref(op.results[0].type):
        return lambda condition, a, b: a if condition else b
    return _select


@evaluates("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui", elementwise=True)
def integer_cast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Integers to integers: sign or zero extension, or the low bits."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    zero_extends = op.name in ("arith.extui", "arith.index_castui")
    if target.kind == "b":
        return lowest_bit if source.kind != "b" else lambda x: x
    if source.kind == "b":
        bits = unsigned_bits if zero_extends else signed_bits
        return lambda x: bits(x).astype(target)
    if zero_extends:
        return lambda x: x.view(unsigned(source)).astype(target)
    return lambda x: x.astype(target)


@evaluates("arith.extf", "arith.truncf", "arith.convertf", elementwise=True)
def float_cast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Floats to floats, to the nearest even."""
    if "roundingmode" in op.attributes and op.attributes["roundingmode"].value != 0:
        raise unsupported(op, "only the rounding mode to_nearest_even")
    target = dtype_of(op.results[0].type)
    return lambda x: numeric.round_to(x, target)


@evaluates("arith.fptosi", "arith.fptoui", elementwise=True)
def float_to_integer_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Truncation toward zero; a value outside of the integer type's range is poison, here some integer."""
    target = dtype_of(op.results[0].type)
    if target.kind == "b":
        return lambda x: lowest_bit(x.astype(np.float64).astype(np.int64))
    if op.name == "arith.fptoui" and target == np.int64:
        return lambda x: x.astype(np.float64).astype(np.uint64).view(np.int64)
    wide = target if op.name == "arith.fptosi" and target == np.int32 else np.dtype(np.int64)
    return lambda x: x.astype(np.float64).astype(wide).astype(target)


@evaluates("arith.sitofp", "arith.uitofp", elementwise=True)
def integer_to_float_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The nearest float; to 16 bits by way of f64, which is exact up to 2**53."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    through = np.dtype(np.float64) if is_narrow(target) else target
    if source.kind == "b":
        bits = unsigned_bits if op.name == "arith.uitofp" else signed_bits
        return lambda x: bits(x).astype(target)
    kind = unsigned(source) if op.name == "arith.uitofp" else source
    return lambda x: numeric.round_to(x.view(kind).astype(through), target)


@evaluates("arith.bitcast", elementwise=True)
def bitcast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same bits as another type of the same width."""
    target = dtype_of(op.results[0].type)
    return lambda x: x.view(target)


@evaluates("arith.constant")
def constant_rule(op: mlir.Operation, function: Function) -> Kernel:
    """A scalar, vector or tensor constant."""
    value = constant(op.attributes["value"], function.program.resource)
    return lambda: value


@evaluates("ub.poison")
def poison_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Poison: NaN or a conspicuous integer."""
    value_type = op.results[0].type
    value = poison(shape_of(value_type), dtype_of(value_type))
    return lambda: value if is_shaped(value_type) else value[()]


ELEMENTWISE |= {"arith.constant", "ub.poison"}
