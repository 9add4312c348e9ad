"""Where the passes are: `mlirml-lower-loops` is in a file `lower_loops.py`, which is imported when it is named."""

from __future__ import annotations

import importlib
import os
import re
from functools import cache

from mlirml.passes import presence
from mlirml.passes.base import REGISTRY, Pass

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PREFIX = "mlirml-"
_CONDITION = re.compile(r"^@register\(when=(.*)\)$", re.MULTILINE)
_PACKAGES = ("raising", "autodiff", "offload", "pipelines")


def find_pass(name: str) -> type[Pass] | None:
    """The pass of a flag, imported where it is not yet; None where there is no such pass."""
    if name not in REGISTRY and name.startswith(_PREFIX):
        for module in _modules().get(name[len(_PREFIX) :].replace("-", "_"), ()):
            importlib.import_module(module)
    return REGISTRY.get(name)


@cache
def condition_of(name: str) -> tuple[str, ...] | None:
    """The `when` of a pass, without importing it; None where the pass has none, or is no pass of ours."""
    for module in _modules().get(name[len(_PREFIX) :].replace("-", "_"), ()) if name.startswith(_PREFIX) else ():
        with open(os.path.join(os.path.dirname(_ROOT), *module.split(".")) + ".py", encoding="utf-8") as file:
            declared = _CONDITION.search(file.read())
        if declared:
            condition: tuple[str, ...] = eval(declared[1], vars(presence))
            return condition
    return None


def load_passes() -> None:
    """Import every pass."""
    for modules in _modules().values():
        for module in modules:
            importlib.import_module(module)


@cache
def _modules() -> dict[str, list[str]]:
    """The modules of the packages with passes, by their last names."""
    found: dict[str, list[str]] = {}
    for package in _PACKAGES:
        for folder, folders, files in os.walk(os.path.join(_ROOT, package)):
            folders.sort()
            parts = os.path.relpath(folder, _ROOT).split(os.sep)
            for file in sorted(files):
                name, extension = os.path.splitext(file)
                if extension == ".py" and name != "__init__":
                    found.setdefault(name, []).append(".".join(("mlirml", *parts, name)))
    return found
