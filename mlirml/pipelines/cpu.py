"""The recipe of the target `cpu`, from captured loops and tensors to the LLVM dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirml.pipelines.recipe import Recipe, recipe, step

if TYPE_CHECKING:
    from mlirml.targets.machine import Processor

RAISE = (
    "mlirml-promote-scalars",
    "mlirml-batch-dots",
    "mlirml-expand-rows",
    "mlirml-delinearise",
    "mlirml-convert-ifs",
    "mlirml-hoist-checks",
    "mlirml-raise",
    step("mlirml-recognise", only_raised=True),
)
"""Loops over elements become structured operations on tensors."""

CLEAN = ("canonicalize", "cse", "mlirml-forward-stores", "mlirml-promote-elements")

ALGEBRA = (
    "mlirml-fold-scales",
    "mlirml-move-scalings",
    "mlirml-reduce-products",
    "mlirml-factor-products",
    "mlirml-order-products",
    "mlirml-solve-inverses",
)
"""Rewrites of products of tensors, each of which tells what is exact in it."""

TO_LLVM = (
    # Index arithmetic of views is expanded while loops are one block each, not the many of `convert-scf-to-cf`.
    "expand-strided-metadata",
    "convert-scf-to-cf",
    "mlirml-lower-asserts",
    "lower-affine",
    "convert-vector-to-llvm",
    "convert-math-to-funcs",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    # Memrefs are left to `convert-to-llvm`: a pass for them alone would put casts around each, for the next to meet.
    step("convert-func-to-llvm", use_bare_ptr_memref_call_conv="1"),
    "convert-to-llvm",
    "reconcile-unrealized-casts",
    # A second iteration finds less than it takes to look, and LLVM finds it, too.
    step("canonicalize", max_iterations=1),
    "mlirml-annotate-loops",
    "mlirml-scope-buffers",
    "mlirml-lower-parallel",
    "mlirml-emit-entry",
)
"""From loops over memrefs to the LLVM dialect."""

LOWER = (
    "mlirml-lower-sort",
    "mlirml-lower-library-calls",
    "mlirml-lower-compactions",
    "mlirml-lower-host-calls",
    *TO_LLVM,
)


def stages(
    machine: Processor,
    math: str,
    checkpoint_bytes: int,
    *,
    lapack: bool,
    nontemporal: bool,
    exact: bool = False,
    libraries: tuple[str, ...] = (),
) -> Recipe:
    """The stages for a processor, a choice of `config.math`, and the bytes that a loop may keep for its derivative.

    With `lapack` programs call the LAPACK that NumPy is linked to; with `nontemporal` large results are stored past the
    cache; with `exact` no sums or products of floats are reassociated. Products may be those of `libraries`.
    """
    return recipe(
        **{
            "raise": [step("mlirml-choose-library", lapack=lapack), *raising(exact=exact)],
            "transform": ["mlirml-lower-lengths", "mlirml-stop-shifts", *expand(checkpoint_bytes)],
            "optimize": optimize(machine, exact=exact),
            "offload": [],
            "schedule": schedule(machine, nontemporal, exact=exact, libraries=libraries),
            "lower": [expand_math(math, machine), *check(), *LOWER, flush_denormals(machine)],
        }
    )


def raising(*, exact: bool = False) -> list[str]:
    """Loops over elements, and those that add up products of slices, as structured operations. With `exact` floats are
    not reassociated in the latter.
    """
    options: dict[str, Any] = {"exact": True} if exact else {}
    return [*RAISE, step("mlirml-sum-products", **options)]


def kernel_stages(machine: Processor, math: str) -> Recipe:
    """The stages that remain for kernels of contractions and convolutions, which are lowered apart from @main."""
    return recipe(
        schedule=["mlirml-outline-parallel"],
        lower=[expand_math(math, machine), *TO_LLVM, flush_denormals(machine)],
    )


def expand(checkpoint_bytes: int) -> list[str]:
    """Derivatives and batches; then index arithmetic becomes that of `arith`: they, and raising, read affine maps."""
    return ["mlirml-checkpoint", step("mlirml-expand", checkpoint_bytes=checkpoint_bytes), "mlirml-lower-affine"]


def algebra(*, exact: bool = False) -> list[str]:
    """Products of matrices in cheaper forms. With `exact` floats are not reassociated."""
    options: dict[str, Any] = {"exact": True} if exact else {}
    return [step(name, **options) for name in ALGEBRA]


def fuse(*, exact: bool = False, narrowing: bool = True, **options: Any) -> list[str]:
    """Algebra and fusion of operations on tensors; the options are those of `algebra`, of `mlirml-fold-contract` and of
    `mlirml-fuse`.
    """
    return [
        *algebra(exact=exact),
        "mlirml-fold-contract" if narrowing else step("mlirml-fold-contract", narrowing=False),
        "mlirml-widen-products",
        "mlirml-fuse-shifts",
        "mlirml-move-reshapes",
        "mlirml-hoist",
        step("mlirml-fuse", **options),
    ]


def optimize(machine: Processor, *, exact: bool = False) -> list[str]:
    """Fusion, with the loops that stay prepared for it; then blocks of what goes through one dimension together."""
    return [
        "mlirml-fold-ranges",
        "mlirml-unroll-windows",
        "mlirml-unroll-reductions",
        *CLEAN,
        "mlirml-expand-scalars",
        "mlirml-jam-loops",
        "mlirml-widen-extremes",
        "mlirml-move-gathers",
        *fuse(exact=exact, prologues=True, search=True),
        "mlirml-share-joins",
        "mlirml-jam-updates",
        "mlirml-widen-columns",
        "mlirml-recompute-elements",
        "mlirml-narrow-elements",
        step("mlirml-block-examples", processor=machine),
        "canonicalize",
        "mlirml-fold-guards",
        "mlirml-forward-inits",
        "cse",
        step("mlirml-skip-masked", processor=machine),
        "mlirml-recompute-masks",
        "mlirml-pack-slices",
    ]


def schedule(
    machine: Processor, nontemporal: bool, *, exact: bool = False, libraries: tuple[str, ...] = ()
) -> list[str]:
    """From tensors to loops over memrefs, and the calls of kernels; with `exact` factors are not distributed."""
    others: dict[str, Any] = {"libraries": libraries} if libraries else {}
    return [
        # Tensors, for the last time.
        step("mlirml-read-once", processor=machine),
        "mlirml-double-buffer",
        "mlirml-rotate-buffers",
        step("mlirml-fuse-attention", processor=machine),
        step("mlirml-schedule-contract", processor=machine, **others),
        "mlirml-schedule-loops",
        "mlirml-scalarize",
        "mlirml-buffer-stores",
        "mlirml-align-while",
        "mlirml-bufferize",
        # Structured operations and loops on memrefs.
        "mlirml-elide-copies",
        "mlirml-relax-floats",
        "mlirml-prove-parallel",
        "mlirml-split-loops",
        "mlirml-peel-loops",
        "mlirml-shorten-recurrences",
        "mlirml-carry-elements",
        *([] if exact else ["mlirml-distribute-factors"]),
        step("mlirml-jam-recurrences", processor=machine),
        "mlirml-widen-bools",
        step("mlirml-lower-contract", processor=machine, **others),
        step("mlirml-lower-conv", processor=machine),
        step("mlirml-tile-sweeps", processor=machine),
        step("mlirml-tile-rows", processor=machine),
        step("mlirml-lower-loops", processor=machine, copy_bytes=4096),
        # Loops.
        "mlirml-parallelize-loops",
        *([step("mlirml-stream-stores", processor=machine)] if nontemporal else []),
        *([] if exact else ["mlirml-widen-chains", step("mlirml-multiply-reciprocals", processor=machine)]),
        "mlirml-split-masked",
        step("mlirml-align-loops", processor=machine),
        "mlirml-share-buffers",
        step("mlirml-plan-buffers", slices=True),
        *([] if machine.has_avx512 else ["mlirml-narrow-conversions"]),
        "mlirml-outline-parallel",
        "mlirml-exit-loops",
        "mlirml-multiply-quotients",
        "mlirml-sink-operations",
        "mlirml-branch-blocks",
        "mlirml-outline-loops",
        "mlirml-split-function",
        step("mlirml-splice-loads", processor=machine),
        "mlirml-annotate-loops",
    ]


def check() -> list[str]:
    """Checks of indices and assertions: proven, made for many iterations together, collected."""
    return [
        "mlirml-inspect-indices",
        "mlirml-poll-signals",
        "mlirml-version-checks",
        "mlirml-collect-checks",
        "mlirml-fold-clamps",
        "mlirml-predict-selects",
    ]


def flush_denormals(machine: Processor) -> str:
    """The mode of the processor in which programs with derivatives compute."""
    name = "mlirml-flush-denormals"
    return name if machine.architecture == "x86_64" else step(name, processor=machine)


def expand_math(math: str, machine: Processor) -> str:
    """Elementary functions as arithmetic that the processor has, or as calls of glibc's vector functions."""
    return step("mlirml-expand-math", processor=machine, **({"libmvec": True} if math == "libmvec" else {}))
