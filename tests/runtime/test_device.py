"""Devices by name, arrays on them, and the pool of their memory."""

from __future__ import annotations

import asyncio
import gc
import pickle
import sys
import types
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.runtime import device as device_module
from mlirml.runtime.memory import Pool, rounded
from tests.runtime.fake_device import FakeDriver


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The driver of the device `fake:0`."""
    driver = FakeDriver()
    module = types.ModuleType("fake_kind")
    module.count = lambda: 1  # type: ignore[attr-defined]
    module.open_device = lambda index: driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_kind", module)
    monkeypatch.setattr(device_module, "_DRIVERS", {"fake": "fake_kind"})
    monkeypatch.setattr(device_module, "_KNOWN", {})
    yield driver


def test_devices_by_name(fake: FakeDriver) -> None:
    assert [d.id for d in ml.devices()] == ["cpu", "fake:0"]
    assert ml.device("fake") is ml.device("fake:0") is ml.device(ml.device("fake:0")) is ml.device("auto")
    assert (ml.device("fake").name, ml.device("fake").memory) == ("a device for tests", 1 << 20)
    assert ml.device("cpu").memory > 0
    with ml.config.override(device="cpu"):
        assert ml.device("auto").id == "cpu"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fake:1", "there is no device 'fake:1': of type 'fake' there are 1, counted from 0"),
        ("gpu", 'there is no device \'gpu\'\n   = help: the devices here are "cpu", "fake:0", and "auto"'),
        ("cpu:1", 'there is no device \'cpu:1\'\n   = help: the devices here are "cpu", "fake:0", and "auto"'),
        ("fake:x", 'there is no device \'fake:x\'\n   = help: the devices here are "cpu", "fake:0", and "auto"'),
    ],
)
def test_a_device_that_is_not_there(fake: FakeDriver, name: str, message: str) -> None:
    with pytest.raises(ml.TargetError) as error:
        ml.device(name)
    assert str(error.value) == message


def test_a_name_is_a_string() -> None:
    with pytest.raises(TypeError, match="expected the name of a device, got 3"):
        ml.device(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["cpu", "fake:0"])
@pytest.mark.parametrize("x", [np.arange(12.0).reshape(3, 4).T, np.zeros((0, 3), np.int8), np.float32(2.5), True, 3])
def test_there_and_back(fake: FakeDriver, where: str, x: object) -> None:
    there, plain = ml.put(x, where), np.asarray(x)
    assert (there.shape, there.dtype, there.ndim, there.size, there.nbytes) == (
        plain.shape, plain.dtype, plain.ndim, plain.size, plain.nbytes,
    )  # fmt: skip
    assert there.device.id == where
    np.testing.assert_array_equal(there.numpy(), plain)
    np.testing.assert_array_equal(np.asarray(there), plain)
    np.testing.assert_array_equal(there.to("cpu").numpy(), plain)
    np.testing.assert_array_equal(np.from_dlpack(there), plain)


def test_bfloat16_is_a_number(fake: FakeDriver) -> None:
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    there = ml.put(x, "fake")
    assert there.dtype == x.dtype
    np.testing.assert_array_equal(there.numpy(), x)


def test_put_copies_and_keeps_containers(fake: FakeDriver) -> None:
    x = np.ones(3)
    for where in ("cpu", "fake"):
        there = ml.put({"a": [x, (x, None)]}, where)
        x[:] = 7
        np.testing.assert_array_equal(there["a"][0].numpy(), 1)
        np.testing.assert_array_equal(there["a"][1][0].numpy(), 1)
        assert there["a"][1][1] is None
        x[:] = 1


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(ml.ArgumentError, match="put: a str is not an array of numbers"):
        ml.put("text", "cpu")


def test_python_sees_one_number(fake: FakeDriver) -> None:
    one = ml.put(np.float32(2.0), "fake")
    assert (float(one), int(one), bool(one), one.item()) == (2.0, 2, True, 2.0)
    assert [1, 2, 3][ml.put(1, "fake")] == 2
    assert len(ml.put(np.zeros((4, 2)), "fake")) == 4
    with pytest.raises(TypeError, match="no dimension"):
        len(one)


def test_how_it_is_shown(fake: FakeDriver) -> None:
    assert repr(ml.put(np.arange(3), "fake")) == "Array([0, 1, 2], device='fake:0')"


def test_pickle(fake: FakeDriver) -> None:
    x = pickle.loads(pickle.dumps(ml.put(np.arange(3), "fake")))
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2])


def test_a_copy_is_made_only_where_it_may_be(fake: FakeDriver) -> None:
    there, host = ml.put(np.arange(3), "fake"), ml.put(np.arange(3), "cpu")
    assert np.shares_memory(np.asarray(host), host.numpy())
    assert np.asarray(there, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="cannot be seen by NumPy without a copy"):
        np.asarray(there, copy=False)
    with pytest.raises(BufferError, match="cannot be shared without a copy"):
        there.__dlpack__(copy=False)
    assert there.__dlpack_device__() == (1, 0)


def test_work_goes_on_until_somebody_waits(fake: FakeDriver) -> None:
    x = ml.put(np.arange(3), "fake")
    assert not x.is_ready()
    with pytest.raises(TimeoutError, match=r"not ready after 0\.01 s"):
        x.block(timeout=0.01)
    with pytest.raises(TimeoutError):
        ml.wait_any([x], timeout=0.01)
    with pytest.raises(TimeoutError):
        ml.wait_all([ml.put(1, "cpu"), x], timeout=0.01)
    assert ml.wait_any([x, ml.put(1, "cpu")]) == 1
    assert x.block() is x and x.is_ready()
    ml.wait_all([x])


def test_await(fake: FakeDriver) -> None:
    async def program() -> ml.Array:
        return await ml.put(np.arange(3), "fake")

    assert asyncio.run(program()).is_ready()


def test_nothing_to_wait_for() -> None:
    with pytest.raises(ml.ArgumentError, match="no array to wait for"):
        ml.wait_any([])


def test_memory_is_used_again(fake: FakeDriver) -> None:
    where = ml.device("fake")
    for _ in range(5):
        ml.put(np.ones(100), where)
    gc.collect()
    statistics = where.statistics()
    assert (fake.allocations, statistics.allocations, statistics.reused) == (1, 5, 4)
    assert (statistics.in_use, statistics.cached, statistics.peak) == (0, 1024, 1024)
    where.reset()
    assert fake.blocks == {}
    assert (where.statistics().cached, where.statistics().peak) == (0, 0)


def test_what_is_kept_makes_room(fake: FakeDriver) -> None:
    where = ml.device("fake")
    ml.put(np.ones(64 << 10), where)  # half of the memory
    small = ml.put(np.ones(80 << 10), where)
    assert len(fake.blocks) == 1
    np.testing.assert_array_equal(small.numpy(), 1)


def test_no_memory_left(fake: FakeDriver) -> None:
    held = ml.put(np.ones(64 << 10), "fake")
    with pytest.raises(ml.LaunchError) as error:
        ml.put(np.ones(100 << 10), "fake")
    assert str(error.value) == (
        "fake:0: out of memory: 1 MiB were asked for and the device has no memory left\n"
        "   = note: 512 KiB are in use by arrays and programs\n"
        "   = help: delete arrays that are not needed any more, or use smaller arrays"
    )
    np.testing.assert_array_equal(held.numpy(), 1)


def test_the_limit(fake: FakeDriver) -> None:
    where = ml.device("fake")
    where.set_memory_limit(4096)
    held = ml.put(np.ones(256), where)
    with pytest.raises(ml.LaunchError, match="the limit of 4 KiB is reached"):
        ml.put(np.ones(512), where)
    where.set_memory_limit(None)
    ml.put(np.ones(512), where)
    np.testing.assert_array_equal(held.numpy(), 1)
    with pytest.raises(ValueError, match="cannot be negative"):
        where.set_memory_limit(-1)
    with pytest.raises(ml.TargetError, match="no limit of its own"):
        ml.device("cpu").set_memory_limit(1)


def test_a_lost_device(fake: FakeDriver) -> None:
    x = ml.put(np.ones(4), "fake")
    fake.lost = True
    for use in (x.numpy, x.block, lambda: ml.put(1.0, "fake"), ml.device("fake").synchronize):
        with pytest.raises(ml.LaunchError, match="was lost"):
            use()
    del x
    gc.collect()  # gives the memory back without asking the device


@pytest.mark.parametrize("nbytes", [0, 1, 255, 256, 257, 1 << 20, (1 << 20) + 1, 5_000_000])
def test_blocks_are_large_enough_and_fit_again(nbytes: int) -> None:
    assert rounded(nbytes) >= nbytes and rounded(rounded(nbytes)) == rounded(nbytes)
    assert rounded(nbytes) < max(512, 2 * nbytes) or nbytes > 1 << 20


def test_blocks_are_not_shared_while_held() -> None:
    pool = Pool(FakeDriver(), "fake:0")
    blocks = [pool.take(100) for _ in range(10)]
    assert len({block.address for block in blocks}) == 10


def test_a_compiled_function_takes_arrays_of_its_device(fake: FakeDriver) -> None:
    f = ml.compile(lambda x, y: {"sum": x + y, "x": x})
    x = ml.put(np.arange(3.0), "cpu")
    result = f(x, 1)
    assert isinstance(result["sum"], ml.Array) and result["sum"].device.id == "cpu"
    np.testing.assert_array_equal(result["sum"].numpy(), [1, 2, 3])
    assert isinstance(f(np.arange(3.0), 1)["sum"], np.ndarray)
    with pytest.raises(ml.ArgumentError) as error:
        f(ml.put(np.arange(3.0), "fake"), 1)
    assert "argument `x` lies on fake:0, and" in str(error.value)
    assert str(error.value).endswith('= help: pass `x.to("cpu")`, or `x.numpy()`')


def test_stores_into_an_array(fake: FakeDriver) -> None:
    def store(x):  # type: ignore[no-untyped-def]
        x[1] = 5.0

    x = ml.put(np.zeros(3), "cpu")
    ml.compile(store)(x)
    np.testing.assert_array_equal(x.numpy(), [0, 5, 0])
