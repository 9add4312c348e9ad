"""The table of expansions: which function stands for `math.<name>` on which scalar type."""

from __future__ import annotations

from collections.abc import Callable

from mlirml.pipelines.polynomials.builder import Value

Recipe = Callable[..., Value]

EXPANSIONS: dict[tuple[str, str], Recipe] = {}
"""(`exp`, `f32`) -> a function of a `Builder` and the operands that builds the result."""


def expansion(name: str, *kinds: str) -> Callable[[Recipe], Recipe]:
    """Decorator: this recipe expands `math.<name>` on these scalar types."""

    def add(recipe: Recipe) -> Recipe:
        for kind in kinds:
            EXPANSIONS[name, kind] = recipe
        return recipe

    return add
