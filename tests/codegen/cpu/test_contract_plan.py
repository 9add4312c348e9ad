"""Plans of contractions for named machines: sizes of blocks against the sizes of caches."""

from __future__ import annotations

import pytest

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
