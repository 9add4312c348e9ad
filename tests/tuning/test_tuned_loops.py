"""The tuner beyond contractions: convolutions, operations on rows, and chains of elementwise operations and sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.codegen.cpu.loop_schedule import ALWAYS, DEFAULT, FIELDS, NEVER, LoopSchedule, from_words, space, to_words
from mlirml.nn import functional as F
from mlirml.tuning import program
from mlirml.tuning.search import Cluster, Listed
from mlirml.tuning.store import Row, opened


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path) -> Iterator[None]:
    settings = {"cache": True, "cache_dir": str(tmp_path / "cache"), "threads": 1, "tune_seconds": 1.0}
    with ml.config.override(processor="avx2,l2=1M", **settings):
        yield


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    c = x - np.mean(x, axis=-1, keepdims=True)
    return c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 1e-5)


def chain(x: Any) -> Any:
    return np.tanh(x * 2 + 1) * np.sqrt(np.abs(x)) - x


def sum_columns(x: Any) -> Any:
    return np.sum(x * x, axis=0)


def convolved(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(F.conv2d(x, w, b, padding=1), 0)


def few_filters(x: Any, w: Any) -> Any:
    return F.conv2d(x, w)


def pooled(x: Any) -> Any:
    return F.max_pool2d(x, 3)


ROWS, SMALL_ROWS = random(300, 400), random(128, 257)
IMAGE = random(1, 6, 20, 22), random(20, 6, 3, 3), random(20)
CASES: list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = [
    (softmax, (ROWS,)),
    (layer_norm, (SMALL_ROWS,)),
    (chain, (SMALL_ROWS,)),
    (sum_columns, (ROWS,)),
    (convolved, IMAGE),
    (few_filters, (random(2, 3, 30, 33), random(2, 3, 3, 3))),
    (pooled, (random(2, 8, 30, 30),)),
]


def clusters(fn: Any, *args: Any) -> list[Cluster]:
    compiled = ml.compile(fn)
    return program.clusters_of(compiled.target, compiled.trace(*args))


def keep(cluster: Cluster, words: str) -> None:
    """Write a schedule of a cluster, as if it had been found."""
    target = ml.compile(softmax).target
    with opened() as file:
        names = program.machine_name(target), program.kernels_version()
        file.save(Row(cluster.key, *names, cluster.operation, cluster.shape, cluster.dtype, words, 1e-6, 2e-6, 3))


@pytest.mark.parametrize(("fn", "args"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_schedules_compute_the_same_numbers(fn: Callable[..., Any], args: tuple[np.ndarray, ...]) -> None:
    (cluster,) = clusters(fn, *args)
    expected = ml.compile(fn)(*args)
    plain = ml.compile(fn).ir("schedule", *args)
    chosen = np.random.default_rng(1).choice(len(cluster.schedules), min(8, len(cluster.schedules)), replace=False)
    differ = 0
    for index in chosen:
        words = cluster.schedules[index]
        keep(cluster, words)
        stored = ml.compile(fn, tune="stored")
        np.testing.assert_allclose(stored(*args), expected, rtol=2e-5, atol=2e-4, err_msg=words)
        differ += stored.ir("schedule", *args) != plain
    assert differ >= len(chosen) - 2  # a few ask for what is done anyway


@pytest.mark.parametrize(("fn", "args"), [CASES[0], CASES[4]], ids=["softmax", "convolution"])
def test_a_search_finds_a_schedule_and_keeps_it(fn: Callable[..., Any], args: tuple[np.ndarray, ...]) -> None:
    with ml.config.override(processor="host"):
        tuned = ml.compile(fn, tune=True)
        np.testing.assert_allclose(tuned(*args), ml.compile(fn)(*args), rtol=2e-5, atol=2e-4)
        with opened() as file:
            (row,) = file.rows()
        assert row.tried >= 8 and 0 < row.seconds <= row.default_seconds
        assert row.operation in ("loops", "conv_2d_nchw_fchw") and row.dtype == "f32"


def test_rows_have_a_pass_each_or_share_their_loop() -> None:
    (cluster,) = clusters(softmax, ROWS)
    loops = []
    for schedule in (DEFAULT, LoopSchedule(join=0), LoopSchedule(rows=4)):
        keep(cluster, to_words(schedule))
        text = ml.compile(softmax, tune="stored").ir("schedule", ROWS)
        loops.append(text.count("scf.for"))
    assert loops[0] < loops[1] and loops[0] < loops[2]


def test_vectors_and_streams_are_those_of_the_schedule() -> None:
    x = random(1 << 19)
    (cluster,) = clusters(chain, x)
    keep(cluster, to_words(LoopSchedule(width=8, interleave=4)))
    text = ml.compile(chain, tune="stored").ir("schedule", x)
    assert "vectorize<width = 8 : i32>" in text and "interleave<count = 4 : i32>" in text
    llvm = ml.compile(chain, tune="stored").lower(x).emit("llvm")
    assert '"llvm.loop.vectorize.width", i32 8' in llvm and '"llvm.loop.interleave.count", i32 4' in llvm
    assert "nontemporal" not in text

    def scaled(x: Any) -> Any:
        return x * 2

    (cluster,) = clusters(scaled, x)
    found = []
    for stream in (NEVER, ALWAYS):
        keep(cluster, to_words(LoopSchedule(stream=stream)))
        stored = ml.compile(scaled, tune="stored")
        np.testing.assert_array_equal(stored(x), x * 2)
        found.append("nontemporal" in stored.ir("schedule", x))
    assert found == [False, True]


def test_what_a_kernel_of_products_includes_is_no_chain() -> None:
    x, w, b = random(300, 64), random(64, 200), random(200)
    found = clusters(lambda x, w, b: np.maximum(x @ w + b, 0), x, w, b)
    assert [cluster.problem is not None for cluster in found] == [True]
    found = clusters(lambda x, w, b: softmax(np.maximum(x @ w + b, 0)), x, w, b)
    assert [cluster.problem is not None for cluster in found] == [True, False]


def test_short_loops_are_not_tuned() -> None:
    assert clusters(chain, random(100)) == []


def test_schedules_come_in_the_order_of_their_estimated_time() -> None:
    def order(fn: Callable[..., Any], *args: np.ndarray) -> list[LoopSchedule]:
        (cluster,) = clusters(fn, *args)
        found = [schedule for text in cluster.schedules if (schedule := from_words(text)) is not None]
        assert len(found) == len(cluster.schedules) == len({*cluster.schedules})
        return found

    # Vectors of half a register take twice as long, and one of several registers no time less.
    found = order(softmax, ROWS)
    assert {each.width for each in found[: len(found) // 2]} == {0, 8, 16}
    assert {each.width for each in found[-len(found) // 5 :]} <= {4, 16}
    # The sum is loaded and stored for all rows that are added together.
    first = {together: number for number, each in reversed([*enumerate(order(sum_columns, random(2000, 256)))])
             for together in [each.together]}  # fmt: skip
    assert first[8] < first[4] < first[2] < first[1]
    # A result that no cache has is better stored past them; one that a cache has is not.
    large, small = order(lambda x: x * 2, random(1 << 23)), order(lambda x: x * 2, random(1 << 19))
    assert large[-1].stream == NEVER and small[-1].stream == ALWAYS
    # Rows that do not fit a cache together are read once where operations share the loop over them.
    apart = [number for number, each in enumerate(order(softmax, random(4096, 2048))) if not each.join]
    assert min(apart) > 8


def test_a_schedule_as_words_is_read_back() -> None:
    schedule = LoopSchedule(join=1, rows=4, width=16, interleave=2, together=8, stream=ALWAYS)
    assert from_words(to_words(schedule)) == schedule
    for text in ("", "loops=1", to_words(schedule) + "/more=1", to_words(schedule).replace("rows=4", "rows=3")):
        assert from_words(text) is None


def test_a_space_has_the_fields_that_matter_only() -> None:
    every = [from_words(text) for text in space(joins=True, columns=True, streams=True, lanes=32)]
    assert len(set(every)) == len(every) > 1000 and DEFAULT not in every
    few = [from_words(text) for text in space(joins=False, columns=False, streams=False, lanes=8)]
    assert {each.width for each in few if each} == {0, 4, 8} and {each.stream for each in few if each} == {0}
    assert len(few) == 3 * len(FIELDS["interleave"]) - 1


def test_neighbours_of_the_best_come_before_the_rest_of_a_list() -> None:
    texts = space(joins=True, columns=True, streams=True, lanes=32)
    listed = Listed(texts, known=[texts[500]])
    assert listed.next() == texts[500]
    best = LoopSchedule(rows=8, width=16, interleave=4, together=8, stream=ALWAYS)
    listed.improved(to_words(best))
    found = [from_words(listed.next() or "") for _ in range(9)]
    near = [each for each in found if each and sum(getattr(each, f) != getattr(best, f) for f in FIELDS) == 1]
    assert len(near) >= 5
    while listed.next() is not None:
        pass
    assert len(listed._seen) == len(texts)
