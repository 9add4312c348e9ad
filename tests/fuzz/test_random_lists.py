"""Random programs of loops and lists of numbers, against Python; also of lists in lists, whose rows have other names.

`MLIRML_FUZZ=2000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, reject, seed
from hypothesis import strategies as st

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.fuzzing import COUNT, first_seed, settings_of
from tests.fuzz.loop_generator import function_of

NEW = [
    "[0] * 4", "[1.5] * 4", "list(range(4))", "[k * 2 for k in range(4)]", "list(x)", "[3, 1] + [0] * 2", "a[:]",
    "a.copy()", "list(b)", "[0, 1, 2, 3]", "list(t[1])", "t[2][:]", "sorted(b)",
]  # fmt: skip
TABLES = [
    "[[0] * 4 for _ in range(4)]", "[[i * j for j in range(4)] for i in range(4)]", "[[1] * 4] * 4",
    "[[0] * (n % 2 + 4) for _ in range(4)]", "[list(range(4)), a, b, a]", "[row[:] for row in t]",
]  # fmt: skip
AT_ONE = [
    "a[{i}] = {v}", "a[{i}] += {v}", "b[{i}] = a[{i}] + {v}", "s += a[{i}]", "s -= b[{i}] * 2",
    "a[{i}], b[{i}] = b[{i}], a[{i}]", "a[{i}], a[{j}] = a[{j}], a[{i}]", "t[{i}][{j}] = {v}",
    "t[{i}][{j}] += a[{j}]", "s += t[{i}][{j}]", "b[{i}] = t[{j}][{i}]", "t[{i}], t[{j}] = t[{j}], t[{i}]",
    "if a[{i}] > {v}: a[{i}] = b[{j}]", "if t[{i}][{j}] < s: t[{i}][{j}] += 1", "s += len(a) + sum(b)",
    "s += max(a) - min(b)", "a[{i}] = -a[{i}] if b[{j}] > 0 else a[{i}] + 1", "r = t[{i}]", "r[{j}] += 1",
    "s += r[{i}]", "t[{i}] = [s] * 4", "t[{i}] = a", "t[{i}] = b[:]", "a = t[{i}]", "a, b = b, a", "b = a",
    "u.append(a[{i}])", "s += u[{i}]", "if a[{i}] > {v}: w.append({v})", "if x[{i}] > 0: w.append(a[{j}])",
    "w.append({v})", "s += len(w)", "if len(w) > 3: s += w[{i}]", "if x[{j}] > s: w.append(s); w.append({v})",
    "s += sum(w)", "if {v} in w: s += 1", "s += sum(v for v in a if v > {v})", "w = [v + i for v in x if v > s]",
    "s += len([v for v in w if v > {v}])", "s += max([v for v in b if v < {v}], default=1)",
    "if any(v > {v} for v in x if v != a[{i}]): s += 1", "o.append([{v}, s])", "if x[{i}] > 0: o.append([s, {v}])",
    "e = [s, {v}]; o.append(e); s += e[1]", "e = [{v}, 1]; o.append(e); e[0] += 1", "o.append(e)", "e[1] = {v}",
    "for f in o: s += f[0]", "if len(o) > 2: s += o[-1][1]", "if len(o) > 2: e = o[2]", "t = [row[:] for row in t]",
    "e = [s, {v}]; o.append(e); e[0] = {v}; s += o[-1][0]", "e = [s, 0]; o.append(e); e[1] = b[{i}]; e[0] -= 1",
    "e = [0, {v}]; o.append(e); e[0] = a[{j}]; f = e; f[1] += 1", "if x[{i}] > 0: e = [s, 1]; o.append(e); e[0] += {v}",
    "e = [{v}, s]; o.append(e); o.append(e); e[1] = 7", "e = [1, s]; o.append(e); e[0] = o[0][1]",
    "e = [0, 0]; o.append(e); e[1] = o[-2][0] if len(o) > 1 else {v}", "if x[{j}] > s: e[0] += 1",
    "e = []; o.append(e); e.append({v}); e.append(s)", "e = []; o.append(e); e += [s, {v}]; s += len(o)",
    "e = [s, 1]; o.append(e); s += sum(f[0] for f in o)", "q = [0] * 4; g.append(q); q[{i}] = {v}",
    "q = [s] * 4; g.append(q)", "q[{i}] += {v}", "q = [0] * 4; g.append(q); q[{i}] += g[-1][{j}]; s += q[{j}]",
    "q = []; g.append(q)", "q.append({v})", "if len(g) > 1: s += g[-1][{i}]", "if len(g) > 1: s -= g[0][{j}]",
    "s += max(b, key=lambda v: -v * v)", "s -= min(a, key=lambda v: (v > {v}, v))", "s += max((x[{i}], 1), (s, 2))[1]",
    "s += sum(filter(lambda v: v > 0, x))", "w = list(filter(lambda v: v != s, b))",
    "s += next((v for v in x if v > i), 1)", "if w: s += max(w, key=abs)", "if len(o) > 1: s += max(o)[0]",
    "if len(o) > 1: s -= min(o, key=lambda f: f[1] - f[0])[0]", "h = {i}", "h = 0", "if a[1] < a[{i}]: h = 3",
    "if b[h] > s: h = abs({i})", "a[h] += {v}", "s += b[h]", "if h > 4: a[9] = {v}", "if h > 4: s += u[8]",
    "if x[{i}] > 0: w = w + [{v}, s]", "if x[{j}] > s: w = [{v}] + w",
    "w.extend(x[x > {v}])", "w += list(x[{i}:])", "w = list(x[x > {v}])",
    "if mark(h): w.append({v})", "if mark({i}): w.append(i)", "if tick(): w.append(s)", "s += seen[h]",
]  # fmt: skip
WHOLE = [
    "a = {n}", "b = {n}", "t = {m}", "r = t[1]", "b = a", "a.sort()", "a.append(s); a.pop()", "t[2] = {n}",
    "t[3] = a", "a[2] = s", "t[1][2] = 7", "r[0] = 9", "a, b = b, a", "u = [0] * 4", "u.append(s)",
    "w = []", "w.append(s)", "w = [s]", "w = list(x[x > s])",
    "w.extend(x[:n])", "w = w + list(x[x < s])", "w.sort()", "s += sum(w)", "u = w", "w[0] = s", "s += max(w)",
    "w = w + a",
    "for v in w: s += v", "w = [v for v in a if v > s]", "w = [v * c for v in x if v > 0 for c in a if c < v]",
    "w = sorted(v for v in w if v != s)", "s += sum(v * v for v in w if v > 1)", "o = []", "o.append([s, 1])",
    "for f in o: f[0] += 1", "for f in o: s += f[0] - f[1]", "o.append(e)", "e = [1, s]", "e[0] = 5", "e = o[-1]",
    "o = [[v, s] for v in x if v > 0]", "a = t[1][:]", "e = [s, 2]; o.append(e); e[1] += 1", "g = []", "q = [1] * 4",
    "g.append(q)", "q[2] = s", "for f in g: s += f[1]", "g = [q]; q[0] = 3", "o = [e, [1, 2]]; e[0] = s",
    "a = sorted(b, key=abs)", "a.sort(key=lambda v: -v)", "b = sorted(a, key=lambda v: (v > 1, -v), reverse=True)",
    "w = list(filter(lambda v: v > 1, w))", "s += next((v for v in w if v > s), 0)", "r = sorted(t, key=sum)[0]",
    "if n > 5: a[9] = s", "if n > 5: s += t[1][7]", "if n > 5: w[70] = s", "if n < 5: s += 1\n    else: s += u.pop(9)",
    "t.sort(key=lambda f: f[1])", "for f in filter(lambda v: v > 0, a): s += f",
]  # fmt: skip
FILLED = ["", "", "q = [0] * 4; g.append(q)", "q = []; g.append(q)", "e = [0, s]; o.append(e)"]
INTO = {
    "q = [0] * 4; g.append(q)": ["q[j] = {v}"],
    "q = []; g.append(q)": ["q.append({v})"],
    "e = [0, s]; o.append(e)": ["e[0] += {v}"],
}
INDICES = ["i", "(i * 3 + 2) % 4", "k[i]", "-1 - i", "2", "j", "(i + j) % 4", "int(s) % 4"]
VALUES = ["1", "s", "i", "x[i]", "a[0]", "2.5", "b[i] - 1", "j * 2", "True"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a function of an array of four integers, one of indices and a number."""

    def pick(options: list[str]) -> str:
        return draw(st.sampled_from(options))

    def line(options: list[str], loops: str) -> str:
        numbers = [index for index in INDICES if "j" not in index or "j" in loops]
        values = [value for value in VALUES if "j" not in value or "j" in loops]
        return pick(options).format(i=pick(numbers), j=pick(numbers), v=pick(values), n=pick(NEW), m=pick(TABLES))

    def lines(indent: int, options: list[str], loops: str) -> list[str]:
        return [" " * indent + line(options, loops) for _ in range(draw(st.integers(1, 4)))]

    body = ["def program(x, k, n):", "    a, b, u, s, w = [0] * 4, list(x), [1, 2, 3, 4], 0, []"]
    body += [
        "    t = [[i + j for j in range(4)] for i in range(4)]",
        "    r, o, e, q, g = t[0], [], [1, 2], [1] * 4, []",
        "    h, seen, ticks = 0, np.zeros(4, np.int64), [0]",
        "    def mark(i):",
        "        seen[i] += 1",
        "        return seen[i] < 3",
        "    def tick():",
        "        ticks[0] += 1",
        "        return ticks[0] % 3 > 0",
    ]
    body += lines(4, WHOLE, "")
    for _ in range(draw(st.integers(1, 2))):
        body.append("    for p in range(n):" if draw(st.booleans()) else "    for p in range(17):")
        body.append("        for i in range(4):")
        if draw(st.booleans()):
            body += lines(12, AT_ONE, "i")
        filled = draw(st.sampled_from(FILLED))
        body += [" " * 12 + one for one in filled.split("; ") if one]
        if filled or draw(st.booleans()):
            body += ["            for j in range(4):"]
            body += [" " * 16 + one.format(v=pick(VALUES)) for one in INTO.get(filled, [])]
            body += lines(16, AT_ONE, "ij")
        body += lines(12, AT_ONE, "i")
        body += lines(4, WHOLE, "")
    return "\n".join([*body, "    return a, b, t, r, u, s, w, o, e, q, g, h, list(seen), ticks", ""])


