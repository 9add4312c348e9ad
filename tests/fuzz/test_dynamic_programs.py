"""Random array programs of dynamic sizes: the numbers of NumPy, and the derivatives of the static programs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
import tests.autodiff.random_arrays
import tests.autodiff.random_control
import tests.autodiff.random_kept
import tests.autodiff.random_linear_algebra  # noqa: F401  (all register their steps)
from mlirml.core.sizes import StaticSizeError
from mlirml.errors import LoweringError
from tests.autodiff.random_checks import CHECKS, wrong
from tests.autodiff.random_programs import program as steps_of
from tests.autodiff.random_programs import run

PROGRAMS = int(os.environ.get("MLIRML_FUZZ_DYNAMIC", "15"))
SIZES = ((2, 2), (3, 5), (7, 2), (33, 64), (130, 17))
WEIGHTS = np.random.default_rng(1).standard_normal((8, 6)).astype(np.float32)

Array = Any
Shape = tuple[Any, ...]
Step = Callable[[list[Array]], Array]


class Generator:
    """Steps of a program, each a function of the values before it, and the shape of each value in terms of n and m."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.steps: list[Step] = []
        self.shapes: list[Shape] = [("n", 8), ("n",), ("m", 8), ("m", "n")]

    def pick(self, fits: Callable[[Shape], bool]) -> int | None:
        """The index of a value of a shape that fits, preferring later ones."""
        found = [i for i, shape in enumerate(self.shapes) if fits(shape)]
        return None if not found else found[-1 - int(self.rng.integers(min(4, len(found))))]

    def add(self, shape: Shape, step: Step) -> None:
        self.steps.append(step)
        self.shapes.append(shape)

    def grow(self) -> None:
        """Add a step, if the chosen one fits some values."""
        rules = [name for name in dir(self) if name.startswith("step_")]
        getattr(self, str(self.rng.choice(rules)))()

    def step_unary(self) -> None:
        i = self.pick(lambda s: True)
        f = [np.tanh, np.abs, lambda x: np.exp(-x * x), lambda x: x * 0.5 + 1, np.arctan][int(self.rng.integers(5))]
        assert i is not None
        self.add(self.shapes[i], lambda v: f(v[i]))

    def step_binary(self) -> None:
        i = self.pick(lambda s: len(s) > 0)
        assert i is not None
        j = self.pick(lambda s: s == self.shapes[i])
        f = [np.add, np.multiply, np.maximum, np.subtract][int(self.rng.integers(4))]
        self.add(self.shapes[i], lambda v: f(v[i], v[j]))

    def step_broadcast(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None
        j = self.pick(lambda s: s == self.shapes[i][1:])
        if j is not None:
            self.add(self.shapes[i], lambda v: v[i] - v[j])

    def step_column(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None
        j = self.pick(lambda s: s == self.shapes[i][:1])
        if j is not None:
            self.add(self.shapes[i], lambda v: v[i] * v[j][:, None])

    def step_reduce(self) -> None:
        i = self.pick(lambda s: len(s) > 0)
        assert i is not None
        axis = int(self.rng.integers(len(self.shapes[i])))
        f = ["mean", "max", "min", "sum"][int(self.rng.integers(4))]
        keep = bool(self.rng.integers(2))
        shape = tuple(n if d != axis else 1 for d, n in enumerate(self.shapes[i]) if keep or d != axis)
        self.add(shape, lambda v: getattr(np, f)(v[i], axis=axis, keepdims=keep) * (0.1 if f == "sum" else 1.0))

    def step_softmax(self) -> None:
        i = self.pick(lambda s: len(s) > 1)

        def softmax(v: list[Array]) -> Array:
            e = np.exp(v[i] - v[i].max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        assert i is not None
        self.add(self.shapes[i], softmax)

    def step_product(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None
        j = self.pick(lambda s: len(s) == 2 and s[0] == self.shapes[i][1])
        if j is not None:
            self.add((self.shapes[i][0], self.shapes[j][1]), lambda v: np.tanh(v[i] @ v[j] * 0.1))

    def step_product_with_transpose(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None
        j = self.pick(lambda s: len(s) == 2 and s[1] == self.shapes[i][1])
        if j is not None:
            self.add((self.shapes[i][0], self.shapes[j][0]), lambda v: np.tanh(v[i] @ v[j].T * 0.1))

    def step_weights(self) -> None:
        i = self.pick(lambda s: len(s) == 2 and s[-1] == 8)
        if i is not None:
            self.add((self.shapes[i][0], 6), lambda v: v[i] @ WEIGHTS)

    def step_vector(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None
        j = self.pick(lambda s: s == self.shapes[i][1:])
        if j is not None:
            self.add(self.shapes[i][:1], lambda v: v[i] @ v[j] * 0.1)

    def step_transpose(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None
        self.add(self.shapes[i][::-1], lambda v: v[i].T)

    def step_join(self) -> None:
        i = self.pick(lambda s: len(s) == 2 and s[0] in ("n", "m", "n+m"))
        if i is None:
            return
        j = self.pick(lambda s: len(s) == 2 and s[1] == self.shapes[i][1] and s[0] in ("n", "m"))
        if j is not None and self.shapes[i][0] != "n+m":
            first, second = sorted((str(self.shapes[i][0]), str(self.shapes[j][0])), reverse=True)
            name = "n+m" if first != second else f"2{first}"
            self.add((name, self.shapes[i][1]), lambda v: np.concatenate([v[i], v[j]]))

    def step_slice(self) -> None:
        i = self.pick(lambda s: len(s) > 0 and isinstance(s[0], str) and "-" not in s[0])
        if i is None:
            return
        kind = int(self.rng.integers(4))
        rest = self.shapes[i][1:]
        first = self.shapes[i][0]
        if kind == 0:
            self.add((f"{first}-1", *rest), lambda v: v[i][1:] - v[i][:-1])
        elif kind == 1:
            self.add((first, *rest), lambda v: v[i][::-1])
        elif kind == 2:
            self.add(rest, lambda v: v[i][-1] + v[i][0])
        else:
            self.add((f"{first}+2", *rest), lambda v: np.pad(v[i], ((1, 1), *((0, 0),) * len(rest))))

    def step_reshape(self) -> None:
        i = self.pick(lambda s: len(s) == 2 and s[1] == 8)
        if i is None:
            return
        first = self.shapes[i][0]
        if self.rng.integers(2):
            self.add((first, 8), lambda v: v[i].reshape(-1, 2, 4).transpose(0, 2, 1).reshape(v[i].shape))
        else:
            self.add((first,), lambda v: v[i].reshape(v[i].shape[0], 4, 2).sum(2).max(1))

    def step_where(self) -> None:
        i = self.pick(lambda s: len(s) > 0)
        assert i is not None
        j = self.pick(lambda s: s == self.shapes[i])
        self.add(self.shapes[i], lambda v: np.where(v[i] > v[j], v[i], v[j] * 0.3))

    def step_size(self) -> None:
        i = self.pick(lambda s: len(s) > 0)
        assert i is not None
        self.add(self.shapes[i], lambda v: v[i].cumsum(0) / (v[i].shape[0] + 1))

    def step_sort(self) -> None:
        i = self.pick(lambda s: len(s) > 0)
        assert i is not None
        axis = int(self.rng.integers(len(self.shapes[i])))
        self.add(self.shapes[i], lambda v: np.sort(v[i], axis=axis))

    def step_median(self) -> None:
        i = self.pick(lambda s: len(s) > 1)
        assert i is not None
        self.add(self.shapes[i][1:], lambda v: np.median(v[i], axis=0).astype(np.float32))

    def step_parts(self) -> None:
        i = self.pick(lambda s: len(s) > 0 and s[0] in ("n", "m"))
        if i is None:
            return
        name, rest = str(self.shapes[i][0]), self.shapes[i][1:]
        part = int(self.rng.integers(6))
        step = int(self.rng.integers(3, 12))
        if part == 4:
            self.add((f"({name}+{step - 1})//{step}", *rest), lambda v: v[i][::step] * 0.5)
        elif part == 5:  # rounded up
            self.add((f"-(-{name}//{step})", *rest), lambda v: v[i][: -(-v[i].shape[0] // step)] + 2)
        elif part == 0:
            self.add((f"{name}//2", *rest), lambda v: v[i][: v[i].shape[0] // 2] * 2)
        elif part == 1:
            self.add((f"{name}-{name}//2", *rest), lambda v: v[i][v[i].shape[0] // 2 :] + 1)
        elif part == 2:
            self.add((f"({name}+1)//2", *rest), lambda v: v[i][::2] - 1)
        else:
            self.add((name, *rest), lambda v: np.roll(v[i], 1, 0) - v[i])

    def step_condition(self) -> None:
        """A branch of Python on a size: each way has a program."""
        i = self.pick(lambda s: len(s) > 0 and s[0] in ("n", "m"))
        if i is None:
            return
        limit = int(self.rng.integers(3, 12))
        self.add(self.shapes[i], lambda v: v[i] * 2 if v[i].shape[0] > limit else v[i] + 1)

    def step_mask(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None

        def masked(v: list[Array]) -> Array:
            rows, columns = np.cumsum(np.ones_like(v[i][:, 0])), np.cumsum(np.ones_like(v[i][0]))
            return np.where(rows[:, None] >= columns, v[i], -0.5)

        self.add(self.shapes[i], masked)

    def step_transform(self) -> None:
        i = self.pick(lambda s: len(s) > 0 and not any("//2" in str(d) for d in s))  # which may be empty
        if i is None:
            return
        axis = int(self.rng.integers(len(self.shapes[i])))

        def transformed(v: list[Array]) -> Array:
            bins = np.fft.fft(np.tanh(v[i]), axis=axis)
            return np.abs(np.fft.ifft(bins * 0.5, axis=axis)).astype(np.float32)

        self.add(self.shapes[i], transformed)

    def step_solve(self) -> None:
        i = self.pick(lambda s: len(s) == 2)
        assert i is not None

        def solved(v: list[Array]) -> Array:
            x = np.tanh(v[i])
            rows = np.cumsum(np.ones_like(x[:, 0]))
            return np.linalg.solve(x @ x.T * 0.1 + 4 * (rows[:, None] == rows).astype(np.float32), x)

        self.add(self.shapes[i], solved)

    def step_store(self) -> None:
        i = self.pick(lambda s: len(s) == 2)

        def stored(v: list[Array]) -> Array:
            if isinstance(v[i], ml.Array):  # which does not change
                x = v[i].at[0].set(v[i][-1] * 2)
                return x.at[1:].add(0.5)
            x = v[i].copy()
            x[0] = x[-1] * 2
            x[1:] += 0.5
            return x

        assert i is not None
        self.add(self.shapes[i], stored)


def program(seed: int) -> Callable[..., Any]:
    """A random function of x (n, 8), y (n,), z (m, 8) and u (m, n)."""
    made = Generator(seed)
    while len(made.steps) < 9:
        made.grow()
    last = range(len(made.shapes) - 3, len(made.shapes))

    def function(x: Array, y: Array, z: Array, u: Array) -> Any:
        values = [x, y, z, u]
        for step in made.steps:
            values.append(step(values))
        return tuple(values[i] for i in last)

    return function


DYNAMIC = {"x": ("n", None), "y": ("n",), "z": ("m", None), "u": ("m", "n")}


def arguments(n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((n, 8), (n,), (m, 8), (m, n))]


def compare(got: Any, want: Any) -> None:
    for mine, theirs in zip(got, want, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(theirs).max(initial=0))))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_have_the_numbers_of_numpy(seed: int) -> None:
    function = program(seed)
    compiled = ml.compile(function, dynamic=DYNAMIC)
    for n, m in SIZES:
        given = arguments(n, m)
        compare(compiled(*given), function(*given))
    assert compiled._compiled <= len(SIZES)  # branches on sizes, and parts that are of one element


@pytest.mark.parametrize("seed", range(PROGRAMS // 3))
def test_derivatives_of_random_programs_are_those_of_static_ones(seed: int) -> None:
    function = program(1000 + seed)

    def total(x: Array, y: Array, z: Array, u: Array) -> Any:
        return sum(np.sum(np.tanh(part)) for part in function(x, y, z, u))

    derived = ml.grad(total, argnums=(0, 1, 2, 3))
    compiled = ml.compile(derived, dynamic=dict(zip("xyzu", DYNAMIC.values())))
    static = ml.compile(derived, dynamic="off")
    for n, m in SIZES[:3]:
        given = arguments(n, m)
        compare(compiled(*given), static(*given))
    assert compiled._compiled <= 3


@pytest.mark.parametrize("seed", range(PROGRAMS // 3))
def test_random_programs_have_the_numbers_of_numpy_by_default(seed: int) -> None:
    """Sizes that come one after another, some of them again, two of them equal by chance, and sizes 1."""
    function = program(2000 + seed)
    compiled = ml.compile(function)
    for n, m in ((4, 6), (5, 7), (6, 6), (33, 9), (4, 6), (9, 1), (70, 3), (1, 5), (6, 8), (12, 12)):
        given = arguments(n, m)
        compare(compiled(*given), function(*given))


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled with every dimension dynamic: equal sizes have one name."""
    names = list(inspect.signature(function).parameters)
    compiled: dict[Any, Any] = {}

    def call(*args: Array) -> Any:
        shapes = tuple(map(np.shape, args))
        if shapes not in compiled:
            dims = {
                n: tuple(f"d{k}" if k > 1 else None for k in s) for n, s in zip(names, shapes) if max(s, default=0) > 1
            }
            compiled[shapes] = ml.compile(function, dynamic=dims) if dims else ml.compile(function)
        return compiled[shapes](*args)

    return call


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_derivatives_and_batches_of_random_steps(seed: int) -> None:
    """The random programs of derivatives, with every dimension dynamic: steps that need a size say so."""
    checks = [name for name in CHECKS if name != "arguments"]  # whose tangents are constants
    name = checks[seed % len(checks)]
    steps, shape = steps_of(seed, 3, name in ("forward", "forward_batches"))
    xs, ds = np.random.default_rng(seed).standard_normal((2, 2, *shape))
    try:
        found = CHECKS[name](lambda x: run(steps, x), named, xs, ds)
    except (StaticSizeError, LoweringError) as error:
        assert "dynamic" in str(error)
        pytest.skip("a step needs the value of a size")
    assert not wrong(found)


@pytest.mark.parametrize("seed", range(PROGRAMS // 3))
def test_one_program_static_dynamic_and_uncompiled(seed: int) -> None:
    function = program(3000 + seed)
    static, dynamic = ml.compile(function, dynamic="off"), ml.compile(function, dynamic=DYNAMIC)
    for n, m in ((3, 5), (33, 64)):
        given = arguments(n, m)
        expected = function(*given)
        for found in (static(*given), dynamic(*given), function(*map(ml.array, given))):
            compare(found, expected)
