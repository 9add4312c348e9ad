"""Machine learning as it is written in NumPy: layers, losses, hand-written backward passes, cells, clustering."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.real_programs.program import Array, Draw, program

Parameters = dict[str, Array]


def softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def one_hot(labels: Array, classes: int, dtype: Any) -> Array:
    return (labels[:, None] == np.arange(classes)).astype(dtype)


@program(lambda d: (d.normal(12, 7), d.integers(0, 7, 12, dtype=np.int64)))
def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array, Array]:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    target = one_hot(labels, logits.shape[1], logits.dtype)
    loss = -(target * log_probabilities).sum() / len(labels)
    gradient = (np.exp(log_probabilities) - target) / len(labels)
    return loss, gradient, np.mean(logits.argmax(axis=1) == labels)


@program(lambda d: (d.normal(3, 5, 16), d.normal(16), d.normal(16)))
def layer_norm(x: Array, scale: Array, shift: Array, eps: float = 1e-5) -> Array:
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * scale + shift


def batch_norm_inputs(d: Draw) -> tuple[Any, ...]:
    state = {"gamma": d.normal(6), "beta": d.normal(6), "mean": d.normal(6), "var": d.uniform(0.5, 2, 6), "steps": 0}
    return d.normal(5, 4, 4, 6), state, 0.9


@program(batch_norm_inputs)
def batch_norm(x: Array, state: dict[str, Any], momentum: float) -> tuple[Array, Array, int]:
    mean, var = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
    state["mean"] *= momentum
    state["mean"] += (1 - momentum) * mean
    state["var"][:] = momentum * state["var"] + (1 - momentum) * var
    y = state["gamma"] * (x - mean) / np.sqrt(var + 1e-5) + state["beta"]
    evaluated = (x - state["mean"]) / np.sqrt(state["var"] + 1e-5)
    return y, evaluated, state["steps"] + 1


@program(lambda d: (d.normal(2, 6, 8), d.normal(8, 24) / 4, d.normal(8, 8) / 4, 2), ulps=100, static_argnums=(3,))
def attention(x: Array, w_qkv: Array, w_out: Array, heads: int) -> Array:
    batch, length, width = x.shape
    q, k, v = np.split(x @ w_qkv, 3, axis=-1)
    q, k, v = (t.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads).astype(x.dtype)
    future = np.triu(np.ones((length, length), dtype=bool), k=1)
    scores = np.where(future, -np.inf, scores)
    mixed = softmax(scores) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ w_out


@program(lambda d: (d.normal(2, 5, 3, 4), d.normal(2, 7, 3, 4), d.normal(2, 7, 3, 4)), ulps=100)
def attention_einsum(q: Array, k: Array, v: Array) -> Array:
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhqk,bkhd->bqhd", softmax(scores), v)


def block_inputs(d: Draw) -> tuple[Any, ...]:
    width, inner = 8, 16
    parameters = {
        "attn": {name: d.normal(width, width) / 3 for name in ("wq", "wk", "wv", "wo")},
        "mlp": {"w1": d.normal(width, inner) / 3, "b1": d.normal(inner), "w2": d.normal(inner, width) / 4},
        "ln1": (np.ones(width, d.dtype), np.zeros(width, d.dtype)),
        "ln2": (np.ones(width, d.dtype), np.zeros(width, d.dtype)),
    }
    return d.normal(6, width), parameters


@program(block_inputs, ulps=200)
def transformer_block(x: Array, parameters: dict[str, Any]) -> Array:
    def norm(z: Array, weights: tuple[Array, Array]) -> Array:
        return (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5) * weights[0] + weights[1]

    h = norm(x, parameters["ln1"])
    q, k, v = (h @ parameters["attn"][name] for name in ("wq", "wk", "wv"))
    scores = q @ k.T / np.sqrt(np.float32(x.shape[-1]))
    mask = np.tril(np.ones_like(scores))
    scores = scores * mask - 1e9 * (1 - mask)
    x = x + softmax(scores) @ v @ parameters["attn"]["wo"]
    mlp = parameters["mlp"]
    return x + gelu(norm(x, parameters["ln2"]) @ mlp["w1"] + mlp["b1"]) @ mlp["w2"]


@program(lambda d: (d.normal(4, 3, 5), d.normal(3, 6), d.normal(3, 6), d.normal(11, 24) / 3, d.normal(24)), ulps=200)
def lstm(xs: Array, h: Array, c: Array, weights: Array, bias: Array) -> tuple[Array, tuple[Array, Array]]:
    outputs = []
    for x in xs:
        gates = np.concatenate([x, h], axis=1) @ weights + bias
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), (h, c)


@program(lambda d: (d.normal(3, 5), d.normal(3, 6), d.normal(5, 18) / 3, d.normal(6, 18) / 3, d.normal(18)), ulps=200)
def gru(x: Array, h: Array, w: Array, u: Array, b: Array) -> Array:
    n = h.shape[1]
    for _ in range(3):
        wx, uh = x @ w + b, h @ u
        r = sigmoid(wx[:, :n] + uh[:, :n])
        z = sigmoid(wx[:, n : 2 * n] + uh[:, n : 2 * n])
        candidate = np.tanh(wx[:, 2 * n :] + r * uh[:, 2 * n :])
        h = (1 - z) * candidate + z * h
    return h


def mlp_inputs(d: Draw) -> tuple[Any, ...]:
    parameters = {"w1": d.normal(6, 9) / 3, "b1": d.normal(9), "w2": d.normal(9, 4) / 3, "b2": d.normal(4)}
    return parameters, d.normal(10, 6), d.integers(0, 4, 10, dtype=np.int64), 0.1


@program(mlp_inputs, ulps=200)
def train_mlp(parameters: Parameters, x: Array, labels: Array, rate: float) -> list[Array]:
    """Three steps of gradient descent, in place."""
    losses = []
    target = one_hot(labels, parameters["b2"].shape[0], x.dtype)
    for _ in range(3):
        hidden = x @ parameters["w1"] + parameters["b1"]
        active = np.maximum(hidden, 0)
        p = softmax(active @ parameters["w2"] + parameters["b2"])
        losses.append(-np.mean(np.sum(target * np.log(p), axis=1)))
        d_logits = (p - target) / x.shape[0]
        d_active = d_logits @ parameters["w2"].T
        d_hidden = np.where(hidden > 0, d_active, 0)
        gradients = {
            "w1": x.T @ d_hidden, "b1": d_hidden.sum(axis=0), "w2": active.T @ d_logits, "b2": d_logits.sum(axis=0)
        }  # fmt: skip
        for name in parameters:
            parameters[name] -= rate * gradients[name]
    return losses


def adam_inputs(d: Draw) -> tuple[Any, ...]:
    shapes = {"w": (5, 4), "b": (4,)}
    trees = [{name: d.normal(*shape) for name, shape in shapes.items()} for _ in range(3)]
    second = {name: d.uniform(0, 1, *shape) for name, shape in shapes.items()}
    return trees[0], trees[1], trees[2], second, 7


@program(adam_inputs)
def adam(parameters: Parameters, gradients: Parameters, first: Parameters, second: Parameters, step: int) -> int:
    step += 1
    for name, g in gradients.items():
        first[name] = 0.9 * first[name] + 0.1 * g
        second[name][...] = 0.999 * second[name] + 0.001 * g**2
        m = first[name] / (1 - 0.9**step)
        v = second[name] / (1 - 0.999**step)
        parameters[name] -= 0.01 * m / (np.sqrt(v) + 1e-8)
    return step


@program(lambda d: (d.normal(40, 3), d.normal(4, 3)), ulps=100)
def k_means(points: Array, centres: Array) -> tuple[Array, Array, Array]:
    for _ in range(2):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
        nearest = np.argmin(distance, axis=1)
        member = one_hot(nearest, centres.shape[0], points.dtype)
        count = member.sum(axis=0)
        centres = np.where(count[:, None] > 0, member.T @ points / np.maximum(count, 1)[:, None], centres)
    return centres, nearest, distance.min(axis=1).sum()


@program(lambda d: (d.normal(40, 3), d.normal(4, 3)), ulps=100)
def k_means_by_masks(points: Array, centres: Array) -> tuple[Array, Array]:
    centres = centres.copy()
    for _ in range(2):
        nearest = np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1)
        for k in range(len(centres)):
            members = points[nearest == k]
            centres[k] = members.sum(axis=0) / np.maximum(np.count_nonzero(nearest == k), 1)
    return centres, np.bincount(nearest, minlength=4)


def mixture_inputs(d: Draw) -> tuple[Any, ...]:
    weights = d.uniform(0.1, 1, 3)
    return d.normal(20, 2), weights / weights.sum(), d.normal(3, 2), d.uniform(0.5, 2, 3, 2)


@program(mixture_inputs, ulps=100)
def gaussian_mixture(x: Array, weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    def log_sum_exp(z: Array, axis: int) -> Array:
        top = np.max(z, axis=axis, keepdims=True)
        return np.squeeze(top, axis) + np.log(np.sum(np.exp(z - top), axis=axis))

    deviation = x[:, np.newaxis] - means
    log_density = -0.5 * (np.log(2 * np.pi * variances) + deviation**2 / variances).sum(axis=2)
    joint = np.log(weights) + log_density
    total = log_sum_exp(joint, axis=1)
    return total.mean(), np.exp(joint - total[:, None])


@program(lambda d: (d.normal(15, 6), d.normal(8, 6)))
def cosine_similarity(a: Array, b: Array) -> tuple[Array, Array]:
    a_unit = a / np.sqrt(np.sum(a * a, axis=1, keepdims=True))
    b_unit = b / np.maximum(np.sqrt(np.einsum("ij,ij->i", b, b)), 1e-12)[:, None]
    similarity = a_unit @ b_unit.T
    return similarity, similarity.argmax(axis=1)


@program(lambda d: (d.normal(30, 4), d.integers(0, 2, 30), np.zeros(4, d.dtype), d.scalar(0)), ulps=200)
def logistic_regression(x: Array, y: Array, w: Array, b: Array) -> tuple[Array, Array, Array]:
    n = len(y)
    for _ in range(4):
        error = sigmoid(x @ w + b) - y
        w -= 0.5 * (x.T @ error / n + 0.01 * w)
        b -= 0.5 * error.mean()
    z = x @ w + b
    loss = np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    return loss, b, np.mean((z > 0) == (y > 0.5))


@program(lambda d: (d.normal(9, 5), d.normal(5, 5), d.normal(5)))
def viterbi(emissions: Array, transitions: Array, start: Array) -> tuple[Array, list[Array]]:
    score = start + emissions[0]
    back = []
    for t in range(1, len(emissions)):
        candidates = score[:, None] + transitions + emissions[t][None, :]
        back.append(np.argmax(candidates, axis=0))
        score = np.max(candidates, axis=0)
    states = [np.argmax(score)]
    for pointers in reversed(back):
        chosen = np.arange(5) == states[-1]
        states.append(np.sum(np.where(chosen, pointers, 0)))
    return score.max(), states[::-1]


@program(lambda d: (d.normal(14, 3), d.normal(6, 3), d.normal(14)), ulps=200)
def kernel_regression(x: Array, queries: Array, y: Array) -> tuple[Array, Array]:
    squared = (queries**2).sum(1)[:, None] + (x**2).sum(1) - 2 * queries @ x.T
    kernel = np.exp(-0.5 * np.clip(squared, 0, None))
    return kernel @ y / (kernel.sum(axis=1) + 1e-9), np.prod(kernel.max(axis=0))


@program(lambda d: (d.integers(0, 11, 3, 4, dtype=np.int32), d.normal(11, 5), d.uniform(0, 1, 3, 4, 5)))
def embedding_with_dropout(tokens: Array, table: Array, noise: Array) -> Array:
    hot = (tokens[..., np.newaxis] == np.arange(table.shape[0])).astype(table.dtype)
    positions = np.arange(tokens.shape[1])[:, None] / 10000 ** (np.arange(table.shape[1]) / table.shape[1])
    embedded = hot @ table + np.sin(positions).astype(table.dtype)
    return np.where(noise < 0.9, embedded / 0.9, 0)
