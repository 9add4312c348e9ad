"""`print`, `ml.debug.print` and `ml.debug.callback` in compiled functions: what Python does, when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.targets.drivers import needs_vulkan

X = np.array([1.0, 2.0, 3.0])


def arrays(x: Any) -> Any:
    y = x * 2
    print("y", y, y.shape, y[0], sep=" | ", end="!\n")
    print(f"sum {np.sum(y):.3f} and {x}, {x[1]!s:>8}")
    print("nothing of the program")
    y[0] = 100
    print([y, {"x": x[0]}], x[::2])
    return y + 1


def straight(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        if x[i] > 1.5:
            print("i", i, "s", s, x[i])
    print("end", s)
    return s


def nest(x: Any) -> Any:
    b = np.zeros((len(x), 4))
    for i in range(len(x)):
        for j in range(4):
            b[i, j] = x[i] * j + 1
            if b[i, j] > 4:
                print(f"b[{i}, {j}] = {b[i, j]:6.2f}")
        print(i, b[i])
    return b


def until(x: Any) -> Any:
    s, n = 0.0, 0
    while s < 10:
        s += x[n % 3]
        n += 1
        print(n, s)
    return s


def long(x: Any) -> Any:
    total = 0.0
    y = np.zeros(5000)
    for i in range(5000):
        total += x[i % 3] * i
        y[i] = np.sin(total) + x[0]
        if i % 1000 == 0:
            print(i, total)
    return y


def rows(x: Any) -> Any:
    a = np.zeros((3, 3))
    for i in range(1, 3):
        a[i] = a[i - 1] + x
        a[i, 0] = i
        print(a)
    return a


def helper(x: Any) -> Any:
    def inner(v: Any) -> Any:
        print("in", v, f"{v[0]:.2f}", f"{v[1]!s:>6}", f"<{v[2]:05.1f}>")
        return v + 1

    return inner(inner(x))


FUNCTIONS = [arrays, straight, nest, until, long, rows, helper]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_prints_as_python(function: Callable[..., Any], target: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = function(X)
    printed = capsys.readouterr().out
    compiled = ml.compile(function, target=target)
    for _ in range(2):  # from the native dispatcher, too
        np.testing.assert_allclose(compiled(X), expected)
        assert capsys.readouterr().out == printed


@needs_vulkan
@pytest.mark.parametrize("function", [arrays, straight, nest, helper])
def test_prints_on_a_device(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    x = X.astype(np.float32)
    compiled = ml.compile(function, target="vulkan", float64="float32")
    expected = ml.compile(function)(x)
    printed = capsys.readouterr().out
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-6)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("frontend", ["trace", "loops"])
def test_every_dtype(frontend: str, capsys: pytest.CaptureFixture[str]) -> None:
    values: list[Any] = [np.array([1, 2]).astype(t) for t in "?bhilBHILefdFD"]
    values += [True, -3, 2.5, 1 + 2j, np.int8(-4), np.uint64(2**63)]

    def shown(*values: Any) -> Any:
        for value in values:
            print(value, value[0] if np.ndim(value) else "")
        return values[0]

    shown(*values)
    printed = capsys.readouterr().out
    ml.compile(shown, frontend=frontend)(*values)
    assert capsys.readouterr().out == printed


def test_debug_print(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            ml.debug.print("{} {last:.1f} {{}}", i, last=c[-1])
            return c * 2

        return ml.fori_loop(0, 3, body, x)

    expected = "0 3.0 {}\n1 6.0 {}\n2 12.0 {}\n"
    shown(X)
    assert capsys.readouterr().out == expected
    ml.compile(shown)(X)
    assert capsys.readouterr().out == expected


def test_transforms_print_what_the_function_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print("x", x)
        return np.sum(np.sin(x) ** 2)

    np.testing.assert_allclose(ml.grad(f)(X), np.sin(2 * X))
    assert capsys.readouterr().out == "x [1. 2. 3.]\n"
    ml.compile(lambda x: ml.jvp(f, (x,), (x,)))(X)
    assert capsys.readouterr().out == "x [1. 2. 3.]\n"
    ml.vmap(f)(np.stack([X, X + 1]))
    assert capsys.readouterr().out == "x [[1. 2. 3.]\n [2. 3. 4.]]\n"


def test_loops_that_are_differentiated_print_each_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            s = s * 0.5 + np.sin(x[i]) * s + x[i]
            print(i, s)
        return s

    f(X)
    printed = capsys.readouterr().out
    ml.grad(f)(X)
    assert capsys.readouterr().out == printed


def doubled(x: Any) -> Any:
    s = x[0]
    while s < 20:
        s = s * s + 1 + x[1]
        print("s", s)
        if s > 5:
            print("large", s)
    return s


def searched(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 3
        ml.debug.print("total {}", total)
        if total > 8:
            break
    return total


def watched(x: Any) -> Any:
    for i in range(len(x)):
        assert x[i] < 100
        if x[i] > 1:
            print("at", i, x[i])
    if x[0] > 50:
        raise ValueError("large")
    if x[0] < x[1]:
        print("first", x[0])
    return np.sum(x**3)


def again(x: Any) -> Any:
    return ml.checkpoint(doubled)(np.sin(x))


@pytest.mark.parametrize("function", [doubled, searched, watched, again])
def test_gradients_print_once(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    ml.compile(function)(X)
    printed = capsys.readouterr().out
    gradient = ml.grad(function)(X)
    assert capsys.readouterr().out == printed
    change = ml.jvp(function, (X,), (X,))[1]
    assert capsys.readouterr().out == printed
    np.testing.assert_allclose(np.sum(gradient * X), change)
    product = ml.hvp(function, (X,), (X,))
    assert capsys.readouterr().out == printed
    near = ml.grad(function)(X + 1e-6 * X), ml.grad(function)(X - 1e-6 * X)
    np.testing.assert_allclose(product, (near[0] - near[1]) / 2e-6, rtol=1e-5, atol=1e-5)


def test_a_batch_prints_in_the_branches_that_a_lane_takes(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        for i in range(len(x)):
            assert x[i] > -10
            if x[i] > 0:
                print("positive", i)
                if x[i] > 2:
                    print("large", x[i])
            elif x[i] == 0:
                print("zero", i)
        return np.sum(x)

    xs = np.array([[1.0, -1.0, 3.0], [2.0, -2.0, 0.0]])
    np.testing.assert_array_equal(ml.vmap(f)(xs), [3.0, 0.0])
    assert capsys.readouterr().out == "positive 0\npositive 0\npositive 2\nlarge 3.0\nzero 2\n"
    np.testing.assert_array_equal(ml.vmap(ml.vmap(f))(-np.abs(xs[None])), [[-5.0, -4.0]])
    assert capsys.readouterr().out == "zero 2\n"
    with pytest.raises(ml.FailedAssertionError):
        ml.vmap(f)(xs - 10)


def clipped(x: Any, v: Any) -> Any:
    y = 0.0
    if x > 0:
        print("clipped", x, v)
        y = x * v[1]
    return y


def squared(x: Any, v: Any) -> Any:
    number = 0
    while x < 10:
        print("squared", f"{x:.1f}", f"{number:02d}")
        x = x * x
        number += 1
    return x * v[1]


def summed(x: Any, v: Any) -> Any:
    total = 0.0
    for i in range(int(x)):
        if v[i] > 1:
            print("summed", i, total)
            total += v[i]
            if v[i] > 3:
                print("large", v[i])
    return total


@pytest.mark.parametrize(
    ("function", "first", "number_of_lines"), [(clipped, -1.0, 2), (squared, 20.0, 3), (summed, 0.0, 4)]
)
def test_a_branch_or_loop_prints_for_the_lanes_that_come_to_it(
    function: Callable[..., Any], first: float, number_of_lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lanes = np.array([first, 2.0, 3.0]), np.arange(9.0).reshape(3, 3)
    expected = [function(*lane) for lane in zip(*lanes)]
    printed = capsys.readouterr().out.splitlines()
    np.testing.assert_allclose(ml.vmap(function)(*lanes), expected)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(printed) and len(printed) >= number_of_lines
    ml.vmap(ml.vmap(function))(*(x[None] for x in lanes))
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(printed)
    ml.grad(lambda v: np.sum(ml.vmap(function)(lanes[0], v)))(lanes[1])
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(printed)
    ml.vmap(function)(np.full(3, first), lanes[1])
    assert not capsys.readouterr().out


def test_callbacks_are_called_again_where_their_results_are() -> None:
    def f(x: Any) -> Any:
        s = x[0]
        while s < 20:
            print("s", s)
            s = s * s + ml.debug.callback(lambda v: v.max(), ml.TensorSpec((), np.float64), x)
        return s

    np.testing.assert_allclose(ml.grad(f)(X), [2 * 1 * 2 * 4 * 2 * 19, 0, 0])


def test_callback() -> None:
    @ml.compile
    def magnitudes(a: Any) -> Any:
        values = ml.debug.callback(np.linalg.eigvals, ml.TensorSpec((2,), np.complex128), a @ a)
        return np.sqrt(np.abs(values)) + 1

    np.testing.assert_allclose(magnitudes(np.array([[0.0, 2.0], [-2.0, 0.0]])), [3, 3])


def test_callback_of_several_results_in_a_loop() -> None:
    seen = []

    def host(v: Any, scale: float) -> Any:
        seen.append(v.copy())
        return {"sum": float(v.sum()), "twice": v * scale}

    @ml.compile
    def f(x: Any) -> Any:
        for _ in range(3):
            spec = {"twice": ml.TensorSpec((3,), np.float64), "sum": ml.TensorSpec((), np.float64)}
            found = ml.debug.callback(host, spec, x, scale=2.0)
            x = found["twice"] + found["sum"]
        return x

    expected = X
    for _ in range(3):
        expected = expected * 2 + expected.sum()
    np.testing.assert_allclose(f(X), expected)
    assert len(seen) == 3


def test_a_callback_is_a_constant_to_derivatives() -> None:
    def f(x: Any) -> Any:
        scale = ml.debug.callback(lambda v: v.max(), ml.TensorSpec((), np.float64), x)
        return np.sum(x**2) * scale

    np.testing.assert_allclose(ml.grad(f)(X), 2 * X * 3)


def test_exceptions_come_from_the_call() -> None:
    def fails(v: Any) -> Any:
        raise KeyError("of the callback")

    @ml.compile
    def f(x: Any) -> Any:
        x += 1
        ml.debug.callback(fails, None, x)
        return x

    for _ in range(2):
        with pytest.raises(KeyError, match="of the callback"):
            f(X.copy())


def test_results_are_checked() -> None:
    @ml.compile
    def f(x: Any) -> Any:
        return ml.debug.callback(lambda v: v[:1], ml.TensorSpec((3,), np.float64), x)

    with pytest.raises(ml.LaunchError, match=r"the function returned f64\[1\], and f64\[3\] was declared"):
        f(X)


def test_a_callback_with_results_has_no_batched_form() -> None:
    def f(x: Any) -> Any:
        return ml.debug.callback(np.sort, ml.TensorSpec((3,), np.float64), x)

    with pytest.raises(ml.NoBatchingError, match="the Python function returns arrays for one example"):
        ml.vmap(f)(np.stack([X, X]))


def test_a_callback_calls_compiled_code() -> None:
    inner = ml.compile(lambda v: np.sort(v)[::-1] * 1.0)

    @ml.compile
    def f(x: Any) -> Any:
        return ml.debug.callback(inner, ml.TensorSpec((3,), np.float64), x) + x

    np.testing.assert_allclose(f(X), [4, 4, 4])


def filled(v: Any) -> Any:
    z = np.zeros(3)
    for i in range(3):
        z[i] = v * i
    return z + np.ones(3)


def test_a_callback_makes_arrays_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    spec = ml.TensorSpec((3,), np.float64)

    def of_lambda(x: Any) -> Any:
        return ml.debug.callback(lambda v: np.ones(3) + v, spec, x)

    def of_function(x: Any) -> Any:
        def own(v: Any) -> Any:
            import math

            print("here", float(v[0]))
            return np.array([math.sqrt(4.0), isinstance(v, np.ndarray), 1.0])

        return ml.debug.callback(own, spec, x)

    def in_loop(x: Any) -> Any:
        s = np.zeros(3)
        for i in range(x.shape[0]):
            s = s + ml.debug.callback(filled, spec, x[i])
        return s

    for f in (of_lambda, of_function, in_loop):
        np.testing.assert_array_equal(ml.compile(f)(X), f(X))
    assert capsys.readouterr().out == "here 1.0\n" * 2


def test_programs_in_the_cache_call_their_own_functions(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path))
    for word in ("first", "second"):

        def f(x: Any, word: str = word) -> Any:
            print(word, x)
            return x * 2

        ml.compile(f)(X)
        assert capsys.readouterr().out == f"{word} [1. 2. 3.]\n"


def test_a_text_outside_of_print_is_an_error() -> None:
    with pytest.raises(ml.TracedValueError):
        ml.compile(lambda x: {f"{x[0]:.1f}": x})(X)
