"""Long chains of stores, as unrolled loops make them: the results of NumPy, in time that grows with their length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.tensor import buffer_stores, scalarize

Array = np.ndarray
PASSES = (buffer_stores, scalarize)
ROWS, COLUMNS = 4, 6


def place(rng: np.random.Generator) -> str:
    """A random index of a 4 x 6 array."""
    row, column, step = int(rng.integers(ROWS)), int(rng.integers(COLUMNS)), int(rng.choice([1, 2, -1]))
    forms = [f"{row}, {column}"] * 4 + [f"{row}", f":, {column}", f"1:3, {column}:{column + 2}", f"::{step}, ::{step}"]
    return str(rng.choice(forms))


def program(seed: int, length: int) -> str:
    """Random stores into and loads from two arrays; some copies go apart, some values are read late."""
    rng = np.random.default_rng(seed)
    lines = ["def program(x, y):", "    z, kept = x.copy(), x[0, 0]"]
    for _ in range(length):
        target, source = rng.choice(["x", "z", "z", "z"]), rng.choice(["x", "y", "z", "z"])
        at = place(rng)
        kind = rng.integers(12)
        if kind < 5:
            lines.append(f"    {target}[{at}] = {source}[{at}] * 0.5 + 1")
        elif kind < 7:
            lines.append(f"    {target}[{at}] += {source}[{int(rng.integers(ROWS))}, {int(rng.integers(COLUMNS))}]")
        elif kind < 9:
            lines.append(f"    {target}[{at}] = kept")
        elif kind < 10:
            lines.append(f"    {target}[1:] = {source}[:-1]")
        elif kind < 11:
            lines.append(f"    kept = {source}[{int(rng.integers(ROWS))}, {int(rng.integers(COLUMNS))}] - kept * 0.25")
        else:
            lines.append(f"    {target}[{int(rng.integers(ROWS))}] = {source}[{int(rng.integers(ROWS))}, ::-1]")
    return "\n".join([*lines, "    return z, kept, x.sum()"])


@pytest.mark.parametrize("seed", range(16))
def test_random_chains(seed: int) -> None:
    names: dict[str, Any] = {}
    exec(program(seed, 40), names)
    rng = np.random.default_rng(seed)
    given = [rng.standard_normal((ROWS, COLUMNS)) for _ in range(2)]
    kept = [x.copy() for x in given]
    expected = [np.array(value) for value in names["program"](*kept)]
    for new, old in zip([*ml.compile(names["program"])(*given), *given], [*expected, *kept], strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-12)


def cholesky(a: Array) -> Array:
    factor = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest = rest - factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    return factor


def forward_substitution(a: Array) -> Array:
    x = np.ones(len(a))
    for i in range(len(a)):
        for j in range(i):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def bits(a: Array) -> Array:
    seen = np.zeros((6, 6), dtype=bool)
    for i in range(6):
        for j in range(6):
            seen[i, j] = (a[i, j] > 0.5) ^ seen[j, i]
    return seen


@pytest.mark.parametrize("function", [cholesky, forward_substitution, bits], ids=lambda f: f.__name__)
def test_unrolled_algorithms(function: Callable[..., Any]) -> None:
    a = np.random.default_rng(0).standard_normal((6, 6))
    a = a @ a.T + 6 * np.eye(6)
    np.testing.assert_allclose(ml.compile(function)(a), function(a), rtol=1e-12)


def test_a_chain_works_in_the_result() -> None:
    text = ml.compile(cholesky).ir("schedule", np.eye(8))
    assert "mlirml.workspace = 0 : i64" in text
    assert text.count("linalg.") == 0


def stores(count: int) -> str:
    lines = [f"%t{n + 1} = tensor.insert %v into %t{n}[%c{n % 8}] : tensor<8xf32>" for n in range(count)]
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in range(8))
    return f"""func.func @main(%t0: tensor<8xf32>, %v: f32) -> (tensor<8xf32>, f32) {{
      {constants}
      {chr(10).join(lines)}
      %old = tensor.extract %t{count // 2}[%c1] : tensor<8xf32>
      return %t{count}, %old : tensor<8xf32>, f32
    }}"""


@pytest.mark.parametrize("count, buffers", [(15, 0), (40, 1)], ids=["short", "long"])
def test_only_long_chains_and_reads_in_order(count: int, buffers: int) -> None:
    # The late read of a tensor in the middle cuts the chain there: what is left is 20 stores long.
    inputs = [np.arange(8, dtype=np.float32), np.float32(3)]
    module = parse(stores(count))
    expected = interpret(parse(stores(count)), inputs)
    parse_pipeline("mlirml-buffer-stores").run(module)
    found = sum(op.name == "memref.alloc" for op in operations(module))
    assert found == 2 * buffers if buffers else found == 0
    for new, old in zip(interpret(module, inputs), expected, strict=True):
        np.testing.assert_array_equal(new, old)


class Branching:
    """Random stores into two tensors of one shape, in branches and loops too; reads, some of which are late."""

    def __init__(self, seed: int) -> None:
        self.rng, self.lines, self.count = np.random.default_rng(seed), list[str](), 0
        self.scalars = ["%v"]

    def new(self, operation: str, prefix: str = "t") -> str:
        self.count += 1
        name = f"%{prefix}{self.count}"
        self.lines.append(f"{name} = {operation}")
        return name

    def scalar(self) -> str:
        return str(self.rng.choice(self.scalars[-6:]))

    def index(self) -> str:
        return f"%c{self.rng.integers(8)}"

    def versions(self, tensor: str, count: int, depth: int) -> str:
        """The last version of a tensor after random operations; scalars of regions are used in these alone."""
        earlier = tensor
        for _ in range(count):
            case = self.rng.integers(12)
            if case < 6:
                tensor, earlier = self.new(f"tensor.insert {self.scalar()} into {tensor}[{self.index()}] : {T}"), tensor
            elif case < 9 or depth == 2:
                source = earlier if self.rng.integers(30) == 0 else tensor
                self.scalars.append(self.new(f"tensor.extract {source}[{self.index()}] : {T}", "e"))
            elif case < 11:
                tensor, earlier = self.branches(tensor, depth), tensor
            else:
                tensor, earlier = self.loop(tensor, depth), tensor
        return tensor

    def branches(self, tensor: str, depth: int) -> str:
        condition = self.new(f"arith.cmpf ogt, {self.scalar()}, {self.scalar()} : f32", "p")
        result = self.new(f"scf.if {condition} -> ({T}) {{")
        for number in range(2):
            known = len(self.scalars)
            last = self.versions(tensor, int(self.rng.integers(3)), depth + 1)
            last = "%other" if self.rng.integers(25) == 0 else last
            self.lines += [f"scf.yield {last} : {T}", "} else {" if number == 0 else "}"]
            del self.scalars[known:]
        return result

    def loop(self, tensor: str, depth: int) -> str:
        self.count += 1
        carried, result = f"%a{self.count}", f"%t{self.count}"
        head = f"scf.for %i{self.count} = %c0 to %c3 step %c1 iter_args({carried} = {tensor}) -> ({T}) {{"
        self.lines.append(f"{result} = {head}")
        known = len(self.scalars)
        self.lines += [f"scf.yield {self.versions(carried, int(self.rng.integers(1, 6)), depth + 1)} : {T}", "}"]
        del self.scalars[known:]
        return result


T = "tensor<8xf32>"


def branching(seed: int) -> str:
    made = Branching(seed)
    last = made.versions("%t", 30, 0)
    value = made.scalars[-1]
    constants = [f"%c{n} = arith.constant {n} : index" for n in range(8)]
    head = f"func.func @main(%t: {T}, %other: {T}, %v: f32) -> ({T}, f32) {{"
    return "\n".join([head, *constants, *made.lines, f"return {last}, {value} : {T}, f32", "}"])


def test_random_branches() -> None:
    """Most chains go through branches into one buffer; each module computes what it did."""
    inputs = [np.arange(8, dtype=np.float32), np.arange(8, 16, dtype=np.float32), np.float32(3.5)]
    through = 0
    for seed in range(150):
        module = parse(branching(seed))
        expected = interpret(parse(branching(seed)), inputs)
        parse_pipeline("mlirml-buffer-stores{shortest=3 shortest-in-loop=3}").run(module)
        stores = [op for op in operations(module) if op.name == "memref.store"]
        through += any(op.parent.operation.name == "scf.if" for op in stores)
        for new, old in zip(interpret(module, inputs), expected, strict=True):
            np.testing.assert_array_equal(new, old, err_msg=f"program {seed}")
    assert through > 50
