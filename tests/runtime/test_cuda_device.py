"""The runtime of CUDA devices, against a library that behaves as libcuda does and fails when it is told to."""

from __future__ import annotations

import ctypes
import enum
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime import _native, cuda, load_object
from mlirml.runtime import device as device_module
from mlirml.targets import cuda as cuda_target
from mlirml.targets.llvm import ptx, tileiras
from tests.runtime.conftest import emit_object

COMPILER = next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None)
SOURCE = Path(__file__).parent / "fake_cuda.cpp"
ILLEGAL_ADDRESS = 700

# main(x, y, table): y = 2.5 * x by a kernel of 2 blocks of 4 threads.
HOST = """
declare void @mgpuLaunchKernel(ptr, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr, i64)
define void @main(ptr %arguments) {
  %factor = alloca float
  store float 2.5, ptr %factor
  %parameters = alloca [3 x ptr]
  store ptr %arguments, ptr %parameters
  %second = getelementptr ptr, ptr %arguments, i64 1
  %p1 = getelementptr ptr, ptr %parameters, i64 1
  store ptr %second, ptr %p1
  %p2 = getelementptr ptr, ptr %parameters, i64 2
  store ptr %factor, ptr %p2
  %third = getelementptr ptr, ptr %arguments, i64 2
  %table = load ptr, ptr %third
  %stream = load ptr, ptr %table
  %slot = getelementptr ptr, ptr %table, i64 1
  %kernel = load ptr, ptr %slot
  call void @mgpuLaunchKernel(ptr %kernel, i64 2, i64 1, i64 1, i64 4, i64 1, i64 1, i32 96, ptr %stream,
                              ptr %parameters, ptr null, i64 3)
  ret void
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    if COMPILER is None:
        pytest.skip("no C++ compiler to build the library with")
    out = tmp_path_factory.mktemp("cuda") / "libfakecuda.so"
    subprocess.run([COMPILER, "-std=c++17", "-shared", "-fPIC", "-O1", "-o", out, SOURCE], check=True)
    return str(out)


@pytest.fixture
def fake(path: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The library, through which tests control it; `mlirml.device("cuda:0")` is its first device."""
    library = ctypes.CDLL(path)
    library.fake_in_use.restype = ctypes.c_size_t
    library.fake_memory.argtypes = [ctypes.c_size_t]
    library.fake_memory(1 << 20)
    library.fake_fail(0)
    library.fake_hold(0)
    library.fake_late(0)
    library.fake_devices(2, 12040)
    monkeypatch.setattr(cuda, "LIBRARY", path)
    monkeypatch.setattr(device_module, "_KNOWN", {})
    cuda.library.cache_clear()
    cuda.open_device.cache_clear()
    yield library
    library.fake_fail(0)
    library.fake_hold(0)
    cuda.library.cache_clear()
    cuda.open_device.cache_clear()


def test_devices(fake: Any) -> None:
    assert [d.id for d in ml.devices() if d.kind == "cuda"] == ["cuda:0", "cuda:1"]
    second = ml.device("cuda:1")
    assert (second.name, second.memory, second.capabilities["architecture"]) == ("Second GPU", 1 << 20, "sm_90")
    assert fake.fake_contexts() == 0


