"""Preconditions that passes share, and diagnostics for modules given to `mlirml-opt` that do not satisfy them.

The compiler's own front ends write every module that `compile` lowers, so a pass that fails on one has a bug.
`mlirml-opt` accepts any module: where a pass fails on one that violates a precondition below, the diagnostic names the
operation, for the user to correct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from mlirml.errors import InternalError, MlirmlError, ParseError, PreconditionError

if TYPE_CHECKING:
    from mlirml.ir.bindings import mlir

_BUFFERIZE = "mlirml-bufferize"


DYNAMIC = str(-(1 << 63))
"""Marks a size or an offset that is an operand."""


def check_dynamic_sizes(module: mlir.Operation) -> None:
    """Raise `ParseError` for an operation whose attributes declare a dynamic size for which it has no operand.

    MLIR's verifier does not check this, and its printer ends the process.
    """
    from mlirml.ir.bindings import mlir, operations
    from mlirml.ir.location import source_location

    for op in operations(module):
        names = [name if isinstance(name, str) else name.name for name in op.attributes]
        lists = [op.attributes[name] for name in names if name.startswith("static_")]
        wanted = sum(list(sizes).count(int(DYNAMIC)) for sizes in lists if isinstance(sizes, mlir.DenseI64ArrayAttr))
        given = sum(isinstance(operand.type, mlir.IndexType) for operand in op.operands)
        if wanted > given:
            raise ParseError(
                f"`{op.name}` has {DYNAMIC} for a size or an offset, which means an operand that it has not",
                location=source_location(op.location),
            )


def explained(error: MlirmlError, context: mlir.Context) -> MlirmlError:
    """The error of a pass as a `PreconditionError`, if the module that it failed on violates the preconditions of
    passes.
    """
    if not isinstance(error, InternalError) or error.before is None or error.pass_name is None:
        return error
    from mlirml.ir.bindings import parse
    from mlirml.ir.location import source_location

    try:
        module = parse(error.before, context)
    except Exception:
        return error
    found = next(unfit(module.operation, error.pass_name), None)
    if found is None:
        return error
    op, reason = found
    what = "the module" if op.name == "builtin.module" else f"`{op.name}`"
    return PreconditionError(
        f"{error.pass_name} is not made for this module: {what} {reason}",
        location=source_location(op.location),
        stage=error.stage,
        notes=tuple(note for note in error.notes if note.startswith("pass: ")),
    )


def unfit(module: mlir.Operation, pass_name: str) -> Iterator[tuple[mlir.Operation, str]]:
    """Operations that violate the preconditions of a pass, with the reason."""
    from mlirml.ir.bindings import operations

    pipelines = _pipelines_of(pass_name)
    level, removed = _level(pass_name, pipelines), _removed_before(pass_name, pipelines)
    yield from _unfit_functions(module, level)
    for op in operations(module):
        if op.name in ("builtin.module", "func.func"):
            continue
        reason = _unfit_operation(op, level) or removed(op.name)
        if not reason and pass_name == _BUFFERIZE and op.name == "scf.while" and not _is_aligned(op):
            reason = "has its arrays at different positions in one of its regions: run mlirml-align-while before"
        if reason:
            yield op, reason
        yield from ((op, why) for why in _unfit_attributes(op))


def _pipelines_of(pass_name: str) -> list[list[str]]:
    """The pipelines of the targets that run a pass, as names of steps."""
    from mlirml.targets.registry import portable_targets

    pipelines = [[step.name for step in target.pipeline.steps] for target in portable_targets()]
    return [steps for steps in pipelines if pass_name in steps]


def _level(pass_name: str, pipelines: list[list[str]]) -> str:
    """At which level of IR the pipelines run a pass: "tensor", "memref", "both" or "any"."""
    from mlirml.passes import REGISTRY

    levels = {
        "tensor" if steps.index(pass_name) <= steps.index(_BUFFERIZE) else "memref"
        for steps in pipelines
        if _BUFFERIZE in steps
    }
    if not levels:
        cls = REGISTRY.get(pass_name)
        return "tensor" if cls is not None and cls.__module__.startswith("mlirml.autodiff.") else "any"
    return levels.pop() if len(levels) == 1 else "both"


def _removed_before(pass_name: str, pipelines: list[list[str]]) -> Callable[[str], str]:
    """A function from an operation name to the reason why such operations cannot reach a pass: an earlier pass removes
    them.
    """
    from mlirml.dialects.legality import STAGES

    def reason(name: str) -> str:
        for contract in STAGES.values():
            remover = None if contract.allows(name) else contract.remover(name)
            if remover and pipelines and all(remover in _before(steps, pass_name) for steps in pipelines):
                return f"is not removed yet: run {remover} before"
        return ""

    return cache(reason)


def _before(steps: list[str], pass_name: str) -> list[str]:
    """The steps before the first that has a name."""
    return steps[: steps.index(pass_name)]


def _unfit_functions(module: mlir.Operation, level: str) -> Iterator[tuple[mlir.Operation, str]]:
    from mlirml.ir.bindings import block_ops, callee_of, mlir, operations

    called = {callee_of(op) for op in operations(module) if op.name == "func.call"}
    for op in block_ops(module.regions[0].blocks[0]):
        if op.name == "func.func":
            blocks = op.regions[0].blocks
            if not len(blocks) and "sym_visibility" not in op.attributes:
                yield op, "has no body"
            if len(blocks) > 1:
                yield op, "has several blocks: control flow must be structured"
            name = mlir.StringAttr(op.attributes["sym_name"]).value
            main = name == "main"
            for argument in blocks[0].arguments if len(blocks) else ():
                why = _unfit_type(argument.type) or _unfit_level(argument.type, level)
                if main and not isinstance(argument.type, mlir.ShapedType):
                    why = "and @main takes arrays only"
                elif main and isinstance(argument.type.element_type, mlir.IndexType):
                    why = "and @main takes integers of a fixed width"
                elif main and isinstance(argument.type.element_type, mlir.VectorType):
                    why = "and the elements of @main's arrays are numbers"
                if why:
                    yield op, f"has an argument of type {argument.type}, {why}"
            for kind in mlir.FunctionType(mlir.TypeAttr(op.attributes["function_type"]).value).results if main else ():
                if not isinstance(kind, mlir.ShapedType):
                    yield op, f"has a result of type {kind}, and @main returns arrays only"
            if level != "any" and not main and name not in called:
                yield op, "is not called from @main"
        yield from ((op, why) for why in _unfit_attributes(op))


# Operations that may have results of dynamic sizes: slices of arrays of static sizes, and what is computed of them.
_MAKERS = ("tensor.empty", "tensor.cast", "tensor.generate", "memref.alloc", "memref.alloca", "memref.cast")
_ELEMENT_TYPES = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")


def _unfit_operation(op: mlir.Operation, level: str) -> str:
    from mlirml.ir.bindings import mlir

    if level != "any" and not _is_known(op.name):
        return "is no operation of the stages before code generation"
    values = [*op.operands, *op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)]
    for value in values:
        why = _unfit_level(value.type, level) or _unfit_type(value.type, sized=op.name in _MAKERS)
        if why:
            return f"is on a {value.type}, {why}"
    why = _unfit_request(op)
    if why:
        return why
    if op.name == "mlirml.vmap" and "size" in op.attributes:
        size = mlir.IntegerAttr(op.attributes["size"]).value
        if list(op.results[0].type.shape)[:1] != [size]:
            return f"has size {size}, and its result is a {op.results[0].type}"
    if op.name == "linalg.copy" and not isinstance(op.operands[0].type, mlir.ShapedType):
        return f"copies a {op.operands[0].type}, which is no array: write linalg.fill"
    return _unfit_order(op)


def _unfit_order(end: mlir.Operation) -> str:
    """The reason if the start marker of a request comes after this end marker of it."""
    from mlirml.autodiff.requests import OPENS
    from mlirml.ir.bindings import block_ops

    name = OPENS.get(end.name)
    if name is None or "group" not in end.attributes:
        return ""
    ops = block_ops(end.block)
    later = [op for op in ops[ops.index(end) + 1 :] if op.name == name and "group" in op.attributes]
    begins = any(op.attributes["group"] == end.attributes["group"] for op in later)
    return f"ends a request that begins after it, with `{name}`" if begins else ""


def _is_aligned(loop: mlir.Operation) -> bool:
    """True if the operands, the condition's arguments and the yielded values of an `scf.while` agree in type at each
    position.
    """
    from mlirml.ir.bindings import block_ops

    before, after = (block_ops(region.blocks[0])[-1] for region in loop.regions)
    first, passed, yielded = ([v.type for v in values] for values in (loop.operands, before.operands, after.operands))
    return bool(first == passed[1:] == yielded) and _passes_arguments(loop)


def _passes_arguments(loop: mlir.Operation) -> bool:
    """True if the condition passes on each array, or a value computed from it, at the array's own position."""
    from mlirml.ir.bindings import block_ops, mlir

    block = loop.regions[0].blocks[0]
    arguments = list(block.arguments)
    for number, value in enumerate(list(block_ops(block)[-1].operands)[1:]):
        if value in arguments and isinstance(value.type, mlir.ShapedType) and value != arguments[number]:
            return False
    return True


