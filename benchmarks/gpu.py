"""Everything that a GPU of NVIDIA can tell in eight minutes: `make gpu`, or `python3 benchmarks/gpu.py` in the tree.

It needs Python, NVIDIA's driver, llvmlite, and no network: the rest of the compiler comes out of the archive that
`make gpu-bundle` makes. Each step has its own time and goes on after the failures of others. The report tells what
became of each, as Markdown and as JSON; the exit status is 1 where a test failed or mlirml computed something wrong.

This file imports the standard library only.
"""

from __future__ import annotations

import argparse
import glob
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

TREE = Path(__file__).resolve().parent.parent
BUNDLES = TREE / "build" / "gpu"
SECONDS = {"unpack": 60, "build": 120, "device": 30, "pools": 20, "tests": 240, "workloads": 150}
"""How long each step may take; the whole run is kept below `TOTAL`."""
TOTAL = 470
_BUILT = "mlirml/runtime/_native*.so"
_TAIL = 4000
"""How many characters of the output of a step that failed go into the report."""
_FACTS = "name,driver_version,memory.total,clocks.max.sm,compute_cap"
_PACKAGES = (
    "numpy",
    "torch",
    "torch_mlir",
    "cuda-tile",
    "nvidia-cuda-tileiras",
    "llvmlite",
    "ml_dtypes",
    "opt_einsum",
    "rich",
    "pytest",
    "xdist",
    "nanobind",
)
_DEVICE = """
import json, sys, numpy as np, mlirml as ml
found = ml.device(sys.argv[1])
x = np.arange(1000, dtype=np.float32)
assert np.array_equal(ml.compile(lambda x: x * 2 + 1, target=found.kind)(ml.put(x, found)).numpy(), x * 2 + 1)
known = {k: v for k, v in dict(found.capabilities).items() if isinstance(v, (str, int, float))}
print(json.dumps({"name": found.name, "memory": found.memory, **known}))
"""


class Run:
    """One run: the steps so far, and how much time is left."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.out = Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.started = time.monotonic()
        self.environment = dict(os.environ, MLIRML_CACHE_DIR=str(self.out / "cache"), PYTHONUNBUFFERED="1")
        self.report: dict[str, Any] = {"rehearsal": options.rehearse, "machine": machine(), "steps": {}}

    def step(self, name: str, command: Sequence[str]) -> str | None:
        """Run a command in the tree for at most its time; its output, or None where it failed."""
        limit = min(SECONDS[name], TOTAL - (time.monotonic() - self.started))
        begun = time.monotonic()
        log = self.out / f"{name}.log"
        status: int | str
        with log.open("wb") as file:
            child = subprocess.Popen(
                command, cwd=TREE, env=self.environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status = child.wait(max(limit, 1))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                status = f"stopped after {max(limit, 1):.0f} s"
        text = log.read_text(errors="replace")
        self.done(name, "ok" if status == 0 else status, begun, "" if status == 0 else text[-_TAIL:])
        return text if status == 0 else None

    def done(self, name: str, status: int | str, begun: float, about: str = "") -> None:
        """Note what became of a step."""
        took = time.monotonic() - begun
        self.report["steps"][name] = {
            "status": status,
            "seconds": round(took, 1),
            **({"about": about} if about else {}),
        }
        print(f"{name}: {status} ({took:.1f} s)", flush=True)
        self.write()

    def write(self) -> None:
        """Write both forms of the report, as far as it is."""
        self.report["seconds"] = round(time.monotonic() - self.started, 1)
        (self.out / "report.json").write_text(json.dumps(self.report, indent=1) + "\n")
        (self.out / "report.md").write_text(markdown(self.report))


def machine() -> dict[str, Any]:
    """The GPU as its driver tells of it, and what Python has."""
    facts: dict[str, Any] = {"python": platform.python_version(), "cpu_cores": len(os.sched_getaffinity(0))}
    facts["packages"] = {name: version_of(name) for name in _PACKAGES}
    asked = ["nvidia-smi", f"--query-gpu={_FACTS}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout
        facts["gpu"] = dict(zip(_FACTS.split(","), (word.strip() for word in answer.splitlines()[0].split(","))))
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        facts["gpu"] = {"missing": str(error)}
    return facts


def version_of(package: str) -> str:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def unpack(run: Run) -> None:
    """Put the compiler out of the archives where Python finds it, unless it is installed."""
    begun = time.monotonic()
    if importlib.util.find_spec("torch_mlir") is not None:
        run.done("unpack", "ok", begun, "not needed: the compiler is installed")
        return
    site = Path(run.options.site or run.out / "site")
    archives = sorted(Path(run.options.bundles).glob("*.tar.xz"))
    try:
        for path in archives:
            with tarfile.open(path) as archive:
                archive.extractall(site, filter="data")
    except (OSError, tarfile.TarError) as error:
        run.done("unpack", "failed", begun, str(error))
        return
    found = (site / "torch_mlir").exists()
    run.environment["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, [run.environment.get("PYTHONPATH")])])
    run.done("unpack", *(("ok", begun) if found else ("failed", begun, "`make gpu-bundle` makes the archives")))


def build(run: Run) -> None:
    """Build the native runtime for this Python, unless it is there."""
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}-"
    begun = time.monotonic()
    if any(tag in path for path in glob.glob(str(TREE / _BUILT))):
        run.done("build", "ok", begun, "not needed: it is there for this Python")
        return
    target = run.out / "built"
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
    if run.step("build", [*command, "--target", str(target), "."]) is not None:
        for path in glob.glob(str(target / _BUILT)):
            shutil.copy(path, TREE / "mlirml" / "runtime")


def check_device(run: Run) -> None:
    """Run one small program, and take the device's own facts."""
    kind = "vulkan" if run.options.rehearse else "cuda"
    answer = run.step("device", [sys.executable, "-c", _DEVICE, kind])
    if answer is not None:
        run.report["device"] = json.loads(answer.strip().splitlines()[-1])


