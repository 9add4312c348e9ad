"""A loaded device program of dynamic sizes: code on a device, of which each combination of sizes makes a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mlirml.errors import CheckFailed, TargetError
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.binding import Binding, Spec
from mlirml.runtime.device_program import DeviceProgram, code_on_device


class SizedDeviceProgram:
    """The code of a program on a device, and its arguments and results with their dynamic sizes."""

    def __init__(self, artifact: Artifact, binding: Binding) -> None:
        binding.check(artifact)
        self._code, self._binding = code_on_device(artifact, binding), binding.demoted()
        self.host = binding.host
        self.explain: Callable[[CheckFailed], Exception] = lambda failed: failed

    def work(self, values: Mapping[str, int]) -> int:
        """The estimated work of a call with these values of the dimensions."""
        return self._code.artifact.work_at(self._binding.sizes_at(values))

    def describe(self) -> list[str]:
        """The lines of `.explain()`."""
        return [*self._code.describe(), "what a call moves depends on its sizes"]

    def at(self, values: Mapping[str, int]) -> DeviceProgram:
        """The program for these values of its dimensions.

        Raises `TargetError` where an array is larger than the device takes.
        """
        inputs, outputs, sizes = self._binding.at(values)
        self._check_sizes([*inputs, *outputs], sizes, values)
        program = DeviceProgram(self._code, inputs, outputs, self._binding.writebacks, sizes)
        program.host, program.explain = self.host, self.explain
        return program

    def _check_sizes(self, specs: Sequence[Spec], sizes: Sequence[int], values: Mapping[str, int]) -> None:
        """Refuse arrays that exceed the elements or bytes that a kernel can address."""
        artifact = self._code.artifact
        elements = [math.prod(shape) for _, shape in specs]
        nbytes = [count * np.dtype(dtype).itemsize for count, (dtype, _) in zip(elements, specs)]
        nbytes += [count * math.prod(sizes[n] for n in numbers) for count, *numbers in artifact.workspace_terms]
        for most, found, unit in (
            (artifact.most_elements, max(elements, default=0), "elements"),
            (artifact.most_bytes, max(nbytes, default=0), "bytes"),
        ):
            if most and found > most:
                shown = ", ".join(f"`{name}` = {value:,}" for name, value in values.items())
                raise TargetError(
                    f"the target {artifact.format!r} takes arrays of at most {most:,} {unit}, and one has {found:,} "
                    f"with {shown}",
                    help="compute in several parts, or compile for the CPU",
                )
