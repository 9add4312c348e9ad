"""More steps of random programs: loops, branches, loops over elements, and transforms of transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.autodiff.random_arrays import matrix, places, resized
from tests.autodiff.random_programs import UNTIL, bounded, softsign, step, unary

Array = Any


def smooth(t: Array) -> Array:
    """A function whose derivatives of all orders differ from zero."""
    return np.sin(t) * np.exp(0.3 * t)


def energy(t: Array) -> Array:
    """A float of an array of any shape, in which all elements have to do with each other."""
    return np.sum(np.cos(t) * np.sum(np.tanh(t)))


unary(
    compiled=lambda a: ml.compile(smooth)(a),
    gradient_of_compiled=lambda a: ml.grad(ml.compile(energy))(a) * 0.5,
    compiled_gradient=lambda a: ml.compile(ml.grad(energy))(a) * 0.5,
    twice=lambda a: ml.grad(lambda t: np.sum(ml.grad(energy)(t) * np.cos(t)))(a) * 0.3,
    curvature=lambda a: ml.hvp(energy, (a,), (np.sin(a),)) * 0.3,
    matrix_of_second=lambda a: ml.hessian(energy)(np.ravel(a)[:3]) * 0.5,
    columns=lambda a: ml.jacfwd(lambda t: smooth(t) * np.sum(t))(np.ravel(a)[:3]),
    rows_of=lambda a: ml.jacrev(lambda t: smooth(t) * np.sum(t))(np.ravel(a)[:3]),
    pulled=lambda a: ml.vjp(lambda t: t * np.sum(np.sin(t)), a)[1](np.cos(a))[0] * 0.5,
    linear=lambda a: ml.linearize(lambda t: t * np.sum(np.sin(t)), a)[1](np.cos(a)) * 0.5,
    gradients_of_all=lambda a: ml.vmap(ml.grad(smooth))(np.ravel(a)),
    all_second=lambda a: ml.vmap(ml.grad(ml.grad(smooth)))(np.ravel(a)),
    gradient_of_sum=lambda a: ml.grad(lambda t: np.sum(ml.vmap(smooth)(t) * t))(np.ravel(a)),
    again_products=lambda a: ml.checkpoint(lambda m: np.tanh(m @ np.sin(m.T)), "contractions")(matrix(a)),
    again_loop=lambda a: ml.checkpoint(lambda t: ml.fori_loop(0, 4, lambda i, c: np.sin(c + t) * 1.1, t))(a),
    again_within=lambda a: ml.checkpoint(lambda t: smooth(ml.checkpoint(smooth)(t)))(a),
    batched_custom=lambda a: ml.vmap(softsign)(np.ravel(a)) - ml.vmap(bounded)(np.ravel(a)),
    slope_of_custom=lambda a: ml.grad(lambda t: np.sum(softsign(t) ** 2 + bounded(t) * t))(a),
)


@step("batches of batches")
def _batches(a: Array, b: Array, draw: int) -> Array:
    x, y = resized(a, 2, 3), resized(b, 3, 2)
    one = ml.vmap(lambda s, t: np.dot(s, t) * np.sin(s), in_axes=(None, 1 - draw % 2), out_axes=draw // 2 % 2)
    return ml.vmap(one, in_axes=(draw // 4 % 2, None))(resized(x, 2, 2), y[:2])


@step("batched tree")
def _batched_tree(a: Array, b: Array, draw: int) -> Array:
    def f(t: Any, s: Any) -> Any:
        return {"one": t["x"] * np.sum(t["y"]), "two": (np.cos(s) * t["x"], s)}

    data = {"x": resized(a, 3, 2), "y": resized(b, 2, 3)}
    axes = {"one": 1, "two": (0, None)}
    found = ml.vmap(f, in_axes=({"x": 0, "y": 1}, None), out_axes=axes)(data, resized(b, 2))
    return found["one"].T * found["two"][0] + found["two"][1]


@step("batched branch")
def _batched_branch(a: Array, b: Array, draw: int) -> Array:
    def f(t: Array, s: Array) -> Array:
        return ml.cond(s > 0.1, lambda t: np.sin(t) * s, lambda t: np.sqrt(np.abs(t) + 0.2) - s, t)

    return ml.vmap(f, in_axes=(0, 0))(resized(a, 4), resized(b, 4))


@step("batched switch")
def _batched_switch(a: Array, b: Array, draw: int) -> Array:
    def f(t: Array, n: Array) -> Array:
        return ml.switch(n, [lambda t: np.sin(t), lambda t: t * t * 0.4, lambda t: np.sum(t) * np.ones(2)], t)

    return ml.vmap(f)(resized(a, 3, 2), places(b, 3) % 3)


@step("batched rounds")
def _batched_rounds(a: Array, b: Array, draw: int) -> Array:
    def f(t: Array, n: Array) -> Array:
        return ml.fori_loop(0, n, lambda i, c: np.sin(c * 1.2 + 0.1 * i) + t * 0.3, t)

    return ml.vmap(f)(resized(a, 3), places(b, 3) % 4)


@step("batched scan")
def _batched_scan(a: Array, b: Array, draw: int) -> Array:
    def f(t: Array, s: Array) -> Array:
        last, rows = ml.scan(lambda c, x: (np.tanh(c * s + x), c * x), s, t)
        return rows + last

    return ml.vmap(f, in_axes=(1 if draw % 2 else 0, None))(resized(a, 3, 3), np.sin(np.sum(b)))


@step("scanned tree")
def _scanned_tree(a: Array, b: Array, draw: int) -> Array:
    def f(c: Any, x: Any) -> Any:
        new = {"u": np.tanh(c["u"] + x["p"] * c["v"]), "v": c["u"] * 0.5, "n": c["n"] + 1}
        return new, (new["u"] * new["n"] * 0.3, x["q"] + c["v"])

    init = {"u": resized(b, 2), "v": np.ones(2) * 0.4, "n": 0}
    last, (one, other) = ml.scan(f, init, {"p": resized(a, 3, 2), "q": resized(np.cos(a), 3)}, reverse=bool(draw % 2))
    return one * last["u"] + other * last["n"] * 0.1


@step("scan of gradients")
def _scan_of_gradients(a: Array, b: Array, draw: int) -> Array:
    def f(c: Array, x: Array) -> Any:
        moved = c - 0.2 * ml.grad(lambda t: np.sum(np.sin(t) * x + 0.1 * t**3))(c)
        return moved, np.sum(moved)

    return ml.scan(f, np.tanh(resized(b, 2)), resized(a, 3, 2))[1]


@step("checkpointed scan")
def _checkpointed_scan(a: Array, b: Array, draw: int) -> Array:
    policy = ("nothing", "contractions")[draw % 2]
    w = np.sin(resized(b, 2, 2))
    body = ml.checkpoint(lambda c, x: (np.tanh(c @ w + x), np.sum(c * x)), policy)
    last, rows = ml.scan(body, np.cos(resized(a, 2)), resized(a, 4, 2))
    return np.append(rows, last)


@step("loop of custom")
def _loop_of_custom(a: Array, b: Array, draw: int) -> Array:
    body = ml.checkpoint(softsign) if draw % 2 else softsign
    return ml.fori_loop(0, 3, lambda i, c: body(c + 0.2 * i) * 1.5 + bounded(c * np.cos(np.sum(b))), a)


@step("exchanged")
def _exchanged(a: Array, b: Array, draw: int) -> Array:
    x, y = ml.fori_loop(0, draw % 4, lambda i, c: (c[1] * 0.9, np.sin(c[0])), (resized(a, 3), resized(b, 3)))
    return x * 0.7 + y * y


@step("stored rounds")
def _stored_rounds(a: Array, b: Array, draw: int) -> Array:
    x, begin = resized(a, 4), draw % 2

    def body(i: Any, y: Array) -> Array:
        y[i] = np.sin(y[i - 1]) * x[3 - i] + 0.1 * y[i]
        return y

    return ml.fori_loop(begin, 4, body, np.cos(resized(b, 4)))


@step("own walk")
def _own_walk(a: Array, b: Array, draw: int) -> Array:
    x, at = resized(a, 5), places(b, 3) % 5

    def body(i: Any, c: Any) -> Any:
        total, here = c
        return np.tanh(total + x[here]), (here + at[i]) % 5

    return ml.fori_loop(0, 3, body, (np.sum(b) * 0.1, at[0]))[0] * a


@step("counted")
def _counted(a: Array, b: Array, draw: int) -> Array:
    # The rounds of the `while` depend on integers alone: nothing in it is differentiated.
    number = places(b, 1)[0] % 7
    steps = ml.while_loop(lambda c: c[0] > 1, lambda c: (c[0] // 2, c[1] + 1), (number, 0))[1]
    return ml.fori_loop(0, steps + 1, lambda i, c: np.sin(c) + 0.3, a)


@step("nested branches")
def _nested_branches(a: Array, b: Array, draw: int) -> Array:
    def body(i: Any, c: Array) -> Array:
        return ml.cond(i % 2 == 0, lambda c: np.sin(c) * a, lambda c: ml.cond(np.sum(c) > 0, np.cos, np.tanh, c), c)

    return ml.fori_loop(0, 3, body, a * np.cos(np.sum(b)))


@step("branch of loops")
def _branch_of_loops(a: Array, b: Array, draw: int) -> Array:
    def loop(t: Array) -> Array:
        return ml.fori_loop(0, 2 + draw % 2, lambda i, c: np.sin(c + a) * (i + 0.5), t)

    return ml.cond(np.sum(b) > 0.21, loop, lambda t: np.sort(np.ravel(t))[::-1].reshape(t.shape) * 0.5, a)


def parts(x: Any, y: Any) -> Any:
    """Several results, of which programs read some."""
    return np.sin(x) * y, {"sum": np.cos(x) + y, "same": x * 0.5}


parts_by_tangents = ml.custom_jvp(parts)
parts_backwards = ml.custom_vjp(parts)


@parts_by_tangents.defjvp
def _tangents_of_parts(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return parts_by_tangents(x, y), (
        np.cos(x) * y * dx + np.sin(x) * dy,
        {"sum": dy - np.sin(x) * dx, "same": dx * 0.5},
    )


def _cotangents_of_parts(kept: Any, ct: Any) -> Any:
    x, y = kept
    return np.cos(x) * y * ct[0] - np.sin(x) * ct[1]["sum"] + 0.5 * ct[1]["same"], np.sin(x) * ct[0] + ct[1]["sum"]


parts_backwards.defvjp(lambda x, y: (parts(x, y), (x, y)), _cotangents_of_parts)


@step("loop of parts")
def _loop_of_parts(a: Array, b: Array, draw: int) -> Array:
    f = (parts_by_tangents, parts_backwards, ml.checkpoint(parts), ml.checkpoint(parts_by_tangents))[draw % 4]
    numbers = draw // 16 % 2
    x, start = (resized(b, 3), np.sum(a) * 0.1) if numbers else (resized(b, 3, 3), resized(a, 3))

    def body(i: Any, c: Any) -> Any:
        first, rest = f(c, x[i])
        return (first, rest["sum"] * 0.4, first + rest["same"], rest["sum"] * rest["same"])[draw // 4 % 4]

    return ml.fori_loop(0, 3, body, start) * np.ravel(a)[0]


@step("unused")
def _unused(a: Array, b: Array, draw: int) -> Array:
    kept, dropped = ml.fori_loop(0, 3, lambda i, c: (c[0] * 0.8 + 0.1, np.sin(c[1] * np.sum(c[0]))), (a, np.sum(b)))
    return kept if draw % 2 else kept * dropped


@ml.loops
def prefix(x: Array, y: Array) -> None:
    """Sums in front of each place, stored."""
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[i] += x[j] * x[i - j]


@ml.loops
def smoothed(x: Array, rounds: Any) -> None:
    """Sweeps in place."""
    for _ in range(rounds):
        for i in range(1, x.shape[0] - 1):
            x[i] = 0.4 * x[i - 1] + 0.3 * x[i] * x[i + 1]


@ml.loops
def product(a: Array, b: Array, c: Array) -> None:
    """A product of matrices whose terms are kept from becoming large."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += np.sin(a[i, k]) * b[k, j]


