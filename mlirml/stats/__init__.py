"""Distributions under the names of `scipy.stats`: densities, probabilities, tails and quantiles, compiled or not.

Compiled functions may call those of `scipy.stats` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import stats
>>> ml.compile(stats.norm.logpdf)(np.array([0.0, 1.0]))
array([-0.91893853, -1.41893853])
>>> ml.grad(lambda scale: stats.norm.logpdf(3.0, 0.0, scale))(1.0)
array(8.)
"""

from mlirml.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    f,
    gamma,
    gumbel_r,
    halfnorm,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    t,
    truncnorm,
    uniform,
    weibull_min,
)
from mlirml.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from mlirml.stats.multivariate import dirichlet, multivariate_normal

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom", "gumbel_r",
    "halfnorm", "laplace", "logistic", "lognorm", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t",
    "truncnorm", "uniform", "weibull_min",
]  # fmt: skip
