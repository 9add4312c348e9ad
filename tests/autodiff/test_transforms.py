"""The transforms as their users call them: pytrees, argnums, compositions, what ties and dead branches give."""

from __future__ import annotations

import doctest
import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml import transforms


def loss(params: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    return np.mean((hidden @ params["w2"] - y) ** 2)


def arguments() -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    params = {"w1": rng.standard_normal((3, 5)), "b1": np.zeros(5), "w2": rng.standard_normal((5, 2))}
    return params, rng.standard_normal((7, 3)), rng.standard_normal((7, 2))


def test_doctests() -> None:
    assert doctest.testmod(transforms).failed == 0


def test_gradients_have_the_structure_of_the_argument() -> None:
    params, x, y = arguments()
    value, gradients = ml.value_and_grad(loss)(params, x, y)
    assert gradients.keys() == params.keys()
    step = 1e-6
    moved = {**params, "b1": params["b1"] + step}
    np.testing.assert_allclose(np.sum(gradients["b1"]), (loss(moved, x, y) - value) / step, rtol=1e-4)


def test_argnums_and_further_results() -> None:
    params, x, y = arguments()
    both = ml.grad(loss, argnums=(0, -1))(params, x, y)
    assert isinstance(both, tuple) and both[1].shape == y.shape
    gradient, extra = ml.grad(lambda x: (np.sum(x**2), {"twice": 2 * x}), has_aux=True)(x)
    np.testing.assert_array_equal(gradient, extra["twice"])


def test_compiling_inside_and_outside_gives_the_same() -> None:
    params, x, y = arguments()
    inside, outside = ml.grad(ml.compile(loss)), ml.compile(ml.grad(loss))
    for one, other in zip(inside(params, x, y).values(), outside(params, x, y).values()):
        np.testing.assert_array_equal(one, other)


def test_one_example_batched_is_the_whole_batch() -> None:
    params, x, y = arguments()
    per_example = ml.vmap(ml.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    whole = ml.grad(loss)(params, x, y)
    for name, gradient in whole.items():
        np.testing.assert_allclose(per_example[name].mean(0), gradient, rtol=1e-10)


def test_axes_of_batches() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(ml.vmap(lambda a: a.T, in_axes=1, out_axes=-1)(x), np.transpose(x, (2, 0, 1)))
    pairs = ml.vmap(lambda t: t["a"] + t["b"], in_axes=({"a": 0, "b": None},))({"a": x, "b": np.ones(4)})
    np.testing.assert_array_equal(pairs, x + 1)
    twice = ml.vmap(ml.vmap(np.dot, in_axes=(None, 0)), in_axes=(0, None))(np.eye(3), np.ones((2, 3)))
    np.testing.assert_array_equal(twice, np.ones((3, 2)))
    np.testing.assert_array_equal(ml.vmap(lambda: 1.0, axis_size=3)(), np.ones(3))


def test_batched_conditions_and_bounds() -> None:
    def grow(n: Any, x: Any) -> Any:
        total = ml.fori_loop(0, n, lambda i, c: c * x + i, 1.0)
        return ml.while_loop(lambda c: c < 50, lambda c: c * 2 + 1, ml.cond(n > 2, lambda t: -t, lambda t: t, total))

    ns, xs = np.array([1, 2, 5, 0]), np.array([1.0, 2.0, 0.5, 9.0])
    grow_one = ml.compile(grow)
    ns = np.array([1, 2, 2, 0])
    np.testing.assert_array_equal(ml.vmap(grow)(ns, xs), [grow_one(n, x) for n, x in zip(ns, xs)])


def test_batched_places() -> None:
    table, rows = np.arange(12.0).reshape(4, 3), np.array([2, 0, 3])
    np.testing.assert_array_equal(ml.vmap(lambda i, t: t[i], in_axes=(0, None))(rows, table), table[rows])

    def put(i: Any, x: Any) -> Any:
        y = np.zeros((4, 3))
        y[i] = x
        return y

    np.testing.assert_array_equal(ml.vmap(put)(rows, np.ones((3, 3))).sum(2), 3 * np.eye(4)[rows])


def test_vjp_and_linearize_in_and_out_of_compiled_code() -> None:
    x = np.linspace(0, 1, 4)

    def both(x: Any) -> Any:
        y, pull = ml.vjp(np.sin, x)
        _, push = ml.linearize(np.sin, x)
        return pull(np.ones(4))[0], pull(2 * y)[0], push(np.ones(4))

    one, two, three = ml.compile(both)(x)
    np.testing.assert_allclose(one, np.cos(x))
    np.testing.assert_allclose(two, 2 * np.sin(x) * np.cos(x))
    np.testing.assert_allclose(three, np.cos(x))
    y, pull = ml.vjp(np.sin, x)
    np.testing.assert_allclose(y, np.sin(x))
    np.testing.assert_allclose(pull(np.ones(4))[0], np.cos(x))


def test_jacobians() -> None:
    def f(a: Any, b: Any) -> Any:
        return {"sum": a[:2] * b, "outer": np.outer(a, a)}

    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    reverse, forward = ml.jacrev(f, (0, 1))(a, b), ml.jacfwd(f, (0, 1))(a, b)
    assert reverse["outer"][0].shape == (3, 3, 3) and reverse["outer"][1].shape == (3, 3, 2)
    for name in reverse:
        for one, other in zip(reverse[name], forward[name]):
            np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(reverse["sum"][1], np.diag(a[:2]))
    np.testing.assert_allclose(ml.hessian(lambda a: np.sum(a**3))(a), np.diag(6 * a))


def test_arguments_that_do_not_change_are_constants() -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        return np.tanh(a @ b + c)

    rng = np.random.default_rng(0)
    args = tuple(rng.standard_normal((3, 3)) for _ in range(3))
    together = ml.compile(ml.jacfwd(f, (0, 1, 2)))
    for number, found in enumerate(together(*args)):
        np.testing.assert_array_equal(found, ml.jacfwd(f, number)(*args))
    text = together.ir("transform", *args)
    # The product itself, and one for each factor that changes; none with a tangent of zeros.
    assert text.count("linalg.matmul") + text.count("linalg.contract") + text.count("linalg.batch_matmul") <= 5


def test_ties_share_and_dead_branches_are_clean() -> None:
    np.testing.assert_array_equal(ml.grad(lambda x: np.max(x))(np.array([2.0, 1.0, 2.0])), [0.5, 0, 0.5])
    np.testing.assert_array_equal(ml.grad(lambda x: np.sum(np.maximum(x, 2.0)))(np.array([2.0, 3.0])), [0.5, 1])
    np.testing.assert_array_equal(ml.grad(lambda x: np.sum(np.abs(x)))(np.array([-1.0, 0.0, 2.0])), [-1, 0, 1])
    for function in (
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)),
        lambda x: np.sum(np.where(x > 0, np.log(x) * x, 0.0)),
        lambda x: np.sum(np.where(x > 0, x / x, 1.0)),
        lambda x: np.sum(np.where(x > 0, x**0.5, 0.0)),
    ):
        gradient = ml.grad(function)(np.array([0.0, -1.0, 4.0]))
        assert np.all(gradient[:2] == 0) and np.isfinite(gradient[2])


