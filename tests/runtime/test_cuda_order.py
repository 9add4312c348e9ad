"""Launches and copies side by side and in graphs, on a stand-in for libcuda that does work in any order which streams,
events and the edges of graphs allow: programs of random commands, whose results are those of their order."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.config import config
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.runtime.binding import Binding
from mlirml.runtime.device_program import DeviceProgram, load
from tests.runtime.conftest import emit_object
from tests.runtime.test_cuda_device import fake, path  # noqa: F401  (fixtures)

LATE = 1
OUT_OF_MEMORY, INVALID_VALUE, ILLEGAL_ADDRESS = 2, 1, 700
SPAN, SLOTS = 8, 24  # floats of a kernel, and positions of four floats each
COUNT = 4 * (SLOTS - 1) + SPAN
SCALE_ACCESSES = (4 * 4 * SPAN + 1, 4 * 4 * SPAN + 2, 0)
Command = tuple[str, int, int]

HOST = """
declare void @mgpuLaunchKernel(ptr, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr, i64)
declare void @mgpuMemcpy(ptr, ptr, i64, ptr)
define void @main(ptr %arguments) {{
  %factor = alloca float
  store float 1.25, ptr %factor
  %host = alloca [8 x float]
  %from = alloca ptr
  %to = alloca ptr
  %parameters = alloca [3 x ptr]
  store ptr %from, ptr %parameters
  %p1 = getelementptr ptr, ptr %parameters, i64 1
  store ptr %to, ptr %p1
  %p2 = getelementptr ptr, ptr %parameters, i64 2
  store ptr %factor, ptr %p2
  %x = load ptr, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  %y = load ptr, ptr %second
  %third = getelementptr ptr, ptr %arguments, i64 2
  %table = load ptr, ptr %third
  %stream = load ptr, ptr %table
  %slot = getelementptr ptr, ptr %table, i64 1
  %kernel = load ptr, ptr %slot
  call void @mgpuMemcpy(ptr %y, ptr %x, i64 {size}, ptr %stream)
{body}
  ret void
}}
"""
POINTERS = """
  %a{n} = getelementptr float, ptr %y, i64 {source}
  %b{n} = getelementptr float, ptr %y, i64 {target}
"""
BODIES = {
    "scale": """
  store ptr %a{n}, ptr %from
  store ptr %b{n}, ptr %to
  call void @mgpuLaunchKernel(ptr %kernel, i64 2, i64 1, i64 1, i64 4, i64 1, i64 1, i32 0, ptr %stream,
                              ptr %parameters, ptr null, i64 3)
""",
    "copy": """
  call void @mgpuMemcpy(ptr %b{n}, ptr %a{n}, i64 32, ptr %stream)
""",
    "host": """
  call void @mgpuMemcpy(ptr %host, ptr %a{n}, i64 32, ptr %stream)
  call void @mgpuMemcpy(ptr %b{n}, ptr %host, i64 32, ptr %stream)
