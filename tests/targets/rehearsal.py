"""`pytest -m cuda` without a GPU: NVIDIA's driver is a stand-in, and kernels are executed in NumPy.

    python -m pytest -p tests.targets.rehearsal -m cuda

The tests run as they do on a GPU, through the compiler, the host code and the runtime, against a library that stands in
for libcuda, whose memory the host cannot read. It runs the PTX of the kernels, and the text of kernels of tiles
(`MLIRML_TILES=sm_90`), and fails on what a GPU does wrong now and then: races in shared memory, addresses that are
misaligned or outside of their array, threads that wait for ever. NVIDIA's assembler takes the kernels too, if it is
installed: those of threads for several processors, those of tiles without spilling registers.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirml.core.config import config as settings
from mlirml.runtime import cuda
from mlirml.targets.llvm import tileiras
from mlirml.targets.llvm.ptx import assemble, assembler
from tests.codegen.tile.cutile_numpy import DTYPES, View, run_text
from tests.targets.cubin import kernel_of, parameters_of
from tests.targets.emulation.instructions import RULES
from tests.targets.emulation.memory import Fault, GlobalMemory
from tests.targets.emulation.ptx import Function, parse
from tests.targets.emulation.threads import Program, launch

ARCHITECTURES = ("sm_90", "sm_80", "sm_100")
"""What the driver of a GPU would translate the kernels for; the first is that of the stand-in."""
_SOURCE = Path(__file__).parents[1] / "runtime" / "fake_cuda.cpp"
_MOST_ALLOCATIONS = 1 << 14
_HOOK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p))
_ILLEGAL_ADDRESS = 700

Kernel = Function | tileiras.TileKernel
Entry = tuple[str, list[int], bytes, list[int]]
parsed = lru_cache(maxsize=64)(parse)


class Driver:
    """The stand-in of libcuda, and what each of its functions is."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.fake_functions.restype = ctypes.c_ssize_t
        self.library.fake_allocations.restype = ctypes.c_size_t
        self.kernels: dict[int, Kernel] = {}
        self.images: dict[bytes, tileiras.TileKernel] = {}
        self.seen: set[bytes] = set()
        self.program = Program(RULES)
        self.faults: list[str] = []
        self._hook = _HOOK(self.run)
        self.library.fake_hook(self._hook)
        self.library.fake_late(int(os.environ.get("MLIRML_REHEARSAL_ORDER", "2")))

    def load(self, load: Any, code: bytes, entries: Sequence[Entry], cubin: bytes) -> Any:
        """Load kernels on the stand-in, and note which of its functions they are."""
        self.check(code, entries, cubin)
        first = self.library.fake_functions()
        module = load(code, entries, cubin)
        functions = parsed(code.decode()) if code else {}
        for number, (name, sizes, image, _) in enumerate(entries, first + 1):
            self.kernels[number] = self.images[image] if image else functions[name]
            self.library.fake_parameters(number, len(sizes), (ctypes.c_uint * len(sizes))(*sizes))
        return module

    def check(self, code: bytes, entries: Sequence[Entry], cubin: bytes) -> None:
        """Compare parameters with what is passed, in the cubin too, and give the kernels to the assembler."""
        functions = parsed(code.decode()) if code else {}
        for name, sizes, image, _ in entries:
            if image:
                made = kernel_of(image)
                assert not made.frame, f"{name} spills {made.frame} bytes"
                taken = made.parameters
            else:
                taken = tuple(size for _, size in functions[name].parameters)
            assert taken == tuple(size or 8 for size in sizes), f"{name} takes {taken} bytes, and is given {sizes}"
            if cubin and not image:
                assert parameters_of(cubin, name) == taken, f"{name} takes other bytes in the cubin"
        if code and code not in self.seen and assembler() is not None:
            self.seen.add(code)
            for architecture in ARCHITECTURES[1:] if cubin else ARCHITECTURES:
                assemble(code.decode(), architecture)

    def run(self, number: int, sizes: Any, arguments: Any) -> int:
        """Run a kernel; the driver's error if it does something wrong."""
        try:
            self.launch(self.kernels[number], tuple(sizes[0:3]), tuple(sizes[3:6]), arguments, sizes[6])
            return 0
        except Fault as fault:
            self.faults.append(f"{getattr(self.kernels[number], 'name', 'a tile kernel')}: {fault}")
        except BaseException:
            self.faults.append(traceback.format_exc())
        return _ILLEGAL_ADDRESS

    def launch(
        self, kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], arguments: Any, shared_bytes: int
    ) -> None:
        """Run a kernel with the arguments at these addresses, and shared memory that the launch asks for."""
        memory = GlobalMemory(self.allocations())
        if isinstance(kernel, tileiras.TileKernel):
            run_text(kernel.text, grid, list(self.tile_arguments(kernel, memory, arguments)))
            return
        values = [
            int.from_bytes(ctypes.string_at(arguments[number], size), "little")
            for number, (_, size) in enumerate(kernel.parameters)
        ]
        launch(self.program, kernel, (grid, block), values, memory, shared_bytes=shared_bytes)

    def allocations(self) -> list[tuple[int, int, int]]:
        """The memory of the device."""
        found = (ctypes.c_uint64 * (3 * _MOST_ALLOCATIONS))()
        count = self.library.fake_allocations(found, _MOST_ALLOCATIONS)
        assert count <= _MOST_ALLOCATIONS
        return [tuple(found[3 * number : 3 * number + 3]) for number in range(count)]  # type: ignore[misc]

    def tile_arguments(self, kernel: tileiras.TileKernel, memory: GlobalMemory, arguments: Any) -> Any:
        """The arguments of a tile kernel: views of its arrays, and numbers. Sizes and strides are as it knows them."""
        number = 0
        for parameter in kernel.parameters:
            word = ctypes.string_at(arguments[number], 8)
            number += 1
            if not isinstance(parameter, tileiras.ArrayType):
                dtype = np.dtype(DTYPES[parameter.dtype])
                yield np.frombuffer(word[: dtype.itemsize], dtype)[0]
                continue
            passed = [
                int.from_bytes(ctypes.string_at(arguments[number + each], 4), "little")
                for each in range(2 * len(parameter.sizes))
            ]
            assert passed == [*parameter.sizes, *parameter.strides]
            number += len(passed)
            dtype = np.dtype(DTYPES[parameter.dtype])
            extent = 1 + sum((size - 1) * stride for size, stride in zip(parameter.sizes, parameter.strides))
            yield View(
                elements_at(memory, int.from_bytes(word, "little"), extent, dtype), parameter.sizes, parameter.strides
            )


