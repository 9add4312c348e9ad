"""Schedule loops: convolutions and chains of loops get the schedules that a tuner has found for them.

Before:
    %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : ...) outs(%init : ...)
    %1 = linalg.generic {...} ins(%a) outs(%e) {...}
After:
    %0 = linalg.conv_2d_nchw_fchw {mlirml.window = "conv=filters/lanes=16/vectors=2/rows=1/columns=14/last=16"} ins(...)
    %1 = linalg.generic {..., mlirml.loops = "loops=1/join=1/rows=4/width=16/interleave=2/together=0/stream=0"} ins(%a)

The option `tuned` has a schedule for each key of a program of `codegen/cpu/loop_clusters.py`:
`tuned={1a2b.../conv=filters/lanes=16/...}`. Without it the pass is idle. Kernels of convolutions take a plan that is
one of theirs (`codegen/cpu/conv/plan.py`), and loops are made by the fields of `codegen/cpu/loop_schedule.py`.
"""

from __future__ import annotations

from mlirml.ir.bindings import mlir
from mlirml.passes import Pass, register


@register(optional=True)
class ScheduleLoopsPass(Pass):
    """Attach the schedules of `tuned` to the operations that they were found for."""

    tuned: tuple[str, ...] = ()

    def run(self, module: mlir.Operation) -> None:
        if not self.tuned:
            return
        from mlirml.codegen.cpu.contract.cluster import cluster_key
        from mlirml.codegen.cpu.loop_clusters import chain_clusters, window_clusters
        from mlirml.codegen.cpu.loop_schedule import from_words

        found = {key: text for entry in self.tuned for key, _, text in [entry.partition("/")]}
        for cluster in window_clusters(module) + chain_clusters(module):
            text = found.get(cluster_key(cluster.text), "")
            if text.startswith("conv=") or from_words(text) is not None:
                schedule(cluster.members, text)


def schedule(members: tuple[mlir.Operation, ...] | list[mlir.Operation], text: str) -> None:
    """Attach a schedule: a plan to convolutions, loops to all others."""
    from mlirml.codegen.cpu.conv.schedule import NAME as WINDOW
    from mlirml.codegen.cpu.loop_clusters import is_window
    from mlirml.codegen.cpu.loop_schedule import NAME as LOOPS

    name = WINDOW if text.startswith("conv=") else LOOPS
    for member in members:
        if member.name.startswith("linalg.") and is_window(member) == (name == WINDOW):
            member.attributes[name] = mlir.StringAttr.get(text)
