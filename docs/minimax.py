"""Compute the polynomial coefficients in mlirml/codegen/math: weighted minimax fits by Lawson's iteration.

    python docs/minimax.py            # all tables, about a minute
    python docs/minimax.py exp_f32    # one table

Needs mpmath. Each fit minimises max |weight(x) (target(x) - sum c_k x^k)| over an interval by repeated weighted least
squares on Chebyshev points (Rice and Usow, The Lawson Algorithm and Extensions, 1968). Coefficients are rounded to the
format in order, lowest power first, and the others are refitted each time, so that they compensate for its rounding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

mp.prec = 300
POINTS, ROUNDS = 160, 12
Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """An approximation: the function, the interval, the `powers` of x, the weight of errors; `kind` is f32 or f64."""

    target: Function
    low: str
    high: str
    powers: tuple[int, ...]
    weight: Function
    kind: str


def solve(fit: Fit, fixed: dict[int, mpf]) -> tuple[dict[int, mpf], mpf]:
    """Coefficients of the powers that are not `fixed`, and the largest weighted error that remains."""
    low, high = mpf(fit.low), mpf(fit.high)
    free = [k for k in fit.powers if k not in fixed]
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * (i + mpf(1) / 2) / POINTS)) / 2 for i in range(POINTS)]
    weights = [fit.weight(x) for x in grid]
    wanted = [w * (fit.target(x) - sum((c * x**k for k, c in fixed.items()), mpf(0))) for x, w in zip(grid, weights)]
    columns = [[w * x**k for x, w in zip(grid, weights)] for k in free]
    lawson = [mpf(1)] * POINTS
    best: tuple[dict[int, mpf], mpf] = ({}, max(abs(v) for v in wanted))
    for _ in range(ROUNDS if free else 0):
        scaled = [[v * u for v, u in zip(column, lawson)] for column in columns]
        system = mp.matrix([[mp.fdot(left, column) for column in columns] for left in scaled])
        right = mp.matrix([mp.fdot(left, wanted) for left in scaled])
        solution = list(mp.lu_solve(system, right))
        errors = [abs(v - mp.fdot(solution, row)) for v, row in zip(wanted, zip(*columns))]
        worst = max(errors)
        if worst < best[1]:
            best = dict(zip(free, solution)), worst
        mean = mp.fdot(lawson, errors) / POINTS
        lawson = [u * e / mean for u, e in zip(lawson, errors)]
    return best


def rounded(value: mpf, dtype: str) -> mpf:
    """The nearest f32 or f64."""
    return mpf(float(np.float32(float(value)))) if dtype == "f32" else mpf(float(value))


def run(fit: Fit) -> tuple[list[float], float]:
    """Rounded coefficients, highest power first (as Horner's rule reads them), and log2 of the weighted error."""
    fixed: dict[int, mpf] = {}
    for power in fit.powers:
        coefficients, _ = solve(fit, fixed)
        fixed[power] = rounded(coefficients[power], fit.kind)
    _, error = solve(fit, fixed)
    return [float(fixed[k]) for k in reversed(fit.powers)], float(mp.log(error, 2))


def series(f: Function, x: mpf, near: Function) -> mpf:
    """`f(x)`, or its limit form `near(x)` where f would divide by zero."""
    return near(x) if abs(x) < mpf(10) ** -30 else f(x)


HALF_LN2 = "0.34658"  # ln(2)/2 and a little
FITS: dict[str, Fit] = {
    # exp(r) = 1 + r + r^2 P(r)
    "exp_f32": Fit(
        lambda r: (mp.expm1(r) - r) / r**2, "-" + HALF_LN2, HALF_LN2, tuple(range(5)), lambda r: r**2, "f32"
    ),
    "exp_f64": Fit(
        lambda r: (mp.expm1(r) - r) / r**2, "-" + HALF_LN2, HALF_LN2, tuple(range(10)), lambda r: r**2, "f64"
    ),
    # expm1(r) = r + r^2 P(r), relative
    "expm1_f32": Fit(
        lambda r: (mp.expm1(r) - r) / r**2, "-" + HALF_LN2, HALF_LN2, tuple(range(6)), lambda r: abs(r), "f32"
    ),
    "expm1_f64": Fit(
        lambda r: (mp.expm1(r) - r) / r**2, "-" + HALF_LN2, HALF_LN2, tuple(range(11)), lambda r: abs(r), "f64"
    ),
}

SQRT_HALF, SQRT_TWO = "-0.292895", "0.414216"  # sqrt(1/2) - 1, sqrt(2) - 1
FITS |= {
    # log(1 + f) = f - f^2/2 + f^3 P(f)
    "log_f32": Fit(
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, SQRT_HALF, SQRT_TWO, tuple(range(8)),
        lambda f: abs(f**3 / mp.log1p(f)), "f32",
    ),
    # 2 atanh(s) = 2 s + s z P(z), z = s^2, s = f/(2 + f)
    "log_f64": Fit(
        lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, "0", "0.029438", tuple(range(7)), lambda z: z, "f64"
    ),
    # 2^r = 1 + r P(r)
    "exp2_f32": Fit(lambda r: mp.expm1(r * mp.ln(2)) / r, "-0.5", "0.5", tuple(range(6)), lambda r: r / 2**r, "f32"),
    "exp2_f64": Fit(lambda r: mp.expm1(r * mp.ln(2)) / r, "-0.5", "0.5", tuple(range(11)), lambda r: r / 2**r, "f64"),
}  # fmt: skip


def erfcx(a: mpf) -> mpf:
    return mp.erfc(a) * mp.exp(a * a)


def unmap(t: mpf, k: int) -> mpf:
    """a of t = (a - k)/(a + k)."""
    return k * (1 + t) / (1 - t)


def odd(f: Function, z: mpf) -> mpf:
    """(f(x)/x - 1)/z with x = sqrt(z)."""
    return (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


FITS |= {
    # erf(x) = x + x P(x^2) for x < 1; erf(x) = 1 - 2^-Q(x - 1) above
    "erf_small_f32": Fit(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, "0", "1", tuple(range(7)),
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), "f32",
    ),
    "erf_small_f64": Fit(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, "0", "1", tuple(range(13)),
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), "f64",
    ),
    "erf_large_f32": Fit(
        lambda u: mp.log(mp.erfc(u + 1), 2), "0", "3", tuple(range(7)), lambda u: mp.erfc(u + 1), "f32"
    ),
    "erf_large_f64": Fit(
        lambda u: mp.log(mp.erfc(u + 1), 2), "0", "5", tuple(range(18)), lambda u: mp.erfc(u + 1), "f64"
    ),
    # (1 + 2 a) exp(a^2) erfc(a) = P((a - 4)/(a + 4)), or 2 for 4
    "erfc_wide": Fit(
        lambda t: (1 + 2 * unmap(t, 2)) * erfcx(unmap(t, 2)), "-1", "0.70", tuple(range(14)), lambda t: mpf(1), "f64"
    ),
    "erfc_f64": Fit(
        lambda t: (1 + 2 * unmap(t, 4)) * erfcx(unmap(t, 4)), "-1", "0.75", tuple(range(23)), lambda t: mpf(1), "f64"
    ),
    # (2 + a) exp(a^2/2) erfc(a/sqrt(2)) = P((a - 2)/(a + 2))
    "normal_tail_f32": Fit(
        lambda t: (2 + unmap(t, 2)) * erfcx(unmap(t, 2) / mp.sqrt(2)), "-1", "0.7570976", tuple(range(11)),
        lambda t: 1 / ((2 + unmap(t, 2)) * erfcx(unmap(t, 2) / mp.sqrt(2))), "f32",
    ),
    # sin(r) = r + r z P(z), cos(r) = 1 - z/2 + z^2 P(z), |r| <= pi/4
    "sin_wide": Fit(lambda z: odd(mp.sin, z), "0", "0.6175", tuple(range(4)), lambda z: z, "f64"),
    "cos_wide": Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, "0", "0.6175", tuple(range(3)), lambda z: z**2, "f64"
    ),
    "sin_f64": Fit(lambda z: odd(mp.sin, z), "0", "0.6175", tuple(range(6)), lambda z: z, "f64"),
    "cos_f64": Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, "0", "0.6175", tuple(range(6)), lambda z: z**2, "f64"
    ),
    "sin_f32": Fit(lambda z: odd(mp.sin, z), "0", "0.6175", tuple(range(3)), lambda z: z, "f32"),
    "cos_f32": Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, "0", "0.6175", tuple(range(3)), lambda z: z**2, "f32"
    ),
    # atan(t) = t + t z P(z), t <= 1; asin(s) alike, s <= 1/2
    "atan_f32": Fit(
        lambda z: odd(mp.atan, z), "0", "1", tuple(range(8)), lambda z: mp.sqrt(z) * z / mp.atan(mp.sqrt(z)), "f32"
    ),
    "atan_f64": Fit(
        lambda z: odd(mp.atan, z), "0", "1", tuple(range(20)), lambda z: mp.sqrt(z) * z / mp.atan(mp.sqrt(z)), "f64"
    ),
    "asin_f32": Fit(lambda z: odd(mp.asin, z), "0", "0.25", tuple(range(5)), lambda z: z, "f32"),
    "asin_f64": Fit(lambda z: odd(mp.asin, z), "0", "0.25", tuple(range(13)), lambda z: z, "f64"),
    # sinh(r) = r + r z P(z), cosh(r) = 1 + z P(z)
    "sinh_f32": Fit(lambda z: odd(mp.sinh, z), "0", "0.12012", tuple(range(2)), lambda z: z, "f32"),
    "cosh_f32": Fit(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, "0", "0.12012", tuple(range(3)), lambda z: z, "f32"),
    # asinh(x) = x + x z P(z), atanh alike, x <= 1/2; acosh(1 + t) = sqrt(2 t) P(t), t <= 1/2
    "asinh_f32": Fit(lambda z: odd(mp.asinh, z), "0", "0.25", tuple(range(4)), lambda z: z, "f32"),
    "atanh_f32": Fit(lambda z: odd(mp.atanh, z), "0", "0.25", tuple(range(5)), lambda z: z, "f32"),
    "acosh_f32": Fit(
        lambda t: mp.acosh(1 + t) / mp.sqrt(2 * t), "0", "0.5", tuple(range(5)),
        lambda t: mp.sqrt(2 * t) / mp.acosh(1 + t), "f32",
    ),
    # 2 atanh(s)/(s ln 2) = P(z); the same less its first term, over z
    "log2_f32": Fit(
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(2), "0", "0.029438", tuple(range(4)),
        lambda z: 1 / (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(2)), "f32",
    ),
    "log10_f32": Fit(
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(10), "0", "0.029438", tuple(range(4)),
        lambda z: 1 / (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(10)), "f32",
    ),
    "log2_f64": Fit(
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(2), "0", "0.029438", tuple(range(8)),
        lambda z: 1 / (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(2)), "f64",
    ),
    "log10_f64": Fit(
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(10), "0", "0.029438", tuple(range(8)),
        lambda z: 1 / (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.ln(10)), "f64",
    ),
    "pow_f32": Fit(
        lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z / mp.ln(2), "0", "0.029438", tuple(range(3)),
        lambda z: z, "f32",
    ),
    # the polynomials above with the accuracy that f32 results need
    "expm1_wide": Fit(
        lambda r: (mp.expm1(r) - r) / r**2, "-" + HALF_LN2, HALF_LN2, tuple(range(7)), lambda r: abs(r), "f64"
    ),
    "exp2_wide": Fit(lambda r: mp.expm1(r * mp.ln(2)) / r, "-0.5", "0.5", tuple(range(7)), lambda r: r / 2**r, "f64"),
    "log_wide": Fit(
        lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, "0", "0.029438", tuple(range(4)), lambda z: z, "f64"
    ),
    # 2 atanh(s)/(s ln 2) = (2 + 2/3 z)/ln 2 + z^2 P(z)
    "pow_f64": Fit(
        lambda z: (2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mpf(2) / 3) / z / mp.ln(2), "0", "0.029438",
        tuple(range(8)), lambda z: z**2, "f64",
    ),
    # tan(r) = r + r z P(z); in f32 the reduced arguments may be a little larger than pi/4
    "tan_f32": Fit(lambda z: odd(mp.tan, z), "0", "0.675", tuple(range(7)), lambda z: z, "f32"),
    "tan_f64": Fit(lambda z: odd(mp.tan, z), "0", "0.6175", tuple(range(14)), lambda z: z, "f64"),
}  # fmt: skip


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.46)


