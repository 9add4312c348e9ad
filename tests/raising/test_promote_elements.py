"""Random loops over one array compute the same numbers after the elements that they update are numbers."""

from __future__ import annotations

import random

import pytest

from tests.raising.before_and_after import assert_same

KIND = "tensor<12xf64>"


class Writer:
    """Writes nests that read and store a few elements of one array, some of them at places that do not move."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def op(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def constant(self, number: int) -> str:
        return self.op(f"arith.constant {number} : index")

    def place(self, loops: list[str]) -> str:
        """Loops run below 5, so that there is room for one factor or one offset."""
        variable = self.random.choice(loops)
        choice = self.random.randrange(4)
        if choice == 0:
            return self.op(f"arith.addi {variable}, {self.constant(self.random.randrange(6))} : index")
        if choice == 1:
            return self.op(f"arith.muli {variable}, {self.constant(2)} : index")
        return variable if choice == 2 else self.constant(self.random.randrange(12))

    def loop(self, depth: int, array: str, loops: list[str]) -> str:
        lower = self.random.choice([self.constant(self.random.randrange(3)), *loops])
        upper = self.random.choice([self.constant(self.random.randrange(5)), *loops])
        places = [self.place(loops) for _ in range(2)] if loops else []
        step = self.constant(self.random.randint(1, 2))
        self.count += 1
        name, variable, state = (f"%{kind}{self.count}" for kind in "lix")
        head = f"{name} = scf.for {variable} = {lower} to {upper} step {step} iter_args({state} = {array})"
        self.lines.append(f"{head} -> ({KIND}) {{")
        inside = [*loops, variable]
        for _ in range(self.random.randint(1, 3)):
            choices = [*places[:1] * 6, *places[1:], self.place(inside)]
            a, b = (self.op(f"tensor.extract {state}[{self.random.choice(choices)}] : {KIND}") for _ in range(2))
            if depth and self.random.random() < 0.6:
                state = self.loop(depth - 1, state, inside)
            c = self.op(f"arith.subf {a}, {b} : f64")
            state = self.op(f"tensor.insert {c} into {state}[{self.random.choice(choices)}] : {KIND}")
        self.lines.append(f"scf.yield {state} : {KIND}\n}}")
        return name

    def text(self) -> str:
        result = self.loop(2, "%x", [])
        body = "\n".join(self.lines)
        return f"func.func @main(%x: {KIND}) -> {KIND} {{\n{body}\nreturn {result} : {KIND}\n}}"


@pytest.mark.parametrize("part", range(4))
def test_random_loops(part: int) -> None:
    texts = [Writer(seed).text() for seed in range(20 * part, 20 * part + 20)]
    after = [assert_same(text, "mlirml-promote-elements", seeds=1) for text in texts]
    assert sum("-> (f64)" in text or ", f64)" in text for text in after) > 0


def test_an_element_that_is_stored_of_another_array() -> None:
    after = assert_same(
        """
        func.func @main(%a: tensor<4xf64>, %b: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c4 = arith.constant 4 : index
          %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a0 = %a, %b0 = %b) -> (tensor<4xf64>, tensor<4xf64>) {
            %x = tensor.extract %b0[%c1] : tensor<4xf64>
            %a1 = tensor.insert %x into %a0[%c1] : tensor<4xf64>
            %y = arith.addf %x, %x : f64
            %b1 = tensor.insert %y into %b0[%c1] : tensor<4xf64>
            scf.yield %a1, %b1 : tensor<4xf64>, tensor<4xf64>
          }
          return %r#0, %r#1 : tensor<4xf64>, tensor<4xf64>
        }
        """,
        "mlirml-promote-elements",
    )
    assert "-> (f64, f64)" in after
