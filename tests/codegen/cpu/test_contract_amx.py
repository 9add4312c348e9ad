"""Products of bf16 in tile registers (AMX): against float64, and against the kernels that they take the place of."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.text.dtypes import bfloat16
from mlirml.targets import cpu, machine
from mlirml.targets.machine import processor
from tests.codegen.cpu.test_contract import module_text, run
from tests.codegen.cpu.test_contract_epilogue import Array, normal

needs_tiles = pytest.mark.skipif(not processor().has_tiles, reason="this processor, or Linux, has no AMX")


def product(spec: str, a: Array, b: Array, pairs: int, out: Any = np.float32, parallel: bool = False) -> Array:
    """An einsum by the kernel that multiplies so many neighbours along k at a time."""
    letters = dict(zip(spec.split("->")[0].replace(",", ""), (*a.shape, *b.shape), strict=True))
    result = np.zeros([letters[letter] for letter in spec.split("->")[1]], out)
    text = module_text(spec, a, b, result, schedule=f"{{pairs = {pairs}}}")
    passes = "processor=amx" if parallel else "processor=amx,cores=1"
    return run(text, [a, b], result, passes, "_bf16_tiles" if pairs == 32 else None)


def operands(spec: str, sizes: dict[str, int]) -> list[Array]:
    shapes = [tuple(sizes[letter] for letter in part) for part in spec.split("->")[0].split(",")]
    return normal(*shapes, dtype=np.dtype(bfloat16()))


def wide(*arrays: Array) -> list[Array]:
    return [array.astype(np.float64) for array in arrays]


@needs_tiles
@pytest.mark.parametrize("spec", ["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn", "mk,kn->nm"])
@pytest.mark.parametrize("sizes", [(33, 17, 40), (100, 97, 90), (64, 64, 64), (16, 31, 48), (37, 65, 300)])
def test_tiles_give_the_sums(spec: str, sizes: tuple[int, int, int]) -> None:
    a, b = operands(spec, dict(zip("mkn", sizes, strict=True)))
    scale = np.einsum(spec, *map(np.abs, wide(a, b)))
    got = product(spec, a, b, 32)
    assert (np.abs(got - np.einsum(spec, *wide(a, b))) <= 2.0**-22 * scale).all()
    assert (np.abs(got - product(spec, a, b, 2)) <= 2.0**-21 * scale).all()


@needs_tiles
@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("bmk,bkn->bmn", (3, 37, 50, 65)),
        ("bmhk,bnhk->bhmn", (2, 39, 3, 36, 71)),
        ("mk,kn->mn", (40, 5000, 60)),
        ("mk,kn->mn", (500, 300, 400)),
    ],
)
@pytest.mark.parametrize("out", ["float32", "bfloat16"])
def test_batches_long_sums_and_threads(spec: str, sizes: tuple[int, ...], out: str) -> None:
    letters = sorted(set(spec) - set(",->"), key=spec.index)
    a, b = operands(spec, dict(zip(letters, sizes, strict=True)))
    kind = np.dtype(bfloat16() if out == "bfloat16" else out)
    got = product(spec, a, b, 32, kind, parallel=True).astype(np.float64)
    want, scale = np.einsum(spec, *wide(a, b)), np.einsum(spec, *map(np.abs, wide(a, b)))
    rounding = 2.0**-8 * np.abs(want) if out == "bfloat16" else 0
    assert (np.abs(got - want) <= 2.0**-22 * scale + rounding).all()


@needs_tiles
@pytest.mark.parametrize("spec", ["mk,kn->mn", "km,nk->mn"])
def test_infinities_and_nans_are_those_of_other_kernels(spec: str) -> None:
    a, b = operands(spec, {"m": 35, "k": 45, "n": 50})
    for array, places in ((a, (3, 17, 30)), (b, (5, 11, 40))):
        array[places[0], 2], array[places[1], 7], array[places[2], 9] = np.nan, np.inf, -np.inf
    a[0], b[:, 0] = 0, 0
    got, other = product(spec, a, b, 32), product(spec, a, b, 1)
    with np.errstate(invalid="ignore"):
        want = np.einsum(spec, *wide(a, b))
    for values in (got, other):
        np.testing.assert_array_equal(np.isnan(values), np.isnan(want))
        np.testing.assert_array_equal(values[np.isinf(want)], want[np.isinf(want)])
    finite = np.isfinite(want)
    np.testing.assert_allclose(got[finite], want[finite], rtol=0, atol=1e-5)


@needs_tiles
@pytest.mark.parametrize("pairs", [2, 32])
def test_denormal_numbers_count_as_zeros(pairs: int) -> None:
    a, b = operands("mk,kn->mn", {"m": 40, "k": 50, "n": 45})
    a[::2], b[:, ::3] = a[::2] * 2.0**-130, b[:, ::3] * 2.0**100
    assert (np.abs(a[::2]).astype(np.float64) > 0).any()
    normal_a = np.where(np.abs(a.astype(np.float64)) < 2.0**-126, 0, a.astype(np.float64))
    want, scale = normal_a @ b.astype(np.float64), np.abs(normal_a) @ np.abs(b.astype(np.float64))
    got = product("mk,kn->mn", a, b, pairs)
    assert (np.abs(got - want) <= 2.0**-22 * scale + 50 * 2.0**-126).all()


FUSED = {
    "converted": lambda x, w, b: x.astype(b.dtype) @ w.astype(b.dtype),
    "computed": lambda x, w, b: (1 / (np.abs(x) + 1)).astype(b.dtype) @ np.exp(w).astype(b.dtype),
    "transposed": lambda x, w, b: np.exp(w).astype(b.dtype).T @ (x * 2).astype(b.dtype).T,
    "with a consumer": lambda x, w, b: np.maximum(x.astype(b.dtype) @ w.astype(b.dtype) + b, 0),
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("sizes", [(70, 45, 83), (1100, 530, 100)])
def test_operands_are_rounded_as_they_are_packed(name: str, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    x, w = normal((m, k), (k, n))
    (b,) = normal((m if name == "transposed" else n,), dtype=np.dtype(bfloat16()))
    compiled = ml.compile(FUSED[name])
    got = compiled(x, w, b).astype(np.float64)
    assert ("_bf16_tiles" in compiled.ir("schedule", x, w, b)) == processor().has_tiles

    def rounded(array: Array) -> Array:
        return array.astype(b.dtype).astype(np.float64)

    parts = {
        "converted": lambda: rounded(x) @ rounded(w),
        "computed": lambda: rounded(1 / (np.abs(x) + 1)) @ rounded(np.exp(w)),
        "transposed": lambda: rounded(np.exp(w)).T @ rounded(x * 2).T,
        "with a consumer": lambda: np.maximum(rounded(x) @ rounded(w) + b.astype(np.float64), 0),
    }
    want = parts[name]()
    # Elementary functions may round to the other neighbour.
    np.testing.assert_allclose(got, want, rtol=0, atol=4e-3 * np.abs(want).max())


@needs_tiles
def test_tiles_work_in_threads_and_after_a_fork() -> None:
    code = """
import os, threading
import ml_dtypes, numpy as np
import mlirml as ml
x = (np.arange(200 * 90).reshape(200, 90) % 13 - 6).astype(ml_dtypes.bfloat16)
product = ml.compile(lambda a, b: a @ b.T)
want = x.astype(np.float32) @ x.astype(np.float32).T
assert "_bf16_tiles" in product.ir("schedule", x, x)
wrong = []
def work():
    for _ in range(20):
        if not np.array_equal(product(x, x), want):
            wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
pid = os.fork()
if pid == 0:
    os._exit(0 if np.array_equal(product(x, x), want) and np.array_equal(product(x[:99], x), want[:99]) else 1)
assert os.waitpid(pid, 0)[1] == 0 and not wrong
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_what_linux_answers_is_part_of_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    used = "processor=amx" in str(cpu.cpu_target().pipeline)
    assert used == processor().has_tiles
    monkeypatch.setattr(machine, "_REQUEST_PERMISSION", 0x1FFF)  # no such request
    assert not machine.may_use_tiles.__wrapped__()
