"""`np.linalg`: systems of equations, inverses, determinants and Cholesky factors.

For large matrices, and large stacks of them, the program has a call of LAPACK as well, which the target `cpu` takes
where NumPy is linked to it (`ir/text/library_calls.py`). All else is Gaussian elimination with partial pivoting and
Cholesky's method by outer products (Golub and Van Loan, Matrix Computations, 4th edition, algorithms 3.4.1 and 4.2.2):
each is a loop over columns whose iteration is one pass over the matrices, so that all matrices of a batch are worked on
at once. Derivatives are formulae in terms of inverses (Giles, An extended collection of matrix derivative results,
2008; Murray, Differentiation of the Cholesky decomposition, 2016), which do not go through the loops, and are
differentiated in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir.text.library_calls import LAPACK, library_call, with_library

LAPACK_FROM = 32
"""The row length in real numbers from which the target `cpu` calls LAPACK: 16 rows of complex matrices are enough.

With 24 rows of f64 our own loops take 0.8 to 1.0 of its time for a system of equations, an inverse and a determinant
and 1.6 for a Cholesky factor; with 32 rows 0.9 to 1.4, and with 48 rows 1.2 to 4.
"""

LAPACK_STACK_FROM, LAPACK_STACK_BYTES = 8, 1 << 16
"""The row length in real numbers from which it is called for each matrix of a stack of more than this many bytes.

