"""Special functions under SciPy's names, compiled or not, of arrays of real numbers.

They take and return arrays of f32 and f64; f16 and bf16 are computed in f32. Compiled functions may call those of
`scipy.special` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import special
>>> ml.compile(special.gammaln)(np.array([1.0, 3.0, 0.5]))
array([0.        , 0.69314718, 0.57236494])
>>> ml.grad(special.gammaln)(1.0)
array(-0.57721566)
"""

from mlirml.special.bessel import i0, i0e, i1, i1e
from mlirml.special.gamma_functions import beta, betaln, digamma, gamma, gammaln, polygamma, psi, zeta
from mlirml.special.incomplete_beta import betainc, betaincc
from mlirml.special.incomplete_gamma import gammainc, gammaincc
from mlirml.special.inverses import betainccinv, betaincinv, gammainccinv, gammaincinv
from mlirml.special.logarithms import (
    entr,
    expit,
    kl_div,
    log_expit,
    log_softmax,
    logit,
    logsumexp,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from mlirml.special.normal import erf, erfc, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri

__all__ = [
    "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "digamma", "entr", "erf", "erfc", "erfcinv",
    "erfcx", "erfinv", "expit", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "i0", "i0e",
    "i1", "i1e", "kl_div", "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "polygamma",
    "psi", "rel_entr", "softmax", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