def measure_pools(run: Run) -> None:
    """Measure what a block of memory costs from mlirml's pool and from the driver's."""
    if run.options.rehearse:
        run.done("pools", "ok", time.monotonic(), "a Vulkan device has one pool")
        return
    answer = run.step("pools", [sys.executable, "-m", "benchmarks.devices.pools"])
    if answer is not None:
        run.report["pools"] = json.loads(answer.strip().splitlines()[-1])


def run_tests(run: Run) -> None:
    """`pytest -m cuda` in as many processes as there are cores; the counts and the names of those that failed."""
    results = run.out / "tests.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "-p", "no:cacheprovider", f"--junitxml={results}"]
    command += [
        "-p",
        "no:benchmark",
        "--continue-on-collection-errors",
    ]  # packages that only other tests import may be missing
    if importlib.util.find_spec("xdist") is not None:
        command += ["-n", str(len(os.sched_getaffinity(0)))]
    if importlib.util.find_spec("pytest_timeout") is not None:  # a kernel that does not end takes its process along
        command += ["--timeout=90", "--timeout-method=thread"]
    if run.options.rehearse:
        command += ["-p", "tests.targets.rehearsal"]
    run.step("tests", [*command, *run.options.tests])
    if results.exists():
        run.report["tests"] = counted(results)


def counted(path: Path) -> dict[str, Any]:
    """How many tests passed, failed and were skipped, by the file that pytest leaves."""
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    outcomes = {tag: [case for case in cases if case.find(tag) is not None] for tag in ("failure", "error", "skipped")}
    failed = [*outcomes["failure"], *outcomes["error"]]
    return {
        "passed": len(cases) - len(failed) - len(outcomes["skipped"]),
        "failed": len(failed),
        "skipped": len(outcomes["skipped"]),
        "failures": [f"{case.get('classname')}::{case.get('name')}" for case in failed],
    }


def run_workloads(run: Run) -> None:
    """The workloads of devices in mlirml, and in torch where it is installed, in turns."""
    results = run.out / "workloads.json"
    target = ["--target", "vulkan", "--quick"] if run.options.rehearse else ["--target", "cuda"]
    command = [sys.executable, "-m", "benchmarks", *target, "--repeats", "5", "--json", str(results)]
    run.step("workloads", [*command, *(["--only", run.options.only] if run.options.only else [])])
    if results.exists():
        run.report["workloads"] = json.loads(results.read_text())