def flat(x: Any) -> list[Any]:
    """The numbers in lists and tuples."""
    return [y for item in x for y in flat(item)] if isinstance(x, (list, tuple)) else [x]


def structure(x: Any) -> Any:
    """The lists and tuples, without the numbers in them."""
    return (type(x), [structure(item) for item in x]) if isinstance(x, (list, tuple)) else None


def gives_the_same(source: str, values: int) -> None:
    """Assert that a program gives the same compiled as in Python, or is refused."""
    note(source)
    function, rng = function_of(source), np.random.default_rng(values)
    inputs = rng.integers(-3, 4, 4).astype((np.int64, np.float64)[values % 2]), rng.integers(0, 4, 4), values % 4
    try:
        with np.errstate(over="raise"):
            expected = function(*(x.copy() if isinstance(x, np.ndarray) else x for x in inputs))
    except (IndexError, OverflowError, FloatingPointError, ValueError):
        reject()
    if not all(abs(x) < 2.0**45 for x in flat(expected)):
        reject()
    try:
        found = ml.compile(function, frontend="loops")(*inputs)
    except CaptureError:
        return
    assert structure(found) == structure(expected), (found, expected)
    assert all(float(x) == float(y) for x, y in zip(flat(found), flat(expected))), (found, expected)


def test_lists() -> None:
    seed(first_seed() if COUNT else 0)(settings_of(30)(given(programs(), st.integers(0, 9))(gives_the_same)))()


