"""Dynamic programming on integers."""

from __future__ import annotations

import numpy as np

from benchmarks.polybench.kernels import kernel


def _paths(n):
    return (np.random.default_rng(1).integers(1, 100, (n, n)),)


@kernel(_paths, 192)
def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


def _bases(n):
    return np.random.default_rng(1).integers(0, 4, n), np.zeros((n, n), np.int64)


@kernel(_bases, 192)
def nussinov(seq, table):
    n = table.shape[0]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    pair = 1 if seq[i] + seq[j] == 3 else 0
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
