"""The values that operations use, in their regions too, and the positions of uses in a block.

The `operands` of an operation are only its direct ones: a gather reads its source in its body.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from mlirml.ir.bindings import defining_op, mlir, operations
from mlirml.ir.c_api import has_captures

T = TypeVar("T", bound=Hashable)


def is_tensor(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.RankedTensorType)


def is_static_tensor(value: mlir.Value) -> bool:
    return is_tensor(value) and value.type.has_static_shape


def element_type(type_: mlir.Type) -> mlir.Type:
    """The scalar type of a tensor type; any other type unchanged."""
    return type_.element_type if isinstance(type_, mlir.RankedTensorType) else type_


def is_defined_before(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value that is used in the block of `op` is defined before `op`."""
    owner = defining_op(value)
    return owner is None or owner.block != op.block or owner.is_before_in_block(op)


def operands_of(value: mlir.Value) -> Sequence[mlir.Value]:
    """The operands of the operation that computes a value; none for an argument of a block."""
    op = defining_op(value)
    return op.operands if op is not None else ()


def used_values(op: mlir.Operation) -> list[mlir.Value]:
    """The values that an operation uses: its operands, then those of the operations in its regions, local ones too."""
    found = list(op.operands)
    if len(op.regions):
        nested = operations(op)
        next(nested)
        for inner in nested:
            found += inner.operands
    return found


def outer_values(op: mlir.Operation) -> dict[mlir.Value, None]:
    """The values from outside that an operation uses, in its regions too, each once, in order."""
    found = dict.fromkeys(op.operands)
    found.update(captured_values(op))
    return found


def outer_variables(op: mlir.Operation) -> dict[mlir.Value, None]:
    """The values from outside that an operation uses, in its regions too; of constants only its operands."""
    found = dict.fromkeys(op.operands)
    if len(op.regions) and has_captures(op):  # most regions of structured operations have none, which is soon known
        found.update(captured_values(op))
    return found


def captured_values(op: mlir.Operation) -> dict[mlir.Value, None]:
    """The values from outside that the regions of an operation use, each once, in order."""
    own: set[mlir.Value] = set()
    used: dict[mlir.Value, None] = {}
    if len(op.regions):
        for inner in operations(op):
            for region in inner.regions:
                for block in region.blocks:
                    own.update(block.arguments)
            if inner != op:
                own.update(inner.results)
                used.update(dict.fromkeys(inner.operands))
    return {value: None for value in used if value not in own}


def uses_any(op: mlir.Operation, values: Iterable[mlir.Value]) -> bool:
    """True if an operation uses one of some values, in its regions too."""
    wanted = values if isinstance(values, set | frozenset | dict) else set(values)
    return any(value in wanted for value in used_values(op))


def depends_on(value: mlir.Value, sources: Iterable[mlir.Value]) -> bool:
    """True if a value is one of some values, or computed from one by operations, in their regions too."""
    wanted, todo, seen = set(sources), [value], set[mlir.Value]()
    while todo:
        found = todo.pop()
        if found in wanted:
            return True
        op = defining_op(found)
        if op is not None and found not in seen:
            seen.add(found)
            todo += used_values(op)
    return False


def walk(root: T, parts: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """A value and what it is computed from, each once, depth first; `parts` are what one is computed from directly.

    Programs use values twice, many times in a row: visiting a value once for each path to it would never end.
    """
    todo, visited = [root], set[T]()
    while todo:
        one = todo.pop()
        if one not in visited:
            visited.add(one)
            yield one
            todo += reversed(list(parts(one)))


def operands_first(root: T, parts: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """A value and what it is computed from, each once, after its own parts, which are asked for before them.

    Functions that recurse over operands break down for chains of many hundred operations: Python limits its stack.
    """
    todo, visited = [(root, False)], set[T]()
    while todo:
        one, is_ready = todo.pop()
        if is_ready:
            yield one
        elif one not in visited:
            visited.add(one)
            todo.append((one, True))
            todo += [(part, False) for part in reversed(list(parts(one)))]


def combined(value: mlir.Value, name: str) -> list[mlir.Value]:
    """The values that operations of a name combine, each once, in order: the parts of `a and b and c`."""

    def parts(one: mlir.Value) -> Iterable[mlir.Value]:
        op = defining_op(one)
        return op.operands if op is not None and op.name == name else ()

    return [one for one in walk(value, parts) if not parts(one)]


def agree(one: T, other: T, compared: Callable[[T, T], Iterable[tuple[T, T]] | None]) -> bool:
    """True if two values are computed in the same way. `compared` returns what must agree too; None if they differ."""
    todo, visited = [(one, other)], set[tuple[T, T]]()
    while todo:
        pair = todo.pop()
        if pair not in visited:
            visited.add(pair)
            more = compared(*pair)
            if more is None:
                return False
            todo += more
    return True


def ancestor_in(op: mlir.Operation, block: mlir.Block) -> mlir.Operation | None:
    """The ancestor of `op` (or `op` itself) that is in a block; None if there is none."""
    while op.name != "func.func":
        if op.block == block:
            return op
        parent = op.parent
        if parent is None:
            return None
        op = parent.operation
    return None


def has_one_use(value: mlir.Value) -> bool:
    """True if a value is an operand exactly once."""
    return sum(1 for _ in value.uses) == 1


def is_before(user: mlir.Operation, op: mlir.Operation) -> bool:
    """True if `user`, or its ancestor in the block of `op`, comes before `op`."""
    around = ancestor_in(user, op.block)
    return around is not None and around != op and around.is_before_in_block(op)


def is_within(op: mlir.Operation, ancestor: mlir.Operation) -> bool:
    """True if `op` is nested in `ancestor`."""
    parent = op.parent
    while parent is not None:
        if parent.operation == ancestor:
            return True
        parent = parent.operation.parent
    return False
