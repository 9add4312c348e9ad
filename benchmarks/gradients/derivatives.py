"""Derivatives written out in NumPy, of the functions that have kinks."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
Parameters = dict[str, Array]


def _nearest(centres: Array, points: Array) -> Array:
    """Ones where a point [row] is nearest to a centre [column]."""
    squares = np.sum((points[:, None, :] - centres) ** 2, axis=-1)
    return np.eye(len(centres))[np.argmin(squares, axis=1)]


def kmeans_gradient(centres: Array, points: Array) -> Array:
    """Twice the sum, over the points nearest to a centre, of the way from them to it."""
    near = _nearest(centres, points)
    return 2 * (np.sum(near, axis=0)[:, None] * centres - near.T @ points)


def kmeans_hvp(centres: Array, points: Array) -> Array:
    """The Hessian times ones: twice the number of nearest points."""
    counts = np.sum(_nearest(centres, points), axis=0)
    return np.repeat(2 * counts[:, None], centres.shape[1], axis=1)


def mlp_gradient(p: Parameters, momentum: Parameters, x: Array, labels: Array) -> Parameters:
    """Of the cross entropy of a network of two layers, for its parameters."""
    hidden = x @ p["w1"] + p["b1"]
    exponentials = np.exp(np.maximum(hidden, 0) @ p["w2"] + p["b2"])
    back = (exponentials / np.sum(exponentials, axis=1, keepdims=True) - labels) / len(x)
    through = (back @ p["w2"].T) * (hidden > 0)
    return {
        "w1": x.T @ through,
        "b1": np.sum(through, axis=0),
        "w2": np.maximum(hidden, 0).T @ back,
        "b2": np.sum(back, axis=0),
    }
