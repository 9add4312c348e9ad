"""Derivatives of random numbers by the parameters of their distributions, where a number is drawn by rejection."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.random.rejection import gamma_parts
from mlirml.special.incomplete_gamma import log_quantile_slope
from mlirml.transforms import custom_jvp


@custom_jvp
def differentiable_gamma_parts(key: Any, a: Any) -> tuple[Any, Any]:
    """`gamma_parts` with a derivative by a: of the quantile of the gamma distribution at a fixed level.

    M. Figurnov, S. Mohamed, A. Mnih: Implicit reparameterization gradients. NeurIPS 2018.
    """
    return gamma_parts(key, a)


_slope = custom_jvp(log_quantile_slope, (0, 1, 2))
_slope.defjvp(lambda a, x, log_x, *_: (_slope(a, x, log_x),) * 2)
_slope.refusal = (
    "gamma, beta and Dirichlet random numbers have no second derivatives by their shape parameters",
    "differentiate by them once only: `ml.stop_gradient` takes a parameter out of a derivative",
)


@differentiable_gamma_parts.defjvp
def _tangents(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The derivative of the logarithm of the number is assigned to its first part."""
    result, factor = differentiable_gamma_parts(*primals)
    slope = _slope(primals[1], result * np.exp(factor), np.log(result) + factor)
    return (result, factor), (result * slope * tangents[1], np.zeros_like(factor))
