"""The table of expansions: which function stands for `math.<name>` on which scalar type."""

from __future__ import annotations

from collections.abc import Callable

from mlirml.codegen.math.builder import Builder, Value

Recipe = Callable[..., Value]

EXPANSIONS: dict[tuple[str, str], Recipe] = {}
"""(`exp`, `f32`) -> a function of a `Builder` and the operands that builds the result."""

UNROUNDED: dict[Recipe, Recipe] = {}
"""A recipe on f32 that works in f64 -> the same without the last rounding. Rounding twice on the way to f16 is wrong,
and LLVM makes one conversion of the two, which needs a library function."""

GuardedRecipe = Callable[..., tuple[Value, Value]]

GUARDED: dict[tuple[str, str], GuardedRecipe] = {}
"""(`sin`, `f32`) -> a recipe that builds the result and where it holds; elsewhere libm is called."""

ELSEWHERE: dict[tuple[str, str], Recipe] = {}
"""(`remf`, `f32`) -> a recipe for numbers where the guarded one does not hold, for devices without a libm to call."""


def guarded(name: str, *kinds: str) -> Callable[[GuardedRecipe], GuardedRecipe]:
    """Decorator: this recipe expands `math.<name>` on these scalar types, on a part of the range."""

    def add(recipe: GuardedRecipe) -> GuardedRecipe:
        for kind in kinds:
            GUARDED[name, kind] = recipe
        return recipe

    return add


def elsewhere(name: str, *kinds: str) -> Callable[[Recipe], Recipe]:
    """Decorator: this recipe computes where the guarded one does not hold, on devices without f64 and libm."""

    def add(recipe: Recipe) -> Recipe:
        for kind in kinds:
            ELSEWHERE[name, kind] = recipe
        return recipe

    return add


def expansion(name: str, *kinds: str) -> Callable[[Recipe], Recipe]:
    """Decorator: this recipe expands `math.<name>` on these scalar types."""

    def add(recipe: Recipe) -> Recipe:
        for kind in kinds:
            EXPANSIONS[name, kind] = recipe
        return recipe

    return add


def through_f64(recipe: Recipe) -> Recipe:
    """Decorator: the recipe works on f64, and its `grade` says how accurate the result must be; f32 is extended.

    Where there is no f64 it works on f32, and has to keep the accuracy itself.
    """

    def unrounded(b: Builder, *operands: Value) -> Value:
        wide = [b.cast("arith.extf", x, "f64") for x in operands]
        return recipe(b, "f32", *wide)

    def apply(b: Builder, *operands: Value) -> Value:
        if operands[0].kind == "f64":
            return recipe(b, "f64", *operands)
        if not b.features.f64:
            return recipe(b, "f32", *operands)
        return b.cast("arith.truncf", unrounded(b, *operands), "f32")

    UNROUNDED[apply] = unrounded
    return apply
