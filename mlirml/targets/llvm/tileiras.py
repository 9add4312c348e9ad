"""Cubins of tile kernels, by NVIDIA's cuTile Python and its assembler `tileiras`, if their wheels are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import linecache
import math
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import TILE
from mlirml.errors import InternalError
from mlirml.targets.llvm.ptx import toolkits

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121")
"""The architectures that there are cubins for."""
OLDEST_DRIVER = 13000
"""The version of CUDA that a driver must be for."""
SYMBOL = "kernel"
"""The name of the kernel in each cubin, which the runtime asks for."""
_ADDRESS = 16
"""What divides the address of each array."""
_HINTS = {"warps": "num_worker_warps", "occupancy": "occupancy"}
"""The hints of a kernel, and their names in `ct.kernel`."""


@dataclass(frozen=True)
class ArrayType:
    """An array argument: its element type in `cuda.tile`, its sizes and strides, and what divides its address."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    alignment: int


@dataclass(frozen=True)
class ScalarType:
    """An argument that is one number."""

    dtype: str


Parameter = ArrayType | ScalarType


@dataclass(frozen=True)
class TileKernel:
    """A kernel to be assembled: its text in cuTile Python, its arguments, and hints by their names in `ct.kernel`."""

    text: str
    parameters: tuple[Parameter, ...]
    hints: tuple[tuple[str, int], ...]


@cache
def is_installed() -> bool:
    """True if there is an assembler of tiles: the package `cuda.tile`, `tileiras`, and the `ptxas` that it calls."""
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.tile") is None:
        return False
    return any(all((folder / "bin" / tool).exists() for tool in ("tileiras", "ptxas")) for folder in toolkits())


@cache
def version() -> str:
    """The versions of the packages that a cubin depends on."""
    names = ("cuda-tile", "nvidia-cuda-tileiras", "nvidia-cuda-nvcc")
    return " ".join(importlib.metadata.version(name) for name in names)


def binaries_of(module: Any) -> list[Any]:
    """The tile kernels of a module after `mlirml-embed-tiles`, as operations."""
    from mlirml.ir.bindings import block_ops

    operation = getattr(module, "operation", module)
    ops = block_ops(operation.regions[0].blocks[0])
    return [op for op in ops if op.name == "gpu.binary" and TILE in str(op.attributes["objects"][0])]


def kernels_of(module: Any) -> dict[str, TileKernel]:
    """The tile kernels of a module after `mlirml-embed-tiles`, by name."""
    from mlirml.ir.bindings import gpu, mlir

    found = {}
    for op in binaries_of(module):
        written = gpu.ObjectAttr(op.attributes["objects"][0])
        hints, text = written.properties[TILE], written.object.decode()
        types = [mlir.TypeAttr(attribute).value for attribute in hints["arguments"]]
        numbers = tuple((name, int(hints[key].value)) for key, name in _HINTS.items() if key in hints)
        found[op.attributes["sym_name"].value] = TileKernel(text, tuple(map(parameter_of, types)), numbers)
    return found


def parameter_of(type_: Any) -> Parameter:
    """An argument of a kernel, by its type in MLIR."""
    from mlirml.codegen.tile.cutile import ARRAY_DTYPES, DTYPES
    from mlirml.ir.bindings import mlir

    if not isinstance(type_, mlir.MemRefType):
        return ScalarType(DTYPES[str(type_)])
    strides, offset = type_.get_strides_and_offset()
    nbytes = offset * max(1, type_.element_type.width // 8)
    alignment = next(n for n in (_ADDRESS, 8, 4, 2, 1) if nbytes % n == 0)
    return ArrayType(ARRAY_DTYPES[str(type_.element_type)], tuple(type_.shape), tuple(strides), alignment)


def assemble_all(kernels: Sequence[TileKernel], architecture: str) -> list[bytes]:
    """The cubins of some kernels, assembled at the same time."""
    if not kernels:
        return []
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda kernel: assemble(kernel, architecture), kernels))


@lru_cache(maxsize=256)
def assemble(kernel: TileKernel, architecture: str) -> bytes:
    """The cubin of a kernel; raises `InternalError` if the assembler refuses it."""
    text, parameters = kernel.text, kernel.parameters
    import cuda.tile as ct
    from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

    name = f"<tile kernel {hash((text, parameters))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"ct": ct, "INF": math.inf, "NAN": math.nan}
    exec(compile(text, name, "exec"), scope)
    signature = KernelSignature(
        [_constraint(parameter) for parameter in parameters],
        calling_convention=CallingConvention.cutile_python_v2(),
        symbol=SYMBOL,
    )
    made = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry = ct.kernel(scope["kernel"], **dict(kernel.hints))
            export_kernel(entry, [signature], made, gpu_code=architecture, output_format="cubin")
    except ct.TileError as error:
        raise InternalError(
            "the assembler of tiles refuses a kernel", notes=(*str(error).splitlines()[:6], text)
        ) from None
    finally:
        del linecache.cache[name]
    return made.getvalue()


def _constraint(parameter: Parameter) -> Any:
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint, ScalarConstraint

    dtype = getattr(ct, parameter.dtype)
    if isinstance(parameter, ScalarType):
        return ScalarConstraint(dtype)
    return ArrayConstraint(
        dtype,
        len(parameter.sizes),
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=parameter.strides,
        shape_constant=parameter.sizes,
        base_addr_divisible_by=parameter.alignment,
    )
