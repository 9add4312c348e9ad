"""`python -m benchmarks --target cuda`: the workloads on a device and in torch, in turns; the table, the targets."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

import mlirml as ml
from benchmarks import tables
from benchmarks.devices.workloads import WORKLOADS, DeviceWorkload
from benchmarks.rounds import Measured, Peer
from mlirml.core.tree import flatten, map_leaves

Row = dict[str, Measured]


def run(target: str, options: argparse.Namespace, pythons: Mapping[str, str], out: Console) -> int:
    """Measure and print; 1 where mlirml could not, or was wrong."""
    names = [name for name in options.only or WORKLOADS if name in WORKLOADS]
    peers = []
    versions: dict[str, str] = {}
    for name in ("mlirml", "torch"):
        threads = len(os.sched_getaffinity(0))
        peer = Peer(name, pythons[name], threads, ["benchmarks.devices.worker", name, target])
        answer = peer.ask("start")
        out.print(answer.get("version") or f"{name}: skipped: {answer.get('missing') or answer.get('failure')}")
        versions[name] = answer.get("version") or f"no {name}: {answer.get('missing') or answer.get('failure')}"
        if "version" in answer:
            peers.append(peer)
        else:
            peer.close()
    if not peers or peers[0].name != "mlirml":
        return 1
    found: dict[str, Row] = {}
    try:
        for name in names:
            with out.status(f"measuring {name}"):
                found[name] = measure(WORKLOADS[name], peers, options)
            if options.json:
                options.json.write_text(json.dumps(as_json(found, versions, options.quick), indent=1) + "\n")
    finally:
        for peer in peers:
            peer.close()
    out.print(table(found, target, options.quick))
    if not options.quick and target == "cuda":
        out.print(targets(found))
    bad = [(n, p, m.problem) for n, row in found.items() for p, m in row.items() if m.problem]
    for name, peer_name, problem in bad:
        out.print(f"{name}, {peer_name}: {problem}", markup=False, soft_wrap=True)
    return int(any(peer_name == "mlirml" for _, peer_name, _ in bad))


def measure(workload: DeviceWorkload, peers: list[Peer], options: argparse.Namespace) -> Row:
    """One workload in each peer, in turns."""
    arguments = rounded(workload, workload.arguments(options.quick))
    expected = [np.asarray(x) for x in flatten(ml.compile(workload.function, target="cpu")(*arguments))[0]]
    row = {peer.name: Measured() for peer in peers}
    with tempfile.TemporaryDirectory(prefix="mlirml-bench-") as folder:
        files = {name: Path(folder, name) for name in ("arguments", "expected")}
        files["arguments"].write_bytes(pickle.dumps(arguments, protocol=5))
        files["expected"].write_bytes(pickle.dumps(expected, protocol=5))
        for peer in peers:
            answer = peer.ask("load", workload=workload.name, **{n: str(path) for n, path in files.items()})
            figures = row[peer.name]
            figures.problem = answer.get("failure", "")
            figures.error = answer.get("error", 0.0)
            figures.first = answer.get("first", 0.0)
            if not figures.problem and not figures.error <= workload.tolerance:
                figures.problem = f"wrong result: its error is {figures.error:.1e}"
    for number in range(options.repeats):
        for peer in peers[number % len(peers) :] + peers[: number % len(peers)]:
            figures = row[peer.name]
            if not figures.problem:
                answer = peer.ask("run", seconds=options.seconds)
                figures.samples += answer.get("samples", [])
                figures.problem = answer.get("failure", "")
    for peer in peers:
        peer.ask("drop")
    return row


def rounded(workload: DeviceWorkload, arguments: Any) -> Any:
    """Arguments that the dtype of the workload holds exactly."""
    if workload.dtype == "float32":
        return arguments
    import ml_dtypes

    dtype = np.dtype(np.float16) if workload.dtype == "float16" else np.dtype(ml_dtypes.bfloat16)
    return map_leaves(lambda x: x.astype(dtype).astype(np.float32), arguments)


def table(found: Mapping[str, Row], target: str, quick: bool) -> RichTable:
    """A row for each workload: times, rates, the bandwidth as a part of a copy's, torch's time over mlirml's."""
    result = RichTable(title=f"median time a call on {target}, arrays on the device", title_justify="left")
    for column in (
        "workload",
        "mlirml",
        "best",
        "rate",
        "of a copy",
        "torch",
        "torch / mlirml",
        "best / best",
        "error",
    ):
        result.add_column(column, justify="left" if column == "workload" else "right")
    for name, row in found.items():
        own, other = row["mlirml"], row.get("torch")
        if own.problem:
            result.add_row(name, "failed")
            continue
        share, ratio = of_copy(found, name, quick), of_torch(row)
        best = None if ratio is None or other is None else other.best / own.best
        result.add_row(
            name, tables.time_text(own.median), tables.time_text(own.best), rate(name, own, quick),
            "" if share is None else f"{share:.2f}",
            "" if ratio is None or other is None else tables.time_text(other.median),
            "" if ratio is None else f"{ratio:.2f}", "" if best is None else f"{best:.2f}", f"{own.error:.0e}",
        )  # fmt: skip
    return result


