"""Read a loop nest on tensors as statements on memory: arrays, enclosing loops, indices of reads and stores.

    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%A0 = %A) -> (tensor<4xf32>) {
      %a = tensor.extract %A0[%i] : tensor<4xf32>
      %s = arith.addf %a, %a : f32
      %A1 = tensor.insert %s into %A0[%i] : tensor<4xf32>
      scf.yield %A1 : tensor<4xf32>
    }

has one array, %A, with the versions %A0, %A1 and %r, and one statement: for each i in 0..4, A[i] = %s of A[i]. Tensors
of which an old version is read after a new one exists are not memory. Loop-carried scalars are arrays of rank 0,
private to each iteration of the enclosing loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import field

from mlirml.analysis.affine import Loop, Reader, constant
from mlirml.analysis.cost import is_costly
from mlirml.analysis.traits import AFFINE_VALUES
from mlirml.analysis.values import is_tensor, operands_first, operands_of, walk
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import NoMatch

_PURE = ("arith.", "math.", "complex.")
_MOST_STATEMENTS = 128
_PASSED = ("tensor.extract", "tensor.empty", "linalg.fill")
_WORDS = {"scf.while": "a loop with an unknown trip count"}
Position = tuple[int, ...]
"""The textual position of a statement: positions compare as the statements are ordered."""


@dataclass(eq=False)
class Array:
    """Memory: a tensor that the nest changes, a tensor that it only reads, or (`local`) one that it allocates.

    A local array has `depth` leading dimensions, one for each of the outer loops around it. `root` is the outer tensor
    or scalar that it starts from.
    """

    element_type: mlir.Type
    shape: tuple[int, ...]
    root: mlir.Value | None = None
    depth: int = 0

    @property
    def local(self) -> bool:
        return self.root is None


@dataclass(frozen=True)
class Access:
    """An element of an array; `indices` is None for indices that are not linear in the loops."""

    array: Array
    indices: tuple[Linear, ...] | None = ()


@dataclass(eq=False)
class Statement:
    """`write = value` in every iteration of `loops`; `reads` has the values that are elements of arrays."""

    op: mlir.Operation
    loops: tuple[Loop, ...]
    position: Position
    value: mlir.Value
    write: Access
    reads: dict[mlir.Value, Access] = field(default_factory=dict)

    def all_indices(self, access: Access) -> tuple[Linear, ...] | None:
        """All indices of an access, those by the loops that a local array is private to first."""
        if access.indices is None:
            return None
        return (*(Linear.of(loop) for loop in self.loops[: access.array.depth]), *access.indices)


@dataclass(frozen=True)
class Nest:
    """A loop nest as statements. `results` are the arrays of the results of `op`."""

    op: mlir.Operation
    statements: tuple[Statement, ...]
    results: tuple[Array, ...]
    reader: Reader


class _Stale(Exception):
    """A value is needed after a store to the array that it is read from."""

    def __init__(self, value: mlir.Value) -> None:
        self.value = value


def match_nest(op: mlir.Operation) -> Nest:
    """Read an `scf.for` with its body; raises `NoMatch` if it is not a nest of stores at computed indices."""
    kept = shared_values(op)
    for _ in range(32):
        walk = _Walk(op, kept)
        try:
            return walk.nest()
        except _Stale as stale:
            if stale.value in kept:
                raise NoMatch("a value from before a store is needed after it") from None
            kept.add(stale.value)
    raise NoMatch("too many values are needed after what they were read from has changed")


def shared_values(root: mlir.Operation) -> set[mlir.Value]:
    """The values worth their own array: costly ones that several statements or inner loops need."""
    costly: set[mlir.Value] = set()
    kept: set[mlir.Value] = set()
    for op in operations(root):
        if not is_pure(op) or len(op.results) != 1 or isinstance(op.results[0].type, mlir.IndexType):
            continue
        value = op.results[0]
        if not (is_costly(op) or any(v in costly for v in op.operands)):
            continue
        costly.add(value)
        users = [use.owner.operation for use in value.uses]
        if len(users) > 1 or any(user.block != op.block for user in users):
            kept.add(value)
    readers: dict[mlir.Value, frozenset[mlir.Operation]] = {}
    return {value for value in kept if len(_readers(value, readers)) > 1 or _used_inside(value)}


def _used_inside(value: mlir.Value) -> bool:
    block = defining_op(value).block  # type: ignore[union-attr]
    return any(use.owner.operation.block != block for use in value.uses)


def _readers(value: mlir.Value, known: dict[mlir.Value, frozenset[mlir.Operation]]) -> frozenset[mlir.Operation]:
    """Two users of a value, through pure computations, that are not pure themselves, or the only one."""

    def computed(one: mlir.Value) -> list[mlir.Value]:
        users = [use.owner.operation for use in one.uses] if one not in known else []
        return [result for user in users if is_pure(user) for result in user.results]

    for each in operands_first(value, computed):
        if each not in known:
            found = {user for use in each.uses if not is_pure(user := use.owner.operation)}
            found = found.union(*(known[result] for result in computed(each)))
            known[each] = frozenset(itertools.islice(found, 2))
    return known[value]


def is_pure(op: mlir.Operation) -> bool:
    """True if an operation computes a scalar from scalars."""
    return (op.name.startswith(_PURE) and not op.regions) or op.name in AFFINE_VALUES


class _Walk:
    """One traversal of a nest. `current` has the newest version of each array."""

    def __init__(self, root: mlir.Operation, kept: set[mlir.Value]) -> None:
        self.root, self.kept = root, kept
        self.inside: set[mlir.Value] = set()
        for op in operations(root):
            self.inside.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    self.inside.update(block.arguments)
        self.inside.difference_update(root.results)
        self.reader = Reader(lambda value: value not in self.inside)
        self.statements: list[Statement] = []
        self.versions: dict[mlir.Value, Array] = {}
        self.current: dict[Array, mlir.Value] = {}
        self.constants: dict[mlir.Value, Array] = {}
        self.stored: dict[mlir.Value, tuple[mlir.Value, Access]] = {}

    def nest(self) -> Nest:
        self.visit_for(self.root, (), (), 0)
        statements = sorted(self.statements, key=lambda s: s.position)
        if len(statements) > _MOST_STATEMENTS:
            raise NoMatch("it has too many statements")
        results = tuple(self.versions[result] for result in self.root.results)
        return Nest(self.root, tuple(statements), results, self.reader)

    def visit_for(self, op: mlir.Operation, loops: tuple[Loop, ...], path: Position, number: int) -> None:
        block = op.regions[0].blocks[0]
        arguments, inits = list(block.arguments)[1:], list(op.operands)[3:]
        before = (*path, 4 * number)
        arrays = [
            self.entering(op, init, loops, (*before, 0, place), result)
            for place, (init, result) in enumerate(zip(inits, op.results))
        ]
        started = [(array, init) for array, init in zip(arrays, inits) if not is_tensor(init)]
        changed = [(array, init) for array, init in started if self.versions.get(init) is not array]
        self.store_at_once(op, changed, loops, (*before, 1))
        for argument, array in zip(arguments, arrays):
            self.be(argument, array)
        loop = self.reader.read_loop(op)
        if loop is None:
            raise NoMatch("the bounds of a loop in it are not linear")
        inner = (*loops, loop)
        inside = (*path, 4 * number + 1)
        for argument in arguments:
            if argument in self.kept:
                self.keep(argument, op, inner, (*inside, -1))
        *ops, final = block_ops(block)
        self.link(arguments, arrays, list(final.operands))
        for position, inner_op in enumerate(ops):
            self.visit(inner_op, inner, inside, position)
        self.leave(final, arrays, inner, (*inside, 4 * len(ops)))
        for result, array in zip(op.results, arrays):
            self.be(result, array)

    def be(self, value: mlir.Value, array: Array) -> None:
        """Record `value` as the newest version of an array."""
        self.versions[value] = array
        self.current[array] = value

    def entering(
        self, op: mlir.Operation, init: mlir.Value, loops: tuple[Loop, ...], position: Position, result: mlir.Value
    ) -> Array:
        """The array of a loop-carried value with the init `init`."""
        linked = self.versions.get(result)
        if is_tensor(init):
            if linked is None and init in self.versions:
                array = self.versions[init]
                if self.current[array] != init:
                    raise NoMatch("an array from before a store is stored into")
                return array
            if loops:
                return self.made(op, init, loops, position)
            return Array(element_type(init), shape_of(init), root=init)
        array = linked or Array(init.type, (), depth=len(loops))
        if self.versions.get(init) is array and self.current[array] != init:
            raise NoMatch("a number from before a change is carried on")
        return array

    def made(self, op: mlir.Operation, init: mlir.Value, loops: tuple[Loop, ...], position: Position) -> Array:
        """An array that each iteration allocates: empty, filled, or a copy of one from outside."""
        array = Array(element_type(init), shape_of(init), depth=len(loops))
        maker = defining_op(init)
        if maker is not None and maker.name == "tensor.empty":
            return array
        dims = tuple(Loop(None, (constant(0),), (constant(size),)) for size in array.shape)
        target = Access(array, tuple(map(Linear.of, dims)))
        if maker is not None and maker.name == "linalg.fill":
            self.state(maker, (*loops, *dims), position, maker.operands[0], target)
        elif init in self.inside or isinstance(array.element_type, mlir.IndexType):
            raise NoMatch("it stores into an array that an operation on arrays gives")
        else:
            source = self.constants.setdefault(init, Array(array.element_type, array.shape, root=init))
            copied = Statement(op, (*loops, *dims), position, init, target)
            copied.reads[init] = Access(source, target.indices)
            self.statements.append(copied)
        return array

    def link(self, arguments: Sequence[mlir.Value], arrays: Sequence[Array], yielded: Sequence[mlir.Value]) -> None:
        """Identify the arrays of a scalar that an outer and an inner loop carry."""
        for argument, array, value in zip(arguments, arrays, yielded):
            op = defining_op(value)
            if is_tensor(argument) or op is None or op.name != "scf.for" or op.block != argument.owner:
                continue
            position = block_ops(op.block).index(op)
            before = block_ops(op.block)[: position + 1]
            if all(use.owner.operation in before for use in argument.uses):
                self.versions[value] = array

    def leave(
        self,
        final: mlir.Operation,
        arrays: Sequence[Array],
        loops: tuple[Loop, ...],
        position: Position,
    ) -> None:
        """Record the values that a loop yields: tensors must be the newest version, scalars are stored."""
        changed = []
        for array, value in zip(arrays, final.operands):
            if self.versions.get(value) is array:
                if self.current[array] != value:
                    raise NoMatch("an array from before a store is carried on")
            elif is_tensor(value):
                raise NoMatch("arrays are exchanged from iteration to iteration")
            else:
                changed.append((array, value))
        self.store_at_once(final, changed, loops, position)

    def store_at_once(
        self,
        op: mlir.Operation,
        changed: Sequence[tuple[Array, mlir.Value]],
        loops: tuple[Loop, ...],
        position: Position,
    ) -> None:
        """Store scalars simultaneously: the statements that read an old value are before the one that stores it."""
        ordered = [self.statement(op, loops, (), value, Access(array)) for array, value in changed]
        while ordered:
            ready = next((s for s in ordered if not any(reads(o, s.write.array) for o in ordered if o is not s)), None)
            if ready is None:
                value = next(s.value for s in ordered)
                raise _Stale(value) if value not in self.kept else NoMatch("numbers depend on each other's old values")
            ready.position = (*position, len(changed) - len(ordered))
            self.statements.append(ready)
            ordered.remove(ready)

    def visit(self, op: mlir.Operation, loops: tuple[Loop, ...], path: Position, number: int) -> None:
        position = (*path, 4 * number)
        if op.name == "scf.for":
            self.visit_for(op, loops, path, number)
        elif op.name == "tensor.insert":
            value, target, *indices = op.operands
            if target not in self.versions:
                self.be(target, self.made(op, target, loops, (*path, 4 * number - 1)))
            access = Access(self.written(target), self.indices(indices))
            self.state(op, loops, position, value, access)
            self.be(op.results[0], access.array)
            if access.indices is not None and is_computed(value):
                self.stored[value] = op.results[0], access
        elif not is_pure(op) and op.name not in _PASSED:
            raise NoMatch(f"{_WORDS.get(op.name, op.name)} is in it")
        for result in op.results:
            if result in self.kept and op.name != "scf.for" and not stored_first(result):
                self.keep(result, op, loops, (*path, 4 * number))

    def keep(self, value: mlir.Value, op: mlir.Operation, loops: tuple[Loop, ...], position: Position) -> None:
        """Give a value its own array."""
        array = Array(value.type, (), depth=len(loops))
        self.state(op, loops, position, value, Access(array))
        self.be(value, array)

    def written(self, target: mlir.Value) -> Array:
        array = self.versions.get(target)
        if array is None:
            raise NoMatch("an array from outside is copied and stored into")
        if self.current[array] != target:
            raise NoMatch("an array from before a store is stored into")
        return array

    def indices(self, values: Sequence[mlir.Value]) -> tuple[Linear, ...] | None:
        found = [self.reader.read(value) for value in values]
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def state(
        self, op: mlir.Operation, loops: tuple[Loop, ...], position: Position, value: mlir.Value, write: Access
    ) -> None:
        self.statements.append(self.statement(op, loops, position, value, write))

    def statement(
        self, op: mlir.Operation, loops: tuple[Loop, ...], position: Position, value: mlir.Value, write: Access
    ) -> Statement:
        result = Statement(op, loops, position, value, write)
        if write.indices is None:
            for index in list(op.operands)[2:]:
                self.collect(index, result)
        self.collect(value, result)
        return result

    def collect(self, value: mlir.Value, statement: Statement) -> None:
        """Find the values that are read to compute a value for a statement."""
        waiting, seen = [value], set[mlir.Value]()
        while waiting:
            value = waiting.pop()
            if value not in seen:
                seen.add(value)
                waiting += reversed(self.collect_one(value, statement))

    def collect_one(self, value: mlir.Value, statement: Statement) -> list[mlir.Value]:
        """Record that a statement reads a value; returns its operands if it is not an element of an array."""
        if value in statement.reads or value not in self.inside:
            return []
        array = self.versions.get(value)
        if array is not None:
            if self.current[array] != value:
                raise _Stale(value)
            statement.reads[value] = Access(array)
            return []
        if value in self.reader.indices:
            return []
        version, access = self.stored.get(value, (None, None))
        if access is not None and self.current[access.array] == version:
            statement.reads[value] = access
            return []
        op = defining_op(value)
        if op is None:
            raise NoMatch("it carries something else than numbers and arrays")
        if op.name == "tensor.extract":
            source, *indices = op.operands
            linear = self.indices(indices)
            statement.reads[value] = Access(self.read_array(source, value), linear)
            return indices if linear is None else []
        if not is_pure(op):
            raise NoMatch(f"{_WORDS.get(op.name, op.name)} is in it")
        return list(op.operands)

    def read_array(self, source: mlir.Value, read: mlir.Value) -> Array:
        array = self.versions.get(source)
        if array is None:
            if source in self.inside:
                raise NoMatch("it reads an array made inside of it")
            if source not in self.constants:
                self.constants[source] = Array(element_type(source), shape_of(source), root=source)
            return self.constants[source]
        if self.current[array] != source:
            raise _Stale(read)
        return array


def is_computed(value: mlir.Value) -> bool:
    """True if a value is more than a constant or an index converted to a scalar."""
    made = map(defining_op, walk(value, operands_of))
    return any(op is not None and op.name == "tensor.extract" for op in made)


def stored_first(value: mlir.Value) -> bool:
    """True if a value is stored before its other uses: it can be read from there."""
    users = [use.owner.operation for use in value.uses]
    op = defining_op(value)
    if op is None:
        return False
    first = next((other for other in block_ops(op.block) if holds(other, users)), None)
    return first is not None and first.name == "tensor.insert" and first.operands[0] == value


def holds(op: mlir.Operation, users: Sequence[mlir.Operation]) -> bool:
    """True if one of some operations is `op` or nested in it."""
    return op in users or (bool(op.regions) and any(inner in users for inner in operations(op)))


def reads(statement: Statement, array: Array) -> bool:
    return any(access.array is array for access in statement.reads.values())


def common_loops(a: Statement, b: Statement) -> tuple[Loop, ...]:
    """The loops around both."""
    return tuple(_common(a.loops, b.loops))


def _common(a: Sequence[Loop], b: Sequence[Loop]) -> Iterator[Loop]:
    for one, other in zip(a, b):
        if one is not other:
            return
        yield one


def element_type(value: mlir.Value) -> mlir.Type:
    return mlir.ShapedType(value.type).element_type


def shape_of(value: mlir.Value) -> tuple[int, ...]:
    return tuple(mlir.ShapedType(value.type).shape)
