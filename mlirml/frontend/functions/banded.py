"""Band matrices: elimination in a window of rows that moves down the matrix, in loops of the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml import errors
from mlirml.errors import ShapeError
from mlirml.frontend import control
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.functions.linear_algebra import check

Rows = tuple[Any, ...]


def solve(name: str, bands: tuple[int, int], ab: Any, b: Any) -> Any:
    """x with a @ x = b, for the diagonals `ab` [l + u + 1, N] of a band matrix with `bands` (l, u)."""
    ab, b = _floats(name, ab, b)
    lower, upper = bands
    with at_user_line():
        if min(bands) < 0 or ab.shape[0] != lower + upper + 1:
            raise ShapeError(
                f"{name}: {ab.shape[0]} diagonals, where l + u + 1 = {lower + upper + 1} are needed",
                help="row u + i - j of `ab` has the elements a[i, j]",
            )
    factor, y = _eliminated(lower, rows_of(ab, lower, upper), _columns(b), pivots=lower > 0)
    _check(np.all(factor[:, 0] != 0), "singular matrix")
    return _substituted(factor, y).reshape(b.shape)


def solve_definite(name: str, ab: Any, b: Any, lower: bool) -> Any:
    """x with a @ x = b, for the diagonals `ab` [u + 1, N] of one half of a positive definite band matrix."""
    ab, b = _floats(name, ab, b)
    count = ab.shape[0] - 1
    one = [np.pad(ab[d, : ab.shape[1] - d], (d, 0)) if lower else ab[count - d] for d in range(count, 0, -1)]
    other = [np.conj(np.pad(x[d:], (0, d))) for d, x in zip(range(count, 0, -1), one)]
    main = ab[0] if lower else ab[count]
    if lower:
        one, other = [np.conj(x) for x in one], [np.conj(x) for x in other]
    full = np.stack([*one, main, *other[::-1]])
    factor, y = _eliminated(count, rows_of(full, count, count), _columns(b), pivots=False)
    _check(np.all(factor[:, 0].real > 0), "the matrix is not positive definite")
    return _substituted(factor, y).reshape(b.shape)


def tridiagonal(dl: Any, d: Any, du: Any, b: Any) -> tuple[Any, Any, Any, Any, int]:
    """LAPACK's `gtsv`: the second superdiagonal, the diagonal and the first superdiagonal of the upper factor, x, 0."""
    ab = np.stack([np.pad(du, (1, 0)), d, np.pad(dl, (0, 1))])
    ab, b = _floats("gtsv", ab, b)
    factor, y = _eliminated(1, rows_of(ab, 1, 1), _columns(b), pivots=True)
    _check(np.all(factor[:, 0] != 0), "singular matrix")
    x = _substituted(factor, y).reshape(b.shape)
    return np.concatenate([factor[:-2, 2], ab[2, -2:-1]]), factor[:, 0], factor[:-1, 1], x, 0


def _floats(name: str, ab: Any, b: Any) -> tuple[Any, Any]:
    ab, b = (x if isinstance(x, Traced) else np.asarray(x) for x in (ab, b))
    with at_user_line():
        if ab.ndim != 2 or b.ndim not in (1, 2) or ab.shape[1] != b.shape[0]:
            raise ShapeError(
                f"{name}: diagonals of shape {list(ab.shape)} and a right side of shape {list(b.shape)} do not fit",
                help="batches are those of `ml.vmap`",
            )
    dtype = np.result_type(ab.dtype, b.dtype)
    dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
    return ab.astype(dtype), b.astype(dtype)


def _columns(b: Any) -> Any:
    return b[:, None] if b.ndim == 1 else b


def _check(passes: Any, message: str) -> None:
    trace = current_trace()
    with at_user_line():
        if trace is not None and isinstance(passes, Traced):
            check(trace, passes, message)
        elif not passes:
            raise errors.LinAlgError(message)


def rows_of(ab: Any, lower: int, upper: int) -> Any:
    """The rows of the band, [N, l + u + 1]: a[i, i - l + d] at [i, d], zeros where there is no such column."""
    size = ab.shape[1]
    rows = []
    for shift in range(-lower, upper + 1):
        diagonal = ab[upper - shift]
        if abs(shift) >= size:
            rows.append(np.zeros_like(diagonal))
        elif shift < 0:
            rows.append(np.pad(diagonal[:shift], (-shift, 0)))
        else:
            rows.append(np.pad(diagonal[shift:], (0, shift)))
    return np.stack(rows, axis=1)


def _eliminated(lower: int, rows: Any, b: Any, *, pivots: bool) -> tuple[Any, Any]:
    """The upper factor as rows from its diagonal on, [N, l + u + 1], and the right side [N, K] that goes with it.

    The window has row i and the `lower` rows below it, from column i on. Each of these is exchanged with the first one
    where its first number is greater, so that the greatest one is the pivot.
    """
    more = np.zeros((lower + 1, rows.shape[1]), rows.dtype), np.zeros((lower + 1, b.shape[1]), b.dtype)
    rows, b = np.concatenate([rows, more[0]]), np.concatenate([b, more[1]])

    def step(window: tuple[Rows, Rows], entering: tuple[Any, Any]) -> tuple[tuple[Rows, Rows], tuple[Any, Any]]:
        left, right = map(list, window)
        for i in range(1, lower + 1) if pivots else ():
            greater = np.abs(left[i][0]) > np.abs(left[0][0])
            for part in (left, right):
                part[0], part[i] = np.where(greater, part[i], part[0]), np.where(greater, part[0], part[i])
        factors = [left[i][0] / left[0][0] for i in range(1, lower + 1)]
        others = [np.pad((left[i] - x * left[0])[1:], (0, 1)) for i, x in enumerate(factors, 1)]
        sides = [right[i] - x * right[0] for i, x in enumerate(factors, 1)]
        return ((*others, entering[0]), (*sides, entering[1])), (left[0], right[0])

    first = tuple(np.pad(rows[i, lower - i :], (0, lower - i)) for i in range(lower + 1))
    entering = rows[lower + 1 :], b[lower + 1 :]
    _, found = control.scan(step, (first, tuple(b[i] for i in range(lower + 1))), entering)
    return found


def _substituted(factor: Any, y: Any) -> Any:
    """x with factor @ x = y, from the last row to the first."""

    def step(later: Rows, item: tuple[Any, Any]) -> tuple[Rows, Any]:
        row, x = item
        for d, other in enumerate(later, 1):
            x = x - row[d] * other
        x = x / row[0]
        return (x, *later)[: len(later)], x

    zero = np.zeros(y.shape[1], y.dtype)
    _, found = control.scan(step, (zero,) * (factor.shape[1] - 1), (factor[::-1], y[::-1]))
    return found[::-1]