def test_products_with_zeros() -> None:
    for x in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]):
        expected = [x[1] * x[2], x[0] * x[2], x[0] * x[1]]
        np.testing.assert_array_equal(ml.grad(np.prod)(np.array(x)), expected)


def test_stop_gradient() -> None:
    gradient = ml.grad(lambda x: np.sum(x * ml.stop_gradient(x)))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [1.0, 2.0])
    np.testing.assert_array_equal(ml.compile(ml.stop_gradient)(np.array([1.0])), [1.0])


def test_a_function_that_uses_arrays_from_outside() -> None:
    def outer(x: Any, w: Any) -> Any:
        inner = ml.grad(lambda y: np.sum(np.sin(y) * w))(x)
        return np.sum(inner * w)

    x, w = np.linspace(0, 1, 3), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ml.grad(outer, 1)(x, w), 2 * np.cos(x) * w)


def test_f32_stays_f32() -> None:
    gradient = ml.grad(lambda x: np.sum(np.tanh(x) ** 2))(np.ones(3, np.float32))
    assert gradient.dtype == np.float32


@pytest.mark.parametrize("steps", [1, 7])
def test_gradient_in_a_loop(steps: int) -> None:
    def descend(x: Any) -> Any:
        return ml.fori_loop(0, steps, lambda i, x: x - 0.1 * ml.grad(lambda y: np.sum(y**2))(x), x)

    np.testing.assert_allclose(ml.compile(descend)(np.ones(2)), np.full(2, 0.8**steps))
    np.testing.assert_allclose(ml.grad(lambda x: np.sum(descend(x)))(np.ones(2)), np.full(2, 0.8**steps))


