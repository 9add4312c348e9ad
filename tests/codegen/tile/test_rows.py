"""Products with reductions of their rows as tile kernels, run without a GPU: their texts in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.analysis import row_tiles
from mlirml.codegen.tile import contract
from mlirml.dialects.mlirml import TILE
from mlirml.ir.bindings import operations
from tests.codegen.gpu.gpu_harness import read_plan
from tests.codegen.tile.cutile_numpy import run_kernel
from tests.codegen.tile.test_contract import SMALL, draw, scheduled

BF16 = ml_dtypes.bfloat16
Function = Callable[..., Any]


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(a: Any, b: Any, residual: Any, gain: Any) -> Any:
    x = (a @ b + residual).astype(np.float32)
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return (centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * gain).astype(a.dtype)


def rms_norm(a: Any, b: Any) -> Any:
    x = (a @ b).astype(np.float32)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def normalised(a: Any, b: Any) -> Any:
    x = (a @ b).astype(np.float32)
    return x / np.sqrt(np.sum(x * x, axis=1))[:, None]


def entropy(a: Any, b: Any) -> Any:
    x = (a @ b).astype(np.float32)
    most = np.max(x, axis=-1)
    return most + np.log(np.sum(np.exp(x - most[:, None]), axis=-1))


CASES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "softmax": (lambda a, b: softmax((a @ b).astype(np.float32)), [(72, 104), (104, 64)]),
    "softmax of small floats": (lambda a, b: softmax(a @ b), [(72, 104), (104, 40)]),
    "softmax of transposed factors": (lambda a, b: softmax((a.T @ b.T).astype(np.float32)), [(104, 72), (40, 104)]),
    "softmax of a batch": (lambda a, b: softmax((a @ b).astype(np.float32)), [(3, 40, 64), (3, 64, 24)]),
    "softmax of rows of two dimensions": (lambda a, b: softmax((a @ b).astype(np.float32)), [(3, 24, 64), (64, 40)]),
    "softmax of a scale and a bias": (
        lambda a, b, c: softmax((a @ b).astype(np.float32) * 0.125 + c), [(40, 64), (64, 56), (56,)],
    ),
    "layer norm with a residual": (layer_norm, [(72, 64), (64, 48), (72, 48), (48,)]),
    "rms norm": (rms_norm, [(72, 64), (64, 56)]),
    "rows of length one": (normalised, [(72, 64), (64, 24)]),
    "logsumexp": (entropy, [(72, 64), (64, 40)]),
    "maxima": (lambda a, b: np.max(a @ b, axis=1), [(72, 64), (64, 40)]),
    "minima": (lambda a, b: np.min(a @ b, axis=-1), [(2, 48, 64), (2, 64, 40)]),
    "sums of squares": (lambda a, b: np.sum((a @ b).astype(np.float32) ** 2, axis=1), [(72, 64), (64, 40)]),
    "sums with an epilogue": (
        lambda a, b, c: np.tanh(np.mean(np.maximum(a @ b, 0).astype(np.float32), axis=1) + c),
        [(72, 64), (64, 40), (72,)],
    ),
    "rows of a transposed factor": (lambda a, b: np.max(a.T @ b, axis=1), [(64, 72), (64, 40)]),
    "argmax": (lambda a, b: np.argmax(a @ b, axis=1), [(72, 64), (64, 40)]),
    "argmin of distances": (
        lambda a, b, c: np.argmin(c - 2 * (a @ b).astype(np.float32), axis=1), [(72, 64), (64, 24), (24,)],
    ),
}  # fmt: skip
LONG = [
    "maxima", "minima", "sums of squares", "sums with an epilogue", "rows of a transposed factor", "argmax",
    "argmin of distances",
]  # fmt: skip
"""The cases that are reduced in two steps where rows are longer than a tile."""


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "TILES", SMALL)
    monkeypatch.setattr(row_tiles, "ROWS", (32, 16))
    monkeypatch.setattr(row_tiles, "WIDEST", 64)
    monkeypatch.setattr(row_tiles, "_SHARE", 1000)


def close(found: np.ndarray, function: Function, arrays: list[np.ndarray]) -> None:
    expected = function(*(array.astype(np.float64) for array in arrays))
    if expected.dtype.kind == "i":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = 4e-2 if arrays[0].dtype == BF16 else 4e-3
    np.testing.assert_allclose(
        found.astype(np.float64), expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max())
    )


def integral(shapes: list[tuple[int, ...]], dtype: Any) -> list[np.ndarray]:
    """Small integers: products and their sums are exact, and many elements of a row are equal."""
    rng = np.random.default_rng(3)
    return [rng.integers(-2, 3, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize("case", CASES)
def test_one_kernel(case: str, dtype: Any) -> None:
    """The product, its reductions and results are one kernel of tiles."""
    function, shapes = CASES[case]
    exact = case.startswith("arg")
    arrays = integral(shapes, dtype) if exact else draw(shapes, dtype)
    module = scheduled(function, arrays)
    kernels = [op for op in operations(module) if op.name == "gpu.func"]
    assert [TILE in op.attributes for op in kernels] == [True]
    (launch,) = read_plan(module, "k").launches
    expected = function(*(array.astype(np.float32) for array in arrays))
    out = next(op for op in operations(module) if op.name == "func.func" and "mlirml.kernel" in op.attributes)
    dtype_of_result = result_dtype(str(out.attributes["function_type"].value.results[0].element_type))
    buffers = [array.copy() for array in arrays] + [np.zeros(expected.shape, dtype_of_result)]
    run_kernel(kernels[0], launch.grid, [buffers[number] for number in launch.buffers])
    close(buffers[-1], function, arrays)


def result_dtype(name: str) -> Any:
    return {"f16": np.float16, "bf16": BF16, "f32": np.float32, "i64": np.int64}[name]


@pytest.mark.parametrize("case", LONG)
def test_long_rows_are_reduced_in_two_steps(case: str) -> None:
    """The first kernel stores the states of tiles, and no element of the product; the second one merges them."""
    function, shapes = CASES[case]
    wide = [tuple(136 if size == shapes[1][-1] else size for size in shape) for shape in shapes]
    module = scheduled(function, draw(wide, np.float16))  # its operations die with it
    kernels = [op for op in operations(module) if op.name == "gpu.func"]
    assert [TILE in op.attributes for op in kernels] == [True, False]
    stored = [op.operands[1].type.shape for op in operations(kernels[0]) if op.name == "vector.transfer_write"]
    assert len(stored) == (2 if case.startswith("arg") else 1)
    assert all(136 not in shape for shape in stored)


def test_rows_of_which_each_element_is_used_are_read_from_memory() -> None:
    function, shapes = CASES["softmax"]
    wide = [shapes[0], (104, 136)]
    module = scheduled(function, draw(wide, np.float16))  # its operations die with it
    kernels = [op for op in operations(module) if op.name == "gpu.func"]
    assert [TILE in op.attributes for op in kernels] == [True, False]


def test_few_rows_are_no_kernel_of_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks for a small part of the processors would compute the product alone."""
    monkeypatch.setattr(row_tiles, "_SHARE", 4)
    function, shapes = CASES["softmax"]
    module = scheduled(function, draw(shapes, np.float16))
    kernels = [op for op in operations(module) if op.name == "gpu.func"]
    assert [TILE in op.attributes for op in kernels] == [True, False]
