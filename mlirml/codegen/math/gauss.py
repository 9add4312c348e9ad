"""erf and erfc.

erf(x) = x + x P(x^2) below 1 and 1 - 2^Q(x) above, where Q fits log2(erfc(x)). erfc(x) = exp(-x^2) P(t)/(1 + 2 x)
with t = (x - k)/(x + k) (Shepherd and Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, Mathematics of
Computation 36, 1981). erfc(-x/sqrt(2)) for x < 0 is exp(-x^2/2) P(t)/(k - x), with t of -x, and k = 2.
Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import Builder, Value
from mlirml.codegen.math.exponential import CONSTANTS, EXP2_F32, EXP2_F64, LOG2E, expm1_parts, integer_of
from mlirml.codegen.math.registry import expansion, through_f64

ERF_SMALL_F32 = (  # 2^-29.4
    7.834699499653652e-05,
    -0.0008004633127711713,
    0.005187740549445152,
    -0.026853546500205994,
    0.11283580958843231,
    -0.3761262595653534,
    0.12837916612625122,
)
ERF_SMALL_F64 = (  # 2^-56.3
    -2.990287696540519e-10,
    2.023538491475061e-09,
    -6.847923488784141e-09,
    2.4338011988462412e-08,
    -1.740946297451529e-07,
    1.6539341277412175e-06,
    -1.4929578900195237e-05,
    0.00012055470008705473,
    -0.000854833023373909,
    0.005223977673878085,
    -0.026866170649501288,
    0.11283791670975774,
    -0.3761263890318414,
    0.1283791670955126,
)
ERF_LARGE_F32 = (  # 2^-27.2
    0.0002268168464070186,
    -0.0024805613793432713,
    0.014064563438296318,
    -0.05975496396422386,
    -1.2163913249969482,
    -3.8072218894958496,
    -2.668416738510132,
)
ERF_LARGE_F64 = (  # 2^-56.5
    -7.024540291299392e-12,
    1.7227750990839357e-10,
    -1.9043074443020673e-09,
    1.2297268157057594e-08,
    -4.820168471960965e-08,
    8.377017760171046e-08,
    2.9532903641678567e-07,
    -3.0755188166250744e-06,
    1.3952612453466814e-05,
    -3.923963832230961e-05,
    3.7937474870922335e-05,
    0.00034237528672665193,
    -0.002853508287683502,
    0.014475749829394464,
    -0.059959990014958504,
    -1.2163466576872064,
    -3.8072253458535865,
    -2.6684166967815997,
)
ERFC_WIDE = (  # 2^-33.3
    -1.1808703359831298e-05,
    -6.988334371888491e-06,
    0.000119056209099118,
    0.00020027963618176722,
    -0.0004362096509550087,
    -0.0014510337734835394,
    0.0012661308965325928,
    0.00872085759067994,
    -0.008033253733476025,
    -0.05421976937262023,
    0.1640512297533856,
    -0.16603040808368794,
    -0.09276382557689507,
    1.2769783816262839,
)
ERFC_F64 = (  # 2^-54.3
    -6.267277155365261e-09,
    -1.6342757147514895e-08,
    7.525287973645409e-09,
    4.1114638874313825e-08,
    2.0855585215562593e-09,
    3.5801421462120856e-08,
    2.7418566006551776e-08,
    -7.695470923915674e-07,
    3.3986935221351156e-07,
    5.6839783088590115e-06,
    -1.1247839192386911e-05,
    -2.4391739005275666e-05,
    0.000150630714042564,
    -0.00019925804728009562,
    -0.0007577753022614539,
    0.005031970123685553,
    -0.016197733778338143,
    0.0371675155289732,
    -0.06633036583494711,
    0.0937328349985803,
    -0.10103906603534651,
    0.06809705425468991,
    0.015379652102603647,
    -0.1396211168405625,
    1.2329951186255526,
)
NORMAL_TAIL_F32 = (  # 2^-25.0
    -0.00014724214270245284,
    7.452307909261435e-05,
    0.001445869100280106,
    0.0017483364790678024,
    -0.0037837710697203875,
    -0.013491762802004814,
    -0.0009649302228353918,
    0.07344042509794235,
    0.05759667977690697,
    -0.662808895111084,
    1.344815969467163,
)


@expansion("erf", "f32", "f64")
def erf(b: Builder, x: Value) -> Value:
    """Both pieces, then a select."""
    small, large, exp2, high = (
        (ERF_SMALL_F32, ERF_LARGE_F32, EXP2_F32, 4.0)
        if x.dtype == "f32"
        else (ERF_SMALL_F64, ERF_LARGE_F64, EXP2_F64, 6.0)
    )
    a = b.abs(x)
    near = b.fma(a, b.horner(a * a, small), a)
    logarithm = b.horner(b.minimum(a, high) - 1.0, large)
    shifted = logarithm + CONSTANTS[x.dtype].magic
    r = logarithm - (shifted - CONSTANTS[x.dtype].magic)
    complement = b.horner(r, (*exp2, 1.0)) * b.power_of_two(integer_of(b, shifted), x.dtype)
    return b.copysign(b.select(a < 1.0, near, 1.0 - complement), x)


@expansion("erfc", "f32", "f64")
def erfc(b: Builder, x: Value) -> Value:
    """exp(-x^2) is scaled last, so that small results are rounded once.

    f32 is not extended if there is an fma: the result is a few ulps less accurate, in a fifth of the time.
    """
    return _erfc(b, "f32", x) if x.dtype == "f32" and b.processor.has_fma else _through_f64(b, x)


def _erfc(b: Builder, grade: str, x: Value) -> Value:
    coefficients, k, high = (ERFC_WIDE, 2.0, 12.0) if grade == "f32" else (ERFC_F64, 4.0, 28.0)
    a = b.minimum(b.abs(x), high)
    factor = b.horner((a - k) / (a + k), coefficients) / b.fma(a, 2.0, 1.0)
    square = a * a
    n, q = expm1_parts(b, -square, grade)
    mantissa = b.fma(q, factor, factor)
    if grade == "f64" or x.dtype == "f32":
        mantissa = b.fma(mantissa, -b.product_error(a, a, square), mantissa)
    if x.dtype == "f64" and grade == "f32":
        result = b.scale(mantissa, n)  # in range as an f64
    else:
        result = b.scale_or_vanish(mantissa, n, b.value(27.3 if grade == "f64" else 10.1, x.dtype) < a)
    if grade == "f64" or x.dtype == "f32":  # below 1 an ulp of the result is small
        near = 1.0 - b.fma(a, b.horner(a * a, ERF_SMALL_F64 if grade == "f64" else ERF_SMALL_F32), a)
        result = b.select(a < 0.5, near, result)
    return b.select(x < 0.0, 2.0 - result, result)


_through_f64 = through_f64(_erfc)


@expansion("normal_tail", "f32")
def normal_tail(b: Builder, x: Value) -> Value:
    """erfc(-x/sqrt(2)), twice the normal distribution: the exponent is that of -x^2, in two parts, and halved last."""
    c, k, end = CONSTANTS["f32"], 2.0, 14.3
    a = b.minimum(b.abs(x), end + 1.0)
    inverse = 1.0 / (a + k)
    factor = b.horner((a - k) * inverse, NORMAL_TAIL_F32) * inverse
    square = a * a
    shifted = b.fma(square, -LOG2E / 2, c.magic)
    m = shifted - c.magic
    r = b.fma(m, -2 * c.ln2_low, b.fma(m, -2 * c.ln2_high, -square)) - b.product_error(a, a, square)
    q = b.horner(r, (*(p / 2 ** (6 - i) for i, p in enumerate(c.exp)), 0.5)) * r
    tail = b.scale_or_vanish(b.fma(q, factor, factor), integer_of(b, shifted), b.value(end, x.dtype) < a)
    return b.select(x > 0.0, 2.0 - tail, tail)
