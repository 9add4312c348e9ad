"""PyTorch, eager: what its users run when they do not compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.gradients import in_torch
from benchmarks.workloads import HEADS, WORKLOADS, Arguments


def version() -> str:
    """Its name and version."""
    return f"torch {torch.__version__}"


def _chain(a: Any, b: Any, c: Any) -> Any:
    t = a * b + c
    u = torch.tanh(t)
    s = torch.sigmoid(u)
    return torch.where(t > 0, u * s, torch.exp(-torch.abs(t)) - c) * 0.5 + s * b


def _layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)


def _linear_gelu(x: Any, w: Any, b: Any) -> Any:
    return F.gelu(torch.addmm(b, x, w), approximate="tanh")


def _mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return torch.softmax(torch.addmm(b2, torch.relu(torch.addmm(b1, x, w1)), w2), -1)


def _block(x: Any, p: Any) -> Any:
    h = torch.addmm(p["b_qkv"], _layer_norm(x, p["gain1"], p["bias1"]), p["w_qkv"])
    q, k, v = (t.reshape(1, len(x), HEADS, -1).transpose(1, 2) for t in h.chunk(3, -1))
    attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + torch.addmm(p["b_out"], attention.transpose(1, 2).reshape(x.shape), p["w_out"])
    h = _linear_gelu(_layer_norm(x, p["gain2"], p["bias2"]), p["w1"], p["b1"])
    return x + torch.addmm(p["b2"], h, p["w2"])


def _conv(x: Any, w: Any, b: Any) -> Any:
    return torch.relu(F.conv2d(x, w, b, padding="same", groups=x.shape[1] // w.shape[1]))


def heads_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False) -> torch.Tensor:
    """Attention of heads: the fast kernels take a batch of them."""
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=is_causal)[0]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul_tn": lambda a, b: a.T @ b,
    "matmul_nt": lambda a, b: a @ b.T,
    "matmul": lambda a, b: a @ b,
    "matvec": lambda a, b: a @ b,
    "products": lambda a, b, c, d: a @ b @ c @ d,
    "trace_of_product": lambda a, b: torch.trace(a @ b),
    "sum_of_product": lambda a, b: (a @ b).sum(1),
    "common_factor": lambda a, b, c: a @ b + a @ c,
    "chain": _chain,
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": _layer_norm,
    "sum_axis0": lambda x: x.sum(0),
    "sum_axis1": lambda x: x.sum(1),
    "argmax_axis0": lambda x: x.argmax(0).to(x.dtype),
    "argmax_axis1": lambda x: x.argmax(1).to(x.dtype),
    "scaled": lambda x, scale, bias, w: torch.relu(x * scale + bias) @ w,
    "linear_gelu": _linear_gelu,
    "mlp": _mlp,
    "attention": heads_attention,
    "causal_attention": partial(heads_attention, is_causal=True),
    "block": _block,
    "conv": _conv,
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "call": lambda a, b: a + b,
    "loops_matmul": lambda a, b: a @ b,
    "loops_conv": F.conv2d,
    "loops_softmax": lambda x: torch.softmax(x, -1),
    "loops_layer_norm": _layer_norm,
    "loops_attention": heads_attention,
    "gradients_block": lambda x, p: torch.mean(_block(x, p) ** 2),
    **in_torch.FUNCTIONS,
}


def _tensors(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _tensors(value) for key, value in tree.items()}
    return torch.from_numpy(tree.copy())


def build(
    name: str,
    arguments: Arguments,
    threads: int,
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function,
) -> Callable[[], Any] | None:
    """The workload as a PyTorch user would write it."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    function = next((f for start, f in FUNCTIONS.items() if name.startswith(start)), None)
    if function is None or WORKLOADS[name].narrow:  # its products of bfloat16 are rounded to bfloat16
        return None
    tensors = tuple(map(_tensors, arguments))
    if name.startswith("gradients_"):
        return in_torch.build(function, WORKLOADS[name], tensors, compiled)
    return partial(compiled(function), *tensors)


def to_numpy(result: Any) -> Any:
    """The result as arrays."""
    if isinstance(result, (tuple, list)):
        return tuple(map(to_numpy, result))
    return result.detach().numpy()