""",
}


def made(commands: list[Command], accesses: tuple[int, ...] = SCALE_ACCESSES) -> DeviceProgram:
    """A program that copies its argument to its result, and does these commands there."""
    body = "".join(
        (POINTERS + BODIES[name]).format(n=n, source=4 * source, target=4 * target)
        for n, (name, source, target) in enumerate(commands)
    )
    buffers = (Buffer("f32", (COUNT,)),)
    artifact = Artifact(
        emit_object(HOST.format(body=body, size=4 * COUNT)), "main", buffers, buffers, format="cuda",
        kernels=b"an image", kernel_table=(("scale", (0, 0, 4)),), kernel_accesses=(accesses,),
    )  # fmt: skip
    spec = [(np.dtype(np.float32), (COUNT,))]
    return load(artifact, Binding(spec, spec))


def expected(commands: list[Command], x: np.ndarray) -> np.ndarray:
    """What the commands compute one after another."""
    y = x.copy()
    for name, source, target in commands:
        read = y[4 * source : 4 * source + SPAN].copy()
        y[4 * target : 4 * target + SPAN] = np.float32(1.25) * read if name == "scale" else read
    return y


def random_commands(rng: np.random.Generator, count: int, names: tuple[str, ...]) -> list[Command]:
    """Commands on parts of one array, which overlap those of others, but not their own."""
    found: list[Command] = []
    while len(found) < count:
        source, target = map(int, rng.integers(0, SLOTS, 2))
        if abs(source - target) > 1:
            found.append((str(rng.choice(names)), source, target))
    return found


def native() -> Any:
    return ml.device("cuda").driver.native  # type: ignore[attr-defined]


@pytest.fixture
def eager(fake: Any) -> Any:  # noqa: F811
    """The library; all kernels are worth a stream of their own, and four commands a graph."""
    native().side_bytes, native().graph_commands = 0, 4
    return fake


def counts(fake: Any) -> tuple[int, int, int, int]:  # noqa: F811
    """Graphs that were made, nodes that were changed, graphs that were launched, those that live."""
    found = (ctypes.c_int * 4)()
    fake.fake_graphs(found)
    return tuple(found)  # type: ignore[return-value]


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("order", range(LATE, 9))
def test_random_commands_have_the_results_of_their_order(eager: Any, order: int, graphs: bool) -> None:
    eager.fake_late(order)
    rng = np.random.default_rng(order)
    before = counts(eager)
    for number in range(12):
        commands = random_commands(rng, 30, ("scale", "copy") if number % 3 else ("scale", "scale", "copy", "host"))
        program = made(commands)
        held = []
        with config.override(graphs=graphs):
            for call in range(6):
                x = rng.standard_normal(COUNT).astype(np.float32)
                (y,) = program([ml.put(x, "cuda")])
                if call % 2:
                    held.append(y)  # so that later results have other addresses
                np.testing.assert_array_equal(y.numpy(), expected(commands, x))
    launched = counts(eager)[2] - before[2]
    assert launched >= 8 * 4 if graphs else launched == 0


@pytest.mark.parametrize("graphs", [False, True])
def test_wrong_accesses_are_found_out(eager: Any, graphs: bool) -> None:
    commands = [("scale", 0, 4), ("scale", 4, 8), ("scale", 8, 12), ("scale", 12, 16)]
    program = made(commands, (SCALE_ACCESSES[0], SCALE_ACCESSES[0], 0))  # as if the kernel wrote nothing
    x = np.arange(COUNT, dtype=np.float32)
    results = []
    with config.override(graphs=graphs):
        for order in range(LATE, 9):
            eager.fake_late(order)
            results += [program([ml.put(x, "cuda")])[0].numpy() for _ in range(4)]
    assert not all(np.array_equal(y, expected(commands, x)) for y in results)


def streams_used(fake: Any, program: DeviceProgram, x: np.ndarray) -> int:  # noqa: F811
    """How often a stream was made to wait for another one in a call whose argument is on the device."""
    there, unused = ml.put(x, "cuda"), (ctypes.c_uint64 * 2)()
    there.block()
    program([there])
    before = fake.fake_orders(unused)
    program([there])
    return int(fake.fake_orders(unused)) - before


INDEPENDENT = [("scale", 0, 8), ("scale", 2, 10), ("scale", 4, 12)]


def test_independent_kernels_have_streams_of_their_own(eager: Any) -> None:
    x = np.arange(COUNT, dtype=np.float32)
    chain = [("scale", 0, 8), ("scale", 8, 12), ("scale", 12, 16)]
    with config.override(graphs=False):
        program = made(INDEPENDENT)
        streams_used(eager, program, x)  # a program is learnt in two calls
        # The copy at the start is waited for by three, two of them elsewhere; two streams are waited for at the end.
        assert streams_used(eager, program, x) == 6
        assert streams_used(eager, made(chain), x) == 0
    with config.override(graphs=False, streams=1):
        assert streams_used(eager, program, x) == 0
    native().side_bytes = 1 << 20
    with config.override(graphs=False):
        program = made(INDEPENDENT)
        streams_used(eager, program, x)
        assert streams_used(eager, program, x) == 0  # too small to be worth it


def test_a_graph_is_made_at_the_third_call_and_kept(eager: Any) -> None:
    commands = [("scale", 0, 4), ("scale", 4, 8), ("copy", 8, 12)]
    program = made(commands)
    x = ml.put(np.ones(COUNT, np.float32), "cuda")
    before = counts(eager)
    made_at = []
    for _ in range(6):
        program([x])  # the result has the same address each time
        made_at.append(counts(eager)[0] - before[0])
    assert made_at == [0, 0, 1, 1, 1, 1]
    assert counts(eager)[1:3] == (before[1], before[2] + 4)
    assert native().graphs == 4 and native().launches == 6 * 2
    del program
    assert counts(eager)[3] == before[3]


def test_other_addresses_change_the_nodes_of_a_graph(eager: Any) -> None:
    commands = [("scale", 0, 4), ("scale", 4, 8), ("copy", 8, 12)]
    program = made(commands)
    before = counts(eager)
    held = []
    eager.fake_late(LATE)  # so that graphs are changed while they are still to run
    for call in range(8):
        x = np.full(COUNT, call + 1, np.float32)
        held.append((program([ml.put(x, "cuda")])[0], x))
    for y, x in held:
        np.testing.assert_array_equal(y.numpy(), expected(commands, x))
    graphs, changed, launched = (now - then for now, then in zip(counts(eager)[:3], before[:3]))
    assert (graphs, changed, launched) == (2, 4 * 4, 6)


def test_graphs_that_are_changed_at_every_call_are_given_up(eager: Any) -> None:
    commands = [("scale", n, n + 4) for n in range(SLOTS - 4)]
    program = made(commands)
    before = counts(eager)
    held = []
    for call in range(220):
        x = np.full(COUNT, call + 1, np.float32)
        held.append((program([ml.put(x, "cuda")])[0], x))
    launched = counts(eager)[2] - before[2]
    assert 2048 // 21 <= launched <= 2048 // 21 + 2
    assert counts(eager)[3] == before[3]  # none is left
    for y, x in held:
        np.testing.assert_array_equal(y.numpy(), expected(commands, x))
    kept = made(commands)
    x = ml.put(np.ones(COUNT, np.float32), "cuda")
    for _ in range(220):
        kept([x])
    assert counts(eager)[2] - before[2] - launched == 218


def test_few_commands_are_no_graph(eager: Any) -> None:
    before = counts(eager)
    program = made([("scale", 0, 4), ("scale", 4, 8)])
    for _ in range(5):
        program([ml.put(np.ones(COUNT, np.float32), "cuda")])
    assert counts(eager) == before


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, INVALID_VALUE, 900])
def test_a_driver_that_makes_no_graph_is_done_without(eager: Any, code: int) -> None:
    program = made(INDEPENDENT)
    x = np.arange(COUNT, dtype=np.float32)
    eager.fake_fail_graphs(code)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            results = [program([ml.put(x, "cuda")])[0] for _ in range(5)]
    finally:
        eager.fake_fail_graphs(0)
    for y in results:
        np.testing.assert_array_equal(y.numpy(), expected(INDEPENDENT, x))
    (warning,) = seen
    assert warning.category is RuntimeWarning
    assert str(warning.message) == (
        "the device First GPU refuses to make a graph of 4 launches and copies, which are made one by one: CUDA_ERROR, "
        "as the test wanted; `mlirml.config.graphs = False` makes no graphs"
    )


def test_a_kernel_that_fails_in_a_graph_loses_the_device(eager: Any) -> None:
    program = made(INDEPENDENT)
    x = ml.put(np.ones(COUNT, np.float32), "cuda")
    for _ in range(3):
        program([x])
    eager.fake_fail_later(ILLEGAL_ADDRESS)
    with pytest.raises(ml.LaunchError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        program([x])[0].numpy()


def test_sync_names_the_kernel(eager: Any) -> None:
    program = made(INDEPENDENT)
    x = ml.put(np.ones(COUNT, np.float32), "cuda")
    for _ in range(3):
        program([x])
    eager.fake_fail_later(ILLEGAL_ADDRESS)
    with config.override(sync=True), pytest.raises(ml.LaunchError, match="running scale"):
        program([x])
