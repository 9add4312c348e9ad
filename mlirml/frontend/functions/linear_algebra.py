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
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.sizes import is_dynamic_shape
from mlirml.errors import DTypeError, MatrixShapeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir.text.builder import Check
from mlirml.ir.text.library_calls import LAPACK, library_call, with_library
from mlirml.ops.functions import library
from mlirml.runtime import HAS_LAPACK

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

LAPACK_GROUP = 16
"""The number of real matrices, of up to as many rows, from which the runtime computes many of them at once.

Those are kernels of its own, beside LAPACK (`runtime/native/small_matrices.cpp`).
"""

_Slogdet: Any = type(np.linalg.slogdet(np.eye(1)))


@library("numpy.linalg", "a", "b")
def solve(trace: Trace, a: Any, b: Any) -> Any:
    """x with a @ x = b; `b` is a vector, or matrices. Raises LinAlgError where a matrix is singular."""
    a, b = _matrices(trace, "solve", a), trace.array(b, copy=False)
    dtype = np.result_type(a.dtype, float_dtype("solve", b))
    is_vector = b.ndim == 1
    columns = b[:, None] if is_vector else b
    if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(f"solve: {a.shape[-1]} equations, but {b._describe()} on the right side")
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    a = np.broadcast_to(a.astype(dtype), (*batch, *a.shape[-2:]))
    columns = np.broadcast_to(columns.astype(dtype), (*batch, *columns.shape[-2:]))
    if not columns.size or not a.size:
        result = columns.copy()
    else:
        result = stacked(lambda a, b: _solve(trace, a, b), a, columns)
        _check_result(trace, result, 0, "Singular matrix", a, columns)
    return result[..., 0] if is_vector else result


@library("numpy.linalg", "a")
def inv(trace: Trace, a: Any) -> Any:
    """The inverse of square matrices. Raises LinAlgError where one is singular."""
    a = _matrices(trace, "inv", a)
    if not a.size:
        return a.copy()
    return _check_result(trace, stacked(lambda a: inverse_of(trace, a), a), 0, "Singular matrix", a)


@library("numpy.linalg", "a")
def det(trace: Trace, a: Any) -> Any:
    """The determinant of square matrices; the derivative at a singular matrix of more than three rows is NaN."""
    a = _matrices(trace, "det", a)
    return stacked(lambda a: _determinant(trace, a), a) if a.size else np.ones(a.shape[:-2], a.dtype)


@library("numpy.linalg", "a")
def slogdet(trace: Trace, a: Any) -> Any:
    """The sign of the determinant of square matrices, and the logarithm of its magnitude."""
    a = _matrices(trace, "slogdet", a)
    if not a.size:
        return _Slogdet(np.ones(a.shape[:-2], a.dtype), np.zeros(a.shape[:-2], np.abs(a).dtype))
    return _Slogdet(*stacked(lambda a: _sign_and_logarithm(trace, a), a))


@library("numpy.linalg", "a")
def cholesky(trace: Trace, a: Any, /, *, upper: bool = False) -> Any:
    """The triangular L with L @ L.T = a, of the lower (or upper) triangle of `a`.

    Raises LinAlgError where a matrix is not positive definite.
    """
    a = _matrices(trace, "cholesky", a)
    if not a.size:
        return a.copy()
    lower = adjoint(a) if upper else a
    factor = stacked(lambda a: _cholesky(trace, a), lower)
    proper = lambda x: np.isfinite(x) | (x.real == -np.inf)  # noqa: E731  # no matrix with -inf is positive definite
    _check_result(trace, factor, -1, "Matrix is not positive definite", lower, proper=proper)
    return adjoint(factor) if upper else factor


def float_dtype(name: str, x: Any) -> np.dtype:
    """The dtype that LAPACK computes in: f64 for integers and truth values."""
    if x.dtype.name in ("float16", "bfloat16"):
        raise DTypeError(
            f"{name}: not defined for {x.dtype.name}, as in NumPy", help="convert with `.astype(np.float32)`"
        )
    return np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype


def _matrices(trace: Trace, name: str, a: Any) -> Any:
    """Square matrices of floats or complex numbers."""
    a = trace.array(a, copy=False)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        normal = "least squares are `np.linalg.lstsq(a, b)`"
        raise MatrixShapeError(
            f"{name}: needs square matrices in the last two dimensions, not {a._describe()}",
            help=normal if name == "solve" and a.ndim == 2 else None,
        )
    return a.astype(float_dtype(name, a))


