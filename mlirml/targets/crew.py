"""Jobs that threads share out among themselves; a job may leave more jobs behind."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable

from mlirml.config import config

Job = Callable[[], "Iterable[Job]"]


def thread_count() -> int:
    """How many threads may work at the same time: as many as compiled programs may use."""
    return min(config.threads or 1 << 10, len(os.sched_getaffinity(0)))


def run_jobs(jobs: Iterable[Job], threads: int) -> None:
    """Do jobs, and those that they return, by up to `threads` threads, of which this is one.

    Raises what a job has raised, after the jobs that were begun by then; others are not begun.
    """
    crew = _Crew(jobs)
    others = [threading.Thread(target=crew.work, daemon=True) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    crew.work()
    for thread in others:
        thread.join()
    if crew.failure is not None:
        raise crew.failure


class _Crew:
    def __init__(self, jobs: Iterable[Job]) -> None:
        self.failure: BaseException | None = None
        self._waiting = deque(jobs)
        self._running = 0
        self._changed = threading.Condition()

    def work(self) -> None:
        """Take jobs until there are none left and none is running that could leave more."""
        while True:
            with self._changed:
                while not self._waiting and self._running:
                    self._changed.wait()
                if not self._waiting:
                    return
                job = self._waiting.popleft()
                self._running += 1
            more: Iterable[Job] = ()
            try:
                more = job()
            except BaseException as failure:
                self.failure = self.failure or failure
            with self._changed:
                self._running -= 1
                self._waiting.extend(more)
                if self.failure is not None:
                    self._waiting.clear()
                self._changed.notify_all()
