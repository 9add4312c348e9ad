"""A target is one record: its pipeline, its code generator, and what its code depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mlirml.core.dataclass import dataclass
from mlirml.runtime.artifact import Artifact
from mlirml.targets.llvm.early_kernels import Ahead
from mlirml.targets.machine import Processor

if TYPE_CHECKING:
    from mlirml.passes import Pipeline

_ALL = slice(None)


@dataclass(frozen=True)
class Target:
    """What code is generated for.

    `stages` is the pipeline as text, stage by stage; `codegen` turns a module after the last stage into an `Artifact`.
    It imports MLIR, the record does not: a compiled program that is found in the cache is loaded without it. `needs`
    lists passes that change nothing unless the module has an operation whose name begins so. `depends_on` lists what
    else the code depends on, as the CPU. `device` is the kind of devices that run it. `ahead` tells how kernels go
    ahead of the rest of a module; `codegen` then takes what was begun with as well. `processor` is that of host code,
    where there is any. Without `float64` the devices have no 64-bit floats; with `demotes` programs compute with 32-bit
    floats instead.
    """

    name: str
    stages: tuple[tuple[str, str], ...]
    codegen: Callable[..., Artifact] = field(repr=False, compare=False)
    depends_on: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    device: str = "cpu"
    float64: bool = True
    demotes: bool = False
    ahead: Ahead | None = field(default=None, repr=False, compare=False)
    processor: Processor | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as a value; imports MLIR."""
        return _pipeline(self, frozenset(), self.stages)

    def pipeline_for(self, present: Collection[str], stages: slice = _ALL) -> Pipeline:
        """The pipeline, or some stages, without the passes that do nothing for operations of these names.

        Passes that are left out are not imported.
        """
        kinds = {starts for _, starts in self.needs}
        found = {starts: any(op.startswith(starts) for op in present) for starts in kinds}
        idle = {name for name, starts in self.needs if not found[starts]}
        return _pipeline(self, frozenset(idle), self.stages[stages])

    def fingerprint(self) -> list[tuple[str, str]]:
        """Named entries for a cache key: equal fingerprints mean equal code for an equal module."""
        steps = [(f"pipeline.{name}", text) for name, text in self.stages]
        return [("target", self.name), *steps, *self.depends_on]


@lru_cache(maxsize=16)
def demoting(target: Target) -> Target:
    """The target whose programs compute with f32 where f64 stands, which its devices lack."""
    (first, steps), *others = target.stages

    stages = ((first, f"mlirml-demote-floats,{steps}"), *others)
    return replace(target, stages=stages, demotes=True)


@lru_cache(maxsize=128)
def _pipeline(target: Target, without: frozenset[str], chosen: tuple[tuple[str, str], ...]) -> Pipeline:
    from mlirml.passes import Pipeline, stage
    from mlirml.passes.syntax import parse_elements

    elements = {name: parse_elements(text) for name, text in target.stages}
    stages = []
    for name, _ in chosen:
        kept = [element for element in elements[name] if element.name not in without]
        stages.append(stage(name, ",".join(map(str, kept))) if kept else stage(name))
    return Pipeline(tuple(stages))


def checking_nan(target: Target) -> Target:
    """The target with a check of each operation in it, which fails where that makes a NaN."""

    stages = tuple(
        (name, f"{steps},mlirml-check-nan" if name == "transform" else steps) for name, steps in target.stages
    )
    return replace(target, stages=stages)
