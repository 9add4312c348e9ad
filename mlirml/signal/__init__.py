"""Convolutions, filters and spectra under the names of `scipy.signal`, compiled or not.

Compiled functions may call those of `scipy.signal` themselves.

>>> import numpy as np, mlirml as ml
>>> from mlirml import signal
>>> smooth = ml.compile(lambda x: signal.lfilter([0.5], [1.0, -0.5], x))
>>> smooth(np.array([1.0, 1.0, 1.0]))
array([0.5  , 0.75 , 0.875])
"""

from mlirml.core.exports import is_public as _is_public
from mlirml.signal.convolutions import *
from mlirml.signal.filters import *
from mlirml.signal.spectra import *
from mlirml.signal.windows import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]
