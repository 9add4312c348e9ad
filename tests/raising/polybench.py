"""The algorithms of PolyBench as plain Python loops, with the shapes of their arrays and how many loops stay.

What stays carries a dependence: time steps, recurrences, factorisations. `deriche` has one direction of its filter,
`ludcmp` the solution after the factorisation.
"""

from __future__ import annotations

import math

N, M = 6, 5


def gemm(A, B, C):
    for i in range(N):
        for j in range(M):
            C[i, j] *= 0.5
            for k in range(N):
                C[i, j] += 1.5 * A[i, k] * B[k, j]


def syrk(A, C):
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= 0.5
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += 1.5 * A[i, k] * A[j, k]


def three_mm(A, B, C, D, E, F, G):
    for i in range(N):
        for j in range(M):
            E[i, j] = 0.0
            for k in range(N):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(M):
        for j in range(N):
            F[i, j] = 0.0
            for k in range(N):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(N):
        for j in range(N):
            G[i, j] = 0.0
            for k in range(M):
                G[i, j] += E[i, k] * F[k, j]


def syr2k(A, B, C):
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= 0.5
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += A[j, k] * 1.5 * B[i, k] + B[j, k] * 1.5 * A[i, k]


def trmm(A, B):
    for i in range(M):
        for j in range(N):
            for k in range(i + 1, M):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = 1.5 * B[i, j]


def symm(A, B, C):
    for i in range(M):
        for j in range(N):
            t = 0.0
            for k in range(i):
                C[k, j] += 1.5 * B[i, j] * A[i, k]
                t += B[k, j] * A[i, k]
            C[i, j] = 0.5 * C[i, j] + 1.5 * B[i, j] * A[i, i] + 1.5 * t


def covariance(A, C, mean):
    for j in range(M):
        mean[j] = 0.0
        for i in range(N):
            mean[j] += A[i, j]
        mean[j] = mean[j] / 6.0
    for i in range(N):
        for j in range(M):
            A[i, j] -= mean[j]
    for i in range(M):
        for j in range(i, M):
            C[i, j] = 0.0
            for k in range(N):
                C[i, j] += A[k, i] * A[k, j]
            C[i, j] = C[i, j] / 5.0
            C[j, i] = C[i, j]


def correlation(A, C, mean, std):
    for j in range(M):
        mean[j] = 0.0
        for i in range(N):
            mean[j] += A[i, j]
        mean[j] = mean[j] / 6.0
    for j in range(M):
        std[j] = 0.0
        for i in range(N):
            std[j] += (A[i, j] - mean[j]) * (A[i, j] - mean[j])
        std[j] = math.sqrt(std[j] / 6.0)
        std[j] = 1.0 if std[j] <= 0.1 else std[j]
    for i in range(N):
        for j in range(M):
            A[i, j] -= mean[j]
            A[i, j] = A[i, j] / (math.sqrt(6.0) * std[j])
    for i in range(M - 1):
        C[i, i] = 1.0
        for j in range(i + 1, M):
            C[i, j] = 0.0
            for k in range(N):
                C[i, j] += A[k, i] * A[k, j]
            C[j, i] = C[i, j]
    C[M - 1, M - 1] = 1.0


def two_mm(A, B, C, D, T):
    for i in range(N):
        for j in range(M):
            T[i, j] = 0.0
            for k in range(N):
                T[i, j] += 1.5 * A[i, k] * B[k, j]
    for i in range(N):
        for j in range(M):
            D[i, j] *= 0.5
            for k in range(M):
                D[i, j] += T[i, k] * C[k, j]


def atax(A, x, y, t):
    for i in range(N):
        y[i] = 0.0
    for i in range(M):
        t[i] = 0.0
        for j in range(N):
            t[i] = t[i] + A[i, j] * x[j]
        for j in range(N):
            y[j] = y[j] + A[i, j] * t[i]


def bicg(A, s, q, p, r):
    for i in range(M):
        s[i] = 0.0
    for i in range(N):
        q[i] = 0.0
        for j in range(M):
            s[j] = s[j] + r[i] * A[i, j]
            q[i] = q[i] + A[i, j] * p[j]


def mvt(A, x, y, p, q):
    for i in range(N):
        for j in range(N):
            x[i] = x[i] + A[i, j] * p[j]
    for i in range(N):
        for j in range(N):
            y[i] = y[i] + A[j, i] * q[j]


def gemver(A, u, v, w, x, y, z):
    for i in range(N):
        for j in range(N):
            A[i, j] = A[i, j] + u[i] * v[j] + w[i] * z[j]
    for i in range(N):
        for j in range(N):
            x[i] = x[i] + 1.5 * A[j, i] * y[j]
    for i in range(N):
        x[i] = x[i] + z[i]
    for i in range(N):
        for j in range(N):
            w[i] = w[i] + 1.5 * A[i, j] * x[j]


def gesummv(A, B, x, y, t):
    for i in range(N):
        t[i] = 0.0
        y[i] = 0.0
        for j in range(N):
            t[i] = A[i, j] * x[j] + t[i]
            y[i] = B[i, j] * x[j] + y[i]
        y[i] = 1.5 * t[i] + 0.5 * y[i]


def doitgen(A, C, t):
    for r in range(N):
        for q in range(N):
            for p in range(M):
                t[p] = 0.0
                for s in range(M):
                    t[p] += A[r, q, s] * C[s, p]
            for p in range(M):
                A[r, q, p] = t[p]


