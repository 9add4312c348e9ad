"""`config.processor`: the same code for a named processor on every machine, which runs where its instructions do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.config import config
from mlirml.core.dataclass import replace
from mlirml.errors import PipelineError, TargetError
from mlirml.offload.check_kernels import CheckKernelsPass
from mlirml.passes import Step, parse_pipeline
from mlirml.pipelines.memref.lower_loops import LowerLoopsPass
from mlirml.targets import machine
from mlirml.targets.machine import DEVICES, Device, named
from mlirml.targets.registry import get_target

X = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)


def pass_of(text: str) -> Step:
    """The pass of a text."""
    (step,) = parse_pipeline(text).steps
    assert str(parse_pipeline(str(step)).steps[0]) == str(step)
    return step


def program(x: Any) -> Any:
    return np.tanh(x @ x.T) + np.sum(x, 1)


@pytest.mark.parametrize(
    "text, bits, l2",
    [("sse4.1", 128, 1 << 20), ("avx2,l2=512K", 256, 512 << 10), ("avx512,l2=2M", 512, 2 << 20), ("amx", 512, 1 << 20)],
)
def test_a_text_names_vectors_and_cache(text: str, bits: int, l2: int) -> None:
    found = named(text)
    assert (found.vector_bits, found.l2_bytes, found.has_tiles) == (bits, l2, text == "amx")


@pytest.mark.parametrize(
    "text, written",
    [
        ("generic", "generic"),
        ("generic+f16c+fma", "generic+f16c+fma"),
        ("scalar+fma", "scalar+fma"),
        ("sse4.1,l2=1M", "sse4.1"),
        ("avx2,l2=1536K,cores=1", "avx2,l2=1536K,cores=1"),
        ("avx512+avx512_bf16,l2=2048K", "avx512+avx512_bf16,l2=2M"),
        ("avx512+avx512_bf16+amx_tile+amx_bf16", "amx"),
        ("avx512+avx512_bf16+slow_bf16", "avx512+avx512_bf16+slow_bf16"),
    ],
)
def test_a_processor_is_read_as_it_is_written(text: str, written: str) -> None:
    found = named(text)
    assert str(found) == written and str(named(written)) == written
    assert pass_of(f"mlirml-lower-loops{{processor={text}}}") == LowerLoopsPass(found)


def test_the_host_is_written_as_what_passes_depend_on() -> None:
    host = named("host")
    again = named(str(host))
    for fact in (
        "vector_bits",
        "vector_registers",
        "l2_bytes",
        "has_fma",
        "converts_f16",
        "has_bf16_pairs",
        "has_tiles",
    ):
        assert getattr(again, fact) == getattr(host, fact)
    assert str(again) == str(host)


@pytest.mark.parametrize("text", ["avx3", "avx2+mmx", "avx2,l2=1", "avx2,cores=many", ""])
def test_a_text_of_no_processor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no processor"):
        named(text)
    with pytest.raises(PipelineError, match=r"processor takes a processor, such as avx512,l2=1M, not"):
        pass_of(f"mlirml-lower-loops{{processor={text}}}")


@pytest.mark.parametrize(
    "device, written",
    [
        (Device(), "gpu"),
        (DEVICES["cuda"], "cuda"),
        (DEVICES["webgpu"], "webgpu"),
        (replace(DEVICES["vulkan"], buffers=16, dtypes=("f32", "i32")), "vulkan,dtypes=f32+i32,buffers=16"),
        (replace(DEVICES["cuda"], tensor_cores=False, host_ops=()), "cuda,host-ops=,tensor-cores=false"),
        (Device("small", threads=64), "small,threads=64"),
    ],
)
def test_a_device_is_read_as_it_is_written(device: Device, written: str) -> None:
    assert str(device) == written
    assert pass_of(f"mlirml-check-kernels{{device={written}}}") == CheckKernelsPass(device)


@pytest.mark.parametrize("text", ["", "gpu,colour=red", "gpu,threads=many", "gpu,tensor-cores=maybe", "gpu,name=cuda"])
def test_a_text_of_no_device_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match=r"device takes a device, such as vulkan,buffers=16, not"):
        pass_of(f"mlirml-check-kernels{{device={text}}}")


@pytest.mark.parametrize("level, register", [("sse4.1", "xmm"), ("avx2", "ymm"), ("avx512", "zmm")])
def test_code_has_the_registers_of_its_processor(level: str, register: str) -> None:
    with config.override(processor=level):
        code = ml.compile(program).lower(X).emit("asm")
    assert max(re.findall(r"%([xyz]mm)", code)) == register


@pytest.mark.parametrize("level", ["sse4.1", "avx2", "avx512"])
def test_code_for_a_processor_of_fewer_instructions_runs(level: str) -> None:
    with config.override(processor=f"{level},l2=512K"):
        compiled = ml.compile(program)
    if named(level).features <= machine.host_features():
        np.testing.assert_allclose(compiled(X), program(X), rtol=0, atol=2e-5)
    else:
        with pytest.raises(TargetError, match="does not have"):
            compiled(X)


def test_code_for_instructions_that_are_not_there_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "host_features", lambda: frozenset({"sse2", "ssse3", "sse4_1"}))
    with config.override(processor="avx2"):
        compiled = ml.compile(lambda x: x + 3)
    assert "func" in compiled.ir("schedule", X)
    with pytest.raises(TargetError, match=r"is 'avx2', and this machine's processor does not have abm"):
        compiled(X)


def test_programs_for_other_processors_have_other_keys() -> None:
    found = []
    for text in ("host", "sse4.1", "avx2", "avx2,l2=512K"):
        with config.override(processor=text):
            found.append(get_target("cpu").fingerprint())
    assert all(found.count(each) == 1 for each in found)


@pytest.mark.parametrize("text, size", [("2048K\n", 2 << 20), ("1M", 1 << 20), ("", 1 << 20), ("many", 1 << 20)])
def test_the_size_of_the_cache_is_read_or_assumed(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    import io

    monkeypatch.setattr("builtins.open", lambda *_, **__: io.StringIO(text))
    assert machine.host_l2_bytes.__wrapped__() == size


def test_pairs_of_bf16_are_used_where_they_are_fast() -> None:
    assert named("avx512+avx512_bf16").has_bf16_pairs
    slow = named("avx512+avx512_bf16+slow_bf16")
    assert not slow.has_bf16_pairs and "slow" not in slow.llvm_features
