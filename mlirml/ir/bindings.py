"""Access to the MLIR Python bindings: contexts, parsing, printing, walks over IR."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mlirml.errors import PreconditionError
from mlirml.ir.dialect import DIALECT
from mlirml.ir.location import source_location
from mlirml.ir.upstream import irdl, linalg, llvm, mlir, passmanager, rewrite

__all__ = [
    "block_ops", "callee_of", "clone_with", "defining_op", "has_function", "has_op", "irdl", "lent_context",
    "linalg", "llvm", "main_function", "make_context", "mlir", "named_function", "named_operations", "operations",
    "parse", "passmanager", "ready_managers", "rewrite", "seen_through", "set_function_type", "to_text",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Classes of a dialect, for `from mlirml.ir import arith` in code that matches on them."""
    if name.startswith("__"):  # each import from here asks for `__path__`
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"torch_mlir.dialects.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


DIALECTS = (
    "affine", "arith", "bufferization", "cf", "complex", "func", "gpu", "index", "irdl", "linalg", "llvm", "math",
    "memref", "scf", "tensor", "ub", "vector",
)  # fmt: skip
"""The dialects whose operations are created by name."""


def make_context() -> mlir.Context:
    """A context with the mlirml dialect and `DIALECTS` loaded; others are when something is parsed or a pass runs.

    All dialects would take three times as long, and canonicalize longer with each. Threads are off: a verifier written
    in Python hangs with them (llvm-project #215781).
    """
    context = mlir.Context(load_on_create_dialects=DIALECTS)
    context.enable_multithreading(False)
    with context, mlir.Location.unknown():
        irdl.load_dialects(mlir.Module.parse(DIALECT))
    return context


_MOST_TEXT = 1 << 20
"""Characters of program text compiled in one context, after which it is dropped: MLIR then keeps some ten megabytes of
uniqued types, attributes and locations.
"""


class Lent:
    """A context that several programs are compiled in, in turn, with its reusable pass managers."""

    def __init__(self) -> None:
        self.context = make_context()
        self.managers: dict[str, Any] = {}
        self.characters = 0


_IDLE: dict[str, list[Lent]] = {}
_LENT: list[Lent] = []  # now


@contextmanager
def lent_context(target: str, characters: int) -> Iterator[mlir.Context]:
    """A context, used by the compiler only, for a program of so many characters. The caller holds the compiler's lock.

    Creating one takes 2 ms, so it is reused for programs of the same target, until MLIR's uniqued objects take too much
    memory. A context in which a compilation failed is not reused.
    """
    idle = _IDLE.setdefault(target, [])
    lent = idle.pop() if idle else Lent()
    _LENT.append(lent)
    try:
        yield lent.context
    finally:
        _LENT.remove(lent)
    lent.characters += characters
    if lent.characters < _MOST_TEXT:
        idle.append(lent)


def ready_managers(context: mlir.Context) -> dict[str, Any] | None:
    """The cached pass managers of a context, by pipeline text; None for a context that `lent_context` did not lend.

    Passes with state must not be cached: `convert-math-to-funcs` would use functions of an earlier program.
    """
    return next((lent.managers for lent in _LENT if lent.context is context), None)


def parse(text: str, context: mlir.Context | None = None) -> mlir.Module:
    """Parse a module; keep the result in a variable, because operations die with their module."""
    return mlir.Module.parse(text, context or make_context())


def to_text(op: Any, *, locations: bool = False, generic: bool = False) -> str:
    """The text of a module or an operation, as mlir-opt prints it."""
    operation = getattr(op, "operation", op)
    text: str = operation.get_asm(enable_debug_info=locations, print_generic_op_form=generic, use_local_scope=False)
    return text if text.endswith("\n") else text + "\n"


def operations(op: Any) -> Iterator[mlir.Operation]:
    """`op` and everything inside it, in order. Collect first, then change: the walk is live."""
    waiting: list[mlir.Operation] = [getattr(op, "operation", op)]
    while waiting:
        operation = waiting.pop()
        yield operation
        regions = operation.regions
        if len(regions):  # a few have, and to ask for their blocks is slow
            inside = [inner.operation for region in regions for block in region.blocks for inner in block.operations]
            waiting += reversed(inside)


def block_ops(block: mlir.Block) -> list[mlir.Operation]:
    """The operations of a block as plain `Operation`s, in a list that survives changes."""
    return [op.operation for op in block.operations]


