"""Layers made of matrix products and table look-ups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml import random
from mlirml.core.sizes import is_size
from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.transforms.derivatives import trace_stop_gradient
from mlirml.ir.text.dtypes import is_float
from mlirml.nn.define import as_array, composite, composites, floats, known, refuse_random, rounded, shown, table
from mlirml.ops.registry import INTEGERS

__all__ = [
    "alpha_dropout", "bilinear", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding", "embedding_bag",
    "feature_alpha_dropout", "linear", "one_hot", "rotary_embedding", "scaled_dot_product_attention",
]  # fmt: skip


@composite(tolerance=16)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input` [..., I] times the transpose of `weight` [O, I], plus `bias` [O]."""
    (x, w, bias), dtype = floats("linear", input, weight, bias)
    if len(w.shape) not in (1, 2) or not x.shape or x.shape[-1] != w.shape[-1]:
        raise ShapeError(
            f"linear: the last dimension of the input {shown(x)} must be that of the weight {shown(w)}, [out, in]",
            help="did you mean `weight.T`?" if len(w.shape) == 2 and x.shape and x.shape[-1] == w.shape[0] else None,
        )
    if bias is not None and tuple(bias.shape) != tuple(w.shape[:-1]):
        raise ShapeError(f"linear: the bias must have shape {list(w.shape[:-1])}, got {shown(bias)}")
    product = x @ w.T
    return rounded(product if bias is None else product + bias, dtype)


