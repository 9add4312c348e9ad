"""Random functions of plain Python loops with floats, as source text: their values and derivatives stay bounded.

Each is `program(x)` of an array of 6 x 4 numbers. Loops end after a few iterations; which of them run, which branches
are taken and which elements are read may depend on the data, and so on the example of a batch.
"""

from __future__ import annotations

import random

_START = """\
import math


def first(u, limit):
    for a in u:
        if a > limit:
            return a * a
    return limit


def program(x):
    n = x.shape[1]
    y, u, v, w = x[1], x[0].copy(), np.zeros(n), x[2:].copy()
    s, t, q, order = x[0, 1], 0.3, [y[1] * 0.5], np.argsort(y)
"""
_END = "    return s + 0.7 * t + np.sum(u) + 0.5 * np.sum(v) + np.sum(w * np.arange(n)) * 0.1 + q[-1] * 0.2\n"
_STORES = (
    "u[1:] = u[:-1] * 0.7", "v[:] = np.tanh(w[1]) * 0.8", "w[:, 2] = np.sin(u)", "w[1:] *= 0.6", "u[:] = v[::-1] * 0.9",
    "v[::2] += np.sin(y[::2])", "u[:] = np.sin(u) + 0.1 * v", "w[:] = np.tanh(w @ x[2:])", "v[:] = np.sort(v)",
    "v[:] = np.where(u > v, u, v * 0.5)", "np.add.at(u, [1, 1, 0], v[1:] * 0.2)", "w.T[1] += np.cos(u) * 0.3",
)  # fmt: skip
_READS = ("np.sum(u)", "np.dot(u, v) * 0.3", "np.max(v)", "np.sort(u)[1]", "np.cumsum(v)[2]", "np.mean(w)", "q[-1]")


class _Source:
    """The lines of a function, and the variables of the loops around the next one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.indent = 1
        self.counters = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text + "\n")

    def index(self) -> str:
        found = [str(self.random.randrange(4)), "-1", "int(abs(s) * 3) % n", "np.argmax(u)", "order[2]"]
        for i in self.loops:
            found += [i, i, f"({i} + 1) % n", f"n - 1 - {i}", f"{i} - 1", f"order[{i}]"]
        return self.random.choice(found)

    def atom(self) -> str:
        at = self.index
        found = [
            "s",
            "t",
            f"u[{at()}]",
            f"v[{at()}]",
            f"y[{at()}]",
            f"w[{at()}, {at()}]",
            f"x[2 + {self.random.randrange(4)}, {at()}]",
        ]
        found += [f"{self.random.uniform(-1, 1):.2f}", *(f"0.3 * {i}" for i in self.loops)]
        if self.random.random() < 0.15:
            found = [*_READS, f"np.dot(w[{at()}], u) * 0.3", f"np.min(w[{at()}])"]
            found += [
                read for i in self.loops for read in (f"np.sum(u[:{i}])", f"np.sum(v[{i}:])", f"np.max(u[:{i} + 1])")
            ]
        return self.random.choice(found)

    def number(self, depth: int = 2) -> str:
        if not depth or self.random.random() < 0.35:
            return self.atom()
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.random.choice((
            f"math.sin({a})", f"math.tanh({a} * {b})", f"({a} + {b})", f"({a} - {b})", f"0.5 * {a} * math.cos({b})",
            f"max({a}, {b})", f"min({a}, {b})", f"abs({a})", f"({a} if {self.condition()} else {b})",
            f"math.sqrt(1.0 + ({a}) ** 2)", f"{a} / (1.5 + math.cos({b}))", f"math.exp(-(({a}) ** 2))",
            f"math.tanh(abs({a}) ** 1.5)", f"math.log(1.5 + math.sin({a}))",
        ))  # fmt: skip

    def condition(self) -> str:
        a, b = self.atom(), self.atom()
        found = [f"{a} > {b}", f"{a} < 0.2", f"{a} > {b} and {self.atom()} < 0.9", f"{a} > 0.4 or {b} < {self.atom()}"]
        found += [text for i in self.loops for text in (f"{i} % 2 == 0", f"{i} > 1 and {a} > 0")]
        return self.random.choice(found)

    def block(self, in_loop: bool) -> None:
        self.indent += 1
        for _ in range(self.random.randrange(1, 3)):
            self.statement(in_loop)
        self.indent -= 1

    def statement(self, in_loop: bool) -> None:
        draw, at = self.random.randrange(20), self.index
        nests = self.indent < 4
        if draw < 4:
            self.line(f"{self.random.choice('st')} = {self.random.choice((self.number(), f'first(u, {self.atom()})'))}")
        elif draw < 8:
            self.line(f"{self.random.choice('uv')}[{at()}] = math.tanh({self.number()})")
        elif draw < 10:
            self.line(f"w[{at()}, {at()}] = math.tanh({self.number()})")
        elif draw < 13 and nests:
            self.branch(in_loop)
        elif draw < 17 and nests and len(self.loops) < 2:
            self.loop()
        elif draw < 19:
            self.line(self.random.choice(_STORES))
        elif in_loop and self.random.random() < 0.3:
            self.line(f"if {self.condition()}:")
            self.line(f"    return {self.atom()} * t + s")
        else:
            self.line(f"q.append(math.sin({self.number(1)}))")

    def branch(self, in_loop: bool) -> None:
        self.line(f"if {self.condition()}:")
        self.block(in_loop)
        if in_loop and self.random.random() < 0.25:
            self.line(f"    {self.random.choice(('break', 'continue'))}")
        if self.random.random() < 0.4:
            self.line("else:")
            self.block(in_loop)

    def loop(self) -> None:
        if self.random.random() < 0.4:
            i = f"c{self.counters}"
            self.counters += 1
            self.line(f"{i} = 0")
            first = self.random.choice([f"{i} < {self.random.randrange(2, 4)}", *(f"{k} > 1" for k in self.loops)])
            self.line(f"while {first} and ({self.condition()}) and {i} < 3:")
            self.line(f"    {i} += 1")
        else:
            i = "ij"[len(self.loops)]
            inner = [f"{k} + 1" for k in self.loops[:1]] or ["0, n, 2"]
            self.line(f"for {i} in range({self.random.choice(['n', '1, n', 'n - 1, -1, -1', *inner])}):")
        self.loops.append(i)
        self.block(True)
        self.loops.pop()


def source(seed: int) -> str:
    """The source of a program."""
    made = _Source(seed)
    for _ in range(made.random.randrange(1, 3)):
        made.statement(False)
    made.loop()
    return _START + "".join(made.lines) + _END
