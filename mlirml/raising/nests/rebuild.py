"""Build a plan as tensor IR: loops that were not raised around generics and single statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mlirml.analysis.affine import Loop
from mlirml.analysis.values import operands_first
from mlirml.core.affine import Linear
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.raising.nests.distribute import Scope, Sequence_, Single
from mlirml.raising.nests.generic import Layout, Raised, memory_indices, outer_indices
from mlirml.raising.nests.model import Access, Array, Nest, Statement, is_pure
from mlirml.raising.nests.structured import build_raised

Leaf = Callable[[mlir.Value], "mlir.Value | None"]


def rebuild(nest: Nest, scope: Scope) -> None:
    """Replace the nest by a plan."""
    with nest.op.location, mlir.InsertionPoint(nest.op):
        state = State(nest)
        state.scope(scope)
        for result, array in zip(nest.op.results, nest.results):
            result.replace_all_uses_with(state.value_of(array))
    nest.op.erase()


class State:
    """The state at the insertion point: `loops` has the induction variables, `arrays` the newest versions.

    Local arrays of rank 0 are scalars.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.loops: dict[Loop, mlir.Value] = {}
        self.arrays: dict[Array, mlir.Value] = {}
        self.layouts: dict[Array, Layout] = {}
        self.stored: dict[mlir.Value, tuple[tuple[Linear, ...], mlir.Value]] = {}

    def value_of(self, array: Array) -> mlir.Value:
        """The newest version of an array."""
        if array not in self.arrays:
            assert array.root is not None, "a number is read before it is stored"
            self.arrays[array] = array.root
        return self.arrays[array]

    def is_scalar(self, array: Array) -> bool:
        return array.local and not (self.layouts[array].sizes if array in self.layouts else array.shape)

    def number(self, linear: Linear, variables: Mapping[Loop, mlir.Value] | None = None) -> mlir.Value:
        """A linear expression as an index; `variables` are those of the loops of a generic."""
        total: mlir.Value | None = None
        for variable, factor in linear.factors.items():
            if isinstance(variable, Loop):
                part = variables[variable] if variables is not None and variable in variables else self.loops[variable]
            else:
                part = as_index(variable)
            if factor == -1 and total is not None:
                total = emit.same_type("arith.subi", total, part)
                continue
            if factor != 1:
                part = emit.same_type("arith.muli", part, emit.index(factor))
            total = part if total is None else emit.same_type("arith.addi", total, part)
        if total is None:
            return emit.index(linear.constant)
        return emit.same_type("arith.addi", total, emit.index(linear.constant)) if linear.constant else total

    def extreme(self, bounds: Sequence[Linear], name: str) -> mlir.Value:
        """The greatest or the least of some expressions."""
        first, *rest = (self.number(bound) for bound in bounds)
        for value in rest:
            first = emit.same_type(name, first, value)
        return first

    def compute(self, value: mlir.Value, leaf: Leaf, known: dict[mlir.Value, mlir.Value]) -> mlir.Value:
        """Recompute a value of the nest; `leaf` returns those that are not recomputed, `known` gets the others."""

        def operands(one: mlir.Value) -> Sequence[mlir.Value]:
            found = leaf(one) if one not in known else None
            if found is not None:
                known[one] = found
            op = defining_op(one)
            return op.operands if one not in known and op is not None and is_pure(op) and self.is_inside(op) else ()

        for each in operands_first(value, operands):
            op = defining_op(each)
            if each not in known and op is not None and is_pure(op) and self.is_inside(op):
                emit.body_op(op, known)
        return known.get(value, value)

    def is_inside(self, op: mlir.Operation) -> bool:
        """True if an operation is nested in the nest."""
        parent = op.parent
        while parent is not None and parent != self.nest.op:
            parent = parent.parent
        return parent is not None

    def leaf_of(self, statement: Statement) -> Leaf:
        """The leaves of a single statement: elements of arrays, and induction variables."""

        def leaf(value: mlir.Value) -> mlir.Value | None:
            access = statement.reads.get(value)
            if access is not None:
                return self.element(statement, value, access)
            linear = self.nest.reader.indices.get(value)
            return self.number(linear) if linear is not None else None

        return leaf

    def element(self, statement: Statement, value: mlir.Value, access: Access) -> mlir.Value:
        """Read an element."""
        if self.is_scalar(access.array):
            return self.value_of(access.array)
        # Forward a value that was just stored instead of reading it: the next iteration may wait for the load.
        linear, known = self.stored.get(self.value_of(access.array), (None, None))
        if known is not None and linear == self.linear_indices(statement, access):
            return known
        indices = self.indices(statement, access, value)
        return emit.value("tensor.extract", [self.value_of(access.array), *indices], access.array.element_type)

    def indices(self, statement: Statement, access: Access, value: mlir.Value | None) -> list[mlir.Value]:
        """The indices of an access; those of a gather are recomputed as in the program."""
        linear = self.linear_indices(statement, access)
        if linear is not None:
            return [self.number(index) for index in linear]
        op = statement.op if value is None else defining_op(value)
        assert op is not None
        indices = list(op.operands)[2 if value is None else 1 :]
        known: dict[mlir.Value, mlir.Value] = {}
        outer = outer_indices(self.layouts.get(access.array), access, statement.loops)
        computed = [self.compute(index, self.leaf_of(statement), known) for index in indices]
        return [*map(self.number, outer), *computed]

    def linear_indices(self, statement: Statement, access: Access) -> tuple[Linear, ...] | None:
        return memory_indices(self.layouts.get(access.array), access, statement.loops)

    def scope(self, scope: Scope) -> None:
        """Build all nodes of a scope, in order."""
        with self.with_layouts(scope.local):
            for array, layout in scope.local.items():
                if layout.sizes:
                    self.arrays[array] = emit.empty(mlir.RankedTensorType.get(list(layout.sizes), array.element_type))
            for node in scope.nodes:
                if isinstance(node, Single):
                    self.single(node.statement)
                elif isinstance(node, Raised):
                    build_raised(self, node)
                else:
                    self.sequence(node)

    @contextmanager
    def with_layouts(self, local: Mapping[Array, Layout]) -> Iterator[None]:
        before = self.layouts
        self.layouts = before | dict(local)
        yield
        self.layouts = before

    def single(self, statement: Statement) -> None:
        """One iteration of a statement."""
        with statement.op.location:
            value = self.compute(statement.value, self.leaf_of(statement), {})
            array = statement.write.array
            if self.is_scalar(array):
                self.arrays[array] = value
                return
            target = self.value_of(array)
            indices = self.indices(statement, statement.write, None)
            self.arrays[array] = emit.value("tensor.insert", [value, target, *indices], target.type)
            linear = self.linear_indices(statement, statement.write)
            if linear is not None:
                self.stored[self.arrays[array]] = linear, value

    def sequence(self, node: Sequence_) -> None:
        """A loop that is not raised. It carries the outer arrays that are stored into in it."""
        op = node.loop.op
        assert op is not None
        stored = dict.fromkeys(s.write.array for s in statements_in(node.scope))
        carried = [array for array in stored if not array.local or array in self.arrays]
        with op.location:
            inits = [self.value_of(array) for array in carried]
            before = dict(self.arrays)

            def body(variable: mlir.Value, arguments: list[mlir.Value]) -> list[mlir.Value]:
                self.loops[node.loop] = variable
                self.arrays.update(zip(carried, arguments))
                self.scope(node.scope)
                return [self.arrays[array] for array in carried]

            lower = self.extreme(node.loop.lowers, "arith.maxsi")
            upper = self.extreme(node.loop.uppers, "arith.minsi")
            results = emit.for_loop(lower, upper, emit.index(1), body, inits)
            self.arrays = before | dict(zip(carried, results))
            if (node.independent or node.loop.independent) and results:
                loop = defining_op(results[0])
                assert loop is not None
                loop.attributes["mlirml.parallel"] = mlir.UnitAttr.get()


def statements_in(scope: Scope) -> Iterator[Statement]:
    """All statements of a plan."""
    for node in scope.nodes:
        if isinstance(node, Sequence_):
            yield from statements_in(node.scope)
        else:
            yield node.statement


def as_index(value: mlir.Value) -> mlir.Value:
    """An integer as an index."""
    if isinstance(value.type, mlir.IndexType):
        return value
    return emit.value("arith.index_cast", [value], mlir.IndexType.get())