def scaled_bessel(order: int, t: mpf) -> mpf:
    """sqrt(x) exp(-x) I(x) with t = 16/x - 1, at the limit 1/sqrt(2 pi) for t = -1."""
    x = 16 / (1 + t)
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)


FITS |= {
    # digamma(1.5 + t) = (1.5 + t - root) P(t)
    "digamma": Fit(
        lambda t: mp.digamma(t + mpf(3) / 2) / (t + mpf(3) / 2 - DIGAMMA_ROOT), "-0.5", "0.5", tuple(range(21)),
        lambda t: mpf(1), "f64",
    ),
    # sqrt(x) exp(-x) I(x) = P(16/x - 1) for x >= 8
    "i0_far": Fit(lambda t: scaled_bessel(0, t), "-1", "1", tuple(range(21)), lambda t: mpf(1), "f64"),
    "i1_far": Fit(lambda t: scaled_bessel(1, t), "-1", "1", tuple(range(21)), lambda t: mpf(1), "f64"),
}  # fmt: skip


def main() -> None:
    for name in sys.argv[1:] or FITS:
        coefficients, error = run(FITS[name])
        print(f"{name.upper()} = (  # 2^{error:.1f}")
        for c in coefficients:
            print(f"    {c!r},")
        print(")")


if __name__ == "__main__":
    main()
