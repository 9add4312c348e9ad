"""Elementwise operations: NumPy's ufuncs, `where` and `clip`, one record each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.combiners import combiners_of, evaluate
from mlirml.ir.text.builder import Body, Builder, Operand, Scalar, Value
from mlirml.ir.text.dtypes import as_dtype, check_integer, common_shape, is_float, is_supported, mlir_name, short_name
from mlirml.ops.exponents import check_exponents
from mlirml.ops.promotion import as_operand, promoted, resolve, result_type, strong
from mlirml.ops.registry import ALL, BOOL, FLOATS, INTEGERS, NUMBERS, OpDef, define, operation

_BOOL, _SINGLE = np.dtype(np.bool_), np.dtype(np.float32)
# body(block, operand names, the dtype that the operands were cast to) -> name of the result
ScalarBody = Callable[[Body, list[str], np.dtype], str]


def broadcast_shapes(name: str, operands: Sequence[Operand]) -> tuple[int, ...]:
    """The common shape, or a `ShapeError` that shows the shapes."""
    try:
        return common_shape(*(o.shape for o in operands))
    except ValueError:
        shapes = " and ".join(str(o) for o in operands if o.shape)
        raise ShapeError(
            f"{name}: shapes do not broadcast, {shapes}",
            help=_axis_hint([o.shape for o in operands])
            or "sizes must be equal or 1, counted from the last dimension; add axes with `x[:, None]`",
        ) from None


def _axis_hint(shapes: Sequence[tuple[int, ...]]) -> str | None:
    """A help text naming the operand that would broadcast with axes of size 1 appended to its own; None if none
    would.
    """
    rank = max(map(len, shapes))
    for i, shape in enumerate(shapes):
        for count in range(1, rank - len(shape) + 1 if shape else 0):
            try:
                common_shape(*shapes[:i], (*shape, *[1] * count), *shapes[i + 1 :])
            except ValueError:
                continue
            return f"did you mean `x{i + 1}[..{', None' * count}]`?".replace("[..,", "[...,")
    return None


def check_literal(name: str, operand: Operand, dtype: np.dtype) -> None:
    """Refuse a Python integer that does not fit, as NumPy 2 does."""
    if isinstance(operand, Scalar) and promoted(operand) is int:
        check_integer(name, int(np.real(operand.value)), dtype)


_BRACKETS = "put comparisons in brackets, `(x > 0) & (y > 0)`, or convert with `.astype(int)`"
_UNDEFINED_HELP = {
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"), _BRACKETS),
    "negative": "negate truth values with `~x`",
    "subtract": "compare truth values with `x1 ^ x2`",
}


def _fits(number: Any, dtype: np.dtype) -> bool:
    """True if an integer is a value of an integer dtype; true for every other dtype."""
    return dtype.kind not in "iu" or bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)


def loop_dtypes(name: str, ufunc: np.ufunc, operands: Sequence[Operand], dtype: Any) -> tuple[np.dtype, ...]:
    """As `resolve`, or a `DTypeError` where NumPy has no such loop."""
    try:
        return resolve(ufunc, tuple(promoted(o) for o in operands), None if dtype is None else as_dtype(dtype))
    except TypeError:
        kinds = " and ".join(f"Python {promoted(o).__name__}" if o.weak else short_name(o.dtype) for o in operands)
        raise DTypeError(f"{name}: not defined for {kinds}, as in NumPy", help=_UNDEFINED_HELP.get(name)) from None


def _write(
    record_name: str, ufunc: np.ufunc, body: ScalarBody, b: Builder, operands: tuple[Operand, ...], dtype: Any
) -> Value:
    *loop, out = loop_dtypes(record_name, ufunc, operands, dtype)
    for d in (*loop, out):
        if not is_supported(d):
            raise DTypeError(f"{record_name}: NumPy would compute in {d}, which mlirml does not support yet")
    shape = broadcast_shapes(record_name, operands)
    for operand, kind in zip(operands, loop):
        check_literal(record_name, operand, kind)
    return b.elementwise(operands, loop, out, shape, lambda block, xs: body(block, xs, loop[0]))


def elementwise(
    ufunc: np.ufunc, body: ScalarBody, dtypes: tuple[str, ...], doc: str, *, name: str = "", **options: Any
) -> OpDef:
    """Define a ufunc; shapes broadcast and dtypes promote exactly as NumPy's."""
    name = name or ufunc.__name__
    build: Callable[..., Value]
    if ufunc.nin == 1:

        def build(b: Builder, x: Operand, dtype: Any = None) -> Value:
            return _write(name, ufunc, body, b, (x,), dtype)
    else:

        def build(b: Builder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
            return _write(name, ufunc, body, b, (x1, x2), dtype)

    return define(OpDef(name, "elementwise", ufunc, build, dtypes, doc, arrays=ufunc.nin, **options))


def by_kind(**ops: str) -> ScalarBody:
    """A body of one MLIR op, selected by the category of the dtype: `b`ool, signed `i`nt, `u`nsigned, `f`loat; `iu`
    means both.
    """
    table = {letter: op for letters, op in ops.items() for letter in letters}

    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        return block.op(f"{table[kind_of(dtype)]} {', '.join(xs)}", mlir_name(dtype))

    return body


def combiner(ufunc: np.ufunc) -> ScalarBody:
    """The body of a function that is a combiner in every dtype that it has."""
    rows = combiners_of(ufunc.__name__)

    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        def apply(op: str, *operands: str) -> str:
            return block.op(f"{op} {', '.join(operands)}", mlir_name(dtype))

        formula = rows[kind_of(dtype)].formula
        return evaluate(formula, dict(zip("ab", xs)), apply, lambda number: block.constant(number, dtype))

    return body


def kind_of(dtype: np.dtype) -> str:
    """`b`, `i`, `u` or `f` (bfloat16 is `f` too)."""
    return "f" if is_float(dtype) else dtype.kind


def _math(op: str) -> ScalarBody:
    return by_kind(f=op)


def in_single(body: ScalarBody) -> ScalarBody:
    """16-bit floats are computed in f32 and rounded once, as NumPy does."""

    def wrapped(block: Body, xs: list[str], dtype: np.dtype) -> str:
        if not is_float(dtype) or dtype.itemsize != 2:
            return body(block, xs, dtype)
        result = body(block, [block.cast(x, dtype, _SINGLE) for x in xs], _SINGLE)
        return block.cast(result, _SINGLE, dtype)

    return wrapped


def _compare(signed: str, unsigned: str, ordered: str) -> ScalarBody:
    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        kind = kind_of(dtype)
        if kind == "f":
            return block.op(f"arith.cmpf {ordered}, {xs[0]}, {xs[1]}", mlir_name(dtype))
        return block.op(f"arith.cmpi {signed if kind == 'i' else unsigned}, {xs[0]}, {xs[1]}", mlir_name(dtype))

    return body


def _comparison(name: str, ufunc: np.ufunc, signed: str, unsigned: str, ordered: str, doc: str) -> OpDef:
    body = _compare(signed, unsigned, ordered)

    def mixed(block: Body, xs: list[str], left: np.dtype, right: np.dtype) -> str:
        # int64 against uint64: a negative number is less than every unsigned one.
        order = body(block, xs, np.dtype(np.uint64))
        zero = block.constant(0, np.dtype(np.int64))
        signed_one = xs[0] if left.kind == "i" else xs[1]
        negative = block.op(f"arith.cmpi slt, {signed_one}, {zero}", "i64")
        answer = bool(ufunc(-1, 0) if left.kind == "i" else ufunc(0, -1))
        return block.op(f"arith.select {negative}, {block.constant(answer, _BOOL)}, {order}", "i1")

    def build(b: Builder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
        operands = (x1, x2)
        shape = broadcast_shapes(name, operands)
        loop = list(resolve(ufunc, tuple(promoted(o) for o in operands), None)[:2])
        for i, operand in enumerate(operands):
            if promoted(operand) is not int or loop[1 - i].kind not in "iu":
                continue
            if isinstance(operand, Value):  # a Python integer, which need not fit the other's dtype
                loop[i] = np.dtype(np.int64)
                loop[1 - i] = loop[1 - i] if loop[1 - i] == np.uint64 else loop[i]
            elif not _fits(operand.value, loop[1 - i]):  # every element compares alike
                return b.filled(shape, _BOOL, bool(ufunc(operand.value, 0) if i == 0 else ufunc(0, operand.value)))
        if loop[0] != loop[1]:
            return b.elementwise(operands, loop, _BOOL, shape, lambda block, xs: mixed(block, xs, loop[0], loop[1]))
        return b.elementwise(operands, loop, _BOOL, shape, lambda block, xs: body(block, xs, loop[0]))

    return define(OpDef(name, "elementwise", ufunc, build, ALL, doc, arrays=2))


def select(block: Body, condition: str, x: str, y: str, dtype: np.dtype) -> str:
    return block.op(f"arith.select {condition}, {x}, {y}", mlir_name(dtype))


def _safe_divisor(block: Body, a: str, b: str, dtype: np.dtype) -> tuple[str, str]:
    # Division by zero and MIN / -1 trap on x86, so that 1 replaces such divisors. Returns the divisor and "b was zero".
    kind = mlir_name(dtype)
    zero, one = block.constant(0, dtype), block.constant(1, dtype)
    is_zero = block.op(f"arith.cmpi eq, {b}, {zero}", kind)
    unsafe = is_zero
    if dtype.kind == "i":
        lowest = block.constant(np.iinfo(dtype).min, dtype)
        minus = block.constant(-1, dtype)
        overflow = block.op(
            f"arith.andi {block.op(f'arith.cmpi eq, {a}, {lowest}', kind)}, "
            f"{block.op(f'arith.cmpi eq, {b}, {minus}', kind)}",
            "i1",
        )
        unsafe = block.op(f"arith.ori {is_zero}, {overflow}", "i1")
    return select(block, unsafe, one, b, dtype), is_zero


def _integer_divmod(block: Body, a: str, b: str, dtype: np.dtype) -> tuple[str, str]:
    kind = mlir_name(dtype)
    divisor, is_zero = _safe_divisor(block, a, b, dtype)
    sign = "s" if dtype.kind == "i" else "u"
    quotient = block.op(f"arith.div{sign}i {a}, {divisor}", kind)
    remainder = _left_over(block, a, quotient, divisor, kind)
    zero = block.constant(0, dtype)
    if dtype.kind == "i":  # round towards minus infinity
        signs = block.op(f"arith.xori {remainder}, {divisor}", kind)
        differ = block.op(f"arith.cmpi slt, {signs}, {zero}", kind)
        inexact = block.op(f"arith.cmpi ne, {remainder}, {zero}", kind)
        adjust = block.op(f"arith.andi {differ}, {inexact}", "i1")
        one = block.constant(1, dtype)
        quotient = select(block, adjust, block.op(f"arith.subi {quotient}, {one}", kind), quotient, dtype)
        remainder = select(block, adjust, block.op(f"arith.addi {remainder}, {divisor}", kind), remainder, dtype)
    return select(block, is_zero, zero, quotient, dtype), remainder


def _left_over(block: Body, a: str, quotient: str, divisor: str, type_name: str) -> str:
    """a - quotient * divisor, which is 0 where the divisor was replaced by 1."""
    return block.op(f"arith.subi {a}, {block.op(f'arith.muli {quotient}, {divisor}', type_name)}", type_name)


def _float_divmod(block: Body, a: str, b: str, dtype: np.dtype) -> tuple[str, str]:
    """NumPy's `npy_divmod` (loops_utils.h.src): the remainder first, exactly, then the quotient from it."""
    kind = mlir_name(dtype)
    zero, one, half = (block.constant(c, dtype) for c in (0.0, 1.0, 0.5))
    by_zero = block.op(f"arith.cmpf oeq, {b}, {zero}", kind)
    remainder = block.op(f"arith.remf {a}, {b}", kind)
    dividend = select(block, by_zero, a, block.op(f"arith.subf {a}, {remainder}", kind), dtype)
    ratio = block.op(f"arith.divf {dividend}, {b}", kind)
    b_negative = block.op(f"arith.cmpf olt, {b}, {zero}", kind)
    r_negative = block.op(f"arith.cmpf olt, {remainder}, {zero}", kind)
    differ = block.op(f"arith.xori {b_negative}, {r_negative}", "i1")
    inexact = block.op(f"arith.cmpf une, {remainder}, {zero}", kind)
    adjust = block.op(f"arith.andi {differ}, {inexact}", "i1")
    moved = select(block, adjust, block.op(f"arith.addf {remainder}, {b}", kind), remainder, dtype)
    signed_zero = block.op(f"math.copysign {remainder}, {b}", kind)
    final_remainder = select(block, inexact, moved, signed_zero, dtype)
    quotient = select(block, adjust, block.op(f"arith.subf {ratio}, {one}", kind), ratio, dtype)
    floor = block.op(f"math.floor {quotient}", kind)
    off = block.op(f"arith.cmpf ogt, {block.op(f'arith.subf {quotient}, {floor}', kind)}, {half}", kind)
    floor = select(block, off, block.op(f"arith.addf {floor}, {one}", kind), floor, dtype)
    # A zero has the sign of a / b.
    a_sign, b_sign = (block.op(f"math.copysign {one}, {x}", kind) for x in (a, b))
    sign = block.op(f"arith.mulf {a_sign}, {b_sign}", kind)
    nonzero = block.op(f"arith.cmpf une, {quotient}, {zero}", kind)
    floor = select(block, nonzero, floor, block.op(f"math.copysign {zero}, {sign}", kind), dtype)
    return select(block, by_zero, ratio, floor, dtype), select(block, by_zero, remainder, final_remainder, dtype)


def _floor_divide(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return (_float_divmod if is_float(dtype) else _integer_divmod)(block, xs[0], xs[1], dtype)[0]


def _remainder(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return (_float_divmod if is_float(dtype) else _integer_divmod)(block, xs[0], xs[1], dtype)[1]


def _fmod(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind = mlir_name(dtype)
    if is_float(dtype):
        return block.op(f"arith.remf {xs[0]}, {xs[1]}", kind)
    divisor, _ = _safe_divisor(block, xs[0], xs[1], dtype)
    quotient = block.op(f"arith.div{'s' if dtype.kind == 'i' else 'u'}i {xs[0]}, {divisor}", kind)
    return _left_over(block, xs[0], quotient, divisor, kind)


def _negative(block: Body, xs: list[str], dtype: np.dtype) -> str:
    if is_float(dtype):
        return block.op(f"arith.negf {xs[0]}", mlir_name(dtype))
    return block.op(f"arith.subi {block.constant(0, dtype)}, {xs[0]}", mlir_name(dtype))


def _same(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return xs[0]


def _absolute(block: Body, xs: list[str], dtype: np.dtype) -> str:
    op = {"f": "math.absf", "i": "math.absi"}.get(kind_of(dtype))
    return block.op(f"{op} {xs[0]}", mlir_name(dtype)) if op else xs[0]


def _sign(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind = kind_of(dtype)
    zero, one = block.constant(0, dtype), block.constant(1, dtype)
    compare, letter = ("arith.cmpf o", "") if kind == "f" else ("arith.cmpi ", "s" if kind == "i" else "u")
    positive = block.op(f"{compare}{letter}gt, {xs[0]}, {zero}", mlir_name(dtype))
    if kind == "u":
        return select(block, positive, one, zero, dtype)
    negative = block.op(f"{compare}{letter}lt, {xs[0]}, {zero}", mlir_name(dtype))
    other = zero
    if kind == "f":  # NaN stays NaN; a zero of either sign gives +0
        unordered = block.op(f"arith.cmpf uno, {xs[0]}, {xs[0]}", mlir_name(dtype))
        other = select(block, unordered, xs[0], zero, dtype)
    below = select(block, negative, block.constant(-1, dtype), other, dtype)
    return select(block, positive, one, below, dtype)


def _square(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return block.op(f"arith.mul{'f' if is_float(dtype) else 'i'} {xs[0]}, {xs[0]}", mlir_name(dtype))


def _reciprocal(block: Body, xs: list[str], dtype: np.dtype) -> str:
    if not is_float(dtype):
        return _integer_reciprocal(block, xs[0], dtype)
    return block.op(f"arith.divf {block.constant(1.0, dtype)}, {xs[0]}", mlir_name(dtype))


def _integer_reciprocal(block: Body, x: str, dtype: np.dtype) -> str:
    """1 and -1 are their own; 0 gives what NumPy's conversion of infinity gives on x86, all others 0."""
    infinite = {"i4": -(2**31), "i8": -(2**63)}.get(dtype.str[1:], 0)
    result = block.constant(0, dtype)
    for own, value in ((-1, -1), (1, 1), (0, infinite)):
        if value and (own >= 0 or dtype.kind == "i"):
            here = block.op(f"arith.cmpi eq, {x}, {block.constant(own, dtype)}", mlir_name(dtype))
            result = select(block, here, block.constant(value, dtype), result, dtype)
    return result


def _scaled(factor: float) -> ScalarBody:
    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        return block.op(f"arith.mulf {xs[0]}, {block.constant(factor, dtype)}", mlir_name(dtype))

    return body


def _logical(op: str) -> ScalarBody:
    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        truths = [block.cast(x, dtype, _BOOL) for x in xs]
        return block.op(f"{op} {', '.join(truths)}", "i1")

    return body


def _logical_not(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return block.op(f"arith.xori {block.cast(xs[0], dtype, _BOOL)}, {block.constant(True, _BOOL)}", "i1")


def _invert(block: Body, xs: list[str], dtype: np.dtype) -> str:
    ones = block.constant(True if dtype == _BOOL else np.array(-1).astype(dtype), dtype)
    return block.op(f"arith.xori {xs[0]}, {ones}", mlir_name(dtype))


def _shift(op_signed: str, op_unsigned: str) -> ScalarBody:
    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        # A shift by the width or more is undefined in hardware; NumPy gives 0, or the sign for a right shift.
        kind, bits = mlir_name(dtype), 8 * dtype.itemsize
        fits = block.op(f"arith.cmpi ult, {xs[1]}, {block.constant(bits, dtype)}", kind)
        arithmetic = op_signed == "arith.shrsi" and dtype.kind == "i"
        amount = select(block, fits, xs[1], block.constant(bits - 1 if arithmetic else 0, dtype), dtype)
        shifted = block.op(f"{op_signed if dtype.kind == 'i' else op_unsigned} {xs[0]}, {amount}", kind)
        return shifted if arithmetic else select(block, fits, shifted, block.constant(0, dtype), dtype)

    return body


def _isnan(block: Body, xs: list[str], dtype: np.dtype) -> str:
    if not is_float(dtype):
        return block.constant(False, _BOOL)
    return block.op(f"arith.cmpf uno, {xs[0]}, {xs[0]}", mlir_name(dtype))


def _against_infinity(predicate: str, otherwise: bool) -> ScalarBody:
    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        if not is_float(dtype):
            return block.constant(otherwise, _BOOL)
        magnitude = block.op(f"math.absf {xs[0]}", mlir_name(dtype))
        return block.op(f"arith.cmpf {predicate}, {magnitude}, {block.constant(np.inf, dtype)}", mlir_name(dtype))

    return body


def _signbit(block: Body, xs: list[str], dtype: np.dtype) -> str:
    bits = f"i{8 * dtype.itemsize}"
    integer = np.dtype(f"i{dtype.itemsize}")
    word = block.op(f"arith.bitcast {xs[0]}", f"{mlir_name(dtype)} to {bits}")
    return block.op(f"arith.cmpi slt, {word}, {block.constant(0, integer)}", bits)


def _hypot(block: Body, xs: list[str], dtype: np.dtype) -> str:
    # Scaled by the larger side, so that squares neither overflow nor vanish; inf wins over NaN. The ratio has a sign,
    # and equal sides are those of one branch, so that all derivatives are right there.
    kind = mlir_name(dtype)
    x, y = (block.op(f"math.absf {v}", kind) for v in xs)
    zero, one, infinity = (block.constant(c, dtype) for c in (0.0, 1.0, np.inf))
    is_first = block.op(f"arith.cmpf oge, {x}, {y}", kind)
    more, less = (select(block, is_first, a, b, dtype) for a, b in (xs, xs[::-1]))
    is_zero = block.op(f"arith.cmpf oeq, {more}, {zero}", kind)
    ratio = block.op(f"arith.divf {less}, {select(block, is_zero, one, more, dtype)}", kind)
    root = block.op(f"math.sqrt {block.op(f'math.fma {ratio}, {ratio}, {one}', kind)}", kind)
    result = block.op(f"arith.mulf {block.op(f'math.absf {more}', kind)}, {root}", kind)
    infinite = [block.op(f"arith.cmpf oeq, {v}, {infinity}", kind) for v in (x, y)]
    return select(block, block.op(f"arith.ori {infinite[0]}, {infinite[1]}", "i1"), infinity, result, dtype)


def _logaddexp(exp: str, unit: float) -> ScalarBody:
    """The larger one plus `unit` log1p(exp(smaller - larger)); `unit` is 1 or 1/log(2).

    Whichever of two equal operands is taken for the larger one, the sum is smooth there, and so its derivatives are
    right: those of a maximum and of the absolute difference would not be.
    """

    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        kind = mlir_name(dtype)
        is_first = block.op(f"arith.cmpf oge, {xs[0]}, {xs[1]}", kind)
        larger, smaller = (select(block, is_first, a, b, dtype) for a, b in (xs, xs[::-1]))
        difference = block.op(f"arith.subf {smaller}, {larger}", kind)
        tail = block.op(f"math.log1p {block.op(f'{exp} {difference}', kind)}", kind)
        tail = tail if unit == 1 else block.op(f"arith.mulf {tail}, {block.constant(unit, dtype)}", kind)
        result = block.op(f"arith.addf {larger}, {tail}", kind)
        equal = block.op(f"arith.cmpf oeq, {xs[0]}, {xs[1]}", kind)
        undefined = block.op(f"arith.cmpf uno, {difference}, {difference}", kind)  # inf - inf
        return select(block, block.op(f"arith.andi {equal}, {undefined}", "i1"), larger, result, dtype)

    return body


_POSITIVE = (0.05, 4.0)

add = elementwise(np.add, combiner(np.add), ALL, "Sum of two arrays.")
subtract = elementwise(np.subtract, by_kind(iu="arith.subi", f="arith.subf"), NUMBERS, "Difference of two arrays.")
multiply = elementwise(np.multiply, combiner(np.multiply), ALL, "Product of two arrays.")
divide = elementwise(np.divide, _math("arith.divf"), ALL, "True quotient; integers give f64.", second_domain=(0.5, 4.0))
floor_divide = elementwise(
    np.floor_divide,
    in_single(_floor_divide),
    NUMBERS,
    "Quotient rounded towards minus infinity; an integer divided by 0 is 0.",
)
remainder = elementwise(
    np.remainder, in_single(_remainder), NUMBERS, "Remainder with the sign of the divisor; 0 for an integer modulo 0."
)
fmod = elementwise(np.fmod, in_single(_fmod), NUMBERS, "Remainder with the sign of the dividend, as C's fmod.")
negative = elementwise(np.negative, _negative, NUMBERS, "The negated array.")
positive = elementwise(np.positive, _same, NUMBERS, "A copy of the array.")
absolute = elementwise(np.absolute, _absolute, ALL, "Magnitude; the lowest signed integer stays what it is.")
fabs = elementwise(np.fabs, _math("math.absf"), FLOATS, "Magnitude of a float.")
sign = elementwise(np.sign, _sign, NUMBERS, "-1, 0 or 1; NaN stays NaN.")
square = elementwise(np.square, _square, NUMBERS, "The array times itself.")
sqrt = elementwise(np.sqrt, _math("math.sqrt"), ALL, "Square root.", domain=_POSITIVE)
cbrt = elementwise(np.cbrt, _math("math.cbrt"), ("f32", "f64"), "Cube root.", tolerance=4)
reciprocal = elementwise(
    np.reciprocal, _reciprocal, NUMBERS, "1 / x; for integers rounded towards 0.", domain=_POSITIVE
)
exp = elementwise(np.exp, _math("math.exp"), ALL, "e to the power of x.", tolerance=3)
exp2 = elementwise(np.exp2, _math("math.exp2"), FLOATS, "2 to the power of x.", tolerance=3)
expm1 = elementwise(np.expm1, _math("math.expm1"), FLOATS, "exp(x) - 1, exact near 0.", tolerance=4)
log = elementwise(np.log, _math("math.log"), ALL, "Natural logarithm.", domain=_POSITIVE, tolerance=3)
log2 = elementwise(np.log2, _math("math.log2"), FLOATS, "Logarithm to base 2.", domain=_POSITIVE, tolerance=4)
log10 = elementwise(np.log10, _math("math.log10"), FLOATS, "Logarithm to base 10.", domain=_POSITIVE, tolerance=4)
log1p = elementwise(np.log1p, _math("math.log1p"), FLOATS, "log(1 + x), exact near 0.", domain=(-0.9, 4.0), tolerance=4)
logaddexp = elementwise(
    np.logaddexp,
    in_single(_logaddexp("math.exp", 1.0)),
    FLOATS,
    "log(exp(x1) + exp(x2)) without overflow.",
    tolerance=6,
)
logaddexp2 = elementwise(
    np.logaddexp2,
    in_single(_logaddexp("math.exp2", 1 / np.log(2.0))),
    FLOATS,
    "log2(2**x1 + 2**x2) without overflow.",
    domain=(0.5, 4.0),
    tolerance=6,
)
sin = elementwise(np.sin, _math("math.sin"), ALL, "Sine of radians.", tolerance=3)
cos = elementwise(np.cos, _math("math.cos"), ALL, "Cosine of radians.", tolerance=3)
tan = elementwise(np.tan, _math("math.tan"), ALL, "Tangent of radians.", domain=(-1.5, 1.5), tolerance=4)
arcsin = elementwise(np.arcsin, _math("math.asin"), FLOATS, "Inverse sine, radians.", domain=(-1.0, 1.0), tolerance=4)
arccos = elementwise(np.arccos, _math("math.acos"), FLOATS, "Inverse cosine, radians.", domain=(-1.0, 1.0), tolerance=4)
arctan = elementwise(np.arctan, _math("math.atan"), FLOATS, "Inverse tangent, radians.", tolerance=4)
arctan2 = elementwise(np.arctan2, _math("math.atan2"), FLOATS, "Angle of the point (x2, x1), radians.", tolerance=4)
sinh = elementwise(np.sinh, _math("math.sinh"), FLOATS, "Hyperbolic sine.", tolerance=4)
cosh = elementwise(np.cosh, _math("math.cosh"), FLOATS, "Hyperbolic cosine.", tolerance=4)
tanh = elementwise(np.tanh, _math("math.tanh"), ALL, "Hyperbolic tangent.", tolerance=3)
arcsinh = elementwise(np.arcsinh, _math("math.asinh"), FLOATS, "Inverse hyperbolic sine.", tolerance=4)
arccosh = elementwise(
    np.arccosh, _math("math.acosh"), FLOATS, "Inverse hyperbolic cosine.", domain=(1.0, 6.0), tolerance=4
)
arctanh = elementwise(
    np.arctanh, _math("math.atanh"), FLOATS, "Inverse hyperbolic tangent.", domain=(-0.9, 0.9), tolerance=4
)
hypot = elementwise(np.hypot, in_single(_hypot), FLOATS, "sqrt(x1**2 + x2**2) without overflow.", tolerance=4)
deg2rad = elementwise(np.deg2rad, _scaled(np.pi / 180), ("f32", "f64"), "Degrees to radians.", aliases=(np.radians,))
rad2deg = elementwise(np.rad2deg, _scaled(180 / np.pi), ("f32", "f64"), "Radians to degrees.", aliases=(np.degrees,))
floor = elementwise(
    np.floor, lambda b, x, d: b.op(f"math.floor {x[0]}", mlir_name(d)) if is_float(d) else x[0], ALL, "Round down."
)
ceil = elementwise(
    np.ceil, lambda b, x, d: b.op(f"math.ceil {x[0]}", mlir_name(d)) if is_float(d) else x[0], ALL, "Round up."
)
trunc = elementwise(
    np.trunc,
    lambda b, x, d: b.op(f"math.trunc {x[0]}", mlir_name(d)) if is_float(d) else x[0],
    ALL,
    "Round towards zero.",
)
rint = elementwise(np.rint, _math("math.roundeven"), FLOATS, "Round to the nearest integer, ties to even.")
maximum = elementwise(np.maximum, combiner(np.maximum), ALL, "The larger element; NaN wins.")
minimum = elementwise(np.minimum, combiner(np.minimum), ALL, "The smaller element; NaN wins.")
fmax = elementwise(np.fmax, combiner(np.fmax), ALL, "The larger element; NaN loses.")
fmin = elementwise(np.fmin, combiner(np.fmin), ALL, "The smaller element; NaN loses.")
copysign = elementwise(np.copysign, _math("math.copysign"), FLOATS, "Magnitude of x1 with the sign of x2.")
isnan = elementwise(np.isnan, _isnan, ALL, "True where the element is NaN.")
isinf = elementwise(np.isinf, _against_infinity("oeq", False), ALL, "True where the element is infinite.")
isfinite = elementwise(
    np.isfinite, _against_infinity("olt", True), ALL, "True where the element is neither infinite nor NaN."
)
signbit = elementwise(np.signbit, _signbit, FLOATS, "True where the sign bit is set, -0.0 included.")
logical_and = elementwise(np.logical_and, _logical("arith.andi"), ALL, "Both true (not zero).")
logical_or = elementwise(np.logical_or, _logical("arith.ori"), ALL, "At least one true (not zero).")
logical_xor = elementwise(np.logical_xor, _logical("arith.xori"), ALL, "Exactly one true (not zero).")
logical_not = elementwise(np.logical_not, _logical_not, ALL, "True where the element is zero.")
bitwise_and = elementwise(np.bitwise_and, combiner(np.bitwise_and), BOOL + INTEGERS, "Bits set in both.")
bitwise_or = elementwise(np.bitwise_or, combiner(np.bitwise_or), BOOL + INTEGERS, "Bits set in either.")
bitwise_xor = elementwise(np.bitwise_xor, combiner(np.bitwise_xor), BOOL + INTEGERS, "Bits that differ.")
bitwise_invert = elementwise(np.invert, _invert, BOOL + INTEGERS, "Every bit flipped.", name="bitwise_invert")
left_shift = elementwise(np.left_shift, _shift("arith.shli", "arith.shli"), INTEGERS, "x1 shifted left by x2 bits.")
right_shift = elementwise(
    np.right_shift, _shift("arith.shrsi", "arith.shrui"), INTEGERS, "x1 shifted right by x2 bits, keeping the sign."
)
equal = _comparison("equal", np.equal, "eq", "eq", "oeq", "x1 == x2.")
not_equal = _comparison("not_equal", np.not_equal, "ne", "ne", "une", "x1 != x2.")
less = _comparison("less", np.less, "slt", "ult", "olt", "x1 < x2.")
less_equal = _comparison("less_equal", np.less_equal, "sle", "ule", "ole", "x1 <= x2.")
greater = _comparison("greater", np.greater, "sgt", "ugt", "ogt", "x1 > x2.")
greater_equal = _comparison("greater_equal", np.greater_equal, "sge", "uge", "oge", "x1 >= x2.")


def _power_body(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind = mlir_name(dtype)
    x, exponent = xs
    if is_float(dtype):
        return block.op(f"math.powf {x}, {exponent}", kind)
    if dtype.kind == "i":
        return block.op(f"math.ipowi {x}, {exponent}", kind)
    # math.ipowi reads the exponent as signed: half of it always fits.
    one = block.constant(1, dtype)
    half = block.op(f"arith.shrui {exponent}, {one}", kind)
    root = block.op(f"math.ipowi {x}, {half}", kind)
    odd = block.op(f"arith.trunci {exponent}", f"{kind} to i1")
    square = block.op(f"arith.muli {root}, {root}", kind)
    return block.op(f"arith.muli {square}, {select(block, odd, x, one, dtype)}", kind)


def _half_power(exponent: float) -> ScalarBody:
    """x ** 1.5, x ** -0.5 or x ** -1.5 by a root, with libm's results for -0.0 and -inf."""

    def body(block: Body, xs: list[str], dtype: np.dtype) -> str:
        kind = mlir_name(dtype)
        x = block.op(f"arith.addf {xs[0]}, {block.constant(0.0, dtype)}", kind)
        root = block.op(f"math.sqrt {x}", kind)
        if exponent < 0:
            root = block.op(f"arith.divf {block.constant(1.0, dtype)}, {root}", kind)
        result, at_infinity = root, 0.0
        if exponent == 1.5:
            result, at_infinity = block.op(f"arith.mulf {x}, {root}", kind), np.inf
        elif exponent == -1.5:
            result = block.op(f"arith.divf {root}, {x}", kind)
        infinite = block.op(f"arith.cmpf oeq, {x}, {block.constant(-np.inf, dtype)}", kind)
        return select(block, infinite, block.constant(at_infinity, dtype), result, dtype)

    return body


def _cube(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return block.op(f"arith.mulf {_square(block, xs, dtype)}, {xs[0]}", mlir_name(dtype))


# Exponents for which a few products are within 2 ulp, at a tenth of the cost of `pow`.
_PRODUCTS: dict[float, ScalarBody] = {
    3: _cube,
    4: lambda block, xs, dtype: _square(block, [_square(block, xs, dtype)], dtype),
    **{exponent: _half_power(exponent) for exponent in (1.5, -0.5, -1.5)},
}


@operation("elementwise", np.power, dtypes=NUMBERS, arrays=2, domain=_POSITIVE, second_domain=(0.0, 3.0), tolerance=4)
def power(b: Builder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
    """x1 to the power of x2; an integer power must not be negative."""
    if dtype is None:
        check_exponents(b, x1, x2)
    if isinstance(x2, Scalar) and x2.weak and not isinstance(x2.value, bool):
        value = x2.value
        special = {2: square, 1: positive, 0.5: sqrt, -1: reciprocal}.get(value)  # type: ignore[arg-type]
        floating = is_float(x1.dtype) and not x1.weak
        if floating and isinstance(x1, Value):  # NumPy raises bfloat16 to a float power in f32
            x1 = b.cast(x1, loop_dtypes("power", np.power, (x1, x2), dtype)[0])
        if special is not None and (floating or (value in (1, 2) and isinstance(value, int) and x1.dtype.kind in "iu")):
            return special.build(b, x1, dtype)
        products = _PRODUCTS.get(value)  # type: ignore[arg-type]
        if products is not None and floating and x1.dtype.itemsize > 2 and dtype is None:
            return _write("power", np.power, products, b, (x1, x2), dtype)
    return _write("power", np.power, _power_body, b, (x1, x2), dtype)


@operation(
    "elementwise", np.float_power, dtypes=("f64",), arrays=2, domain=_POSITIVE, second_domain=(0.0, 3.0), tolerance=4
)
def float_power(b: Builder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
    """x1 to the power of x2 in f64."""
    return _write("float_power", np.float_power, _power_body, b, (x1, x2), dtype)


@operation("elementwise", np.where, dtypes=ALL, arrays=3, scalars=False)
def where(b: Builder, condition: Operand, x: Operand | None = None, y: Operand | None = None) -> Value:
    """Elements of x where the condition is true, else of y."""
    if x is None or y is None:
        raise ShapeError(
            "where: with a condition only, the shape of the result would depend on the data",
            help="give both values: `np.where(condition, x, y)`",
        )
    dtype = result_type(x, y)
    shape = broadcast_shapes("where", (condition, x, y))
    for operand in (x, y):
        check_literal("where", operand, dtype)
    return b.elementwise(
        (condition, x, y), (_BOOL, dtype, dtype), dtype, shape, lambda block, v: select(block, v[0], v[1], v[2], dtype)
    )


@operation("elementwise", np.clip, dtypes=ALL, arrays=3, methods=("clip",), array_options=("min", "max"))
def clip(
    b: Builder,
    a: Operand,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
    out: None = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Value:
    """Limit the elements to [a_min, a_max]; either may be None. NaN stays NaN."""
    low, high = (a_min if min is None else as_operand(min)), (a_max if max is None else as_operand(max))
    a = strong(a)  # limits give way to it, but a Python number does not give way to them
    if a.dtype.kind in "iu":  # a Python integer that no element can exceed is no limit, even one that does not fit
        limits = np.iinfo(a.dtype)
        smallest, largest = _literal(low), _literal(high)
        low = None if smallest is not None and smallest <= limits.min else low
        high = None if largest is not None and largest >= limits.max else high
    result: Value
    if low is None or high is None:
        record = positive if low is high else maximum if high is None else minimum
        result = record.build(b, a, *(x for x in (low, high) if x is not None))
        return result
    if "bfloat16" in (a.dtype.name, low.dtype.name, high.dtype.name):
        # NumPy has no such loop for `clip`, nor a common dtype with most others: it takes the first loop for all three.
        known = [x.dtype for x in (a, low, high) if not x.weak or x.dtype.kind == "c"]
        dtype = next(d for d in map(np.dtype, "fdFD") if all(np.can_cast(x, d) for x in known))
    else:
        dtype = result_type(a, low, high)
    shape = broadcast_shapes("clip", (a, low, high))
    for operand in (low, high):
        check_literal("clip", operand, dtype)

    def body(block: Body, xs: list[str]) -> str:
        return combiner(np.minimum)(block, [combiner(np.maximum)(block, xs[:2], dtype), xs[2]], dtype)

    return b.elementwise((a, low, high), [dtype] * 3, dtype, shape, body)


def _literal(x: Any) -> int | None:
    """The value of a Python integer in the source, None for anything else."""
    return x.value if isinstance(x, Scalar) and type(x.value) is int else None


@operation("elementwise", np.round, dtypes=ALL, methods=("round",), aliases=(np.around,))
def round_(b: Builder, a: Operand, decimals: int = 0, out: None = None) -> Value:
    """Round to so many decimals, ties to even; for a negative number to tens, hundreds and so on."""
    places = operator.index(decimals)
    result: Value
    if a.dtype.kind in "iu" and places >= 0:
        result = positive.build(b, a)
        return result
    if places == 0:
        result = rint.build(b, a)
        return result
    if a.dtype == _BOOL:
        raise DTypeError("`round`: truth values have no decimals", help="convert them with `.astype(...)`")
    factor = Scalar(10.0 ** abs(places))
    there, back = (multiply, divide) if places > 0 else (divide, multiply)
    result = back.build(b, rint.build(b, there.build(b, a, factor)), factor)
    return b.cast(result, a.dtype)


@operation("elementwise", np.isclose, dtypes=ALL, arrays=2, array_options=("rtol", "atol"))
def isclose(
    builder: Builder, a: Operand, b: Operand, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Value:
    """True where |a - b| <= atol + rtol * |b|, or both are the same infinity."""
    y = builder.broadcast(b, b.shape, result_type(b, Scalar(1.0)))  # so that differences of integers do not wrap
    difference = absolute.build(builder, subtract.build(builder, a, y))
    allowed = multiply.build(builder, as_operand(rtol), absolute.build(builder, y))
    bound = add.build(builder, as_operand(atol), allowed)
    close = logical_and.build(builder, less_equal.build(builder, difference, bound), isfinite.build(builder, y))
    result: Value = logical_or.build(builder, close, equal.build(builder, a, y))
    if equal_nan:
        both = logical_and.build(builder, isnan.build(builder, a), isnan.build(builder, y))
        result = logical_or.build(builder, result, both)
    return result
