"""Rules by operation name: one table for each transformation, filled by the modules that define the rules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from mlirml.autodiff.no_rule import NO_RULE
from mlirml.errors import InternalError
from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_location

Rule = TypeVar("Rule", bound=Callable[..., Any])
Types = Callable[[mlir.Operation], bool]


def _is_scalar(type_: mlir.Type) -> bool:
    return isinstance(type_, (mlir.FloatType, mlir.IntegerType, mlir.IndexType))


def _is_tensor(type_: mlir.Type) -> bool:
    return isinstance(type_, mlir.RankedTensorType) and _is_scalar(type_.element_type)


def scalars(op: mlir.Operation) -> bool:
    """True if all operands and results are floats, integers or indices."""
    return all(_is_scalar(x.type) for x in (*op.operands, *op.results))


def values(op: mlir.Operation) -> bool:
    """True if all operands and results are scalars, or tensors of them."""
    return all(_is_scalar(x.type) or _is_tensor(x.type) for x in (*op.operands, *op.results))


def one_of_two_tensors(op: mlir.Operation) -> bool:
    """True for a scalar condition and two tensors: a select between tensors, from branches that compute nothing."""
    condition, *others = op.operands
    return _is_scalar(condition.type) and all(_is_tensor(x.type) for x in others)


class RuleTable(Generic[Rule]):
    """The rules of one transformation, and a decorator that adds to them.

        transpose: RuleTable[Transpose] = RuleTable("linalg", "shapes")

        @transpose("tensor.pad")
        def pad(sweep: Sweep, op: mlir.Operation) -> None: ...

    `modules` are those of `autodiff/rules` that define the rules; they are imported at the first lookup. `types` are
    the operand and result types that the rules support, where a rule states none itself.
    """

    def __init__(self, *modules: str, types: Types = values) -> None:
        self._modules = modules
        self._types = types
        self._rules: dict[str, Rule] = {}
        self._own_types: dict[str, Types] = {}

    def __call__(self, *names: str, types: Types | None = None) -> Callable[[Rule], Rule]:
        """Decorator: the rule of these operations; a name that ends with a dot is a whole dialect's."""

        def note(rule: Rule) -> Rule:
            self._rules.update(dict.fromkeys(names, rule))
            self._own_types.update(dict.fromkeys(names if types else (), types or values))
            return rule

        return note

    def all(self) -> dict[str, Rule]:
        """Every rule, by its key: operations, and dialects with a dot at their end."""
        for module in self._modules:
            importlib.import_module(f"mlirml.autodiff.rules.{module}")
        self._modules = ()
        return self._rules

    def named(self, name: str) -> list[str]:
        """The keys of the rules for an operation name: its own, its dialect's; none if it is stated to have no rule."""
        rules = self.all()
        return [] if name in NO_RULE else [key for key in (name, f"{name.partition('.')[0]}.") if key in rules]

    def of(self, op: mlir.Operation) -> Rule | None:
        """The rule of an operation, None if there is none. Raises `InternalError` if it does not support the types."""
        found = find(op, self)
        return found and found[1]

    def fitting(self, op: mlir.Operation, keys: Iterable[str]) -> Rule | None:
        """The first of these rules that supports the types of an operation."""
        return next((self._rules[k] for k in keys if self._own_types.get(k, self._types)(op)), None)


def find(op: mlir.Operation, *tables: RuleTable[Any]) -> tuple[RuleTable[Any], Any] | None:
    """The first table with a rule for an operation and its types, and the rule; None where no table names it.

    All lookups go through here: a rule that builds operations with unsupported types crashes the bindings.
    """
    keys = [table.named(op.name) for table in tables]
    for table, own in zip(tables, keys):
        rule = table.fitting(op, own)
        if rule is not None:
            return table, rule
    if not any(keys):
        return None
    shown = ", ".join(dict.fromkeys(str(x.type) for x in (*op.operands, *op.results)))
    raise InternalError(
        f"the rule of `{op.name}` is not made for its types: {shown}",
        location=source_location(op.location),
        help="report it; `ml.custom_jvp` or `ml.custom_vjp` gives the function a rule of its own",
    )
