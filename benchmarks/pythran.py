"""Pythran's tests as they are: `python -m benchmarks.pythran CHECKOUT` compiles the functions of a checkout.

The checkout is one of github.com/serge-sans-paille/pythran, whose tests are some thousands of small programs of NumPy
and plain Python with arguments. Each is called in Python and compiled, with copies of its arguments; Pythran itself is
not needed.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import importlib.util
import inspect
import io
import json
import multiprocessing
import re
import sys
import tempfile
import time
import traceback
import types
import unittest
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

TIMEOUT = 60.0
OUTSIDE = {
    "test_blas",
    "test_cython",
    "test_distutils",
    "test_import_all",
    "test_ipython",
    "test_icc",
    "test_normalize_methods",
    "test_openmp",
    "test_optimizations",
    "test_os",
    "test_spec_parser",
    "test_submodules",
    "test_time",
    "test_user_defined_import",
    "test_version",
    "test_xdoc",
}
"""Modules about Pythran's own parts, the operating system or OpenMP."""
UNSTABLE = {
    "d2q9_nxnyns.0": "its arguments overlap, and rounding grows to infinity",
}
FOLDERS = ("cases", "euler", "rosetta", "scipy", "scikit-image", "pydata")

Record = dict[str, Any]


class Unsupported(Exception):
    """The test is not a function with arguments."""


def same(found: Any, expected: Any) -> bool:
    """Two results hold the same values: floats to the single digits that reductions lose."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(same(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, (set, frozenset, str, bytes)) or expected is None:
        return bool(found == expected)
    if isinstance(expected, (list, tuple)):
        if isinstance(found, np.ndarray):
            found = list(found)
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return False
        return all(map(same, found, expected))
    one, other = np.asarray(found), np.asarray(expected)
    if one.shape != other.shape:
        return False
    if other.dtype == object or one.dtype == object:
        return bool(np.all(one == other))
    if other.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    single = other.dtype.itemsize <= (4 if other.dtype.kind == "f" else 8)
    scale = float(np.max(np.abs(other[np.isfinite(other)]), initial=0.0))
    bound = 1e-4 if single else 1e-9
    return bool(np.allclose(one, other, rtol=bound, atol=bound * max(scale, 1e-300), equal_nan=True))


def module_of(code: str, folder: Path, name: str) -> types.ModuleType:
    """A module with source, so that loops are compiled from it."""
    number = len(list(folder.glob("*.py")))
    path = folder / f"{name}_{number}.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The result of a call, or its exception."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return call(), None
    except BaseException as error:  # some tests are about `KeyboardInterrupt`
        return None, error


def judged(found: Any, error: BaseException | None, expected: Any, reason: BaseException | None) -> tuple[str, str]:
    """The class of a result: right, refused, wrong or an internal error; and the message."""
    import mlirml as ml

    if reason is not None:
        if error is None:
            return "wrong", f"no exception, but {reason!r} in Python"
        return "right", ""
    if isinstance(error, ml.MlirmlError):
        return "refused", str(error)
    if error is not None:
        return "error", "".join(traceback.format_exception(error))[-3000:]
    if same(found, expected):
        return "right", ""
    return "wrong", f"{found!r:.300} instead of {expected!r:.300}"


class Recorder:
    """The replacement of Pythran's environment, which compiles with mlirml."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: list[tuple[str, str, str]] = []

    def function(self, code: str, parameters: Sequence[Any], interface: dict[str, Any]) -> None:
        """A function with arguments: results, and what the call stores into the arguments."""
        import mlirml as ml

        prelude = interface.pop("prelude", None)
        interface.pop("check_exception", None)
        interface.pop("thread_count", None)
        name = next(iter(interface))
        code = dedent(code)
        plain = getattr(module_of(code, self.folder, "plain"), name)
        compiled = ml.compile(getattr(module_of(code, self.folder, "compiled"), name))
        if inspect.isgeneratorfunction(plain):
            raise Unsupported("a generator")
        one, other = copy.deepcopy(parameters), copy.deepcopy(parameters)
        prelude and prelude()
        expected, reason = outcome(lambda: plain(*one))
        prelude and prelude()
        found, error = outcome(lambda: compiled(*other))
        if isinstance(expected, types.GeneratorType) or type(expected).__name__ in ("map", "filter", "zip", "range"):
            expected = list(expected)
            found = list(found) if found is not None else found
        state, message = judged(found, error, expected, reason)
        if state == "right" and reason is None and not same(list(other), list(one)):
            state, message = "wrong", f"arguments are {other!r:.300} instead of {one!r:.300}"
        self.results.append((state, message, code))

    def program(self, code: str, command: str | None, folder: Path) -> None:
        """A module and the command that calls its exported functions."""
        import mlirml as ml

        if command is None:
            raise Unsupported("no call")
        exported = re.findall(r"#\s*pythran\s+export\s+(\w+)\s*\(", code)
        parts = command.strip().split(";")
        text = "\n".join(part.strip() for part in parts[:-1])
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        results = []
        for changed in (False, True):
            module = module_of(code, self.folder, "program")
            if changed:
                for name in exported:
                    setattr(module, name, ml.compile(getattr(module, name)))

            def call(module: types.ModuleType = module) -> Any:
                exec(text, module.__dict__)
                found = eval(parts[-1].strip(), module.__dict__)
                return list(found) if isinstance(found, types.GeneratorType) else found

            results.append(outcome(call))
        (expected, reason), (found, error) = results
        if reason is not None:
            raise Unsupported(f"fails in Python: {reason!r:.100}")
        self.results.append((*judged(found, error, expected, reason), code))


