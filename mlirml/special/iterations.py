"""Sums and continued fractions of arrays, which are computed until all elements are settled, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.frontend import control


def until_settled(improve: Callable[[Any, Any], Any], state: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The state after at most `most` iterations, or when its last item, the change of the result, is below rounding.

    The number of the iteration has the dtype of the state, as all is computed with it.
    """
    dtype = state[-1].dtype
    small = float(np.finfo(dtype).eps) / 4

    def goes_on(carry: Any) -> Any:
        return (carry[0] < most) & np.any(np.abs(carry[1][-1]) > small)

    start = np.zeros((), dtype)
    _, found = control.while_loop(goes_on, lambda carry: (carry[0] + 1, improve(carry[0], carry[1])), (start, state))
    return tuple(found)


def next_of_fraction(numerator: Any, denominator: Any, value: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """The next convergent of a continued fraction, by the modified method of Lentz, and its relative change.

    Thompson and Barnett, Journal of Computational Physics 64, 1986. A change by rounding only counts as none: it would
    add up while other elements change.
    """
    d = 1 / not_zero(denominator + numerator * d)
    c = not_zero(denominator + numerator / c)
    settled = np.abs(c * d - 1) <= 2 * float(np.finfo(value.dtype).eps)
    return np.where(settled, value, value * (c * d)), c, d, np.where(settled, 0, c * d - 1)


def next_with_slope(
    numerator: tuple[Any, Any], denominator: tuple[Any, Any], state: tuple[Any, ...]
) -> tuple[tuple[Any, ...], Any]:
    """The same for the logarithm of a continued fraction and its derivative by a parameter.

    Numerator and denominator are given with their derivatives; the state is (value, slope of the logarithm, c, slope of
    c, d, slope of d). Also the relative changes, 0 where both are settled.
    """
    (top, top_slope), (bottom, bottom_slope) = numerator, denominator
    value, slope, c, c_slope, d, d_slope = state
    d_next = 1 / not_zero(bottom + top * d)
    d_slope = -d_next * (d_next * (bottom_slope + top_slope * d + top * d_slope))
    c_next = not_zero(bottom + top / c)
    c_slope = bottom_slope + top_slope / c - top * (c_slope / c) / c
    of_c = c_slope / c_next
    ratio, change = c_next * d_next, of_c + d_slope / d_next
    change = change / not_zero(np.abs(slope) + np.abs(of_c))
    size = np.maximum(np.abs(ratio - 1), np.abs(change))
    settled = size <= 2 * float(np.finfo(value.dtype).eps)
    slope = np.where(settled, slope, slope + of_c + d_slope / d_next)
    value = np.where(settled, value, value * ratio)
    return (value, slope, c_next, c_slope, d_next, d_slope), np.where(settled, 0, size)


def not_zero(x: Any) -> Any:
    """x, and the smallest normal number for 0."""
    return np.where(x == 0, float(np.finfo(x.dtype).tiny), x)
