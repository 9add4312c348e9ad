"""The workloads: plain NumPy functions, their inputs, and how much work they are. Importing it needs NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import loops
from benchmarks.gradients import check
from benchmarks.gradients.problems import PROBLEMS
from benchmarks.workload import Arguments, Workload

HEADS = 12


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A matrix product."""
    return a @ b


def scaled_matmul(x: np.ndarray, scale: np.ndarray, bias: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A product whose first operand is computed."""
    return np.maximum(x * scale + bias, 0) @ w


def matmul_tn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A matrix product whose first operand is transposed."""
    return a.T @ b


def matmul_nt(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A matrix product whose second operand is transposed."""
    return a @ b.T


def products(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """A chain of matrix products, in the order in which one writes it."""
    return a @ b @ c @ d


def trace_of_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The trace of a product."""
    return np.trace(a @ b)


def sum_of_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sums of the rows of a product."""
    return np.sum(a @ b, axis=1)


def common_factor(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Two products with a factor in common."""
    return a @ b + a @ c


def chain(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Elementwise operations that NumPy walks over memory for one by one."""
    t = a * b + c
    u = np.tanh(t)
    e = np.exp(-np.abs(t))
    s = 1 / (1 + np.exp(-u))
    return np.where(t > 0, u * s, e - c) * 0.5 + s * b


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax of each row."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Each row with mean 0 and variance 1, scaled and moved."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def sum_columns(x: np.ndarray) -> np.ndarray:
    """The sums over axis 0."""
    return np.sum(x, axis=0)


def sum_rows(x: np.ndarray) -> np.ndarray:
    """The sums over axis 1."""
    return np.sum(x, axis=1)


def sum_both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of an expression over axis 0 and over axis 1."""
    t = np.maximum(x * x * 0.5 + x * 3 - 1, 0) * (x + 2) * (x - 1.5)
    return np.sum(t, axis=0), np.sum(t, axis=1)


def pair_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sums of absolute differences of all pairs of rows, of which one expression each is taken first."""
    u, v = np.maximum(a * 2 + 1, 0) * (a - 1) + 0.5 * a, np.minimum(b * 3 - 1, 2) * (b + 1) - 0.25 * b
    return np.sum(np.abs(u[:, None, :] - v[None, :, :]), axis=-1)


def argmax_columns(x: np.ndarray) -> np.ndarray:
    """Where the largest element of each column is, as floats."""
    return np.argmax(x, axis=0).astype(x.dtype)


def argmax_rows(x: np.ndarray) -> np.ndarray:
    """Where the largest element of each row is, as floats."""
    return np.argmax(x, axis=1).astype(x.dtype)


def gelu(x: np.ndarray) -> np.ndarray:
    """The Gaussian error linear unit, in its tanh form."""
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def linear_gelu(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A dense layer."""
    return gelu(x @ w + b)


def mlp(x: np.ndarray, w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray) -> np.ndarray:
    """A network of two layers."""
    return softmax(np.maximum(x @ w1 + b1, 0) @ w2 + b2)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of each head."""
    return softmax(q @ np.swapaxes(k, -1, -2) * q.dtype.type(q.shape[-1] ** -0.5)) @ v


def causal_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of each head, where positions see those up to their own."""
    scores = q @ np.swapaxes(k, -1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
    return softmax(np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)) @ v


def block(x: np.ndarray, p: dict[str, np.ndarray]) -> np.ndarray:
    """A transformer block with causal attention, layer norm first."""
    length, width = x.shape
    h = layer_norm(x, p["gain1"], p["bias1"]) @ p["w_qkv"] + p["b_qkv"]
    q, k, v = (np.transpose(t.reshape(length, HEADS, width // HEADS), (1, 0, 2)) for t in np.split(h, 3, axis=-1))
    scores = q @ np.swapaxes(k, 1, 2) * (width // HEADS) ** -0.5
    attention = softmax(np.where(np.tri(length, dtype=bool), scores, -np.inf)) @ v
    x = x + np.transpose(attention, (1, 0, 2)).reshape(length, width) @ p["w_out"] + p["b_out"]
    return x + linear_gelu(layer_norm(x, p["gain2"], p["bias2"]), p["w1"], p["b1"]) @ p["w2"] + p["b2"]


def stack(x: np.ndarray, p: dict[str, np.ndarray]) -> np.ndarray:
    """Transformer blocks one behind the other, in a loop: the first axis of each parameter is of the blocks."""
    from mlirml import scan

    result: np.ndarray = scan(lambda x, p: (block(x, p), None), x, p)[0]
    return result


def conv(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A convolution layer: `same` padding, bias, relu; depthwise where the filters have one channel."""
    from mlirml.nn import functional as F

    result: np.ndarray = F.relu(F.conv2d(x, w, b, padding=w.shape[-1] // 2, groups=x.shape[1] // w.shape[1]))
    return result


def max_pool(x: np.ndarray) -> np.ndarray:
    """The largest of each 3 by 3 pixels, two apart."""
    from mlirml.nn import functional as F

    result: np.ndarray = F.max_pool2d(x, 3, 2, 1)
    return result


def avg_pool(x: np.ndarray) -> np.ndarray:
    """The mean of each 3 by 3 pixels, two apart."""
    from mlirml.nn import functional as F

    result: np.ndarray = F.avg_pool2d(x, 3, 2, 1)
    return result


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A sum so small that only the call costs."""
    return a + b


def _normal(*shapes: tuple[int, ...], scale: float = 1.0) -> Arguments:
    rng = np.random.default_rng(0)
    return tuple(np.float32(scale) * rng.standard_normal(shape, dtype=np.float32) for shape in shapes)


def _two_matrices(m: int, k: int, n: int) -> Arguments:
    return _normal((m, k), (k, n))


def _narrow(m: int, k: int, n: int) -> Arguments:
    """Two matrices of bfloat16 numbers, kept as float32."""
    return tuple((x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for x in _two_matrices(m, k, n))


def _batches(batch: int, m: int, k: int, n: int) -> Arguments:
    return _normal((batch, m, k), (batch, k, n))


def _linear(m: int, k: int, n: int) -> Arguments:
    return _normal((m, k), (k, n), (n,), scale=0.2)


def _mlp(batch: int, inputs: int, hidden: int, classes: int) -> Arguments:
    return _normal((batch, inputs), (inputs, hidden), (hidden,), (hidden, classes), (classes,), scale=0.2)


def block_arguments(length: int, width: int) -> Arguments:
    shapes = {
        "gain1": (width,), "bias1": (width,), "w_qkv": (width, 3 * width), "b_qkv": (3 * width,),
        "w_out": (width, width), "b_out": (width,), "gain2": (width,), "bias2": (width,),
        "w1": (width, 4 * width), "b1": (4 * width,), "w2": (4 * width, width), "b2": (width,),
    }  # fmt: skip
    x, *parameters = _normal((length, width), *shapes.values(), scale=0.05)
    return x, dict(zip(shapes, parameters))


def _stack(layers: int) -> Callable[[int, int], Arguments]:
    def arguments(length: int, width: int) -> Arguments:
        x, p = block_arguments(length, width)
        return x, {name: np.repeat(array[None], layers, axis=0) for name, array in p.items()}

    return arguments


def _conv(channels: int, each: int, size: int, filters: int) -> Arguments:
    return _normal((1, channels, size, size), (filters, each, 3, 3), (filters,))


def _conv_flops(channels: int, each: int, size: int, filters: int) -> float:
    return 18.0 * each * filters * size * size


def _image(channels: int, size: int) -> Arguments:
    return _normal((1, channels, size, size))


def _grid(count: int) -> Callable[[int, int], Arguments]:
    """Square arrays, and a number of steps."""
    return lambda size, steps: (*_normal(*[(size, size)] * count), steps)


def _pool_bytes(channels: int, size: int) -> float:
    return 5.0 * channels * size * size


def _matmul_flops(m: int, k: int, n: int) -> float:
    return 2.0 * m * k * n


def _heads(heads: int, length: int, width: int) -> Arguments:
    return _normal(*[(1, heads, length, width)] * 3)


def _attention_flops(heads: int, length: int, width: int) -> float:
    return 4.0 * heads * length * length * width


def _block_flops(length: int, width: int) -> float:
    return 2.0 * length * 12 * width * width + 4.0 * length * length * width


def _matmul(*sizes: int) -> Workload:
    name = f"matmul{sizes[0]}" if len(set(sizes)) == 1 else f"matmul{'x'.join(map(str, sizes))}"
    return Workload(name, matmul, _two_matrices, sizes, (7, 5, 9), "flop", _matmul_flops)


_ALL = (
    _matmul(256, 256, 256),
    _matmul(1024, 1024, 1024),
    _matmul(2048, 2048, 2048),
    _matmul(1000, 1013, 977),
    Workload("matvec4096", matmul, lambda n: _normal((n, n), (n,)), (4096,), (65,), "byte", lambda n: 4.0 * n * n),
    Workload(
        "matvec_rows4096", matmul, lambda n: _normal((n,), (n, n)), (4096,), (65,), "byte", lambda n: 4.0 * n * n
    ),
    Workload(
        "scaled_matvec4096", scaled_matmul, lambda n: _normal((n, n), (n,), (n,), (n,)), (4096,), (65,), "byte",
        lambda n: 4.0 * n * n,
    ),
    Workload(
        "scaled_matmul4096x4096x64", scaled_matmul, lambda m, k, n: _normal((m, k), (k,), (k,), (k, n)),
        (4096, 4096, 64), (7, 5, 9), "flop", _matmul_flops,
    ),
    _matmul(8, 4096, 4096),
    _matmul(32, 4096, 4096),
    _matmul(4096, 4096, 8),
    _matmul(4096, 8, 4096),
    _matmul(16, 16, 16),
    _matmul(64, 64, 64),
    Workload(
        "matmul_tn512", matmul_tn, lambda n: _normal((n, n), (n, n)), (512,), (33,), "flop", lambda n: 2.0 * n**3
    ),
    Workload(
        "matmul_nt512", matmul_nt, lambda n: _normal((n, n), (n, n)), (512,), (33,), "flop", lambda n: 2.0 * n**3
    ),
    Workload(
        "matmul_nt1024x1024x16", matmul_nt, lambda m, k, n: _normal((m, k), (n, k)), (1024, 1024, 16), (17, 9, 5),
        "flop", _matmul_flops,
    ),
    Workload(
        "matmul_batch12x128x64x128", matmul, _batches, (12, 128, 64, 128), (2, 9, 5, 8), "flop",
        lambda b, m, k, n: 2.0 * b * m * k * n,
    ),
    Workload(
        "matmul_batch64x32x32x32", matmul, _batches, (64, 32, 32, 32), (3, 5, 6, 7), "flop",
        lambda b, m, k, n: 2.0 * b * m * k * n,
    ),
    Workload("matmul_bf16_1024", matmul, _narrow, (1024,) * 3, (33, 17, 40), "flop", _matmul_flops, narrow=True),
    Workload(
        "products2000x20x500", products, lambda n, k, m: _normal((n, k), (k, n), (n, k), (k, m)), (2000, 20, 500),
        (17, 3, 9), "flop", lambda n, k, m: 4.0 * n * n * k + 2.0 * n * k * m,
    ),
    Workload(
        "products_vector1000", products, lambda n: _normal((n, n), (n, n), (n, n), (n,)), (1000,), (17,), "flop",
        lambda n: 4.0 * n**3 + 2.0 * n * n,
    ),
    Workload(
        "trace_of_product1000", trace_of_product, lambda n: _normal((n, n), (n, n)), (1000,), (17,), "flop",
        lambda n: 2.0 * n**3,
    ),
    Workload(
        "sum_of_product1000", sum_of_product, lambda n: _normal((n, n), (n, n)), (1000,), (17,), "flop",
        lambda n: 2.0 * n**3,
    ),
    Workload(
        "common_factor1000", common_factor, lambda n: _normal(*[(n, n)] * 3), (1000,), (17,), "flop",
        lambda n: 4.0 * n**3,
    ),
    Workload("chain16m", chain, lambda n: _normal(*[(n,)] * 3), (1 << 24,), (1000,), "byte", lambda n: 16.0 * n),
    Workload("softmax", softmax, lambda m, n: _normal((m, n)), (4096, 2048), (7, 33), "byte", lambda m, n: 8.0 * m * n),
    Workload(
        "layer_norm", layer_norm, lambda m, n: _normal((m, n), (n,), (n,)), (4096, 1024), (7, 33), "byte",
        lambda m, n: 8.0 * m * n,
    ),
    Workload("sum_both", sum_both, lambda n: _normal((n, n)), (4096,), (65,), "byte", lambda n: 4.0 * n * n),
    Workload(
        "pair_differences", pair_differences, lambda n, k: _normal((n, k), (n, k)), (500, 64), (9, 7), "flop",
        lambda n, k: 3.0 * n * n * k,
    ),
    Workload("sum_axis0", sum_columns, lambda n: _normal((n, n)), (4096,), (65,), "byte", lambda n: 4.0 * n * n),
    Workload("sum_axis1", sum_rows, lambda n: _normal((n, n)), (4096,), (65,), "byte", lambda n: 4.0 * n * n),
    Workload("argmax_axis0", argmax_columns, lambda n: _normal((n, n)), (4096,), (65,), "byte", lambda n: 4.0 * n * n),
    Workload("argmax_axis1", argmax_rows, lambda n: _normal((n, n)), (4096,), (65,), "byte", lambda n: 4.0 * n * n),
    Workload("linear_gelu", linear_gelu, _linear, (512, 768, 3072), (9, 24, 31), "flop", _matmul_flops),
    Workload(
        "mlp512", mlp, _mlp, (512, 784, 128, 10), (8, 20, 16, 10), "flop", lambda b, i, h, o: 2.0 * b * h * (i + o)
    ),
    Workload("attention512", attention, _heads, (12, 512, 64), (2, 9, 5), "flop", _attention_flops),
    Workload("attention1024", attention, _heads, (16, 1024, 64), (2, 9, 5), "flop", _attention_flops),
    Workload("causal_attention512", causal_attention, _heads, (12, 512, 64), (2, 9, 5), "flop", _attention_flops),
    Workload("block128x768", block, block_arguments, (128, 768), (16, 48), "flop", _block_flops),
    Workload("conv64", conv, _conv, (64, 64, 56, 64), (8, 8, 9, 16), "flop", _conv_flops),
    Workload("conv128", conv, _conv, (128, 128, 28, 128), (5, 5, 7, 17), "flop", _conv_flops),
    Workload("conv_depthwise", conv, _conv, (64, 1, 112, 64), (5, 1, 9, 5), "flop", _conv_flops),
    Workload("max_pool", max_pool, _image, (64, 112), (3, 9), "byte", _pool_bytes),
    Workload("avg_pool", avg_pool, _image, (64, 112), (3, 9), "byte", _pool_bytes),
    Workload(
        "gradients_block", lambda x, p: np.mean(block(x, p) ** 2), block_arguments, (128, 768), (16, 48), "flop",
        lambda length, width: 3 * _block_flops(length, width), transform="value and gradient", wrt=(0, 1),
    ),
    Workload("stack12", stack, _stack(12), (128, 768), (16, 48), "flop", lambda n, width: 12 * _block_flops(n, width)),
    Workload(
        "gradients_stack12", lambda x, p: np.mean(stack(x, p) ** 2), _stack(12), (128, 768), (16, 48), "flop",
        lambda length, width: 36 * _block_flops(length, width), transform="value and gradient", wrt=(0, 1),
    ),
    Workload("call", add, lambda n: _normal((n,), (n,)), (8,), (8,)),
    Workload(
        "loops_matmul512", matmul, _two_matrices, (512, 512, 512), (7, 5, 9), "flop", _matmul_flops,
        loops=loops.matmul, made=lambda a, b: ((a.shape[0], b.shape[1]),),
    ),
    Workload(
        "loops_conv64", loops.conv2d_arrays, lambda c, n, f: _normal((1, c, n, n), (f, c, 3, 3)), (64, 56, 64),
        (3, 9, 4), "flop", lambda c, n, f: 18.0 * c * f * (n - 2) ** 2, loops=loops.conv2d,
        made=lambda x, w: ((1, w.shape[0], x.shape[2] - 2, x.shape[3] - 2),),
    ),
    Workload(
        "loops_jacobi", loops.jacobi_arrays, _grid(2), (2048, 50), (17, 3), "byte",
        lambda n, steps: 16.0 * n * n * steps, loops=loops.jacobi, stored=0,
    ),
    Workload(
        "loops_heat", loops.heat_arrays, _grid(2), (1024, 100), (17, 3), "byte",
        lambda n, steps: 8.0 * n * n * steps, loops=loops.heat, stored=0,
    ),
    Workload(
        "loops_fdtd", loops.fdtd_arrays, _grid(3), (1000, 50), (17, 3), "byte",
        lambda n, steps: 36.0 * n * n * steps, loops=loops.fdtd, stored=2,
    ),
    Workload(
        "loops_gauss_seidel", loops.gauss_seidel_arrays, _grid(1), (1000, 10), (17, 3), "flop",
        lambda n, steps: 5.0 * n * n * steps, loops=loops.gauss_seidel, stored=0,
    ),
    Workload(
        "loops_softmax", softmax, lambda m, n: _normal((m, n)), (4096, 1024), (7, 33), "byte",
        lambda m, n: 8.0 * m * n, loops=loops.softmax, made=lambda x: (x.shape,),
    ),
    Workload(
        "loops_layer_norm", layer_norm, lambda m, n: _normal((m, n), (n,), (n,)), (4096, 1024), (7, 33), "byte",
        lambda m, n: 8.0 * m * n, loops=loops.layer_norm, made=lambda x, gain, bias: (x.shape,),
    ),
    Workload(
        "loops_attention", loops.attention_arrays, lambda h, n, d: _normal(*[(h, n, d)] * 3), (12, 512, 64), (2, 9, 5),
        "flop", lambda h, n, d: 4.0 * h * n * n * d, loops=loops.attention,
        made=lambda q, k, v: ((q.shape[0], q.shape[1], k.shape[1]), v.shape),
    ),
    Workload(
        "loops_floyd_warshall", loops.floyd_warshall_arrays, lambda n: (np.abs(_normal((n, n))[0]),), (400,), (17,),
        "flop", lambda n: 2.0 * n**3, loops=loops.floyd_warshall,
    ),
    Workload(
        "loops_recurrence", loops.recurrence_arrays, lambda n: _normal((n,)), (1 << 18,), (100,), "flop",
        lambda n: 2.0 * n, loops=loops.recurrence, made=lambda x: (x.shape,),
    ),
    Workload(
        "loops_histogram", loops.histogram_arrays, lambda n: (np.random.default_rng(0).random(n, np.float32),),
        (1 << 20,), (100,), "byte", lambda n: 4.0 * n, loops=loops.histogram, made=lambda x: ((256,),),
    ),
)  # fmt: skip

WORKLOADS = {workload.name: workload for workload in (*_ALL, *PROBLEMS)}


def in_loops(workload: Workload, function: Callable[..., Any], arguments: Arguments) -> Callable[[], np.ndarray]:
    """A call of the compiled loops of a workload; what it stores into the arguments stays there for the next call."""
    made = (np.zeros(shape, np.float32) for shape in workload.made(*arguments))
    arguments = (*arguments, *made)

    def call() -> np.ndarray:
        function(*arguments)
        result: np.ndarray = arguments[workload.stored]
        return result

    return call


def reference(workload: Workload, arguments: Arguments) -> np.ndarray:
    """The result in float64 arithmetic: the same function on float64 inputs, and of derivatives what is checked."""
    arguments = _as_double(arguments)
    if workload.transform:
        return check.expected(workload, arguments)
    result: np.ndarray = np.asarray(workload.function(*arguments))
    assert result.dtype == np.float64
    return result


def _as_double(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _as_double(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map(_as_double, tree))
    if isinstance(tree, int) or tree.dtype.kind != "f":
        return tree
    return tree.astype(np.float64)


def error(workload: Workload, arguments: Arguments, result: Any, expected: np.ndarray) -> float:
    """The largest error, as a share of the largest element expected; infinite for NaN or another shape or dtype."""
    kind = np.float64 if workload.double else np.float32
    if workload.transform:
        result = check.seen(workload, arguments, result, kind)
    else:
        result = np.asarray(result)
        if result.dtype != kind:
            return float("inf")
    if result.shape != expected.shape or not np.isfinite(result).all():
        return float("inf")
    return float(np.max(np.abs(result - expected)) / np.max(np.abs(expected)))
