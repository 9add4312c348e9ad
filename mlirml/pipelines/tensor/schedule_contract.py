"""Schedule contractions: the schedule of each contraction is attached as an attribute.

Before:
    %2 = linalg.matmul ins(%a, %b : tensor<360x64xf32>, tensor<64x40xf32>) outs(%1 : tensor<360x40xf32>)
After:
    %2 = linalg.matmul {mlirml.schedule = {kernel = "direct", lanes = 16 : i64, mr = 8 : i64, ...}} ins(...)

Existing fields are kept, and the others are chosen to match: `{kernel = "packed"}` on an operation requests another
kernel. The pass options `kernel`, `mr`, `nr`, `kc`, `mc` and `nc` do the same for every contraction that has such a
kernel and no fields of its own. `codegen/cpu/contract/plan.py` documents the fields. An operand that an elementwise
operation computes is packed even if another operand would not be: it can then be computed as it is packed.

The option `tuned` has the schedules that a tuner has found (`mlirml.tuning`), each with the key of its contraction and
the elementwise operations beside it (`codegen/cpu/contract/cluster.py`): `tuned={1a2b.../kernel=packed/lanes=16/...}`.
An entry that this processor has no kernel for is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlirml.analysis.costs import costs
from mlirml.analysis.structured import is_parallel
from mlirml.codegen.cpu.contract.attribute import NAME, from_words, read_fields, to_attribute
from mlirml.codegen.cpu.contract.cluster import cluster_key, cluster_text
from mlirml.codegen.cpu.contract.plan import TILE_K, Schedule, check, fits_tiles, plan, round_up
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, Problem, build_problem, match_contraction
from mlirml.core.dataclass import replace
from mlirml.errors import LoweringError
from mlirml.ir.bindings import defining_op, mlir, named_operations
from mlirml.ir.location import source_location
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, ANY_WINDOW
from mlirml.targets.machine import Processor


@register(when=(*ANY_CONTRACTION, *ANY_WINDOW), optional=True)
class ScheduleContractPass(Pass):
    """Choose the kernel, tile and blocks of every contraction; `kernel` to `nc` are chosen by the options if given."""

    processor: Processor = Processor()
    kernel: str = ""
    mr: int = 0
    nr: int = 0
    kc: int = 0
    mc: int = 0
    nc: int = 0
    tuned: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    def run(self, module: mlir.Operation) -> None:
        found = named_operations(module, CONTRACTIONS)
        # All are looked up before one is changed: a cluster has other contractions' results as arguments only, but the
        # order in which they are scheduled must not matter.
        tuned = [self.tuned_schedule(op) for op in found]
        for op, known in zip(found, tuned, strict=True):
            with op.location:
                op.attributes[NAME] = to_attribute(known or schedule(op, self.processor, self.wanted))

    def tuned_schedule(self, op: mlir.Operation) -> Schedule | None:
        """The schedule that a tuner has found for a contraction without fields of its own; None if there is none."""
        if not self.tuned or read_fields(op):
            return None
        text = cluster_text(op)
        key = cluster_key(text) if text is not None else ""
        found = next((rest for entry in self.tuned for name, _, rest in [entry.partition("/")] if name == key), "")
        return from_tuner(op, self.processor, found, libraries=bool(self.libraries)) if found else None

    @property
    def wanted(self) -> dict[str, Any]:
        """The fields that the options set."""
        given = {name: getattr(self, name) for name in ("kernel", "mr", "nr", "kc", "mc", "nc")}
        return {name: value for name, value in given.items() if value}


def schedule(op: mlir.Operation, machine: Processor, wanted: Mapping[str, Any]) -> Schedule:
    """The schedule of an operation on tensors, with its own fields. Raises `LoweringError` if these are invalid."""
    given = read_fields(op)
    if given.get("pairs") == TILE_K and not machine.has_tiles:
        raise LoweringError(
            f"{NAME} of {op.name}: pairs = {TILE_K} asks for tile registers (AMX), which this process has not",
            location=source_location(op.location),
            help="leave `pairs` out: the kernel is then chosen for this processor",
        )
    try:
        problem = build_problem(match_contraction(op))
    except NoMatch:
        return Schedule(**{"kernel": "loops"} | given)
    try:
        known = {**wanted, **given}
        chosen = complete(problem, machine, known)
        if chosen.kernel == "direct" and "kernel" not in known and is_worth_packing(op, problem, machine):
            chosen = complete(problem, machine, {"kernel": "packed", **known})
        check(problem, chosen)
        return chosen
    except NoMatch:
        pass  # the options do not apply to this one
    try:
        return complete(problem, machine, given)
    except NoMatch as reason:
        raise LoweringError(
            f"{NAME} of {op.name}: there is no {given['kernel']} kernel for it: {reason}",
            location=source_location(op.location),
        ) from reason


def from_tuner(op: mlir.Operation, machine: Processor, text: str, *, libraries: bool = False) -> Schedule | None:
    """The schedule of a tuner's text; None if this processor has no such kernel for the operation."""
    fields = from_words(text)
    if fields is not None and fields["kernel"] == "library" and not libraries:
        return None
    if fields is None or (fields["pairs"] == TILE_K and not machine.has_tiles):
        return None
    if fields["pairs"] > 1 and not machine.has_bf16_pairs and not machine.has_tiles:
        return None
    try:
        chosen = Schedule(**fields)
        check(build_problem(match_contraction(op)), chosen)
    except NoMatch:
        return None
    return chosen


def is_worth_packing(op: mlir.Operation, problem: Problem, machine: Processor) -> bool:
    """True if an operand is better computed as it is packed than stored in memory between."""
    enough = costs().is_packed(problem.m.size, problem.n.size) and len(problem.k) == 1
    return enough and any(is_computed(value, machine.l2_bytes) for value in op.operands[:2])


def is_computed(value: mlir.Value, cache_bytes: int) -> bool:
    """True if a tensor too big for the cache is the result of an elementwise operation, and has one use."""
    owner, kind = defining_op(value), mlir.ShapedType(value.type)
    if owner is None or owner.name != "linalg.generic" or len(owner.results) != 1 or sum(1 for _ in value.uses) != 1:
        return False
    if not is_parallel(owner):
        return False
    element = kind.element_type
    if not isinstance(element, mlir.FloatType | mlir.IntegerType) or not kind.has_static_shape:
        return False
    return bool(math.prod(kind.shape) * element.width // 8 > cache_bytes)


def allowed(machine: Processor, given: Mapping[str, Any]) -> Processor:
    """The machine without the instructions that the field `pairs` excludes."""
    pairs = given.get("pairs", TILE_K)
    if pairs == TILE_K:
        return machine
    return machine.without("amx_tile", *([] if pairs > 1 else ["avx512_bf16"]))


def complete(problem: Problem, machine: Processor, given: Mapping[str, Any]) -> Schedule:
    """A schedule with the fields `given`; block sizes are multiples of the tile. Raises `NoMatch`."""
    chosen = replace(plan(problem, allowed(machine, given), given.get("kernel")), **given)
    if chosen.tiles and not fits_tiles(chosen.mr, chosen.nr):
        chosen = replace(plan(problem, machine.without("amx_tile"), given.get("kernel")), **given)
    if chosen.kernel not in ("packed", "direct"):
        return chosen
    mc = chosen.mc if "mc" in given else round_up(chosen.mc, chosen.mr)
    nc = chosen.nc if "nc" in given else round_up(chosen.nc, chosen.nr)
    return replace(chosen, mc=mc, nc=nc)
