"""The recipe of the target `cpu` for programs of dynamic sizes: passes that need static sizes are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirml.pipelines.cpu import CLEAN, LOWER, algebra, check, expand, expand_math
from mlirml.pipelines.recipe import Recipe, recipe, step

if TYPE_CHECKING:
    from mlirml.targets.machine import Processor


def sized_stages(machine: Processor, math: str, checkpoint_bytes: int, *, exact: bool = False) -> Recipe:
    """The stages for a processor; the options are those of `mlirml.pipelines.cpu.stages`."""
    return recipe(
        **{
            "raise": [],
            "transform": expand(checkpoint_bytes),
            "optimize": [
                *CLEAN,
                *algebra(exact=exact),
                step("mlirml-fold-contract", converting=False),
                "mlirml-convert-factors",
                "mlirml-hoist",
                "mlirml-fuse",
                "canonicalize",
                "mlirml-fold-guards",
                "cse",
                "mlirml-free-sizes",
            ],
            "offload": [],
            "schedule": [
                "mlirml-align-while",
                "mlirml-bufferize",
                "mlirml-pass-sizes",
                "mlirml-split-batches",
                step("mlirml-lower-conv", processor=machine),
                step("mlirml-lower-sized-contract", processor=machine),
                step("mlirml-lower-sized", processor=machine),
                step("mlirml-lower-loops", processor=machine, copy_bytes=4096),
                "canonicalize",
                "mlirml-fold-guards",
                "cse",
                "mlirml-plan-buffers",
                "mlirml-plan-sizes",
                "mlirml-outline-parallel",
                "mlirml-annotate-loops",
            ],
            "lower": [expand_math(math, machine), *check(), *LOWER, "mlirml-flush-denormals"],
        }
    )
