"""Fourier transforms that a device can compute (`codegen/gpu/transforms.py`)."""

from __future__ import annotations

from mlirml.analysis.cost import element_bytes
from mlirml.ir import library_calls as modes
from mlirml.ir.bindings import mlir
from mlirml.targets.machine import Device

POINTS = 8
"""The complex numbers that a thread has in registers."""
BANKS = 32
"""A number of shared memory is left out after each so many, so that strides by powers of two use all banks."""
_LONGEST_LINE = 256 * POINTS


def longest_line(device: Device, element: mlir.Type) -> int:
    """The most points of a transform in one block of threads, a power of two."""
    fitting = device.shared_bytes // element_bytes(element) * BANKS // (BANKS + 1) - 1
    return int(min(_LONGEST_LINE, 1 << (fitting.bit_length() - 1)))


def reason_not_to_transform(op: mlir.Operation, device: Device) -> str:
    """The reason why a device cannot compute a transform; empty if it can."""
    if not all(value.type.has_static_shape for value in (*op.operands, *op.results)):
        return "the sizes of what is transformed change"
    mode = mlir.IntegerAttr(op.attributes["mode"]).value
    real = op.results[0].type if mode & modes.TRANSFORM == modes.C2R else op.operands[0].type
    longest = longest_line(device, real.element_type) ** 2
    for axis in modes.axes_of(mode):
        if real.shape[axis] & (real.shape[axis] - 1):
            return f"a transform of {real.shape[axis]} points, which is no power of two"
        if real.shape[axis] > longest:
            return f"a transform of more than {longest:,} points"
    return ""
