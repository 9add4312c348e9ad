"""Distributions under the names of `scipy.stats`: densities, probabilities, tails and quantiles, compiled or not.

Compiled functions may call those of `scipy.stats` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import stats
>>> ml.compile(stats.norm.logpdf)(np.array([0.0, 1.0]))
array([-0.91893853, -1.41893853])
>>> ml.grad(lambda scale: stats.norm.logpdf(3.0, 0.0, scale))(1.0)
array(8.)
"""

from mlirml.core.exports import is_public as _is_public
from mlirml.stats.continuous import *
from mlirml.stats.discrete import *
from mlirml.stats.multivariate import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]
