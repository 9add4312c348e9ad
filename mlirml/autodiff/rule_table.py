"""Rules by the names of operations: one table a transformation, filled by the modules that write the rules."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from mlirml.autodiff.unwritten import UNWRITTEN

Rule = TypeVar("Rule", bound=Callable[..., Any])


class RuleTable(Generic[Rule]):
    """The rules of one transformation; a decorator that adds to it.

        transpose: RuleTable[Transpose] = RuleTable("linalg", "shapes")

        @transpose("tensor.pad")
        def pad(sweep: Sweep, op: mlir.Operation) -> None: ...

    `modules` are those of `autodiff/rules` that have the rules; they are imported when one is looked for first.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._rules: dict[str, Rule] = {}

    def __call__(self, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: the rule of these operations; a name that ends with a dot is a whole dialect's."""

        def note(rule: Rule) -> Rule:
            self._rules.update(dict.fromkeys(names, rule))
            return rule

        return note

    def all(self) -> dict[str, Rule]:
        """Every rule, by what it was written for: operations, and dialects with a dot at their end."""
        for module in self._modules:
            importlib.import_module(f"mlirml.autodiff.rules.{module}")
        self._modules = ()
        return self._rules

    def of(self, name: str) -> Rule | None:
        """The rule of an operation, its own or its dialect's; None for one that is stated to have none."""
        rules = self.all()
        if name in UNWRITTEN:
            return None
        return rules.get(name) or rules.get(f"{name.partition('.')[0]}.")
