"""Steps of random programs: factorizations of matrices, Fourier transforms, and rules whose results are views."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from mlirml import linalg
from tests.autodiff.random_control import resized
from tests.autodiff.random_programs import step

Array = Any


def _regular(a: Array) -> Array:
    """A matrix of three rows that is far from singular, with eigenvalues that are apart."""
    return resized(np.tanh(a), 3, 3) * 0.3 + np.diag([2.0, 3.5, 5.0])


@step("factorization")
def _factorization(a: Array, b: Array, draw: int) -> Array:
    m = _regular(a)
    symmetric = m + m.T
    found = (
        lambda: np.linalg.inv(m),
        lambda: np.linalg.cholesky(symmetric),
        lambda: np.linalg.eigvalsh(symmetric) * 0.2,
        lambda: (lambda w, v: (v * np.sin(w)) @ v.T)(*np.linalg.eigh(symmetric)),
        lambda: np.linalg.svdvals(m[:, :2]) * 0.3,
        lambda: np.linalg.qr(m[:, : 2 + draw % 2])[1] * 0.3,
        lambda: np.linalg.pinv(m[:, : 2 + draw % 2]),
        lambda: linalg.lu(m)[1] - 0.1 * linalg.lu(m)[2],
        lambda: np.abs(np.linalg.eigvals(m)) * 0.2,
        lambda: np.linalg.slogdet(m)[1],
        lambda: linalg.expm(m * 0.1) * 0.3,
    )
    return found[draw % len(found)]()


@step("equations")
def _equations(a: Array, b: Array, draw: int) -> Array:
    m, right = _regular(a), resized(b, 3, 2) if draw % 2 else resized(b, 3)
    if draw // 2 % 3 == 0:
        return np.linalg.solve(m, right)
    if draw // 2 % 3 == 1:
        return linalg.solve_triangular(m, right, lower=draw // 6 % 2 == 0, trans=draw // 12 % 2)
    return np.linalg.lstsq(m[:, :2], right)[draw // 6 % 2] * 0.5


@step("transform")
def _transform(a: Array, b: Array, draw: int) -> Array:
    x = np.atleast_1d(a)
    n = x.shape[-1] + draw // 8 % 3
    bins = (np.fft.rfft, np.fft.ihfft, np.fft.fft, np.fft.ifft)[draw % 4](x, n)
    if draw // 4 % 2:
        return np.fft.irfft(bins * np.exp(-0.1 * np.arange(bins.shape[-1])), n) * 0.5
    return np.concatenate([bins.real, bins.imag], axis=-1) * 0.3 if x.size < 13 else bins.imag * 0.3


def parts(x: Array, y: Array) -> Any:
    whole = np.stack([np.sin(x) * y, x + np.cos(y)])
    return whole[0], whole[1]


parts_by_tangents = ml.custom_jvp(parts)
parts_backwards = ml.custom_vjp(parts)


@parts_by_tangents.defjvp
def _tangents(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    values = np.stack([np.sin(x) * y, x + np.cos(y)])
    moves = np.stack([np.cos(x) * y * dx + np.sin(x) * dy, dx - np.sin(y) * dy])
    return (values[0], values[1]), (moves[0], moves[1])


def _forward(x: Array, y: Array) -> Any:
    return parts(x, y), (x, y)


def _backward(kept: Any, ct: Any) -> Any:
    x, y = kept
    found = np.stack([np.cos(x) * y * ct[0] + ct[1], np.sin(x) * ct[0] - np.sin(y) * ct[1]])
    return found[0], found[1]


parts_backwards.defvjp(_forward, _backward)


@step("views of a rule")
def _views(a: Array, b: Array, draw: int) -> Array:
    x, y = resized(a, 2, 3), resized(b, 2, 3)
    one, other = (parts_by_tangents, parts_backwards)[draw % 2](x, y)
    return (one, other, one + np.sin(other), other * 0.5)[draw // 2 % 4]
