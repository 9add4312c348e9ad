"""Arrays that stay in device memory until the host reads their elements."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mlirml.errors import ArgumentError
from mlirml.runtime.device import Device, device
from mlirml.runtime.memory import Block, BorrowedBlock
from mlirml.runtime.node import ArrayType, Node, array_type, references, stored

_HOST, _CUDA = 1, 2  # DLPack's `kDLCPU` and `kDLCUDA`
_ALIGNMENT = 16
"""Alignment in bytes of arrays in CUDA memory: the width of a kernel's vector loads."""
_POLL_SECONDS = 2e-4


class Array:
    """An array on a device, densely packed in C order, that does not change.

    It has the operators, methods and attributes of `numpy.ndarray`, and NumPy's functions take it. They return arrays
    on the same device at once, with shape and dtype; operations are gathered until a value is needed, and then compiled
    and run as one program (`docs/arrays.md`). Compiled functions take it as they do NumPy arrays. A call that returns
    an array may return before the work is done; reading elements waits for it, and `block()` waits without reading.
    `array`, `asarray` and `put` make one; `x.at[i].set(v)` is a new array with other elements.

    >>> import numpy as np, mlirml as ml
    >>> x = ml.put(np.ones((2, 3), np.float32), "cpu")
    >>> x.shape, x.nbytes, x.device.id
    ((2, 3), 24, 'cpu')
    >>> (ml.compile(lambda x: x + 1)(x)).numpy()
    array([[2., 2., 2.],
           [2., 2., 2.]], dtype=float32)
    >>> np.sum(x * 2, axis=0)
    Array([4., 4., 4.], dtype=float32, device='cpu')
    """

    __slots__ = ("__weakref__", "_node")

    if TYPE_CHECKING:  # what `mlirml.lazy.interface` installs

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...

    def __init__(
        self,
        device: Device,
        storage: Block | npt.NDArray[Any],
        shape: tuple[int, ...],
        dtype: npt.DTypeLike,
        mark: int = 0,
        target: str | None = None,
    ) -> None:
        self._node = stored(storage, array_type(shape, np.dtype(dtype), device, target), mark)

    @classmethod
    def of_node(cls, node: Node) -> Array:
        """The array that a node computes."""
        new = cls.__new__(cls)
        new._node = node
        return new

    @property
    def type(self) -> ArrayType:
        """Shape, dtype, device and target."""
        return self._node.type

    @property
    def device(self) -> Device:
        """The device that the elements are on."""
        return self._node.type.device

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._node.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self._node.type.dtype

    @property
    def _storage(self) -> Any:
        """The memory of the elements; runs the operations that compute them."""
        node = self._node
        if node.value is None:
            node.call.evaluate(node)
        return node.value

    @property
    def _mark(self) -> int:
        return self._node.mark

    def is_gathered(self) -> bool:
        """True if the operations that compute the elements have not been run yet."""
        return self._node.value is None

    def start(self) -> Array:
        """Run the operations that are gathered, without waiting for a device; returns the array."""
        if self.is_gathered():
            self._node.call.evaluate(self._node)
        return self

    def detach(self) -> None:
        """Prepare for a store into the memory: operations that are gathered keep the elements as they are now."""
        storage, node = self._storage, self._node
        if references(node) > 1:
            on_device = isinstance(storage, Block)
            value, mark = (lambda x: (x._storage, x._mark))(self._copied()) if on_device else (storage.copy(), 0)
            self._node = stored(storage, node.type, node.mark)
            node.value, node.mark = value, mark

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    def stored(self, mark: int) -> None:
        """Record that the work up to a mark writes to the array."""
        self._node.mark = mark

    @property
    def address(self) -> int:
        """The address of the first element: a device address, or a host address on the CPU."""
        storage = self._storage
        return storage.address if isinstance(storage, Block) else int(storage.ctypes.data)

    def numpy(self) -> npt.NDArray[Any]:
        """The elements in host memory: a copy, or a read-only view where the device is the CPU. Waits for them."""
        storage = self._storage
        if not isinstance(storage, Block):
            view: npt.NDArray[Any] = storage.view()
            view.flags.writeable = False
            return view
        host = np.empty(self.shape, self.dtype)
        if host.nbytes:
            self.device.driver.copy_out(_bytes(host), storage.address, self._mark)
        self.device.settle()
        return host

    def host(self) -> npt.NDArray[Any]:
        """The memory of an array on the CPU, for programs that may store into it."""
        return self._storage

    def to(self, target: str | Device) -> Array:
        """The same elements on another device; the array itself if it lies there already."""
        where = device(target)
        return self if where is self.device else put(self, where)

    def block(self, timeout: float | None = None) -> Array:
        """Wait until the elements are computed; raises `TimeoutError` after `timeout` seconds. Returns the array."""
        if isinstance(self._storage, Block) and not self.device.driver.wait(self._mark, timeout):
            raise TimeoutError(f"the array was not ready after {timeout} s")
        self.device.settle()
        return self

    def is_ready(self) -> bool:
        """True if the elements are computed; False while the operations that compute them are only gathered."""
        if self.is_gathered():
            return False
        return not isinstance(self._storage, Block) or self.device.driver.wait(self._mark, 0.0)

    def __await__(self) -> Generator[Any, None, Array]:
        if not self.is_ready():
            import asyncio  # takes 15 ms, and only coroutines need it

            yield from asyncio.get_running_loop().run_in_executor(None, self.block).__await__()
        return self

    def item(self) -> Any:
        """The only element as a Python number."""
        return self.numpy().item()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False and isinstance(self._storage, Block):
            raise ValueError(f"an array on {self.device.id} cannot be seen by NumPy without a copy")
        host = self.numpy()
        wanted = host.dtype if dtype is None else np.dtype(dtype)
        if copy is False and wanted != host.dtype:
            raise ValueError(f"{host.dtype} cannot be seen as {wanted} without a copy")
        return host.astype(wanted, copy=bool(copy))

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the elements: on the device where its memory can be shared, else a copy on the host.

        `stream` is the CUDA stream that will use the elements, as in the array API standard: it is made to wait for the
        work so far.
        """
        own = self.__dlpack_device__()
        if dl_device in (None, own) and own != (_HOST, 0):
            array = self._copied() if copy else self
            versioned = max_version is not None and max_version[0] >= 1
            lend = self.device.driver.lend  # type: ignore[attr-defined]
            return lend(array.address, array.shape, array.dtype, array, stream, versioned)
        on_device = isinstance(self._storage, Block)
        if on_device and copy is False:
            raise BufferError(f"an array on {self.device.id} cannot be shared without a copy")
        if dl_device not in (None, (_HOST, 0)):
            raise BufferError(f"an array on {self.device.id} cannot be given to the device {dl_device}")
        host = self.numpy() if on_device else self.host()
        return host.__dlpack__(max_version=max_version, copy=copy if not on_device else None)

    def __dlpack_device__(self) -> tuple[int, int]:
        if not isinstance(self._storage, Block):
            return _HOST, 0
        return getattr(self.device.driver, "dlpack_device", (_HOST, 0))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, by which Numba, CuPy and others read an array on a CUDA device."""
        stream = getattr(self.device.driver, "stream", None) if self.device.kind == "cuda" else None
        if stream is None or self.dtype.kind == "V":
            raise AttributeError(f"an array of {self.dtype} on {self.device.id} has no __cuda_array_interface__")
        address = self.address if self.size else 0
        data = {"shape": self.shape, "typestr": self.dtype.str, "data": (address, False), "version": 3}
        return {**data, "stream": stream}

    @staticmethod
    def from_dlpack(x: Any) -> Array:
        """An array that shares the memory of another library's, such as a tensor of torch on a GPU.

        Parameters:
            x: an object with `__dlpack__`, in host memory or on a CUDA device, its elements densely packed in C order.

        The work of the other library on it is waited for on the device, not here. Before the other library reads what
        a compiled function has stored into the array, wait for it by `block()`. Raises `ArgumentError` for memory that
        is not dense or not writable, or of a type that NumPy does not have.

        >>> x = np.arange(3)
        >>> Array.from_dlpack(x).numpy() is x or np.shares_memory(Array.from_dlpack(x).numpy(), x)
        True
        """
        kind, index = x.__dlpack_device__()
        if kind != _CUDA:
            host = np.from_dlpack(x)
            return Array(device("cpu"), host, host.shape, host.dtype)
        where = device(f"cuda:{index}")
        from mlirml.runtime.cuda import dtype_of

        memory = where.driver.borrow(x)  # type: ignore[attr-defined]
        dtype = dtype_of(memory.dtype)
        if dtype is None or memory.lanes != 1 or not memory.dense or memory.read_only:
            what = "of a type that NumPy lacks" if dtype is None or memory.lanes != 1 else "not densely packed"
            raise ArgumentError(
                f"from_dlpack: the {type(x).__name__} is {'not writable' if memory.read_only else what}",
                help="pass a dense copy of it, as `.contiguous()` of torch gives",
            )
        if memory.address % _ALIGNMENT and math.prod(memory.shape):
            raise ArgumentError(
                f"from_dlpack: the {type(x).__name__} does not start at a multiple of {_ALIGNMENT} bytes, "
                "as kernels read it",
                help="pass a copy of it, as `.clone()` of torch gives",
            )
        return Array(where, BorrowedBlock(where.pool, memory), tuple(memory.shape), dtype, where.driver.mark())

    def _copied(self) -> Array:
        """A copy of the array in other memory of the device."""
        new = empty(self.device, self.shape, self.dtype)
        if self.nbytes:
            self.device.driver.copy(new.address, self.address, self.nbytes)
        new.stored(self.device.driver.mark())
        return new

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no dimension has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return int(np.asarray(self.numpy()).__index__())

    def __repr__(self) -> str:
        shown = repr(self.numpy())  # with the dtype where the elements do not tell it
        return f"Array({shown[len('array(') : -1]}, device={self.device.id!r})"

    def __reduce__(self) -> Any:
        return put, (self.numpy(), self.device.id)


