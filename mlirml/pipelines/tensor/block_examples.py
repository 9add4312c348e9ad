"""Block examples: programs with one long batch dimension are tiled along it, so that a tile stays in cache.

Before:
    %c = linalg.generic ... ins(%x, %m) -> tensor<1000x25x10xf64>
    %q = linalg.contract ... ins(%l, %c) -> tensor<1000x25x10xf64>
    %s = linalg.generic ... ins(%q) outs(%zero) -> tensor<25x10xf64>            // a sum over all 1000
After:
    %s = scf.for %i = %c0 to %c1000 step %c40 iter_args(%sum = %zero) -> (tensor<25x10xf64>) {
      %xs = tensor.extract_slice %x[%i, 0] [40, 10] [1, 1]
      %xt = linalg.transpose ins(%xs) ...
      %c = linalg.generic ... ins(%xt, %m) -> tensor<25x10x40xf64>
      %q = linalg.contract ... ins(%l, %c) -> tensor<25x10x40xf64>
      %s = linalg.generic ... ins(%q) outs(%sum) -> tensor<25x10xf64>
      scf.yield %s
    }

Gradients of sums over a batch are such programs: intermediate tensors with the batch dimension are many times larger
than inputs and outputs. In a tile the batch is the last dimension, so that vectors run along it whatever the other
dimensions are. Batched contractions in a tile are then computed a matrix at a time (`tiling/batches.py`), so that the
intermediate results for a matrix are live only for a short time.
"""

from __future__ import annotations

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.cost import bytes_of, element_bytes
from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, LOOP_OR_REQUEST
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.pipelines.tensor.tiling import cluster as clusters
from mlirml.pipelines.tensor.tiling.cluster import Cluster
from mlirml.targets.machine import Processor

_MANY = 24
"""More tensors of elementwise operations than this are too many for one loop."""

_FAR = 8
"""The number of vectors along the batch from which on a matrix is reused often enough."""

_FEWEST = 4
"""Fewer tensors than this are not worth a loop."""


@register(when=(*LOOP_OR_REQUEST, *ANY_CONTRACTION), optional=True)
class BlockExamplesPass(Pass):
    """Tile batch dimensions along which intermediate tensors exceed the second-level cache of `processor` twice.

    Programs of contractions and sums are tiled, and those of very many elementwise operations.

    A tile uses about an eighth of that cache, and consists of whole vectors.
    """

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        for block in tensor_blocks(module):
            self._cut(block)

    def _cut(self, block: mlir.Block) -> None:
        results = _results(block)
        if len(results) < _FEWEST or sum(map(bytes_of, results)) < 2 * self.processor.l2_bytes:
            return  # as `_length` would reject each cluster
        refused: list[Cluster] = []
        for seed in _seeds(results, self.processor.l2_bytes // 4):
            sizes = seed.type.shape
            for dim in sorted(range(len(sizes)), key=lambda d: -sizes[d]):
                if sizes[dim] < self.processor.vector_bits // 16 or any(_has(c, seed, dim) for c in refused):
                    continue  # too short for two tiles of two vectors, or of a known cluster
                try:
                    cluster = clusters.grow(seed, dim)
                except NoMatch:
                    continue
                try:
                    length = self._length(cluster)
                except NoMatch:
                    refused.append(cluster)
                    continue
                self._build(block, cluster, length)
                return

    def _build(self, block: mlir.Block, cluster: Cluster, length: int) -> None:
        from mlirml.pipelines.tensor.tiling import batches  # few programs need it

        lanes = self.processor.vector_bits // 8 // min(element_bytes(x.type.element_type) for x in cluster.inner())
        try:
            most = self.processor.l2_bytes // 4 // (batches.kept_bytes(block, cluster) // cluster.size + 1)
        except NoMatch:
            clusters.tile_cluster(cluster, length)
            return
        most = max(length, min(most // lanes, _FAR) * lanes)
        even = [n for n in range(most, most // 2, -lanes) if cluster.size % n == 0]
        loops = clusters.tile_cluster(cluster, next(iter(even), most), rest_apart=True)
        for loop in loops:
            batches.cut_batches(loop.regions[0].blocks[0])

    def _length(self, cluster: Cluster) -> int:
        """The length of a tile; raises `NoMatch` if tiling does not pay."""
        members = cluster.members
        inner = cluster.inner()
        sums_up = cluster.reduced() and any(op.name in CONTRACTIONS for op in members)
        if not sums_up and len(inner) < _MANY:
            raise NoMatch("no sums over it, or no contractions")
        kept = sum(map(bytes_of, inner))
        still = sum(map(bytes_of, cluster.still()))
        if kept < 2 * self.processor.l2_bytes or len(inner) < _FEWEST:
            raise NoMatch("little is kept")
        lanes = self.processor.vector_bits // 8 // min(element_bytes(x.type.element_type) for x in inner)
        each = kept // cluster.size
        length = max(
            2 * lanes, self.processor.l2_bytes // 8 // each // lanes * lanes, cluster.size * still // (2 * kept)
        )
        if length * 2 > cluster.size or length * each > self.processor.l2_bytes or still > 2 * self.processor.l2_bytes:
            raise NoMatch("too few blocks, or too much is read in each")
        return _even(cluster.size, length, lanes)


def _results(block: mlir.Block) -> list[mlir.Value]:
    """The results of the structured operations of a block."""
    return [
        result
        for op in block_ops(block)
        if op.name.startswith("linalg.") and op.name != "linalg.fill"
        for result in op.results
        if isinstance(result.type, mlir.RankedTensorType) and result.type.has_static_shape
    ]


def _seeds(results: list[mlir.Value], least: int) -> list[mlir.Value]:
    """The largest results, in decreasing order."""
    return sorted((value for value in results if bytes_of(value) >= least), key=bytes_of, reverse=True)[:4]


def _has(cluster: Cluster, value: mlir.Value, dim: int) -> bool:
    """True if a cluster tiles a dim of a tensor."""
    return value in cluster.parts and cluster.parts[value][dim] is not None


def _even(size: int, length: int, lanes: int) -> int:
    """A length of whole vectors, not much longer than `length`, that divides the size if possible."""
    length = -(-length // lanes) * lanes
    even = [n for n in range(length, 3 * length // 2 + 1, lanes) if size % n == 0]
    return min(even, default=length)