def jacobi_1d(A, B):
    for _t in range(3):
        for i in range(1, N - 1):
            B[i] = 0.3 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, N - 1):
            A[i] = 0.3 * (B[i - 1] + B[i] + B[i + 1])


def jacobi_2d(A, B):
    for _t in range(3):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def seidel_2d(A):
    for _t in range(2):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


def fdtd_2d(ex, ey, hz, f):
    for t in range(3):
        for j in range(M):
            ey[0, j] = f[t]
        for i in range(1, N):
            for j in range(M):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(N):
            for j in range(1, M):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(N - 1):
            for j in range(M - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def adi(u, v, p, q):
    for _t in range(2):
        for i in range(1, N - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, N - 1):
                p[i, j] = -0.3 / (0.4 * p[i, j - 1] + 1.5)
                q[i, j] = (0.2 * u[j, i - 1] + (1.0 + 2.0 * 0.4) * u[j, i] - 0.3 * u[j, i + 1] - 0.4 * q[i, j - 1]) / (
                    0.4 * p[i, j - 1] + 1.5
                )
            v[N - 1, i] = 1.0
            for j in range(N - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]


def lu(A):
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] = A[i, j] / A[j, j]
        for j in range(i, N):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


def cholesky(A):
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] = A[i, j] / A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(A[i, i])


def gramschmidt(A, R, Q):
    for k in range(M):
        nrm = 0.0
        for i in range(N):
            nrm += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(nrm)
        for i in range(N):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, M):
            R[k, j] = 0.0
            for i in range(N):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(N):
                A[i, j] -= Q[i, k] * R[k, j]


def trisolv(L, x, b):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


def durbin(r, y, z):
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, N):
        beta = (1.0 - alpha * alpha) * beta
        s = 0.0
        for i in range(k):
            s += r[k - i - 1] * y[i]
        alpha = -(r[k] + s) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


def floyd_warshall(A):
    for k in range(N):
        for i in range(N):
            for j in range(N):
                A[i, j] = min(A[i, j], A[i, k] + A[k, j])


def ludcmp(A, b, x, y):
    for i in range(N):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(N - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, N):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]


def deriche(im, y1, y2):
    for i in range(N):
        ym1 = 0.0
        ym2 = 0.0
        xm1 = 0.0
        for j in range(M):
            y1[i, j] = 0.1 * im[i, j] + 0.2 * xm1 + 0.3 * ym1 + 0.4 * ym2
            xm1 = im[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
        yp1 = 0.0
        for j in range(M - 1, -1, -1):
            y2[i, j] = 0.1 * im[i, j] + 0.3 * yp1
            yp1 = y2[i, j]
        for j in range(M):
            im[i, j] = y1[i, j] + y2[i, j]


def heat_3d(A, B):
    for _t in range(2):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                for k in range(1, N - 1):
                    B[i, j, k] = (
                        0.1 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.1 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.1 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                for k in range(1, N - 1):
                    A[i, j, k] = (
                        0.1 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.1 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.1 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


def nussinov(T, S):
    for i in range(N - 2, -1, -1):
        for j in range(i + 1, N):
            T[i, j] = max(T[i, j], T[i, j - 1])
            T[i, j] = max(T[i, j], T[i + 1, j])
            T[i, j] = max(T[i, j], T[i + 1, j - 1] + S[i, j])
            for k in range(i + 1, j):
                T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])


KERNELS = {
    gemm: ("A:NN B:NM C:NM", 0),
    syrk: ("A:NM C:NN", 0),
    three_mm: ("A:NN B:NM C:MN D:NN E:NM F:MN G:NN", 0),
    syr2k: ("A:NM B:NM C:NN", 0),
    trmm: ("A:MM B:MN", 0),
    symm: ("A:MM B:MN C:MN", 0),
    covariance: ("A:NM C:MM mean:M", 0),
    correlation: ("A:NM C:MM mean:M std:M", 0),
    two_mm: ("A:NN B:NM C:MM D:NM T:NM", 0),
    atax: ("A:MN x:N y:N t:M", 0),
    bicg: ("A:NM s:M q:N p:M r:N", 0),
    mvt: ("A:NN x:N y:N p:N q:N", 0),
    gemver: ("A:NN u:N v:N w:N x:N y:N z:N", 0),
    gesummv: ("A:NN B:NN x:N y:N t:N", 0),
    doitgen: ("A:NNM C:MM t:M", 0),
    jacobi_1d: ("A:N B:N", 1),
    jacobi_2d: ("A:NN B:NN", 1),
    seidel_2d: ("A:NN", 3),
    fdtd_2d: ("ex:NM ey:NM hz:NM f:N", 1),
    adi: ("u:NN v:NN p:NN q:NN", 4),
    lu: ("A:NN", 2),
    cholesky: ("A:NN", 2),
    gramschmidt: ("A:NM R:MM Q:NM", 1),
    trisolv: ("L:NN x:N b:N", 1),
    durbin: ("r:N y:N z:N", 1),
    floyd_warshall: ("A:NN", 3),
    ludcmp: ("A:NN b:N x:N y:N", 2),
    deriche: ("im:NM y1:NM y2:NM", 3),
    heat_3d: ("A:NNN B:NNN", 1),
    nussinov: ("T:NN S:NN", 2),
}
