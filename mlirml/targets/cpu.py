"""The target `cpu`: code for the processor of this process, by way of LLVM."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mlirml.analysis.costs import Costs
from mlirml.core.config import config
from mlirml.errors import TargetError
from mlirml.pipelines.cpu import kernel_stages, stages
from mlirml.runtime import HAS_BLAS, HAS_LAPACK
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.runtime.sized_program import SizedProgram
from mlirml.targets.llvm.early_kernels import Ahead, Waiting
from mlirml.targets.machine import Processor, has_libmvec, processor
from mlirml.targets.target import Target, target

if TYPE_CHECKING:
    from mlirml.ir.bindings import mlir
    from mlirml.passes import Pipeline
    from mlirml.targets.llvm.codegen import CodegenOptions, ObjectBuilder


@target("cpu", forms=("llvm", "asm"))
def cpu_target() -> Target:
    """The target for this machine, with the elementary functions of `config.math`. Imports neither MLIR nor llvmlite.

    Raises `TargetError` where glibc's vector functions are asked for and not there.
    """
    if config.math == "libmvec" and not (has_libmvec() and processor().architecture == "x86_64"):
        raise TargetError(
            "config.math is 'libmvec', but this machine has no vector functions of glibc 2.35 or newer",
            help="leave `config.math` at 'builtin'",
        )
    exact = config.algebra == "exact"
    libraries = tuple(name for name in config.libraries if name == "openblas" and HAS_BLAS)
    return target_with(
        config.math, config.checkpoint_bytes, processor(), lapack=HAS_LAPACK, exact=exact, libraries=libraries,
        costs=chosen_costs(),
    )  # fmt: skip


def chosen_costs() -> Costs | None:
    """The costs that `mlirml machine` has measured on this processor, if `config.costs` asks for them and it has."""
    if config.costs != "measured" or config.processor != "host":
        return None
    from mlirml.targets.measured import measured_machine
    from mlirml.targets.measured_costs import costs_of

    found = measured_machine(config.threads or len(os.sched_getaffinity(0)))
    return None if found is None else costs_of(found)


@cache
def target_with(
    math: str,
    checkpoint_bytes: int,
    machine: Processor,
    *,
    lapack: bool = False,
    exact: bool = False,
    libraries: tuple[str, ...] = (),
    costs: Costs | None = None,
) -> Target:
    """The target for a processor, a choice of `config.math`, and what loops may keep for gradients.

    With `lapack` programs call the LAPACK that NumPy is linked to; without, all code is our own. With `exact` no sums
    or products of floats are reassociated. Products whose schedule says so are those of `libraries`.
    """
    nontemporal = machine.architecture == "x86_64"
    return Target(
        name="cpu",
        sized=partial(sized_target, math, checkpoint_bytes, machine, exact=exact),
        stages=stages(
            machine, math, checkpoint_bytes, lapack=lapack, nontemporal=nontemporal, exact=exact, libraries=libraries
        ),
        codegen=partial(codegen, machine=machine),
        depends_on=machine.key_entries(),
        ahead=Ahead("mlirml-lower-loops", lambda: kernel_pipeline(math, machine), partial(begin_kernels, machine)),
        processor=machine,
        forms={"llvm": to_llvm_ir, "asm": partial(to_assembly, machine=machine)},
        costs=costs,
    )


@cache
def sized_target(math: str, checkpoint_bytes: int, machine: Processor, *, exact: bool = False) -> Target:
    """The target for programs of dynamic sizes."""
    from mlirml.pipelines.sized import sized_stages

    return Target(
        name="cpu",
        stages=sized_stages(machine, math, checkpoint_bytes, exact=exact),
        codegen=partial(codegen, machine=machine),
        depends_on=machine.key_entries(),
        open=SizedProgram,
        processor=machine,
        forms={"llvm": to_llvm_ir, "asm": partial(to_assembly, machine=machine)},
    )


@cache
def kernel_pipeline(math: str, machine: Processor) -> Pipeline:
    """The pipeline of the kernels that are lowered apart from @main."""
    from mlirml.passes import Pipeline, stage

    return Pipeline(tuple(stage(name, steps) for name, steps in kernel_stages(machine, math)))


def codegen_options(machine: Processor, **options: Any) -> CodegenOptions:
    """The options of LLVM for a processor."""
    from mlirml.targets.llvm.codegen import CodegenOptions

    return CodegenOptions(processor=machine, **options)


def begin_kernels(machine: Processor, modules: Iterable[Waiting]) -> ObjectBuilder:
    """Begin to make code of kernels, module by module; `codegen` ends it."""
    from mlirml.targets.llvm.codegen import ObjectBuilder

    builder = ObjectBuilder()
    try:
        for kernels in modules:
            options = codegen_options(machine, exports=kernels.exports)
            builder.add_on_demand(kernels.text, kernels.lowered, options)
    except BaseException:
        builder.abandon()
        raise
    return builder


def codegen(module: Any, builder: ObjectBuilder | None = None, *, machine: Processor | None = None) -> Artifact:
    """Machine code of a module after stage `lower`, and of the kernels that `builder` has begun with.

    The code is for `machine`, or for the processor that `config.processor` names.
    """
    from mlirml.codegen.math.libmvec import SYMBOLS
    from mlirml.pipelines.llvm.emit_entry import ENTRY, entry_function
    from mlirml.targets.llvm.codegen import ObjectBuilder

    operation = getattr(module, "operation", module)
    call = signature(entry_function(operation))
    options = codegen_options(machine or processor(), externals=SYMBOLS)
    builder = builder or ObjectBuilder()
    builder.add(operation, options)
    return Artifact(object=builder.finish(options), entry=ENTRY, **call)


def to_llvm_ir(module: Any) -> str:
    """The LLVM IR of a module after stage `lower`."""
    from mlirml.targets.llvm.codegen import to_llvm_ir

    return to_llvm_ir(module)


def to_assembly(module: Any, machine: Processor | None = None) -> str:
    """The assembly text of a module after stage `lower`, for `machine` or the processor of `config.processor`."""
    from mlirml.targets.llvm.codegen import to_assembly

    return to_assembly(module, codegen_options(machine or processor()))


def signature(function: mlir.Operation) -> dict[str, Any]:
    """The fields of an artifact that describe the arrays of a call, from the attributes of its function."""
    attributes = function.attributes
    return {
        "inputs": tuple(buffer(found.value) for found in attributes["mlirml.inputs"]),
        "outputs": tuple(buffer(found.value) for found in attributes["mlirml.outputs"]),
        "workspace_bytes": attributes["mlirml.workspace"].value,
        "workspace_terms": terms(attributes, "mlirml.workspace_terms"),
        "work_terms": terms(attributes, "mlirml.work_terms"),
        "in_place": tuple(attributes["mlirml.in_place"]) if "mlirml.in_place" in attributes else (),
    }


def buffer(tensor_type: mlir.Type) -> Buffer:
    """The record of a tensor type."""
    name = str(tensor_type.element_type)
    shape = (-1 if tensor_type.is_dynamic_dim(d) else n for d, n in enumerate(tensor_type.shape))
    return Buffer("bool" if name == "i1" else name, tuple(shape))


def terms(attributes: Any, name: str) -> tuple[tuple[int, ...], ...]:
    """The terms of an attribute; a program without dynamic sizes has none."""
    found = tuple(attributes[name]) if name in attributes else ()
    return tuple(tuple(term) for term in found)
