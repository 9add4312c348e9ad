"""Ranges against all values that random index arithmetic takes, under random conditions too."""

from __future__ import annotations

import itertools
import random

import pytest

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Ranges, decided
from mlirml.ir.bindings import block_ops, main_function, mlir, parse
from mlirml.raising.nests.conditions import Limits

BINARY = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "minsi": min,
    "maxsi": max,
    "floordivsi": lambda a, b: a // b if b > 0 else None,
    "divsi": lambda a, b: (abs(a) // b) * (1 if a >= 0 else -1) if b > 0 else None,
    "remsi": lambda a, b: abs(a) % b * (1 if a >= 0 else -1) if b > 0 else None,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}
MAPS = {
    "affine.apply affine_map<(d0)[s0] -> (3 * d0 - s0 + 1)>": lambda a, b: 3 * a - b + 1,
    "affine.apply affine_map<(d0)[s0] -> (s0 floordiv 3 + d0 mod 4)>": lambda a, b: b // 3 + a % 4,
    "affine.apply affine_map<(d0)[s0] -> (d0 ceildiv 2 - s0)>": lambda a, b: -(-a // 2) - b,
    "affine.min affine_map<(d0)[s0] -> (d0, s0 + 1)>": lambda a, b: min(a, b + 1),
    "affine.max affine_map<(d0)[s0] -> (d0, s0 + 1)>": lambda a, b: max(a, b + 1),
}
OPERATIONS = BINARY | MAPS
COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a % 2**64 < b % 2**64,
    "uge": lambda a, b: a % 2**64 >= b % 2**64,
}
BOUNDS = ((-2, 3), (0, 4))


def program(rng: random.Random) -> tuple[str, list[tuple[str, int, int]], list[tuple[str, int, int]]]:
    """A loop nest as text, its arithmetic and its comparisons, each an operation on two numbers of values."""
    lines, values = [], 2
    arithmetic, comparisons = [], []
    for constant in (-3, 2, 5):
        lines.append(f"%v{values} = arith.constant {constant} : index")
        values += 1
    for _ in range(8):
        name, a, b = rng.choice(list(OPERATIONS)), rng.randrange(values), rng.randrange(values)
        arithmetic.append((name, a, b))
        mapped = name.startswith("affine.")
        lines.append(f"%v{values} = " + (f"{name}(%v{a})[%v{b}]" if mapped else f"arith.{name} %v{a}, %v{b} : index"))
        values += 1
    for number in range(2):
        name, a, b = rng.choice(list(COMPARISONS)), rng.randrange(values), rng.randrange(values)
        comparisons.append((name, a, b))
        lines.append(f"%c{number} = arith.cmpi {name}, %v{a}, %v{b} : index")
    body = "\n".join([*lines, "%c2 = arith.andi %c0, %c1 : i1", "%c3 = arith.ori %c0, %c1 : i1"])
    (l0, u0), (l1, u1) = BOUNDS
    text = f"""
    func.func @main() {{
      %l0 = arith.constant {l0} : index
      %u0 = arith.constant {u0} : index
      %l1 = arith.constant {l1} : index
      %u1 = arith.constant {u1} : index
      %one = arith.constant 1 : index
      scf.for %v0 = %l0 to %u0 step %one {{
        scf.for %v1 = %l1 to %u1 step %one {{
          {body}
        }}
      }}
      return
    }}"""
    return text, arithmetic, comparisons


@pytest.mark.parametrize("seed", range(60))
def test_ranges_hold_every_value(seed: int) -> None:
    text, arithmetic, comparisons = program(random.Random(seed))
    module = parse(text)
    outer = block_ops(main_function(module).regions[0].blocks[0])[5].regions[0].blocks[0]
    inner = block_ops(outer)[0].regions[0].blocks[0]
    results = [op.results[0] for op in block_ops(inner)[:-1]]
    names: list[mlir.Value] = [outer.arguments[0], inner.arguments[0], *results]
    numbers, conditions = names[:-4], names[-4:]
    ranges = Ranges()
    limits = Limits(ranges, Reader(lambda _: True))
    cases = [(n, holds) for n in range(len(conditions)) for holds in (True, False)]
    assumed = {(n, holds): ranges.given(conditions[n], holds) for n, holds in cases}
    summed = {(n, holds): limits.given(conditions[n], holds) for n, holds in cases}
    for i, j in itertools.product(range(*BOUNDS[0]), range(*BOUNDS[1])):
        values: list[int | None] = [i, j, -3, 2, 5]
        for name, a, b in arithmetic:
            x, y = values[a], values[b]
            values.append(None if x is None or y is None else OPERATIONS[name](x, y))
        if any(v is None for v in values):
            return  # a division that is not defined
        held = [COMPARISONS[name](values[a], values[b]) for name, a, b in comparisons]
        held += [held[0] and held[1], held[0] or held[1]]
        for number, value in zip(numbers, values, strict=True):
            assert value is not None
            assert ranges.of(number)[0] <= value <= ranges.of(number)[1], text
            for condition, holds in enumerate(held):
                for known in (assumed[condition, holds], summed[condition, holds]):
                    low, high = known.of(number)
                    assert low <= value <= high, (text, condition, holds)
        for condition, (name, a, b) in enumerate(comparisons):
            predicate = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge").index(name)
            outcome = decided(predicate, ranges.of(numbers[a]), ranges.of(numbers[b]))
            assert outcome in (None, held[condition]), text
