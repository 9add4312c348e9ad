"""Programs that index with arrays: graphs, sparse matrices, tables, sampling, labels."""

from __future__ import annotations

import numpy as np

from tests.fuzz.real_programs.program import Array, program


@program(lambda d: (d.normal(6, 10), d.integers(0, 10, 6)), ulps=100)
def cross_entropy_of_labels(logits: Array, labels: Array) -> Array:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    places = labels.astype(np.int64)
    return -log_probabilities[np.arange(len(places)), places].mean()


@program(lambda d: (d.integers(0, 12, 100), d.normal(100)), ulps=100)
def weighted_histogram(bins: Array, weights: Array) -> tuple[Array, Array]:
    places = bins.astype(np.int32)
    counts, sums = np.zeros(12, np.int64), np.zeros(12, weights.dtype)
    np.add.at(counts, places, 1)
    np.add.at(sums, places, weights)
    return counts, sums


@program(lambda d: (d.integers(0, 8, 30), d.integers(0, 8, 30), d.uniform(0.5, 2.0, 8)), ulps=200)
def page_rank(sources: Array, targets: Array, start: Array) -> Array:
    source, target = sources.astype(np.int64), targets.astype(np.int64)
    degree = np.zeros(8, start.dtype)
    np.add.at(degree, source, 1)
    share = 1 / np.maximum(degree, 1)
    rank = start / start.sum()
    for _ in range(4):
        received = np.zeros_like(rank)
        np.add.at(received, target, (rank * share)[source])
        rank = 0.15 / 8 + 0.85 * received
    return rank


@program(lambda d: (d.normal(20), d.integers(0, 7, 20), d.integers(0, 5, 20), d.normal(7, 3)), ulps=100)
def sparse_times_dense(values: Array, columns: Array, rows: Array, dense: Array) -> Array:
    result = np.zeros((5, 3), values.dtype)
    np.add.at(result, rows.astype(np.int64), values[:, None] * dense[columns.astype(np.int64)])
    return result


@program(lambda d: (d.normal(9, 11), d.uniform(0, 7.5, 4, 5), d.uniform(0, 9.5, 4, 5)), ulps=100)
def bilinear_samples(image: Array, y: Array, x: Array) -> Array:
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    v, u = y - top, x - left
    upper = image[top, left] * (1 - u) + image[top, left + 1] * u
    lower = image[top + 1, left] * (1 - u) + image[top + 1, left + 1] * u
    return upper * (1 - v) + lower * v


@program(lambda d: (d.normal(7, 4), d.normal(4, 4), d.normal(4)), ulps=100)
def viterbi_path(emissions: Array, transitions: Array, start: Array) -> tuple[Array, Array]:
    score = start + emissions[0]
    back = np.zeros((7, 4), np.int64)
    for t in range(1, 7):
        candidates = score[:, None] + transitions
        back[t] = np.argmax(candidates, axis=0)
        score = np.take_along_axis(candidates, back[t][None], axis=0)[0] + emissions[t]
    path = np.zeros(7, np.int64)
    path[6] = np.argmax(score)
    for t in range(6, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, score


@program(lambda d: (d.integers(0, 256, 8, 9), d.integers(0, 256, 256)), ("uint8",))
def lookup_table(image: Array, table: Array) -> Array:
    return table[image]


@program(lambda d: (d.normal(6, 5), d.integers(0, 6, 4), d.normal(4, 5)))
def rows_replaced_and_swapped(x: Array, rows: Array, new: Array) -> Array:
    places = rows.astype(np.int64)
    x[places[:2]] = x[places[2:]]
    x[places] += new
    x[[0, 5]] = x[[5, 0]]
    x[:, [1, 3]] *= 2
    return x[::-1][places]


@program(lambda d: (d.integers(0, 100, 10), d.integers(0, 9, 9)))
def permuted(x: Array, steps: Array) -> Array:
    order = np.arange(10)
    for i in range(9):
        j = i + steps[i].astype(np.int64) % (10 - i)
        first, second = order[i], order[j]
        order[i] = second
        order[j] = first
    return x[order]
