"""A loaded device program of dynamic sizes: code on a device, of which each combination of sizes makes a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.core.sizes import Size, value_of_size
from mlirml.errors import CheckFailed, LaunchError, TargetError
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.device_program import DeviceCode, DeviceProgram, demoted_specs, device_for
from mlirml.runtime.sized_program import Spec, check_shapes


class SizedDeviceProgram:
    """The code of a program on a device, and its inputs and outputs with their dynamic sizes."""

    def __init__(
        self,
        code: DeviceCode,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        writebacks: Sequence[tuple[int, int]],
        sizes: Sequence[Size],
    ) -> None:
        self._code, self._inputs, self._outputs = code, inputs, outputs
        self._writebacks, self._sizes = writebacks, sizes
        self.host: Callable[[int, list[int]], object] | None = None
        self.explain: Callable[[CheckFailed], Exception] = lambda failed: failed

    @classmethod
    def load(
        cls,
        artifact: Artifact,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        *,
        constants: Sequence[npt.NDArray[Any]] = (),
        writebacks: Iterable[tuple[int, int]] = (),
        int_ranges: Iterable[tuple[int, int, int, str]] = (),
        weak: Iterable[bool] = (),
        host: Callable[[int, list[int]], object] | None = None,
        demotes: bool = False,
        sizes: Sequence[Size] = (),
    ) -> SizedDeviceProgram:
        """As `mlirml.runtime.device_program.load_artifact`; `sizes` are the elements of the array of sizes, which is
        passed after the constants.
        """
        table: Spec = (np.int64, (len(sizes),))
        taken: list[Spec] = [*inputs, *((c.dtype, c.shape) for c in constants)]
        if demotes:
            taken, outputs = demoted_specs(taken), demoted_specs(outputs)
        check_shapes("input", artifact.inputs, [*taken, *([table] if sizes else [])])
        check_shapes("output", artifact.outputs, outputs)
        try:
            code = DeviceCode(artifact, device_for(artifact), constants, demotes)
        except (ValueError, LookupError) as error:
            if isinstance(error, LaunchError):
                raise
            raise LaunchError(f"the compiled program cannot be loaded: {error}") from error
        program = cls(code, taken[: len(inputs)], outputs, tuple(writebacks), sizes)
        program.host = host
        return program

    def work(self, values: Mapping[str, int]) -> int:
        """The estimated work of a call with these values of the dimensions."""
        return self._code.artifact.work_at([size.value(values) for size in self._sizes])

    def describe(self) -> list[str]:
        """The lines of `.explain()`."""
        return [*self._code.describe(), "what a call moves depends on its sizes"]

    def at(self, values: Mapping[str, int]) -> DeviceProgram:
        """The program for these values of its dimensions.

        Raises `TargetError` where an array is larger than the device takes.
        """
        inputs, outputs = (
            [(dtype, tuple(value_of_size(n, values) for n in shape)) for dtype, shape in specs]
            for specs in (self._inputs, self._outputs)
        )
        sizes = [size.value(values) for size in self._sizes]
        self._check_sizes([*inputs, *outputs], sizes, values)
        program = DeviceProgram(self._code, inputs, outputs, self._writebacks, sizes)
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
