"""Elementwise consumers of contractions: what runs on the register tile, against float64 NumPy, and what must not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mlirml as ml
from mlirml.ir.bindings import parse
from mlirml.ir.text.dtypes import bfloat16
from mlirml.runtime.executable import load_artifact
from mlirml.targets.cpu import codegen, cpu_target

Array = npt.NDArray[Any]


def normal(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    """Arrays whose products are about one."""
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) / max(shape) ** 0.25).astype(dtype) for shape in shapes]


def leaves(result: Any) -> list[Array]:
    return list(result) if isinstance(result, tuple) else [result]


def fused(function: Callable[..., Any], *arguments: Array) -> bool:
    """Whether nothing is left behind the contractions but kernels that write tiles."""
    text = ml.compile(function).ir("schedule", *arguments)
    main = text[text.index("func.func @main") :].partition("\n  }\n")[0]
    return "_write(" in text and "scf.for" not in main and "parallel_for" not in main


def check(function: Callable[..., Any], *arguments: Array, tolerance: float = 4e-6) -> None:
    got = leaves(ml.compile(function)(*arguments))
    want = leaves(function(*[a.astype(np.float64) if a.dtype.kind == "f" else a for a in arguments]))
    assert len(got) == len(want)
    for one, other in zip(got, want):
        assert one.shape == other.shape
        scale = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(one.astype(np.float64), other, rtol=0, atol=tolerance * scale)


def bias(x: Array, w: Array, b: Array, r: Array) -> Array:
    return x @ w + b


def gelu(x: Array, w: Array, b: Array, r: Array) -> Array:
    y = x @ w + b
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def relu(x: Array, w: Array, b: Array, r: Array) -> Array:
    return np.maximum(x @ w, 0)


def residual(x: Array, w: Array, b: Array, r: Array) -> Array:
    return r + x @ w * 0.5 + b


def masked(x: Array, w: Array, b: Array, r: Array) -> Array:
    return np.where(r > 0, x @ w, -1.0)


def by_rows(x: Array, w: Array, b: Array, r: Array) -> Array:
    return (x @ w) / (2.0 + r[:, :1] * r[:, :1])


def two_results(x: Array, w: Array, b: Array, r: Array) -> tuple[Array, Array]:
    y = x @ w + b
    return np.tanh(y), y * r


def raw_and_activated(x: Array, w: Array, b: Array, r: Array) -> tuple[Array, Array]:
    y = x @ w
    return y, np.maximum(y + b, 0)


EPILOGUES = [bias, gelu, relu, residual, masked, by_rows, two_results, raw_and_activated]
SHAPES = [(37, 53, 41), (6, 20, 64), (13, 500, 97), (130, 900, 200), (256, 400, 129), (8, 3, 16)]


@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("shape", SHAPES)
def test_epilogue_on_the_tile(epilogue: Callable[..., Any], shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    arguments = normal((m, k), (k, n), (n,), (m, n))
    assert epilogue is by_rows or fused(epilogue, *arguments)  # the divisor of a row has a loop of its own
    check(epilogue, *arguments)


@pytest.mark.parametrize("turn", ["n", "a", "b", "ab"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(37, 53, 41), (130, 900, 200)])
def test_epilogue_of_transposed_operands(turn: str, dtype: Any, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x, w = normal((k, m) if "a" in turn else (m, k), (n, k) if "b" in turn else (k, n), dtype=dtype)
    (b,) = normal((n,), dtype=dtype)

    def function(x: Array, w: Array, b: Array) -> Array:
        return np.tanh((x.T if "a" in turn else x) @ (w.T if "b" in turn else w) + b)

    check(function, x, w, b, tolerance=4e-6 if dtype is np.float32 else 1e-14)


def test_epilogue_of_a_batch() -> None:
    x, w, b = normal((5, 20, 30), (5, 30, 40), (40,))
    check(lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b)
    x, w, b = normal((3, 50, 30), (30, 200), (200,))
    check(lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_epilogue_on_threads(threads: int) -> None:
    before = ml.config.threads
    arguments = normal((300, 400), (400, 500), (500,), (300, 500))
    try:
        ml.config.threads = threads
        for epilogue in (gelu, two_results, raw_and_activated):
            check(epilogue, *arguments)
    finally:
        ml.config.threads = before


def test_narrow_floats_are_rounded_before_the_epilogue() -> None:
    x, w, b = normal((70, 90), (90, 50), (50,), dtype=np.float16)
    got = ml.compile(lambda x, w, b: np.maximum(x @ w + b, 0))(x, w, b)
    product = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float16)
    want = np.maximum(product + b, np.float16(0))
    assert got.dtype == np.float16
    assert (np.abs(got.astype(np.float64) - want) <= 2 * np.abs(np.spacing(product).astype(np.float64)) + 1e-3).all()


def test_products_that_share_consumers_or_stand_between() -> None:
    x, v, w, b = normal((40, 50), (50, 30), (50, 30), (30,))

    def function(x: Array, v: Array, w: Array, b: Array) -> tuple[Array, ...]:
        p, q = x @ v, x @ w
        return p + q, np.maximum(p, 0) * b, np.tanh(q) + b

    check(function, x, v, w, b)
    check(lambda x, v, w, b: (x @ v) * (x @ w) + b, x, v, w, b)
    check(lambda x, v, w, b: (np.tanh(x @ v + b), np.maximum(x @ w + b, 0)), x, v, w, b)


def test_a_result_in_the_place_of_an_operand_is_not_fused() -> None:
    x, w = normal((64, 64), (64, 64))

    def function(x: Array, w: Array) -> Array:
        h = x * 2
        for _ in range(3):
            h = h + h @ w
        return h

    check(function, x, w / 64)


def test_an_epilogue_that_reads_other_elements_is_right() -> None:
    (x,) = normal((48, 48))
    check(lambda x: (x @ x) + (x @ x).T, x)
    check(lambda x: (x @ x) + x.T, x)


def test_special_values_pass_through() -> None:
    x, w, b, _ = normal((40, 40), (40, 40), (40,), (1,))
    x[3, 4], x[5, 6], w[7, 8] = np.nan, np.inf, -np.inf
    got = ml.compile(lambda x, w, b: x @ w + b)(x, w, b)
    with np.errstate(invalid="ignore"):
        want = x @ w + b
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


@pytest.mark.parametrize("turn", ["n", "a", "b", "ab"])
@pytest.mark.parametrize("shape", [(37, 53, 41), (100, 97, 333)])
def test_products_of_bfloat16_are_summed_in_f32(turn: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    kind = np.dtype(bfloat16())
    x, w = normal((k, m) if "a" in turn else (m, k), (n, k) if "b" in turn else (k, n), dtype=kind)

    def function(x: Array, w: Array) -> Array:
        return (x.T if "a" in turn else x) @ (w.T if "b" in turn else w)

    got = ml.compile(function)(x, w)
    want = function(x.astype(np.float64), w.astype(np.float64))
    scale = function(np.abs(x.astype(np.float64)), np.abs(w.astype(np.float64)))
    assert got.dtype == np.float32  # NumPy has no loop for it and takes the next wider type
    assert (np.abs(got - want) <= 2.0**-20 * scale).all()


@pytest.mark.parametrize("schedule", ["{pairs = 2, nr = 40}", "{pairs = 2, kc = 33}", "{nr = 40}"])
def test_pairs_that_do_not_fit_are_left(schedule: str) -> None:
    check_scheduled_product(schedule)


@pytest.mark.parametrize("schedule", ["{nr = 6}", "{nr = 20, lanes = 16}", "{mr = 3, nr = 7, kc = 9}"])
def test_tiles_whose_last_vector_is_not_full_write_no_other_columns(schedule: str) -> None:
    with ml.config.override(processor="sse4.1"):  # has no products of pairs, so that operands are converted and packed
        check_scheduled_product(schedule)


def check_scheduled_product(schedule: str) -> None:
    """Multiply bf16 with a given schedule, and add to what is there."""
    text = f"""
    func.func @main(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {{
      %r = linalg.matmul {{mlirml.schedule = {schedule}}}
        ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
      return %r : tensor<64x64xf32>
    }}"""
    module = parse(text)
    cpu_target().pipeline.run(module)
    x, w = normal((64, 64), (64, 64), dtype=np.dtype(bfloat16()))
    start = np.ones((64, 64), np.float32)
    inputs = [x, w, start]
    program = load_artifact(codegen(module), [(a.dtype, a.shape) for a in inputs], [(start.dtype, start.shape)])
    (got,) = program(inputs)
    np.testing.assert_allclose(got, x.astype(np.float64) @ w.astype(np.float64) + 1, rtol=0, atol=1e-4)


def test_converted_operands_are_read_as_they_are() -> None:
    x, w = normal((70, 90), (60, 90), dtype=np.float16)

    def function(x: Array, w: Array) -> Array:
        return x.astype(np.float32) @ w.astype(np.float32).T

    got = ml.compile(function)(x, w)
    np.testing.assert_allclose(got, x.astype(np.float64) @ w.astype(np.float64).T, rtol=0, atol=1e-5)
    text = ml.compile(function).ir("optimize", x, w)
    assert "linalg.contract" in text and "linalg.generic" not in text


@pytest.mark.parametrize(("m", "k", "n"), [(1, 4, 4), (3, 8, 16), (33, 20, 40)])
@pytest.mark.parametrize("kept", [True, False])
def test_products_that_walk_across_memory_are_right(m: int, k: int, n: int, kept: bool) -> None:
    """The parts of a complex product lie beside each other, so that neither is written a vector at a time."""

    def f(z: Any, w: Any) -> Any:
        y = z @ w
        imaginary = np.tanh(y.imag)
        return (y, imaginary, y.real > 0) if kept else imaginary

    rng = np.random.default_rng(0)
    z = rng.standard_normal((m, k)) + 1j * rng.standard_normal((m, k))
    w = rng.standard_normal((k, n))
    for given, expected in zip(ml.compile(f)(z, w), f(z, w), strict=True):
        assert np.allclose(given, expected)


def test_long_sums_of_few_are_scaled_apart() -> None:
    x, y = (np.random.default_rng(0).normal(size=(20, 10_000)) for _ in range(2))

    def scaled(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x @ y.T) * 2.5

    with ml.config.override(processor="avx512,l2=2M"):
        text = ml.compile(scaled).ir("schedule", x, y)
    assert re.search(r"call @contract_packed_f64_20x20x10000\(", text)
    assert "arith.mulf" in text.split("func.func @main")[1].split("func.func")[0]
    np.testing.assert_allclose(ml.compile(scaled)(x, y), scaled(x, y), rtol=1e-9, atol=1e-9)


def test_sums_of_many_blocks_are_added_in_out() -> None:
    """Without mask registers panels of b are short: the consumer runs on the tiles of the last block of k."""
    x, y, z = (np.random.default_rng(0).normal(size=shape) for shape in ((101, 1100), (1100, 902), (101, 902)))

    def gemm(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return 1.5 * x @ y + 1.25 * z

    with ml.config.override(processor="avx2,l2=512K"):
        text = ml.compile(gemm).ir("schedule", x, y, z)
    main = text.split("func.func @main")[1].split("func.func")[0]
    assert "call @contract_packed_f64_101x902x1100(" in main
    assert "arith.mulf" not in main and "scf.for" not in main
    np.testing.assert_allclose(ml.compile(gemm)(x, y, z), gemm(x, y, z), rtol=1e-9, atol=1e-9)


def test_product_that_is_kept_beside_its_consumer_in_blocks() -> None:
    x, y = (np.random.default_rng(0).normal(size=shape) for shape in ((130, 1000), (1000, 777)))

    def both(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        product = x @ y
        return product, np.maximum(product, 0.0)

    for given, expected in zip(ml.compile(both)(x, y), both(x, y), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-9)
