"""Random programs of loops whose arrays get shorter by what the data say, against NumPy.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

import random

import numpy as np

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.loop_generator import function_of

MASKS = ["a * a < {v}", "a > {w}", "(a - b) < {v}", "b < {v}", "np.sin(a) > {w}", "a == a", "a > 99.0", "i + a < {v}"]
VALUES, WEAK = ["0.7", "1.5", "2.5", "s * 0.01 + 1"], ["-0.9", "-0.2", "0.1"]
STEPS = [
    "m = {m}\na, b, at = a[m], b[m], at[m]", "m = {m}\nb = b[m] * 0.9\na, at = a[m], at[m]",
    "keep = np.flatnonzero({m})\na, b, at = a[keep], b[keep], at[keep]",
    "a *= 1.1", "b += a * 0.1", "np.add(a, b, a)", "a = a + 0.25", "a, b = b, a", "s += a.sum()", "s += len(a)",
    "s += np.max(np.abs(b), initial=0.0)", "b = np.where(a > b, a, b) * 0.95", "a, b, at = a[1:], b[1:], at[1:]",
    "b[b > 2] = 0.5",
    "out[at[{m}]] += 1.0", "m = {m}\na, b, at = a[m], b[m], at[m]", "a, b, at = a[::-1], b[::-1], at[::-1]",
    "if s > 3:\n    m = {m}\n    a, b, at = a[m], b[m], at[m]", "if len(a) < 4:\n    break", "a = a.copy()",
    "if s < 5:\n    m = {m}\n    a, b, at = a[m], b[m], at[m]\nelse:\n    b = b * 0.5",
    "c = a\na = a * 0.9\ns += c.sum()", "c = b\nb *= 0.9\ns += c.sum()",
]  # fmt: skip


def program(rng: random.Random) -> str:
    """The source of a function of two arrays of one length and a trip count."""

    def step() -> list[str]:
        mask = rng.choice(MASKS).format(v=rng.choice(VALUES), w=rng.choice(WEAK))
        return rng.choice(STEPS).format(m=mask).split("\n")

    body = [line for _ in range(rng.randint(2, 6)) for line in step()]
    lines = ["def program(x, y, n):", "    a, b, s, at = x.copy(), y + 0.5, 0.0, np.arange(len(x))"]
    lines += ["    out = np.zeros(len(x))"]
    head = rng.choice(["for i in range(n):", "for i in range(4):", "i = 0\n    while len(a) > 2 and i < n:"])
    lines += [f"    {head}", *(f"        {line}" for line in body)]
    if "while" in head:
        lines = [line for line in lines if line.strip() != "break"]
        lines = [line.replace("if len(a) < 4:", "s += 0") for line in lines] + ["        i += 1"]
    return "\n".join([*lines, "    return a, b, s, at, out", ""])


def test_random_programs() -> None:
    start, refused = (first_seed() if COUNT else 7), 0
    number = COUNT or 60
    for case in range(number):
        rng = random.Random(start + case)
        source = program(rng)
        function, values = function_of(source), np.random.default_rng(start + case)
        x, y = values.standard_normal((2, rng.choice([1, 7, 40]))).round(2)
        n = rng.choice([0, 1, 5])
        before = x.copy(), y.copy()
        with np.errstate(all="ignore"):
            expected = function(x.copy(), y.copy(), n)
        try:
            found = ml.compile(function)(x, y, n)
        except CaptureError:
            refused += 1
            continue
        assert np.array_equal(x, before[0]) and np.array_equal(y, before[1]), source
        for one, other in zip(found, expected, strict=True):
            assert np.shape(one) == np.shape(other), (start + case, source)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=f"seed {start + case}\n{source}")
    print(f"{number} programs, {refused} of them refused")
    assert refused <= number // 3
