"""What the target `vulkan` and its devices refuse, and what is lost when a device is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import LaunchError, TargetError
from mlirml.runtime import _native, vulkan
from mlirml.runtime.device_program import DeviceProgram
from tests.errors.shown import check_error
from tests.targets.drivers import needs_vulkan


def wide(x: Any) -> Any:
    return np.exp(x * 2)


def test_float64() -> None:
    check_error(
        lambda: ml.lower(wide, np.ones(3), target="webgpu"),
        """
        mlirml.TargetError: the target 'webgpu' has no float64 on this device
          --> test_vulkan.py:19:19 (wide)
            |
         19 |     return np.exp(x * 2)
            |                   ^^^^^
           = help: compute in float32: as by `x.astype(np.float32)`, or everywhere by `compile(..., float64="float32")`
        """,
    )


def mixed(x: Any) -> Any:
    y = x * 2
    return y + np.mean(y.astype(np.float64))


def test_the_caret_is_where_the_float64_comes_from() -> None:
    with pytest.raises(TargetError) as caught:
        ml.lower(mixed, np.ones(3, np.float32), target="webgpu")
    assert "y + np.mean(y.astype(np.float64))" in str(caught.value)


@pytest.mark.parametrize("target", ["vulkan", "cuda"])
def test_arrays_that_kernels_do_not_reach_all_of(target: str) -> None:
    x = ml.TensorSpec((1 << 16, 1 << 16), np.dtype(np.float32))
    with pytest.raises(TargetError) as caught:
        ml.lower(lambda x: x * 2, x, target=target)
    most = {"vulkan": "128 MiB", "cuda": "2,147,482,624 elements"}[target]
    assert caught.value.message == (
        f"the target {target!r} takes arrays of at most {most}, and one here has 4,294,967,296 elements and 16,384 MiB"
    )
    assert "compute in several parts, or compile for the CPU" in str(caught.value)


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TargetError) as caught:
        vulkan.library_path()
    assert str(caught.value) == (
        "the package `wgpu` is not installed\n   = help: `pip install wgpu` (or `mlirml[vulkan]`)"
    )


def test_a_library_that_is_none(tmp_path: Any) -> None:
    path = tmp_path / "libwgpu_native-release.so"
    path.write_bytes(b"nothing")
    with pytest.raises(TargetError, match=r"wgpu-native cannot be loaded: .*too short"):
        _native.WgpuLibrary(str(path))


@needs_vulkan
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(
        TargetError, match="there is no device 'vulkan:7': of type 'vulkan' there are 1, counted from 0"
    ):
        ml.device("vulkan:7")


@needs_vulkan
def test_a_device_that_is_lost_takes_no_data_with_it() -> None:
    compiled = ml.compile(lambda x: x * 2, target="vulkan")
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(compiled(x), x * 2)
    program = compiled.executable(x)
    assert isinstance(program, DeviceProgram)
    other = _native.WgpuDevice(vulkan.library(), 0)  # one of its own, since lost devices do not come back
    address = other.alloc(16)
    other.lose()
    for use in (lambda: other.alloc(4), lambda: other.copy_in(address, x.view(np.uint8)), lambda: other.wait(1)):
        with pytest.raises(LaunchError) as caught:
            use()
        assert str(caught.value) == (
            f"the device {other.name} was lost\n"
            "   = help: host arrays are as they were, and other devices work; this one does again in a new process. "
            "MLIRML_SYNC=1 tells which kernel failed"
        )
    np.testing.assert_array_equal(compiled(x), x * 2)
    np.testing.assert_array_equal(x, np.arange(4, dtype=np.float32))


@needs_vulkan
def test_more_memory_than_there_is() -> None:
    with pytest.raises(
        LaunchError, match=r"vulkan:0: out of memory: .* were asked for and the device has no memory left"
    ):
        ml.device("vulkan").pool.take(1 << 50)


def picked(x: Any, i: Any) -> Any:
    return x[i] * 2


OUT_OF_BOUNDS = """
        mlirml.IndexOutOfBoundsError: index 7 is out of bounds for axis 0 with size 5
          --> test_vulkan.py:114:12 (picked)
             |
         114 |     return x[i] * 2
             |            ^^^^
           = help: an index lies between -5 and 4; `np.take` can clip or wrap what lies outside
        """


@needs_vulkan
def test_an_index_out_of_bounds_is_told_of_when_somebody_waits() -> None:
    compiled = ml.compile(picked, target="vulkan")
    x, good, bad = np.ones((5, 2), np.float32), np.array([1, -5], np.int32), np.array([1, 7], np.int32)
    check_error(lambda: compiled(x, bad), OUT_OF_BOUNDS)
    there = ml.put((x, good, bad), "vulkan")
    native: Any = ml.device("vulkan").driver
    moved = native.native.bytes_out
    fine, wrong = compiled(*there[:2]), compiled(there[0], there[2])
    assert native.native.bytes_out == moved
    check_error(wrong.numpy, OUT_OF_BOUNDS)
    np.testing.assert_array_equal(fine, x[good] * 2)
    compiled(there[0], there[2])
    check_error(ml.device("vulkan").synchronize, OUT_OF_BOUNDS)
    wrong = compiled(there[0], there[2])
    check_error(lambda: ml.wait_any([wrong]), OUT_OF_BOUNDS)
    with ml.config.override(sync=True):
        check_error(lambda: compiled(there[0], there[2]), OUT_OF_BOUNDS)


@needs_vulkan
def test_code_that_is_none() -> None:
    with pytest.raises(LaunchError, match="refuses: "):
        ml.device("vulkan").driver.load(b"nothing!" * 8, [("k", [0])])  # type: ignore[attr-defined]
    assert ml.compile(lambda x: x + 1, target="vulkan")(np.float32(1)) == 2