PROGRAMS = [
    "def program(n):\n  t = [[0] * 5 for _ in range(200)]\n  for i in range(1, 200):\n    r = t[i - 1][:]\n"
    "    r[i % 5] += n\n    t[i] = r\n  return t",
    "def program(n):\n  t = [[i * 10 + j for j in range(5)] for i in range(n)]\n  for i in range(n - 1):\n"
    "    t[i], t[i + 1] = t[i + 1], t[i]\n  return t",
    "def program(n):\n  a = [False] * 100\n  for i in range(0, 100, n):\n    a[i] = True\n  c = 0\n"
    "  for i in range(100):\n    if a[i]:\n      c += 1\n  return c, a",
    "def program(n):\n  p = list(range(101))\n  for i in range(100):\n    c = [i + 1]\n    for j in range(100):\n"
    "      c.append(min(p[j + 1] + 1, c[j] + 1, p[j] + (i - j) % n))\n    p = c\n  return p, p[-1]",
]


@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("n", [3, 150])
def test_programs(source: str, n: int) -> None:
    function = function_of(source)
    expected = function(n)
    found = ml.compile(function)(n)
    assert structure(found) == structure(expected)
    assert np.array_equal(np.array(flat(found)), np.array(flat(expected)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("t = [[0] * 5] * 3\n  for i in range(n):\n    t[i % 3][i % 5] += 1", "an index"),
        (
            "t = [[0] * 5 for _ in range(n)]\n  for i in range(n - 1):\n    t[i] = t[i + 1]",
            "replaced by something else",
        ),
        ("t = [[0] * 5 for _ in range(n)]\n  r = [1] * 5\n  for i in range(n):\n    t[i] = r", "replaced by something"),
        (
            "t = [[0] * 5 for _ in range(n)]\n  r = t[0]\n  for i in range(n):\n    t[i] = [i] * 5\n  s = r",
            "has a name",
        ),
        ("t = [0] * n\n  for i in range(n):\n    t[i] = [i]", "becomes something else"),
    ],
)
def test_refused(body: str, message: str) -> None:
    """What would make two names of one list, or lists of several kinds."""
    function = function_of(f"def program(n):\n  {body}\n  return t")
    with pytest.raises(CaptureError, match=message) as caught:
        ml.compile(function)(300)
    assert caught.value.location is not None


def test_too_many_copies() -> None:
    source = "def program(x):\n  for i in range(200):\n    for j in range(200):\n"
    source += "      x = x + np.hanning((i + j) % 3 + 1).sum()\n"
    with pytest.raises(CaptureError, match="would make 40,000 copies of what is in them"):
        ml.compile(function_of(source + "  return x"), frontend="loops")(np.ones(3))