@ml.loops
def substitution(m: Array, x: Array) -> None:
    """Forward substitution."""
    for i in range(x.shape[0]):
        for j in range(i):
            x[i] -= m[i, j] * x[j]
        x[i] /= 2 + m[i, i] * m[i, i]


@ml.loops
def largest(x: Array) -> Array:
    """The largest element, and what a branch makes of the others."""
    best, total = x[0], 0.0
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            if best > 1e9:
                raise ValueError("too large")
        elif x[i] < 0:
            total += x[i] * x[i]
        else:
            total -= np.sin(x[i])
    return best + 0.3 * total


@step("prefix loop")
def _prefix(a: Array, b: Array, draw: int) -> Array:
    y = np.sin(resized(b, 4))
    prefix(resized(a, 4), y)
    return y * 0.5


@step("smoothing loop")
def _smoothing(a: Array, b: Array, draw: int) -> Array:
    x = np.append(np.tanh(np.ravel(a)[:5]), np.ravel(b)[:1])
    smoothed(x, draw % 4)
    return x


@step("product loop")
def _product(a: Array, b: Array, draw: int) -> Array:
    c = np.zeros_like(a, shape=(2, 3))
    product(resized(a, 2, 3), resized(b, 3, 3), c)
    return c * 0.6


@step("substitution loop")
def _substitution(a: Array, b: Array, draw: int) -> Array:
    x = np.cos(resized(b, 3))
    substitution(np.tanh(resized(a, 3, 3)), x)
    return x


