"""More steps of random programs: what NumPy has to reduce, contract, select, rearrange and store with."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
import mlirml.nn.functional as F
from tests.autodiff.random_programs import along, both, step, unary

Array = Any


def resized(a: Array, *shape: int) -> Array:
    """The elements of an array, over and over, in another shape."""
    flat = np.ravel(a)
    return flat[np.arange(int(np.prod(shape))) % flat.size].reshape(shape)


def matrix(a: Array) -> Array:
    """An array as a matrix."""
    return a.reshape(-1, a.shape[-1]) if a.ndim > 1 else a.reshape(1, -1)


def axes(a: Array, draw: int) -> tuple[int, ...]:
    """Some of the axes of an array."""
    return tuple(d for d in range(a.ndim) if draw >> d & 1)


def places(a: Array, count: int) -> Array:
    """Integers that depend on the elements of an array, none near where they change."""
    return np.floor(np.abs(resized(a, count)) * 5.3).astype(np.int64)


unary(
    cosh=lambda a: np.cosh(np.tanh(a)),
    inverses=lambda a: np.arcsin(0.9 * np.tanh(a)) * np.arccosh(1.5 + a * a),
    logarithms=lambda a: np.log2(2 + np.cos(a)) + np.log10(3 + a * a) * np.log1p(a * a),
    powers=lambda a: 2.0 ** np.sin(a) * np.abs(a) ** 2.5 / (1 + a * a),
    float_power=lambda a: np.float_power(1.3 + np.cos(a), 3) * 0.1,
    erf=lambda a: F.gelu(a) - F.softplus(a),
    attention=lambda a: F.scaled_dot_product_attention(*[matrix(f(a)) for f in (np.sin, np.cos, np.tanh)]),
    sign=lambda a: a * np.sign(a + 0.123) + np.heaviside(a - 0.321, 0.5) * a,
    copysign=lambda a: np.copysign(np.sin(a), a - 0.2),
    half_precision=lambda a: a + 0 * a.astype(np.float32).astype(np.float64),
    whole=lambda a: a * np.round(a * 3).astype(np.int32),
    flags=lambda a: a * (a > 0.05) - np.where(np.logical_or(a > 1, a < -1), 0, a * a * 0.3),
    complexes=lambda a: np.real(np.exp(1j * a) * (1 + a * 0.3j)) + np.abs(a + 1j),
    spectrum=lambda a: np.imag((a + 0.3j) ** 2 / (2 + np.sin(a) * 1j)),
    split_parts=lambda a: np.modf(a * 1.3)[0] * a,
    no_number=lambda a: np.nan_to_num(np.where(a > 0.4, np.nan, a)) * a,
    positive_only=lambda a: np.where(a > 0, np.log(np.where(a > 0, a, 1)) * a, a),
    dead_branch=lambda a: np.where(a > 0.3, np.sqrt(a - 0.3) * a**2, 0.1 * a),
    norm_all=lambda a: a / np.linalg.norm(np.ravel(np.append(a, 1.0))),
    spread_all=lambda a: a * np.std(np.append(a, 2.0)),
    total=lambda a: a * np.ptp(a) if a.size > 1 else a,
    outer=lambda a: np.outer(np.ravel(a)[:4], np.sin(np.ravel(a)[:3])),
    kron=lambda a: np.kron(matrix(a)[:2, :2], matrix(np.cos(a))[:2, :3]),
    trace=lambda a: np.trace(matrix(a)) * a,
    triangles=lambda a: np.tril(matrix(a)) - 0.5 * np.triu(matrix(a), 1),
    diagonal=lambda a: np.diag(np.ravel(a)[:5]) if a.ndim == 1 else np.diagonal(matrix(a)) * 2,
    vander=lambda a: np.vander(np.tanh(np.ravel(a)[:5]), 3),
    convolve=lambda a: np.convolve(np.ravel(a), np.sin(np.ravel(a)[:3]), "same"),
    correlate=lambda a: np.correlate(np.ravel(a), np.ravel(a)[:2], "full"),
    windows=lambda a: np.sum(np.lib.stride_tricks.sliding_window_view(np.ravel(a), min(2, a.size)) ** 2, 1),
    interp=lambda a: np.interp(np.ravel(np.sin(a)), np.array([-2.0, -0.31, 2.0]), np.array([0.3, -1.0, 2.0])),
    knots=lambda a: np.interp(0.377, np.array([-1.0, 0.1, 1.0]), resized(np.sin(a), 3)) * a,
    sorted_flat=lambda a: np.sort(a, axis=None)[::-1],
    some=lambda a: np.sum(a[a > 0.2]) * a,
    some_mean=lambda a: a * np.sum(a[a < 0.3] ** 2),
    cross=lambda a: np.cross(resized(a, 2, 3), resized(np.cos(a), 3)),
    polynomial=lambda a: np.polyval(resized(np.sin(a), 3), np.tanh(a)),
    weighted=lambda a: np.average(a, weights=np.exp(np.sin(a))) * a,
    lower_half=lambda a: np.partition(np.ravel(a), a.size // 2)[: a.size // 2 + 1].sum() * a,
)

along(
    products=lambda a, d: np.prod(np.where(np.abs(a) < 0.4, 0, a), axis=d, keepdims=True) * a,
    running_zero=lambda a, d: np.cumprod(np.where(np.abs(a) < 0.3, 0, np.sin(a)), axis=d),
    lowest=lambda a, d: np.minimum.accumulate(a, axis=d) * a,
    log_sum=lambda a, d: F.logsumexp(a, d),
    log_soft=lambda a, d: F.log_softmax(a, d) * 0.3,
    mean_kept=lambda a, d: a - np.mean(a, axis=d, keepdims=True),
    deviations=lambda a, d: (a - np.mean(a, axis=d, keepdims=True)) / np.sqrt(np.var(a, d, keepdims=True) + 0.3),
    where_sum=lambda a, d: np.sum(a, axis=d, where=a > -0.2, initial=0.5),
    where_max=lambda a, d: np.max(a, axis=d, where=a > -0.2, initial=-0.7),
    argmax=lambda a, d: np.take_along_axis(a, np.expand_dims(np.argmax(a, axis=d), d), axis=d) * a,
    quantile=lambda a, d: np.quantile(a, 0.37, axis=d),
    nan_sum=lambda a, d: np.nansum(np.where(a > 0.5, np.nan, np.sin(a)), axis=d),
    repeated=lambda a, d: np.repeat(a, 2, axis=d) if a.size < 13 else a,
    flipped=lambda a, d: np.flip(a, axis=d) * np.cos(a),
    slid=lambda a, d: np.moveaxis(a, d, -1)[..., ::-2],
    gradient=lambda a, d: np.gradient(a, axis=d) if a.shape[d] > 1 else a,
    around=lambda a, d: np.pad(a, [(2, 1) if i == d else (0, 0) for i in range(a.ndim)], mode="wrap"),
    mirrored=lambda a, d: np.pad(a, [(1, 2) if i == d else (0, 0) for i in range(a.ndim)], mode="symmetric"),
    reflected=lambda a, d: np.pad(a, [(0, int(i == d and a.shape[d] > 1)) for i in range(a.ndim)], mode="reflect"),
    stacked=lambda a, d: np.stack([a, np.cos(a) * a], axis=d) if a.ndim < 3 and a.size < 20 else a,
    halves=lambda a, d: np.array_split(a, 2, axis=d)[0] * 1.3,
    trapezoid=lambda a, d: np.trapezoid(a, axis=d, dx=0.4),
    in_order=lambda a, d: np.sort(a, axis=d) * np.cumsum(a, axis=d) * 0.3,
    ranks=lambda a, d: np.argsort(np.argsort(a, axis=d), axis=d) * a * 0.3,
    summed=lambda a, d: np.logaddexp(np.max(a, axis=d, keepdims=True), a),
    mean_of_squares=lambda a, d: F.rms_norm(np.moveaxis(a, d, -1), a.shape[d]),
)

both(
    minimum_of=lambda a, b: np.fmin(a, np.sin(b)) - np.fmax(a * 0.5, b),
    log_add=lambda a, b: np.logaddexp(a, b) * 0.5,
    remainders=lambda a, b: np.fmod(a, 1.3 + np.cos(b)) + np.remainder(a, 2.1 + np.sin(b)),
    power_of=lambda a, b: np.abs(a + 0.01) ** np.tanh(b) * 0.3,
    clipped=lambda a, b: np.clip(a, -0.3 + 0.1 * np.sin(b), np.abs(b) + 0.4),
    nested_where=lambda a, b: np.where(a > b, np.where(b > 0, a * b, np.cos(a)), np.sqrt(np.abs(b) + 0.1)),
    tensor_dot=lambda a, b: np.tensordot(resized(a, 2, 3, 2), resized(b, 3, 2, 2), axes=([1, 2], [0, 1])),
    product=lambda a, b: np.einsum("ijk,kl,jm->ilm", resized(a, 2, 3, 2), resized(b, 2, 2), np.tanh(resized(a, 3, 2))),
    diagonal_product=lambda a, b: np.einsum("ii,ij->j", resized(a, 3, 3), np.sin(resized(b, 3, 2))),
    batched_product=lambda a, b: np.tanh(resized(a, 2, 2, 3) @ resized(b, 2, 3, 2)),
    row_product=lambda a, b: np.vecdot(resized(a, 3, 4), resized(b, 4)),
    thrice=lambda a, b: np.linalg.multi_dot([resized(np.sin(a), 2, 3), resized(b, 3, 3), resized(np.cos(a), 3)]),
    chosen=lambda a, b: np.select([a > 0.5, a > 0.0], [b * a, np.sin(b) + a * 0], default=0.3 * a),
    searched=lambda a, b: np.searchsorted(np.sort(np.ravel(b)), a) * a * 0.5,
    distance=lambda a, b: np.sqrt(1e-1 + (a - b) ** 2) * np.hypot(a, b + 3),
)


@step("reduce")
def _reduce(a: Array, b: Array, draw: int) -> Array:
    function = (np.sum, np.mean, np.max, np.min, np.prod, np.var)[draw % 6]
    return function(a, axis=axes(a, draw // 6), keepdims=bool(draw // 64 % 2)) * 0.7


@step("spread deviation")
def _std(a: Array, b: Array, draw: int) -> Array:
    rows = np.concatenate([resized(a, 3, 2) + np.array([0.0, 0.7]), np.array([[1.0, -1.0]])])
    return np.std(rows, axis=draw % 2, ddof=draw // 2 % 2)


@step("einsum")
def _einsum(a: Array, b: Array, draw: int) -> Array:
    formula = ("ij,jk->ik", "ij,ij->", "ij,kj->ki", "ij,jk->", "ij,j->ij", "ij,ji->i", "ij,kl->jl", "ij,jk,ik->j")[
        draw % 8
    ]
    terms = formula.partition("->")[0].split(",")
    operands = [resized(f(x), *[3] * len(term)) for f, x, term in zip((np.sin, np.tanh, np.cos), (a, b, a), terms)]
    return np.einsum(formula, *operands) * 0.5


@step("convolution")
def _convolution(a: Array, b: Array, draw: int) -> Array:
    stride, padding, dilation = 1 + draw % 2, draw // 2 % 3, 1 + draw // 6 % 2
    groups = 1 + draw // 12 % 2
    image, filters = resized(a, 1, 2, 4, 3), resized(np.tanh(b), 2, 2 // groups, 2, 2)
    if draw // 24 % 3 == 0:
        filters = filters[:, :, :1]
    return F.conv2d(image, filters, stride=stride, padding=padding, dilation=dilation, groups=groups)[0] * 0.5


@step("rows of a convolution")
def _convolution_1d(a: Array, b: Array, draw: int) -> Array:
    return np.tanh(F.conv1d(resized(a, 2, 2, 5), resized(b, 3, 2, 2), stride=1 + draw % 2, padding=draw // 2 % 2))


@step("volume")
def _convolution_3d(a: Array, b: Array, draw: int) -> Array:
    return np.tanh(F.conv3d(resized(a, 1, 1, 2, 3, 2), resized(b, 2, 1, 2, 1, 2), padding=draw % 2))[0, :, 0]


@step("transposed convolution")
def _convolution_transposed(a: Array, b: Array, draw: int) -> Array:
    found = F.conv_transpose2d(
        resized(a, 1, 2, 2, 2), resized(b, 2, 1, 2, 2), stride=1 + draw % 2, padding=draw // 2 % 2
    )
    return np.sin(found)


@step("pooling")
def _pooling(a: Array, b: Array, draw: int) -> Array:
    image, stride, padding = (
        resized(a * np.sin(b.sum() + np.arange(a.size)).reshape(a.shape), 1, 1, 4, 5),
        1 + draw % 2,
        draw // 2 % 2,
    )
    pool = F.max_pool2d if draw // 4 % 2 else F.avg_pool2d
    return pool(image, 2 + draw // 8 % 2, stride=stride, padding=padding)[0]


@step("own rows")
def _own_rows(a: Array, b: Array, draw: int) -> Array:
    flat = np.ravel(a)
    return flat[places(b, 4) % flat.size].reshape(2, 2) * 1.1


@step("own elements")
def _own_elements(a: Array, b: Array, draw: int) -> Array:
    m = matrix(a)
    return m[places(b, 3) % m.shape[0], places(b * 0.7, 3) % m.shape[1]]


@step("own slice")
def _own_slice(a: Array, b: Array, draw: int) -> Array:
    m = matrix(a)
    row = places(b, 1)[0] % m.shape[0]
    y = m * 0.5
    y[row] = np.sin(m[row]) + y[row, ::-1]
    y[row, draw % m.shape[1]] *= m[0, 0]
    return y


@step("scatter")
def _scatter(a: Array, b: Array, draw: int) -> Array:
    y = np.cos(np.ravel(a))
    at = places(b, 5) % y.size
    values = resized(b, 5) * 0.3
    function = (np.add, np.subtract, np.multiply, np.maximum, np.minimum)[draw % 5]
    function.at(y, at, values)
    return y


@step("overwritten")
def _overwritten(a: Array, b: Array, draw: int) -> Array:
    y = np.sin(matrix(a))
    y[places(b, 3) % y.shape[0]] = resized(b, 3, y.shape[1])
    y[:, draw % y.shape[1]] = np.cos(y[:, 0])
    return y.reshape(a.shape)


@step("masked store")
def _masked_store(a: Array, b: Array, draw: int) -> Array:
    y = np.ravel(a) * 1.2
    y[np.ravel(a) > 0.1] = 0.3 if draw % 2 else np.sum(b) * 0.1
    y[y < -0.4] *= 2
    return y.reshape(a.shape)


@step("blocks")
def _blocks(a: Array, b: Array, draw: int) -> Array:
    one, other = resized(a, 2, 2), resized(b, 2, 2)
    return np.block([[one, np.sin(other)], [np.zeros((1, 2)), (one @ other)[:1]]])


@step("stored blocks")
def _stored_blocks(a: Array, b: Array, draw: int) -> Array:
    y = np.zeros_like(a, shape=(3, 4))
    y[::2, 1:3] = resized(a, 2, 2)
    y[1] += resized(b, 4)
    y[:, ::-1][:, 1] -= resized(np.sin(a), 3)
    y[0, draw % 4] = np.sum(y[2])
    y.T[1] *= y[:, 0]
    return y


@step("topmost")
def _topmost(a: Array, b: Array, draw: int) -> Array:
    flat = np.ravel(a)
    order = np.argsort(-flat, kind="stable")[: min(3, a.size)]
    return flat[order] * np.arange(1, order.shape[0] + 1)


@step("stopped")
def _stopped(a: Array, b: Array, draw: int) -> Array:
    return a * np.cos(b.sum()) + 0 * ml.stop_gradient(a)


@step("same twice")
def _same_twice(a: Array, b: Array, draw: int) -> Array:
    y = np.concatenate([np.ravel(a), np.ravel(a)[::-1], np.ravel(b)])[:20]
    return y * y[::-1]
