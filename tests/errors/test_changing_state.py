"""Random numbers, clocks and values that would outlive the trace, wherever a traced function reaches them."""

from __future__ import annotations

import cProfile
import datetime
import functools
import random
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

X = np.ones(3)
KEPT: list[Any] = []
LINES = Path(__file__).read_text().splitlines()


class Model:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.old = np.random.RandomState(1)
        self.python = random.Random(1)
        self.box = {"rngs": [self.rng], "pair": (self.rng, 1)}
        self.layers: list[Any] = []
        self.clock = time.perf_counter

    def draw(self, x: Any) -> Any:
        return x + self.rng.normal()  # generator

    def draw_old(self, x: Any) -> Any:
        return x + self.old.rand()  # random state

    def draw_python(self, x: Any) -> Any:
        return x + self.python.gauss(0, 1)  # random

    def draw_boxed(self, x: Any) -> Any:
        return x + self.box["rngs"][0].normal()  # list

    def draw_paired(self, x: Any) -> Any:
        return x + self.box["pair"][0].integers(5)  # tuple

    def draw_global(self, x: Any) -> Any:
        return x + len(np.random.bytes(1))  # global

    def draw_seldom(self, x: Any, train: bool = False) -> Any:
        return x + self.rng.normal() if train else x

    def now(self, x: Any) -> Any:
        return x + self.clock()  # clock

    def later(self, x: Any) -> Any:
        return x + time.time()  # time

    def append(self, x: Any) -> Any:
        self.layers.append(x * 2)  # append
        return x

    def hide(self, x: Any) -> Any:
        self.hidden = SimpleNamespace(value=x)  # hide
        return x

    def closure(self, x: Any) -> Any:
        self.later_on = lambda: x  # closure
        return x


def line_of(comment: str) -> int:
    """The first line that ends in a comment."""
    return next(number for number, line in enumerate(LINES, 1) if line.endswith(comment))


def calls(method: str) -> list[Any]:
    """Ways to run a method of a model."""
    model = Model()
    function = getattr(model, method)
    return [
        ml.compile(function),
        ml.compile(function, frontend="loops"),
        ml.compile(lambda x: function(x)),
        ml.compile(lambda x: getattr(model, method)(x)),
        ml.compile(functools.partial(getattr(Model, method), model)),
        ml.grad(lambda x: np.sum(getattr(model, method)(x))),
        ml.vmap(function),
    ]


@pytest.mark.parametrize(
    ("method", "comment"),
    [
        ("draw", "generator"),
        ("draw_old", "random state"),
        ("draw_python", "random"),
        ("draw_boxed", "list"),
        ("draw_paired", "tuple"),
        ("draw_global", "global"),
        ("now", "clock"),
        ("later", "time"),
    ],
)
def test_what_changes_by_itself_is_refused_at_its_line(method: str, comment: str) -> None:
    before = np.random.get_state()[1].tolist()
    for call in calls(method):
        with pytest.raises(ml.UnsupportedSyntaxError, match="once, when the function is traced") as caught:
            call(X)
        assert caught.value.location is not None
        assert caught.value.location.line == line_of(f"# {comment}")
        assert "pass" in (caught.value.help or "")
    assert np.random.get_state()[1].tolist() == before


def test_a_generator_is_left_as_it_was() -> None:
    model, other = Model(), Model()
    with pytest.raises(ml.UnsupportedSyntaxError):
        ml.compile(model.draw)(X)
    assert model.rng.normal() == other.rng.normal()


def test_a_generator_that_is_not_used_does_no_harm() -> None:
    np.testing.assert_array_equal(ml.compile(Model().draw_seldom)(X), X)


def test_functions_of_modules() -> None:
    for function in (
        lambda x: x + time.monotonic_ns(),
        lambda x: x + datetime.datetime.now().second,
        lambda x: x + uuid.uuid4().int % 5,
        lambda x: x + random.betavariate(1, 2),
    ):
        with pytest.raises(ml.UnsupportedSyntaxError, match="when the function is traced"):
            ml.compile(function)(X)


def drawing(x: Any, rng: Any) -> Any:
    return x + rng.normal()


@pytest.mark.parametrize("static", [(), 1])
def test_a_generator_as_an_argument(static: Any) -> None:
    with pytest.raises(ml.ArgumentError) as caught:
        ml.compile(drawing, static_argnums=static)(X, np.random.default_rng(0))
    assert "argument `rng` is a Generator, whose numbers would be drawn once" in str(caught.value)
    assert "static_argnums" not in str(caught.value)


def drawing_closure() -> Any:
    generator = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        return np.sum(x * generator.normal(size=3))

    return noisy


def test_the_gradient_of_a_closure() -> None:
    check_error(
        lambda: ml.grad(drawing_closure())(X),
        """
        mlirml.UnsupportedSyntaxError: `Generator.normal` would draw once, when the function is traced
          --> test_changing_state.py:157:27 (noisy)
             |
         157 |         return np.sum(x * generator.normal(size=3))
             |                           ^^^^^^^^^^^^^^^^
           = help: draw outside, and pass the numbers as an argument
        """,
    )


@pytest.mark.parametrize(("method", "comment"), [("append", "append"), ("hide", "hide"), ("closure", "closure")])
def test_values_that_would_outlive_the_trace(method: str, comment: str) -> None:
    for call in calls(method):
        with pytest.raises(ml.LeakedTracerError, match="would keep a value of the program") as caught:
            call(X)
        assert caught.value.location is not None
        assert caught.value.location.line == line_of(f"# {comment}")


def test_nothing_is_kept() -> None:
    model = Model()
    with pytest.raises(ml.LeakedTracerError):
        ml.compile(model.append)(X)
    assert model.layers == []


def keep(x: Any) -> Any:
    KEPT.append(x + 1)
    return x


def test_a_global_list() -> None:
    check_error(
        lambda: ml.compile(keep)(X),
        """
        mlirml.LeakedTracerError: `a list` would keep a value of the program in a container that grows, which only the function's own variables can
          --> test_changing_state.py:193:5 (keep)
             |
         193 |     KEPT.append(x + 1)
             |     ^^^^^^^^^^^^^^^^^^
           = help: return it, and store it outside; attributes and items hold numbers, arrays, and containers of them
        """,  # noqa: E501
    )
    assert KEPT == []


def test_an_iterator() -> None:
    numbers = iter([1.0, 2.0])
    generator = (float(i) for i in range(5))
    for function in (lambda x: x * next(numbers), lambda x: x * next(generator)):
        with pytest.raises(ml.UnsupportedSyntaxError, match="once, when the function is traced"):
            ml.compile(function)(X)


def test_a_profiler_goes_on_after_tracing() -> None:
    """Clocks are found by a profile function, in place of that of a profiler."""
    profiler = cProfile.Profile()
    profiler.enable()
    ml.compile(lambda x, late=False: x + time.time() if late else x)(X)
    np.cumsum(X).tolist()
    profiler.disable()
    profiler.create_stats()
    assert any("tolist" in name for _, _, name in profiler.stats)
