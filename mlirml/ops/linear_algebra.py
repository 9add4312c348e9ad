"""Linear algebra and reductions composed of other operations: norms, logsumexp, products of vectors, powers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, LinAlgError, MatrixShapeError, ShapeError
from mlirml.ir.text.dtypes import is_float
from mlirml.ops.reductions import loop_dtype, normalized_axes
from mlirml.ops.registry import ALL, BOOL, INTEGERS, NO_COMPLEX_ORDER, NUMBERS, composed, extension
from mlirml.ops.shapes.rearrange import known

_LAPACK = (*BOOL, *INTEGERS, "f32", "f64")
"""The dtypes of real numbers that LAPACK computes with, and those that are converted to them."""
_NOT_LAPACK = (("bf16", "converted by `.astype(np.float32)`: NumPy takes it for an integer"),)


@composed("reduction", np.linalg.norm, dtypes=ALL, tolerance=8)
def norm(xp: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors (None, 0, p, inf, -inf) and matrices (None, "fro", 1, -1, inf, -inf) along one or two axes."""
    x = xp.asarray(x)
    if not isinstance(ord, (str, type(None))):
        known("norm", "the order", ord)
    if not np.issubdtype(x.dtype, np.inexact):  # bfloat16 too, as in NumPy
        x = x.astype(np.float64)
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        root = xp.sqrt(xp.sum(_squares(xp, x)))
        return root.reshape((1,) * x.ndim) if keepdims else root
    axes = normalized_axes("norm", x.shape, axis)
    if len(axes) == 1:
        return _vector_norm(xp, x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ShapeError(f"norm: a norm is taken along 1 or 2 axes, not {len(axes)}", help="give `axis=`")
    if ord is None or ord in ("f", "fro"):
        return xp.sqrt(xp.sum(_squares(xp, x), axis=axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        return _spectral_norm(xp, x, ord, axes if axis is None else tuple(a % x.ndim for a in axis), keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        raise ShapeError(f"norm: {ord!r} is no norm of a matrix")
    row, column = axes if axis is None else (a % x.ndim for a in axis)
    summed, chosen = (row, column) if abs(ord) == 1 else (column, row)
    totals = xp.sum(xp.abs(x), axis=summed, keepdims=True)
    extreme = _largest(xp, totals, chosen, True) if ord > 0 else xp.min(totals, axis=chosen, keepdims=True)
    return extreme if keepdims else xp.squeeze(extreme, axis=(row, column))


def _spectral_norm(xp: Any, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The greatest, the least, or the sum of the singular values of matrices in two axes."""
    values = xp.linalg.svdvals(xp.moveaxis(x, axes, (-2, -1)))
    if ord == "nuc":
        result = xp.sum(values, axis=-1)
    else:
        result = _largest(xp, values, -1, False) if ord > 0 else xp.min(values, axis=-1)
    return result.reshape(tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else result


def _largest(xp: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """The maxima of numbers that are not negative: 0 where there is none, as the norm of no elements is."""
    return xp.max(x, axis=axis, keepdims=keepdims, **({} if x.shape[axis] else {"initial": 0}))


def _squares(xp: Any, x: Any) -> Any:
    """Squared magnitudes."""
    return xp.square(x.real) + xp.square(x.imag) if x.dtype.kind == "c" else xp.square(x)


def _vector_norm(xp: Any, x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    options = {"axis": axis, "keepdims": keepdims}
    if isinstance(ord, str):
        raise ShapeError(f"norm: {ord!r} is no norm of a vector")
    if ord is None or ord == 2:
        return xp.sqrt(xp.sum(_squares(xp, x), **options))
    if ord == np.inf:
        return xp.max(xp.abs(x), initial=0, **options)
    if ord == -np.inf:
        return xp.min(xp.abs(x), **options)
    if ord == 0:
        return xp.sum((x != 0).astype(x.real.dtype), **options)
    if ord == 1:
        return xp.sum(xp.abs(x), **options)
    powers = xp.sum(xp.abs(x) ** ord, **options)
    return powers ** np.reciprocal(ord, dtype=powers.dtype)


@composed("reduction", np.linalg.vector_norm, dtypes=ALL, tolerance=8)
def vector_norm(xp: Any, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Norm of vectors along axes, or of all elements as one vector."""
    x = xp.asarray(x)
    axes = normalized_axes("vector_norm", x.shape, axis)
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = xp.transpose(x, (*axes, *rest))
    flat = moved.reshape((math.prod([x.shape[i] for i in axes]), *(x.shape[i] for i in rest)))
    result = norm.build(xp, flat, ord, 0)
    return result.reshape(tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else result


@composed("reduction", np.linalg.matrix_norm, dtypes=ALL, tolerance=8)
def matrix_norm(xp: Any, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norm of the matrices in the last two axes."""
    return norm.build(xp, x, ord, (-2, -1), keepdims)


@extension("reduction", dtypes=ALL, gaps=NO_COMPLEX_ORDER, tolerance=8)
def logsumexp(xp: Any, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(a))) over axes without overflow."""
    a = xp.asarray(a)
    if not is_float(a.dtype):
        a = a.astype(np.float64)
    if a.size == 0 and any(a.shape[i] == 0 for i in normalized_axes("logsumexp", a.shape, axis)):
        return (xp.sum(a, axis=axis, keepdims=keepdims) - np.inf).astype(a.dtype)
    largest = xp.max(a, axis=axis, keepdims=True)
    shift = xp.where(xp.isfinite(largest), largest, xp.zeros((), a.dtype))
    total = xp.log(xp.sum(xp.exp(a - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else xp.squeeze(total, axis=normalized_axes("logsumexp", a.shape, axis))


@composed(
    "reduction",
    np.logaddexp.reduce,
    dtypes=ALL,
    gaps=NO_COMPLEX_ORDER,
    tolerance=8,
    array_options=("initial", "where"),
)
def logaddexp_reduce(
    xp: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: None = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """`np.logaddexp` of the elements along axes."""
    a = xp.asarray(array)
    if dtype is not None or not is_float(a.dtype):
        a = a.astype(loop_dtype("logaddexp.reduce", np.logaddexp, a.dtype, dtype))
    if where is not True:
        a = xp.where(where, a, xp.asarray(-np.inf).astype(a.dtype))
    total = logsumexp.build(xp, a, axis, keepdims)
    return total if initial is None else xp.logaddexp(xp.asarray(initial).astype(a.dtype), total)


@composed("contraction", np.linalg.matrix_power, dtypes=ALL, tolerance=32)
def matrix_power(xp: Any, a: Any, n: int) -> Any:
    """The matrix product of n copies, or of -n copies of the inverse; n is known."""
    a = xp.asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise MatrixShapeError(f"matrix_power: needs square matrices, not shape {list(a.shape)}")
    count = int(n.__index__())
    if count < 0:
        a, count = xp.linalg.inv(a), -count
    if count == 0:
        return xp.broadcast_to(xp.eye(a.shape[-1], dtype=a.dtype), a.shape).copy()
    result = None
    while count:
        count, odd = divmod(count, 2)
        if odd:
            result = a if result is None else result @ a
        a = a @ a if count else a
    return result.copy() if abs(int(n)) == 1 else result  # type: ignore[union-attr]


@composed("contraction", np.linalg.multi_dot, dtypes=ALL, arrays=-1, tolerance=32)
def multi_dot(xp: Any, arrays: Any, *, out: None = None) -> Any:
    """The product of several matrices, the first and the last of which may be vectors, in the cheapest order."""
    factors = [xp.asarray(x) for x in arrays]
    if len(factors) < 2:
        raise ShapeError("multi_dot: needs two arrays at least")
    for position, x in enumerate(factors):
        if x.ndim != 2 and not (x.ndim == 1 and position in (0, len(factors) - 1)):
            raise ShapeError(f"multi_dot: array {position} has {x.ndim} dimensions, where a matrix is needed")
    first, last = factors[0].ndim == 1, factors[-1].ndim == 1
    letters = [chr(ord("a") + i) for i in range(len(factors) + 1)]
    terms = [one + two for one, two in pairwise(letters)]
    terms[0], terms[-1] = terms[0][1:] if first else terms[0], terms[-1][:1] if last else terms[-1]
    result = ("" if first else letters[0]) + ("" if last else letters[-1])
    return xp.einsum(f"{','.join(terms)}->{result}", *factors, optimize=True)


@composed("contraction", np.vecdot, dtypes=ALL, arrays=2, aliases=(np.linalg.vecdot,), tolerance=8)
def vecdot(xp: Any, x1: Any, x2: Any, axis: Any = -1, dtype: Any = None) -> Any:
    """Sum of products along one axis of two arrays that broadcast."""
    x1, x2 = xp.asarray(x1), xp.asarray(x2)
    for x in (x1, x2):
        if not x.ndim:
            raise ShapeError("vecdot: a scalar is no vector")
        normalized_axes("vecdot", x.shape, axis)
    x1, x2 = xp.moveaxis(x1, axis, -1), xp.moveaxis(x2, axis, -1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"vecdot: sizes differ along the axis, shapes {list(x1.shape)} and {list(x2.shape)}")
    if "bfloat16" in (x1.dtype.name, x2.dtype.name):  # NumPy has no such loop and takes the next wider one
        common = np.vecdot.resolve_dtypes((x1.dtype, x2.dtype, None))[-1]
        x1, x2 = x1.astype(common), x2.astype(common)
    result = xp.einsum("...i,...i->...", _conjugated(x1), x2)
    return result if dtype is None else result.astype(dtype)


def _conjugated(x: Any) -> Any:
    return x.conj() if x.dtype.kind == "c" else x


if hasattr(np, "matvec"):  # since NumPy 2.2

    @composed("contraction", np.matvec, dtypes=ALL, arrays=2, tolerance=8)
    def matvec(xp: Any, x1: Any, x2: Any, dtype: Any = None) -> Any:
        """Products of matrices in the last two axes with vectors in the last."""
        result = xp.matmul(x1, xp.asarray(x2)[..., None])[..., 0]
        return result if dtype is None else result.astype(dtype)

    @composed("contraction", np.vecmat, dtypes=ALL, arrays=2, tolerance=8)
    def vecmat(xp: Any, x1: Any, x2: Any, dtype: Any = None) -> Any:
        """Products of vectors in the last axis with matrices in the last two."""
        result = xp.matmul(_conjugated(xp.asarray(x1))[..., None, :], x2)[..., 0, :]
        return result if dtype is None else result.astype(dtype)


@composed("contraction", np.kron, dtypes=ALL, arrays=2)
def kron(xp: Any, a: Any, b: Any) -> Any:
    """Every element of a times the whole of b, as one array."""
    a, b = xp.asarray(a), xp.asarray(b)
    rank = max(a.ndim, b.ndim)
    first, second = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    x = a.reshape([n for size in first for n in (size, 1)])
    y = b.reshape([n for size in second for n in (1, size)])
    return (x * y).reshape([m * n for m, n in zip(first, second)])


@composed("contraction", np.cross, dtypes=NUMBERS, arrays=2, tolerance=8)
def cross(xp: Any, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """Cross product of vectors with 3 elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = xp.asarray(a), xp.asarray(b)
    if not a.ndim or not b.ndim:
        raise ShapeError("cross: a scalar is no vector")
    for x, place in ((a, axisa), (b, axisb)):
        normalized_axes("cross", x.shape, place)
    a, b = xp.moveaxis(a, axisa, -1), xp.moveaxis(b, axisb, -1)
    if (a.shape[-1], b.shape[-1]) != (3, 3):
        raise ShapeError(f"cross: vectors have 3 elements, not {a.shape[-1]} and {b.shape[-1]}")
    if a.dtype == np.bool_ and b.dtype == np.bool_:
        raise DTypeError("cross: not defined for truth values, as in NumPy")
    terms = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return xp.moveaxis(xp.stack(terms, axis=-1), -1, axisc)


@composed("contraction", np.linalg.matrix_rank, dtypes=_LAPACK)
def matrix_rank(xp: Any, A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above `tol`, or above `rtol` times the greatest one: max(M, N) * eps by default."""
    x = _inexact(xp, A)
    if x.ndim < 2:
        return xp.any(x != 0).astype(np.int64)
    values = xp.abs(xp.linalg.eigvalsh(x)) if hermitian else xp.linalg.svdvals(x)
    if tol is None:
        share = max(x.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else xp.asarray(rtol)[..., None]
        limit = xp.max(values, axis=-1, keepdims=True, initial=0) * share
    else:
        limit = xp.asarray(tol)[..., None]
    return xp.count_nonzero(values > limit, axis=-1)


@composed("contraction", np.linalg.cond, dtypes=_LAPACK, tolerance=64)
def cond(xp: Any, x: Any, p: Any = None) -> Any:
    """The condition number of matrices in a norm: the ratio of the singular values for None, 2 and -2."""
    x = _inexact(xp, x)
    if x.ndim < 2:
        raise MatrixShapeError(f"cond: needs matrices, not shape {list(x.shape)}")
    if 0 in x.shape[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        values = xp.linalg.svdvals(x)
        result = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        singular = xp.linalg.slogdet(x)[0] == 0
        inverse = xp.linalg.inv(xp.where(singular[..., None, None], xp.eye(x.shape[-1], dtype=x.dtype), x))
        result = xp.linalg.norm(x, p, axis=(-2, -1)) * xp.linalg.norm(inverse, p, axis=(-2, -1))
        result = xp.where(singular, np.inf, result)
    return xp.where(xp.isnan(result) & ~xp.any(xp.isnan(x), axis=(-2, -1)), np.inf, result).astype(result.dtype)


def _inexact(xp: Any, x: Any) -> Any:
    x = xp.asarray(x)
    return x if np.issubdtype(x.dtype, np.inexact) else x.astype(np.float64)


@composed("contraction", np.linalg.tensorsolve, dtypes=_LAPACK, gaps=_NOT_LAPACK, arrays=2, tolerance=64)
def tensorsolve(xp: Any, a: Any, b: Any, axes: Any = None) -> Any:
    """x with tensordot(a, x, x.ndim) = b, where `axes` of a are moved to its end before."""
    a, b = xp.asarray(a), xp.asarray(b)
    if axes is not None:
        last = [i % a.ndim for i in axes]
        a = xp.transpose(a, [i for i in range(a.ndim) if i not in last] + last)
    shape = a.shape[b.ndim :]
    size = math.prod(shape)
    if size != b.size or size * size != a.size:
        given = f"shape {list(a.shape)} is no square system for a right side of {list(b.shape)}"
        raise MatrixShapeError(f"tensorsolve: {given}")
    return xp.linalg.solve(a.reshape(size, size), b.reshape(-1)).reshape(shape)


@composed("contraction", np.linalg.tensorinv, dtypes=_LAPACK, gaps=_NOT_LAPACK, tolerance=64)
def tensorinv(xp: Any, a: Any, ind: int = 2) -> Any:
    """The inverse of the map `tensordot(a, x, ind)` of the last dimensions of a to its first `ind`."""
    a = xp.asarray(a)
    if int(ind) <= 0:
        raise ShapeError(f"tensorinv: ind is 1 at least, not {ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    size = math.prod(last)
    if math.prod(first) != size:
        raise MatrixShapeError(f"tensorinv: shape {list(a.shape)} is no square matrix with ind={ind}")
    return xp.linalg.inv(a.reshape(size, size)).reshape((*last, *first))