def stacked(function: Callable[..., Any], *arrays: Any) -> Any:
    """The result of a function of stacks of matrices, for arrays with any number of batch dimensions."""
    batch = arrays[0].shape[:-2]
    stacks = [x.reshape((math.prod(batch), *x.shape[-2:])) for x in arrays]
    result = function(*stacks)
    parts = [x.reshape((*batch, *x.shape[1:])) for x in (result if isinstance(result, tuple) else (result,))]
    return tuple(parts) if isinstance(result, tuple) else parts[0]


def check(trace: Trace, passes: Any, message: str) -> None:
    """Emit a check that raises LinAlgError where an element of a traced array is False."""
    truth: Any = np.all(passes)
    b = trace.builder
    b.check(b.element(value_of(trace, truth, "a check")), Check("LinAlgError", message))


def _check_result(
    trace: Trace, result: Any, corner: int, message: str, *inputs: Any, proper: Callable[[Any], Any] = np.isfinite
) -> Any:
    """The result of a function of stacks of matrices, with a check that it could be computed.

    It could not where a NaN is in the corner of a result whose inputs are all `proper`.
    """
    from mlirml.frontend.tracing.regions import trace_cond

    flat = result.reshape((-1, *result.shape[-2:]))[:, corner, corner]
    failed = np.isnan(flat)

    def excused(*inputs: Any) -> Any:
        finite: Any = True
        for x in inputs:
            finite = finite & np.all(proper(x.reshape((flat.shape[0], -1))), axis=1)
        return np.logical_not(np.any(failed & finite))

    passes = trace_cond(trace, np.any(failed), excused, lambda *_: np.True_, inputs)
    check(trace, passes, message)
    return result


def _with_lapack(trace: Trace, name: str, arrays: tuple[Any, ...], own: Callable[[], Any]) -> Any:
    """The result of `mlirml.<name>` where a LAPACK call pays for these stacks, and else that of `own`."""
    a, *others = arrays
    if HAS_LAPACK and any(is_dynamic_shape(x.shape) for x in arrays):
        with at_user_line():
            found = library_call(trace.builder, name, [value_of(trace, x, name) for x in arrays])
        return Traced(trace, Cell(found, owned=True))
    is_large = a.size * a.dtype.itemsize > LAPACK_STACK_BYTES
    row = a.shape[-1] * (2 if a.dtype.kind == "c" else 1)
    is_group = a.dtype.kind == "f" and a.shape[0] >= LAPACK_GROUP and 1 < a.shape[-1] <= LAPACK_GROUP
    if not is_group and row < (LAPACK_STACK_FROM if is_large else LAPACK_FROM):
        return own()
    if not all(x.size for x in others):
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

    return trace_fori_loop(trace, 0, size, step, (a, b, trace.array(np.ones(a.shape[0], a.dtype))))


def _solved(trace: Trace, a: Any, b: Any) -> Any:
    from mlirml.frontend.tracing.regions import trace_fori_loop

    upper, b, _ = _eliminate(trace, a, b)
    size, rows = a.shape[-1], np.arange(a.shape[-1])

    def step(i: Any, b: Any) -> Any:
        k = size - 1 - i
        pivot = upper[:, k, k]
        x = b[:, k] / np.where(pivot == 0, np.nan, pivot)[:, None]  # NaN reaches all rows above
        b = b.copy()
        b[:, k] = x
        return b - np.where(rows < k, upper[:, :, k], 0)[:, :, None] * x[:, None, :]

    return trace_fori_loop(trace, 0, size, step, b)


def _factored(trace: Trace, a: Any) -> Any:
    from mlirml.frontend.tracing.regions import trace_fori_loop

    rows = np.arange(a.shape[-1])

    def step(k: Any, a: Any) -> Any:
        pivot = a[:, k, k].real
        column = np.where(rows < k, 0, a[:, :, k]) / np.sqrt(np.where(pivot > 0, pivot, np.nan))[:, None]
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


def adjoint(a: Any) -> Any:
    """The conjugate transpose of matrices."""
    return np.swapaxes(a, -1, -2).conj()


def ruled(trace: Trace, function: Callable[..., Any], rule: Callable[..., Any], name: str, *args: Any) -> Any:
    """The result of `function(*args)`, which is differentiated by `rule(primals, tangents)`."""
    from mlirml.frontend.transforms.custom import call_with_jvp

    return call_with_jvp(trace, function, rule, args, (), name)


