"""Whole models on a device: training, a transformer block, batches and gradients, as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from benchmarks.workloads import block, block_arguments
from examples.digits import MODELS, Model, load, training_step
from mlirml.core.tree import flatten
from mlirml.runtime.device import device
from tests.targets.drivers import on_devices

pytestmark = on_devices
RNG = np.random.default_rng(0)


def samples(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def close(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    for one, other in zip(flatten(found)[0], flatten(expected)[0], strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "model",
    [MODELS[0], *(pytest.param(model, marks=pytest.mark.large) for model in MODELS[1:])],
    ids=lambda model: model.name.split(",")[0],
)
def test_training(model: Model, target: str) -> None:
    digits = load()
    step = training_step(model)
    there = ml.compile(step.fn, target=target)
    rate = np.float32(model.rate)
    params = model.random_params()
    state = params, {name: np.zeros_like(w) for name, w in params.items()}
    images, labels = digits.images[:32], digits.labels[:32].astype(np.int32)
    moved, batch = ml.put(state, target), ml.put((images, labels), target)
    losses = []
    for number in range(4):
        loss, *state = step(*state, images, labels, rate)
        counter: Any = device(target).driver
        before = counter.native.bytes_in, counter.native.bytes_out
        found, *moved = there(*moved, *batch, rate)
        # The weights stay where they are; only the rate, a number, is sent, and constants when the program is loaded.
        assert counter.native.bytes_out == before[1]
        assert counter.native.bytes_in - before[0] <= (4 if number else 260)
        losses.append((loss, found))
    for loss, found in losses:
        np.testing.assert_allclose(float(found), loss, rtol=1e-5)
    assert float(losses[-1][1]) < float(losses[0][1])
    close(moved, state)


def test_a_transformer_block_and_its_gradient(target: str) -> None:
    x, params = block_arguments(16, 48)

    def loss(params: Any, x: Any) -> Any:
        return np.mean(block(x, params) ** 2)

    gradient = ml.value_and_grad(loss)
    close(ml.compile(gradient, target=target)(params, x), ml.compile(gradient)(params, x))


def test_batches_and_second_derivatives(target: str) -> None:
    def energy(x: Any) -> Any:
        return np.sum(np.sin(x) * x[::-1] ** 2)

    x = samples(6, 5)
    for function in (ml.vmap(energy), ml.vmap(ml.grad(energy)), ml.vmap(ml.hessian(energy))):
        close(ml.compile(function, target=target)(x), ml.compile(function)(x))


def test_raised_loops(target: str) -> None:
    def product(a, b, c):  # type: ignore[no-untyped-def]
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]

    a, b, c = samples(20, 30), samples(30, 25), samples(20, 25)
    expected = c + a @ b
    there = ml.put(c, target)
    ml.compile(product, target=target)(ml.put(a, target), ml.put(b, target), there)
    np.testing.assert_allclose(there.numpy(), expected, rtol=1e-5, atol=1e-6)
