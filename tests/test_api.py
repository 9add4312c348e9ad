"""`compile`, `trace` and `lower`, and what a `Compiled` tells about itself."""

from __future__ import annotations

import numpy as np

import mlirml as ml


def test_compile_is_a_function_and_a_decorator() -> None:
    @ml.compile
    def plain(x: np.ndarray) -> np.ndarray:
        return x + 1

    @ml.compile(target="reference")
    def with_options(x: np.ndarray) -> np.ndarray:
        return x + 1

    x = np.arange(3.0)
    for compiled in (plain, with_options, ml.compile(lambda x: x + 1)):
        np.testing.assert_array_equal(compiled(x), x + 1)
    assert with_options.target.name == "reference"
    assert plain.__name__ == "plain"
