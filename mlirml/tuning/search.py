"""The search for the fastest schedule of one cluster: the model orders all candidates, processes measure the best.

Candidates come in turns from two lists: all of the space by estimated time, those of one register tile apart from each
other, and the neighbours of the best one so far, which differ from it in one column. The fastest few are measured once
more, in turns with the default schedule, and one of them replaces it if it is clearly faster.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mlirml.codegen.cpu.contract.attribute import from_words, to_words
from mlirml.codegen.cpu.contract.library import match_library
from mlirml.codegen.cpu.contract.model import cycles
from mlirml.codegen.cpu.contract.plan import Schedule
from mlirml.codegen.cpu.contract.problem import Problem
from mlirml.codegen.cpu.contract.space import COLUMNS, Space, space
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.passes import NoMatch
from mlirml.runtime import HAS_BLAS
from mlirml.targets.machine import Processor
from mlirml.tuning.processes import Failed, Worker, Workers
from mlirml.tuning.progress import Progress

MOST_CONSIDERED = 20_000
"""The candidates of which those to measure are chosen; the model rates the others slower than all of these."""
FINALISTS = 4
FEWEST = 8
"""The candidates that are measured however short the time is."""
GAIN = 1.02
"""The speed over that of the default schedule from which another one replaces it."""
_SAMPLING, _FINAL = 0.03, 0.4
"""Seconds of measuring a candidate, and each finalist."""
_COMPILING = 20.0
_SLOWER = 1.25
"""A candidate slower than the best by this factor is not measured to the end."""
_TURN = 0.04
"""The part of its time by which a candidate is held back for each faster one with its register tile."""


@dataclass(frozen=True)
class Cluster:
    """Operations that are tuned together: the key and the text of its program, and its form for tables.

    A contraction with its neighbours has a `problem`; a convolution or a chain of loops has the texts of all of its
    `schedules`, those that are to be measured first at first, and its `work`.
    """

    key: str
    text: str
    problem: Problem | None
    operation: str
    shape: str
    dtype: str
    schedules: tuple[str, ...] = ()
    work: float = 1.0


@dataclass(frozen=True)
class Result:
    """The medians of the default and of the best schedule in seconds; `text` is empty if the default is the best."""

    text: str
    seconds: float
    default_seconds: float
    tried: int
    considered: int


class Listed:
    """The order in which the schedules of a list are measured. Safe to use from several threads.

    The neighbours of the best one so far, which differ from it in one word, come in turns with the list.
    """

    def __init__(self, schedules: Sequence[str], known: Sequence[str] = ()) -> None:
        self.space = list(dict.fromkeys(schedules))
        self._waiting = iter(self.space)
        self._neighbours = [text for text in known if text in self.space]
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._turn = 0

    def next(self) -> str | None:
        """The text of the next schedule; None when all were measured."""
        with self._lock:
            while True:
                self._turn += 1
                found = self._neighbours.pop() if self._neighbours and self._turn % 3 else next(self._waiting, None)
                if found is None and not self._neighbours:
                    return None
                if found is not None and found not in self._seen:
                    self._seen.add(found)
                    return found

    def improved(self, text: str) -> None:
        """Look at the neighbours of a schedule that is the best so far."""
        words = text.split("/")
        near = [other for other in self.space if sum(a != b for a, b in zip(words, other.split("/"))) == 1]
        with self._lock:
            self._neighbours = [other for other in reversed(near) if other not in self._seen]


def candidates_of(cluster: Cluster, machine: Processor, threads: int, known: Sequence[str]) -> Candidates | Listed:
    """The schedules of a cluster in the order in which they are measured; `known` are texts to begin with."""
    if cluster.problem is None:
        return Listed(cluster.schedules, known)
    return Candidates(cluster.problem, machine, threads, [*known, *from_libraries(cluster.problem)])


class Candidates:
    """The order in which schedules of a contraction are measured. Safe to use from several threads."""

    def __init__(self, problem: Problem, machine: Processor, threads: int, known: Sequence[str] = ()) -> None:
        self.space = space(problem, machine, threads)
        self.estimates = cycles(self.space, threads)
        self._waiting = iter(self._by_estimate())
        self._neighbours: list[int] = []
        self._known = [text for text in known if from_words(text) is not None]
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._turn = 0

    def _by_estimate(self) -> list[int]:
        """The rows in the order of their estimates, those of one register tile apart from each other."""
        order = np.argsort(self.estimates, kind="stable")[:MOST_CONSIDERED]
        tiles: dict[tuple[int, ...], int] = {}
        delayed = []
        names = [COLUMNS.index(name) for name in ("kernel", "pack", "lanes", "mr", "nr")]
        for index, key in zip(order.tolist(), map(tuple, self.space.rows[order][:, names].tolist()), strict=True):
            count = tiles[key] = tiles.get(key, -1) + 1
            delayed.append(self.estimates[index] * (1 + _TURN * count))
        return [int(index) for index in order[np.argsort(delayed, kind="stable")]]

    def next(self) -> str | None:
        """The text of the next schedule; None when all were measured."""
        with self._lock:
            while self._known:
                text = self._known.pop()
                if text not in self._seen:
                    self._seen.add(text)
                    return text
            while (index := self._next_index()) is not None:
                schedule = self.space.schedule(index)
                text = to_words(schedule) if schedule is not None else ""
                if text and text not in self._seen:
                    self._seen.add(text)
                    return text
        return None

    def _next_index(self) -> int | None:
        self._turn += 1
        if self._neighbours and self._turn % 3:
            return self._neighbours.pop()
        found = next(self._waiting, None)
        return self._neighbours.pop() if found is None and self._neighbours else found

    def improved(self, text: str) -> None:
        """Look at the neighbours of a schedule that is the best so far."""
        fields = from_words(text)
        assert fields is not None
        if fields["kernel"] == "library":  # it has no neighbours
            return
        with self._lock:
            found = self.space.neighbours(self.space.nearest(Schedule(**fields)))
            order = np.argsort(-self.estimates[found], kind="stable")
            self._neighbours = [int(index) for index in found[order]]


def from_libraries(problem: Problem) -> list[str]:
    """The texts of the schedules that call a library, if there is one for a problem."""
    if not HAS_BLAS or "openblas" not in config.libraries:
        return []
    try:
        match_library(problem)
    except NoMatch:
        return []
    return [to_words(Schedule("library"))]


def search(
    cluster: Cluster, machine: Processor, workers: Workers, seconds: float, threads: int, known: Sequence[str] = ()
) -> Result:
    """The best schedule that is found in so many seconds; `known` are texts of schedules to begin with.

    Raises `Failed` if the default schedule cannot be measured, or if a problem has no candidates.
    """
    progress = Progress(f"{cluster.operation} {cluster.shape} {cluster.dtype}", seconds)
    try:
        run = _Run(cluster, machine, workers, seconds, threads, known, progress)
        return run.result()
    except NoMatch as reason:
        raise Failed(f"there are no candidates: {reason}") from None
    finally:
        progress.finish()


class _Run:
    """One search."""

    def __init__(
        self,
        cluster: Cluster,
        machine: Processor,
        workers: Workers,
        seconds: float,
        threads: int,
        known: Sequence[str],
        progress: Progress,
    ) -> None:
        self.cluster, self.workers, self.progress = cluster, workers, progress
        self.deadline = time.monotonic() + seconds
        self.candidates = candidates_of(cluster, machine, threads, known)
        self.measured: dict[str, float] = {}
        self.default = self.best = float("inf")
        self.lock = threading.Lock()

    def result(self) -> Result:
        """Measure until the time is over, then the finalists in turns with the default schedule."""
        first = self.workers.all[0]
        first.open(self.cluster.text)
        self.default = self.best = min(self._measured(first, 0, "", float("inf")))
        # What the finalists take is part of the time.
        self.deadline -= (FINALISTS + 1) * max(_FINAL, 3 * self.default)
        with ThreadPoolExecutor(len(self.workers.all)) as pool:
            for done in [pool.submit(self._work, worker) for worker in self.workers.all]:
                done.result()
        return self._final(first)

    def _work(self, worker: Worker) -> None:
        """Make and time candidates with one worker."""
        if worker is not self.workers.all[0]:
            worker.open(self.cluster.text)
            self._prepare(worker)
        while time.monotonic() < self.deadline or len(self.measured) < FEWEST:
            text = self.candidates.next()
            if text is None:
                return
            self._try(worker, text)
            self.progress.show(len(self.measured), self.default / self.best)

    def _prepare(self, worker: Worker) -> None:
        """Make the default schedule, whose numbers those of others are compared with."""
        worker.ask(_COMPILING, do="make", name=0, schedule="")

    def _try(self, worker: Worker, text: str) -> None:
        try:
            seconds = min(self._measured(worker, 1, text, _SLOWER * self.best))
        except Failed:
            self.measured[text] = float("inf")
            self._recover(worker)
            return
        with self.lock:
            self.measured[text] = seconds
            if seconds < self.best:
                self.best = seconds
                self.candidates.improved(text)

    def _recover(self, worker: Worker) -> None:
        """Bring a worker that was ended back to where it can make candidates."""
        try:
            worker.ask(_COMPILING, do="time", names=[0], seconds=0.0, limit=0.0)
        except Failed:
            self._prepare(worker)

    def _measured(self, worker: Worker, name: int, text: str, limit: float) -> list[float]:
        """Samples of a candidate, which is dropped after that if it is not the default one."""
        worker.ask(_COMPILING, do="make", name=name, schedule=text)
        with self.workers.measuring:
            known = self.default if self.default < float("inf") else 1.0
            patience = 10.0 + 100 * known
            limit = limit if limit < float("inf") else 0.0
            found = worker.ask(patience, do="time", names=[name], seconds=_SAMPLING, limit=limit)
        if name:
            worker.ask(_COMPILING, do="drop", name=name)
        return found["samples"][0]

    def _final(self, worker: Worker) -> Result:
        """Time the fastest candidates in turns with the default schedule."""
        fastest = sorted(self.measured, key=lambda text: self.measured[text])[:FINALISTS]
        made = [""]
        for text in fastest:
            if self.measured[text] > self.default:
                continue
            try:
                worker.ask(_COMPILING, do="make", name=len(made), schedule=text)
                made.append(text)
            except Failed:
                self._recover(worker)
        names = list(range(len(made)))
        patience = 30.0 + 200 * self.default
        found = worker.ask(patience, do="time", names=names, seconds=_FINAL, limit=0.0)["samples"]
        medians, least = [statistics.median(x) for x in found], [min(x) for x in found]
        chosen = min(names, key=lambda name: medians[name])
        if medians[chosen] * GAIN > medians[0] or least[chosen] > least[0]:
            chosen = 0
        tried, considered = len(self.measured), len(self.candidates.space)
        return Result(made[chosen], medians[chosen], medians[0], tried, considered)


__all__ = ["Candidates", "Cluster", "Result", "Space", "search"]
