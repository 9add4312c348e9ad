"""Modules of one `linalg.generic`, and what running them gives before and after mlirml-recognise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import mlir, operations, parse
from mlirml.ir.text.dtypes import mlir_name, tensor_type
from mlirml.passes import Pipeline, Upstream
from mlirml.passes.pipeline import stage
from mlirml.raising.recognise import RecognisePass
from mlirml.runtime.executable import load_artifact
from mlirml.targets.cpu import codegen, cpu_target

Array = npt.NDArray[Any]
_PASSES = Pipeline((stage("raise", RecognisePass(), Upstream("canonicalize"), Upstream("cse")),))


@dataclass(frozen=True)
class Generic:
    """@main with one generic. `loops` are letters, a capital one is reduced; `maps` index the inputs and the outs.

    In `body` the elements are %a, %b, ... and those of the outs %o, or %o0, %o1; `yields` are the values that it gives.
    The first `captured` inputs are no operands: the body knows them as %t0, ...
    """

    loops: str
    maps: Sequence[str]
    body: str
    yields: Sequence[str] = ("%r",)
    captured: int = 0

    def text(self, inputs: Sequence[Array], outs: Sequence[Array], window: Sequence[int] = ()) -> str:
        """MLIR; `window` is the shape of an operand that only says how long loops are."""
        dims = ", ".join(self.loops.lower())
        maps = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in self.maps)
        kinds = ", ".join('"reduction"' if c.isupper() else '"parallel"' for c in self.loops)
        names = [f"%t{n}" for n in range(len(inputs) + len(outs))]
        types = [tensor_type(x.shape, x.dtype) for x in (*inputs, *outs)]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
        inputs, names, types = inputs[self.captured :], names[self.captured :], types[self.captured :]
        letters = [f"%{chr(ord('a') + n)}" for n in range(len(inputs))]
        letters += [f"%o{n}" if len(outs) > 1 else "%o" for n in range(len(outs))]
        elements = [mlir_name(x.dtype) for x in (*inputs, *outs)]
        block = ", ".join(f"{n}: {t}" for n, t in zip(letters, elements))
        count = len(inputs)
        ins = f"ins({', '.join(names[:count])} : {', '.join(types[:count])})" if inputs else ""
        empty = ""
        if window:
            shape = tensor_type(tuple(window), outs[0].dtype)
            empty = f"%window = tensor.empty() : {shape}"
            ins = f"ins({', '.join([*names[:count], '%window'])} : {', '.join([*types[:count], shape])})"
            listed = [*letters[:count], "%unused", *letters[count:]]
            shown = [*elements[:count], elements[-1], *elements[count:]]
            block = ", ".join(f"{n}: {t}" for n, t in zip(listed, shown))
        results = ", ".join(types[count:])
        returned = ", ".join(f"%g#{n}" for n in range(len(outs)))
        return f"""
        func.func @main({arguments}) -> ({results}) {{
          {empty}
          %g:{len(outs)} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins}
            outs({", ".join(names[count:])} : {results}) {{
          ^bb0({block}):
            {self.body}
            linalg.yield {", ".join(self.yields)} : {", ".join(elements[count:])}
          }} -> ({results})
          return {returned} : {results}
        }}"""


def recognised(text: str) -> mlir.Module:
    """The module after the pass."""
    module = parse(text)
    _PASSES.run(module)
    return module


def names(module: mlir.Module) -> list[str]:
    """The structured operations of a module, in order."""
    return [op.name for op in operations(module) if op.name.startswith("linalg.") and op.regions]


def before_and_after(text: str, arrays: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """The results of a module on the reference target, as it is and recognised."""
    return interpret(parse(text), arrays), interpret(recognised(text), arrays)


def on_cpu(text: str, arrays: Sequence[Array], results: Sequence[Array]) -> list[Array]:
    """The results of the recognised module on the target `cpu`."""
    module = recognised(text)
    cpu_target().pipeline.run(module)
    kinds = [(a.dtype, a.shape) for a in arrays], [(r.dtype, r.shape) for r in results]
    return [np.array(r) for r in load_artifact(codegen(module), *kinds)(list(arrays))]


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Random numbers: small integers, or floats around 0."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "i":
        return rng.integers(-9, 10, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def check(
    generic: Generic,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    *,
    window: Sequence[int] = (),
    native: bool = False,
) -> list[str]:
    """The names of what is recognised, once it is seen that its numbers are those of the generic.

    The reference target tells, and with `native` the target `cpu` too.
    """
    text = generic.text(inputs, outs, window)
    arrays = [*inputs, *outs]
    before, after = before_and_after(text, arrays)
    for values in [after, *([on_cpu(text, arrays, outs)] if native else [])]:
        for expected, given in zip(before, values, strict=True):
            if expected.dtype.kind == "f":
                scale = np.nanmax(np.where(np.isfinite(expected), np.abs(expected), 1), initial=1)
                tolerance = 64 * float(np.finfo(expected.dtype).eps) * float(scale)
                np.testing.assert_allclose(given, expected, rtol=0, atol=tolerance)
            else:
                np.testing.assert_array_equal(given, expected)
    return names(recognised(text))
