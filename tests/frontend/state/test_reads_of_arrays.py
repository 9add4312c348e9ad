"""Numbers that tracing reads from an array of an object, by whatever way: a change of them is seen by the next call."""

from __future__ import annotations

import ctypes
import math
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

import mlirml as ml
from mlirml.nn import functional as F

MODEL = SimpleNamespace(w=np.arange(3.0))
READS = {
    "asarray": lambda w: np.asarray(w)[1],
    "array": lambda w: np.array(w)[1],
    "asanyarray": lambda w: np.asanyarray(w)[1],
    "ascontiguousarray": lambda w: np.ascontiguousarray(w)[1],
    "asfortranarray": lambda w: np.asfortranarray(w)[1],
    "require": lambda w: np.require(w)[1],
    "array of a list": lambda w: np.array([w])[0][1],
    "stack": lambda w: np.stack([w, w])[0, 1],
    "as_strided": lambda w: np.lib.stride_tricks.as_strided(w, (2,), (8,))[1],
    "base": lambda w: w[:].base[1],
    "view of bits": lambda w: w.view(np.int64)[1] % 1000003,
    "view as an array": lambda w: w.view(np.ndarray)[1],
    "bytes": lambda w: sum(bytes(w)),
    "ctypes": lambda w: w.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[1],
    "flat": lambda w: w.flat[1],
    "ndenumerate": lambda w: [value for _, value in np.ndenumerate(w)][1],
    "nditer": lambda w: [float(value) for value in np.nditer(w)][1],
    "fromiter": lambda w: np.fromiter(w, float)[1],
    "reshape": lambda w: w.reshape(3, 1)[1, 0],
    "transposed": lambda w: w.T[1],
    "real": lambda w: w.real[1],
    "part": lambda w: w[:2][1],
    "float": lambda w: float(w[1]),
    "item": lambda w: w.item(1),
    "tolist": lambda w: w.tolist()[1],
    "copy": lambda w: w.copy()[1],
    "astype": lambda w: w.astype("f4")[1],
    "iteration": lambda w: list(w)[1],
    "sorted": lambda w: sorted(w)[1],
    "sum": lambda w: sum(w),
    "max": lambda w: max(w),
    "fsum": lambda w: math.fsum(w),
    "reduction": lambda w: np.sum(a=w),
    "product": lambda w: w @ w,
    "einsum": lambda w: np.einsum("i->", w),
    "where": lambda w: np.where(w > 3)[0].size,
    "branch": lambda w: 2.0 if w[1] > 3 else 1.0,
    "text": lambda w: len(str(w * 1000)),
    "scipy": lambda w: scipy.linalg.norm(w),
    "operators": lambda w: (2 * w + w**2 - w / 2)[1],
    "comparison": lambda w: (w == 2).sum(),
    "keyword": lambda w: np.full_like(a=w, fill_value=w[1])[0],
}


@pytest.mark.parametrize("how", READS)
def test_what_is_read_is_read_anew(how: str) -> None:
    def f(x: Any) -> Any:
        return x * READS[how](MODEL.w)

    def loss(x: Any) -> Any:
        return np.sum(f(x))

    x = np.ones(3)
    compiled, gradient = ml.compile(f), ml.compile(ml.grad(loss))
    for values in ([1.0, 2.0, 3.0], [700.0, 11.0, 13.0], [1.0, 2.0, 3.0]):
        MODEL.w[:] = values
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-6)
        np.testing.assert_allclose(gradient(x), f(x), rtol=1e-6)
        np.testing.assert_allclose(ml.grad(loss)(x), f(x), rtol=1e-6)


def test_memory_is_not_shared() -> None:
    with pytest.raises(TypeError, match="bytes-like"):
        ml.compile(lambda x: x * memoryview(MODEL.w)[0])(np.ones(3))


def test_stores_are_made() -> None:
    def store(x: Any) -> Any:
        MODEL.w[0] = 1
        return x

    def add(x: Any) -> Any:
        MODEL.w[:2] += 1
        return x

    array = MODEL.w
    for function in (store, add):
        before = MODEL.w.copy()
        function(np.ones(3))
        expected = MODEL.w.copy()
        MODEL.w[:] = before
        ml.compile(function)(np.ones(3))
        assert np.array_equal(MODEL.w, expected)
        assert MODEL.w is array


def test_it_is_an_array() -> None:
    def f(x: Any) -> Any:
        assert isinstance(MODEL.w, np.ndarray)
        assert (np.shape(MODEL.w), MODEL.w.ndim, len(MODEL.w), np.ndim(a=MODEL.w)) == ((3,), 1, 3, 1)
        return x * 2

    compiled = ml.compile(f)
    compiled(np.ones(3))
    MODEL.w += 1
    assert "1 signature(s) compiled" in compiled.explain()
    compiled(np.ones(3))
    assert "1 signature(s) compiled" in compiled.explain()


def test_an_array_of_bf16_that_a_library_asks_for_keeps_its_dtype() -> None:
    weight = np.array([0.5, 2.0], ml_dtypes.bfloat16)
    x = np.array([[-1.0, -3.0]], ml_dtypes.bfloat16)
    loss = ml.compile(lambda x: F.nll_loss(x, np.array([1]), weight, reduction="sum"))
    assert loss(x) == 6
    weight[1] = 4
    assert loss(x) == 12


def test_a_transposed_array_is_read_as_it_lies_in_memory() -> None:
    """Stores into the array are seen, and no call copies it."""
    w = np.arange(1200.0).reshape(30, 40)
    cube = np.arange(7200.0).reshape(20, 30, 12)
    x = np.ones((2, 40))
    compiled = ml.compile(lambda x: (x @ w.T, w.T.sum(axis=1) + x[0, 0], cube.transpose(2, 0, 1)[3] * x[1, 0], w @ x.T))
    for factor in (1, 3):
        w[:] *= factor
        cube[:] += factor
        expected = x @ w.T, w.T.sum(axis=1) + 1, cube.transpose(2, 0, 1)[3], w @ x.T
        for found, other in zip(compiled(x), expected, strict=True):
            np.testing.assert_allclose(found, other)
    captured = ml.trace(lambda x: x @ w.T + (w.T * 2)[0, 0], x)
    assert [c.flags.c_contiguous for c in captured.constants] == [True]
    assert np.shares_memory(captured.constants[0], w)
