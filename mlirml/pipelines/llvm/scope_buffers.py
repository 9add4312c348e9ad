"""Scope buffers: alias scopes tell LLVM which slices of the workspace do not overlap, in loops with dynamic offsets.

Before:
    llvm.func @main(%x: !llvm.ptr, %workspace: !llvm.ptr) attributes {mlirml.slices = array<i64: 1, 0, 64, 64, 64>} {
      ...
      %b = llvm.getelementptr %workspace[64] : (!llvm.ptr) -> !llvm.ptr, i8
      %i = llvm.load %p : !llvm.ptr -> i64
      %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
      %e = llvm.load %q : !llvm.ptr -> f64
      llvm.store %e, %r : f64, !llvm.ptr                        // in the first slice of the workspace
After:
      %e = llvm.load %q {alias_scopes = [#b], noalias_scopes = [#a]} : !llvm.ptr -> f64
      llvm.store %e, %r {alias_scopes = [#a], noalias_scopes = [#b]} : f64, !llvm.ptr

If all offsets are static, the vectorizer compares addresses; an element whose index is loaded might be anywhere in the
workspace, and if slices of tensors start at offsets that outer loops compute, the vectorizer gives up, too, or compares
all of them in each iteration of these loops; and if an element is loaded from the same address in each iteration, it
takes the stores of the loop to depend on it. `mlirml.slices` contains the index of the workspace argument of @main, and
the offset and size of each slice; slices that reuse the same memory do overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlirml.ir.bindings import block_ops, callee_of, defining_op, mlir
from mlirml.passes import Pass, register
from mlirml.pipelines.memref.plan_buffers import SLICES

_ACCESSES = {"llvm.load": 0, "llvm.store": 1}
_GEP = "llvm.getelementptr"
_CONSTANT = "llvm.mlir.constant"
_ARITHMETIC = (_GEP, "llvm.add", "llvm.sub", "llvm.mul", "llvm.shl")
_DYNAMIC = -(1 << 31)

Named = Sequence[tuple[str, mlir.Operation]]
"""Operations with their names, which would be slow to get repeatedly."""


@register(when=("#mlirml.slices",))
class ScopeBuffersPass(Pass):
    """Add alias scopes to loads and stores of the workspace."""

    def run(self, module: mlir.Operation) -> None:
        for main in block_ops(module.regions[0].blocks[0]):
            if SLICES not in main.attributes:
                continue
            number, *numbers = mlir.DenseI64ArrayAttr(main.attributes[SLICES])
            del main.attributes[SLICES]
            sizes: dict[int, int] = {}
            for offset, size in zip(numbers[::2], numbers[1::2], strict=True):
                sizes[offset] = max(size, sizes.get(offset, 0))
            if len(sizes) > 1:
                for function, workspace in with_workspace(module, main, number):
                    for block in function.regions[0].blocks:
                        add_scopes(block, workspace, sizes)


def with_workspace(
    module: mlir.Operation, main: mlir.Operation, number: int
) -> Iterator[tuple[mlir.Operation, mlir.Value]]:
    """The functions that have the workspace as an argument, and the argument."""
    functions = {
        mlir.StringAttr(op.attributes["sym_name"]).value: op
        for op in block_ops(module.regions[0].blocks[0])
        if op.name == "llvm.func" and len(op.regions[0].blocks)
    }
    workspace = main.regions[0].blocks[0].arguments[number]
    yield main, workspace
    done: set[str] = set()
    for use in workspace.uses:
        call = use.owner.operation
        name = callee_of(call) if call.name == "llvm.call" else ""
        if name in functions and name not in done:
            done.add(name)
            yield functions[name], functions[name].regions[0].blocks[0].arguments[use.operand_number]


def add_scopes(block: mlir.Block, workspace: mlir.Value, sizes: Mapping[int, int]) -> None:
    """Add alias scopes to the accesses of a block, if LLVM would not find out itself that they are apart."""
    ops = [(op.name, op) for op in block_ops(block)]
    accesses = [(name, op) for name, op in ops if name in _ACCESSES]
    if len(accesses) < 2:
        return
    if not (loads_by_loaded_index(ops) or has_dynamic_offset(ops, block) or loads_one_element(accesses, block)):
        return
    found: list[tuple[mlir.Operation, int]] = []
    for name, op in accesses:
        offset = slice_of(op.operands[_ACCESSES[name]], workspace)
        if offset is not None and offset in sizes:
            found.append((op, offset))
    offsets = sorted({offset for _, offset in found})
    if len(offsets) < 2:
        return
    scopes = dict(zip(offsets, new_scopes(len(offsets))))
    for op, offset in found:
        apart = [o for o in offsets if o + sizes[o] <= offset or offset + sizes[offset] <= o]
        op.attributes["alias_scopes"] = mlir.ArrayAttr.get([scopes[offset]])
        if apart:
            op.attributes["noalias_scopes"] = mlir.ArrayAttr.get([scopes[o] for o in apart])


def loads_by_loaded_index(ops: Named) -> bool:
    """True if the address of a load depends on the result of a load in the same block."""
    read: set[mlir.Value] = set()
    for name, op in ops:
        depends = bool(read) and any(operand in read for operand in op.operands)
        if name == "llvm.load" and depends:
            return True
        if name == "llvm.load" or depends:
            read.update(op.results)
    return False


def has_dynamic_offset(ops: Named, block: mlir.Block) -> bool:
    """True if an address depends on an integer that is computed outside of the block, such as the start of a slice."""
    moved: dict[mlir.Value, bool] = {}
    for name, op in ops:
        if name in _ACCESSES and moved.get(op.operands[_ACCESSES[name]]):
            return True
        if name in _ARITHMETIC:
            for x in op.operands:
                if x not in moved:
                    moved[x] = _is_computed_outside(x, block)
                if moved[x]:
                    moved.update(dict.fromkeys(op.results, True))
                    break
    return False


def loads_one_element(accesses: Named, block: mlir.Block) -> bool:
    """True if a block stores something, and loads from an address that is computed outside of it."""
    stores = any(name == "llvm.store" for name, _ in accesses)
    return stores and any(name == "llvm.load" and _is_from_outside(op.operands[0], block) for name, op in accesses)


def _is_from_outside(value: mlir.Value, block: mlir.Block) -> bool:
    """True if a value is the result of an operation of another block."""
    op = defining_op(value)
    return op is not None and op.block != block


def _is_computed_outside(value: mlir.Value, block: mlir.Block) -> bool:
    """True if an integer is computed in another block, and is not a constant."""
    op = defining_op(value)
    return isinstance(value.type, mlir.IntegerType) and op is not None and op.block != block and op.name != _CONSTANT


def slice_of(pointer: mlir.Value, workspace: mlir.Value) -> int | None:
    """The offset of the slice of the workspace that a pointer points into; None for other pointers.

    The slice at offset 0 is the workspace itself.
    """
    while pointer != workspace:
        op = defining_op(pointer)
        if op is None or op.name != _GEP:
            return None
        indices = list(mlir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))
        if op.operands[0] == workspace and str(op.attributes["elem_type"]) == "i8":
            return indices[0] if len(indices) == 1 and indices[0] != _DYNAMIC else None
        pointer = op.operands[0]
    return 0


def new_scopes(count: int) -> list[mlir.Attribute]:
    """New scopes of a new domain."""

    domain = "#llvm.alias_scope_domain<id = distinct[0]<>>"
    text = (f"#llvm.alias_scope<id = distinct[{n + 1}]<>, domain = {domain}>" for n in range(count))
    return list(mlir.ArrayAttr(mlir.Attribute.parse(f"[{', '.join(text)}]")))
