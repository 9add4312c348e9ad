"""The cost model: what a machine takes for arithmetic, memory, forks and launches, and what passes ask of it.

Partitions of fused loops, orders of products, rewrites of products, register tiles, threads, packing, and loops on
devices are decided by it, and the tuner's estimates are made of it. The numbers are those of a processor of 3 GHz with
vectors of 64 bytes (`STATIC`), so that code does not depend on the machine that it is compiled on, or where
`config.costs` is "measured" what `mlirml machine` has measured. Imports nothing of MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class PanelCosts:
    """The parts of the caches that panels and blocks of products have, and the sizes from which packing pays.

    * `whole_bytes`: the most that is packed of an operand as a whole; `ahead_rows`: how many rows of an operand from
      beyond the second-level cache prefetches are ahead.
    * `near`: the part of a cache that the panel of b takes which should stay in it; `beside`: that of the first-level
      cache which a panel of a may be, that is read from the second mostly; `block`: that of the second-level cache
      which is for a block of a, or of columns.
    * `rows` and `columns`: the parts of the second-level cache for rows of a that are read in place, and for the packed
      columns; `rows_in_place`: the fewest such rows. `squares`: the part of the first-level cache for the rows of a
      symmetric product.
    * `packed_rows`, `packed_columns`: the rows and columns from which b is packed, if it is more than `packed_part` of
      the second-level cache; `packed_work`: the rows times the bytes of b from which fewer rows suffice, as a multiple
      of that cache: every tile of rows reads all of b, from as many pages as it has rows. Half of that is enough if the
      rows of b map to the same sets of the first-level cache. `least_rows`, `few_columns` and `many_columns`: those
      from which a is packed, beside a packed b and alone; `converted_rows`: those from which an operand that is
      converted is packed.
    * `next_rows`: the most rows for which the next panel of b is copied while the tiles of one multiply: packing it
      separately takes half of the time of products with 128 rows, a tenth with 512, and a twentieth with 1024, which is
      not worth the compile time. `cached_rows`: with more, blocks of rows of a leave no space in the second-level
      cache, and b would be copied repeatedly. `turn`: tiles of rows that are enough to copy a panel.
    * `far`: the cost of tiles whose panel of b is in no cache, of that of others.
    """

    whole_bytes: int = 8 << 20
    ahead_rows: int = 8
    near: float = 5 / 8
    beside: float = 5 / 3
    block: float = 1 / 2
    rows: float = 2 / 5
    columns: float = 3 / 10
    squares: float = 9 / 8
    rows_in_place: int = 384
    packed_rows: int = 96
    packed_columns: int = 96
    packed_part: float = 1 / 8
    packed_work: int = 128
    least_rows: int = 8
    few_columns: int = 384
    many_columns: int = 768
    converted_rows: int = 12
    next_rows: int = 768
    cached_rows: int = 256
    turn: int = 16
    far: float = 1.03

    def longest(self, cache_bytes: int, part: float, row_bytes: int) -> int:
        """The rows of so many bytes each that are a part of a cache."""
        return int(cache_bytes * part) // row_bytes

    def prefetched_rows(self, accessed: int, l2_bytes: int) -> int:
        """The rows by which prefetches are ahead in an operand of so many bytes: none where a cache has it."""
        return self.ahead_rows if accessed > l2_bytes else 0

    def depth(self, l1_bytes: int, l2_bytes: int, rows: int, tile: tuple[int, int], size: int) -> int:
        """The longest block of k for `rows` packed rows of a and tiles of so many rows and columns.

        Tiles read their panel of a element by element, mostly from the first-level cache, while b comes from the second
        one.
        """
        mr, nr = tile
        return min(
            2 * self.whole_bytes // (rows * size),
            self.longest(l2_bytes, self.near, nr * size),
            self.longest(l1_bytes, self.beside, 1) // (mr * size),
        )

    def packs_columns(self, rows: int, columns: int, accessed: int, l2_bytes: int, *, collides: bool) -> bool:
        """True if b, of so many bytes, is worth packing; `collides` if its rows map to the same sets of a cache."""
        many = rows >= self.packed_rows and (accessed > int(l2_bytes * self.packed_part) or collides)
        work = rows * accessed * (2 if collides else 1) if rows > self.least_rows else 0
        return (many or work >= self.packed_work * l2_bytes) and columns >= self.packed_columns

    def packs_rows(self, rows: int, columns: int, accessed: int, l2_bytes: int, *, beside: bool) -> bool:
        """True if a, of so many bytes, is worth packing, which is `beside` a packed b or not."""
        return rows >= self.least_rows and columns >= (
            self.few_columns if beside and accessed > l2_bytes else self.many_columns
        )


@dataclass(frozen=True)
class KernelCosts:
    """The cycles of kernels of products and convolutions.

    * `latency`: from a multiply-add to the next one on the same accumulator; `products` and `loads`: the multiply-adds
      and the loads of vectors in a cycle. `narrow`: the part of their rate that vectors of half of 512 bits have, which
      some processors compute in two halves; `half`: what half a vector saves of one.
    * `l2_bytes`, `l3_bytes` and `memory_bytes`: those that a cycle reads from the second-level cache, from the third,
      and from memory; `shared_cache`: the size of the third as a multiple of the second.
    * `ahead_bytes`: how far ahead rows that come from memory are prefetched.
    * `around`: before and after the loop over k of a tile, `row`: an element of a that is broadcast, and
      `least`: the least of a tile for one element of k.
    * `packed_load` and `load_in_place`: the multiply-adds that a vector of b costs, packed or not. Every tile of rows
      reloads it, from the second-level cache mostly. NumPy's arrays start anywhere, so that vectors of 64 bytes cross
      lines.
    * `code` and `code_of_much`: the part that tiles of another size at the edges cost, which are more code to compile,
      and the same where there is much work.
    * `panels`: the costs of packed panels.
    """

    latency: float = 4.0
    products: float = 2.0
    loads: float = 2.0
    narrow: float = 0.9
    half: float = 0.1
    l2_bytes: float = 40.0
    l3_bytes: float = 14.0
    memory_bytes: float = 6.0
    shared_cache: int = 16
    ahead_bytes: int = 2048
    around: float = 12.0
    row: float = 0.15
    least: float = 4.0
    packed_load: float = 0.3
    load_in_place: float = 1.0
    code: float = 0.04
    code_of_much: float = 0.01
    panels: PanelCosts = PanelCosts()

    def window_cycles(self, products: float, loads: float) -> float:
        """One element of a window, for a tile of a convolution of so many vectors of products and of loads."""
        return max(products / self.products, loads / self.loads, self.latency) + 0.5

    def tile_cost(self, products: float, rows: int, vectors: int, load: float) -> float:
        """One element of k, for a register tile, in multiply-adds; a vector of b costs `load` of them."""
        return max(products, rows + vectors, self.least) + self.row * rows + load * vectors


@dataclass(frozen=True)
class Costs:
    """A machine.

    * `parallel_ns`: less work than this stays on one thread; `chunk_ns`: the least work that is worth a chunk.
    * `ghz`: cycles in a nanosecond; `cache_bytes`: arrays that are larger come from memory; `cache_byte_ns` and
      `memory_byte_ns`: the time of a byte from either.
    * `flop_bytes`: the bytes that are read from memory in the time of a flop of a product, for each byte of an element;
      `start_bytes`: those in the time in which a kernel starts.
    * `products`: the multiply-adds of four bytes of a product that is split among threads.
    * `recomputed_ops`: the most operations that are recomputed rather than stored.
    * `packed_rows`: the rows and columns from which an operand is computed as it is packed.
    * `launch_instructions`: those that the host executes in the time of a launch; `instruction_bytes`: the bytes that
      are copied between device and host in the time of one.
    * `kernels`: the costs of kernels of products and convolutions.
    """

    parallel_ns: int = 40_000
    chunk_ns: int = 20_000
    ghz: float = 3.0
    cache_bytes: int = 1 << 20
    cache_byte_ns: float = 0.015
    memory_byte_ns: float = 0.05
    flop_bytes: float = 1 / 32
    start_bytes: float = 2048.0
    products: int = 2_000_000
    recomputed_ops: int = 8
    packed_rows: int = 48
    launch_instructions: int = 10_000
    instruction_bytes: int = 4
    kernels: KernelCosts = KernelCosts()

    def grain(self, iterations: int, each_ns: float) -> int:
        """The least number of iterations of a parallel loop for one thread; 0 if it should be serial."""
        if iterations < 2 or iterations * each_ns < self.parallel_ns:
            return 0
        return min(iterations, max(1, math.ceil(self.chunk_ns / each_ns)))

    def vector_ns(self, cycles: float, size: int) -> float:
        """Nanoseconds of an element of so many bytes, if a vector of 64 bytes takes so many cycles."""
        return cycles * size / 64 / self.ghz

    def byte_ns(self, footprint: int) -> float:
        """Nanoseconds for each byte of a nest that accesses so many."""
        return self.memory_byte_ns if footprint > self.cache_bytes else self.cache_byte_ns

    def level_byte_ns(self, footprint: int) -> float:
        """Nanoseconds for each byte of loops that access so many, if a cache may have all of them.

        The third-level cache keeps up with loops over its arrays, but for its first access.
        """
        is_cached = footprint <= self.kernels.shared_cache * self.cache_bytes
        return self.cache_byte_ns if is_cached else self.memory_byte_ns

    def loops_ns(self, work_ns: float, accessed: float) -> float:
        """The time of loops that compute while they access memory for so many nanoseconds."""
        return max(work_ns, accessed) + self.start_bytes * self.memory_byte_ns

    def product_bytes(self, flops: float, accessed: float, element_bytes: int) -> float:
        """The time of a product of arrays, in bytes that are read from memory."""
        return flops * element_bytes * self.flop_bytes + accessed + self.start_bytes

    def sum_bytes(self, accessed: float) -> float:
        """The time of a sum over dims of an array, in bytes that are read from memory."""
        return accessed + self.start_bytes

    def is_cheap(self, ops: int) -> bool:
        """True if so many operations are recomputed in less time than their result is stored and read."""
        return ops <= self.recomputed_ops

    def is_packed(self, rows: int, columns: int) -> bool:
        """True if a product has so many rows and columns that an operand is better computed as it is packed."""
        return min(rows, columns) >= self.packed_rows

    def is_shared(self, products: int) -> bool:
        """True if so many multiply-adds are worth several threads."""
        return products >= self.products

    def stays_on_host(self, instructions: int, launches: int, copied: int) -> bool:
        """True if instructions take the host less time than launches the device, less the copies to the host."""
        return instructions + copied // self.instruction_bytes < launches * self.launch_instructions


WORTH = 0.8
"""The most that a rewrite may cost of the program's own form: where they are alike, that is kept."""
WORTH_OF_LOOPS = 0.95
"""The same for loops that compute the same numbers in another partition."""
STATIC = Costs()
"""The machine that code is made for where none was measured."""


_used: ContextVar[Costs | None] = ContextVar("costs", default=None)


def costs() -> Costs:
    """The machine that passes decide for."""
    return _used.get() or STATIC


@contextmanager
def used(machine: Costs | None) -> Iterator[None]:
    """Decide for a machine in a `with` block, for `STATIC` with None."""
    before = _used.set(machine)
    try:
        yield
    finally:
        _used.reset(before)


def is_worth(new: float, old: float, most: float = WORTH) -> bool:
    """True if a rewrite is clearly cheaper: it costs at most `most` of what it replaces."""
    return new <= most * old
