"""Code for every processor: the levels of x86-64 run here, AArch64 in qemu, and all share a cache."""

from __future__ import annotations

import copy
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tree import flatten
from mlirml.driver import cache as disk_cache
from mlirml.driver.compilation import parsed, run_pipeline
from mlirml.errors import TargetError
from mlirml.targets.llvm.elf import undefined_symbols
from mlirml.targets.machine import NAMES, Processor, host_features, named
from tests.pipelines.real_programs import programs
from tests.targets import aarch64

X86 = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
ARM = ("neon", "sve", "sve256", "sve512")
VECTORS = {"neon": "max,sve=off", "sve": "max,sve128=on,sve256=off", "sve256": "max,sve256=on,sve512=off",
           "sve512": "max,sve512=on"}  # fmt: skip
"""The processors of qemu that have just the registers that the code relies on."""
SOME = tuple(programs())[:: 1 if os.environ.get("MLIRML_FUZZ") else 4]


@pytest.fixture(autouse=True)
def without_the_cache() -> Any:
    with ml.config.override(cache=False, progress=False):
        yield


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in flatten(tree)[0]]


@cache
def expected(name: str) -> list[np.ndarray]:
    """The results of a program on the reference target or, where that is slow, on this machine's processor."""
    function, arguments = programs()[name]
    with ml.config.override(cache=False, processor="host"):
        return leaves(ml.compile(function)(*copy.deepcopy(arguments)))


def assert_close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for x, y in zip(found, wanted, strict=True):
        if y.dtype.kind not in "fc":
            np.testing.assert_array_equal(x, y)
            continue
        bound = {2: 2e-3, 4: 2e-4}.get(y.dtype.itemsize, 1e-9)
        size = float(np.max(np.abs(y), initial=1.0, where=np.isfinite(y)))
        np.testing.assert_allclose(x, y, rtol=bound, atol=bound * size)


@pytest.mark.parametrize("level", X86)
@pytest.mark.parametrize("name", SOME)
def test_levels_of_x86_64_compute_the_same_numbers(level: str, name: str) -> None:
    if not named(level).features <= host_features():
        pytest.skip(f"this processor is not {level}")
    function, arguments = programs()[name]
    with ml.config.override(processor=level):
        assert_close(leaves(ml.compile(function)(*copy.deepcopy(arguments))), expected(name))


@pytest.mark.parametrize("level", X86)
def test_code_has_the_registers_of_its_level(level: str) -> None:
    spec = ml.TensorSpec((64, 64), np.float32)
    with ml.config.override(processor=level):
        text = ml.compile(lambda a, b: a @ b).lower(spec, spec).emit("asm")
    assert ("%zmm" in text) == (level == "x86-64-v4")
    assert ("%ymm" in text) == (level == "x86-64-v3")
    assert ("vfmadd" in text) == (level in ("x86-64-v3", "x86-64-v4"))


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y * np.float16(2),
        lambda x, y: x @ y.T,
        lambda x, y: np.sum(x * y, axis=1),
        lambda x, y: (np.exp(x), np.sqrt(np.abs(y)), np.maximum(x, y), x < y),
        lambda x, y: (x.astype(np.float32) * 3, y.astype(np.float64), x.astype(np.int32)),
        lambda x, y: (x.astype(np.float64) * 1.0001).astype(np.float16),
        lambda x, y: np.sort(x, axis=1),
    ],
    ids=["arithmetic", "product", "sums", "functions", "to others", "from f64", "sorted"],
)
def test_half_floats_need_no_instructions_for_them(level: str, function: Any) -> None:
    generator = np.random.default_rng(3)
    x, y = (generator.standard_normal((5, 37)).astype(np.float16) for _ in range(2))
    with ml.config.override(processor=level):
        found = leaves(ml.compile(function)(x, y))
    for result, wanted in zip(found, leaves(function(x, y)), strict=True):
        assert result.dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(result.astype(float), wanted.astype(float), rtol=4e-3, atol=4e-3)
        else:
            np.testing.assert_array_equal(result, wanted)


