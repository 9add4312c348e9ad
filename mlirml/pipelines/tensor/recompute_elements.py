"""Recompute elements: values that derivatives read of elementwise operations before contractions are recomputed there.

Before:
    %p:3 = linalg.generic ins(%h) { %u = ..., %t = math.tanh %u, %y = ...  linalg.yield %u, %t, %y }
    %z = linalg.matmul ins(%p#2, %w) ...
    ...
    %d = linalg.generic ins(%ct, %h, %p#0, %p#1) { ... }
After:
    %p = linalg.generic ins(%h) { %u = ..., %t = math.tanh %u, %y = ...  linalg.yield %y }
    %z = linalg.matmul ins(%p, %w) ...
    ...
    %d = linalg.generic ins(%ct, %h) { %u = ..., %t = math.tanh %u, ... }

The scalars of the first body are the nodes of a flow network, whose capacity is the size of their tensor: zero if the
tensor is live anyway, since a later operation reads it. The sources are the inputs, the sinks the values that the later
operation reads; the scalars at a minimum cut are saved, and the others recomputed from them. Contractions are never
recomputed. `autodiff/saved.py` does the same for the values that loop iterations save.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.cost import bytes_of
from mlirml.analysis.minimum_cut import Network
from mlirml.analysis.structured import indexing_maps
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import LOOP_OR_REQUEST
from mlirml.pipelines.tensor.fuse import tensor_blocks

_COSTLY = (*CONTRACTIONS, "linalg.conv_2d_nhwc_hwcf", "linalg.conv_2d_nchw_fchw")


@register(when=LOOP_OR_REQUEST, optional=True)
class RecomputeElementsPass(Pass):
    """Minimize the bytes saved of elementwise operations, for tensors of at least `least` bytes."""

    least: int = 1 << 18

    def run(self, module: mlir.Operation) -> None:
        for block in tensor_blocks(module):
            ops = block_ops(block)
            costly = [number for number, op in enumerate(ops) if op.name in _COSTLY]
            if not costly:
                continue
            positions = {result: number for number, op in enumerate(ops) for result in op.results}
            number = 0
            while number < len(ops):
                op = ops[number]
                number += 1
                if op.name != "linalg.generic" or positions[op.results[0]] > costly[-1]:
                    continue
                try:
                    found = match_recomputation(op, positions, costly, self.least)
                except NoMatch:
                    continue
                recompute(found, positions)
                ops = block_ops(block)  # some have been replaced by clones


@dataclass(frozen=True)
class Recomputation:
    """An operation, its results that `readers` can recompute, and the scalars of its body that suffice for that."""

    op: mlir.Operation
    results: list[mlir.Value]
    readers: list[mlir.Operation]
    saved: list[mlir.Value]


def match_recomputation(
    op: mlir.Operation, positions: dict[mlir.Value, int], costly: Sequence[int], least: int
) -> Recomputation:
    """Match an operation whose results are better recomputed; raises `NoMatch` if none are."""
    block = op.regions[0].blocks[0]
    *body, end = block_ops(block)
    rank = len(list(op.attributes["iterator_types"]))
    maps = indexing_maps(op)
    whole = mlir.AffineMap.get_identity(rank)
    inputs = len(op.operands) - len(op.results)
    if any(map_ != whole for map_ in maps[inputs:]) or any(x.name == "linalg.index" or x.regions for x in body):
        raise NoMatch("not elementwise")
    if any(list(argument.uses) for argument in list(block.arguments)[inputs:]):
        raise NoMatch("an init is read")
    results, readers = _match_late_readers(op, positions, costly, least)
    last = max(readers)
    network, scalars = Network(), [*list(block.arguments)[:inputs], *(r for x in body for r in x.results)]
    numbers = {scalar: number for number, scalar in enumerate(scalars)}
    free = {y for y, r in zip(end.operands, op.results) if r not in results and _is_live(r, op.block, last, positions)}
    for scalar, number in numbers.items():
        size = 0 if scalar in free else bytes_of(results[0])
        if number < inputs:
            tensor = op.operands[number]
            live = not isinstance(tensor.type, mlir.RankedTensorType) or _is_live(tensor, op.block, last, positions)
            size = 0 if live else min(size, bytes_of(tensor))
            network.add_edge("begin", (number, "in"))
        network.add_edge((number, "in"), (number, "out"), size)
    for x in body:
        for operand in dict.fromkeys(x.operands):
            if operand in numbers:
                network.add_edge((numbers[operand], "out"), (numbers[x.results[0]], "in"))
    for y, r in zip(end.operands, op.results):
        if r in results:
            if y not in numbers:
                raise NoMatch("a number from outside")
            network.add_edge((numbers[y], "out"), "end")
    after = network.minimum_cut("begin", "end")
    if after is None:
        raise NoMatch("nothing bounds it")
    saved = [s for s, n in numbers.items() if (n, "in") not in after and (n, "out") in after]
    wanted = {y for y, r in zip(end.operands, op.results) if r in results}
    if wanted <= set(saved):
        raise NoMatch("what is kept is the least")
    return Recomputation(op, results, [readers[at] for at in sorted(readers)], saved)


def _match_late_readers(
    op: mlir.Operation, positions: dict[mlir.Value, int], costly: Sequence[int], least: int
) -> tuple[list[mlir.Value], dict[int, mlir.Operation]]:
    """The large results that are read after a costly operation only, and their readers by position."""
    here = positions[op.results[0]]
    readers: dict[int, mlir.Operation] = {}
    results = []
    for result in op.results:
        users = [(_position(use, op.block, positions), use.owner.operation) for use in result.uses]
        late = all(
            user.name == "linalg.generic" and user.block == op.block and any(here < c < at for c in costly)
            for at, user in users
        )
        if users and late and bytes_of(result) >= least:
            results.append(result)
            readers.update(users)
    if not results:
        raise NoMatch("nothing is kept")
    for user in readers.values():
        read = [m for x, m in zip(user.operands, indexing_maps(user)) if x in results]
        inits = list(user.operands)[-len(user.results) :]
        if any(map_ != read[0] for map_ in read) or any(r in inits for r in results):
            raise NoMatch("read in two ways, or stored into")
    return results, readers


def _position(use: mlir.OpOperand, block: mlir.Block, positions: dict[mlir.Value, int]) -> int:
    """The index of the operation of `block` that is or contains a use; those without results come last."""
    op = use.owner.operation
    while op.block != block:
        op = op.parent.operation
    return positions[op.results[0]] if op.results else len(positions)


def _is_live(value: mlir.Value, block: mlir.Block, last: int, positions: dict[mlir.Value, int]) -> bool:
    """True if a tensor is live until operation `last` anyway."""
    if defining_op(value) is None or value.owner.operation.block != block:
        return True
    return any(_position(use, block, positions) >= last for use in value.uses)


def recompute(found: Recomputation, positions: dict[mlir.Value, int]) -> None:
    """Make the readers recompute the results from the saved scalars."""
    op = found.op
    block = op.regions[0].blocks[0]
    *body, end = block_ops(block)
    yields = list(end.operands)
    inputs = len(op.operands) - len(op.results)
    results = list(op.results)
    scalars = {r: y for r, y in zip(results, yields) if r in found.results}
    arguments = list(block.arguments)[:inputs]
    stay = [r for r in results if r not in found.results or scalars[r] in found.saved]
    stored = {yields[results.index(r)] for r in stay}
    more = [s for s in found.saved if s not in arguments and s not in stored]
    inits = [op.operands[inputs + results.index(r)] for r in stay]
    wanted = [*(yields[results.index(r)] for r in stay), *more]
    with op.location, mlir.InsertionPoint(op):
        for s in more:
            like = results[0].type
            inits.append(emit.empty(mlir.RankedTensorType.get(like.shape, s.type)))
        given, maps = list(op.operands)[:inputs], indexing_maps(op)
        new = emit.generic(
            given, inits, [*maps[:inputs], *[maps[-1]] * len(inits)], _iterator_types(op),
            lambda xs: _clone_scalars(body, dict(zip(arguments, xs)), wanted),
        )  # fmt: skip
    tensors: dict[mlir.Value, tuple[mlir.Value, mlir.AffineMap]] = {
        a: (x, m) for a, x, m in zip(arguments, given, maps) if a in found.saved
    }
    for s, r in zip(wanted, new.results):
        if s in found.saved:
            tensors.setdefault(s, (r, maps[-1]))
    for r, fresh in zip(stay, new.results):
        r.replace_all_uses_with(fresh)
    at = positions[results[0]]
    positions.update((fresh, at) for fresh in new.results)
    for reader in found.readers:
        _rebuild_reader(reader, {r: scalars[r] for r in found.results if r not in stay}, body, tensors, positions)
    op.erase()


def _iterator_types(op: mlir.Operation) -> list[str]:
    return ["reduction" if "reduction" in str(kind) else "parallel" for kind in op.attributes["iterator_types"]]


def _clone_scalars(
    body: Sequence[mlir.Operation], values: dict[mlir.Value, mlir.Value], wanted: Sequence[mlir.Value]
) -> list[mlir.Value]:
    """Clone the operations that compute scalars; `values` maps the known ones."""
    needed: set[mlir.Value] = {s for s in wanted if s not in values}
    chosen = []
    for op in reversed(body):
        if op.results[0] in needed and op.results[0] not in values:
            chosen.append(op)
            needed.update(x for x in op.operands if x not in values)
    for op in reversed(chosen):
        clone_with(op, values)
    return [values.get(s, s) for s in wanted]


def _rebuild_reader(
    reader: mlir.Operation,
    scalars: dict[mlir.Value, mlir.Value],
    body: Sequence[mlir.Operation],
    tensors: dict[mlir.Value, tuple[mlir.Value, mlir.AffineMap]],
    positions: dict[mlir.Value, int],
) -> None:
    """Rebuild an operation so that it recomputes scalars instead of reading tensors of them."""
    count = len(reader.operands) - len(reader.results)
    block, maps, operands = reader.regions[0].blocks[0], indexing_maps(reader), list(reader.operands)
    arguments = list(block.arguments)
    kept = [n for n in range(count) if operands[n] not in scalars]
    reads = {maps[n] for n in range(count) if operands[n] in scalars}
    if not reads:
        return
    (at,) = reads
    rank = at.n_dims
    inputs, new_maps = [operands[n] for n in kept], [maps[n] for n in kept]
    for tensor, map_ in tensors.values():
        inputs.append(tensor)
        new_maps.append(mlir.AffineMap.get(rank, 0, [e.compose(at) for e in map_.results]))
    *ops, end = block_ops(block)

    def build(xs: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip((arguments[n] for n in kept), xs))
        values.update(zip(arguments[count:], xs[len(inputs) :]))
        there = dict(zip(tensors, xs[len(kept) :]))
        wanted = list(dict.fromkeys(scalars.values()))
        found = dict(zip(wanted, _clone_scalars(body, there, wanted)))
        values.update((arguments[n], found[scalars[operands[n]]]) for n in range(count) if operands[n] in scalars)
        for op in ops:
            clone_with(op, values)
        return [values.get(x, x) for x in end.operands]

    with reader.location, mlir.InsertionPoint(reader):
        new = emit.generic(inputs, operands[count:], [*new_maps, *maps[count:]], _iterator_types(reader), build)
    here = positions[reader.results[0]]
    positions.update((fresh, here) for fresh in new.results)
    replace_op(reader, *new.results)