def put(x: Any, where: str | Device = "auto") -> Any:
    """Copy an array, or each array and number of nested tuples, lists and dicts, to a device.

    Parameters:
        x: arrays, numbers, anything with `__array__` or `__dlpack__`, and containers of them.
        where: the device, or its name; see `device`.

    Returns `Array`s in the same containers. On the CPU they hold copies too. Raises `TargetError` for a device that is
    not there, `LaunchError` when its memory is full, `ArgumentError` for what is no array.

    >>> import numpy as np, mlirml as ml
    >>> ml.put({"w": np.zeros(2), "n": 3}, "cpu")
    {'w': Array([0., 0.], device='cpu'), 'n': Array(3, device='cpu')}
    """
    target = device(where)
    if isinstance(x, dict):
        return type(x)((key, put(value, target)) for key, value in x.items())
    if isinstance(x, (tuple, list)):
        values = [put(value, target) for value in x]
        return type(x)._make(values) if hasattr(x, "_make") else type(x)(values)
    if x is None:
        return None
    host = _on_host(x)
    if target.kind == "cpu":
        return Array(target, np.array(host, order="C"), host.shape, host.dtype)
    block = target.pool.take(host.nbytes)
    if host.nbytes:
        target.driver.copy_in(block.address, _bytes(np.ascontiguousarray(host)), block.after)
    return Array(target, block, host.shape, host.dtype, target.driver.mark())


