"""Objects as pytrees: the arrays that a model holds in its attributes, for derivatives and for results.

    loss, gradient = ml.value_and_grad(loss)(model, x)
    model.weights -= 0.1 * gradient.weights

While a function is differentiated by an object, the object itself holds the arrays that derivatives are taken by, so
that methods, lists of layers and other references to it all see the same; its gradient is another object of the same
class.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.tree import ObjectFlattener, TreeDef
from mlirml.frontend.state.concrete_arrays import original
from mlirml.frontend.state.reachable import is_random, slots_of
from mlirml.frontend.tracing.array import Traced
from mlirml.ir.text.dtypes import is_float

_CONTAINERS = (list, tuple, dict, set, frozenset)
_OTHERS = (type, types.ModuleType, types.FunctionType, types.MethodType, BaseException, np.ndarray, np.generic)
_HEAP_TYPE = 1 << 9  # of classes that Python code defines


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a user's class, in order; None for anything else."""
    from mlirml.frontend.namespace.numpy_namespace import is_library

    kind = type(value)
    if isinstance(value, (Traced, *_OTHERS, *_CONTAINERS)) or not kind.__flags__ & _HEAP_TYPE:
        return None
    if is_library(kind.__module__) or is_random(value):
        return None
    slots = {name: getattr(value, name) for name, _ in slots_of(kind) if hasattr(value, name)}
    return slots | dict(getattr(value, "__dict__", {}))


def flatten_parameters(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves to differentiate by, and the structure: in objects the float arrays."""
    found = ObjectFlattener(attributes_of, _is_parameter, original)
    structure = found.flatten(tree)
    return found.leaves, structure


def _is_parameter(value: Any) -> bool:
    if not isinstance(value, (Traced, np.ndarray)):  # including proxies of arrays
        return False
    return is_float(value.dtype) or value.dtype.kind == "c"


def flatten_objects(
    tree: Any, is_leaf: Callable[[Any], bool], is_known: Callable[[Any], bool]
) -> tuple[list[Any], TreeDef]:
    """The leaves and structure of a result with objects; those for which `is_known` is true are returned themselves."""
    found = ObjectFlattener(attributes_of, lambda x: isinstance(x, Traced) or is_leaf(x), original, is_known)
    structure = found.flatten(tree)
    return found.leaves, structure