def _unfit_level(type_: mlir.Type, level: str) -> str:
    text = str(type_)
    if level == "memref" and text.startswith("tensor<"):
        return "and the pass runs after bufferization"
    if level == "tensor" and text.startswith("memref<"):
        return "and the pass runs before bufferization"
    if level == "tensor" and "vector<" in text:
        return "and the pass runs before code generation, which makes vectors"
    return ""


def _is_known(name: str) -> bool:
    from mlirml.dialects.legality import STAGES

    return any(contract.allows(name) for stage, contract in STAGES.items() if stage != "lower")


def _unfit_type(type_: mlir.Type, *, sized: bool = True) -> str:
    from mlirml.ir.bindings import mlir

    if isinstance(type_, (mlir.UnrankedTensorType, mlir.UnrankedMemRefType)):
        return "whose rank is not known"
    if isinstance(type_, (mlir.RankedTensorType, mlir.MemRefType, mlir.VectorType)):
        if sized and not type_.has_static_shape:
            return "whose size is not static"
        return _unfit_element(type_.element_type)
    if isinstance(type_, mlir.ComplexType):
        return "and complex numbers are pairs of floats here"
    return ""


def _unfit_element(type_: mlir.Type) -> str:
    from mlirml.ir.bindings import mlir

    text = str(type_)
    if isinstance(type_, (mlir.IndexType, mlir.VectorType)) or text in _ELEMENT_TYPES or text.startswith("!llvm.ptr"):
        return ""
    return f"and {text} is no element type here"