@composite(tolerance=32)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    dropout_key: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query @ key.T * scale + attn_mask) @ value, over [..., L, E], [..., S, E] and [..., S, V].

    `scale` is 1 / sqrt(E) by default. A mask of bools keeps what is True; `is_causal` keeps key i for queries from i on
    (Vaswani et al., "Attention is all you need", equation 1). `dropout` with probability `dropout_p`, drawn by a random
    `dropout_key`, is that of the softmax. Without keys the result is zero; a row of the mask that keeps none gives NaN.
    With `enable_gqa` the heads, dimension -3, of keys and values may be fewer, each of which as many queries share.
    """
    if dropout_p and dropout_key is None:
        refuse_random("scaled_dot_product_attention", "dropout_p=0", "`dropout_key`, a key of `mlirml.random`")
    (q, k, v), dtype = floats("scaled_dot_product_attention", query, key, value)
    if min(len(q.shape), len(k.shape), len(v.shape)) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"scaled_dot_product_attention: query {shown(q)}, key {shown(k)} and value {shown(v)} "
            "are not [..., L, E], [..., S, E] and [..., S, V]"
        )
    mask = None if attn_mask is None else as_array(attn_mask)
    heads = _heads(q, k, v) if enable_gqa else None
    if heads is not None:
        q, k, v, mask = _grouped(q, k, v, mask, *heads)
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1] or 1) if scale is None else scale)
    if is_causal:
        if mask is not None:
            raise ShapeError("scaled_dot_product_attention: give attn_mask or is_causal=True, not both")
        scores = np.where(_lower_triangle(q.shape[-2], k.shape[-2]), scores, -np.inf)
    elif mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + rounded(mask, scores.dtype)
    if scores.shape[-1]:
        power = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        weights = power / np.sum(power, axis=-1, keepdims=True)
        found = (dropout(weights, dropout_p, key=dropout_key) if dropout_p else weights) @ v
    else:  # no keys: sums of nothing
        found = scores @ v
    if heads is not None:
        found = found.reshape(*found.shape[:-4], math.prod(heads), *found.shape[-2:])
    return rounded(found, dtype)


def _heads(q: Any, k: Any, v: Any) -> tuple[int, int] | None:
    """The groups of heads, and the heads in each; None where there are as many keys and values as queries."""
    if min(len(q.shape), len(k.shape), len(v.shape)) < 3 or k.shape[-3] != v.shape[-3] or q.shape[-3] % k.shape[-3]:
        raise ShapeError(
            f"scaled_dot_product_attention: the heads of query {shown(q)} are no multiple of those of key {shown(k)} "
            f"and value {shown(v)}, dimension -3"
        )
    return None if q.shape[-3] == k.shape[-3] else (k.shape[-3], q.shape[-3] // k.shape[-3])


def _grouped(q: Any, k: Any, v: Any, mask: Any, groups: int, share: int) -> tuple[Any, Any, Any, Any]:
    """The operands with their heads as two dimensions, the second of which is 1 for keys and values."""
    q = q.reshape(*q.shape[:-3], groups, share, *q.shape[-2:])
    if mask is not None and len(mask.shape) > 2:
        own = (1, 1) if mask.shape[-3] == 1 else (groups, share)
        mask = mask.reshape(*mask.shape[:-3], *own, *mask.shape[-2:])
    return q, k[..., None, :, :], v[..., None, :, :], mask


def _lower_triangle(rows: int, columns: int) -> Any:
    """The mask of the keys up to each query."""
    trace = current_trace()
    if trace is not None and (is_size(rows) or is_size(columns)):
        return trace.handlers.namespace(trace).tri(rows, columns, dtype=np.bool_)
    return known(np.tri(rows, columns, dtype=np.bool_))


@composite(tolerance=64)
def rotary_embedding(input: Any, positions: Any, base: float = 10000.0, interleaved: bool = False) -> Any:
    """`input` [..., L, E] with pairs of elements turned by angles: pair i at position p by p * base ** (-2 * i / E).

    Pairs are elements i and i + E / 2, or, with `interleaved`, 2 * i and 2 * i + 1; `positions` are numbers [L], or of
    a shape that broadcasts to [..., L] (Su et al., "RoFormer", equations 15 and 34).
    """
    (x,), dtype = floats("rotary_embedding", input)
    at = as_array(positions)
    if len(x.shape) < 2 or x.shape[-1] % 2:
        raise ShapeError(f"rotary_embedding: the input must be [..., L, E] with an even E, got {shown(x)}")
    half = x.shape[-1] // 2
    rates = base ** (np.arange(half) * (-1.0 / max(half, 1)))
    angles = at[..., None].astype(x.dtype) * known(rates.astype(x.dtype))
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = first * cos - second * sin, second * cos + first * sin
    if interleaved:
        return rounded(np.stack(turned, axis=-1).reshape(x.shape), dtype)
    return rounded(np.concatenate(turned, axis=-1), dtype)


@composite(dtypes=INTEGERS, domain=(0.0, 4.0))
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """i64 [..., num_classes]: 1 at the class that each element of `tensor` names, 0 elsewhere.

    By default there are as many classes as the largest element says, which is known where the function is not traced.
    """
    x = as_array(tensor)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"one_hot: the classes must be integers, got {shown(x)}")
    if num_classes == -1:
        values = x._known() if isinstance(x, Traced) else x
        if values is None or not values.size:
            raise ShapeError(
                f"one_hot: the number of classes is not known from {shown(x)}", help="give it, `num_classes=10`"
            )
        num_classes = int(values.max()) + 1
    if isinstance(num_classes, bool) or not isinstance(num_classes, (int, np.integer)) or num_classes < 1:
        raise ShapeError(f"one_hot: num_classes must be a positive integer, got {num_classes!r}")
    return np.where(x[..., None] == known(np.arange(num_classes)), 1, 0).astype(np.int64)


@composite(dtypes=INTEGERS, domain=(0.0, 4.0))
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of `weight` [V, E] that the integers of `input` [...] name, as [..., E].

    Row `padding_idx` is a constant: derivatives leave it out. Negative numbers count from the end. Raises
    `IndexOutOfBoundsError`, or `IndexError` on real arrays.
    """
    x, w = as_array(input), table(weight)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"embedding: the input must hold integers, got {shown(x)}")
    if len(w.shape) != 2:
        raise ShapeError(f"embedding: the weight must be [V, E], got {shown(w)}")
    if padding_idx is None:
        return w[x]
    if not -w.shape[0] <= padding_idx < w.shape[0]:
        raise ShapeError(f"embedding: padding_idx {padding_idx!r} is no row of {shown(w)}")
    padding = (x == padding_idx % w.shape[0]) | (x == padding_idx % w.shape[0] - w.shape[0])
    trace = current_trace()
    fixed = w if trace is None else trace_stop_gradient(trace, w)
    return np.where(padding[..., None], fixed[x], w[x])


