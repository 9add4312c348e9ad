"""A decode loop of a GPT with a growing cache beside torch and jax: `python -m benchmarks.decoding`.

One token after another goes through all layers of a model of GPT-2's form; its keys and values are appended to the
cache, which so has another length at each step. Here one program of dynamic sizes runs all lengths. torch runs eagerly,
and appends with `torch.cat`; jax compiles for one shape, so its cache has the greatest length from the start, and a
mask. The systems take turns, and the table has the best of several loops in tokens a second; each has one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml

LAYERS, WIDTH, HEADS, WORDS = 4, 256, 8, 1000
STARTS, STEPS, REPEATS = (32, 128, 512), 64, 5

Array = Any
Step = Callable[[int, Any], tuple[Any, Any]]


def parameters() -> dict[str, np.ndarray]:
    """The weights of all layers, and the embedding, which the scores are computed with, too."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    return {
        "qkv": weights(LAYERS, WIDTH, 3 * WIDTH),
        "out": weights(LAYERS, WIDTH, WIDTH),
        "up": weights(LAYERS, WIDTH, 4 * WIDTH),
        "down": weights(LAYERS, 4 * WIDTH, WIDTH),
        "words": weights(WORDS, WIDTH),
    }


def normal(np: Any, x: Array) -> Array:
    """Layer norm without gain."""
    centred = x - x.mean()
    return centred / np.sqrt((centred * centred).mean() + 1e-5)


