"""Random programs on memrefs, with affine and scf loops and conditions, give the same numbers on tensors."""

from __future__ import annotations

import random

import pytest

from tests.raising.before_and_after import assert_same, transformed

SIZE = 6
KIND = f"memref<{SIZE}xf64>"
MATRIX = f"memref<{SIZE}x{SIZE}xf64>"


class Writer:
    """Writes statements on two vectors, a matrix, and local memory."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def place(self, loops: list[str]) -> str:
        """An index that is in bounds: loops run from 1 to 5."""
        variable = self.random.choice([*loops, ""])
        if not variable:
            return str(self.random.randrange(SIZE))
        return variable + self.random.choice(["", " - 1", " + 1"])

    def access(self, arrays: list[str], loops: list[str]) -> str:
        if self.random.random() < 0.4:
            return f"%m[{self.place(loops)}, {self.place(loops)}] : {MATRIX}"
        return f"{self.random.choice(arrays)}[{self.place(loops)}] : {KIND}"

    def statement(self, depth: int, arrays: list[str], loops: list[str]) -> list[str]:
        choice = self.random.randrange(9 if depth else 3)
        if choice < 3:
            a, b, c = self.fresh(), self.fresh(), self.fresh()
            return [
                f"{a} = affine.load {self.access(arrays, loops)}",
                f"{b} = affine.load {self.access(arrays, loops)}",
                f"{c} = arith.{self.random.choice(['addf', 'mulf'])} {a}, {b} : f64",
                f"affine.store {c}, {self.access(arrays, loops)}",
            ]
        i = self.fresh()
        if choice < 5:
            upper = self.random.choice(["5", *(f"min affine_map<(d0) -> (d0 + 2, 5)>({v})" for v in loops)])
            body = self.body(depth - 1, arrays, [*loops, i])
            return [f"affine.for {i} = 1 to {upper} step {self.random.randint(1, 2)} {{", *body, "}"]
        if choice == 5:
            a, array = self.fresh(), self.random.choice(arrays)
            lines = [f"scf.for {i} = %c1 to %c5 step %c1 {{", f"{a} = memref.load %m[%c1, {i}] : {MATRIX}"]
            return [*lines, f"memref.store {a}, {array}[{i}] : {KIND}", *self.body(depth - 1, arrays, loops), "}"]
        if choice == 6 and loops:
            relation = self.random.choice([">= 0", "== 0"])
            condition = f"affine_set<(d0) : (d0 - 2 {relation}, 4 - d0 >= 0)>({loops[-1]})"
            then, other = (self.body(depth - 1, arrays, loops) for _ in range(2))
            return [
                f"affine.if {condition} {{",
                *then,
                *(["} else {", *other] if self.random.random() < 0.5 else []),
                "}",
            ]
        if choice == 7:
            a, b, c = self.fresh(), self.fresh(), self.fresh()
            lines = [f"{a} = memref.load %x[%c1] : {KIND}", f"{b} = memref.load %y[%c1] : {KIND}"]
            lines += [f"{c} = arith.cmpf olt, {a}, {b} : f64", f"scf.if {c} {{"]
            return [*lines, *self.body(depth - 1, arrays, loops), "}"]
        view, local = self.fresh(), self.fresh()
        whole = f"strided<[{SIZE}], offset: 2>"
        lines = [
            f"{local} = memref.alloc() : {KIND}",
            f"{view} = memref.subview %m[0, 2] [{SIZE}, 1] [1, 1] : {MATRIX} to memref<{SIZE}xf64, {whole}>",
            f"memref.copy {view}, {local} : memref<{SIZE}xf64, {whole}> to {KIND}",
            *self.body(depth - 1, [*arrays, local], loops),
            f"memref.copy {local}, {view} : {KIND} to memref<{SIZE}xf64, {whole}>",
            f"memref.dealloc {local} : {KIND}",
        ]
        return lines

    def body(self, depth: int, arrays: list[str], loops: list[str]) -> list[str]:
        count = self.random.randint(1, 3)
        return [line for _ in range(count) for line in self.statement(depth, arrays, loops)]

    def text(self) -> str:
        head = f"func.func @main(%x: {KIND}, %y: {KIND}, %m: {MATRIX}) {{"
        constants = ["%c1 = arith.constant 1 : index", "%c5 = arith.constant 5 : index"]
        body = [line for _ in range(2) for line in self.body(3, ["%x", "%y"], [])]
        return "\n".join([head, *constants, *body, "return", "}"])


@pytest.mark.parametrize("part", range(4))
def test_random_memory(part: int) -> None:
    for seed in range(8 * part, 8 * part + 8):
        after = assert_same(Writer(seed).text(), "mlirml-memory-to-value", seeds=1)
        assert "memref" not in after and "affine.for" not in after


def test_arguments_that_may_be_one() -> None:
    text = """
    func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %i: index) {
      %a = memref.load %x[%i] : memref<4xf32>
      memref.store %a, %y[%i] : memref<4xf32>
      return
    }"""
    assert "memref" not in transformed(text, "mlirml-memory-to-value")
    assert "memref" in transformed(text, "mlirml-memory-to-value{may-alias=true}")
