"""Random programs of products, sums, traces, slices, transposes and scalings of matrices, against NumPy.

They run in both settings of `config.algebra`, in floats and integers, and with their gradients. `MLIRML_FUZZ=1000` runs
so many programs, other ones each time; `MLIRML_FUZZ_SEED` takes a seed back.

The error of a float is compared with a bound: the same program of absolute values, times the unit roundoff and the
number of operations that a number of the result is made of. So a program whose terms cancel is no false alarm, and one
whose result is wrong by a term is found.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.fuzzing import COUNT, first_seed

SIZES = [1, 2, 5, 17, 40, 64]
BATCHES = [(), (), (), (2,), (3, 2)]
Shape = tuple[int, ...]


class Writer:
    """A random expression of arrays, whose shapes are chosen as it is written."""

    def __init__(self, rng: random.Random, floats: bool) -> None:
        self.rng = rng
        self.floats = floats
        self.shapes: list[Shape] = []
        self.lines: list[str] = []
        self.batch: Shape = rng.choice(BATCHES)
        self.sizes = rng.sample(SIZES, 3)

    def leaf(self, shape: Shape) -> str:
        """An argument, one that was made before where one fits."""
        fitting = [number for number, known in enumerate(self.shapes) if known == shape]
        if fitting and self.rng.random() < 0.4:
            return f"x{self.rng.choice(fitting)}"
        self.shapes.append(shape)
        return f"x{len(self.shapes) - 1}"

    def named(self, text: str) -> str:
        """A variable for an expression: another use of it may come."""
        self.lines.append(f"v{len(self.lines)} = {text}")
        return f"v{len(self.lines) - 1}"

    def matrix(self, rows: int, columns: int, depth: int) -> str:
        """An expression of a stack of matrices."""
        if depth == 0:
            batch = self.batch if self.rng.random() < 0.7 else ()
            if self.rng.random() < 0.15:
                part = self.rng.choice(((columns,), (rows, 1), ()))
                return f"np.broadcast_to({self.leaf(part)}, {(*batch, rows, columns)})"
            return self.leaf((*batch, rows, columns))
        form = self.rng.choice(["product"] * 5 + ["sum", "difference", "common", "scaled", "transposed", "named"])
        if form == "product":
            inner = self.rng.choice(self.sizes)
            return f"({self.matrix(rows, inner, depth - 1)} @ {self.matrix(inner, columns, depth - 1)})"
        if form == "common":
            inner = self.rng.choice(self.sizes)
            shared, one, two = self.matrix(rows, inner, 0), *(self.matrix(inner, columns, depth - 1) for _ in "ab")
            return f"({shared} @ {one} {self.rng.choice('+-')} {shared} @ {two})"
        if form in ("sum", "difference"):
            sign = "+" if form == "sum" else "-"
            return f"({self.matrix(rows, columns, depth - 1)} {sign} {self.matrix(rows, columns, depth - 1)})"
        if form == "transposed":
            return f"np.swapaxes({self.matrix(columns, rows, depth - 1)}, -1, -2)"
        text = self.matrix(rows, columns, depth - 1)
        if form == "named":
            name = self.named(text)
            return name if self.rng.random() < 0.5 else f"({name} + {name})"
        scales = ["2 * {}", "{} * s"] + (["{} / 3", "{} / s", "0.5 * {}"] if self.floats else [])
        return "(" + self.rng.choice(scales).format(text) + ")"

    def result(self) -> str:
        """An expression of what is read of matrices."""
        rows, columns = self.rng.choice(self.sizes), self.rng.choice(self.sizes)
        depth = self.rng.randint(1, 3)
        form = self.rng.choice(("whole", "vector", "sum", "sums", "trace", "diagonal", "row", "columns"))
        if form in ("trace", "diagonal"):
            offset = self.rng.randint(1 - rows, rows - 1)
            text = self.matrix(rows, rows, depth)
            name = "trace" if form == "trace" else "diagonal"
            return f"np.{name}({text}, {offset}, axis1=-2, axis2=-1)"
        text = self.matrix(rows, columns, depth)
        if form == "vector":
            return f"({text} @ {self.leaf((columns,))})"
        if form == "row":
            return f"{text}[..., {self.rng.randrange(rows)}, :]"
        if form == "columns":
            first = self.rng.randrange(columns)
            return f"{text}[..., {first} : {self.rng.randint(first + 1, columns)}]"
        axis = {"sum": "None", "sums": self.rng.choice(("-1", "-2", "0"))}.get(form)
        return text if axis is None else f"np.sum({text}, axis={axis}, dtype=x0.dtype)"

    def source(self) -> str:
        """The source of a function of the arguments and the number `s`."""
        results = [self.result() for _ in range(self.rng.randint(1, 2))]
        body = [*self.lines, f"return {', '.join(results)},"]
        names = ", ".join([*(f"x{number}" for number in range(len(self.shapes))), "s"])
        return f"def program({names}):\n" + "\n".join(f"    {line}" for line in body)


def function_of(source: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, "<program>", "exec"), namespace)
    found: Callable[..., Any] = namespace["program"]
    return found


def bounds_of(source: str, given: list[np.ndarray], eps: float) -> list[np.ndarray]:
    """The bound of the error of each number: the same program of absolute values, which only adds."""
    absolute = function_of(source.replace(" - ", " + "))(*(np.abs(array).astype(np.float64) for array in given))
    return [64 * eps * np.asarray(value) * max(SIZES) + 1e-30 for value in absolute]


def check(seed: int) -> None:
    rng = random.Random(seed)
    dtype = np.dtype(rng.choice(["f4", "f8", "f8", "i2", "i4", "i8"]))
    writer = Writer(rng, dtype.kind == "f")
    source = writer.source()
    numbers = np.random.default_rng(seed)
    shapes = [*writer.shapes, ()]
    if dtype.kind == "f":
        given = [np.asarray(numbers.uniform(0.5, 1.5, shape) * rng.choice((-1, 1)), dtype) for shape in shapes]
        given = [array * np.where(numbers.random(array.shape) < 0.3, -1, 1).astype(dtype) for array in given]
    else:
        top = np.iinfo(dtype).max
        given = [np.asarray(numbers.integers(-top, top, shape), dtype) for shape in shapes]
    function = function_of(source)
    with np.errstate(all="ignore"):
        expected = function(*given)
    bounds = bounds_of(source, given, float(np.finfo(dtype).eps)) if dtype.kind == "f" else expected
    for algebra in ("exact", "reassociate"):
        with ml.config.override(algebra=algebra):
            got = ml.compile(function)(*given)
            gradient = gradient_of(function, given) if dtype == "f8" and seed % 3 == 0 else None
        for value, wanted, bound in zip(got, expected, bounds):
            assert value.dtype == wanted.dtype and value.shape == wanted.shape, f"{seed} {algebra}\n{source}"
            if dtype.kind == "f":
                wrong = np.abs(value.astype(np.float64) - wanted) > bound
                assert not wrong.any(), f"{seed} {algebra} {np.max(np.abs(value - wanted))}\n{source}"
            else:
                np.testing.assert_array_equal(value, wanted, err_msg=f"{seed} {algebra}\n{source}")
        if gradient is not None:
            check_gradient(function, source, given, gradient, f"{seed} {algebra}\n{source}")


def loss_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda first, *rest: sum(np.sum(part) for part in function(first, *rest))


def gradient_of(function: Callable[..., Any], given: list[np.ndarray]) -> np.ndarray:
    return np.asarray(ml.compile(ml.grad(loss_of(function)))(*given))


def check_gradient(
    function: Callable[..., Any], source: str, given: list[np.ndarray], gradient: np.ndarray, message: str
) -> None:
    """Compare a derivative along a direction with a difference of two steps."""
    direction = np.random.default_rng(1).uniform(-1, 1, given[0].shape)
    loss, step = loss_of(function), 1e-5
    ahead, back = (loss(given[0] + sign * step * direction, *given[1:]) for sign in (1, -1))
    slope = (ahead - back) / (2 * step)
    scale = sum(float(np.sum(bound)) for bound in bounds_of(source, given, 1.0)) / 64 / max(SIZES)
    assert abs(np.sum(gradient * direction) - slope) <= 1e-7 * scale + 1e-9, message


@pytest.mark.parametrize("part", range(4))
def test_random_products(part: int) -> None:
    if COUNT and part:
        return
    first = first_seed() if COUNT else part * 15
    for number in range(COUNT or 15):
        check(first + number)
