"""Run a module before and after passes with the reference interpreter, on random data, and compare all bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.interpreter.interpreter import interpret
from mlirml.interpreter.values import dtype_of, shape_of
from mlirml.ir.bindings import main_function, mlir, parse, to_text
from mlirml.passes import parse_pipeline

Array = npt.NDArray[Any]


def transformed(text: str, pipeline: str) -> str:
    """The module after the pipeline, as text."""
    module = parse(text)
    parse_pipeline(pipeline).run(module)
    return to_text(module)


def random_arguments(module: mlir.Module, seed: int) -> list[Array]:
    """Small numbers for the arguments of @main: fractions of eight, and integers from -3 to 3."""
    rng = np.random.default_rng(seed)
    arguments = []
    for argument in main_function(module).regions[0].blocks[0].arguments:
        kind = argument.type
        numbers = rng.integers(-24, 25, shape_of(kind)) if hasattr(kind, "shape") else rng.integers(0, 4, ())
        dtype = dtype_of(kind)
        arguments.append((numbers / 8).astype(dtype) if dtype.kind == "f" else (numbers // 8).astype(dtype))
    return arguments


def became_results(before: mlir.Module, after: mlir.Module) -> list[int]:
    """The memrefs among the arguments of @main whose contents are results afterwards."""
    attributes, kept = main_function(after).attributes, main_function(before).attributes
    if "mlirml.writebacks" not in attributes or "mlirml.writebacks" in kept:
        return []
    return list(attributes["mlirml.writebacks"])[1::2]


def assert_same(text: str, pipeline: str, seeds: int = 2) -> str:
    """The module after the pipeline, as text, after it has given the same numbers as before."""
    after_text = transformed(text, pipeline)
    before, after = parse(text), parse(after_text)
    for seed in range(seeds):
        arguments = random_arguments(before, seed)
        copies = [np.array(a) for a in arguments]
        expected = [*interpret(before, copies), *(copies[n] for n in became_results(before, after))]
        found = interpret(after, [np.array(a) for a in arguments])
        assert len(expected) == len(found), after_text
        for one, other in zip(expected, found):
            np.testing.assert_array_equal(one, other, err_msg=after_text)
    return after_text
