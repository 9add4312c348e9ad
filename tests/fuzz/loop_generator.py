"""Random functions of plain Python loops on arrays, as source text, with arguments for them.

Every index stays inside its array: the generator knows the interval of each integer it writes. Values are small
integers, in floats too, so that sums of any order are exact until they grow large.
"""

from __future__ import annotations

import itertools
import linecache
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

Views = Callable[[np.ndarray], tuple[np.ndarray, ...]]

# How often everything together may run: plain Python is slow, and the interpreter slower.
_ROUNDS = 250


def function_of(source: str) -> Callable[..., Any]:
    """The function `program` of a source, which can be read back."""
    file = f"<random loops {abs(hash(source))}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    names: dict[str, Any] = {"__name__": __name__, "np": np, "itertools": itertools, "deque": deque}
    exec(compile(source, file, "exec"), names)
    return names["program"]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Program:
    """A function's source, and how to make its arguments: (arrays that may share memory, numbers)."""

    source: str
    dtype: str
    memory: tuple[int, ...]
    layout: str
    numbers: tuple[int, ...]

    def function(self) -> Callable[..., Any]:
        """The function, whose source can be read back."""
        return function_of(self.source)

    def arguments(self, dtype: Any = None) -> tuple[list[np.ndarray], tuple[Any, ...]]:
        """All memory of the arrays, and fresh arguments."""
        n, count = self.memory
        rng = np.random.default_rng(n * 7 + count)
        memory = [rng.integers(-3, 4, size).astype(dtype or self.dtype) for size in (40, 40, 80, 80)]
        return memory, (*LAYOUTS[self.layout](memory, n), *self.numbers)


def _square(memory: np.ndarray, n: int) -> np.ndarray:
    return memory[: n * n].reshape(n, n)


# The arrays a and b of n elements, p and q of n x n: apart, or sharing memory in many ways.
LAYOUTS: dict[str, Callable[[list[np.ndarray], int], tuple[np.ndarray, ...]]] = {
    "apart": lambda m, n: (m[0][:n], m[1][:n], _square(m[2], n), _square(m[3], n)),
    "strided": lambda m, n: (m[0][: 2 * n : 2], m[1][n - 1 :: -1], _square(m[2], n).T, _square(m[3][::2], n)),
    "same lines": lambda m, n: (m[0][:n], m[0][:n], _square(m[2], n), _square(m[3], n)),
    "same squares": lambda m, n: (m[0][:n], m[1][:n], _square(m[2], n), _square(m[2], n)),
    "shifted lines": lambda m, n: (m[0][1 : n + 1], m[0][:n], _square(m[2], n), _square(m[3], n)),
    "reversed": lambda m, n: (m[0][:n], m[0][:n][::-1], _square(m[2], n), _square(m[2], n)[::-1]),
    "transposed": lambda m, n: (m[0][:n], m[1][:n], _square(m[2], n), _square(m[2], n).T),
    "windows": lambda m, n: (
        m[0][:n], m[1][:n], _square(m[2], n + 1)[1:, 1:], _square(m[2], n + 1)[:-1, :-1]
    ),
    "rows below": lambda m, n: (m[0][:n], m[1][:n], m[2][n : n * (n + 1)].reshape(n, n), _square(m[2], n)),
    "row of a square": lambda m, n: (_square(m[2], n)[1], m[1][:n], _square(m[2], n), _square(m[3], n)),
    "column and diagonal": lambda m, n: (
        _square(m[2], n)[:, 1], m[3][: n * n : n + 1], _square(m[2], n), _square(m[3], n)
    ),
}  # fmt: skip


