"""Worker processes as the tuner sees them: requests with a time limit, and a new process for one that fails."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mlirml.core.config import config

_ROOT = Path(__file__).resolve().parents[2]
_START = 60.0
"""Seconds in which a process must have started: it imports the compiler."""
_SETTINGS = ("processor", "math", "algebra", "checkpoint_bytes", "threads", "libraries", "costs")
"""The settings that a worker shares with this process; others do not change what contractions take."""


class Failed(Exception):
    """A worker refused a request, ended, or took too long; the text says which."""


class Worker:
    """One worker process, started at its first request, and again after it failed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._opened: dict[str, Any] | None = None
        self._rest = b""
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def open(self, text: str) -> None:
        """Begin with a cluster, whose candidates are made and timed from now on."""
        settings = {name: getattr(config, name) for name in _SETTINGS}
        settings |= {"cache": False, "verify": False, "progress": False, "explain": False}
        self._opened = {"do": "open", "text": text, "settings": settings}
        self._stop_if_ended()
        if self._process is not None:
            self._exchange(self._opened, _START)

    def ask(self, patience: float, **request: Any) -> dict[str, Any]:
        """The answer to a request; raises `Failed` within `patience` seconds, or where it is an error."""
        if self._process is None:
            self._start()
        return self._exchange(request, patience)

    def close(self) -> None:
        """End the process."""
        process, self._process, self._rest = self._process, None, b""
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # it writes what the process has not read
                        pipe.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> None:
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        # Reports of candidates that no code can be made for are removed with the process.
        self._folder = tempfile.TemporaryDirectory(prefix="mlirml-tuning-", ignore_cleanup_errors=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        environment |= {"MLIRML_DUMP_DIR": "", "TMPDIR": self._folder.name}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mlirml.tuning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        if self._opened is not None:
            self._exchange(self._opened, _START)

    def _stop_if_ended(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self.close()

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            reply: dict[str, Any] = json.loads(self._line(process, time.monotonic() + seconds))
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            status = process.poll()
            self.close()
            reason = f"took longer than {seconds:g} s" if isinstance(error, TimeoutError) else f"ended ({status})"
            raise Failed(f"the worker {reason}") from None
        except BaseException:  # Ctrl-C: the answer would be taken for that to the next request
            self.close()
            raise
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def _line(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        assert process.stdout is not None
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise TimeoutError
            found = os.read(process.stdout.fileno(), 1 << 16)
            if not found:
                process.wait()
                raise EOFError
            self._rest += found
        line, _, self._rest = self._rest.partition(b"\n")
        return line


class Workers:
    """Some worker processes, of which one measures at a time: the others compile meanwhile."""

    def __init__(self, count: int) -> None:
        self.all = [Worker() for _ in range(count)]
        self.measuring = threading.Lock()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self.all:
            worker.close()


def threads_used() -> int:
    """The threads of a parallel loop: `config.threads`, or the processors that this process may run on."""
    return config.threads or len(os.sched_getaffinity(0))


def worker_count() -> int:
    """The number of workers that leave a processor to each thread of a measured program."""
    return max(1, min(4, len(os.sched_getaffinity(0)) // threads_used()))
