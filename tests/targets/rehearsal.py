"""A rehearsal of `pytest -m cuda` without a GPU: everything but the kernels' own work.

    python -m pytest -p tests.targets.rehearsal -m cuda

The tests run as they do on a GPU, against a library that stands in for libcuda. The kernels of each program are given
to NVIDIA's assembler for several processors, and their parameters compared with what the host code passes; then nothing
is computed. So a test passes unless something else fails than a comparison of numbers: what is compiled, imported,
loaded or allocated, and how arrays are handed around, has to work.
"""

from __future__ import annotations

import atexit
import importlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlirml.runtime import cuda
from mlirml.runtime.driver import Bytes
from mlirml.targets.llvm.ptx import assemble, assembler
from tests.targets.cubin import Kernel, kernel_of

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""What the driver of a GPU would translate the kernels for."""
_SOURCE = Path(__file__).parents[1] / "runtime" / "fake_cuda.cpp"
_ENTRY = re.compile(r"\.visible \.entry (\w+)\(([^)]*)\)")
_PARAMETER = re.compile(r"\.param (?:\.align \d+ )?\.[a-z](\d+)")
_RAISED = re.compile(r": (\w+Error|WrongKernel): ")
"""In the text of a failure: an exception that a test has caught to report it, as those of the operations do."""
_seen: set[bytes] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Put the stand-in where libcuda would be, before the tests are collected."""
    compiler = next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None)
    if compiler is None or assembler() is None:
        raise pytest.UsageError("the rehearsal needs a C++ compiler, and `ptxas` of nvidia-cuda-nvcc")
    folder = tempfile.mkdtemp(prefix="mlirml-rehearsal-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = f"{folder}/libcuda.so"
    flags = ["-std=c++17", "-shared", "-fPIC", "-O1", "-DFAKE_ANY_KERNEL", "-DFAKE_MEMORY=(size_t{8}<<30)"]
    subprocess.run([compiler, *flags, "-o", library, str(_SOURCE)], check=True)
    cuda.LIBRARY = library
    cuda.CudaDriver = RehearsedDriver  # type: ignore[misc]
    records = importlib.import_module("tests.ops.test_records")  # looks for devices
    records.difference = other_form


class RehearsedDriver(cuda.CudaDriver):
    """A device that takes kernels which the assembler takes, and does not run them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        load = self.load

        def checked(code: bytes, entries: Sequence[tuple[str, list[int], bytes]]) -> Any:
            common = [(name, sizes) for name, sizes, image in entries if not image]
            if code and code not in _seen:
                _seen.add(code)
                check_parameters(code.decode(), common)
                for architecture in ARCHITECTURES:
                    assemble(code.decode(), architecture)
            for name, sizes, image in entries:
                if image:
                    check_image(name, sizes, kernel_of(image))
            return load(code, entries)

        self.load = checked
        self.run = lambda *arguments: None

    def copy_out(self, target: Bytes, address: int, after: int | None = None) -> None:
        """Zeros, of which no check of an index complains."""
        super().copy_out(target, address, after)
        target[:] = 0


def other_form(record: Any, call: Any, leaves: Any, given: Any, expected: Any, part: int | None = None) -> str | None:
    """What is wrong with the type or the shape of a result of an operation; None when nothing is."""
    forms = [(x.dtype, x.shape) for x in (given, expected)]
    return f"WrongKernel: gives {forms[0]}, expected {forms[1]}" if forms[0] != forms[1] else None


class WrongKernel(Exception):
    """A kernel takes other parameters than the host code passes; no AssertionError, which would be passed over."""


def check_image(name: str, sizes: Sequence[int], kernel: Kernel) -> None:
    """Compare the parameters of a kernel that has an image of its own; its registers must not spill."""
    if kernel.name != "kernel":
        raise WrongKernel(f"{name} has the symbol {kernel.name}")
    if kernel.parameters != tuple(size or 8 for size in sizes):
        raise WrongKernel(f"{name} takes {kernel.parameters} bytes, and is given {sizes}")
    if kernel.frame:
        raise WrongKernel(f"{name} spills {kernel.frame} bytes")


def check_parameters(ptx: str, entries: Sequence[tuple[str, list[int]]]) -> None:
    """Compare the parameters of kernels with the sizes of what is passed, 0 for pointers."""
    found = {m[1]: [int(bits) // 8 for bits in _PARAMETER.findall(m[2])] for m in _ENTRY.finditer(ptx)}
    for name, sizes in entries:
        if found.get(name) != [size or 8 for size in sizes]:
            raise WrongKernel(f"{name} takes parameters of {found.get(name)} bytes, and is given {sizes}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Pass over comparisons of numbers, which nobody has computed."""
    try:
        return (yield)
    except (AssertionError, pytest.fail.Exception) as error:
        if _RAISED.search(str(error)):
            raise
        return True
