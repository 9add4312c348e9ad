"""Jobs shared out among threads: that all are done, by several threads, and that a failure is raised."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from mlirml.core.config import config
from mlirml.targets.llvm.job_pool import Job, JobPool, thread_count


def run_jobs(jobs: Iterable[Job], threads: int) -> None:
    pool = JobPool()
    pool.add(jobs, threads - 1)
    pool.finish()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_jobs_and_what_they_leave_behind_are_done_once(threads: int) -> None:
    done: list[int] = []

    def job(number: int) -> list[Job]:
        done.append(number)
        return [lambda n=n: job(n) for n in (2 * number, 2 * number + 1) if n < 64]  # type: ignore[misc]

    run_jobs([lambda: job(1)], threads)
    assert sorted(done) == list(range(1, 64))


def test_jobs_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    def meet() -> list[Job]:
        meeting.wait(timeout=30)
        return []

    run_jobs([meet] * 3, 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failure_is_raised_and_ends_the_work(threads: int) -> None:
    done: list[str] = []

    def fail() -> list[Job]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_jobs([fail, *[lambda: done.append("after") or []] * 50], threads)  # type: ignore[func-returns-value]
    assert len(done) < 50


@pytest.mark.parametrize("others", [0, 2])
def test_jobs_come_one_after_the_other(others: int) -> None:
    done: list[int] = []
    first = threading.Event()

    def job(number: int) -> list[Job]:
        done.append(number)
        first.set()
        return []

    crew = JobPool()
    crew.add([lambda: job(0)], others)
    assert first.wait(timeout=30 if others else 0) is bool(others)  # without other threads, when all are there
    crew.add([lambda: job(1), lambda: job(2)], others)
    crew.finish()
    assert sorted(done) == [0, 1, 2]


def test_abandoned_jobs_are_not_begun() -> None:
    done: list[str] = []
    begun, abandoned = threading.Event(), threading.Event()

    def job() -> list[Job]:
        begun.set()
        abandoned.wait(timeout=30)
        return [lambda: done.append("left behind") or []]  # type: ignore[func-returns-value]

    crew = JobPool()
    crew.add([job, lambda: done.append("waiting") or []], 1)  # type: ignore[func-returns-value]
    assert begun.wait(timeout=30)
    crew.abandon()
    abandoned.set()
    crew.finish()
    assert not done


def test_no_more_threads_than_programs_may_use() -> None:
    with config.override(threads=1):
        assert thread_count() == 1
    with config.override(threads=None):
        assert thread_count() >= 1