@composite()
def dropout(input: Any, p: float = 0.5, training: bool = True, key: Any = None) -> Any:
    """The input with elements set to 0 with probability `p` and the others divided by 1 - p, drawn by a random `key`.

    With `training=False` or `p=0` it is the input itself (Srivastava et al., "Dropout", section 4).
    """
    x = as_array(input)
    return _dropped("dropout", x, p, training, key, tuple(x.shape))


def _dropped(
    name: str, x: Any, p: float, training: bool, key: Any, shape: tuple[int, ...], limit: float | None = None
) -> Any:
    """Dropout by a mask of this shape, which is broadcast to that of the input.

    What is dropped becomes `limit`, if there is one, and the result is scaled to the same mean and variance.
    """
    if not is_float(x.dtype) and x.dtype.kind != "f":
        raise DTypeError(f"{name}: the input must be a float, not {shown(x)}")
    if not 0 <= p <= 1:
        raise ShapeError(f"{name}: p must be a probability, got {p!r}")
    if not training or p == 0:
        return x
    if key is None:
        refuse_random(name, "training=False", "a `key` of `mlirml.random`")
    if p == 1:
        return x * 0
    kept = random.bernoulli(key, np.float32(1 - p), shape)
    wide = x if x.dtype.itemsize > 2 else x.astype(np.float32)
    if limit is None:
        return rounded(np.where(kept, wide * (1 / (1 - p)), 0), x.dtype)
    scale = 1 / math.sqrt((1 - p) * (1 + p * limit**2))
    return rounded(np.where(kept, wide, limit) * scale - scale * p * limit, x.dtype)


def _channels(name: str, x: Any, rank: int) -> tuple[int, ...]:
    """The shape of a mask of whole channels."""
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: the input must be [N, C] and {rank} sizes, N may be missing, got {shown(x)}")
    return (*x.shape[: x.ndim - rank], *(1,) * rank)


def _dropped_channels(name: str, rank: int, input: Any, p: float = 0.5, training: bool = True, key: Any = None) -> Any:
    x = as_array(input)
    return _dropped(name, x, p, training, key, _channels(name, x, rank))


dropout1d, dropout2d, dropout3d = composites(
    _dropped_channels,
    "dropout{}d",
    {
        1: "`dropout` of whole channels of [N, C, L]; N may be missing.",
        2: "`dropout` of whole channels of [N, C, H, W]; N may be missing.",
        3: "`dropout` of whole channels of [N, C, D, H, W]; N may be missing.",
    },
)


_SATURATION = -1.7580993408473766
"""The limit of `selu` at minus infinity."""


@composite()
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, key: Any = None) -> Any:
    """The input with elements set to the limit of `selu` with probability `p`, scaled to the same mean and variance.

    Klambauer et al., "Self-normalizing neural networks", section 2. By default, as in torch, `training` is False.
    """
    x = as_array(input)
    return _dropped("alpha_dropout", x, p, training, key, tuple(x.shape), _SATURATION)


@composite()
def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, key: Any = None) -> Any:
    """`alpha_dropout` of whole channels of [N, C, ...]."""
    x = as_array(input)
    shape = _channels("feature_alpha_dropout", x, max(x.ndim - 2, 1))
    return _dropped("feature_alpha_dropout", x, p, training, key, shape, _SATURATION)


