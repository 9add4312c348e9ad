"""Functions of one complex number, as scalar arithmetic: the formulas, branch cuts and special values of C99 annex G.

Branch cuts follow W. Kahan, "Branch cuts for complex elementary functions" (1987): they are continuous with the side
that the sign of a zero names. c64 is computed in f64 where a formula would overflow or cancel in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlirml.ir.text.complex_scalars import Complex, Real, Truth

_DOUBLE = np.dtype(np.float64)
Function = Callable[[Complex], Complex]


def in_double(function: Function) -> Function:
    """c64 is computed in f64 and rounded once."""

    def wrapped(z: Complex) -> Complex:
        return function(z.to(_DOUBLE)).to(z.dtype)

    return wrapped


def magnitude(z: Complex) -> Real:
    """|z| without overflow; infinite where a part is, even beside NaN."""
    # Scaled by a power of 2, so that squares neither overflow nor vanish.
    limits = (
        (2.0**-50, 2.0**100, 2.0**60, 2.0**-80) if z.dtype != _DOUBLE else (2.0**-400, 2.0**700, 2.0**500, 2.0**-600)
    )
    least, up, most, down = limits
    large = abs(z.re).larger(abs(z.im))
    tiny, huge = large < least, large > most
    scale = tiny.choose(large.like(up), huge.choose(large.like(down), 1.0))
    back = tiny.choose(large.like(1 / up), huge.choose(large.like(1 / down), 1.0))
    x, y = z.re * scale, z.im * scale
    square = x.fma(x, y * y)
    none = square.same(0.0)  # the derivative there is 0, and that of the root infinite
    root = none.choose(square.like(0.0), none.choose(square.like(1.0), square).sqrt()) * back
    return (z.re.is_infinite() | z.im.is_infinite()).choose(root.like(np.inf), root)


def largest(z: Complex) -> tuple[Real, Real]:
    """The larger part's magnitude, and the smaller one divided by it; 0 where both are zero or infinite."""
    x, y = abs(z.re), abs(z.im)
    large, small = x.larger(y), x.smaller(y)
    ratio = small / large
    return large, (large.same(0.0) | small.is_infinite()).choose(ratio.like(0.0), ratio)


def log_magnitude(z: Complex) -> Real:
    """log |z|, precise where |z| is near 1."""
    large, ratio = largest(z)
    small = abs(z.re).smaller(abs(z.im))
    near = (large > 0.5) & (large < 2.0)
    rest = (near.choose((large - 1.0).fma(large + 1.0, small * small), ratio * ratio)).apply("math.log1p") * 0.5
    result = near.choose(rest, large.apply("math.log") + rest)
    return (z.re.is_infinite() | z.im.is_infinite()).choose(result.like(np.inf), result)


def angle(z: Complex) -> Real:
    """The argument, between -pi and pi."""
    return z.im.apply("math.atan2", z.re)


def exponent_limits(dtype: np.dtype) -> tuple[float, float]:
    """An exponent beyond which `exp` overflows nearly, and one to take off there."""
    return (80.0, 64.0) if dtype.itemsize == 4 else (700.0, 512.0)


def scaled_exp(x: Real) -> tuple[Real, Real]:
    """e and f with e * f = exp(x), so that e times a sine does not overflow before its product with f does."""
    limit, step = exponent_limits(x.dtype)
    beyond = x > limit
    base = beyond.choose(x - step, x).apply("math.exp")
    return base, beyond.choose(x.like(math.exp(step)), 1.0)


def exp(z: Complex) -> Complex:
    """e to the power of z."""
    base, factor = scaled_exp(z.re)
    cos, sin = z.im.apply("math.cos"), z.im.apply("math.sin")
    re, im = base * cos * factor, base * sin * factor
    unbounded = ~z.im.is_finite()
    falls, rises = unbounded & z.re.same(-np.inf), unbounded & z.re.same(np.inf)
    real = z.im.same(0.0)
    re = real.choose(base * factor, falls.choose(re.like(0.0), rises.choose(re.like(np.inf), re)))
    return Complex(re, real.choose(z.im, falls.choose(im.like(0.0), im)))


def expm1(z: Complex) -> Complex:
    """exp(z) - 1, precise near 0."""
    half = (z.im * 0.5).apply("math.sin")
    base, factor = scaled_exp(z.re)
    cos, sin = z.im.apply("math.cos"), z.im.apply("math.sin")
    close = z.re.apply("math.expm1") * cos - 2.0 * half * half
    return Complex((z.re < 1.0).choose(close, base * cos * factor - 1.0), base * sin * factor)


