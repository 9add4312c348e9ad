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
    factor, y = _eliminated(lower, rows_of(ab, lower, upper), b, pivots=lower > 0)
    _check(np.all(factor[0] != 0), "singular matrix")
    return _substituted(factor, y)


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
    factor, y = _eliminated(count, rows_of(full, count, count), b, pivots=False)
    _check(np.all(factor[0].real > 0), "the matrix is not positive definite")
    return _substituted(factor, y)


def tridiagonal(dl: Any, d: Any, du: Any, b: Any) -> tuple[Any, Any, Any, Any, int]:
    """LAPACK's `gtsv`: the second superdiagonal, the diagonal and the first superdiagonal of the upper factor, x, 0."""
    ab = np.stack([np.pad(du, (1, 0)), d, np.pad(dl, (0, 1))])
    ab, b = _floats("gtsv", ab, b)
    factor, y = _eliminated(1, rows_of(ab, 1, 1), b, pivots=True)
    _check(np.all(factor[0] != 0), "singular matrix")
    x = _substituted(factor, y)
    return np.concatenate([factor[2][:-2], ab[2, -2:-1]]), factor[0], factor[1][:-1], x, 0


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


def _check(passes: Any, message: str) -> None:
    trace = current_trace()
    with at_user_line():
        if trace is not None and isinstance(passes, Traced):
            check(trace, passes, message)
        elif not passes:
            raise errors.LinAlgError(message)


def rows_of(ab: Any, lower: int, upper: int) -> Rows:
    """The rows of the band by their distance from the diagonal: a[i, i - l + d] at `[d][i]`, and zeros outside."""
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
    return tuple(rows)


def _eliminated(lower: int, rows: Rows, b: Any, *, pivots: bool) -> tuple[Rows, Any]:
    """The upper factor, `[d][i]` from its diagonal on, and the right side that goes with it.

    The window has row i and the `lower` rows below it, from column i on. Each of these is exchanged with the first one
    where its first number is greater, so that the greatest one is the pivot.
    """
    rows = tuple(np.pad(x, (0, lower + 1)) for x in rows)
    b = np.pad(b, ((0, lower + 1), *[(0, 0)] * (b.ndim - 1)))

    def step(window: tuple[Rows, ...], entering: Rows) -> tuple[tuple[Rows, ...], Rows]:
        first, *others = window
        for number, other in enumerate(others) if pivots else ():
            greater = np.abs(other[0]) > np.abs(first[0])
            others[number] = tuple(np.where(greater, x, y) for x, y in zip(first, other))
            first = tuple(np.where(greater, y, x) for x, y in zip(first, other))
        for number, other in enumerate(others):
            factor = other[0] / first[0]
            *left, right = (y - factor * x for x, y in zip(first[1:], other[1:]))
            others[number] = *left, np.zeros_like(factor), right
        return (*others, entering), first

    zero = np.zeros((), b.dtype)
    window = [(*(x[i] for x in rows[lower - i :]), *[zero] * (lower - i), b[i]) for i in range(lower + 1)]
    _, (*factor, y) = control.scan(step, tuple(window), tuple(x[lower + 1 :] for x in (*rows, b)))
    return tuple(factor), y


def _substituted(factor: Rows, y: Any) -> Any:
    """x with factor @ x = y, from the last row to the first."""

    def step(later: Rows, item: Rows) -> tuple[Rows, Any]:
        diagonal, *row, x = item
        for number, other in zip(row, later, strict=True):
            x = x - number * other
        x = x / diagonal
        return (x, *later)[: len(later)], x

    zero = np.zeros(y.shape[1:], y.dtype)
    _, found = control.scan(step, (zero,) * (len(factor) - 1), tuple(x[::-1] for x in (*factor, y)))
    return found[::-1]