def test_half_floats_are_rounded_as_numpy_rounds_them_without_instructions_for_it() -> None:
    """All halves, and the numbers between them, at which rounding is to even."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].astype(np.float32)
    between = (halves[:-1] + np.roll(halves, -1)[:-1]) / 2
    with ml.config.override(processor="x86-64"):
        narrow, wide = ml.compile(lambda x: x.astype(np.float16)), ml.compile(lambda x: x.astype(np.float32))
        for x in (halves, between, np.nextafter(between, np.float32(np.inf))):
            np.testing.assert_array_equal(narrow(x), x.astype(np.float16))
        all_halves = halves.astype(np.float16)
        np.testing.assert_array_equal(wide(all_halves), halves)


def test_programs_of_two_levels_are_in_one_cache(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(3, 4)
    with ml.config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        for times in (1, 2):
            for level in ("x86-64", "x86-64-v3", "host"):
                with ml.config.override(processor=level):
                    compiled = ml.compile(lambda x: np.tanh(x) @ x.T)
                    np.testing.assert_allclose(compiled(x), np.tanh(x) @ x.T, rtol=1e-12)
                    assert ("from the disk cache" in compiled.explain()) == (times == 2)
        processors = [dict(entry.entries)["cpu"] for entry in disk_cache.listing()]
    assert sorted(processors)[-2:] == ["x86-64", "x86-64-v3"] and len(processors) == 3


@pytest.mark.parametrize("name", NAMES)
def test_the_setting_takes_every_name(name: str) -> None:
    with ml.config.override(processor=name):
        found = named(ml.config.processor)
    assert found.level == name
    assert Processor.parse(str(found)).vector_bits == found.vector_bits
    assert Processor.parse(str(found)).vector_registers == found.vector_registers


@pytest.mark.parametrize(
    ("name", "bits", "registers", "shown"),
    [
        ("x86-64", 128, 16, "generic"), ("x86-64-v2", 128, 16, "sse4.1"), ("x86-64-v3", 256, 16, "avx2"),
        ("x86-64-v4", 512, 32, "avx512"), ("neon", 128, 32, "neon"), ("sve", 128, 32, "sve"),
        ("sve256", 256, 32, "sve256"), ("sve512", 512, 32, "sve512"),
    ],
)  # fmt: skip
def test_vectors_of_each_processor(name: str, bits: int, registers: int, shown: str) -> None:
    found = named(name)
    assert (found.vector_bits, found.vector_registers, str(found)) == (bits, registers, shown)
    assert found.architecture == ("aarch64" if name in ARM else "x86_64")
    assert found.has_avx512 == (name == "x86-64-v4")


@pytest.mark.parametrize("level", ARM)
def test_code_for_another_architecture_does_not_run_here(level: str) -> None:
    if "asimd" in host_features():
        pytest.skip("this is an AArch64 machine")
    with ml.config.override(processor=level), pytest.raises(TargetError, match="does not have asimd"):
        ml.compile(lambda x: x + 1)(np.ones(3))


@pytest.mark.parametrize(
    ("level", "pattern"), [("neon", "\tv0."), ("sve", "\tv0."), ("sve256", "\tz0."), ("sve512", "\tz0.")]
)
def test_products_for_aarch64_use_its_vectors(level: str, pattern: str) -> None:
    spec = ml.TensorSpec((64, 64), np.float32)
    with ml.config.override(processor=level):
        text = ml.compile(lambda a, b: a @ b).lower(spec, spec).emit("asm")
    assert "fmla" in text and pattern in text.replace("fmla\tv", "\tv") and "ymm" not in text


KNOWN = frozenset(["memcpy", "memmove", "memset", "mlirml_poll", "mlirml_threads", "mlirml_parallel_for",
                   "mlirml_parallel_for_long", "mlirml_check_failed"])  # fmt: skip
"""The functions that the harness has; programs that call others are compiled only."""


@pytest.mark.parametrize("level", ARM)
@pytest.mark.parametrize("name", SOME)
def test_aarch64_computes_the_same_numbers_in_qemu(level: str, name: str, tmp_path: Path) -> None:
    function, arguments = programs()[name]
    with ml.config.override(processor=level):
        compiled = ml.compile(function)
        captured = compiled.trace(*copy.deepcopy(arguments))
        module = parsed(captured)
        run_pipeline(compiled.target, module)
        artifact = compiled.target.codegen(module)
    assert artifact.object[18:20] == b"\xb7\x00"  # EM_AARCH64
    if not {*undefined_symbols(artifact.object)} <= KNOWN:
        pytest.skip(f"it calls {', '.join({*undefined_symbols(artifact.object)} - KNOWN)}")
    if aarch64.QEMU is None:
        pytest.skip("there is no qemu-aarch64: apt-get install qemu-user")
    given = compiled._call(copy.deepcopy(arguments), {}).inputs
    inputs = [np.asarray(x, spec.dtype) for x, spec in zip(given, captured.inputs, strict=True)]
    outputs = [np.zeros(spec.shape, spec.dtype) for spec in captured.outputs]
    results = aarch64.run(artifact, [*inputs, *captured.constants], outputs, tmp_path, VECTORS[level])
    assert_close(leaves(captured.result(results)), expected(name))
