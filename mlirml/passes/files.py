"""Where the passes are: `mlirml-lower-loops` is in a file `lower_loops.py`, which is imported when it is named."""

from __future__ import annotations

import importlib
import os
from functools import cache

from mlirml.passes import presence
from mlirml.passes.base import REGISTRY, Pass

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PREFIX = "mlirml-"
_DECLARED = b"\n@register(when="
_PACKAGES = ("raising", "autodiff", "offload")


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
        with open(os.path.join(os.path.dirname(_ROOT), *module.split(".")) + ".py", "rb") as file:
            _, declared, rest = file.read().partition(_DECLARED)
        if declared:
            condition: tuple[str, ...] = eval(rest[: rest.index(b")\n")], vars(presence))
            return condition
    return None


def load_passes() -> None:
    """Import every pass."""
    for modules in _modules().values():
        for module in modules:
            importlib.import_module(module)


@cache
def _modules() -> dict[str, list[str]]:
    """The modules of the folders with passes, by their last names."""
    levels = [name for name in os.listdir(os.path.join(_ROOT, "pipelines")) if "." not in name and name[0] != "_"]
    folders = [*_PACKAGES, *(f"pipelines/{level}" for level in levels)]
    found: dict[str, list[str]] = {}
    for folder in sorted(folders):
        for file in sorted(os.listdir(os.path.join(_ROOT, *folder.split("/")))):
            name, extension = os.path.splitext(file)
            if extension == ".py" and name != "__init__":
                found.setdefault(name, []).append(".".join(("mlirml", *folder.split("/"), name)))
    return found
