"""Small programs of many domains, for tests that compile each of them several times."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks import fifty
from mlirml.nn import functional

LOOPS = (
    "american_put", "inside", "page_rank", "knapsack", "sobel", "equalized", "lstm", "perceptron", "lorenz",
    "conjugate_gradient", "thomas", "lennard_jones", "heat", "edit_distance", "viterbi", "fir", "compressor",
    "spectrogram", "density", "k_means", "rotated", "ising", "julia", "biquad",
)  # fmt: skip
"""Programs of `benchmarks.fifty`, which are written as loops."""


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) / 4.0
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return weights / np.sum(weights, axis=-1, keepdims=True) @ v


def layer_norm(x: Any, gain: Any) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * gain


def loss(w1: Any, w2: Any, x: Any, y: Any) -> Any:
    return np.mean((np.tanh(x @ w1) @ w2 - y) ** 2)


def chain(a: Any, b: Any, c: Any) -> Any:
    return (a @ b) @ c + np.trace(a @ b) * (a @ c) + np.sum(b @ c, axis=0)


def convolution(x: Any, w: Any) -> Any:
    return np.maximum(functional.conv2d(x, w, padding=1), 0).sum(axis=(2, 3))


def shifted(x: Any) -> Any:
    y = x.copy()
    for _ in range(4):
        y[1:-1] = 0.25 * y[:-2] + 0.5 * y[1:-1] + 0.25 * y[2:]
    return y, np.argmax(y), np.sort(y)[:5], np.cumsum(y)


def halves(x: Any) -> Any:
    return (x * x + 1).astype(np.float16), np.where(x > 0, x, -x).sum(axis=0), (x > 0.5).sum(axis=1)


def counted(x: Any, steps: int) -> Any:
    def step(i: Any, state: Any) -> Any:
        a, b = state
        return a * 0.5 + b, np.sin(a) + 0.1 * i

    return ml.fori_loop(0, steps, step, (x, x + 1))


@cache
def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The programs: each call gets copies of the arguments, which it may store into."""
    generator = np.random.default_rng(5)

    def f32(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    network = f32(10, 12), f32(12, 3), f32(9, 10), f32(9, 3)
    arrays: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "attention": (attention, (f32(2, 20, 16), f32(2, 20, 16), f32(2, 20, 16))),
        "layer norm": (layer_norm, (f32(30, 40), f32(40))),
        "gradient": (ml.value_and_grad(loss, (0, 1)), network),
        "batched gradient": (ml.vmap(ml.grad(loss), (None, None, 0, 0)), network),
        "chain": (chain, (f32(20, 20), f32(20, 20), f32(20, 20))),
        "convolution": (convolution, (f32(2, 3, 12, 13), f32(4, 3, 3, 3))),
        "shifted": (shifted, (f32(200),)),
        "halves": (halves, (f32(33, 21),)),
        "counted": (counted, (f32(50), 7)),
    }  # fmt: skip
    return arrays | {name: fifty.load(name)[:2] for name in LOOPS}
