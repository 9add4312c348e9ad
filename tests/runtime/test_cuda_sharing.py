"""Memory of CUDA devices shared by DLPack, against the library that stands in for libcuda."""

from __future__ import annotations

import ctypes
import gc
import signal
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime import _native, cuda
from mlirml.runtime.cuda import checked_stream, dtype_of
from tests.runtime.test_cuda_device import fake, path  # noqa: F401  (fixtures)

Fake = Any


def orders(fake: Fake) -> tuple[int, list[int]]:  # noqa: F811
    """How often a stream was made to wait; the stream that was waited for last, and the one that waits."""
    streams = (ctypes.c_uint64 * 2)()
    return fake.fake_orders(streams), list(streams)


@pytest.mark.parametrize("dtype", ["f4", "i8", "u2", "c8", "?", ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 2)])
def test_shared_without_a_copy(fake: Fake, dtype: Any, shape: tuple[int, ...]) -> None:  # noqa: F811
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    there = ml.put(x, "cuda:0")
    shared = ml.Array.from_dlpack(there)
    assert (shared.device.id, shared.address, shared.dtype) == ("cuda:0", there.address, x.dtype)
    np.testing.assert_array_equal(shared.numpy(), x)
    assert fake.fake_contexts() == 0


def test_the_second_device(fake: Fake) -> None:  # noqa: F811
    there = ml.put(np.ones(3), "cuda:1")
    assert there.__dlpack_device__() == (2, 1)
    assert ml.Array.from_dlpack(there).device.id == "cuda:1"


def test_memory_lives_as_long_as_anybody_uses_it(fake: Fake) -> None:  # noqa: F811
    there = ml.put(np.arange(1000.0), "cuda:0")
    where = there.device
    shared = ml.Array.from_dlpack(there)
    del there
    gc.collect()
    where.reset()
    assert fake.fake_in_use() == 8192
    np.testing.assert_array_equal(shared.numpy(), np.arange(1000.0))
    del shared
    gc.collect()
    where.reset()
    assert fake.fake_in_use() == 0


def test_a_capsule_that_nobody_takes_gives_the_memory_back(fake: Fake) -> None:  # noqa: F811
    there = ml.put(np.arange(1000.0), "cuda:0")
    where = there.device
    for version in (None, (1, 0)):
        capsule = there.__dlpack__(max_version=version)
        assert ("dltensor_versioned" if version else '"dltensor"') in repr(capsule)
        del capsule
    del there
    gc.collect()
    where.reset()
    assert fake.fake_in_use() == 0


def test_streams_wait_for_each_other(fake: Fake) -> None:  # noqa: F811
    there = ml.put(np.ones(3), "cuda:0")
    own = there.device.driver.stream  # type: ignore[attr-defined]
    before = orders(fake)[0]
    other = 0x1230
    capsule = there.__dlpack__(stream=other)
    assert orders(fake) == (before + 1, [own, other])
    del capsule  # what comes later waits for the other library's work
    assert orders(fake) == (before + 2, [other, own])
    capsule = there.__dlpack__()
    assert orders(fake) == (before + 3, [own, 1])
    del capsule
    capsule = there.__dlpack__(stream=-1)
    del capsule
    assert orders(fake)[0] == before + 4


@pytest.mark.parametrize(("stream", "kind"), [(0, ValueError), (-2, ValueError), ("1", TypeError), (True, TypeError)])
def test_streams_that_are_none(fake: Fake, stream: Any, kind: type[Exception]) -> None:  # noqa: F811
    with pytest.raises(kind, match="__dlpack__"):
        ml.put(np.ones(3), "cuda:0").__dlpack__(stream=stream)
    assert checked_stream(2) == 2


def test_copies(fake: Fake) -> None:  # noqa: F811
    x = np.arange(5.0)
    there = ml.put(x, "cuda:0")
    native: Any = there.device.driver.native  # type: ignore[attr-defined]
    copied = native.borrow(there.__dlpack__(copy=True, max_version=(1, 0)))
    assert copied.address != there.address
    on_host = np.from_dlpack(there, device="cpu") if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else there.numpy()
    np.testing.assert_array_equal(on_host, x)
    with pytest.raises(BufferError, match="cannot be given to the device"):
        there.__dlpack__(dl_device=(2, 1))


class Tensor:
    """An array of another library, which tells what it is asked."""

    def __init__(self, array: ml.Array, shape: tuple[int, ...] | None = None, versions: bool = True) -> None:
        self.array = array
        self.shape = shape
        self.versions = versions
        self.asked: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if not self.versions and options:
            raise TypeError("unexpected keyword argument")
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream, **options)


@pytest.mark.parametrize("versions", [True, False])
def test_the_other_library_is_told_our_stream(fake: Fake, versions: bool) -> None:  # noqa: F811
    there = ml.put(np.ones(3), "cuda:0")
    tensor = Tensor(there, versions=versions)
    shared = ml.Array.from_dlpack(tensor)
    assert tensor.asked == [there.device.driver.stream]  # type: ignore[attr-defined]
    assert shared.address == there.address