def empty(where: Device, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An uninitialized array, as a destination."""
    element_type = np.dtype(dtype)
    if where.kind == "cpu":
        return Array(where, np.empty(shape, element_type), shape, element_type)
    return Array(where, where.pool.take(math.prod(shape) * element_type.itemsize), shape, element_type)


def wait_all(arrays: Iterable[Any], timeout: float | None = None) -> None:
    """Wait until all of the arrays are computed.

    Parameters:
        arrays: `Array`s on any devices; anything else counts as computed.
        timeout: seconds; None to wait without an end.

    Raises `TimeoutError` after `timeout` seconds, and the error of a check that failed on a device.

    >>> import numpy as np, mlirml as ml
    >>> ml.wait_all([ml.put(np.ones(3), "cpu")], timeout=10)
    """
    end = None if timeout is None else time.monotonic() + timeout
    for array in arrays:
        if isinstance(array, Array):
            array.block(None if end is None else max(0.0, end - time.monotonic()))


def wait_any(arrays: Iterable[Any], timeout: float | None = None) -> int:
    """Wait until one of the arrays is computed, and return its position.

    Parameters:
        arrays: `Array`s on any devices; anything else counts as computed.
        timeout: seconds; None to wait without an end.

    Raises `TimeoutError` after `timeout` seconds, `ArgumentError` where there is no array, and the error of a check
    that failed on the device.

    >>> import numpy as np, mlirml as ml
    >>> ml.wait_any([ml.put(np.ones(3), "cpu")])
    0
    """
    waiting = list(arrays)
    if not waiting:
        raise ArgumentError("wait_any: there is no array to wait for")
    for array in waiting:
        if isinstance(array, Array):
            array.start()
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        for position, array in enumerate(waiting):
            if not isinstance(array, Array):
                return position
            if array.is_ready():
                array.block()  # does not wait, but raises the error of a failed check
                return position
        if end is not None and time.monotonic() >= end:
            raise TimeoutError(f"no array was ready after {timeout} s")
        time.sleep(_POLL_SECONDS)


def _on_host(x: Any) -> npt.NDArray[Any]:
    if isinstance(x, Array):
        return x.numpy()
    if not hasattr(x, "__array__") and hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    host = np.asarray(x)
    if host.dtype == object or (host.dtype.kind in "SUV" and host.dtype.name != "bfloat16"):
        raise ArgumentError(f"put: a {type(x).__name__} is not an array of numbers", help="pass a NumPy array")
    return host


def _bytes(host: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return host.reshape(-1).view(np.uint8)


__all__ = ["Array", "empty", "put", "wait_all", "wait_any"]
