"""How much work the kernels of row programs do, as counted in their text: no GPU runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import defining_op, make_context, mlir, operations, parse

Function = Callable[[np.ndarray, int | tuple[int, ...]], np.ndarray]
_LOADS = {"memref.load", "vector.load"}


def softmax(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def logsumexp(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    most = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True)) + most


def log_softmax(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    return x - logsumexp(x, axis)


def layer_norm(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=axis, keepdims=True) + np.float32(1e-5))


def rms_norm(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + np.float32(1e-5))


def number(value: mlir.Value) -> int:
    """An integer constant."""
    op = defining_op(value)
    assert op is not None and op.name == "arith.constant"
    return int(op.attributes["value"].value)


def lanes(op: mlir.Operation) -> int:
    """The elements that an operation reads or computes."""
    types = [value.type for value in op.results]
    return max([math.prod(t.shape) for t in types if isinstance(t, mlir.VectorType)], default=1)


def work(function: Function, shape: tuple[int, ...], axis: int | tuple[int, ...], target: str) -> tuple[float, float]:
    """How many elements are read from memory, and how many `exp` computed, for each element of the array."""
    text = ml.compile(lambda x: function(x, axis), target=target).ir("schedule", np.zeros(shape, np.float32))
    module = parse(text, make_context())
    threads: dict[str, int] = {}
    for op in operations(module):
        if op.name == "gpu.launch_func":
            name = str(op.attributes["kernel"]).rpartition("@")[2]
            threads[name] = threads.get(name, 0) + math.prod(number(v) for v in list(op.operands)[:6])
    loads = exps = 0
    for op in operations(module):
        if op.name not in _LOADS and op.name != "math.exp":
            continue
        times, parent = 1, op.parent.operation
        while parent.name != "gpu.func":
            if parent.name == "scf.for":
                low, high, step = (number(v) for v in list(parent.operands)[:3])
                times *= -(-(high - low) // step)
            parent = parent.parent.operation
        if op.name == "math.exp":
            exps += times * lanes(op) * threads[parent.attributes["sym_name"].value]
        elif "workgroup" not in str(op.operands[0].type):
            loads += times * lanes(op) * threads[parent.attributes["sym_name"].value]
    return loads / math.prod(shape), exps / math.prod(shape)


@pytest.mark.parametrize("target", ["cuda", "webgpu"])
@pytest.mark.parametrize("function", [softmax, logsumexp, log_softmax, layer_norm, rms_norm])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((64, 512), -1), ((64, 512), 0), ((4, 128, 512), -1), ((4, 128, 512), 1), ((4, 128, 512), 0),
        ((4, 128, 512), (1, 2)), ((4, 128, 512), (0, 1)), ((4, 8, 2048), -1), ((2, 3, 64, 200), -1),
        ((2, 3, 64, 200), (2, 3)), ((2, 3, 64, 200), 1), ((2, 3, 64, 200), (0, 2, 3)), ((2, 2, 3, 40, 96), -1),
    ],
)  # fmt: skip
def test_no_row_is_reduced_for_each_element(
    function: Function, shape: tuple[int, ...], axis: int | tuple[int, ...], target: str
) -> None:
    loads, exps = work(function, shape, axis, target)
    assert loads <= 10.0  # reads of a row's total included; ragged blocks read some elements twice
    assert exps <= 2.6


@pytest.mark.parametrize("shape", [(64, 512), (4, 128, 512), (2, 4, 64, 512)])
def test_softmax_reads_each_element_once(shape: tuple[int, ...]) -> None:
    assert work(softmax, shape, -1, "cuda") == (1.0, 1.0)
