"""The pipeline of a target, and the names of its stages."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from mlirml.dialects import legality
from mlirml.passes import Pipeline

if TYPE_CHECKING:
    from mlirml.targets.target import Target

STAGES = tuple(legality.STAGES)
"""The stages in order: the words of `--stop-after`, `.ir(stage)`, dump folders and errors."""

_PACKAGES = ("raising", "autodiff", "offload", "pipelines")


def default_pipeline(target: Target) -> Pipeline:
    """What `compile` runs for a target, what `mlirml-opt --target=` runs and `--print-pipeline` prints."""
    return target.pipeline


def load_passes() -> None:
    """Import every module that registers a pass, so that a pipeline can be parsed by name."""
    for name in _PACKAGES:
        package = importlib.import_module(f"mlirml.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
