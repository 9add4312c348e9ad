"""Programs of dynamic sizes next to those for one size: `python -m benchmarks.dynamic`.

For each function the number of compilations for 200 lengths, and for some lengths the time of a call divided by that of
the program compiled for this length: the best of many, in turns, as other processes disturb the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from mlirml.core.tree import flatten

LENGTHS = (33, 64, 100, 200, 512)
CALLS = 41
WIDTH = 128

Array = Any
RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normal(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def chain(x: Array) -> Array:
    return np.exp(-x * x) * np.tanh(x) + x


def rows(x: Array) -> Array:
    return softmax(normal(x))


def columns(x: Array) -> Array:
    return x.mean(0), x.max(0)


def product(x: Array, w: Array) -> Array:
    return x @ w


def mlp(x: Array, w: Array, v: Array) -> Array:
    return np.maximum(x @ w, 0) @ v


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q @ k.T / np.sqrt(np.float32(q.shape[1]))) @ v


def encoder(x: Array, wq: Array, wk: Array, wv: Array, wo: Array, w: Array, v: Array) -> Array:
    n, d = x.shape
    h = 4
    q, k, u = ((x @ p).reshape(n, h, d // h).transpose(1, 0, 2) for p in (wq, wk, wv))
    mixed = softmax(q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(d // h))) @ u
    x = normal(mixed.transpose(1, 0, 2).reshape(n, d) @ wo + x)
    return normal(x + np.maximum(x @ w, 0) @ v)


def decode(q: Array, keys: Array, values: Array, k: Array, v: Array) -> Array:
    keys, values = np.concatenate([keys, k[None]]), np.concatenate([values, v[None]])
    return softmax(keys @ q) @ values, keys, values


def images(x: Array, u: Array, v: Array, w: Array) -> Array:
    layers = ml.nn.functional
    h = layers.max_pool2d(np.maximum(layers.conv2d(x, u, padding=1), 0), 2)
    h = layers.max_pool2d(np.maximum(layers.conv2d(h, v, padding=1), 0), 2)
    return h.reshape(h.shape[0], -1) @ w


def recurrent(x: Array, u: Array, v: Array) -> Array:
    """An LSTM of width 32."""
    width = v.shape[0]

    def step(carried: Any, row: Array) -> Any:
        h, cell = carried
        z = row @ u + h @ v
        i, f, g, o = (z[k * width : (k + 1) * width] for k in range(4))
        cell = cell / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(cell) / (1 + np.exp(-o))
        return (h, cell), h

    start = np.zeros(width, np.float32)
    return ml.scan(step, (start, start), x)[1]


SQUARE, UP, DOWN = (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)
PROGRAMS: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (chain, {"x": ("n", WIDTH)}),
    (rows, {"x": ("n", WIDTH)}),
    (columns, {"x": ("n", WIDTH)}),
    (product, {"x": ("n", WIDTH), "w": SQUARE}),
    (mlp, {"x": ("n", WIDTH), "w": UP, "v": DOWN}),
    (attention, {"q": ("n", 64), "k": ("n", 64), "v": ("n", 64)}),
    (encoder, {"x": ("n", WIDTH), "wq": SQUARE, "wk": SQUARE, "wv": SQUARE, "wo": SQUARE, "w": UP, "v": DOWN}),
    (images, {"x": ("n", 1, 28, 28), "u": (8, 1, 3, 3), "v": (16, 8, 3, 3), "w": (784, 10)}),
    (recurrent, {"x": ("n", 16), "u": (16, 128), "v": (32, 128)}),
    (decode, {"q": (WIDTH,), "keys": ("n", WIDTH), "values": ("n", WIDTH), "k": (WIDTH,), "v": (WIDTH,)}),
)


def ratio(first: Callable[[], Any], second: Callable[[], Any]) -> float:
    """The best time of a call of the first, divided by that of the second."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(CALLS):
        for function, found in zip((first, second), times):
            begun = time.perf_counter()
            function()
            found.append(time.perf_counter() - begun)
    return min(times[0]) / min(times[1])


def arguments(shapes: dict[str, Any], n: int) -> list[Array]:
    """Random arguments of these shapes."""
    return [array(*(n if s == "n" else s for s in shape)) for shape in shapes.values()]


def measured(one: Any, each: Any, given: list[Array]) -> float:
    """The ratio of the program of dynamic sizes to the other one, whose results are compared first."""
    for mine, theirs in zip(flatten(one(*given))[0], flatten(each(*given))[0]):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)
    return ratio(lambda: one(*given), lambda: each(*given))


def main() -> None:
    """Print a line for each function."""
    print(f"{'':10} {'compiled':>8} " + " ".join(f"{n:>6}" for n in LENGTHS))
    for function, shapes in PROGRAMS:
        names = {name: tuple(n if isinstance(n, str) else None for n in s) for name, s in shapes.items() if "n" in s}
        one, each = ml.compile(function, dynamic=names), ml.compile(function, dynamic="off")
        for n in range(1, 201):
            one(*arguments(shapes, n))
        count = one.explain().splitlines()[0].split(", ")[1].split()[0]
        found = [measured(one, each, arguments(shapes, n)) for n in LENGTHS]
        print(f"{function.__name__:10} {count:>8} " + " ".join(f"{x:6.2f}" for x in found), flush=True)


if __name__ == "__main__":
    main()
