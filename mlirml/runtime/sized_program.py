"""A loaded program of dynamic sizes: one piece of code, of which each combination of sizes makes a `Program`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlirml.errors import LaunchError
from mlirml.runtime._native import Program, load_object
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.binding import Binding
from mlirml.runtime.executable import call_options


class SizedProgram:
    """The code of a program, and its arguments and results with their dynamic sizes."""

    def __init__(self, artifact: Artifact, binding: Binding) -> None:
        binding.check(artifact)
        self._artifact, self._binding = artifact, binding
        try:
            self._code = load_object(artifact.object)
        except (ValueError, LookupError) as error:
            raise LaunchError(f"the compiled program cannot be loaded: {error}") from error

    def work(self, values: Mapping[str, int]) -> int:
        """The estimated work of a call with these values of the dimensions."""
        return self._artifact.work_at(self._binding.sizes_at(values))

    def at(self, values: Mapping[str, int]) -> Program:
        """The program for these values of its dimensions."""
        binding = self._binding
        inputs, outputs, sizes = binding.at(values)
        table = [np.array(sizes, np.int64)] if sizes else []
        try:
            return Program(
                self._code,
                self._artifact.entry,
                inputs,
                outputs,
                constants=[*binding.constants, *table],
                workspace_bytes=self._artifact.workspace_at(sizes),
                in_place=self._artifact.in_place,
                **call_options(binding),
            )
        except (ValueError, LookupError) as error:
            raise LaunchError(f"the compiled program cannot be loaded: {error}") from error
