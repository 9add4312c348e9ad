"""Further optimisers and schedules: step by step those of torch, and in single precision near those of double."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import optim
from tests.optim.test_optimisers import GRADIENT, RATE, start

CASES: dict[str, tuple[optim.Optimiser, Callable[[Any, Any], Any]]] = {
    "adadelta": (optim.adadelta(weight_decay=0.1), lambda t, p: t.Adadelta(p, weight_decay=0.1)),
    "adamax": (optim.adamax(RATE, weight_decay=0.1), lambda t, p: t.Adamax(p, RATE, weight_decay=0.1)),
    "nadam": (optim.nadam(RATE, weight_decay=0.1), lambda t, p: t.NAdam(p, RATE, weight_decay=0.1)),
    "radam": (optim.radam(RATE, weight_decay=0.1), lambda t, p: t.RAdam(p, RATE, weight_decay=0.1)),
    "nadam, decoupled": (
        optim.nadam(RATE, weight_decay=0.1, decoupled=True),
        lambda t, p: t.NAdam(p, RATE, weight_decay=0.1, decoupled_weight_decay=True),
    ),
    "radam, decoupled": (
        optim.radam(RATE, weight_decay=0.1, decoupled=True),
        lambda t, p: t.RAdam(p, RATE, weight_decay=0.1, decoupled_weight_decay=True),
    ),
    "asgd": (optim.asgd(RATE, 0.1, t0=4, weight_decay=0.1), lambda t, p: t.ASGD(p, RATE, 0.1, t0=4, weight_decay=0.1)),
    "maximize": (optim.maximize(optim.adam(RATE)), lambda t, p: t.Adam(p, RATE, maximize=True)),
    "radam of few": (optim.radam(RATE, (0.9, 0.8)), lambda t, p: t.RAdam(p, RATE, (0.9, 0.8))),
    "rprop": (optim.rprop(RATE), lambda t, p: t.Rprop(p, RATE)),
}


@pytest.mark.parametrize("name", CASES)
def test_updates_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    optimiser, made = CASES[name]
    theirs = [torch.tensor(x, requires_grad=True) for x in start()]
    other = made(torch.optim, theirs)
    params = start()
    narrow = [x.astype(np.float32) for x in params]
    state, narrow_state = optimiser.init(params), optimiser.init(narrow)
    update = ml.compile(optimiser.update)
    # torch keeps the product of the momenta, and the rate of asgd, in f32.
    tolerance = 1e-8 if "nadam" in name else 1e-6 if name == "asgd" else 1e-12
    for count in range(12):
        gradients = GRADIENT(params)
        for tensor, gradient in zip(theirs, gradients):
            tensor.grad = torch.tensor(gradient)
        other.step()
        narrow, narrow_state = update([g.astype(np.float32) for g in gradients], narrow_state, narrow)
        params, state = (update if count % 2 else optimiser.update)(gradients, state, params)
        for given, small, tensor in zip(params, narrow, theirs):
            np.testing.assert_allclose(given, tensor.detach().numpy(), rtol=1e-9, atol=tolerance, err_msg=f"{count}")
            assert small.dtype == np.float32
            np.testing.assert_allclose(small, given, rtol=2e-4, atol=2e-5)


SCHEDULES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "linear": (optim.linear(0.1, 7), lambda s, o: s.LinearLR(o, total_iters=7)),
    "multistep": (optim.multistep(0.1, 0.5, [3, 8]), lambda s, o: s.MultiStepLR(o, [3, 8], 0.5)),
    "polynomial": (optim.polynomial(0.1, 9, 2.0), lambda s, o: s.PolynomialLR(o, 9, 2.0)),
    "restarts": (optim.cosine_restarts(0.1, 5), lambda s, o: s.CosineAnnealingWarmRestarts(o, 5)),
    "longer": (optim.cosine_restarts(0.1, 3, 2, 0.01), lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)),
    "cyclic": (optim.cyclic(0.1, 0.5, 4), lambda s, o: s.CyclicLR(o, 0.1, 0.5, 4)),
    "lower cycles": (
        optim.cyclic(0.1, 0.5, 3, 5, "triangular2"),
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, 3, 5, "triangular2"),
    ),
    "falling cycles": (
        optim.cyclic(0.1, 0.5, 4, mode="exp_range", gamma=0.9),
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, 4, mode="exp_range", gamma=0.9),
    ),
    "one cycle": (optim.one_cycle(0.1, 30), lambda s, o: s.OneCycleLR(o, 0.1, total_steps=30)),
    "joined": (
        optim.joined([optim.constant(0.1), optim.exponential(0.1, 0.9)], [4]),
        lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 1.0), s.ExponentialLR(o, 0.9)], [4]),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    schedule, made = SCHEDULES[name]
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    theirs, compiled = made(torch.optim.lr_scheduler, other), ml.compile(schedule)
    for count in range(30):
        wanted = other.param_groups[0]["lr"]
        for found in (schedule(count), schedule(np.int32(count)), compiled(np.int32(count))):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-8, err_msg=f"{count}")
        other.step()
        if count < 29:
            theirs.step()


def test_an_unknown_mode_of_cycles() -> None:
    with pytest.raises(ml.ArgumentError, match="mode 'square' is not known"):
        optim.cyclic(0.1, 0.5, mode="square")


def test_means_of_asgd() -> None:
    """From an update on they are those of the parameters since then."""
    optimiser, params = optim.asgd(0.1, lambd=0.0, t0=3), [np.ones(2)]
    state, history = optimiser.init(params), []
    for count in range(8):
        params, state = optimiser.update([np.array([1.0, count])], state, params)
        history.append(params[0])
    np.testing.assert_allclose(state["average"][0], np.mean(history[4:], axis=0))


PLATEAUS = {
    "one": {"patience": 2, "cooldown": 1},
    "largest": {"patience": 1, "largest": True},
    "absolute": {"patience": 1, "threshold": 0.3, "relative": False, "least": 0.004},
}


@pytest.mark.parametrize("name", PLATEAUS)
def test_a_rate_that_falls_on_a_plateau(name: str) -> None:
    """As torch's, compiled and not: a fall after more values than `patience` without a better one."""
    options = PLATEAUS[name]
    plateau = optim.reduce_on_plateau(0.5, 0.5, **options)
    values = [5.0, 4.0, 4.0, 4.5, 4.0, 4.1, 3.0, 3.0, 2.9, 3.0, 3.1, 3.0, 7.0, 8.0, 8.0, 8.0, 8.0, np.nan, 1.0, 1.0]
    state, rates = plateau.init(), []
    compiled, other = ml.compile(plateau.update), plateau.init()
    for value in values:
        state, other = plateau.update(state, value), compiled(other, np.float32(value))
        assert all(np.array_equal(state[key], other[key], equal_nan=True) for key in state)
        rates.append(float(state["rate"]))
    assert rates[0] == 0.5 and rates[-1] < 0.2 and rates == sorted(rates, reverse=True)
    torch = pytest.importorskip("torch")
    taken = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.5)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        taken, "max" if options.get("largest") else "min", 0.5, options["patience"], options.get("threshold", 1e-4),
        "rel" if options.get("relative", True) else "abs", options.get("cooldown", 0), options.get("least", 0.0),
    )  # fmt: skip
    for value, rate in zip(values, rates):
        theirs.step(value)
        assert taken.param_groups[0]["lr"] == pytest.approx(rate)


