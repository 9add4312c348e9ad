"""Plans of contractions for named machines: sizes of blocks against the sizes of caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.cpu.contract.plan import Schedule, plan
from mlirml.codegen.cpu.contract.problem import Contraction, Operand, build_problem
from mlirml.targets.machine import Processor, named

AVX2 = named("avx2,l2=512K")
AVX512 = named("avx512,l2=2M")
BYTES = {"f32": 4, "f64": 8}


def matmul(dtype: str, m: int, k: int, n: int, machine: Processor) -> Schedule:
    """The schedule of a product of contiguous matrices."""
    operand = Operand(dtype)
    maps = ((0, 2), (2, 1), (0, 1))
    return plan(build_problem(Contraction((m, n, k), maps, (operand, operand, operand), dtype)), machine)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("size", [512, 800, 1024, 2048, 4000])
def test_panel_of_b_fits_the_first_cache_and_block_of_a_the_second(dtype: str, size: int) -> None:
    schedule = matmul(dtype, size, size, size, AVX2)
    assert schedule.kernel == "packed" and schedule.pack == "ab"
    assert schedule.kc * schedule.nr * BYTES[dtype] <= AVX2.l1_bytes * 3 // 4
    assert schedule.group * schedule.mc * schedule.kc * BYTES[dtype] <= AVX2.l2_bytes * 3 // 4


def test_rows_stay_in_place_where_sums_are_short() -> None:
    assert matmul("f64", 1024, 128, 1024, AVX2).pack == "b"


def test_rows_stay_in_place_where_there_are_many_registers() -> None:
    schedule = matmul("f64", 1000, 1200, 1100, AVX512)
    assert (schedule.pack, schedule.kc, schedule.group) == ("b", 1200, 1)


def test_rows_are_split_among_sixteen_threads_but_packed_in_groups() -> None:
    schedule = matmul("f64", 800, 900, 850, AVX2)
    assert schedule.parallel == "rows" and schedule.chunks >= 15 and schedule.group == 2


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_long_rows_from_memory_are_prefetched(dtype: str) -> None:
    schedule = matmul(dtype, 4096, 4096, 8, AVX512)
    assert schedule.kernel == "dot" and (schedule.mr, schedule.nr, schedule.kc, schedule.prefetch) == (3, 8, 2048, 1)
    assert matmul(dtype, 24, 4096, 8, AVX512).prefetch == 0
    schedule = matmul(dtype, 4096, 4096, 8, AVX2)
    assert schedule.nr == 4 and schedule.prefetch * schedule.kc * BYTES[dtype] == 2048


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(61, 4096), (50, 3000), (13, 1409), (25, 2053)])
@pytest.mark.parametrize("level", ["avx2", "avx512"])
def test_prefetched_rows_are_multiplied_to_their_ends(dtype: Any, shape: tuple[int, int], level: str) -> None:
    """Also where the last rows are fewer, and sums no whole number of blocks of k."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(shape).astype(dtype), rng.standard_normal((shape[1], 7)).astype(dtype)
    if level == "avx512" and named("host").vector_bits < 512:
        pytest.skip("this processor has no AVX-512")
    with ml.config.override(processor=f"{level},l2=32K"):
        compiled = ml.compile(lambda a, b: a @ b)
        found, text = compiled(a, b), compiled.ir("schedule", a, b)
    assert "memref.prefetch" in text
    reference = a.astype(np.longdouble) @ b.astype(np.longdouble)
    most = 4 * max(np.abs(a @ b - reference).max(), np.finfo(dtype).eps)
    assert np.abs(found - reference).max() <= most


@pytest.mark.parametrize("machine", [AVX2, AVX512])
@pytest.mark.parametrize(("dtype", "k"), [("f32", 8), ("f32", 30), ("f64", 16)])
def test_products_of_short_sums_store_one_panel_of_whole_rows_at_a_time(dtype: str, k: int, machine: Processor) -> None:
    schedule = matmul(dtype, 2048, k, 1024, machine)
    assert (schedule.pack, schedule.mc) == ("b", schedule.mr) and schedule.nc >= 1024
    assert matmul(dtype, 2048, 400, 1024, machine).mc > schedule.mr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(701, 7, 1500), (1031, 33, 1028)])
def test_products_of_short_sums_are_right(dtype: Any, shape: tuple[int, int, int]) -> None:
    """Also where rows and columns are no multiples of a tile, and with a bias."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b, bias = rng.random((m, k)), rng.random((k, n)), rng.random(n)
    found = ml.compile(lambda a, b, bias: a @ b + bias)(*(x.astype(dtype) for x in (a, b, bias)))
    np.testing.assert_allclose(found, a @ b + bias, rtol=1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize(("dtype", "rows"), [("f32", 24), ("f64", 16)])
def test_columns_are_packed_for_few_rows_if_no_cache_has_them(dtype: str, rows: int) -> None:
    schedule = matmul(dtype, rows, 4096, 4096, AVX512)
    assert (schedule.pack, schedule.parallel) == ("ab", "columns")
    assert "b" not in matmul(dtype, rows, 512, 512, AVX512).pack


@pytest.mark.parametrize("machine", [AVX2, AVX512])
def test_rows_stay_in_place_beside_few_transposed_columns(machine: Processor) -> None:
    operand = Operand("f32")
    for m, k, n in ((4096, 4096, 16), (1024, 1024, 96), (200, 784, 10)):
        problem = build_problem(Contraction((m, n, k), ((0, 2), (1, 2), (0, 1)), (operand, operand, operand), "f32"))
        assert plan(problem, machine).pack == "b"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(37, 9), (64, 33), (130, 100), (9, 300)])
@pytest.mark.parametrize("level", ["sse4.1", "avx2", "avx512"])
def test_transposed_columns_are_packed_to_their_ends(dtype: Any, shape: tuple[int, int], level: str) -> None:
    if level == "avx512" and named("host").vector_bits < 512:
        pytest.skip("this processor has no AVX-512")
    (m, n), rng = shape, np.random.default_rng(5)
    for k in (7, 64, 401):
        a, b = (rng.integers(-9, 10, size).astype(dtype) for size in ((m, k), (n, k)))
        with ml.config.override(processor=level):
            computed = ml.compile(lambda x, y: x @ y.T)(a, b)
        np.testing.assert_array_equal(computed, a @ b.T)
