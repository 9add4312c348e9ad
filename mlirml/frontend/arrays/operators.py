"""Python's operators for tracer objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

BINARY: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
ONE_WAY: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}  # fmt: skip
"""Those with one operand, and the comparisons, which Python reflects by itself."""

Operate = Callable[[Any, np.ufunc, tuple[Any, ...]], Any]
"""Takes the object whose method is called, the ufunc and the operands in order."""

OperateInPlace = Callable[[Any, np.ufunc, Any], Any]
"""Takes the object that is changed, the ufunc and the other operand."""


def install_operators(cls: type, operate: Operate, operate_in_place: OperateInPlace) -> None:
    """Give a class all operators of `numpy.ndarray`."""

    def forward(ufunc: np.ufunc) -> Callable[..., Any]:
        return lambda self, *other: operate(self, ufunc, (self, *other))

    def reflected(ufunc: np.ufunc) -> Callable[..., Any]:
        return lambda self, other: operate(self, ufunc, (other, self))

    def multiply(self: Any, other: Any) -> Any:
        return other * self.__index__() if _repeats(self, other) else operate(self, np.multiply, (self, other))

    def reflected_multiply(self: Any, other: Any) -> Any:
        return other * self.__index__() if _repeats(self, other) else operate(self, np.multiply, (other, self))

    def in_place(ufunc: np.ufunc) -> Callable[..., Any]:
        return lambda self, other: operate_in_place(self, ufunc, other)

    def compared(ufunc: np.ufunc) -> Callable[..., Any]:
        def compare(self: Any, other: Any) -> Any:
            if (other is None or isinstance(other, (str, bytes))) and getattr(self, "shape", None) == ():
                return ufunc is np.not_equal  # a number is neither
            return operate(self, ufunc, (self, other))

        return compare

    for name, ufunc in BINARY.items():
        setattr(cls, f"__{name}__", forward(ufunc))
        setattr(cls, f"__r{name}__", reflected(ufunc))
        setattr(cls, f"__i{name}__", in_place(ufunc))
    for name, ufunc in ONE_WAY.items():
        setattr(cls, f"__{name}__", compared(ufunc) if name in ("eq", "ne") else forward(ufunc))
    setattr(cls, "__mul__", multiply)  # noqa: B010
    setattr(cls, "__rmul__", reflected_multiply)  # noqa: B010
    setattr(cls, "__divmod__", _divmod)  # noqa: B010  (mypy knows no such method)
    setattr(cls, "__rdivmod__", _reflected_divmod)  # noqa: B010


def _repeats(number: Any, other: Any) -> bool:
    """True for a list or tuple times an integer, which Python and NumPy's scalars repeat it by."""
    if not isinstance(other, (list, tuple)):
        return False
    return getattr(number, "shape", None) == () and np.dtype(number.dtype).kind in "iu"


def _divmod(self: Any, other: Any) -> Any:
    return self // other, self % other


def _reflected_divmod(self: Any, other: Any) -> Any:
    return other // self, other % self
