"""Loops over single elements, with branches, compute in place what the interpreter computes on copies."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import operations, parse
from mlirml.runtime.executable import load_artifact
from mlirml.targets.cpu import codegen, cpu_target

N = 6
KIND = f"tensor<{N}xf64>"


class Program:
    """A random program on two arrays, as MLIR text. `old` is a copy of an array that is read later."""

    def __init__(self, seed: int, *, snapshots: bool) -> None:
        self.random = random.Random(seed)
        self.snapshots = snapshots
        self.count = 0
        arrays = {"a": "%a", "b": "%b"}
        self.old = "%a"
        self.indices: list[str] = []
        body = self.block(arrays, 3)
        constants = [f"%c{n} = arith.constant {n} : index" for n in range(N + 1)]
        constants += [f"%f{n} = arith.constant {0.25 * n} : f64" for n in range(5)]
        lines = [*constants, *body, f"return {arrays['a']}, {arrays['b']} : {KIND}, {KIND}"]
        self.text = (
            f"func.func @main(%a: {KIND}, %b: {KIND}) -> ({KIND}, {KIND}) "
            "attributes {mlirml.writebacks = array<i64: 0, 0, 1, 1>} {\n" + "\n".join(lines) + "\n}"
        )

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def block(self, arrays: dict[str, str], depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["store", "store", "for", "if", "if"]) if depth else "store"
            lines += getattr(self, f"{kind}_")(arrays, depth)
            if self.snapshots and self.random.random() < 0.2 and depth == 3:
                self.old = arrays["a"]
        return lines

    def index(self, lines: list[str]) -> str:
        if not self.indices or self.random.random() < 0.2:
            return f"%c{self.random.randrange(N)}"
        total, place = self.name(), self.name()
        lines.append(f"{total} = arith.addi {self.random.choice(self.indices)}, %c{self.random.randrange(3)} : index")
        lines.append(f"{place} = arith.remui {total}, %c{N} : index")
        return place

    def element(self, lines: list[str], array: str) -> str:
        place, result = self.index(lines), self.name()
        lines.append(f"{result} = tensor.extract {array}[{place}] : {KIND}")
        return result

    def store_(self, arrays: dict[str, str], depth: int) -> list[str]:
        lines: list[str] = []
        sources = [*arrays.values(), *([self.old] if self.snapshots else [])]
        x, y = (self.element(lines, self.random.choice(sources)) for _ in range(2))
        half, value, result = self.name(), self.name(), self.name()
        lines.append(f"{half} = arith.mulf {x}, %f{self.random.randint(1, 2)} : f64")
        lines.append(f"{value} = arith.subf {half}, {y} : f64")
        target = self.random.choice("ab")
        place = self.index(lines)
        lines.append(f"{result} = tensor.insert {value} into {arrays[target]}[{place}] : {KIND}")
        arrays[target] = result
        return lines

    def condition(self, lines: list[str], arrays: dict[str, str]) -> str:
        result = self.name()
        if self.indices and self.random.random() < 0.5:
            lines.append(f"{result} = arith.cmpi slt, {self.random.choice(self.indices)}, %c2 : index")
        else:
            lines.append(f"{result} = arith.cmpf olt, {self.element(lines, arrays['a'])}, %f1 : f64")
        return result

    def if_(self, arrays: dict[str, str], depth: int) -> list[str]:
        lines: list[str] = []
        condition, result = self.condition(lines, arrays), self.name()
        lines.append(f"{result}:2 = scf.if {condition} -> ({KIND}, {KIND}) {{")
        for number in range(2):
            inner = dict(arrays)
            if number == 0 or self.random.random() < 0.6:
                lines += self.block(inner, depth - 1)
            lines.append(f"scf.yield {inner['a']}, {inner['b']} : {KIND}, {KIND}")
            lines.append("} else {" if number == 0 else "}")
        arrays.update(a=f"{result}#0", b=f"{result}#1")
        return lines

    def for_(self, arrays: dict[str, str], depth: int) -> list[str]:
        variable, a, b, result = (self.name() for _ in range(4))
        lower, upper = f"%c{self.random.randrange(3)}", f"%c{self.random.randint(2, N)}"
        lines = [
            f"{result}:2 = scf.for {variable} = {lower} to {upper} step %c1 "
            f"iter_args({a} = {arrays['a']}, {b} = {arrays['b']}) -> ({KIND}, {KIND}) {{"
        ]
        self.indices.append(variable)
        inner = {"a": a, "b": b}
        lines += self.block(inner, depth - 1)
        if self.random.random() < 0.1:
            inner = {"a": inner["b"], "b": inner["a"]}
        self.indices.pop()
        arrays.update(a=f"{result}#0", b=f"{result}#1")
        return [*lines, f"scf.yield {inner['a']}, {inner['b']} : {KIND}, {KIND}", "}"]


def check(text: str) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, N))
    expected = interpret(parse(text), [a.copy(), b.copy()])
    target = cpu_target()
    module = parse(text)
    target.pipeline.run(module)
    spec = [(np.float64, (N,))] * 2
    program = load_artifact(codegen(module), spec, spec, writebacks=[(0, 0), (1, 1)])
    program((a, b))
    for got, wanted in zip((a, b), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9, err_msg=text)


@pytest.mark.parametrize("seed", range(0, 48, 3))
def test_random_programs(seed: int) -> None:
    check(Program(seed, snapshots=seed % 3 == 0).text)


@pytest.mark.parametrize("seed", range(40, 45))
def test_programs_without_copies_of_arrays_have_no_copies(seed: int) -> None:
    text = Program(seed, snapshots=False).text
    swapped = any("#1, %" in line for line in text.splitlines())
    module = parse(text)
    cpu_target().pipeline.run(module, stop_after="schedule")
    assert swapped or not any(op.name == "memref.copy" for op in operations(module))


def test_marked_loops_run_in_parallel_and_give_the_same() -> None:
    def escape(counts: Any) -> None:
        for i in ml.parallel(range(counts.shape[0])):
            for j in range(counts.shape[1]):
                x, y, n = 0.0, 0.0, 0
                while x * x + y * y <= 4.0 and n < 50:
                    x, y = x * x - y * y + j / 32 - 2, 2.0 * x * y + i / 32 - 1
                    n += 1
                counts[i, j] = n

    expected, got = np.zeros((40, 64)), np.zeros((40, 64))
    escape(expected)
    compiled = ml.compile(escape, frontend="loops")
    compiled(got)
    # Products and sums are fused: a point at the edge may take a round more or less.
    assert np.mean(got != expected) < 0.01
    assert "mlirml.parallel_for" in compiled.ir("schedule", got)


def test_recurrences_stay_sequential() -> None:
    def smooth(a: Any) -> None:
        for i in range(1, a.shape[0]):
            for j in range(1, a.shape[1]):
                a[i, j] = 0.5 * (a[i - 1, j] + a[i, j - 1])

    a = np.random.default_rng(0).standard_normal((100, 600))
    expected = a.copy()
    smooth(expected)
    compiled = ml.compile(smooth, frontend="loops")
    compiled(a)
    np.testing.assert_allclose(a, expected, rtol=1e-12, atol=1e-12)
    assert "mlirml.parallel_for" not in compiled.ir("schedule", a)


@pytest.mark.parametrize(("first", "last"), [(0, 9), (3, 7), (5, 5), (2, 4)])
def test_an_element_that_is_read_over_and_over_and_stored_once(first: int, last: int) -> None:
    def eliminate(a: Any) -> None:
        for k in range(a.shape[0]):
            for i in range(a.shape[0]):
                for j in range(first, last):
                    a[i, j] = min(a[i, j], a[i, k] + a[k, j])

    a = np.random.default_rng(0).standard_normal((9, 9))
    expected = a.copy()
    eliminate(expected)
    ml.compile(eliminate, frontend="loops")(a)
    np.testing.assert_allclose(a, expected, rtol=1e-12)
