"""Everything callable: closures, methods, partials, ufuncs, helpers in other modules, recursion, decorators."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy
import numpy as np
import pytest

import mlirml as ml
import mlirml.numpy as ml_numpy
from tests.frontend import helper_module
from tests.frontend.helper_module import padded
from tests.fuzz.oracle import check

X = np.arange(4.0)
RATE = 2.5


def helper(x: Any) -> Any:
    y = np.zeros(4)
    y[1:] = x[:-1] * RATE
    return y


def test_globals_and_helpers() -> None:
    check(lambda x: helper(x) + helper(x * 2) + RATE, X)
    check(lambda x: padded(x) + helper_module.padded(x) * helper_module.FACTOR, X)
    check(lambda x: numpy.tanh(x) + np.sin(x) + helper_module.numpy_module.cos(x) + math.pi, X, rtol=1e-15)


def test_closures() -> None:
    scale, table = 3.0, np.arange(4.0)

    def inner(x: Any) -> Any:
        y = np.zeros(4)
        y[:2] = x[2:] * scale
        return y + table

    def outer(x: Any) -> Any:
        z = inner(x)

        def innermost(w: Any) -> Any:
            return w * scale + z

        return innermost(x)

    check(inner, X)
    check(outer, X)


def test_recursive_functions() -> None:
    def power(x: Any, n: int) -> Any:
        return np.ones(4) if n == 0 else x * power(x, n - 1)

    check(power, X, 5, static_argnums=1)
    check(lambda x: power(x, 3), X)


def test_mutually_recursive_closures() -> None:
    def even(x: Any, n: int) -> Any:
        return x if n == 0 else odd(x + 1, n - 1)

    def odd(x: Any, n: int) -> Any:
        return -x if n == 0 else even(x * 2, n - 1)

    check(lambda x: even(x, 5), X)


def test_a_closure_variable_set_after_the_function() -> None:
    def make() -> Callable[[Any], Any]:
        def f(x: Any) -> Any:
            return x * later

        later = 4.0
        return f

    check(make(), X)


def test_nonlocal_variables() -> None:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count

    compiled = ml.compile(f)
    for expected in (1, 2, 3):
        np.testing.assert_array_equal(compiled(X), X * expected)
    assert count == 3


def test_partials_lambdas_and_defaults() -> None:
    def f(x: Any, a: float, b: Any = 2.0, *, c: Any = X) -> Any:
        y = np.zeros(4)
        y[...] = x * a + b * c
        return y

    check(functools.partial(f, a=2.0), X)
    check(functools.partial(functools.partial(f, a=2.0), b=3.0, c=1.0), X)
    check(functools.partial(f, X, 2.0), X)
    check(lambda x, f=f: f(x, 3.0), X)


class Model:
    scale: float = 2.0

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def forward(self, x: Any) -> Any:
        return self.activation(x * self.weights) + self.scale

    def activation(self, x: Any) -> Any:
        return np.maximum(x, 1)

    @staticmethod
    def double(x: Any) -> Any:
        y = np.zeros(4)
        y[:] = x
        return y * 2

    @classmethod
    def scaled(cls, x: Any) -> Any:
        y = np.zeros(4)
        y[:] = x
        return y * cls.scale

    def __call__(self, x: Any) -> Any:
        y = np.zeros(4)
        y[1:] = self.forward(x)[1:]
        return y


def test_methods_and_callable_objects() -> None:
    model = Model(np.arange(4.0) + 1)
    check(model.forward, X)
    check(model, X)
    check(Model.double, X)
    check(Model.scaled, X)
    check(functools.partial(Model.forward, model), X)
    check(lambda x: model.forward(x) + model.activation(x), X)


def test_arrays_made_in_methods_that_are_called() -> None:
    class Shift:
        def __init__(self, namespace: Any) -> None:
            self.namespace = namespace

        def run(self, x: Any) -> Any:
            return self.moved(x)

        def moved(self, x: Any) -> Any:
            y = self.namespace.zeros(4)
            y[1:] = x[:-1]
            return y

    check(Shift(ml_numpy).run, X)
    check(Shift(np).run, X)


class Regression:
    def __init__(self, rate: float) -> None:
        self.rate, self.weights, self.offset = rate, np.zeros(4), 0.0

    def predict(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-(x @ self.weights + self.offset)))

    def fit(self, x: Any, y: Any) -> None:
        errors = np.zeros(len(x))
        for _ in range(3):
            errors[:] = self.predict(x) - y
            self.weights -= self.rate * x.T @ errors
            self.offset -= self.rate * np.sum(errors)


class Stump:
    def __init__(self) -> None:
        self.place, self.error = 0, np.inf

    def fit(self, x: Any, y: Any) -> None:
        for i in range(len(x)):
            below = x <= x[i]
            if below.sum() == len(x):
                continue
            error = np.var(y[below]) + np.var(y[~below])
            if error < self.error:
                self.place, self.error = i, error


def test_loops_in_methods_that_turn_on_data() -> None:
    def train(x: Any, y: Any) -> Any:
        stump = Stump()
        stump.fit(x, y)
        return stump.place, stump.error

    check(train, X[::-1].copy(), np.array([1.0, 5.0, 6.0, 4.0]), rtol=1e-14)


def test_an_object_made_and_changed_inside() -> None:
    def train(x: Any, y: Any) -> Any:
        model = Regression(0.1)
        model.fit(x, y)
        return model.weights, model.offset, model.predict(x)

    x, y = np.outer(np.arange(3.0), X - 1), np.array([1.0, 0.0, 1.0])
    check(train, x, y, rtol=1e-14)
    gradient = ml.grad(lambda y: np.sum(train(x, y)[2]))(y)
    moved = [np.sum(train(x, y + step)[2]) for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gradient, (moved - np.sum(train(x, y)[2])) / 1e-6, rtol=1e-4)


def decorator(factor: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            y = np.zeros(4)
            y[...] = function(*args, **kwargs)
            return y * factor

        return wrapper

    return decorate


@decorator(3.0)
def decorated(x: Any, shift: Any = 1.0) -> Any:
    y = np.ones(4)
    y[1:] += x[1:] + shift
    return y


def test_decorated_functions() -> None:
    check(decorated, X)
    check(decorated, X, shift=2.0)
    check(lambda x: decorated(x), X)
    assert ml.compile(decorated).__name__ == "decorated"


def test_ufuncs_and_numpy_functions_themselves() -> None:
    check(np.add, X, X + 1)
    check(np.tanh, X, rtol=1e-15)
    check(np.matmul, X, X)
    check(np.sum, X)
    check(np.concatenate, [X, X])
    check(np.where, X > 1, X, -X)
    assert ml.compile(np.add).__name__ == "add"


def test_functions_of_numbers() -> None:
    def price(s: Any, k: Any, t: Any) -> Any:
        def share(x: Any) -> Any:
            return 0.5 * (1 + math.erf(x / math.sqrt(2)))

        d = (math.log(s / k) + 0.5 * t) / math.sqrt(t)
        return s * share(d) - float(k) * share(d - math.sqrt(t))

    check(price, 100.0, 95.0, 0.3, rtol=1e-15)
    check(lambda x: float(np.sum(x)) + int(x[1] + 1.5) + round(x[2]), X)
    check(lambda x: np.float32(x) * np.float32(x[1]), X)
    difference = (price(100.01, 95.0, 0.3) - price(99.99, 95.0, 0.3)) / 0.02
    np.testing.assert_allclose(ml.grad(price)(100.0, 95.0, 0.3), difference, rtol=1e-6)


def test_builtins_over_arrays() -> None:
    def f(x: Any) -> Any:
        total = sum(x * i for i in range(3))
        product = functools.reduce(lambda a, b: a * b, [x, x + 1, x + 2])
        rows = list(map(helper, [x, total]))
        return total, product, rows, [a - b for a, b in zip(x, reversed(list(x)))], abs(x - 2), divmod(x, 2), pow(x, 2)

    check(f, X)


def test_local_imports_and_classes() -> None:
    def f(x: Any) -> Any:
        from math import sqrt

        class Holder:
            def __init__(self, value: Any) -> None:
                self.value = value

            def doubled(self) -> Any:
                return self.value * sqrt(4.0)

        return Holder(x).doubled()

    check(f, X)


def test_exceptions_and_context_managers() -> None:
    def f(x: Any) -> Any:
        with np.errstate(all="ignore"):
            y = np.log(x - 1)
        try:
            raise KeyError("inside")
        except KeyError:
            y = y + 1
        return y

    check(f, X, rtol=1e-15)
    with pytest.raises(ZeroDivisionError):
        ml.compile(lambda x: x * (1 // 0))(X)


def test_generators_inside() -> None:
    def f(x: Any) -> Any:
        def squares() -> Any:
            for row in x:
                yield row * row

        return np.stack(list(squares()))

    check(f, X)


def test_nested_compiled_functions() -> None:
    @ml.compile
    def inner(x: Any, scale: Any = 2.0) -> Any:
        y = np.zeros(4)
        y[1:] = x[1:] * scale
        return {"y": y}

    check(lambda x: inner(x)["y"] + inner(x, scale=3.0)["y"] + 1, X)
    check(ml.compile(lambda x: inner(x)["y"]), X)
    table = inner(X)["y"]

    def uses_outside_value(x: Any) -> Any:
        return x + inner(X)["y"] + table

    check(uses_outside_value, X)


def test_nested_compiled_functions_with_static_arguments() -> None:
    @functools.partial(ml.compile, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        result = np.ones(4)
        for _ in range(n):
            result = result * x
        return result

    check(lambda x: power(x, 3) + power(x, 2), X)


def test_arrays_of_another_trace_are_refused() -> None:
    real = np.ones(4)

    def f(x: Any) -> Any:
        return ml.compile(lambda y: y + x)(real)

    def g(x: Any) -> Any:
        return ml.compile(lambda y: x * 2)(real)

    def h(x: Any) -> Any:
        return ml.compile(lambda y: x)(real)

    for function in (f, g, h):
        with pytest.raises(ml.errors.CaptureError, match="is used in the trace of"):
            ml.compile(function)(X)


def test_leaked_arrays_are_refused() -> None:
    kept: Any = threading.local()

    def keep(x: Any) -> Any:
        kept.value = x * 2
        return x

    ml.compile(keep)(X)
    leaked = kept.value
    assert leaked.shape == (4,)
    uses: list[Callable[[], Any]] = [
        lambda: leaked + 1, lambda: 1 + leaked, lambda: np.sin(leaked), lambda: leaked[0], lambda: leaked.sum(),
        lambda: float(leaked[0]), lambda: leaked.T, lambda: leaked.copy(), lambda: np.concatenate([leaked, X]),
        lambda: leaked.__setitem__(0, 1), lambda: ml.compile(lambda x: x + leaked)(X), lambda: bool(leaked),
        lambda: ml.compile(lambda x: leaked)(X), lambda: np.asarray(leaked), lambda: leaked.reshape(2, 2),
        lambda: np.add(X, 1, out=leaked), lambda: np.broadcast_to(leaked, (2, 4)), lambda: leaked.astype(int),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ml.errors.LeakedTracerError, match=r"a traced array \(f64\[4\]\) is used after `keep` was"):
            use()


def test_a_function_that_fails_can_be_called_again() -> None:
    fail = [True]

    def f(x: Any) -> Any:
        if fail[0]:
            raise RuntimeError("not yet")
        return x + 1

    compiled = ml.compile(f)
    with pytest.raises(RuntimeError, match="not yet"):
        compiled(X)
    fail[0] = False
    np.testing.assert_array_equal(compiled(X), X + 1)


def test_traces_in_several_threads_are_apart() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def f(x: Any, n: int) -> Any:
        y = np.zeros(4)
        for i in range(n):
            y[i % 4] += x[i % 4] * i
        return y

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda n: ml.compile(f, static_argnums=1).trace(X, n % 4).as_text(), range(32)))
    for n in range(4):
        assert len(set(texts[n::4])) == 1
    assert len(set(texts)) == 4


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\tb\x7f", "ä€", "\udce4"])
def test_source_files_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile("def twice(x):\n    return x * 2\n", name, "exec"), scope)
    assert ml.compile(scope["twice"])(3.0) == 6.0
