"""Optimisers against the formulae of torch's documentation, written out in NumPy, and against torch where it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import optim
from mlirml.frontend.state.objects import flatten_floats

Arrays = list[np.ndarray]
Reference = Callable[[Arrays], Iterator[Arrays]]
RATE = 0.05


def curve(params: Arrays) -> Any:
    """A function with a minimum, whose gradient is that of every test."""
    w, b = params
    return np.sum(np.square(w @ np.array([1.0, -2.0, 3.0], w.dtype) - 1)) + np.sum(np.square(b) * b) + np.sum(np.cos(w))


GRADIENT = ml.compile(ml.grad(curve))


def start() -> Arrays:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((4, 3)), rng.uniform(0.5, 1.5, 4)]


def separate(rule: Callable[[np.ndarray, np.ndarray, dict[str, Any], int], np.ndarray]) -> Callable[[Arrays], Any]:
    """Updates by a rule for one parameter, which keeps what it needs in a dict."""

    def run(params: Arrays) -> Iterator[Arrays]:
        memory: list[dict[str, Any]] = [{}, {}]
        for count in range(1, 1000):
            gradients = GRADIENT(params)
            params = [rule(g, p, m, count) for g, p, m in zip(gradients, params, memory)]
            yield params

    return run


def sgd(momentum: float, dampening: float, decay: float, nesterov: bool) -> Any:
    def rule(g: Any, p: Any, m: dict[str, Any], t: int) -> Any:
        g = g + decay * p
        if momentum:
            m["b"] = g if t == 1 else momentum * m["b"] + (1 - dampening) * g
            g = g + momentum * m["b"] if nesterov else m["b"]
        return p - RATE * g

    return separate(rule)


def adam(decay: float, amsgrad: bool, decoupled: bool) -> Any:
    def rule(g: Any, p: Any, m: dict[str, Any], t: int) -> Any:
        if decoupled:
            p = p - RATE * decay * p
        else:
            g = g + decay * p
        m["m"] = 0.9 * m.get("m", 0) + 0.1 * g
        m["v"] = 0.999 * m.get("v", 0) + 0.001 * g**2
        m["max"] = np.maximum(m.get("max", 0), m["v"])
        corrected = (m["max"] if amsgrad else m["v"]) / (1 - 0.999**t)
        return p - RATE * (m["m"] / (1 - 0.9**t)) / (np.sqrt(corrected) + 1e-8)

    return separate(rule)


def lion(g: Any, p: Any, m: dict[str, Any], t: int) -> Any:
    update = np.sign(0.9 * m.get("m", 0) + 0.1 * g)
    m["m"] = 0.99 * m.get("m", 0) + 0.01 * g
    return p - RATE * (update + 0.1 * p)


def rmsprop(g: Any, p: Any, m: dict[str, Any], t: int) -> Any:
    g = g + 0.1 * p
    m["v"] = 0.99 * m.get("v", 0) + 0.01 * g**2
    m["g"] = 0.99 * m.get("g", 0) + 0.01 * g
    m["b"] = 0.9 * m.get("b", 0) + g / (np.sqrt(m["v"] - m["g"] ** 2) + 1e-8)
    return p - RATE * m["b"]


def adagrad(g: Any, p: Any, m: dict[str, Any], t: int) -> Any:
    g = g + 0.1 * p
    m["s"] = m.get("s", 0.5) + g**2
    return p - RATE / (1 + (t - 1) * 0.01) * g / (np.sqrt(m["s"]) + 1e-10)


def adafactor(g: Any, p: Any, m: dict[str, Any], t: int) -> Any:
    eps, new = np.finfo(np.float64).eps, t**-0.8
    alpha = max(1e-3, np.linalg.norm(p) / math.sqrt(p.size)) * min(RATE, 1 / math.sqrt(t))
    p = p - RATE * 0.1 * p
    if p.ndim > 1:
        m["r"] = (1 - new) * m.get("r", 0) + new * (g**2).sum(1, keepdims=True) / g.shape[1]
        m["c"] = (1 - new) * m.get("c", 0) + new * (g**2).sum(0, keepdims=True) / g.shape[0]
        m["v"] = m["r"] @ m["c"] / max(m["r"].mean(), eps)
    else:
        m["v"] = (1 - new) * m.get("v", 0) + new * g**2
    u = g / np.sqrt(np.maximum(m["v"], eps**2))
    return p - alpha * u / max(1, np.linalg.norm(u) / math.sqrt(u.size))


def lbfgs(params: Arrays) -> Iterator[Arrays]:
    """The inverse Hessian as a matrix, updated from the diagonal by each kept pair (Nocedal and Wright, 7.16)."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    x, old, step = np.concatenate([p.ravel() for p in params]), None, None
    while True:
        g = np.concatenate([g.ravel() for g in GRADIENT([x[:12].reshape(4, 3), x[12:]])])
        if old is not None and (g - old) @ step > 1e-10:
            pairs = [*pairs, (step, g - old)][-4:]
        inverse = np.eye(len(x)) * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1)
        for s, y in pairs:
            turn = np.eye(len(x)) - np.outer(s, y) / (s @ y)
            inverse = turn @ inverse @ turn.T + np.outer(s, s) / (s @ y)
        step = -(inverse @ g) * (RATE if old is not None else RATE * min(1, 1 / np.abs(g).sum()))
        x, old = x + step, g
        yield [x[:12].reshape(4, 3), x[12:]]


