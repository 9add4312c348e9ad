"""What tiles of a product on a Vulkan device gain over a thread for each element that shares nothing with others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.startup import Times

SIZE = 512
TILES = f"matmul {SIZE} on a Vulkan device, in tiles"
ELEMENTS = f"matmul {SIZE} on a Vulkan device, a thread for each element"


def tile_times(repeats: int) -> list[Times]:
    """Seconds by the clock of a product scheduled both ways, in turns; none without a device."""
    import mlirml as ml
    from mlirml.errors import TargetError

    try:
        ml.device("vulkan").driver  # noqa: B018  (opens it)
    except TargetError:
        return []
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))
    given = [ml.put(x, "vulkan") for x in (a, b)]
    runs = {TILES: _product(given), ELEMENTS: _product(given, naive=True)}
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for name, run in runs.items():
        error = abs(run().numpy() - a @ b).max()
        assert error < 1e-3, f"{name}: {error}"
    time.sleep(0.2)  # NumPy's threads wait for more work on the processors that the device may be
    for _ in range(2 * repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run().block()
            samples[name].append(time.perf_counter() - start)
    return [Times(name, tuple(seconds)) for name, seconds in samples.items()]


def _product(given: list[Any], **options: bool) -> Callable[[], Any]:
    """A product for a device, with more options of the schedule of kernels."""
    import mlirml as ml
    from mlirml.pipelines import gpu
    from mlirml.targets import vulkan

    def step(name: str, **own: Any) -> str:
        return original(name, **own, **(options if name == "mlirml-schedule-kernels" else {}))

    original = gpu.step

    def product(a: Any, b: Any) -> Any:
        return a @ b

    vulkan.target_for.cache_clear()
    with mock.patch.object(gpu, "step", step):
        compiled = ml.compile(product, "vulkan")
        compiled(*given)
    vulkan.target_for.cache_clear()
    return lambda: compiled(*given)
