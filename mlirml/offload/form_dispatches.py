"""Form dispatches: wrap the operations of one kernel into a region, and operations that stay on the host into others.

Before:
    %f = linalg.fill ins(%zero) outs(%e) -> tensor<4x3xf32>
    %p = linalg.matmul ins(%x, %w) outs(%f) -> tensor<4x3xf32>
    %r = linalg.generic {...} ins(%p, %b) outs(%e) { %0 = arith.addf %a, %b  %1 = math.tanh %0  linalg.yield %1 }
After:
    %r = scf.execute_region -> tensor<4x3xf32> no_inline {
      %e = tensor.empty() : tensor<4x3xf32>
      %f = linalg.fill ins(%zero) outs(%e) -> tensor<4x3xf32>
      %p = linalg.matmul ins(%x, %w) outs(%f) -> tensor<4x3xf32>
      %q = linalg.generic {...} ins(%p, %b) outs(%e) {...}
      scf.yield %q : tensor<4x3xf32>
    } {mlirml.dispatch = "device"}

Operations are grouped as `grouping.py` describes. Fills, empty tensors, constants, slices and paddings are cloned into
each region that reads them, and so are scalars that are extracted from tensors on the device. Scatters, scans and sorts
become kernels, other loops and branches stay on the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.bounds import DYNAMIC, dims_of_slice, size_operand
from mlirml.analysis.device_transforms import reason_not_to_transform
from mlirml.analysis.ordered_loops import is_ordered
from mlirml.analysis.traits import RESHAPES
from mlirml.analysis.values import element_type, is_within, walk
from mlirml.dialects.mlirml import DISPATCH, OF_DEVICES, WHY
from mlirml.errors import TargetError
from mlirml.ir import emit
from mlirml.ir.bindings import (
    block_ops,
    clone_with,
    defining_op,
    main_function,
    mlir,
    operations,
    replace_op,
    seen_through,
)
from mlirml.ir.erase import is_unused
from mlirml.ir.library_calls import TRANSFORMS
from mlirml.ir.location import source_location
from mlirml.offload.grouping import groups_of, is_work, source_of_reshapes
from mlirml.offload.scalars import is_number, pass_by_value, sizes_of_call
from mlirml.offload.unknown_sizes import keep_in_known_sizes
from mlirml.offload.wide import split_wide
from mlirml.passes import Pass, register
from mlirml.targets.machine import Device

_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i16": "int16", "i8": "int8"}
_INSTEAD = {
    "f64": 'compute in float32: as by `x.astype(np.float32)`, or everywhere by `compile(..., float64="float32")`',
    "i64": "compute in int32, as by `x.astype(np.int32)`, or compile for the CPU",
}
_SORTED = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
_FREE_TO_CLONE = frozenset(["tensor.empty", "linalg.fill", "arith.constant", "tensor.splat", "tensor.from_elements"])
"""Operations that are cloned into each dispatch that uses them, as they cost nothing."""
ON_HOST = "mlirml.on_host"
"""Marks, during the pass, an operation that the device cannot compute."""
_VIEWS = frozenset(["tensor.extract_slice", "tensor.pad"])
_SCALARS = ("arith.", "math.", "index.")
TILE_TYPES = ("f16", "bf16", "i8")
"""The types of factors of kernels of tiles; with `tf32` those of f32 are, too."""


@register
class FormDispatchesPass(Pass):
    """Group operations on tensors into dispatch regions, one for each kernel.

    Scalars of element types that the device lacks are computed on the host; arrays of them, and arrays that are too
    large for the device, are rejected. Operations without an instruction on the device stay on the host. With `tf32`
    products of f32 use tensor cores.
    """

    device: Device = Device()
    tf32: bool = False

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        pass_by_value(main, self.stays_on_host, self.lacks_number)
        copy_returned_slices(main)
        self.mark_host_scalars(main)
        for block in tensor_blocks(main):
            store_numbers(block)
            split_wide(block, self.device.kernel_buffers, numbers=bool(self.device.buffers))
            keep_in_known_sizes(block)
            for op in block_ops(block):
                if is_work(op) and op.name not in OF_DEVICES and not self.is_tiny(op):
                    self.check(op)
            work = []
            for op in [op for op in block_ops(block) if is_work(op)]:
                if reason := self.reason_to_stay(op):
                    op.attributes[WHY] = mlir.StringAttr.get(reason)
                else:
                    work.append(op)
            groups = groups_of(
                work,
                self.device.kernel_buffers,
                tiles=[*TILE_TYPES, *["f32"] * self.tf32] if self.device.tile else [],
                processors=self.device.processors,
                numbers=bool(self.device.buffers),
            )
            for group in groups:
                wrap(group)
        erase_unread(main)
        for op in operations(main):
            if ON_HOST in op.attributes:
                del op.attributes[ON_HOST]

    def mark_host_scalars(self, main: mlir.Operation) -> None:
        """Mark operations on scalars of types that the device lacks, so that they are not cloned into kernels."""
        for op in operations(main):
            if op.name.startswith(("tensor.extract", *_SCALARS)) and len(op.operands) and self.lacking(op):
                op.attributes[ON_HOST] = mlir.UnitAttr.get()

    def stays_on_host(self, op: mlir.Operation) -> bool:
        """True if an operation is computed on the host."""
        return bool(self.reason_to_stay(op))

    def reason_to_stay(self, op: mlir.Operation) -> str:
        """The reason why an operation is computed on the host; empty if the device computes it."""
        if op.name in OF_DEVICES and (reason := self.reason_not_to_call(op)):
            return reason
        if self.is_tiny(op):
            return f"the device has no {_NAMES.get(self.lacking(op)[0], self.lacking(op)[0])}"
        for inner in operations(op):
            if inner.name in self.device.host_ops:
                return f"the device has nothing for `{inner.name}`"
            dtype = str(element_type(inner.results[0].type)) if inner.name.startswith(("arith.", "math.")) else ""
            if f"{inner.name}:{dtype}" in self.device.host_ops:
                return f"the device has nothing for `{inner.name}` of {_NAMES.get(dtype, dtype)}"
        return ""

    def reason_not_to_call(self, op: mlir.Operation) -> str:
        """The reason why the device has no kernel for a sort or a Fourier transform; empty if it has one."""
        if self.lacking(op):
            return f"the device has no {_NAMES.get(self.lacking(op)[0], self.lacking(op)[0])}"
        if op.name in TRANSFORMS:
            return reason_not_to_transform(op, self.device)
        order = op.attributes["kind"].value
        if order not in _SORTED:
            return f"there is no kernel that sorts {order}"
        return "" if op.operands[0].type.has_static_shape else "the length of what is sorted changes"

    def is_tiny(self, op: mlir.Operation) -> bool:
        """True if an operation computes only scalars, of a type that the device lacks."""
        return all(is_number(v.type) for v in (*op.operands, *op.results)) and bool(self.lacking(op))

    def lacks_number(self, value_type: mlir.Type) -> bool:
        """True for a rank-0 tensor of an element type that the device lacks."""
        if not self.device.dtypes or not is_number(value_type):
            return False
        return str(element_type(value_type)) not in {*self.device.dtypes, "i1", "index"}

    def lacking(self, op: mlir.Operation) -> list[str]:
        """The element types of an operation that the device lacks."""
        if not self.device.dtypes:
            return []
        dtypes = {str(element_type(v.type)) for inner in operations(op) for v in (*inner.operands, *inner.results)}
        return sorted(dtypes - {*self.device.dtypes, "i1", "index"})

    def check(self, op: mlir.Operation) -> None:
        """Reject an operation on arrays that the device cannot compute, at the user's line."""
        for dtype in self.lacking(op):
            name = _NAMES.get(dtype, dtype)
            raise TargetError(
                f"the target {self.device.name!r} has no {name} on this device",
                location=source_location(first_with(op, dtype).location),
                help=_INSTEAD.get(dtype),
            )
        for tensor in {v.type for v in (*op.operands, *op.results) if isinstance(v.type, mlir.RankedTensorType)}:
            if tensor.has_static_shape:
                self.check_size(op, math.prod(tensor.shape), tensor.element_type)

    def check_size(self, op: mlir.Operation, elements: int, element_type: mlir.Type) -> None:
        """Reject an array that exceeds the size that a kernel can address."""
        nbytes = elements * (8 if isinstance(element_type, mlir.IndexType) else max(1, element_type.width // 8))
        too_many = self.device.array_elements and elements > self.device.array_elements
        if too_many or (self.device.array_bytes and nbytes > self.device.array_bytes):
            most = (
                f"{self.device.array_elements:,} elements"
                if too_many
                else f"{self.device.array_bytes / (1 << 20):,.0f} MiB"
            )
            raise TargetError(
                f"the target {self.device.name!r} takes arrays of at most {most}, "
                f"and one here has {elements:,} elements and {nbytes / (1 << 20):,.0f} MiB",
                location=source_location(op.location),
                help="compute in several parts, or compile for the CPU",
            )


def first_with(op: mlir.Operation, dtype: str) -> mlir.Operation:
    """The first operation of a body with an operand or result of type `dtype`, for the location of an error."""
    for inner in operations(op):
        if inner != op and any(str(value.type) == dtype for value in (*inner.results, *inner.operands)):
            return inner
    return op


def tensor_blocks(function: mlir.Operation) -> list[mlir.Block]:
    """The blocks that may contain operations of kernels: those of the function and of its scf regions.

    Loops that stay on the host are left out.
    """
    found, todo = [], [block for region in function.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        found.append(block)
        for op in block_ops(block):
            if not op.name.startswith(("linalg.", "tensor.")) and not is_ordered(op) and WHY not in op.attributes:
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def copy_returned_slices(main: mlir.Operation) -> None:
    """Make a kernel copy each returned slice whose elements may lie apart: devices copy contiguous memory alone."""
    final = block_ops(main.regions[0].blocks[0])[-1]
    for position, value in enumerate(final.operands):
        op = defining_op(seen_through(value, RESHAPES))
        if op is None or op.name != "tensor.extract_slice" or is_contiguous(op):
            continue
        slice_ = op.results[0]
        with op.location, mlir.InsertionPoint.after(op):
            identity = mlir.AffineMap.get_identity(slice_.type.rank)
            sizes = [size_operand(op, dim, 1) for dim in dims_of_slice(op)]
            out = emit.value("tensor.empty", [size for size in sizes if not isinstance(size, int)], slice_.type)
            copy = emit.generic([slice_], [out], [identity] * 2, ["parallel"] * identity.n_dims, lambda b: b[:1])
        replace_in_chain(value, slice_, copy.results[0], final, position)


def replace_in_chain(value: mlir.Value, old: mlir.Value, new: mlir.Value, final: mlir.Operation, position: int) -> None:
    """Return a value that is made by reshapes of `old` as the same reshapes of `new`."""
    owner = defining_op(value)
    if value == old:
        final.operands[position] = new
        return
    assert owner is not None, "reshapes are operations"
    chain = [owner]
    while chain[-1].operands[0] != old:
        before = defining_op(chain[-1].operands[0])
        assert before is not None, "the chain ends at the slice"
        chain.append(before)
    with mlir.InsertionPoint(final):
        for each in reversed(chain):
            new = clone_with(each, {each.operands[0]: new}).results[0]
    final.operands[position] = new


def is_contiguous(slice_: mlir.Operation) -> bool:
    """True if the elements of a slice are adjacent for all sizes: after one of its dimensions all others are whole."""
    sizes, strides = (list(slice_.attributes[f"static_{name}"]) for name in ("sizes", "strides"))
    shape = list(slice_.operands[0].type.shape)
    first = next((d for d, size in enumerate(sizes) if size != 1), len(sizes))
    whole = all(size == n != DYNAMIC for size, n in zip(sizes[first + 1 :], shape[first + 1 :]))
    return whole and all(stride == 1 for stride, size in zip(strides, sizes) if size != 1)


def store_numbers(block: mlir.Block) -> None:
    """Replace a `tensor.insert` by an `insert_slice` of one element, which a kernel can do."""
    for op in block_ops(block):
        if op.name != "tensor.insert":
            continue
        number, into, *indices = op.operands
        rank = len(indices)
        with op.location, mlir.InsertionPoint(op):
            one = mlir.RankedTensorType.get([1] * rank, number.type)
            small = emit.value("tensor.splat", [number], one)
            new = emit.insert_slice(small, into, indices)
        replace_op(op, new)


def wrap(ops: Sequence[mlir.Operation]) -> mlir.Operation:
    """Move operations, in their order, into a dispatch region before the last of them."""
    last = ops[-1]
    computed = list(ops)
    ops = with_reshapes(ops)
    dispatched = list(ops)  # no set: the hash of an operation depends on its operands
    results = [r for op in computed for r in op.results if any(use.owner.operation not in dispatched for use in r.uses)]
    attributes = {"no_inline": mlir.UnitAttr.get(), DISPATCH: mlir.StringAttr.get("device")}
    with last.location, mlir.InsertionPoint(last):
        region = emit.create("scf.execute_region", (), [r.type for r in results], attributes, regions=1)
        block = emit.block(region, [])
    values: dict[mlir.Value, mlir.Value] = {}
    for op in ops:
        with mlir.InsertionPoint(block):
            for inner in list(operations(op)):
                for position, operand in enumerate(inner.operands):
                    if inner == op or is_captured(operand, op):
                        inner.operands[position] = cloned_in_dispatch(operand, values, dispatched)
        block.append(op)
    for result, outer in zip(results, region.results):
        here = [use.owner.operation for use in result.uses if is_within(use.owner.operation, region)]
        result.replace_all_uses_except(outer, here)
    with last.location, mlir.InsertionPoint(block):
        emit.create("scf.yield", results)
    for result in region.results:
        move_reshapes_after(result, region)
    return region


def is_captured(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value that is used in a region of `op` is defined outside of `op`."""
    owner = value.owner
    ancestor = owner.owner.operation if isinstance(owner, mlir.Block) else owner.operation.parent.operation
    while ancestor is not None and ancestor.name != "func.func":
        if ancestor == op:
            return False
        ancestor = ancestor.parent
    return True


def move_reshapes_after(value: mlir.Value, producer: mlir.Operation) -> None:
    """Move reshapes of a dispatch result that others than the kernel read after the dispatch that computes it now."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in RESHAPES and user.block == producer.block and user.is_before_in_block(producer):
            user.move_after(producer)
            move_reshapes_after(user.results[0], user)


def with_reshapes(ops: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """The operations, each preceded by clones of the reshapes through which it reads results of the others."""
    found: list[mlir.Operation] = []
    replaced: list[mlir.Operation] = []

    def reshaped(value: mlir.Value) -> mlir.Value:
        owner = defining_op(value)
        made = defining_op(source_of_reshapes(value))
        if owner is None or owner.name not in RESHAPES or made is None or made not in ops:
            return value
        source = reshaped(owner.operands[0])
        with owner.location:
            copy = clone_with(owner, {owner.operands[0]: source})
        replaced.append(owner)
        found.append(copy)
        return copy.results[0]

    for op in ops:
        with mlir.InsertionPoint(op):
            for position, operand in enumerate(op.operands):
                op.operands[position] = reshaped(operand)
        found.append(op)
    for owner in dict.fromkeys(replaced):
        if not any(True for _ in owner.results[0].uses):
            owner.erase()
    return found


def cloned_in_dispatch(
    value: mlir.Value, values: dict[mlir.Value, mlir.Value], dispatched: Sequence[mlir.Operation]
) -> mlir.Value:
    """A clone of a value's producer at the insertion point, if that is free; else the value."""
    if value in values:
        return values[value]
    owner = defining_op(value)
    if owner is None or owner in dispatched or owner.parent.operation in dispatched or not is_cheap_to_clone(owner):
        return value
    local = {result for inner in operations(owner) for result in inner.results}
    for inner in operations(owner):
        for operand in inner.operands:
            if operand not in local and not is_argument_of(operand, owner):
                cloned_in_dispatch(operand, values, dispatched)
    return clone_with(owner, values).results[0]


def is_argument_of(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value is a block argument of a region of `op`."""
    return defining_op(value) is None and value.owner.owner.operation == op


def is_cheap_to_clone(op: mlir.Operation) -> bool:
    """True if dispatches clone the operation rather than read its result."""
    if op.name in _FREE_TO_CLONE:
        return not is_large(op)
    if op.name in _VIEWS:
        return True
    if op.name in RESHAPES:  # free unless the source is itself computed
        source = defining_op(op.operands[0])
        return source is not None and source.name in (*_VIEWS, *_FREE_TO_CLONE, *RESHAPES) and is_cheap_to_clone(source)
    return is_read_from_device(op)


def is_read_from_device(op: mlir.Operation) -> bool:
    """True if a scalar depends on an element of a tensor on the device, for which the host would have to wait."""

    def parts(op: mlir.Operation) -> list[mlir.Operation]:
        if ON_HOST in op.attributes or op.name == "tensor.extract" or not op.name.startswith(_SCALARS) or op.regions:
            return []
        return [owner for owner in map(defining_op, op.operands) if owner is not None]

    return any(
        each.name == "tensor.extract" and ON_HOST not in each.attributes and not is_argument_number(each.operands[0])
        for each in walk(op, parts)
    )


def is_argument_number(value: mlir.Value) -> bool:
    """True if a tensor is a rank-0 argument of @main, or that of the sizes, which the host has."""
    if defining_op(value) is not None or value.owner.owner.operation.name != "func.func":
        return False
    table = sizes_of_call(value.owner.owner.operation)
    return is_number(value.type) or (table is not None and value == table)


def is_large(op: mlir.Operation) -> bool:
    """True for an array constant that is not a splat: it is not cloned into kernels."""
    if op.name != "arith.constant" or not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    return not mlir.DenseElementsAttr(op.attributes["value"]).is_splat


def erase_unread(function: mlir.Operation) -> None:
    """Erase operations without uses, as the dispatches use clones of them."""

    for op in reversed(list(operations(function))):
        pure = op.name in _FREE_TO_CLONE or op.name.startswith(("tensor.", *_SCALARS))
        if pure and is_unused(op):
            op.erase()
