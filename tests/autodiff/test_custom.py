"""Functions whose users give their derivatives: in both modes, batched, nested, in loops, and called by their rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

X = np.linspace(0.1, 1, 4)


@ml.custom_jvp
def tenfold(x: Any) -> Any:
    """A sine, whose derivative is told to be ten times what it is."""
    return np.sin(x)


@tenfold.defjvp
def tenfold_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return tenfold(x), 10 * np.cos(x) * t


@ml.custom_vjp
def backwards(x: Any) -> Any:
    """The same for reverse mode; what goes forward calls the function itself."""
    return np.sin(x)


backwards.defvjp(lambda x: (backwards(x), x), lambda x, ct: (10 * np.cos(x) * ct,))


def test_the_rule_is_used_in_both_modes() -> None:
    np.testing.assert_array_equal(ml.compile(tenfold)(X), np.sin(X))
    np.testing.assert_array_equal(tenfold(X), np.sin(X))
    value, change = ml.jvp(tenfold, (X,), (2 * np.ones(4),))
    np.testing.assert_allclose(value, np.sin(X))
    np.testing.assert_allclose(change, 20 * np.cos(X))
    np.testing.assert_allclose(ml.grad(lambda x: np.sum(tenfold(2 * x) * 3))(X), 60 * np.cos(2 * X))


@pytest.mark.parametrize("function", [tenfold, backwards])
def test_batches_inside_and_outside(function: Callable[..., Any]) -> None:
    expected = 10 * np.cos(X)
    np.testing.assert_allclose(ml.vmap(ml.grad(function))(X), expected)
    np.testing.assert_allclose(ml.grad(lambda x: np.sum(ml.vmap(function)(x)))(X), expected)
    shared = ml.vmap(lambda c: ml.grad(lambda x: function(x) * c)(0.5))(X)
    np.testing.assert_allclose(shared, 10 * np.cos(0.5) * X)


def test_derivatives_of_derivatives_use_the_rule_again() -> None:
    second, third = -10 * np.sin(0.5), -10 * np.cos(0.5)
    gradient = ml.grad(tenfold)
    np.testing.assert_allclose(ml.grad(gradient)(0.5), second)
    np.testing.assert_allclose(ml.jvp(gradient, (0.5,), (1.0,))[1], second)
    np.testing.assert_allclose(ml.grad(lambda x: ml.jvp(tenfold, (x,), (1.0,))[1])(0.5), second)
    np.testing.assert_allclose(ml.jvp(lambda x: ml.jvp(tenfold, (x,), (1.0,))[1], (0.5,), (1.0,))[1], second)
    np.testing.assert_allclose(ml.hessian(lambda x: np.sum(tenfold(x)))(X), np.diag(-10 * np.sin(X)), atol=1e-12)
    np.testing.assert_allclose(ml.grad(ml.grad(gradient))(0.5), third)
    np.testing.assert_allclose(ml.grad(ml.grad(backwards))(0.5), second)


def test_forward_mode_goes_through_a_function_with_a_rule_for_reverse_mode() -> None:
    np.testing.assert_allclose(ml.jvp(backwards, (X,), (np.ones(4),))[1], np.cos(X))
    mixed = ml.grad(lambda x: np.sum(ml.jvp(backwards, (x,), (x * x,))[1]))(X)
    np.testing.assert_allclose(mixed, 2 * X * np.cos(X) - X * X * np.sin(X))


def test_the_result_of_the_function_has_the_rules_second_derivative() -> None:
    @ml.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    # Told wrong on purpose: the value of a rule that calls the function goes by the rule at the next order.
    square.defjvp(lambda p, t: (square(*p), 5 * square(*p) * t[0]))
    np.testing.assert_allclose(ml.grad(square)(3.0), 45.0)
    np.testing.assert_allclose(ml.grad(ml.grad(square))(3.0), 5 * 45.0)


def test_in_loops_branches_and_what_is_computed_again() -> None:
    def loop(x: Any) -> Any:
        return ml.fori_loop(0, 3, lambda i, c: tenfold(c) * 2, x)

    c, slope = 0.5, 1.0
    for _ in range(3):
        c, slope = 2 * np.sin(c), slope * 20 * np.cos(c)
    np.testing.assert_allclose(ml.grad(loop)(0.5), slope)
    np.testing.assert_allclose(ml.jvp(loop, (0.5,), (1.0,))[1], slope)
    for function in (tenfold, backwards):
        again = ml.grad(lambda x, f=function: np.sum(ml.checkpoint(lambda x: f(f(x)))(x) * 2))
        np.testing.assert_allclose(again(X), 200 * np.cos(np.sin(X)) * np.cos(X))
        branch = ml.grad(lambda x, f=function: ml.cond(x > 0, f, np.cos, x))
        np.testing.assert_allclose([branch(0.5), branch(-0.5)], [10 * np.cos(0.5), np.sin(0.5)])


def test_pytrees_and_arguments_without_tangents() -> None:
    @functools.partial(ml.custom_jvp, nondiff_argnums=(0, 2))
    def applied(function: Any, state: Any, scale: Any, n: Any) -> Any:
        return {"value": function(state["x"]) * scale + state["y"], "count": n + 1}

    @applied.defjvp
    def _(function: Any, scale: Any, primals: Any, tangents: Any) -> Any:
        (state, n), (moves, no_move) = primals, tangents
        assert no_move.shape == ()
        change = np.cos(state["x"]) * moves["x"] * scale * 100 + moves["y"]
        return applied(function, state, scale, n), {"value": change, "count": 0}

    def total(state: Any) -> Any:
        found = applied(np.sin, state, 2.0, n=3)
        return np.sum(found["value"]) * found["count"]

    state = {"x": X, "y": X}
    gradient = ml.grad(total)(state)
    np.testing.assert_allclose(gradient["x"], 4 * 200 * np.cos(X))
    np.testing.assert_allclose(gradient["y"], np.full(4, 4.0))


def test_a_rule_that_loops_over_tangents() -> None:
    @ml.custom_jvp
    def power(x: Any) -> Any:
        return x**8

    @power.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        def twice(i: Any, c: Any) -> Any:
            return c[0] * c[0], 2 * c[0] * c[1]

        return ml.fori_loop(0, 3, twice, (primals[0], tangents[0]))

    np.testing.assert_allclose(ml.grad(lambda x: np.sum(power(x)))(X), 8 * X**7)
    np.testing.assert_allclose(ml.grad(ml.grad(power))(0.5), 56 * 0.5**6)


def test_a_rule_for_each_argument() -> None:
    @ml.custom_jvp
    def product(x: Any, y: Any, n: Any) -> Any:
        return x * y * n

    product.defjvps(lambda t, result, x, y, n: t * y * n, lambda t, result, x, y, n: 7 * t, None)
    one, other = ml.grad(product, (0, 1))(2.0, 3.0, 4)
    assert (one, other) == (12, 7)


def test_what_nobody_differentiates_leaves_nothing() -> None:
    text = ml.compile(lambda x: tenfold(x) + backwards(x)).ir("capture", X)
    assert "mlirml.custom" not in text and "cos" not in text
    kept = ml.compile(ml.grad(lambda x: np.sum(tenfold(x)))).ir("transform", X)
    assert "mlirml.custom" not in kept


def both(x: Any, y: Any) -> Any:
    return np.sin(x) * y, np.cos(x) + y


def both_tangents(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return both(x, y), (np.cos(x) * y * dx + np.sin(x) * dy, dy - np.sin(x) * dx)


@pytest.mark.parametrize("kind", ["custom_jvp", "checkpoint"])
def test_numbers_among_several_results_are_read_one_by_one(kind: str) -> None:
    # What reads the first number stands in front of the second one, in the order that canonicalization leaves.
    if kind == "custom_jvp":
        pair: Any = ml.custom_jvp(both)
        pair.defjvp(both_tangents)
    else:
        pair = ml.checkpoint(both)

    def loop(f: Callable[..., Any], weight: float, x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            first, second = f(c, x[i])
            return first * weight + second * (1 - weight)

        return ml.fori_loop(0, 3, body, 0.5)

    x = np.array([0.5, -0.3, 1.2])
    for weight in (0.0, 0.3, 1.0):
        own, plain = (functools.partial(loop, f, weight) for f in (pair, both))
        np.testing.assert_allclose(ml.grad(own)(x), ml.grad(plain)(x), rtol=1e-12)
        np.testing.assert_allclose(ml.hessian(own)(x), ml.hessian(plain)(x), rtol=1e-11, atol=1e-13)


def test_a_fixed_point_of_a_function_that_is_given() -> None:
    @functools.partial(ml.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f: Callable[..., Any], a: Any, start: Any) -> Any:
        def going(c: Any) -> Any:
            return np.max(np.abs(c[0] - c[1])) > 1e-13

        return ml.while_loop(going, lambda c: (c[1], f(a, c[1])), (start, f(a, start)))[1]

    def forward(f: Callable[..., Any], a: Any, start: Any) -> Any:
        found = fixed_point(f, a, start)
        return found, (a, found)

    def backward(f: Callable[..., Any], kept: Any, cotangent: Any) -> Any:
        a, found = kept
        by_x = ml.vjp(lambda x: f(a, x), found)[1]
        solved = fixed_point(lambda c, u: c + by_x(u)[0], cotangent, cotangent)
        return ml.vjp(lambda a: f(a, found), a)[1](solved)[0], np.zeros_like(found)

    fixed_point.defvjp(forward, backward)

    def root(a: Any) -> Any:
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    np.testing.assert_allclose(ml.grad(root)(2.0), 0.5 / 2**0.5, rtol=1e-12)
    np.testing.assert_allclose(ml.vmap(ml.grad(root))(X), 0.5 / X**0.5, rtol=1e-12)


def test_arguments_of_a_checkpoint_that_are_no_arrays_or_have_names() -> None:
    def layer(f: Callable[..., Any], x: Any, *, scale: Any, mode: str) -> Any:
        return f(x * scale) if mode == "scaled" else f(x)

    def loss(x: Any, s: Any) -> Any:
        return np.sum(ml.checkpoint(layer)(np.sin, x, scale=s, mode="scaled"))

    found = ml.grad(loss, (0, 1))(X, 2.0)
    np.testing.assert_allclose(found[0], 2 * np.cos(2 * X), rtol=1e-13)
    np.testing.assert_allclose(found[1], np.sum(X * np.cos(2 * X)), rtol=1e-13)


def test_results_and_tangents_may_be_views() -> None:
    @ml.custom_jvp
    def product(a: Any) -> Any:
        return a[0] * a[1], a[0]

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (a,), (d,) = primals, tangents
        whole = np.stack([a[1] * d[0] + a[0] * d[1], d[0]])
        return (a[0] * a[1], a[0]), (whole[0], whole[1])

    a, d = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    _, (first, second) = ml.compile(lambda a, d: ml.jvp(product, (a,), (d,)))(a, d)
    np.testing.assert_allclose(first, a[0] + a[1])
    np.testing.assert_allclose(second, d[0])
    gradient = ml.compile(ml.grad(lambda a: np.sum(product(a)[0]) + 3 * np.sum(product(a)[1])))(a)
    np.testing.assert_allclose(gradient, [a[1] + 3, a[0]])


def test_cotangents_may_be_views() -> None:
    @ml.custom_vjp
    def parts(a: Any, b: Any) -> Any:
        return a[0] * b, a[1]

    def forward(a: Any, b: Any) -> Any:
        whole = np.stack([a[0] * b, a[1]])
        return (whole[0], whole[1]), (a, b)

    def backward(kept: Any, cotangents: Any) -> Any:
        a, b = kept
        whole = np.stack([cotangents[0] * b, cotangents[1], cotangents[0] * a[0]])
        return whole[:2], whole[2]

    parts.defvjp(forward, backward)
    a, b = np.arange(6.0).reshape(2, 3), np.array([2.0, 3.0, 5.0])
    loss = lambda a, b: np.sum(parts(a, b)[0] ** 2) + np.sum(parts(a, b)[1] ** 3)  # noqa: E731
    of_a, of_b = ml.compile(ml.grad(loss, (0, 1)))(a, b)
    np.testing.assert_allclose(of_a, [2 * a[0] * b**2, 3 * a[1] ** 2])
    np.testing.assert_allclose(of_b, 2 * a[0] ** 2 * b)


def quotient() -> Any:
    """b / a by a rule that calls the function itself, with a constant."""

    @ml.custom_jvp
    def divided(a: Any, b: Any) -> Any:
        return b / a

    @divided.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        x = divided(a, b)
        return x, divided(a, np.ones(3)) * (db - da * x)

    return divided


def test_constants_in_rules_of_rules_have_no_tangent() -> None:
    divided, a, d = quotient(), np.array([2.0, 3.0, 4.0]), np.array([1.0, 0.5, 0.2])

    def along(f: Any) -> Any:
        return lambda x: ml.jvp(f, (x,), (d,))[1]

    f, plain = (lambda a: np.sum(divided(a, np.full(3, 2.0)) ** 2)), (lambda a: np.sum((2 / a) ** 2))
    for transform in (along, lambda f: along(along(f)), lambda f: along(along(along(f))), ml.grad):
        found, expected = ml.compile(transform(f))(a), ml.compile(transform(plain))(a)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_contractions_that_a_rule_has_are_not_kept() -> None:
    a = np.random.default_rng(0).standard_normal((3, 3)) + 4 * np.eye(3)

    @ml.custom_jvp
    def cubed(a: Any) -> Any:
        return a @ a @ a

    @cubed.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (a,), (d,) = primals, tangents
        return cubed(a), d @ a @ a + a @ d @ a + a @ a @ d

    for f in (cubed, np.linalg.inv, lambda a: np.linalg.solve(a, a[0]), lambda a: a @ np.tanh(a)):
        expected = ml.compile(ml.grad(lambda a, f=f: np.sum(f(a) ** 2)))(a)
        kept = ml.checkpoint(lambda a, f=f: np.sum(f(a) ** 2), "contractions")
        np.testing.assert_allclose(ml.compile(ml.grad(kept))(a), expected, rtol=1e-9)
        np.testing.assert_allclose(ml.compile(ml.vmap(ml.grad(kept)))(a[None])[0], expected, rtol=1e-9)


def test_a_rule_with_a_loop_that_reads_one_number_is_differentiated_again() -> None:
    """The number is read before the rule begins; it was a constant of second derivatives."""

    @ml.custom_jvp
    def quarter(a: Any, b: Any) -> Any:
        return a**4 / 4 + 0 * b

    @quarter.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        a, b = primals
        cube = ml.fori_loop(0, 3, lambda i, c: c * a, 1.0)
        return quarter(a, b), cube * tangents[0]

    a, b = np.float64(1.5), np.float64(2.0)
    assert float(ml.grad(ml.grad(quarter))(a, b)) == pytest.approx(3 * 1.5**2)
    twice = ml.jvp(lambda a: ml.jvp(lambda a: quarter(a, b), (a,), (1.0,))[1], (a,), (1.0,))[1]
    assert float(twice) == pytest.approx(3 * 1.5**2)


def test_forward_mode_drops_what_depends_on_zero_tangents_only() -> None:
    @ml.custom_jvp
    def product(a: Any, b: Any) -> Any:
        return a * b

    @product.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        return product(a, b), b * da + np.sin(a) * db

    def f(a: Any, b: Any) -> Any:
        return ml.jvp(lambda a: product(a, b), (a,), (1.0,))[1]

    assert "math.sin" not in ml.compile(f).ir("optimize", 2.0, 3.0) and float(f(2.0, 3.0)) == 3
    assert float(ml.jvp(product, (2.0, 3.0), (0.0, 1.0))[1]) == pytest.approx(np.sin(2.0))


@pytest.mark.parametrize(
    "tangent",
    [
        lambda p, t: t[0] * t[0],
        lambda p, t: t[0] * t[1],
        lambda p, t: np.abs(t[0]),
        lambda p, t: np.where(t[0] > 0, t[0], 0.0),
        lambda p, t: np.sum(t[0]) * t[1] * p[0],
    ],
    ids=["square", "product", "absolute", "condition", "sum"],
)
def test_a_rule_that_is_not_linear_in_the_tangents_is_refused(tangent: Callable[..., Any]) -> None:
    """Reverse mode transposes the rule: the gradient would be that of tangents that are zero."""

    @ml.custom_jvp
    def function(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    function.defjvp(lambda primals, tangents: (np.sin(primals[0]) * primals[1], tangent(primals, tangents)))
    gradient = ml.grad(lambda x, y: np.sum(function(x, y)), (0, 1))
    with pytest.raises(ml.errors.NoDerivativeError, match="is not linear in the tangents") as raised:
        gradient(np.arange(3.0), np.ones(3))
    assert raised.value.location is not None


def test_a_rule_whose_factors_depend_on_the_primals_is_linear() -> None:
    @ml.custom_jvp
    def function(x: Any, y: Any) -> Any:
        return np.where(x > 1, x, y)

    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        total = dx * 0
        for k in range(3):
            total = total * x + np.cumsum(dx) * k
        return function(x, y), np.where(x > 1, total, dy * np.sum(y))

    function.defjvp(rule)
    x, y = np.arange(4.0), np.ones(4)
    gradients = ml.grad(lambda x, y: np.sum(function(x, y)), (0, 1))(x, y)
    columns = [ml.jvp(function, (x, y), (unit, np.zeros(4)))[1].sum() for unit in np.eye(4)]
    np.testing.assert_allclose(gradients[0], columns)
    np.testing.assert_allclose(gradients[1], [4.0, 4.0, 0.0, 0.0])


def test_a_rule_with_a_loop_that_carries_numbers_and_tangents_is_linear() -> None:
    """Only the numbers decide when the loop ends."""

    @ml.custom_jvp
    def root(a: Any) -> Any:
        return np.sqrt(a)

    def rule(primals: Any, tangents: Any) -> Any:
        (a,), (da,) = primals, tangents
        x, dx = a, da
        while abs(x * x - a) > 1e-12 * a:
            dx = 0.5 * (dx + da / x - a * dx / (x * x))
            x = 0.5 * (x + a / x)
        return x, dx

    root.defjvp(rule)
    for a in (2.0, 9.0, 1e4):
        np.testing.assert_allclose(ml.grad(lambda a: root(a) * 3)(a), 1.5 / np.sqrt(a))
        np.testing.assert_allclose(ml.jvp(root, (a,), (1.0,))[1], 0.5 / np.sqrt(a))
