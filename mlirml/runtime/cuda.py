"""NVIDIA devices, through the library of NVIDIA's driver, which is loaded at first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from mlirml.core.config import config
from mlirml.runtime import _native
from mlirml.runtime.driver import Bytes, NativeDriver

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76
_ATTRIBUTES = {
    "workgroup_threads": 1,
    "workgroup_bytes": 97,
    "subgroup": 10,
    "multiprocessors": 16,
}
"""The `CUdevice_attribute`s that generated code depends on."""


def count() -> int:
    """The number of CUDA devices; raises `TargetError` that names the missing part of the installation."""
    return int(library().count)


@cache
def open_device(index: int) -> CudaDriver:
    """Open a device by its index; raises `TargetError` that names the missing part of the installation."""
    native = _native.CudaDevice(library(), index)
    attributes = {name: native.attribute(number) for name, number in _ATTRIBUTES.items()}
    architecture = f"sm_{native.attribute(_MAJOR)}{native.attribute(_MINOR)}"
    return CudaDriver(native, index, {"architecture": architecture, "driver": library().version, **attributes})


@cache
def library() -> _native.CudaLibrary:
    """The driver's library."""
    return _native.CudaLibrary(LIBRARY)


_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
_DLPACK = 2


class CudaDriver(NativeDriver):
    """A CUDA device, whose memory can be shared with other libraries."""

    def __init__(self, native: _native.CudaDevice, index: int, capabilities: dict[str, Any]) -> None:
        super().__init__(native, native.memory, capabilities)
        self.dlpack_device = (_DLPACK, index)
        self.stream: int = native.stream
        self._index = index

    def run(self, entry: int, pointers: Sequence[int], module: Any, waits: bool = False, host: Any = None) -> None:
        """Run host code, with graphs and streams as the settings have them."""
        self.native.run(entry, pointers, module, waits, host, config.graphs, config.streams)

    def copy_in(self, address: int, source: Bytes, after: int | None = None) -> None:
        """Copy from the host, concurrently with kernels that were launched after a mark."""
        self.native.copy_in(address, source, after)

    def copy_out(self, target: Bytes, address: int, after: int | None = None) -> None:
        """Copy the state at a mark to the host, concurrently with kernels that were launched after it."""
        self.native.copy_out(target, address, after)

    def properties(self) -> Mapping[str, Any]:
        """The driver's attributes by name."""
        from mlirml.runtime.cuda_properties import properties

        return properties(self.native, self._index)

    def lend(
        self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], owner: object, stream: Any, versioned: bool
    ) -> Any:
        """A DLPack capsule; `stream` follows the array API standard: None is the default stream, -1 does not wait."""
        type_code = _BFLOAT if dtype.name == "bfloat16" else _KINDS[dtype.kind]
        return self.native.lend(
            address, shape, (type_code, 8 * dtype.itemsize), owner, checked_stream(stream), versioned
        )

    def borrow(self, x: Any) -> _native.BorrowedMemory:
        """The device memory of an object with `__dlpack__`."""
        try:
            capsule = x.__dlpack__(stream=self.stream, max_version=(1, 0))
        except TypeError:  # the producer predates versioned capsules
            capsule = x.__dlpack__(stream=self.stream)
        return self.native.borrow(capsule)


def checked_stream(stream: Any) -> int | None:
    """The stream that has to wait, None if none has to; raises ValueError for a value that the standard forbids."""
    if stream is None:
        return 1  # the legacy default stream
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"__dlpack__: expected a stream as an integer or None, got {stream!r}")
    if stream == 0 or stream < -1:
        raise ValueError(f"__dlpack__: {stream} is no stream of CUDA; the default one is 1, or 2 of the thread")
    return None if stream == -1 else stream


def dtype_of(dlpack_type: tuple[int, int]) -> np.dtype[Any] | None:
    """The dtype of a DLPack type; None where NumPy has none."""
    code, bits = dlpack_type
    if code == _BFLOAT:
        import ml_dtypes  # not with `import mlirml`

        return np.dtype(ml_dtypes.bfloat16) if bits == 16 else None
    letters = {number: letter for letter, number in _KINDS.items()}
    try:
        return np.dtype(f"{letters[code]}{bits // 8}") if code != _KINDS["b"] else np.dtype(np.bool_)
    except (KeyError, TypeError):
        return None
