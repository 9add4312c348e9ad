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

from mlirml.core.exports import is_public as _is_public
from mlirml.special.bessel import *
from mlirml.special.gamma_functions import *
from mlirml.special.incomplete_beta import *
from mlirml.special.incomplete_gamma import *
from mlirml.special.inverses import *
from mlirml.special.logarithms import *
from mlirml.special.normal import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]
