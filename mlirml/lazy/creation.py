"""`array` and `asarray`: arrays whose operations are compiled, made of NumPy's arrays, numbers and lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.core.config import config
from mlirml.frontend.current import current_trace
from mlirml.runtime.array import Array, put
from mlirml.runtime.device import Device, device
from mlirml.runtime.node import stored


def array(x: Any, dtype: npt.DTypeLike | None = None, *, target: str | Device | None = None) -> Any:
    """An `Array` of numbers, whose operations are compiled for a target.

    Parameters:
        x: an array, a number, or nested lists of them.
        dtype: the element type; that of NumPy if it is not given.
        target: "cpu", "cuda", "vulkan" or another target, or a device, "cuda:1"; `config.target` if not given, and the
            target of `x` where that is an `Array`. "reference" runs operations by the interpreter.

    In compiled functions this is `np.array`. Raises `TargetError` for a target or device that is not there.

    >>> import numpy as np, mlirml as ml
    >>> x = ml.array([[1, 2], [3, 4]], np.float32)
    >>> x @ x + 1
    Array([[ 8., 11.],
           [16., 23.]], dtype=float32, device='cpu')
    """
    trace = current_trace()
    if trace is not None:
        from mlirml.frontend.namespace.numpy_namespace import Namespace

        return Namespace(trace).array(x, dtype)
    found = asarray(x, dtype, target=target)
    return found


def asarray(x: Any, dtype: npt.DTypeLike | None = None, *, target: str | Device | None = None) -> Any:
    """An `Array` of numbers as `array`; an `Array` of this dtype and for this target is returned as it is.

    >>> import numpy as np, mlirml as ml
    >>> x = ml.array([1.0, 2.0])
    >>> ml.asarray(x) is x
    True
    """
    trace = current_trace()
    if trace is not None:
        from mlirml.frontend.namespace.numpy_namespace import Namespace

        return Namespace(trace).asarray(x, dtype)
    if isinstance(x, Array):
        moved = x if target is None else _moved(x, target)
        return moved if dtype is None or np.dtype(dtype) == moved.dtype else moved.astype(dtype)
    if isinstance(x, (list, tuple)) and (rows := _with_arrays(x)) is not None:
        stacked = np.stack([asarray(row, target=target or rows.type.target) for row in x])
        return stacked if dtype is None else stacked.astype(dtype)
    return _placed(put(np.asarray(x, dtype), _device_of(target)), target)


def _with_arrays(x: Any) -> Array | None:
    """The first `Array` in nested lists."""
    if isinstance(x, Array):
        return x
    parts = map(_with_arrays, x) if isinstance(x, (list, tuple)) else ()
    return next((part for part in parts if part is not None), None)


def _device_of(target: str | Device | None) -> Device:
    if isinstance(target, Device):
        return target
    name = config.target if target is None else target
    if name.partition(":")[0] in ("cuda", "vulkan", "metal"):
        return device(name if ":" in name else f"{name}:0")
    return device("cpu")


def _target_name(target: str | Device | None) -> str:
    if isinstance(target, Device):
        return target.kind
    name = (config.target if target is None else target).partition(":")[0]
    if name in ("cpu", "cuda", "vulkan", "metal"):
        return name
    from mlirml.targets.registry import get_target

    return get_target(name).name


def _moved(x: Array, target: str | Device) -> Array:
    return _placed(x.to(_device_of(target)), target)


def _placed(x: Array, target: str | Device | None) -> Array:
    """The same memory as an array for a target."""
    name = _target_name(target)
    if x.type.target == name:
        return x
    found = Array(x.device, x._storage, x.shape, x.dtype, x._mark, name)
    return Array.of_node(stored(x._storage, found.type, x._mark))
