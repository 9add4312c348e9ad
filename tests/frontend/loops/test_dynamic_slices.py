"""Slices whose length is known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

RNG = np.random.default_rng(0)
N = 6
V = RNG.random(N)
A = RNG.random((N, N))
POSITIVE = A @ A.T + N * np.eye(N)
ZEROS = np.zeros(N)


def lu(a):
    for k in range(a.shape[0]):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def lu_by_rows(a):
    for i in range(len(a)):
        for j in range(i):
            a[i, j] /= a[j, j]
            a[i, j + 1 :] -= a[i, j] * a[j, j + 1 :]


def lu_with_pivots(a):
    for k in range(a.shape[0]):
        p = k + np.argmax(np.abs(a[k:, k]))
        row = a[k, k:].copy()
        a[k, k:] = a[p, k:]
        a[p, k:] = row
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k][:, None] * a[k, k + 1 :]


def cholesky(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.sum(a[i, :i] ** 2))


def cholesky_by_columns(a):
    for j in range(len(a)):
        a[j:, j] -= a[j:, :j] @ a[j, :j]
        a[j:, j] /= np.sqrt(a[j, j])


def solve(a, x, b):
    n = len(x)
    for i in range(n):
        x[i] = (b[i] - np.dot(a[i, :i], x[:i])) / a[i, i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]


def durbin(r, y):
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha


def orthogonal(a, q, r):
    for k in range(a.shape[1]):
        r[k, k] = np.linalg.norm(a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
        a[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])


def insertion(x):
    for i in range(1, len(x)):
        v = x[i]
        j = np.sum(x[:i] <= v)
        x[j + 1 : i + 1] = x[j:i]
        x[j] = v


def overlapping(x):
    for i in range(len(x) - 1):
        x[:i] = x[1 : i + 1]
        x[1 : i + 2] = x[: i + 1]
        x[:i] = x[:i][::-1]


def reductions(x, y):
    for i in range(len(x)):
        y[i] = np.sum(x[:i]) + x[: i + 1].max() + np.mean(x[: i + 1]) + np.prod(x[i:]) + np.min(x[i:])
        y[i] += np.argmax(x[: i + 1]) - np.argmin(x[i:]) + np.any(x[:i] > 0.5) + np.all(x[:i] < 0.9)
        y[i] += len(x[i:]) + x[i:].shape[0] + x[:i].size + sum(x[:i]) + max(x[: i + 1])


def bounds_of_any_sign(x, y, k):
    for i in range(len(x)):
        y[i] += np.sum(x[i - 3 :]) + np.sum(x[:-i]) + np.sum(x[i - 2 : i + 2])
        y[i] += np.sum(x[i::-1]) + np.sum(x[:i:-1]) + np.sum(x[i - 1 :: -2]) + np.sum(x[:i:2])
        y[i] += np.sum(x[k[i] : k[i] + i]) + np.sum(x[: k[i]])


def names(x, y):
    for i in range(1, len(x)):
        new, view = x[:i] * 2, x[:i]
        x[0] += 1
        y[i] = new[0] + view[-1] + np.sum(new) + np.sum(view)
        other = np.sqrt(view) + 1
        other[0] = 3
        other *= 2
        y[:i] += other


def elementwise(x, y):
    for i in range(len(x)):
        y[:i] = np.where(x[:i] > 0.5, x[:i], -x[:i])
        y[i:] = np.clip(x[i:], 0.2, 0.6) + np.maximum(x[i:], 0.1)
        y[:i] += np.cumsum(x[:i]) + np.ones_like(x[:i])
        np.add(y[:i], 1, out=y[:i])


def doubled(v):
    return v * 2 + np.sum(v)


def items_and_helpers(x, y):
    for i in range(len(x)):
        for v in x[:i]:
            y[i] += v
        for j, v in enumerate(x[i:]):
            y[j] -= v
        y[:i] += doubled(x[:i])


def matrices(a, b):
    for k in range(1, len(a)):
        b[:k, :k] += a[:k, :k].T @ a[:k, :k]
        b[k:] += np.sum(a[:k], axis=0)
        b[:, k:] *= np.max(a[k:, k:], axis=0)
        b[:k, k:] -= a[:k, k, None] * a[k, k:] + 1


def integers(x, y):
    for i in range(len(x)):
        y[i] = np.sum(x[:i] * 2) + np.mean(x[: i + 1])
        x[:i] += 1
        x[i:] //= 2
        x[:i][x[0] :] = 5


def inwards(x, y):
    low, high = 0, len(x)
    while low < high:
        y[low:high] += x[low:high]
        low += 1
        high -= 1


def reversed_where_they_are_empty(x):
    for i in range(len(x)):
        for k in range(len(x)):
            x[i:k] = x[i:k][::-1] + x[i : k + i // 9]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lu, [POSITIVE]),
        (lu_by_rows, [POSITIVE]),
        (lu_with_pivots, [A]),
        (cholesky, [POSITIVE]),
        (cholesky_by_columns, [POSITIVE]),
        (solve, [POSITIVE, ZEROS, V]),
        (durbin, [V, ZEROS]),
        (orthogonal, [A, np.zeros((N, N)), np.zeros((N, N))]),
        (insertion, [V]),
        (overlapping, [V]),
        (reductions, [V, ZEROS]),
        (bounds_of_any_sign, [V, ZEROS, RNG.integers(-3, 3, N)]),
        (names, [V, ZEROS]),
        (elementwise, [V, ZEROS]),
        (items_and_helpers, [V, ZEROS]),
        (matrices, [A, np.ones((N, N))]),
        (integers, [RNG.integers(1, 5, N), ZEROS]),
        (inwards, [V, ZEROS]),
        (reversed_where_they_are_empty, [V]),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_slices_of_changing_length(function: Any, arguments: list[Any]) -> None:
    check(function, *arguments, exact=False)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "complex128"])
def test_they_are_sorted(dtype: str) -> None:
    def sorts(x, y):
        for i in range(1, len(x)):
            x[:i] = np.sort(x[:i])[::-1]
            y[i:].sort()
            y[0] = np.sort(x[: i + 1])[i]

    x = RNG.integers(0, 3, N).astype(dtype)
    y = np.array([3, np.nan, np.inf, -np.inf, 2, np.nan]) if dtype == "float32" else x[::-1].copy()
    check(sorts, x, y.astype(dtype))


def statistics(x, width, out):
    n = len(x)
    for i in range(n):
        first = max(0, i - width)
        out[i, 0] = np.median(x[first : i + 1])
        out[i, 1] = np.median(x[:i])  # of nothing, to begin with
        out[i, 2] = np.std(x[first : i + 1])
        out[i, 3] = x[: i + 2].var(ddof=1)
        out[i, 4] = np.ptp(x[first : i + 1])
        out[i, 5] = np.count_nonzero(x[:i] > x[i])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_statistics(dtype: str) -> None:
    x = (20 * RNG.random(300)).astype(dtype)  # too many rounds to unroll
    if dtype != "int64":
        x[[50, 120, 200]] = [np.inf, -np.inf, np.nan]
    found, expected = np.zeros((300, 6)), np.zeros((300, 6))
    ml.compile(statistics)(x, 5, found)
    statistics(x, 5, expected)
    exact = [0, 1, 4, 5]
    np.testing.assert_array_equal(found[:, exact], expected[:, exact])
    np.testing.assert_allclose(found, expected, rtol=2e-4 if dtype == "float32" else 1e-10)


def along_axes(a, out):
    for i in range(len(a)):
        k = i % 4 + 2
        out[i] = np.std(a[:k, :k], axis=0).sum() + np.var(a[:k, :k], axis=1, keepdims=True).max()


def test_statistics_along_axes() -> None:
    check(along_axes, RNG.random((9, 6)), np.zeros(9))


def test_they_become_loops() -> None:
    text = ml.compile(lu_by_rows).trace(np.eye(1000)).as_text()
    assert text.count("scf.for") == 3


def test_aliased_arguments() -> None:
    def shift(x, y):
        for i in range(len(x) - 1):
            y[:i] = x[1 : i + 1] + y[:i]

    memory, expected = np.arange(12.0), np.arange(12.0)
    ml.compile(shift)(memory[2:10], memory[1:9])
    shift(expected[2:10], expected[1:9])
    np.testing.assert_array_equal(memory, expected)


def test_gradients_and_batches() -> None:
    @ml.loops
    def log_determinant(a):
        low = a.copy()
        for i in range(low.shape[0]):
            for j in range(i):
                low[i, j] = (low[i, j] - np.dot(low[i, :j], low[j, :j])) / low[j, j]
            low[i, i] = np.sqrt(low[i, i] - np.sum(low[i, :i] ** 2))
        total = 0.0
        for i in range(low.shape[0]):
            total += 2 * np.log(low[i, i])
        return total

    a = POSITIVE[:4, :4]
    lower = np.tril(np.linalg.inv(a))
    gradient = ml.compile(ml.grad(log_determinant))(a)  # which reads what is below the diagonal only
    np.testing.assert_allclose(gradient, 2 * lower - np.diag(np.diag(lower)), rtol=1e-9)
    several = np.stack([a, 2 * a])
    found = ml.compile(ml.vmap(log_determinant))(several)
    np.testing.assert_allclose(found, np.linalg.slogdet(several)[1], rtol=1e-9)


def determinant(matrix: Any) -> Any:
    """The determinant by minors of the first row."""
    if len(matrix) == 1:
        return matrix[0, 0]
    total = 0.0
    for column in range(len(matrix)):
        minor = np.concatenate([matrix[1:, :column], matrix[1:, column + 1 :]], axis=1)
        total = total + (-1) ** column * matrix[0, column] * determinant(minor)
    return total


def without_one(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        rest = np.concatenate([x[i + 1 :], x[:i]])
        total += np.sum(rest[1:] * rest[:-1]) * np.stack([x[:i], x[:i]]).sum()
    return total


def votes_of_nearest(distances: Any, labels: Any, k: int) -> Any:
    votes = labels[np.argsort(distances, axis=1)[:, :k]]
    return np.stack([(votes == c).sum(axis=1) for c in range(3)], axis=1).argmax(axis=1)


def test_static_results_of_dynamic_slices_are_joined() -> None:
    labels = RNG.integers(0, 3, N)
    for k in (1, 4):
        np.testing.assert_array_equal(ml.compile(votes_of_nearest)(A, labels, k), votes_of_nearest(A, labels, k))


def test_loops_of_few_iterations_that_join_slices_are_unrolled() -> None:
    check(determinant, A[:4, :4], exact=False)
    check(without_one, V, exact=False)
    gradient = ml.compile(ml.grad(determinant))
    found = gradient(A[:4, :4])
    np.testing.assert_allclose(found, np.linalg.det(A[:4, :4]) * np.linalg.inv(A[:4, :4]).T, rtol=1e-9)
    assert "unrolled" in str(gradient.explain())


def test_loops_of_many_iterations_that_join_slices_are_loops() -> None:
    x = RNG.random(80)
    check(without_one, x, exact=False)
    gradient = ml.compile(ml.grad(without_one))
    found, step = gradient(x), np.eye(80)[7] * 1e-6
    np.testing.assert_allclose(found[7], (without_one(x + step) - without_one(x - step)) / 2e-6, rtol=1e-6)
    assert "unrolled" not in str(gradient.explain())


def upstream(x: Any, out: Any) -> Any:
    total = np.zeros_like(x)
    for shift in range(2):
        first = 0 if shift == 1 else 1
        for side in range(2):
            part = x[:, first:] * (side + 1) - x[:, : -1 + shift or None]
            total[:, first:] += part
            out[:, first:, side, shift] = part
    return total


def test_loops_of_few_iterations_whose_slices_have_several_lengths_are_unrolled() -> None:
    one, other = np.zeros((N, N, 2, 2)), np.zeros((N, N, 2, 2))
    compiled = ml.compile(upstream)
    np.testing.assert_array_equal(compiled(A, one), upstream(A, other))
    np.testing.assert_array_equal(one, other)
    assert "unrolled" in str(compiled.explain())


def between(x: Any, counts: Any) -> Any:
    y = np.zeros_like(x)
    for n in counts:
        y[n or None : -n or None] += 1
        y[: -n or None] += x[n:]
        y[0] += x[n or None :: -1].sum() + 2 * x[: n or None : -1].sum()
    return y


def until_the_last(x: Any, bound: float) -> Any:
    last = None
    for i in range(len(x)):
        if x[i] > bound:
            last = i
    return x[:last].sum() + 2 * x[last:].sum()


def test_bounds_that_are_none_depending_on_data() -> None:
    counts = np.array([0, 2, 5, 0, 1, 3, 0, 4, 2])
    check(between, V, counts, exact=False)
    for bound in (0.5, 2.0, -2.0):
        check(until_the_last, V, bound, exact=False)
    for n in (0, 2, 50):
        check(lambda x, n: x[: -n or None].sum(), V, n, exact=False)
