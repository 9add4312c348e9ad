"""Layers as objects: their results are those of torch's layers and of formulae, in all ways to call them."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, optim, random
from mlirml.core.tree import flatten
from mlirml.nn import functional as F

KEY = random.key(7)
RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def as_torch(layer: Any, theirs: Any) -> Any:
    """A layer of torch with the parameters of ours of the same names."""
    torch = pytest.importorskip("torch")
    for name, value in theirs.named_parameters():
        value.data = torch.tensor(getattr(layer, name))
    return theirs


LAYERS: list[tuple[str, Callable[[], Any], Callable[[Any], Any], tuple[int, ...]]] = [
    ("Linear", lambda: nn.Linear.init(KEY, 5, 3), lambda t: t.Linear(5, 3), (2, 4, 5)),
    ("without bias", lambda: nn.Linear.init(KEY, 5, 3, bias=False), lambda t: t.Linear(5, 3, bias=False), (5,)),
    ("Conv1d", lambda: nn.Conv1d.init(KEY, 4, 6, 3, stride=2, padding=1, groups=2),
     lambda t: t.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)),
    ("Conv2d", lambda: nn.Conv2d.init(KEY, 3, 5, (3, 1), padding="same"),
     lambda t: t.Conv2d(3, 5, (3, 1), padding="same"), (2, 3, 6, 7)),
    ("Conv3d", lambda: nn.Conv3d.init(KEY, 2, 3, 2, dilation=2, bias=False),
     lambda t: t.Conv3d(2, 3, 2, dilation=2, bias=False), (1, 2, 5, 4, 5)),
    ("ConvTranspose1d", lambda: nn.ConvTranspose1d.init(KEY, 4, 3, 3, 2, dilation=2),
     lambda t: t.ConvTranspose1d(4, 3, 3, 2, dilation=2), (2, 4, 5)),
    ("ConvTranspose3d", lambda: nn.ConvTranspose3d.init(KEY, 2, 3, (2, 3, 2), 2, 1, bias=False),
     lambda t: t.ConvTranspose3d(2, 3, (2, 3, 2), 2, 1, bias=False), (1, 2, 3, 4, 3)),
    ("ConvTranspose2d", lambda: nn.ConvTranspose2d.init(KEY, 4, 6, 3, 2, 1, 1, 2),
     lambda t: t.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2), (2, 4, 5, 4)),
    ("MaxPool1d", lambda: nn.MaxPool1d(2), lambda t: t.MaxPool1d(2), (2, 3, 8)),
    ("MaxPool2d", lambda: nn.MaxPool2d(3, 2, 1), lambda t: t.MaxPool2d(3, 2, 1), (2, 3, 8, 7)),
    ("MaxPool3d", lambda: nn.MaxPool3d(2, ceil_mode=True), lambda t: t.MaxPool3d(2, ceil_mode=True), (1, 2, 5, 4, 3)),
    ("AvgPool1d", lambda: nn.AvgPool1d(3, 1, 1), lambda t: t.AvgPool1d(3, 1, 1), (2, 3, 8)),
    ("AvgPool2d", lambda: nn.AvgPool2d((2, 3)), lambda t: t.AvgPool2d((2, 3)), (2, 3, 8, 7)),
    ("AvgPool3d", lambda: nn.AvgPool3d(2), lambda t: t.AvgPool3d(2), (1, 2, 4, 4, 6)),
    ("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(3), lambda t: t.AdaptiveAvgPool1d(3), (2, 3, 8)),
    ("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d((3, 1)), lambda t: t.AdaptiveAvgPool2d((3, 1)), (2, 3, 8, 7)),
    ("AdaptiveAvgPool3d", lambda: nn.AdaptiveAvgPool3d(2), lambda t: t.AdaptiveAvgPool3d(2), (1, 2, 4, 5, 6)),
    ("AdaptiveMaxPool1d", lambda: nn.AdaptiveMaxPool1d(3), lambda t: t.AdaptiveMaxPool1d(3), (2, 3, 8)),
    ("AdaptiveMaxPool2d", lambda: nn.AdaptiveMaxPool2d(2), lambda t: t.AdaptiveMaxPool2d(2), (2, 3, 8, 7)),
    ("AdaptiveMaxPool3d", lambda: nn.AdaptiveMaxPool3d(2), lambda t: t.AdaptiveMaxPool3d(2), (1, 2, 4, 5, 6)),
    ("LayerNorm", lambda: nn.LayerNorm(array(5, 4), array(5, 4), (5, 4)), lambda t: t.LayerNorm((5, 4)), (2, 5, 4)),
    ("LayerNorm without bias", lambda: nn.LayerNorm(array(4), None, (4,)),
     lambda t: t.LayerNorm(4, bias=False), (3, 4)),
    ("RMSNorm", lambda: nn.RMSNorm(array(6), (6,), 1e-5), lambda t: t.RMSNorm(6, 1e-5), (2, 3, 6)),
    ("GroupNorm", lambda: nn.GroupNorm(array(6), array(6), 3), lambda t: t.GroupNorm(3, 6), (2, 6, 4, 3)),
    ("InstanceNorm", lambda: nn.InstanceNorm(array(3), array(3)),
     lambda t: t.InstanceNorm2d(3, affine=True), (2, 3, 5, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "ours", "theirs", "shape"), LAYERS, ids=[case[0] for case in LAYERS])
def test_a_layer_is_that_of_torch(name: str, ours: Any, theirs: Any, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    layer, x = ours(), array(*shape)
    expected = as_torch(layer, theirs(torch.nn))(torch.tensor(x)).detach().numpy()
    for found in (layer(x), ml.compile(lambda layer, x: layer(x))(layer, x)):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "ours", "theirs", "shape"), LAYERS, ids=[case[0] for case in LAYERS])
def test_compiled_batched_and_differentiated(name: str, ours: Any, theirs: Any, shape: tuple[int, ...]) -> None:
    layer, x = ours(), array(*shape)
    expected = layer(x)
    np.testing.assert_allclose(ml.compile(lambda layer, x: layer(x))(layer, x), expected, rtol=2e-5, atol=2e-6)
    many = ml.vmap(lambda layer, x: layer(x), in_axes=(None, 0))(layer, np.stack([x, 2 * x]))
    np.testing.assert_allclose(many, np.stack([expected, layer(2 * x)]), rtol=2e-5, atol=5e-6)
    leaves, structure = flatten(layer)
    weights = array(*expected.shape)
    gradient = ml.grad(lambda layer: np.sum(layer(x) * weights))(layer) if leaves else layer
    found, same = flatten(gradient)
    assert same == structure and [g.shape for g in found] == [p.shape for p in leaves]
    for number, (leaf, slope) in enumerate(zip(leaves, found)):  # along a random direction
        direction = array(*leaf.shape)
        values = [
            float(np.sum(structure.unflatten(
                [p.astype(float) + step * direction if i == number else p.astype(float) for i, p in enumerate(leaves)]
            )(x.astype(float)) * weights))
            for step in (-1e-5, 1e-5)
        ]  # fmt: skip
        assert np.sum(slope * direction) == pytest.approx((values[1] - values[0]) / 2e-5, rel=1e-3, abs=1e-3)


def test_linear_by_formula_and_its_first_weights() -> None:
    layer = nn.Linear.init(KEY, 400, 300)
    x = array(7, 400)
    np.testing.assert_allclose(layer(x), x @ layer.weight.T + layer.bias, rtol=1e-6)
    for values in (layer.weight, layer.bias):
        assert np.abs(values).max() <= 1 / 20 and np.std(values) == pytest.approx(1 / 20 / np.sqrt(3), rel=0.1)
    assert not np.array_equal(layer.weight, nn.Linear.init(random.key(8), 400, 300).weight)
    assert np.array_equal(layer.weight, ml.compile(lambda key: nn.Linear.init(key, 400, 300))(KEY).weight)


def test_batch_norm_returns_new_statistics() -> None:
    layer = nn.BatchNorm(array(3), array(3), 3, 1e-3, 0.2)
    state = nn.BatchStatistics(array(3), np.abs(array(3)))
    kept = copy.deepcopy(state)
    x = array(4, 3, 5)
    wide = x.astype(float)
    mean, variance = wide.mean((0, 2)), wide.var((0, 2))
    y = (wide - mean[:, None]) / np.sqrt(variance + 1e-3)[:, None] * layer.weight[:, None] + layer.bias[:, None]
    step = ml.compile(lambda layer, x, state: layer(x, state, training=True))
    for run in (lambda *given: layer(x, state, training=True), step):
        found, after = run(layer, x, state)
        np.testing.assert_allclose(found, y, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(after.mean, 0.8 * state.mean + 0.2 * mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(after.variance, 0.8 * state.variance + 0.2 * variance * 20 / 19, rtol=1e-5)
        assert np.array_equal(state.mean, kept.mean) and np.array_equal(state.variance, kept.variance)
    found, after = layer(x, state)
    expected = (wide - state.mean[:, None]) / np.sqrt(state.variance + 1e-3)[:, None]
    np.testing.assert_allclose(found, expected * layer.weight[:, None] + layer.bias[:, None], rtol=1e-4, atol=1e-5)
    assert after is state


def test_batch_norm_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    layer = nn.BatchNorm.init(3)
    theirs, state = as_torch(layer, torch.nn.BatchNorm2d(3)), layer.init_state()
    for training in (True, True, False):
        theirs.train(training)
        x = array(4, 3, 5, 2)
        found, state = layer(x, state, training)
        np.testing.assert_allclose(found, theirs(torch.tensor(x)).detach(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.mean, theirs.running_mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state.variance, theirs.running_var, rtol=1e-5)


def test_dropout_by_a_key() -> None:
    layer, x = nn.Dropout(0.25), np.ones((100, 100), np.float32)
    assert layer(x) is x
    found = layer(x, KEY)
    assert set(np.unique(found)) == {0, np.float32(1 / 0.75)} and np.mean(found == 0) == pytest.approx(0.25, abs=0.02)
    assert np.array_equal(ml.compile(lambda layer, x, key: layer(x, key))(layer, x, KEY), found)
    assert np.array_equal(ml.grad(lambda x: np.sum(layer(x, KEY)))(x), found)
    assert not np.array_equal(found, layer(x, random.key(8)))
    assert F.dropout(x, 1.0, key=KEY).max() == 0
    with pytest.raises(ml.UnsupportedSyntaxError) as error:
        F.dropout(x, 0.5)
    assert "key" in str(error.value)


def test_embedding() -> None:
    layer = nn.Embedding.init(KEY, 10, 4)
    tokens = np.array([[1, 2], [9, 1]])
    assert np.array_equal(layer(tokens), layer.weight[tokens])
    gradient = ml.compile(ml.grad(lambda layer: np.sum(layer(tokens))))(layer)
    assert gradient.weight[:, 0].tolist() == [0, 2, 1, 0, 0, 0, 0, 0, 0, 1]


def network() -> nn.Sequential:
    keys = random.split(KEY, 2)
    return nn.Sequential(
        [nn.Linear.init(keys[0], 4, 16), nn.BatchNorm.init(16), F.relu, nn.Dropout(0.1), nn.Linear.init(keys[1], 16, 1)]
    )


def test_a_sequence_calls_its_layers_in_order() -> None:
    model = network()
    x, state = array(8, 4), model.init_state()
    assert [type(one).__name__ for one in state] == ["NoneType", "BatchStatistics", "NoneType", "NoneType", "NoneType"]
    h, after = model.layers[1](model.layers[0](x), state[1], training=True)
    h = model.layers[3](F.relu(h), random.fold_in(KEY, 3))
    found, states = model(x, key=KEY, state=state, training=True)
    np.testing.assert_array_equal(found, model.layers[4](h))
    np.testing.assert_array_equal(states[1].mean, after.mean)
    nested = nn.Sequential([nn.Sequential(model.layers[:2]), *model.layers[2:4], nn.Sequential(model.layers[4:])])
    again, _ = nested(x, state=nested.init_state())
    np.testing.assert_array_equal(again, model(x, state=state)[0])
    with pytest.raises(ml.ArgumentError, match="layer 1, a BatchNorm, needs its running statistics"):
        model(x)
    with pytest.raises(ml.ArgumentError, match="a state of 1 items is no state of 5 layers"):
        model(x, state=[None])


@pytest.mark.parametrize(
    "optimiser", [optim.adamw(3e-2), optim.sgd(0.01, momentum=0.9), optim.accumulate(optim.adam(0.03), 2)]
)
def test_a_model_trains(optimiser: optim.Optimiser) -> None:
    @dataclasses.dataclass
    class Model:
        body: nn.Sequential
        scale: Any
        power: int = ml.static_field(default=1)

        def __call__(self, x: Any, **options: Any) -> Any:
            y, state = self.body(x, **options)
            return y[:, 0] * self.scale**self.power, state

    def loss(model: Model, state: Any, key: Any) -> Any:
        found, state = model(x, key=key, state=state, training=True)
        return np.mean((found - y) ** 2), state

    @ml.compile
    def step(model: Model, state: Any, rest: Any, key: Any) -> Any:
        (value, state), gradient = ml.value_and_grad(loss, has_aux=True)(model, state, key)
        model, rest = optimiser.update(gradient, rest, model)
        return value, model, state, rest

    x = array(64, 4)
    y = x[:, 0] * 2 + np.abs(x[:, 1])
    model = Model(network(), np.ones((), np.float32), 2)
    state, rest = model.body.init_state(), optimiser.init(model)
    losses = []
    for number in range(200):
        value, model, state, rest = step(model, state, rest, random.fold_in(KEY, number))
        losses.append(float(value))
    assert np.mean(losses[-10:]) < 0.1 * losses[0]
    assert type(model.power) is int and model.power == 2 and type(model.body.layers[3].p) is float
    assert isinstance(model, Model) and model.body.layers[2] is F.relu
    plain, _ = model(x, state=state)
    compiled, _ = ml.compile(lambda model, x, state: model(x, state=state))(model, x, state)
    np.testing.assert_allclose(compiled, plain, rtol=1e-4, atol=1e-5)
    assert np.mean((plain - y) ** 2) < 0.1 * losses[0]
    assert "1 signature(s)" in step.explain()


def test_a_layer_that_a_function_closes_over_is_read_at_each_call() -> None:
    layer = nn.Linear.init(KEY, 3, 2)
    f, x = ml.compile(lambda x: layer(x)), array(4, 3)
    np.testing.assert_allclose(f(x), layer(x), rtol=1e-6)
    layer.weight[:] = 2
    np.testing.assert_allclose(f(x), layer(x), rtol=1e-6)
    layer.weight = np.zeros_like(layer.weight)
    layer.bias = None
    assert not f(x).any()


def test_a_layer_is_shown_without_its_numbers() -> None:
    assert repr(nn.Conv2d.init(KEY, 3, 8, 3, padding=1)) == "Conv2d(weight=f32[8,3,3,3], bias=f32[8], padding=1)"
    assert repr(network()) == (
        "Sequential(layers=[Linear(weight=f32[16,4], bias=f32[16]), "
        "BatchNorm(weight=f32[16], bias=f32[16], channels=16), relu, Dropout(p=0.1), "
        "Linear(weight=f32[1,16], bias=f32[1])])"
    )


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_parameters_of_another_dtype(dtype: str) -> None:
    layer = nn.Conv2d.init(KEY, 3, 4, 3, dtype=dtype)
    assert layer.weight.dtype == layer.bias.dtype == dtype
    assert layer(array(1, 3, 5, 5).astype(dtype)).dtype == dtype


@pytest.mark.parametrize("name", [n for n in nn.__all__ if ">>>" in (inspect.getdoc(getattr(nn, n)) or "")])
def test_examples_of_docstrings(name: str) -> None:
    value = getattr(nn, name)
    module = inspect.getmodule(value)
    assert module is not None
    for test in doctest.DocTestFinder(recurse=False).find(value, name, module, vars(module) | {"np": np}):
        assert test.examples and doctest.DocTestRunner().run(test).failed == 0


def test_public_names_have_docstrings() -> None:
    assert [name for name in nn.__all__ if not inspect.getdoc(getattr(nn, name))] == []
    functions = [getattr(nn.initializers, name) for name in nn.initializers.__all__]
    assert all(inspect.getdoc(function) for function in functions)


def test_an_option_in_a_list_is_kept_as_a_tuple() -> None:
    layer = nn.Conv2d.init(KEY, 3, 4, 3, stride=[2, 1])
    assert layer.stride == (2, 1)
    x = array(1, 3, 7, 7)
    np.testing.assert_allclose(ml.compile(lambda layer, x: layer(x))(layer, x), layer(x), rtol=1e-5, atol=1e-6)
