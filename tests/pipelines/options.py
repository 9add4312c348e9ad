"""Passes of the target `cpu` with other options than its recipe gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mlirml.pipelines.recipe import Recipe
from mlirml.targets import cpu


def with_options(monkeypatch: pytest.MonkeyPatch, options: Mapping[str, str]) -> None:
    """Replace passes of the recipe, by flag, by these texts. The caller clears the cache of targets afterwards."""
    original = cpu.stages

    def stages(*arguments: Any, **keywords: Any) -> Recipe:
        changed = []
        for name, steps in original(*arguments, **keywords):
            for flag, text in options.items():
                steps = steps.replace(flag, text)
            changed.append((name, steps))
        return tuple(changed)

    monkeypatch.setattr(cpu, "stages", stages)
    cpu.target_with.cache_clear()
