"""`mlirml.special` against mpmath and SciPy: values, special values, derivatives, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import special

mp: Any = pytest.importorskip("mpmath")
scipy_special: Any = pytest.importorskip("scipy.special")

RNG = np.random.default_rng(0)
POSITIVE = np.concatenate([RNG.uniform(0.01, 12, 60), 10 ** RNG.uniform(-5, 5, 30), 1 + RNG.uniform(-1e-3, 1e-3, 10)])
BOTH_SIGNS = np.concatenate([RNG.uniform(-12, 12, 60), RNG.uniform(-26, 26, 30)])
UNIT = np.concatenate([RNG.uniform(0, 1, 60), 10 ** RNG.uniform(-30, 0, 30)])
OTHER = RNG.uniform(0.01, 30, len(POSITIVE))
SMALL = 10 ** RNG.uniform(-3, 1.5, len(OTHER))


def erfcinv(y: Any) -> Any:
    """By Newton's method from SciPy's value."""
    y = mp.mpf(y)
    x = mp.mpf(float(scipy_special.erfcinv(float(y))))
    for _ in range(3):
        x += (mp.erfc(x) - y) * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
    return x


EXACT: dict[str, tuple[Callable[..., Any], float, tuple[np.ndarray, ...]]] = {
    "gammaln": (mp.loggamma, 4, (POSITIVE,)),
    "gamma": (mp.gamma, 6, (RNG.uniform(-12, 30, 80),)),
    "digamma": (mp.digamma, 4, (POSITIVE,)),
    "psi": (mp.digamma, 4, (POSITIVE,)),
    "zeta": (mp.zeta, 6, (RNG.uniform(1.01, 15, len(OTHER)), OTHER)),
    "beta": (mp.beta, 40, (SMALL, SMALL[::-1])),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), 40, (SMALL + 2, SMALL[::-1] + 2)),
    "erf": (mp.erf, 4, (BOTH_SIGNS,)),
    "erfc": (mp.erfc, 6, (RNG.uniform(-5, 9, 90),)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), 6, (RNG.uniform(-9, 30, 90),)),
    "erfinv": (mp.erfinv, 6, (RNG.uniform(-1, 1, 60),)),
    "erfcinv": (erfcinv, 6, (UNIT,)),
    "ndtri": (lambda y: -mp.sqrt(2) * erfcinv(2 * y), 6, (UNIT,)),
    "ndtr": (mp.ncdf, 40, (RNG.uniform(-6, 6, 90),)),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x)), 40, (RNG.uniform(-30, 6, 90),)),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), 3, (BOTH_SIGNS,)),
    "logit": (lambda p: mp.log(p / (1 - p)), 3, (UNIT,)),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), 3, (BOTH_SIGNS,)),
    "i0": (lambda x: mp.besseli(0, x), 6, (BOTH_SIGNS,)),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), 5, (BOTH_SIGNS,)),
    "i1": (lambda x: mp.besseli(1, x), 6, (BOTH_SIGNS,)),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), 5, (BOTH_SIGNS,)),
    "xlogy": (lambda x, y: x * mp.log(y), 3, (POSITIVE, OTHER)),
    "xlog1py": (lambda x, y: x * mp.log1p(y), 3, (POSITIVE, OTHER)),
    "entr": (lambda x: -x * mp.log(x), 3, (POSITIVE,)),
    "rel_entr": (lambda x, y: x * mp.log(x / y), 5, (OTHER, SMALL)),
    "kl_div": (lambda x, y: x * mp.log(x / y) - x + y, 20, (OTHER, SMALL)),
}
"""For each function the exact one, the allowed error in ulp, and arguments."""


def ulps(found: np.ndarray, exact: list[Any]) -> float:
    """The largest error in units of the spacing of floats at the exact value."""
    rounded = np.array([float(e) for e in exact]).astype(found.dtype)
    spacing = np.spacing(np.abs(rounded)).astype(float)
    return max(float(abs(mp.mpf(float(f)) - e) / float(s)) for f, e, s in zip(found, exact, spacing))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXACT)
def test_values(name: str, dtype: Any) -> None:
    exact, allowed, args = EXACT[name]
    args = tuple(x.astype(dtype) for x in args)
    with mp.workprec(200):
        expected = [exact(*(mp.mpf(float(x)) for x in row)) for row in zip(*args)]
        function = getattr(special, name)
        for run in (function, ml.compile(lambda *args: function(*args))):
            found = run(*args)
            assert found.dtype == dtype
            assert ulps(found, expected) <= allowed
