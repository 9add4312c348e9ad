"""`config.processor`: the same code for a named processor on every machine, which runs where its instructions do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.targets import machine
from mlirml.targets.machine import named
from mlirml.targets.registry import get_target

X = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)


def program(x: Any) -> Any:
    return np.tanh(x @ x.T) + np.sum(x, 1)


@pytest.mark.parametrize(
    "text, bits, l2",
    [("sse4.1", 128, 1 << 20), ("avx2,l2=512K", 256, 512 << 10), ("avx512,l2=2M", 512, 2 << 20), ("amx", 512, 1 << 20)],
)
def test_a_text_names_vectors_and_cache(text: str, bits: int, l2: int) -> None:
    found = named(text)
    assert (found.vector_bits, found.l2_bytes, found.has_tiles) == (bits, l2, text == "amx")


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
