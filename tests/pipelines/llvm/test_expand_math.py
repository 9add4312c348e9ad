"""Accuracy and special values of the expanded functions, on this processor and on one without fma."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from mlirml.ir.bindings import math as math_dialect
from mlirml.ir.bindings import operations, parse, to_text
from mlirml.ir.location import is_unknown
from mlirml.pipelines.llvm.expand_math import MATH, ExpandMathPass
from mlirml.targets.llvm.codegen import compile_to_object
from tests.pipelines.elementwise import Array, Processor, compiled, lowered, processors

PROCESSORS = {p.name: p for p in processors()}
DTYPES = {"f32": np.float32, "f64": np.float64}
COUNT = 1 << 16
INF, NAN, PI = math.inf, math.nan, math.pi

# The largest error in ulp that is promised, for f32 and f64; and where the arguments are dense.
BOUNDS: dict[str, tuple[float, float, float, float]] = {
    "exp": (1.5, 1.5, -104, 89),
    "exp2": (1.5, 1.5, -150, 129),
    "expm1": (2, 2, -20, 89),
    "log": (1.5, 1.5, 0, 10),
    "log2": (3, 2, 0, 10),
    "log10": (4, 2, 0, 10),
    "log1p": (2, 1.5, -1, 10),
    "tanh": (2.5, 2, -10, 10),
    "sinh": (4, 2, -90, 90),
    "cosh": (3, 2, -90, 90),
    "asinh": (4, 2, -10, 10),
    "acosh": (4, 2, 1, 10),
    "atanh": (4, 2, -1, 1),
    "asin": (4, 2, -1, 1),
    "acos": (4, 1.5, -1, 1),
    "atan": (4, 2, -10, 10),
    "sin": (2, 1.5, -100, 100),
    "cos": (2, 1.5, -100, 100),
    "tan": (4, 2, -100, 100),
    "erf": (1.5, 2, -5, 5),
    "erfc": (3, 2, -6, 28),
    "cbrt": (2, 1, -10, 10),
    "rsqrt": (1.5, 1.5, 0, 10),
}
NUMPY = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "powf": np.power, "atan2": np.arctan2,
}  # fmt: skip

# Arguments and exact results. Results of 2 are not written as such: NaN stands for itself.
ZERO_TO_ZERO = ((0.0, 0.0), (-0.0, -0.0), (NAN, NAN))
SPECIAL: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": ((0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e5, INF), (-1e5, 0)),
    "exp2": ((0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (10, 1024), (-3, 0.125), (-126, 2.0**-126)),
    "expm1": (*ZERO_TO_ZERO, (INF, INF), (-INF, -1), (-1e5, -1), (1e5, INF)),
    "log": ((1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)),
    "log2": ((1, 0), (8, 3), (0.25, -2), (0, -INF), (INF, INF), (-1, NAN), (NAN, NAN)),
    "log10": ((1, 0), (0, -INF), (INF, INF), (-1, NAN), (NAN, NAN), (1000, 3), (10, 1)),
    "log1p": (*ZERO_TO_ZERO, (-1, -INF), (INF, INF), (-2, NAN), (-INF, NAN)),
    "tanh": (*ZERO_TO_ZERO, (INF, 1), (-INF, -1), (30, 1), (-30, -1)),
    "sinh": (*ZERO_TO_ZERO, (INF, INF), (-INF, -INF), (1e4, INF)),
    "cosh": ((0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e4, INF)),
    "asinh": (*ZERO_TO_ZERO, (INF, INF), (-INF, -INF)),
    "acosh": ((1, 0), (0.5, NAN), (-3, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)),
    "atanh": (*ZERO_TO_ZERO, (1, INF), (-1, -INF), (2, NAN), (-INF, NAN), (1e30, NAN)),
    "asin": (*ZERO_TO_ZERO, (2, NAN), (-INF, NAN), (1, PI / 2), (-1, -PI / 2)),
    "acos": ((1, 0), (-1, PI), (0, PI / 2), (1.5, NAN), (INF, NAN), (NAN, NAN)),
    "atan": (*ZERO_TO_ZERO, (INF, PI / 2), (-INF, -PI / 2), (1, PI / 4)),
    "sin": (*ZERO_TO_ZERO, (INF, NAN), (-INF, NAN)),
    "cos": ((0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)),
    "tan": (*ZERO_TO_ZERO, (INF, NAN), (-INF, NAN)),
    "erf": (*ZERO_TO_ZERO, (INF, 1), (-INF, -1), (7, 1)),
    "erfc": ((0, 1), (INF, 0), (-INF, 2), (NAN, NAN), (40, 0)),
    "cbrt": (*ZERO_TO_ZERO, (INF, INF), (-INF, -INF), (27, 3), (-8, -2), (1, 1)),
    "rsqrt": ((0, INF), (-0.0, -INF), (INF, 0), (-1, NAN), (NAN, NAN), (4, 0.5)),
}
POWERS = (
    (NAN, 0, 1), (INF, -0.0, 1), (1, NAN, 1), (1, INF, 1), (-1, INF, 1), (-1, -INF, 1), (NAN, 1, NAN), (2, NAN, NAN),
    (0, -1, INF), (-0.0, -1, -INF), (-0.0, -2, INF), (-0.0, -0.5, INF), (-0.0, 3, -0.0), (-0.0, 2, 0), (0, 0.5, 0),
    (0, INF, 0), (0, -INF, INF), (0.5, INF, 0), (0.5, -INF, INF), (3, INF, INF), (-3, -INF, 0), (-2, 3, -8),
    (-2, 2, 4), (-2, 0.5, NAN), (-INF, 3, -INF), (-INF, 2, INF), (-INF, -3, -0.0), (-INF, 0.5, INF), (INF, -1, 0),
    (INF, 2, INF), (9, 0.5, 3), (7, 1, 7), (1e20, 1e20, INF), (1e20, -1e20, 0), (4, -0.5, 0.5), (10, 2, 100),
)  # fmt: skip


@cache
def unary(name: str, kind: str, processor: Processor) -> Any:
    return compiled([kind], kind, f"%y = math.{name} %x0 : {kind}", COUNT, processor)


def arguments(name: str, kind: str) -> Array:
    """The whole range by bit patterns, the dense part, and numbers near 0, 1 and the ends."""
    _, _, low, high = BOUNDS[name]
    rng = np.random.default_rng(0)
    part = COUNT // 4
    width = 32 if kind == "f32" else 64
    patterns = rng.integers(0, 1 << width, part, dtype=f"u{width // 8}").view(DTYPES[kind])
    # Part of the dense arguments are near the ends, where poles and overflows are.
    dense = rng.uniform(low, high, part)
    near = np.concatenate(
        [center + sign * 10.0 ** rng.uniform(-17, 0, part // 8) for center in (0, 1, low, high) for sign in (-1, 1)]
    )
    small = rng.standard_normal(part) * 10.0 ** rng.uniform(-6, 1, part)
    return np.concatenate(
        [patterns, dense.astype(patterns.dtype), near.astype(patterns.dtype), small.astype(patterns.dtype)]
    )


def reference(name: str, x: Array) -> Array:
    """The function in the next larger format; erf, which NumPy lacks, from libm or mpmath."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)
        if name == "rsqrt":
            return 1 / np.sqrt(wide)
        if name in ("erf", "erfc"):
            return np.array([precise_erf(name, v, x.dtype) for v in x.tolist()], wide.dtype)
        return np.asarray(NUMPY.get(name, getattr(np, name, None))(wide))


