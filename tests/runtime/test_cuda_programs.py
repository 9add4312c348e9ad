"""Compiled programs on CUDA devices, against the library that stands in for libcuda: its one kernel is `scale`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.runtime.binding import Binding
from mlirml.runtime.device_program import DeviceProgram, common_device, load
from tests.runtime.conftest import emit_object
from tests.runtime.test_cuda_device import HOST, ILLEGAL_ADDRESS, fake, path  # noqa: F401  (fixtures)

Fake = Any
SPEC = [(np.dtype(np.float32), (8,))]
X = np.arange(8, dtype=np.float32)


@pytest.fixture
def program(fake: Fake) -> DeviceProgram:  # noqa: F811
    buffers = (Buffer("f32", (8,)),)
    kernels = (("scale", (0, 0, 4)),)
    made = Artifact(
        emit_object(HOST), "main", buffers, buffers, format="cuda", kernels=b"an image", kernel_table=kernels
    )  # fmt: skip
    return load(made, Binding(SPEC, SPEC))


def test_numpy_goes_in_and_comes_out(program: DeviceProgram) -> None:
    (y,) = program([X])
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, 2.5 * X)


def test_arrays_run_the_program_where_they_lie(program: DeviceProgram) -> None:
    first, second = ml.device("cuda:0"), ml.device("cuda:1")
    (y,) = program([ml.put(X, second)])
    assert y.device is second
    np.testing.assert_array_equal(y.numpy(), 2.5 * X)
    launches = [where.driver.native.launches for where in (first, second)]  # type: ignore[attr-defined]
    assert launches == [0, 1]
    (z,) = program([ml.put(X, first)])
    assert z.device is first


def test_arrays_on_two_devices_are_refused(fake: Fake) -> None:  # noqa: F811
    with pytest.raises(ml.ArgumentError) as error:
        common_device([ml.put(X, "cuda:0"), 2.0, ml.put(X, "cuda:1")])
    assert str(error.value) == (
        'the arguments lie on cuda:0 and cuda:1\n   = help: bring them to one device, as by `.to("cuda:0")`'
    )


def test_the_configured_device_runs_what_has_no_device(fake: Fake, program: DeviceProgram) -> None:  # noqa: F811
    with ml.config.override(device="cuda:1"):
        other = load(program.artifact, Binding(SPEC, SPEC))
    assert (program.device.id, other.device.id) == ("cuda:0", "cuda:1")
    np.testing.assert_array_equal(other([X])[0], 2.5 * X)


def test_several_threads_call_on_both_devices(program: DeviceProgram) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(50):
            x = X + number * 100 + turn
            (y,) = program([ml.put(x, f"cuda:{number % 2}")])
            if not np.array_equal(y.numpy(), 2.5 * x):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_device_that_is_lost_leaves_the_other(fake: Fake, program: DeviceProgram) -> None:  # noqa: F811
    there = ml.put(X, "cuda:1")
    program([there])
    fake.fake_fail(ILLEGAL_ADDRESS)
    with pytest.raises(ml.LaunchError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        program([X])
    fake.fake_fail(0)  # the stand-in has one state for both devices
    with pytest.raises(ml.LaunchError, match="the device First GPU was lost"):
        program([X])
    np.testing.assert_array_equal(program([there])[0].numpy(), 2.5 * X)


def test_no_memory_for_a_result(program: DeviceProgram) -> None:
    where = ml.device("cuda:0")
    there = ml.put(X, where)
    where.set_memory_limit(where.statistics().in_use)
    where.reset()
    with pytest.raises(ml.LaunchError, match="cuda:0: out of memory: 256 bytes were asked for and the limit"):
        program([there])
    where.set_memory_limit(None)
    np.testing.assert_array_equal(program([there])[0].numpy(), 2.5 * X)
