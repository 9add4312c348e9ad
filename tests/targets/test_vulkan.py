"""The target `vulkan`, run on whatever Vulkan driver there is."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import TargetError
from mlirml.runtime import vulkan


def driver_is_missing() -> str:
    try:
        return "" if vulkan.count() else "there is no Vulkan driver (Debian: mesa-vulkan-drivers libvulkan1)"
    except TargetError as error:
        return error.message


pytestmark = pytest.mark.skipif(bool(driver_is_missing()), reason=driver_is_missing() or "-")


def samples(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_a_chain_of_elementwise_operations_runs() -> None:
    x, y = samples(1000), samples(1000) + 1
    result = ml.compile(lambda x, y: np.tanh(x * y) + 1, target="vulkan")(x, y)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, np.tanh(x.astype("f8") * y) + 1, atol=1e-6)


def test_kernels_see_what_others_wrote() -> None:
    x, w, b = samples(30, 40), samples(40, 20), samples(20)
    result = ml.compile(lambda x, w, b: np.sum(np.maximum(x @ w + b, 0), axis=0), target="vulkan")(x, w, b)
    np.testing.assert_allclose(result, np.sum(np.maximum(x.astype("f8") @ w + b, 0), axis=0), rtol=1e-5)
