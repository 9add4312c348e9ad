"""Lists that grow in loops: what they hold is as in NumPy, and their loops stay loops, of which the count is nothing.

Random programs append in nested loops and in branches, read what they have appended, and use the lists afterwards.
"""

from __future__ import annotations

import linecache
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import CaptureError

RNG = np.random.default_rng(7)
COUNT = 300


def recurrent(x: Any, w: Any) -> Any:
    h, hs = np.zeros(4), []
    for t in range(x.shape[0]):
        h = np.tanh(w @ h + x[t])
        hs.append(h)
    return np.stack(hs)


def both_ends(x: Any, w: Any) -> Any:
    h, hs = np.zeros(4), []
    for t in range(x.shape[0] - 1, -1, -1):
        hs.append(h)
        h = np.tanh(w @ h + x[t])
    hs.append(h)
    return np.stack(hs, axis=1), hs[-1], hs[0], len(hs), hs[::-1][1]


def filtered(x: Any) -> Any:
    s, out = 0.0, []
    for i in range(len(x)):
        s = 0.9 * s + x[i]
        out.append(s)
    return np.array(out), np.sum(out), sum(out), np.mean(out)


def of_the_two_before(x: Any) -> Any:
    xs = [x[0], x[1]]
    for i in range(2, len(x)):
        xs.append((xs[i - 1] + xs[i - 2]) * 0.5 + x[i])
    return np.array(xs)


def of_the_last(x: Any) -> Any:
    xs = [x[0]]
    for i in range(len(x)):
        xs.append(xs[-1] * 0.9 + x[i])
    return np.stack(xs)


def guarded(x: Any) -> Any:
    xs = []
    for i in range(len(x)):
        y = xs[-1] if i > 0 else 1.0
        xs.append(y * 0.5 + x[i])
    return np.array(xs)


def snapshots(x: Any) -> Any:
    y, kept, rest = x[:3] * 0, [], []
    for t in range(len(x)):
        y = 0.9 * y + x[t]
        if t % 50 == 0:
            kept.append(y)
        elif t % 7 == 3:
            rest.append(y[0])
            kept.append(y * 2)
    return np.stack(kept), np.array(rest), len(kept)


def either(x: Any) -> Any:
    kept = []
    for t in range(len(x)):
        if x[t] > 0.5:
            kept.append(x[t])
        else:
            kept.append(0.0)
        if t % 3 == 0:
            kept.append(1.0)
    return np.array(kept)


def nested(x: Any) -> Any:
    out, sums = [], []
    for i in range(len(x)):
        row = []
        for j in range(5):
            out.append(x[i] * j)
            row.append(out[-1] + x[j])
            if j % 2 == 0:
                out.append(0.0)
        sums.append(np.sum(row))
    return np.array(out), np.array(sums)


def tuples(x: Any) -> Any:
    states = []
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + x[i]
        states.append((s, {"x": x[i]}))
    total = 0.0
    for s, d in states:
        total = total * 0.5 + s * d["x"]
    return total, states[3][1]["x"]


