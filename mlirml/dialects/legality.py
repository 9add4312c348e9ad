"""The operations that are legal at the end of each stage, as a table, and the check of a module against it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.core.dataclass import dataclass
from mlirml.errors import LoweringError, MlirmlError
from mlirml.ir.bindings import mlir, operations
from mlirml.ir.location import is_unknown, source_location


@dataclass(frozen=True)
class Contract:
    """The legal operations after a stage: whole `dialects` and single `ops` of others, without the `illegal` ones.

    `removed_by` names the pass that removes an op or a dialect that is not legal any more.
    """

    dialects: frozenset[str]
    ops: frozenset[str] = frozenset()
    illegal: frozenset[str] = frozenset()
    removed_by: Mapping[str, str] = field(default_factory=dict)

    def allows(self, name: str) -> bool:
        """True if the op `name` is legal."""
        legal = name.partition(".")[0] in self.dialects or name in self.ops
        return legal and name not in self.illegal

    def remover(self, name: str) -> str | None:
        """The pass that should have removed the op `name`."""
        return self.removed_by.get(name) or self.removed_by.get(name.partition(".")[0])


_LOOPS_AND_TENSORS = frozenset({"arith", "builtin", "func", "linalg", "math", "mlirml", "scf", "tensor"})
_CHECKS = frozenset({"cf.assert"})

_REQUESTS = frozenset(
    f"mlirml.{name}"
    for name in (
        "independent",
        "cotangent",
        "vjp",
        "dual",
        "jvp",
        "unbatch",
        "vmap",
        "stop_gradient",
        "custom_input",
        "custom_output",
        "custom_cotangent",
        "custom_gradient",
        "custom_primal",
        "custom_tangent",
        "custom_result",
        "again_input",
        "again_output",
    )
)

_DISPATCHES = frozenset({"scf.execute_region"})
"""Regions of what one kernel computes, made and removed in stage `offload`."""

STAGES: Mapping[str, Contract] = {
    "capture": Contract(_LOOPS_AND_TENSORS | {"affine"}, _CHECKS),
    # The same operations: raising makes fewer loops, and no promise that there are none.
    "raise": Contract(_LOOPS_AND_TENSORS | {"affine"}, _CHECKS),
    "transform": Contract(
        _LOOPS_AND_TENSORS,
        _CHECKS,
        illegal=_REQUESTS,
        removed_by={**dict.fromkeys(_REQUESTS, "mlirml-expand"), "affine": "mlirml-lower-affine"},
    ),
    "optimize": Contract(_LOOPS_AND_TENSORS, _CHECKS, illegal=_REQUESTS),
    "offload": Contract(
        _LOOPS_AND_TENSORS,
        _CHECKS,
        illegal=_REQUESTS | _DISPATCHES,
        removed_by=dict.fromkeys(_DISPATCHES, "mlirml-outline"),
    ),
    "schedule": Contract(
        frozenset({"arith", "builtin", "cf", "func", "gpu", "math", "memref", "mlirml", "scf", "ub", "vector"}),
        ops=frozenset(
            {
                "llvm.call_intrinsic",
                "llvm.inttoptr",
                "nvgpu.device_async_copy",
                "nvgpu.device_async_create_group",
                "nvgpu.device_async_wait",
                "nvgpu.ldmatrix",
                "nvgpu.mma.sync",
            }
        ),
        illegal=frozenset({"scf.parallel", "scf.reduce", "builtin.unrealized_conversion_cast"}),
        removed_by={
            **dict.fromkeys(CONTRACTIONS, "mlirml-lower-contract"),
            "linalg": "mlirml-lower-loops",
            "tensor": "mlirml-bufferize",
            "bufferization": "mlirml-bufferize",
            "affine": "mlirml-lower-affine",
            "scf.parallel": "mlirml-outline-parallel",
            "scf.reduce": "mlirml-outline-parallel",
        },
    ),
    "lower": Contract(
        frozenset({"llvm", "nvvm"}),
        ops=frozenset({"builtin.module", "gpu.binary", "gpu.module"}),
        removed_by={
            "gpu": "mlirml-lower-launches",
            "math": "mlirml-expand-math",
            "mlirml": "mlirml-lower-sort",
            "affine": "lower-affine",
            "scf": "convert-scf-to-cf",
            "vector": "convert-vector-to-llvm",
            "func": "convert-func-to-llvm",
            **dict.fromkeys(("arith", "cf", "index", "memref", "ub"), "convert-to-llvm"),
            "builtin.unrealized_conversion_cast": "reconcile-unrealized-casts",
        },
    ),
}


_PLACES = (mlir.NameLoc, mlir.FileLineColLoc)
"""The most common location classes: an operation with one of these has a location."""


def contract_of(stage: str, dialects: Collection[str] = ()) -> Contract:
    """The contract of a stage; with other `dialects`, these are legal alone."""
    contract = STAGES[stage]
    if not dialects:
        return contract
    return Contract(frozenset(dialects), frozenset({"builtin.module"}))


def verify_stage(module: mlir.Operation, stage: str, dialects: Collection[str] = ()) -> set[str]:
    """Check a module against the contract of `stage` in one walk, and return the names of its operations.

    With `dialects`, these are legal in place of those of the contract.

    Raises `LoweringError` for the first op that is not legal any more, or whose location is unknown, and names the op,
    the user's line and the pass that should have removed it.
    """
    contract = contract_of(stage, dialects)
    legal: set[str] = set()
    for op in operations(module):
        name = op.name
        if name not in legal:
            if not contract.allows(name):
                raise _illegal(op, stage, contract)
            legal.add(name)
        location = op.location
        if type(location) not in _PLACES and is_unknown(location) and not _has_no_place(op):
            raise _unlocated(op, stage)
    return legal


def _has_no_place(op: mlir.Operation) -> bool:
    """True if upstream creates operations like `op` without a location.

    MLIR's folder shares constants between ops and erases their location; the parser writes the bodies of named linalg
    operations itself.
    """
    if not len(op.operands) and not len(op.regions):
        return True
    parent = op.parent
    return parent is not None and parent.name.startswith("linalg.") and parent.name != "linalg.generic"


def _illegal(op: mlir.Operation, stage: str, contract: Contract) -> MlirmlError:
    remover = contract.remover(op.name)
    notes = (f"pass `{remover}` should have removed it",) if remover else ()
    error = LoweringError(
        f"`{op.name}` is not legal after stage {stage}", location=source_location(op.location), notes=notes, stage=stage
    )
    error.op = op.name
    return error


def _unlocated(op: mlir.Operation, stage: str) -> MlirmlError:
    error = LoweringError(
        f"`{op.name}` has no source location after stage {stage}",
        notes=(f"the op is {op.get_asm(skip_regions=True)}", "a pass built it outside `with op.location`"),
        stage=stage,
    )
    error.op = op.name
    return error
