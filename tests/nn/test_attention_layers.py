"""Attention over heads, its cache, and transformer blocks: against torch, and against formulae in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import nn, random
from mlirml.nn import functional as F

KEY = random.key(11)
RNG = np.random.default_rng(1)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=5e-6)


def turned(x: np.ndarray, positions: np.ndarray, base: float, interleaved: bool) -> np.ndarray:
    """Pairs of elements as complex numbers, times exp(i * position * rate)."""
    size = x.shape[-1]
    wide = x.astype(float)
    pairs = wide.reshape(*x.shape[:-1], -1, 2) if interleaved else np.stack(np.split(wide, 2, -1), -1)
    rates = base ** (-2 * np.arange(size // 2) / size)
    z = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * positions[..., None] * rates)
    return np.stack([z.real, z.imag], -1).reshape(x.shape) if interleaved else np.concatenate([z.real, z.imag], -1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved: bool) -> None:
    x, positions = array(2, 3, 5, 8), np.array([0, 1, 2, 7, 1000])
    for f in (F.rotary_embedding, ml.compile(F.rotary_embedding, static_argnames=("base", "interleaved"))):
        found = f(x, positions, base=500.0, interleaved=interleaved)
        np.testing.assert_allclose(found, turned(x, positions, 500.0, interleaved), rtol=1e-3, atol=2e-4)
    with pytest.raises(ml.ShapeError, match=r"with an even E, got f32\[2,3\]"):
        F.rotary_embedding(array(2, 3), np.arange(2))


def by_heads(layer: nn.MultiHeadAttention, x: np.ndarray, memory: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Each head by itself, for one sequence; `keep` is [heads, L, S]."""
    q, k, v = (p(y.astype(float)) for p, y in ((layer.query, x), (layer.key, memory), (layer.value, memory)))
    width = q.shape[-1] // layer.heads
    results = []
    for head in range(layer.heads):
        group = head * layer.kv_heads // layer.heads
        ours, theirs = slice(head * width, (head + 1) * width), slice(group * width, (group + 1) * width)
        queries, keys = q[:, ours], k[:, theirs]
        if layer.rotary is not None:
            queries = turned(queries, np.arange(len(x)), layer.rotary, False)
            keys = turned(keys, np.arange(len(memory)), layer.rotary, False)
        scores = np.where(keep[head], queries @ keys.T / np.sqrt(width), -np.inf)
        power = np.exp(scores - scores.max(1, keepdims=True))
        results.append(power / power.sum(1, keepdims=True) @ v[:, theirs])
    return layer.output(np.concatenate(results, 1))


@pytest.mark.parametrize(("kv_heads", "rotary"), [(4, None), (2, None), (1, 100.0), (4, 10000.0)])
def test_each_head_is_attention(kv_heads: int, rotary: float | None) -> None:
    layer = nn.MultiHeadAttention.init(KEY, 32, 4, kv_heads, rotary)
    x, memory = array(2, 6, 32), array(2, 9, 32)
    attend = ml.compile(lambda layer, *args, **options: layer(*args, **options), static_argnames="is_causal")
    for call in (lambda layer, *args, **options: layer(*args, **options), attend):
        expected = [by_heads(layer, one, other, np.ones((4, 6, 9), bool)) for one, other in zip(x, memory)]
        close(call(layer, x, memory), expected)
        close(call(layer, x[0], memory[0]), expected[0])
        causal = np.broadcast_to(np.tri(6, dtype=bool), (4, 6, 6))
        close(call(layer, x, is_causal=True), [by_heads(layer, one, one, causal) for one in x])
        keep = RNG.random((2, 4, 6, 6)) < 0.7
        keep[..., 0] = True
        close(call(layer, x, mask=keep), [by_heads(layer, one, one, k) for one, k in zip(x, keep)])
        shared = keep[:, :1]
        spread = np.broadcast_to(shared, keep.shape)
        close(call(layer, x, mask=shared), [by_heads(layer, one, one, k) for one, k in zip(x, spread)])
        added = np.where(keep[0, 0], 0, -np.inf).astype(np.float32)
        close(call(layer, x, mask=added), [by_heads(layer, one, one, spread[0]) for one in x])


