"""The adaptive softmax: values and derivatives of torch's, uncompiled and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, random

RNG = np.random.default_rng(4)
KEY = random.key(3)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize(("cutoffs", "bias", "div"), [([3, 7], True, 2.0), ([5], False, 4.0), ([1, 2, 9], False, 2.0)])
def test_it_is_that_of_torch(cutoffs: list[int], bias: bool, div: float) -> None:
    torch = pytest.importorskip("torch")
    layer = nn.AdaptiveLogSoftmaxWithLoss.init(KEY, 16, 12, cutoffs, div, bias, np.float64)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 12, cutoffs, div, bias, dtype=torch.float64)
    theirs.head.weight.data = torch.tensor(layer.head.weight)
    if bias:
        theirs.head.bias.data = torch.tensor(layer.head.bias)
    for mine, other in zip(layer.tail, theirs.tail, strict=True):
        for number in (0, 1):
            assert other[number].weight.shape == mine.layers[number].weight.shape
            other[number].weight.data = torch.tensor(mine.layers[number].weight)
    x, y = array(30, 16), np.concatenate([np.arange(12), RNG.integers(0, 12, 18)])
    wanted = theirs(torch.tensor(x), torch.tensor(y))
    wanted.loss.backward()
    for run in (lambda f: f, ml.compile):
        output, loss = run(lambda layer, x, y: layer(x, y))(layer, x, y)
        np.testing.assert_allclose(output, wanted.output.detach(), rtol=1e-12)
        np.testing.assert_allclose(loss, wanted.loss.detach(), rtol=1e-12)
        np.testing.assert_allclose(
            run(lambda layer, x: layer.log_prob(x))(layer, x), theirs.log_prob(torch.tensor(x)).detach(), rtol=1e-12
        )
        found = run(lambda layer, x: layer.predict(x))(layer, x)
        assert np.array_equal(found, theirs.predict(torch.tensor(x)))
    gradient = ml.compile(ml.grad(lambda layer, x, y: layer(x, y)[1]))(layer, x, y)
    np.testing.assert_allclose(gradient.head.weight, theirs.head.weight.grad, rtol=1e-9, atol=1e-12)
    for mine, other in zip(gradient.tail, theirs.tail):
        for number in (0, 1):
            np.testing.assert_allclose(mine.layers[number].weight, other[number].weight.grad, rtol=1e-9, atol=1e-12)


def test_one_row_and_probabilities_that_add_up() -> None:
    layer, x = nn.AdaptiveLogSoftmaxWithLoss.init(KEY, 16, 12, [3, 7]), array(16).astype(np.float32)
    output, loss = layer(x, np.int64(8))
    every = layer.log_prob(x)
    assert output.shape == () and output == -loss and every.shape == (12,) and layer.predict(x) == np.argmax(every)
    np.testing.assert_allclose(output, every[8], rtol=1e-6)
    np.testing.assert_allclose(np.sum(np.exp(every)), 1, rtol=1e-6)


def test_errors() -> None:
    layer: Any = nn.AdaptiveLogSoftmaxWithLoss.init(KEY, 16, 12, [3, 7])
    with pytest.raises(ml.ArgumentError, match=r"cutoffs must be integers from 1 to 11 that grow, got \[3, 3\]"):
        nn.AdaptiveLogSoftmaxWithLoss.init(KEY, 16, 12, [3, 3])
    with pytest.raises(ml.ShapeError, match=r"the input must be \[N, 16\], N may be missing, got f64\[2,3\]"):
        layer(array(2, 3), np.array([1, 2]))
    with pytest.raises(ml.ShapeError, match=r"the target must have shape \[2\], got i64\[3\]"):
        layer(array(2, 16), np.array([1, 2, 3]))
    with pytest.raises(ml.DTypeError, match=r"the target must hold classes, got f64\[2\]"):
        layer(array(2, 16), np.array([1.0, 2.0]))
    with pytest.raises(IndexError):
        layer(array(2, 16), np.array([1, 12]))
    with pytest.raises(ml.IndexOutOfBoundsError):
        ml.compile(lambda x, y: layer(x, y))(array(2, 16), np.array([1, 12]))