@step("largest loop")
def _largest(a: Array, b: Array, draw: int) -> Array:
    return largest(np.ravel(a)) * np.cos(a)


@step("batched loop")
def _batched_loop(a: Array, b: Array, draw: int) -> Array:
    def f(x: Array, m: Array) -> Array:
        x = x * 1.0
        substitution(np.tanh(m), x)
        return x * largest(x)

    return ml.vmap(f, in_axes=(0, None))(resized(a, 2, 3), resized(b, 3, 3))


@step("unused")
def _unused(a: Array, b: Array, draw: int) -> Array:
    # Checked indices, in what nothing is used of.
    def f(x: Array) -> Array:
        x = x * 1.0
        substitution(resized(np.tanh(b), 3, 3), x)
        return largest(x)

    x = resized(a, 2, 3)
    ways = [
        ml.vmap(f),
        ml.vmap(ml.grad(f)),
        lambda x: ml.jvp(ml.vmap(f), (x,), (x,)),
        lambda x: ml.hvp(f, (x[0],), (x[1],)),
    ]
    ways[draw % 4](x)
    return np.sin(a)


@step("until")
def _until(a: Array, b: Array, draw: int) -> Array:
    limit = 1 + np.abs(np.sum(b))
    return ml.while_loop(lambda c: np.sum(c * c) < limit, lambda c: c * 1.3 + 0.2 + 0.1 * np.sin(c), a)


