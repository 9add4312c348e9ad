"""Loops over elements that are often written for Numba."""

from __future__ import annotations

import numpy as np


def csr_page_rank(indptr, indices, damping, iterations):
    """PageRank of a graph in compressed rows: the sources of the edges into each page."""
    n = len(indptr) - 1
    degree = np.zeros(n)
    for k in range(len(indices)):
        degree[indices[k]] += 1
    rank = np.ones(n) / n
    for _ in range(iterations):
        new = np.empty(n)
        for i in range(n):
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += rank[indices[k]] / degree[indices[k]]
            new[i] = (1 - damping) / n + damping * total
        rank = new
    return rank


def iir(x, b, a):
    """A recursive filter of any order, direct form II transposed."""
    state = np.zeros(len(b))
    y = np.zeros(len(x))
    for n in range(len(x)):
        y[n] = b[0] * x[n] + state[0]
        for k in range(1, len(b)):
            following = state[k] if k < len(b) - 1 else 0.0
            state[k - 1] = b[k] * x[n] + following - a[k] * y[n]
    return y


def equalized_loops(image):
    """Histogram equalisation, each step a loop."""
    rows, columns = image.shape
    histogram = np.zeros(256, dtype=np.int64)
    for i in range(rows):
        for j in range(columns):
            histogram[image[i, j]] += 1
    cdf = np.zeros(256, dtype=np.int64)
    total = 0
    for v in range(256):
        total += histogram[v]
        cdf[v] = total
    lowest = cdf[0]
    for v in range(256):
        if cdf[v] > 0:
            lowest = cdf[v]
            break
    out = np.empty_like(image)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = np.uint8((cdf[image[i, j]] - lowest) * 255 // (image.size - lowest))
    return out


def tokens(text):
    """The starts and lengths of the words in a text of bytes, and a hash of each."""
    starts = np.zeros(len(text), dtype=np.int64)
    lengths = np.zeros(len(text), dtype=np.int64)
    hashes = np.zeros(len(text), dtype=np.int64)
    count = 0
    start = -1
    value = 0
    for i in range(len(text)):
        c = text[i]
        letter = (97 <= c <= 122) or (65 <= c <= 90) or (48 <= c <= 57)
        if letter:
            if start < 0:
                start = i
                value = 5381
            value = (value * 33 + int(c)) % 1000003
        elif start >= 0:
            starts[count] = start
            lengths[count] = i - start
            hashes[count] = value
            count += 1
            start = -1
    if start >= 0:
        starts[count] = start
        lengths[count] = len(text) - start
        hashes[count] = value
        count += 1
    return starts[:count], lengths[:count], hashes[:count]


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, 20_000)
    return {
        "csr_page_rank": (np.arange(0, 8 * 500 + 1, 8), rng.integers(0, 500, 8 * 500), 0.85, 20),
        "iir": (rng.normal(size=4000), np.array([0.2, 0.3, 0.2, 0.1]), np.array([1.0, -0.5, 0.3, -0.1])),
        "equalized_loops": (rng.integers(20, 200, (128, 128)).astype(np.uint8),),
        "tokens": (np.where(rng.random(20_000) < 0.2, 32, letters).astype(np.uint8),),
    }[name]
