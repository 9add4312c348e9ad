"""`mlirml devices`: the targets and what they run on here."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mlirml.cli.console import console, table
from mlirml.errors import TargetError
from mlirml.runtime import _native
from mlirml.runtime.device import Device, device
from mlirml.runtime.device import devices as all_devices
from mlirml.targets.machine import host_facts, processor
from mlirml.targets.registry import get_target, target_names
from mlirml.targets.target import Target
from mlirml.targets.vulkan import wide_dtypes

# What decides how fast numeric code is, in the order in which it came to x86.
_FEATURES = (
    "sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "amx_bf16", "asimd", "sve",
)  # fmt: skip


def devices() -> int:
    """Print the table."""
    facts = host_facts()
    flags = set(facts["cpu.flags"].split())
    # The facts end with the vendor and the numbers of the model, which say nothing to a reader.
    name = " ".join(facts["cpu"].split()[:-4]) or facts["machine"]
    host = (
        f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} cores usable, up to {_native.get_threads()} thread(s) "
        f"a loop, {processor().vector_bits}-bit vectors\n{' '.join(f for f in _FEATURES if f in flags)}"
    )
    rows = table(None, "target", "runs on", "what is there")
    for target in map(get_target, target_names()):
        if target.device == "cpu":
            place = f"{name} ({facts['machine']})" if target.processor else "this process"
            rows.add_row(target.name, place, target.about or host)
            continue
        for place, facts_of_it in accelerators(target):
            rows.add_row(target.name, place, facts_of_it)
    console().print(rows)
    return 0


def accelerators(target: Target) -> Iterator[tuple[str, str]]:
    """The name and the facts of each device that runs a target's programs; what is missing where there is none."""
    kind = target.device
    try:
        found = [device(f"{kind}:0"), *(d for d in all_devices() if d.kind == kind and d.index)]
    except TargetError as error:
        yield "no device", "\n".join(text for text in (error.message, error.help) if text)
        return
    for each in found:
        memory = [f"{each.memory / (1 << 30):.0f} GiB"] if each.memory else []
        words = [each.capabilities.get("architecture", ""), *memory, *features_of(each, target.name)]
        emulated = ", emulated by the CPU" if each.capabilities.get("emulated") else ""
        yield f"{each.name} ({each.id}{emulated})", " ".join(filter(None, words))


def features_of(each: Device, target: str) -> list[str]:
    """The optional features that programs for a target may use of a device: some of those that its driver offers."""
    features = each.capabilities.get("features", ())
    wide = wide_dtypes(features) if target == "vulkan" else ()
    return [name for name in features if name in wide or name not in ("f64", "i64")]
