"""Machine learning, as a newcomer writes it."""

from __future__ import annotations

import numpy as np


def logistic_regression(x, y, rate, epochs):
    """Gradient descent on a logistic loss."""
    weights = np.zeros(x.shape[1])
    bias = 0.0
    losses = []
    for _ in range(epochs):
        p = 1 / (1 + np.exp(-(x @ weights + bias)))
        losses.append(-np.mean(y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12)))
        error = p - y
        weights -= rate * x.T @ error / len(y)
        bias -= rate * error.mean()
    return weights, bias, np.array(losses)


def k_means(points, centers, iterations):
    """Lloyd's algorithm, with loops."""
    k = len(centers)
    centers = centers.copy()
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(iterations):
        for i in range(len(points)):
            best, nearest = np.inf, 0
            for c in range(k):
                distance = np.sum((points[i] - centers[c]) ** 2)
                if distance < best:
                    best, nearest = distance, c
            labels[i] = nearest
        for c in range(k):
            members = labels == c
            if members.any():
                centers[c] = points[members].mean(axis=0)
    return centers, labels


def lstm(x, wx, wh, b):
    """A long short-term memory over a sequence; all of its states."""
    hidden = wh.shape[0]
    h, c = np.zeros(hidden), np.zeros(hidden)
    states = []
    for t in range(x.shape[0]):
        gates = x[t] @ wx + h @ wh + b
        i, f, g, o = np.split(gates, 4)
        i, f, o = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states)


def nearest_neighbours(train, labels, test, k):
    """The vote of the nearest neighbours."""
    distances = np.sqrt(((test[:, None, :] - train[None, :, :]) ** 2).sum(axis=2))
    nearest = np.argsort(distances, axis=1)[:, :k]
    votes = labels[nearest]
    counts = np.stack([(votes == c).sum(axis=1) for c in range(10)], axis=1)
    return counts.argmax(axis=1)


def perceptron(x, y, epochs):
    """Rosenblatt's rule, one example after the other."""
    weights = np.zeros(x.shape[1] + 1)
    mistakes = 0
    for _ in range(epochs):
        for i in range(len(x)):
            activation = weights[0] + np.dot(weights[1:], x[i])
            prediction = 1 if activation >= 0 else -1
            if prediction != y[i]:
                weights[0] += y[i]
                weights[1:] += y[i] * x[i]
                mistakes += 1
    return weights, mistakes


def arguments(name):
    """Arguments of a size that takes a while."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 10))
    sign = np.where(x @ rng.normal(size=10) > 0, 1, -1)
    return {
        "logistic_regression": (x, (sign > 0).astype(float), 0.5, 300),
        "k_means": (rng.normal(size=(300, 2)), rng.normal(size=(4, 2)), 10),
        "lstm": (rng.normal(size=(60, 16)), *(rng.normal(size=s) * 0.1 for s in ((16, 128), (32, 128), (128,)))),
        "nearest_neighbours": (rng.normal(size=(500, 8)), rng.integers(0, 10, 500), rng.normal(size=(100, 8)), 5),
        "perceptron": (x, sign, 10),
    }[name]
