"""Linear algebra: the functions of `np.linalg`, and SciPy's that NumPy lacks, compiled or not.

Compiled functions may call `np.linalg` itself. The functions here that NumPy lacks have SciPy's names, parameters and
results; all take stacks of matrices in the last two dimensions.

>>> import numpy as np, mlirml as ml
>>> from mlirml import linalg
>>> a = np.array([[4.0, 2.0], [2.0, 3.0]])
>>> solve = ml.compile(lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b))
>>> solve(a, np.array([2.0, 1.0]))
array([0.5, 0. ])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.linalg import *  # noqa: F403
from numpy.linalg import __all__ as _NUMPY

from mlirml import errors
from mlirml.errors import ShapeError
from mlirml.frontend import control
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.ir import library_calls as modes
from mlirml.ir.numpy_factorizations import factorization
from mlirml.ops.functions import library

OF_SCIPY = (
    "block_diag", "cho_factor", "cho_solve", "expm", "lu", "lu_factor", "lu_solve", "solve_banded",
    "solve_triangular", "sqrtm", "toeplitz",
)  # fmt: skip
"""SciPy's functions that NumPy lacks."""
__all__ = [*_NUMPY, *OF_SCIPY]  # noqa: PLE0604


def _traced(name: str, arrays: tuple[Any, ...], *options: Any) -> Any:
    """The compiled form of a function, or None where no argument is traced."""
    trace = current_trace()
    if trace is None or not any(isinstance(x, Traced) for x in arrays):
        return None
    from mlirml.frontend.functions import factorizations

    with at_user_line():
        return getattr(factorizations, name)(trace, *arrays, *options)


def _as_floats(name: str, a: Any, *, square: bool = False) -> Any:
    a = a if isinstance(a, Traced) else np.asarray(a)
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        what = "square matrices" if square else "matrices"
        raise ShapeError(f"{name}: needs {what} in the last two dimensions, not shape {list(a.shape)}")
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


def _computed(name: str, mode: int, *stacks: Any) -> Any:
    """`mlirml.<name>` of real arrays with any number of batch dimensions, the last dimension of which is packed."""
    batch = math.prod(stacks[0].shape[:-2])
    flat = [np.ascontiguousarray(x).reshape((batch, *x.shape[-2:])) for x in stacks]
    found = factorization(name, mode)(*flat)
    return found.reshape((*stacks[0].shape[:-2], *found.shape[1:]))


@library("mlirml.linalg", "a")
def lu_factor(a: Any) -> tuple[Any, Any]:
    """The LU decomposition of matrices [..., M, N], as `lu_solve` takes it.

    Returns L and U in one array of the shape of `a`, and an i32 array [..., min(M, N)]: row k was exchanged with row
    `piv[k]`. A singular matrix has a zero on the diagonal of U.
    """
    found = _traced("lu_factor", (a,))
    if found is not None:
        return found
    a = _as_floats("lu_factor", a)
    rows, columns = a.shape[-2:]
    packed = _computed("lu", 0, a)
    changes = packed[..., rows * columns : rows * columns + min(rows, columns)]
    return packed[..., : rows * columns].reshape(a.shape), changes.real.astype(np.int32)


@library("mlirml.linalg", "a")
def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> tuple[Any, ...]:
    """P, L and U with P @ L @ U = a, for matrices [..., M, N].

    With `permute_l` P @ L and U; with `p_indices` P as an i32 array [..., M] with L[p] @ U = a.
    """
    found = _traced("lu", (a,), permute_l, p_indices)
    if found is not None:
        return found
    a = _as_floats("lu", a)
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    packed = _computed("lu", 0, a)
    factors = packed[..., : rows * columns].reshape(a.shape)
    lower = np.tril(factors[..., :least], -1) + np.eye(rows, least, dtype=a.real.dtype)
    upper = np.triu(factors[..., :least, :])
    positions = np.argsort(packed[..., packed.shape[-1] - rows :].real, axis=-1).astype(np.int32)
    if permute_l:
        return np.take_along_axis(lower, positions[..., None], -2), upper
    if p_indices:
        return positions, lower, upper
    return (positions[..., None] == np.arange(rows)).astype(a.real.dtype), lower, upper


