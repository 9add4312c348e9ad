"""Random loops on flat arrays compute the same numbers after the arrays have got dimensions."""

from __future__ import annotations

import random

import pytest

from tests.raising.before_and_after import assert_same

SHAPES = ((3, 4), (2, 3, 4), (4, 2), (2, 2, 5))
HEAD = """
func.func @main(%x: tensor<{x}xf64>, %y: tensor<{y}xf64>) -> tensor<{y}xf64> {{
  %r = arith.constant 0 : index
"""


class Writer:
    """Writes a nest whose indices are in bounds, most of them dimension by dimension."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.shapes = {name: self.random.choice(SHAPES) for name in "xy"}

    def op(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def constant(self, number: int) -> str:
        return self.op(f"arith.constant {number} : index")

    def size(self, name: str) -> int:
        size = 1
        for extent in self.shapes[name]:
            size *= extent
        return size

    def place(self, name: str, loops: list[tuple[str, int]]) -> str:
        """A flat index; now and then one that walks over the ends of rows."""
        stride, total = self.size(name), self.constant(0)
        for extent in self.shapes[name]:
            stride //= extent
            variable, size = self.random.choice(loops)
            if size > extent or self.random.random() < 0.1:
                digit = self.constant(self.random.randrange(extent))
            else:
                digit = self.op(
                    f"arith.addi {variable}, {self.constant(self.random.randint(0, extent - size))} : index"
                )
            scaled = self.op(f"arith.muli {digit}, {self.constant(stride)} : index")
            total = self.op(f"arith.addi {scaled}, {total} : index")
        if self.random.random() < 0.05:
            total = self.op(f"arith.remsi {total}, {self.constant(self.size(name))} : index")
        return total

    def kind(self, name: str) -> str:
        return f"tensor<{self.size(name)}xf64>"

    def loop(self, depth: int, array: str, loops: list[tuple[str, int]]) -> str:
        size = self.random.randint(1, 4)
        lower, upper, step = self.constant(0), self.constant(size), self.constant(1)
        self.count += 1
        name, variable, carried = (f"%{kind}{self.count}" for kind in "liy")
        self.lines.append(
            f"{name} = scf.for {variable} = {lower} to {upper} step {step} iter_args({carried} = {array})"
            f" -> ({self.kind('y')}) {{"
        )
        inside = [*loops, (variable, size)]
        if depth:
            carried = self.loop(depth - 1, carried, inside)
        for _ in range(self.random.randint(1, 2)):
            a = self.op(f"tensor.extract %x[{self.place('x', inside)}] : {self.kind('x')}")
            b = self.op(f"tensor.extract {carried}[{self.place('y', inside)}] : {self.kind('y')}")
            s = self.op(f"arith.addf {a}, {b} : f64")
            carried = self.op(f"tensor.insert {s} into {carried}[{self.place('y', inside)}] : {self.kind('y')}")
        self.lines.append(f"scf.yield {carried} : {self.kind('y')}\n}}")
        return name

    def text(self) -> str:
        result = self.loop(self.random.randint(1, 2), self.loop(1, "%y", []), [])
        body = "\n".join(self.lines)
        return f"{HEAD.format(x=self.size('x'), y=self.size('y'))}{body}\nreturn {result} : {self.kind('y')}\n}}"


@pytest.mark.parametrize("part", range(3))
def test_random_flat_arrays(part: int) -> None:
    texts = [Writer(seed).text() for seed in range(12 * part, 12 * part + 12)]
    after = [assert_same(text, "mlirml-delinearise", seeds=1) for text in texts]
    assert sum("expand_shape" in text for text in after) > 2