def precise_erf(name: str, value: float, dtype: Any) -> Any:
    if dtype == np.float32 or not math.isfinite(value) or abs(value) > 30:
        return getattr(math, name)(value)
    with mpmath.workprec(100):
        exact = getattr(mpmath, name)(value)
        high = float(exact)
        return np.longdouble(high) + np.longdouble(float(exact - high))


def errors(got: Array, want: Array) -> Array:
    """The distance in units in the last place of the rounded result; infinite where one of them is not a number."""
    dtype = got.dtype
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(dtype).max)).astype(want.dtype)
        distance = np.abs(got.astype(want.dtype) - want) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    # Where the rounded result is infinite the distance is not a number, yet the result may be right.
    distance = np.where(np.isnan(distance) | np.isinf(distance), np.where(same, 0, INF), distance)
    return np.asarray(distance, np.float64)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_error_is_within_the_bound(name: str, kind: str, processor: str) -> None:
    x = arguments(name, kind)
    got = unary(name, kind, PROCESSORS[processor])(x)
    if name in ("erf", "erfc"):
        step = 4 if kind == "f32" else 24
        x, got = x[::step], got[::step]
    distance = errors(got, reference(name, x))
    worst = int(distance.argmax())
    bound = BOUNDS[name][kind == "f64"] * (1.1 if processor == "sse4.1" else 1)  # where products are rounded twice
    assert distance[worst] <= bound, f"{distance[worst]:.3f} ulp at {x[worst]!r}: {got[worst]!r}"


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_exact(name: str, kind: str, processor: str) -> None:
    dtype = DTYPES[kind]
    x = np.ones(COUNT, dtype)
    pairs = np.array(SPECIAL[name])
    x[: len(pairs)] = pairs[:, 0]
    got = unary(name, kind, PROCESSORS[processor])(x)[: len(pairs)]
    want = pairs[:, 1].astype(dtype)
    np.testing.assert_array_equal(got, want)
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", ["sinh", "tanh", "asinh", "atanh", "asin", "atan", "expm1", "log1p", "sin", "tan"])
def test_denormals_map_to_themselves(name: str, kind: str, processor: str) -> None:
    dtype = DTYPES[kind]
    x = np.linspace(-1, 1, COUNT).astype(dtype) * np.finfo(dtype).smallest_normal
    np.testing.assert_array_equal(unary(name, kind, PROCESSORS[processor])(x), x)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", DTYPES)
