"""Random programs of lists that the data make longer and shorter, against Python: results, errors and arguments.

`MLIRML_FUZZ=2000` runs so many programs, other ones each time.
"""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, given, note, reject, seed, settings
from hypothesis import strategies as st

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.loop_generator import function_of
from tests.fuzz.test_random_lists import flat, structure

LINES = [
    "w.append({v})", "if w: s += w.pop()", "if len(w) > 2: s -= w.pop(0)", "while w and w[-1] > {v}: w.pop()",
    "w.insert(1, {v})", "if s in w: w.remove(s)", "if w: w[-1] = {v}", "if x[i] < 0: w.clear()",
    "if len(w) > 1: del w[1]", "if w and w[0] < s: w.reverse()", "s = i // (n + 1)", "if {v} > 0: w.append(s)",
    "if {v} < s: break", "s += i % n", "s += len(w)", "s = sum(w)", "p.append((i, {v}))", "x[i] = s",
    "if p: s += p.pop()[1]", "w.pop()", "w += [{v}, s]", "q.append({v})", "q.appendleft({v})", "if q: s += q.popleft()",
    "if q and q[0] < {v}: q.popleft()", "w = list(q)", "q = deque(w)", "if q: s -= q.pop()",
    "if not w or w.pop() > {v}: s += 1", "while q and q.pop() != {v}: s += 1",
    "if {v} > 0 and w: s += w.pop()", "s += 1 if {v} < 0 or w else 2", "if w != [] or s > {v}: s += 3",
    "while q and (w or q[-1] > {v}): q.pop()",
    "while q:\n            if q.pop() == {v}: break",
]  # fmt: skip
VALUES = ["i", "s", "x[i]", "2", "k[i]"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a function of two arrays of six integers and a number."""
    lines = [
        draw(st.sampled_from(LINES)).format(v=draw(st.sampled_from(VALUES))) for _ in range(draw(st.integers(2, 5)))
    ]
    loop = (
        ["    for i in range(n + 2):"] if draw(st.booleans()) else ["    i = -1", "    while i < n:", "        i += 1"]
    )
    return "\n".join(
        [
            "def program(x, k, n):",
            "    w, p, q, s = [], [], deque(), 0",
            *loop,
            *(f"        {line}" for line in lines),
            "    return w, p, list(q), s",
        ]
    )


def gives_the_same(source: str, values: int) -> None:
    """Assert that a program has the results, or the error, that it has in Python, or is refused."""
    note(source)
    function, rng = function_of(source), np.random.default_rng(values)
    x, k, n = rng.integers(-3, 4, 6), rng.integers(0, 4, 6), values % 4
    given_x, expected_x, error = x.copy(), x.copy(), None
    try:
        expected = function(expected_x, k.copy(), n)
    except (IndexError, ZeroDivisionError) as raised:
        error, expected_x = raised, x
    if error is None and not all(abs(number) < 2.0**45 for number in flat(list(expected))):
        reject()
    try:
        found = ml.compile(function, frontend="loops")(given_x, k, n)
    except CaptureError:
        return
    except (IndexError, ZeroDivisionError) as raised:
        assert type(raised) is type(error), (raised, error)
    else:
        assert error is None, (found, error)
        assert structure(list(found)) == structure(list(expected)), (found, expected)
        assert [int(one) for one in flat(list(found))] == [int(one) for one in flat(list(expected))]
    assert np.array_equal(given_x, expected_x)


def test_stacks() -> None:
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