def test_what_is_kept_with_a_function_is_not_its_transforms() -> None:
    def cube(x: Any) -> Any:
        return x**3

    first = ml.grad(cube)
    assert ml.jvp(cube, (2.0,), (1.0,))[1] == 12 and first(2.0) == 12
    assert ml.jvp(ml.grad(cube), (2.0,), (1.0,))[1] == 12 and ml.grad(first)(3.0) == 18


def test_a_derivative_of_ones_own() -> None:
    @ml.custom_vjp
    def absolute(x: Any, n: Any) -> Any:
        return np.abs(x) * n

    absolute.defvjp(lambda x, n: (np.abs(x) * n, (x, n)), lambda res, ct: (np.sign(res[0]) * ct * 10, None))
    x = np.array([-1.0, 2.0])
    np.testing.assert_array_equal(absolute(x, 2), [2.0, 4.0])
    np.testing.assert_array_equal(ml.compile(absolute)(x, 2), [2.0, 4.0])
    np.testing.assert_array_equal(ml.grad(lambda x: np.sum(absolute(x, 2) * 3))(x), [-30.0, 30.0])
    both = ml.vmap(ml.grad(lambda x: np.sum(absolute(x, 2))))(np.stack([x, -x]))
    np.testing.assert_array_equal(both, [[-10.0, 10.0], [10.0, -10.0]])
    outside = ml.grad(lambda xs: np.sum(ml.vmap(lambda x: absolute(x, 2))(xs)))(np.stack([x, -x]))
    np.testing.assert_array_equal(outside, both)


def test_second_derivatives_go_through_ones_own() -> None:
    @ml.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x * x * ct,))
    assert ml.grad(ml.grad(cube))(2.0) == 12.0


def test_functions_that_are_computed_again() -> None:
    w = np.linspace(-1, 1, 16).reshape(4, 4)

    def layer(x: Any) -> Any:
        return np.tanh(x @ w) + np.sin(x)

    def network(wrap: Any) -> Any:
        return lambda x: np.sum(wrap(layer)(wrap(layer)(x)) ** 2)

    x = np.linspace(0, 1, 8).reshape(2, 4)
    plain = ml.grad(network(lambda f: f))(x)
    for policy in ("nothing", "contractions"):
        again = ml.grad(network(lambda f, policy=policy: ml.checkpoint(f, policy)))
        np.testing.assert_allclose(again(x), plain, rtol=1e-12)
        text = ml.compile(again).ir("transform", x)
        assert text.count("linalg.matmul") == (4 if policy == "nothing" else 2)
    np.testing.assert_allclose(ml.compile(ml.grad(network(ml.checkpoint)), "reference")(x), plain, rtol=1e-12)


def test_long_loops_keep_the_square_root_of_their_rounds() -> None:
    def walk(x: Any) -> Any:
        return np.sum(ml.fori_loop(0, 1000, lambda i, c: np.sin(c) + 0.1 * x, x))

    x = np.linspace(0, 1, 5)
    plain = ml.compile(ml.grad(walk))
    assert "tensor<1000x5xf64>" in plain.ir("transform", x)
    with ml.config.override(checkpoint_bytes=1000):
        short = ml.compile(ml.grad(walk))
    text = short.ir("transform", x)
    assert "tensor<1000x5xf64>" not in text and "tensor<32x5xf64>" in text
    np.testing.assert_allclose(short(x), plain(x), rtol=1e-12)
    again = ml.compile(ml.grad(lambda x: ml.checkpoint(walk)(x)))
    assert "tensor<1000x5xf64>" not in again.ir("transform", x)
    np.testing.assert_allclose(again(x), plain(x), rtol=1e-12)


