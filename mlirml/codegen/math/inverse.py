"""asin, acos, atan, atan2: odd polynomials on a small range, pi/2 in two parts.

asin and acos as in fdlibm `e_asin.c`, atan of the smaller over the larger side.
Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import Builder, Value
from mlirml.codegen.math.registry import expansion

ATAN_F32 = (  # 2^-25.8
    0.0029197302646934986,
    -0.01636415533721447,
    0.043205879628658295,
    -0.07551724463701248,
    0.10665785521268845,
    -0.14211003482341766,
    0.19993767142295837,
    -0.33333152532577515,
)
ATAN_F64 = (  # 2^-57.6
    1.3196073087119497e-05,
    -0.00015186986222796834,
    0.0008299710297460633,
    -0.002881069883085845,
    0.007188974602570653,
    -0.013889842587204493,
    0.02197337178008928,
    -0.029894417453230706,
    0.036635887331725236,
    -0.042188794929594625,
    0.04722206363844266,
    -0.052534839052303044,
    0.058805199022889144,
    -0.06666402703881875,
    0.07692279670562326,
    -0.09090906988279339,
    0.11111111006181583,
    -0.14285714282546103,
    0.19999999999950957,
    -0.33333333333333065,
)
ASIN_F32 = (  # 2^-27.6
    0.0422104187309742,
    0.024152852594852448,
    0.04547590762376785,
    0.07495252788066864,
    0.16666753590106964,
)
ASIN_F64 = (  # 2^-59.8
    0.032678483453127356,
    -0.021080162591461477,
    0.021765789306690805,
    0.003681975469476822,
    0.010786850509023638,
    0.011397710280932921,
    0.013980970727370312,
    0.017351599188480785,
    0.022372215719854097,
    0.030381942681064922,
    0.04464285717518688,
    0.07499999999970172,
    0.16666666666666763,
)

INFINITY = float("inf")
SMALLEST = {"f32": 2.0**-149, "f64": 2.0**-1074}
# pi/2 = high + low in each format, and so pi and pi/4
HALF_PI = {"f32": (1.5707963705062866, -4.371139000186241e-08), "f64": (1.5707963267948966, 6.123233995736766e-17)}


def asin_parts(b: Builder, a: Value) -> tuple[Value, Value, Value]:
    """|x| -> (is at most 1/2, s, rest): asin(|x|) = s + rest there, and pi/2 - 2 (s + rest) above."""
    low = a <= 0.5
    z = b.select(low, a * a, b.fma(a, -0.5, 0.5))
    root = b.sqrt(z)
    s = b.select(low, a, root)
    rest = s * z * b.horner(z, ASIN_F32 if a.dtype == "f32" else ASIN_F64)
    if a.dtype == "f64":  # the rounding error of the root, to first order
        square = root * root
        error = ((z - square) - b.product_error(root, root, square)) / (root + root + 1e-300)
        rest = rest + b.select(low, b.constant(0.0, "f64"), error)
    return low, s, rest


@expansion("asin", "f32", "f64")
def asin(b: Builder, x: Value) -> Value:
    low, s, rest = asin_parts(b, b.abs(x))
    quarter, quarter_low = (part / 2 for part in HALF_PI[x.dtype])
    above = ((quarter - s) - (rest - quarter_low)) * 2.0
    return b.copysign(b.select(low, s + rest, above), x)


@expansion("acos", "f32", "f64")
def acos(b: Builder, x: Value) -> Value:
    low, s, rest = asin_parts(b, b.abs(x))
    half, half_low = HALF_PI[x.dtype]
    signed, signed_rest = b.copysign(s, x), b.copysign(rest, x)
    middle = half - (signed - (half_low - signed_rest))
    right = (s + rest) * 2.0
    left = (half - (s + (rest - half_low))) * 2.0
    return b.select(low, middle, b.select(x < 0.0, left, right))


def angle(b: Builder, swap: Value, t: Value) -> Value:
    """atan(t) with 0 <= t <= 1, or pi/2 less that where `swap`."""
    z = t * t
    p = b.fma(t * z, b.horner(z, ATAN_F32 if t.dtype == "f32" else ATAN_F64), t)
    half, half_low = HALF_PI[t.dtype]
    return b.select(swap, half - (p - half_low), p)


@expansion("atan", "f32", "f64")
def atan(b: Builder, x: Value) -> Value:
    """1/|x| is used instead of |x| above 1."""
    a = b.abs(x)
    swap = a > 1.0
    return b.copysign(angle(b, swap, b.select(swap, 1.0, a) / b.select(swap, a, 1.0)), x)


@expansion("atan2", "f32", "f64")
def atan2(b: Builder, y: Value, x: Value) -> Value:
    """Quadrants and zeros as in C99."""
    rise, run = b.abs(y), b.abs(x)
    swap = rise > run
    low, high = b.select(swap, run, rise), b.select(swap, rise, run)
    t = low / b.maximum(high, SMALLEST[x.dtype])  # 0/0 is 0
    t = b.select(low.equals(INFINITY) & high.equals(INFINITY), 1.0, t)
    result = angle(b, swap, t)
    half, half_low = HALF_PI[x.dtype]
    result = b.select(b.to_bits(x) < 0, 2 * half - (result - 2 * half_low), result)
    return b.copysign(result, y)
