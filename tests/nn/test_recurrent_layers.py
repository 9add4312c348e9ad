"""Recurrent layers: against formulae step by step, and torch; their loops, derivatives and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, optim, random

KEY = random.key(5)
RNG = np.random.default_rng(2)
TYPES: list[Any] = [nn.RNN, nn.LSTM, nn.GRU]


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=tolerance)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def stepped(layer: Any, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All outputs, and the last h and c, of one layer in one direction, for x [L, I] in float64."""
    w, u, b, d = (getattr(layer, n)[0].astype(float) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    outputs = []
    for row in x.astype(float):
        ours, theirs = w @ row + b, u @ h + d
        if isinstance(layer, nn.RNN):
            h = np.tanh(ours + theirs) if layer.nonlinearity == "tanh" else np.maximum(ours + theirs, 0)
        elif isinstance(layer, nn.LSTM):
            i, f, g, o = np.split(ours + theirs, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            (xr, xz, xn), (hr, hz, hn) = np.split(ours, 3), np.split(theirs, 3)
            z = sigmoid(xz + hz)
            h = (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h
        outputs.append(h)
    return np.stack(outputs), h, c


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("compiled", [False, True])
def test_one_layer_by_formula(type_: Any, compiled: bool) -> None:
    layer, x = type_.init(KEY, 4, 6), array(7, 4)
    call = ml.compile(lambda layer, x, state: layer(x, state)) if compiled else lambda layer, x, state: layer(x, state)
    h, c = array(1, 6), array(1, 6)
    state = (h, c) if type_ is nn.LSTM else h
    outputs, last_h, last_c = stepped(layer, x, h[0], c[0])
    found, after = call(layer, x, state)
    close(found, outputs)
    for one, expected in zip(after if type_ is nn.LSTM else [after], (last_h, last_c)):
        close(one, expected[None])
    close(call(layer, x, None)[0], stepped(layer, x, np.zeros(6), np.zeros(6))[0])
    first, state = call(layer, x[:3], None)
    second, _ = call(layer, x[3:], state)
    close(np.concatenate([first, second]), call(layer, x, None)[0])


def test_relu() -> None:
    layer, x = nn.RNN.init(KEY, 4, 6, nonlinearity="relu"), array(5, 4)
    close(layer(x)[0], stepped(layer, x, np.zeros(6), np.zeros(6))[0])
    with pytest.raises(ml.ArgumentError, match="nonlinearity must be 'tanh' or 'relu', got 'sin'"):
        nn.RNN.init(KEY, 4, 6, nonlinearity="sin")(x)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(("layers", "bidirectional", "bias"), [(1, False, True), (2, True, True), (3, False, False)])
def test_layers_are_those_of_torch(type_: Any, layers: int, bidirectional: bool, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    layer = type_.init(KEY, 4, 6, layers, bidirectional, bias)
    theirs = getattr(torch.nn, type_.__name__)(4, 6, layers, bidirectional=bidirectional, bias=bias, batch_first=True)
    for number in range(len(layer.weight_ih)):
        depth, way = divmod(number, 1 + bidirectional)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if bias else ("weight_ih", "weight_hh"):
            getattr(theirs, f"{name}_l{depth}{'_reverse' * way}").data = torch.tensor(getattr(layer, name)[number])
    x = array(3, 5, 4)
    first = tuple(array(len(layer.weight_ih), 3, 6) for _ in range(2))
    state = first if type_ is nn.LSTM else first[0]
    given = tuple(map(torch.tensor, first)) if type_ is nn.LSTM else torch.tensor(first[0])
    expected, after = theirs(torch.tensor(x), given)
    for call in (lambda layer, x, s: layer(x, s), ml.compile(lambda layer, x, s: layer(x, s))):
        found, last = call(layer, x, state)
        close(found, expected.detach())
        for ours, other in zip(last, after) if type_ is nn.LSTM else [(last, after)]:
            close(ours, other.detach())


@pytest.mark.parametrize("type_", TYPES)
def test_the_loop_over_time_stays_one(type_: Any) -> None:
    layer = type_.init(KEY, 4, 6)
    program = ml.compile(lambda layer, x: layer(x))
    short, long = (str(program.ir("capture", layer, array(n, 4))) for n in (10, 500))
    assert short.count("scf.for") == long.count("scf.for") == 1
    assert len(long) < 1.01 * len(short)


@pytest.mark.parametrize("type_", TYPES)
def test_batches_and_derivatives(type_: Any) -> None:
    layer, x = type_.init(KEY, 3, 4, 2, True), array(2, 5, 3)
    expected, _ = layer(x)
    close(ml.vmap(lambda layer, x: layer(x)[0], in_axes=(None, 0))(layer, x), expected)
    weights = array(*expected.shape)

    def loss(layer: Any) -> Any:
        return np.sum(layer(x)[0] * weights)

    gradient = ml.compile(ml.grad(loss))(layer)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        for number, slope in enumerate(getattr(gradient, name)):
            values = []
            direction = array(*slope.shape)
            for step in (-1e-3, 1e-3):
                moved = type_(
                    *([p.astype(float) for p in getattr(layer, n)] for n in vars(layer) if n[-3] == "_"), True
                )
                getattr(moved, name)[number] += step * direction
                values.append(float(np.sum(moved(x.astype(float))[0] * weights)))
            assert np.sum(slope * direction) == pytest.approx((values[1] - values[0]) / 2e-3, rel=2e-3, abs=1e-4)


def test_a_recurrent_layer_learns_to_sum() -> None:
    from dataclasses import dataclass

    @dataclass
    class Model:
        body: nn.GRU
        head: nn.Linear

        def __call__(self, x: Any) -> Any:
            return self.head(self.body(x)[0][:, -1])[:, 0]

    first, second = random.split(KEY)
    model = Model(nn.GRU.init(first, 1, 16), nn.Linear.init(second, 16, 1))
    optimiser = optim.adam(1e-2)

    @ml.compile
    def step(model: Model, state: Any, x: Any) -> Any:
        def loss(model: Model) -> Any:
            return np.mean((model(x) - np.sum(x, axis=(1, 2))) ** 2)

        value, gradient = ml.value_and_grad(loss)(model)
        model, state = optimiser.update(gradient, state, model)
        return value, model, state

    state = optimiser.init(model)
    losses = []
    for _ in range(200):
        value, model, state = step(model, state, RNG.uniform(-1, 1, (32, 6, 1)).astype(np.float32))
        losses.append(float(value))
    assert np.mean(losses[-10:]) < 0.1 * losses[0]


def test_errors() -> None:
    layer = nn.LSTM.init(KEY, 3, 4)
    with pytest.raises(ml.ShapeError, match=r"LSTM: the input must be \[N, L, 3\], N may be missing, got f32\[5,2\]"):
        layer(array(5, 2))
    with pytest.raises(ml.ShapeError, match=r"LSTM: the state must have shape \[1, 2, 4\], got f32\[1,3,4\]"):
        layer(array(2, 5, 3), layer.init_state(3))
    with pytest.raises(ml.ArgumentError, match=r"LSTM: the state must be 2 arrays of shape \[1, 2, 4\]"):
        layer(array(2, 5, 3), array(1, 2, 4))


CELLS: list[Any] = [nn.RNNCell, nn.LSTMCell, nn.GRUCell]


@pytest.mark.parametrize("type_", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_those_of_torch(type_: Any, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    cell, x, h, c = type_.init(KEY, 4, 6, bias), array(3, 4), array(3, 6), array(3, 6)
    theirs = getattr(torch.nn, type_.__name__)(4, 6, bias)
    for name, value in theirs.named_parameters():
        value.data = torch.tensor(getattr(cell, name))
    pair = type_ is nn.LSTMCell
    for given in ((h, c) if pair else h, None):
        other = None if given is None else tuple(map(torch.tensor, given)) if pair else torch.tensor(given)
        expected = theirs(torch.tensor(x), other)
        for call in (lambda cell, x, s: cell(x, s), ml.compile(lambda cell, x, s: cell(x, s))):
            found = call(cell, x, given)
            for one, wanted in zip(found, expected) if pair else [(found, expected)]:
                close(one, wanted.detach())
    row = cell(x[0])
    assert (row[0] if pair else row).shape == (6,)


def test_errors_of_cells() -> None:
    with pytest.raises(ml.ShapeError, match=r"GRUCell: the state must have shape \[3, 6\], got f32\[2,6\]"):
        nn.GRUCell.init(KEY, 4, 6)(array(3, 4), array(2, 6))
    with pytest.raises(ml.ArgumentError, match=r"LSTMCell: the state must be 2 arrays of shape \[3, 6\]"):
        nn.LSTMCell.init(KEY, 4, 6)(array(3, 4), array(3, 6))
    with pytest.raises(ml.ShapeError, match=r"RNNCell: the input must be \[N, 4\], N may be missing, got f32\[3,5\]"):
        nn.RNNCell.init(KEY, 4, 6)(array(3, 5))


def test_dropout_between_layers() -> None:
    layer, x = nn.GRU.init(KEY, 4, 6, 2, dropout=0.5), array(3, 5, 4)
    first, second = (nn.GRU(*([getattr(layer, n)[i]] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))
                     for i in (0, 1))  # fmt: skip
    between = nn.functional.dropout(np.swapaxes(first(x)[0], 0, 1), 0.5, key=random.fold_in(KEY, 0))
    expected = second(np.swapaxes(between, 0, 1))[0]
    close(layer(x, key=KEY)[0], expected)
    close(ml.compile(lambda layer, x, key: layer(x, key=key)[0])(layer, x, KEY), expected)
    close(layer(x)[0], second(first(x)[0])[0])