Our own loops go through the whole stack for each column, so that it should stay in the first-level cache: stacks of 64
KiB of matrices of 8 rows of f64 take as long as with LAPACK, those of 2 MB two to four times as long.
"""

_Slogdet: Any = type(np.linalg.slogdet(np.eye(1)))


def solve(trace: Trace, a: Any, b: Any) -> Any:
    """x with a @ x = b; `b` is a vector, or matrices. A singular matrix gives infinities or NaN, without an error."""
    a, b = _matrices(trace, "solve", a), trace.array(b, copy=False)
    dtype = np.result_type(a.dtype, _dtype("solve", b))
    is_vector = b.ndim == 1
    columns = b[:, None] if is_vector else b
    if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(f"solve: {a.shape[-1]} equations, but {b._describe()} on the right side")
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    a = np.broadcast_to(a.astype(dtype), (*batch, *a.shape[-2:]))
    columns = np.broadcast_to(columns.astype(dtype), (*batch, *columns.shape[-2:]))
    result = _batched(_solve, trace, a, columns)
    return result[..., 0] if is_vector else result


def inv(trace: Trace, a: Any) -> Any:
    """The inverse of square matrices; that of a singular one is infinities or NaN, without an error."""
    return _batched(_inverse, trace, _matrices(trace, "inv", a))


def det(trace: Trace, a: Any) -> Any:
    """The determinant of square matrices; the derivative at a singular matrix is NaN."""
    return _batched(_determinant, trace, _matrices(trace, "det", a))


def slogdet(trace: Trace, a: Any) -> Any:
    """The sign of the determinant of square matrices, and the logarithm of its magnitude."""
    return _Slogdet(*_batched(_sign_and_logarithm, trace, _matrices(trace, "slogdet", a)))


def cholesky(trace: Trace, a: Any, /, *, upper: bool = False) -> Any:
    """The triangular L with L @ L.T = a, of the lower (or upper) triangle of `a`; NaN where that is not definite."""
    a = _matrices(trace, "cholesky", a)
    factor = _batched(_cholesky, trace, _adjoint(a) if upper else a)
    return _adjoint(factor) if upper else factor


def _dtype(name: str, x: Any) -> np.dtype:
    if x.dtype.name in ("float16", "bfloat16"):
        raise DTypeError(
            f"{name}: not defined for {x.dtype.name}, as in NumPy", help="convert with `.astype(np.float32)`"
        )
    return np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype


def _matrices(trace: Trace, name: str, a: Any) -> Any:
    """Square matrices of floats or complex numbers."""
    a = trace.array(a, copy=False)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        normal = "for least squares solve the normal equations: `np.linalg.solve(a.T @ a, a.T @ b)`"
        raise ShapeError(
            f"{name}: needs square matrices in the last two dimensions, not {a._describe()}",
            help=normal if name == "solve" and a.ndim == 2 else None,
        )
    return a.astype(_dtype(name, a))


def _batched(function: Callable[..., Any], trace: Trace, *arrays: Any) -> Any:
    """Call a function of stacks of matrices, with all dimensions but the last two as one."""
    batch, size = arrays[0].shape[:-2], arrays[0].size
    stacks = [x.reshape((int(np.prod(batch)), *x.shape[-2:])) for x in arrays]
    if not size:
        return _of_nothing(function, arrays)
    result = function(trace, *stacks)
    parts = [x.reshape((*batch, *x.shape[1:])) for x in (result if isinstance(result, tuple) else (result,))]
    return tuple(parts) if isinstance(result, tuple) else parts[0]


def _of_nothing(function: Callable[..., Any], arrays: Any) -> Any:
    """The results for no matrices, and for matrices without elements."""
    batch = arrays[0].shape[:-2]
    if function is _determinant:
        return np.ones(batch, arrays[0].dtype)
    if function is _sign_and_logarithm:
        return np.ones(batch, arrays[0].dtype), np.zeros(batch, np.abs(arrays[0]).dtype)
    return arrays[-1].copy()


def _with_lapack(trace: Trace, name: str, arrays: tuple[Any, ...], own: Callable[[], Any]) -> Any:
    """The result of `mlirml.<name>` where a LAPACK call pays for these stacks, and else that of `own`."""
    a, *others = arrays
    is_large = a.size * a.dtype.itemsize > LAPACK_STACK_BYTES
    row = a.shape[-1] * (2 if a.dtype.kind == "c" else 1)
    if row < (LAPACK_STACK_FROM if is_large else LAPACK_FROM) or not all(x.size for x in others):
        return own()
    with at_user_line():
        b = trace.builder
        values = [value_of(trace, x, name) for x in arrays]
        (found,) = with_library(
            b,
            LAPACK,
            lambda: [library_call(b, name, values)],
            lambda: [value_of(trace, own(), name)],
        )
    return Traced(trace, Cell(found, owned=True))


def _eliminate(trace: Trace, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The upper triangular form of matrices (with multipliers below the diagonal), `b` transformed alike, and the
    sign.
    """
    from mlirml.frontend.tracing.regions import trace_fori_loop

    size, batch, rows = a.shape[-1], np.arange(a.shape[0]), np.arange(a.shape[-1])

    def step(k: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, b, sign = state
        pivot = np.argmax(np.where(rows < k, -1, np.abs(a[:, :, k])), axis=1)
        chosen, moved = (a[batch, pivot].copy(), b[batch, pivot].copy()), (a[:, k].copy(), b[:, k].copy())
        a, b = a.copy(), b.copy()
        a[batch, pivot], b[batch, pivot] = moved
        a[:, k], b[:, k] = chosen
        top = chosen[0][:, k][:, None]
        factor = np.where((rows > k) & (top != 0), a[:, :, k] / top, 0)[:, :, None]
        a, b = (x - factor * row[:, None, :] for x, row in zip((a, b), chosen))
        return a, b, np.where(pivot == k, sign, -sign)

    found: tuple[Any, Any, Any] = trace_fori_loop(
        trace, 0, size, step, (a, b, trace.array(np.ones(a.shape[0], a.dtype)))
    )
    return found


def _solved(trace: Trace, a: Any, b: Any) -> Any:
    from mlirml.frontend.tracing.regions import trace_fori_loop

    upper, b, _ = _eliminate(trace, a, b)
    size, rows = a.shape[-1], np.arange(a.shape[-1])

    def step(i: Any, b: Any) -> Any:
        k = size - 1 - i
        x = b[:, k] / upper[:, k, k][:, None]
        b = b.copy()
        b[:, k] = x
        return b - np.where(rows < k, upper[:, :, k], 0)[:, :, None] * x[:, None, :]

    return trace_fori_loop(trace, 0, size, step, b)


def _factored(trace: Trace, a: Any) -> Any:
    from mlirml.frontend.tracing.regions import trace_fori_loop

    rows = np.arange(a.shape[-1])

    def step(k: Any, a: Any) -> Any:
        column = np.where(rows < k, 0, a[:, :, k]) / np.sqrt(a[:, k, k].real)[:, None]
        a = a - column[:, :, None] * np.where(rows > k, column.conj(), 0)[:, None, :]
        a[:, :, k] = column
        return a

    return np.tril(trace_fori_loop(trace, 0, a.shape[-1], step, a))


def _diagonal(trace: Trace, a: Any) -> tuple[Any, Any]:
    """The diagonal of the upper triangular form of matrices, and the sign of the permutation of rows."""

    def own() -> Any:
        upper, _, sign = _eliminate(trace, a, a[:, :, :0])
        return np.concatenate((np.diagonal(upper, axis1=1, axis2=2), sign[:, None]), axis=1)

    found = _with_lapack(trace, "lu_diagonal", (a,), own)
    return found[:, :-1], found[:, -1]


def _adjoint(a: Any) -> Any:
    return np.swapaxes(a, -1, -2).conj()


def _by_rule(rule: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: calls of the function are differentiated by `rule(trace, primals, tangents)`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(trace: Trace, *args: Any) -> Any:
            from mlirml.frontend.transforms.custom import call_with_jvp

            bound = functools.partial(function, trace)
            return call_with_jvp(trace, bound, functools.partial(rule, trace), args, (), function.__name__.strip("_"))

        return call

    return decorate


def _move_inverse(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    inverse = _inverse(trace, *primals)
    return inverse, -(inverse @ tangents[0] @ inverse)


@_by_rule(_move_inverse)
def _inverse(trace: Trace, a: Any) -> Any:
    def own() -> Any:
        identity = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return _solved(trace, a, trace.array(identity.copy()))

    return _with_lapack(trace, "inverse", (a,), own)


def _move_solution(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    x = _solve(trace, *primals)
    return x, _inverse(trace, primals[0]) @ (tangents[1] - tangents[0] @ x)


@_by_rule(_move_solution)
def _solve(trace: Trace, a: Any, b: Any) -> Any:
    return _with_lapack(trace, "solve", (a, b), lambda: _solved(trace, a, b))


def _relative_change(trace: Trace, primals: Any, tangents: Any) -> Any:
    """The derivative of the determinant divided by the determinant."""
    return np.einsum("bij,bji->b", _inverse(trace, primals[0]), tangents[0])


def _move_determinant(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    value = _determinant(trace, *primals)
    return value, value * _relative_change(trace, primals, tangents)


@_by_rule(_move_determinant)
def _determinant(trace: Trace, a: Any) -> Any:
    diagonal, sign = _diagonal(trace, a)
    return sign * np.prod(diagonal, axis=1)


def _move_logarithm(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    sign, value = _sign_and_logarithm(trace, *primals)
    change = _relative_change(trace, primals, tangents)
    return (sign, value), (sign * 1j * change.imag if sign.dtype.kind == "c" else sign * 0, change.real)


@_by_rule(_move_logarithm)
def _sign_and_logarithm(trace: Trace, a: Any) -> tuple[Any, Any]:
    diagonal, sign = _diagonal(trace, a)
    return sign * np.prod(np.sign(diagonal), axis=1), np.sum(np.log(np.abs(diagonal)), axis=1)


def _move_factor(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Only the lower triangle of the matrix is read."""
    factor = _cholesky(trace, *primals)
    lower = np.tril(tangents[0], -1)
    change = lower + _adjoint(lower) + tangents[0].real * np.eye(factor.shape[-1])
    inverse = _inverse(trace, factor)
    inner = inverse @ change @ _adjoint(inverse)
    return factor, factor @ (np.tril(inner, -1) + 0.5 * inner * np.eye(factor.shape[-1]))


@_by_rule(_move_factor)
def _cholesky(trace: Trace, a: Any) -> Any:
    return _with_lapack(trace, "cholesky", (a,), lambda: _factored(trace, a))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.cholesky: cholesky, np.linalg.det: det, np.linalg.inv: inv, np.linalg.slogdet: slogdet,
    np.linalg.solve: solve,
}  # fmt: skip
