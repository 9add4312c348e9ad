"""This machine as it is measured: read from the cache folder, or measured now and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from mlirml.core.processes import COMPILER
from mlirml.errors import MlirmlError
from mlirml.runtime import _native
from mlirml.runtime.array import Array
from mlirml.runtime.binding import Binding
from mlirml.runtime.device import Device, device
from mlirml.targets.measured import DeviceCosts, MeasuredMachine, keep, measured_machine
from mlirml.targets.registry import get_target, target_names
from mlirml.targets.target import Target

_LARGE, _SMALL = 16 << 20, 4096
_REPEATS = 8
_ADD_ONE = """
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %one : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  return %y : tensor<1024xf32>
}
"""


def current_machine(*, again: bool = False) -> MeasuredMachine:
    """The measured machine, for the number of threads that loops may use now.

    It is measured once, which takes a few seconds, and kept in the cache folder; with `again`, it is measured anew.
    """
    threads = _native.get_threads()
    if again:
        _known.cache_clear()
    elif (kept := measured_machine(threads)) is not None:
        return kept
    return _known(threads)


@cache
def _known(threads: int) -> MeasuredMachine:
    from mlirml.targets.llvm.measure_machine import measure

    found = replace(measure(threads), devices=tuple(_devices()))
    keep(found)
    return found


def _devices() -> Iterator[DeviceCosts]:
    """The costs of the devices with a driver; none of one that refuses to work."""
    seen: set[str] = set()
    for name in target_names():
        target = get_target(name)
        if target.device in ("cpu", *seen):
            continue
        try:
            found = _device_costs(target, device(target.device))
        except MlirmlError:
            continue
        seen.add(target.device)
        yield found


def _device_costs(target: Target, where: Device) -> DeviceCosts:
    from mlirml.driver.compilation import run_pipeline
    from mlirml.ir.bindings import parse

    with COMPILER:
        module = parse(_ADD_ONE)
        run_pipeline(target, module)
        artifact = target.codegen(module)
    specs = [(np.dtype(np.float32), (1024,))]
    program: Any = target.open(artifact, Binding(specs, specs))
    driver: Any = where.driver
    block = where.pool.take(_LARGE)
    host = np.zeros(_LARGE, np.uint8)
    argument = Array(where, where.pool.take(_SMALL), (1024,), np.dtype(np.float32), 0)
    driver.copy_in(argument.address, host[:_SMALL])

    def launch() -> None:
        program([argument])
        driver.wait(driver.mark())

    def copy_in(size: int) -> None:
        driver.copy_in(block.address, host[:size])
        driver.wait(driver.mark())

    def copy_out(size: int) -> None:
        driver.copy_out(host[:size], block.address)

    return DeviceCosts(
        name=f"{where.id}: {where.name}",
        launch_seconds=_fastest(launch),
        copy_seconds=_fastest(lambda: copy_in(4)),
        copy_in=_LARGE / _fastest(lambda: copy_in(_LARGE)),
        copy_out=_LARGE / _fastest(lambda: copy_out(_LARGE)),
        emulated=bool(where.capabilities.get("emulated")),
    )


def _fastest(run: Callable[[], None]) -> float:
    """The seconds of the fastest of some runs, after one that warms up."""
    run()
    seconds = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)
