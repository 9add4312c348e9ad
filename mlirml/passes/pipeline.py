"""A `Pipeline` is a value: stages of passes, printed and parsed in MLIR's pipeline syntax.

    builtin.module(canonicalize,mlirml-fuse{max-ops=3},mlirml-verify-stage{stage=optimize},func.func(cse))

holds stage `optimize`, which ends with its `mlirml-verify-stage`, and one upstream step that belongs to no stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.errors import PipelineError
from mlirml.ir.bindings import make_context, mlir
from mlirml.passes.base import REGISTRY, Deferred, Pass, PassOption, Step, Upstream, pass_options
from mlirml.passes.files import condition_of, find_pass, load_passes
from mlirml.passes.report import Instrumentation
from mlirml.passes.run import run_stages, upstream_manager
from mlirml.passes.syntax import Element, Option, parse_elements
from mlirml.passes.verify_stage import VerifyStagePass

_ANCHOR = "builtin.module"


@dataclass(frozen=True)
class Stage:
    """A named part of a pipeline. The check of its contract is no step of its own; `all_steps` ends with it.

    `legal` are the dialects after it, those of the contract of this name if there are none.
    """

    name: str
    steps: tuple[Step, ...]
    legal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name:
            VerifyStagePass(self.name, self.legal)

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps and, in a named stage, the check at its end."""
        return (*self.steps, VerifyStagePass(self.name, self.legal)) if self.name else self.steps


