"""Erasing what is unused, where one operation is reached by several ways."""

from __future__ import annotations

import pytest

from mlirml.ir.bindings import block_ops, parse
from mlirml.ir.erase import erase_unused

CASES = {
    "an operand twice": "%b = arith.addi %a, %a : i32\n%c = arith.muli %b, %b : i32",
    "an operand, and its operand": (
        "%b = arith.addi %a, %a : i32\n%d = arith.addi %b, %a : i32\n%c = arith.muli %d, %b : i32"
    ),
    "two results": (
        "%x = arith.constant 1 : i32\n%s, %o = arith.addui_extended %a, %x : i32, i1\n%e = arith.extui %o : i1 to i32\n"
        "%c = arith.muli %s, %e : i32"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_operation_is_erased_once(name: str) -> None:
    module = parse(f"func.func @f(%a: i32) -> i32 {{\n{CASES[name]}\nreturn %a : i32\n}}")
    block = block_ops(module.body)[0].regions[0].blocks[0]
    last = block_ops(block)[-2].results[0]
    erase_unused([last, last], lambda op: op.name.startswith("arith."))
    assert [op.name for op in block_ops(block)] == ["func.return"]


def test_what_is_used_or_may_not_be_erased_stays() -> None:
    text = "%b = arith.addi %a, %a : i32\n%d = arith.subi %b, %b : i32\n%e = arith.muli %d, %b : i32"
    module = parse(f"func.func @f(%a: i32) -> i32 {{\n{text}\nreturn %b : i32\n}}")
    block = block_ops(module.body)[0].regions[0].blocks[0]
    erase_unused(block_ops(block)[2].results, lambda op: op.name != "arith.subi")
    assert [op.name for op in block_ops(block)] == ["arith.addi", "arith.subi", "func.return"]
