"""Poolings with positions, their inverse, random windows and powers, and activations that draw, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, random
from mlirml.nn import functional as F

RNG = np.random.default_rng(3)
KEY = random.key(5)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 2, "dilation": 2, "stride": 1, "ceil_mode": True},
        {"kernel_size": 3, "stride": 4, "padding": 1, "ceil_mode": True},
    ],
)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_positions_are_those_of_torch(rank: int, options: dict[str, Any], compiled: bool) -> None:
    torch = pytest.importorskip("torch")
    x = RNG.integers(-3, 3, (2, 3, *(8, 7, 6)[:rank])).astype(np.float64)  # with ties
    pool = getattr(F, f"max_pool{rank}d_with_indices")

    def call(x: Any) -> Any:
        return pool(x, **options)

    values, indices = (ml.compile(call) if compiled else call)(x)
    theirs = getattr(torch.nn.functional, f"max_pool{rank}d")(torch.tensor(x), return_indices=True, **options)
    np.testing.assert_array_equal(values, theirs[0].numpy())
    np.testing.assert_array_equal(indices, theirs[1].numpy())
    assert indices.dtype == np.int64


def test_padding_is_never_the_largest() -> None:
    values, indices = F.max_pool1d_with_indices(np.full((1, 4), -np.inf), 3, 1, 1)
    assert values.tolist() == [[-np.inf] * 4]
    assert indices.tolist() == [[0, 0, 1, 2]]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_is_that_of_torch_with_its_derivative(rank: int) -> None:
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((2, 3, *(8, 7, 6)[:rank]))
    values, indices = getattr(F, f"max_pool{rank}d_with_indices")(x, 2)
    unpool = getattr(F, f"max_unpool{rank}d")
    weights = RNG.standard_normal(x.shape)

    def loss(values: Any, indices: Any) -> Any:
        return np.sum(unpool(values, indices, 2, output_size=x.shape) * weights)

    given = torch.tensor(values, requires_grad=True)
    theirs = getattr(torch.nn.functional, f"max_unpool{rank}d")(given, torch.tensor(indices), 2, output_size=x.shape)
    (theirs * torch.tensor(weights)).sum().backward()
    np.testing.assert_array_equal(unpool(values, indices, 2, output_size=x.shape), theirs.detach().numpy())
    value, gradient = ml.compile(ml.value_and_grad(loss))(values, indices)
    np.testing.assert_allclose(value, (theirs * torch.tensor(weights)).sum().item())
    np.testing.assert_allclose(gradient, given.grad.numpy())
    layer = getattr(nn, f"MaxUnpool{rank}d")(2)
    np.testing.assert_array_equal(layer(values, indices, x.shape[2:]), theirs.detach().numpy())


def test_the_derivative_of_pooling_with_positions_goes_to_the_maxima() -> None:
    x = np.array([[1.0, 3.0, 2.0, 0.0]])
    slope = ml.compile(ml.grad(lambda x: np.sum(F.max_pool1d_with_indices(x, 2)[0] * np.array([5.0, 7.0]))))(x)
    assert slope.tolist() == [[0, 5, 7, 0]]


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_windows_are_those_of_torch(rank: int) -> None:
    torch = pytest.importorskip("torch")
    x, samples = RNG.standard_normal((2, 3, *(9, 8, 7)[:rank])), RNG.random((2, 3, rank))
    pool = getattr(F, f"fractional_max_pool{rank}d")
    theirs = getattr(torch.nn.functional, f"fractional_max_pool{rank}d")
    for kernel, sizes in ((2, (4, 5, 3)[:rank]), ((3, 1, 2)[:rank], (2, 7, 5)[:rank])):
        expected = theirs(torch.tensor(x), kernel, sizes, _random_samples=torch.tensor(samples)).numpy()
        np.testing.assert_array_equal(pool(x, kernel, sizes, samples), expected)
        compiled = ml.compile(pool, static_argnums=(1, 2))
        np.testing.assert_array_equal(compiled(x, kernel, sizes, samples), expected)
    drawn = ml.compile(getattr(nn, f"FractionalMaxPool{rank}d")(2, 3))(x, KEY)
    assert drawn.shape == (2, 3, *[3] * rank)
    assert np.isin(drawn, x).all()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_power_poolings_and_their_derivatives_are_those_of_torch(rank: int) -> None:
    torch = pytest.importorskip("torch")
    x = RNG.uniform(0.5, 2, (2, 3, *(8, 7, 6)[:rank]))
    x[0, 0] = 0  # where torch takes 0 for the derivative
    for p, ceil_mode in ((2.0, False), (3.0, True)):
        given = torch.tensor(x, requires_grad=True)
        theirs = getattr(torch.nn.functional, f"lp_pool{rank}d")(given, p, 2, ceil_mode=ceil_mode)
        theirs.sum().backward()
        layer = getattr(nn, f"LPPool{rank}d")(p, 2, ceil_mode=ceil_mode)
        value, gradient = ml.value_and_grad(lambda x, layer=layer: np.sum(layer(x)))(x)
        np.testing.assert_allclose(layer(x), theirs.detach().numpy(), rtol=1e-12)
        np.testing.assert_allclose(value, theirs.sum().item(), rtol=1e-12)
        np.testing.assert_allclose(gradient, given.grad.numpy(), rtol=1e-10)


def test_activations_that_draw() -> None:
    x = RNG.standard_normal(2000)
    slopes = F.rrelu(x, 0.2, 0.4, training=True, key=KEY)[x < 0] / x[x < 0]
    assert 0.2 <= slopes.min() < 0.21 < 0.39 < slopes.max() <= 0.4
    np.testing.assert_allclose(F.rrelu(x), np.where(x >= 0, x, x * (1 / 8 + 1 / 3) / 2))

    logits = np.log(np.array([0.1, 0.2, 0.7]))
    keys = random.split(KEY, 3000)
    hard = ml.vmap(lambda key: F.gumbel_softmax(logits, 0.5, hard=True, key=key))(keys)
    assert set(np.unique(hard.round(12))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(0), [0.1, 0.2, 0.7], atol=0.03)
    noise, weights = RNG.standard_normal(3), np.array([1.0, 2.0, -3.0])
    slope = [
        ml.grad(lambda x, how=how: np.sum(F.gumbel_softmax(x, 0.5, hard=how, noise=noise) * weights))(logits)
        for how in (True, False)
    ]
    np.testing.assert_allclose(slope[0], slope[1])


def test_wrong_arguments_are_named() -> None:
    x = np.ones((2, 3, 8))
    for error, call, message in (
        (ml.ShapeError, lambda: F.max_unpool1d(x, np.zeros((2, 3, 7), int), 2), "the indices of its shape"),
        (ml.DTypeError, lambda: F.max_unpool1d(x, x, 2), "the indices must be integers"),
        (ml.ShapeError, lambda: F.max_unpool1d(x, x.astype(int), 2, output_size=(20,)), r"output_size must be \[16\]"),
        (IndexError, lambda: F.max_unpool1d(x, np.full(x.shape, 16), 2), "out of bounds"),
        (IndexError, lambda: ml.compile(lambda x, i: F.max_unpool1d(x, i, 2))(x, np.full(x.shape, 16)), "16"),
        (ml.ShapeError, lambda: F.fractional_max_pool2d(x, 2, 9, key=KEY), "more than f64"),
        (ml.ShapeError, lambda: F.fractional_max_pool2d(x, 2, 2, np.zeros((2, 3))), "samples must have shape"),
        (ml.UnsupportedSyntaxError, lambda: F.fractional_max_pool2d(x, 2, 2), "drawn by keys"),
        (ml.UnsupportedSyntaxError, lambda: F.rrelu(x, training=True), "drawn by keys"),
        (ml.UnsupportedSyntaxError, lambda: F.gumbel_softmax(x), "drawn by keys"),
        (ml.ShapeError, lambda: F.rrelu(x, 0.5, 0.1), "lower must not be above"),
        (ml.ShapeError, lambda: F.lp_pool1d(x, np.inf, 2), "norm_type must be a positive number"),
    ):
        with pytest.raises(error, match=message):
            call()