def test_properties_without_cuda_python(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    told = ml.device("cuda:0").properties
    assert (told["COMPUTE_CAPABILITY_MAJOR"], told["WARP_SIZE"], told["MAX_SHARED_MEMORY_PER_BLOCK"]) == (9, 32, 49152)
    assert ml.device("cpu").properties == {}


def test_properties_by_cuda_python(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Attribute(enum.Enum):
        CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
        CU_DEVICE_ATTRIBUTE_NEWER = 900
        CU_DEVICE_ATTRIBUTE_MAX = 901

    driver = types.SimpleNamespace(
        CUdevice_attribute=Attribute,
        cuDeviceGet=lambda index: (0, 40 + index),
        cuDeviceGetAttribute=lambda attribute, device: (0, device) if attribute.value == 10 else (1, None),
        cuDeviceGetUuid=lambda device: (0, types.SimpleNamespace(bytes=b"\x01\xff")),
    )
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    assert ml.device("cuda:1").properties == {"WARP_SIZE": 41, "UUID": "01ff"}


@pytest.mark.parametrize("count", [0, 1, 5, 1 << 16])
def test_there_and_back(fake: Any, count: int) -> None:
    x = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    np.testing.assert_array_equal(ml.put(x, "cuda").to("cuda:1").numpy(), x)
    assert fake.fake_contexts() == 0


def test_copies_larger_than_the_pinned_memory(fake: Any) -> None:
    library = _native.CudaLibrary(cuda.LIBRARY)
    device = _native.CudaDevice(library, 0)
    host = np.random.default_rng(0).integers(0, 256, (9 << 20) + 5, np.uint8)
    fake.fake_memory(10 << 20)
    there = device.alloc(host.nbytes)
    device.copy_in(there, host)
    back = np.zeros_like(host)
    device.copy_out(back, there)
    np.testing.assert_array_equal(back, host)
    assert (device.bytes_in, device.bytes_out) == (host.nbytes, host.nbytes)


def test_memory_is_given_back(fake: Any) -> None:
    where = ml.device("cuda")
    x = ml.put(np.zeros(1000), where)
    assert fake.fake_in_use() == 8192
    del x
    where.reset()
    assert fake.fake_in_use() == 0


def test_no_memory_left(fake: Any) -> None:
    held = ml.put(np.ones(100_000), "cuda")
    with pytest.raises(
        ml.LaunchError, match="cuda:0: out of memory: 1 MiB were asked for and the device has no memory"
    ):
        ml.put(np.ones(1 << 17), "cuda")
    np.testing.assert_array_equal(held.numpy(), 1)


def test_work_is_waited_for(fake: Any) -> None:
    x = ml.put(np.ones(3), "cuda")
    fake.fake_hold(1)
    assert not x.is_ready()
    with pytest.raises(TimeoutError):
        x.block(0.01)
    fake.fake_hold(0)
    assert x.block() is x


def launch(fake: Any) -> tuple[Any, Callable[..., np.ndarray]]:
    driver = ml.device("cuda").driver
    module = driver.load(b"an image", [("scale", [0, 0, 4])])
    code = load_object(emit_object(HOST))
    x = ml.put(np.arange(8, dtype=np.float32), "cuda")
    y = ml.put(np.zeros(8, np.float32), "cuda")

    def run(waits: bool = False) -> np.ndarray:
        driver.run(code.address("main"), [x.address, y.address], module, waits)
        return y.numpy()

    return driver, run


def test_host_code_launches_kernels(fake: Any) -> None:
    driver, run = launch(fake)
    np.testing.assert_array_equal(run(), 2.5 * np.arange(8))
    last = (ctypes.c_uint * 7)()
    fake.fake_last(last)
    assert list(last) == [2, 1, 1, 4, 1, 1, 96]
    assert driver.native.launches == 1


def test_a_kernel_that_fails_loses_the_device(fake: Any) -> None:
    _, run = launch(fake)
    fake.fake_fail(ILLEGAL_ADDRESS)
    with pytest.raises(ml.LaunchError) as error:
        run()
    assert str(error.value) == (
        "the device First GPU failed while launching scale: CUDA_ERROR_ILLEGAL_ADDRESS, as the test wanted"
    )
    with pytest.raises(ml.LaunchError, match="was lost"):
        run()
    np.testing.assert_array_equal(ml.put(np.ones(3), "cpu").numpy(), 1)
    assert fake.fake_contexts() == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, "has no memory left for launching scale"),
        (701, "failed while launching scale: CUDA_ERROR, as the test wanted"),
    ],
)
def test_a_refused_launch_loses_nothing(fake: Any, code: int, words: str) -> None:
    _, run = launch(fake)
    fake.fake_fail(code)
    with pytest.raises(ml.LaunchError) as error:
        run()
    assert str(error.value) == f"the device First GPU {words}"
    np.testing.assert_array_equal(run(), 2.5 * np.arange(8))


@pytest.mark.parametrize(("waits", "doing"), [(False, "copying from it"), (True, "running scale")])
def test_waiting_for_each_kernel_tells_which_one_failed(fake: Any, waits: bool, doing: str) -> None:
    _, run = launch(fake)
    np.testing.assert_array_equal(run(waits), 2.5 * np.arange(8))
    fake.fake_fail_later(ILLEGAL_ADDRESS)
    with pytest.raises(ml.LaunchError, match=f"failed while {doing}: CUDA_ERROR_ILLEGAL_ADDRESS"):
        run(waits)