@in_double
def log(z: Complex) -> Complex:
    """Natural logarithm; the cut lies along the negative real axis."""
    return Complex(log_magnitude(z), angle(z))


@in_double
def log1p(z: Complex) -> Complex:
    """log(1 + z), precise near 0."""
    moved = Complex(z.re + 1.0, z.im)
    near = (abs(z.re) < 0.5) & (abs(z.im) < 0.5)
    close = z.re.fma(z.re + 2.0, z.im * z.im).apply("math.log1p") * 0.5
    return Complex(near.choose(close, log_magnitude(moved)), angle(moved))


def log_to(base: float) -> Function:
    """The logarithm to a base."""

    @in_double
    def function(z: Complex) -> Complex:
        return Complex(log_magnitude(z), angle(z)).scaled(1.0 / math.log(base))

    return function


@in_double
def exp2(z: Complex) -> Complex:
    """2 to the power of z."""
    return exp(z.scaled(math.log(2.0)))


@in_double
def sqrt(z: Complex) -> Complex:
    """Square root; the cut lies along the negative real axis."""
    return root(z)


def root(z: Complex) -> Complex:
    """Square root of a number with f64 parts."""
    large, ratio = largest(z)
    huge, tiny = large > 2.0**1000, large < 2.0**-1000
    scale = huge.choose(large.like(2.0**-8), tiny.choose(large.like(2.0**200), 1.0))
    back = huge.choose(large.like(2.0**4), tiny.choose(large.like(2.0**-100), 1.0))
    x, y = abs(z.re) * scale, abs(z.im) * scale
    size = large * scale * ratio.fma(ratio, 1.0).sqrt()
    one = ((x + size) * 0.5).sqrt()
    two = large.same(0.0).choose(one.like(0.0), y / (one * 2.0))
    one, two = one * back, two * back
    right = ~z.re.is_negative()
    re, im = right.choose(one, two), right.choose(two, one).with_sign(z.im)
    along = z.re.is_infinite()  # of an infinite real part the other root is 0, or NaN
    rest = z.im.is_nan().choose(z.im, 0.0)
    infinity = re.like(np.inf)
    re = along.choose(right.choose(infinity, rest), re)
    im = along.choose(right.choose(rest, infinity).with_sign(z.im), im)
    up = z.im.is_infinite()
    return Complex(up.choose(infinity, re), up.choose(z.im, im))


def grown(x: Real) -> tuple[Real, Real, Real]:
    """c, s and f with c * f = cosh(x) and s * f = sinh(x), as `scaled_exp`."""
    limit, step = exponent_limits(x.dtype)
    size = abs(x)
    beyond = size > limit
    half = beyond.choose(size - step, x.like(0.0)).apply("math.exp") * 0.5
    inner = beyond.choose(x.like(0.0), x)
    c = beyond.choose(half, inner.apply("math.cosh"))
    s = beyond.choose(half.with_sign(x), inner.apply("math.sinh"))
    nan = x.is_nan()
    return nan.choose(x, c), nan.choose(x, s), beyond.choose(x.like(math.exp(step)), 1.0)


def sinh(z: Complex) -> Complex:
    """Hyperbolic sine."""
    c, s, factor = grown(z.re)
    re, im = s * z.im.apply("math.cos") * factor, c * z.im.apply("math.sin") * factor
    unbounded = ~z.im.is_finite()
    re = z.re.same(0.0).choose(z.re, (unbounded & z.re.is_infinite()).choose(abs(z.re), re))
    real = z.im.same(0.0)
    return Complex(real.choose(s * factor, re), real.choose(z.im, im))


def cosh(z: Complex) -> Complex:
    """Hyperbolic cosine."""
    c, s, factor = grown(z.re)
    re, im = c * z.im.apply("math.cos") * factor, s * z.im.apply("math.sin") * factor
    re = (~z.im.is_finite() & z.re.is_infinite()).choose(abs(z.re), re)
    zero = z.re.same(0.0) | z.im.same(0.0)
    one = z.re.like(1.0)
    im = zero.choose(one.like(0.0) * one.with_sign(z.re) * one.with_sign(z.im), im)
    return Complex(z.im.same(0.0).choose(c * factor, re), im)