CASES: dict[str, tuple[optim.Optimiser, Callable[[Arrays], Any]]] = {
    "sgd": (optim.sgd(RATE, weight_decay=0.1), sgd(0, 0, 0.1, False)),
    "momentum": (optim.sgd(RATE, 0.9, dampening=0.3, weight_decay=0.1), sgd(0.9, 0.3, 0.1, False)),
    "nesterov": (optim.sgd(RATE, 0.9, nesterov=True), sgd(0.9, 0, 0, True)),
    "adam": (optim.adam(RATE, weight_decay=0.1), adam(0.1, False, False)),
    "amsgrad": (optim.adam(RATE, amsgrad=True), adam(0, True, False)),
    "adamw": (optim.adamw(RATE, weight_decay=0.1), adam(0.1, False, True)),
    "lion": (optim.lion(RATE, weight_decay=0.1), separate(lion)),
    "rmsprop": (optim.rmsprop(RATE, weight_decay=0.1, momentum=0.9, centered=True), separate(rmsprop)),
    "adagrad": (optim.adagrad(RATE, 0.01, weight_decay=0.1, initial=0.5), separate(adagrad)),
    "adafactor": (optim.adafactor(RATE, weight_decay=0.1), separate(adafactor)),
    "lbfgs": (optim.lbfgs(RATE, history=4), lbfgs),
}


@pytest.mark.parametrize("how", ["compiled", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_ten_updates_are_those_of_the_formula(name: str, how: str) -> None:
    optimiser, reference = CASES[name]
    update = ml.compile(optimiser.update) if how == "compiled" else optimiser.update
    params = start()
    state, expected = optimiser.init(params), reference(start())
    for count in range(10):
        params, state = update(GRADIENT(params), state, params)
        for given, wanted in zip(params, next(expected)):
            np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-12, err_msg=f"update {count}")


@pytest.mark.parametrize("name", [name for name in CASES if name != "lion"])
def test_ten_updates_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    made = {
        "sgd": lambda p: torch.optim.SGD(p, RATE, weight_decay=0.1),
        "momentum": lambda p: torch.optim.SGD(p, RATE, 0.9, 0.3, 0.1),
        "nesterov": lambda p: torch.optim.SGD(p, RATE, 0.9, nesterov=True),
        "adam": lambda p: torch.optim.Adam(p, RATE, weight_decay=0.1),
        "amsgrad": lambda p: torch.optim.Adam(p, RATE, amsgrad=True),
        "adamw": lambda p: torch.optim.AdamW(p, RATE, weight_decay=0.1),
        "rmsprop": lambda p: torch.optim.RMSprop(p, RATE, weight_decay=0.1, momentum=0.9, centered=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, RATE, 0.01, 0.1, 0.5),
        "adafactor": lambda p: torch.optim.Adafactor(p, RATE, weight_decay=0.1),
        "lbfgs": lambda p: torch.optim.LBFGS(p, RATE, max_iter=1, history_size=4),
    }[name]
    theirs = [torch.tensor(x, requires_grad=True) for x in start()]
    other, optimiser = made(theirs), CASES[name][0]
    params = start()
    state = optimiser.init(params)
    for _ in range(10):
        gradients = GRADIENT(params)
        for tensor, gradient in zip(theirs, gradients):
            tensor.grad = torch.tensor(gradient)
        other.step(lambda: torch.zeros(()))
        params, state = optimiser.update(gradients, state, params)
        for given, tensor in zip(params, theirs):
            np.testing.assert_allclose(given, tensor.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("lbfgs", "adafactor")])
def test_an_update_is_one_loop_for_each_parameter(name: str) -> None:
    optimiser, _ = CASES[name]
    params = [x.astype(np.float32) for x in start()]
    text = ml.compile(optimiser.update).ir("optimize", params, optimiser.init(params), params)
    loops = [line for line in text.splitlines() if "linalg.generic" in line and '"parallel"' in line]
    assert len(loops) == len(params), text


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = "layer"


