"""Losses, normalizations and adaptive poolings against plain formulae, and against torch where it is installed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(11)
X, Y, Z = RNG.standard_normal((3, 5, 4))
P = RNG.uniform(0.05, 0.95, (5, 4))
SIGN = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
SIGNS = np.sign(Y)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def norm(x: Any) -> Any:
    return np.sqrt((x**2).sum(-1))


def cosine(x: Any, y: Any) -> Any:
    return (x * y).sum(-1) / norm(x) / norm(y)


CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("l1_loss", (X, Y), {}, abs(X - Y).mean()),
    ("smooth_l1_loss", (X, Y), {"beta": 0.7}, np.where(abs(X - Y) < 0.7, (X - Y) ** 2 / 1.4, abs(X - Y) - 0.35).mean()),
    ("smooth_l1_loss", (X, Y), {"beta": 0.0}, abs(X - Y).mean()),
    ("huber_loss", (X, Y), {"delta": 0.7},
     np.where(abs(X - Y) < 0.7, (X - Y) ** 2 / 2, 0.7 * (abs(X - Y) - 0.35)).mean()),
    ("kl_div", (np.log(P), P[::-1]), {"reduction": "sum"}, (P[::-1] * (np.log(P[::-1]) - np.log(P))).sum()),
    ("kl_div", (np.log(P), np.log(P[::-1])), {"log_target": True, "reduction": "batchmean"},
     (P[::-1] * (np.log(P[::-1]) - np.log(P))).sum() / 5),
    ("binary_cross_entropy", (P, P[::-1]), {"weight": P},
     (-P * (P[::-1] * np.log(P) + (1 - P[::-1]) * np.log(1 - P))).mean()),
    ("binary_cross_entropy_with_logits", (X, P), {"pos_weight": np.array([1.0, 2.0, 3.0, 0.5])},
     (-np.array([1.0, 2.0, 3.0, 0.5]) * P * np.log(logistic(X)) - (1 - P) * np.log(logistic(-X))).mean()),
    ("soft_margin_loss", (X, SIGNS), {}, np.log(1 + np.exp(-X * SIGNS)).mean()),
    ("cosine_similarity", (X, Y), {}, cosine(X, Y)),
    ("cosine_embedding_loss", (X, Y, SIGN), {"margin": 0.1, "reduction": "none"},
     np.where(SIGN > 0, 1 - cosine(X, Y), np.maximum(cosine(X, Y) - 0.1, 0))),
    ("triplet_margin_loss", (X, Y, Z), {}, np.maximum(norm(X - Y + 1e-6) - norm(X - Z + 1e-6) + 1, 0).mean()),
    ("triplet_margin_loss", (X, Y, Z), {"swap": True, "p": 3.0}, np.maximum(
        (abs(X - Y + 1e-6) ** 3).sum(-1) ** (1 / 3)
        - np.minimum((abs(X - Z + 1e-6) ** 3).sum(-1) ** (1 / 3), (abs(Y - Z + 1e-6) ** 3).sum(-1) ** (1 / 3)) + 1,
        0).mean()),
    ("margin_ranking_loss", (X[:, 0], Y[:, 0], SIGN), {"margin": 0.3},
     np.maximum(-SIGN * (X[:, 0] - Y[:, 0]) + 0.3, 0).mean()),
    ("hinge_embedding_loss", (X, SIGNS), {}, np.where(SIGNS > 0, X, np.maximum(1 - X, 0)).mean()),
    ("triplet_margin_with_distance_loss", (X, Y, Z), {"margin": 0.4},
     np.maximum(norm(X - Y + 1e-6) - norm(X - Z + 1e-6) + 0.4, 0).mean()),
    ("pairwise_distance", (X, Y), {"p": 3.0}, (abs(X - Y + 1e-6) ** 3).sum(-1) ** (1 / 3)),
    ("pairwise_distance", (X, Y), {"p": np.inf, "keepdim": True}, abs(X - Y + 1e-6).max(-1, keepdims=True)),
    ("multilabel_soft_margin_loss", (X, P), {"weight": np.array([1.0, 2.0, 3.0, 0.5])},
     (-np.array([1.0, 2.0, 3.0, 0.5]) * (P * np.log(logistic(X)) + (1 - P) * np.log(logistic(-X)))).mean()),
    ("softmin", (X,), {"dim": -1}, np.exp(-X) / np.exp(-X).sum(-1, keepdims=True)),
    ("tanhshrink", (X,), {}, X - np.tanh(X)),
    ("logsigmoid", (X,), {}, np.log(logistic(X))),
    ("glu", (X,), {}, X[:, :2] * logistic(X[:, 2:])),
    ("prelu", (X, np.array([0.1, 0.2, 0.3, 0.4])), {}, np.where(X > 0, X, X * np.array([0.1, 0.2, 0.3, 0.4]))),
    ("threshold", (X, 0.2, -3.0), {}, np.where(X > 0.2, X, -3)),
    ("normalize", (X,), {}, X / norm(X)[:, None]),
    ("normalize", (X,), {"p": 1.0, "dim": 0}, X / abs(X).sum(0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "options", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_formula(name: str, args: Any, options: Any, expected: Any) -> None:
    np.testing.assert_allclose(getattr(F, name)(*args, **options), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "args", "options", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_value_and_derivative_are_those_of_torch(name: str, args: Any, options: Any, expected: Any) -> None:
    torch = pytest.importorskip("torch")
    given = [torch.tensor(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a for a in args]
    given[0].requires_grad_(True)
    more = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    theirs = getattr(torch.nn.functional, name)(*given, **more)
    theirs.sum().backward()
    value, gradient = ml.value_and_grad(lambda *args: np.sum(getattr(F, name)(*args, **options)))(*args)
    np.testing.assert_allclose(value, theirs.sum().detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(gradient, given[0].grad.numpy(), rtol=1e-8, atol=1e-12)


def test_binary_losses_do_not_overflow() -> None:
    x = np.array([-1e4, 1e4, 0.0])
    assert F.binary_cross_entropy_with_logits(x, np.array([0.0, 1.0, 0.5]), reduction="none").tolist() == [
        0,
        0,
        math.log(2),
    ]
    assert F.binary_cross_entropy(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == 100
    assert F.kl_div(np.zeros(2), np.array([0.0, 1.0]), "none").tolist() == [0, 0]
    slope = ml.grad(lambda x: F.binary_cross_entropy_with_logits(x, np.zeros(3), reduction="sum"))(x)
    np.testing.assert_allclose(slope, [0, 1, 0.5], atol=1e-300)


@pytest.mark.parametrize("how", ["compiled", "plain"])
def test_batch_norm_in_training_changes_the_running_statistics(how: str) -> None:
    def layer(x: Any, mean: Any, variance: Any, w: Any, b: Any) -> Any:
        return F.batch_norm(x, mean, variance, w, b, training=True, momentum=0.2)

    x, w, b = RNG.standard_normal((3, 4, 5)), RNG.standard_normal(4), RNG.standard_normal(4)
    mean, variance = RNG.standard_normal(4), RNG.uniform(0.5, 1, 4)
    after = 0.8 * mean + 0.2 * x.mean((0, 2)), 0.8 * variance + 0.2 * x.var((0, 2), ddof=1)
    found = (ml.compile(layer) if how == "compiled" else layer)(x, mean, variance, w, b)
    centred = (x - x.mean((0, 2))[:, None]) / np.sqrt(x.var((0, 2)) + 1e-5)[:, None]
    np.testing.assert_allclose(found, centred * w[:, None] + b[:, None])
    np.testing.assert_allclose(mean, after[0])
    np.testing.assert_allclose(variance, after[1])


def test_batch_norm_refuses_one_value() -> None:
    with pytest.raises(ml.ShapeError, match="more than one value a channel"):
        F.batch_norm(np.ones((1, 3)), None, None, training=True)
    with pytest.raises(ml.ShapeError, match="training=True"):
        F.batch_norm(np.ones((2, 3)), None, None)


def test_instance_norm_is_that_of_each_channel() -> None:
    x = RNG.standard_normal((2, 3, 4, 5))
    expected = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(F.instance_norm(x), expected)
    np.testing.assert_allclose(
        F.instance_norm(x, weight=np.arange(3.0), bias=np.ones(3)), expected * np.arange(3.0)[:, None, None] + 1
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pooling_reduces_cells(rank: int, kind: str) -> None:
    sizes, counts = (7, 6, 5)[:rank], (3, 2, 5)[:rank]
    x = RNG.standard_normal((2, *sizes))
    found = getattr(F, f"adaptive_{kind}_pool{rank}d")(x, counts)
    assert found.shape == (2, *counts)
    for index in itertools.product(*map(range, counts)):
        cell = tuple(slice(math.floor(i * n / m), math.ceil((i + 1) * n / m)) for i, n, m in zip(index, sizes, counts))
        expected = [x[(c, *cell)].mean() if kind == "avg" else x[(c, *cell)].max() for c in range(2)]
        np.testing.assert_allclose(found[(slice(None), *index)], expected)


def test_wrong_arguments_are_named() -> None:
    for call, message in (
        (lambda: F.l1_loss(X, X[0]), "l1_loss: shapes differ"),
        (lambda: F.huber_loss(X, X, delta=0), "delta must be positive"),
        (lambda: F.l1_loss(X, X, "median"), "reduction must be"),
        (lambda: F.glu(X[:, :3]), "has no halves"),
        (lambda: F.adaptive_max_pool1d(X, 0), "output_size must be integers"),
        (lambda: F.adaptive_max_pool2d(X[:, None], (1, 2, 3)), "an integer or 2 of them"),
        (lambda: F.prelu(X, np.ones(3)), "one for each channel"),
        (lambda: F.instance_norm(X), "must be"),
    ):
        with pytest.raises(ml.ShapeError, match=message):
            call()