def test_sine_and_cosine_next_to_multiples_of_half_pi(kind: str, processor: str) -> None:
    """There the reduced argument is small and its error shows, on both sides of the switch to libm."""
    dtype = DTYPES[kind]
    multiples = np.random.default_rng(1).integers(1, 1 << 21, COUNT)
    x = (multiples * (np.longdouble(PI) / 2 + np.longdouble(6.123233995736766e-17))).astype(dtype)
    for name in ("sin", "cos", "tan"):
        assert errors(unary(name, kind, PROCESSORS[processor])(x), reference(name, x)).max() <= 4


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(("name", "bound"), [("powf", (3, 1.5)), ("atan2", (4, 2))])
def test_functions_of_two_arguments(name: str, bound: tuple[float, float], kind: str, processor: str) -> None:
    dtype, rng, part = DTYPES[kind], np.random.default_rng(0), COUNT // 4
    largest = math.log(np.finfo(dtype).max)
    corners = [0.0, -0.0, 1, -1, 2, -3, 0.5, INF, -INF, NAN, 1e-30, -1e30, np.finfo(dtype).smallest_subnormal, 2.0**53]
    sizes = np.exp(rng.uniform(-largest, largest, part))
    bases = [rng.uniform(-3, 3, part), sizes, rng.integers(-50, 50, part), rng.choice(corners, part)]
    exponents = [
        rng.integers(-9, 9, part),
        rng.uniform(-1, 1, part),
        rng.uniform(-90, 90, part),
        rng.choice(corners, part),
    ]
    x, y = np.concatenate(bases), np.concatenate(exponents)
    x, y = x.astype(dtype), y.astype(dtype)
    got = compiled([kind, kind], kind, f"%y = math.{name} %x0, %x1 : {kind}", COUNT, PROCESSORS[processor])(x, y)
    wide = np.float64 if kind == "f32" else np.longdouble
    with np.errstate(all="ignore"):
        want = NUMPY[name](x.astype(wide), y.astype(wide))
    distance = errors(got, want)
    worst = int(distance.argmax())
    limit = bound[kind == "f64"]
    assert distance[worst] <= limit, f"{distance[worst]:.3f} ulp at {x[worst]!r}, {y[worst]!r}: {got[worst]!r}"
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", DTYPES)
def test_special_powers_are_those_of_c99(kind: str, processor: str) -> None:
    table = np.array(POWERS, DTYPES[kind])
    body = f"%y = math.powf %x0, %x1 : {kind}"
    got = compiled([kind, kind], kind, body, len(table), PROCESSORS[processor])(table[:, 0], table[:, 1])
    np.testing.assert_array_equal(got, table[:, 2])
    zeros = table[:, 2] == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(table[zeros, 2]))


SMALL = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
ALL_SMALL = np.arange(1 << 16, dtype=np.uint16)


def assert_same_numbers(got: Array, want: Array) -> None:
    """Equal bits, or both NaN."""
    different = (got.view(np.uint16) != want.view(np.uint16)) & ~(np.isnan(got) & np.isnan(want))
    assert not different.any(), f"{different.sum()} differ, first {got[different][0]} and {want[different][0]}"


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", SMALL)
def test_every_small_float_extends_exactly(kind: str, processor: str) -> None:
    for wide, dtype in DTYPES.items():
        extend = compiled([kind], wide, f"%y = arith.extf %x0 : {kind} to {wide}", 1 << 16, PROCESSORS[processor])
        with np.errstate(invalid="ignore"):
            want = ALL_SMALL.view(SMALL[kind]).astype(dtype)
        np.testing.assert_array_equal(extend(ALL_SMALL), want)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("wide", DTYPES)