def test_a_step_takes_the_rate_of_a_plateau() -> None:
    plateau = optim.reduce_on_plateau(0.5, 0.5, patience=0)

    @ml.compile
    def step(p: np.ndarray, rate: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        optimiser = optim.sgd(rate["rate"])
        new, _ = optimiser.update(np.ones_like(p), optimiser.init(p), p)
        return new, plateau.update(rate, np.float32(1.0))

    p, rate = np.zeros(1), plateau.init()
    for expected in (-0.5, -1.0, -1.25):
        p, rate = step(p, rate)
        assert float(p[0]) == expected


@pytest.mark.parametrize("shape", [(6, 4), (3, 5)])
@pytest.mark.parametrize("match_adamw", [False, True])
def test_muon(shape: tuple[int, int], match_adamw: bool) -> None:
    """Its iterations change singular values alone; torch computes them in bf16."""
    optimiser = optim.muon(RATE, nesterov=False, match_adamw=match_adamw)
    gradient, p = np.random.default_rng(1).standard_normal((2, *shape))
    (found,), state = ml.compile(optimiser.update)([gradient], optimiser.init([p]), [p])
    np.testing.assert_allclose(state["momentum"][0], 0.05 * gradient)
    u, s, v = np.linalg.svd(gradient, full_matrices=False)
    s = s / np.linalg.norm(s)
    for _ in range(5):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    factor = 0.2 * np.sqrt(max(shape)) if match_adamw else np.sqrt(max(1, shape[0] / shape[1]))
    np.testing.assert_allclose(found, p * (1 - RATE * 0.1) - RATE * factor * (u * s) @ v, rtol=1e-10)
    torch = pytest.importorskip("torch")
    theirs = torch.tensor(p, requires_grad=True)
    other = torch.optim.Muon([theirs], RATE, adjust_lr_fn="match_rms_adamw" if match_adamw else None)
    optimiser = optim.muon(RATE, match_adamw=match_adamw)
    params, state = [p], optimiser.init([p])
    for gradient in np.random.default_rng(2).standard_normal((4, *shape)):
        theirs.grad = torch.tensor(gradient)
        other.step()
        params, state = optimiser.update([gradient], state, params)
    np.testing.assert_allclose(params[0], theirs.detach().numpy(), atol=4 * RATE * factor * 2**-6)


def test_muon_takes_matrices() -> None:
    with pytest.raises(ml.ShapeError, match=r"muon: each parameter is a matrix, got f64\[3\]"):
        optim.muon().init({"w": np.ones((2, 3)), "b": np.ones(3)})
