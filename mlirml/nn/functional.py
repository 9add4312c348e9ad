"""The operations of neural networks, with the meaning and the argument names of `torch.nn.functional`.

They work in compiled functions and on real arrays alike. On real arrays each is computed by NumPy at once; traced, it
becomes operations of the program. Shapes are static, layouts are channels first ([N, C, H, W]), and f16 and bf16 are
computed in f32 and rounded once at the end.

>>> import numpy as np
>>> from mlirml.nn import functional as F
>>> F.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2))).tolist()
[[[[4.0, 4.0], [4.0, 4.0]]]]
"""

from __future__ import annotations

from mlirml.core.exports import is_public as _is_public
from mlirml.nn.activations import *
from mlirml.nn.class_losses import *
from mlirml.nn.convolutions import *
from mlirml.nn.indexed_pooling import *
from mlirml.nn.interpolation import *
from mlirml.nn.layers import *
from mlirml.nn.losses import *
from mlirml.nn.normalizations import *
from mlirml.nn.pooling import *
from mlirml.nn.resampling import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]

logsigmoid = log_sigmoid  # torch's name
