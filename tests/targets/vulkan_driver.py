"""Whether there is a Vulkan driver for the tests."""

from __future__ import annotations

import pytest

from mlirml.errors import TargetError
from mlirml.runtime import vulkan


def missing() -> str:
    """What is missing for running on Vulkan; empty where nothing is."""
    try:
        return "" if vulkan.count() else "no Vulkan driver: on Debian, apt-get install mesa-vulkan-drivers libvulkan1"
    except TargetError as error:
        return f"no Vulkan: {error.message}"


needs_vulkan = pytest.mark.skipif(bool(missing()), reason=missing() or "-")
