"""Loops that store rows of arrays copy rows, never whole arrays, whatever they read in between.

`MLIRML_FUZZ=2000` runs so many random programs, other ones each time; `MLIRML_FUZZ_SEED` takes the seed back.
"""

from __future__ import annotations

import linecache
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.bindings import block_ops, mlir, operations, parse
from mlirml.passes import parse_pipeline
from mlirml.targets.cpu import cpu_target
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.oracle import cloned

Array = np.ndarray
ROWS, COLUMNS = 12, 10
ROW_BYTES = 8 * COLUMNS


def two_stores(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[0]):
        c[k] = a[k] * 0.5
        c[k] = c[k] / (a[k] - c[k - 1])


def row_and_element(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[0]):
        c[k] = c[k - 1] * 0.5 + a[k]
        c[k, 0] = c[k - 1, 1]


def into_local_arrays(a: Array, c: Array, rows: Array) -> tuple[Array, Array]:
    d, e = np.zeros_like(a), c * 2
    for k in range(1, a.shape[0]):
        d[k] = a[k] * 0.5
        e[k] = d[k - 1] * c[k]
        d[k] = d[k] / (a[k] + e[k - 1])
    return d, e


def through_a_view(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[0]):
        row = c[k]
        row[:] = a[k] * 0.5
        row[:] = row / (a[k] + c[k - 1])
        row[0] = c[k - 1, 1]


def parts_of_rows(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[0]):
        c[k, :6] = c[k - 1, :6] * 0.5 + a[k, :6]
        c[k, 3:] = c[k - 1, 3:] + c[k, 3]


def columns(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[1]):
        c[:, k] = a[:, k] * 0.5
        c[:, k] = c[:, k] / (2 + c[:, k - 1])


def backwards(a: Array, c: Array, rows: Array) -> None:
    for k in range(a.shape[0] - 2, -1, -1):
        c[k] = a[k] - c[k + 1] * 0.5
        c[k] *= 0.3 + c[k + 1]


def in_a_while(a: Array, c: Array, rows: Array) -> int:
    k = 1
    while k < a.shape[0]:
        c[k] = a[k] * 0.5
        c[k] = c[k] / (a[k] + c[k - 1])
        k += 2 if c[k, 0] > 0.7 else 1
    return k


def in_inner_loops(a: Array, c: Array, rows: Array) -> None:
    for _ in range(3):
        for k in range(1, a.shape[0]):
            c[k] = a[k] * 0.5 + c[k]
            i = 0
            while i < 3:
                c[k] = c[k] / (2 + c[k - 1])
                i += 1


def in_branches(a: Array, c: Array, rows: Array) -> Array:
    d = np.zeros_like(a)
    for k in range(a.shape[0]):
        if k == 0:
            c[k] = a[k] * 0.5
            d[k] = a[k] / 3
        elif k < a.shape[0] - 1:
            c[k] = a[k] * 0.5
            d[k] = a[k] + c[k - 1]
            c[k] = c[k] / (3 + c[k - 1])
            d[k] = (d[k] - d[k - 1] * a[k]) / (3 + c[k - 1])
        else:
            d[k] = (a[k] - d[k - 1]) / 2
    for k in range(a.shape[0] - 2, -1, -1):
        d[k] -= c[k] * d[k + 1]
    return d


def rows_from_an_array(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[0]):
        p = rows[k]
        c[p] = c[k] * 0.5
        c[k] = c[p] + a[k]
        c[p] = c[p] - c[k]


