"""Functions of one array that give one float, over everything that capture writes; smooth where they are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlirml as ml
import mlirml.nn.functional as F

_RNG = np.random.default_rng(0)
WEIGHTS = _RNG.standard_normal((5, 4))
FILTERS = _RNG.standard_normal((3, 2, 3, 3))
IMAGE = _RNG.standard_normal((2, 2, 6, 5))
PLACES = np.array([2, 0, 2, 1])
RAMP = np.arange(20.0).reshape(5, 4)


@dataclass(frozen=True)
class Program:
    """A function, and the shape of its argument."""

    function: Callable[[Any], Any]
    shape: tuple[int, ...] = (5, 4)

    def argument(self, seed: int = 1) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal(self.shape)


def stores(x: Any) -> Any:
    y = np.zeros((5, 4))
    y[1:] = x[:-1] * 2
    y[0] = x[0] * x[1]
    y[:, 1] += x[:, 0]
    return np.sum(y * y)


def scan(x: Any) -> Any:
    last, rows = ml.scan(lambda c, r: (np.tanh(c + r), c * r), np.zeros(4), x)
    return np.sum(last) + np.sum(rows**2)


def nested_loops(x: Any) -> Any:
    def outer(i: Any, total: Any) -> Any:
        return ml.fori_loop(0, i + 1, lambda j, s: s * np.cos(x[j, 0]) + x[i, 1], total)

    return ml.fori_loop(0, 5, outer, np.sum(x))


def layer_norm(x: Any) -> Any:
    return np.sum((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * WEIGHTS)


PROGRAMS: dict[str, Program] = {
    "softmax": Program(lambda x: np.sum(F.softmax(x) * RAMP)),
    "layer_norm": Program(layer_norm),
    "logsumexp": Program(lambda x: np.sum(np.log(np.sum(np.exp(x), 0)))),
    "functions": Program(lambda x: np.sum(np.sin(x) * np.cosh(x) + np.arctan2(x, 1.5) + np.log1p(x * x) + np.cbrt(x))),
    "inverses": Program(lambda x: np.sum(np.arcsin(np.tanh(x)) + np.arccosh(2 + x * x) + np.arctanh(x / 9))),
    "powers": Program(lambda x: np.sum(np.abs(x) ** 2.5 + x**3 + 2.0**x)),
    "remainder": Program(lambda x: np.sum((x % 0.7) * x + np.floor(x) * x)),
    "gelu": Program(lambda x: np.sum(F.gelu(x) * F.silu(x) + F.softplus(x))),
    "extrema": Program(lambda x: np.sum(np.maximum(x, 0.3) * np.minimum(x, 0.1)) + np.max(x) + np.sum(np.min(x, 0))),
    "products": Program(lambda x: np.prod(x) + np.sum(np.prod(x, 1) * np.arange(5.0))),
    "where": Program(lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), x * x))),
    "statistics": Program(lambda x: np.std(x) + np.median(x) + np.linalg.norm(x)),
    "casts": Program(lambda x: np.sum((x.astype(np.float32) * 2).astype(np.float64) * x)),
    "einsum": Program(lambda x: np.sum(np.einsum("ij,kj,ik->", x, x, x @ x.T))),
    "products of matrices": Program(lambda x: np.sum((x @ np.arange(4.0)) ** 2) + x[0] @ x[1] + np.trace(x @ x.T)),
    "batches of matrices": Program(lambda x: np.sum((x.reshape(5, 2, 2) @ x.reshape(5, 2, 2)) ** 2)),
    "gather": Program(lambda x: np.sum(x[PLACES] * np.arange(16.0).reshape(4, 4))),
    "scatter": Program(lambda x: np.sum(np.square(ml_at(x)))),
    "slices": Program(lambda x: np.sum(x[::-1, ::2] ** 2 * x[:, :2] * x[1, 1])),
    "rearranged": Program(lambda x: np.sum(np.roll(x, 2) * np.pad(x, 1, mode="reflect")[1:-1, 1:-1] * x.T.ravel()[3])),
    "joined": Program(lambda x: np.sum(np.concatenate([x, x * x], 1) ** 2) + np.sum(np.stack([x, x]) * x)),
    "scans": Program(lambda x: np.sum(np.cumsum(x, 1) * x) + np.sum(np.cumprod(x, 0)) + np.sum(np.diff(x) ** 2)),
    "sorted": Program(lambda x: np.sum(np.sort(x, 0) * RAMP)),
    "stores": Program(stores),
    "scan": Program(scan),
    "nested loops": Program(nested_loops),
    "branches": Program(lambda x: ml.cond(np.sum(x) > 0, lambda x: np.sum(x * x), lambda x: np.sum(np.sin(x)), x)),
    "convolution": Program(lambda x: np.sum(F.conv2d(x, FILTERS, stride=2, padding=1) ** 2), (2, 2, 6, 5)),
    "filters": Program(
        lambda w: np.sum(F.conv2d(IMAGE, w, stride=(2, 1), padding=1, dilation=(1, 2)) ** 2), (3, 2, 3, 3)
    ),
    "groups": Program(lambda x: np.sum(F.conv2d(x, FILTERS[:2, :1], groups=2, padding=1) ** 2), (2, 2, 6, 5)),
    "poolings": Program(
        lambda x: np.sum(F.max_pool2d(x, 2) ** 2) + np.sum(F.avg_pool2d(x, 3, stride=1) ** 2), (2, 2, 6, 4)
    ),
}


def ml_at(x: Any) -> Any:
    """Rows added to places that repeat."""
    y = x.copy()
    np.add.at(y, PLACES, 1.5 * x[:4])
    return y


TWICE = (
    "softmax",
    "layer_norm",
    "functions",
    "powers",
    "products of matrices",
    "scans",
    "scan",
    "convolution",
    "stores",
)
"""Programs whose second derivatives are checked too."""
