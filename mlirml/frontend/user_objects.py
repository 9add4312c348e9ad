"""Objects of the user's: which modules are not theirs, and what attributes an object has."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

_LIBRARIES = ("mlirml", "numpy", "scipy", "ml_dtypes", "_pytest")  # the last one: pytest rewrites `assert` with it
_PACKAGES = ("cupy", "jax", "jaxlib", "matplotlib", "numba", "pandas", "sklearn", "sympy", "torch", "tqdm")
_CONTAINERS = (list, tuple, dict, set, frozenset)
_OTHERS = (type, types.ModuleType, types.FunctionType, types.MethodType, BaseException, np.ndarray, np.generic)
_HEAP_TYPE = 1 << 9  # of classes that Python code defines

_CAPTURED = frozenset(
    [
        *(f"mlirml.frontend.loops.{name}" for name in ("ordered_lists", "integer_functions", "dynamic_slices.written")),
        *(f"mlirml.ops.{name}" for name in ("creation", "linear_algebra", "numeric", "polynomials", "scans")),
        *(f"mlirml.ops.{name}" for name in ("shapes.composed", "statistics")),
        "mlirml.random.sequences",
    ]
)
"""The modules of functions that are captured for others."""


def is_library(module: object) -> bool:
    """True for a module that is not the user's: nothing in it is state of a program."""
    root = str(module).partition(".")[0]
    if module in _CAPTURED:
        return False
    return root in _LIBRARIES or (root in sys.stdlib_module_names and root != "__main__")


def is_package(module: object) -> bool:
    """True for a module of a library, or of a large package whose functions and modules keep no state of programs.

    Objects of its classes may be state: the coefficients of a regression of scikit-learn, for example.
    """
    return is_library(module) or str(module).partition(".")[0] in _PACKAGES


def is_library_class(class_: type) -> bool:
    """True for a class that is not the user's; objects of the layers of `mlirml.nn` are, as their arrays are state."""
    return is_library(class_.__module__) and not is_layer_class(class_)


def is_layer_class(class_: type) -> bool:
    """True for a dataclass of `mlirml.nn`: a layer, its state or a cache."""
    return class_.__module__.startswith("mlirml.nn.") and dataclasses.is_dataclass(class_)


def is_random(value: Any) -> bool:
    """True if an object draws random numbers."""
    classes = type(value).__mro__
    return any(c.__module__ == "random" or c.__module__.startswith("numpy.random") for c in classes)


def slots_of(class_: type) -> Iterator[tuple[str, Any]]:
    """The attributes that objects of a class hold in slots, with their descriptors."""
    for one in class_.__mro__:
        if "__slots__" in vars(one):
            yield from ((n, m) for n, m in vars(one).items() if isinstance(m, types.MemberDescriptorType))


def has_attributes(class_: type) -> bool:
    """True for a user's class whose objects are no containers, arrays, functions, modules or errors."""
    if issubclass(class_, (*_OTHERS, *_CONTAINERS)) or not class_.__flags__ & _HEAP_TYPE:
        return False
    return not is_library_class(class_)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a user's class, in order; None for anything else."""
    kind = type(value)
    if not has_attributes(kind) or is_random(value):
        return None
    slots = {name: getattr(value, name) for name, _ in slots_of(kind) if hasattr(value, name)}
    return slots | dict(getattr(value, "__dict__", {}))


ORIGINAL = "__mlirml_original__"
"""The attribute of a method or property that holds the one of the user's class that it replaces."""


def unreplaced(attribute: Any) -> Any:
    """The attribute of a class as the user wrote it."""
    is_method = isinstance(attribute, (types.FunctionType, property))
    held = getattr(attribute, "__dict__", None) if is_method else None
    return held.get(ORIGINAL, attribute) if held else attribute
