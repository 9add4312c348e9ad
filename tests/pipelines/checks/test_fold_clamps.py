"""Clamps after checks: one is dropped only where no number that passes the check is changed by it.

Random index arithmetic on an i8, computed for all 256 numbers as MLIR defines it, or on an i16, for 256 of them.
"""

from __future__ import annotations

import random

from mlirml.ir.bindings import defining_op, make_context, mlir, named_operations, parse
from mlirml.pipelines.checks.fold_clamps import FoldClampsPass

WIDTHS = {"i8": 8, "i16": 16, "i64": 64, "index": 64}


class Program:
    """Lines of MLIR, and what each of their values is for each of 256 numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.kind = self.random.choice(["i8", "i16"])
        step = 1 if self.kind == "i8" else self.random.choice([1, 2, 3, 256])
        self.kinds = {"%key": self.kind}
        self.numbers = {"%key": list(range(-128 * step, 128 * step, step))}

    def add(self, text: str, kind: str, numbers: list[int]) -> str:
        """A line that defines a value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.kinds[name] = kind
        width = WIDTHS.get(kind, 1)
        self.numbers[name] = [(n + (1 << width - 1)) % (1 << width) - (1 << width - 1) for n in numbers]
        return name

    def constant(self, number: int, kind: str) -> str:
        bits = WIDTHS[kind] - 1
        number = (number + (1 << bits)) % (2 << bits) - (1 << bits)
        return self.add(f"arith.constant {number} : {kind}", kind, [number] * 256)

    def shifted(self, value: str, number: int) -> str:
        kind, constant = self.kinds[value], self.constant(number, self.kinds[value])
        return self.add(f"arith.addi {value}, {constant} : {kind}", kind, [n + number for n in self.numbers[value]])

    def cast(self, value: str, kind: str) -> str:
        """To a type of another width; unsigned ones are rare."""
        old, numbers = self.kinds[value], self.numbers[value]
        if old == kind:
            return value
        unsigned = self.random.random() < 0.2 and WIDTHS[kind] > WIDTHS[old]
        if "index" in (old, kind):
            name = "arith.index_castui" if unsigned else "arith.index_cast"
        elif WIDTHS[kind] < WIDTHS[old]:
            name = "arith.trunci"
        else:
            name = "arith.extui" if unsigned else "arith.extsi"
        if unsigned:
            numbers = [n % (1 << WIDTHS[old]) for n in numbers]
        return self.add(f"{name} {value} : {old} to {kind}", kind, numbers)

    def from_end(self, value: str, size: int) -> str:
        """`value < limit ? value + size : value`, where the limit is mostly 0."""
        kind, limit = self.kinds[value], self.random.choice([0, 0, 0, 1, -2])
        constant, moved = self.constant(limit, kind), self.shifted(value, size)
        is_less = [n < limit for n in self.numbers[value]]
        less = self.add(f"arith.cmpi slt, {value}, {constant} : {kind}", "i1", [-int(x) for x in is_less])
        numbers = [a if x else b for x, a, b in zip(is_less, self.numbers[moved], self.numbers[value], strict=True)]
        return self.add(f"arith.select {less}, {moved}, {value} : {kind}", kind, numbers)

    def some(self, value: str) -> str:
        """None to two steps on the way from the number."""
        for _ in range(self.random.randrange(3)):
            if self.random.random() < 0.5:
                value = self.shifted(value, self.random.choice([1, 4, -4, 7, 100, -100, 256, -300]))
            else:
                value = self.cast(value, self.random.choice(list(WIDTHS)))
        return value


def folded(seed: int, context: mlir.Context) -> tuple[bool, bool]:
    """Whether the clamp of a random program was dropped, and whether it could be."""
    program = Program(seed)
    size = program.random.choice([1, 4, 9, 60, 127])
    checked = program.some("%key")
    if program.random.random() < 0.8:
        checked = program.shifted(checked, size)
        limit = min(2 * size, (1 << WIDTHS[program.kinds[checked]] - 1) - 1)
    else:
        limit = size
    bound = program.constant(limit, program.kinds[checked])
    inside = program.add(f"arith.cmpi ult, {checked}, {bound} : {program.kinds[checked]}", "i1", [0] * 256)
    place = program.cast(program.some("%key"), "index")
    place = program.some(program.from_end(place, size) if program.random.random() < 0.8 else place)
    place = program.cast(place, "index")
    greatest = program.constant(size - program.random.choice([0, 1, 1, 1]), "index")
    body = "\n  ".join(program.lines)
    module = parse(
        f"""
func.func @main(%keys: memref<{program.kind}>, %out: memref<index>) {{
  %key = memref.load %keys[] : memref<{program.kind}>
  {body}
  cf.assert {inside}, "index out of bounds" {{mlirml.check = 3 : i64, mlirml.check_base = 0 : i64}}
  %clamped = arith.minui {place}, {greatest} : index
  memref.store %clamped, %out[] : memref<index>
  return
}}""",
        context,
    )
    FoldClampsPass().run(module.operation)
    (store,) = named_operations(module.operation, ("memref.store",))
    stored = defining_op(store.operands[0])
    width = WIDTHS[program.kinds[checked]]
    passes = [n % (1 << width) < limit for n in program.numbers[checked]]
    places = [n % (1 << 64) for n, passed in zip(program.numbers[place], passes, strict=True) if passed]
    most = program.numbers[greatest][0]
    if all(n >= most for n in places):  # always the bound
        return stored is not None and stored.name == "arith.constant", True
    return stored is None or stored.name != "arith.minui", all(n <= most for n in places)


def test_only_clamps_that_change_nothing_are_dropped() -> None:
    dropped, context = 0, make_context()
    for seed in range(3000):
        was, could = folded(seed, context)
        assert could or not was, f"seed {seed}"
        dropped += was
    assert dropped > 50