@pytest.mark.parametrize("kind", SMALL)
def test_truncation_rounds_once_to_nearest_even(kind: str, wide: str, processor: str) -> None:
    """All small floats, the midpoints between them, the neighbours of the midpoints, and random numbers."""
    with np.errstate(invalid="ignore"):
        values = ALL_SMALL.view(SMALL[kind]).astype(np.float64)
    ordered = np.sort(values[np.isfinite(values)])
    middles = (ordered[1:] + ordered[:-1]) / 2
    dtype = DTYPES[wide]
    middles = middles.astype(dtype)
    with np.errstate(over="ignore"):
        beyond = dtype(ordered[-1]) * np.array([1.001, 1.002, 1.01, INF, NAN], dtype)
    neighbours = np.nextafter(middles, dtype(INF)), np.nextafter(middles, dtype(-INF))
    x = np.concatenate([ordered.astype(dtype), middles, *neighbours, beyond])
    truncate = compiled([wide], kind, f"%y = arith.truncf %x0 : {wide} to {kind}", len(x), PROCESSORS[processor])
    got = truncate(x).view(SMALL[kind])
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(SMALL[kind]) if (kind, wide) != ("bf16", "f64") else np.array([round_to_bf16(v) for v in x])
    assert_same_numbers(got, want.astype(SMALL[kind]))


def round_to_bf16(value: float) -> Any:
    """f64 -> bf16 rounded once; ml_dtypes rounds to f32 on the way."""
    if not math.isfinite(value) or value == 0:
        return ml_dtypes.bfloat16(value)
    _, exponent = math.frexp(value)
    unit = 2.0 ** (max(exponent, -125) - 8)
    with np.errstate(over="ignore"):
        return ml_dtypes.bfloat16(math.copysign(round(value / unit) * unit, value))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize(("op", "numpy_op"), [
    ("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide), ("maximumf", np.maximum),
])  # fmt: skip
def test_small_float_arithmetic_rounds_every_operation(op: str, numpy_op: Any, kind: str, processor: str) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 16, (2, COUNT), dtype=np.uint16)
    x, y = bits.view(SMALL[kind])
    body = f"%y = arith.{op} %x0, %x1 : {kind}"
    got = compiled([kind, kind], kind, body, COUNT, PROCESSORS[processor])(*bits).view(SMALL[kind])
    with np.errstate(all="ignore"):
        want = numpy_op(x, y)
        if op == "maximumf":  # NumPy may give either zero
            got, want = got + SMALL[kind].type(0), want + SMALL[kind].type(0)
        assert_same_numbers(got, want)


@pytest.mark.parametrize("kind", SMALL)
def test_small_float_comparisons_and_integers(kind: str) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 16, (2, COUNT), dtype=np.uint16)
    x, y = bits.view(SMALL[kind])
    less = f"%b = arith.cmpf olt, %x0, %x1 : {kind}\n%y = arith.extui %b : i1 to i8"
    got = compiled([kind, kind], "i8", less, COUNT, PROCESSORS["host"])(*bits)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got.astype(bool), x < y)
    numbers = rng.integers(-70000, 70000, COUNT).astype(np.int32)
    convert = compiled(["i32"], kind, f"%y = arith.sitofp %x0 : i32 to {kind}", COUNT, PROCESSORS["host"])
    with np.errstate(over="ignore"):
        assert_same_numbers(convert(numbers).view(SMALL[kind]), numbers.astype(np.float32).astype(SMALL[kind]))
    tame = rng.integers(-100, 100, COUNT).astype(SMALL[kind])
    back = compiled([kind], "i32", f"%y = arith.fptosi %x0 : {kind} to i32", COUNT, PROCESSORS["host"])
    np.testing.assert_array_equal(back(tame.view(np.uint16)), tame.astype(np.float32).astype(np.int32))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "sqrt", "floor"])
