"""Objects as trees: derivatives by the arrays in their attributes, and stores into those arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import mlirml as ml


@dataclasses.dataclass
class Dense:
    w: Any
    b: Any
    name: str = "dense"

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    size: int = 3

    def __call__(self, x: Any) -> Any:
        return x @ self.w * self.size


class Slots:
    __slots__ = ("scale", "w")

    def __init__(self) -> None:
        self.w = np.linspace(-1, 1, 6).reshape(3, 2)
        self.scale = 2.0

    def __call__(self, x: Any) -> Any:
        return x @ self.w * self.scale


class Network:
    """Layers in a list, one of them by another name too, a bound method, an integer array and a way back."""

    def __init__(self) -> None:
        random = np.random.default_rng(3)
        self.first = Dense(random.normal(size=(3, 4)), random.normal(size=4))
        self.layers = [self.first, Dense(random.normal(size=(4, 2)), random.normal(size=2), "last")]
        self.by_name = {"first": self.first}
        self.activation = np.tanh
        self.order = np.array([1, 0])
        self.depth = 2
        self.owner = self
        self.run = self.forward

    def forward(self, x: Any) -> Any:
        h = self.activation(self.layers[0](x))
        return self.owner.layers[1](h)[:, self.order] + np.sum(self.by_name["first"].b)


class Normalisation:
    def __init__(self) -> None:
        self.gain = np.ones(3)
        self.mean = np.zeros(3)
        self.steps = 0

    def __call__(self, x: Any) -> Any:
        mean = np.mean(x, axis=0)
        self.mean = 0.9 * self.mean + 0.1 * mean
        self.steps += 1
        return (x - mean) * self.gain


X = np.random.default_rng(1).normal(size=(5, 3))


def loss(model: Any, x: Any) -> Any:
    return np.mean(model(x) ** 2)


def difference(function: Any, array: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a function of the elements of an array that it reads, by central differences."""
    found = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        old = array[index]
        array[index] = old + step
        above = function()
        array[index] = old - step
        found[index] = (above - function()) / (2 * step)
        array[index] = old
    return found


@pytest.mark.parametrize("model", [Dense(np.ones((3, 2)), np.zeros(2)), Frozen(np.ones((3, 2))), Slots()])
def test_gradients_are_objects_of_the_same_class(model: Any) -> None:
    value, gradient = ml.value_and_grad(loss)(model, X)
    np.testing.assert_allclose(value, loss(model, X))
    assert type(gradient) is type(model)
    np.testing.assert_allclose(gradient.w, difference(lambda: loss(model, X), model.w), rtol=1e-6)


def test_what_is_no_array_stays_in_the_gradient() -> None:
    assert ml.grad(loss)(Dense(np.ones((3, 2)), np.zeros(2), "third"), X).name == "third"
    assert ml.grad(loss)(Slots(), X).scale == 2.0


def test_objects_in_objects() -> None:
    model = Network()

    def network_loss(model: Network, x: Any) -> Any:
        return np.sum(model.run(x) ** 3)

    gradient = ml.grad(network_loss)(model, X)
    for layer, found in zip(model.layers, gradient.layers):
        for name in ("w", "b"):
            expected = difference(lambda: network_loss(model, X), getattr(layer, name))
            np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-5, atol=1e-6)
    assert gradient.first is gradient.layers[0] is gradient.by_name["first"]
    assert gradient.owner is gradient
    assert gradient.order is model.order
    assert gradient.depth == 2
    assert gradient.activation is np.tanh
    assert type(model.first.w) is np.ndarray  # the model has its arrays again


def test_objects_in_containers() -> None:
    def sum_of(models: Any, x: Any) -> Any:
        return loss(models["a"], x) + 2 * loss(models["b"][0], x) + np.sum(models["c"])

    models = {"b": [Slots()], "a": Dense(np.ones((3, 2)), np.zeros(2)), "c": np.ones(2)}
    gradient = ml.grad(sum_of)(models, X)
    np.testing.assert_allclose(gradient["b"][0].w, 2 * ml.grad(loss)(models["b"][0], X).w)
    np.testing.assert_allclose(gradient["a"].w, ml.grad(loss)(models["a"], X).w)
    np.testing.assert_array_equal(gradient["c"], [1, 1])


