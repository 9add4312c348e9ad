"""Gradients that compute elements again keep less, and give the numbers of the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.cli.explain import follow
from mlirml.core.tree import flatten
from mlirml.pipelines.tensor import recompute_elements

RNG = np.random.default_rng(0)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.8 * (x + 0.045 * x**3)))


def chain(x: Any, v: Any, w: Any) -> Any:
    hidden = x + gelu(x @ v) @ w
    return np.mean((hidden + gelu(hidden @ v) @ w) ** 2)


def with_bias(x: Any, v: Any, w: Any) -> Any:
    hidden = np.exp(-np.sin(x @ v + v[0])) * np.cos(x @ v)
    return np.sum(np.tanh(hidden @ w) * np.sin(x[:, :1]))


def normalized(x: Any, v: Any, w: Any) -> Any:
    hidden = x @ v
    shares = np.exp(hidden - np.max(hidden, axis=1, keepdims=True))
    shares = shares / np.sum(shares, axis=1, keepdims=True)
    centred = np.sin(shares @ w) - np.mean(x, axis=1, keepdims=True)
    return np.sum(centred / np.sqrt(np.mean(centred**2) + 0.1))


def turned(x: Any, v: Any, w: Any) -> Any:
    hidden = np.sin(x.T) * np.exp(x.T)
    return np.sum(np.cos(hidden.T @ v) @ w * hidden.T)


@pytest.mark.parametrize(("function", "some"), [(chain, True), (with_bias, True), (normalized, False), (turned, False)])
def test_gradients_give_the_numbers_of_the_reference(
    function: Callable[..., Any], some: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    match, built = recompute_elements.match_recomputation, []

    def always(op: Any, places: Any, costly: Any, least: int) -> recompute_elements.Recomputation:
        built.append(match(op, places, costly, 1))
        return built[-1]

    monkeypatch.setattr(recompute_elements, "match_recomputation", always)
    arguments = [0.5 * RNG.standard_normal(shape) for shape in ((9, 5), (5, 12), (12, 5))]
    gradient = ml.value_and_grad(function, (0, 1, 2))
    expected = ml.compile(gradient, target="reference")(*arguments)
    for ours, theirs in zip(flatten(ml.compile(gradient)(*arguments))[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    assert bool(built) == some


def test_a_chain_of_layers_keeps_one_tensor_before_each_activation_and_one_behind() -> None:
    arguments = [RNG.standard_normal(shape).astype(np.float32) for shape in ((256, 64), (64, 1024), (1024, 64))]
    program = ml.compile(ml.grad(chain, (1, 2)))
    kept = follow(program, *arguments).artifact.workspace_bytes
    assert kept < 5.5 * 256 * 1024 * 4  # of each layer two, and a cotangent; six without