def attended(np: Any, q: Array, keys: Array, values: Array, mask: Array | None = None) -> Array:
    """The attention of one query [heads, d] to keys and values [n, heads, d]."""
    scores = np.einsum("hd,nhd->hn", q, keys) * (WIDTH // HEADS) ** -0.5
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    power = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.einsum("hn,nhd->hd", power / np.sum(power, axis=-1, keepdims=True), values).reshape(WIDTH)


def forward(np: Any, p: dict[str, Array], token: Array, append: Callable[[int, Array, Array], tuple[Any, Any]],
            mask: Array | None = None) -> Array:  # fmt: skip
    """The scores of the next token; `append` puts the new key and value of a layer into its cache."""
    x = p["words"][token]
    for layer in range(LAYERS):
        q, k, v = (part.reshape(HEADS, WIDTH // HEADS) for part in np.split(normal(np, x) @ p["qkv"][layer], 3))
        x = x + attended(np, q, *append(layer, k, v), mask) @ p["out"][layer]
        x = x + np.maximum(normal(np, x) @ p["up"][layer], 0) @ p["down"][layer]
    return p["words"] @ normal(np, x)


def growing(np: Any, join: Callable[[list[Array]], Array], p: Any, token: Array, keys: Array, values: Array) -> Any:
    """A step with caches [layers, n, heads, d] that grow by one: the next token and the new caches."""
    new: list[tuple[Array, Array]] = []

    def append(layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        new.append((join([keys[layer], k[None]]), join([values[layer], v[None]])))
        return new[-1]

    token = forward(np, p, token, append).argmax()
    return token, np.stack([k for k, _ in new]), np.stack([v for _, v in new])


def with_mlirml(p: dict[str, np.ndarray]) -> tuple[Callable[[np.ndarray], Any], Step, Any]:
    """How a cache is made, a step, and the compiled function."""
    dims = (None, "n", None, None)

    @ml.compile(frontend="trace", dynamic={"keys": dims, "values": dims})
    def step(p: Any, token: Array, keys: Array, values: Array) -> Any:
        return growing(np, np.concatenate, p, token, keys, values)

    def run(token: Any, cache: Any) -> tuple[Any, Any]:
        token, *cache = step(p, token, *cache)
        return int(token), cache

    return lambda cache: (cache, cache), run, step


def with_torch(p: dict[str, np.ndarray]) -> tuple[Callable[[np.ndarray], Any], Step]:
    """The same in torch, eagerly."""
    import torch

    torch.set_num_threads(1)
    tensors = {name: torch.from_numpy(value) for name, value in p.items()}

    class Names:
        """The functions of NumPy that the model uses."""

        einsum, exp, sqrt, stack, where = torch.einsum, torch.exp, torch.sqrt, torch.stack, torch.where
        sum, maximum = torch.sum, staticmethod(lambda x, y: torch.clamp(x, min=y))
        max = staticmethod(lambda x, axis, keepdims: torch.amax(x, axis, keepdim=keepdims))
        split = staticmethod(lambda x, parts: torch.chunk(x, parts))

    @torch.inference_mode()
    def run(token: Any, cache: Any) -> tuple[Any, Any]:
        token, *cache = growing(Names, torch.cat, tensors, token, *cache)
        return int(token), cache

    return lambda cache: (torch.from_numpy(cache), torch.from_numpy(cache)), run


def with_jax(p: dict[str, np.ndarray], most: int) -> tuple[Callable[[np.ndarray], Any], Step]:
    """The same in jax, with a cache of the greatest length."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax
    import jax.numpy as jnp

    tensors = {name: jnp.asarray(value) for name, value in p.items()}

    @jax.jit
    def step(p: Any, token: Array, keys: Array, values: Array, n: Array) -> Any:
        cache = {"keys": keys, "values": values}

        def append(layer: int, k: Array, v: Array) -> tuple[Array, Array]:
            for name, new in (("keys", k), ("values", v)):
                cache[name] = jax.lax.dynamic_update_slice(cache[name], new[None, None], (layer, n, 0, 0))
            return cache["keys"][layer], cache["values"][layer]

        scores = forward(jnp, p, token, append, jnp.arange(most) <= n)
        return scores.argmax(), cache["keys"], cache["values"], n + 1

    def started(cache: np.ndarray) -> Any:
        room = ((0, 0), (0, most - cache.shape[1]), (0, 0), (0, 0))
        return (*[jnp.asarray(np.pad(cache, room))] * 2, cache.shape[1])

    def run(token: Any, cache: Any) -> tuple[Any, Any]:
        token, *cache = step(tensors, token, *cache)
        return int(token), cache

    return started, run


def decoded(start: Callable[[np.ndarray], Any], step: Step, length: int, steps: int) -> tuple[list[int], float]:
    """The tokens of a loop from a cache of this length, and tokens a second."""
    rng = np.random.default_rng(length)
    cache = start(rng.standard_normal((LAYERS, length, HEADS, WIDTH // HEADS)).astype(np.float32))
    token: Any = 1
    found = []
    begun = time.perf_counter()
    for _ in range(steps):
        token, cache = step(token, cache)
        found.append(int(token))
    return found, steps / (time.perf_counter() - begun)


def main() -> None:
    """Print a table, and the compilations of the program of dynamic sizes."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--steps", type=int, default=STEPS)
    steps = options.parse_args().steps
    ml.config.threads = 1
    p = parameters()
    start, run, program = with_mlirml(p)
    systems: dict[str, tuple[Any, Step]] = {"mlirml": (start, run)}
    for name, make in (("torch", with_torch), ("jax", lambda p: with_jax(p, max(STARTS) + steps))):
        try:
            systems[name] = make(p)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    print("cache, tokens   " + "".join(f"{name:>12}" for name in systems) + "   (tokens a second)")
    for length in STARTS:
        best = dict.fromkeys(systems, 0.0)
        for _ in range(REPEATS + 1):
            texts = {}
            for name, (begin, step) in systems.items():
                texts[name], speed = decoded(begin, step, length, steps)
                best[name] = max(best[name], speed)
            assert len({tuple(text[:8]) for text in texts.values()}) == 1, f"the systems write different texts: {texts}"
        print(f"{length:5} to {length + steps:<5} " + "".join(f"{speed:12.0f}" for speed in best.values()), flush=True)
    print(program.explain().splitlines()[0])


if __name__ == "__main__":
    main()
