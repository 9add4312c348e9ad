"""The modified Bessel functions I0 and I1, and the same times exp(-|x|)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.frontend.tracing.pointwise import pointwise
from mlirml.random.quantiles import polynomial
from mlirml.special.floats import differentiable, is_double

__all__ = ["i0", "i0e", "i1", "i1e"]

_FAR = 8
# exp(-x) sqrt(x) I(x) for x of at least 8, in 16/x - 1, by docs/minimax.py, the highest power first.
_FAR_0 = (
    -1.4236136669583246e-10, -9.671750042535711e-11, 9.460838902002109e-10, 7.092368086768385e-10,
    -2.879967066324435e-09, -2.660768442127156e-09, 5.1349055077042906e-09, 6.991861436096547e-09,
    -4.270193466842922e-09, -1.3170779384965066e-08, -7.114198260640402e-09, 7.491521161859441e-09,
    2.162293465204875e-08, 3.933566929512191e-08, 8.871331306652969e-08, 2.9735907589731964e-07,
    1.483848109481817e-06, 1.114303381333316e-05, 0.0001362160743786704, 0.0033605519836679342,
    0.40217650944500816,
)  # fmt: skip
_FAR_1 = (
    1.4785250557750507e-10, 9.21581644642152e-11, -9.876737672619821e-10, -6.871476415060835e-10,
    3.0300727218645323e-09, 2.6354984123590897e-09, -5.4814693540496805e-09, -7.110312833950763e-09,
    4.779950173475375e-09, 1.3803154344085786e-08, 7.122491477975967e-09, -8.364154128663103e-09,
    -2.345344451344448e-08, -4.3139749948436156e-08, -1.000033164209801e-07, -3.483846109851481e-07,
    -1.8349107232217448e-06, -1.5038547240705071e-05, -0.00021923576381984044, -0.009749577193235253,
    0.3893984590258723,
)  # fmt: skip
# The power series in x**2 / 4 of I0, and of I1 / (x / 2) (DLMF 10.25.2).
_NEAR_0 = tuple(1 / math.factorial(k) ** 2 for k in range(25, -1, -1))
_NEAR_1 = tuple(1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(25, -1, -1))


def _parts(x: Any, near: tuple[float, ...], far: tuple[float, ...]) -> tuple[Any, Any, Any, Any]:
    """|x|; whether it is at least 8; the power series below that; the scaled function above."""
    size = np.abs(x)
    large, small = np.maximum(size, _FAR), np.minimum(size, _FAR)
    near, far = (near, far) if is_double(x) else (near[-17:], far[-14:])
    series = polynomial(small * small / 4, near)
    return size, size >= _FAR, series, polynomial(16 / large - 1, far) / np.sqrt(large)


def _grown(scaled: Any, size: Any) -> Any:
    """The scaled function times exp(size), in two factors, of which none overflows before the product does."""
    half = np.exp(size / 2)
    return scaled * half * half


@differentiable(lambda t, y, x: i1(x) * t)
@pointwise
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0.

    By the power series below 8, by a polynomial in 16/x - 1 above.
    """
    size, is_far, near, far = _parts(x, _NEAR_0, _FAR_0)
    return np.where(is_far, _grown(far, size), near)


@differentiable(lambda t, y, x: (i1e(x) - np.sign(x) * y) * t)
@pointwise
def i0e(x: Any) -> Any:
    """exp(-|x|) i0(x)."""
    size, is_far, near, far = _parts(x, _NEAR_0, _FAR_0)
    return np.where(is_far, far, near * np.exp(-np.minimum(size, _FAR)))


def _odd(x: Any, value: Any) -> Any:
    return np.where(x < 0, -value, value)


@pointwise
def _slope_of_i1(x: Any, zeroth: Any, first: Any) -> Any:
    """i0 - i1 / x, or the same of the scaled functions; 1/2 at 0."""
    return np.where(x == 0, 0.5, zeroth - first / np.where(x == 0, 1, x))


@differentiable(lambda t, y, x: _slope_of_i1(x, i0(x), y) * t)
@pointwise
def i1(x: Any) -> Any:
    """The modified Bessel function of order 1.

    By the power series below 8, by a polynomial in 16/x - 1 above.
    """
    size, is_far, near, far = _parts(x, _NEAR_1, _FAR_1)
    return _odd(x, np.where(is_far, _grown(far, size), near * (np.minimum(size, _FAR) / 2)))


@differentiable(lambda t, y, x: (_slope_of_i1(x, i0e(x), y) - np.sign(x) * y) * t)
@pointwise
def i1e(x: Any) -> Any:
    """exp(-|x|) i1(x)."""
    size, is_far, near, far = _parts(x, _NEAR_1, _FAR_1)
    small = np.minimum(size, _FAR)
    return _odd(x, np.where(is_far, far, near * (small / 2) * np.exp(-small)))