def test_trees_of_dataclasses_keep_what_is_no_parameter() -> None:
    layers = {"first": Layer(np.ones((2, 2)), np.zeros(2)), "rest": [Layer(np.ones((2, 2)), np.ones(2), "last")]}

    def loss(layers: Any, x: Any) -> Any:
        hidden = np.tanh(x @ layers["first"].weight + layers["first"].bias)
        return np.sum(np.square(hidden @ layers["rest"][0].weight + layers["rest"][0].bias))

    optimiser = optim.adamw(optim.cosine(0.1, 50))
    state = optimiser.init(layers)

    @ml.compile
    def step(layers: Any, state: Any, x: Any) -> Any:
        value, gradients = ml.value_and_grad(loss)(layers, x)
        layers, state = optimiser.update(optim.clip_by_global_norm(gradients, 1.0), state, layers)
        return value, layers, state

    values = []
    for _ in range(50):
        value, layers, state = step(layers, state, np.eye(2))
        values.append(float(value))
    assert layers["rest"][0].name == "last" and int(state["count"]) == 50
    assert values[-1] < 0.01 * values[0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_parameters_keep_their_dtype(dtype: Any) -> None:
    params = [x.astype(dtype) for x in start()]
    gradients = [x.astype(dtype) for x in GRADIENT(start())]
    for optimiser, _ in CASES.values():
        wide, _ = optimiser.update(GRADIENT(start()), optimiser.init(start()), start())
        for update in (optimiser.update, ml.compile(optimiser.update)):
            new, state = update(gradients, optimiser.init(params), params)
            assert [x.dtype for x in new] == [dtype, dtype]
            assert all(x.dtype in (np.float32, np.int32) for x in np.atleast_1d(state["count"]))
            for given, expected in zip(new, wide):
                np.testing.assert_allclose(given, expected, rtol=30 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)


@dataclasses.dataclass
class Scaled:
    weight: Any
    scale: Any
    power: float = ml.static_field(default=2.0)
    steps: Any = 3


class Plain:
    def __init__(self) -> None:
        self.weight, self.rate, self.offsets = np.ones(2), 0.5, [1.0, 2.0]


@pytest.mark.parametrize("name", ["sgd", "adam", "lbfgs"])
@pytest.mark.parametrize(
    "given",
    [
        2.0,
        {"w": np.ones(2), "b": 1.0, "rows": np.arange(3), "steps": 3},
        [1.0, (np.float32(2), np.ones((0, 2)))],
        Scaled(np.ones(2), 1.5),
        Scaled([np.ones(2), 0.5], np.float32(1.5)),
        {"w": ml.array([1.0, 2.0]), "b": Scaled(ml.array([1.0]), 1.0)},
    ],
    ids=["number", "dict", "list", "dataclass", "nested", "device"],
)
def test_numbers_are_parameters_where_compiled_functions_take_them_as_arguments(name: str, given: Any) -> None:
    optimiser, params = getattr(optim, name)(0.1), [given, given]
    step, states = ml.compile(optimiser.update), [optimiser.init(given), optimiser.init(given)]
    floats = lambda tree: [np.asarray(x) for x in flatten_floats(tree)[0]]  # noqa: E731
    for _ in range(2):
        for k, update in enumerate((optimiser.update, step)):
            params[k], states[k] = update(params[k], states[k], params[k])
    for one, other, first in zip(floats(params[0]), floats(params[1]), floats(given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
        assert one.dtype == first.dtype and (one.size == 0 or np.all(one < first))


def test_numbers_of_plain_objects_are_no_parameters() -> None:
    params = Plain()
    new, _ = optim.sgd(0.1).update(params, optim.sgd(0.1).init(params), params)
    assert (new.rate, new.offsets) == (0.5, [1.0, 2.0])
    np.testing.assert_allclose(new.weight, 0.9)
    kept, _ = optim.sgd(0.1).update({"w": 1.0, "n": 3}, {"count": np.int32(0)}, {"w": 1.0, "n": 3})
    assert kept["n"] == 3


def test_a_gradient_of_another_shape_is_named() -> None:
    optimiser = optim.adam()
    params = {"w": np.ones((2, 3)), "b": np.ones(3)}
    with pytest.raises(ml.ShapeError, match=r"params\['w'\] is f64\[2,3\], and its gradient f64\[3,2\]"):
        optimiser.update({"w": np.ones((3, 2)), "b": np.ones(3)}, optimiser.init(params), params)
    with pytest.raises(ml.ShapeError, match="2 parameters and 1 gradients"):
        optimiser.update({"w": np.ones((3, 2))}, optimiser.init(params), params)


def test_schedules() -> None:
    counts = np.arange(30, dtype=np.int32)
    close = {"rtol": 1e-5, "atol": 1e-7}
    cosine = optim.cosine(0.5, 20, end=0.1)
    expected = [0.1 + 0.4 * (1 + math.cos(math.pi * min(t, 20) / 20)) / 2 for t in counts]
    np.testing.assert_allclose([cosine(t) for t in counts], expected, **close)
    np.testing.assert_allclose([optim.exponential(0.5, 0.9)(t) for t in counts], 0.5 * 0.9**counts, **close)
    np.testing.assert_allclose([optim.step(0.5, 0.1, 7)(t) for t in counts], 0.5 * 0.1 ** (counts // 7), **close)
    for decay in (0.0, -0.5):
        expected_steps = 0.5 * decay ** (counts // 7)
        np.testing.assert_allclose([optim.step(0.5, decay, 7)(t) for t in counts], expected_steps, **close)
        np.testing.assert_allclose(ml.compile(optim.exponential(0.5, decay))(counts), 0.5 * decay**counts, **close)
    np.testing.assert_allclose([optim.constant(0.5)(t) for t in counts], [0.5] * 30)
    warm = optim.linear_warmup(cosine, 5, start=0.2)
    line = [0.5 * (0.2 + 0.8 * t / 5) for t in range(5)]
    np.testing.assert_allclose([warm(t) for t in counts], [*line, *expected[:25]], **close)
    compiled = ml.compile(lambda counts: warm(counts))
    np.testing.assert_allclose(compiled(counts), [warm(t) for t in counts], rtol=1e-6)


def test_clipping() -> None:
    tree = {"a": np.array([3.0, -0.5]), "b": [np.array([4.0])]}
    assert optim.clip_by_value(tree, 1.0)["a"].tolist() == [1.0, -0.5]
    norm = math.sqrt(9 + 0.25 + 16)
    assert math.isclose(float(optim.global_norm(tree)), norm)
    np.testing.assert_allclose(optim.clip_by_global_norm(tree, 1.0)["b"][0], [4 / (norm + 1e-6)])
    np.testing.assert_array_equal(optim.clip_by_global_norm(tree, 100.0)["a"], tree["a"])


@pytest.mark.parametrize("how", ["compiled", "plain"])
def test_accumulation_updates_by_means(how: str) -> None:
    inner, optimiser = optim.adam(RATE), optim.accumulate(optim.adam(RATE), 3)
    update = ml.compile(optimiser.update) if how == "compiled" else optimiser.update
    params = expected = start()
    state, reference = optimiser.init(params), inner.init(params)
    rng = np.random.default_rng(0)
    for _ in range(3):
        gradients = [[rng.standard_normal(x.shape) for x in params] for _ in range(3)]
        for number, each in enumerate(gradients):
            params, state = update(each, state, params)
            if number < 2:
                np.testing.assert_array_equal(params[0], expected[0])
        means = [np.mean(group, axis=0) for group in zip(*gradients)]
        expected, reference = inner.update(means, reference, expected)
        np.testing.assert_allclose(params[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(params[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize("how", ["compiled", "plain"])
def test_mixed_precision_scales_the_loss(how: str) -> None:
    optimiser = optim.mixed_precision(optim.sgd(0.5), scale=1024.0, interval=2)
    update = ml.compile(optimiser.update) if how == "compiled" else optimiser.update
    params = [np.ones(2, np.float16)]
    state = optimiser.init(params)
    tiny = [np.full(2, 2.0**-12 * 1024, np.float16)]
    params, state = update(tiny, state, params)
    assert params[0].dtype == np.float16 and state["params"][0].tolist() == [1 - 2.0**-13] * 2
    params, state = update([np.array([np.inf, 1], np.float16)], state, params)
    assert state["params"][0].tolist() == [1 - 2.0**-13] * 2
    assert (float(state["scale"]), int(state["good"]), int(state["inner.count"])) == (512.0, 0, 1)
    for scale in (512.0, 1024.0):
        params, state = update([np.zeros(2, np.float16)], state, params)
        assert float(state["scale"]) == scale
    assert int(state["inner.count"]) == 3


def test_ema_is_the_mean_of_the_past() -> None:
    average = {"a": np.array([0.0])}
    for _ in range(2):
        average = optim.ema(average, {"a": np.array([1.0])}, 0.9)
    np.testing.assert_allclose(average["a"], [1 - 0.9**2])


def test_lbfgs_finds_a_minimum() -> None:
    def rosenbrock(p: Any) -> Any:
        return np.sum(100 * (p["x"][1:] - p["x"][:-1] ** 2) ** 2 + (1 - p["x"][:-1]) ** 2)

    optimiser = optim.lbfgs(0.5, history=6)

    @ml.compile
    def step(params: Any, state: Any) -> Any:
        return optimiser.update(ml.grad(rosenbrock)(params), state, params)

    params = {"x": np.array([-0.5, 0.5, 0.3])}
    state = optimiser.init(params)
    for _ in range(200):
        params, state = step(params, state)
    np.testing.assert_allclose(params["x"], 1.0, rtol=1e-8)