def tanh(z: Complex) -> Complex:
    """Hyperbolic tangent."""
    far = abs(z.re) > (11.0 if z.dtype.itemsize == 4 else 22.0)
    x = far.choose(z.re.like(0.0), z.re)
    tangent, s = z.im.apply("math.tan"), x.apply("math.sinh")
    beta = tangent.fma(tangent, 1.0)
    below = beta.fma(s * s, 1.0)
    re, im = beta * s.fma(s, 1.0).sqrt() * s / below, tangent / below
    one = z.re.like(1.0).with_sign(z.re)
    fading = (abs(z.re) * -2.0).apply("math.exp") * 4.0
    tail = z.im.apply("math.sin") * z.im.apply("math.cos") * fading
    unbounded = ~z.im.is_finite()
    tail = (unbounded & z.re.is_infinite()).choose(tail.like(0.0).with_sign(z.im), tail)
    one = (unbounded & z.re.is_finite()).choose(one.like(np.nan), one)
    result = far.pick(Complex(one, tail), Complex(re, im))
    keeps = z.re.is_nan() | (z.re.same(0.0) & unbounded)
    return Complex(keeps.choose(z.re, result.re), z.im.same(0.0).choose(z.im, z.re.is_nan().choose(z.re, result.im)))


def turned(function: Function) -> Function:
    """i f(-i z): the sine from the hyperbolic sine, and so on."""

    def wrapped(z: Complex) -> Complex:
        return function(z.turned_back()).turned()

    return wrapped


def cos(z: Complex) -> Complex:
    """Cosine."""
    return cosh(z.turned())


def beyond_one(z: Complex) -> Truth:
    """True if 1 does not count beside z."""
    return abs(z.re).larger(abs(z.im)) > 2.0**60


def log_twice(z: Complex) -> Real:
    """log |2 z|."""
    return log_magnitude(z) + math.log(2.0)


@in_double
def arcsinh(z: Complex) -> Complex:
    """Inverse hyperbolic sine; the cuts lie along the imaginary axis beyond i and -i."""
    return inverse_sinh(z)


def inverse_sinh(z: Complex) -> Complex:
    """The same for a number with f64 parts."""
    up, down = root(Complex(1.0 - z.im, z.re)), root(Complex(1.0 + z.im, -z.re))  # sqrt(1 + iz), sqrt(1 - iz)
    re = (up.im * down.re - up.re * down.im).apply("math.asinh")
    im = z.im.apply("math.atan2", up.re * down.re - up.im * down.im)
    large = beyond_one(z) | z.re.is_infinite() | z.im.is_infinite()
    result = large.pick(Complex(log_twice(z).with_sign(z.re), z.im.apply("math.atan2", abs(z.re))), Complex(re, im))
    return Complex(result.re, (z.re.is_nan() & z.im.same(0.0)).choose(z.im, result.im))


@in_double
def arcsin(z: Complex) -> Complex:
    """Inverse sine; the cuts lie along the real axis beyond 1 and -1."""
    return inverse_sinh(z.turned()).turned_back()


@in_double
def arccos(z: Complex) -> Complex:
    """Inverse cosine; the cuts lie along the real axis beyond 1 and -1."""
    below, above = root(Complex(1.0 - z.re, -z.im)), root(Complex(1.0 + z.re, z.im))
    re = (z.re.same(0.0) & z.im.is_nan()).choose(z.re.like(math.pi / 2), below.re.apply("math.atan2", above.re) * 2.0)
    im = (above.re * below.im - above.im * below.re).apply("math.asinh")
    large = beyond_one(z) | z.re.is_infinite() | z.im.is_infinite()
    return large.pick(Complex(abs(z.im).apply("math.atan2", z.re), -log_twice(z).with_sign(z.im)), Complex(re, im))


@in_double
def arccosh(z: Complex) -> Complex:
    """Inverse hyperbolic cosine; the cut lies along the real axis below 1."""
    below, above = root(Complex(z.re - 1.0, z.im)), root(Complex(z.re + 1.0, z.im))
    re = (below.re * above.re + below.im * above.im).apply("math.asinh")
    im = (z.re.same(0.0) & z.im.is_nan()).choose(z.re.like(math.pi / 2), below.im.apply("math.atan2", above.re) * 2.0)
    large = beyond_one(z) | z.re.is_infinite() | z.im.is_infinite()
    return large.pick(Complex(log_twice(z), angle(z)), Complex(re, im))


@in_double
def arctanh(z: Complex) -> Complex:
    """Inverse hyperbolic tangent; the cuts lie along the real axis beyond 1 and -1."""
    return inverse_tanh(z)


