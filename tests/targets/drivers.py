"""Which devices there are for the tests, and the marks of tests that run on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mlirml.errors import TargetError
from mlirml.runtime import cuda, vulkan

_INSTALL = {
    "vulkan": "no Vulkan driver: on Debian, apt-get install mesa-vulkan-drivers libvulkan1",
    "cuda": "no NVIDIA GPU",
}


def missing(kind: str) -> str:
    """What is missing for running on devices of a kind; empty where nothing is."""
    count: Callable[[], int] = {"vulkan": vulkan.count, "cuda": cuda.count}[kind]
    try:
        return "" if count() else _INSTALL[kind]
    except TargetError as error:
        return f"no device of kind {kind}: {error.message}"


needs_vulkan = pytest.mark.skipif(bool(missing("vulkan")), reason=missing("vulkan") or "-")
needs_cuda = [pytest.mark.cuda, pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda") or "-")]
_DEVICES = [pytest.param("vulkan", marks=needs_vulkan), pytest.param("cuda", marks=needs_cuda)]
on_devices: Any = pytest.mark.parametrize("target", _DEVICES)
"""Runs a test with `target` on the first device of each kind; `pytest -m cuda` chooses those on NVIDIA's."""
on_devices_and_webgpu: Any = pytest.mark.parametrize("target", [*_DEVICES, pytest.param("webgpu", marks=needs_vulkan)])
"""The same, and with WebGPU's kernels on the first Vulkan device."""