@pytest.mark.parametrize(("kv_heads", "rotary"), [(4, None), (2, 10000.0), (1, 10000.0)])
@pytest.mark.parametrize("compiled", [False, True])
def test_decoding_with_a_cache_is_causal_attention(kv_heads: int, rotary: float | None, compiled: bool) -> None:
    layer = nn.MultiHeadAttention.init(KEY, 32, 4, kv_heads, rotary)
    x = array(3, 8, 32)
    expected = layer(x, is_causal=True)

    def decode(layer: Any, x: Any, cache: Any) -> Any:
        return layer(x, cache=cache)

    step = ml.compile(decode) if compiled else decode
    empty = layer.init_cache(9, batch=3)
    cache, found = empty, []
    for size in (3, 1, 1, 2, 1):  # a prompt, tokens one by one, and two at a time
        first = int(cache.length)
        y, cache = step(layer, x[:, first : first + size], cache)
        found.append(y)
    close(np.concatenate(found, 1), expected)
    assert cache.length == 8 and not empty.key.any() and not cache.key[:, :, 8].any()
    _, cache = step(layer, x[:, :1], cache)
    with pytest.raises(IndexError):
        step(layer, x[:, :1], cache)


def test_decoding_in_a_loop_of_one_program() -> None:
    layer = nn.MultiHeadAttention.init(KEY, 16, 4, 2, 10000.0)
    x = array(7, 16)

    @ml.compile
    def decode(layer: Any, x: Any, cache: Any) -> Any:
        def step(cache: Any, row: Any) -> Any:
            y, cache = layer(row[None], cache=cache)
            return cache, y[0]

        return ml.scan(step, cache, x)

    cache, found = decode(layer, x, layer.init_cache(7))
    close(found, layer(x, is_causal=True))
    assert cache.length == 7
    assert str(decode.ir("capture", layer, x, layer.init_cache(7))).count("scf.for") == 1


def test_a_batch_of_caches_with_lengths_of_their_own() -> None:
    layer = nn.MultiHeadAttention.init(KEY, 16, 2)
    x = array(2, 6, 16)
    caches = [layer(one[:n], cache=layer.init_cache(6))[1] for one, n in zip(x, (2, 4))]
    many = nn.KVCache(*(np.stack([getattr(c, name) for c in caches]) for name in ("key", "value", "length")))
    last = np.stack([x[0, 2:3], x[1, 4:5]])
    found, after = ml.vmap(lambda x, cache: layer(x, cache=cache))(last, many)
    close(found[:, 0], [layer(x[0, :3], is_causal=True)[-1], layer(x[1, :5], is_causal=True)[-1]])
    assert after.length.tolist() == [3, 5]


