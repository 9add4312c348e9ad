"""Compiled programs that run on a device: arguments are copied there, results back unless they stay on the device."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mlirml.core.config import config
from mlirml.errors import ArgumentError, CheckFailed, LaunchError
from mlirml.runtime._native import load_object
from mlirml.runtime.array import Array
from mlirml.runtime.artifact import Artifact
from mlirml.runtime.binding import Binding, Spec, demoted_dtype
from mlirml.runtime.deferred import SLOT_BYTES, DeferredCheck, Pending
from mlirml.runtime.device import Device, device
from mlirml.runtime.memory import Block

Bytes = npt.NDArray[np.uint8]


def _times(count: int) -> str:
    """The number of launches of a kernel as a phrase; empty for one launch."""
    return "" if count == 1 else ", in loops" if count < 0 else f", {count} times"


class DeviceCode:
    """The code of a program on a device: the host code, the kernels, and the arrays that are the same in every call."""

    def __init__(
        self, artifact: Artifact, where: Device, captured: Sequence[npt.NDArray[Any]], demotes: bool = False
    ) -> None:
        self.artifact = artifact
        self.device = where
        self._made_of = (captured, demotes)
        self._demotes = demotes
        self._elsewhere: dict[Device, DeviceCode] = {}
        driver = cast(Any, where.driver)
        self._object = load_object(artifact.object)
        self.entry = self._object.address(artifact.entry)
        self.module: Any = None
        if artifact.kernel_table:
            accesses = artifact.kernel_accesses or [()] * len(artifact.kernel_table)
            entries = [
                (name, list(sizes), artifact.image(number), list(accesses[number]))
                for number, (name, sizes) in enumerate(artifact.kernel_table)
            ]
            self.module = driver.load(artifact.common_kernels, entries, artifact.cubin)
        dtypes = [demoted_dtype(array.dtype) if demotes else array.dtype for array in captured]
        self.captured = [_Resident(where, *constant) for constant in zip(captured, dtypes)]
        self.constants: Block | None = None
        if artifact.constants:
            self.constants = where.pool.take(len(artifact.constants))
            content = np.frombuffer(artifact.constants, np.uint8)
            driver.copy_in(self.constants.address, content, self.constants.after)

    def on(self, where: Device) -> DeviceCode:
        """The same code on another device of the backend."""
        if where not in self._elsewhere:
            self._elsewhere[where] = DeviceCode(self.artifact, where, *self._made_of)
        return self._elsewhere[where]

    def describe(self) -> list[str]:
        """The lines of `.explain()`: each kernel with its source line, and the host work."""
        made = self.artifact
        lines = [
            f"kernel {name} on {self.device.id}, for {place or 'what the compiler added'}{_times(count)}"
            for (name, _), place, count in zip(made.kernel_table, made.kernel_places, made.kernel_launches)
        ]
        for i in made.host_inputs:
            is_table = made.inputs[i].shape and i == len(made.inputs) - 1
            if not is_table:
                lines.append(f"argument {i} stays on the host: it is one number")
        if self._demotes:
            lines.append('float64 is computed as float32, complex128 as complex64, by float64="float32"')
        lines += made.host_work
        launches = sum(made.kernel_launches)
        if -1 in made.kernel_launches:
            lines.append("how many launches a call makes depends on what it computes")
        else:
            lines.append(f"a call launches {launches} kernel{'s' if launches != 1 else ''}")
        return lines


class DeviceProgram:
    """A program that is loaded on a device; it is called like the native `Program`.

    Results are `Array`s on the device when one of the arguments is, and the call returns before they are computed.
    Otherwise they are NumPy arrays. `Array`s on another device of the same backend run the program on that device,
    where it is loaded at the first such call. `sizes` are those of a program of dynamic sizes in this call: its last
    input. Of a program of which `remaining` is a number, so many calls remain before a better one is made.
    """

    remaining: int | None = None

    def __init__(
        self,
        code: DeviceCode,
        inputs: Sequence[Spec],
        outputs: Sequence[Spec],
        writebacks: Sequence[tuple[int, int]],
        sizes: Sequence[int] = (),
    ) -> None:
        artifact = code.artifact
        self.device = code.device
        self.artifact = artifact
        self._made_of = (inputs, outputs, writebacks, sizes)
        self._code = code
        self._elsewhere: dict[Device, DeviceProgram] = {}
        self._lock = threading.Lock()
        self._driver = cast(Any, code.device.driver)
        self._inputs = [np.dtype(d) for d, _ in inputs]
        self._bytes_in = sum(
            math.prod(shape) * np.dtype(d).itemsize
            for number, (d, shape) in enumerate(inputs)
            if number not in artifact.host_inputs
        )
        self._outputs = [(np.dtype(d), tuple(s)) for d, s in outputs]
        self._bytes_out = [math.prod(s) * d.itemsize for d, s in self._outputs]
        self._sizes = np.array(sizes, np.int64)
        self._workspace_bytes = artifact.workspace_at(sizes)
        self._host_workspace_bytes = artifact.host_workspace_at(sizes)
        self._checks = [DeferredCheck(*check) for check in artifact.deferred_checks]
        self.host: Callable[[int, list[int]], object] | None = None  # what is called in Python
        self.explain: Callable[[CheckFailed], Exception] = lambda failed: failed
        self._writebacks = list(writebacks)
        self._in_place = {o: i for o, i in writebacks if o in artifact.in_place}
        self._on_host = frozenset(artifact.host_inputs)

    def describe(self) -> list[str]:
        """The lines of `.explain()`: each kernel with its source line, the host work, and the transfers of a call."""
        captured = sum(resident.nbytes for resident in self._code.captured)
        moved = f"a call with NumPy arrays moves {self._bytes_in + captured} bytes in and {sum(self._bytes_out)} out"
        return [*self._code.describe(), moved]

    def __call__(self, leaves: Iterable[Any], outputs: Iterable[Any] | None = None) -> list[Any]:
        """Run on arrays and scalars; the results, stored into `outputs` if given."""
        if self.remaining:
            self.remaining -= 1
        values = list(leaves)
        here = self.device
        if values and not self._on_host and all(type(v) is Array and v.device is here for v in values):
            held: list[Any] = values  # kept alive until the device has the program
            pointers = [value.address for value in values]
        else:
            for value in values:
                if isinstance(value, Array) and value.device is not here:
                    return self._on(common_device(values))(values, outputs)
            held = []
            pointers = [self._input(i, value, held) for i, value in enumerate(values)]
        for number, resident in enumerate(self._code.captured, len(values)):
            if number in self._on_host:
                pointers.append(self._input(number, resident.array.astype(resident.dtype, copy=False), held))
            else:
                pointers.append(resident.address(self._driver))
        if len(self._sizes):
            pointers.append(self._sizes.ctypes.data)
        blocks: list[Any] = []
        for number, nbytes in enumerate(self._bytes_out):
            block = held[self._in_place[number]] if number in self._in_place else self.device.pool.take(nbytes)
            blocks.append(block)
            pointers.append(block.address)
        pending = None
        if self._checks:
            pending = Pending(self._checks, self.device.pool.take(SLOT_BYTES * len(self._checks)), self.explain)
            pointers.append(pending.block.address)
        if self._code.constants is not None:
            pointers.append(self._code.constants.address)
        workspace = None
        if self._workspace_bytes:
            workspace = self.device.pool.take(self._workspace_bytes)
            pointers.append(workspace.address)
        host = _aligned(self._host_workspace_bytes)
        if host is not None:
            pointers.append(host.ctypes.data)
        self._driver.run(self._code.entry, pointers, self._code.module, config.sync, self.host)
        stays = held is values or any(isinstance(value, Array) for value in values)
        if pending is not None:
            self.device.watch(pending)
            if not stays or config.sync:
                self.device.settle()
        return self._results(values, blocks, list(outputs) if outputs is not None else None, stays)

    def _on(self, where: Device) -> DeviceProgram:
        """The same program on another device of the backend."""
        with self._lock:
            if where not in self._elsewhere:
                self._elsewhere[where] = DeviceProgram(self._code.on(where), *self._made_of)
            self._elsewhere[where].explain, self._elsewhere[where].host = self.explain, self.host
            return self._elsewhere[where]

    def _input(self, number: int, value: Any, held: list[Any]) -> int:
        """The address of an argument: in device memory unless the program reads it on the host."""
        if isinstance(value, Array) and value.device is self.device and number not in self._on_host:
            held.append(value)
            return value.address
        array = _host_array(value, self._inputs[number] if number < len(self._inputs) else None)
        if number in self._on_host:
            held.append(array)
            return int(array.ctypes.data)
        block = self.device.pool.take(array.nbytes)
        if array.nbytes:
            self._driver.copy_in(block.address, _bytes(array), block.after)
        held.append(block)
        return block.address

    def _results(self, values: list[Any], blocks: list[Any], outputs: list[Any] | None, stays: bool) -> list[Any]:
        mark = self._driver.mark() if stays else 0
        results: list[Any] = []
        for number, ((dtype, shape), block) in enumerate(zip(self._outputs, blocks)):
            out = outputs[number] if outputs is not None else None
            if isinstance(block, Array):
                block.stored(mark)
                results.append(block)
            elif stays and out is None:
                results.append(Array(self.device, block, shape, dtype, mark))
            else:
                results.append(self._copied_out(block, dtype, shape, out))
        for output, place in self._writebacks:
            target, result = values[place], results[output]
            if isinstance(target, Array):
                if target is not result:
                    self._driver.copy(target.address, blocks[output].address, target.nbytes)
                    target.stored(self._driver.mark())
            else:
                target[...] = result.numpy() if isinstance(result, Array) else result
        return results

    def _copied_out(self, block: Block, dtype: np.dtype[Any], shape: tuple[int, ...], out: Any) -> Any:
        direct = isinstance(out, np.ndarray) and out.flags.c_contiguous and out.flags.aligned and out.dtype == dtype
        host = out if direct else np.empty(shape, dtype)
        if host.nbytes:
            self._driver.copy_out(_bytes(host), block.address)
        if out is None or direct:
            return host
        out[...] = host
        return out


class _Resident:
    """A captured array, uploaded when the program is loaded, and uploaded again by a call after it was modified."""

    def __init__(self, where: Device, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
        self.array = array
        self.dtype = dtype
        self._sent = _bytes(_host_array(array, dtype)).copy()
        self.nbytes = self._sent.nbytes
        self._block = where.pool.take(self._sent.nbytes)
        if array.nbytes:
            cast(Any, where.driver).copy_in(self._block.address, self._sent, self._block.after)

    def address(self, driver: Any) -> int:
        """The device address of the current contents."""
        if self.array.flags.writeable or self.array.base is not None:
            now = _bytes(_host_array(self.array, self.dtype))
            if not np.array_equal(now, self._sent):
                self._sent = now.copy()
                driver.copy_in(self._block.address, now)
        return self._block.address


def device_for(artifact: Artifact) -> Device:
    """The first device that runs a program, or `config.device` if it does."""
    chosen = config.device if config.device and config.device.partition(":")[0] == artifact.format else artifact.format
    return device(chosen)


def common_device(values: Iterable[Any]) -> Device:
    """The device of all arrays of a call; raises ArgumentError if they are on several."""
    devices = list(dict.fromkeys(value.device for value in values if isinstance(value, Array)))
    if len(devices) > 1:
        raise ArgumentError(
            f"the arguments lie on {' and '.join(device.id for device in devices)}",
            help=f'bring them to one device, as by `.to("{devices[0].id}")`',
        )
    return devices[0]


def _host_array(value: Any, dtype: np.dtype[Any] | None) -> npt.NDArray[Any]:
    if isinstance(value, Array):
        value = value.numpy()
    if type(value) is int and value >= 2**63:  # passed as the bits of an unsigned integer
        value = np.array(value, np.uint64).view(np.int64)
    return np.require(np.asarray(value, dtype), requirements=("C", "A"))


def _bytes(array: npt.NDArray[Any]) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def _aligned(nbytes: int) -> Bytes | None:
    """Memory of the host, aligned to 64 bytes."""
    if not nbytes:
        return None
    raw = np.empty(nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes]


def load(artifact: Artifact, binding: Binding) -> DeviceProgram:
    """Load an artifact on the first device of its target, or on `config.device` if it has that target.

    With `demotes` arguments are converted to 32-bit floats, and results are float32 arrays. The caller checks the
    values of integers and the arrays that are stored into: `mlirml.driver.argument_errors`. Raises `TargetError` if
    there is no such device, `LaunchError` if the device rejects the program, or if it was made for other arrays.
    """
    binding.check(artifact)
    code, mine = code_on_device(artifact, binding), binding.demoted()
    program = DeviceProgram(code, mine.inputs, mine.outputs, binding.writebacks)
    program.host = binding.host
    return program


def code_on_device(artifact: Artifact, binding: Binding) -> DeviceCode:
    """The code of an artifact on its device; raises `LaunchError` where the device rejects it."""
    try:
        return DeviceCode(artifact, device_for(artifact), binding.constants, binding.demotes)
    except LaunchError:
        raise
    except (ValueError, LookupError) as error:
        raise LaunchError(f"the compiled program cannot be loaded: {error}") from error