RECORDER: list[Recorder] = []


class TestEnv(unittest.TestCase):
    """Pythran's class of this name, for the tests that derive from it."""

    def run_test(self, code: str, *parameters: Any, **interface: Any) -> None:
        RECORDER[-1].function(code, parameters, interface)

    def run_test_case(self, code: str, name: str, command: str | None, module_dir: Any = None, **_: Any) -> None:
        RECORDER[-1].program(code, command, Path(module_dir or "."))

    def check_ast(self, *_: Any, **__: Any) -> None:
        raise Unsupported("a test of Pythran's own IR")


class TestFromDir(TestEnv):
    """Pythran's class of this name."""

    @staticmethod
    def populate(target: Any, stub: bool = True) -> None:
        """Nothing: the folders are read by `tests_of`."""


class Config:
    """Pythran's settings."""

    def get(self, *_: Any) -> str:
        return ""

    def getboolean(self, *_: Any) -> bool:
        return False

    def getint(self, *_: Any) -> int:
        return 0


def stubs(checkout: Path) -> None:
    """The modules of Pythran that its tests import."""
    package = types.ModuleType("pythran")
    package.__path__ = [str(checkout / "pythran")]
    package.__dict__["compile_pythrancode"] = None
    sys.modules["pythran"] = package
    for name, names in (
        ("tests", {"TestEnv": TestEnv, "TestFromDir": TestFromDir}),
        ("config", {"cfg": Config()}),
        ("errors", {"PythranCompileError": Exception, "PythranTypeError": Exception}),
        ("syntax", {"PythranSyntaxError": Exception}),
        ("spec", {"Spec": object}),
        ("backend", {"Python": object}),
        ("middlend", {"refine": None}),
        ("passmanager", {"PassManager": object}),
    ):
        module = types.ModuleType(f"pythran.{name}")
        module.__dict__.update(names)
        if name == "tests":
            module.__path__ = [str(checkout / "pythran" / "tests")]
        sys.modules[f"pythran.{name}"] = module
        setattr(package, name, module)


def program_of(code: str, command: str, folder: Path) -> None:
    """The test of a program of a folder."""
    RECORDER[-1].program(code, command, folder)


def call_method(cls: type[TestEnv], method: str) -> None:
    """A test that is a method."""
    getattr(cls(method), method)()


def tests_of(checkout: Path, name: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """The tests of a module, or of a folder of programs, by name."""
    folder = checkout / "pythran" / "tests"
    if name in FOLDERS:
        for path in sorted((folder / name).glob("*.py")):
            code = path.read_text("utf-8")
            if "unittest.skip" in code or "unittest.python3.skip" in code:
                continue
            commands = [line for line in code.splitlines() if line.startswith(("#runas ", "# runas"))]
            for number, command in enumerate(commands):
                called = command[command.find(" ", 2) + 1 :]
                yield f"{path.stem}.{number}", partial(program_of, code, called, path.parent)
        return
    module = importlib.import_module(f"pythran.tests.{name}")
    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, TestEnv) and cls.__module__ == module.__name__:
            for method in sorted(dir(cls)):
                if method.startswith("test"):
                    yield f"{cls.__name__}.{method}", partial(call_method, cls, method)


