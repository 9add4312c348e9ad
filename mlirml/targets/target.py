"""A target is one record: its pipeline, its code generator, and what its code depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mlirml.dataclass import dataclass
from mlirml.runtime.artifact import Artifact

if TYPE_CHECKING:
    from mlirml.passes import Pipeline


@dataclass(frozen=True)
class Target:
    """What code is generated for.

    `stages` is the pipeline as text, stage by stage; `load_passes` makes the passes in it known, and `codegen` turns a
    module after the last stage into an `Artifact`. Both import MLIR, the record itself does not: a compiled program
    that is found in the cache is loaded without it. `depends_on` lists what else the code depends on, such as the CPU.
    """

    name: str
    stages: tuple[tuple[str, str], ...]
    load_passes: Callable[[], None] = field(repr=False, compare=False)
    codegen: Callable[[Any], Artifact] = field(repr=False, compare=False)
    depends_on: tuple[tuple[str, str], ...] = ()

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline as a value; imports MLIR."""
        from mlirml.passes import Pipeline, stage

        self.load_passes()
        return Pipeline(tuple(stage(name, steps) if steps else stage(name) for name, steps in self.stages))

    def fingerprint(self) -> list[tuple[str, str]]:
        """Named entries for a cache key: equal fingerprints mean equal code for an equal module."""
        steps = [(f"pipeline.{name}", text) for name, text in self.stages]
        return [("target", self.name), *steps, *self.depends_on]
