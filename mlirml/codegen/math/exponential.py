"""exp, exp2, expm1, tanh: powers of two times a polynomial.

x = n ln 2 + r with |r| <= ln(2)/2, ln 2 in two parts (Cody and Waite, Software Manual for the Elementary Functions,
1980, chapter 6); exp(r) and expm1(r) are minimax polynomials (`python docs/minimax.py`).
"""

from __future__ import annotations

from mlirml.codegen.math.builder import Builder, Value
from mlirml.codegen.math.registry import ROUGH, expansion
from mlirml.core.dataclass import dataclass

EXP_F32 = (  # 2^-28.2
    0.0013938506599515676,
    0.00836881436407566,
    0.0416664257645607,
    0.1666651964187622,
    0.5,
)
EXP_F64 = (  # 2^-57.9
    2.5113298306488344e-08,
    2.763152864999201e-07,
    2.7557231087109606e-06,
    2.4801489163365686e-05,
    0.0001984126990026515,
    0.00138888889478762,
    0.00833333333331549,
    0.04166666666651154,
    0.16666666666666685,
    0.5000000000000013,
)
EXPM1_F32 = (  # 2^-31.1
    0.0001995763450395316,
    0.001393300131894648,
    0.008333193138241768,
    0.041666485369205475,
    0.1666666716337204,
    0.5,
)
EXPM1_F64 = (  # 2^-61.7
    2.0919954480072967e-09,
    2.510914905464325e-08,
    2.7557257938203516e-07,
    2.755724385412928e-06,
    2.4801587341764524e-05,
    0.00019841269886521393,
    0.001388888888887711,
    0.008333333333321452,
    0.04166666666666668,
    0.16666666666666677,
    0.5,
)

EXP2_F32 = (  # 2^-28.3
    0.00015328872541431338,
    0.0013390970416367054,
    0.009618500247597694,
    0.05550359562039375,
    0.24022647738456726,
    0.6931471824645996,
)
EXP2_F64 = (  # 2^-57.8
    4.4387391300396014e-10,
    7.073233467746137e-09,
    1.0178160889738224e-07,
    1.321543883316909e-06,
    1.5252733631918641e-05,
    0.0001540353044904195,
    0.001333355814654839,
    0.0096181291076016,
    0.055504108664821715,
    0.24022650695910108,
    0.6931471805599453,
)

EXPM1_WIDE = (  # 2^-37.5
    2.4882246311195127e-05,
    0.0001990495389343491,
    0.0013888809755087368,
    0.008333288962720743,
    0.04166666695326693,
    0.16666666754532874,
    0.49999999999736855,
)
EXP2_WIDE = (  # 2^-34.3
    1.5196030561772176e-05,
    0.0001546675945747067,
    0.0013333935473533837,
    0.009618038118826078,
    0.05550410365613819,
    0.24022651066688272,
    0.693147180704663,
)


@dataclass(frozen=True)
class Constants:
    """One format's constants. Adding `magic` rounds to an integer and leaves it in the low bits of the sum.

    `ln2_high` has so few bits that its product with an exponent is exact. exp overflows above `exp_high` and is 0 below
    `exp_low`; expm1 is -1 below `expm1_low`; tanh is 1 above `tanh_high`. Below `tiny`, expm1(x) and others round to x.
    """

    magic: float
    ln2_high: float
    ln2_low: float
    exp_low: float
    exp_high: float
    expm1_low: float
    tanh_high: float
    tiny: float
    exp: tuple[float, ...]
    expm1: tuple[float, ...]


LOG2E = 1.4426950408889634
LOG2E_REST = 1.92596298909109e-08
"""What is left of it as an f32."""
CONSTANTS = {
    "f32": Constants(
        1.5 * 2**23, 0.693359375, -2.1219444e-4, -104.0, 89.0, -18.0, 10.0, 2.0**-25, EXP_F32, EXPM1_F32
    ),
    "f64": Constants(
        1.5 * 2**52, 6.93147180369123816490e-01, 1.90821492927058770002e-10, -746.0, 710.0, -40.0, 20.0, 2.0**-54,
        EXP_F64, EXPM1_F64,
    ),
}  # fmt: skip


def split_exponent(b: Builder, x: Value) -> tuple[Value, Value]:
    """x -> (integer n, r) with x = n ln 2 + r and |r| <= ln(2)/2."""
    c = CONSTANTS[x.dtype]
    shifted = b.fma(x, LOG2E, c.magic)
    n = shifted - c.magic
    r = b.fma(n, -c.ln2_low, b.fma(n, -c.ln2_high, x))
    return integer_of(b, shifted), r


def integer_of(b: Builder, shifted: Value) -> Value:
    """The integer n of a float n + magic."""
    return b.to_bits(shifted) - b.to_bits_of(CONSTANTS[shifted.dtype].magic, shifted.dtype)