def test_dropout_of_the_weights_is_that_of_the_formula() -> None:
    """Weights are dropped after the softmax, as torch's `MultiheadAttention(dropout=p)` does it in training."""
    layer = nn.MultiHeadAttention.init(KEY, 16, 4, dropout=0.5)
    x = array(3, 6, 16)
    whole = layer(x, is_causal=True)
    close(layer(x), nn.MultiHeadAttention.init(KEY, 16, 4)(x, key=KEY))  # drops with a rate and a key only
    assert layer(x, key=KEY).tolist() == layer(x, key=KEY).tolist()

    q, k, v = (np.moveaxis(p(x).reshape(3, 6, 4, 4), 1, 2) for p in (layer.query, layer.key, layer.value))
    scores = np.where(np.tri(6, dtype=bool), q @ np.swapaxes(k, -1, -2) / 2, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    kept = random.bernoulli(KEY, np.float32(0.5), (3, 4, 6, 6))
    assert 0.4 < kept.mean() < 0.6
    expected = layer.output(np.moveaxis(np.where(kept, weights * 2, 0) @ v, 1, 2).reshape(3, 6, 16))

    def call(layer: Any, x: Any, key: Any) -> Any:
        return layer(x, is_causal=True, key=key)

    compiled = ml.compile(call)
    close(call(layer, x, KEY), expected)
    close(compiled(layer, x, KEY), expected)
    close(ml.compile(call, target="reference")(layer, x, KEY), expected)
    mean = np.mean([compiled(layer, x, key) for key in random.split(KEY, 2000)], axis=0)
    np.testing.assert_allclose(mean, whole, atol=0.1)

    direction = array(*whole.shape)
    gradient = ml.compile(ml.grad(lambda layer, x, key: np.sum(layer(x, is_causal=True, key=key) * direction)))
    found = gradient(layer, x, KEY).value.weight
    moved, h = array(16, 16), 1e-2
    above, below = (
        layer.__class__(layer.query, layer.key, nn.Linear(layer.value.weight + d * moved, layer.value.bias),
                        layer.output, 4, 4, dropout=0.5)
        for d in (h, -h)
    )  # fmt: skip
    difference = np.sum((call(above, x, KEY) - call(below, x, KEY)) * direction) / (2 * h)
    assert np.sum(found * moved) == pytest.approx(difference, rel=2e-3)


def test_dropout_of_the_weights_of_groups_and_decoders() -> None:
    layer = nn.MultiHeadAttention.init(KEY, 16, 4, 2, 100.0, dropout=1.0)
    x = array(5, 16)
    close(layer(x, key=KEY), np.broadcast_to(layer.output.bias, (5, 16)))
    found, cache = layer(x, cache=layer.init_cache(6), key=KEY)
    close(found, layer(x, key=KEY))
    assert cache.length == 5
    with pytest.raises(ml.ShapeError, match="p must be a probability, got 2"):
        nn.MultiHeadAttention.init(KEY, 16, 4, dropout=2)(x, key=KEY)
    with pytest.raises(ml.UnsupportedSyntaxError, match="drawn by keys alone"):
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


def test_errors() -> None:
    layer = nn.MultiHeadAttention.init(KEY, 16, 2)
    with pytest.raises(ml.ShapeError, match="10 elements do not divide into 3 heads"):
        nn.MultiHeadAttention.init(KEY, 10, 3)
    with pytest.raises(ml.ShapeError, match=r"keys f32\[3,2,1,8\] do not fit into a cache of f32\[2,2,4,8\]"):
        layer(array(3, 1, 16), cache=layer.init_cache(4, 2))
    with pytest.raises(ml.ArgumentError, match="without memory and mask"):
        layer(array(1, 16), array(1, 16), cache=layer.init_cache(4))


def copy_attention(ours: nn.MultiHeadAttention, theirs: Any, torch: Any) -> None:
    parts = ours.query, ours.key, ours.value
    theirs.in_proj_weight.data = torch.tensor(np.concatenate([p.weight for p in parts]))
    theirs.in_proj_bias.data = torch.tensor(np.concatenate([p.bias for p in parts]))
    copy(ours.output, theirs.out_proj, torch)


def copy(ours: Any, theirs: Any, torch: Any) -> None:
    theirs.weight.data, theirs.bias.data = torch.tensor(ours.weight), torch.tensor(ours.bias)


def randomized(block: Any) -> Any:
    """A block whose norms have random weights, and whose linear layers have random biases."""
    for name in ("norm1", "norm2", "norm3"):
        if hasattr(block, name):
            size = block.linear1.weight.shape[1]
            setattr(block, name, nn.LayerNorm(array(size), array(size), (size,)))
    for part in ("query", "key", "value", "output"):
        layer = getattr(block.attention, part)
        layer.bias = array(*layer.bias.shape)
    return block


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_block_is_that_of_torch(norm_first: bool, activation: str) -> None:
    torch = pytest.importorskip("torch")
    block = randomized(
        nn.TransformerEncoderBlock.init(KEY, 16, 4, 24, activation=getattr(F, activation), norm_first=norm_first)
    )
    theirs = torch.nn.TransformerEncoderLayer(
        16, 4, 24, activation=activation, norm_first=norm_first, batch_first=True, dropout=0.1
    )
    theirs.train(False)
    copy_attention(block.attention, theirs.self_attn, torch)
    for name in ("linear1", "linear2", "norm1", "norm2"):
        copy(getattr(block, name), getattr(theirs, name), torch)
    x = array(2, 5, 16)
    expected = theirs(torch.tensor(x)).detach()
    close(block(x), expected)
    close(ml.compile(lambda block, x: block(x))(block, x), expected)
    causal = theirs(torch.tensor(x), src_mask=torch.tensor(~np.tri(5, dtype=bool))).detach()
    close(block(x, is_causal=True), causal)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_block_is_that_of_torch(norm_first: bool) -> None:
    torch = pytest.importorskip("torch")
    block = randomized(nn.TransformerDecoderBlock.init(KEY, 16, 4, 24, norm_first=norm_first))
    theirs = torch.nn.TransformerDecoderLayer(16, 4, 24, norm_first=norm_first, batch_first=True)
    theirs.train(False)
    copy_attention(block.attention, theirs.self_attn, torch)
    copy_attention(block.cross_attention, theirs.multihead_attn, torch)
    for name in ("linear1", "linear2", "norm1", "norm2", "norm3"):
        copy(getattr(block, name), getattr(theirs, name), torch)
    x, memory = array(2, 5, 16), array(2, 7, 16)
    mask = torch.tensor(~np.tri(5, dtype=bool))
    expected = theirs(torch.tensor(x), torch.tensor(memory), tgt_mask=mask).detach()
    close(block(x, memory), expected)
    close(ml.compile(lambda block, x, memory: block(x, memory))(block, x, memory), expected)
    close(block(x, memory, is_causal=False), theirs(torch.tensor(x), torch.tensor(memory)).detach())


@pytest.mark.parametrize("norm_first", [False, True])
def test_blocks_decode_with_caches_and_drop_by_keys(norm_first: bool) -> None:
    encoder = nn.TransformerEncoderBlock.init(KEY, 16, 4, 24, 2, 100.0, norm_first=norm_first, dropout=0.3)
    decoder = nn.TransformerDecoderBlock.init(KEY, 16, 4, 24, 2, 100.0, norm_first=norm_first, dropout=0.3)
    x, memory = array(4, 16), array(6, 16)
    for block, rest, whole in ((encoder, (), encoder(x, is_causal=True)), (decoder, (memory,), decoder(x, memory))):
        cache, found = block.attention.init_cache(4), []
        step = ml.compile(lambda block, *args, cache: block(*args, cache=cache))
        for row in x:
            y, cache = step(block, row[None], *rest, cache=cache)
            found.append(y[0])
        close(found, whole)
        dropped = block(x, *rest, key=KEY)
        close(ml.compile(lambda block, *args, key: block(*args, key=key))(block, x, *rest, key=KEY), dropped)
        assert np.abs(dropped - block(x, *rest)).max() > 0.1
        assert np.abs(dropped - block(x, *rest, key=random.key(0))).max() > 0.1


def test_a_language_model_learns_to_repeat() -> None:
    """Two blocks learn the next of tokens that repeat with period 3, and decode them with caches."""
    from dataclasses import dataclass

    from mlirml import optim

    @dataclass
    class Model:
        embedding: nn.Embedding
        blocks: list[nn.TransformerEncoderBlock]
        head: nn.Linear

        def __call__(self, tokens: Any, caches: Any = None) -> Any:
            x, after = self.embedding(tokens), []
            for number, block in enumerate(self.blocks):
                if caches is None:
                    x = block(x, is_causal=True)
                else:
                    x, cache = block(x, cache=caches[number])
                    after.append(cache)
            return self.head(x) if caches is None else (self.head(x), after)

    keys = random.split(KEY, 4)
    model = Model(
        nn.Embedding.init(keys[0], 6, 16),
        [nn.TransformerEncoderBlock.init(k, 16, 2, 32, 1, 10000.0, norm_first=True) for k in keys[1:3]],
        nn.Linear.init(keys[3], 16, 6),
    )
    optimiser = optim.adam(1e-2)

    def loss(model: Model, tokens: Any) -> Any:
        scores = model(tokens[:, :-1])
        return F.cross_entropy(scores.reshape(-1, 6), tokens[:, 1:].reshape(-1))

    @ml.compile
    def step(model: Model, state: Any, tokens: Any) -> Any:
        value, gradient = ml.value_and_grad(loss)(model, tokens)
        model, state = optimiser.update(gradient, state, model)
        return value, model, state

    state = optimiser.init(model)
    for _ in range(150):
        tokens = np.tile(RNG.integers(0, 6, (16, 3)), 4)
        value, model, state = step(model, state, tokens)
    assert value < 0.8  # of log(6) * 3 / 11 = 0.49 at the least, as the first three are random

    @ml.compile
    def decode(model: Model, token: Any, caches: Any) -> Any:
        scores, caches = model(token[None], caches)
        return np.argmax(scores[0]).astype(np.int64), caches

    prompt = [4, 1, 5, 4, 1, 5]
    caches = [block.attention.init_cache(12) for block in model.blocks]
    for token in prompt:
        following, caches = decode(model, np.int64(token), caches)
    written = []
    for _ in range(6):
        written.append(int(following))
        following, caches = decode(model, np.int64(following), caches)
    assert written == [4, 1, 5, 4, 1, 5]
    assert "1 signature(s)" in decode.explain()
