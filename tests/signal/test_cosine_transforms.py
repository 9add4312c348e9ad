"""The cosine and sine transforms of `scipy.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import mlirml as ml
from mlirml import fft

RNG = np.random.default_rng(0)
NAMES = ("dct", "idct", "dst", "idst")


def least(name: str, type_: int) -> int:
    """The least number of elements of a transform."""
    return 2 if type_ == 1 and name.endswith("dct") else 1


@pytest.mark.parametrize("dtype", "fdD")
@pytest.mark.parametrize("type_", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_all_types_norms_and_lengths(name: str, type_: int, dtype: str) -> None:
    own, expected = getattr(fft, name), getattr(scipy.fft, name)
    for count in (1, 2, 3, 8, 9):
        if count < least(name, type_):
            continue
        x = (RNG.random((2, count)) + (1j * RNG.random((2, count)) if dtype == "D" else 0)).astype(dtype)
        for norm in (None, "ortho", "forward"):
            for orthogonalize in (None,) if dtype == "D" else (None, True, False):  # SciPy ignores it for complex ones
                options: dict[str, Any] = {"norm": norm, "orthogonalize": orthogonalize}
                found, wanted = own(x, type_, **options), expected(x, type_, **options)
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, atol=8 * np.finfo(dtype).eps * np.abs(wanted).max(), rtol=0)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_scipy_are_compiled(name: str, target: str) -> None:
    function = getattr(scipy.fft, name)
    several = getattr(scipy.fft, f"{name}n")
    x = RNG.random((4, 6))

    def transforms(x: Any) -> Any:
        return function(x, n=9, axis=0), function(x.astype(np.float32), 3), several(x, s=(5, 3), overwrite_x=True)

    for found, wanted in zip(ml.compile(transforms, target=target)(x), transforms(x), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5 if found.dtype == np.float32 else 1e-12, atol=1e-6)


@pytest.mark.parametrize("type_", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str, type_: int) -> None:
    function = getattr(scipy.fft, name)
    x, weights = RNG.random(6), RNG.random(6)
    matrix = function(np.eye(6), type_, axis=0)
    np.testing.assert_allclose(ml.grad(lambda x: np.sum(weights * function(x, type_)))(x), weights @ matrix, rtol=1e-10)


def test_errors() -> None:
    for call, error, message in (
        (lambda x: fft.dct(x, 5), ml.ArgumentError, "the type is 1, 2, 3 or 4, not 5"),
        (lambda x: fft.dct(x[:1], 1), ml.ShapeError, "1 elements are too few for type 1"),
        (lambda x: fft.dst(x, norm="both"), ml.ArgumentError, "norm is 'backward', 'ortho' or 'forward'"),
        (lambda x: fft.dctn(x, s=(2, 3), axes=(0,)), ml.ShapeError, "2 sizes in `s` for 1 axes"),
    ):
        with pytest.raises(error, match=message):
            ml.compile(call)(np.ones(4))
