"""Attention over several heads, with a cache for decoding, and the blocks of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional as F
from mlirml.nn import initializers
from mlirml.nn.define import as_array, known, shown
from mlirml.nn.modules.linear import Linear
from mlirml.nn.modules.module import Module, keys_of
from mlirml.nn.modules.normalizations import LayerNorm

__all__ = ["KVCache", "MultiHeadAttention", "TransformerDecoderBlock", "TransformerEncoderBlock"]


@dataclass(eq=False, repr=False)
class KVCache(Module):
    """Keys and values [N, G, S, D] of the `length` positions that were seen, an i32; N may be missing."""

    key: Any
    value: Any
    length: Any


@dataclass(eq=False, repr=False)
class MultiHeadAttention(Module):
    """Attention of `heads` heads, with as many keys and values or fewer (`kv_heads`), which groups of heads share.

    `layer(x)` attends to x [N, L, E] itself, `layer(x, memory)` to memory [N, S, E]; N may be missing. A `mask` of
    bools, [L, S] or with dimensions N and heads before these, keeps what is True; one of floats is added to the scores.
    With `rotary`, the base of the angles, queries and keys are turned by their positions (`F.rotary_embedding`).

    A random `key` drops weights of the attention with probability `dropout` (`F.dropout`), as torch does in training.

    With a `cache`, x are the positions after those that it has, each of which attends to itself and all before it, and
    the result is the pair of the output and the next cache. Vaswani et al., "Attention is all you need", section 3.2;
    Ainslie et al., "GQA: training generalized multi-query transformer models", section 2.2.

    >>> from mlirml import nn, random
    >>> layer = nn.MultiHeadAttention.init(random.key(0), 16, heads=4, kv_heads=2, rotary=10000.0)
    >>> cache = layer.init_cache(32, batch=1)
    >>> y, cache = layer(np.ones((1, 1, 16), np.float32), cache=cache)
    >>> y.shape, cache
    ((1, 1, 16), KVCache(key=f32[1,2,32,4], value=f32[1,2,32,4], length=i32[]))
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    heads: int = static_field()
    kv_heads: int = static_field()
    rotary: float | None = static_field(default=None)
    dropout: float = static_field(default=0.0)

    @classmethod
    def init(
        cls, key: Any, size: int, heads: int, kv_heads: int | None = None, rotary: float | None = None,
        dropout: float = 0.0, bias: bool = True, dtype: Any = np.float32,
    ) -> MultiHeadAttention:  # fmt: skip
        """A layer for vectors of `size` elements, with weights as `xavier_uniform` draws them, and biases 0."""
        groups = heads if kv_heads is None else kv_heads
        if heads < 1 or size % heads or groups < 1 or heads % groups:
            with at_user_line():
                parts = f"{size} elements do not divide into {heads} heads, or these into {groups} groups"
                raise ShapeError(f"MultiHeadAttention: {parts}")
        width = size // heads
        shapes = (heads * width, size), (groups * width, size), (groups * width, size), (size, heads * width)
        query, keys, values, output = (
            Linear(initializers.xavier_uniform(one, shape, dtype), known(np.zeros(shape[0], dtype)) if bias else None)
            for one, shape in zip(keys_of(key, 4), shapes)
        )
        return cls(query, keys, values, output, heads, groups, rotary, dropout)

    def init_cache(self, length: int, batch: int | None = None, dtype: Any = np.float32) -> KVCache:
        """An empty cache for `length` positions."""
        width = self.key.weight.shape[0] // self.kv_heads
        shape = (*(() if batch is None else (batch,)), self.kv_heads, length, width)
        return KVCache(known(np.zeros(shape, dtype)), known(np.zeros(shape, dtype)), known(np.zeros((), np.int32)))

    def __call__(
        self, input: Any, memory: Any = None, mask: Any = None, is_causal: bool = False, cache: KVCache | None = None,
        key: Any = None,
    ) -> Any:  # fmt: skip
        source = input if memory is None else memory
        if cache is not None and (memory is not None or mask is not None):
            with at_user_line():
                raise ArgumentError("MultiHeadAttention: a cache is that of the input itself, without memory and mask")
        queries = _split(self.query(input), self.heads)
        keys, values = _split(self.key(source), self.kv_heads), _split(self.value(source), self.kv_heads)
        first = 0 if cache is None else cache.length
        if self.rotary is not None:
            queries, keys = (
                F.rotary_embedding(x, first + known(np.arange(x.shape[-2], dtype=np.int32)), self.rotary)
                for x in (queries, keys)
            )
        if cache is not None:
            cache = _extended(cache, keys, values)
            keys, values, mask = cache.key, cache.value, _seen(first, queries.shape[-2], cache.key.shape[-2])
            is_causal = False
        found = self._attend(queries, keys, values, mask, is_causal, key)
        output = self.output(_merged(found))
        return output if cache is None else (output, cache)

    def _attend(self, queries: Any, keys: Any, values: Any, mask: Any, is_causal: bool, key: Any) -> Any:
        drops = 0.0 if key is None else self.dropout
        return F.scaled_dot_product_attention(
            queries, keys, values, mask, drops, is_causal, dropout_key=key, enable_gqa=True
        )