@library("mlirml.linalg", "lu_and_piv", "b")
def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0) -> Any:
    """x with op(a) @ x = b, for the result of `lu_factor(a)`; op is the identity, transpose (1) or adjoint (2)."""
    factors, changes = lu_and_piv
    columns = b[..., None] if b.ndim == 1 else b

    def exchange(columns: Any, k: Any) -> Any:
        other = changes[k]
        one, two = columns[k].copy(), columns[other].copy()
        columns = columns.copy()
        columns[k], columns[other] = two, one
        return columns

    if factors.ndim != 2 or factors.shape[0] != factors.shape[1] or columns.shape[0] != factors.shape[0]:
        raise ShapeError(
            f"lu_solve: factors of shape {list(factors.shape)} and a right side of shape {list(b.shape)} do not fit",
            help="batches are those of `ml.vmap`",
        )
    size = factors.shape[0]
    if trans:
        columns = solve_triangular(factors, columns, trans)
        columns = solve_triangular(factors, columns, trans, lower=True, unit_diagonal=True)
        columns = control.fori_loop(0, size, lambda k, x: exchange(x, size - 1 - k), columns)
    else:
        columns = control.fori_loop(0, size, lambda k, x: exchange(x, k), columns)
        columns = solve_triangular(factors, columns, lower=True, unit_diagonal=True)
        columns = solve_triangular(factors, columns)
    return columns[..., 0] if b.ndim == 1 else columns


@library("mlirml.linalg", "a", "b")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """x with op(a) @ x = b for the upper or lower triangle of matrices [..., N, N] and `b` of [N] or [..., N, K].

    `op` is the identity (0, "N"), the transpose (1, "T") or the adjoint (2, "C"). With `unit_diagonal` the numbers on
    the diagonal count as ones. Raises LinAlgError where one of them is zero.
    """
    found = _traced("solve_triangular", (a, b), trans, lower, unit_diagonal)
    if found is not None:
        return found
    a, b = _as_floats("solve_triangular", a, square=True), np.asarray(b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ShapeError(f"solve_triangular: trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    columns = b[:, None] if b.ndim == 1 else b
    if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(f"solve_triangular: {a.shape[-1]} equations, but a right side of shape {list(b.shape)}")
    if not unit_diagonal and np.any(np.einsum("...ii->...i", a) == 0):
        raise errors.LinAlgError("solve_triangular: singular matrix")
    mode = (modes.LOWER if lower else 0) | (modes.UNIT if unit_diagonal else 0)
    mode |= {0: 0, "N": 0, 1: modes.TRANSPOSED, "T": modes.TRANSPOSED}.get(trans, modes.TRANSPOSED | modes.CONJUGATED)
    batch, dtype = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2]), np.result_type(a.dtype, columns.dtype)
    a = np.broadcast_to(a.astype(dtype), (*batch, *a.shape[-2:]))
    columns = np.broadcast_to(columns.astype(dtype), (*batch, *columns.shape[-2:]))
    found = _computed("triangular_solve", mode, a, columns)
    return found[..., 0] if b.ndim == 1 else found


