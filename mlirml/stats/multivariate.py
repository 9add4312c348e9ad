"""Distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml import linalg, special
from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ops.functions import library
from mlirml.special.floats import as_array, float_dtype
from mlirml.stats.distribution import Frozen

__all__ = ["dirichlet", "multivariate_normal"]


def _floats(name: str, wide: bool, *arrays: Any) -> list[Any]:
    arrays = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in arrays)
    dtype = np.dtype(np.float64) if wide else float_dtype(name, *arrays)
    dtype = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    return [as_array(x).astype(dtype) for x in arrays]


def _size(mean: Any, cov: Any) -> int:
    """The length of the vectors."""
    size: int = cov.shape[0] if cov.ndim else mean.shape[0] if mean.ndim else 1
    if cov.ndim > 2 or cov.shape not in ((), (size,), (size, size)) or mean.shape not in ((), (1,), (size,)):
        with at_user_line():
            raise ShapeError(
                f"multivariate_normal: mean of shape {list(mean.shape)}, covariance of shape {list(cov.shape)}"
            )
    return size


def _number(x: Any) -> Any:
    return x if isinstance(x, Traced) else np.asarray(x)[()]


@library("mlirml.stats", "x", "mean", "cov")
class _MultivariateNormal:
    """The normal distribution of vectors, the last dimension of `x`; `cov` is a matrix, its diagonal or a number."""

    name = "multivariate_normal"

    def __init__(self, wide: bool = False) -> None:
        self._wide = wide

    def __call__(self, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Frozen:
        """The distribution with its parameters fixed."""
        return Frozen(self, (mean, cov, allow_singular), {})

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density; LinAlgError for a matrix that is not positive definite."""
        with at_user_line():
            if allow_singular:
                raise ArgumentError("multivariate_normal: singular matrices have no density here")
        x, mean, cov = _floats("multivariate_normal.logpdf", self._wide, x, 0.0 if mean is None else mean, cov)
        size = _size(mean, cov)
        with at_user_line():
            x = x.reshape(1) if x.ndim == 0 else x[:, None] if x.ndim == 1 and size == 1 else x
            if x.shape[-1] != size:
                raise ShapeError(f"multivariate_normal: {list(x.shape)} are no vectors of {size} numbers")
        centred = x - mean
        if cov.ndim < 2:
            spread = np.sqrt(cov + np.zeros(size, cov.dtype))
            scaled, logarithm = centred / spread, np.sum(np.log(spread))
        else:
            factor = np.linalg.cholesky(cov)
            rows = centred.reshape(-1, size)
            scaled = linalg.solve_triangular(factor, rows.T, lower=True).T.reshape(centred.shape)
            logarithm = np.sum(np.log(np.diagonal(factor)))
        distance = np.sum(scaled * scaled, axis=-1)
        found = -0.5 * distance - logarithm - 0.5 * size * math.log(2 * math.pi)
        return _number(np.squeeze(found))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """The differential entropy."""
        mean, cov = _floats("multivariate_normal.entropy", self._wide, 0.0 if mean is None else mean, cov)
        size = _size(mean, cov)
        if cov.ndim < 2:
            logarithm = np.sum(np.log(cov + np.zeros(size, cov.dtype)))
        else:
            logarithm = 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(cov))))
        return _number(0.5 * size * (1 + math.log(2 * math.pi)) + 0.5 * logarithm)


@library("mlirml.stats", "x", "alpha")
class _Dirichlet:
    """The Dirichlet distribution of probabilities, the first dimension of `x`; the last of them may be missing."""

    name = "dirichlet"

    def __init__(self, wide: bool = False) -> None:
        self._wide = wide

    def __call__(self, alpha: Any) -> Frozen:
        """The distribution with its parameters fixed."""
        return Frozen(self, (alpha,), {})

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density, minus infinity where an element is negative or the sum is not 1."""
        rounding = _floats("dirichlet.logpdf", False, x)[0].dtype
        x, alpha = _floats("dirichlet.logpdf", self._wide, x, alpha)
        with at_user_line():
            if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
                raise ShapeError(
                    f"dirichlet: alpha of shape {list(alpha.shape)} does not fit x of shape {list(x.shape)}"
                )
        if x.shape[0] < alpha.shape[0]:
            x = np.concatenate((x, 1 - np.sum(x, axis=0, keepdims=True)))
        close = np.abs(np.sum(x, axis=0) - 1) <= max(1e-9, 8 * float(np.finfo(rounding).eps))
        inside = np.all(x >= 0, axis=0) & close
        known = np.logical_not(np.any(np.isnan(x), axis=0))
        powers = (alpha - 1).reshape((-1, *(1,) * (x.ndim - 1)))
        with np.errstate(all="ignore"):
            total = np.sum(special.xlogy(powers, np.where(inside, x, 1)), axis=0)
            constant = special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha))
            found = np.where(inside, total + constant, -math.inf)
            return _number(np.where(np.all(alpha > 0) & known, found, math.nan))

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, alpha))


multivariate_normal, dirichlet = _MultivariateNormal(), _Dirichlet()
