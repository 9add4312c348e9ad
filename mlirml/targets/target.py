"""A target is one record: its pipeline, its code generator, the forms of its programs, and what its code depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from mlirml.analysis.costs import Costs
from mlirml.core.dataclass import dataclass
from mlirml.pipelines.recipe import Recipe
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.executable import load
from mlirml.targets.llvm.early_kernels import Ahead
from mlirml.targets.machine import Processor

if TYPE_CHECKING:
    from mlirml.passes import Pipeline

_ALL = slice(None)
_Function = TypeVar("_Function", bound=Callable[[], "Target"])

Writer = Callable[..., str | bytes]
"""A function of a module after the last stage that returns the program in another form."""


def target(name: str, *, forms: tuple[str, ...] = (), portable: str = "") -> Callable[[_Function], _Function]:
    """Declare that a function without arguments makes the target of a name.

    `forms` are the keys of `Target.forms`. `portable` is the name of the function that makes the target with minimum
    capabilities and opens no device, where the other one does. `mlirml.targets.registry` reads all three from the
    source, so they are literals.
    """
    return lambda function: function


@dataclass(frozen=True)
class Target:
    """A compilation target.

    `stages` is the pipeline as text, stage by stage; `codegen` turns a module after the last stage into an `Artifact`.
    It imports MLIR, the record does not: a compiled program that is found in the cache is loaded without it.
    `depends_on` are the cache-key entries of what else the code depends on, such as the processor. `device` is the type
    of the devices that run it. `ahead` compiles kernels before the rest of a module; `codegen` then also takes the
    object that it returned. `processor` is that of the host code, None where there is none. Without `float64` the
    devices have no 64-bit floats; with `demotes` programs compute with 32-bit floats instead. `forms` write a module
    after the last stage in other forms, "asm" or "ptx"; one of a name that ends with a dash also takes the rest of the
    name that is asked for. `legal` are the dialects after the last stage, where they are not LLVM's. `open` loads an
    artifact for a `Binding`. `about` tells `mlirml devices` what runs them.
    `sized` returns the target for programs of dynamic sizes, None where there are none. Passes decide by `costs`, or by
    those that do not depend on the machine.
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
    forms: Mapping[str, Writer] = field(default_factory=dict, repr=False, compare=False)
    legal: tuple[str, ...] = ()
    open: Callable[..., Any] = field(default=load, repr=False, compare=False)
    about: str = ""
    sized: Callable[[], Target] | None = field(default=None, repr=False, compare=False)
    costs: Costs | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as a value; imports MLIR and all passes."""
        return _pipeline(self.stages, (self.stages[-1][0], self.legal), deferred=False)

    def deferred_pipeline(self, stages: slice = _ALL) -> Pipeline:
        """The pipeline, or some stages, that runs the passes which have something to do, and imports no others."""
        return _pipeline(self.stages[stages], (self.stages[-1][0], self.legal), deferred=True)

    def fingerprint(self) -> list[tuple[str, str]]:
        """Named entries for a cache key: equal fingerprints mean equal code for an equal module."""
        steps = [(f"pipeline.{name}", text) for name, text in self.stages]
        costs = [] if self.costs is None else [("costs", repr(self.costs))]
        return [("target", self.name), *steps, *self.depends_on, *costs]


@lru_cache(maxsize=16)
def demoting(target: Target) -> Target:
    """The target with 32-bit floats instead of 64-bit floats, which its devices lack."""
    (first, steps), *others = target.stages

    stages = ((first, f"mlirml-demote-floats,{steps}"), *others)
    return replace(target, stages=stages, demotes=True)


@lru_cache(maxsize=128)
def _pipeline(stages: Recipe, legal: tuple[str, tuple[str, ...]], *, deferred: bool) -> Pipeline:
    from mlirml.passes import Pipeline, stage
    from mlirml.passes.pipeline import deferred_stage

    make = deferred_stage if deferred else stage
    return Pipeline(tuple(make(name, steps, legal=legal[1] if name == legal[0] else ()) for name, steps in stages))


def checking_nan(target: Target) -> Target:
    """The target with a check after each float operation that its result is not NaN, in dynamic sizes, too."""
    sized = target.sized
    stages = tuple(
        (name, f"{steps},mlirml-check-nan" if name == "transform" else steps) for name, steps in target.stages
    )
    return replace(target, stages=stages, sized=None if sized is None else lambda: checking_nan(sized()))


def with_schedules(target: Target, schedules: tuple[str, ...]) -> Target:
    """The target with the schedules that a tuner has found, as `mlirml-schedule-contract` and `-loops` read them.

    They are part of the pipeline's text, and so of the key of compiled programs in the cache.
    """
    products = [each for each in schedules if each.partition("/")[2].startswith("kernel=")]
    loops = [each for each in schedules if each not in products]
    stages = target.stages
    if products:
        name = "mlirml-schedule-contract"
        text = f"{name}{{tuned={{{','.join(products)}}} "
        stages = tuple((stage, steps.replace(f"{name}{{", text)) for stage, steps in stages)
    if loops:
        name = "mlirml-schedule-loops"
        text = f"{name}{{tuned={{{','.join(loops)}}}}}"
        stages = tuple((stage, steps.replace(name, text)) for stage, steps in stages)
    return replace(target, stages=stages)
