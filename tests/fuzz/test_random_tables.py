"""Random programs on a list of lists of numbers: rows are exchanged, replaced and named, in branches and loops.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time; `MLIRML_FUZZ_SEED` takes a seed back.
"""

from __future__ import annotations

import copy
import importlib.util
import random
import types
from pathlib import Path
from typing import Any

import numpy as np

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.fuzzing import COUNT, first_seed

FEWEST = 60


class Writer:
    """The statements of a program."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def index(self, loops: list[str]) -> str:
        return self.dice.choice(["0", "1", "2", *loops, *loops])

    def block(self, depth: int, loops: list[str], indent: int) -> list[str]:
        return [line for _ in range(self.dice.randint(1, 3)) for line in self.statement(depth, loops, "    " * indent)]

    def statement(self, depth: int, loops: list[str], pad: str) -> list[str]:
        dice, indent = self.dice, len(pad) // 4 + 1
        if depth and dice.random() < 0.35:
            a, b = self.index(loops), self.index(loops)
            test = dice.choice([f"m[{a}][{b}] {dice.choice(['>', '<=', '=='])} 1", f"x[{dice.randrange(4)}] > 0"])
            orelse = [f"{pad}else:", *self.block(depth - 1, loops, indent)] if dice.random() < 0.6 else []
            return [f"{pad}if {test}:", *self.block(depth - 1, loops, indent), *orelse]
        if depth and len(loops) < 2 and dice.random() < 0.35:
            name, numbers = "ij"[len(loops)], dice.choice(["range(3)", "range(2)", "range(1, 3)", "range(n)"])
            return [f"{pad}for {name} in {numbers}:", *self.block(depth - 1, [*loops, name], indent)]
        return [pad + line for line in self.simple(*(self.index(loops) for _ in range(4)))]

    def simple(self, a: str, b: str, c: str, d: str) -> list[str]:
        return self.dice.choice(
            [
                [f"m[{a}], m[{b}] = m[{b}], m[{a}]"],
                [f"row = m[{a}]", f"m[{a}] = m[{b}]", f"m[{b}] = row"],
                [f"m[{a}][{b}] -= {self.dice.choice(['1', '0.5'])}"],
                [f"m[{a}][{b}] = m[{c}][{d}] + 1"],
                [f"total += m[{a}][{b}]"],
                ["k -= 1", f"m[0][{a}] = m[0][k % 3]"],
                [f"m[{a}] = [m[{b}][0], 2, total]"],
                [f"row = m[{a}]", f"row[{b}] += 1", f"total += row[{c}]"],
            ]
        )

    def program(self) -> str:
        body = [line for _ in range(3) for line in self.statement(3, [], "    ")]
        return "\n".join(["def f(m, x, n):", "    total, k = 0, 2", *body, "    return total, k", ""])


def module_of(path: Path, code: str) -> types.ModuleType:
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(seed: int, folder: Path) -> str:
    """Compare a program with Python; gives "refused" for one with a refusal that says what it is about."""
    writer = Writer(seed)
    dice, code = writer.dice, writer.program()
    function = module_of(folder / f"table_{seed}.py", code).f
    given: Any = [[[dice.randrange(3) for _ in range(3)] for _ in range(3)], [dice.randrange(3) for _ in range(4)], 2]
    arguments, expected_arguments = copy.deepcopy(given), copy.deepcopy(given)
    expected = function(*expected_arguments)
    try:
        found = ml.compile(function, frontend="loops")(*arguments)
    except CaptureError as error:
        assert "from a branch" not in str(error), f"seed {seed}\n{code}"
        return "refused"
    what = f"seed {seed}\n{code}"
    np.testing.assert_allclose([*map(float, found)], [*map(float, expected)], err_msg=what)
    for one, other in zip(arguments[0], expected_arguments[0], strict=True):
        np.testing.assert_allclose([*map(float, one)], [*map(float, other)], err_msg=what)
    return "right"


def test_programs_on_tables(tmp_path: Path) -> None:
    first = first_seed() if COUNT else 0
    outcomes = [check(seed, tmp_path) for seed in range(first, first + (COUNT or FEWEST))]
    assert outcomes.count("right") > len(outcomes) // 3
