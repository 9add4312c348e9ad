"""Fourier transforms by the baseline's vectors, of which a processor with AVX2 takes none, against those of AVX2."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "mlirml" / "runtime" / "native"
COMPILER = shutil.which("g++")


@pytest.mark.skipif(COMPILER is None, reason="no g++ to build the transforms with")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processor has no AVX2")
def test_both_instruction_sets_compute_the_same(tmp_path: Path) -> None:
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("the processor has no AVX2")
    assert COMPILER is not None
    sources = [Path(__file__).with_name("compare_fft_lines.cpp")]
    sources += [NATIVE / f"fft_lines_{name}.cpp" for name in ("avx2", "baseline")]
    options = ["-std=c++17", "-O1", "-Wno-psabi", f"-I{NATIVE}", "-isystem", ROOT / "third_party" / "ducc0"]
    subprocess.run([COMPILER, *options, "-o", tmp_path / "compare", *sources], check=True)
    doubles, floats = map(float, subprocess.check_output([tmp_path / "compare"], text=True).split())
    assert doubles < 2e-15
    assert floats < 1e-6
