"""The table of expansions: the function that expands `math.<name>` on each scalar type."""

from __future__ import annotations

from collections.abc import Callable

from mlirml.codegen.math.builder import Builder, Value

Recipe = Callable[..., Value]

EXPANSIONS: dict[tuple[str, str], Recipe] = {}
"""(`exp`, `f32`) -> a function of a `Builder` and the operands that builds the result."""

UNROUNDED: dict[Recipe, Recipe] = {}
"""A recipe on f32 that works in f64 -> the same without the last rounding. Rounding twice when converting to f16 is
wrong, and LLVM combines the two conversions into one, which needs a library function.
"""

ROUGH: dict[Recipe, Recipe] = {}
"""A recipe on f32 -> a shorter one, for results that are rounded to f16 afterwards."""

GuardedRecipe = Callable[..., tuple[Value, Value]]

GUARDED: dict[tuple[str, str], GuardedRecipe] = {}
"""(`sin`, `f32`) -> a recipe that builds the result and the condition under which it is valid, else libm is called."""

ELSEWHERE: dict[tuple[str, str], Recipe] = {}
"""(`remf`, `f32`) -> a recipe where the guarded one is not valid, for devices without libm."""


def guarded(name: str, *dtypes: str) -> Callable[[GuardedRecipe], GuardedRecipe]:
    """Decorator: this recipe expands `math.<name>` on these scalar types, on a part of the range."""

    def add(recipe: GuardedRecipe) -> GuardedRecipe:
        for dtype in dtypes:
            GUARDED[name, dtype] = recipe
        return recipe

    return add


def elsewhere(name: str, *dtypes: str) -> Callable[[Recipe], Recipe]:
    """Decorator: this recipe is used where the guarded one is not valid, on devices without f64 and libm."""

    def add(recipe: Recipe) -> Recipe:
        for dtype in dtypes:
            ELSEWHERE[name, dtype] = recipe
        return recipe

    return add


def expansion(name: str, *dtypes: str) -> Callable[[Recipe], Recipe]:
    """Decorator: this recipe expands `math.<name>` on these scalar types."""

    def add(recipe: Recipe) -> Recipe:
        for dtype in dtypes:
            EXPANSIONS[name, dtype] = recipe
        return recipe

    return add


def through_f64(recipe: Recipe) -> Recipe:
    """Decorator: the recipe works on f64, and its `grade` is the required accuracy of the result; f32 is extended.

    Without f64 it works on f32, and has to maintain the accuracy itself.
    """

    def unrounded(b: Builder, *operands: Value) -> Value:
        wide = [b.cast("arith.extf", x, "f64") for x in operands]
        return recipe(b, "f32", *wide)

    def apply(b: Builder, *operands: Value) -> Value:
        if operands[0].dtype == "f64":
            return recipe(b, "f64", *operands)
        if not b.f64:
            return recipe(b, "f32", *operands)
        return b.cast("arith.truncf", unrounded(b, *operands), "f32")

    UNROUNDED[apply] = unrounded
    return apply
