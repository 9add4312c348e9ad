"""Random programs of nested loops and branches give what plain Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlirml as ml
from mlirml.core.tree import flatten

Body = Callable[[list[Any], Any], list[Any]]
"""From the carried arrays (a vector, a matrix, a number, a count, a vector) and a number from outside to new ones."""

SETTINGS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)


def bounded(x: Any) -> Any:
    return np.tanh(x)


def step(kind: int) -> Body:
    """One of a few small steps."""

    def run(c: list[Any], k: Any) -> list[Any]:
        v, m, s, n, u = c
        if kind == 0:
            return [bounded(v + s), m, s * 0.5 + v[1], n + 1, v]
        if kind == 1:
            return [bounded(m @ v), m * 0.5 + v, s, n, u + v]
        if kind == 2:
            v[1:] = v[:-1] * 0.5 + k
            return [u, m, s, n, v]
        if kind == 3:
            m[0] = v
            m[:, 1] += s
            return [m[1] + 0.25, bounded(m), s, n * 2 % 7, u]
        if kind == 4:
            return [v[::-1].copy(), m.T, bounded(np.sum(m) * 0.5 + v[0]), n, m[2].copy()]
        if kind == 5:
            return [np.where(v > s, v, m[2]), bounded(m[::-1] - m), np.max(v), n + (s > 0), bounded(u)]
        if kind == 6:
            u[0] = v[0]
            return [v, np.stack([v, v * s, m[0]]), s, n - 1, u]
        return [np.concatenate([v[1:], u[:1]]), m, bounded(s + k), n, v]

    return run


def build(spec: Any) -> Body:
    """The program that a tree of tuples describes."""
    if isinstance(spec, int):
        return step(spec)
    kind, *rest = spec
    if kind in ("fori", "scan", "while"):
        return {"fori": fori, "scan": scan, "while": loop_while}[kind](build(rest[0]), *rest[1:])
    parts = [build(part) for part in rest]
    return {"sequence": sequence, "cond": branch, "switch": switch}[kind](parts)


def sequence(parts: list[Body]) -> Body:
    def run(c: list[Any], k: Any) -> list[Any]:
        for part in parts:
            c = part(c, k)
        return c

    return run


def fori(part: Body, rounds: int, traced: bool) -> Body:
    def run(c: list[Any], k: Any) -> list[Any]:
        upper = c[3] % 4 if traced else rounds
        return ml.fori_loop(0, upper, lambda i, d: part(d, k + i), c)

    return run


def scan(part: Body, reverse: bool) -> Body:
    def run(c: list[Any], k: Any) -> list[Any]:
        def body(d: list[Any], row: Any) -> Any:
            d = part(d, k)
            return [bounded(d[0] + row), *d[1:]], (d[0], d[2], row * d[2])

        last, (vs, ss, rows) = ml.scan(body, c, c[1], reverse=reverse)
        return [last[0], bounded(vs - rows), last[2] + ss[0], *last[3:]]

    return run


def loop_while(part: Body, limit: int) -> Body:
    def run(c: list[Any], k: Any) -> list[Any]:
        def body(d: Any) -> Any:
            return part(d[0], k), d[1] + 1

        return ml.while_loop(lambda d: np.logical_and(d[1] < limit, np.sum(d[0][0]) < 2.5), body, (c, 0))[0]

    return run


def branch(parts: list[Body]) -> Body:
    def run(c: list[Any], k: Any) -> list[Any]:
        one, other = (lambda d, part=part: part([x.copy() for x in d], k) for part in parts)
        return ml.cond(c[2] > k, one, other, c)

    return run


def switch(parts: list[Body]) -> Body:
    def run(c: list[Any], k: Any) -> list[Any]:
        own = [lambda d, part=part: part([x.copy() for x in d], k) for part in (*parts, lambda d, k: d)]
        return ml.switch(c[3] % 4, own, c)

    return run


def specs() -> st.SearchStrategy[Any]:
    simple = st.lists(st.integers(0, 7), min_size=1, max_size=3).map(lambda kinds: ("sequence", *kinds))
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.tuples(st.just("sequence"), inner, inner),
            st.tuples(st.just("fori"), inner, st.integers(0, 3), st.booleans()),
            st.tuples(st.just("scan"), inner, st.booleans()),
            st.tuples(st.just("while"), inner, st.integers(0, 3)),
            st.tuples(st.just("cond"), inner, inner),
            st.tuples(st.just("switch"), inner, inner),
        ),
        max_leaves=4,
    )


def check(body: Body, target: str, dtype: Any) -> None:
    def program(v: Any, m: Any, s: Any, n: Any, k: Any) -> Any:
        return body([v.copy(), m.copy(), s, n, v * 0.5], k)

    rng = np.random.default_rng(0)
    v, m = rng.standard_normal(3).astype(dtype), rng.standard_normal((3, 3)).astype(dtype)
    arguments = v, m, dtype(0.3), np.int64(2), dtype(0.1)
    expected = program(*arguments)
    actual = ml.compile(program, target=target)(*arguments)
    rtol = 1e-9 if dtype is np.float64 else 2e-4
    for a, e in zip(flatten(actual)[0], flatten(expected)[0], strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol)


@SETTINGS
@given(specs())
def test_random_programs_on_the_cpu(spec: Any) -> None:
    check(build(spec), "cpu", np.float64)


@SETTINGS
@given(specs())
def test_random_programs_on_the_reference_target(spec: Any) -> None:
    check(build(spec), "reference", np.float64)


@pytest.mark.parametrize("kind", range(8))
def test_each_step_in_each_loop(kind: int) -> None:
    for wrap in (lambda b: fori(b, 3, False), lambda b: scan(b, True), lambda b: loop_while(b, 3)):
        check(wrap(step(kind)), "cpu", np.float32)