def rate(name: str, own: Measured, quick: bool) -> str:
    """How much work a second."""
    workload = WORKLOADS[name]
    if not workload.unit:
        return ""
    amount = workload.amount(quick) / own.median
    return f"{amount / 1e12:.3g} TFLOP/s" if workload.unit == "flop" else f"{amount / 1e9:.4g} GB/s"


def of_copy(found: Mapping[str, Row], name: str, quick: bool = False) -> float | None:
    """The bandwidth as a part of the copy's; None where one was not measured."""
    copy = found.get("copy", {}).get("mlirml")
    own = found[name]["mlirml"]
    if WORKLOADS[name].unit != "byte" or copy is None or copy.problem or own.problem:
        return None
    return (WORKLOADS[name].amount(quick) / own.median) / (WORKLOADS["copy"].amount(quick) / copy.median)


def of_torch(row: Row) -> float | None:
    """Torch's time over mlirml's."""
    own, other = row["mlirml"], row.get("torch")
    return None if other is None or own.problem or other.problem else other.median / own.median


def as_json(found: Mapping[str, Row], versions: Mapping[str, str], quick: bool) -> dict[str, Any]:
    """The medians in seconds, the ratios, and what went wrong; None for what was not measured."""
    rows = {}
    for name, row in found.items():
        own, other = row["mlirml"], row.get("torch")
        problems = [f"{peer}: {figures.problem}" for peer, figures in row.items() if figures.problem]
        rows[name] = {
            "mlirml": None if own.problem else own.median,
            "torch": None if other is None or other.problem else other.median,
            "of_torch": of_torch(row),
            "of_copy": of_copy(found, name, quick),
            "error": None if own.problem else own.error,
            "first_call": own.first,
            "problem": "; ".join(problems),
        }
    return {"peers": dict(versions), "quick": quick, "rows": rows}


def targets(found: Mapping[str, Row]) -> RichTable:
    """What is to be reached, with the figures of this run."""
    result = RichTable(title="must show", title_justify="left")
    for column in ("what", "target", "measured", ""):
        result.add_column(column)
    for name, row in found.items():
        workload = WORKLOADS[name]
        for limit, value, what in (
            (workload.of_copy, of_copy(found, name), "of the bandwidth of a copy"),
            (workload.of_torch, of_torch(row), "of torch's speed"),
        ):
            if limit is not None:
                measured = "not measured" if value is None else f"{value:.3g}"
                verdict = "" if value is None else "met" if value >= limit else "not met"
                result.add_row(name, f"at least {limit:g} {what}", measured, verdict)
    return result