def _split(x: Any, heads: int) -> Any:
    """[..., L, E] as [..., heads, L, E / heads]."""
    return np.swapaxes(x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads), -2, -3)


def _merged(x: Any) -> Any:
    x = np.swapaxes(x, -2, -3)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def _extended(cache: KVCache, keys: Any, values: Any) -> KVCache:
    """The cache with the keys and values of the next positions."""
    count, room = keys.shape[-2], cache.key.shape[-2]
    if tuple(keys.shape[:-2]) != tuple(cache.key.shape[:-2]) or keys.shape[-1] != cache.key.shape[-1] or count > room:
        with at_user_line():
            raise ShapeError(
                f"MultiHeadAttention: keys {shown(keys)} do not fit into a cache of {shown(cache.key)}",
                help="make one for this batch, `init_cache(length, batch)`",
            )
    at = cache.length + known(np.arange(count, dtype=np.int32))
    stored = []
    for old, new in ((cache.key, keys), (cache.value, values)):
        whole = old.copy()
        whole[..., at if count > 1 else cache.length, :] = (new if count > 1 else new[..., 0, :]).astype(old.dtype)
        stored.append(whole)
    return KVCache(stored[0], stored[1], as_array(cache.length + np.int32(count)))


def _seen(first: Any, count: int, room: int) -> Any:
    """bool [count, room]: True at the positions up to that of each query."""
    rows = first + known(np.arange(count, dtype=np.int32))[:, None]
    return known(np.arange(room, dtype=np.int32)) <= rows


def _dropped(x: Any, p: float, key: Any) -> Any:
    return F.dropout(x, p, training=key is not None, key=key)


def _keys(key: Any, count: int) -> list[Any]:
    return [None] * count if key is None else list(keys_of(key, count))


@dataclass(eq=False, repr=False)
class TransformerEncoderBlock(Module):
    """Attention and two linear layers, each added to its input and normalized: a `TransformerEncoderLayer` of torch.

    With `norm_first` what is normalized is the input of each part instead of its result. A `key` draws the dropout of
    the weights of the attention, of the results of both parts and of the hidden layer, with probability `dropout`; a
    `cache` is that of the attention, and makes the result a pair. Vaswani et al., section 3.1; Xiong et al., "On layer
    normalization in the transformer architecture", table 1.
    """

    attention: MultiHeadAttention
    linear1: Linear
    linear2: Linear
    norm1: Any
    norm2: Any
    activation: Any = static_field(default=F.relu)
    dropout: float = static_field(default=0.1)
    norm_first: bool = static_field(default=False)

    @classmethod
    def init(
        cls, key: Any, size: int, heads: int, hidden: int, kv_heads: int | None = None, rotary: float | None = None,
        activation: Any = F.relu, dropout: float = 0.1, norm_first: bool = False, bias: bool = True,
        dtype: Any = np.float32,
    ) -> TransformerEncoderBlock:  # fmt: skip
        """A block for vectors of `size` elements with a hidden layer of `hidden` elements."""
        first, second, third = keys_of(key, 3)
        return cls(
            MultiHeadAttention.init(first, size, heads, kv_heads, rotary, dropout, bias, dtype),
            Linear.init(second, size, hidden, bias, dtype), Linear.init(third, hidden, size, bias, dtype),
            LayerNorm.init(size, bias=bias, dtype=dtype), LayerNorm.init(size, bias=bias, dtype=dtype),
            activation, dropout, norm_first,
        )  # fmt: skip

    def __call__(
        self, input: Any, mask: Any = None, is_causal: bool = False, key: Any = None, cache: KVCache | None = None
    ) -> Any:
        keys = _keys(key, 4)
        x = self.norm1(input) if self.norm_first else input
        found = self.attention(x, mask=mask, is_causal=is_causal, cache=cache, key=keys[3])
        found, cache = found if cache is not None else (found, None)
        x = input + _dropped(found, self.dropout, keys[0])
        x = x if self.norm_first else self.norm1(x)
        x = x + _dropped(self._hidden(self.norm2(x) if self.norm_first else x, keys[1]), self.dropout, keys[2])
        x = x if self.norm_first else self.norm2(x)
        return x if cache is None else (x, cache)

    def _hidden(self, x: Any, key: Any) -> Any:
        return self.linear2(_dropped(self.activation(self.linear1(x)), self.dropout, key))


