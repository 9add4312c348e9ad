"""Random calls that change objects, dicts, lists and variables outside, against Python: results and all state.

Each program is a function of two objects, a list, a dict and a number, which is called many times, with other objects,
and with changes from outside in between. `MLIRML_FUZZ=2000` runs so many programs, other ones each time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

import mlirml as ml
from mlirml.errors import MlirmlError
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.loop_generator import function_of

NUMBERS = [
    "k", "1", "2.5", "p.a", "q.a", "p.n", "q.n", "shared.a", "shared.n", "items[0]", "items[2]", 'table["x"]', "l[1]",
    'd["x"]', "p.t[0]", "p.a * k", "q.n + 1", "items[1] - l[0]", "p.v[1]", "p.v.sum()", 'table["v"][0]', "p.get(k)",
]  # fmt: skip
ARRAYS = ["p.v", "q.v", "shared.v", 'table["v"]', 'd["v"]']
TARGETS = ["p.a", "q.a", "shared.a", "items[1]", 'table["x"]', "l[0]", "l[2]", 'd["x"]']
COUNTS = ["p.n", "q.n", "shared.n"]
LINES = [
    "{t} = {s}", "{t} = {t} + {s}", "{t} += {s}", "{c} += 1", "{c} = {c} + 2", "{a} = {b} * 0.5 + {s}", "{a}[0] = {s}",
    "{a} += {b} * 0.25", "{a}[1:] = {b}[:2] + {s}", "p.a, q.a = q.a, p.a", "p.t = p.t[1], p.t[0]", "p.t = {s}, {s}",
    "if k > 1: {t} = {s}", "if k > 1: {c} += 3", "for i in range(3): items[i] = items[i] + {s}", "p.move(k)",
    "for o in (p, q): o.a = o.a + {s}", "l[0], l[1] = l[1], l[0]",
]  # fmt: skip
HEAD = """
def program():
    from dataclasses import dataclass

    class Plain:
        def __init__(self, a):
            self.a, self.n, self.v, self.t = a, 1, np.arange(3.0) + a, (a, 2.0)

        def move(self, k):
            self.a += self.v[0] * k
            self.n += 2

        def get(self, k):
            return self.a * k + self.n

    class Equal(Plain):
        def __eq__(self, other):
            return isinstance(other, Equal)

    class Hashed(Equal):
        def __hash__(self):
            return 1

    class Slotted(Plain):
        __slots__ = ("a", "n", "v", "t")

    @dataclass(eq=False)
    class Data:
        a: float
        n: int
        v: object
        t: tuple

        move, get = Plain.move, Plain.get

    shared = Plain(0.5)
    items = [1.0, 2.0, 3.0]
    table = {"x": 1.0, "v": np.ones(3)}

    def run(p, q, l, d, k):
"""
TAIL = """
    pool = [Plain(1.0), Plain(2.0), Equal(3.0), Equal(4.0), Hashed(5.0), Hashed(6.0), Slotted(7.0)]
    pool += [Data(8.0, 1, np.ones(3), (1.0, 2.0)), Data(9.0, 2, np.arange(3.0), (1.0, 3.0))]
    return run, pool, [shared, items, table, [1.0, 2.0, 3.0], {"x": 2.0, "v": np.arange(3.0)}]
"""


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a function that makes a world: the function that is compiled, objects for it, and all else."""

    def one(of: list[str]) -> str:
        return draw(st.sampled_from(of))

    lines = [
        one(LINES).format(t=one(TARGETS), s=one(NUMBERS), c=one(COUNTS), a=one(ARRAYS), b=one(ARRAYS))
        for _ in range(draw(st.integers(1, 4)))
    ]
    result = one([*NUMBERS, *(f"{a} * 2" for a in ARRAYS)])
    return HEAD + "".join(f"        {line}\n" for line in [*lines, f"return {result}"]) + TAIL


CHANGES = {
    "number": lambda o, x: setattr(o, "a", x),
    "integer": lambda o, x: setattr(o, "a", int(x)),
    "scalar": lambda o, x: setattr(o, "a", np.float64(x)),
    "array": lambda o, x: setattr(o, "v", np.arange(3.0) * x),
    "element": lambda o, x: o.v.__setitem__(1, x),
    "single": lambda o, x: setattr(o, "v", np.float32([1, 2, x])),
    "tuple": lambda o, x: setattr(o, "t", (x, 1.0)),
}


def state(value: Any) -> Any:
    """What a value holds, with types, but those of numbers."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [*map(state, value)]
    if isinstance(value, dict):
        return [(key, state(item)) for key, item in value.items()]
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    if dataclasses.is_dataclass(value) or hasattr(value, "move"):
        return type(value).__name__, [(name, state(getattr(value, name))) for name in ("a", "n", "v", "t")]
    if isinstance(value, (int, float, np.integer)):  # branches that give one variable two types give it one of them
        return "number", float(value)
    return type(value).__name__, value


def rounded(value: Any) -> Any:
    """The value with floats of twelve digits: sums may be in another order."""
    if isinstance(value, (list, tuple)):
        return [*map(rounded, value)]
    return float(f"{value:.11e}") if isinstance(value, float) and value == value else repr(value)


def gives_the_same(source: str, start: int) -> None:
    """Assert that a world is the same after each call as with plain Python, or that the function is refused."""
    note(source)
    rng = np.random.default_rng(start)
    with np.errstate(all="ignore"):
        (run, pool, rest), (plain, objects, others) = function_of(source)(), function_of(source)()
        compiled = ml.compile(run)
        for _ in range(12):
            p, q = (int(n) for n in rng.choice(len(pool), 2, replace=False))
            k = float(rng.integers(0, 4)) / 2
            if rng.integers(0, 4) == 0:
                change, x = [*CHANGES.values()][rng.integers(0, len(CHANGES))], float(rng.integers(-3, 4))
                change(pool[p], x)
                change(objects[p], x)
            try:
                found = compiled(pool[p], pool[q], rest[3], rest[4], k)
            except MlirmlError as refused:
                note(str(refused))
                assert not isinstance(refused, ml.errors.InternalError), refused
                return
            expected = plain(objects[p], objects[q], others[3], others[4], k)
            np.testing.assert_allclose(found, expected, rtol=1e-11)
            assert rounded(state([pool, rest])) == rounded(state([objects, others])), (p, q, k)


def test_state() -> None:
    seed(first_seed() if COUNT else 0)(
        settings(
            max_examples=COUNT or 25,
            deadline=None,
            database=None,
            derandomize=not COUNT,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(given(programs(), st.integers(0, 9))(gives_the_same))
    )()
