"""What is timed on a device: NumPy functions, their inputs, how much work they are, and what is to be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workloads import (
    attention,
    block,
    block_arguments,
    causal_attention,
    chain,
    layer_norm,
    linear_gelu,
    matmul,
    softmax,
    sum_columns,
    sum_rows,
)  # fmt: skip

Arguments = tuple[Any, ...]
SETTINGS = {"graphs": True, "streams": 4, "cubins": "auto"}
"""Settings of mlirml that workloads change."""


@dataclass(frozen=True)
class DeviceWorkload:
    """A function on a device. `sizes`, or `quick` in a trial, go to `inputs` and `work`, which counts `unit`s.

    `dtype` is what peers cast the f32 inputs to, and `precision` what `config.matmul_precision` is. `of_copy` is the
    least of the bandwidth of a copy that is to be reached, `of_torch` the least of torch's speed. The largest error may
    be `tolerance` of the largest element. `settings` are those of `mlirml.config` that differ from `SETTINGS`.
    """

    name: str
    function: Callable[..., Any]
    inputs: Callable[..., Arguments]
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    unit: str
    work: Callable[..., float]
    dtype: str = "float32"
    precision: str = "highest"
    of_copy: float | None = None
    of_torch: float | None = None
    tolerance: float = 1e-4
    settings: tuple[tuple[str, Any], ...] = ()

    def arguments(self, quick: bool) -> Arguments:
        """The inputs: the same ones in every run."""
        return self.inputs(*(self.quick if quick else self.sizes))

    def amount(self, quick: bool) -> float:
        """How much work one call is."""
        return self.work(*(self.quick if quick else self.sizes))


def normal(*shapes: tuple[int, ...]) -> Arguments:
    """Arrays of samples of the normal distribution."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)


def identity(x: Any) -> Any:
    """What a copy gives; peers copy memory for it."""
    return x


def training(batch: int) -> Arguments:
    """Weights, velocities, and a batch of digits."""
    from examples.digits import MODELS, load

    params, digits = MODELS[0].random_params(), load()
    velocity = {name: np.zeros_like(weight) for name, weight in params.items()}
    return params, velocity, digits.images[:batch], digits.labels[:batch].astype(np.int32), np.float32(0.01)


def train(*arguments: Any) -> Any:
    """A training step of the perceptron of examples/digits.py."""
    from examples.digits import MODELS, training_step

    return training_step(MODELS[0]).fn(*arguments)


def layers(x: Any, w: Any) -> Any:
    """Many small products, each of the one before."""
    for i in range(w.shape[0]):
        x = np.tanh(x @ w[i])
    return x


def branches(x: Any, w: Any) -> Any:
    """Products of few rows, of which none waits for another, and one of all."""
    parts = [np.tanh(x @ w[i]) for i in range(w.shape[0])]
    total = parts[0]
    for part in parts[1:]:
        total = np.maximum(total, part)
    return total


def layer_arguments(count: int, rows: int, n: int) -> Arguments:
    """A batch, and weights whose products keep the size of numbers."""
    x, w = normal((rows, n), (count, n, n))
    return x, w / np.float32(np.sqrt(n))


def _layers(name: str, function: Callable[..., Any], sizes: tuple[int, ...], **settings: Any) -> DeviceWorkload:
    return DeviceWorkload(
        name, function, layer_arguments, sizes, (3, 8, 16), "flop", lambda count, rows, n: 2.0 * count * rows * n * n,
        tolerance=1e-3, settings=tuple(settings.items()),
    )  # fmt: skip


def _square(n: int) -> Arguments:
    return normal((n, n), (n, n))


def _rows(rows: int, columns: int) -> Arguments:
    return normal((rows, columns))


def _matmul(name: str, dtype: str, of_torch: float | None, precision: str = "highest", n: int = 4096) -> DeviceWorkload:
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5 if precision == "highest" else 2e-3)
    return DeviceWorkload(
        name, matmul, _square, (n,), (128,), "flop", lambda n: 2.0 * n**3, dtype, precision,
        of_torch=of_torch, tolerance=tolerance,
    )  # fmt: skip


