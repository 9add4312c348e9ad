"""A target is one record: its pipeline, its code generator, and the properties that its code depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from mlirml.core.dataclass import dataclass
from mlirml.pipelines.recipe import Recipe
from mlirml.runtime.artifact import Artifact
from mlirml.targets.llvm.early_kernels import Ahead
from mlirml.targets.machine import Processor

if TYPE_CHECKING:
    from mlirml.passes import Pipeline

_ALL = slice(None)


@dataclass(frozen=True)
class Target:
    """A compilation target.

    `stages` is the pipeline as text, stage by stage; `codegen` turns a module after the last stage into an `Artifact`.
    It imports MLIR, the record does not: a compiled program that is found in the cache is loaded without it.
    `depends_on` are the cache-key entries of what else the code depends on, such as the processor. `device` is the type
    of the devices that run it. `ahead` compiles kernels before the rest of a module; `codegen` then also takes the
    object that it returned. `processor` is that of the host code, None where there is none. Without `float64` the
    devices have no 64-bit floats; with `demotes` programs compute with 32-bit floats instead.
    """

    name: str
    stages: Recipe
    codegen: Callable[..., Artifact] = field(repr=False, compare=False)
    depends_on: tuple[tuple[str, str], ...] = ()
    device: str = "cpu"
    float64: bool = True
    demotes: bool = False
    ahead: Ahead | None = field(default=None, repr=False, compare=False)
    processor: Processor | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as a value; imports MLIR."""
        return _pipeline(frozenset(), self.stages)

    def pipeline_for(self, present: Collection[str], stages: slice = _ALL) -> Pipeline:
        """The pipeline, or some stages, without the passes that do nothing on a module with only these ops.

        The omitted passes are not imported.
        """
        from mlirml.passes.presence import ANY_REQUEST

        requested = any(op.startswith(ANY_REQUEST) for op in present)
        idle = set()
        for stage, steps in self.stages[stages]:
            if requested and stage != "raise":  # requests become any operations
                continue
            for name, condition in _conditions(steps):
                if not any(op.startswith(condition) for op in present):
                    idle.add(name)
        return _pipeline(frozenset(idle), self.stages[stages])

    def fingerprint(self) -> list[tuple[str, str]]:
        """Named entries for a cache key: equal fingerprints mean equal code for an equal module."""
        steps = [(f"pipeline.{name}", text) for name, text in self.stages]
        return [("target", self.name), *steps, *self.depends_on]


@lru_cache(maxsize=16)
def demoting(target: Target) -> Target:
    """The target with 32-bit floats instead of 64-bit floats, which its devices lack."""
    (first, steps), *others = target.stages

    stages = ((first, f"mlirml-demote-floats,{steps}"), *others)
    return replace(target, stages=stages, demotes=True)


@lru_cache(maxsize=128)
def _conditions(steps: str) -> list[tuple[str, tuple[str, ...]]]:
    """The passes of a stage that need some operations, and the beginnings of the names of these."""
    from mlirml.passes.files import condition_of
    from mlirml.passes.syntax import parse_elements

    conditions = {element.name: condition_of(element.name) for element in parse_elements(steps)}
    return [(name, condition) for name, condition in conditions.items() if condition is not None]


@lru_cache(maxsize=128)
def _pipeline(without: frozenset[str], stages: Recipe) -> Pipeline:
    from mlirml.passes import Pipeline, stage
    from mlirml.passes.syntax import parse_elements

    kept = ((name, [str(e) for e in parse_elements(steps) if e.name not in without]) for name, steps in stages)
    return Pipeline(tuple(stage(name, *steps) for name, steps in kept))


def checking_nan(target: Target) -> Target:
    """The target with a check after each float operation that its result is not NaN."""

    stages = tuple(
        (name, f"{steps},mlirml-check-nan" if name == "transform" else steps) for name, steps in target.stages
    )
    return replace(target, stages=stages)
