"""Form dispatches: what one kernel computes is put into a region of its own, and so is what stays on the host.

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

Operations are grouped as told in `grouping.py`. Fills, empty tensors, constants, slices and paddings are computed again
in each region that reads them, and so are numbers that are read from tensors of the device. Scatters, scans and
sorts are kernels, other loops and branches stay on the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.ordered_loops import is_ordered
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import DISPATCH, SORTS, WHY
from mlirml.errors import TargetError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, main_function, mlir, operations
from mlirml.ir.location import source_location
from mlirml.offload.grouping import RESHAPES, behind_reshapes, groups_of, is_work
from mlirml.offload.scalars import is_number, pass_by_value
from mlirml.offload.unknown_sizes import keep_in_known_sizes
from mlirml.offload.wide import split_wide
from mlirml.passes import Pass, register

_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i16": "int16", "i8": "int8"}
_INSTEAD = {
    "f64": 'compute in float32: as by `x.astype(np.float32)`, or everywhere by `compile(..., float64="float32")`',
    "i64": "compute in int32, as by `x.astype(np.int32)`, or compile for the CPU",
}
_SORTED = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
_AGAIN = frozenset(["tensor.empty", "linalg.fill", "arith.constant", "tensor.splat", "tensor.from_elements"])
"""What costs nothing to compute again."""
ON_HOST = "mlirml.on_host"
"""On an operation during the pass: the device could not compute it."""
_VIEWS = frozenset(["tensor.extract_slice", "tensor.pad"])
_SCALARS = ("arith.", "math.", "index.")


@register
@dataclass(frozen=True)
class FormDispatchesPass(Pass):
    """Group operations on tensors into regions, one a kernel.

    `dtypes` are the element types that the device has; none for all. Single numbers of other types are computed on the
    host, arrays of them are refused with the name of the `target`, and so are arrays of more than `array_bytes` bytes
    or `array_elements` elements, where these are not 0. What holds one of `host_ops`, as `math.ipowi` or, for one
    element type, `math.sin:f64`, stays on the host. Operations that touch more than so many `buffers` together do not
    become one kernel.
    """

    name = "mlirml-form-dispatches"
    dtypes: tuple[str, ...] = ()
    host_ops: tuple[str, ...] = ()
    array_bytes: int = 0
    array_elements: int = 0
    buffers: int = 24
    target: str = "gpu"

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        with module.context:
            pass_by_value(main, self.stays_on_host, self.lacks_number)
            self.keep_numbers(main)
            for block in tensor_blocks(main):
                store_numbers(block)
                split_wide(block, self.buffers)
                keep_in_known_sizes(block)
                for op in block_ops(block):
                    if is_work(op) and op.name not in SORTS and not self.is_tiny(op):
                        self.check(op)
                work = []
                for op in [op for op in block_ops(block) if is_work(op)]:
                    if reason := self.reason_to_stay(op):
                        op.attributes[WHY] = mlir.StringAttr.get(reason)
                    else:
                        work.append(op)
                for group in groups_of(work, self.buffers):
                    wrap(group)
            erase_unread(main)
            for op in operations(main):
                if ON_HOST in op.attributes:
                    del op.attributes[ON_HOST]

    def keep_numbers(self, main: mlir.Operation) -> None:
        """Mark what computes numbers of types that the device lacks, which no kernel computes again."""
        for op in operations(main):
            if op.name.startswith(("tensor.extract", *_SCALARS)) and len(op.operands) and self.lacking(op):
                op.attributes[ON_HOST] = mlir.UnitAttr.get()

    def stays_on_host(self, op: mlir.Operation) -> bool:
        """True if an operation is computed on the host."""
        return bool(self.reason_to_stay(op))

    def reason_to_stay(self, op: mlir.Operation) -> str:
        """Why an operation is computed on the host; empty where the device does it."""
        if op.name in SORTS and (reason := self.reason_not_to_sort(op)):
            return reason
        if self.is_tiny(op):
            return f"the device has no {_NAMES.get(self.lacking(op)[0], self.lacking(op)[0])}"
        for inner in operations(op):
            if inner.name in self.host_ops:
                return f"the device has nothing for `{inner.name}`"
            kind = str(element(inner.results[0].type)) if inner.name.startswith(("arith.", "math.")) else ""
            if f"{inner.name}:{kind}" in self.host_ops:
                return f"the device has nothing for `{inner.name}` of {_NAMES.get(kind, kind)}"
        return ""

    def reason_not_to_sort(self, op: mlir.Operation) -> str:
        """Why the device does not sort something; empty if it does."""
        kind = op.attributes["kind"].value
        if self.lacking(op):
            return f"the device has no {_NAMES.get(self.lacking(op)[0], self.lacking(op)[0])}"
        if kind not in _SORTED:
            return f"there is no kernel that sorts {kind}"
        return "" if op.operands[0].type.has_static_shape else "the length of what is sorted changes"

    def is_tiny(self, op: mlir.Operation) -> bool:
        """True if an operation computes single numbers of a type that the device lacks."""
        return all(is_number(v.type) for v in (*op.operands, *op.results)) and bool(self.lacking(op))

    def lacks_number(self, kind: mlir.Type) -> bool:
        """True if a type is that of one number of a type that the device lacks."""
        return bool(self.dtypes) and is_number(kind) and str(element(kind)) not in {*self.dtypes, "i1", "index"}

    def lacking(self, op: mlir.Operation) -> list[str]:
        """The element types of an operation that the device lacks."""
        if not self.dtypes:
            return []
        kinds = {str(element(v.type)) for inner in operations(op) for v in (*inner.operands, *inner.results)}
        return sorted(kinds - {*self.dtypes, "i1", "index"})

    def check(self, op: mlir.Operation) -> None:
        """Refuse an operation on arrays that the device cannot compute, at the user's line."""
        for kind in self.lacking(op):
            name = _NAMES.get(kind, kind)
            raise TargetError(
                f"the target {self.target!r} has no {name} on this device",
                location=source_location(first_with(op, kind).location),
                help=_INSTEAD.get(kind),
            )
        for kind in {v.type for v in (*op.operands, *op.results) if isinstance(v.type, mlir.RankedTensorType)}:
            if kind.has_static_shape:
                self.check_size(op, math.prod(kind.shape), kind.element_type)

    def check_size(self, op: mlir.Operation, elements: int, kind: mlir.Type) -> None:
        """Refuse an array that a kernel would not reach all of."""
        nbytes = elements * (8 if isinstance(kind, mlir.IndexType) else max(1, kind.width // 8))
        too_many = self.array_elements and elements > self.array_elements
        if too_many or (self.array_bytes and nbytes > self.array_bytes):
            most = f"{self.array_elements:,} elements" if too_many else f"{self.array_bytes / (1 << 20):,.0f} MiB"
            raise TargetError(
                f"the target {self.target!r} takes arrays of at most {most}, and one here has {elements:,} elements "
                f"and {nbytes / (1 << 20):,.0f} MiB",
                location=source_location(op.location),
                help="compute in several parts, or compile for the CPU",
            )


def first_with(op: mlir.Operation, kind: str) -> mlir.Operation:
    """The first operation of a body that takes or gives a type: several lines of a program become one operation."""
    for inner in operations(op):
        if inner != op and any(str(value.type) == kind for value in (*inner.results, *inner.operands)):
            return inner
    return op


def element(kind: mlir.Type) -> mlir.Type:
    """The type itself, or that of the elements."""
    return kind.element_type if isinstance(kind, mlir.RankedTensorType) else kind


def tensor_blocks(function: mlir.Operation) -> list[mlir.Block]:
    """The blocks that may hold operations on tensors: the function's and those of its scf regions."""
    found, todo = [], [block for region in function.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        found.append(block)
        for op in block_ops(block):
            if not op.name.startswith(("linalg.", "tensor.")) and not is_ordered(op):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def store_numbers(block: mlir.Block) -> None:
    """`tensor.insert` of a number becomes a store of a slice of one element, which a kernel can do."""
    for op in block_ops(block):
        if op.name != "tensor.insert":
            continue
        number, into, *indices = op.operands
        rank = len(indices)
        with op.location, mlir.InsertionPoint(op):
            one = mlir.RankedTensorType.get([1] * rank, number.type)
            small = emit.value("tensor.splat", [number], one)
            ones = mlir.DenseI64ArrayAttr.get([1] * rank)
            attributes = {
                "static_offsets": mlir.DenseI64ArrayAttr.get([mlir.ShapedType.get_dynamic_size()] * rank),
                "static_sizes": ones,
                "static_strides": ones,
                "operandSegmentSizes": emit.segments(1, 1, rank, 0, 0),
            }
            new = emit.create("tensor.insert_slice", [small, into, *indices], [op.results[0].type], attributes)
        op.results[0].replace_all_uses_with(new.results[0])
        op.erase()


def wrap(ops: Sequence[mlir.Operation]) -> mlir.Operation:
    """Put operations, in their order, into a dispatch region in front of the last of them."""
    last = ops[-1]
    computed = list(ops)
    ops = with_reshapes(ops)
    inside = list(ops)  # no set: the hash of an operation depends on its operands
    results = [r for op in computed for r in op.results if any(use.owner.operation not in inside for use in r.uses)]
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
                        inner.operands[position] = again(operand, values, inside)
        block.append(op)
    for result, outer in zip(results, region.results):
        here = [use.owner.operation for use in result.uses if is_within(use.owner.operation, region)]
        result.replace_all_uses_except(outer, here)
    with last.location, mlir.InsertionPoint(block):
        emit.create("scf.yield", results)
    for result in region.results:
        move_reshapes_behind(result, region)
    return region


def is_captured(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value that is read in the regions of an operation comes from around it."""
    owner = value.owner
    inside = owner.owner.operation if isinstance(owner, mlir.Block) else owner.operation.parent.operation
    while inside is not None and inside.name != "func.func":
        if inside == op:
            return False
        inside = inside.parent
    return True


def move_reshapes_behind(value: mlir.Value, place: mlir.Operation) -> None:
    """Move reshapes of a value, which others than the kernel read, behind what computes it now."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in RESHAPES and user.block == place.block and user.is_before_in_block(place):
            user.move_after(place)
            move_reshapes_behind(user.results[0], user)


def with_reshapes(ops: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """Some operations, and in front of each the reshapes of what others of them compute, made once more for it."""
    found: list[mlir.Operation] = []
    replaced: list[mlir.Operation] = []

    def reshaped(value: mlir.Value) -> mlir.Value:
        owner = defining_op(value)
        made = defining_op(behind_reshapes(value))
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


def is_within(op: mlir.Operation, region: mlir.Operation) -> bool:
    """True if an operation stands in the region of another one."""
    while op.name != "func.func":
        op = op.parent.operation
        if op == region:
            return True
    return False


def again(value: mlir.Value, values: dict[mlir.Value, mlir.Value], inside: Sequence[mlir.Operation]) -> mlir.Value:
    """A value built again at the insertion point where that costs next to nothing; else the value."""
    if value in values:
        return values[value]
    owner = defining_op(value)
    if owner is None or owner in inside or owner.parent.operation in inside or not is_computed_again(owner):
        return value
    local = {result for inner in operations(owner) for result in inner.results}
    for inner in operations(owner):
        for operand in inner.operands:
            if operand not in local and not is_argument_of(operand, owner):
                again(operand, values, inside)
    return clone_with(owner, values).results[0]


def is_argument_of(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value is an argument of a region of an operation."""
    return defining_op(value) is None and value.owner.owner.operation == op


def is_computed_again(op: mlir.Operation) -> bool:
    """True if kernels compute the result of an operation themselves."""
    if op.name in _AGAIN:
        return not is_large(op)
    if op.name in _VIEWS:
        return True
    if op.name in RESHAPES:  # of what lies in memory as it is they are free
        source = defining_op(op.operands[0])
        return source is not None and source.name in (*_VIEWS, *_AGAIN, *RESHAPES) and is_computed_again(source)
    return is_read_from_device(op)


def is_read_from_device(op: mlir.Operation) -> bool:
    """True if an operation gives a number that depends on an element of a tensor, which the host would wait for."""
    if ON_HOST in op.attributes:
        return False
    if op.name == "tensor.extract":
        return not is_argument_number(op.operands[0])
    if not op.name.startswith(_SCALARS) or op.regions or not len(op.operands):
        return False
    owners = [owner for owner in map(defining_op, op.operands) if owner is not None]
    return any(is_read_from_device(owner) for owner in owners)


def is_argument_number(value: mlir.Value) -> bool:
    """True if a tensor is an argument of @main of one number, which the host has."""
    return is_number(value.type) and defining_op(value) is None and value.owner.owner.operation.name == "func.func"


def is_large(op: mlir.Operation) -> bool:
    """True if an operation is a constant array of different elements, which is no part of a kernel."""
    if op.name != "arith.constant" or not isinstance(op.results[0].type, mlir.RankedTensorType):
        return False
    return not mlir.DenseElementsAttr(op.attributes["value"]).is_splat


def erase_unread(function: mlir.Operation) -> None:
    """Erase what only dispatches have read, which compute it again."""
    for op in reversed(list(operations(function))):
        pure = op.name in _AGAIN or op.name.startswith(("tensor.", *_SCALARS))
        if pure and op.results and not any(True for result in op.results for _ in result.uses):
            op.erase()