@step("until settled")
def _until_settled(a: Array, b: Array, draw: int) -> Array:
    b = resized(b, *a.shape)

    # A fixed number of rounds for all arguments that are near each other: what came before is read by the condition.
    def going(c: Any) -> Any:
        return np.logical_and(c[2] < 3, np.sum(np.abs(c[0] - c[1])) < 1e6)

    return ml.while_loop(going, lambda c: (np.sin(c[0]) * 0.7 + b, c[0], c[2] + 1), (a + b, a + b, 0))[0]


@step("until counted")
def _until_counted(a: Array, b: Array, draw: int) -> Array:
    def going(c: Any) -> Any:
        return np.logical_and(c["n"] < 6, np.abs(np.sum(c["x"])) < 4)

    start = {"x": np.cos(a), "n": 0, "y": np.sum(b)}
    last = ml.while_loop(going, lambda c: {"x": c["x"] * 1.4 + c["y"], "n": c["n"] + 1, "y": np.sin(c["y"])}, start)
    return last["x"] * last["n"] * 0.2 + last["y"]


@step("batched until")
def _batched_until(a: Array, b: Array, draw: int) -> Array:
    def f(t: Array, s: Array) -> Array:
        return ml.while_loop(lambda c: c < 1 + s * s, lambda c: c + np.exp(c * 0.3) * 0.4, t)

    return ml.vmap(f)(resized(a, 3), resized(b, 3))


@step("branch with an end")
def _branch_with_an_end(a: Array, b: Array, draw: int) -> Array:
    def loop(t: Array) -> Array:
        return ml.while_loop(lambda c: np.max(c) < 2, lambda c: c + 0.3 + 0.1 * t, t)

    return ml.cond(np.sum(b) > 0, loop, np.sin, a)


UNTIL.update(("until", "until settled", "until counted", "batched until", "branch with an end"))