def test_state_that_the_loss_changes_is_kept() -> None:
    model = Normalisation()
    gradient = ml.grad(loss)(model, X)
    assert model.steps == 1
    np.testing.assert_allclose(model.mean, 0.1 * X.mean(axis=0))
    np.testing.assert_allclose(gradient.gain, difference(lambda: loss(model, X), model.gain), rtol=1e-6)


def test_a_training_step_stores_into_the_model() -> None:
    @ml.compile
    def step(model: Any, x: Any) -> Any:
        value, gradient = ml.value_and_grad(loss)(model, x)
        model.w -= 0.1 * gradient.w
        model.b = model.b - 0.1 * gradient.b
        return value

    class Model(Dense):
        pass

    for kind in (Dense, Model):
        model, expected = kind(np.ones((3, 2)), np.zeros(2)), kind(np.ones((3, 2)), np.zeros(2))
        array = model.w
        for _ in range(3):
            gradient = ml.grad(loss)(expected, X)
            np.testing.assert_allclose(step(model, X), loss(expected, X))
            expected.w -= 0.1 * gradient.w
            expected.b = expected.b - 0.1 * gradient.b
            np.testing.assert_allclose(model.w, expected.w)
            np.testing.assert_allclose(model.b, expected.b)
        assert model.w is array


class Trainer:
    def __init__(self) -> None:
        self.w = np.ones((3, 2))
        self.momenta = [np.zeros((3, 2))]
        self.table = {"seen": np.zeros(3)}
        self.rate = 0.1

    @ml.compile
    def step(self, x: Any) -> Any:
        value, gradient = ml.value_and_grad(lambda w: np.mean((x @ w) ** 2))(self.w)
        self.momenta[0] *= 0.9
        self.momenta[0] += gradient
        self.w -= self.rate * self.momenta[0]
        self.table["seen"][:2] += x[0, :2]
        return value

    @ml.compile
    def many(self, x: Any, rounds: int) -> None:
        for _ in range(rounds):
            self.w -= self.rate * x.T @ (x @ self.w)

    @ml.compile
    def count(self, x: Any) -> None:
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if x[i, j] > 0:
                    self.table["seen"][j] += x[i, j]


def test_arrays_of_objects_are_stored_into() -> None:
    model, expected = Trainer(), Trainer()
    w, momentum = model.w, model.momenta[0]
    for _ in range(3):
        np.testing.assert_allclose(model.step(X), Trainer.step.fn(expected, X))
        np.testing.assert_allclose(model.w, expected.w)
        np.testing.assert_allclose(model.momenta[0], expected.momenta[0])
        np.testing.assert_allclose(model.table["seen"], expected.table["seen"])
    assert model.w is w
    assert model.momenta[0] is momentum


def test_arrays_of_objects_are_stored_into_by_loops() -> None:
    model, expected = Trainer(), Trainer()
    model.many(0.1 * X, 100)
    Trainer.many.fn(expected, 0.1 * X, 100)
    np.testing.assert_allclose(model.w, expected.w)
    model.count(X)
    Trainer.count.fn(expected, X)
    np.testing.assert_allclose(model.table["seen"], expected.table["seen"])


def test_another_array_in_the_model_is_seen() -> None:
    model = Trainer()
    model.step(X)
    model.w = np.full((3, 4), 0.5)
    model.momenta[0] = np.zeros((3, 4))
    expected = Trainer()
    expected.w, expected.momenta[0] = model.w.copy(), np.zeros((3, 4))
    expected.table["seen"] = model.table["seen"].copy()
    np.testing.assert_allclose(model.step(X), Trainer.step.fn(expected, X))
    np.testing.assert_allclose(model.w, expected.w)


