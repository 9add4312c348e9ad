"""The pipeline of a target, the names of the stages, and where the passes are found."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING

from mlirml.dialects import legality
from mlirml.passes import REGISTRY, Pipeline

if TYPE_CHECKING:
    from mlirml.targets.target import Target

STAGES = tuple(legality.STAGES)
"""The stages in order: the words of `--stop-after`, `.ir(stage)`, dump folders and errors."""

_PACKAGES = ("raising", "autodiff", "offload", "pipelines")


def default_pipeline(target: Target) -> Pipeline:
    """What `compile` runs for a target, what `mlirml-opt --target=` runs and `--print-pipeline` prints."""
    return target.pipeline


def load_passes(text: str | None = None) -> None:
    """Register the passes that pipeline text names, or all passes when there is no text.

    A pass stands in the file of its name, `mlirml-lower-loops` in `lower_loops.py`, so that only the files of the named
    passes are imported; when a name has no such file, all are.
    """
    modules = _pass_modules()
    if text is None:
        for module in modules.values():
            importlib.import_module(module)
        return
    for name in re.findall(r"\bmlirml-[\w-]+", text):
        named = modules.get(name.removeprefix("mlirml-").replace("-", "_"))
        if named is not None:
            importlib.import_module(named)
        if name not in REGISTRY:
            load_passes()


def _pass_modules() -> dict[str, str]:
    """Every module that may register passes, by its last name."""
    modules = {}
    for name in _PACKAGES:
        package = importlib.import_module(f"mlirml.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            modules[module.name.rpartition(".")[2]] = module.name
    return modules
