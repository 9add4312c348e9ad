from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CellType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

class _HasAddress(Protocol):
    def address(self, symbol: str, /) -> int: ...

class Code:
    @property
    def size(self) -> int: ...
    @property
    def polls(self) -> bool: ...
    def address(self, symbol: str) -> int: ...

class Program:
    remaining: int | None
    def __init__(
        self,
        code: _HasAddress,
        entry_name: str,
        inputs: Iterable[tuple[npt.DTypeLike, Sequence[int]]],
        outputs: Iterable[tuple[npt.DTypeLike, Sequence[int]]],
        constants: Iterable[npt.NDArray[Any]] = (),
        workspace_bytes: int = 0,
        writebacks: Iterable[tuple[int, int]] = (),
        int_ranges: Iterable[tuple[int, int, int, str]] = (),
        weak: Iterable[bool] = (),
        in_place: Iterable[int] = (),
        host: Callable[[int, list[int]], object] | None = None,
    ) -> None: ...
    def __call__(
        self,
        leaves: Iterable[npt.NDArray[Any] | np.generic | bool | int | float],
        outs: Iterable[npt.NDArray[Any] | None] | None = None,
    ) -> list[npt.NDArray[Any]]: ...

class Dispatcher:
    def __init__(self, miss: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def add(
        self,
        example_args: tuple[Any, ...],
        example_kwargs: Mapping[str, Any] | None,
        program: Program,
        out_tree: Any,
        order: Iterable[int] | None = None,
        statics: Iterable[int] = (),
        guards: Iterable[tuple[dict[str, Any] | CellType, str | None, Any]] = (),
        explain: Callable[[Any], BaseException] | None = None,
    ) -> bool: ...
    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any] = ..., /) -> Program | None: ...
    def clear(self) -> None: ...
    @property
    def entries(self) -> int: ...

parallel_for_address: int

CENSUS_FUNCTIONS: tuple[str, ...]

def census(operation: int, functions: tuple[int, ...]) -> dict[str, int]: ...
def load_object(object: bytes) -> Code: ...
def find_lapack(path: str) -> bool: ...
def find_blas(path: str) -> bool: ...
def set_threads(threads: int) -> None: ...
def get_threads() -> int: ...
def clock_nanoseconds() -> int: ...
def start_kernel_record(kernels: int, capacity: int) -> None: ...
def end_kernel_record() -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]: ...
def worker_count() -> int: ...
def cached_bytes() -> int: ...
def release_cached() -> None: ...
def declare_fields(type: type, names: tuple[str, ...]) -> bool: ...
def number_leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None: ...

_Bytes = npt.NDArray[np.uint8]

class _Device:
    name: str
    launches: int
    bytes_in: int
    bytes_out: int
    def alloc(self, nbytes: int) -> int: ...
    def free(self, address: int) -> None: ...
    def copy(self, target: int, source: int, nbytes: int) -> None: ...
    def copy_in(self, address: int, source: _Bytes) -> None: ...
    def copy_out(self, target: _Bytes, address: int) -> None: ...
    def mark(self) -> int: ...
    def wait(self, mark: int, timeout: float | None = None) -> bool: ...
    def load(self, code: bytes, entries: Sequence[tuple[Any, ...]], cubin: bytes = b"") -> Any: ...
    def run(
        self,
        entry: int,
        pointers: Sequence[int],
        module: Any,
        waits: bool = False,
        host: Any = None,
        graphs: bool = True,
        streams: int = 1,
    ) -> None: ...

class WgpuLibrary:
    count: int
    def __init__(self, path: str, backend: int = 1) -> None: ...

class WgpuDevice(_Device):
    driver: str
    features: set[str]
    emulated: bool
    limits: dict[str, int]
    submissions: int
    def __init__(self, library: WgpuLibrary, index: int) -> None: ...
    def lose(self) -> None: ...

class CudaLibrary:
    count: int
    version: int
    def __init__(self, path: str) -> None: ...

class CudaDevice(_Device):
    def copy_in(self, address: int, source: _Bytes, after: int | None = None) -> None: ...
    def copy_out(self, target: _Bytes, address: int, after: int | None = None) -> None: ...
    memory: int
    cubins: int
    graphs: int
    graph_commands: int
    side_bytes: int
    def __init__(self, library: CudaLibrary, index: int) -> None: ...
    stream: int
    def attribute(self, number: int) -> int: ...
    def lend(
        self,
        address: int,
        shape: Sequence[int],
        dtype: tuple[int, int],
        owner: object,
        stream: int | None,
        versioned: bool,
    ) -> Any: ...
    def borrow(self, capsule: Any) -> BorrowedMemory: ...

class BorrowedMemory:
    address: int
    shape: list[int]
    dtype: tuple[int, int]
    lanes: int
    dense: bool
    read_only: bool
