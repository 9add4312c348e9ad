"""Random loops with nested conditionals compute the same numbers after the conditionals are selects."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.raising.before_and_after import assert_same

SIZES = {"a": 5, "b": 7}
HEAD = """
func.func @main(%a0: tensor<5xf64>, %b0: tensor<7xf64>, %n: tensor<7xi64>)
    -> (tensor<5xf64>, tensor<7xf64>, tensor<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %s0 = arith.constant 0.5 : f64
  %r:3 = scf.for %i = %c0 to %c7 step %c1 iter_args(%a = %a0, %b = %b0, %s = %s0)
      -> (tensor<5xf64>, tensor<7xf64>, f64) {
"""
TAIL = """
  }
  %t = tensor.from_elements %r#2 : tensor<f64>
  return %r#0, %r#1, %t : tensor<5xf64>, tensor<7xf64>, tensor<f64>
}
"""
KINDS = "tensor<5xf64>, tensor<7xf64>, f64"


class Writer:
    """Writes the body of a loop; `inside` are the indices in bounds by the conditions around, with arrays."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def op(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def place(self, array: str, inside: Sequence[tuple[str, str]]) -> str:
        places = [place for place, of in inside if of == array] + (["%i"] if array == "b" else ["%c1"])
        return self.random.choice(places)

    def statements(self, depth: int, state: list[str], inside: list[tuple[str, str]]) -> list[str]:
        numbers = [state[2]]
        for _ in range(self.random.randint(1, 4)):
            which = self.random.randrange(2)
            array, kind = "ab"[which], f"tensor<{SIZES['ab'[which]]}xf64>"
            choice = self.random.randrange(7 if depth else 4)
            if choice == 0:
                numbers.append(self.op(f"tensor.extract {state[which]}[{self.place(array, inside)}] : {kind}"))
            elif choice == 1:
                name = self.random.choice(["addf", "mulf", "subf"])
                numbers.append(self.op(f"arith.{name} {self.random.choice(numbers)}, {numbers[-1]} : f64"))
            elif choice in (2, 3):
                place = self.place(array, inside)
                stored = f"tensor.insert {self.random.choice(numbers)} into {state[which]}[{place}] : {kind}"
                state = [self.op(stored) if n == which else v for n, v in enumerate(state)]
            elif choice == 4:
                state = self.loop(depth - 1, [*state[:2], self.random.choice(numbers)], inside)
                numbers.append(state[2])
            else:
                state = self.conditional(depth - 1, [*state[:2], self.random.choice(numbers)], inside)
        return [*state[:2], self.random.choice(numbers)]

    def loop(self, depth: int, state: list[str], inside: list[tuple[str, str]]) -> list[str]:
        self.count += 1
        number = self.count
        carried = [f"%{name}{number}" for name in "abs"]
        inits = ", ".join(f"{name} = {value}" for name, value in zip(carried, state))
        self.lines.append(f"%v{number}:3 = scf.for %j{number} = %c0 to %c5 step %c1 iter_args({inits}) -> ({KINDS}) {{")
        end = self.statements(depth, carried, [*inside, (f"%j{number}", "a"), (f"%j{number}", "b")])
        self.lines.append(f"scf.yield {', '.join(end)} : {KINDS}\n}}")
        return [f"%v{number}#{n}" for n in range(3)]

    def condition(self) -> tuple[str, list[tuple[str, str]]]:
        array = self.random.choice("ab")
        if self.random.random() < 0.5:
            offset = self.op("arith.addi %i, %c1 : index")
            return self.op(f"arith.cmpi slt, {offset}, %c{SIZES[array]} : index"), [(offset, array)]
        number = self.op("tensor.extract %n[%i] : tensor<7xi64>")
        place = self.op(f"arith.index_cast {number} : i64 to index")
        low = self.op(f"arith.cmpi sge, {number}, %zero : i64")
        return low, [(place, array)]  # the numbers are small

    def conditional(self, depth: int, state: list[str], inside: list[tuple[str, str]]) -> list[str]:
        condition, known = self.condition()
        outer, ends = self.lines, []
        for branch in ([*inside, *known], inside):
            self.lines = []
            end = self.statements(depth, list(state), branch)
            ends.append("\n".join([*self.lines, f"scf.yield {', '.join(end)} : {KINDS}"]))
        self.lines = outer
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name}:3 = scf.if {condition} -> ({KINDS}) {{\n{ends[0]}\n}} else {{\n{ends[1]}\n}}")
        return [f"{name}#{n}" for n in range(3)]


@pytest.mark.parametrize("seed", range(16))
def test_random_conditionals(seed: int) -> None:
    writer = Writer(seed)
    end = writer.conditional(2, ["%a", "%b", "%s"], [])
    text = "\n".join([HEAD, *writer.lines, f"scf.yield {', '.join(end)} : {KINDS}", TAIL])
    after = assert_same(text, "mlirml-convert-ifs{longest=1000 exchanges=true}", seeds=1)
    assert after.count("scf.if") < text.count("scf.if")
    if text.count("scf.for") == 1:
        assert "scf.if" not in after
