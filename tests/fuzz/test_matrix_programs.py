"""Random programs of columns, rows and products of matrices, in loops and without, against NumPy.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back. The sizes are such that each form of these loops occurs: some matrices exceed the second-level cache of the
processor that the code is for.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.loop_generator import function_of

PROCESSORS = ["host", "sse4.1,l2=256K"]
SHAPES = [(37, 41), (40, 40), (9, 3), (64, 200), (700, 300)]
IN_COLUMNS = [
    "t = np.dot(q, a[:, j])", "t = np.dot(a[:, j], b[:, j])", "t = np.sum(b[:, j]) / 50", "t = np.max(a[:, j])",
    "s[j] = t", "s[j] += 0.5 * t", "t = s[j] * 0.25", "t = np.tanh(t)", "a[:, j] -= 0.01 * q * t",
    "a[:, j] = 0.5 * a[:, j] + b[:, j] / 8", "b[:, j] = a[:, j] * 0.25", "b[2, j] = t", "t = b[1, j]", "a[1, j] += t",
    "b[:, j] = q", "v = a[:, j] * t", "b[:, j] = np.tanh(v)",
    "w[0, :, j] = a[:, j]", "t = np.dot(w[0, :, j], q) / 50",
]  # fmt: skip
OF_OTHERS = ["a[:, j] = np.sin(a[:, j - 1])", "t = a[j % 3, j]", "s[j] = np.dot(a[:, 0], b[:, j]) / 50", "s[j] += j"]
UPDATES = [
    "c = np.minimum(c, np.add.outer(c[:, k], c[k]))", "c[:] = np.maximum(c, c[:, k : k + 1] + c[k])",
    "c = c - 0.01 * np.outer(c[:, k], c[k])", "c = 0.5 * c + 0.25 * c[k]", "c = np.tanh(c + c[:, k : k + 1])",
    "c = 0.5 * c + 0.125 * c[k] + 0.125 * c[k + 1]", "c = 0.5 * c + 0.25 * c[1]",
]  # fmt: skip
PRODUCTS = [
    "x = q @ a / 50", "y = a @ s / 50", "x = x + a.T @ (y - q) / 50", "y = np.tanh(a @ x / 50)", "x = x - (y @ a) / 50",
    "t = np.dot(y, q) / 50", "y = y * t + q", "x = np.where(x > t, x, s)", "y = a @ (x - s) / 50 + y",
    "x = (a @ x) @ a / 500", "t = np.sum((y - q) ** 2) / 50", "y = np.exp(-(y**2))",
]  # fmt: skip
GRAMS = [
    "g = a[:, :-1].T @ a[:, 1:]", "g = a[1:] @ a[:-2].T", "g = a[:, 2:].T @ a[:, :-1] * 0.5",
    "g = b[:, :-1].T @ a[:, 1:]",
]  # fmt: skip


def source_of(rng: random.Random) -> str:
    """A function of two matrices, two vectors as long as their sides, a square matrix and another array."""
    lines = ["def program(a, b, q, s, c, w):", "    t, v = 0.5, q.copy()", "    x, y, g = s.copy(), q.copy(), 0.0"]
    for _ in range(rng.randint(1, 3)):
        form = rng.choice(("columns", "columns in a loop", "updates", "products", "grams"))
        if form.startswith("columns"):
            indent = "    "
            if form.endswith("loop"):
                lines.append("    for k in range(3):")
                indent += "    "
            low = rng.choice(("1", "k + 1" if form.endswith("loop") else "2"))
            lines.append(f"{indent}for j in range({low}, a.shape[1]):")
            body = rng.choices(IN_COLUMNS, k=rng.randint(2, 5)) + rng.choices(OF_OTHERS, k=rng.random() < 0.2)
            forget = "t, v = 0.5, q"  # what only one column needs
            lines += [f"{indent}    {line}" for line in (forget, *rng.sample(body, len(body)))]
            lines.append(f"{indent}{forget}")
        elif form == "updates":
            lines += ["    for k in range(c.shape[0] - 1):", f"        {rng.choice(UPDATES)}"]
        elif form == "products":
            lines += [f"    {line}" for line in rng.choices(PRODUCTS, k=rng.randint(2, 5))]
        else:
            lines.append(f"    {rng.choice(GRAMS)}")
    return "\n".join([*lines, "    return a, b, s, c, w, x, y, t, v, g"])


def check(seed: int) -> None:
    rng = random.Random(seed)
    source, (rows, columns) = source_of(rng), rng.choice(SHAPES)
    numbers = np.random.default_rng(seed)
    shapes = [(rows, columns)] * 2 + [(rows,), (columns,), (rng.choice((33, 70)),) * 2, (2, rows, columns)]
    given = [numbers.standard_normal(shape) / 4 for shape in shapes]
    function = function_of(source)
    with np.errstate(all="ignore"):
        expected = function(*(array.copy() for array in given))
    if not all(np.all(np.abs(value) < 1e6) for value in expected):
        return
    with ml.config.override(processor=rng.choice(PROCESSORS), threads=rng.choice((1, 2))):
        got = ml.compile(function)(*(array.copy() for array in given))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6, err_msg=f"{seed}\n{source}")


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    if COUNT and part:
        return
    first = first_seed() if COUNT else part * 8
    for number in range(COUNT or 8):
        check(first + number)
