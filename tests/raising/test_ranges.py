"""Ranges against all values that random index arithmetic takes, under random conditions too."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Ranges, decided
from mlirml.ir.bindings import block_ops, main_function, mlir, parse
from mlirml.raising.nests.conditions import Limits


def signed(number: int) -> int:
    """The number of the same 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


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
    "shli": lambda a, b: signed(a << b) if 0 <= b < 64 else None,
    "shrsi": lambda a, b: a >> b if 0 <= b < 64 else None,
    "shrui": lambda a, b: signed(a % 2**64 >> b) if 0 <= b < 64 else None,
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


class Carrying:
    """A random loop nest that carries integers: its text, and the values that each of its numbers takes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.numbers = rng, 0
        self.names: list[str] = []
        self.values: dict[str, set[int]] = {}
        self.moments: list[dict[str, int]] = []
        """The numbers and conditions that are known at the end of an iteration of one of the loops."""

    def text(self) -> str:
        constants = [-1, 1, 2, 5, self.rng.getrandbits(16), *(self.rng.choice((0, 3, 255, -7)) for _ in range(2))]
        self.steps: list[Callable[[dict[str, int]], None]] = []
        lines = [f"{self.name()} = arith.constant {constant} : index" for constant in constants]
        self.start = dict(zip(self.names, constants))
        lines += ["%from = arith.constant 0 : index", "%to = arith.constant 6 : index"]
        body, self.run = self.loop(list(self.names), 2)
        return "\n".join(["func.func @main() {", *lines, *body, "return", "}"])

    def name(self) -> str:
        self.numbers += 1
        self.names.append(f"%v{self.numbers}")
        return self.names[-1]

    def loop(self, known: list[str], depth: int) -> tuple[list[str], Callable[[dict[str, int]], None]]:
        """A loop that reads numbers known around it; it carries two. What it does, in a mapping of numbers."""
        rng, counter, carried = self.rng, self.name(), [self.name(), self.name()]
        inits, result = rng.choices(known, k=2), self.name()
        self.names.remove(result)
        inside, steps, lines = [*known, counter, *carried], [], []
        for number in range(6):
            if depth > 1 and number == 3:
                inner, run = self.loop(inside, depth - 1)
                lines += inner
                steps.append(run)
                inside += [self.last + "#0", self.last + "#1"]
                continue
            more, step = self.operation(inside)
            lines.append(more)
            steps.append(step)
            inside.append(self.names[-1])
        conditions = [name + "c" for name in inside if name + "c" in self.names]
        ends = rng.choices(inside[-5:], k=2)
        self.last = result
        head = f"{result}:2 = scf.for {counter} = %from to %to step %v2 "
        head += f"iter_args({carried[0]} = {inits[0]}, {carried[1]} = {inits[1]}) -> (index, index) {{"
        self.names += [result + "#0", result + "#1"]

        def run(values: dict[str, int]) -> None:
            now = [values[name] for name in inits]
            for i in range(6):
                values.update({counter: i, carried[0]: now[0], carried[1]: now[1]})
                for name in (counter, *carried):
                    self.values.setdefault(name, set()).add(values[name])
                for step in steps:
                    step(values)
                self.moments.append({name: values[name] for name in (*inside, *conditions)})
                now = [values[name] for name in ends]
            for number in range(2):
                values[f"{result}#{number}"] = now[number]
                self.values.setdefault(f"{result}#{number}", set()).add(now[number])

        return [head, *lines, f"scf.yield {ends[0]}, {ends[1]} : index, index", "}"], run

    def operation(self, known: list[str]) -> tuple[str, Callable[[dict[str, int]], None]]:
        rng, name = self.rng, self.name()
        kind, (a, b, c, d) = rng.choice([*BINARY, "select", "if"]), rng.choices(known[-8:], k=4)
        if kind.startswith("sh"):
            b = "%v2"
        elif "div" in kind or kind == "remsi":
            b = "%v4"
        elif kind in ("select", "if") and rng.random() < 0.5:
            b = rng.choice(("%v1", "%v2", "%v3", "%v4"))
        comparison = rng.choice(list(COMPARISONS))

        def step(values: dict[str, int]) -> None:
            if kind in BINARY:
                found = BINARY[kind](values[a], values[b])
            else:
                values[name + "c"] = COMPARISONS[comparison](values[a], values[b])
                found = values[c if values[name + "c"] else d]
            assert found is not None
            values[name] = signed(found)
            self.values.setdefault(name, set()).add(values[name])

        if kind in BINARY:
            return f"{name} = arith.{kind} {a}, {b} : index", step
        self.names.insert(-1, name + "c")
        compared = f"{name}c = arith.cmpi {comparison}, {a}, {b} : index\n"
        if kind == "select":
            return compared + f"{name} = arith.select {name}c, {c}, {d} : index", step
        return (
            compared
            + f"{name} = scf.if {name}c -> (index) {{ scf.yield {c} : index }} else {{ scf.yield {d} : index }}",
            step,
        )


def carried_numbers(block: mlir.Block) -> list[mlir.Value]:
    """The arguments and results in the order in which `Carrying` names them."""
    found: list[mlir.Value] = list(block.arguments)
    for op in block_ops(block):
        if op.name == "scf.for":
            found += carried_numbers(op.regions[0].blocks[0])
        found += op.results
    return found


@pytest.mark.parametrize("seed", range(400))
def test_ranges_hold_what_loops_carry(seed: int) -> None:
    random_nest = Carrying(random.Random(seed))
    text = random_nest.text()
    module = parse(text)
    random_nest.run(dict(random_nest.start))
    numbers = carried_numbers(main_function(module).regions[0].blocks[0])
    del numbers[7:9]  # the bounds
    named, ranges = dict(zip(random_nest.names, numbers, strict=True)), Ranges()
    for name, values in random_nest.values.items():
        low, high = ranges.of(named[name])
        assert all(low <= value <= high for value in values), (text, name)
    given: dict[tuple[str, int], Ranges] = {}
    for moment in random_nest.moments:
        for condition in (name for name in moment if name.endswith("c")):
            key = condition, moment[condition]
            if key not in given:
                given[key] = ranges.given(named[condition], bool(moment[condition]))
            for name in moment:
                low, high = given[key].of(named[name]) if not name.endswith("c") else (0, 1)
                assert low <= moment[name] <= high, (text, name, condition)
