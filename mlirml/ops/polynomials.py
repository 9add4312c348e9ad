"""Arithmetic, derivatives and integrals of polynomials, arrays of coefficients with the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.ops.registry import ALL, composed

_NUMBERS = tuple(d for d in ALL if d not in ("bool", "bf16"))


def _coefficients(xp: Any, name: str, p: Any) -> Any:
    p = xp.asarray(p)
    if p.ndim > 1:
        raise ShapeError(f"{name}: coefficients are an array of one dimension, not {list(p.shape)}")
    return p.reshape(-1)


def _aligned(xp: Any, name: str, a1: Any, a2: Any) -> tuple[Any, Any]:
    """Both polynomials with the same number of coefficients."""
    one, other = _coefficients(xp, name, a1), _coefficients(xp, name, a2)
    count = max(one.shape[0], other.shape[0])
    return tuple(xp.pad(p, (count - p.shape[0], 0)) if p.shape[0] < count else p for p in (one, other))


def _order(name: str, m: Any) -> int:
    order = operator.index(m)
    if order < 0:
        raise ShapeError(f"{name}: the order must be positive, not {order}")
    return order


@composed("numeric", np.polyadd, dtypes=_NUMBERS, arrays=2)
def polyadd(xp: Any, a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
    return xp.add(*_aligned(xp, "polyadd", a1, a2))


@composed("numeric", np.polysub, dtypes=_NUMBERS, arrays=2)
def polysub(xp: Any, a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    return xp.subtract(*_aligned(xp, "polysub", a1, a2))


@composed("numeric", np.polymul, dtypes=_NUMBERS, arrays=2, tolerance=16)
def polymul(xp: Any, a1: Any, a2: Any) -> Any:
    """The product of two polynomials.

    First coefficients must not be 0: NumPy leaves zeros at the beginning away, here the product has them.
    """
    return xp.convolve(_coefficients(xp, "polymul", a1), _coefficients(xp, "polymul", a2))


@composed("numeric", np.polydiv, dtypes=_NUMBERS, arrays=2, tolerance=64)
def polydiv(xp: Any, u: Any, v: Any) -> Any:
    """The quotient and the remainder of two polynomials.

    The first coefficient of the divisor must not be 0. NumPy leaves coefficients near 0 at the beginning of the
    remainder away, here it has as many as there can be: one less than the divisor, or those of `u` where these are
    fewer.
    """
    u, v = _coefficients(xp, "polydiv", u) + 0.0, _coefficients(xp, "polydiv", v) + 0.0
    count, width = u.shape[0], v.shape[0]
    if not count or not width:
        raise ShapeError("polydiv: a polynomial has at least one coefficient")
    dtype = np.result_type(u.dtype, v.dtype)
    u, v = u.astype(dtype), v.astype(dtype)
    if count < width:
        return xp.zeros(1, dtype=dtype), u
    scale, rest, quotient = 1 / v[0], u[:width], []
    for k in range(count - width + 1):
        if k:
            rest = xp.concatenate([rest[1:], u[k + width - 1 : k + width]])
        quotient.append(scale * rest[0])
        rest = rest - quotient[-1] * v
    return xp.stack(quotient), rest[1:] if width > 1 else xp.zeros(1, dtype=dtype)


@composed("numeric", np.polyder, dtypes=_NUMBERS, arrays=1, tolerance=4)
def polyder(xp: Any, p: Any, m: Any = 1) -> Any:
    """The m-th derivative of a polynomial."""
    p = _coefficients(xp, "polyder", p)
    for _ in range(_order("polyder", m)):
        p = p[:-1] * np.arange(p.shape[0] - 1, 0, -1)
    return p


@composed("numeric", np.polyint, dtypes=_NUMBERS, arrays=1, tolerance=4)
def polyint(xp: Any, p: Any, m: Any = 1, k: Any = None) -> Any:
    """The m-th integral of a polynomial, with the constants `k`, of the first integral first, or zeros."""
    order, p = _order("polyint", m), _coefficients(xp, "polyint", p)
    constants = xp.zeros(order) if k is None else xp.asarray(k).reshape(-1)
    if constants.shape[0] == 1 and order > 1:
        constants = constants * np.ones(order)
    if constants.shape[0] < order:
        raise ShapeError(f"polyint: {constants.shape[0]} constants for {order} integrals")
    for i in range(order):
        p = xp.concatenate([xp.true_divide(p, np.arange(p.shape[0], 0, -1)), constants[i : i + 1]])
    return p
