"""Numbers that are not finite, targets out of range and empty arrays: the results of torch's functions, or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def with_value(value: float, *shape: int) -> np.ndarray:
    x = RNG.standard_normal(shape)
    x.flat[x.size // 2] = value
    return x


LOGITS = np.array([[0.5, -np.inf, 1.0], [-np.inf, 2.0, -np.inf]])
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "threshold": ((with_value(np.nan, 3, 4), 0.1, -2.0), {}),
    "kl_div": ((RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4))), {"reduction": "none"}),
    "cosine_embedding_loss": ((RNG.random((3, 4)), RNG.random((3, 4)), np.array([1.0, 0.0, -1.0])), {}),
    "multilabel_soft_margin_loss": ((with_value(-np.inf, 3, 4), RNG.random((3, 4))), {"reduction": "none"}),
    "cross_entropy": ((LOGITS, np.array([2, 1])), {}),
    "multi_margin_loss": ((with_value(-np.inf, 3, 4), np.array([0, 1, 2])), {"reduction": "none"}),
    "multilabel_margin_loss": ((with_value(-np.inf, 2, 4), np.array([[3, 0, -1, 1], [1, -1, 0, 0]])), {}),
    "ctc_loss": (
        (with_value(np.nan, 6, 2, 4), np.array([[1, 2, 3], [3, 3, 1]]), np.array([6, 6]), np.array([3, 2])),
        {"zero_infinity": True},
    ),
    "scaled_dot_product_attention": ((np.zeros((4, 0)), np.zeros((6, 0)), RNG.random((6, 2))), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    args, options = CALLS[name]
    tensors = [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
    expected = getattr(torch.nn.functional, name)(*tensors, **options).numpy()

    def function(*args: Any) -> Any:
        return getattr(F, name)(*args, **options)

    for found in (function(*args), ml.compile(function)(*args)):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_gradient_at_masked_logits_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    target, x = np.array([2, 1]), torch.tensor(LOGITS, requires_grad=True)
    torch.nn.functional.cross_entropy(x, torch.tensor(target)).backward()
    found = ml.compile(ml.grad(F.cross_entropy))(LOGITS, target)
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-12)


def test_samples_of_images_that_are_not_finite_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    grid = RNG.uniform(-1.4, 1.4, (1, 6, 6, 2))
    for image, points in ((with_value(np.inf, 1, 2, 5, 4), grid), (RNG.random((1, 2, 5, 4)), grid * 1)):
        if np.isfinite(image).all():
            points[0, 2, 3, 0] = np.nan
        expected = torch.nn.functional.grid_sample(torch.tensor(image), torch.tensor(points), align_corners=False)
        np.testing.assert_allclose(F.grid_sample(image, points), expected.numpy(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ml.compile(F.grid_sample)(image, points), expected.numpy(), rtol=1e-9, atol=1e-12)


def test_variances_below_zero_and_classes_out_of_range() -> None:
    x = RNG.standard_normal((3, 4))
    loss = ml.compile(lambda x, v: F.gaussian_nll_loss(x, x, v, reduction="none"))(x, np.array([1.0, -1.0, 0.0]))
    assert np.isnan(loss).all(axis=1).tolist() == [False, True, False]
    margins = ml.compile(lambda x, y: F.multi_margin_loss(x, y, reduction="none"))(x, np.array([0, 4, -1]))
    assert margins[0] > 0 and margins[1:].tolist() == [0, 0]
    labels = np.array([[1, 9, -1, 0]])
    np.testing.assert_allclose(
        F.multilabel_margin_loss(x[:1], labels), F.multilabel_margin_loss(x[:1], labels * [1, -1, 1, 1])
    )


WRONG: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], str]] = {
    "pooling": (lambda x: F.max_pool2d(x, 3, padding=1), (1, 2, 4, 0), "has no elements to pool"),
    "positions": (lambda x: F.max_pool2d_with_indices(x, 3, padding=1), (1, 2, 4, 0), "has no elements to pool"),
    "cropping": (lambda x: F.pad(x, (-2, 3)), (2, 1), "do not fit"),
    "convolution": (lambda x: F.conv1d(x, np.zeros((0, 1, 2)), groups=3), (0, 9), "has 0"),
    "bags": (lambda x: F.embedding_bag(np.array([[0, 1]]), x, padding_idx=7), (3, 2), "is no row"),
    "no classes": (lambda x: F.cross_entropy(x, np.zeros(2, np.int64)), (2, 0), "at least one class"),
    "rows": (lambda x: F.embedding(np.array([0, 1]), x, padding_idx=3), (3, 2), "is no row"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("compiled", [False, True])
def test_errors_say_what_is_wrong(name: str, compiled: bool) -> None:
    function, shape, message = WRONG[name]
    with pytest.raises(ml.ShapeError, match=message):
        (ml.compile(function) if compiled else function)(np.ones(shape))


@pytest.mark.parametrize(("times", "labels"), [(9, 2), (4, 5), (-1, 2), (4, -1)])
def test_lengths_beyond_the_sequences(times: int, labels: int) -> None:
    def loss(x: Any, times: Any, labels: Any) -> Any:
        return F.ctc_loss(x, np.array([[1, 2], [1, 2]]), times, labels, reduction="none")

    arguments = np.log(np.full((4, 2, 3), 1 / 3)), np.array([times, 4]), np.array([labels, 2])
    assert np.isnan(ml.compile(loss)(*arguments)).tolist() == [True, False]
    with pytest.raises(ml.ShapeError, match="fewer than a length says"):
        loss(*arguments)
