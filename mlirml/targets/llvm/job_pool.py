"""A pool of threads for jobs that may return further jobs."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable

from mlirml.core.config import config
from mlirml.core.processes import native_code, started

Job = Callable[[], "Iterable[Job]"]


def thread_count() -> int:
    """The number of threads that may work concurrently: as many as compiled programs may use."""
    return min(config.threads or 1 << 10, len(os.sched_getaffinity(0)))


class JobPool:
    """Threads that run jobs while further jobs are still being created."""

    def __init__(self) -> None:
        self._failure: BaseException | None = None
        self._waiting: deque[Job] = deque()
        self._running = 0
        self._complete = self._abandoned = False
        self._changed = threading.Condition()
        self._others: list[threading.Thread] = []

    def add(self, jobs: Iterable[Job], others: int) -> None:
        """Add jobs; at least `others` threads start with them at once."""
        with self._changed:
            self._waiting.extend(jobs)
            self._changed.notify_all()
        while len(self._others) < others:
            thread = threading.Thread(target=self._work, daemon=True)
            if not started(thread):
                break
            self._others.append(thread)

    def finish(self) -> None:
        """Help until all jobs are done. Raises the exception of a failed job; waiting jobs are then dropped."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()
        self._work()
        for thread in self._others:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def abandon(self) -> None:
        """Start no more jobs, and do not wait for the running ones."""
        with self._changed:
            self._complete = self._abandoned = True
            self._waiting.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        """Run jobs until none is waiting, and none is running that could return more."""
        while True:
            with self._changed:
                while not self._waiting and (self._running or not self._complete):
                    self._changed.wait()
                if not self._waiting:
                    return
                job = self._waiting.popleft()
                self._running += 1
            more: Iterable[Job] = ()
            try:
                with native_code(is_help=True):
                    more = job()
            except BaseException as failure:
                self._failure = self._failure or failure
            with self._changed:
                self._running -= 1
                self._waiting.extend(more)
                if self._failure is not None or self._abandoned:
                    self._waiting.clear()
                self._changed.notify_all()
