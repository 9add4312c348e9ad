"""Random numbers by keys: the same numbers on every target and for any number of threads.

A function draws from a key, two u32, and from nothing else: the same key and shape give the same numbers. `split` and
`fold_in` make new keys of a key. See `docs/random.md`.

>>> from mlirml import random
>>> first, second = random.split(random.key(0))
>>> random.bits(first, (2,)).tolist() == random.bits(second, (2,)).tolist()
False
"""

from __future__ import annotations

from mlirml.random.continuous import (
    exponential,
    gumbel,
    laplace,
    multivariate_normal,
    normal,
    truncated_normal,
    uniform,
)
from mlirml.random.discrete import bernoulli, categorical, choice, permutation, randint
from mlirml.random.keys import bits, fold_in, key, split
from mlirml.random.rejection import beta, dirichlet, gamma, poisson
from mlirml.random.trials import binomial

__all__ = [
    "bernoulli", "beta", "binomial", "bits", "categorical", "choice", "dirichlet", "exponential", "fold_in", "gamma",
    "gumbel", "key", "laplace", "multivariate_normal", "normal", "permutation", "poisson", "randint", "split",
    "truncated_normal", "uniform",
]  # fmt: skip
