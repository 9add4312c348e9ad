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

from mlirml.optim.adaptive import adadelta, adamax, asgd, muon, nadam, radam, rprop
from mlirml.optim.lbfgs import lbfgs
from mlirml.optim.optimiser import Optimiser
from mlirml.optim.rules import adafactor, adagrad, adam, adamw, lion, rmsprop, sgd
from mlirml.optim.schedules import (
    constant,
    cosine,
    cosine_restarts,
    cyclic,
    exponential,
    joined,
    linear,
    linear_warmup,
    multistep,
    one_cycle,
    polynomial,
    step,
)
from mlirml.optim.wrappers import (
    Plateau,
    accumulate,
    clip_by_global_norm,
    clip_by_value,
    ema,
    global_norm,
    maximize,
    mixed_precision,
    reduce_on_plateau,
)

__all__ = [
    "Optimiser", "Plateau", "accumulate", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd",
    "clip_by_global_norm", "clip_by_value", "constant", "cosine", "cosine_restarts", "cyclic", "ema", "exponential",
    "global_norm", "joined", "lbfgs", "linear", "linear_warmup", "lion", "maximize", "mixed_precision", "multistep",
    "muon", "nadam", "one_cycle", "polynomial", "radam", "reduce_on_plateau", "rmsprop", "rprop", "sgd", "step",
]  # fmt: skip
