"""Every `arith` and `math` operation of the reference target against Python integers, fractions and `math`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.errors import TargetError
from mlirml.interpreter.interpreter import interpret
from mlirml.interpreter.program import CONTROLS, EVALUATES, NOT_EVALUATED, TERMINATORS
from mlirml.interpreter.scalar import FLOAT_PREDICATES
from mlirml.ir import bindings as ir

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16"} | {
    "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
FLOATS = [np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)]
INTEGERS = [np.dtype(np.bool_), np.dtype(np.int8), np.dtype(np.int64)]
TESTED: set[str] = set()
"""The operations that a test below runs; the last test compares it with the table of rules."""

CONTEXT = ir.make_context()
Number = Any


def evaluate(name: str, operands: list[np.ndarray], results: list[Any], attributes: str = "") -> list[np.ndarray]:
    """Run one operation on 1-D arrays."""
    types = [f"tensor<{len(v)}x{NAMES[v.dtype.name]}>" for v in operands]
    elements = [kind if isinstance(kind, str) else NAMES[np.dtype(kind).name] for kind in results]
    out = [f"tensor<{len(operands[0])}x{element}>" for element in elements]
    arguments = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(types))
    names = ", ".join(f"%a{n}" for n in range(len(types)))
    text = f"""func.func @main({arguments}) -> ({", ".join(out)}) {{
      %r:{len(out)} = "{name}"({names}) {{{attributes}}} : ({", ".join(types)}) -> ({", ".join(out)})
      return {", ".join(f"%r#{n}" for n in range(len(out)))} : {", ".join(out)}
    }}"""
    return interpret(ir.parse(text, CONTEXT), operands)


def nearest(exact: Fraction, dtype: np.dtype[Any]) -> Number:
    """A rational number rounded to a float dtype, ties to even, by comparing it with its neighbours."""
    guess = np.array(float(exact)).astype(dtype)[()]
    around = [np.nextafter(guess, dtype.type(-np.inf)), guess, np.nextafter(guess, dtype.type(np.inf))]
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    finite = [v for v in around if np.isfinite(v)]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(bits)) & 1))


def integer_samples(dtype: np.dtype[Any]) -> np.ndarray:
    """All values of i1 and i8; of wider types the interesting ones."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.itemsize == 1:
        return np.arange(-128, 128).astype(np.int8)
    limits = np.iinfo(dtype)
    edges = [limits.max, limits.min, limits.max - 1, limits.min + 1, 0x123456789ABCDEF, -0x123456789ABCDEF]
    return np.array([0, 1, -1, 2, -2, 3, 7, -7, 63, 64, 1 << 31, -(1 << 31), *edges], dtype)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of two values."""
    return np.repeat(values, len(values)), np.tile(values, len(values))


def width_of(dtype: np.dtype[Any]) -> int:
    return 1 if dtype.kind == "b" else 8 * dtype.itemsize


def as_signed(value: Number, width: int) -> int:
    value = int(value) & ((1 << width) - 1)
    return value - (1 << width) if value >> (width - 1) else value


def as_unsigned(value: Number, width: int) -> int:
    return int(value) & ((1 << width) - 1)


def truncated_division(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


SIGNED_BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.divsi": truncated_division,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.remsi": lambda a, b: a - b * truncated_division(a, b),
    "arith.maxsi": max,
    "arith.minsi": min,
    "math.ipowi": power,
}
UNSIGNED_BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.divui": lambda a, b: a // b,
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.remui": lambda a, b: a % b,
    "arith.maxui": max,
    "arith.minui": min,
}
DIVIDES = {name for name in SIGNED_BINARY | UNSIGNED_BINARY if "div" in name or "rem" in name}
TESTED |= SIGNED_BINARY.keys() | UNSIGNED_BINARY.keys()


# A power of an i1 is only ever undefined or itself.
CASES = [(name, dtype) for name in SIGNED_BINARY | UNSIGNED_BINARY for dtype in INTEGERS]
CASES.remove(("math.ipowi", np.dtype(np.bool_)))


@pytest.mark.parametrize("name, dtype", CASES, ids=str)
def test_integer_operations_wrap_around_and_take_the_sign_from_the_name(name: str, dtype: np.dtype[Any]) -> None:
    width = width_of(dtype)
    read = as_signed if name in SIGNED_BINARY else as_unsigned
    function = (SIGNED_BINARY | UNSIGNED_BINARY)[name]
    a, b = pairs(integer_samples(dtype))
    if name in DIVIDES:  # what is undefined: division by zero, and the least number by -1
        least = as_signed(1 << (width - 1), width)
        defined = [y != 0 and not (read is as_signed and x == least and y == -1) for x, y in (
            (read(x, width), read(y, width)) for x, y in zip(a, b)
        )]  # fmt: skip
        a, b = a[defined], b[defined]
    elif name == "math.ipowi":
        a, b = a[(a != 0) | (b >= 0)], b[(a != 0) | (b >= 0)]
    if not len(a):
        return
    (result,) = evaluate(name, [a, b], [dtype])
    expected = [as_signed(function(read(x, width), read(y, width)), width) for x, y in zip(a, b)]
    assert [as_signed(r, width) for r in result] == expected


def test_undefined_divisions_and_shifts_do_not_stop_the_program() -> None:
    low = np.array([-(1 << 31), 5, 5], np.int32)
    for name in [*sorted(DIVIDES), "arith.shli", "arith.shrsi", "arith.shrui"]:
        (result,) = evaluate(name, [low, np.array([-1, 0, 99], np.int32)], [np.int32])
        assert result.dtype == np.int32


@pytest.mark.parametrize("dtype", INTEGERS[1:], ids=str)
@pytest.mark.parametrize("name", ["arith.shli", "arith.shrsi", "arith.shrui"])
def test_shifts(name: str, dtype: np.dtype[Any]) -> None:
    width = width_of(dtype)
    values = np.repeat(integer_samples(dtype), width)
    amounts = np.tile(np.arange(width), len(values) // width).astype(dtype)
    (result,) = evaluate(name, [values, amounts], [dtype])
    read = as_unsigned if name == "arith.shrui" else as_signed
    shift = (lambda x, n: x << n) if name == "arith.shli" else (lambda x, n: x >> n)
    assert result.tolist() == [as_signed(shift(read(x, width), int(n)), width) for x, n in zip(values, amounts)]


TESTED |= {"arith.shli", "arith.shrsi", "arith.shrui"}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_extended_sums_and_products(dtype: np.dtype[Any]) -> None:
    width = width_of(dtype)
    a, b = pairs(integer_samples(dtype))
    ua, ub = [as_unsigned(x, width) for x in a], [as_unsigned(x, width) for x in b]
    total, carry = evaluate("arith.addui_extended", [a, b], [dtype, bool])
    assert [as_unsigned(x, width) + (int(c) << width) for x, c in zip(total, carry)] == [x + y for x, y in zip(ua, ub)]
    rest, borrow = evaluate("arith.subui_extended", [a, b], [dtype, bool])
    assert [as_unsigned(x, width) - (int(c) << width) for x, c in zip(rest, borrow)] == [x - y for x, y in zip(ua, ub)]
    for name, read in (("arith.mului_extended", as_unsigned), ("arith.mulsi_extended", as_signed)):
        low, high = evaluate(name, [a, b], [dtype, dtype])
        joined = [as_unsigned(x, width) + (read(y, width) << width) for x, y in zip(low, high)]
        assert joined == [read(x, width) * read(y, width) for x, y in zip(a, b)]


TESTED |= {"arith.addui_extended", "arith.subui_extended", "arith.mului_extended", "arith.mulsi_extended"}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("predicate", range(10))
def test_integer_comparison(predicate: int, dtype: np.dtype[Any]) -> None:
    width = width_of(dtype)
    a, b = pairs(integer_samples(dtype))
    read = as_unsigned if predicate >= 6 else as_signed
    compare: Callable[[int, int], bool] = [
        lambda x, y: x == y, lambda x, y: x != y,
        *[lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: x > y, lambda x, y: x >= y] * 2,
    ][predicate]  # fmt: skip
    (result,) = evaluate("arith.cmpi", [a, b], [bool], f"predicate = {predicate} : i64")
    assert result.tolist() == [compare(read(x, width), read(y, width)) for x, y in zip(a, b)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("number", range(16))
def test_float_comparison_is_ordered_or_unordered_as_its_name_says(number: int, dtype: np.dtype[Any]) -> None:
    name = list(FLOAT_PREDICATES)[number]
    a, b = pairs(np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]).astype(dtype))
    (result,) = evaluate("arith.cmpf", [a, b], [bool], f"predicate = {number} : i64")
    for x, y, value in zip(a.tolist(), b.tolist(), result.tolist()):
        unordered = math.isnan(x) or math.isnan(y)
        if name in ("false", "true"):
            expected = name == "true"
        elif name in ("ord", "uno"):
            expected = unordered == (name == "uno")
        else:
            expected = name[0] == "u" if unordered else getattr(operator, name[1:])(x, y)
        assert value == expected, (name, x, y)


TESTED |= {"arith.cmpi", "arith.cmpf"}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_arithmetic_rounds_each_operation_once(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 50)).astype(dtype)
    exact: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        "arith.addf": lambda x, y: x + y,
        "arith.subf": lambda x, y: x - y,
        "arith.mulf": lambda x, y: x * y,
        "arith.divf": lambda x, y: x / y,
        "arith.remf": lambda x, y: x - y * int(x / y),
    }
    for name, function in exact.items():
        (result,) = evaluate(name, [a, b], [dtype])
        for x, y, value in zip(a, b, result):
            assert value == nearest(function(Fraction(float(x)), Fraction(float(y))), dtype), (name, x, y)
    (result,) = evaluate("arith.negf", [a], [dtype])
    assert result.tolist() == [-x for x in a.tolist()]


TESTED |= {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.negf"}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_maximum_and_minimum_differ_in_nan(dtype: np.dtype[Any]) -> None:
    a, b = pairs(np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan]).astype(dtype))
    for name, choose in (("max", max), ("min", min)):
        (propagates,) = evaluate(f"arith.{name}imumf", [a, b], [dtype])
        (ignores,) = evaluate(f"arith.{name}numf", [a, b], [dtype])
        for x, y, p, i in zip(a.tolist(), b.tolist(), propagates.tolist(), ignores.tolist()):
            if math.isnan(x) or math.isnan(y):
                assert math.isnan(p)
                number = y if math.isnan(x) else x
                assert i == number or (math.isnan(i) and math.isnan(number))
            else:
                expected = choose(x, y, key=lambda v: (v, math.copysign(1, v)))
                assert (p, math.copysign(1, p)) == (expected, math.copysign(1, expected))
                assert i == expected


TESTED |= {"arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_rounds_once(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 200)).astype(dtype)
    # Half the sums cancel, so that a product rounded before the sum would show.
    c = np.where(np.arange(200) % 2, -(a * b), rng.standard_normal(200).astype(dtype)).astype(dtype)
    (result,) = evaluate("math.fma", [a, b, c], [dtype])
    for x, y, z, value in zip(a, b, c, result):
        assert value == nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), dtype)


def test_fma_keeps_infinities_and_nan() -> None:
    a, b, c = np.array([[np.inf, 1e300, np.nan, 0.0], [2.0, 1e300, 1.0, np.inf], [1.0, -1.0, 1.0, 1.0]])
    (result,) = evaluate("math.fma", [a, b, c], [np.float64])
    np.testing.assert_array_equal(result, [np.inf, np.inf, np.nan, np.nan])


TESTED.add("math.fma")


def sample(low: float, high: float) -> np.ndarray:
    return np.random.default_rng(11).uniform(low, high, 64)


HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.25, -3.0, 7.75])

ONE_ARGUMENT: dict[str, tuple[Callable[[float], float], np.ndarray]] = {
    "math.absf": (abs, sample(-3, 3)),
    "math.acos": (math.acos, sample(-1, 1)),
    "math.acosh": (math.acosh, sample(1.1, 9)),
    "math.asin": (math.asin, sample(-1, 1)),
    "math.asinh": (math.asinh, sample(-9, 9)),
    "math.atan": (math.atan, sample(-9, 9)),
    "math.atanh": (math.atanh, sample(-0.9, 0.9)),
    "math.cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), sample(-9, 9)),
    "math.ceil": (math.ceil, HALVES),
    "math.cos": (math.cos, sample(-9, 9)),
    "math.cosh": (math.cosh, sample(-4, 4)),
    "math.erf": (math.erf, sample(-3, 3)),
    "math.erfc": (math.erfc, sample(-3, 3)),
    "math.exp": (math.exp, sample(-9, 9)),
    "math.exp2": (lambda x: 2.0**x, sample(-9, 9)),
    "math.expm1": (math.expm1, sample(-1, 1)),
    "math.floor": (math.floor, HALVES),
    "math.log": (math.log, sample(0.1, 99)),
    "math.log10": (math.log10, sample(0.1, 99)),
    "math.log1p": (math.log1p, sample(-0.5, 2)),
    "math.log2": (math.log2, sample(0.1, 99)),
    "math.round": (
        lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
        HALVES,
    ),
    "math.roundeven": (round, HALVES),
    "math.rsqrt": (lambda x: 1 / math.sqrt(x), sample(0.1, 9)),
    "math.sin": (math.sin, sample(-9, 9)),
    "math.sinh": (math.sinh, sample(-4, 4)),
    "math.sqrt": (math.sqrt, sample(0, 9)),
    "math.tan": (math.tan, sample(-1, 1)),
    "math.tanh": (math.tanh, sample(-3, 3)),
    "math.trunc": (math.trunc, HALVES),
}
TESTED |= ONE_ARGUMENT.keys()


def assert_within_ulps(result: np.ndarray, expected: list[float], count: int) -> None:
    rounded = np.array(expected, np.float64).astype(result.dtype)
    distance = np.abs(result.astype(np.float64) - rounded.astype(np.float64))
    assert (distance <= count * np.abs(np.spacing(rounded).astype(np.float64))).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_function_of_one_float(name: str, dtype: np.dtype[Any]) -> None:
    function, values = ONE_ARGUMENT[name]
    x = values.astype(dtype)
    (result,) = evaluate(name, [x], [dtype])
    assert result.dtype == dtype
    assert_within_ulps(result, [float(function(float(v))) for v in x], 4 if dtype == np.float64 else 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_two_or_three_floats(dtype: np.dtype[Any]) -> None:
    x, y = sample(0.1, 4).astype(dtype), sample(-3, 3)[::-1].astype(dtype)
    pairs_of_floats = [(float(a), float(b)) for a, b in zip(x, y)]
    ulps = 4 if dtype == np.float64 else 1
    assert_within_ulps(evaluate("math.powf", [x, y], [dtype])[0], [a**b for a, b in pairs_of_floats], ulps)
    assert_within_ulps(evaluate("math.atan2", [y, x], [dtype])[0], [math.atan2(b, a) for a, b in pairs_of_floats], ulps)
    signed = [math.copysign(a, b) for a, b in pairs_of_floats]
    assert_within_ulps(evaluate("math.copysign", [x, y], [dtype])[0], signed, 0)
    n = (np.arange(64) % 25 - 12).astype(np.int32)
    x = sample(0.5, 1.5).astype(dtype)
    assert_within_ulps(evaluate("math.fpowi", [x, n], [dtype])[0], [float(a) ** int(b) for a, b in zip(x, n)], ulps)
    low, high = np.full_like(y, -1), np.full_like(y, 2)
    assert evaluate("math.clampf", [y, low, high], [dtype])[0].tolist() == [min(max(v, -1), 2) for v in y.tolist()]
    sine, cosine = evaluate("math.sincos", [y], [dtype, dtype])
    assert_within_ulps(sine, [math.sin(v) for v in y.tolist()], ulps)
    assert_within_ulps(cosine, [math.cos(v) for v in y.tolist()], ulps)


TESTED |= {"math.powf", "math.atan2", "math.copysign", "math.fpowi", "math.clampf", "math.sincos"}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_classes_of_floats(dtype: np.dtype[Any]) -> None:
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    x = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, tiny, tiny / 2, -tiny / 2]).astype(dtype)
    assert evaluate("math.isnan", [x], [bool])[0].tolist() == [False] * 5 + [True] + [False] * 3
    assert evaluate("math.isinf", [x], [bool])[0].tolist() == [False] * 3 + [True, True] + [False] * 4
    assert evaluate("math.isfinite", [x], [bool])[0].tolist() == [True] * 3 + [False] * 3 + [True] * 3
    assert evaluate("math.isnormal", [x], [bool])[0].tolist() == [False, False, True, *[False] * 3, True, False, False]
    (flushed,) = evaluate("arith.flush_denormals", [x], [dtype])
    np.testing.assert_array_equal(flushed[:7].astype(np.float64), x[:7].astype(np.float64))
    assert flushed[7:].tolist() == [0.0, 0.0]
    assert np.signbit(flushed[7:]).tolist() == [False, True]


TESTED |= {"math.isnan", "math.isinf", "math.isfinite", "math.isnormal", "arith.flush_denormals"}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_counts_of_bits(dtype: np.dtype[Any]) -> None:
    width, x = width_of(dtype), integer_samples(dtype)
    texts = [format(as_unsigned(v, width), f"0{width}b") for v in x]
    for name, count in {
        "math.ctlz": lambda t: len(t) - len(t.lstrip("0")),
        "math.cttz": lambda t: len(t) - len(t.rstrip("0")),
        "math.ctpop": lambda t: t.count("1"),
    }.items():
        assert [as_unsigned(v, width) for v in evaluate(name, [x], [dtype])[0]] == [count(t) for t in texts]


def test_absolute_value_of_integers() -> None:
    x = np.array([3, -3, 0, -127], np.int8)
    assert evaluate("math.absi", [x], [np.int8])[0].tolist() == [3, 3, 0, 127]


TESTED |= {"math.ctlz", "math.cttz", "math.ctpop", "math.absi"}


def test_select_takes_each_element_from_one_side() -> None:
    a, b = np.arange(4.0), -np.arange(4.0)
    (result,) = evaluate("arith.select", [np.array([True, False, True, False]), a, b], [np.float64])
    assert result.tolist() == [0, -1, 2, -3]


def test_integer_casts_extend_by_sign_or_zero_and_keep_the_low_bits() -> None:
    x = np.array([-1, 5, -128, 127], np.int8)
    assert evaluate("arith.extsi", [x], [np.int32])[0].tolist() == [-1, 5, -128, 127]
    assert evaluate("arith.extui", [x], [np.int32])[0].tolist() == [255, 5, 128, 127]
    assert evaluate("arith.index_cast", [x], ["index"])[0].tolist() == [-1, 5, -128, 127]
    assert evaluate("arith.index_castui", [x], ["index"])[0].tolist() == [255, 5, 128, 127]
    assert evaluate("arith.trunci", [np.array([300, -1, 128], np.int32)], [np.int8])[0].tolist() == [44, -1, -128]
    assert evaluate("arith.trunci", [np.array([2, 3, -1], np.int32)], [bool])[0].tolist() == [False, True, True]
    bits = np.array([True, False])
    assert evaluate("arith.extsi", [bits], [np.int8])[0].tolist() == [-1, 0]
    assert evaluate("arith.extui", [bits], [np.int8])[0].tolist() == [1, 0]
    assert evaluate("arith.index_cast", [bits], ["index"])[0].tolist() == [-1, 0]


@pytest.mark.parametrize("source, target", [(a, b) for a in FLOATS for b in FLOATS if a.itemsize > b.itemsize], ids=str)
def test_float_casts_round_to_nearest_even_once(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    last = 2.0 ** -{"bfloat16": 7, "float16": 10, "float32": 23}[target.name]
    little = 2.0**-20 if source == np.float32 else 2.0**-45
    x = np.array([1 + (n + 0.5) * last + s * little for n in range(4) for s in (-1, 0, 1)]).astype(source)
    (result,) = evaluate("arith.truncf", [x], [target])
    assert result.tolist() == [nearest(Fraction(float(v)), target).tolist() for v in x]


def test_widening_float_casts_are_exact() -> None:
    x = np.array([1.5, -0.1, np.inf, 65504], np.float16)
    np.testing.assert_array_equal(evaluate("arith.extf", [x], [np.float64])[0], x.astype(np.float64))
    (result,) = evaluate("arith.convertf", [x], [BF16])
    assert result.dtype == BF16
    assert result.tolist()[:2] == [1.5, float(nearest(Fraction(float(x[1])), BF16))]


def test_floats_become_integers_by_truncation() -> None:
    x = np.array([1.9, -1.9, 100.0, -100.5], np.float32)
    assert evaluate("arith.fptosi", [x], [np.int8])[0].tolist() == [1, -1, 100, -100]
    big = np.array([200.7, 0.5, 255.0], np.float64)
    assert evaluate("arith.fptoui", [big], [np.int8])[0].view(np.uint8).tolist() == [200, 0, 255]
    huge = np.array([2.0**63, 2.0**64 - 2048])
    assert evaluate("arith.fptoui", [huge], [np.int64])[0].view(np.uint64).tolist() == [2**63, 2**64 - 2048]
    assert evaluate("arith.fptosi", [np.array([np.nan, np.inf])], [np.int32])[0].dtype == np.int32


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_integers_become_the_nearest_float(dtype: np.dtype[Any]) -> None:
    x = np.array([0, -1, 7, 257, -2049, 16777217, (1 << 40) + 1, (1 << 53) - 1], np.int64)
    x = x[np.abs(x) < 65000] if dtype == np.float16 else x
    (result,) = evaluate("arith.sitofp", [x], [dtype])
    assert result.tolist() == [float(nearest(Fraction(int(v)), dtype)) for v in x]
    (result,) = evaluate("arith.uitofp", [np.array([-1, 5], np.int8)], [dtype])
    assert result.tolist() == [float(nearest(Fraction(255), dtype)), 5.0]
    assert evaluate("arith.sitofp", [np.array([True, False])], [dtype])[0].tolist() == [-1.0, 0.0]
    assert evaluate("arith.uitofp", [np.array([True, False])], [dtype])[0].tolist() == [1.0, 0.0]


def test_bitcast_keeps_the_bits() -> None:
    x = np.array([1.0, -0.0], np.float32)
    assert evaluate("arith.bitcast", [x], [np.int32])[0].tolist() == [0x3F800000, -(1 << 31)]


TESTED |= {
    "arith.select", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui",
    "arith.truncf", "arith.extf", "arith.convertf", "arith.fptosi", "arith.fptoui", "arith.sitofp", "arith.uitofp",
    "arith.bitcast",
}  # fmt: skip


def constant(text: str, kind: str) -> np.ndarray:
    module = f"func.func @main() -> {kind} {{ %0 = arith.constant {text} : {kind}  return %0 : {kind} }}"
    return interpret(ir.parse(module), [])[0]


def test_constants() -> None:
    assert constant("dense<[[1, -2], [3, 4]]>", "tensor<2x2xi8>").tolist() == [[1, -2], [3, 4]]
    assert constant("dense<true>", "tensor<3xi1>").tolist() == [True] * 3
    assert constant("dense<[true, false]>", "tensor<2xi1>").tolist() == [True, False]
    assert constant("dense<2.5>", "tensor<2xf16>").dtype == np.float16
    assert constant("-1", "i8") == -1
    assert constant("7", "index") == 7
    assert np.isnan(constant("0x7FC00000", "f32"))
    assert constant("dense<>", "tensor<0x3xf32>").shape == (0, 3)


def test_constants_of_bfloat16_are_read_from_text_and_hex() -> None:
    few = constant("dense<[[1.0, -2.5], [0x7F80, 0.0]]>", "tensor<2x2xbf16>")
    assert few.dtype == BF16
    assert few.tolist() == [[1.0, -2.5], [np.inf, 0.0]]
    many = ", ".join(f"{n}.0" for n in range(128))
    assert constant(f"dense<[{many}]>", "tensor<128xbf16>").tolist() == [float(n) for n in range(128)]


def test_constant_in_a_resource() -> None:
    text = """func.func @main() -> tensor<2xf32> {
      %0 = arith.constant dense_resource<weights> : tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    {-# dialect_resources: { builtin: { weights: "0x040000000000803F00000040" } } #-}"""
    assert interpret(ir.parse(text), [])[0].tolist() == [1.0, 2.0]


TESTED.add("arith.constant")


DIALECTS = [
    "affine",
    "arith",
    "bufferization",
    "cf",
    "func",
    "linalg",
    "math",
    "memref",
    "scf",
    "tensor",
    "ub",
    "vector",
]
WITHOUT_RULE = {
    "func.func": "run by name",
    "linalg.index": "a slot of the operation around it",
    "memref.global": "made when memref.get_global asks",
    "tensor.parallel_insert_slice": "part of scf.forall",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_operation_has_a_rule_or_a_reason(dialect: str) -> None:
    module = ir.__getattr__(dialect)  # the classes, also where `ir` has a part of the dialect itself
    classes = [item for item in vars(module).values() if isinstance(item, type) and hasattr(item, "_ODS_REGIONS")]
    classes = [item for item in classes if hasattr(item, "OPERATION_NAME")]
    names = {item.OPERATION_NAME for item in classes}
    structured = {item.OPERATION_NAME for item in classes if dialect == "linalg" and item._ODS_REGIONS[0] == 1}
    assert names
    handled = EVALUATES.keys() | CONTROLS.keys() | TERMINATORS | WITHOUT_RULE.keys() | structured
    assert names - handled == NOT_EVALUATED.keys() & names
    assert not NOT_EVALUATED.keys() & handled


def test_every_rule_for_scalars_is_tested() -> None:
    assert {name for name in EVALUATES if name.startswith(("arith.", "math."))} == TESTED


def test_other_rounding_modes_are_refused() -> None:
    with pytest.raises(TargetError, match=r"does not run arith\.truncf"):
        evaluate("arith.truncf", [np.ones(2)], [np.float32], "roundingmode = 1 : i32")
