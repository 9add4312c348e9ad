"""The pipeline of a target and the names of the stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirml.dialects import legality
from mlirml.passes import Pipeline

if TYPE_CHECKING:
    from mlirml.targets.target import Target

STAGES = tuple(legality.STAGES)
"""The stages in order: the words of `--stop-after`, `.ir(stage)`, dump folders and errors."""


def default_pipeline(target: Target) -> Pipeline:
    """What `compile` runs for a target, what `mlirml-opt --target=` runs and `--print-pipeline` prints."""
    return target.pipeline
