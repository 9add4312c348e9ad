"""Padding and pixel shuffles, against NumPy and torch, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.nn import functional as F

RNG = np.random.default_rng(11)
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_padding_is_that_of_numpy(mode: str, compiled: bool) -> None:
    def call(x: Any) -> Any:
        return F.pad(x, (2, 1, 0, 3), mode)

    x = RNG.standard_normal((2, 3, 4, 5))
    given = (ml.compile(call) if compiled else call)(x)
    np.testing.assert_array_equal(given, np.pad(x, [(0, 0), (0, 0), (0, 3), (2, 1)], mode=MODES[mode]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("widths", [(2, 1, 0, 3), (-1, 2, 1, -2)])
def test_padding_and_its_derivative_are_those_of_torch(mode: str, widths: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((2, 3, 4, 5))
    theirs = torch.tensor(x, requires_grad=True)
    out = torch.nn.functional.pad(theirs, widths, mode)
    weights = RNG.standard_normal(tuple(out.shape))
    (out * torch.tensor(weights)).sum().backward()

    def loss(x: Any) -> Any:
        return np.sum(F.pad(x, widths, mode) * weights)

    np.testing.assert_array_equal(F.pad(x, widths, mode), out.detach().numpy())
    np.testing.assert_allclose(ml.grad(loss)(x), theirs.grad.numpy(), rtol=1e-12)


def test_pixels_are_shuffled_and_back() -> None:
    x = RNG.standard_normal((2, 8, 2, 3))
    wide = ml.compile(lambda x: F.pixel_shuffle(x, 2))(x)
    for (n, c, i, j), value in np.ndenumerate(wide):
        assert value == x[n, c * 4 + i % 2 * 2 + j % 2, i // 2, j // 2]
    np.testing.assert_array_equal(F.pixel_unshuffle(wide, 2), x)
    np.testing.assert_array_equal(ml.vmap(lambda x: F.pixel_unshuffle(x, 2))(wide), x)


def test_widths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ml.ShapeError, match="do not fit"):
        F.pad(np.ones((1, 3)), (3, 0), "reflect")