def test_loops_without_a_known_bound() -> None:
    def walk(x: Any, n: Any) -> Any:
        return np.sum(ml.fori_loop(0, n, lambda i, c: np.sin(c) * (i + 1) + x, x))

    x = np.linspace(0, 1, 3)
    gradient, twice = ml.compile(ml.grad(walk)), ml.compile(ml.grad(lambda x, n: np.sum(ml.grad(walk)(x, n) ** 2)))
    for n in (0, 1, 7):
        np.testing.assert_allclose(gradient(x, n), ml.grad(lambda x, n=n: walk(x, n))(x), rtol=1e-12)
    expected = ml.grad(lambda x: np.sum(ml.grad(lambda x: walk(x, 4))(x) ** 2))(x)
    np.testing.assert_allclose(twice(x, 4), expected, rtol=1e-12)
    with ml.config.override(checkpoint_bytes=40_000):  # three nested loops
        short = ml.compile(ml.grad(walk))
    np.testing.assert_allclose(short(x, 9), gradient(x, 9), rtol=1e-12)


def test_second_derivatives_of_loops_cut_into_segments() -> None:
    def walk(x: Any) -> Any:
        def outer(i: Any, c: Any) -> Any:
            return ml.fori_loop(0, 5, lambda j, d: np.sin(d) * (1 + 0.1 * x), c) + x

        return ml.fori_loop(0, 30, outer, x)

    with ml.config.override(checkpoint_bytes=16):
        first, second = ml.compile(ml.grad(walk)), ml.compile(ml.grad(ml.grad(walk)))
    np.testing.assert_allclose(first(0.5), ml.grad(walk)(0.5), rtol=1e-12)
    np.testing.assert_allclose(second(0.5), ml.grad(ml.grad(walk))(0.5), rtol=1e-12)


def test_results_that_all_examples_share() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * y, {"shared": np.sin(y), "complex": y * 1j, "known": np.ones(2)}

    x, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0])
    axes = (0, {"shared": None, "complex": None, "known": None})
    product, rest = ml.vmap(f, in_axes=(0, None), out_axes=axes)(x, y)
    np.testing.assert_array_equal(product, x * y)
    np.testing.assert_array_equal(rest["shared"], np.sin(y))
    np.testing.assert_array_equal(rest["complex"], y * 1j)
    np.testing.assert_array_equal(rest["known"], [1, 1])
    inner = ml.vmap(lambda a, b: b * 2, in_axes=(0, None), out_axes=None)
    np.testing.assert_array_equal(ml.vmap(lambda b: inner(x, b))(y), y * 2)
    gradient = ml.grad(lambda b: ml.vmap(lambda a, b: b * b, in_axes=(0, None), out_axes=None)(x[:, 0], b))
    np.testing.assert_array_equal(gradient(3.0), 6)


def test_vmap_maps_arguments_given_by_name_along_their_first_dimension() -> None:
    def shifted(x: Any, y: Any, *, scale: Any, other: Any) -> Any:
        found = np.zeros(3)
        found[:] = x * scale["s"] + y
        return found + other

    x, y, scale = np.arange(6.0).reshape(3, 2), 2.0, {"s": np.array([1.0, 2.0])}
    expected = np.stack([shifted(x[:, i], y, scale={"s": scale["s"][i]}, other=i) for i in range(2)])
    mapped = ml.vmap(shifted, in_axes=(1, None))
    np.testing.assert_array_equal(mapped(x, y, scale=scale, other=np.arange(2)), expected)
    np.testing.assert_array_equal(ml.compile(mapped)(x, y, scale=scale, other=np.arange(2)), expected)
    by_name = ml.vmap(ml.grad(lambda x, k: np.sum(x**2) * k))(x, k=np.arange(3.0))
    np.testing.assert_array_equal(by_name, 2 * x * np.arange(3.0)[:, None])


