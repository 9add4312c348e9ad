"""Random programs of one array that give one float: a list of the names of steps, each from the values before it.

Values stay of moderate size, and kinks are off the points where programs are evaluated, as good as always.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml

Array = Any
Step = Callable[[Array, Array, int], Array]
STEPS: dict[str, Step] = {}
UNTIL: set[str] = set()
"""The names of steps that loop until the data say so."""


def step(name: str) -> Callable[[Step], Step]:
    """Decorator: a step takes two values of the program, and a number drawn for it."""

    def note(function: Step) -> Step:
        STEPS[name] = function
        return function

    return note


def unary(**functions: Callable[[Array], Array]) -> None:
    for name, function in functions.items():
        STEPS[name] = lambda a, b, draw, function=function: function(a)


@ml.custom_jvp
def softsign(x: Array) -> Array:
    return x / (1 + np.abs(x))


@softsign.defjvp
def softsign_jvp(primals: Any, tangents: Any) -> Any:
    y = softsign(primals[0])
    return y, (1 - np.abs(y)) ** 2 * tangents[0]


@ml.custom_vjp
def bounded(x: Array) -> Array:
    return np.arctan(x)


bounded.defvjp(lambda x: (bounded(x), x), lambda x, ct: (ct / (1 + x * x),))

unary(
    sin=np.sin,
    tanh=np.tanh,
    arctan=np.arctan,
    abs=np.abs,
    square=lambda a: np.tanh(a) ** 2,
    exp=lambda a: np.exp(np.tanh(a)),
    log=lambda a: np.log(1.5 + np.sin(a)),
    root=lambda a: np.sqrt(1.1 + np.cos(a)),
    ratio=lambda a: a / (1 + a * a),
    power=lambda a: (1.2 + np.sin(a)) ** np.cos(a),
    cbrt=lambda a: np.cbrt(2 + np.sin(a)),
    where=lambda a: np.where(a > 0.1, np.sqrt(np.abs(a)), np.sin(a)),
    clip=lambda a: np.clip(a, -0.7, 0.8),
    leaky=lambda a: np.maximum(a, 0.1 * a),
    floor=lambda a: a - 0.5 * np.floor(a),
    custom=softsign,
    backwards=bounded,
    remainder=lambda a: a % 0.7,
    again=lambda a: ml.checkpoint(lambda t: np.sin(t) * np.cos(t))(a),
    transposed=lambda a: a.T,
    flat=lambda a: np.ravel(a),
    turned=lambda a: a[::-1] if a.ndim else a,
    deviation=lambda a: np.sqrt(0.1 + np.var(a)),
    mean=lambda a: np.mean(a) * a,
    slope=lambda a: ml.grad(lambda t: np.sum(np.sin(t) * t))(a),
    change=lambda a: ml.jvp(lambda t: np.tanh(t) * t, (a,), (np.cos(a),))[1],
)


def _axis(a: Array, draw: int) -> int:
    return draw % a.ndim if a.ndim else 0


def along(**functions: Callable[..., Array]) -> None:
    def make(function: Callable[..., Array]) -> Step:
        def one(a: Array, b: Array, draw: int) -> Array:
            return function(a, _axis(a, draw)) if a.ndim else np.sin(a)

        return one

    for name, function in functions.items():
        STEPS[name] = make(function)


def _softmax(a: Array, axis: int) -> Array:
    e = np.exp(a - np.max(a, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


along(
    sum=lambda a, d: np.sum(a, axis=d) * 0.5,
    max=lambda a, d: np.max(a, axis=d),
    min=lambda a, d: np.min(a, axis=d),
    prod=lambda a, d: np.prod(1 + 0.5 * np.sin(a), axis=d),
    cumsum=lambda a, d: np.cumsum(a, axis=d) * 0.5,
    cumprod=lambda a, d: np.cumprod(1 + 0.5 * np.sin(a), axis=d),
    softmax=_softmax,
    sort=lambda a, d: np.sort(a, axis=d),
    top=lambda a, d: np.maximum.accumulate(a, axis=d),
    roll=lambda a, d: np.roll(a, 1, axis=d),
    part=lambda a, d: np.moveaxis(np.moveaxis(a, d, 0)[1:] if a.shape[d] > 1 else np.moveaxis(a, d, 0), 0, d),
    padded=lambda a, d: np.pad(a, [(1, 0) if i == d else (0, 0) for i in range(a.ndim)], mode="edge"),
    framed=lambda a, d: np.pad(a, [(0, 2) if i == d else (0, 0) for i in range(a.ndim)], constant_values=0.3),
    doubled=lambda a, d: np.concatenate([a, np.sin(a)], axis=d) if a.size < 13 else a,
    median=lambda a, d: np.median(a, axis=d),
    gathered=lambda a, d: np.take(a, np.array([0, a.shape[d] - 1, 0]), axis=d),
    spread=lambda a, d: np.expand_dims(a, d) if a.ndim < 3 else a,
    places=lambda a, d: np.take_along_axis(a, np.argsort(-a, axis=d), axis=d) * 1.1,
    norm=lambda a, d: np.sqrt(0.1 + np.sum(a * a, axis=d)),
    batched=lambda a, d: ml.vmap(lambda t: np.sin(t) * np.sum(t), in_axes=d)(a),
    diff=lambda a, d: np.diff(a, axis=d) if a.shape[d] > 1 else a,
)


def _fits(a: Array, b: Array) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= 64
    except ValueError:
        return False


def both(**functions: Callable[[Array, Array], Array]) -> None:
    def make(function: Callable[[Array, Array], Array]) -> Step:
        return lambda a, b, draw: function(a, b) if _fits(a, b) else function(a, np.sum(b))

    for name, function in functions.items():
        STEPS[name] = make(function)


both(
    add=lambda a, b: a + b,
    subtract=lambda a, b: a - 2 * b,
    multiply=lambda a, b: a * np.tanh(b),
    divide=lambda a, b: a / (2 + np.sin(b)),
    larger=np.maximum,
    smaller=np.minimum,
    angle=lambda a, b: np.arctan2(a, 3 + np.sin(b)),
    hypot=lambda a, b: np.hypot(a, b + 2),
    mixed=lambda a, b: np.where(b > 0.2, a, np.sin(b)),
)


@step("matmul")
def _matmul(a: Array, b: Array, draw: int) -> Array:
    if a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[1]:
        return np.tanh(a @ b.T)
    return np.tanh(a @ a.T) if a.ndim == 2 else a * np.dot(np.ravel(a), np.ravel(a))


@step("loop")
def _loop(a: Array, b: Array, draw: int) -> Array:
    rounds, extra = draw % 5, np.sum(b)
    return ml.fori_loop(0, rounds, lambda i, c: np.tanh(c * (i + 1) * 0.3 + a * extra), np.cos(a))


@step("two loops")
def _two_loops(a: Array, b: Array, draw: int) -> Array:
    def inner(i: Any, c: Any) -> Any:
        return ml.fori_loop(0, i + 1, lambda j, d: (np.sin(d[0]) + np.sum(b) * 0.1, d[1] + d[0]), c)

    one, two = ml.fori_loop(0, 1 + draw % 3, inner, (a, 0.1 * a))
    return one * np.tanh(two)


@step("scan")
def _scan(a: Array, b: Array, draw: int) -> Array:
    if not a.ndim:
        return np.cos(a)
    last, rows = ml.scan(lambda c, r: (np.tanh(c + r), c * np.sin(r)), np.zeros(a.shape[1:]), a)
    return rows + last


@step("branch")
def _branch(a: Array, b: Array, draw: int) -> Array:
    return ml.cond(np.sum(b) > 0.3, lambda a, b: a * np.sum(b), lambda a, b: np.sin(a), a, b)


@step("switch")
def _switch(a: Array, b: Array, draw: int) -> Array:
    number = np.floor(np.abs(np.sum(b)) * 2).astype(np.int64) % 3
    return ml.switch(number, [np.sin, lambda t: t * t * 0.5, lambda t: t * 0 + 1], a)


@step("own rounds")
def _own_rounds(a: Array, b: Array, draw: int) -> Array:
    rounds = np.floor(np.abs(np.sum(b)) * 3).astype(np.int64) % 4
    return ml.fori_loop(0, rounds, lambda i, c: np.sin(c + 0.1 * i) * 1.1 + 0.2 * np.sum(c), a)


@step("own place")
def _own_place(a: Array, b: Array, draw: int) -> Array:
    flat = np.ravel(a)
    # The sum of a softmax is 1, up to rounding: no whole number is near what is rounded down.
    place = np.floor(np.abs(np.sum(b)) * 4.7).astype(np.int64) % flat.size
    return ml.cond(place % 2 == 0, lambda: flat[place] * b, lambda: b * flat[flat.size - 1 - place] + np.sin(b))


@step("stores")
def _stores(a: Array, b: Array, draw: int) -> Array:
    if not a.ndim:
        return a * a
    y = np.zeros_like(a)
    y[1:] = a[:-1] * 2
    y[0] += np.sin(a[-1])
    y[::2] *= a[::2]
    return y


@step("rows")
def _rows(a: Array, b: Array, draw: int) -> Array:
    if not a.ndim:
        return a * 0.5
    y = a.copy()
    np.add.at(y, np.array([0, a.shape[0] - 1, 0]), np.stack([np.sin(a[0])] * 3))
    return y


@step("element")
def _element(a: Array, b: Array, draw: int) -> Array:
    place = tuple(draw % n for n in a.shape)
    return a * a[place] if a.ndim else a


@step("largest")
def _largest(a: Array, b: Array, draw: int) -> Array:
    return np.ravel(a)[np.argmax(a)] * b


def program(seed: int, most: int = 9, until: bool = False) -> tuple[list[tuple[str, int, int, int]], tuple[int, ...]]:
    """Steps (name, places of the two values, seed), and the shape of the argument; with `until` most are of `UNTIL`."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 4, size=int(rng.integers(1, 3))))
    names = [*STEPS, *(20 * sorted(UNTIL) if until else ())]
    steps = []
    for number in range(int(rng.integers(min(3, most - 1), most))):
        picked = [max(0, number - int(rng.integers(0, 3))) for _ in range(2)]
        steps.append((names[int(rng.integers(len(names)))], *picked, int(rng.integers(1 << 30))))
    return steps, shape


def run(steps: list[tuple[str, int, int, int]], x: Array) -> Array:
    """The float that a program gives."""
    values = [x]
    for name, first, second, seed in steps:
        value = STEPS[name](values[first], values[second], seed)
        values.append(value if value.size <= 64 else np.sum(value) * 0.1 * x)
    return functools.reduce(lambda total, v: total + np.sum(np.sin(v)), values[-3:], 0.0)
