"""Neural networks: layers as dataclasses, and `mlirml.nn.functional` with their operations as functions of arrays.

    model = nn.Sequential([nn.Linear.init(k1, 784, 128), nn.functional.relu, nn.Linear.init(k2, 128, 10)])

A layer is made by a key of `mlirml.random`, `nn.Linear.init(key, 784, 128)`, or of arrays, `nn.Linear(weight, bias)`,
and is called as a function. Its arrays are its parameters: `ml.grad` differentiates by them, `mlirml.optim` updates
them, and a model is a dataclass, list or dict of layers. Options are static fields. Nothing is kept elsewhere: running
statistics, caches and the states of recurrent layers are passed and returned, and random numbers are drawn by keys.
"""

from __future__ import annotations

from mlirml.core.exports import is_public as _is_public
from mlirml.nn import functional as functional
from mlirml.nn import initializers as initializers
from mlirml.nn.files import *
from mlirml.nn.modules.adaptive_softmax import *
from mlirml.nn.modules.attention import *
from mlirml.nn.modules.convolutions import *
from mlirml.nn.modules.functions import *
from mlirml.nn.modules.linear import *
from mlirml.nn.modules.module import *
from mlirml.nn.modules.normalizations import *
from mlirml.nn.modules.pooling import *
from mlirml.nn.modules.recurrent import *

__all__ = ["functional", "initializers"]
__all__ += [name for name, value in globals().items() if _is_public(name, value)]
