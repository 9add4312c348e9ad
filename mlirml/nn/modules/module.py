"""The base of the layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mlirml import random
from mlirml.frontend.arrays.array import Traced
from mlirml.nn import initializers
from mlirml.nn.define import shown

__all__ = ["Module"]


class Module:
    """The base of the layers, which shows arrays by dtype and shape.

    A layer is a dataclass: its arrays are fields, so that it is a pytree, and its options are static fields
    (`mlirml.static_field`). Models need no base class; any dataclass of layers is one.
    """

    def __repr__(self) -> str:
        fields = [(field, getattr(self, field.name)) for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        # Options are shown where they are not the default.
        shown = [f"{f.name}={_shown(x)}" for f, x in fields if not _is_default(f, x)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_default(field: Any, value: Any) -> bool:
    option = field.metadata.get("static", False) and type(value) is type(field.default)
    return value is field.default or (option and value == field.default)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]" if value else "[]"
    if isinstance(value, (np.ndarray, Traced)):
        return shown(value)
    return getattr(value, "__name__", repr(value)) if callable(value) and not isinstance(value, Module) else repr(value)


def keys_of(key: Any, count: int) -> Iterator[Any]:
    """Independent keys."""
    split = random.split(key, count)
    return (split[i] for i in range(count))


def within(key: Any, shape: tuple[int, ...], fan_in: int, dtype: Any) -> Any:
    """Uniform numbers up to 1 / sqrt(fan_in), as torch draws the weights and biases of most layers."""
    bound = fan_in**-0.5 if fan_in else 0.0
    return initializers.uniform(key, shape, dtype, low=-bound, high=bound)


def of_rank(base: type[Module], rank: int) -> Any:
    """The layer that `base`, which has its rank in its name, is for another number of dimensions."""
    own = base.__name__[-2:]
    name, doc = base.__name__.removesuffix(own) + f"{rank}d", (base.__doc__ or "").replace(own, f"{rank}d")
    return type(name, (base,), {"_rank": rank, "__doc__": doc, "__module__": base.__module__})
