"""Forks and exits of the process while threads compile.

A fork copies one thread. What the others hold stays locked in the child for ever: the compiler's lock, locks inside of
MLIR and LLVM, and those of modules that are being imported. So a fork waits until nobody compiles. At the exit of the
interpreter Python ends threads where they next ask for it, also in the middle of C++ code, which ends in an abort: so
the exit waits for the compiler too, and no thread begins to compile any more.
"""

from __future__ import annotations

import _imp
import atexit
import gc
import importlib._bootstrap
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from mlirml.errors import TargetError

PATIENCE = 30.0
"""Seconds that a fork or an exit waits for threads that compile."""


class CompilerLock:
    """The re-entrant lock for MLIR and LLVM: contexts and option tables are not made for several threads at once.

    Entering it raises `TargetError` in a process that was forked while another thread held it for too long.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_lost = False

    def __enter__(self) -> None:
        if self._is_lost:
            raise TargetError(
                "this process was forked while another thread compiled, so that the compiler cannot be used in it",
                help="compile before the fork, or start processes by multiprocessing's `spawn` or `forkserver`",
            )
        self._lock.acquire()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()

    def acquire(self, timeout: float) -> bool:
        """Take the lock; False where another thread holds it for longer."""
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        """Let go of it."""
        self._lock.release()

    def lose(self) -> None:
        """Mark the lock as owned by a thread that the forked child does not have."""
        self._lock = threading.RLock()
        self._is_lost = True


COMPILER = CompilerLock()
_paused_collections: set[int] = set()  # the threads that have paused them


class _State:
    """State shared by all threads: which of them run native code, and whether the process is forking or exiting."""

    def __init__(self) -> None:
        self.calls = 0
        self.guard = threading.Lock()  # of `calls`; a fork holds it
        self.is_exiting = False


_state = _State()
_fork = threading.local()


@contextmanager
def native_code(*, is_help: bool = False) -> Iterator[None]:
    """A section of a compilation in which a thread must not be ended; with `is_help`, of one that is running."""
    state = _state
    if state.is_exiting and not is_help and threading.current_thread() is not threading.main_thread():
        threading.Event().wait()  # the process ends before that
    with state.guard:
        state.calls += 1
    try:
        yield
    finally:
        with state.guard:
            state.calls -= 1


def started(thread: threading.Thread) -> bool:
    """Start a thread; False where none starts any more: from CPython 3.12 on that is so at the exit of the process."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


_FROZEN_AT_START = 2000
"""More objects than CPython 3.12 begins with in the permanent generation, and less than a user's `gc.freeze` adds."""
_COLLECTION_SHARE = 30
"""A full garbage collection is run when compilations have taken this many times as long as the last one took."""
_collection = 0.1  # seconds that the last one took, or the first one may take
_since_collection = 0.0


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collections: a compilation makes many objects and hardly a cycle, and they take 5 % of its time.

    What it has made, the modules of the compiler first of all, lives on. It joins the oldest generation unseen, or the
    next collection would go through all of it. Python does not count what joins it so, and would not collect there what
    is dropped: that is done here, in a small part of the time that compilations take.
    """
    global _since_collection, _collection
    was_on, start = gc.isenabled(), time.perf_counter()
    gc.disable()
    if was_on:
        _paused_collections.add(threading.get_ident())
    try:
        yield
    finally:
        if was_on:
            _paused_collections.discard(threading.get_ident())
            if gc.get_freeze_count() < _FROZEN_AT_START:  # else `unfreeze` would undo what somebody has frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
            end = time.perf_counter()
            _since_collection += end - start
            if _since_collection > _COLLECTION_SHARE * _collection:
                gc.collect()
                _since_collection, _collection = 0.0, time.perf_counter() - end


def sends_functions() -> bool:
    """True if the caller is asked for its parts by a pickler like cloudpickle's, which sends functions by value."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "dump":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and hasattr(frame.f_locals.get("self"), "reducer_override")


def _is_quiet() -> bool:
    """True if no thread runs native code of the compiler, and no other thread is importing a module."""
    own = (None, threading.get_ident())
    locks = [lock() for lock in list(getattr(importlib._bootstrap, "_module_locks", {}).values())]
    return not _state.calls and all(getattr(lock, "owner", None) in own for lock in locks)


def _wait_until_quiet(deadline: float) -> bool:
    """Wait, and take the guard and the lock of imports: no thread enters native code or begins an import until they
    are released. False where that takes too long."""
    while time.monotonic() < deadline:
        _state.guard.acquire()
        _imp.acquire_lock()
        if _is_quiet():
            return True
        _imp.release_lock()
        _state.guard.release()
        time.sleep(0.001)
    return False


def _before_fork() -> None:
    _fork.is_quiet = False
    deadline = time.monotonic() + PATIENCE
    if COMPILER.acquire(PATIENCE):
        _fork.is_quiet = _wait_until_quiet(deadline)
        if not _fork.is_quiet:
            COMPILER.release()


def _after_fork_in_parent() -> None:
    if _fork.is_quiet:
        _imp.release_lock()
        _state.guard.release()
        COMPILER.release()


def _after_fork_in_child() -> None:
    global _state
    _state = _State()
    if _fork.is_quiet:
        _imp.release_lock()
        COMPILER.release()
    else:
        COMPILER.lose()
    if _paused_collections - {threading.get_ident()}:
        gc.enable()
    _paused_collections.intersection_update({threading.get_ident()})


def _before_exit() -> None:
    _state.is_exiting = True
    if _wait_until_quiet(time.monotonic() + PATIENCE):
        _imp.release_lock()
        _state.guard.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(_before_exit)
