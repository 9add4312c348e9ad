"""Programs that go through their examples block by block give the numbers of those that do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from benchmarks.gradients.functions import bundle, gmm
from benchmarks.workloads import WORKLOADS
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.block_examples import BlockExamplesPass
from mlirml.pipelines.tensor.tiling.cluster import Cluster

RNG = np.random.default_rng(0)
COUNT = 203


def data(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(0.5 * RNG.standard_normal(shape) for shape in shapes)


def layers(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w)
    return np.sum(np.tanh(hidden @ v) * np.exp(-hidden) @ w.T[:, :1])


def per_example(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w)
    out = np.exp(-hidden) @ v
    return np.sum(out * hidden, axis=0), np.sum(out, axis=1), hidden


def normalized(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w) * np.cos(x @ w)
    scale = np.sqrt(np.mean((hidden @ v) ** 2, axis=0))
    out = np.exp(-hidden) / scale
    return np.sum(out * np.sin(hidden @ v), axis=0), np.max(hidden, axis=0)


def with_each_other(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w)
    return np.sum(np.exp(hidden @ hidden.T) @ hidden, axis=0), np.sum(np.sin(hidden) * np.exp(hidden), axis=0)


def largest(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w)
    out = np.sin(hidden @ v) - hidden
    return np.max(out, axis=0), np.min(np.exp(out) * hidden, axis=0), np.sum(out > 0, axis=0)


def mixed(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x.astype(np.float32) @ w.astype(np.float32)).astype(np.float64)
    out = np.sin(hidden @ v) - hidden
    return out.T @ np.exp(out), np.sum(np.where(out > 0, hidden, out) * hidden, axis=(0, 1))


def columns(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w)
    out = np.zeros((x.shape[0], 2, 3))
    out[:, 0, 0] = hidden[:, 3] * np.sin(hidden[:, 1])
    out[:, 1] = np.exp(hidden[:, 2:5])
    out[:, 0, 2] = np.sum(hidden, axis=1)
    return out, np.sum(np.stack([out[:, 0, 1:], out[:, 1, :2] * hidden[:, 4:6]], axis=1), axis=0)


def rows(w: Any, v: Any, x: Any) -> Any:
    hidden = np.exp(np.tanh(x @ w).T)
    whole = np.zeros((18, x.shape[0]))
    whole[1:17] = hidden
    whole[17] = hidden[3] * x[:, 2]
    return np.sum(np.sin(whole[2:]) * whole[:-2], axis=1), np.concatenate([x[1:], x[:1]])


def picked(w: Any, v: Any, x: Any) -> Any:
    places = np.arange(x.shape[0]) * 5 % 16
    hidden = np.tanh(x @ w) * w.T[places, :1]
    return np.sum(np.sin(hidden) * np.exp(hidden), axis=0), np.sum(w.T[places] * x * np.sum(hidden, axis=1)[:, None])


def observations() -> tuple[np.ndarray, ...]:
    cameras, points, weights, camera, point, seen = WORKLOADS["gradients_bundle"].inputs(5, 9, COUNT)
    return cameras, points, weights, camera, point, seen


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], bool]] = {
    "layers": (ml.value_and_grad(layers, (0, 1)), data((7, 16), (16, 16), (COUNT, 7)), True),
    "per example": (per_example, data((7, 16), (16, 16), (COUNT, 7)), True),
    "normalized": (normalized, data((7, 16), (16, 16), (COUNT, 7)), True),
    "with each other": (with_each_other, data((7, 16), (16, 16), (COUNT, 7)), False),
    "largest": (largest, data((7, 16), (16, 16), (COUNT, 7)), True),
    "mixed": (mixed, data((7, 16), (16, 16), (COUNT, 7)), True),
    "columns": (columns, data((7, 16), (16, 16), (COUNT, 7)), True),
    "rows": (rows, data((7, 16), (16, 16), (COUNT, 7)), True),
    "picked": (ml.value_and_grad(lambda w, v, x: np.sum(picked(w, v, x)[0])), data((7, 16), (1,), (COUNT, 7)), True),
    "picked, all": (picked, data((7, 16), (1,), (COUNT, 7)), True),
    "columns, gradient": (
        ml.grad(lambda w, v, x: np.sum(np.sin(columns(w, v, x)[0]))),
        data((7, 16), (1,), (COUNT, 7)),
        True,
    ),
    "bundle": (ml.value_and_grad(bundle, (0, 1, 2)), observations(), True),
    "bundle, value": (bundle, observations(), False),
    "gmm, value": (gmm, data((4,), (4, 5), (4, 15), (COUNT, 5)), True),
    "gmm": (ml.grad(gmm, (0, 1, 2)), data((4,), (4, 5), (4, 15), (COUNT, 5)), True),
    "gmm, even": (ml.value_and_grad(gmm, (0, 1, 2)), data((4,), (4, 3), (4, 6), (240, 3)), True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_give_the_numbers_of_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def always(self: BlockExamplesPass, cluster: Cluster) -> int:
        if len(cluster.inner()) < 2:
            raise NoMatch("nothing to cut")
        return 24

    monkeypatch.setattr(BlockExamplesPass, "_length", always)
    function, arguments, cut = PROGRAMS[name]
    with ml.config.override(processor="sse4.1,l2=4K"):  # a cache as far as these tensors are large
        compiled = ml.compile(function)
    text = compiled.ir("optimize", *arguments)
    assert bool(re.search(r"scf\.for %\w+ = %c0 to %c\d+ step %c24", text)) == cut
    found, expected = compiled(*arguments), ml.compile(function, target="reference")(*arguments)
    for ours, theirs in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9 if name != "mixed" else 1e-4, atol=1e-9)


@pytest.mark.parametrize("sizes", ["10x25", "20x50", "64x25"])
def test_the_gradient_of_a_mixture_needs_little_memory(sizes: str) -> None:
    workload = WORKLOADS[f"gradients_gmm{sizes}"]
    arguments = workload.arguments(quick=False)
    with ml.config.override(processor="avx512,l2=2M"):
        text = ml.compile(ml.grad(gmm, workload.wrt)).ir("schedule", *arguments)
    found = re.search(r"mlirml.workspace = (\d+)", text)
    assert found is not None
    results = sum(arguments[place].nbytes for place in workload.wrt)
    whole = sum(x.nbytes for x in arguments) + results
    of_examples_and_clusters = 8 * len(arguments[0]) * len(arguments[3])
    # With d = 64 the matrices, and what is added to them, are as large as all that goes in and out.
    assert whole + int(found[1]) < (3 if sizes == "64x25" else 2) * whole + of_examples_and_clusters


def leaves(tree: Any) -> list[Any]:
    return [x for item in tree for x in leaves(item)] if isinstance(tree, tuple) else [tree]
