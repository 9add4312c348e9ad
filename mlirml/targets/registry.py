"""The targets by name, and the loaders of their artifacts. Imports MLIR and llvmlite only when a target needs them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.executable import Spec, load_artifact

if TYPE_CHECKING:
    from mlirml.targets.target import Target

_TARGETS = {
    "cpu": ("mlirml.targets.cpu", "cpu_target"),
    "cuda": ("mlirml.targets.cuda", "cuda_target"),
    "metal": ("mlirml.targets.webgpu", "metal_target"),
    "reference": ("mlirml.targets.reference", "reference_target"),
    "vulkan": ("mlirml.targets.vulkan", "vulkan_target"),
    "webgpu": ("mlirml.targets.webgpu", "webgpu_target"),
}


def target_names() -> tuple[str, ...]:
    """The names that `compile(target=...)` takes."""
    return tuple(_TARGETS)


def get_target(name: str, float64: str = "refuse") -> Target:
    """The target of a name; raises `TargetError` for one that does not exist.

    With `float64="float32"`, programs for devices without 64-bit floats compute with 32-bit ones. With
    `config.check_nan` programs fail if an operation computes a NaN.
    """
    if name not in _TARGETS:
        import difflib

        close = difflib.get_close_matches(str(name), _TARGETS, n=1)
        known = ", ".join(f'"{n}"' for n in _TARGETS)
        raise TargetError(
            f"there is no target {name!r}",
            notes=(f"the targets are {known}",),
            help=f'did you mean target="{close[0]}"?' if close else None,
        )
    module, function = _TARGETS[name]
    target: Target = getattr(importlib.import_module(module), function)()
    if float64 == "float32" and not target.float64:
        from mlirml.targets.target import demoting

        target = demoting(target)
    if config.check_nan:
        from mlirml.targets.target import checking_nan

        target = checking_nan(target)
    return target


def portable_targets() -> list[Target]:
    """The targets with minimum capabilities, as on machines without devices; opens no device."""
    portable = _TARGETS | {"vulkan": ("mlirml.targets.vulkan", "least_target")}
    return [getattr(importlib.import_module(module), function)() for module, function in portable.values()]


def open_artifact(artifact: Artifact, inputs: Sequence[Spec], outputs: Sequence[Spec], **options: Any) -> Any:
    """Load an artifact as a program; the options are those of `load_artifact`."""
    opener: Callable[..., Any] = load_artifact
    if artifact.format == "mlir":
        opener = importlib.import_module("mlirml.targets.reference").load_artifact
    elif artifact.format != "elf":
        opener = importlib.import_module("mlirml.runtime.device_program").load_artifact
    return opener(artifact, inputs, outputs, **options)