def pairs(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        found += [(x[i], 1.0), (2.0, x[i])]
    return np.array(found)


def joined(x: Any, w: Any) -> Any:
    hs = []
    for i in range(x.shape[0]):
        hs.append(np.outer(x[i], w[0]))
    return np.concatenate(hs), np.concatenate(hs, axis=1), np.vstack(hs), np.hstack(hs), np.mean(hs, axis=0)


def iterated(x: Any) -> Any:
    hs = []
    for v in x:
        hs.append(np.sin(v))
    s = 0.0
    for h in hs:
        s = s * 0.5 + h
    for i, (h, v) in enumerate(zip(hs, x)):
        s = s * 0.5 + i * h * v
    return s


def grown_twice(x: Any) -> Any:
    hs = [1.0]
    for i in range(len(x)):
        hs.extend([x[i], hs[0]])
    hs.append(2.0)
    for i in range(len(x)):
        hs.append(x[i] * len(hs))
    return np.array(hs), len(hs)


def decoded(w: Any, token: Any) -> Any:
    tokens = [token]
    for _ in range(COUNT):
        token = np.argmax(w[token])
        tokens.append(token)
    return np.stack(tokens)


def _helper(items: Any, value: Any) -> None:
    items.append(value)


def helped(x: Any) -> Any:
    hs: list[Any] = []
    for i in range(len(x)):
        _helper(hs, x[i] * 2)
    return hs[5], isinstance(hs, list), bool(hs), np.asarray(hs)


X, ROWS, W = RNG.random(COUNT), RNG.random((COUNT, 4)), RNG.random((4, 4)) * 0.3
PROGRAMS: dict[Callable[..., Any], tuple[Any, ...]] = {
    recurrent: (ROWS, W),
    both_ends: (ROWS, W),
    filtered: (X,),
    of_the_two_before: (X,),
    of_the_last: (X,),
    guarded: (X,),
    snapshots: (X,),
    either: (X,),
    nested: (X,),
    tuples: (X,),
    pairs: (X,),
    joined: (ROWS, W),
    iterated: (X,),
    grown_twice: (X,),
    decoded: (RNG.random((20, 20)), np.int64(3)),
    helped: (X,),
}


def check(found: Any, expected: Any) -> None:
    """The same structure, dtypes, shapes and numbers."""
    assert isinstance(found, (tuple, list)) == isinstance(expected, (tuple, list))
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for pair in zip(found, expected):
            check(*pair)
        return
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_loops_stay_loops(function: Callable[..., Any]) -> None:
    arguments = PROGRAMS[function]
    program = ml.compile(function, frontend="loops")
    check(program(*arguments), function(*arguments))
    assert "unrolled" not in program.explain(*arguments)


def test_arrays_that_change_after_they_were_appended() -> None:
    def same(x: Any) -> Any:
        h, hs = np.zeros(3), []
        for t in range(20):
            h += x[t]
            hs.append(h)
        return np.stack(hs)

    x = RNG.random((20, 3))
    check(ml.compile(same, frontend="loops")(x), same(x))

    def stored(x: Any) -> Any:
        y, hs = np.zeros(3), []
        for _ in range(500):
            hs.append(y)
        y[0] = 7.0
        return np.stack(hs)

    with pytest.raises(CaptureError, match="that is an item of `hs`") as caught:
        ml.compile(stored, frontend="loops")(x)
    assert "y[0] = 7.0" in str(caught.value)

    def carried(x: Any) -> Any:
        h, hs = x[0], []
        for _ in range(500):
            h = h * 0.5
            hs.append(h)
        h[0] = 7.0
        return np.stack(hs)

    with pytest.raises(CaptureError, match="that is an item of `hs`"):
        ml.compile(carried, frontend="loops")(x)


def test_an_item_that_is_not_there() -> None:
    def early(x: Any) -> Any:
        hs = [x[0]]
        for i in range(500):
            hs.append(hs[i + 1])
        return np.stack(hs)

    with pytest.raises(IndexError, match="list index out of range"):
        ml.compile(early, frontend="loops")(X)


def test_gradients() -> None:
    def loss(x: Any, w: Any) -> Any:
        return np.sum(recurrent(x, w) ** 2)

    x, step = ROWS[:40], 1e-6
    found = ml.compile(ml.grad(loss, argnums=1))(x, W)
    for i, j in ((0, 0), (1, 3), (3, 2)):
        moved = np.zeros_like(W)
        moved[i, j] = step
        expected = (loss(x, W + moved) - loss(x, W - moved)) / (2 * step)
        np.testing.assert_allclose(found[i, j], expected, rtol=1e-5)


class Writer:
    """Random programs over lists."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def program(x):", "    s, v = x[0], x[:3] * 1"]
        self.lists: dict[str, str] = {}
        self.depth = 0

    def add(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    def choose(self, *options: Any) -> Any:
        return self.random.choice(options)

    def value(self, kind: str, index: str) -> str:
        """An item of a list, of a number or an array."""
        number = self.choose("s", f"x[{index}]", f"x[{index}] * s", "1.0", "np.sin(s)", f"s + {index}")
        array = self.choose("v", "v * s", f"x[{index} : {index} + 3]", "v.copy()", "np.tanh(v)")
        return {"number": number, "array": array, "pair": f"({number}, {array})"}[kind]

    def statement(self, index: str) -> None:
        name, kind = self.choose(*self.lists.items())
        choice = self.random.random()
        if choice < 0.4:
            self.add(f"{name}.append({self.value(kind, index)})")
        elif choice < 0.45:
            self.add(f"{name} += [{self.value(kind, index)}, {self.value(kind, index)}]")
        elif choice < 0.55:
            self.add(self.choose("s = s * 0.5 + x[2]", "v = v * 0.5 + s", "v += s", "v[1] = s", "s = s + np.sum(v)"))
        elif choice < 0.7:
            place = self.choose("-1", "0", index, f"{index} - 1", "len(NAME) - 1", "-2").replace("NAME", name)
            read = {"number": "ITEM", "array": "np.sum(ITEM)", "pair": "ITEM[0]"}[kind].replace(
                "ITEM", f"{name}[{place}]"
            )
            guard = self.choose("", "", f"if {index} > 2: ", f"if len({name}) > 3: ")
            self.add(f"{guard}s = s * 0.5 + {read}")
        elif choice < 0.85:
            test = self.choose(f"{index} % 2 == 0", f"{index} % 3 == 1 and {index} > 2", "s > 0.4", f"x[{index}] > 0.5")
            self.add(f"if {test}:")
            self.inner(index)
            if self.choose(True, False):
                self.add("else:")
                self.inner(index)
        elif self.depth < 2:
            self.loop(index)

    def inner(self, index: str) -> None:
        self.depth += 1
        self.statement(index)
        self.add("pass")
        self.depth -= 1

    def loop(self, outer: str = "") -> None:
        index = f"i{self.depth}"
        count = self.choose(*((4, 9) if outer else (12, 20, 30)))
        bounds = self.choose(f"{count}", f"1, {count}", f"{count}, 1, -1", f"0, {count}, 2", f"2, {count}")
        self.add(f"for {index} in range({bounds}):")
        self.depth += 1
        if outer and self.random.random() < 0.3:
            self.new_list()
        for _ in range(self.random.randrange(1, 4)):
            self.statement(index)
        self.add("pass")
        self.depth -= 1

    def new_list(self) -> None:
        name = f"hs{len(self.lists)}"
        kind = self.choose("number", "number", "array", "pair")
        first = [self.value(kind, "1") for _ in range(self.choose(0, 0, 1, 2))]
        self.lists[name] = kind
        self.add(f"{name} = [{', '.join(first)}]")

    def write(self) -> str:
        for _ in range(self.choose(1, 2)):
            self.new_list()
        known = dict(self.lists)
        for _ in range(self.choose(1, 2)):
            self.loop()
            name, kind = self.choose(*known.items())
            if self.choose(True, False):
                self.add(f"{name}.append({self.value(kind, '2')})")
        given = []
        for name, kind in known.items():
            uses = ["len(NAME)", "NAME", "NAME[-1]", "NAME[1:]"]
            if kind != "pair":
                uses += ["np.array(NAME)", "np.stack(NAME)", "np.sum(NAME)", "np.asarray(NAME)[::2]"]
            given += [self.choose(*uses).replace("NAME", name) for _ in range(2)]
        self.add(f"return s, v, {', '.join(given)}")
        return "\n".join(self.lines)


def test_random_programs(tmp_path: Any) -> None:
    x, count = RNG.random(40), int(os.environ.get("MLIRML_FUZZ", "60"))
    seed = int(os.environ.get("MLIRML_SEED", "0"))
    refused = ran = 0
    for number in range(seed, seed + count):
        text = Writer(number).write()
        file = str(tmp_path / f"program{number}.py")
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope: dict[str, Any] = {"np": np}
        exec(compile(text, file, "exec"), scope)
        function = scope["program"]
        try:
            expected = function(x.copy())
        except (IndexError, ValueError, RuntimeWarning):
            continue
        try:
            found = ml.compile(function, frontend="loops")(x.copy())
        except (CaptureError, IndexError):  # an index in a branch that is not taken is one to tracing
            refused += 1
            continue
        ran += 1
        try:
            check(found, expected)
        except AssertionError as error:
            raise AssertionError(f"seed {number}\n{text}") from error
    assert ran > 2 * refused, f"{ran} ran, {refused} were refused"
