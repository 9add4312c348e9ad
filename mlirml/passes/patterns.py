"""Rewrite patterns in Python that keep the user's location and say why they do not apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir, rewrite
from mlirml.passes.base import NoMatch
from mlirml.passes.report import remark

PatternFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class RewritePattern:
    """A function that rewrites operations of one name, made by `@pattern`."""

    root: str
    function: PatternFunction
    benefit: int = 1

    def __call__(self, op: Any, rewriter: Any) -> Any:
        return self.function(op, rewriter)


def pattern(root: Any, *, benefit: int = 1) -> Callable[[PatternFunction], RewritePattern]:
    """Make `function(op, rewriter)` a pattern for ops of class or name `root`.

    The function builds at the op and under its location, and returns the values (or one value) that replace the op's
    results, `()` for an op without results, or None when it changed the op in place. It raises `NoMatch(reason)`,
    before it builds anything, where the pattern does not apply.
    """
    name: str = root if isinstance(root, str) else root.OPERATION_NAME
    return lambda function: RewritePattern(name, function, benefit)


def apply_patterns(module: Any, patterns: Sequence[RewritePattern], *, greedy: bool = False) -> int:
    """Apply patterns to a module or an op and return how often one matched.

    Without `greedy` each op is visited once, in order, and what a pattern builds is not visited again. With `greedy`
    the patterns and upstream folding run until nothing changes. What misses becomes a remark.
    """
    driver = _Driver()
    operation = getattr(module, "operation", module)
    apply = rewrite.apply_patterns_and_fold_greedily if greedy else rewrite.walk_and_apply_patterns
    with operation.context:
        pattern_set = rewrite.RewritePatternSet()
        for each in patterns:
            pattern_set.add(each.root, driver.callback(each), each.benefit)
        apply(operation, pattern_set.freeze())
    if driver.failure is not None:
        raise driver.failure
    return driver.matches


class _Driver:
    """Translates between our protocol and MLIR's, where a truthy result means that the pattern did not match."""

    def __init__(self) -> None:
        self.matches = 0
        self.failure: BaseException | None = None

    def callback(self, each: RewritePattern) -> Callable[[Any, Any], bool]:
        def match_and_rewrite(op: Any, rewriter: Any) -> bool:
            if self.failure is not None:
                return True
            location = op.location
            try:
                with location, rewriter.ip:
                    values = each(op, rewriter)
                if values is not None:
                    rewriter.replace_op(op, _as_values(values))
            except NoMatch as reason:
                remark(op, str(reason))
                return True
            except BaseException as failure:
                # Raised after the driver has returned: an exception must not cross the greedy driver's C++ frames.
                self.failure = failure
                return True
            self.matches += 1
            return False

        return match_and_rewrite


def _as_values(values: Any) -> list[mlir.Value]:
    if isinstance(values, mlir.Value):
        return [values]
    if isinstance(values, (mlir.Operation, mlir.OpView)):
        return list(values.results)
    return list(values)
