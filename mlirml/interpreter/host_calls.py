"""Rules of the reference interpreter for calls of Python functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Array, Buffer, Value
from mlirml.ir.bindings import mlir
from mlirml.ir.text.dtypes import from_short_name
from mlirml.runtime.host import Host

_HOSTS: list[Host | None] = []
_VALUES: list[Array] = []
"""The operands of the next call. The interpreter runs one program at a time."""


@contextmanager
def calling(host: Host | None) -> Iterator[None]:
    """Provide the host functions for programs that run inside of the `with`."""
    _HOSTS.append(host)
    try:
        yield
    finally:
        _HOSTS.pop()
        _VALUES.clear()


@evaluates("mlirml.host_value")
def value_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Append the value to the operands of the next call."""
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)

    def kernel(value: Value) -> Value:
        array = np.array(value.array if isinstance(value, Buffer) else value, order="C")
        _VALUES.append(array.view(dtype) if array.dtype != dtype else array)
        return None

    return kernel


@evaluates("mlirml.host_call")
def call_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The call, with the operands that were passed before."""
    number = int(mlir.IntegerAttr(op.attributes["number"]).value)

    def kernel() -> Value:
        values = list(_VALUES)
        _VALUES.clear()
        host = _HOSTS[-1]
        assert host is not None
        host.call(number, values)
        return None

    return kernel


@evaluates("mlirml.host_result")
def result_rule(op: mlir.Operation, _: Function) -> Kernel:
    """One of the results of the last call."""
    number = int(mlir.IntegerAttr(op.attributes["number"]).value)

    def kernel(out: Value) -> Value:
        host = _HOSTS[-1]
        assert host is not None
        found = host.result(number)
        if len(op.results):
            return found.view(out.dtype)
        assert isinstance(out, Buffer)
        out.array[...] = found.view(out.array.dtype)
        return None

    return kernel