def expm1_parts(b: Builder, x: Value, grade: str = "") -> tuple[Value, Value]:
    """x -> (integer n, expm1(r)), with exp(x) = 2^n (1 + expm1(r)); an f64 of grade f32 has f32's accuracy."""
    c = CONSTANTS[x.dtype]
    if x.dtype == "f32" or grade == "f32":
        n, r = split_exponent(b, x)
        return n, b.fma(r * r, b.horner(r, c.expm1 if x.dtype == "f32" else EXPM1_WIDE), r)
    shifted = b.fma(x, LOG2E, c.magic)
    m = shifted - c.magic
    high = b.fma(m, -c.ln2_high, x)
    r = b.fma(m, -c.ln2_low, high)
    lost = b.fma(m, -c.ln2_low, high - r)  # the rounding error of r
    return integer_of(b, shifted), r + b.fma(r * r, b.horner(r, c.expm1), lost)


def ex2(b: Builder, x: Value) -> Value:
    """2^x by an instruction: zero where that is denormal."""
    return b.emit(f'llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"({x.name}) : (f32) -> f32', "f32")


def exp_by_ex2(b: Builder, x: Value) -> Value:
    """2^n 2^f with x log2(e) = n + f, where an instruction computes 2^f: NVIDIA's way, to 2 ulp.

    `n` is clamped to exponents of normal numbers, and `f` is all the rest: it makes zero, denormals and infinity.
    """
    c = CONSTANTS["f32"]
    bounded = b.op("arith.maxnumf", b.op("arith.minnumf", x, b.value(88.0, "f32")), b.value(-87.0, "f32"))
    shifted = b.fma(bounded, LOG2E, c.magic)
    n = shifted - c.magic
    f = b.fma(x, LOG2E_REST, b.fma(x, LOG2E, -n))
    return ex2(b, f) * b.power_of_two(integer_of(b, shifted), "f32")


@expansion("exp", "f32", "f64")
def exp(b: Builder, x: Value) -> Value:
    """2^n (1 + r + r^2 P(r))."""
    if b.processor.has_ex2 and x.dtype == "f32" and not b.shape:
        return exp_by_ex2(b, x)
    c = CONSTANTS[x.dtype]
    n, r = split_exponent(b, b.minimum(x, c.exp_high))
    return b.scale_or_vanish(b.horner(r, (*c.exp, 1.0, 1.0)), n, x < c.exp_low)


def rough_exp(b: Builder, x: Value) -> Value:
    """exp of an f16, of whose result f16 has 11 bits: the product is wrong by 2^-19 at most."""
    return ex2(b, x * LOG2E) if b.processor.has_ex2 and not b.shape else exp(b, x)


ROUGH[exp] = rough_exp


@expansion("exp2", "f32", "f64")
def exp2(b: Builder, x: Value) -> Value:
    """2^n (1 + r P(r)) with x = n + r."""
    c = CONSTANTS[x.dtype]
    coefficients, low, high = (EXP2_F32, -151.0, 129.0) if x.dtype == "f32" else (EXP2_F64, -1077.0, 1025.0)
    y = b.minimum(x, high)
    shifted = y + c.magic
    n = integer_of(b, shifted)
    return b.scale_or_vanish(b.horner(y - (shifted - c.magic), (*coefficients, 1.0)), n, x < low)


@expansion("expm1", "f32", "f64")
def expm1(b: Builder, x: Value) -> Value:
    """2 (2^(n-1) expm1(r) + (2^(n-1) - 1/2)): half size, so that the largest results do not overflow on the way."""
    c = CONSTANTS[x.dtype]
    n, q = expm1_parts(b, b.maximum(b.minimum(x, c.exp_high), c.expm1_low))
    half = b.power_of_two(n - 1, x.dtype)
    result = b.fma(half, q, half - 0.5) * 2.0
    return b.select(b.abs(x) < c.tiny, x, result)


@expansion("tanh", "f32", "f64")
def tanh(b: Builder, x: Value) -> Value:
    """t / (t + 2) with t = expm1(2 |x|), and the sign of x."""
    c = CONSTANTS[x.dtype]
    a = b.minimum(b.abs(x), c.tanh_high)
    n, q = expm1_parts(b, a + a)
    power = b.power_of_two(n, x.dtype)
    t = b.fma(power, q, power - 1.0)
    below = t + 2.0
    result = t / below
    if x.dtype == "f64":  # the rounding error of t + 2; 1/(t + 2) is (1 - tanh)/2
        lost = (t - (below - 2.0)) * b.fma(result, -0.5, 0.5)
        result = b.minimum(b.fma(-result, lost, result), 1.0)
    return b.copysign(result, x)
