"""JAX: `jax.jit`, with the functions of `jax.nn` where it has them. Inputs and results stay on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.gradients import in_jax
from benchmarks.workloads import HEADS, WORKLOADS, Arguments


def version() -> str:
    """Its name and version."""
    return f"jax {jax.__version__}"


def _chain(a: Any, b: Any, c: Any) -> Any:
    t = a * b + c
    u = jnp.tanh(t)
    s = jax.nn.sigmoid(u)
    return jnp.where(t > 0, u * s, jnp.exp(-jnp.abs(t)) - c) * 0.5 + s * b


def _layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return jax.nn.standardize(x, axis=-1, epsilon=1e-5) * gain + bias


def _block(x: Any, p: Any) -> Any:
    h = _layer_norm(x, p["gain1"], p["bias1"]) @ p["w_qkv"] + p["b_qkv"]
    q, k, v = (t.reshape(1, len(x), HEADS, -1) for t in jnp.split(h, 3, axis=-1))
    attention = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + attention.reshape(x.shape) @ p["w_out"] + p["b_out"]
    h = jax.nn.gelu(_layer_norm(x, p["gain2"], p["bias2"]) @ p["w1"] + p["b1"], approximate=True)
    return x + h @ p["w2"] + p["b2"]


def _stack(x: Any, p: Any) -> Any:
    return jax.lax.scan(lambda x, p: (_block(x, p), None), x, p)[0]


def _conv(x: Any, w: Any, b: Any) -> Any:
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=x.shape[1] // w.shape[1])
    return jax.nn.relu(y + b[:, None, None])


def _pool(x: Any, start: float, combine: Any) -> Any:
    pads = ((0, 0), (0, 0), (1, 1), (1, 1))
    return jax.lax.reduce_window(x, start, combine, (1, 1, 3, 3), (1, 1, 2, 2), pads)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul_tn": lambda a, b: a.T @ b,
    "matmul_nt": lambda a, b: a @ b.T,
    # As NumPy and mlirml: sums of bfloat16 products come out as float32.
    "matmul_bf16": lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32),
    "matmul": lambda a, b: a @ b,
    "matvec": lambda a, b: a @ b,
    "products": lambda a, b, c, d: a @ b @ c @ d,
    "trace_of_product": lambda a, b: jnp.trace(a @ b),
    "sum_of_product": lambda a, b: (a @ b).sum(1),
    "common_factor": lambda a, b, c: a @ b + a @ c,
    "chain": _chain,
    "softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "layer_norm": _layer_norm,
    "sum_axis0": lambda x: jnp.sum(x, axis=0),
    "sum_axis1": lambda x: jnp.sum(x, axis=1),
    "argmax_axis0": lambda x: jnp.argmax(x, axis=0).astype(x.dtype),
    "argmax_axis1": lambda x: jnp.argmax(x, axis=1).astype(x.dtype),
    "scaled": lambda x, scale, bias, w: jax.nn.relu(x * scale + bias) @ w,
    "linear_gelu": lambda x, w, b: jax.nn.gelu(x @ w + b, approximate=True),
    "mlp": lambda x, w1, b1, w2, b2: jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2, axis=-1),
    "block": _block,
    "conv": _conv,
    "max_pool": lambda x: _pool(x, -jnp.inf, jax.lax.max),
    "avg_pool": lambda x: _pool(x, 0.0, jax.lax.add) / 9,
    "call": lambda a, b: a + b,
    "gradients_block": lambda x, p: jnp.mean(_block(x, p) ** 2),
    "stack12": _stack,
    "gradients_stack12": lambda x, p: jnp.mean(_stack(x, p) ** 2),
    **in_jax.FUNCTIONS,
}


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload as a JAX user would write it."""
    function = next((f for start, f in _FUNCTIONS.items() if name.startswith(start)), None)
    if function is None:
        return None
    workload = WORKLOADS[name]
    jax.config.update("jax_enable_x64", workload.double)
    compiled = jax.jit(in_jax.transformed(function, workload))
    kind = jnp.bfloat16 if workload.narrow else None
    on_device = jax.tree.map(lambda x: jnp.asarray(x, kind), arguments)
    return lambda: jax.block_until_ready(compiled(*on_device))


def to_numpy(result: Any) -> Any:
    """The result as arrays."""
    return jax.tree.map(np.asarray, result)
