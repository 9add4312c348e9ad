"""Kernels that are executed in NumPy: what a GPU does wrong now and then is always a fault here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.emulation.instructions import RULES, rounded
from tests.targets.emulation.memory import Fault, GlobalMemory
from tests.targets.emulation.ptx import parse
from tests.targets.emulation.threads import Program, launch
from tests.targets.emulation.traffic import Traffic

_HEAD = """
.visible .entry k(.param .u64 .ptr .align 1 k_0)
{
  .reg .pred %p<4>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .shared .align 16 .b8 tile[256];
  ld.param.b64 %rd1, [k_0];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.b64 %rd4, tile;
  add.s64 %rd5, %rd4, %rd2;
  xor.b32 %r2, %r1, 1;
  mul.wide.u32 %rd6, %r2, 4;
  add.s64 %rd7, %rd4, %rd6;
  setp.lt.u32 %p1, %r1, 16;
"""


def run(body: str, elements: int = 32, traffic: Traffic | None = None) -> np.ndarray:
    """The array after as many threads have executed a body; it begins with 0, 1, 2, ..."""
    data = np.arange(elements, dtype=np.uint32)
    memory = GlobalMemory([(1 << 62, data.ctypes.data, data.nbytes)])
    function = parse(_HEAD + body + "  ret;\n}\n")["k"]
    launch(Program(RULES), function, ((1, 1, 1), (elements, 1, 1)), [1 << 62], memory, traffic=traffic)
    return data


EXCHANGE = """
  ld.global.b32 %r3, [%rd3];
  st.shared.b32 [%rd5], %r3;
  {barrier}
  ld.shared.b32 %r4, [%rd7];
  st.global.b32 [%rd3], %r4;
"""


def test_threads_exchange_elements() -> None:
    np.testing.assert_array_equal(run(EXCHANGE.format(barrier="bar.sync 0;")), np.arange(32) ^ 1)


def test_branches_part_and_join_threads() -> None:
    body = """
  ld.global.b32 %r3, [%rd3];
  @%p1 bra $LOW;
  add.s32 %r3, %r3, 100;
  bra.uni $END;
$LOW:
  mul.lo.s32 %r3, %r3, 2;
$END:
  st.global.b32 [%rd3], %r3;
"""
    x = np.arange(32)
    np.testing.assert_array_equal(run(body), np.where(x < 16, 2 * x, x + 100))


FAULTS = {
    "a missing barrier": (EXCHANGE.format(barrier=""), "without a barrier after the store"),
    "no store": ("  ld.shared.b32 %r4, [%rd7];\n", "before it was written"),
    "one place for all": ("  st.shared.b32 [tile], %r1;\n", "two threads write to one place"),
    "a store after a load": (
        "  st.shared.b32 [%rd5], %r1;\n  bar.sync 0;\n  ld.shared.b32 %r4, [%rd7];\n  st.shared.b32 [%rd5], %r4;\n",
        "without a barrier after the load",
    ),
    "a copy that is not waited for": (
        "  mul.wide.u32 %rd2, %r1, 4;\n  cp.async.ca.shared.global [%rd5], [%rd3], 4;\n  cp.async.commit_group;\n"
        "  ld.shared.b32 %r4, [%rd5];\n",
        "before its copy was waited for",
    ),
    "outside of the array": ("  st.global.b32 [%rd3+4], %r1;\n", "outside of all allocations"),
    "misaligned": ("  ld.global.b32 %r4, [%rd3+2];\n", "misaligned"),
    "outside of shared memory": ("  ld.shared.b32 %r4, [%rd5+256];\n", "outside of shared memory"),
    "an unknown instruction": ("  frobnicate.b32 %r4, %r1;\n", "there is no rule"),
    "some threads of a warp": (
        "  mov.b32 %r5, 1;\n  @%p1 shfl.sync.bfly.b32 %r4, %r1, %r5, 31, -1;\n",
        "some threads of a warp",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults(case: str) -> None:
    body, message = FAULTS[case]
    with pytest.raises(Fault, match=message):
        run(body)


def test_a_copy_that_was_waited_for_may_be_read_by_its_thread_only() -> None:
    copied = """
  cp.async.ca.shared.global [%rd5], [%rd3], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  {more}
  ld.shared.b32 %r4, [{address}];
  st.global.b32 [%rd3], %r4;
"""
    np.testing.assert_array_equal(run(copied.format(more="", address="%rd5")), np.arange(32))
    np.testing.assert_array_equal(run(copied.format(more="bar.sync 0;", address="%rd7")), np.arange(32) ^ 1)
    with pytest.raises(Fault, match="without a barrier"):
        run(copied.format(more="", address="%rd7"))


def test_threads_wait_for_their_warp_at_a_shuffle() -> None:
    """Some threads take a branch that is further on in the text, and come back; those of another warp never do."""
    body = """
  mov.b32 %r5, 1;
  @%p1 bra $FAR;
$BACK:
  shfl.sync.bfly.b32 %r4, %r1, %r5, 31, -1;
  st.global.b32 [%rd3], %r4;
  ret;
$FAR:
  add.s32 %r1, %r1, 100;
  bra.uni $BACK;
"""
    x = np.arange(64)
    np.testing.assert_array_equal(run(body, 64), np.where(x < 16, x + 100, x)[x ^ 1])


def test_traffic_is_counted() -> None:
    """Adjacent words are whole sectors, and in 32 banks; words at twice the distance half of each, and in 16."""
    traffic = Traffic()
    run(EXCHANGE.format(barrier="bar.sync 0;"), traffic=traffic)
    assert (traffic.sectors, traffic.needed, traffic.widths) == (8, 8, {4: 256})
    assert (traffic.passes, traffic.phases) == (2, 2)
    warp, lane = np.zeros(32, int), np.arange(32)
    traffic = Traffic()
    traffic.note_global(warp, 8 * lane, 4)
    assert traffic.coalesced == 0.5
    for address, size, passes in ((8 * lane, 4, 2), (0 * lane, 4, 1), (128 * lane, 4, 32), (16 * lane, 16, 1),
                                  (64 * lane, 16, 4), (8 * lane, 8, 1)):  # fmt: skip
        traffic = Traffic()
        traffic.note_shared(warp, lane, address, size)
        assert traffic.conflicts == passes


def test_threads_that_have_ended_are_not_waited_for() -> None:
    body = "  @%p1 ret;\n  bar.sync 0;\n  mov.b32 %r4, 7;\n  st.global.b32 [%rd3], %r4;\n"
    np.testing.assert_array_equal(run(body), np.where(np.arange(32) < 16, np.arange(32), 7))


@pytest.mark.parametrize(("direction", "function"), [("rm", np.floor), ("rp", np.ceil), ("rz", np.trunc)])
def test_directed_roundings(direction: str, function: np.ufunc) -> None:
    exact = np.random.default_rng(0).standard_normal(1000) * 2.0**24
    scaled = function(exact)  # f32 has whole numbers between 2^23 and 2^24
    chosen = (np.abs(exact) > 2**23) & (np.abs(exact) < 2**24)
    np.testing.assert_array_equal(rounded(exact, direction)[chosen], scaled[chosen].astype(np.float32))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("abs.bf16 %h2, %h1", 0x3FC0), ("neg.bf16 %h2, %h1", 0x3FC0), ("max.bf16 %h2, %h1, %h0", 0x4000),
        ("min.NaN.bf16 %h2, %h1, %h0", 0xBFC0), ("fma.rn.bf16 %h2, %h1, %h0, %h1", 0xC090),
    ],
)  # fmt: skip
def test_operations_on_bf16(operation: str, expected: int) -> None:
    body = f"""
  .reg .b16 %h<4>;
  mov.b16 %h0, 16384;
  mov.b16 %h1, 49088;
  {operation};
  cvt.u32.u16 %r3, %h2;
  st.global.b32 [%rd3], %r3;
"""
    assert set(run(body).tolist()) == {expected}  # of 2 and -1.5