@cache
def _wanted() -> dict[str, tuple[tuple[str, ...], int]]:
    """The attributes that operations of the dialect must have, and the rank of their arrays, 0 for any."""
    from mlirml.dialects.mlirml import SORTS
    from mlirml.ir.compactions import COMPACTIONS
    from mlirml.ir.library_calls import LIBRARY_CALLS

    sorts: dict[str, tuple[tuple[str, ...], int]] = dict.fromkeys(SORTS, (("kind", "descending"), 2))
    values = dict.fromkeys(("mlirml.host_value", "mlirml.host_result"), (("kind",), 0))
    return {**sorts, **values, **dict.fromkeys((*LIBRARY_CALLS, *COMPACTIONS), (("kind",), 0))}


def _unfit_request(op: mlir.Operation) -> str:
    names, rank = _wanted().get(op.name, ((), 0))
    missing = next((name for name in names if name not in op.attributes), None)
    if missing is not None:
        return f"has no attribute `{missing}`"
    if rank and any(operand.type.rank != rank for operand in op.operands):
        return f"is on arrays of another number of dimensions than {rank}"
    return ""


# What the attributes of the dialect that passes read must be.
_ATTRIBUTES = {
    "mlirml.writebacks": "DenseI64ArrayAttr", "mlirml.donated": "DenseI64ArrayAttr",
    "mlirml.order": "DenseI64ArrayAttr", "mlirml.inputs": "ArrayAttr",
    "mlirml.outputs": "ArrayAttr", "mlirml.kernels": "ArrayAttr", "mlirml.workspace": "IntegerAttr",
    "mlirml.host_workspace": "IntegerAttr", "mlirml.parallel": "UnitAttr", "mlirml.in_place": "DenseI64ArrayAttr",
    "mlirml.schedule": "DictAttr", "mlirml.grain": "IntegerAttr", "mlirml.span": "IntegerAttr",
    "mlirml.check": "IntegerAttr", "mlirml.check_base": "IntegerAttr",
}  # fmt: skip


def _unfit_attributes(op: mlir.Operation) -> Iterator[str]:
    for name in op.attributes:
        name = name if isinstance(name, str) else name.name
        wanted = _ATTRIBUTES.get(name)
        if wanted is None:
            continue
        try:
            found = op.attributes[name]
        except TypeError:  # the bindings know no array of such elements
            yield f"has `{name}`, which should be a {wanted.removesuffix('Attr')}"
            continue
        if type(found).__name__ != wanted:
            yield f"has `{name} = {found}`, which should be a {wanted.removesuffix('Attr')}"
