"""The shape of the code: who reads and writes is asked of `mlirml/analysis`, never of bare operands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mlirml.analysis import traits

LISTED = ("pipelines/tensor/", "raising/memory_to_value.py", "raising/nests/memory_values.py")
"""Where groups of operations are listed still."""

ROOT = Path(__file__).parent.parent.parent / "mlirml"
PASSES = [f for part in ("pipelines", "codegen", "offload", "autodiff") for f in sorted((ROOT / part).rglob("*.py"))]

BUFFERS = {"buffer_of", "root", "root_of"}
"""Functions that see through views: what they say of bare operands leaves out what bodies touch."""

CONSIDERED = {
    ("pipelines/tensor/tiling/attention.py", "by_rows"): "what bodies capture is looked for, too",
    ("pipelines/tensor/tiling/cluster.py", "still"): "a size, for the choice of a length",
    (
        "pipelines/checks/inspect_indices.py",
        "match_rows",
    ): "operations that indices are computed by, none of which has a region",
    ("pipelines/sizes/row_groups.py", "are_apart"): "what bodies read and write is asked for, too",
    ("pipelines/sizes/transposed_loops.py", "stores_inputs"): "what bodies read and write is asked for, too",
    ("pipelines/tensor/move_scalings.py", "match_scaling"): "a body of constants and one scalar operation",
    ("pipelines/tensor/widen_extremes.py", "is_between"): "comparisons and selects, which have no regions",
    ("pipelines/tensor/sum_products.py", "is_plain"): "operations of a body without regions",
    ("pipelines/tensor/recompute_elements.py", "_clone_scalars"): "operations of a body without regions, by match_kept",
    ("codegen/cpu/contract/producer.py", "_check_memory"): "what a kernel writes, which only operands are",
    ("pipelines/llvm/scope_buffers.py", "loads_by_loaded_index"): "LLVM operations have no regions",
    ("pipelines/memref/split_function.py", "segments_of"): "operations that stay have no regions",
    ("offload/outline.py", "captures"): "walks into regions itself",
    ("offload/recompute_scores.py", "add"): "match_family looks at all uses of scores, also in bodies",
    ("autodiff/rules/batch_control.py", "_spread"): "walks into regions itself",
    ("autodiff/rules/batch_control.py", "_stop_cotangents"): "walks into regions itself",
    ("autodiff/rules/batch_control.py", "body"): "calls of Python, which have no regions",
    ("autodiff/rules/batch_linalg.py", "scalar"): "scalar operations",
    ("autodiff/rules/batch_linalg.py", "body"): "scalar operations",
    ("autodiff/rules/batch_linalg.py", "_from_outside"): "walks into regions itself",
    ("autodiff/tensors.py", "pruned"): "numbers of operands, no values",
    ("autodiff/stop_shifts.py", "_structured"): "walks into regions itself",
    ("autodiff/stop_shifts.py", "_accumulated"): "scalar operations",
    ("pipelines/memref/shorten_recurrences.py", "early_products"): "blocks of operations without regions",
    ("pipelines/memref/shorten_recurrences.py", "lags_of"): "blocks of operations without regions, by match_sum",
    ("pipelines/checks/version_checks.py", "without_checks"): "the operands of `arith.ori`, which has no region",
}
"""Functions that may look for values among the operands of operations, and why they miss nothing."""


def names_operands(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Attribute) and inner.attr == "operands" for inner in ast.walk(node))


def is_search(node: ast.AST) -> bool:
    """Whether an expression looks for each operand of an operation among values, or for the buffer of each."""
    if not isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        return False
    names = {
        each.target.id for each in node.generators if isinstance(each.target, ast.Name) and names_operands(each.iter)
    }
    for inner in ast.walk(node):
        if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.In | ast.NotIn):
            sought: list[ast.expr] = [inner.left]
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in BUFFERS:
            sought = inner.args
        else:
            continue
        if any(isinstance(each, ast.Name) and each.id in names for each in sought):
            return True
    return False


def searches_in(node: ast.AST, name: str) -> Iterator[str]:
    """The name of the function around each search."""
    name = node.name if isinstance(node, ast.FunctionDef) else name
    if is_search(node):
        yield name
    for inner in ast.iter_child_nodes(node):
        yield from searches_in(inner, name)


def searches() -> set[tuple[str, str]]:
    return {
        (file.relative_to(ROOT).as_posix(), name)
        for file in PASSES
        for name in searches_in(ast.parse(file.read_text()), "")
    }


def test_no_pass_looks_for_readers_among_bare_operands() -> None:
    """What a body reads is no operand: `used_values`, `uses_any` and `effects` of `mlirml.analysis` see it."""
    assert searches() - set(CONSIDERED) == set(), "ask mlirml.analysis, or say in CONSIDERED why nothing is missed"


def test_what_was_considered_is_there() -> None:
    assert set(CONSIDERED) - searches() == set()


def test_views_are_told_by_one_place() -> None:
    """A list of the operations that give views stands nowhere else, but where it says which views are rebuilt."""
    names = {"memref.subview", "memref.reinterpret_cast", "memref.cast"}
    found = []
    for file in PASSES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Tuple) and names <= {e.value for e in node.elts if isinstance(e, ast.Constant)}:
                found.append(file.relative_to(ROOT).as_posix())
    assert found == []


def test_groups_of_operations_are_listed_in_one_place() -> None:
    groups = {frozenset(group): name for name, group in vars(traits).items() if isinstance(group, tuple)}
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(file.read_text())
        # Conditions of passes are literals, as they are read from the source.
        calls = [x for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for x in node.decorator_list]
        conditions = {inner for call in calls for inner in ast.walk(call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Tuple | ast.Set | ast.List) and node not in conditions:
                names = frozenset(
                    e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)
                )
                if len(names) == len(node.elts) and names in groups and not file.samefile(traits.__file__):
                    found[f"{file.relative_to(ROOT).as_posix()}:{node.lineno}"] = groups[names]
    assert {place: name for place, name in found.items() if not place.startswith(LISTED)} == {}
