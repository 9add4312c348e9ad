"""The dtypes of results: NumPy's own promotion, asked with Python numbers that give way."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from mlirml.errors import DTypeError
from mlirml.ir.text.builder import Operand, Scalar

_BOOL = np.dtype(np.bool_)


def promoted(operand: Operand) -> Any:
    """The operand as NumPy's promotion sees it: a dtype, or Python's `int` or `float` for a weak operand."""
    if not operand.weak:
        return operand.dtype
    if isinstance(operand, Scalar):
        return type(operand.value)
    return {"b": bool, "i": int, "c": complex}.get(operand.dtype.kind, float)


def as_operand(x: Any) -> Operand:
    """An option that may be an array, as an operand: Python scalars stay weak."""
    return Scalar(x) if type(x) in (bool, int, float, complex) else x


def strong(operand: Operand) -> Operand:
    """The operand as `np.asarray` makes it: a Python number gets NumPy's default dtype and keeps it."""
    return replace(operand, weak=False) if operand.weak else operand


@lru_cache(maxsize=4096)
def resolve(ufunc: np.ufunc, operands: tuple[Any, ...], dtype: np.dtype | None) -> tuple[np.dtype, ...]:
    """The loop dtypes that NumPy itself picks, inputs then outputs."""
    operands = tuple(_BOOL if o is bool else o for o in operands)
    outs = (None,) * ufunc.nout
    options: dict[str, Any] = {} if dtype is None else {"signature": (None,) * len(operands) + (dtype,)}
    if all(o in (int, float, complex) for o in operands):  # all Python scalars: NumPy's default dtypes
        operands = tuple(np.dtype(o) for o in operands)
    return ufunc.resolve_dtypes((*operands, *outs), **options)


def result_type(*operands: Operand) -> np.dtype:
    """NumPy's promotion of several operands, weak Python scalars included; `DTypeError` where they have none."""
    if all(o.weak for o in operands):
        return np.result_type(*(_BOOL if promoted(o) is bool else np.dtype(promoted(o)) for o in operands))
    weak: dict[Any, Any] = {bool: _BOOL, int: 0, float: 0.0, complex: 0j}
    try:
        return np.result_type(*(weak.get(promoted(o), promoted(o)) for o in operands))
    except TypeError:  # of ml_dtypes and NumPy's own
        names = " and ".join(dict.fromkeys(o.dtype.name for o in operands if not o.weak))
        raise DTypeError(f"NumPy has no common dtype of {names}", help="convert with `.astype(...)`") from None