class Columns(Tensor):
    """A matrix whose columns lie together."""

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        capsule = self.array.__dlpack__(stream=stream)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self.strides = (ctypes.c_int64 * 2)(1, 3)
        place = ctypes.c_void_p.from_address(pointer(capsule, b"dltensor") + 32)  # DLTensor.strides
        place.value = ctypes.addressof(self.strides)
        return capsule


def test_memory_that_is_not_dense_is_refused(fake: Fake) -> None:  # noqa: F811
    with pytest.raises(ml.ArgumentError) as error:
        ml.Array.from_dlpack(Columns(ml.put(np.ones((3, 2)), "cuda:0")))
    assert str(error.value) == (
        "from_dlpack: the Columns is not densely packed\n"
        "   = help: pass a dense copy of it, as `.contiguous()` of torch gives"
    )


class Behind(Tensor):
    """An array whose first element was left out."""

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        capsule = self.array.__dlpack__(stream=stream)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        place = ctypes.c_uint64.from_address(pointer(capsule, b"dltensor") + 40)  # DLTensor.byte_offset
        place.value = self.array.dtype.itemsize
        return capsule


def test_memory_that_starts_between_the_places_of_kernels_is_refused(fake: Fake) -> None:  # noqa: F811
    with pytest.raises(ml.ArgumentError) as error:
        ml.Array.from_dlpack(Behind(ml.put(np.ones(8, np.float32), "cuda:0")))
    assert str(error.value) == (
        "from_dlpack: the Behind does not start at a multiple of 16 bytes, as kernels read it\n"
        "   = help: pass a copy of it, as `.clone()` of torch gives"
    )


class Computing:
    """An array that another library, with a stream of its own, still computes when it gives it away."""

    def __init__(self, there: ml.Array, source: ml.Array) -> None:
        self.there = there
        self.library = _native.CudaDevice(_native.CudaLibrary(cuda.LIBRARY), 0)
        self.library.copy(there.address, source.address, there.nbytes)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        return self.library.lend(self.there.address, list(self.there.shape), (2, 32), self, stream, True)


@pytest.mark.parametrize("order", range(1, 6))
def test_copies_wait_for_what_another_library_still_computes(fake: Fake, order: int) -> None:  # noqa: F811
    x = np.arange(8, dtype=np.float32)
    source, there = ml.put(x, "cuda:0").block(), ml.put(np.zeros_like(x), "cuda:0").block()
    fake.fake_late(order)
    np.testing.assert_array_equal(ml.Array.from_dlpack(Computing(there, source)).numpy(), x)


class Foreign:
    """An array in memory of another library, which this one has not allocated."""

    def __init__(self, x: np.ndarray) -> None:
        self.shape = list(x.shape)
        self.library = _native.CudaDevice(_native.CudaLibrary(cuda.LIBRARY), 0)
        self.address = self.library.alloc(x.nbytes)
        self.library.copy_in(self.address, np.ascontiguousarray(x).reshape(-1).view(np.uint8))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        return self.library.lend(self.address, self.shape, (2, 32), self, stream, True)


def test_programs_copy_memory_of_another_library_on_the_device(fake: Fake) -> None:  # noqa: F811
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    shared = ml.Array.from_dlpack(Foreign(x))
    np.testing.assert_array_equal(ml.compile(lambda x: x.copy(), target="cuda")(shared).numpy(), x)


def test_host_code_reads_an_element_of_another_library(fake: Fake) -> None:  # noqa: F811
    def first_above(x: np.ndarray) -> int:
        i = 0
        while x[i, 0] < 30.0:
            i = i + 1
        return i

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert int(ml.compile(first_above, target="cuda")(ml.Array.from_dlpack(Foreign(x)))) == 4


def test_the_host_cannot_read_the_stand_ins_memory(fake: Fake) -> None:  # noqa: F811
    lines = [
        "import ctypes, mlirml as ml, numpy as np",
        "from mlirml.runtime import cuda",
        f"cuda.LIBRARY = {cuda.LIBRARY!r}",
        "ctypes.string_at(ml.put(np.ones(1), 'cuda:0').address, 8)",
    ]
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True)
    assert run.returncode == -signal.SIGSEGV, run.stderr


def test_capsules_are_taken_once(fake: Fake) -> None:  # noqa: F811
    there = ml.put(np.ones(3), "cuda:0")
    native: Any = there.device.driver.native  # type: ignore[attr-defined]
    capsule = there.__dlpack__()
    assert native.borrow(capsule).shape == [3]
    with pytest.raises(TypeError, match="used already"):
        native.borrow(capsule)


def test_the_interface_of_numba_and_cupy(fake: Fake) -> None:  # noqa: F811
    there = ml.put(np.ones((3, 2), np.float32), "cuda:0")
    told = there.__cuda_array_interface__
    stream = there.device.driver.stream  # type: ignore[attr-defined]
    assert told == {
        "shape": (3, 2), "typestr": "<f4", "data": (there.address, False), "version": 3, "stream": stream,
    }  # fmt: skip
    assert not hasattr(ml.put(np.ones(3), "cpu"), "__cuda_array_interface__")


def test_types_of_dlpack() -> None:
    assert dtype_of((2, 16)) == np.float16
    assert dtype_of((4, 16)) == ml_dtypes.bfloat16
    assert dtype_of((6, 8)) == np.bool_
    assert dtype_of((2, 8)) is None
    assert dtype_of((9, 8)) is None