@dataclass(eq=False, repr=False)
class TransformerDecoderBlock(Module):
    """Attention to the input, attention to a memory, and two linear layers: a `TransformerDecoderLayer` of torch.

    `block(x, memory)` lets each position of x attend to itself and those before it, and to all of the memory, as far
    as `mask` and `memory_mask` let it. The other options are those of `TransformerEncoderBlock`.
    """

    attention: MultiHeadAttention
    cross_attention: MultiHeadAttention
    linear1: Linear
    linear2: Linear
    norm1: Any
    norm2: Any
    norm3: Any
    activation: Any = static_field(default=F.relu)
    dropout: float = static_field(default=0.1)
    norm_first: bool = static_field(default=False)

    @classmethod
    def init(
        cls, key: Any, size: int, heads: int, hidden: int, kv_heads: int | None = None, rotary: float | None = None,
        activation: Any = F.relu, dropout: float = 0.1, norm_first: bool = False, bias: bool = True,
        dtype: Any = np.float32,
    ) -> TransformerDecoderBlock:  # fmt: skip
        """A block for vectors of `size` elements with a hidden layer of `hidden` elements."""
        first, second, third, fourth = keys_of(key, 4)
        norm1, norm2, norm3 = (LayerNorm.init(size, bias=bias, dtype=dtype) for _ in range(3))
        return cls(
            MultiHeadAttention.init(first, size, heads, kv_heads, rotary, dropout, bias, dtype),
            MultiHeadAttention.init(second, size, heads, kv_heads, None, dropout, bias, dtype),
            Linear.init(third, size, hidden, bias, dtype), Linear.init(fourth, hidden, size, bias, dtype),
            norm1, norm2, norm3, activation, dropout, norm_first,
        )  # fmt: skip

    def __call__(
        self, input: Any, memory: Any, mask: Any = None, memory_mask: Any = None, is_causal: bool = True,
        key: Any = None, cache: KVCache | None = None,
    ) -> Any:  # fmt: skip
        keys = _keys(key, 6)
        causal = is_causal and mask is None
        x = self.norm1(input) if self.norm_first else input
        found = self.attention(x, mask=mask, is_causal=causal, cache=cache, key=keys[4])
        found, cache = found if cache is not None else (found, None)
        x = input + _dropped(found, self.dropout, keys[0])
        x = x if self.norm_first else self.norm1(x)
        found = self.cross_attention(self.norm2(x) if self.norm_first else x, memory, memory_mask, key=keys[5])
        x = x + _dropped(found, self.dropout, keys[1])
        x = x if self.norm_first else self.norm2(x)
        hidden = self.activation(self.linear1(self.norm3(x) if self.norm_first else x))
        x = x + _dropped(self.linear2(_dropped(hidden, self.dropout, keys[2])), self.dropout, keys[3])
        x = x if self.norm_first else self.norm3(x)
        return x if cache is None else (x, cache)
