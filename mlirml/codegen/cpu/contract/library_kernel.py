"""The kernel of a contraction that calls the product of a library by way of the native runtime."""

from __future__ import annotations

from mlirml.codegen.cpu.contract.kernel import Job, Kernel, declared
from mlirml.codegen.cpu.contract.library import ADDS, match_library
from mlirml.codegen.cpu.contract.plan import BITS

PRODUCT = "mlirml_product"
_PARAMETERS = 11


def build_library(job: Job, name: str) -> Kernel:
    """The function that passes the addresses of the operands, sizes and distances of rows."""
    problem, form = job.problem, match_library(job.problem)
    size = BITS[problem.compute] // 8
    named = {letter: x for letter, x in zip(job.names, job.arguments, strict=True) if x is not None}
    lines = [f"%size = arith.constant {size} : index"]
    for letter, argument in named.items():
        start = f"%{letter}_offset"
        if argument.offset is not None:
            start = f"%{letter}_start"
            lines.append(f"{start} = arith.constant {argument.offset} : index")
        lines += [
            f"%{letter}_base = memref.extract_aligned_pointer_as_index %{letter} : {argument.type} -> index",
            f"%{letter}_bytes = arith.muli {start}, %size : index",
            f"%{letter}_first = arith.addi %{letter}_base, %{letter}_bytes : index",
            f"%{letter}_address = arith.index_cast %{letter}_first : index to i64",
        ]
    mode = form.mode | (ADDS if job.accumulate else 0)
    dtype = ord("f") | size << 8
    numbers = [problem.m.size, problem.n.size, problem.k_size, form.a, form.b, form.c, mode, dtype]
    lines += [f"%n{position} = arith.constant {number} : i64" for position, number in enumerate(numbers)]
    operands = [*(f"%{letter}_address" for letter in named), *(f"%n{position}" for position in range(len(numbers)))]
    types = ", ".join(["i64"] * _PARAMETERS)
    lines.append(f"func.call @{PRODUCT}({', '.join(operands)}) : ({types}) -> ()")
    head = f"func.func private @{name}({', '.join(declared(named))}) {{"
    declaration = f"func.func private @{PRODUCT}({types})"
    return Kernel("\n".join([head, *lines, "return", "}"]), (), ((PRODUCT, declaration),))
