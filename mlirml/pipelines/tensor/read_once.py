"""Read a large matrix once for several of its products with vectors, by blocks of rows that stay in the cache.

Before:
    %y = linalg.matvec ins(%a, %x : tensor<4000x5000xf64>, tensor<5000xf64>) outs(%zeros)
    %z = linalg.vecmat ins(%y, %a : tensor<4000xf64>, tensor<4000x5000xf64>) outs(%zero)
After:
    %threads = func.call @mlirml_threads() : () -> i64
    %one = arith.cmpi sle, %threads, %c1
    %z = scf.if %one -> (tensor<5000xf64>) {
      %sum = scf.for %i = %c0 to %c4000 step %c16 iter_args(%zi = %zero) -> (tensor<5000xf64>) {
        %b = tensor.extract_slice %a[%i, 0] [16, 5000] [1, 1]
        %yi = linalg.matvec ins(%b, %x : tensor<16x5000xf64>, tensor<5000xf64>) outs(%zero_rows)
        %next = linalg.vecmat ins(%yi, %b : tensor<16xf64>, tensor<16x5000xf64>) outs(%zi)
        scf.yield %next
      }
      scf.yield %sum
    } else {
      ...                                     // as before: several threads share each product
    }

Such products wait for the memory that the matrix is read from, so that half of the reads take half of the time. The
rows of a product are those of the matrix (`matvec`), or are summed (`vecmat`); what is summed may be computed of rows
that are known by then, through operations on elements: `x.T @ (x @ w - y)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial

from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.traits import TENSOR_STARTS
from mlirml.analysis.values import used_values, uses_any
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, match_contraction
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import TWO_CONTRACTIONS
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.targets.machine import Processor

THREADS = "mlirml_threads"
_FEWEST, _MOST = 8, 64
"""Rows of a block."""
_LARGE = 4
"""Second-level caches that a matrix is larger than."""
_PURE = ("arith.", "linalg.", "math.", "tensor.")


@register(when=TWO_CONTRACTIONS, optional=True)
class ReadOncePass(Pass):
    """Compute products of a matrix with vectors together, by blocks of rows that half fill the L2 cache."""

    processor: Processor = Processor()

    def run(self, module: mlir.Operation) -> None:
        done = False
        for block in tensor_blocks(module):
            for matrix in dict.fromkeys(m for op in block_ops(block) if (m := matrix_of(op)) is not None):
                rows, ops = self._rows(matrix), block_ops(block)
                group = gather(ops, matrix) if rows else Group(matrix)
                if len(group.products) > 1 and group.leave_room(ops):
                    build(group, rows)
                    done = True
        if done:
            declare(module)

    def _rows(self, matrix: mlir.Value) -> int:
        """The number of rows of a block; 0 for a matrix that is too small, or whose rows are too long."""
        kind = mlir.ShapedType(matrix.type)
        each = kind.shape[1] * kind.element_type.width // 8
        rows = self.processor.l2_bytes * 5 // 8 // each // _FEWEST * _FEWEST
        return min(rows, _MOST) if kind.shape[0] * each > _LARGE * self.processor.l2_bytes else 0


def matrix_of(op: mlir.Operation) -> mlir.Value | None:
    """The matrix of a product with a vector; None if an operation is none."""
    if op.name not in CONTRACTIONS or len(op.results) != 1:
        return None
    try:
        found = match_contraction(op)
    except NoMatch:
        return None
    if sorted(map(len, found.maps)) != [1, 1, 2] or len(found.maps[2]) != 1 or len({*map(str, _elements(op))}) > 1:
        return None
    return op.operands[0 if len(found.maps[0]) == 2 else 1]


def _elements(op: mlir.Operation) -> list[mlir.Type]:
    return [mlir.ShapedType(value.type).element_type for value in op.operands]


def sums(op: mlir.Operation) -> list[bool]:
    """For each result of a member: True if it is a sum over the rows of the matrix, False if it has their number."""
    if op.name == "linalg.generic":
        return [not m.results for m in indexing_maps(op)[-len(op.results) :]]
    maps = match_contraction(op).maps
    return [next(dims for dims in maps if len(dims) == 2)[0] not in maps[2]]


@dataclass
class Group:
    """Operations on one matrix and on its rows, in their order; `others` use results of them, and come after all."""

    matrix: mlir.Value
    members: list[mlir.Operation] = field(default_factory=list)
    others: list[mlir.Operation] = field(default_factory=list)

    @property
    def products(self) -> list[mlir.Operation]:
        return [op for op in self.members if op.name != "linalg.generic"]

    def results(self, *, summed: bool) -> list[mlir.Value]:
        """The results of the members that are sums over rows, or those that are not."""
        return [v for op in self.members for v, one in zip(op.results, sums(op), strict=True) if one == summed]

    def init(self, result: mlir.Value) -> mlir.Value:
        """The operand that a result starts with."""
        op = result.owner
        return op.operands[len(op.operands) - len(op.results) + list(op.results).index(result)]

    def leave_room(self, ops: list[mlir.Operation]) -> bool:
        """Keep the others that precede the last member; True if all of them may be moved after it."""
        self.others = [op for op in self.others if ops.index(op) < ops.index(self.members[-1])]
        return all(op.name.startswith(_PURE) for op in self.others)

    def kept(self) -> list[mlir.Value]:
        """The results that others use."""
        members = set(self.members)
        results = [value for op in self.members for value in op.results]
        return [value for value in results if any(use.owner.operation not in members for use in value.uses)]


def gather(ops: list[mlir.Operation], matrix: mlir.Value) -> Group:
    """The products of a matrix with vectors that are known when its rows are read, and what is between them."""
    group, rows, known_later = Group(matrix), set[mlir.Value](), set[mlir.Value]()
    size = mlir.ShapedType(matrix.type).shape[0]
    for op in ops:
        late = [value for value in used_values(op) if value in known_later]
        own, of_rows = matrix_of(op), all(value in rows for value in late)
        if own is not None and own == matrix:
            belongs = not late or (of_rows and sums(op)[0])
        else:
            belongs = bool(late) and of_rows and is_on_elements(op, size)
        inits = list(op.operands)[len(op.operands) - len(op.results) :]
        if belongs and not any(value in inits for value in late):
            group.members.append(op)
            rows.update(value for value, one in zip(op.results, sums(op), strict=True) if not one)
        elif late:
            group.others.append(op)
        else:
            continue
        known_later.update(op.results)
    return without_unused(group)


def without_unused(group: Group) -> Group:
    """Operations on elements that no product of the group needs are left to the others."""
    needed: set[mlir.Value] = set()
    kept, left = [], []
    for op in reversed(group.members):
        if op.name != "linalg.generic" or any(value in needed for value in op.results):
            needed.update(op.operands)
            kept.append(op)
        else:
            left.append(op)
    order = {op: number for number, op in enumerate(block_ops(left[0].block))} if left else {}
    others = sorted([*group.others, *left], key=lambda op: order[op]) if left else group.others
    return Group(group.matrix, kept[::-1], others)


def is_on_elements(op: mlir.Operation, size: int) -> bool:
    """True if an operation computes vectors element by element, of others and of scalars, and perhaps sums of them."""
    if op.name != "linalg.generic" or not op.results:
        return False
    maps, body = indexing_maps(op), op.regions[0].blocks[0]
    if any(inner.name == "linalg.index" for inner in block_ops(body)):
        return False
    if not all(m.n_dims == 1 and (not m.results or m.is_permutation) for m in maps):
        return False
    if all(list(mlir.ShapedType(v.type).shape) != [size] for v in op.operands):
        return False
    outs = zip(maps[-len(op.results) :], list(body.arguments)[-len(op.results) :], strict=True)
    return not any(m.results and any(True for _ in argument.uses) for m, argument in outs)


def build(group: Group, rows: int) -> None:
    """Replace the members of a group: a loop where there is one thread, and the members as they are where not."""
    kept, last = group.kept(), group.members[-1]
    with last.location, mlir.InsertionPoint(last):
        callee = {"callee": mlir.FlatSymbolRefAttr.get(THREADS)}
        threads = emit.create("func.call", (), [mlir.IntegerType.get_signless(64)], callee).results[0]
        results = emit.conditional(
            emit.compare("sle", threads, emit.constant(emit.i64(1))),
            lambda: by_blocks(group, kept, rows),
            lambda: as_before(group.members, kept),
            [value.type for value in kept],
        )
    after = last
    for op in group.others:
        op.move_after(after)
        after = op
    for value, result in zip(kept, results, strict=True):
        value.replace_all_uses_with(result)
    for op in reversed(group.members):
        op.erase()


def as_before(members: Sequence[mlir.Operation], kept: Sequence[mlir.Value]) -> list[mlir.Value]:
    """Clone the members at the insertion point; returns the values that are kept."""
    made: dict[mlir.Value, mlir.Value] = {}
    for op in members:
        clone_with(op, made)
    return [made[value] for value in kept]


def by_blocks(group: Group, kept: Sequence[mlir.Value], rows: int) -> list[mlir.Value]:
    """The loop over blocks of rows, and the rows that are left; returns the values that are kept."""
    size = mlir.ShapedType(group.matrix.type).shape[0]
    summed = group.results(summed=True)
    vectors = [value for value in kept if value not in summed]
    inits = [*map(group.init, summed), *(emit.empty(value.type) for value in vectors)]

    def block(first: mlir.Value | int, count: int, carried: Sequence[mlir.Value]) -> list[mlir.Value]:
        made = one_block(group, first, count, dict(zip(summed, carried)))
        stored = zip(vectors, carried[len(summed) :], strict=True)
        return [*(made[value] for value in summed), *(_stored(made[value], into, first) for value, into in stored)]

    whole = size // rows * rows
    step = emit.index(rows)
    found = emit.for_loop(emit.index(0), emit.index(whole), step, lambda i, x: block(i, rows, x), inits)
    if whole < size:
        found = block(whole, size - whole, found)
    return [dict(zip([*summed, *vectors], found, strict=True))[value] for value in kept]


def one_block(
    group: Group, first: mlir.Value | int, rows: int, made: dict[mlir.Value, mlir.Value]
) -> dict[mlir.Value, mlir.Value]:
    """The results of each member for some rows; `made` has the sums so far, by the results that they become."""
    shape = [rows, mlir.ShapedType(group.matrix.type).shape[1]]
    made = {**made, group.matrix: emit.extract_slice(group.matrix, [first, 0], shape, shape)}

    def some(value: mlir.Value) -> mlir.Value:
        if value not in made:
            made[value] = emit.extract_slice(value, [first], [rows], [rows])
        return made[value]

    for op in rows_first(group.members):
        maps = indexing_maps(op)
        count = len(op.operands) - len(op.results)
        inits = [
            made[result] if one else _rows_of(group.init(result), some, rows)
            for result, one in zip(op.results, sums(op), strict=True)
        ]
        if op.name == "linalg.generic":
            inputs = [some(value) if m.results else value for value, m in zip(op.operands[:count], maps)]
            iterators = ["reduction" if any(sums(op)) else "parallel"]
            results = emit.generic(inputs, inits, maps, iterators, partial(_again, op)).results
        else:
            inputs = [
                made[value] if value == group.matrix else some(value) if sums(op)[0] else value
                for value in op.operands[:count]
            ]
            known = {name: op.attributes[name] for name in ("indexing_maps", "cast") if name in op.attributes}
            results = [emit.named_contraction(op.name, [*inputs, *inits], partial(_product, op), known)]
        made.update(zip(op.results, results, strict=True))
    return made


def rows_first(members: Sequence[mlir.Operation]) -> list[mlir.Operation]:
    """The members with those first that are products of rows, known from the start: they read the block row by row.

    Hardware prefetchers follow a few rows; sums over rows read a short stretch of each, and find it in the cache then.
    """
    results = {value for op in members for value in op.results}

    def comes_first(op: mlir.Operation) -> bool:
        return op.name != "linalg.generic" and not sums(op)[0] and not uses_any(op, results)

    return sorted(members, key=lambda op: not comes_first(op))


def _again(op: mlir.Operation, values: list[mlir.Value]) -> list[mlir.Value]:
    return emit.body_again(op.regions[0].blocks[0], values)


def _product(op: mlir.Operation, values: list[mlir.Value]) -> mlir.Value:
    return _again(op, values)[0]


def _rows_of(init: mlir.Value, some: Callable[[mlir.Value], mlir.Value], rows: int) -> mlir.Value:
    """The init of some rows of a result; that of all is not read where it is filled with one number, or empty."""
    fill = defining_op(init)
    kind = mlir.RankedTensorType.get([rows], mlir.ShapedType(init.type).element_type)
    if fill is None or fill.name not in TENSOR_STARTS:
        return some(init)
    if fill.name == "tensor.empty":
        return emit.empty(kind)
    return emit.fill(fill.operands[0], emit.empty(kind)).results[0]


def _stored(rows: mlir.Value, into: mlir.Value, first: mlir.Value | int) -> mlir.Value:
    """A vector with some of its rows replaced."""
    return emit.insert_slice(rows, into, [first])


def declare(module: mlir.Operation) -> None:
    """Declare the function of the runtime that returns how many threads a parallel loop may use."""
    functions = block_ops(module.regions[0].blocks[0])
    with functions[0].location, mlir.InsertionPoint(functions[0]):
        kind = mlir.FunctionType.get([], [mlir.IntegerType.get_signless(64)])
        emit.create(
            "func.func",
            (),
            (),
            {
                "sym_name": mlir.StringAttr.get(THREADS),
                "function_type": mlir.TypeAttr.get(kind),
                "sym_visibility": mlir.StringAttr.get("private"),
            },
            regions=1,
        )
