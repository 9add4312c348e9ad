"""Optimisers as functions of arrays: a step of one is a loop for each parameter.

    optimiser = optim.adam(optim.cosine(1e-3, 10_000))
    state = optimiser.init(params)

    @ml.compile
    def step(params, state, batch):
        value, gradients = ml.value_and_grad(loss)(params, batch)
        params, state = optimiser.update(optim.clip_by_global_norm(gradients, 1.0), state, params)
        return value, params, state

Parameters are the float arrays of a pytree: of dicts, lists, dataclasses and objects. The state is a dict of lists of
arrays, one for each parameter, and of numbers; nothing is kept elsewhere. f16 and bf16 are computed in f32.
"""

from __future__ import annotations

from mlirml.core.exports import is_public as _is_public
from mlirml.optim.adaptive import *
from mlirml.optim.lbfgs import *
from mlirml.optim.optimiser import *
from mlirml.optim.rules import *
from mlirml.optim.schedules import *
from mlirml.optim.wrappers import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]