def test_an_error_of_work_that_nobody_waited_for(fake: Any) -> None:
    x = ml.put(np.ones(3), "cuda")
    fake.fake_fail(ILLEGAL_ADDRESS)
    for use in (x.block, x.numpy, ml.device("cuda").synchronize):
        with pytest.raises(ml.LaunchError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            use()


def test_kernels_that_the_device_does_not_take(fake: Any) -> None:
    driver = ml.device("cuda").driver
    with pytest.raises(ml.LaunchError, match=r"does not take the kernels: CUDA_ERROR_INVALID_IMAGE.*\nline 1: bad"):
        driver.load(b"bad", [])
    with pytest.raises(ml.LaunchError, match="loading the kernel other"):
        driver.load(b"an image", [("other", [])])


def test_what_is_missing_is_said(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ml.TargetError, match="of type 'cuda' there are 2"):
        ml.device("cuda:2")
    fake.fake_devices(0, 12040)
    cuda.library.cache_clear()
    with pytest.raises(ml.TargetError, match="of type 'cuda' there is none"):
        ml.device("cuda")
    fake.fake_devices(1, 11080)
    cuda.library.cache_clear()
    with pytest.raises(ml.TargetError, match="is for CUDA 11, and mlirml needs CUDA 12"):
        ml.device("cuda")
    monkeypatch.setattr(cuda, "LIBRARY", "libnothing.so.1")
    cuda.library.cache_clear()
    with pytest.raises(ml.TargetError) as error:
        ml.device("cuda")
    assert "NVIDIA's driver is not installed: libnothing.so.1: cannot open shared object" in str(error.value)
    assert "= help: install NVIDIA's driver, version 525 or newer" in str(error.value)
    assert [d.id for d in ml.devices() if d.kind == "cuda"] == []


@pytest.fixture
def at_hand(fake: Any) -> Iterator[Any]:
    cuda_target.device_at_hand.cache_clear()
    yield fake
    cuda_target.device_at_hand.cache_clear()


@pytest.mark.skipif(not tileiras.is_installed(), reason="no assembler of tiles")
@pytest.mark.parametrize(("driver", "architecture"), [(12080, ""), (13000, "sm_90")])
def test_kernels_of_tiles_need_a_new_driver(at_hand: Any, driver: int, architecture: str) -> None:
    at_hand.fake_devices(1, driver)
    assert ml.device("cuda").capabilities["driver"] == driver
    assert cuda_target.tile_architecture() == architecture
    with ml.config.override(tiles="off"):
        assert cuda_target.tile_architecture() == ""
    with ml.config.override(tiles="sm_100"):
        assert cuda_target.tile_architecture() == "sm_100"


@pytest.mark.skipif(ptx.assembler() is None, reason="no ptxas; `pip install nvidia-cuda-nvcc`")
def test_cubins_need_a_driver_of_the_assembler(at_hand: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for driver, architecture in ((12080, ""), (13000, "sm_90")):
        at_hand.fake_devices(1, driver)
        cuda.library.cache_clear(), cuda.open_device.cache_clear(), cuda_target.device_at_hand.cache_clear()
        monkeypatch.setattr(device_module, "_KNOWN", {})
        monkeypatch.setattr(ptx, "assembler_major", lambda: 13)
        assert cuda_target.cubin_architecture() == architecture
    with ml.config.override(cubins="off"):
        assert cuda_target.cubin_architecture() == ""
    with ml.config.override(cubins="sm_120"):
        assert cuda_target.cubin_architecture() == "sm_120"


def test_code_for_the_processor_comes_before_that_for_all(fake: Any) -> None:
    """What the driver refuses is loaded in the form for all; where it takes neither, the error is that of this one."""
    driver: Any = ml.device("cuda:0").driver
    entries, cubin = [("scale", [0, 0, 4])], b"\x7fELF of the kernels"
    driver.load(b"bad", entries, cubin)  # the stand-in takes any cubin
    assert driver.native.cubins == 1
    fake.fake_refuse_cubins(1)
    try:
        driver.load(b"an image", entries, cubin)
        assert driver.native.cubins == 1
        with pytest.raises(ml.LaunchError, match="does not take the kernels: CUDA_ERROR_INVALID_IMAGE"):
            driver.load(b"bad", entries, cubin)
    finally:
        fake.fake_refuse_cubins(0)


def test_kernels_with_an_image_of_their_own(fake: Any) -> None:
    """Each image is loaded once; a bad one is told."""
    driver: Any = ml.device("cuda:0").driver
    entries = [("scale", [0, 0, 4]), ("own", [0], b"an image"), ("again", [0], b"an image")]
    with pytest.raises(ml.LaunchError, match="loading the kernel own"):  # the stand-in knows `scale` only
        driver.load(b"another image", entries)
    with pytest.raises(ml.LaunchError, match="does not take the kernels"):
        driver.load(b"", [("own", [0], b"bad")])
