"""Counts of an emulated kernel's accesses: sectors of global memory, and passes over the banks of shared memory.

A warp reads or writes global memory in sectors of 32 bytes. Shared memory has 32 banks of four bytes, and serves in one
pass what lies in different banks, or in one word of each: a warp of 4-byte accesses, half of one of 8 bytes, or a
quarter of one of 16 (NVIDIA, "CUDA C++ Best Practices Guide", 10.2.1 and 10.2.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_WARP, _SECTOR, _BANKS, _WORD = 32, 32, 32, 4


@dataclass
class Traffic:
    """Counts over all threads.

    `sectors` are those that were moved, `needed` the fewest that hold the bytes of each access of a warp; `passes` are
    those over shared memory, `phases` the fewest. `widths` has the bytes that threads move by the size of an access.
    `products` are the products of fragments that warps computed on tensor cores.
    """

    sectors: int = 0
    needed: int = 0
    passes: int = 0
    phases: int = 0
    products: int = 0
    widths: dict[int, int] | None = None

    @property
    def coalesced(self) -> float:
        """The share of the bytes of the sectors that were asked for, 1 at best."""
        return self.needed / self.sectors if self.sectors else 1.0

    @property
    def conflicts(self) -> float:
        """The passes over shared memory for each that is needed, 1 at best."""
        return self.passes / self.phases if self.phases else 1.0

    def share(self, size: int) -> float:
        """The share of the bytes in global memory that threads move in accesses of a size, or of a larger one."""
        widths = self.widths or {}
        return sum(count for each, count in widths.items() if each >= size) / max(1, sum(widths.values()))

    def note_global(self, warp: np.ndarray, address: np.ndarray, size: int) -> None:
        """Count an access to global memory by threads of these warps."""
        self.widths = self.widths or {}
        self.widths[size] = self.widths.get(size, 0) + size * len(address)
        parts = max(1, size // _SECTOR)
        sector = (address // _SECTOR)[:, None] + np.arange(parts)
        pairs = np.stack([np.repeat(warp, parts), sector.ravel()])
        self.sectors += np.unique(pairs, axis=1).shape[1]
        own = np.unique(np.stack([warp, address]), axis=1)[0]
        _, counts = np.unique(own, return_counts=True)
        self.needed += int((-(-counts * size // _SECTOR)).sum())

    def note_shared(self, warp: np.ndarray, lane: np.ndarray, address: np.ndarray, size: int) -> None:
        """Count an access to shared memory by these lanes of warps."""
        per_phase = min(_WARP, _WARP * _WORD // max(size, _WORD))
        phase = warp * _WARP + lane // per_phase
        words = max(1, size // _WORD)
        word = (address // _WORD)[:, None] + np.arange(words)
        found = np.unique(np.stack([np.repeat(phase, words), word.ravel()]), axis=1)
        banks = np.unique(found[0] * _BANKS + found[1] % _BANKS, return_counts=True)
        order = banks[0] // _BANKS
        starts = np.flatnonzero(np.r_[True, order[1:] != order[:-1]])
        self.passes += int(np.maximum.reduceat(banks[1], starts).sum()) if len(order) else 0
        self.phases += len(starts) if len(order) else 0
