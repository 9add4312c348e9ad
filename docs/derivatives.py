"""Writes `docs/derivatives.md`, which rules operations have, from the tables of rules: `python docs/derivatives.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mlirml.autodiff.batching import batching
from mlirml.autodiff.forward import pushforward
from mlirml.autodiff.no_rule import NO_RULE
from mlirml.autodiff.reverse import NO_DERIVATIVE, transpose
from mlirml.autodiff.rules.scalars import INACTIVE, RULES

PAGE = Path(__file__).with_name("derivatives.md")
TABLES = {"forward": pushforward, "reverse": transpose, "batched": batching}

HEAD = """\
# Rules of derivatives and batches

Written by `python docs/derivatives.py` from the tables of rules in `mlirml/autodiff/rules`, which are keyed by MLIR's
operations: programs that were traced, raised from loops or imported have the same derivatives. A cell is
the first sentence of the rule. A name that ends with `.*` is all of a dialect, but for operations with rules of their
own. A test wants a rule, or a reason, for each operation that programs may hold when they are differentiated.
"""

PARTIALS = """\
## Scalar operations

They have partial derivatives, which both modes and the bodies of `linalg` operations use.
"""

CONSTANT = """\
## Without a derivative

They give no floats, or floats that change by steps, or floats that derivatives must not go through.
"""

NONE = """\
## Without a rule

Programs hold none of these when they are differentiated or batched; a file that does gets an error with the reason.
"""


def sentence(rule: Callable[..., Any] | None) -> str:
    """The first sentence of a rule's docstring."""
    if rule is None:
        return ""
    text = " ".join((rule.__doc__ or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def rows(tables: Mapping[str, Any]) -> list[str]:
    """A line for all operations with the same rules."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name in sorted({name for table in tables.values() for name in table.all()}):
        found = tuple(
            table.all().get(name) or table.all().get(f"{name.partition('.')[0]}.") for table in tables.values()
        )
        names.setdefault(tuple(map(sentence, found)), []).append(f"{name}*" if name.endswith(".") else name)
    return [f"| {listed(same)} | {' | '.join(told)} |" for told, same in names.items()]


def listed(names: Iterable[str]) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """The whole page."""
    table = f"| | {' | '.join(TABLES)} |\n|---|{'---|' * len(TABLES)}\n" + "\n".join(rows(TABLES))
    reasons: dict[str, list[str]] = {}
    for name, reason in NO_RULE.items():
        reasons.setdefault(reason, []).append(f"{name}*" if name.endswith(".") else name)
    none = "\n".join(f"- {listed(names)}: {reason}." for reason, names in reasons.items())
    return "\n".join(
        [
            HEAD,
            f"## Tensors, loops and branches\n\n{table}\n",
            f"{PARTIALS}\n{listed(sorted(RULES))}.\n",
            f"{CONSTANT}\n{listed(sorted(INACTIVE | NO_DERIVATIVE))}.\n",
            f"{NONE}\n{none}\n",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