@library("mlirml.linalg", "ab", "b")
def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any) -> Any:
    """x with a @ x = b for a matrix [N, N] of `l` diagonals below and `u` above the main one; `b` is [N] or [N, K].

    `ab` [l + u + 1, N] has a diagonal in each row: `ab[u + i - j, j]` is `a[i, j]`. By elimination with partial
    pivoting in a loop over the columns, with time and memory in proportion to N. A singular matrix gives infinities
    or NaN.
    """
    below, above = (int(n) for n in l_and_u)
    ab, b = (x if isinstance(x, Traced) else np.asarray(x) for x in (ab, b))
    fits = ab.ndim == 2 and ab.shape[0] == below + above + 1 and max(below, above) < ab.shape[1]
    if not fits or b.ndim not in (1, 2) or b.shape[0] != ab.shape[1]:
        with at_user_line():
            raise ShapeError(
                f"solve_banded: diagonals of shape {list(ab.shape)} and a right side of {list(b.shape)} do not fit",
                help=f"{below} and {above} diagonals of a matrix of N rows are [{below + above + 1}, N]",
            )
    dtype = np.result_type(ab.dtype, b.dtype, *(() if ab.dtype.kind in "fc" else (np.float64,)))
    columns = (b[:, None] if b.ndim == 1 else b).astype(dtype)
    width = below + above + 1
    rows, columns = _rows_of_bands(ab.astype(dtype), below, above), np.pad(columns, ((0, below + 1), (0, 0)))
    window = np.stack([np.pad(rows[i, below - i :], (0, below - i)) for i in range(below + 1)])
    order = np.arange(below + 1)

    def eliminate(state: tuple[Any, Any], following: tuple[Any, Any]) -> tuple[Any, Any]:
        joined = np.concatenate(state, axis=1)
        pivot = np.argmax(np.abs(joined[:, 0]))
        joined = joined[np.where(order == 0, pivot, np.where(order == pivot, 0, order))]
        first, rest = joined[0], joined[1:]
        rest = rest - rest[:, :1] / first[0] * first
        left = np.pad(rest[:, 1:width], ((0, 0), (0, 1)))
        row, side = following
        state = np.concatenate((left, row[None])), np.concatenate((rest[:, width:], side[None]))
        return state, (first[:width], first[width:])

    def substitute(later: Any, given: tuple[Any, Any]) -> tuple[Any, Any]:
        row, side = given
        x = (side - row[1:] @ later) / row[0]
        return np.concatenate((x[None], later))[: width - 1], x

    first = window, columns[: below + 1]
    _, (upper, sides) = control.scan(eliminate, first, (rows[below + 1 :], columns[below + 1 :]))
    last = np.zeros((width - 1, columns.shape[1]), dtype)
    found = control.scan(substitute, last, (upper, sides), reverse=True)[1]
    return found[:, 0] if b.ndim == 1 else found


def _rows_of_bands(ab: Any, below: int, above: int) -> Any:
    """The elements of each row from `below` columns before the diagonal on, and `below + 1` rows of zeros."""
    size = ab.shape[1]
    diagonals = []
    for offset in range(-below, above + 1):
        inner = ab[above - offset, max(offset, 0) : size + min(offset, 0)]
        diagonals.append(np.pad(inner, (max(-offset, 0), size - len(inner) - max(-offset, 0) + below + 1)))
    return np.stack(diagonals, axis=1)


@library("mlirml.linalg", "a")
def cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    """The Cholesky factor of positive definite matrices, upper or lower, and `lower`, as `cho_solve` takes them.

    The other triangle has zeros, where SciPy leaves what was there.
    """
    return np.linalg.cholesky(a, upper=not lower), lower


@library("mlirml.linalg", "c_and_lower", "b")
def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    """x with a @ x = b, for the result of `cho_factor(a)`."""
    factor, lower = c_and_lower
    adjoint: Any = "C" if factor.dtype.kind == "c" else "T"
    first, second = (0, adjoint) if lower else (adjoint, 0)
    return solve_triangular(factor, solve_triangular(factor, b, first, lower), second, lower)


_SQUARINGS = 32
_PADE = {
    4: (3.925724783138660, (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)),
    8: (
        5.371920351148152,
        (
            64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
            10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
        ),
    ),
}  # fmt: skip
"""For each size of a real number in bytes: the greatest 1-norm, and the coefficients of the Pade approximant.

Higham, The scaling and squaring method for the matrix exponential revisited (2005), table 2.3.
"""


@library("mlirml.linalg", "a")
def expm(a: Any) -> Any:
    """The exponential of square matrices [..., N, N].

    By scaling and squaring with Pade approximants of degree 13, for f32 7 (Higham, The scaling and squaring method for
    the matrix exponential revisited, 2005). NaN where the 1-norm of the matrix is above 1e10.
    """
    a = _as_floats("expm", a, square=True)
    size = a.shape[-1]
    if not a.size:
        return a.copy()
    real = np.zeros((), a.dtype).real.dtype
    most, numbers = _PADE[real.itemsize]
    norm = np.max(np.sum(np.abs(a), axis=-2), axis=-1)
    wanted = np.ceil(np.log2(np.maximum(norm / most, 1)))
    squarings = np.minimum(wanted, _SQUARINGS)[..., None, None]
    scaled = a * np.exp2(-squarings).astype(real)
    identity = np.eye(size, dtype=real)
    power, even, odd = identity, numbers[0] * identity, numbers[1] * identity
    square = scaled @ scaled
    for degree in range(2, len(numbers), 2):
        power = square if degree == 2 else power @ square
        even = even + numbers[degree] * power
        odd = odd + numbers[degree + 1] * power
    odd = scaled @ odd
    result = np.linalg.solve(even - odd, even + odd)

    def squared(k: Any, result: Any) -> Any:
        def step(x: Any) -> Any:
            return np.where(squarings > k, x @ x, x)

        return control.cond(np.any(squarings > k), step, np.copy, result)

    result = control.fori_loop(0, _SQUARINGS, squared, result)
    return np.where(wanted[..., None, None] > _SQUARINGS, np.nan, result).astype(a.dtype)