def serve(checkout: Path, name: str, skipped: set[str], pipe: Connection) -> None:
    """Run the tests of a module, but for those of `skipped`, and send a record of each."""
    import warnings

    import mlirml as ml

    warnings.simplefilter("ignore")
    stubs(checkout)
    with tempfile.TemporaryDirectory() as folder, ml.config.override(cache=False):
        for test, call in tests_of(checkout, name):
            if test in skipped:
                continue
            if test in UNSTABLE:
                pipe.send({"test": test, "state": "skipped", "message": UNSTABLE[test]})
                continue
            pipe.send({"begin": test})
            recorder = Recorder(Path(folder))
            RECORDER.append(recorder)
            begin = time.perf_counter()
            try:
                call()
            except (Unsupported, unittest.SkipTest) as reason:
                pipe.send({"test": test, "state": "skipped", "message": str(reason)})
                continue
            except Exception as error:
                pipe.send({"test": test, "state": "skipped", "message": f"the test itself: {error!r:.200}"})
                continue
            order = ("error", "wrong", "refused", "right")
            worst = min(recorder.results, key=lambda found: order.index(found[0]), default=None)
            if worst is None:
                pipe.send({"test": test, "state": "skipped", "message": "no call"})
                continue
            seconds = time.perf_counter() - begin
            pipe.send({"test": test, "state": worst[0], "message": worst[1], "code": worst[2], "seconds": seconds})
    pipe.send(None)


def run(checkout: Path, name: str, only: Sequence[str]) -> Iterator[Record]:
    """The records of a module: each that ends its process, or takes too long, is one, too."""
    done: set[str] = set()
    context = multiprocessing.get_context("spawn")
    while True:
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(checkout, name, done, there), daemon=True)
        process.start()
        there.close()
        current = None
        while True:
            try:
                if not here.poll(TIMEOUT):
                    message = "the time is up"
                    break
                record = here.recv()
            except EOFError:
                process.join()
                message = f"the process ended with status {process.exitcode}"
                break
            if record is None:
                process.join()
                return
            if "begin" in record:
                current = record["begin"]
                done.add(current)
                continue
            if not only or any(part in record["test"] for part in only):
                yield {"module": name, **record}
        process.kill()
        process.join()
        if current is None:
            yield {"module": name, "test": "", "state": "skipped", "message": message}
            return
        yield {"module": name, "test": current, "state": "error", "message": message}


def table_of(records: Sequence[Record]) -> Table:
    """A row a module."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    states = ("right", "refused", "wrong", "error", "skipped")
    table.add_column("module")
    for state in states:
        table.add_column(state, justify="right")
    modules = dict.fromkeys(record["module"] for record in records)
    for module in (*modules, "all"):
        counts = Counter(record["state"] for record in records if module in ("all", record["module"]))
        table.add_row(module, *(str(counts[state]) for state in states))
    return table


def main(given: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pythran", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a folder with github.com/serge-sans-paille/pythran")
    parser.add_argument("--only", nargs="*", help="modules of tests or folders, by name")
    parser.add_argument("--tests", nargs="*", default=[], help="parts of the names of tests")
    parser.add_argument("--report", type=Path, help="a file for a line of JSON a test")
    options = parser.parse_args(given)
    folder = options.checkout / "pythran" / "tests"
    modules = [path.stem for path in sorted(folder.glob("test_*.py"))]
    names = options.only or [*FOLDERS, *(name for name in modules if name not in OUTSIDE)]
    names = [name for name in names if options.only or not any(f"test_{part}" == name for part in FOLDERS)]
    console = Console(width=None if sys.stdout.isatty() else 160)
    records = []
    for name in names:
        for record in run(options.checkout, name, options.tests):
            records.append(record)
            if options.report:
                with options.report.open("a") as file:
                    file.write(json.dumps(record) + "\n")
            if record["state"] not in ("right", "skipped"):
                first = record["message"].strip().splitlines() or [""]
                line = first[-1] if record["state"] == "error" else first[0]
                console.print(f"{name} {record['test']} {record['state']}: {line[:110]}", markup=False, highlight=False)
    console.print(table_of(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