def _attention(name: str, heads: int, n: int, d: int, dtype: str = "float16") -> DeviceWorkload:
    causal = name.startswith("causal")
    return DeviceWorkload(
        name, causal_attention if causal else attention, lambda heads, n, d: normal(*[(heads, n, d)] * 3),
        (heads, n, d), (2, 32, 16), "flop", lambda heads, n, d: (2.0 if causal else 4.0) * heads * n * n * d, dtype,
        of_torch=1.0 if dtype == "float16" else None, tolerance=4e-3 if dtype == "float16" else 1e-4,
    )  # fmt: skip


def _size(factor: int) -> Callable[..., float]:
    def nbytes(*sizes: int) -> float:
        return 4.0 * factor * float(np.prod(sizes))

    return nbytes


def _block_flops(length: int, width: int) -> float:
    return 2.0 * length * (12 * width * width + 2 * length * width)


_ALL = [
    DeviceWorkload("copy", identity, _rows, (64, 1 << 20), (64, 64), "byte", _size(2), tolerance=0.0),
    DeviceWorkload(
        "chain", chain, lambda n: normal((n,), (n,), (n,)), (1 << 26,), (1 << 12,), "byte", _size(4), of_copy=0.85,
    ),
    DeviceWorkload("softmax", softmax, _rows, (16384, 2048), (64, 256), "byte", _size(2), of_torch=0.9),
    DeviceWorkload(
        "layer_norm", layer_norm, lambda rows, n: normal((rows, n), (n,), (n,)), (32768, 1024), (64, 256), "byte",
        _size(2), of_torch=0.9,
    ),
    DeviceWorkload("sum_axis0", sum_columns, _rows, (8192, 8192), (64, 64), "byte", _size(1)),
    DeviceWorkload("sum_axis1", sum_rows, _rows, (8192, 8192), (64, 64), "byte", _size(1)),
    _matmul("matmul_f16", "float16", 0.95),
    _matmul("matmul_f16_2048", "float16", None, n=2048),
    _matmul("matmul_f16_8192", "float16", 0.95, n=8192),
    _matmul("matmul_bf16", "bfloat16", 0.95),
    _matmul("matmul_tf32", "float32", None, "tf32"),
    _matmul("matmul_f32", "float32", None),
    DeviceWorkload(
        "linear_gelu_f16", linear_gelu, lambda m, k, n: (*normal((m, k)), normal((k, n))[0] / 32, *normal((n,))),
        (4096, 1024, 4096), (64, 64, 64), "flop", lambda m, k, n: 2.0 * m * k * n, "float16",
        of_torch=1.1, tolerance=4e-3,
    ),
    _attention("attention", 16, 1024, 64, "float32"),
    _attention("attention_f16_bert", 96, 512, 64),
    _attention("attention_f16_1024", 32, 1024, 64),
    _attention("attention_f16_4096", 16, 4096, 64),
    _attention("attention_f16_128", 16, 4096, 128),
    _attention("causal_attention_f16", 16, 4096, 64),
    DeviceWorkload("block", block, block_arguments, (512, 768), (16, 48), "flop", _block_flops, tolerance=1e-3),
    DeviceWorkload("digits_step", train, training, (64,), (8,), "", lambda batch: 0.0, tolerance=1e-3),
    _layers("layers", layers, (32, 64, 256)),
    _layers("layers_one_by_one", layers, (32, 64, 256), graphs=False, streams=1),
    _layers("branches", branches, (12, 64, 2048)),
    _layers("branches_streams", branches, (12, 64, 2048), graphs=False),
    _layers("branches_one_by_one", branches, (12, 64, 2048), graphs=False, streams=1),
    _layers("layers_ptx", layers, (32, 64, 256), cubins="off"),
]  # fmt: skip
WORKLOADS = {workload.name: workload for workload in _ALL}
