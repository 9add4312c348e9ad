"""Random loop programs on arrays of integers: deep, triangular, strided, backward, with numbers that loops carry."""

from __future__ import annotations

import random
import sys
import warnings

import numpy as np

from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import operations, parse
from mlirml.passes import parse_pipeline
from tests.raising.loop_text import loop_module

PIPELINE = "canonicalize,cse,mlirml-raise,canonicalize,cse"
SHAPES = {"a": (6,), "b": (7,), "A": (5, 6), "B": (6, 5), "C": (6, 6)}


class Checked:
    """An array that has no negative indices."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def check(self, place: object) -> object:
        places = place if isinstance(place, tuple) else (place,)
        if not all(0 <= int(n) < size for n, size in zip(places, self.array.shape, strict=True)):
            raise IndexError
        return place

    def __getitem__(self, place: object) -> np.int64:
        return self.array[self.check(place)]

    def __setitem__(self, place: object, value: object) -> None:
        self.array[self.check(place)] = value


class Program:
    """One random program as Python text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.arguments = self.random.sample(sorted(SHAPES), self.random.randint(1, 3))
        self.arrays = dict.fromkeys(self.arguments)
        self.shapes = dict(SHAPES)
        self.scalars: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        for _ in range(self.random.randint(1, 2)):
            self.loop(1, [])
        self.text = f"def main({', '.join(self.arguments)}):\n" + "\n".join(self.lines) + "\n"

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def loop(self, depth: int, variables: list[str]) -> None:
        name = "ijkl"[len(variables)]
        low, high = self.bound(variables), self.bound(variables)
        kind = self.random.random()
        if kind < 0.5:
            low, high = self.random.randint(0, 2), self.random.randint(3, 6)
        steps = f", {self.random.randint(2, 3)}" if kind < 0.06 else ""
        if kind > 0.93:
            low, high, steps = high, low, ", -1"
        self.write(depth, f"for {name} in range({low}, {high}{steps}):")
        inner = [*variables, name]
        scalars, arrays = list(self.scalars), dict(self.arrays)
        if self.random.random() < 0.1:
            name = f"w{self.count}"
            self.count += 1
            self.write(depth + 1, f"{name} = zeros(6)")
            self.arrays[name], self.shapes[name] = None, (6,)
        for _ in range(self.random.randint(1, 3)):
            if len(inner) < 4 and self.random.random() < 0.4 - 0.1 * len(inner):
                self.loop(depth + 1, inner)
            else:
                self.statement(depth + 1, inner)
        if len(inner) < 3 and self.random.random() < 0.5:
            self.loop(depth + 1, inner)
            if self.random.random() < 0.5:
                self.statement(depth + 1, inner)
        self.scalars, self.arrays = scalars, arrays

    def bound(self, variables: list[str]) -> str:
        if variables and self.random.random() < 0.6:
            more = self.random.choice(["", " + 1", " - 1"])
            return f"{self.random.choice(variables)}{more}"
        return str(self.random.randint(0, 6))

    def index(self, variables: list[str]) -> str:
        kind = self.random.random()
        one = self.random.choice(variables)
        if kind < 0.7:
            return one
        if kind < 0.85:
            return f"{one} {self.random.choice(['+', '-'])} {self.random.randint(1, 2)}"
        if kind < 0.9:
            return f"{one} {self.random.choice(['+', '-'])} {self.random.choice(variables)}"
        return f"{self.random.randint(3, 5)} - {one}" if kind < 0.95 else str(self.random.randint(0, 4))

    def element(self, variables: list[str]) -> str:
        name = self.random.choice(list(self.arrays))
        return f"{name}[{', '.join(self.index(variables) for _ in self.shapes[name])}]"

    def value(self, variables: list[str], depth: int = 0) -> str:
        kind = self.random.random()
        if depth > 2 or kind < 0.35:
            return self.element(variables)
        if kind < 0.45 and self.scalars:
            return self.random.choice(self.scalars)
        if kind < 0.5:
            return self.random.choice([*variables, str(self.random.randint(1, 3))])
        first, second = (self.value(variables, depth + 1) for _ in range(2))
        if kind < 0.6:
            return f"{self.random.choice(['min', 'max'])}({first}, {second})"
        return f"({first} {self.random.choice('+-*')} {second})"

    def statement(self, depth: int, variables: list[str]) -> None:
        kind = self.random.random()
        if kind < 0.15 and len(self.scalars) < 3:
            name = f"s{self.count}"
            self.count += 1
            self.write(depth, f"{name} = {self.value(variables)}")
            self.scalars.append(name)
        elif kind < 0.4 and self.scalars:
            name = self.random.choice(self.scalars)
            self.write(depth, f"{name} {self.random.choice(['+=', '-=', '='])} {self.value(variables)}")
        elif kind < 0.5:
            place = self.element(variables)
            self.write(depth, f"{place} = {self.random.choice(['max', 'min'])}({place}, {self.value(variables)})")
        else:
            mark = self.random.choice(["=", "=", "+=", "-=", "*="])
            self.write(depth, f"{self.element(variables)} {mark} {self.value(variables)}")


def arrays_of(program: Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-9, 10, SHAPES[name]) for name in program.arguments}


def python_result(program: Program, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """What Python computes; None for a program that leaves its arrays."""
    space: dict[str, object] = {"zeros": lambda size: Checked(np.zeros(size, np.int64))}
    exec(program.text, space)
    results = {name: array.copy() for name, array in arrays.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            space["main"](*(Checked(array) for array in results.values()))  # type: ignore[operator]
    except (IndexError, UnboundLocalError):
        return None
    return results


def check(seed: int, pipeline: str = PIPELINE) -> tuple[int, int] | None:
    """Loops before and after raising; None for a program of no use. Raises `AssertionError` for other numbers."""
    program = Program(seed)
    arrays = arrays_of(program, seed)
    expected = python_result(program, arrays)
    if expected is None:
        return None
    text = loop_module(program.text, arrays, {}, "i64")
    module = parse(text)
    before = sum(op.name == "scf.for" for op in operations(module.operation))
    parse_pipeline(pipeline).run(module)
    after = sum(op.name == "scf.for" for op in operations(module.operation))
    got = interpret(module, list(arrays.values()))
    for name, value in zip(arrays, got):
        assert np.array_equal(value, expected[name]), f"seed {seed}: {name}\n{program.text}"
    return before, after


if __name__ == "__main__":
    found = [loops for loops in map(check, range(int(sys.argv[1]))) if loops is not None]
    before, after = (sum(column) for column in zip(*found))
    print(f"{len(found)} programs give Python's numbers; {before} loops, {after} of them left")