@in_double
def arctan(z: Complex) -> Complex:
    """Inverse tangent; the cuts lie along the imaginary axis beyond i and -i."""
    return inverse_tanh(z.turned()).turned_back()


def inverse_tanh(z: Complex) -> Complex:
    """Inverse hyperbolic tangent of a number with f64 parts."""
    x, one = abs(z.re), z.re.like(1.0)
    gap = 1.0 - x
    near = abs(gap).larger(abs(z.im)) < 2.0**-500
    distance = gap.fma(gap, z.im * z.im)
    re = (x * 4.0 / distance).apply("math.log1p") * 0.25
    re = near.choose((math.log(2.0) - log_magnitude(Complex(gap, z.im))) * 0.5, re)
    im = (z.im * 2.0).apply("math.atan2", gap * (x + 1.0) - z.im * z.im) * 0.5
    large, ratio = largest(z)
    infinite = z.re.is_infinite() | z.im.is_infinite()
    far = beyond_one(z) | infinite
    fading = infinite.choose(one.like(0.0), x / large / (large * ratio.fma(ratio, 1.0)))
    nan = z.im.is_nan()
    quarter = nan.choose(z.im, (math.pi / 2) * one.with_sign(z.im))
    re = (nan & z.re.same(0.0)).choose(z.re, far.choose(fading, re).with_sign(z.re))
    return Complex(re, far.choose(quarter, im))


def reciprocal(z: Complex) -> Complex:
    """1 / z, by Smith's algorithm."""
    wide = abs(z.re) >= abs(z.im)
    large, small = wide.choose(z.re, z.im), wide.choose(z.im, z.re)
    ratio = small / large
    below = large + small * ratio
    one, two = 1.0 / below, ratio / below
    return Complex(wide.choose(one, two), wide.choose(-two, -one))


def square(z: Complex) -> Complex:
    """z * z."""
    return z * z


def sign(z: Complex) -> Complex:
    """z / |z|; 0 for 0, whatever the signs of its parts."""
    size = magnitude(z)
    zero = size.same(0.0)
    safe = zero.choose(size.like(1.0), size)
    both = z.re.is_infinite() & z.im.is_infinite()
    single = size.is_infinite() & ~both
    unit = z.re.like(1.0)
    re = single.choose(z.re.is_infinite().choose(unit.with_sign(z.re), 0.0), z.re / safe)
    im = single.choose(z.im.is_infinite().choose(unit.with_sign(z.im), 0.0), z.im / safe)
    nothing = size.like(0.0)
    return zero.pick(Complex(nothing, nothing), Complex(re, im))


def power(a: Complex, b: Complex) -> Complex:
    """a to the power of b, by exp and log; 0 to a power is 0 or NaN, and anything to the power of 0 is 1."""
    narrow = a.dtype
    x, y = a.to(_DOUBLE), b.to(_DOUBLE)
    result = exp(y * Complex(log_magnitude(x), angle(x))).to(narrow)
    real = b.im.same(0.0)
    result = (real & b.re.same(2.0)).pick(a * a, (real & b.re.same(1.0)).pick(a, result))
    base_zero = a.re.same(0.0) & a.im.same(0.0)
    grows = b.re > 0.0
    result = base_zero.pick(grows.pick(a.like(0.0, 0.0), a.like(np.nan, np.nan)), result)
    return (real & b.re.same(0.0)).pick(a.like(1.0, 0.0), result)


def integer_power(a: Complex, exponent: int) -> Complex:
    """a to a known integer power, by squaring."""
    result, factor, left = None, a, abs(exponent)
    while left:
        if left & 1:
            result = factor if result is None else result * factor
        left >>= 1
        factor = factor * factor if left else factor
    if result is None:
        return a.like(1.0, 0.0)
    return a.like(1.0, 0.0) / result if exponent < 0 else result


def rint(z: Complex) -> Complex:
    """Both parts rounded to integers."""
    return Complex(z.re.apply("math.roundeven"), z.im.apply("math.roundeven"))


def less(a: Complex, b: Complex, predicate: str = "olt") -> Truth:
    """NumPy's order: by real parts, then by imaginary parts."""
    clear = ~(a.im.is_nan() | b.im.is_nan())
    return (a.re.compare(predicate[:2] + "t", b.re) & clear) | (a.re.same(b.re) & a.im.compare(predicate, b.im))


def is_nan(z: Complex) -> Truth:
    """True if a part is NaN."""
    return z.re.is_nan() | z.im.is_nan()
