"""Random programs of lists of lists of dynamic length, and of lists that are joined, against Python.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

from hypothesis import given, seed
from hypothesis import strategies as st

from tests.fuzz.fuzzing import COUNT, first_seed, settings_of
from tests.fuzz.test_random_lists import gives_the_same

AT_ONE = [
    "c[{i}].append({v})", "c[{i}].append({v})", "if x[{i}] > 0: c[{j}].append(s)", "s += len(c[{i}])", "d = c[{i}]",
    "d.append({v})", "if len(d) > 1: s += d[-1]", "for f in c[{i}]: s += f", "for f in d: s -= f", "c[{i}] = [s]",
    "c[{i}] = []", "c[{i}] = c[{j}]", "c[{i}] = d", "c.append([s])", "c[{i}], c[{j}] = c[{j}], c[{i}]",
    "if c[{i}]: s += c[{i}].pop()", "c[{i}].clear()", "if len(c[{i}]) > 1: c[{i}][1] = {v}", "c[{i}].extend(w)",
    "c[{i}] += [s, {v}]", "w.append({v})", "if x[{i}] > 0: w.append({v})", "w += [s, {v}]", "w.extend(u)", "u += w",
    "w = w + u", "w = [*w, {v}]", "s += len(w + u)", "s += len([*w, s, *u])", "if len(w) > 20: w = []", "w.extend(d)",
    "for f in w + [s]: s = f", "c[{i}].insert(0, {v})", "s += sum(c[{i}])", "if {v} in c[{i}]: s += 1", "d = c[{j}][:]",
    "c[{i}].sort()", "d = w if x[{i}] > 0 else c[{j}]", "if x[{i}] > 0: d = c[{j}]", "n += 1", "w = w[:5]",
    "count({i})", "w = [f + i for q in c for f in q]", "s += sum(f for q in c for f in q if f > {v})",
]  # fmt: skip
WHOLE = [
    "c = [[] for _ in range(4)]", "c = [[s] for _ in range(4)]", "d = c[2]", "c[1] = []", "c = c[:]", "c = [*c]",
    "w = [*w, *u]", "w = w + u", "u.extend(w)", "u = w", "u = w[:]", "w = []", "d.append(s)", "c.append(w)",
    "c[0] = w", "for q in c: q.append(s)", "for q in c: s += len(q)", "w = [1, 2] + w", "w = w + [s, 2]", "d = []",
    "c.reverse()", "c.pop(); c.append([])", "w = list(c[1])", "count(1)", "w = w * 2",
]  # fmt: skip
INDICES = ["i", "(i * 3 + 2) % 4", "k[i]", "-1 - i", "2", "x[i] % 4", "k[x[i] % 4]", "s % 4"]
VALUES = ["1", "s", "i", "x[i]", "len(w)", "n", "s % 7"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a function of four integers, four indices and a number."""

    def pick(options: list[str]) -> str:
        return draw(st.sampled_from(options))

    def lines(indent: int, options: list[str], most: int) -> list[str]:
        return [
            " " * indent + pick(options).format(i=pick(INDICES), j=pick(INDICES), v=pick(VALUES))
            for _ in range(draw(st.integers(1, most)))
        ]

    body = [
        "def program(x, k, n):",
        "    s, u, w, m = 0, [1, 2], [], 0",
        "    c = [[] for _ in range(4)]",
        "    d = [3]",
        "    def count(i):",
        "        nonlocal m",
        "        m += x[i]",
        "        if m > 3: c[k[i]].append(m)",
        *lines(4, WHOLE, 2),
    ]
    for _ in range(draw(st.integers(1, 2))):
        body += ["    for i in range(4):"] if draw(st.booleans()) else ["    for i in (0, 1, 3, 2):"]
        body += lines(8, AT_ONE, 4)
        if draw(st.booleans()):
            body += ["        for _ in range(n):", *lines(12, AT_ONE, 2)]
        body += lines(4, WHOLE, 2)
    return "\n".join([*body, "    return s, m, n, [len(q) for q in c], [sum(q) for q in c], c, u, w, len(d)", ""])


def test_buckets() -> None:
    seed(first_seed() if COUNT else 0)(
        settings_of(30)(given(programs(), st.sampled_from([0, 2, 4, 6]))(gives_the_same))
    )()
