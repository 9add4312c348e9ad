"""How programs are organised: nested containers, classes, closures, defaults, generators, views that alias."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz.real_programs.program import Array, Draw, program


class Layer(NamedTuple):
    weight: Array
    bias: Array | None


@dataclass
class Network:
    layers: list[Layer]
    scale: float = 1.0
    momentum: dict[str, Array] = field(default_factory=dict)

    def __call__(self, x: Array) -> Array:
        for layer in self.layers[:-1]:
            x = np.tanh(affine(x, layer))
        return self.scale * affine(x, self.layers[-1])


def affine(x: Array, layer: Layer) -> Array:
    y = x @ layer.weight
    return y if layer.bias is None else y + layer.bias


def network(d: Draw) -> tuple[Any, ...]:
    layers = [Layer(d.normal(4, 6), d.normal(6)), Layer(d.normal(6, 6), None), Layer(d.normal(6, 2), d.normal(2))]
    return Network(layers, 0.5, {"w": d.normal(4, 6)}), d.normal(7, 4)


@program(network)
def dataclass_network(net: Network, x: Array) -> tuple[Network, Array]:
    y = net(x)
    net.momentum["w"] *= 0.9
    shrunk = [layer._replace(weight=0.99 * layer.weight) for layer in net.layers]
    return Network(shrunk, net.scale * 2, dict(net.momentum)), y


def tree(d: Draw) -> tuple[Any, ...]:
    plain = {"a": [d.normal(3), (d.normal(2, 2), None)], "b": {"c": d.scalar(2), "d": 3}}
    return plain, OrderedDict(z=d.normal(3), y=1.5)


@program(tree)
def nested_trees(t: dict[str, Any], o: OrderedDict[str, Any]) -> Any:
    def scaled(x: Any) -> Any:
        if isinstance(x, dict):
            return {k: scaled(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return type(x)(scaled(v) for v in x)
        return None if x is None else x * o["y"]

    return {"scaled": scaled(t), "sum": sum(x.sum() for x in (t["a"][0], t["a"][1][0])), "o": o, "k": [1, 2.5, True]}


@dataclass
class State:
    position: Array
    steps: int


@program(lambda d: ({"w": d.normal(4), "best": d.scalar(0), "log": [0.0, 1, 2.5]}, State(d.normal(3), 2), d.normal(4)))
def items_of_containers(store: dict[str, Any], state: State, x: Array) -> Array:
    store["w"] = 0.9 * store["w"] + x
    store["best"] = store["w"].max()
    store["log"][0] += 1
    store["log"][2] = store["w"].sum()
    state.position, state.steps = -state.position[:2], state.steps + 1
    return store["w"] - store["log"][1]


def _slices(x: Array, size: int) -> Iterator[Array]:
    for start in range(0, len(x), size):
        yield x[start : start + size]


@program(lambda d: (d.normal(13), 4), static_argnums=(1,))
def chunked_sums(x: Array, size: int) -> tuple[Array, Array]:
    partial = [chunk.sum() for chunk in _slices(x, size)]
    total = functools.reduce(np.add, partial)
    return np.array(partial), total


FILTERS = {"soft": lambda x, t: np.sign(x) * np.maximum(np.abs(x) - t, 0), "hard": lambda x, t: x * (np.abs(x) > t)}
EDGES = np.array([0.25, 0.5, 1.0])


@program(lambda d: (d.normal(20), "soft", 0.5), static_argnums=(1,))
def table_of_functions(x: Array, kind: str, threshold: float, *, gain: float = 2.0) -> tuple[Array, Array]:
    return gain * FILTERS[kind](x, threshold), (x[:, None] > EDGES).sum(axis=1)


@program(lambda d: (d.normal(6, 6), d.normal(6)))
def aliasing_views(a: Array, b: Array) -> tuple[Array, Array, Array]:
    upper, diagonal_block = a[:3], a[1:5, 1:5]
    diagonal_block += 1
    upper[:, ::2] = -upper[:, ::2]
    columns = a.T
    columns[0] = b
    a[-1] = a[0] + a[1]
    flat = b.reshape(2, 3)
    flat[1] *= 2
    b[::-1][:2] = 7
    return upper, columns[2:4], flat.T


@program(lambda d: (d.normal(5, 4), d.normal(5, 4)))
def out_arguments(x: Array, work: Array) -> Array:
    np.multiply(x, 2, out=work)
    np.add(work, x, out=work)
    np.exp(work, out=work)
    total = np.empty(4, x.dtype)
    np.sum(work, axis=0, out=total)
    x[...], work[:2] = work, x[:2]
    return total


@program(lambda d: (d.normal(4, 6), d.normal(6), d.scalar(3)))
def broadcasting(x: Array, row: Array, s: Array) -> dict[str, Array]:
    n, m = x.shape
    column = row[:n][:, None]
    stretched = np.broadcast_to(row, (n, m))
    return {
        "ranges": column * row + np.arange(m) / m,
        "three": x[:, None, :] * x[None, :, :] * stretched[:, None],
        "scalar": s * x + s**2 - 1 / s,
        "expanded": np.expand_dims(row, (1, 2)) + x[..., None].swapaxes(0, 1),
        "joined": np.concatenate([x, stretched, column * np.ones((1, m), x.dtype)], axis=0)[::2, ::-1],
        "stacked": np.stack((row, row[::-1], np.zeros_like(row)), axis=1),
        "vertical": np.vstack([row, x])[-2:],
        "full": np.full((2, n), row[1]) + np.ones(n, x.dtype),
        "like": np.zeros_like(x, dtype=np.int32) + np.arange(m, dtype=np.int32),
        "narrow": x.astype(np.float16).astype(x.dtype),
        "ravel": np.ravel(x.T)[3:9] - x.flatten()[-6:],
        "tensordot": np.tensordot(x, x, axes=([0, 1], [0, 1])),
        "dot": np.dot(x, row) + np.inner(x, row) + np.vdot(row, row),
    }


class Running:
    """An object with a method: its arrays are read anew at every call."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.offset = np.array([1.0, 2.0, 3.0])

    def update(self, old: Array, new: Array) -> Array:
        return self.weight * old + (1 - self.weight) * new + self.offset.astype(old.dtype)


running = Running(0.75)


@program(lambda d: (d.normal(3), d.normal(8, 3)))
def method_of_global_object(state: Array, samples: Array) -> Array:
    for sample in samples:
        state = running.update(state, sample)
    return state
