"""Products as tile kernels, run without a GPU: their texts in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml import special
from mlirml.codegen.tile import contract
from mlirml.codegen.tile.cutile import kernel_text
from mlirml.interpreter.values import dtype_of
from mlirml.ir.bindings import mlir, operations
from mlirml.passes import parse_pipeline
from tests.codegen.gpu.gpu_harness import as_kernel
from tests.codegen.tile.cutile_numpy import simulate

BF16 = ml_dtypes.bfloat16
SMALL = (contract.Tile(32, 64, 64, 8), contract.Tile(16, 32, 64, 4))
TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 2e-3, "int32": 0.0}


def erf(x: Any) -> Any:
    """The error function, which NumPy lacks."""
    return special.erf(x) if hasattr(x, "_trace") else np.vectorize(math.erf, otypes=[x.dtype])(x)


FORMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "nn": (lambda a, b: a @ b, [(72, 104), (104, 80)]),
    "nt": (lambda a, b: a @ b.T, [(72, 104), (40, 104)]),
    "tn": (lambda a, b: a.T @ b, [(104, 72), (104, 40)]),
    "tt": (lambda a, b: a.T @ b.T, [(104, 72), (40, 104)]),
    "many rows of tiles": (lambda a, b: a @ b, [(304, 32), (32, 104)]),
    "batch": (lambda a, b: a @ b, [(3, 40, 64), (3, 64, 24)]),
    "two batches": (lambda a, b: a @ b, [(2, 3, 40, 64), (2, 3, 64, 24)]),
    "rows of two dimensions": (lambda a, b: a @ b, [(3, 24, 64), (64, 40)]),
    "heads": (lambda a, b: np.einsum("bihd,bjhd->bhij", a, b), [(2, 40, 3, 32), (2, 24, 3, 32)]),
    "heads back": (lambda a, b: np.einsum("bhij,bjhd->bihd", a, b), [(2, 3, 40, 24), (2, 24, 3, 32)]),
    "bias and relu": (lambda a, b, c: np.maximum(a @ b + c, 0), [(40, 64), (64, 72), (72,)]),
    "column and square": (lambda a, b, c: (a @ b) ** 2 - c[:, None], [(40, 64), (64, 72), (40,)]),
    "residual": (lambda a, b, c: c + a @ b * 2, [(40, 64), (64, 72), (40, 72)]),
    "functions": (lambda a, b: np.tanh(a @ b) / (1 + np.exp(-(a @ b))), [(40, 64), (64, 72)]),
    "gelu": (lambda a, b: (a @ b) * (1 + erf((a @ b) / 8)), [(40, 64), (64, 72)]),
    "cube": (lambda a, b: (a @ b) ** 3, [(40, 64), (64, 72)]),
    "mask": (lambda a, b, c, d: np.where(c[:, None] >= d, a @ b, -1), [(40, 64), (64, 72), (40,), (72,)]),
    "slices": (lambda a, b: a[8:48] @ b[:, 16:56], [(72, 64), (64, 80)]),
}  # fmt: skip


def scheduled(function: Callable[..., Any], arrays: list[np.ndarray], options: str = "") -> mlir.Module:
    """The module with the kernels of a function."""
    module = as_kernel(function, *arrays)
    parse_pipeline(f"mlirml-schedule-kernels{{device=cuda,tile=sm_90 {options}}}").run(module.operation)
    return module


def check(function: Callable[..., Any], arrays: list[np.ndarray], options: str = "") -> None:
    wide = [array.astype(np.int64 if array.dtype.kind == "i" else np.float64) for array in arrays]
    expected = function(*wide)
    module = scheduled(function, arrays, options)
    (k,) = (op for op in operations(module) if op.name == "func.func" and op.attributes["sym_name"].value == "k")
    dtype = dtype_of(mlir.FunctionType(k.attributes["function_type"].value).results[0])
    (found,) = simulate(module, "k", *arrays, np.zeros(expected.shape, dtype))
    error = np.abs(found.astype(np.float64) - expected).max()
    assert error <= TOLERANCE[str(np.dtype(dtype))] * max(np.abs(expected).max(), 1), error


def draw(shapes: list[tuple[int, ...]], dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) / max(shape[-1], 1) ** 0.25).astype(dtype) for shape in shapes]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "TILES", SMALL)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("form", FORMS)
def test_products(form: str, dtype: Any) -> None:
    function, shapes = FORMS[form]
    check(function, draw(shapes, dtype))


@pytest.mark.parametrize("form", ["nn", "nt", "tn", "batch", "bias and relu"])
def test_rounded_factors(form: str) -> None:
    function, shapes = FORMS[form]
    check(function, draw(shapes, np.float32), "tf32=true")


def test_integers() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((40, 144), (144, 48)))
    check(lambda a, b: a.astype(np.int32) @ b.astype(np.int32), [a, b])


def test_computed_factors() -> None:
    def function(a: Any, b: Any, scale: Any) -> Any:
        return np.maximum(a * scale, 0) @ b

    check(function, draw([(40, 64), (64, 72), (64,)], np.float16))


def tile_kernels(function: Callable[..., Any], arrays: list[np.ndarray]) -> list[mlir.Operation]:
    return kernels_of(scheduled(function, arrays))


def kernels_of(module: mlir.Module) -> list[mlir.Operation]:
    return [op for op in operations(module) if op.name == "gpu.func" and "mlirml.tile" in op.attributes]


def test_exact_products_and_unaligned_rows_have_other_kernels() -> None:
    product = FORMS["nn"][0]
    assert not tile_kernels(product, draw([(64, 64), (64, 64)], np.float32))
    assert not tile_kernels(product, draw([(64, 63), (63, 64)], np.float16))
    assert not tile_kernels(product, draw([(8, 64), (64, 64)], np.float16))
    assert tile_kernels(product, draw([(64, 64), (64, 64)], np.float16))


def test_a_power_that_is_no_product_has_another_kernel() -> None:
    arrays = draw([(64, 64), (64, 64)], np.float16)
    assert not tile_kernels(lambda a, b: (a @ b) ** 2.5, arrays)


def test_adjacent_blocks_share_rows_and_columns() -> None:
    """The numbers of blocks go through sixteen rows of tiles before they go on to the next column."""
    arrays = draw([(1024, 64), (64, 512)], np.float16)
    module = scheduled(FORMS["nn"][0], arrays)  # its operations die with it
    (kernel,) = kernels_of(module)
    lines = kernel_text(kernel).splitlines()
    assert "def kernel(x0, x1, x2):" in lines
    assert any("min(" in line for line in lines)
