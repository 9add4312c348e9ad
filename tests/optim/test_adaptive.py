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
    tolerance = 1e-8 if name == "nadam" else 1e-12  # torch keeps the product of its momenta in f32
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
