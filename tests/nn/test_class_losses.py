"""Losses of classes and of sequences: against plain loops over their definitions, and against torch."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((2, 5, 4))
LOGS = F.log_softmax(X)
CLASSES = np.array([0, 3, 1, 1, 2])
WEIGHT = np.array([1.0, 2.0, 0.5, 3.0])
V = RNG.uniform(0.1, 2, (5, 4))
LABELS = np.array([[3, 0, -1, 1], [2, -1, 1, 0], [-1, 0, 0, 0], [0, 1, 2, 3], [1, 3, 2, -1]])


def margins(x: Any, y: int, p: int, margin: float) -> float:
    return sum(max(0.0, margin - x[y] + x[j]) ** p for j in range(len(x)) if j != y) / len(x)


def multilabel(x: Any, row: Any) -> float:
    labels = list(itertools.takewhile(lambda y: y >= 0, row))
    return sum(max(0.0, 1 - x[y] + x[j]) for y in labels for j in range(len(x)) if j not in labels) / len(x)


RATE, COUNT = RNG.uniform(0.2, 3, (2, 5, 4))
STIRLING = np.where(COUNT > 1, COUNT * np.log(COUNT) - COUNT + np.log(2 * np.pi * COUNT) / 2, 0)
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("nll_loss", (LOGS, CLASSES), {}, -LOGS[range(5), CLASSES].mean()),
    ("nll_loss", (LOGS, CLASSES), {"weight": WEIGHT},
     -(LOGS[range(5), CLASSES] * WEIGHT[CLASSES]).sum() / WEIGHT[CLASSES].sum()),
    ("nll_loss", (LOGS, CLASSES), {"ignore_index": 1}, -LOGS[[0, 1, 4], CLASSES[[0, 1, 4]]].mean()),
    ("nll_loss", (LOGS, np.where(CLASSES == 3, -100, CLASSES)), {"reduction": "none"},
     np.where(CLASSES == 3, 0, -LOGS[range(5), CLASSES])),
    ("gaussian_nll_loss", (X, Y, V), {}, ((np.log(V) + (X - Y) ** 2 / V) / 2).mean()),
    ("gaussian_nll_loss", (X, Y, V[:, 0]), {"full": True, "reduction": "sum"},
     ((np.log(V[:, :1]) + (X - Y) ** 2 / V[:, :1]) / 2 + math.log(2 * math.pi) / 2).sum()),
    ("gaussian_nll_loss", (X, Y, V[:, :1]), {"eps": 0.5, "reduction": "none"},
     (np.log(np.maximum(V[:, :1], 0.5)) + (X - Y) ** 2 / np.maximum(V[:, :1], 0.5)) / 2),
    ("poisson_nll_loss", (X, COUNT), {}, (np.exp(X) - COUNT * X).mean()),
    ("poisson_nll_loss", (RATE, COUNT), {"log_input": False, "full": True},
     (RATE - COUNT * np.log(RATE + 1e-8) + STIRLING).mean()),
    ("multi_margin_loss", (X, CLASSES), {}, np.mean([margins(x, y, 1, 1) for x, y in zip(X, CLASSES)])),
    ("multi_margin_loss", (X, CLASSES), {"p": 2, "margin": 0.5, "weight": WEIGHT, "reduction": "none"},
     [WEIGHT[y] * margins(x, y, 2, 0.5) for x, y in zip(X, CLASSES)]),
    ("multilabel_margin_loss", (X, LABELS), {}, np.mean([multilabel(x, y) for x, y in zip(X, LABELS)])),
    ("multilabel_margin_loss", (X[0], LABELS[0]), {"reduction": "sum"}, multilabel(X[0], LABELS[0])),
]  # fmt: skip
NAMES = [f"{number}-{case[0]}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize(("name", "args", "options", "expected"), CASES, ids=NAMES)
def test_formula(name: str, args: Any, options: Any, expected: Any) -> None:
    function = getattr(F, name)
    np.testing.assert_allclose(function(*args, **options), expected, rtol=1e-10, atol=1e-13)
    found = ml.compile(lambda *given: function(*given, **options))(*args)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("name", "args", "options", "expected"), CASES, ids=NAMES)
def test_value_and_derivative_are_those_of_torch(name: str, args: Any, options: Any, expected: Any) -> None:
    torch = pytest.importorskip("torch")
    given = [torch.tensor(np.ascontiguousarray(a)) for a in args]
    given[0].requires_grad_(True)
    more = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    theirs = getattr(torch.nn.functional, name)(*given, **more)
    theirs.sum().backward()
    value, gradient = ml.value_and_grad(lambda *args: np.sum(getattr(F, name)(*args, **options)))(*args)
    np.testing.assert_allclose(value, theirs.sum().detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(gradient, given[0].grad.numpy(), rtol=1e-8, atol=1e-12)


def test_classes_of_pixels() -> None:
    x, y = F.log_softmax(RNG.standard_normal((2, 3, 4, 5)), 1), RNG.integers(0, 3, (2, 4, 5))
    expected = -np.mean([x[n, y[n, i, j], i, j] for n, i, j in np.ndindex(2, 4, 5)])
    np.testing.assert_allclose(F.nll_loss(x, y), expected, rtol=1e-12)
    np.testing.assert_allclose(F.nll_loss(x, y), F.cross_entropy(x, y), rtol=1e-12)


def test_a_probability_of_zero_of_another_class_is_no_nan() -> None:
    x = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    assert F.nll_loss(x, np.array([0, 1])) == 0
    assert ml.grad(lambda x: F.nll_loss(x, np.array([0, 1])))(x).tolist() == [[-0.5, 0], [0, -0.5]]


def by_paths(log_probs: np.ndarray, labels: list[int], blank: int) -> float:
    """-log of the sum over all sequences of classes that say the labels: equal ones joined, then blanks left out."""
    times, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=times):
        if [c for c, _ in itertools.groupby(path) if c != blank] == labels:
            total += math.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    return -math.log(total) if total else math.inf


CTC = [
    ([[1, 2], [1, 1], [2, 0], [0, 0]], [5, 5, 4, 3], [2, 2, 1, 0], 0),
    ([[0, 1, 0], [1, 1, 1]], [5, 5], [3, 3], 2),
    ([[0, 0, 0], [1, 0, 1]], [4, 1], [3, 1], 2),  # too little time for the first
    ([[1, -100], [2, 7]], [1, 2], [1, 1], 0),
]


@pytest.mark.parametrize(("labels", "times", "lengths", "blank"), CTC)
@pytest.mark.parametrize("compiled", [False, True])
def test_ctc_is_the_sum_over_paths(labels: Any, times: Any, lengths: Any, blank: int, compiled: bool) -> None:
    x = F.log_softmax(RNG.standard_normal((5, len(labels), 3)))
    expected = [by_paths(x[:t, n], list(y[:k]), blank) for n, (y, t, k) in enumerate(zip(labels, times, lengths))]
    given = x, np.array(labels), np.array(times), np.array(lengths)
    loss = ml.compile(F.ctc_loss, static_argnames=("blank", "reduction")) if compiled else F.ctc_loss
    np.testing.assert_allclose(loss(*given, blank=blank, reduction="none"), expected, rtol=1e-10)
    mean = np.mean(np.array(expected) / np.maximum(lengths, 1))
    np.testing.assert_allclose(loss(*given, blank=blank), mean, rtol=1e-10)
    one = F.ctc_loss(x[:, 0], given[1][0], given[2][0], given[3][0], blank, "none")
    np.testing.assert_allclose(one, expected[0], rtol=1e-10)


def test_ctc_derivative_and_infinite_losses() -> None:
    labels, times, lengths, blank = CTC[2]
    x = RNG.standard_normal((5, 2, 3))

    def loss(x: Any, reduction: str = "sum") -> Any:
        given = np.array(labels), np.array(times), np.array(lengths)
        return F.ctc_loss(F.log_softmax(x), *given, blank, reduction, zero_infinity=True)

    assert loss(x, "none")[0] == 0 and np.isfinite(loss(x))
    gradient = ml.grad(loss)(x)
    assert not gradient[:, 0].any() and not gradient[1:, 1].any()
    for step in np.eye(3):
        moved = np.zeros_like(x)
        moved[0, 1] = 1e-6 * step
        assert gradient[0, 1] @ step == pytest.approx((loss(x + moved) - loss(x - moved)) / 2e-6, abs=1e-8)


def test_ctc_is_that_of_torch_and_one_loop() -> None:
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((30, 4, 6))
    labels, times, lengths = RNG.integers(1, 6, (4, 9)), np.array([30, 25, 30, 12]), np.array([9, 5, 0, 3])
    for reduction in ("mean", "sum"):
        theirs = torch.tensor(x, requires_grad=True)
        expected = torch.nn.functional.ctc_loss(
            theirs.log_softmax(-1), *map(torch.tensor, (labels, times, lengths)), reduction=reduction
        )
        expected.backward()

        def loss(x: Any, how: str = reduction) -> Any:
            return F.ctc_loss(F.log_softmax(x), labels, times, lengths, reduction=how)

        value, gradient = ml.compile(ml.value_and_grad(loss))(x)
        np.testing.assert_allclose(value, expected.detach(), rtol=1e-9)
        np.testing.assert_allclose(gradient, theirs.grad, rtol=1e-7, atol=1e-10)
    text = ml.trace(lambda x: F.ctc_loss(x, labels, times, lengths), x).as_text()
    assert text.count("scf.for") == 1


def test_ctc_in_f32_far_from_the_labels() -> None:
    x = np.full((200, 1, 3), -60.0, np.float32)
    x[:, :, 0] = 0
    found = F.ctc_loss(x, np.array([[1, 2, 1]]), np.array([200]), np.array([3]))
    assert found.dtype == np.float32 and found == pytest.approx((180 - math.log(math.comb(200, 3))) / 3, rel=1e-3)


def test_errors() -> None:
    with pytest.raises(ml.DTypeError, match="nll_loss: the target must hold classes, which are integers"):
        F.nll_loss(LOGS, X)
    with pytest.raises(ml.ShapeError, match=r"nll_loss: the target must be integers of shape \[5\], got i64\[3\]"):
        F.nll_loss(LOGS, CLASSES[:3])
    with pytest.raises(ml.ShapeError, match="the weight must have one element for each of the 4 classes"):
        F.nll_loss(LOGS, CLASSES, np.ones(3))
    with pytest.raises(ml.ShapeError, match=r"var must have shape \[5, 4\] or \[5, 1\] or \[5\], got f64\[4\]"):
        F.gaussian_nll_loss(X, Y, np.ones(4))
    with pytest.raises(ml.ShapeError, match="p must be 1 or 2, got 3"):
        F.multi_margin_loss(X, CLASSES, p=3)
    with pytest.raises(ml.ShapeError, match=r"ctc_loss: target_lengths must have shape \[2\], got i64\[3\]"):
        F.ctc_loss(np.zeros((4, 2, 3)), np.ones((2, 2), int), np.ones(2, int), np.ones(3, int))


def test_cross_entropy_with_weights_and_ignored_classes() -> None:
    """As torch computes it: the mean is that over the weights of the classes that count."""
    x, y = RNG.standard_normal((5, 3)), np.array([2, 0, -100, 1, 2])
    w = np.array([0.5, 1.0, 2.0])
    log = x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))
    kept = [0, 1, 3, 4]
    each = -w[y[kept]] * log[kept, y[kept]]
    for run in (F.cross_entropy, ml.compile(lambda x, y, w: F.cross_entropy(x, y, w))):
        np.testing.assert_allclose(run(x, y, w), each.sum() / w[y[kept]].sum(), rtol=1e-12)
    np.testing.assert_allclose(F.cross_entropy(x, y, ignore_index=2), -(log[1, 0] + log[3, 1]) / 2, rtol=1e-12)
    smooth = 0.7 * each - 0.3 / 3 * np.sum(w * log[kept], axis=1)
    found = F.cross_entropy(x, y, w, label_smoothing=0.3)
    np.testing.assert_allclose(found, smooth.sum() / w[y[kept]].sum(), rtol=1e-12)