def markdown(report: Mapping[str, Any]) -> str:
    """The report for readers."""
    gpu = {**report["machine"]["gpu"], **report.get("device", {})}
    lines = ["# mlirml on a GPU", ""]
    if report["rehearsal"]:
        lines += ["A rehearsal: no GPU ran, kernels were assembled, and times are those of another device.", ""]
    lines += [f"- {name}: {value}" for name, value in gpu.items()]
    lines += [
        f"- {name}: {report['machine'][name]}" for name in ("python", "cpu_cores") if name in report.get("machine", {})
    ]
    lines += ["", "| step | outcome | seconds |", "|---|---|---|"]
    lines += [f"| {name} | {step['status']} | {step['seconds']} |" for name, step in report["steps"].items()]
    tests = report.get("tests")
    if tests:
        lines += ["", f"{tests['passed']} tests passed, {tests['failed']} failed, {tests['skipped']} were skipped."]
        lines += [f"- {name}" for name in tests["failures"]]
    pools = report.get("pools", {})
    if pools:
        ways = list(next(iter(pools.values())))
        lines += ["", f"| memory, us | {' | '.join(ways)} |", "|---" * (1 + len(ways)) + "|"]
        lines += [f"| {name} | {' | '.join(f'{row[way]:.4g}' for way in ways)} |" for name, row in pools.items()]
    workloads = report.get("workloads", {})
    if workloads:
        peers = ", ".join(workloads["peers"].values())
        lines += ["", peers, "", "| workload | mlirml, ms | torch, ms | torch / mlirml | of a copy | error | |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [row_text(name, row) for name, row in workloads["rows"].items()]
    for name, step in report["steps"].items():
        if step.get("about") and step["status"] != "ok":
            lines += ["", f"## {name}", "", "```", step["about"].strip(), "```"]
    return "\n".join(lines) + "\n"


def row_text(name: str, row: Mapping[str, Any]) -> str:
    """A row of the table of workloads."""

    def shown(value: float | None, factor: float = 1.0) -> str:
        return "" if value is None else f"{value * factor:.4g}"

    cells = [name, shown(row["mlirml"], 1e3), shown(row["torch"], 1e3), shown(row["of_torch"]), shown(row["of_copy"])]
    return f"| {' | '.join([*cells, shown(row['error']), row['problem']])} |"


def failed(report: Mapping[str, Any]) -> bool:
    """Whether a test failed, or a step that the result depends on."""
    tests = report.get("tests")
    wrong = any(row["problem"].startswith("mlirml") for row in report.get("workloads", {}).get("rows", {}).values())
    stopped = any(report["steps"].get(name, {}).get("status") != "ok" for name in ("device", "tests", "workloads"))
    return not tests or bool(tests["failed"]) or wrong or stopped


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.py", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--out", default=os.environ.get("OUT") or "build/gpu/report", help="the folder of the report")
    parser.add_argument("--bundles", default=str(BUNDLES), help="the folder of the archives of `make gpu-bundle`")
    parser.add_argument("--site", help="where they are unpacked, if not among the reports")
    parser.add_argument(
        "--unpack", action="store_true", help="do nothing else, so that each archive can come in its turn"
    )
    parser.add_argument("--rehearse", action="store_true", help="without a GPU: a stand-in of libcuda, and Vulkan")
    parser.add_argument("--only", metavar="NAMES", help="these workloads only, with commas")
    parser.add_argument("tests", nargs="*", help="these tests only, as pytest names them")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps; 1 where something failed."""
    run = Run(parsed(arguments))
    for name, step in ORDER.items() if not run.options.unpack else [("unpack", unpack)]:
        try:
            step(run)
        except Exception as error:  # the steps after it have something to tell
            run.report["steps"].setdefault(name, {"status": "failed", "seconds": 0.0, "about": repr(error)})
    run.write()
    print(f"the report is in {run.out}", flush=True)
    return 0 if run.options.unpack else int(failed(run.report))


ORDER: dict[str, Callable[[Run], None]] = {
    "unpack": unpack,
    "build": build,
    "device": check_device,
    "pools": measure_pools,
    "tests": run_tests,
    "workloads": run_workloads,
}

if __name__ == "__main__":
    sys.exit(main())
