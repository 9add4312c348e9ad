"""The schedules of a program's products and loops: looked up in the file, and searched for where it has none."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from mlirml.driver import cache as disk_cache
from mlirml.driver.compilation import begin_loading, parsed, run_pipeline
from mlirml.errors import TuningWarning
from mlirml.targets.machine import host_facts
from mlirml.targets.target import Target, with_schedules
from mlirml.tuning.processes import Failed, Workers, threads_used, worker_count
from mlirml.tuning.store import Row, Unusable, opened

if TYPE_CHECKING:
    from mlirml.codegen.cpu.contract.problem import Contraction
    from mlirml.frontend.captured import Captured
    from mlirml.tuning.search import Cluster

_PASSES = ("mlirml-schedule-contract", "mlirml-schedule-loops")
"""The passes that attach schedules, in their order."""
_KERNELS = ("codegen", "cpu")
_warned: set[str] = set()

Report = Callable[["Cluster", Row], None]


def with_tuned_schedules(target: Target, captured: Captured, mode: str, seconds: float) -> Target:
    """The target with the tuned schedules of a program's products and loops; the target itself if there are none.

    With the mode "search" those that are not in the file are searched for, for so many seconds together; with "stored"
    they keep their default schedules. What is wrong with the file is a `TuningWarning`, once.
    """
    try:
        keys = _known_keys(target, captured)
        clusters: list[Cluster] | None = None
        if keys is None:
            clusters = clusters_of(target, captured)
            keys = [cluster.key for cluster in clusters]
            _note_keys(target, captured, keys)
        found = stored(target, keys)
    except Unusable as reason:
        _warn(str(reason))
        if mode != "search":
            return target
        clusters, found = clusters_of(target, captured), {}
        keys = [cluster.key for cluster in clusters]
    missing = {*keys} - found.keys()
    if missing and mode == "search":
        clusters = clusters if clusters is not None else clusters_of(target, captured)
        wanted = [cluster for cluster in clusters if cluster.key in missing]
        found = {**found, **tune(target, wanted, seconds)}
    return with_rows(target, found)


def with_rows(target: Target, rows: Mapping[str, Row]) -> Target:
    """The target with the schedules of rows, by key, that are faster than the default ones."""
    chosen = sorted(f"{key}/{row.schedule}" for key, row in rows.items() if row.schedule)
    return with_schedules(target, tuple(chosen)) if chosen else target


def stored(target: Target, keys: Sequence[str]) -> dict[str, Row]:
    """The rows of the file for these keys. Raises `Unusable`."""
    with opened() as file:
        return file.find(keys, machine_name(target), kernels_version())


def tune(
    target: Target,
    clusters: Sequence[Cluster],
    seconds: float,
    known: Mapping[str, Row] | None = None,
    report: Report | None = None,
) -> dict[str, Row]:
    """Search for the schedules of clusters, for so many seconds together, and keep them in the file.

    `known` are rows whose schedules the search begins with. A cluster that cannot be measured is left out with a
    `TuningWarning`.
    """
    from mlirml.targets.machine import processor
    from mlirml.tuning.search import search

    if target.processor is not None:
        target.processor.check_runs_here()
    known, results = known or {}, {}
    machine, threads = target.processor or processor(), threads_used()
    shares = _shares(clusters, seconds)
    with Workers(worker_count()) as workers:
        for cluster, share in zip(clusters, shares, strict=True):
            before = known.get(cluster.key)
            try:
                begin = [before.schedule] if before is not None and before.schedule else []
                result = search(cluster, machine, workers, share, threads, begin)
            except Failed as reason:
                _warn(f"{cluster.operation} {cluster.shape} {cluster.dtype} is not tuned: {reason}")
                continue
            row = Row(
                cluster.key, machine_name(target), kernels_version(), cluster.operation, cluster.shape, cluster.dtype,
                result.text, result.seconds, result.default_seconds, result.tried,
            )  # fmt: skip
            results[cluster.key] = row
            try:
                with opened() as file:
                    file.save(row)
            except Unusable as reason:
                _warn(str(reason))
            if report is not None:
                report(cluster, row)
    return results


def _shares(clusters: Sequence[Cluster], seconds: float) -> list[float]:
    """The seconds of each cluster: half of them equally, half by the square root of its work."""
    works = [cluster.work if cluster.problem is None else cluster.problem.work for cluster in clusters]
    weights = [max(1.0, work) ** 0.5 for work in works]
    return [seconds * (0.5 / len(clusters) + 0.5 * weight / sum(weights)) for weight in weights]


def clusters_of(target: Target, captured: Captured) -> list[Cluster]:
    """The different contractions of a program that have no schedule of their own, its convolutions, and its chains."""
    from mlirml.codegen.cpu.contract.attribute import read_fields
    from mlirml.codegen.cpu.contract.cluster import cluster_key, cluster_text
    from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, build_problem, match_contraction
    from mlirml.ir.bindings import named_operations
    from mlirml.passes import NoMatch, Pipeline, Stage
    from mlirml.tuning.loops import loop_clusters
    from mlirml.tuning.search import Cluster

    begin_loading()
    module = parsed(captured)
    names = [name for name, _ in target.stages]
    at = names.index("schedule")
    run_pipeline(target, module, names[at - 1])
    (stage,) = target.deferred_pipeline(slice(at, at + 1)).stages
    steps = [step.name for step in stage.steps]
    first = next((number for number, step in enumerate(steps) if step in _PASSES), None)
    if first is None:
        return []
    Pipeline((Stage("", stage.steps[:first]),)).run(module)
    found: dict[str, Cluster] = {}
    for op in named_operations(module.operation, CONTRACTIONS):
        text = cluster_text(op) if not read_fields(op) else None
        if text is None or (key := cluster_key(text)) in found:
            continue
        with suppress(NoMatch):
            contraction = match_contraction(op)
            name = op.name.removeprefix("linalg.") + ("+elementwise" if "linalg.generic" in text else "")
            found[key] = Cluster(key, text, build_problem(contraction), name, _shape(contraction), _dtype(contraction))
    return [*found.values(), *loop_clusters(target, module, found)]


def _shape(contraction: Contraction) -> str:
    """The shapes of a, b and the output: `512x768 768x3072 -> 512x3072`."""
    a, b, out = ("x".join(map(str, shape)) or "1" for shape in contraction.shapes)
    return f"{a} {b} -> {out}"


def _dtype(contraction: Contraction) -> str:
    """The element types, once if they are the same."""
    elements = [operand.element for operand in contraction.operands]
    return elements[0] if len({*elements}) == 1 else f"{elements[0]} {elements[1]} -> {elements[2]}"


def machine_name(target: Target) -> str:
    """The name of what a schedule is measured on: the processor, the one of the code, and the number of threads."""
    return f"{host_facts()['cpu']}; {target.processor}; {threads_used()} threads"


@cache
def kernels_version() -> str:
    """The version of this package, and a digest of the sources of the kernels."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *_KERNELS)
    digest = hashlib.sha256()
    for parent, _, names in sorted(os.walk(folder)):
        for name in sorted(name for name in names if name.endswith(".py")):
            with open(os.path.join(parent, name), "rb") as file:
                digest.update(file.read())
    return f"{sys.modules['mlirml'].__version__}-{digest.hexdigest()[:12]}"


def _program_key(target: Target, captured: Captured) -> str:
    return disk_cache.key_of(disk_cache.key_entries(captured.key, target.fingerprint()))


def _known_keys(target: Target, captured: Captured) -> list[str] | None:
    with opened() as file:
        return file.keys_of(_program_key(target, captured))


def _note_keys(target: Target, captured: Captured, keys: Collection[str]) -> None:
    with opened() as file:
        file.save_keys(_program_key(target, captured), [*keys])


def _warn(text: str) -> None:
    """Say once what is wrong."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, TuningWarning, stacklevel=2)
