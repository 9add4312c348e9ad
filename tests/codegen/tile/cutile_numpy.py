"""Runs tile kernels in NumPy: `cuda.tile` as far as their texts use it, one block after the other.

Tiles are arrays. What a GPU only does wrong now and then is an error here: a tile that lies outside of its array, an
element that two blocks store.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from mlirml.codegen.tile.cutile import ARRAY_DTYPES, kernel_text
from mlirml.dialects.mlirml import TILE
from mlirml.ir.bindings import block_ops, mlir
from tests.codegen.gpu.gpu_harness import read_plan

DTYPES = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "bool_": np.bool_,
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


class View:
    """An array argument: a view of the elements of a buffer."""

    def __init__(self, flat: np.ndarray, shape: Sequence[int], strides: Sequence[int]) -> None:
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        assert last < flat.size, "a view is larger than its buffer"
        steps = [stride * flat.itemsize for stride in strides]
        self.array = np.lib.stride_tricks.as_strided(flat, tuple(shape), steps)
        self.stored = np.zeros(tuple(shape), bool)

    def at(self, index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[int, ...]]:
        """Where a tile lies, and how much of it is inside."""
        places = []
        assert len(index) == len(shape) == self.array.ndim
        for number, extent, size in zip(index, shape, self.array.shape, strict=True):
            assert extent & (extent - 1) == 0, "the extents of tiles are powers of two"
            assert 0 <= number * extent < size, "a tile lies outside of its array"
            places.append(slice(number * extent, min(size, (number + 1) * extent)))
        return tuple(places), tuple(place.stop - place.start for place in places)


def load(x: View, index: tuple[int, ...], shape: tuple[int, ...], padding_mode: Any = None) -> np.ndarray:
    places, inside = x.at(index, shape)
    assert inside == shape or padding_mode == "zero"
    tile = np.zeros(shape, x.array.dtype)
    tile[tuple(map(slice, inside))] = x.array[places]
    return tile


def store(x: View, index: tuple[int, ...], tile: np.ndarray) -> None:
    places, inside = x.at(index, tile.shape)
    assert tile.dtype == x.array.dtype
    assert not x.stored[places].any(), "an element is stored twice"
    x.stored[places] = True
    x.array[places] = tile[tuple(map(slice, inside))]


def rounded_to_tf32(x: np.ndarray) -> np.ndarray:
    """f32 with 10 bits after the point."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


def astype(x: Any, dtype: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return rounded_to_tf32(x) if dtype == "tfloat32" else np.asarray(x).astype(dtype)


def mma(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    wide = total.dtype
    return a.astype(wide) @ b.astype(wide) + total


def extremum(strict: Any, loose: Any) -> Any:
    def call(a: Any, b: Any, propagate_nan: bool = False) -> Any:
        return (strict if propagate_nan or np.asarray(a).dtype.kind in "iub" else loose)(a, b)

    return call


def reduced(strict: Any, loose: Any) -> Any:
    def call(a: np.ndarray, axis: int, propagate_nan: bool = False) -> Any:
        return (strict if propagate_nan else loose).reduce(a, axis)

    return call


def language(block: tuple[int, int, int]) -> SimpleNamespace:
    """`cuda.tile` for one block."""
    functions = {
        name: getattr(np, name)
        for name in ("ceil", "cos", "cosh", "exp", "exp2", "floor", "log", "log2", "sin", "sinh", "sqrt", "tan", "tanh",
                     "abs", "isnan", "where", "reshape", "broadcast_to", "transpose", "sum")
    }  # fmt: skip
    return SimpleNamespace(
        **DTYPES,
        **functions,
        tfloat32="tfloat32",
        PaddingMode=SimpleNamespace(ZERO="zero"),
        bid=lambda axis: block[axis],
        load=load,
        store=store,
        mma=mma,
        astype=astype,
        full=lambda shape, value, dtype: np.full(shape, value, dtype),
        arange=lambda n, dtype: np.arange(n, dtype=dtype),
        permute=np.transpose,
        bitcast=lambda x, dtype: np.asarray(x).view(dtype),
        truediv=lambda a, b: np.true_divide(a, b),
        rsqrt=lambda x: (1 / np.sqrt(x)).astype(x.dtype),
        max=reduced(np.maximum, np.fmax),
        min=reduced(np.minimum, np.fmin),
        maximum=extremum(np.maximum, np.fmax),
        minimum=extremum(np.minimum, np.fmin),
    )


def simulate(module: mlir.Module, name: str, *arrays: np.ndarray, results: int = 1) -> list[np.ndarray]:
    """The last `results` arrays after the launches of a function, all of whose kernels are of tiles."""
    plan = read_plan(module, name)
    kernels = {}
    for op in block_ops(module.operation.regions[0].blocks[0]):
        if op.name == "gpu.module":
            kernels = {each.attributes["sym_name"].value: each for each in block_ops(op.regions[0].blocks[0])}
    buffers = [np.ascontiguousarray(array).copy() for array in arrays]
    buffers += [np.full(size, 255, np.uint8) for size in plan.temporaries]
    for launch in plan.launches:
        kernel = kernels[launch.name]
        assert TILE in kernel.attributes, f"{launch.name} is no kernel of tiles"
        run_kernel(kernel, launch.grid, [buffers[number] if number >= 0 else -number for number in launch.buffers])
    return buffers[len(arrays) - results : len(arrays)]


def stored_dtype(type_: mlir.MemRefType) -> np.dtype[Any]:
    """The dtype of an array argument: booleans are bytes."""
    return np.dtype(DTYPES[ARRAY_DTYPES[str(type_.element_type)]])


def view_of(buffer: np.ndarray, type_: mlir.MemRefType) -> View:
    """The view of a buffer that an argument of a kernel is."""
    strides, offset = type_.get_strides_and_offset()
    return View(buffer.view(stored_dtype(type_)).reshape(-1)[offset:], type_.shape, strides)


def run_kernel(kernel: mlir.Operation, grid: tuple[int, ...], buffers: list[Any]) -> None:
    """Run all blocks of a kernel."""
    types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    arguments = [
        view_of(buffer, type_) if isinstance(type_, mlir.MemRefType) else buffer
        for buffer, type_ in zip(buffers, types, strict=True)
    ]
    run_text(kernel_text(kernel), grid, arguments)


def run_text(text: str, grid: Sequence[int], arguments: Sequence[Any]) -> None:
    """Run all blocks of a kernel, given as text."""
    code = compile(text, "<a tile kernel>", "exec")
    for number in range(math.prod(grid)):
        block = (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
        scope: dict[str, Any] = {"ct": language(block), "INF": math.inf, "NAN": math.nan}
        exec(code, scope)
        with np.errstate(all="ignore"):
            scope["kernel"](*arguments)
