"""Ranges of floats: those of long chains of operations are found without recursion."""

from __future__ import annotations

import math

from mlirml.analysis.ranges import Ranges
from mlirml.ir.bindings import block_ops, main_function, parse

LENGTH = 4000


def test_a_chain_of_thousands_of_operations() -> None:
    lines = ["%v0 = arith.sitofp %n : i8 to f64", "%step = arith.constant 0.5 : f64"]
    lines += [f"%v{i + 1} = arith.{'addf' if i % 2 else 'maxnumf'} %v{i}, %step : f64" for i in range(LENGTH)]
    text = "\n".join(["func.func @main(%n: i8) -> f64 {", *lines, f"return %v{LENGTH} : f64", "}"])
    module = parse(text)
    function = main_function(module)
    *_, last, _ = block_ops(function.regions[0].blocks[0])
    low, high = Ranges().floats.of(last.results[0]) or (math.nan, math.nan)
    assert low <= 0.5 + LENGTH // 2 * 0.5 <= 127 + LENGTH // 2 * 0.5 <= high < 1.001 * (127 + LENGTH // 2 * 0.5)
