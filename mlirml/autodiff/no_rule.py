"""Operations that are legal at stage `transform` but need no autodiff or batching rule, with the reason.

An operation of this table in an imported file is refused with that reason.
"""

from __future__ import annotations

_MEMORY = "it works on memory, which becomes tensors at stage raise where it can"
_PARALLEL = "parallel loops are made after the derivatives"
_CALLS = "functions are written where they are called"
_TENSORS = "there is another way to write it, by slices or by `linalg.generic`, which has derivatives"
_CARRIES = "no front end writes it"

NO_RULE = {
    "memref.": _MEMORY,  # not legal: `mlirml-opt` may be given it
    **dict.fromkeys(
        (
            "affine.dma_start", "affine.dma_wait", "affine.for", "affine.if", "affine.load", "affine.parallel",
            "affine.prefetch", "affine.store", "affine.vector_load", "affine.vector_store", "affine.yield",
        ),
        _MEMORY,
    ),
    **dict.fromkeys(
        (
            "scf.forall", "scf.forall.in_parallel", "scf.parallel", "scf.reduce", "scf.reduce.return",
            "tensor.parallel_insert_slice",
        ),
        _PARALLEL,
    ),
    **dict.fromkeys(("func.call", "func.call_indirect", "func.constant"), _CALLS),
    "scf.execute_region": "regions become kernels after the derivatives",
    **dict.fromkeys(
        (
            "tensor.bitcast", "tensor.concat", "tensor.gather", "tensor.generate", "tensor.reshape", "tensor.scatter",
            "tensor.splat", "tensor.rank", "tensor.yield",
        ),
        _TENSORS,
    ),
    **dict.fromkeys(
        (
            "affine.delinearize_index", "affine.linearize_index", "arith.addui_extended", "arith.convertf",
            "arith.flush_denormals", "arith.mulsi_extended", "arith.mului_extended", "arith.scaling_extf",
            "arith.scaling_truncf", "arith.subui_extended", "math.clampf", "math.ctlz", "math.cttz", "math.isnormal",
            "math.sincos",
        ),
        _CARRIES,
    ),
    **dict.fromkeys(
        (
            "linalg.batch_mmt4d", "linalg.mmt4d", "linalg.pack", "linalg.unpack", "linalg.softmax",
            "linalg.winograd_filter_transform", "linalg.winograd_input_transform", "linalg.winograd_output_transform",
        ),
        "layouts and kernels are chosen after the derivatives",
    ),
}  # fmt: skip
"""The reason for having no rule, by the name of an operation; a name that ends with a dot is a whole dialect's."""


def why_no_rule(name: str) -> str | None:
    """The reason why an operation has no rules, None for one that has."""
    return NO_RULE.get(name) or NO_RULE.get(f"{name.partition('.')[0]}.")
