"""`mlirml machine`: this machine as it was measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from mlirml.driver.machine import current_machine
from mlirml.driver.profiling.text import aligned, duration
from mlirml.targets.measured import MeasuredMachine


def machine(*, again: bool, as_json: bool) -> int:
    """Print the measured machine; `again` measures it anew."""
    found = current_machine(again=again)
    if as_json:
        json.dump(found.as_dict(), sys.stdout, indent=1)
        print()
    else:
        print(described(found))
    return 0


def described(found: MeasuredMachine) -> str:
    """The machine as text."""
    # The name ends with the vendor and the numbers of the model, which say nothing to a reader.
    name = " ".join(found.cpu.split()[:-4]) or found.cpu
    every = f"{found.threads} threads"
    peaks: list[Sequence[str]] = [("GFLOP/s", "one thread", every)]
    peaks += [(dtype, *(f"{rate / 1e9:.0f}" for rate in pair)) for dtype, pair in found.peaks.items()]
    accesses = [f"{access}{of}" for of in ("", f" ({every})") for access in ("read", "write", "copy")]
    levels: list[Sequence[str]] = [("GB/s", "size", *accesses)]
    for level, each in found.levels.items():
        pairs = (each.read, each.write, each.copy)
        rates = [f"{pair[of] / 1e9:.0f}" for of in (0, 1) for pair in pairs]
        levels.append((level, _size(each.size), *rates))
    lines = [name, "", *aligned(peaks, left=(0,)), "", *aligned(levels, left=(0,)), ""]
    lines.append(f"a call of a program: {duration(found.call_seconds)}")
    lines.append(f"a parallel loop: {duration(found.fork_seconds)}" if found.threads > 1 else "one thread: no forks")
    if found.was_busy:
        lines.append("threads did not add up: other programs ran, or threads share cores (--measure when it is idle)")
    for each_device in found.devices:
        emulated = ", emulated by the CPU" if each_device.emulated else ""
        lines.append(
            f"{each_device.name}{emulated}: a launch {duration(each_device.launch_seconds)}, "
            f"a small copy {duration(each_device.copy_seconds)}, "
            f"{each_device.copy_in / 1e9:.3g} GB/s in, {each_device.copy_out / 1e9:.3g} GB/s out"
        )
    if not found.devices:
        lines.append("no device with a driver")
    return "\n".join(lines)


def _size(count: int) -> str:
    if not count:
        return ""
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
