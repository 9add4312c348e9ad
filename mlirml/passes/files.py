"""Where the passes are: `mlirml-lower-loops` is in a file `lower_loops.py`, which is imported when it is named."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

from mlirml.passes import presence
from mlirml.passes.base import REGISTRY, Pass

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LEVELS = ("raising", "autodiff", "tensor", "offload", "kernels", "bufferize", "memref", "checks", "llvm")
"""The folders, from captured loops to the LLVM dialect."""
_PREFIX = "mlirml-"
_DECLARED = b"\n@register("
_PACKAGES = ("raising", "autodiff", "offload")


def find_pass(name: str) -> type[Pass] | None:
    """The pass of a flag, imported where it is not yet; None where there is no such pass."""
    if name not in REGISTRY and name.startswith(_PREFIX):
        for module in _modules().get(name[len(_PREFIX) :].replace("-", "_"), ()):
            importlib.import_module(module)
    return REGISTRY.get(name)


def condition_of(name: str) -> presence.Condition | None:
    """The `when` of a pass, without importing it; None where the pass has none."""
    return _declaration(name).get("when", presence.UPSTREAM.get(name))


def is_optional(name: str) -> bool:
    """True if a pass is declared optional, without importing it; upstream passes that simplify code are, too."""
    return bool(_declaration(name).get("optional", name in OPTIONAL_UPSTREAM))


OPTIONAL_UPSTREAM = ("canonicalize", "cse")


@cache
def _declaration(name: str) -> dict[str, Any]:
    """The arguments of `@register(...)` above a pass, from its source."""
    for module in _modules().get(name[len(_PREFIX) :].replace("-", "_"), ()) if name.startswith(_PREFIX) else ():
        with open(os.path.join(os.path.dirname(_ROOT), *module.split(".")) + ".py", "rb") as file:
            _, declared, rest = file.read().partition(_DECLARED)
        if declared:
            return eval(b"dict(" + rest[: rest.index(b")\n") + 1], vars(presence))
    return {}


def load_passes() -> None:
    """Import every pass."""
    for modules in _modules().values():
        for module in modules:
            importlib.import_module(module)


def passes_by_folder() -> dict[str, list[type[Pass]]]:
    """Every pass, by the first sentence of its folder: the order of the pipelines, then of the names."""
    load_passes()
    found: dict[str, list[type[Pass]]] = {}
    for _, cls in sorted(REGISTRY.items(), key=_order):
        folder = importlib.import_module(cls.__module__.rpartition(".")[0])
        found.setdefault((folder.__doc__ or "").partition("\n")[0], []).append(cls)
    return found


def _order(entry: tuple[str, type[Pass]]) -> tuple[int, str]:
    folder = entry[1].__module__.split(".")[1:-1]
    return _LEVELS.index(folder[-1]) if folder[-1] in _LEVELS else -1, entry[0]


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
