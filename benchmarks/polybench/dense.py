"""Kernels that are products of matrices and vectors: gemm in all its forms, chains of products, and statistics."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.polybench.kernels import array, kernel


@kernel(lambda n: (1.5, 1.2, array(1, n, n + 1), array(2, n, n + 2), array(3, n + 2, n + 1)), 256, dense=True)
def gemm(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]


def _orders(n):
    return array(1, n, n + 1), array(2, n, n + 2), array(3, n + 2, n + 1)


@kernel(_orders, 256, dense=True)
def gemm_ijk(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@kernel(_orders, 256, dense=True)
def gemm_ikj(C, A, B):
    for i in range(C.shape[0]):
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@kernel(_orders, 256, dense=True)
def gemm_jik(C, A, B):
    for j in range(C.shape[1]):
        for i in range(C.shape[0]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@kernel(_orders, 256, dense=True)
def gemm_jki(C, A, B):
    for j in range(C.shape[1]):
        for k in range(A.shape[1]):
            for i in range(C.shape[0]):
                C[i, j] += A[i, k] * B[k, j]


@kernel(_orders, 256, dense=True)
def gemm_kij(C, A, B):
    for k in range(A.shape[1]):
        for i in range(C.shape[0]):
            for j in range(C.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@kernel(_orders, 256, dense=True)
def gemm_kji(C, A, B):
    for k in range(A.shape[1]):
        for j in range(C.shape[1]):
            for i in range(C.shape[0]):
                C[i, j] += A[i, k] * B[k, j]


@kernel(_orders, 256, dense=True)
def gemm_nn(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = s


@kernel(lambda n: (array(1, n, n + 1), array(2, n, n + 2), array(3, n + 1, n + 2)), 256, dense=True)
def gemm_nt(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[j, k]
            C[i, j] = s


@kernel(lambda n: (array(1, n, n + 1), array(2, n + 2, n), array(3, n + 2, n + 1)), 256, dense=True)
def gemm_tn(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            s = 0.0
            for k in range(A.shape[0]):
                s += A[k, i] * B[k, j]
            C[i, j] = s


@kernel(lambda n: (array(1, n, n + 1), array(2, n + 2, n), array(3, n + 1, n + 2)), 256, dense=True)
def gemm_tt(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            s = 0.0
            for k in range(A.shape[0]):
                s += A[k, i] * B[j, k]
            C[i, j] = s


@kernel(
    lambda n: (1.5, 1.2, np.zeros((n, n + 1)), array(1, n, n + 2), array(2, n + 2, n + 1), array(3, n + 1, n + 3),
               array(4, n, n + 3)),
    192, dense=True,
)  # fmt: skip
def _2mm(alpha, beta, tmp, A, B, C, D):
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


@kernel(
    lambda n: (np.zeros((n, n + 1)), array(1, n, n + 2), array(2, n + 2, n + 1), np.zeros((n + 1, n + 3)),
               array(3, n + 1, n + 4), array(4, n + 4, n + 3), np.zeros((n, n + 3))),
    192, dense=True,
)  # fmt: skip
def _3mm(E, A, B, F, C, D, G):
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


@kernel(lambda n: (array(1, n, n + 2), array(2, n + 2), np.zeros(n + 2), np.zeros(n)), 1024, dense=True)
def atax(A, x, y, tmp):
    for i in range(y.shape[0]):
        y[i] = 0.0
    for i in range(A.shape[0]):
        tmp[i] = 0.0
        for j in range(A.shape[1]):
            tmp[i] = tmp[i] + A[i, j] * x[j]
        for j in range(A.shape[1]):
            y[j] = y[j] + A[i, j] * tmp[i]


@kernel(lambda n: (array(1, n, n + 2), np.zeros(n + 2), np.zeros(n), array(2, n + 2), array(3, n)), 1024, dense=True)
def bicg(A, s, q, p, r):
    for i in range(s.shape[0]):
        s[i] = 0.0
    for i in range(A.shape[0]):
        q[i] = 0.0
        for j in range(A.shape[1]):
            s[j] = s[j] + r[i] * A[i, j]
            q[i] = q[i] + A[i, j] * p[j]


@kernel(lambda n: (array(1, n), array(2, n), array(3, n), array(4, n), array(5, n, n)), 1024, dense=True)
def mvt(x1, x2, y1, y2, A):
    for i in range(x1.shape[0]):
        for j in range(x1.shape[0]):
            x1[i] = x1[i] + A[i, j] * y1[j]
    for i in range(x2.shape[0]):
        for j in range(x2.shape[0]):
            x2[i] = x2[i] + A[j, i] * y2[j]


@kernel(
    lambda n: (1.5, 1.2, array(1, n, n), *(array(i, n) for i in range(2, 6)), np.zeros(n), np.zeros(n), array(6, n),
               array(7, n)),
    1024, dense=True,
)  # fmt: skip
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


@kernel(lambda n: (1.5, 1.2, array(1, n, n), array(2, n, n), np.zeros(n), array(3, n), np.zeros(n)), 1024, dense=True)
def gesummv(alpha, beta, A, B, tmp, x, y):
    n = A.shape[0]
    for i in range(n):
        tmp[i] = 0.0
        y[i] = 0.0
        for j in range(n):
            tmp[i] = A[i, j] * x[j] + tmp[i]
            y[i] = B[i, j] * x[j] + y[i]
        y[i] = alpha * tmp[i] + beta * y[i]


@kernel(lambda n: (array(1, n, n - 1, n + 1), array(2, n + 1, n + 1), np.zeros(n + 1)), 64, dense=True)
def doitgen(A, C4, total):
    nr, nq, np_ = A.shape
    for r in range(nr):
        for q in range(nq):
            for p in range(np_):
                total[p] = 0.0
                for s in range(np_):
                    total[p] += A[r, q, s] * C4[s, p]
            for p in range(np_):
                A[r, q, p] = total[p]


@kernel(lambda n: (1.5, 1.2, array(1, n, n), array(2, n, n + 2)), 256, dense=True)
def syrk(alpha, beta, C, A):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


@kernel(lambda n: (1.5, 1.2, array(1, n, n), array(2, n, n + 2), array(3, n, n + 2)), 256, dense=True)
def syr2k(alpha, beta, C, A, B):
    for i in range(C.shape[0]):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


@kernel(lambda n: (1.5, array(1, n, n), array(2, n, n + 2)), 256, dense=True)
def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            for k in range(i + 1, B.shape[0]):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


@kernel(lambda n: (1.5, 1.2, array(1, n, n + 2), array(2, n, n), array(3, n, n + 2)), 192, dense=True)
def symm(alpha, beta, C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            temp2 = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                temp2 += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * temp2


@kernel(lambda n: (float(n + 3), array(1, n + 3, n), np.zeros((n, n)), np.zeros(n)), 192, dense=True)
def covariance(float_n, data, cov, mean):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= float_n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= float_n - 1.0
            cov[j, i] = cov[i, j]


@kernel(lambda n: (float(n + 3), array(1, n + 3, n), np.zeros((n, n)), np.zeros(n), np.zeros(n)), 192, dense=True)
def correlation(float_n, data, corr, mean, stddev):
    n, m = data.shape
    eps = 0.1
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= float_n
    for j in range(m):
        stddev[j] = 0.0
        for i in range(n):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] /= float_n
        stddev[j] = math.sqrt(stddev[j])
        stddev[j] = 1.0 if stddev[j] <= eps else stddev[j]
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
            data[i, j] /= math.sqrt(float_n) * stddev[j]
    for i in range(m - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            corr[i, j] = 0.0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1.0
