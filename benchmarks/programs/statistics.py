"""Statistics, as a newcomer writes it."""

from __future__ import annotations

import numpy as np


def kalman(observations, q, r):
    """A filter of one dimension; estimates and variances."""
    estimate, variance = 0.0, 1.0
    estimates = []
    variances = []
    for z in observations:
        variance += q
        gain = variance / (variance + r)
        estimate += gain * (z - estimate)
        variance *= 1 - gain
        estimates.append(estimate)
        variances.append(variance)
    return np.array(estimates), np.array(variances)


def density(samples, grid, width):
    """A kernel density estimate."""
    result = np.zeros(len(grid))
    for i, g in enumerate(grid):
        result[i] = np.exp(-0.5 * ((g - samples) / width) ** 2).sum()
    return result / (len(samples) * width * np.sqrt(2 * np.pi))


def metropolis(start, proposals, uniforms):
    """Samples of a density with two peaks, with given random numbers."""

    def log_density(x):
        return np.logaddexp(-0.5 * (x - 2) ** 2, -0.5 * (x + 2) ** 2)

    x = start
    accepted = 0
    samples = np.empty(len(proposals))
    for i in range(len(proposals)):
        candidate = x + proposals[i]
        if np.log(uniforms[i]) < log_density(candidate) - log_density(x):
            x = candidate
            accepted += 1
        samples[i] = x
    return samples, accepted / len(proposals)


def autocorrelation(x, lags):
    """The correlation of a series with itself, for several lags."""
    x = x - x.mean()
    variance = np.dot(x, x)
    return np.array([np.dot(x[: len(x) - lag], x[lag:]) / variance for lag in range(lags)])


def bootstrap(data, indices):
    """The confidence interval of a median, with given indices."""
    medians = np.zeros(len(indices))
    for b in range(len(indices)):
        sample = data[indices[b]]
        medians[b] = np.median(sample)
    medians = np.sort(medians)
    return medians[int(0.025 * len(medians))], medians[int(0.975 * len(medians))]


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    return {
        "kalman": (np.cumsum(rng.normal(size=10_000)), 0.01, 1.0),
        "density": (rng.normal(size=1000), np.linspace(-3, 3, 100), 0.2),
        "metropolis": (0.0, rng.normal(size=10_000), rng.random(10_000)),
        "autocorrelation": (rng.normal(size=5000), 30),
        "bootstrap": (rng.normal(size=100), rng.integers(0, 100, (500, 100))),
    }[name]