@composite(tolerance=32)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """x1 weight[o] x2 + bias[o] for each o, of [..., I], [..., J], weight [O, I, J] and bias [O], as [..., O]."""
    (x, y, w, bias), dtype = floats("bilinear", input1, input2, weight, bias)
    fits = w.ndim == 3 and x.ndim and y.ndim and x.shape[-1] == w.shape[1] and y.shape[-1] == w.shape[2]
    if not fits or tuple(x.shape[:-1]) != tuple(y.shape[:-1]):
        raise ShapeError(f"bilinear: {shown(x)}, {shown(y)} and {shown(w)} are not [..., I], [..., J] and [O, I, J]")
    if bias is not None and tuple(bias.shape) != (w.shape[0],):
        raise ShapeError(f"bilinear: the bias must have shape [{w.shape[0]}], got {shown(bias)}")
    product = np.einsum("...i,oij,...j->...o", x, w, y)
    return rounded(product if bias is None else product + bias, dtype)


@composite(tolerance=16)
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    mode: str = "mean",
    per_sample_weights: Any = None,
    padding_idx: int | None = None,
    include_last_offset: bool = False,
) -> Any:
    """The "sum", "mean" or "max" of rows of `weight` [V, E], a bag for each row of integers [B, N], as [B, E].

    Bags of different lengths are slices of one row [L] of integers, from each of `offsets` [B] on, or, with
    `include_last_offset`, between those of `offsets` [B + 1]. A sum may have a factor for each row. Rows `padding_idx`
    are left out; an empty bag is zero.
    """
    x, (w, factors), dtype = as_array(input), *floats("embedding_bag", weight, per_sample_weights)
    if x.dtype.kind not in "iu" or w.ndim != 2 or x.ndim != (2 if offsets is None else 1):
        raise ShapeError(
            f"embedding_bag: {shown(x)} and {shown(w)} are not integers [B, N], or [L] with offsets, and [V, E]"
        )
    if mode not in ("sum", "mean", "max") or (factors is not None and mode != "sum"):
        raise ShapeError(f"embedding_bag: mode must be sum, mean or max, a sum for factors, got {mode!r}")
    if factors is not None and tuple(factors.shape) != tuple(x.shape):
        raise ShapeError(f"embedding_bag: there must be a factor for each of {shown(x)}, got {shown(factors)}")
    if padding_idx is not None and not -w.shape[0] <= padding_idx < w.shape[0]:
        raise ShapeError(f"embedding_bag: padding_idx {padding_idx!r} is no row of {shown(w)}")
    rows = table(w)[x]
    counted = np.ones_like(x, dtype=np.bool_) if padding_idx is None else x != padding_idx % w.shape[0]
    if offsets is None:
        member, axis = counted[..., None], 1
    else:
        starts, at = as_array(offsets), np.arange(x.shape[0])
        if starts.ndim != 1 or starts.dtype.kind not in "iu" or (include_last_offset and not starts.shape[0]):
            raise ShapeError(f"embedding_bag: the offsets must be integers, one for each bag, got {shown(starts)}")
        starts, ends = (
            (starts[:-1], starts[1:])
            if include_last_offset
            else (starts, np.concatenate([starts[1:], np.full_like(starts[:1], x.shape[0])]))
        )
        member = (at >= starts[:, None]) & (at < ends[:, None]) & counted
        rows, member, axis = rows[None], member[..., None], 1
        factors = None if factors is None else factors[None]
    if mode == "max":
        largest = np.max(np.where(member, rows, -np.inf), axis=axis)
        return rounded(np.where(np.any(member, axis=axis), largest, 0), dtype)
    total = np.sum(np.where(member, rows if factors is None else rows * factors[..., None], 0), axis=axis)
    if mode == "mean":
        total = total / np.maximum(np.sum(member.astype(total.dtype), axis=axis), 1)
    return rounded(total, dtype)
