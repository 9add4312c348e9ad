"""The convolutions and chains of loops of a program, with all of their schedules."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from mlirml.codegen.cpu import loop_clusters as clusters
from mlirml.codegen.cpu.contract.cluster import cluster_key
from mlirml.codegen.cpu.conv.plan import plans
from mlirml.codegen.cpu.conv.schedule import to_words
from mlirml.codegen.cpu.loop_model import estimate
from mlirml.codegen.cpu.loop_schedule import from_words, space
from mlirml.ir.bindings import main_function, mlir, operations, parse
from mlirml.passes import NoMatch, Pipeline, Stage
from mlirml.pipelines.memref.lower_conv import match_call
from mlirml.targets.machine import Processor, processor
from mlirml.targets.target import Target
from mlirml.tuning.search import Cluster

_WINDOWS = "mlirml-lower-conv"
_MOST_PLANS = 400


def loop_clusters(target: Target, module: mlir.Module, known: Collection[str]) -> list[Cluster]:
    """The different convolutions and chains of a module in stage `schedule`, those without a key in `known`."""
    found: dict[str, Cluster] = {}
    machine = target.processor or processor()
    for cluster in clusters.window_clusters(module.operation):
        key = cluster_key(cluster.text)
        if key not in known and key not in found:
            with suppress(NoMatch):
                chosen = window_schedules(target, cluster.text, machine)
                found[key] = _described(key, cluster, "convolution", chosen)
    for cluster in clusters.chain_clusters(module.operation):
        key = cluster_key(cluster.text)
        if key not in known and key not in found and machine.vector_bits:
            texts = space(
                joins=clusters.has_row_sums(cluster),
                columns=clusters.has_column_sums(cluster),
                streams=clusters.has_large_results(cluster),
                lanes=2 * machine.lanes(32),
            )
            found[key] = _described(key, cluster, "loops", by_time(texts, cluster, machine))
    return list(found.values())


def by_time(texts: list[str], cluster: clusters.Cluster, machine: Processor) -> list[str]:
    """The schedules of a chain by estimated time; equal ones keep their order."""
    time = estimate(cluster.members, machine)
    times = {text: time(schedule) for text in texts if (schedule := from_words(text)) is not None}
    return sorted(times, key=lambda text: times[text])


def window_schedules(target: Target, text: str, machine: Processor) -> list[str]:
    """The plans of the convolution of a program, by estimated time; `NoMatch` if no kernel computes it."""
    module = parse(text)
    at = [name for name, _ in target.stages].index("schedule")
    (stage,) = target.deferred_pipeline(slice(at, at + 1)).stages
    steps = [step.name for step in stage.steps]
    Pipeline((Stage("", stage.steps[: steps.index(_WINDOWS)]),)).run(module)
    for op in list(operations(main_function(module.operation))):
        with suppress(NoMatch), module.context:
            problem = match_call(op, machine).problem
            return [to_words(plan) for plan in plans(problem, machine)[:_MOST_PLANS]]
    raise NoMatch("no kernel computes it")


def _described(key: str, cluster: clusters.Cluster, operation: str, schedules: list[str]) -> Cluster:
    values = clusters.returned_by(cluster.members)
    shapes = ", ".join("x".join(map(str, value.type.shape)) or "1" for value in values)
    dtype = str(values[0].type.element_type)
    names = [member.name.removeprefix("linalg.") for member in cluster.members]
    name = next((n for n in names if n.startswith(("conv", "depthwise", "pooling"))), operation)
    return Cluster(key, cluster.text, None, name, f"-> {shapes}", dtype, tuple(schedules), float(cluster.points))