def test_one_array_at_two_places() -> None:
    class Tied:
        def __init__(self) -> None:
            self.a = np.ones(3)
            self.b = self.a

        @ml.compile
        def step(self, x: Any) -> Any:
            self.a += x
            return self.b * 2

    model = Tied()
    for _ in range(2):
        np.testing.assert_array_equal(model.step(np.ones(3)), model.a * 2)
        assert model.a is model.b
    np.testing.assert_array_equal(model.a, [3, 3, 3])


def test_objects_are_returned() -> None:
    @ml.compile
    def made(x: Any) -> Any:
        return Dense(x * 2, np.sum(x), "made"), {"slots": changed(x)}

    def changed(x: Any) -> Slots:
        result = Slots()
        result.w = x + 1
        return result

    dense, other = made(X)
    np.testing.assert_array_equal(dense.w, X * 2)
    assert (type(dense), dense.name) == (Dense, "made")
    assert (type(other["slots"]), other["slots"].scale) == (Slots, 2.0)
    np.testing.assert_array_equal(other["slots"].w, X + 1)


def test_an_object_from_outside_is_returned_itself() -> None:
    model = Network()

    @ml.compile
    def same(model: Network, x: Any) -> Any:
        model.first.b = model.first.b + np.sum(x)
        return model, x * 2

    before = model.first.b.copy()
    for count in (1, 2):
        found, _ = same(model, X)
        assert found is model
        np.testing.assert_allclose(model.first.b, before + count * np.sum(X))


def test_a_store_into_what_is_differentiated_by_is_refused() -> None:
    def stores(model: Any, x: Any) -> Any:
        model.w[0] = 0
        return loss(model, x)

    model = Slots()
    with pytest.raises(ml.CaptureError, match="stores into an argument that it is differentiated by"):
        ml.grad(stores)(model, X)
    np.testing.assert_array_equal(model.w, Slots().w)


def test_vjp_by_an_object() -> None:
    @ml.compile
    def pulled(model: Any, x: Any) -> Any:
        y, pull = ml.vjp(lambda m: m(x), model)
        return y, pull(np.ones_like(y))[0]

    model = Slots()
    _, gradient = pulled(model, X)
    np.testing.assert_allclose(gradient.w, difference(lambda: np.sum(model(X)), model.w), rtol=1e-6)


def test_objects_of_packages_are_state_and_their_modules_are_not() -> None:
    """A fitted model may be fitted again; the names of a large package are not looked through at each call."""
    sklearn = pytest.importorskip("sklearn.linear_model")
    model = sklearn.LinearRegression()
    x = np.arange(6.0).reshape(6, 1)
    model.fit(x, x[:, 0])

    def predict(x: Any) -> Any:
        return x @ model.coef_ + model.intercept_ if isinstance(model, sklearn.LinearRegression) else x

    compiled = ml.compile(predict)
    np.testing.assert_allclose(compiled(x), x[:, 0], atol=1e-12)
    model.fit(x, 3 * x[:, 0] + 1)
    np.testing.assert_allclose(compiled(x), 3 * x[:, 0] + 1)
    assert len(ml.trace(predict, x).guards) < 100


class Body:
    def __init__(self, position: float) -> None:
        self.position, self.velocity, self.steps = np.array([position, 1.0]), np.zeros(2), 0

    def kick(self, push: Any) -> Any:
        self.velocity += push
        self.position = self.position + self.velocity
        self.steps += 1
        return self.position.sum()


def test_methods_store_into_one_object_after_another() -> None:
    compiled = ml.compile(lambda body, push: body.kick(push))
    bodies, expected = ([Body(float(i)) for i in range(3)] for _ in range(2))
    for _ in range(2):
        for body, plain in zip(bodies, expected):
            assert compiled(body, X[0, :2]) == plain.kick(X[0, :2])
            for one, other in zip(bodies, expected):
                assert type(one.velocity) is type(one.position) is np.ndarray and one.steps == other.steps
                np.testing.assert_array_equal(one.velocity, other.velocity)
                np.testing.assert_array_equal(one.position, other.position)
