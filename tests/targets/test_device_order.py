"""Programs of many launches on CUDA devices: as graphs, side by side, and one after another, with the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn
from mlirml.core.config import config
from mlirml.core.tree import flatten
from tests.targets.drivers import needs_cuda

pytestmark = needs_cuda
WAYS = {
    "graphs": {"graphs": True, "streams": 4},
    "streams": {"graphs": False, "streams": 4},
    "one by one": {"graphs": False, "streams": 1},
}


@pytest.fixture(autouse=True)
def native() -> Iterator[Any]:
    """The device; all kernels are worth a stream of their own, and four a graph."""
    found = ml.device("cuda").driver.native  # type: ignore[attr-defined]
    before = found.side_bytes, found.graph_commands
    found.side_bytes, found.graph_commands = 0, 4
    yield found
    found.side_bytes, found.graph_commands = before


def samples(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def branches(x: Any, w: Any) -> Any:
    """Products that need not wait for each other, and one that waits for all."""
    parts = [np.tanh(x @ w[i]) for i in range(5)]
    return parts[0] @ parts[1].T + parts[2] @ parts[3].T, np.sort(parts[4], axis=-1), np.cumsum(parts[0], axis=0)


def step(params: Any, x: Any, y: Any) -> Any:
    """A step of training of a small network."""

    def loss(params: Any) -> Any:
        hidden = np.tanh(x @ params["w"] + params["b"])
        return np.mean((hidden @ params["v"] - y) ** 2)

    value, gradient = ml.value_and_grad(loss)(params)
    return {name: params[name] - 0.1 * gradient[name] for name in params}, value


def attention(x: Any, w: Any) -> Any:
    """Queries, keys and values of one head, its output, and a norm."""
    q, k, v = x @ w[0], x @ w[1], x @ w[2]
    scores = q @ k.T / 4.0
    weights = np.exp(scores - np.max(scores, -1, keepdims=True))
    y = x + (weights / np.sum(weights, -1, keepdims=True)) @ v
    centred = y - np.mean(y, -1, keepdims=True)
    return nn.functional.gelu(centred / np.sqrt(np.mean(centred**2, -1, keepdims=True) + 1e-5) @ w[3]) @ w[4]


def repeated(x: Any, w: Any) -> Any:
    """Many launches in a loop of the host code, and a store into an argument."""
    y = ml.fori_loop(0, 12, lambda i, y: np.tanh(y @ w) + y[::-1] * 0.5, x)
    x[2:9] = y[:7]
    return y, np.argmax(y, axis=0)


def until(x: Any) -> Any:
    """A loop whose condition is read by the host, between launches."""
    return ml.while_loop(
        lambda s: np.max(np.abs(s[0])) > 0.5, lambda s: (np.sort(s[0] * 0.7 + 0.01, axis=0), s[1] + 1), (x, 0)
    )


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "branches": (branches, (samples(24, 32), samples(5, 32, 24))),
    "step": (step, ({"w": samples(20, 16), "b": samples(16), "v": samples(16, 3)}, samples(12, 20), samples(12, 3))),
    "attention": (attention, (samples(24, 16), samples(5, 16, 16))),
    "repeated": (repeated, (samples(12, 12), 0.1 * samples(12, 12, seed=1))),
    "until": (until, (samples(16, 8),)),
}


def leaves(x: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in flatten(x)[0]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ways_have_the_results_of_the_cpu(name: str, way: str, native: Any) -> None:
    function, arguments = PROGRAMS[name]
    compiled = ml.compile(function, target="cuda")
    on_cpu = ml.compile(function, target="cpu")
    graphs = native.graphs
    held = []
    with config.override(**WAYS[way]):
        for call in range(5):
            mine = ml.put(tuple(np.array(x) if isinstance(x, np.ndarray) else x for x in arguments), "cuda")
            held.append(compiled(*mine))
            if call == 2:
                del held[0]  # its memory is used again
    copies = tuple(np.array(x) if isinstance(x, np.ndarray) else x for x in arguments)
    expected = leaves(on_cpu(*copies))
    for results in held:
        for got, want in zip(leaves(results), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    for got, want in zip(leaves(mine), leaves(copies), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    assert (native.graphs > graphs) == (way == "graphs")


def test_training_with_donated_parameters(native: Any) -> None:
    params, x, y = PROGRAMS["step"][1]
    train = ml.compile(step, target="cuda", donate_argnums=0)
    on_cpu = ml.compile(step, target="cpu")
    mine, there = ml.put((dict(params), (x, y)), "cuda")
    expected: Any = params
    graphs = native.graphs
    for _ in range(6):
        mine, _ = train(mine, *there)
        expected, _ = on_cpu(expected, x, y)
    for name in params:
        np.testing.assert_allclose(mine[name].numpy(), expected[name], rtol=1e-4, atol=1e-5)
    assert native.graphs == graphs + 4