def test_functions_of_small_floats_are_rounded_f32_results(name: str, kind: str, processor: str) -> None:
    body = f"%y = math.{name} %x0 : {kind}"
    got = compiled([kind], kind, body, 1 << 16, PROCESSORS[processor])(ALL_SMALL).view(SMALL[kind])
    with np.errstate(all="ignore"):
        want = reference(name, ALL_SMALL.view(SMALL[kind]).astype(np.float32))
        rounded = want.astype(SMALL[kind])
        step = np.abs(np.nextafter(rounded, SMALL[kind].type(INF)).astype(np.float64) - rounded.astype(np.float64))
        close = np.abs(got.astype(np.float64) - want) <= 0.502 * step
    assert (close | (got == rounded) | (np.isnan(got) & np.isnan(rounded))).all()


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "erf", "powf"])
def test_vectors_of_any_rank_give_the_bits_of_scalars(name: str) -> None:
    x = np.random.default_rng(0).uniform(0.1, 5, 1024).astype(np.float32)
    x[7] = 3e30  # one lane outside the range of the fast sine
    operands = "%v, %v" if name == "powf" else "%v"
    square = f"""%v = vector.shape_cast %x0 : vector<32xf32> to vector<2x16xf32>
        %w = math.{name} {operands} : vector<2x16xf32>
        %y = vector.shape_cast %w : vector<2x16xf32> to vector<32xf32>"""
    flat = f"%y = math.{name} {operands.replace('%v', '%x0')} : vector<32xf32>"
    scalar = f"%y = math.{name} {operands.replace('%v', '%x0')} : f32"
    vectors = [compiled(["vector<32xf32>"], "vector<32xf32>", text, 32, PROCESSORS["host"]) for text in (square, flat)]
    want = compiled(["f32"], "f32", scalar, 1024, PROCESSORS["host"])(x)
    for function in vectors:
        np.testing.assert_array_equal(function(x), want)


UNARY = (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 round "
    "roundeven rsqrt sin sinh sqrt tan tanh trunc"
)
BINARY = "math.atan2 math.copysign math.powf arith.addf arith.divf arith.remf arith.maximumf arith.minnumf"


def one_function_each(kind: str) -> str:
    """A module with a function for each operation on `kind`."""
    head = kind.rpartition("x")[0]
    flags, integers = (f"{head}xi1>", f"{head}xi32>") if head else ("i1", "i32")
    lines = [(f"math.{op} %x : {kind}", kind) for op in UNARY.split()]
    lines += [(f"{op} %x, %x : {kind}", kind) for op in BINARY.split()]
    lines += [(f"math.{op} %x : {kind}", flags) for op in ("isnan", "isinf", "isfinite", "isnormal")]
    lines += [
        (f"math.fma %x, %x, %x : {kind}", kind),
        (f"math.clampf %x to [%x, %x] : {kind}", kind),
        (f"arith.fptosi %x : {kind} to {integers}", integers),
        (f"arith.sitofp %n : {integers} to {kind}", kind),
        (f"math.fpowi %x, %n : {kind}, {integers}", kind),
        (f"math.ipowi %n, %n : {integers}", integers),
        (f"math.ctpop %n : {integers}", integers),
        (f"math.ctlz %n : {integers}", integers),
    ]
    return "\n".join(
        f"func.func @f{i}(%x: {kind}, %n: {integers}) -> {result} {{ %y = {line} return %y : {result} }}"
        for i, (line, result) in enumerate(lines)
    )


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "vector<16xf32>", "vector<2x8xbf16>"])
def test_every_operation_reaches_functions_that_exist(kind: str, processor: str) -> None:
    """`compile_to_object` raises when the object would call anything else."""
    module = lowered(one_function_each(kind), PROCESSORS[processor].expand)
    assert compile_to_object(module, replace(PROCESSORS[processor].codegen, level=1))


def test_expanding_twice_changes_nothing_and_locations_stay() -> None:
    text = """func.func @f(%x: f32, %h: bf16) -> (f32, bf16) {
      %a = math.sin %x : f32
      %b = math.sin %h : bf16
      return %a, %b : f32, bf16
    }"""
    module = parse(text)
    ExpandMathPass().run(module.operation)
    once = to_text(module)
    assert not any(is_unknown(op.location) for op in operations(module) if op.name != "builtin.module")
    ExpandMathPass().run(module.operation)
    assert to_text(module) == once


def test_the_whole_dialect_is_looked_for() -> None:
    names = {kind.OPERATION_NAME for kind in vars(math_dialect).values() if hasattr(kind, "OPERATION_NAME")}
    assert names == set(MATH)