_ITERATIONS = 40


@library("mlirml.linalg", "a")
def sqrtm(a: Any) -> Any:
    """The principal square root of square matrices [..., N, N] without eigenvalues on the negative real axis.

    By the product form of Denman and Beavers' iteration with scaling by determinants (Higham, Functions of Matrices,
    2008, equation 6.29). The result has the dtype of `a`. A matrix with an eigenvalue on the negative axis, the root of
    which is complex, gives NaN or a LinAlgError here, and so does a singular matrix.
    """
    a = _as_floats("sqrtm", a, square=True)
    size = a.shape[-1]
    if not a.size:
        return a.copy()
    real = np.zeros((), a.dtype).real.dtype
    identity, small = np.eye(size, dtype=real), np.finfo(real).eps * size

    def improved(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        m, x = state
        off = np.max(np.abs(m - identity), axis=(-2, -1), keepdims=True)

        def step(m: Any, x: Any) -> tuple[Any, Any]:
            inverse = np.linalg.inv(m)
            logarithm = np.linalg.slogdet(m)[1][..., None, None]
            scale = np.where(off > 1e-2, np.exp(-logarithm / (2 * size)), 1).astype(real)
            down = inverse / scale**2
            better_x = scale / 2 * (x @ (identity + down))
            better_m = (identity + (scale**2 * m + down) / 2) / 2
            done = off <= small
            return np.where(done, m, better_m), np.where(done, x, better_x)

        return control.cond(np.any(off > small), step, lambda m, x: (m.copy(), x.copy()), m, x)

    m, root = control.fori_loop(0, _ITERATIONS, improved, (a.copy(), a.copy()))
    converged = np.max(np.abs(m - identity), axis=(-2, -1), keepdims=True) < np.sqrt(small)
    return np.where(converged, root, np.nan).astype(a.dtype)


@library("mlirml.linalg", "arrays")
def block_diag(*arrays: Any) -> Any:
    """The matrices [M, N] along the diagonal of one matrix, with zeros elsewhere; vectors count as rows."""
    blocks = [np.atleast_2d(x) for x in arrays] or [np.zeros((1, 0))]
    for number, block in enumerate(blocks):
        if block.ndim != 2:
            raise ShapeError(f"block_diag: array {number} has {block.ndim} dimensions, where a matrix is needed")
    dtype = np.result_type(*(block.dtype for block in blocks))
    rows, columns = sum(block.shape[0] for block in blocks), sum(block.shape[1] for block in blocks)
    result, row, column = np.zeros((rows, columns), dtype), 0, 0
    if any(isinstance(block, Traced) for block in blocks):
        trace = current_trace()
        assert trace is not None
        result = trace.array(result)  # type: ignore[assignment]
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


@library("mlirml.linalg", "c", "r")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix [..., M, N] with the first column `c` [..., M] and the first row `r` [..., N], equal along diagonals.

    `r` is the conjugate of `c` by default; its first number is not read.
    """
    c = c if isinstance(c, Traced) else np.asarray(c)
    r = np.conj(c) if r is None else r if isinstance(r, Traced) else np.asarray(r)
    if not c.ndim or not r.ndim:
        raise ShapeError("toeplitz: needs vectors, not numbers")
    rows, columns = c.shape[-1], r.shape[-1]
    diagonals = np.concatenate((r[..., :0:-1], c), axis=-1)  # from the upper right corner to the lower left one
    positions = np.arange(rows)[:, None] - np.arange(columns) + columns - 1
    return diagonals[..., positions]
