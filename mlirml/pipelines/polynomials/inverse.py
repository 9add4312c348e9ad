"""asin, acos, atan, atan2: odd polynomials on a small range, pi/2 in two parts; f32 is computed in f64.

asin and acos as in fdlibm `e_asin.c`, the quotient of atan2 reduced to |t| <= tan(pi/8) as in Cephes `atan`.
Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from mlirml.pipelines.polynomials.builder import Builder, Value
from mlirml.pipelines.polynomials.registry import expansion, through_f64

ATAN_WIDE = (  # 2^-35.4
    0.04747918043776219,
    -0.08478232375713213,
    0.11045062196670942,
    -0.14282039525678678,
    0.19999905098113496,
    -0.3333333251369998,
)
ATAN_F64 = (  # 2^-63.8
    0.014989259964840239,
    -0.03326547974754,
    0.04494281457690125,
    -0.05216046653879665,
    0.05876642090093214,
    -0.06666186454779185,
    0.07692279913401061,
    -0.09090908012887006,
    0.1111111108434613,
    -0.14285714285323198,
    0.19999999999997123,
    -0.33333333333333326,
)
ASIN_WIDE = (  # 2^-35.8
    0.03469206819742086,
    0.007469833752561514,
    0.024618150458828997,
    0.03011028277924077,
    0.04466016158421431,
    0.0749994816043887,
    0.16666667189852025,
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
HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
QUARTER_PI, QUARTER_PI_LOW = HALF_PI / 2, HALF_PI_LOW / 2
TAN_EIGHTH_PI = 0.41421356237309503


def asin_parts(b: Builder, grade: str, a: Value) -> tuple[Value, Value, Value]:
    """|x| -> (is at most 1/2, s, rest): asin(|x|) = s + rest there, and pi/2 - 2 (s + rest) above."""
    low = a <= 0.5
    z = b.select(low, a * a, b.fma(a, -0.5, 0.5))
    root = b.sqrt(z)
    s = b.select(low, a, root)
    rest = s * z * b.horner(z, ASIN_WIDE if grade == "f32" else ASIN_F64)
    if grade == "f64":  # the rounding error of the root, to first order
        square = root * root
        error = ((z - square) - b.product_error(root, root, square)) / (root + root + 1e-300)
        rest = rest + b.select(low, b.constant(0.0, "f64"), error)
    return low, s, rest


@expansion("asin", "f32", "f64")
@through_f64
def asin(b: Builder, grade: str, x: Value) -> Value:
    low, s, rest = asin_parts(b, grade, b.abs(x))
    above = ((QUARTER_PI - s) - (rest - QUARTER_PI_LOW)) * 2.0
    return b.copysign(b.select(low, s + rest, above), x)


@expansion("acos", "f32", "f64")
@through_f64
def acos(b: Builder, grade: str, x: Value) -> Value:
    low, s, rest = asin_parts(b, grade, b.abs(x))
    signed, signed_rest = b.copysign(s, x), b.copysign(rest, x)
    middle = HALF_PI - (signed - (HALF_PI_LOW - signed_rest))
    right = (s + rest) * 2.0
    left = (HALF_PI - (s + (rest - HALF_PI_LOW))) * 2.0
    return b.select(low, middle, b.select(x < 0.0, left, right))


def angle(b: Builder, grade: str, y: Value, x: Value, turn: Value | None = None) -> Value:
    """atan(y/x) in [0, pi/2] for y, x >= 0, or pi less that where `turn`.

    The result is k pi/4 plus or minus atan(t), with t = y/x, x/y or (y - x)/(y + x).
    """
    swap = y > x
    low, high = b.select(swap, x, y), b.select(swap, y, x)
    far = (low >= high * TAN_EIGHTH_PI) & (low > 0.0)
    equal = low.equals(high)  # 0/0 and inf/inf
    numerator = b.select(equal, 0.0, b.select(far, low - high, low))
    t = numerator / b.select(equal, 1.0, b.select(far, low + high, high))
    z = t * t
    p = b.fma(t * z, b.horner(z, ATAN_WIDE if grade == "f32" else ATAN_F64), t)
    k = b.select(far, b.constant(1.0, "f64"), 0.0)
    k, p = b.select(swap, 2.0 - k, k), b.select(swap, -p, p)
    if turn is not None:
        k, p = b.select(turn, 4.0 - k, k), b.select(turn, -p, p)
    return b.fma(k, QUARTER_PI, b.fma(k, QUARTER_PI_LOW, p))


@expansion("atan", "f32", "f64")
@through_f64
def atan(b: Builder, grade: str, x: Value) -> Value:
    return b.copysign(angle(b, grade, b.abs(x), b.constant(1.0, "f64")), x)


@expansion("atan2", "f32", "f64")
@through_f64
def atan2(b: Builder, grade: str, y: Value, x: Value) -> Value:
    """Quadrants and zeros as in C99."""
    numerator, denominator = b.abs(y), b.abs(x)
    if grade == "f64":  # the sum of two large numbers would overflow
        huge = (numerator > 2.0**1000) | (denominator > 2.0**1000)
        down = b.select(huge, b.constant(2.0**-60, "f64"), 1.0)
        numerator, denominator = numerator * down, denominator * down
    negative = b.to_bits(x) < 0
    result = b.copysign(angle(b, grade, numerator, denominator, negative), y)
    return b.select(b.compare("uno", x, y), x + y, result)
