"""Dense linear algebra: products that store into their arguments, factorisations by slices, iterations."""

from __future__ import annotations

import numpy as np

from tests.fuzz.real_programs.program import Array, Draw, program


def spd(d: Draw, n: int) -> Array:
    """A symmetric matrix with eigenvalues above 1."""
    a = d.random.standard_normal((n, n))
    return (a @ a.T / n + np.eye(n)).astype(d.dtype)


@program(lambda d: (1.5, d.scalar(1.2), d.normal(18, 20), d.normal(18, 24), d.normal(24, 20)))
def gemm(alpha: float, beta: float, c: Array, a: Array, b: Array) -> None:
    c[:] = alpha * a @ b + beta * c


@program(lambda d: (1.5, 1.2, d.normal(16, 18), d.normal(18, 22), d.normal(22, 12), d.normal(16, 12)), ulps=200)
def two_products(alpha: float, beta: float, a: Array, b: Array, c: Array, d: Array) -> None:
    d[:] = alpha * a @ b @ c + beta * d


@program(lambda d: (d.normal(16, 18), d.normal(18, 20), d.normal(20, 22), d.normal(22, 24)), ulps=200)
def three_products(a: Array, b: Array, c: Array, d: Array) -> Array:
    return a @ b @ c @ d


@program(lambda d: (d.normal(18, 22), d.normal(22)))
def atax(a: Array, x: Array) -> Array:
    return (a @ x) @ a


@program(lambda d: (d.normal(22, 18), d.normal(18), d.normal(22)))
def bicg(a: Array, p: Array, r: Array) -> tuple[Array, Array]:
    return r @ a, a @ p


@program(lambda d: (d.normal(20), d.normal(20), d.normal(20), d.normal(20), d.normal(20, 20)))
def mvt(x1: Array, x2: Array, y1: Array, y2: Array, a: Array) -> None:
    x1 += a @ y1
    x2 += y2 @ a


@program(lambda d: (1.5, 1.2, d.normal(25, 25), d.normal(25, 25), d.normal(25)))
def gesummv(alpha: float, beta: float, a: Array, b: Array, x: Array) -> Array:
    return alpha * a @ x + beta * b @ x


@program(lambda d: (1.5, 1.2, d.normal(16, 16), d.normal(8, 16)), ulps=200)
def gemver(alpha: float, beta: float, a: Array, vectors: Array) -> None:
    u1, v1, u2, v2, w, x, y, z = vectors
    a += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ a + z
    w += alpha * a @ x


@program(lambda d: (1.5, 1.2, d.normal(6, 6), d.normal(6, 5)))
def syrk(alpha: float, beta: float, c: Array, a: Array) -> None:
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]


@program(lambda d: (1.5, d.normal(6, 6), d.normal(6, 5)))
def trmm(alpha: float, a: Array, b: Array) -> None:
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= alpha


@program(lambda d: (d.normal(4, 5, 6), d.normal(6, 6)))
def doitgen(a: Array, c4: Array) -> None:
    nr, nq, np_ = a.shape
    a[:] = np.reshape(np.reshape(a, (nr, nq, 1, np_)) @ c4, (nr, nq, np_))


@program(lambda d: (d.normal(20, 8),))
def covariance(data: Array) -> Array:
    n, m = data.shape
    data -= np.mean(data, axis=0)
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:m, i] = data[:, i] @ data[:, i:m] / (n - 1.0)
        cov[i, i:m] = cov[i:m, i]
    return cov


@program(lambda d: (d.normal(20, 8),))
def correlation(data: Array) -> Array:
    n, m = data.shape
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= np.mean(data, axis=0)
    data /= np.sqrt(n) * stddev
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 : m, i] = corr[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return corr


@program(lambda d: (spd(d, 6),))
def cholesky(a: Array) -> None:
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@program(lambda d: (spd(d, 6),))
def lu(a: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


@program(lambda d: (np.tril(spd(d, 9)), d.normal(9)), ulps=500)
def forward_substitution(lower: Array, b: Array) -> Array:
    x = np.empty_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


@program(lambda d: (d.uniform(-0.3, 0.3, 7),), ulps=500)
def durbin(r: Array) -> Array:
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@program(lambda d: (d.normal(10, 5),), ulps=500)
def gram_schmidt(a: Array) -> tuple[Array, Array]:
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        nrm = np.dot(a[:, k], a[:, k])
        r[k, k] = np.sqrt(nrm)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@program(lambda d: (d.normal(8, 5),), ulps=500)
def householder(a: Array) -> tuple[Array, Array]:
    m, n = a.shape
    q, r = np.eye(m, dtype=a.dtype), a.copy()
    for k in range(n):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.sqrt(np.sum(v**2)), v[0])
        v /= np.sqrt(v @ v)
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ v, v)
    return q, np.where(np.triu(np.ones((n, n), dtype=bool)), r[:n], 0)


@program(lambda d: (spd(d, 16), np.ones(16, d.dtype)), ulps=500)
def power_iteration(a: Array, v: Array) -> tuple[Array, Array]:
    for _ in range(6):
        v = a @ v
        v = v / np.sqrt((v * v).sum())
    return v @ a @ v, v


@program(lambda d: (d.integers(0, 2, 14, 14), 0.85))
def pagerank(links: Array, damping: float) -> Array:
    n = links.shape[0]
    degree = links.sum(axis=0)
    step = np.where(degree > 0, links / np.maximum(degree, 1), 1.0 / n).astype(links.dtype)
    rank = np.full(n, 1.0 / n, dtype=links.dtype)
    for _ in range(5):
        rank = damping * (step @ rank) + (1.0 - damping) / n
    return rank / rank.sum()


@program(lambda d: (spd(d, 12), d.normal(12)), ulps=5000)
def conjugate_gradient(a: Array, b: Array) -> tuple[Array, Array]:
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rr = r @ r
    for _ in range(4):
        ap = a @ p
        alpha = rr / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
    return x, np.sqrt(rr)
