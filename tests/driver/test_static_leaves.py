"""Arguments that are static by themselves: names, functions, dtypes, and Python integers whose value tracing needs."""

from __future__ import annotations

import enum
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.linspace(-1.0, 2.0, 12)


class Kind(enum.Enum):
    FIRST = 1
    SECOND = 2


def by_name(x: Any, mode: str) -> Any:
    return np.sum(x) if mode == "sum" else np.mean(x)


def configured(config: dict[str, Any], x: Any) -> Any:
    y = np.zeros(config["size"]) + x[: config["size"]]
    return config["activation"](y) * config["scale"]


def factorial(n: int) -> int:
    return 1 if n <= 1 else n * factorial(n - 1)


def branch_on_a_size(x: Any, n: int) -> Any:
    return x[:n] if n > 3 else x * 2


def nearest(x: Any, n: int) -> Any:
    centres = x[:n].copy()
    for _ in range(3):
        labels = np.argmin((x[:, None] - centres) ** 2, axis=1)
        for j in range(n):
            mask = labels == j
            if mask.any():
                centres[j] = x[mask].mean()
    return centres


def every_other(x: Any, n: int) -> Any:
    total = np.zeros(3)
    for i in range(3):
        total[i] = np.sum(np.outer(x[i : i + 8 : n], x[i : i + 8 : n]))
    return total


def steps(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 0.5 + 1
    return x


def sliced(x: Any, n: int) -> Any:
    return x[n - 1 :] + x[: len(x) - n + 1]


def window(x: Any, n: int) -> Any:
    return x[n : n + 5]


SIZES: dict[str, Callable[..., Any]] = {
    "zeros": lambda x, n: np.zeros((n, n)) + x[0],
    "linspace": lambda x, n: np.linspace(0, 1, n) * x[1],
    "reshape": lambda x, n: np.reshape(x, (n, -1)),
    "method": lambda x, n: x.reshape(n, -1).sum(0),
    "arange": lambda x, n: np.arange(n // 2 + 1) * x[2],
    "list": lambda x, n: np.stack([x] * n),
    "item": lambda x, n: [x, -x, x * 2, x - 1][n - 1],
    "axis": lambda x, n: np.sum(x.reshape(2, 2, 3), axis=n - 2),
    "roll": lambda x, n: np.roll(x, n) + np.ones(n).sum(),
}


@pytest.mark.parametrize("name", SIZES)
def test_an_integer_whose_value_tracing_needs(name: str) -> None:
    compiled = ml.compile(SIZES[name])
    for _ in range(2):
        for n in (2, 3, 4):
            np.testing.assert_allclose(compiled(X, n), SIZES[name](X, n))
    assert compiled.entries == 3


@pytest.mark.parametrize("function", [steps, branch_on_a_size, every_other, nearest, sliced, window])
def test_one_that_need_not_be_known_is_not_static(function: Callable[..., Any]) -> None:
    compiled = ml.compile(function)
    for n in range(1, 6):
        np.testing.assert_allclose(compiled(X, n), function(X, n))
    assert compiled.entries == 1 and "is static" not in compiled.explain()


def test_what_is_static_and_why_is_told() -> None:
    compiled = ml.compile(SIZES["zeros"])
    compiled(X, 2)
    assert "`n` is static: `np.zeros()` needs its value (" in compiled.explain()
    assert "would compile, because static argument `n` is 3, was 2" in compiled.explain(X, 3)


def test_true_and_one_differ() -> None:
    compiled = ml.compile(lambda x, n: np.zeros(n + 1) + (x if n is True else -x))
    assert compiled(2.0, True).tolist() == [2.0, 2.0]
    assert compiled(2.0, 1).tolist() == [-2.0, -2.0]


def test_a_size_in_a_branch_on_data() -> None:
    def blocks(x: Any, n: int) -> Any:
        if np.sum(x) > 3:
            return np.reshape(x, (n, -1)).sum(1)
        return x[:n]

    compiled = ml.compile(blocks)
    for n in (2, 3, 4):
        for x in (X, -X):
            np.testing.assert_allclose(compiled(x, n), blocks(x, n))
    with pytest.raises(ml.ShapeError, match="reshape"):
        compiled(X, 5)


def test_recursion_on_an_integer() -> None:
    assert ml.compile(factorial)(5) == 120


def test_names() -> None:
    compiled = ml.compile(by_name)
    for mode in ("sum", "mean", "sum"):
        np.testing.assert_allclose(compiled(X, mode), by_name(X, mode))
        np.testing.assert_allclose(compiled(X, mode=mode), by_name(X, mode))
    assert "`mode` is 'mean', was 'sum'" in compiled.explain()


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_parts_of_containers(target: str) -> None:
    compiled = ml.compile(configured, target)
    for size, activation, scale in ((3, np.tanh, 1.0), (5, np.tanh, 2.0), (5, lambda y: y * y, 3.0)):
        config = {"size": size, "activation": activation, "scale": scale, "name": "a"}
        np.testing.assert_allclose(compiled(config, X), configured(config, X))


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("int16"), "float64", bool])
def test_dtypes(dtype: Any) -> None:
    found = ml.compile(lambda x, dtype: x.astype(dtype))(X, dtype)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, X.astype(dtype))


