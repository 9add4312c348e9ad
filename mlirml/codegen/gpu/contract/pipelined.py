"""Products whose tiles are copied to shared memory steps ahead of their use, asynchronously if possible.

    start the copies of slots 0 .. SLOTS-2 of the panels
    for step in the depth, DEPTH at a time:
        wait until slot step % SLOTS is filled;  barrier
        start the copies of slot (step + SLOTS - 1) % SLOTS, whose readers have passed the barrier
        multiply slot step % SLOTS

There is one barrier per step, and threads wait for memory in the first steps only. The largest tile has three slots, so
that two blocks fit on a processor; smaller ones, which are for few blocks, have four, unless the depth is as short.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.shared_memory import STATIC
from mlirml.codegen.gpu.contract.panels import CHUNK_BYTES, Panel, token
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import VECTOR, Contract, Store, Tile
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.kernel import Kernel
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

LEAST_SLOTS, MOST_SLOTS = 3, 4
"""Steps of panels in shared memory: with three the largest tile fills the 48 KiB that are available to every block."""
ROW_BYTES = 64
"""The bytes of a row along the depth in one step."""


def slots_of(slot_bytes: int, steps: int) -> int:
    """The number of slots of panels that have so many bytes in a step, of which there are so many along the depth."""
    return max(LEAST_SLOTS, min(MOST_SLOTS, STATIC // slot_bytes, steps))


class Pipelined(Contract):
    """The kernel except for the product of two tiles: `multiply_slot`."""

    def __init__(
        self, kernel: Kernel, product: Product, tile: Tile, parts: int = 1, partial: mlir.Value | None = None
    ) -> None:
        kernel.host.op.context.get_dialect_descriptor("nvgpu")  # loads it
        self.vector = CHUNK_BYTES // element_bytes(product.op.operands[0].type.element_type)
        super().__init__(kernel, product, tile, parts, partial)
        factors = zip((tile.rows, tile.columns), product.sides, strict=True)
        types = [(extent, product.op.operands[side.operand].type.element_type) for extent, side in factors]
        slot_bytes = sum(extent * tile.depth * element_bytes(type_) for extent, type_ in types)
        self.slots = slots_of(slot_bytes, self.num_steps)
        self.panels = [Panel(self, side, self.slots) for side in (0, 1)]

    def share(self) -> list[mlir.Value]:
        """The panels are the shared memory."""
        return []

    def is_plain(self, side: int) -> bool:
        """True if the shared elements of a factor are those in memory."""
        return True

    def multiply_slot(self, slot: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
        """Add the products of a step."""
        raise NotImplementedError

    def build(self, stores: Sequence[Store]) -> None:
        """Build the kernel."""
        kernel = self.kernel
        direct = [panel for panel in self.panels if panel.direct]
        staged = [panel for panel in self.panels if not panel.direct]
        for number in range(self.slots - 1):
            early = form(min(number, self.num_steps - 1))
            with kernel.scope():
                for panel in direct:
                    panel.copy(form(number), self.first + early)
                for panel in staged:
                    panel.store(form(number), self.loaded(panel, self.first + early))
            group = self.commit()

        def step(number: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
            later = number + (self.slots - 1)
            # Waits for all groups but the newest ones; any of them may be the operand.
            emit.create("nvgpu.device_async_wait", [group], (), {"numGroups": emit.i32(self.slots - 2)})
            kernel.barrier()
            kernel.guarded([kernel.below(later, self.num_steps)], lambda: self.copy(direct, later))
            self.commit()
            values = [self.loaded(panel, self.first + kernel.clamped(later, self.num_steps)) for panel in staged]
            sums = self.multiply_slot(self.slot(number), sums)
            for panel, loaded in zip(staged, values, strict=True):
                panel.store(self.slot(later), loaded)
            return sums

        sums = kernel.loop((0, self.num_steps, 1), step, self.zeros())
        kernel.lanes = VECTOR
        self.finish(sums, stores)

    def copy(self, panels: Sequence[Panel], number: Form) -> None:
        """Start the copies of a step of panels."""
        for panel in panels:
            panel.copy(self.slot(number), self.first + number)

    def loaded(self, panel: Panel, number: Form) -> list[list[mlir.Value]]:
        """The elements that a thread stores into a panel, loaded as vectors if they are adjacent."""
        self.kernel.lanes = self.vector
        values = panel.load(number)
        self.kernel.lanes = 0
        return values

    def slot(self, number: Form) -> Form:
        """The slot of the panels of a step."""
        if not number.terms:
            return form(number.constant % self.slots)
        return form(Digit(Base(self.kernel.at(number), self.num_steps + self.slots), 1, self.slots))

    def commit(self) -> mlir.Value:
        """End the group of copies of a step."""
        return emit.value("nvgpu.device_async_create_group", (), token())