@dataclass
class _Writer:
    """Lines of the program, and what is known at the place where the next one goes."""

    draw: st.DrawFn
    n: int
    k: int
    sums: bool
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: dict[str, tuple[int, int]] = field(default_factory=dict)  # variables and their intervals
    names: int = 0
    rounds: int = 1
    in_loop: int = 0

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self) -> str:
        self.names += 1
        return "ijlruvxyzh"[self.names - 1] if self.names <= 10 else f"i{self.names}"

    @contextmanager
    def indented(self) -> Iterator[None]:
        """A suite: ends with `pass` if nothing is written."""
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    # Integers with their intervals.

    def integers(self) -> list[tuple[str, int, int]]:
        """Integer expressions at this place."""
        n = self.n
        found = [("0", 0, 0), ("1", 1, 1), ("-1", -1, -1), ("k", self.k, self.k), ("n - 1", n - 1, n - 1)]
        names = list(self.loops.items())
        for name, (low, high) in names:
            found += [
                (name, low, high), (f"{name} + 1", low + 1, high + 1), (f"{name} - 1", low - 1, high - 1),
                (f"n - 1 - {name}", n - 1 - high, n - 1 - low), (f"-{name} - 1", -high - 1, -low - 1),
                (f"2 * {name}", 2 * low, 2 * high),
                (f"{name} + k", low + self.k, high + self.k), (f"{name} // 2", low // 2, high // 2),
                (f"({name} + 1) % n", 0, n - 1), (f"{name} - n", low - n, high - n), (f"{name} % 2", 0, 1),
                (f"min({name}, 2)", min(low, 2), min(high, 2)), (f"(not {name} > 1) + (not {name} == k)", 0, 2),
            ]  # fmt: skip
        for i, (one, (low, high)) in enumerate(names):
            for other, (least, most) in names[:i]:
                found += [
                    (f"{one} + {other}", low + least, high + most), (f"{one} - {other}", low - most, high - least),
                    (f"2 * {other} - {one}", 2 * least - high, 2 * most - low),
                    (f"({one} * {other}) % n", 0, n - 1),
                ]  # fmt: skip
        return found

    def index(self) -> str:
        """An index into a dimension of n."""
        fits = [text for text, low, high in self.integers() if -self.n <= low and high < self.n]
        plain = [name for name, (low, high) in self.loops.items() if low >= 0 and high < self.n]
        if plain and self.chance(65):
            return self.pick(*plain)
        return self.pick(*fits)

    # Expressions.

    def element(self) -> str:
        if self.chance(40):
            return f"{self.pick('a', 'b')}[{self.index()}]"
        return f"{self.pick('p', 'q')}[{self.index()}, {self.index()}]"

    def value(self, depth: int = 0) -> str:
        """A number computed from elements, scalars and loop variables."""
        kind = self.pick(*range(10))
        if depth > 2 or kind < 4:
            return self.element()
        if kind == 4:
            return self.pick("s", "t", "2", "3", "-1", *self.loops)
        one, other = self.value(depth + 1), self.value(depth + 1)
        if kind == 5:
            return f"{self.pick('max', 'min')}({one}, {other})"
        if kind == 6:
            return f"({one} if {self.condition()} else {other})"
        if kind == 7 and self.chance(50):
            line = self.line_of()
            # The sum of int32 is an int64, with which a branch would give two dtypes.
            total = f"np.sum({line})" if self.sums else f"np.max({line})"
            return self.pick(
                f"abs({one})", f"-{one}", total, f"np.dot({line}, a)", self.part_value(), self.part_value()
            )
        operator = self.pick("+", "-", "*")
        return f"({one} {operator} {other})"

    def bounds(self) -> tuple[str, int, int]:
        """A slice whose length may differ from round to round, and between which numbers its length lies."""
        n = self.n
        some = self.integers()
        varied = [one for one in some if one[0] in self.loops or "+" in one[0] or "-" in one[0][1:]]
        text, low, high = self.pick(*(varied or some))
        shape = self.pick("from", "to", "to", "both", "step", "back")
        inside = low >= 0 and high < n
        text = self.or_none(text)
        if shape == "from":
            return f"{text}:", 1 if inside else 0, n
        if shape == "to":
            return f":{text}", 0, n
        if shape == "back":
            return f"{text}::-1", 1 if inside else 0, n
        other = self.or_none(self.pick(*some)[0])
        return f"{text}:{other}" + ("" if shape == "both" else self.pick(":2", ":2", ":-1")), 0, n

    def or_none(self, bound: str) -> str:
        """A bound of a slice, which may be None where it is zero."""
        return f"{bound} or None" if self.chance(8) else bound

    def part_value(self) -> str:
        """A number computed from a slice."""
        part, least, _ = self.bounds()
        line = self.pick(f"a[{part}]", f"b[{part}]", f"p[{self.index()}, {part}]", f"q[{part}, {self.index()}]")
        other = self.pick(f"a[{part}]", f"p[{part}, {self.index()}]")
        found = [f"np.dot({line}, {other})", f"{line} @ {other}", f"len({line})"]
        if self.sums:
            found += [f"np.sum({line})", f"np.sum({line} * {other})", f"np.sum(p[{part}, {part}])"]
        if least:
            found += [f"np.max({line})", f"{line}.min()", f"{line}[0]", f"{line}[-1]"]
        return self.pick(*found)

    def parts(self) -> None:
        """A statement on slices."""
        part = self.bounds()[0]
        row, value = self.index(), self.value(1)
        operator = self.pick("=", "+=", "-=")
        if self.chance(15):
            self.line(f"part = a[{part}] {self.pick('+', '*')} {value}")
            self.line(f"b[{part}] {operator} part")
            return
        self.line(self.pick(
            f"{self.pick('a', 'b')}[{part}] {operator} {value}",
            f"p[{row}, {part}] {operator} q[{self.index()}, {part}] * {value}",
            f"p[{row}, {part}] -= p[{self.index()}, {part}] * {self.pick('2', 's', self.element())}",
            f"q[{part}, {row}] {operator} a[{part}] + p[{part}, {self.index()}]",
            f"a[{part}] {operator} {self.pick('a', 'b')}[{part}][::-1]",
            f"p[{part}, {part}] {operator} q[{part}, {part}]",
            f"q[{part}, {part}] {operator} np.outer(a[{part}], b[{part}])",
            f"b[{part}] {operator} p[{part}, {part}] @ a[{part}]" if self.rounds < 20 else f"b[{part}] += 1",
            f"p[{part}] {operator} {self.line_of()}",
            f"a[{part}] {operator} np.where(a[{part}] > b[{part}], {self.pick('1', 's')}, b[{part}])",
        ))  # fmt: skip

    def line_of(self) -> str:
        """An array of n elements."""
        return self.pick("a", "b", f"p[{self.index()}]", f"q[:, {self.index()}]", f"q[{self.index()}, :]", "a[::-1]")

    def condition(self) -> str:
        names = list(self.loops)
        texts = [
            f"{self.element()} > {self.element()}",
            f"{self.element()} > 0",
            "s > t",
            f"k == {self.pick('0', '1')}",
            f"{self.element()} {self.pick('in', 'not in')} {self.pick('(0, 2)', '[1, k, s]', 'a', 'b[k:]')}",
        ]
        if names:
            name = self.pick(*names)
            texts.append(f"{name} in {self.pick('range(1, n, 2)', 'range(n - 1, k, -1)', '(0, 3)')}")
            texts += [f"{name} % 2 == 0", f"{name} > 1", f"{name} != {self.pick(*names)}", f"{name} <= k"] * 2
        text = self.pick(*texts)
        if self.chance(15):
            text = self.pick(f"not ({text})", f"{text} and {self.pick(*texts)}", f"{text} or {self.pick(*texts)}")
        return text

    # Statements.

    def statements(self, most: int) -> None:
        for _ in range(self.draw(st.integers(1, most))):
            self.statement()

    def statement(self) -> None:
        kind = self.pick(*range(20))
        if kind < 8:
            self.store()
        elif kind < 13 and len(self.loops) < 4 and self.rounds * self.n <= _ROUNDS:
            self.loop() if self.chance(85) or self.rounds * self.n**2 > _ROUNDS else self.nested_loop()
        elif kind < 15:
            self.scalar() if self.chance(70) or self.rounds * self.n > _ROUNDS else self.pick(self.total, self.copied)()
        elif kind < 17:
            self.branch() if self.chance(80) or self.rounds * self.n > _ROUNDS else self.search()
        elif kind < 18:
            if self.loops and self.chance(60):
                self.parts()
            else:
                self.slices()
        elif kind == 18 and self.in_loop:
            self.pick(self.jump, self.jump, self.chosen, self.chosen, self.doubled)()
        elif kind == 19 and self.rounds * self.n <= _ROUNDS:
            self.while_loop()

    def store(self) -> None:
        operator = self.pick("=", "=", "+=", "+=", "-=", "*=")
        value = self.value() if operator != "*=" else self.pick("2", "-1", "k")
        self.line(f"{self.element()} {operator} {value}")

    def scalar(self) -> None:
        name = self.pick("s", "t")
        one, other = self.element(), self.element()
        updates = (f"{name} += {one}", f"{name} = {one}", f"{name} = max({name}, {one})", f"{name} += {one} * {other}")
        together = ("s, t = t, s", f"s, t = t, s + {one}", "s, t = max(s, t), min(s, t)", f"{name} = s - t")
        self.line(self.pick(*updates, *together))

    def total(self) -> None:
        """A sum over a loop of its own, stored after it, with a store in the loop that the sum does not read."""
        outer, name = self.fresh(), self.fresh()
        self.line(f"for {outer} in range(n):")
        with self.indented():
            self.line("s = 0")
            self.line(f"for {name} in range(n):")
            self.loops |= {outer: (0, self.n - 1), name: (0, self.n - 1)}
            with self.indented():
                self.line(f"s += q[{self.index()}, {self.index()}]")
                self.line(f"{self.pick('a', 'b')}[{self.index()}] = {self.pick('3', 'k', 's')}")
            del self.loops[name]
            self.line(f"p[{self.pick(f'-1 - {outer}', f'n - 1 - {outer}', outer)}, {self.index()}] = s")
            del self.loops[outer]

    def copied(self) -> None:
        """A loop that stores into an array, and reads a copy of it at other indices."""
        outer = [(name, low, high) for name, (low, high) in self.loops.items() if low >= 0 and high < self.n]
        array, name = self.pick("a", "b", "p", "q"), self.fresh()
        ranges = [("range(n)", 0, self.n - 1), *((f"range({name})", 0, max(high - 1, 0)) for name, _, high in outer)]
        text, low, high = self.pick(*ranges, ranges[-1])
        self.line(f"c = {array}.copy()")
        self.line(f"for {name} in {text}:")
        self.loops[name] = low, high
        with self.indented():
            at = [f"{name}, {self.index()}" if array in "pq" else name, self.index(), self.index()]
            at[1:] = [f"{index}, {self.index()}" if array in "pq" else index for index in at[1:]]
            self.line(f"{array}[{at[0]}] {self.pick('=', '=', '+=')} c[{at[1]}] {self.pick('+', '-')} c[{at[2]}]")
        del self.loops[name]

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        with self.indented():
            self.statements(2)
        if self.chance(20):
            self.line(f"elif {self.condition()}:")
            with self.indented():
                self.statements(1)
        if self.chance(50):
            self.line("else:")
            with self.indented():
                self.statements(2)

    def search(self) -> None:
        """A variable that is None until an element passes a test, compared with None in the loop and after it."""
        name = self.fresh()
        self.line("w = None")
        self.line(f"for {name} in range(n):")
        self.loops[name] = (0, self.n - 1)
        with self.indented():
            better = f"(w is None or {self.element()} {self.pick('<', '>')} w)"
            self.line(f"if {self.pick(self.condition(), better, f'{self.condition()} and {better}')}:")
            with self.indented():
                self.line(f"w = {self.element()}")
                if self.chance(30):
                    self.line("break")
            if self.chance(20):
                self.line("else:")
                with self.indented():
                    self.line("w = None")
            if self.chance(30):
                self.line(f"{self.element()} += 1 if w is None else w")
        del self.loops[name]
        if self.chance(30):
            self.line("if w is None:")
            with self.indented():
                self.line(f"w = {self.element()}")
        if self.chance(20):
            self.line(f"{self.element()} += {self.pick('w == 1', 'w != k')}")
        self.line(f"{self.element()} += {self.pick('0 if w is None else w', '1 if w is not None and w > 0 else k')}")

    def jump(self) -> None:
        self.line(f"if {self.condition()}:")
        with self.indented():
            self.line(self.pick("break", "continue"))

    def chosen(self) -> None:
        """A variable that has a value wherever it is read, as the other ways through the branch jump."""
        self.line(f"if {self.condition()}:")
        with self.indented():
            self.line(f"m = {self.element()}")
        for _ in range(self.draw(st.integers(0, 2))):
            self.line(f"elif {self.condition()}:")
            with self.indented():
                if self.chance(30):
                    self.jump()
                self.line(f"m = {self.element()} - {self.element()}")
        self.line("else:")
        with self.indented():
            self.line(self.pick("break", "continue"))
        self.line(f"{self.element()} += m")

    def doubled(self) -> None:
        """Numbers that are used twice, many times in a row: code for each path to them would never end."""
        self.line(f"d, e = {self.element()}, {self.element()}")
        update = self.pick("d, e = max(d, e) - 1, min(d, e) + 1", "d, e = e, d - e if d > e else d + 1")
        for _ in range(40):
            self.line(update)
        self.line(f"{self.pick('s', 't', self.element())} += {self.pick('d', 'd - e')}")

    def slices(self) -> None:
        row, low = self.index(), self.pick("", "1")
        moved = ":-1" if low else ":"
        self.line(self.pick(
            f"{self.line_of()}[...] += {self.value()}",
            f"p[{row}, {low}:] = q[{self.index()}, {low}:] {self.pick('+', '-', '*')} 2",
            f"q[{low}:, {row}] -= {self.line_of()}[{low}:] * {self.value()}",
            f"a[{low}:] = a[{moved}] + b[{low}:]",
            f"p[{row}] = {self.line_of()} + {self.line_of()}",
            "p[1:, 1:] += q[:-1, 1:]",
            f"b[:] = p @ {self.pick('a', 'b')}" if self.rounds < 20 else "b[1:] += 1",
        ))  # fmt: skip

    def loop(self) -> None:
        n, k = self.n, self.k
        outer = [(name, low, high) for name, (low, high) in self.loops.items() if low >= 0 and high < n]
        ranges = [
            ("range(n)", 0, n - 1), ("range(1, n - 1)", 1, n - 2), ("range(n - 1, -1, -1)", 0, n - 1),
            ("range(0, n, 2)", 0, n - 1), ("range(k)", 0, k - 1), ("range(k, n)", k, n - 1), ("range(2)", 0, 1),
            ("range(n - 1, 0, -2)", 1, n - 1), ("range(a.shape[0])", 0, n - 1), ("range(3, 1)", 1, 1),
            ("range(n)", 0, n - 1), ("range(n)", 0, n - 1), ("reversed(range(n - 1, 0, -2))", 1, n - 1),
            ("reversed(range(k, n, 2))", k, n - 1), ("reversed(range(n - 1, -1, -1))", 0, n - 1),
        ]  # fmt: skip
        for name, low, high in outer:
            ranges += [
                (f"range({name})", 0, high - 1), (f"range({name}, n)", low, n - 1), (f"range({name} + 1)", 0, high),
                (f"range({name} + 1, n)", low + 1, n - 1), (f"range({name}, -1, -1)", 0, high),
                (f"range({name} - 1, k)", low - 1, k - 1),
            ]  # fmt: skip
        text, low, high = self.pick(*ranges)
        name = self.fresh()
        certain = {"range(n)", "range(k, n)", "range(n - 1, -1, -1)", *(["range(k)"] if k else [])}
        for other, _, _ in outer:
            certain |= {f"range({other}, n)", f"range({other} + 1)", f"range({other}, -1, -1)"}
        later = f"last_{name}" if text in certain and self.chance(15) else ""
        some = f"some_{name}" if not later and self.chance(8) else ""
        self.line(f"for {name} in {text}:")
        self.loops[name] = low, max(low, high)
        factor = max(high - low + 1, 1)
        self.rounds *= factor
        self.in_loop += 1
        with self.indented():
            if later and text == "range(n)" and self.chance(40):
                self.line(f"if {name} == 0: {later} = {self.element()}")
                self.line(f"else: {later} = {later} + {self.element()}")
            elif later:
                self.line(f"{later} = {self.element()}")
            if some:
                self.line(f"if {self.condition()}: {some} = {self.element()}")
            self.statements(3)
            if some:
                self.line(f"if {self.pick(self.condition(), f'{name} > 1')}: s = s + {some}")
        self.in_loop -= 1
        self.rounds //= factor
        del self.loops[name]
        if later:  # a variable that gets its first value in the loop
            self.line(f"s = {later} + {self.pick(name, 'k')}")
        elif some and self.chance(30):  # or that the data give a value
            self.line(f"s = {some}")

    def nested_loop(self) -> None:
        """One `for` over the positions of two dimensions."""
        n, k = self.n, self.k
        pairs = [
            ("np.ndindex(n, n)", n, n), ("np.ndindex(p.shape)", n, n), ("np.ndindex((k, n))", k, n),
            ("itertools.product(range(n), range(k))", n, k), ("itertools.product(range(n), repeat=2)", n, n),
        ]  # fmt: skip
        text, *sizes = self.pick(*pairs)
        names = self.fresh(), self.fresh()
        self.line(f"for {names[0]}, {names[1]} in {text}:")
        self.loops |= {name: (0, max(size - 1, 0)) for name, size in zip(names, sizes)}
        factor = max(sizes[0] * sizes[1], 1)
        self.rounds *= factor
        self.in_loop += 1
        with self.indented():
            self.statements(3)
        self.in_loop -= 1
        self.rounds //= factor
        for name in names:
            del self.loops[name]

    def while_loop(self) -> None:
        name = self.fresh()
        self.line(f"{name} = {self.pick('0', '1')}")
        self.line(f"while {name} < n{self.pick('', f' and ({self.condition()})')}:")
        kept, self.in_loop = self.in_loop, 0  # `continue` would leave out the step
        self.loops[name] = 0, self.n - 1
        self.rounds *= self.n
        with self.indented():
            self.statements(2)
            self.line(f"{name} += {self.pick('1', '2')}")
        self.rounds //= self.n
        del self.loops[name]
        self.in_loop = kept


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program with its arguments."""
    n = draw(st.integers(3, 5))
    k = draw(st.integers(0, n - 1))
    dtype = draw(st.sampled_from(["int64", "float64", "int32", "float32", "float64", "int64"]))
    writer = _Writer(draw, n, k, dtype != "int32")
    writer.line("n = a.shape[0]")
    writer.line(f"s = {writer.pick('a[0]', 'p[1, 1]')}")
    writer.line(f"t = {writer.pick('b[1]', 'a[-1]')}")
    while len(writer.lines) < 4:
        writer.loop()
    writer.statements(2)
    writer.line(writer.pick("return s, t", "return s", "return p[1, 2] + s"))
    source = "def program(a, b, p, q, k):\n" + "\n".join(writer.lines) + "\n"
    layout = draw(st.sampled_from(["apart"] * 12 + list(LAYOUTS)))
    return Program(source, dtype, (n, draw(st.integers(0, 3))), layout, (k,))
