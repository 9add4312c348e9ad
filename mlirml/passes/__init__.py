"""Passes and pipelines: a pass is a frozen dataclass whose fields are its options; a `Pipeline` is a value."""

from __future__ import annotations

from mlirml.core.no_match import NoMatch
from mlirml.passes.base import REGISTRY, Pass, PassOption, Step, Upstream, pass_options, register
from mlirml.passes.pipeline import Pipeline, Stage, parse_flag, parse_pipeline, pipeline_of, stage
from mlirml.passes.report import Instrumentation, Remark, Timing, remark
from mlirml.passes.run import run_upstream

__all__ = [
    "REGISTRY", "Instrumentation", "NoMatch", "Pass", "PassOption", "Pipeline", "Remark", "Stage", "Step", "Timing",
    "Upstream", "parse_flag", "parse_pipeline", "pass_options", "pipeline_of", "register", "remark", "run_upstream",
    "stage",
]  # fmt: skip
