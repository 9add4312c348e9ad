"""Biology and text, as a newcomer writes it; letters are small integers."""

from __future__ import annotations

import numpy as np


def edit_distance(a, b):
    """The distance of Levenshtein, with a list of two rows."""
    previous = list(range(len(b) + 1))
    for i in range(len(a)):
        current = [i + 1]
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            current.append(min(previous[j + 1] + 1, current[j] + 1, previous[j] + cost))
        previous = current
    return previous[-1]


def smith_waterman(a, b, match, mismatch, gap):
    """The score of the best local alignment."""
    h = np.zeros((len(a) + 1, len(b) + 1))
    best = 0.0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            score = match if a[i - 1] == b[j - 1] else mismatch
            h[i, j] = max(0.0, h[i - 1, j - 1] + score, h[i - 1, j] + gap, h[i, j - 1] + gap)
            if h[i, j] > best:
                best = h[i, j]
    return best


def viterbi(observations, initial, transition, emission):
    """The most likely states of a hidden Markov model."""
    steps, states = len(observations), len(initial)
    score = np.log(initial) + np.log(emission[:, observations[0]])
    back = np.zeros((steps, states), dtype=np.int64)
    for t in range(1, steps):
        candidates = score[:, None] + np.log(transition)
        back[t] = np.argmax(candidates, axis=0)
        score = candidates.max(axis=0) + np.log(emission[:, observations[t]])
    path = np.zeros(steps, dtype=np.int64)
    path[-1] = np.argmax(score)
    for t in range(steps - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


def codon_usage(bases):
    """How often each of the 64 codons is there, in all three frames."""
    counts = np.zeros((3, 64), dtype=int)
    for frame in range(3):
        for i in range(frame, len(bases) - 2, 3):
            codon = 16 * bases[i] + 4 * bases[i + 1] + bases[i + 2]
            counts[frame][codon] += 1
    return counts


def words(text, space):
    """How many words there are, how long the longest is, and their mean length."""
    count, longest, current, letters = 0, 0, 0, 0
    for c in text:
        if c == space:
            if current > 0:
                count += 1
                longest = max(longest, current)
            current = 0
        else:
            current += 1
            letters += 1
    if current > 0:
        count += 1
        longest = max(longest, current)
    return count, longest, letters / count if count else 0.0


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 300), rng.integers(0, 4, 280)
    matrix = rng.random((6, 6)) + 0.1
    return {
        "edit_distance": (a, b),
        "smith_waterman": (a, b, 2.0, -1.0, -1.5),
        "viterbi": (
            rng.integers(0, 8, 200),
            np.full(6, 1 / 6),
            matrix / matrix.sum(1, keepdims=True),
            rng.random((6, 8)),
        ),
        "codon_usage": (rng.integers(0, 4, 20_000),),
        "words": (rng.integers(0, 8, 30_000), 0),
    }[name]
