"""Products that OpenBLAS computes where a schedule says so, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.cpu.contract.attribute import to_words
from mlirml.codegen.cpu.contract.plan import Schedule
from mlirml.runtime import HAS_BLAS
from mlirml.tuning import search

pytestmark = pytest.mark.skipif(not HAS_BLAS, reason="NumPy is linked to another BLAS")

Function = Callable[..., Any]
CALL = "@contract_library"

CASES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "product": (lambda a, b: a @ b, [(70, 50), (50, 90)]),
    "a transposed": (lambda a, b: a.T @ b, [(50, 70), (50, 90)]),
    "b transposed": (lambda a, b: a @ b.T, [(70, 50), (90, 50)]),
    "both transposed": (lambda a, b: a.T @ b.T, [(50, 70), (90, 50)]),
    "result transposed": (lambda a, b: (a @ b).T, [(70, 50), (50, 90)]),
    "consumer": (lambda a, b: np.maximum(a @ b + b[0], 0), [(70, 50), (50, 90)]),
    "matrix and vector": (lambda a, b: a @ b, [(70, 50), (50,)]),
    "vector and matrix": (lambda a, b: a @ b, [(50,), (50, 90)]),
    "transposed matrix and vector": (lambda a, b: a.T @ b, [(50, 70), (50,)]),
    "vector and transposed matrix": (lambda a, b: a @ b.T, [(50,), (90, 50)]),
    "one column": (lambda a, b: a @ b, [(70, 50), (50, 1)]),
    "one row": (lambda a, b: a @ b, [(1, 50), (50, 90)]),
    "outer": (lambda a, b: a @ b, [(70, 1), (1, 90)]),
    "square": (lambda a: a @ a.T, [(100, 60)]),
    "square of columns": (lambda a: a.T @ a, [(60, 100)]),
    "columns of a slice": (lambda a, b: a[:, 3:40] @ b[5:42], [(70, 50), (50, 90)]),
    "columns of a column": (lambda a, b: a @ b[:, 3], [(70, 50), (50, 90)]),
    "in a loop": (lambda a, b: sum_of_products(a, b), [(4, 40, 50), (4, 50, 30)]),
}


def sum_of_products(a: Any, b: Any) -> Any:
    total = np.zeros((a.shape[1], b.shape[2]), a.dtype)
    for i in range(len(a)):
        total += a[i] @ b[i]
    return total


def arrays(shapes: list[tuple[int, ...]], dtype: Any) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    return [(numbers.standard_normal(shape) * 8).astype(dtype) for shape in shapes]


def by_library(function: Function) -> Any:
    """The function with the schedule "library" for all products that have one."""
    name = "mlirml-schedule-contract"
    passes = [f"{name}{{kernel=library}}" if each == name else each for each in ml.optional_passes()]
    return ml.compile(function, pipeline=passes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_products_of_the_library(name: str, dtype: Any) -> None:
    function, shapes = CASES[name]
    given = arrays(shapes, dtype)
    compiled = by_library(function)
    expected = function(*[each.astype(np.float64) for each in given])
    bound = 200 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(compiled(*given), expected, rtol=0, atol=bound)
    assert CALL in compiled.ir("schedule", *given)


def test_other_products_have_kernels() -> None:
    cases: list[tuple[Function, list[tuple[int, ...]], Any]] = [
        (lambda a, b: a @ b, [(70, 50), (50, 90)], np.int32),
        (lambda a, b: a @ b, [(3, 70, 50), (3, 50, 90)], np.float32),
        (lambda a, b: a[:, ::2] @ b, [(70, 100), (50, 90)], np.float64),
        (lambda a, b: a @ b, [(70, 0), (0, 90)], np.float64),
    ]
    for function, shapes, dtype in cases:
        given = arrays(shapes, dtype)
        compiled = by_library(function)
        np.testing.assert_allclose(compiled(*given), function(*given), rtol=1e-4, atol=1e-2)
        if dtype != np.float64 or 0 in shapes[0]:
            assert CALL not in compiled.ir("schedule", *given)


def test_no_library_is_called_without_its_name() -> None:
    a, b = arrays([(70, 50), (50, 90)], np.float32)
    with ml.config.override(libraries=()):
        compiled = by_library(lambda a, b: a @ b)
        np.testing.assert_allclose(compiled(a, b), a @ b, rtol=1e-4, atol=1e-2)
        assert CALL not in compiled.ir("schedule", a, b)
    assert CALL not in ml.compile(lambda a, b: a @ b).ir("schedule", a, b)


def test_names_of_libraries_are_checked() -> None:
    with pytest.raises(ValueError, match="openblas"):
        ml.config.override(libraries=("mkl",)).__enter__()
    with ml.config.override(libraries="openblas"):
        assert ml.config.libraries == ("openblas",)


def test_the_tuner_measures_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    asked: list[str] = []
    measured = search._Run._measured

    def noted(self: Any, worker: Any, name: int, text: str, limit: float) -> list[float]:
        asked.append(text)
        return measured(self, worker, name, text, limit)

    monkeypatch.setattr(search._Run, "_measured", noted)
    a, b = arrays([(70, 50), (50, 90)], np.float32)
    text = to_words(Schedule("library"))
    for libraries, is_asked in ((("openblas",), True), ((), False)):
        asked.clear()
        with ml.config.override(tune_seconds=0.5, libraries=libraries, cache_dir=tmp_path / str(is_asked)):
            compiled = ml.compile(lambda a, b: a @ b, tune=True)
            np.testing.assert_allclose(compiled(a, b), a @ b, rtol=1e-4, atol=1e-2)
        assert (text in asked) is is_asked


def test_threads_of_the_library_are_those_of_numpy_afterwards() -> None:
    compiled = by_library(lambda a, b: a @ b)
    a, b = arrays([(300, 300), (300, 300)], np.float64)
    for threads in (1, 2):
        with ml.config.override(threads=threads):
            np.testing.assert_allclose(compiled(a, b), a @ b, rtol=1e-9, atol=1e-9)
