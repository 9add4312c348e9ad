"""Structured operations and the loops that upstream lowers them to must agree on the reference target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirml.interpreter.interpreter import interpret
from mlirml.ir import bindings as ir

CONTEXT = ir.make_context()
SIZE = 3
BODIES = {
    "sum of products": "%p = arith.muli %a, %b : i32\n%r = arith.addi %o, %p : i32",
    "sum, the other way round": "%p = arith.subi %a, %b : i32\n%r = arith.addi %p, %o : i32",
    "two sums": "%p = arith.addi %o, %a : i32\n%r = arith.addi %p, %b : i32",
    "unsigned maximum": "%r = arith.maxui %o, %a : i32",
    "difference": "%p = arith.subi %a, %o : i32\n%r = arith.addi %p, %b : i32",
    "last value": "%r = arith.muli %a, %b : i32",
    "squares": "%p = arith.addi %o, %a : i32\n%r = arith.muli %p, %p : i32",
    "sum of indices": "%i = linalg.index 0 : index\n%k = arith.index_cast %i : index to i32\n"
    "%p = arith.muli %k, %a : i32\n%r = arith.addi %o, %p : i32",
}
RESULTS = ["d0", "d1", "d2", "d0 + d1", "d1 * 2 + d2", "-d2 + 2", "d0 mod 2", "(d0 + d2) floordiv 2", "1"]


@dataclass(frozen=True)
class Generic:
    """Maps of two inputs and two outputs, and the body of each output."""

    maps: list[list[str]]
    bodies: list[str]

    def text(self) -> str:
        shapes = [self.shape(results) for results in self.maps]
        types = [f"memref<{''.join(f'{size}x' for size in shape)}i32>" for shape in shapes]
        # The first operand names every dimension, so that the iteration space is known.
        cube = f"memref<{SIZE}x{SIZE}x{SIZE}xi32>"
        maps = ", ".join(f"affine_map<(d0, d1, d2) -> ({', '.join(m)})>" for m in [["d0", "d1", "d2"], *self.maps])
        lines = []
        for n, name in enumerate(self.bodies):
            body = BODIES[name].replace("%o", f"%o{n}")
            for value in "pikr":
                body = body.replace(f"%{value}", f"%{value}{n}")
            lines.append(body)
        return f"""func.func @main(%c: {cube}, %x: {types[0]}, %y: {types[1]}, %u: {types[2]}, %v: {types[3]}) {{
          linalg.generic {{indexing_maps = [{maps}], iterator_types = ["reduction", "reduction", "reduction"]}}
            ins(%c, %x, %y : {cube}, {types[0]}, {types[1]}) outs(%u, %v : {types[2]}, {types[3]}) {{
          ^bb0(%cube: i32, %a: i32, %b: i32, %o0: i32, %o1: i32):
            {chr(10).join(lines)}
            linalg.yield %r0, %r1 : i32, i32
          }}
          return
        }}"""

    @staticmethod
    def shape(results: list[str]) -> list[int]:
        d0, d1, d2 = np.indices((SIZE, SIZE, SIZE))
        python = [result.replace("mod", "%").replace("floordiv", "//") for result in results]
        return [int(np.max(eval(text, {"d0": d0, "d1": d1, "d2": d2}))) + 1 for text in python]


MAP = st.lists(st.sampled_from(RESULTS), max_size=3)
GENERIC = st.builds(
    Generic, st.lists(MAP, min_size=4, max_size=4), st.lists(st.sampled_from(list(BODIES)), min_size=2, max_size=2)
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(GENERIC)
def test_generic_agrees_with_its_loops(generic: Generic) -> None:
    module = ir.parse(generic.text(), CONTEXT)
    rng = np.random.default_rng(1)
    shapes = [[SIZE] * 3, *map(generic.shape, generic.maps)]
    arguments = [rng.integers(-9, 9, shape).astype(np.int32) for shape in shapes]
    directly = [argument.copy() for argument in arguments]
    interpret(module, directly)
    with CONTEXT:
        ir.passmanager.PassManager.parse("builtin.module(func.func(convert-linalg-to-loops))").run(module.operation)
    assert "linalg" not in str(module)
    interpret(module, arguments)
    for place in (3, 4):
        np.testing.assert_array_equal(directly[place], arguments[place])
