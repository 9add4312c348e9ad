"""Workloads written as loops over elements, as for Numba; NumPy runs what its users would write instead."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
prange = range
"""The loops that Numba is told to run in parallel: its peer puts `numba.prange` in here."""


def matmul(a: Array, b: Array, c: Array) -> None:
    """A matrix product, added to `c`."""
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def conv2d(x: Array, w: Array, out: Array) -> None:
    """A convolution without padding, added to `out`: images x channels x rows x columns."""
    for n in range(out.shape[0]):
        for f in prange(out.shape[1]):
            for i in range(out.shape[2]):
                for j in range(out.shape[3]):
                    for c in range(x.shape[1]):
                        for di in range(w.shape[2]):
                            for dj in range(w.shape[3]):
                                out[n, f, i, j] += x[n, c, i + di, j + dj] * w[f, c, di, dj]


def conv2d_arrays(x: Array, w: Array) -> Array:
    """The same with NumPy."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.ascontiguousarray(np.moveaxis(np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))), 3, 1))


def jacobi(a: Array, b: Array, steps: int) -> None:
    """Each point becomes the mean of its four neighbours, twice a step."""
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = np.float32(0.25) * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = np.float32(0.25) * (b[i - 1, j] + b[i + 1, j] + b[i, j - 1] + b[i, j + 1])


def jacobi_arrays(a: Array, b: Array, steps: Any) -> Array:
    """The same with NumPy."""
    a, b = a.copy(), b.copy()
    for _ in range(2 * int(steps)):
        b[1:-1, 1:-1] = np.float32(0.25) * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a, b = b, a
    return a


def heat(u: Array, new: Array, steps: int) -> None:
    """The heat equation in two dimensions, explicit steps that are copied back."""
    for _ in range(steps):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + np.float32(0.125) * (
                    u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - np.float32(4) * u[i, j]
                )
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = new[i, j]


def heat_arrays(u: Array, new: Array, steps: Any) -> Array:
    """The same with NumPy."""
    u = u.copy()
    for _ in range(int(steps)):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += np.float32(0.125) * (around - np.float32(4) * u[1:-1, 1:-1])
    return u


def fdtd(ex: Array, ey: Array, hz: Array, steps: int) -> None:
    """Maxwell's equations in two dimensions, by finite differences in time."""
    for t in range(steps):
        for j in range(ey.shape[1]):
            ey[0, j] = t
        for i in prange(1, ey.shape[0]):
            for j in range(ey.shape[1]):
                ey[i, j] = ey[i, j] - np.float32(0.5) * (hz[i, j] - hz[i - 1, j])
        for i in prange(ex.shape[0]):
            for j in range(1, ex.shape[1]):
                ex[i, j] = ex[i, j] - np.float32(0.5) * (hz[i, j] - hz[i, j - 1])
        for i in prange(hz.shape[0] - 1):
            for j in range(hz.shape[1] - 1):
                hz[i, j] = hz[i, j] - np.float32(0.7) * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def fdtd_arrays(ex: Array, ey: Array, hz: Array, steps: Any) -> Array:
    """The same with NumPy."""
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(int(steps)):
        ey[0] = t
        ey[1:] -= np.float32(0.5) * (hz[1:] - hz[:-1])
        ex[:, 1:] -= np.float32(0.5) * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= np.float32(0.7) * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz


def gauss_seidel(a: Array, steps: int) -> None:
    """Each point becomes the mean of its neighbours and itself, in place: no loop is parallel."""
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) * np.float32(0.2)


def gauss_seidel_arrays(a: Array, steps: Any) -> Array:
    """The same with NumPy, one diagonal at a time."""
    a = a.copy()
    rows, columns = a.shape
    for _ in range(int(steps)):
        for d in range(2, rows + columns - 3):
            i = np.arange(max(1, d - columns + 2), min(d, rows - 1))
            j = d - i
            a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) * np.float32(0.2)
    return a


def softmax(x: Array, out: Array) -> None:
    """Softmax of each row."""
    for i in prange(x.shape[0]):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - largest)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total


def layer_norm(x: Array, gain: Array, bias: Array, out: Array) -> None:
    """Each row with mean 0 and variance 1, scaled and moved."""
    count = np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / count
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = np.float32(1) / np.sqrt(squares / count + np.float32(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * factor * gain[j] + bias[j]


def attention(q: Array, k: Array, v: Array, p: Array, out: Array) -> None:
    """Attention of each head: heads x positions x features; `p` holds the weights."""
    scale = np.float32(1) / np.sqrt(np.float32(q.shape[2]))
    for h in prange(q.shape[0]):
        for i in range(q.shape[1]):
            for j in range(k.shape[1]):
                score = np.float32(0)
                for d in range(q.shape[2]):
                    score += q[h, i, d] * k[h, j, d]
                p[h, i, j] = score * scale
            largest = p[h, i, 0]
            for j in range(k.shape[1]):
                largest = max(largest, p[h, i, j])
            total = np.float32(0)
            for j in range(k.shape[1]):
                p[h, i, j] = np.exp(p[h, i, j] - largest)
                total += p[h, i, j]
            for j in range(k.shape[1]):
                p[h, i, j] /= total
            for d in range(v.shape[2]):
                mean = np.float32(0)
                for j in range(k.shape[1]):
                    mean += p[h, i, j] * v[h, j, d]
                out[h, i, d] = mean


def attention_arrays(q: Array, k: Array, v: Array) -> Array:
    """The same with NumPy."""
    scores = q @ np.swapaxes(k, 1, 2) / q.dtype.type(q.shape[2] ** 0.5)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True) @ v


def floyd_warshall(paths: Array) -> None:
    """The lengths of the shortest paths between all pairs, in place."""
    for k in range(paths.shape[0]):
        for i in range(paths.shape[0]):
            for j in range(paths.shape[0]):
                paths[i, j] = min(paths[i, j], paths[i, k] + paths[k, j])


def floyd_warshall_arrays(paths: Array) -> Array:
    """The same with NumPy."""
    paths = paths.copy()
    for k in range(len(paths)):
        paths = np.minimum(paths, paths[:, k : k + 1] + paths[k])
    return paths


def recurrence(x: Array, y: Array) -> None:
    """A filter whose output goes back in."""
    for i in range(1, x.shape[0]):
        y[i] = x[i] + np.float32(0.9) * y[i - 1]


def recurrence_arrays(x: Array) -> Array:
    """The same, element by element."""
    y, last = np.zeros_like(x), x.dtype.type(0)
    for i in range(1, len(x)):
        last = y[i] = x[i] + x.dtype.type(0.9) * last
    return y


def histogram(x: Array, counts: Array) -> None:
    """How many numbers from 0 to 1 fall into each of some boxes."""
    for i in range(x.shape[0]):
        counts[int(x[i] * counts.shape[0])] += np.float32(1)


def histogram_arrays(x: Array) -> Array:
    """The same with NumPy: 256 boxes."""
    return np.bincount((x * 256).astype(np.int64), minlength=256).astype(x.dtype)