def defining_op(value: mlir.Value) -> mlir.Operation | None:
    """The operation that `value` is a result of; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, mlir.Block) else owner.operation


def seen_through(value: mlir.Value, names: Container[str]) -> mlir.Value:
    """The source of `value` after skipping operations of these names, views or casts of their first operand."""
    op = defining_op(value)
    while op is not None and op.name in names:
        value = op.operands[0]
        op = defining_op(value)
    return value


def clone_with(op: mlir.Operation, values: dict[mlir.Value, mlir.Value]) -> mlir.Operation:
    """Clone `op` at the insertion point with operands (nested ones too) mapped by `values`; adds its results to it."""
    copy: mlir.Operation = op.clone().operation
    for old, new in zip(op.results, copy.results):
        values[old] = new
    for inner in list(operations(copy)):
        for position, operand in enumerate(inner.operands):
            if operand in values:
                inner.operands[position] = values[operand]
    return copy


def replace_op(op: mlir.Operation, *values: mlir.Value) -> None:
    """Replace the results of an operation, or the only one that is used, by values, and erase it."""
    assert len(values) in (1, len(op.results)), op.name
    for result, value in zip(op.results, values):
        result.replace_all_uses_with(value)
    op.erase()


def has_op(op: mlir.Operation, names: Iterable[str]) -> bool:
    """True if an operation of one of these names is nested in `op`."""
    return bool(_inner_first(op, names))


def named_operations(op: mlir.Operation, names: Collection[str]) -> list[mlir.Operation]:
    """The operations of these names inside of `op`, in the order of `operations`."""
    found: list[mlir.Operation] = []
    nested: list[tuple[mlir.Operation, list[mlir.Operation]]] = []  # enclosing operations of these names
    for each in _inner_first(op, names):
        around = _around(each, op, names)
        own = [each]
        while nested and nested[-1][0] == each:
            own[1:1] = nested.pop()[1]
        if around is None:
            found += own
        else:
            nested.append((around, own))
    return found


def _inner_first(op: mlir.Operation, names: Iterable[str]) -> list[mlir.Operation]:
    """The operations of these names inside of `op`; those inside of another come before it.

    The walk is MLIR's own, by patterns that never match: 2,000 operations take 0.1 ms, in Python 2 ms.
    """
    seen: list[mlir.Operation] = []

    def note(found: Any, _: Any) -> bool:
        seen.append(found.operation)
        return True  # "does not match"

    with op.context:
        patterns = rewrite.RewritePatternSet()
        for name in names:
            patterns.add(name, note, 1)
        rewrite.walk_and_apply_patterns(op, patterns.freeze())
    return seen


def _around(op: mlir.Operation, outermost: mlir.Operation, names: Collection[str]) -> mlir.Operation | None:
    """The innermost operation of these names around `op`, inside of `outermost`."""
    around = op.parent
    while around is not None and around != outermost:
        if around.name in names:
            return around.operation
        around = around.parent
    return None


def main_function(module: Any) -> mlir.Operation:
    """The function @main of a module, which has a body. Raises `PreconditionError` where there is none."""
    main = _function(module, "main")
    if main is None:
        raise PreconditionError("the module has no function @main, which this is made for")
    if not len(main.regions[0].blocks):
        raise PreconditionError("the function @main has no body", location=source_location(main.location))
    return main


def named_function(module: Any, name: str) -> mlir.Operation:
    """The `func.func` or `llvm.func` of this name."""
    found = _function(module, name)
    if found is None:
        raise PreconditionError(f"the module has no function @{name}, which is called")
    return found


def callee_of(call: mlir.Operation) -> str:
    """The symbol name of the callee of a `func.call` or `llvm.call`."""
    return str(mlir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def has_function(module: Any, name: str) -> bool:
    """True if a module has a `func.func` or `llvm.func` of this name."""
    return _function(module, name) is not None


def _function(module: Any, name: str) -> mlir.Operation | None:
    for op in block_ops(module.regions[0].blocks[0] if isinstance(module, mlir.Operation) else module.body):
        if op.name in ("func.func", "llvm.func") and mlir.StringAttr(op.attributes["sym_name"]).value == name:
            return op
    return None


def set_function_type(function: mlir.Operation) -> None:
    """Update the type of a `func.func` to its entry block arguments and its `func.return`."""
    block = function.regions[0].blocks[0]
    results = [v.type for v in block_ops(block)[-1].operands]
    kind = mlir.FunctionType.get([a.type for a in block.arguments], results, function.context)
    function.attributes["function_type"] = mlir.TypeAttr.get(kind, function.context)