def elements_at(memory: GlobalMemory, address: int, count: int, dtype: np.dtype[Any]) -> np.ndarray:
    """The elements of the device's memory at an address."""
    for start, here, extent in memory.allocations:
        if start <= address and address + count * dtype.itemsize <= start + extent:
            raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(here + address - start)
            return np.ctypeslib.as_array(raw).view(dtype)
    raise Fault("an address outside of all allocations")


def pytest_configure(config: pytest.Config) -> None:
    """Put the stand-in where libcuda would be, before the tests are collected."""
    compiler = next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None)
    if compiler is None:
        raise pytest.UsageError("the rehearsal needs a C++ compiler")
    folder = tempfile.mkdtemp(prefix="mlirml-rehearsal-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = f"{folder}/libcuda.so"
    flags = ["-std=c++17", "-shared", "-fPIC", "-O1", "-DFAKE_MEMORY=(size_t{8}<<30)"]
    subprocess.run([compiler, *flags, "-o", library, str(_SOURCE)], check=True)
    driver = Driver(library)
    config.stash[_DRIVER] = driver
    cuda.LIBRARY = library
    settings.cubins = ARCHITECTURES[0]  # though the stand-in is no driver for it, so that there are no kernels of tiles

    class RehearsedDriver(cuda.CudaDriver):
        """A device whose kernels run in NumPy."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.native.side_bytes, self.native.graph_commands = 0, 2
            load = self.load
            self.load = lambda code, entries, cubin=b"": driver.load(load, code, entries, cubin)

    cuda.CudaDriver = RehearsedDriver  # type: ignore[misc]
    assembled = tileiras.assemble

    def assemble_and_note(kernel: tileiras.TileKernel, architecture: str) -> bytes:
        image = assembled(kernel, architecture)
        driver.images[image] = kernel
        return image

    tileiras.assemble = assemble_and_note  # type: ignore[assignment]


_DRIVER = pytest.StashKey[Driver]()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files without tests on a GPU: their import takes longer than the tests of many that have some."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if not is_test:
        return None
    text = collection_path.read_bytes().lower()
    return None if b"cuda" in text or b"tests.targets.drivers" in text else True  # the marks come from there


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes in NumPy."""
    large = [item for item in items if item.get_closest_marker("large")]
    config.hook.pytest_deselected(items=large)
    items[:] = [item for item in items if item not in large]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Tell what kernels did wrong; it fails the test, also where nobody looks at the results."""
    report = yield
    driver = item.config.stash[_DRIVER]
    if call.when == "call" and driver.faults:
        report.sections.append(("kernels", "\n".join(driver.faults)))
        if report.outcome == "passed":
            report.outcome, report.longrepr = "failed", "\n".join(driver.faults)
        driver.faults.clear()
        driver.library.fake_fail(0)
    return report