def _by_rule(rule: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: calls of the function are differentiated by `rule(trace, primals, tangents)`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(trace: Trace, *args: Any) -> Any:
            bound, bound_rule = functools.partial(function, trace), functools.partial(rule, trace)
            return ruled(trace, bound, bound_rule, function.__name__.strip("_"), *args)

        return call

    return decorate


def _move_inverse(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    inverse = inverse_of(trace, *primals)
    return inverse, -(inverse @ tangents[0] @ inverse)


@_by_rule(_move_inverse)
def inverse_of(trace: Trace, a: Any) -> Any:
    """The inverses of a stack of matrices; NaN, without an error, where one is singular."""

    def own() -> Any:
        identity = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return _solved(trace, a, trace.array(identity.copy()))

    return _with_lapack(trace, "inverse", (a,), own)


def _move_solution(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    x = _solve(trace, *primals)
    return x, inverse_of(trace, primals[0]) @ (tangents[1] - tangents[0] @ x)


@_by_rule(_move_solution)
def _solve(trace: Trace, a: Any, b: Any) -> Any:
    return _with_lapack(trace, "solve", (a, b), lambda: _solved(trace, a, b))


def _relative_change(trace: Trace, primals: Any, tangents: Any) -> Any:
    """The derivative of the determinant divided by the determinant."""
    return np.einsum("bij,bji->b", inverse_of(trace, primals[0]), tangents[0])


def _move_determinant(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    value = _determinant(trace, *primals)
    if primals[0].shape[-1] <= 3:
        return value, np.sum(_cofactors(primals[0]) * tangents[0], axis=(1, 2))
    return value, value * _relative_change(trace, primals, tangents)


def _cofactors(a: Any) -> Any:
    """The cofactors of matrices of up to three rows, which are the partial derivatives of their determinants."""
    n = a.shape[-1]
    if n < 3:
        return a[:, ::-1, ::-1] * np.array([[1, -1], [-1, 1]], a.dtype) if n == 2 else np.ones_like(a)

    def rolled(rows: int, columns: int) -> Any:
        return np.roll(a, (-rows, -columns), axis=(1, 2))

    return rolled(1, 1) * rolled(2, 2) - rolled(1, 2) * rolled(2, 1)


@_by_rule(_move_determinant)
def _determinant(trace: Trace, a: Any) -> Any:
    diagonal, sign = _diagonal(trace, a)
    product = sign * np.prod(diagonal, axis=1)
    if product.dtype.kind != "c":
        return product
    # A product of complex numbers that overflows has infinities of both signs, which are NaN together.
    sign, logarithm = sign * np.prod(np.sign(diagonal), axis=1), np.sum(np.log(np.abs(diagonal)), axis=1)
    return np.where(np.isfinite(product), product, sign * np.exp(logarithm))


def _move_logarithm(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    sign, value = _sign_and_logarithm(trace, *primals)
    change = _relative_change(trace, primals, tangents)
    return (sign, value), (sign * 1j * change.imag if sign.dtype.kind == "c" else sign * 0, change.real)


@_by_rule(_move_logarithm)
def _sign_and_logarithm(trace: Trace, a: Any) -> tuple[Any, Any]:
    diagonal, sign = _diagonal(trace, a)
    # The sign of NaN is 1, as in NumPy.
    one = np.sign(diagonal)
    if one.dtype.kind != "c":
        one = np.where(np.isnan(one), one.dtype.type(1), one)
    return sign * np.prod(one, axis=1), np.sum(np.log(np.abs(diagonal)), axis=1)


def _move_factor(trace: Trace, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Only the lower triangle of the matrix is read."""
    factor = _cholesky(trace, *primals)
    lower = np.tril(tangents[0], -1)
    change = lower + adjoint(lower) + tangents[0].real * np.eye(factor.shape[-1])
    inverse = inverse_of(trace, factor)
    inner = inverse @ change @ adjoint(inverse)
    return factor, factor @ (np.tril(inner, -1) + 0.5 * inner * np.eye(factor.shape[-1]))


@_by_rule(_move_factor)
def _cholesky(trace: Trace, a: Any) -> Any:
    return _with_lapack(trace, "cholesky", (a,), lambda: _factored(trace, a))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.cholesky: cholesky, np.linalg.det: det, np.linalg.inv: inv, np.linalg.slogdet: slogdet,
    np.linalg.solve: solve,
}  # fmt: skip
