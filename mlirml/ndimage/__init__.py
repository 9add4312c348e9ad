"""Filters, morphology and interpolation of images under SciPy's names, compiled or not, of arrays of any rank.

Compiled functions may call those of `scipy.ndimage` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import ndimage
>>> image = np.zeros((3, 3))
>>> image[1, 1] = 1
>>> ml.compile(lambda x: ndimage.uniform_filter(x, (1, 3)))(image)[1].round(3)
array([0.333, 0.333, 0.333])
>>> ml.compile(lambda x: ndimage.shift(x, 0.5, order=1))(image)
array([[0.  , 0.  , 0.  ],
       [0.  , 0.25, 0.25],
       [0.  , 0.25, 0.25]])
"""

from mlirml.core.exports import is_public as _is_public
from mlirml.ndimage.binary import *
from mlirml.ndimage.distances import *
from mlirml.ndimage.interpolation import *
from mlirml.ndimage.labels import *
from mlirml.ndimage.linear_filters import *
from mlirml.ndimage.rank_filters import *
from mlirml.ndimage.splines import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]
