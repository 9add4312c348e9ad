"""A record of programs: nothing differs on the same tree, and what does is named with its stage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.replay import record
from tests.replay.corpus import Entry
from tests.replay.record import compare, read, write


def squares(x: np.ndarray) -> np.ndarray:
    return x * x


def cubes(x: np.ndarray) -> np.ndarray:
    return x * x * x


def running_sum(x: np.ndarray) -> None:
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]


ENTRIES = [
    Entry("arrays/squares", squares, (np.ones(40),)),
    Entry("loops/sum", running_sum, (np.ones(9, np.float32),), frontend="loops"),
    Entry("vulkan/squares", squares, (np.ones(8, np.float32),), "vulkan"),
]


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, record.Parts]:
    assert write(tmp_path / "record.zip", ENTRIES) == len(ENTRIES)
    return read(tmp_path / "record.zip")


def test_a_record_holds_every_stage(kept: dict[str, record.Parts]) -> None:
    assert list(kept) == [entry.name for entry in ENTRIES]
    stages = ["capture", "raise", "transform", "optimize", "offload", "schedule", "lower", "code"]
    for parts in kept.values():
        assert [part for part in stages if part in parts] == list(parts)
        assert {"capture", "raise", "schedule", "lower", "code"} <= set(parts)


def test_nothing_differs_on_the_same_tree(kept: dict[str, record.Parts]) -> None:
    assert not list(compare(kept, ENTRIES))


def test_another_function_differs_when_it_is_captured(kept: dict[str, record.Parts]) -> None:
    (found,) = compare(kept, [Entry("arrays/squares", cubes, (np.ones(40),)), *ENTRIES[1:]])
    assert (found.program, found.part) == ("arrays/squares", "capture")
    assert any(line.startswith("+") and "mul" in line for line in found.lines)


def test_other_passes_differ_at_their_stage(
    kept: dict[str, record.Parts], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(record, "PROCESSOR", "avx512,l2=1M")
    found = {difference.program: difference.part for difference in compare(kept, ENTRIES)}
    assert found["arrays/squares"] not in ("capture", "raise")


def test_programs_that_come_and_go_are_named(kept: dict[str, record.Parts]) -> None:
    found = [str(difference) for difference in compare(kept, [*ENTRIES[:2], Entry("new", squares, (np.ones(2),))])]
    assert found == ["new: the record does not have it", "vulkan/squares: it is in the record alone"]
