"""Random numbers beside NumPy's generator, and JAX where it is installed: `python -m benchmarks.random_numbers`."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from mlirml import random

COUNT = 1_000_000
REPEATS = 7
# A name, the function of a key and a dtype, NumPy's, and the name in `jax.random` with its parameters.
ROWS: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    ("uniform", lambda k, t: random.uniform(k, (COUNT,), t), lambda g, t: g.random(COUNT, t), ()),
    ("normal", lambda k, t: random.normal(k, (COUNT,), t), lambda g, t: g.standard_normal(COUNT, t), ()),
    (
        "exponential",
        lambda k, t: random.exponential(k, (COUNT,), t),
        lambda g, t: g.standard_exponential(COUNT, t),
        (),
    ),
    ("gamma", lambda k, t: random.gamma(k, 2.5, (COUNT,), t), lambda g, t: g.standard_gamma(2.5, COUNT, t), (2.5,)),
    ("poisson", lambda k, t: random.poisson(k, 4.0, (COUNT,)), lambda g, t: g.poisson(4.0, COUNT), (4.0,)),
    ("permutation", lambda k, t: random.permutation(k, COUNT), lambda g, t: g.permutation(COUNT), (COUNT,)),
    (
        "sum of normal",
        lambda k, t: np.sum(random.normal(k, (COUNT,), t)),
        lambda g, t: g.standard_normal(COUNT, t).sum(),
        (),
    ),
]  # fmt: skip


def seconds(function: Callable[[], Any]) -> float:
    """The shortest time of a call."""
    function()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def by_jax(name: str, parameters: tuple[Any, ...], dtype: type) -> float | None:
    """The time of `jax.random`, or None where there is none."""
    if importlib.util.find_spec("jax") is None or " " in name:
        return None
    import jax

    jax.config.update("jax_enable_x64", True)
    options = {} if name == "permutation" else {"shape": (COUNT,)}
    if name not in ("permutation", "poisson"):
        options["dtype"] = dtype  # type: ignore[assignment]
    draw = jax.jit(lambda key: getattr(jax.random, name)(key, *parameters, **options))
    key = jax.random.key(0)
    return seconds(lambda: draw(key).block_until_ready())


def main() -> None:
    """Print a table of milliseconds for a million numbers."""
    generator, key = np.random.default_rng(0), random.key(0)
    print(f"{'':16}{'':9}{'numpy':>9}{'mlirml':>9}{'jax':>9}   ms for {COUNT:,}, {ml.config.threads or 'all'} threads")
    for name, draw, numpys, parameters in ROWS:
        for dtype in (np.float32, np.float64):
            compiled = ml.compile(lambda k, draw=draw, dtype=dtype: draw(k, dtype))
            times = [
                seconds(lambda f=numpys, t=dtype: f(generator, t)),
                seconds(lambda f=compiled: f(key)),
                by_jax(name, parameters, dtype),
            ]
            shown = "".join(f"{'-' if t is None else f'{1e3 * t:.2f}':>9}" for t in times)
            print(f"{name:16}{dtype.__name__:9}{shown}", flush=True)


if __name__ == "__main__":
    main()