def test_enums() -> None:
    compiled = ml.compile(lambda x, kind: x if kind is Kind.FIRST else -x)
    np.testing.assert_array_equal(compiled(X, Kind.FIRST), X)
    np.testing.assert_array_equal(compiled(X, Kind.SECOND), -X)


def test_a_function_that_reads_a_variable_that_changes() -> None:
    scale = 2.0

    def scaled(x: Any) -> Any:
        return x * scale

    compiled = ml.compile(lambda x, f: f(x))
    np.testing.assert_array_equal(compiled(X, scaled), X * 2)
    scale = 3.0
    np.testing.assert_array_equal(compiled(X, scaled), X * 3)


def test_stores_into_containers_that_have_names_too() -> None:
    def update(model: dict[str, Any], x: Any) -> Any:
        model["w"] = model["w"] + x
        model["b"] += 1.0
        return np.sum(x)

    model, w = {"a": "first", "b": np.ones(2), "w": X, "z": "last"}, X.copy()
    for _ in range(2):
        ml.compile(update)(model, X)
        w = w + X
    np.testing.assert_array_equal(model["w"], w)
    np.testing.assert_array_equal(model["b"], np.full(2, 3.0))
    assert (model["a"], model["z"]) == ("first", "last")


def test_donated_arguments_with_names_in_front() -> None:
    def step(params: dict[str, Any], x: Any) -> Any:
        return {"kind": params["w"] - x}

    params = {"kind": "linear", "w": X.copy()}
    compiled = ml.compile(step, donate_argnums=0)
    np.testing.assert_array_equal(compiled(params, X)["kind"], X - X)


def test_by_argument_names() -> None:
    def f(x: Any, n: float, *, m: float = 1.0) -> Any:
        return x * n if type(m) is float and type(n) is float else x

    compiled = ml.compile(f, static_argnames=("n", "m"))
    np.testing.assert_array_equal(compiled(X, 2.0, m=3.0), X * 2)
    np.testing.assert_array_equal(compiled(X, n=2.0), X * 2)
    assert "static argument `m`" in compiled.explain(X, 2.0, m=4.0)
    again = pickle.loads(pickle.dumps(ml.compile(by_name, static_argnames="mode")))
    assert again.static_argnums == (1,)
    with pytest.raises(ml.ArgumentError, match="static_argnames: `f` has no argument 'k'"):
        ml.compile(f, static_argnames="k")


def test_methods_with_static_names() -> None:
    class Model:
        @ml.compile(static_argnames=("power", "flag"))
        def run(self, x: Any, power: int, *, flag: bool = False) -> Any:
            return x**power if not flag else x

    np.testing.assert_array_equal(Model().run(X, 2), X**2)
    np.testing.assert_array_equal(Model().run(X, 2, flag=True), X)


def test_random_functions_are_refused() -> None:
    with pytest.raises(ml.CaptureError, match="drawn once"):
        ml.compile(lambda x, f: x + f())(X, np.random.rand)


def test_derivatives_with_sizes_and_names() -> None:
    def loss(w: Any, n: int, mode: str) -> Any:
        return np.sum(np.reshape(w, (n, -1)).sum(1) ** 2) if mode == "rows" else np.sum(w)

    found = ml.compile(lambda w, n, mode: ml.grad(loss)(w, n, mode))(X, 3, "rows")
    np.testing.assert_allclose(found, 2 * np.repeat(X.reshape(3, -1).sum(1), 4))


def test_an_integer_that_decides_what_a_function_returns() -> None:
    def dot(n, x, step):
        if n <= 0:
            return {}
        total = 0.0
        for i in range(n):
            total += x[i * step]
        return {"total": total}

    compiled, x = ml.compile(dot), np.arange(10.0)
    assert compiled(5, x, 2) == {"total": 20.0}
    assert compiled(0, x, 2) == {}
    assert "`n` is static: a branch needs its value (" in compiled.explain()


def test_an_integer_that_is_the_length_of_a_list_stays_dynamic() -> None:
    def squares(x, n):
        out = []
        for i in range(n):
            out.append(x[i] * x[i])
        return out

    compiled, x = ml.compile(squares), np.arange(10.0)
    assert compiled(x, 4) == [0.0, 1.0, 4.0, 9.0]
    assert compiled(x, 2) == [0.0, 1.0] and compiled(x, 0) == []
    assert compiled._compiled == 1


def test_a_branch_on_data_makes_nothing_static() -> None:
    def first(x, n):
        if x[0] > n:
            return None
        return {"first": x[0]}

    with pytest.raises(ml.UnsupportedSyntaxError, match="returns None in one branch"):
        ml.compile(first)(np.arange(3.0), 1)