def exchanged_rows(a: Array, c: Array, rows: Array) -> None:
    for k in range(a.shape[0] // 2):
        row = c[k].copy()
        c[k] = c[a.shape[0] - 1 - k]
        c[a.shape[0] - 1 - k] = row


def slices_of_the_row_before(a: Array, c: Array, rows: Array) -> None:
    for k in range(1, a.shape[0]):
        row = c[k - 1] * 0.5
        row[a[k] > 0.5] = 1.0
        c[k] = row
        c[k, 3:7] = c[k - 1, 1:5]


def old_rows_read_late(a: Array, c: Array, rows: Array) -> Array:
    d = c * 2
    for k in range(2, a.shape[0] - 2, 2):
        c[k + 1, 3] = 0.25
        d[k] = c[k] - d[k] * a[k] * 0.5
        c[k, 0] = c[k + 1, 2] * 0.5 + c[k - 2, 1]
        c[k] *= (c[k - 2] - a[k] * a[k] * 0.5) * 0.1
    return d


def in_fori_loop(a: Array, c: Array, rows: Array) -> Any:
    def body(k: Any, state: Any) -> Any:
        u, v = state
        u[k] = v[k] * 0.5
        v[k] = u[k] + v[k - 1]
        u[k] = u[k] * u[k - 1]
        return u, v

    return ml.fori_loop(1, a.shape[0], body, (a * 1.0, c * 1.0))


def in_while_loop(a: Array, c: Array, rows: Array) -> Any:
    def body(state: Any) -> Any:
        k, u = state
        u[k] = a[k] * 0.5
        u[k] = u[k] + u[k - 1]
        return k + 1, u

    return ml.while_loop(lambda state: state[0] < a.shape[0], body, (1, c * 1.0))[1]


def in_scan(a: Array, c: Array, rows: Array) -> Any:
    def step(state: Any, row: Any) -> Any:
        state[1] = state[0] * 0.5 + row
        state[0] = state[1] - state[2]
        state[1] = state[1] * state[0]
        return state, state[1]

    return ml.scan(step, c * 1.0, a)


PROGRAMS = [
    two_stores, row_and_element, into_local_arrays, through_a_view, parts_of_rows, columns, backwards, in_a_while,
    in_inner_loops, in_branches, rows_from_an_array, exchanged_rows, slices_of_the_row_before, old_rows_read_late,
    in_fori_loop, in_while_loop, in_scan,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_no_array_is_copied_in_a_loop(function: Callable[..., Any]) -> None:
    copies_rows_only(function, *arguments(0))


def test_no_array_is_copied_in_random_loops() -> None:
    start = first_seed() if COUNT else 0
    for seed in range(start, start + (COUNT or 30)):
        source = random_source(random.Random(seed))
        try:
            copies_rows_only(function_of(source, seed), *arguments(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}:\n{source}\n{error}") from error


def copies_rows_only(function: Callable[..., Any], *given: Array) -> None:
    """A program does what it does in Python, and no copy in its loops is as big as an array."""
    theirs, ours = cloned(given), cloned(given)
    compiled = ml.compile(function)
    expected, result = function(*theirs), compiled(*ours)
    for one, other in zip((*flat(result), *ours), (*flat(expected), *theirs), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-12)
    sizes = copied_bytes(str(compiled.ir("optimize", *given)))
    assert all(size <= max(2 * ROW_BYTES, 8 * ROWS) for size in sizes), f"{sizes} bytes are copied in loops"


def flat(result: Any) -> tuple[Any, ...]:
    if isinstance(result, tuple):
        return tuple(part for one in result for part in flat(one))
    return () if result is None else (result,)


def arguments(seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.random((ROWS, COLUMNS)), rng.random((ROWS, COLUMNS)), rng.integers(0, ROWS, ROWS)


def copied_bytes(optimized: str) -> list[int]:
    """The bytes of each copy that is made in a loop, after bufferization."""
    module = parse(optimized)
    schedule = dict(cpu_target().stages)["schedule"]
    parse_pipeline(schedule[: schedule.index(",mlirml-relax-floats")]).run(module)
    return [8 * math.prod(op.operands[0].type.shape) for op in operations(module) if is_copy(op) and is_in_loop(op)]


def is_copy(op: mlir.Operation) -> bool:
    if op.name in ("memref.copy", "linalg.copy"):
        return True
    if op.name != "linalg.generic":
        return False
    body = op.regions[0].blocks[0]
    return len(block_ops(body)) == 1 and all(value.owner == body for value in block_ops(body)[0].operands)


def is_in_loop(op: mlir.Operation) -> bool:
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in ("scf.for", "scf.while"):
            return True
    return False


def function_of(source: str, seed: int) -> Callable[..., Any]:
    file = f"<random rows {seed}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    names: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), names)
    return names["program"]  # type: ignore[no-any-return]


COLUMN_SLICES = {
    "": [""], "0": ["0", "1", "5"], "3": ["2", "3", "4"], "1:5": ["1:5", "2:6", "4:8"], "4:9": ["4:9", "3:8", "0:5"],
    ":8": [":8", "1:9", "2:10"], "1:9:2": ["1:9:2", "0:8:2"],
}  # fmt: skip
"""What is stored into, and what may be read there. Slices of different steps of one row are left out, as NumPy stores
such a slice into another one that overlaps with it as if it were read element by element."""


def random_source(rng: random.Random) -> str:
    """A loop over the rows of arrays, with stores into rows and parts of them."""
    lines = ["def program(a, c, rows):"]
    arrays = rng.choice((["c"], ["d"], ["c", "d"]))
    if "d" in arrays:
        lines.append(rng.choice(("    d = np.zeros_like(a)", "    d = c * 2")))
    indent, kind = "    ", rng.choice(("for", "for", "while", "nested"))
    if kind == "nested":
        lines.append(f"{indent}for _ in range(3):")
        indent += "    "
    if kind == "while":
        lines += [f"{indent}k = 2", f"{indent}while k < a.shape[0] - 2:"]
    else:
        ranges = ("2, a.shape[0] - 2", "a.shape[0] - 3, 1, -1", "2, a.shape[0] - 2, 2")
        lines.append(f"{indent}for k in range({rng.choice(ranges)}):")
    indent += "    "
    places = ["k", "k", "k", "k", "k - 1", "k + 1", "k - 2"]
    if rng.random() < 0.4:
        lines.append(f"{indent}p = rows[k]")
        places += ["p", "p"]
    for _ in range(rng.randint(2, 5)):
        lines += random_statement(rng, arrays, places, indent, 0)
    if kind == "while":
        lines.append(f"{indent}k += 1")
    lines.append("    return " + rng.choice([*arrays, "a[0]", ", ".join((*arrays, "c"))]))
    return "\n".join(lines) + "\n"


def random_statement(rng: random.Random, arrays: list[str], places: list[str], indent: str, depth: int) -> list[str]:
    if depth < 2 and rng.random() < 0.1:
        lines = [f"{indent}if a[k, {rng.randrange(4)}] > 0.5:"]
        for _ in range(rng.randint(1, 2)):
            lines += random_statement(rng, arrays, places, indent + "    ", depth + 1)
        if rng.random() < 0.5:
            lines.append(f"{indent}else:")
            lines += random_statement(rng, arrays, places, indent + "    ", depth + 1)
        return lines
    columns = rng.choice(("", "", "", *COLUMN_SLICES))

    def element(names: list[str], part: str) -> str:
        return f"{rng.choice(names)}[{rng.choice(places)}{', ' * bool(part)}{part}]"

    def read() -> str:
        return element([*arrays, "a"], rng.choice(COLUMN_SLICES[columns]))

    forms = [f"{read()} * 0.5 + {read()}", read(), f"{read()} - {read()} * {read()} * 0.5", "0.25"]
    if not columns:
        forms.append(f"np.where({read()} > 0.4, {read()}, {read()} * 0.3)")
        forms += [f"{read()} * (np.sum({read()}) * 0.01)", f"np.cumsum({read()}) * 0.05"]
    operator, value = rng.choice(("=", "=", "=", "+=", "*=")), rng.choice(forms)
    return [f"{indent}{element(arrays, columns)} {operator} {value if operator == '=' else f'({value}) * 0.1'}"]
