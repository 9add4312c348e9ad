"""What must hold of every program: derivatives against differences and each other, batches against loops.

A check gives arrays to be compared, by name: the first of each is what the others must be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml

Array = Any
Function = Callable[..., Any]
Check = Callable[[Function, Function, Array, Array], dict[str, Any]]
CHECKS: dict[str, Check] = {}
NEAR = (1e-5, 3e-6)
"""How far the points of differences are."""


def check(function: Check) -> Check:
    """Decorator: a check takes a function of an array that gives a float, `compiled`, two arguments, two directions."""
    CHECKS[function.__name__] = function
    return function


def differences(f: Function, x: Array, d: Array) -> Array:
    """How `f` changes along `d` on both sides, near and nearer: alike where `f` is smooth."""
    here = f(x)
    return np.stack([(f(x + h * d) - here) / h for h in (*NEAR, *(-h for h in NEAR))])


def on_line(f: Function, x: Array, d: Array) -> Array:
    """The change along `d` by forward mode."""
    return ml.jvp(f, (x,), (d,))[1]


@check
def first(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    x, d = xs[0], ds[0]
    value, gradient, change = compiled(lambda x, d: (*ml.value_and_grad(f)(x), on_line(f, x, d)))(x, d)
    one, along = compiled(f), np.sum(gradient * d)
    return {"value": [one(x), value], "modes": [along, change], "differences": [along, differences(one, x, d)]}


@check
def second(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def products(x: Array, d: Array) -> Array:
        along = ml.jvp(ml.grad(f), (x,), (d,))[1]
        reverse = ml.grad(lambda x: np.sum(ml.grad(f)(x) * d))(x)
        forward = ml.grad(lambda x: on_line(f, x, d))(x)
        return along, reverse, forward, on_line(lambda x: on_line(f, x, d), x, d)

    along, reverse, forward, twice = compiled(products)(xs[0], ds[0])
    return {
        "products": [along, reverse, forward],
        "along both": [np.sum(along * ds[0]), twice],
        "differences": [along, differences(compiled(ml.grad(f)), xs[0], ds[0])],
    }


@check
def batches(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def many(xs: Array) -> Any:
        inside = ml.vmap(ml.value_and_grad(f), in_axes=-1, out_axes=(0, -1))(np.moveaxis(xs, 0, -1))
        return inside, ml.value_and_grad(lambda xs: np.sum(ml.vmap(f)(xs)))(xs)

    both = compiled(ml.value_and_grad(f))
    singles = [both(x) for x in xs]
    (values, gradients), (total, outside) = compiled(many)(xs)
    value = np.stack([v for v, _ in singles])
    return {
        "values": [value, values],
        "total": [np.sum(value), total],
        "gradients": [np.stack([g for _, g in singles]), np.moveaxis(gradients, -1, 0), outside],
    }


@check
def batches_of_batches(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    many = np.stack([xs, xs[::-1]])
    both = compiled(ml.value_and_grad(f))
    singles = [[both(x) for x in row] for row in many]
    values, gradients = compiled(ml.vmap(ml.vmap(ml.value_and_grad(f), out_axes=(0, -1)), in_axes=0))(many)
    return {
        "values": [np.array([[v for v, _ in row] for row in singles]), values],
        "gradients": [np.array([[g for _, g in row] for row in singles]), np.moveaxis(gradients, -1, 1)],
    }


@check
def forward_batches(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def many(xs: Array, ds: Array) -> Any:
        inside = ml.vmap(lambda x, d: on_line(f, x, d))(xs, ds)
        return inside, on_line(ml.vmap(f), xs, ds), ml.vmap(lambda d: on_line(f, xs[0], d))(ds)

    one = compiled(lambda x, d: on_line(f, x, d))
    inside, outside, shared = compiled(many)(xs, ds)
    return {
        "changes": [np.stack([one(x, d) for x, d in zip(xs, ds)]), inside, outside],
        "shared": [np.stack([one(xs[0], d) for d in ds]), shared],
    }


@check
def forward(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def twice(x: Array, d: Array) -> Array:
        return on_line(lambda x: on_line(f, x, d), x, d)

    x, d = xs[0], ds[0]
    one, change = compiled(f), compiled(lambda x, d: on_line(f, x, d))
    many, curved = compiled(lambda xs, ds: ml.vmap(twice)(xs, ds))(xs, ds), compiled(twice)
    first, second = change(x, d), curved(x, d)
    return {
        "derivative": [np.sum(compiled(ml.jacfwd(f))(x) * d), first],
        "differences": [np.array([first, second]), differences(lambda x: np.array([one(x), change(x, d)]), x, d)],
        "second": [np.stack([curved(x, d) for x, d in zip(xs, ds)]), many],
    }


@check
def second_batches(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def product(x: Array, d: Array) -> Array:
        return ml.hvp(f, (x,), (d,))

    def many(xs: Array, ds: Array) -> Any:
        return ml.vmap(product)(xs, ds), ml.grad(lambda xs: np.sum(ml.vmap(ml.grad(f))(xs) * ds))(xs)

    one = compiled(product)
    return {"products": [np.stack([one(x, d) for x, d in zip(xs, ds)]), *compiled(many)(xs, ds)]}


@check
def forms(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def all_ways(x: Array, d: Array) -> Any:
        ways = [f, ml.checkpoint(ml.compile(f)), ml.checkpoint(f, "contractions")]
        return [ml.value_and_grad(way)(x) for way in ways], [ml.hvp(way, (x,), (d,)) for way in ways[:2]]

    firsts, products = compiled(all_ways)(xs[0], ds[0])
    with ml.config.override(checkpoint_bytes=400_000):
        firsts = [*firsts, compiled(ml.value_and_grad(f))(xs[0])]
    return {"values": [v for v, _ in firsts], "gradients": [g for _, g in firsts], "products": products}


@check
def arguments(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def of_tree(p: Any, n: Any, y: Array) -> Any:
        value = f(p["a"] * np.cos(y) + p["rest"][0])
        return value * n, {"value": value, "n": n}

    def all_ways(tree: Any, y: Array, ds: Array) -> Any:
        def total(p: Any, y: Array) -> Array:
            return of_tree(p, 2, y)[0]

        change = ml.jvp(total, (tree, y), ({"a": ds[0], "rest": (ds[1],)}, ds[0]))
        return ml.grad(of_tree, argnums=(0, -1), has_aux=True)(tree, 2, y), change

    tree, y = {"a": xs[0], "rest": (0.3 * xs[1],)}, xs[1]
    ((one, of_y), extra), (total, change) = compiled(all_ways)(tree, y, ds)
    slope = compiled(ml.grad(f))(xs[0] * np.cos(y) + 0.3 * xs[1]) * 2
    return {
        "a": [slope * np.cos(y), one["a"]],
        "rest": [slope, one["rest"][0]],
        "y": [-slope * xs[0] * np.sin(y), of_y],
        "aux": [extra["value"] * 2, total],
        "change": [np.sum(one["a"] * ds[0]) + np.sum(one["rest"][0] * ds[1]) + np.sum(of_y * ds[0]), change],
    }


@check
def jacobians(f: Function, compiled: Function, xs: Array, ds: Array) -> dict[str, Any]:
    def both(x: Array) -> Any:
        gradient = ml.grad(lambda t: f(t.reshape(xs.shape[1:])))
        return ml.jacfwd(gradient)(x), ml.jacrev(gradient)(x)

    forward, reverse = compiled(both)(np.ravel(xs[0]))
    return {"matrices": [forward, reverse, forward.T]}


def wrong(found: dict[str, Any]) -> list[str]:
    """What does not hold."""
    lines = []
    for name, (expected, *others) in found.items():
        scale = 1 + np.max(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=0)
        for number, other in enumerate(others):
            if name == "differences":
                if not np.isfinite(other).all() or np.ptp(other, axis=0).max(initial=0) > 1e-3 * scale:
                    continue  # not smooth here
                good = np.allclose((other[1] + other[3]) / 2, expected, rtol=0, atol=3e-5 * scale)
            else:
                good = np.allclose(other, expected, rtol=0, atol=1e-8 * scale, equal_nan=True)
            if not good:
                lines.append(f"{name} {number}: {other} instead of {expected}")
    return lines
