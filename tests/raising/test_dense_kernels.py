"""Classical dense kernels as plain Python loops: all of each becomes named products and elementwise operations."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

# The kernels are those of PolyBench/C 4.2.1 (Pouchet and Yuki), with arguments of any shape.
# mypy: disable-error-code="no-untyped-def"


def gemm(alpha, beta, C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]


def k2mm(alpha, beta, tmp, A, B, C, D):
    for i in range(tmp.shape[0]):
        for j in range(tmp.shape[1]):
            tmp[i, j] = 0.0
            for k in range(A.shape[1]):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(D.shape[0]):
        for j in range(D.shape[1]):
            D[i, j] *= beta
            for k in range(tmp.shape[1]):
                D[i, j] += tmp[i, k] * C[k, j]


def k3mm(E, A, B, F, C, D, G):
    for i in range(E.shape[0]):
        for j in range(E.shape[1]):
            E[i, j] = 0.0
            for k in range(A.shape[1]):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(F.shape[0]):
        for j in range(F.shape[1]):
            F[i, j] = 0.0
            for k in range(C.shape[1]):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(G.shape[0]):
        for j in range(G.shape[1]):
            G[i, j] = 0.0
            for k in range(E.shape[1]):
                G[i, j] += E[i, k] * F[k, j]


def atax(A, x, y, tmp):
    for i in range(A.shape[1]):
        y[i] = 0.0
    for i in range(A.shape[0]):
        tmp[i] = 0.0
        for j in range(A.shape[1]):
            tmp[i] = tmp[i] + A[i, j] * x[j]
        for j in range(A.shape[1]):
            y[j] = y[j] + A[i, j] * tmp[i]


def bicg(A, s, q, p, r):
    for i in range(s.shape[0]):
        s[i] = 0.0
    for i in range(q.shape[0]):
        q[i] = 0.0
        for j in range(s.shape[0]):
            s[j] = s[j] + r[i] * A[i, j]
            q[i] = q[i] + A[i, j] * p[j]


def mvt(x1, x2, y1, y2, A):
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            x2[i] = x2[i] + A[j, i] * y2[j]


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[i] = x[i] + beta * A[j, i] * y[j]
    for i in range(n):
        x[i] = x[i] + z[i]
    for i in range(n):
        for j in range(n):
            w[i] = w[i] + alpha * A[i, j] * x[j]


def gesummv(alpha, beta, A, B, tmp, x, y):
    n = A.shape[0]
    for i in range(n):
        tmp[i] = 0.0
        y[i] = 0.0
        for j in range(n):
            tmp[i] = A[i, j] * x[j] + tmp[i]
            y[i] = B[i, j] * x[j] + y[i]
        y[i] = alpha * tmp[i] + beta * y[i]


def doitgen(A, C4, sum_):
    nr, nq, np_ = A.shape
    for r in range(nr):
        for q in range(nq):
            for p in range(np_):
                sum_[p] = 0.0
                for s in range(np_):
                    sum_[p] += A[r, q, s] * C4[s, p]
            for p in range(np_):
                A[r, q, p] = sum_[p]


def syrk(alpha, beta, C, A):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


def syr2k(alpha, beta, C, A, B):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            for k in range(i + 1, B.shape[0]):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


def symm(alpha, beta, C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            temp2 = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                temp2 += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * temp2


def covariance(data, cov, mean):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]


def correlation(data, corr, mean, stddev):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        stddev[j] = 0.0
        for i in range(n):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] /= n
        stddev[j] = np.sqrt(stddev[j])
        stddev[j] = 1.0 if stddev[j] <= 0.1 else stddev[j]
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
            data[i, j] /= np.sqrt(n) * stddev[j]
    for i in range(m - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            corr[i, j] = 0.0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1.0


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


A, B, C, D = 9, 10, 11, 12
KERNELS: dict[str, tuple[Callable[..., None], list[Any], list[str]]] = {
    "gemm": (gemm, [1.5, 1.2, random(A, B), random(A, C), random(C, B)], ["matmul"]),
    "2mm": (
        k2mm,
        [1.5, 1.2, random(A, B), random(A, C), random(C, B), random(B, D), random(A, D)],
        ["matmul", "matmul"],
    ),
    "3mm": (
        k3mm,
        [random(A, B), random(A, C), random(C, B), random(B, D), random(B, A), random(A, D), random(A, D)],
        ["matmul"] * 3,
    ),
    "atax": (atax, [random(A, B), random(B), random(B), random(A)], ["matvec", "vecmat"]),
    "bicg": (bicg, [random(A, B), random(B), random(A), random(B), random(A)], ["vecmat", "matvec"]),
    "mvt": (mvt, [random(A), random(A), random(A), random(A), random(A, A)], ["matvec", "vecmat"]),
    "gemver": (gemver, [1.5, 1.2, random(A, A), *(random(A) for _ in range(8))], ["vecmat", "matvec"]),
    "gesummv": (
        gesummv,
        [1.5, 1.2, random(A, A), random(A, A), random(A), random(A), random(A)],
        ["matvec", "matvec"],
    ),
    "doitgen": (doitgen, [random(5, 6, A), random(A, A), random(A)], ["contract"]),
    "syrk": (syrk, [1.5, 1.2, random(A, A), random(A, B)], ["contract"]),
    "syr2k": (syr2k, [1.5, 1.2, random(A, A), random(A, B), random(A, B)], ["contract", "contract"]),
    "trmm": (trmm, [1.5, random(A, A), random(A, B)], ["contract"]),
    "symm": (symm, [1.5, 1.2, random(A, B), random(A, A), random(A, B)], ["matmul", "contract"]),
    "covariance": (covariance, [random(A, B), random(B, B), random(B)], ["contract"]),
    "correlation": (correlation, [random(A, B), random(B, B), random(B), random(B)], ["contract"]),
}
_NAMED = re.compile(r"linalg\.(contract|matmul|matvec|vecmat|dot|batch_matmul)\b")


@pytest.mark.parametrize("name", KERNELS)
def test_no_loop_is_left_and_products_have_names(name: str) -> None:
    kernel, arguments, products = KERNELS[name]
    expected, given = copy.deepcopy(arguments), copy.deepcopy(arguments)
    kernel(*expected)
    compiled = ml.compile(kernel, frontend="loops")
    compiled(*given)
    for first, second in zip(expected, given, strict=True):
        np.testing.assert_allclose(second, first, rtol=1e-12, atol=1e-12)
    text = compiled.ir("raise", *arguments)
    assert "scf." not in text
    assert _NAMED.findall(text) == products
