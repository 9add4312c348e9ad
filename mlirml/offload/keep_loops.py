"""Keep loops: a loop whose kernels are so small that their launches take longer than the host stays on the host.

Before: 5,000 launches of a kernel for one element
    %r = scf.for %i = %c0 to %c5000 step %c1 iter_args(%y = %x) -> (tensor<8xf64>) {
      %k = tensor.extract %sites[%i] : tensor<5000xindex>
      %a = tensor.extract %y[%k] : tensor<8xf64>
      %b = arith.negf %a : f64
      %s = tensor.insert %b into %y[%k] : tensor<8xf64>
      ...
      scf.yield %s : tensor<8xf64>
    }
After: none, one copy of `%x` and `%sites` to the host, and one copy of the result back
    %r = scf.for ... { ... } {mlirml.why = "it is faster there than 15,000 launches or more"}

A launch, and a wait for a number that the host reads, costs some microseconds; arrays that the loop accesses are copied
once. Loops of few launches stay on the device, and so do those with arrays whose sizes are dynamic.
"""

from __future__ import annotations

import math

from mlirml.analysis.cost import bytes_of, instructions
from mlirml.analysis.costs import costs
from mlirml.analysis.ordered_loops import is_ordered
from mlirml.analysis.structured import sizes_of
from mlirml.analysis.traits import CONTROL, SEQUENTIAL_LOOPS
from mlirml.analysis.trip_counts import trip_count
from mlirml.analysis.values import outer_values
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import OF_DEVICES, WHY
from mlirml.ir.bindings import block_ops, main_function, mlir, operations
from mlirml.offload.grouping import is_work
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_LOOP
from mlirml.targets.machine import Device

_FEWEST = 256
"""Launches of a loop that is worth to be kept on the host: fewer cost less than the copies and their waits."""
_DYNAMIC_TRIPS = 256
"""The trip count that is assumed of a loop whose bounds are dynamic."""


@dataclass(frozen=True)
class Cost:
    """The launches and waits of a loop on the device, and the instructions that replace its kernels on the host."""

    launches: int = 0
    instructions: int = 0

    def plus(self, other: Cost, times: int = 1) -> Cost:
        return Cost(self.launches + times * other.launches, self.instructions + times * other.instructions)


@register(when=ANY_LOOP)
class KeepLoopsPass(Pass):
    """Keep loops on the host whose kernels cost less than their launches."""

    device: Device = Device()

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        todo = [block for region in main.regions for block in region.blocks]
        while todo:
            for op in block_ops(todo.pop()):
                if op.name not in CONTROL or is_ordered(op):
                    continue
                if op.name in SEQUENTIAL_LOOPS and self.keeps(op):
                    continue
                todo += [block for region in op.regions for block in region.blocks]

    def keeps(self, loop: mlir.Operation) -> bool:
        """Give a loop the reason to stay on the host; False if it has none."""
        try:
            cost = cost_of_loop(loop)
            copied = bytes_of_tensors(loop, self.device)
        except NoMatch:
            return False
        if cost.launches < _FEWEST or not costs().stays_on_host(cost.instructions, cost.launches, copied):
            return False
        loop.attributes[WHY] = mlir.StringAttr.get(f"it is faster there than about {cost.launches:,} launches")
        return True


def cost_of_loop(loop: mlir.Operation) -> Cost:
    """The cost of all iterations of a loop; raises `NoMatch` if it is not known."""
    trips = trip_count(loop) if loop.name == "scf.for" else None
    inner = [cost_of_block(block) for region in loop.regions for block in region.blocks]
    found = Cost()
    for cost in inner:
        found = found.plus(cost, _DYNAMIC_TRIPS if trips is None else trips)
    return found


def cost_of_block(block: mlir.Block) -> Cost:
    """The cost of the operations of a block once, those of both sides of a branch included."""
    found = Cost()
    for op in block_ops(block):
        if is_work(op):
            found = found.plus(Cost(1, instructions_of_work(op)))
        elif op.name == "tensor.insert":
            found = found.plus(Cost(1, 1))
        elif op.name in SEQUENTIAL_LOOPS:
            found = found.plus(cost_of_loop(op))
        elif op.name in CONTROL:
            for region in op.regions:
                for inner in region.blocks:
                    found = found.plus(cost_of_block(inner))
    return found


def instructions_of_work(op: mlir.Operation) -> int:
    """About how many instructions of the host an operation takes that would be a kernel."""
    if op.name in OF_DEVICES:
        raise NoMatch("sorts and transforms stay on the device")
    if op.name == "scf.for":
        trips = trip_count(op)
        assert trips is not None, "the bounds of ordered loops are constant"
        own = [inner for inner in operations(op) if inner != op]
        return trips * sum(instructions_of_work(i) if i.name == "scf.for" else 1 for i in own if i.block == body_of(op))
    if op.name == "tensor.insert_slice":
        return elements_of(op.operands[0])
    if op.name == "linalg.fill":
        return elements_of(op.results[0])
    sizes = sizes_of(op)
    if -1 in sizes:
        raise NoMatch("a trip count is dynamic")
    return math.prod(sizes) * max(1, instructions(block_ops(body_of(op))))


def body_of(op: mlir.Operation) -> mlir.Block:
    return op.regions[0].blocks[0]


def elements_of(tensor: mlir.Value) -> int:
    """The number of elements of a tensor; raises `NoMatch` if it is dynamic."""
    if not tensor.type.has_static_shape:
        raise NoMatch("a size is dynamic")
    return math.prod(tensor.type.shape)


def bytes_of_tensors(loop: mlir.Operation, device: Device) -> int:
    """The bytes of the tensors that a loop reads from outside, and of its results; raises `NoMatch` where dynamic."""
    tensors = [v for v in (*outer_values(loop), *loop.results) if isinstance(v.type, mlir.RankedTensorType)]
    for tensor in tensors:
        elements_of(tensor)
        if device.dtypes and str(tensor.type.element_type) not in {*device.dtypes, "i1", "index"}:
            raise NoMatch("the device cannot hold an array")
    return sum(map(bytes_of, tensors))
