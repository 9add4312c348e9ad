"""`mlirml.numpy` as a namespace of the array API standard, version 2024.12, on arrays of a program."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import mlirml as ml
import mlirml.numpy as mnp
from mlirml.errors import ShapeError

NAMES = [
    "abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin",
    "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_to", "can_cast",
    "ceil", "clip", "complex128", "complex64", "concat", "conj", "copysign", "cos", "cosh", "count_nonzero",
    "cumulative_prod", "cumulative_sum", "diff", "divide", "e", "empty", "empty_like", "equal", "exp",
    "expand_dims", "expm1", "eye", "finfo", "flip", "float32", "float64", "floor", "floor_divide", "from_dlpack",
    "full", "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int64",
    "int8", "isdtype", "isfinite", "isinf", "isnan", "less", "less_equal", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose",
    "max", "maximum", "mean", "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis",
    "nextafter", "nonzero", "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod",
    "real", "reciprocal", "remainder", "repeat", "reshape", "result_type", "roll", "round", "searchsorted", "sign",
    "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc", "uint16", "uint32", "uint64",
    "uint8", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where",
    "zeros", "zeros_like", "__array_namespace_info__", "__array_api_version__",
]  # fmt: skip
LINALG = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip
FFT = [
    "fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq",
    "fftshift", "ifftshift",
]  # fmt: skip


def test_names() -> None:
    assert [name for name in NAMES if not hasattr(mnp, name)] == []
    assert [name for name in LINALG if not hasattr(mnp.linalg, name)] == []
    assert [name for name in FFT if not hasattr(mnp.fft, name)] == []
    assert mnp.__array_api_version__ == "2024.12"
    info = mnp.__array_namespace_info__()
    assert info.default_device() == "cpu" and [*info.devices()] == ["cpu"]
    assert info.default_dtypes()["real floating"] == np.float64
    assert "device" in inspect.signature(mnp.zeros).parameters


def centred(x: Any) -> Any:
    """A program that knows its arrays only by the standard."""
    xp = x.__array_namespace__(api_version="2024.12")
    weights = xp.astype(xp.arange(1, x.shape[0] + 1, dtype=xp.int32, device=x.device), x.dtype)
    total = xp.sum(weights * x.T, axis=-1, keepdims=True) / xp.sum(weights)
    spread = xp.linalg.vector_norm(x - xp.permute_dims(total, (1, 0)), axis=0)
    order = xp.argsort(spread, descending=True)
    spectrum = xp.fft.rfft(xp.take(x, order, axis=1), axis=0)
    return xp.concat([xp.abs(spectrum), xp.ones_like(xp.real(spectrum))]), xp.linalg.svdvals(x.mT), xp.unstack(spread)


def test_a_program_written_for_the_standard() -> None:
    x = np.random.default_rng(0).standard_normal((5, 3))
    found, values, parts = ml.compile(centred)(x)
    weights = np.arange(1, 6)[:, None]
    spread = np.linalg.norm(x - (weights * x).sum(axis=0) / 15, axis=0)
    expected = np.abs(np.fft.rfft(x[:, np.argsort(-spread)], axis=0))
    np.testing.assert_allclose(found, np.concatenate([expected, np.ones_like(expected)]), rtol=1e-12)
    np.testing.assert_allclose(values, np.linalg.svdvals(x), rtol=1e-12)
    np.testing.assert_allclose(parts, spread, rtol=1e-12)
    gradient = ml.grad(lambda x: np.sum(centred(x)[1]))(x)
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(gradient, u @ vh, rtol=1e-9)


PROMOTIONS = [
    ("int8", "int16", "int16"), ("uint8", "int8", "int16"), ("uint32", "int32", "int64"), ("uint8", "uint16", "uint16"),
    ("float32", "float64", "float64"), ("float32", "complex64", "complex64"), ("float64", "complex64", "complex128"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "expected"), PROMOTIONS)
def test_promotion(one: str, other: str, expected: str) -> None:
    assert mnp.result_type(getattr(mnp, one), getattr(mnp, other)) == getattr(mnp, expected)
    x, y = np.ones(3, one), np.ones(3, other)
    found = ml.compile(lambda x, y: (mnp.add(x, y), mnp.where(x == 1, x, y), mnp.stack([x + 0 * y, y]), x * 2))(x, y)
    assert [str(part.dtype) for part in found] == [expected] * 3 + [one]


SPECIAL: list[tuple[str, tuple[float, ...], float]] = [
    ("atan2", (0.0, -0.0), np.pi), ("atan2", (-0.0, 1.0), -0.0), ("pow", (-np.inf, 3.0), -np.inf),
    ("pow", (1.0, np.nan), 1.0),
    ("hypot", (np.inf, np.nan), np.inf), ("logaddexp", (-np.inf, -np.inf), -np.inf),
    ("remainder", (5.0, -np.inf), -np.inf),
    ("remainder", (-0.0, 3.0), 0.0), ("floor_divide", (np.inf, 2.0), np.nan), ("copysign", (3.0, -0.0), -3.0),
    ("maximum", (np.nan, 1.0), np.nan), ("sign", (-0.0,), 0.0), ("round", (2.5,), 2.0), ("round", (-0.5,), -0.0),
    ("sqrt", (-0.0,), -0.0), ("expm1", (-0.0,), -0.0), ("log1p", (-1.0,), -np.inf), ("tanh", (np.inf,), 1.0),
    ("reciprocal", (-0.0,), -np.inf), ("nextafter", (0.0, 1.0), 5e-324), ("trunc", (-0.7,), -0.0),
]  # fmt: skip


def test_special_values() -> None:
    """Each of them by one program, signs of zeros included."""

    def every(values: Any) -> Any:
        return [getattr(mnp, name)(*given) for (name, _, _), given in zip(SPECIAL, values)]

    with np.errstate(all="ignore"):
        found = ml.compile(every)([[np.array([x]) for x in given] for _, given, _ in SPECIAL])
    for (name, given, expected), one in zip(SPECIAL, found):
        message = f"{name}{given}"
        np.testing.assert_array_equal(one[0], expected, err_msg=message)
        if expected == 0:
            assert np.signbit(one[0]) == np.signbit(expected), message


def test_creation_and_copies() -> None:
    def program(x: Any) -> Any:
        same = mnp.asarray(x, copy=False)
        other = mnp.asarray(x, copy=True)
        other[0] = 7
        return (
            same, other, mnp.zeros((2, 3), dtype=mnp.int8, device="cpu"), mnp.full_like(x, 3, dtype=mnp.float32),
            mnp.linspace(0, 1, 5, endpoint=False), mnp.eye(3, 2, k=-1), mnp.from_dlpack(x), x.to_device("cpu"),
        )  # fmt: skip

    x = np.arange(3.0)
    same, other, zeros, full, line, eye, shared, moved = ml.compile(program)(x)
    np.testing.assert_array_equal(other, [7, 1, 2])
    assert zeros.dtype == np.int8 and full.dtype == np.float32 and (full == 3).all()
    np.testing.assert_array_equal(line, np.linspace(0, 1, 5, endpoint=False))
    np.testing.assert_array_equal(eye, np.eye(3, 2, k=-1))
    for array in (same, shared, moved):
        np.testing.assert_array_equal(array, x)


def test_what_is_refused() -> None:
    x = np.arange(3.0)
    for program in (
        lambda x: mnp.zeros(3, device="cuda"), lambda x: x.to_device("vulkan"),
        lambda x: x.__array_namespace__(api_version="1"),
        lambda x: mnp.asarray(x, dtype=mnp.float32, copy=False),
    ):  # fmt: skip
        with pytest.raises(ShapeError):
            ml.compile(program)(x)
