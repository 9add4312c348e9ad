"""The PolyBench kernels as Python loops: their numbers, and what is left of their loops after stage `raise`."""

from __future__ import annotations

import pytest

from benchmarks.polybench import KERNELS
from benchmarks.polybench.measure import largest_error, structure

DENSE = [name for name, kernel in KERNELS.items() if kernel.dense]
PRODUCTS = {"2mm": 2, "3mm": 3, "atax": 2, "bicg": 2, "mvt": 2, "gemver": 2, "gesummv": 2, "syr2k": 2, "symm": 2}
STENCILS = ["jacobi-1d", "jacobi-2d", "heat-3d", "fdtd-2d"]


def test_the_suite_is_whole() -> None:
    forms = [name for name in KERNELS if name.startswith("gemm-")]
    assert len(KERNELS) - len(forms) == 30
    assert len(forms) == 10


@pytest.mark.parametrize("name", KERNELS)
def test_numbers_are_those_of_python(name: str) -> None:
    assert largest_error(KERNELS[name]) < 1e-13


@pytest.mark.parametrize("name", ["syrk", "symm", "durbin", "nussinov", "deriche"])
def test_the_capture_is_right_by_itself(name: str) -> None:
    assert largest_error(KERNELS[name], "reference") < 1e-13


@pytest.mark.parametrize("name", DENSE)
def test_dense_kernels_have_no_loop_left(name: str) -> None:
    found = structure(KERNELS[name], 9)
    assert found.left == {}
    assert found.products == PRODUCTS.get(name, 1), found.named


@pytest.mark.parametrize("name", STENCILS)
def test_stencils_keep_the_loop_over_time_alone(name: str) -> None:
    found = structure(KERNELS[name], 9)
    assert found.left == {"scf.for": 1}
    assert found.inner == ()


@pytest.mark.parametrize("name", KERNELS)
def test_only_loops_stay_whose_rounds_need_each_other(name: str) -> None:
    assert structure(KERNELS[name], 9).raised


CARRIED = {"nussinov": 1, "cholesky": 1, "durbin": 1, "gramschmidt": 1, "lu": 1, "trisolv": 1}


@pytest.mark.parametrize("name", CARRIED)
def test_inner_loops_that_can_be_raised_are(name: str) -> None:
    found = structure(KERNELS[name], 9)
    assert len(found.inner) == CARRIED[name]  # a loop whose rounds need each other stays
    assert found.left["scf.for"] <= 2
