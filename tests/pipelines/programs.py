"""Random small programs: graphs of elementwise operations, broadcasts, transposes and reductions, as MLIR text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array = npt.NDArray[Any]

UNARY = ("math.tanh {0}", "arith.negf {0}", "math.absf {0}", "math.exp {0}")
BINARY = ("arith.addf {0}, {1}", "arith.mulf {0}, {1}", "arith.subf {0}, {1}", "arith.maximumf {0}, {1}")
REDUCERS = (("arith.addf", "0.0"), ("arith.maximumf", "0xFFF0000000000000"), ("arith.mulf", "1.0"))


@dataclass(frozen=True)
class Value:
    """A tensor; dimension `k` of it runs over loop `dims[k]` of the program."""

    name: str
    dims: tuple[int, ...]


@dataclass
class Program:
    """@main of f64 tensors."""

    sizes: tuple[int, ...]
    inputs: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)

    def type(self, dims: tuple[int, ...]) -> str:
        return "tensor<" + "".join(f"{self.sizes[d]}x" for d in dims) + "f64>"

    def shape(self, value: Value) -> tuple[int, ...]:
        return tuple(self.sizes[d] for d in value.dims)

    def name(self) -> str:
        return f"%v{len(self.values)}"

    def text(self) -> str:
        arguments = ", ".join(f"{v.name}: {self.type(v.dims)}" for v in self.inputs)
        kinds = ", ".join(self.type(v.dims) for v in self.results)
        names = ", ".join(v.name for v in self.results)
        body = "\n  ".join(self.lines)
        return f"func.func @main({arguments}) -> ({kinds}) {{\n  {body}\n  return {names} : {kinds}\n}}\n"

    def random_inputs(self, seed: int = 0) -> list[Array]:
        rng = np.random.default_rng(seed)
        return [np.asarray(rng.standard_normal(self.shape(v))) for v in self.inputs]

    def add_generic(
        self,
        inputs: list[Value],
        loops: tuple[int, ...],
        out: tuple[int, ...],
        body: list[str],
        init: str | None,
        accumulate: str | None,
    ) -> None:
        """A generic over `loops`, indexed `out`; `body` ends in %r. With `accumulate` the out is combined with %r."""
        number = len(self.values)
        letters = ", ".join(f"d{k}" for k in range(len(loops)))
        maps = [", ".join(f"d{loops.index(d)}" for d in dims) for dims in [*(v.dims for v in inputs), out]]
        kinds = ", ".join('"parallel"' if d in out else '"reduction"' for d in loops)
        kind = self.type(out)
        self.lines.append(f"%e{number} = tensor.empty() : {kind}")
        start = f"%e{number}"
        if init is not None:
            self.lines.append(f"%z{number} = arith.constant {init} : f64")
            self.lines.append(f"%f{number} = linalg.fill ins(%z{number} : f64) outs(%e{number} : {kind}) -> {kind}")
            start = f"%f{number}"
        arguments = ", ".join([*(f"%i{k}: f64" for k in range(len(inputs))), "%o: f64"])
        names, types = ", ".join(v.name for v in inputs), ", ".join(self.type(v.dims) for v in inputs)
        ins = f"ins({names} : {types}) " if inputs else ""
        lines = [*body, f"%s = {accumulate} %o, %r : f64"] if accumulate else body
        final = "%s" if accumulate else "%r"
        self.lines.append(
            f"%v{number} = linalg.generic {{indexing_maps = ["
            + ", ".join(f"affine_map<({letters}) -> ({m})>" for m in maps)
            + f"], iterator_types = [{kinds}]}} {ins}outs({start} : {kind}) {{\n  ^bb0({arguments}):\n    "
            + "\n    ".join([*lines, f"linalg.yield {final} : f64"])
            + f"\n  }} -> {kind}"
        )
        self.values.append(Value(f"%v{number}", out))


def expression(draw: Any, inputs: int) -> list[str]:
    """Body lines that compute %r from %i0, %i1, ..."""
    names = [f"%i{k}" for k in range(inputs)]
    lines = []
    for step in range(draw(st.integers(1, 3))):
        if len(names) > 1 and draw(st.booleans()):
            template = draw(st.sampled_from(BINARY))
            operands = [draw(st.sampled_from(names)), draw(st.sampled_from(names))]
        else:
            template, operands = draw(st.sampled_from(UNARY)), [draw(st.sampled_from(names))]
        lines.append(f"%t{step} = {template.format(*operands)} : f64")
        names.append(f"%t{step}")
    lines.append(f"%r = arith.addf {names[-1]}, {names[0]} : f64")
    return lines


@st.composite
def programs(draw: Any, sizes: tuple[int, ...] = (1, 2, 3, 5), max_ops: int = 8) -> Program:
    """A program with up to three loops."""
    rank = draw(st.integers(1, 3))
    program = Program(tuple(draw(st.sampled_from(sizes)) for _ in range(rank)))
    for k in range(draw(st.integers(1, 3))):
        dims = tuple(draw(st.permutations(range(rank))))[: draw(st.integers(0 if k else rank, rank))]
        program.inputs.append(Value(f"%v{k}", dims))
        program.values.append(program.inputs[-1])
    for _ in range(draw(st.integers(1, max_ops))):
        add_operation(draw, program, rank)
    made = program.values[len(program.inputs) :]
    count = draw(st.integers(1, min(3, len(made))))
    program.results = [made[-1], *(draw(st.sampled_from(program.values)) for _ in range(count - 1))]
    return program


def add_operation(draw: Any, program: Program, rank: int) -> None:
    """A random elementwise operation or reduction of values made before."""
    inputs = [draw(st.sampled_from(program.values)) for _ in range(draw(st.integers(1, 3)))]
    used = sorted({d for v in inputs for d in v.dims})
    loops = tuple(draw(st.permutations(used)))
    if loops and draw(st.integers(0, 3)) == 0:
        out = tuple(d for d in loops if draw(st.booleans()))
        if len(out) < len(loops):
            combiner, init = draw(st.sampled_from(REDUCERS))
            program.add_generic(inputs, loops, out, expression(draw, len(inputs)), init, combiner)
            return
    extra = tuple(d for d in range(rank) if d not in loops and draw(st.booleans()))
    loops = (*loops, *extra)
    out = tuple(draw(st.permutations(loops)))
    program.add_generic(inputs, loops, out, expression(draw, len(inputs)), None, None)
