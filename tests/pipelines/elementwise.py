"""Compile one operation into a loop over arrays, for a chosen processor, and run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.ir.bindings import make_context, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.cpu import LOWER
from mlirml.pipelines.llvm import expand_math
from mlirml.runtime import Program, load_object
from mlirml.targets import cpu
from mlirml.targets.llvm.codegen import CodegenOptions, compile_to_object
from mlirml.targets.machine import named

Array = npt.NDArray[Any]
STORED = {
    "f16": "u2",
    "bf16": "u2",
    "f32": "f4",
    "f64": "f8",
    "i1": "u1",
    "i8": "i1",
    "i16": "i2",
    "i32": "i4",
    "i64": "i8",
}


@dataclass(frozen=True)
class Processor:
    """The options of the pass and of LLVM for one kind of processor."""

    name: str
    expand: str
    codegen: CodegenOptions


def processors() -> list[Processor]:
    """This machine, and an old one without fma and vectors of 256 bits, whose code runs here too."""
    machines = [named(name) for name in ("host", "sse4.1")]
    return [Processor(machine.level, f"processor={machine}", cpu.codegen_options(machine)) for machine in machines]


def loop(kinds: Sequence[str], result: str, body: str, count: int) -> str:
    """`void entry(void **pointers)`: `body` makes %y of %x0, %x1, ... for each element."""
    pointers, loads = [], []
    for i, kind in enumerate([*kinds, result]):
        pointers.append(f"%q{i} = llvm.getelementptr %p[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr")
        pointers.append(f"%p{i} = llvm.load %q{i} : !llvm.ptr -> !llvm.ptr")
        loads.append(f"%a{i} = llvm.getelementptr %p{i}[%n] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}")
        if i < len(kinds):
            loads.append(f"%x{i} = llvm.load %a{i} {{alignment = 1 : i64}} : !llvm.ptr -> {kind}")
    inner = "\n    ".join(
        [*loads, body, f"llvm.store %y, %a{len(kinds)} {{alignment = 1 : i64}} : {result}, !llvm.ptr"]
    )
    return f"""
func.func @entry(%p: !llvm.ptr) {{
  {chr(10).join(pointers)}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant {count} : index
  scf.for %i = %c0 to %count step %c1 {{
    %n = arith.index_cast %i : index to i64
    {inner}
  }}
  return
}}
"""


def lowered(text: str, expand: str) -> Any:
    """The module in the llvm dialect."""
    assert expand_math.ExpandMathPass.name == "mlirml-expand-math"
    module = parse(text, make_context())
    steps = ",".join(step for step in LOWER if not step.startswith("mlirml-"))
    parse_pipeline(f"mlirml-expand-math{{{expand}}},{steps}").run(module)
    return module


def compiled(kinds: Sequence[str], result: str, body: str, count: int, processor: Processor) -> Callable[..., Array]:
    """A function of arrays of `count` elements; f16 and bf16 are passed by their bits."""
    module = lowered(loop(kinds, result, body, count), processor.expand)
    code = load_object(compile_to_object(module, processor.codegen))
    types = [np.dtype(STORED[kind.rpartition("x")[2].rstrip(">")]) for kind in [*kinds, result]]
    lanes = [int(kind[7:].partition("x")[0]) if kind.startswith("vector") else 1 for kind in [*kinds, result]]
    buffers = [(t, (count * n,)) for t, n in zip(types, lanes)]
    program = Program(code, "entry", buffers[:-1], buffers[-1:])
    return lambda *arrays: program([np.ascontiguousarray(a) for a in arrays])[0]
