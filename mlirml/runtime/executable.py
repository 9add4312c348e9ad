"""Load an artifact as a program that runs in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirml.errors import LaunchError
from mlirml.runtime._native import Program, load_object
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.binding import Binding, Spec


def load_artifact(artifact: Artifact, inputs: Sequence[Spec], outputs: Sequence[Spec], **options: Any) -> Program:
    """Load the object of `artifact` and bind it to NumPy dtypes and shapes; the options are those of `Binding`.

    Raises LaunchError if the object cannot be loaded here, or if the specs are not those the artifact was made for.
    """
    return load(artifact, Binding(inputs, outputs, **options))


def load(artifact: Artifact, binding: Binding) -> Program:
    """Load the object of `artifact` for a binding; raises `LaunchError` as `load_artifact`."""
    if artifact.format != "elf":
        raise LaunchError(f"this process runs ELF objects, not {artifact.format!r}")
    binding.check(artifact)
    try:
        code = load_object(artifact.object)
        return Program(
            code,
            artifact.entry,
            binding.inputs,
            binding.outputs,
            constants=binding.constants,
            workspace_bytes=artifact.workspace_bytes,
            in_place=artifact.in_place,
            **call_options(binding),
        )
    except (ValueError, LookupError) as error:
        raise LaunchError(f"the compiled program cannot be loaded: {error}") from error


def call_options(binding: Binding) -> dict[str, Any]:
    """The options of the native `Program` that are those of a binding."""
    return {
        "writebacks": tuple(binding.writebacks),
        "int_ranges": tuple(binding.int_ranges),
        "weak": tuple(binding.weak),
        "host": binding.host,
    }