@dataclass(frozen=True)
class Pipeline:
    """Stages of passes: `compile` runs them, `mlirml-opt` parses them, the cache hashes their text."""

    stages: tuple[Stage, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps in order, the checks at the end of each stage included."""
        return tuple(step for stage in self.stages for step in stage.all_steps)

    def __str__(self) -> str:
        return f"{_ANCHOR}({','.join(map(str, self.steps))})"

    def until(self, stop_after: str) -> Pipeline:
        """The pipeline up to and with stage `stop_after`; raises `PipelineError` when it has no such stage."""
        names = [stage.name for stage in self.stages]
        if stop_after not in names:
            named = [name for name in names if name]
            raise PipelineError(
                f"the pipeline has no stage `{stop_after}`",
                help=_did_you_mean(str(stop_after), named) or f"its stages are {', '.join(named) or 'not named'}",
            )
        return Pipeline(self.stages[: names.index(stop_after) + 1])

    def run(
        self, module: Any, *, stop_after: str | None = None, instrumentation: Instrumentation | None = None
    ) -> Instrumentation:
        """Run over a module in place, up to and with stage `stop_after`; returns what was seen on the way.

        Raises `LoweringError` when an upstream pass fails or the contract of a stage is broken, `InternalError` when
        one of our passes breaks down, and whatever `MlirmlError` a pass raises; each names the stage and the pass.
        """
        instrumentation = instrumentation or Instrumentation()
        pipeline = self if stop_after is None else self.until(stop_after)
        run_stages(pipeline.stages, getattr(module, "operation", module), instrumentation)
        return instrumentation


def stage(name: str, *steps: Step | str, legal: tuple[str, ...] = ()) -> Stage:
    """A stage of passes; a string is pipeline text and may hold several passes.

    Whether MLIR knows the upstream passes in a string shows only when they run.
    """
    flat: list[Step] = []
    for step in steps:
        flat += _parse_steps(step, check_upstream=False) if isinstance(step, str) else [step]
    return Stage(name, tuple(flat), legal)


def deferred_stage(name: str, text: str, *, legal: tuple[str, ...] = ()) -> Stage:
    """A stage whose passes are imported when they run, which each does if its condition holds for the module then."""
    return Stage(name, tuple(map(_deferred, parse_elements(text))), legal)


def _deferred(element: Element) -> Deferred:
    text = str(element)
    return Deferred(element.name, text, condition_of(element.name), lambda: _made(text))


@lru_cache(maxsize=1024)
def _made(text: str) -> Pass | Upstream:
    (element,) = parse_elements(text)
    return _parse_step(element, text, check_upstream=False)


def parse_pipeline(text: str) -> Pipeline:
    """Parse `str(pipeline)`, or any MLIR pipeline text with or without the `builtin.module(...)` around it.

    The passes that it names are imported. Raises `PipelineError`, which points at the mistake, for an unknown pass, an
    unknown option or a value that does not fit.
    """
    return pipeline_of(_parse_steps(text))


def parse_flag(text: str) -> tuple[Step, ...]:
    """The step of one `mlirml-opt` flag, nested on the operation that its pass runs on, as mlir-opt does."""
    try:
        return tuple(_parse_steps(text))
    except PipelineError as error:
        if error.anchor is None:
            raise
        return tuple(_parse_steps(f"{error.anchor}({text})"))


def pipeline_of(steps: Iterable[Step]) -> Pipeline:
    """Group steps into stages; each `mlirml-verify-stage` ends one, what follows the last has no name."""
    stages = []
    open_steps: list[Step] = []
    for step in steps:
        if isinstance(step, VerifyStagePass):
            stages.append(Stage(step.stage, tuple(open_steps), step.legal))
            open_steps = []
        else:
            open_steps.append(step)
    if open_steps:
        stages.append(Stage("", tuple(open_steps)))
    return Pipeline(tuple(stages))


def _parse_steps(text: str, *, check_upstream: bool = True) -> list[Step]:
    elements = parse_elements(text)
    if len(elements) == 1 and elements[0].name == _ANCHOR and elements[0].children is not None:
        elements = elements[0].children
    return [_parse_step(element, text, check_upstream) for element in elements]


def _parse_step(element: Element, text: str, check_upstream: bool) -> Pass | Upstream:
    for inner in _leaves(element):
        cls = find_pass(inner.name)
        if cls is not None and inner is element:
            return _make_pass(cls, element, text)
        if cls is not None:
            raise PipelineError(
                f"{inner.name} runs on the module and cannot be nested in {element.name}",
                text=text,
                position=inner.position,
                length=len(inner.name),
            )
        if inner.name.startswith("mlirml-"):
            raise _unknown_pass(inner, text)
    step = Upstream(str(element))
    if check_upstream:
        _check_upstream(step, element, text)
    return step


def _leaves(element: Element) -> Iterator[Element]:
    if element.children is None:
        yield element
    for child in element.children or ():
        yield from _leaves(child)


def _make_pass(cls: type[Pass], element: Element, text: str) -> Pass:
    options = pass_options(cls)
    values = {options[o.key].field: _read_option(cls, options, o, text) for o in _known(cls, options, element, text)}
    missing = [flag for flag, option in options.items() if option.required and option.field not in values]
    if missing:
        what = f"{cls.name} needs the option `{missing[0]}` ({options[missing[0]].expects})"
        raise PipelineError(what, text=text, position=element.position, length=len(element.name))
    try:
        return cls(**values)
    except PipelineError as error:
        error.text, error.position, error.length = text, element.position, len(element.name)
        raise


def _known(cls: type[Pass], options: dict[str, PassOption], element: Element, text: str) -> tuple[Option, ...]:
    """The options of the element, which the pass must all have."""
    for given in element.options:
        if given.key not in options:
            known = ", ".join(f"{flag} ({option.expects})" for flag, option in options.items())
            raise PipelineError(
                f"{cls.name} has no option `{given.key}`",
                text=text,
                position=given.position,
                length=len(str(given)),
                help=_did_you_mean(given.key, list(options)) or (f"it has {known}" if known else "it has no options"),
            )
    return element.options


def _read_option(cls: type[Pass], options: dict[str, PassOption], given: Option, text: str) -> Any:
    option = options[given.key]
    try:
        return option.read(given.value)
    except ValueError:
        shown = "no value" if given.value is None else f"`{given.value}`"
        what = f"{cls.name}: {given.key} takes {option.expects}, not {shown}"
        raise PipelineError(what, text=text, position=given.position, length=len(str(given))) from None


@lru_cache(maxsize=1)
def _context_for_checks() -> mlir.Context:
    return make_context()


@lru_cache(maxsize=1024)
def _is_known(step: Upstream) -> bool:
    upstream_manager(step, _context_for_checks())
    return True


def _check_upstream(step: Upstream, element: Element, text: str) -> None:
    try:
        _is_known(step)
    except PipelineError as error:
        for inner in _leaves(element):
            if error.message == f"unknown pass `{inner.name}`":
                raise _unknown_pass(inner, text) from None
        error.text, error.position, error.length = text, element.position, len(element.name)
        raise


def _unknown_pass(element: Element, text: str) -> PipelineError:
    load_passes()  # for the help
    return PipelineError(
        f"unknown pass `{element.name}`",
        text=text,
        position=element.position,
        length=len(element.name),
        help=_did_you_mean(element.name, [*REGISTRY, *COMMON_UPSTREAM]),
    )


def _did_you_mean(name: str, known: list[str]) -> str | None:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"did you mean `{close[0]}`?" if close else None


COMMON_UPSTREAM = (
    "arith-expand", "buffer-deallocation-pipeline", "buffer-hoisting", "buffer-loop-hoisting",
    "buffer-results-to-out-params", "canonicalize", "convert-arith-to-llvm", "convert-bufferization-to-memref",
    "convert-cf-to-llvm", "convert-func-to-llvm", "convert-index-to-llvm", "convert-linalg-to-affine-loops",
    "convert-linalg-to-loops", "convert-linalg-to-parallel-loops", "convert-math-to-llvm", "convert-scf-to-cf",
    "convert-to-llvm", "convert-ub-to-llvm", "convert-vector-to-llvm", "convert-vector-to-scf", "cse",
    "drop-equivalent-buffer-results", "eliminate-empty-tensors", "empty-tensor-to-alloc-tensor",
    "expand-strided-metadata",
    "finalize-memref-to-llvm", "fold-memref-alias-ops", "inline", "linalg-fold-unit-extent-dims",
    "linalg-fuse-elementwise-ops", "linalg-generalize-named-ops", "loop-invariant-code-motion", "lower-affine",
    "math-expand-ops", "math-uplift-to-fma", "one-shot-bufferize", "promote-buffers-to-stack",
    "reconcile-unrealized-casts", "sccp", "strip-debuginfo", "symbol-dce", "transform-interpreter",
)  # fmt: skip
"""Names for did-you-mean only: the bindings run every upstream pass but cannot list them."""
