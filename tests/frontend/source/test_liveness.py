"""What loops have to pass on."""

from __future__ import annotations

import ast

from mlirml.frontend.source.liveness import annotate, renewed


def loops_of(text: str) -> list[ast.For]:
    body = ast.parse(text).body
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.For):
            node.stop = None  # type: ignore[attr-defined]
    annotate(body)
    return [node for node in ast.walk(ast.Module(body, [])) if isinstance(node, ast.For)]


def test_a_round_reads_what_the_one_before_left() -> None:
    outer, inner = loops_of("for i in a:\n    t = 0\n    for j in b:\n        t += s\n        s = t\nprint(u)")
    assert outer.head == {"a", "b", "s", "u", "print"} - {"a"}  # type: ignore[attr-defined]
    assert inner.head == {"b", "s", "t", "u", "print"}  # type: ignore[attr-defined]
    assert outer.after == {"print", "u"}  # type: ignore[attr-defined]


def test_deep_nests_are_read_quickly() -> None:
    """The body of a nest 18 deep is read some hundred times, not 2 ** 18 times."""
    depth = 18
    lines = ["    " * n + f"for i{n} in r{n}:" for n in range(depth)]
    text = "\n".join([*lines, "    " * depth + "s += x"])
    inmost = loops_of(text)[-1]
    assert {"s", "x", "r1", f"r{depth - 1}"} <= inmost.head  # type: ignore[attr-defined]


def test_names_of_functions_are_their_own() -> None:
    """A parameter, a local variable or the target of a comprehension is no variable of the function around."""
    text = "def f(s, k):\n    t = s + c\n    return t\nfor i in a:\n    s = f(i)\n    t = [u for u in s]\n    x = t[0]"
    (loop,) = loops_of(text)
    assert loop.head == {"a", "c", "f"} - {"a"}  # type: ignore[attr-defined]


def test_names_that_an_iteration_renews() -> None:
    """Those that get the result of an operation once and under no condition, or the value of such a one."""
    assert renewed(ast.parse("h = h @ w + u").body) == {"h"}
    assert renewed(ast.parse("u, v = 2 * u - v, u").body) == {"u", "v"}
    assert renewed(ast.parse("a = b\nb = b * 2").body) == {"a", "b"}
    assert renewed(ast.parse("if c:\n    h = h + 1\ng = h").body) == set()
    assert renewed(ast.parse("h = h + 1\nh = x").body) == set()
    assert renewed(ast.parse("h += 1\na = f(a)\nb = -c").body) == set()
