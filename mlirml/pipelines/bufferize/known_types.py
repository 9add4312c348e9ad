"""Known types: spare upstream's bufferization the inference of memref types through long chains of loops and branches.

For the type of a loop-carried value upstream asks both the init and the yielded value, which lead to the previous loop
or branch: in a loop whose body has n of them in sequence, that takes exponential time. For the result of a call it
needs only the signature of the function.

Before:
    %1 = scf.for ... iter_args(%a = %0) -> (tensor<9xf32>) {...}
    %2 = scf.for ... iter_args(%a = %1) -> (tensor<9xf32>) {...}
After:
    %same = func.call @mlirml_known_type_0(%1) : (tensor<9xf32>) -> tensor<9xf32>
    %2 = scf.for ... iter_args(%a = %same) -> (tensor<9xf32>) {...}

where the function returns its argument. The calls are erased after bufferization.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlirml.analysis.traits import BRANCHES, SEQUENTIAL_LOOPS, TENSOR_STORES
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, callee_of, defining_op, mlir, named_operations, operations, replace_op

FEW = 3
"""The number of loops and branches in a body up to which the inference is fast."""
_NAME = "mlirml_known_type_"
_FRESH = ("tensor.empty", "bufferization.alloc_tensor", "arith.constant")


def state_types(main: mlir.Operation) -> None:
    """Pass inits of loops, and tensors that branches capture, through calls in loop bodies with many of them."""
    functions: dict[mlir.Type, str] = {}
    contiguous = Contiguous()
    for members in _crowded(main):
        for op in members:
            values = op.operands if op.name in SEQUENTIAL_LOOPS else _captured(op)
            for value in dict.fromkeys(values):
                if isinstance(value.type, mlir.RankedTensorType) and contiguous.holds(value):
                    _pass_through_call(main, op, value, functions)
    for kind, name in functions.items():
        _add_identity(main, kind, name)


def _crowded(main: mlir.Operation) -> Iterator[list[mlir.Operation]]:
    """The loops and branches with tensor results, for each block in a loop that has many of them."""
    found: dict[mlir.Block, list[mlir.Operation]] = {}
    for op in named_operations(main, (*SEQUENTIAL_LOOPS, *BRANCHES)):
        if any(isinstance(result.type, mlir.RankedTensorType) for result in op.results):
            found.setdefault(op.block, []).append(op)
    for block, members in found.items():
        if len(members) > FEW and _is_in_loop(block):
            yield members


def _is_in_loop(block: mlir.Block) -> bool:
    op = block.owner.operation
    while op.name not in ("func.func", *SEQUENTIAL_LOOPS):
        op = op.parent.operation
    return op.name in SEQUENTIAL_LOOPS


def _captured(branch: mlir.Operation) -> list[mlir.Value]:
    """The captured tensors of a branch that have the type of one of its results."""
    result_types = {result.type for result in branch.results}
    nested = set(operations(branch))
    found = []
    for op in nested:
        for value in op.operands:
            owner = defining_op(value)
            owner = value.owner.owner.operation if owner is None else owner
            if value.type in result_types and owner not in nested:
                found.append(value)
    return found


def _pass_through_call(
    main: mlir.Operation, op: mlir.Operation, value: mlir.Value, functions: dict[mlir.Type, str]
) -> None:
    name = functions.setdefault(value.type, f"{_NAME}{len(functions)}")
    with op.location, mlir.InsertionPoint(op):
        callee = {"callee": mlir.FlatSymbolRefAttr.get(name)}
        same = emit.create("func.call", [value], [value.type], callee).results[0]
    for user in [op] if op.name in SEQUENTIAL_LOOPS else operations(op):
        for number, operand in enumerate(user.operands):
            if operand == value:
                user.operands[number] = same


def _add_identity(main: mlir.Operation, type_: mlir.Type, name: str) -> None:
    """Add a function that returns its argument."""
    signature = mlir.FunctionType.get([type_], [type_])
    attributes = {
        "sym_name": mlir.StringAttr.get(name),
        "sym_visibility": mlir.StringAttr.get("private"),
        "function_type": mlir.TypeAttr.get(signature),
    }
    with main.location, mlir.InsertionPoint(main):
        function = emit.create("func.func", (), (), attributes, regions=1)
        block = emit.block(function, [type_])
        with mlir.InsertionPoint(block):
            emit.create("func.return", list(block.arguments))


def drop_calls(module: mlir.Operation) -> None:
    """Erase the calls and the functions."""
    for call in named_operations(module, ("func.call",)):
        if callee_of(call).startswith(_NAME):
            replace_op(call, call.operands[0])
    for function in block_ops(module.regions[0].blocks[0]):
        if function.name == "func.func" and mlir.StringAttr(function.attributes["sym_name"]).value.startswith(_NAME):
            function.erase()


class Contiguous:
    """The tensors that become memrefs with contiguous elements, as arguments of functions do."""

    def __init__(self) -> None:
        self.known: set[mlir.Value] = set()

    def holds(self, value: mlir.Value) -> bool:
        """True if the buffer of a value is that of an argument, or allocated for it."""
        seen, waiting = set(), [value]
        while waiting:
            value = waiting.pop()
            if value in seen or value in self.known:
                continue
            seen.add(value)
            sources = sources_of(value)
            if sources is None:
                return False
            waiting += sources
        self.known |= seen
        return True


def sources_of(value: mlir.Value) -> list[mlir.Value] | None:
    """The values whose buffer a value may share; none for an argument or an allocation; None if unknown."""
    op = defining_op(value)
    if op is None:
        block = value.owner
        parent, number = block.owner.operation, mlir.BlockArgument(value).arg_number
        if parent.name == "func.func":
            return []
        if parent.name == "scf.for":
            return [parent.operands[number + 2], block_ops(block)[-1].operands[number - 1]]
        if parent.name == "scf.while":
            before, after = (region.blocks[0] for region in parent.regions)
            if block == after:
                return [block_ops(before)[-1].operands[number + 1]]
            return [parent.operands[number], block_ops(after)[-1].operands[number]]
        return None
    number = list(op.results).index(value)
    if op.name in _FRESH:
        return []
    if op.name == "scf.for":
        return [op.operands[number + 3], block_ops(op.regions[0].blocks[0])[-1].operands[number]]
    if op.name == "scf.while":
        return [block_ops(op.regions[0].blocks[0])[-1].operands[number + 1]]
    if op.name in BRANCHES:
        return [block_ops(block)[-1].operands[number] for region in op.regions for block in region.blocks]
    if op.name in TENSOR_STORES:
        return [op.operands[1]]
    if op.name.startswith("linalg."):
        return [op.operands[len(op.operands) - len(op.results) + number]]
    if op.name == "func.call" and callee_of(op).startswith(_NAME):
        return [op.operands[0]]
    if op.name == "bufferization.to_tensor":
        kind = op.operands[0].type
        return [] if kind == mlir.MemRefType.get(kind.shape, kind.element_type) else None
    return None