def test_functions_that_store_into_arrays_they_make() -> None:
    def squares(x: Any) -> Any:
        y = np.zeros(3)
        y[:] = x**2
        y[0] = 1
        return y

    def total(x: Any) -> Any:
        return np.sum(squares(x))

    x, ones = np.array([1.0, 2.0, 3.0]), np.ones(3)
    jacobian = np.diag([0.0, 4.0, 6.0])
    for found in (ml.jacfwd(squares)(x), ml.jacrev(squares)(x), ml.compile(ml.jacfwd(squares))(x)):
        np.testing.assert_array_equal(found, jacobian)
    np.testing.assert_array_equal(ml.hessian(total)(x), np.diag([0.0, 2.0, 2.0]))
    np.testing.assert_array_equal(ml.hvp(total, (x,), (ones,)), [0, 2, 2])
    np.testing.assert_array_equal(ml.grad(total)(x), [0, 4, 6])
    np.testing.assert_array_equal(ml.jvp(squares, (x,), (ones,))[1], [0, 4, 6])
    value, pushed = ml.linearize(squares, x)
    np.testing.assert_array_equal([value, pushed(ones)], [[1, 4, 9], [0, 4, 6]])
    np.testing.assert_array_equal(ml.vmap(squares)(np.stack([x, ones])), [[1, 4, 9], [1, 1, 1]])
    np.testing.assert_array_equal(ml.checkpoint(squares)(x), [1, 4, 9])


def test_arguments_without_arrays_have_gradients_without_arrays() -> None:
    def f(params: Any, x: Any) -> Any:
        return np.sum(x * 2)

    x = np.ones(3)
    assert ml.grad(f)({}, x) == {}
    assert ml.grad(f, argnums=())({}, x) == ()
    assert ml.hessian(f)({}, x) == {}
    assert ml.jacrev(f)({"bias": None}, x) == ml.jacfwd(f)({"bias": None}, x) == {"bias": None}
    np.testing.assert_array_equal(ml.jvp(lambda params: f(params, x), ({},), ({},)), [6, 0])


def test_argnums_may_be_a_number_of_numpys() -> None:
    np.testing.assert_array_equal(ml.grad(np.dot, np.int64(1))(np.arange(3.0), np.ones(3)), [0, 1, 2])


def test_a_result_that_depends_on_no_tangent_has_none() -> None:
    """The gradient of a least element counts those that are equal to it: the number of them has no tangent to sum."""

    def change(x: Any, t: Any) -> Any:
        gradient = ml.grad(lambda x: np.sum(np.min(x, axis=1) ** 2))
        return ml.jvp(gradient, (x,), (t,))[1]

    x = np.array([[3.0, 1.0, 1.0], [5.0, 4.0, 6.0]])
    t = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    np.testing.assert_array_equal(ml.compile(change)(x, t), [[0, 3, 3], [0, 32, 0]])
    text = ml.compile(change).ir("transform", x, t)
    counts = [op for op in text.split("linalg.generic")[1:] if '"reduction"]' in op and "arith.addf" in op]
    assert counts and all(re.search(r"arith.addf %\w+, %(cst\w*)", op) is None for op in counts)


def test_transforms_of_calls_keep_the_loops_of_functions_outside_of_compiled_code() -> None:
    def cooled(x: Any) -> Any:
        for _ in range(50_000):
            x = x * 0.9999 + 0.0001
        return np.sum(x)

    def next_larger(x: Any) -> Any:
        stack, total = [], 0.0
        for i in range(len(x)):
            while stack and stack[-1] < x[i]:
                total += stack.pop() * x[i]
            stack.append(x[i])
        return total

    x, one = np.array([1.0, 3.0, 2.0, 4.0]), np.array([1.0, 0.0, 0.0, 0.0])
    for function, slope in ((cooled, 0.9999**50_000), (next_larger, 3.0)):
        np.testing.assert_allclose(ml.jvp(function, (x,), (one,))[1], slope)
        np.testing.assert_allclose(ml.vjp(function, x)[1](1.0)[0][0], slope)
        np.testing.assert_allclose(ml.linearize(function, x)[1](one), slope)
        np.testing.assert_allclose(ml.hvp(function, (x,), (one,)), [0.0, 0.0 if function is cooled else 1.0, 0.0, 0.0])
