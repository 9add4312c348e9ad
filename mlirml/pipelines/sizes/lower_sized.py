"""Lower sized: structured operations and copies on memrefs become loops whose trip counts are dynamic.

Before:
    linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)], ["parallel", "reduction"]}
        ins(%x : memref<?x8xf32>) outs(%y : memref<?xf32>) {
    ^bb0(%a: f32, %total: f32):
      %sum = arith.addf %a, %total : f32
      linalg.yield %sum : f32
    }
After:
    scf.for %i = %c0 to %n step %c1 {
      %first = memref.load %y[%i] : memref<?xf32>
      %total = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %first) -> (f32) {
        %a = memref.load %x[%i, %j] : memref<?x8xf32>
        %sum = arith.addf %a, %t fastmath<reassoc,contract> : f32
        scf.yield %sum : f32
      }
      memref.store %total, %y[%i] : memref<?xf32>
    }

The loop along which most operands are contiguous is innermost, where LLVM vectorises it. Reduced loops are innermost,
too, and carry their results in registers, unless the innermost one is parallel.
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.memref_sizes import fold_dims
from mlirml.analysis.structured import indexing_maps, reductions_of
from mlirml.core.dataclass import dataclass
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register

_SUMS = ("arith.addf", "arith.mulf")


@register
@dataclass(frozen=True)
class LowerSizedPass(Pass):
    """Lower every structured operation and copy to loops; with `exact` no sums of floats are reassociated."""

    name = "mlirml-lower-sized"
    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        for copy in named_operations(module, ("memref.copy",)):
            lower_copy(copy)
        for op in [op for op in operations(module) if op.name.startswith("linalg.") and op.regions]:
            with op.location, mlir.InsertionPoint(op):
                Loops(op, exact=self.exact).build()
            op.erase()
        fold_dims(module)


def lower_copy(copy: mlir.Operation) -> None:
    """Replace a copy by a structured operation; erase a copy of a buffer onto itself."""
    source, target = copy.operands
    if source != target:
        with copy.location, mlir.InsertionPoint(copy):
            identity = mlir.AffineMap.get_identity(source.type.rank)
            emit.generic([source], [target], [identity] * 2, ["parallel"] * identity.n_dims, lambda b: b[:1])
    copy.erase()


class Loops:
    """The loops of one structured operation on memrefs and scalars."""

    def __init__(self, op: mlir.Operation, *, exact: bool) -> None:
        self.op, self.exact = op, exact
        self.operands, self.maps = list(op.operands), indexing_maps(op)
        self.reduced = reductions_of(op)
        self.body = op.regions[0].blocks[0]
        self.outs = len(block_ops(self.body)[-1].operands)
        self.indices: list[mlir.Value | None] = [None] * len(self.reduced)

    def build(self) -> None:
        """Emit the loops at the insertion point."""
        self.zero, self.one = emit.index(0), emit.index(1)
        sizes = [self.size(d) for d in range(len(self.reduced))]
        inner = self.innermost()
        rest = [d for d in range(len(self.reduced)) if d != inner]
        parallel = [d for d in rest if not self.reduced[d]]
        reduced = [d for d in rest if self.reduced[d]]
        if inner is None or self.reduced[inner]:
            carried = [*reduced, *([inner] if inner is not None else [])]
            self.nest(parallel, sizes, lambda: self.accumulate(carried, sizes))
        else:
            self.nest([*parallel, *reduced, inner], sizes, lambda: self.accumulate([], sizes))

    def size(self, loop: int) -> mlir.Value:
        """The trip count of a loop: the size of a dimension that it indexes alone."""
        for operand, map_ in zip(self.operands, self.maps, strict=True):
            for d, expression in enumerate(map_.results):
                if isinstance(expression, mlir.AffineDimExpr) and expression.position == loop:
                    type_ = operand.type
                    if not type_.is_dynamic_dim(d):
                        return emit.index(type_.shape[d])
                    return emit.value("memref.dim", [operand, emit.index(d)], mlir.IndexType.get())
        raise LoweringError("a loop of no known trip count", location=source_location(self.op.location))

    def innermost(self) -> int | None:
        """The loop along which fewest operands take steps other than 1, the last among equals; outputs count twice."""
        penalties = [0] * len(self.reduced)
        for number, (operand, map_) in enumerate(zip(self.operands, self.maps, strict=True)):
            weight = 2 if number >= len(self.operands) - self.outs else 1
            for d, expression in enumerate(map_.results):
                last = d == len(map_.results) - 1 and is_dense(operand.type)
                for loop in range(len(penalties)):
                    if expression_uses(expression, loop) and not (last and isinstance(expression, mlir.AffineDimExpr)):
                        penalties[loop] += weight
        return min(range(len(penalties)), key=lambda d: (penalties[d], -d), default=None)

    def nest(self, loops: Sequence[int], sizes: Sequence[mlir.Value], inner: object) -> None:
        """Loops without carried values around what `inner` builds."""
        if not loops:
            inner()  # type: ignore[operator]
            return

        def body(i: mlir.Value, _: list[mlir.Value]) -> None:
            self.indices[loops[0]] = i
            self.nest(loops[1:], sizes, inner)

        emit.for_loop(self.zero, sizes[loops[0]], self.one, body)

    def accumulate(self, loops: Sequence[int], sizes: Sequence[mlir.Value]) -> None:
        """The reduced loops, which carry the elements of reduced outputs; these are loaded before and stored after."""
        first = len(self.operands) - self.outs
        self.carries = [
            number
            for number in range(first, len(self.operands))
            if loops and not any(expression_uses(e, loop) for e in self.maps[number].results for loop in loops)
        ]
        results = self.carried(list(loops), sizes, [self.load(number) for number in self.carries])
        for number, result in zip(self.carries, results, strict=True):
            self.store(number, result)

    def carried(self, loops: list[int], sizes: Sequence[mlir.Value], values: list[mlir.Value]) -> list[mlir.Value]:
        """The carried values after these loops, from those before them."""
        if not loops:
            return self.elements(values)

        def body(i: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
            self.indices[loops[0]] = i
            return self.carried(loops[1:], sizes, inner)

        return emit.for_loop(self.zero, sizes[loops[0]], self.one, body, values)

    def elements(self, values: list[mlir.Value]) -> list[mlir.Value]:
        """The body of the operation for one element: outputs that no loop carries are stored."""
        arguments = list(self.body.arguments)
        environment = dict(zip((arguments[number] for number in self.carries), values, strict=True))
        for number, argument in enumerate(arguments):
            if argument not in environment and any(True for _ in argument.uses):
                environment[argument] = self.load(number)
        *ops, final = block_ops(self.body)
        for op in ops:
            if op.name == "linalg.index":
                environment[op.results[0]] = self.variable(int(op.attributes["dim"].value))
            else:
                emit.body_op(op, environment)
        if any(self.reduced) and not self.exact:
            self.relax(final, environment)
        first = len(self.operands) - self.outs
        for number, value in enumerate(final.operands, first):
            if number not in self.carries:
                self.store(number, environment.get(value, value))
        return [environment.get(value, value) for value in (final.operands[number - first] for number in self.carries)]

    def store(self, number: int, value: mlir.Value) -> None:
        emit.create("memref.store", [value, self.operands[number], *self.subscripts(number)])

    def relax(self, final: mlir.Operation, environment: dict[mlir.Value, mlir.Value]) -> None:
        """Let LLVM reassociate the sums and products of floats that are accumulated, and contract their terms."""
        accumulators = list(self.body.arguments)[-self.outs :]
        for argument, value in zip(accumulators, final.operands, strict=True):
            op = defining_op(value)
            if op is None or op.name not in _SUMS or argument not in list(op.operands):
                continue
            if sum(1 for _ in argument.uses) == 1:
                new = defining_op(environment[value])
                if new is None:
                    continue
                flags = "<reassoc,contract>" if str(value.type) in ("f32", "f64") else "<contract>"
                new.attributes["fastmath"] = mlir.Attribute.parse(f"#arith.fastmath{flags}")
                for operand in op.operands:
                    factor = defining_op(operand)
                    if factor is not None and factor.name == "arith.mulf" and operand in environment:
                        environment[operand].owner.attributes["fastmath"] = mlir.Attribute.parse(
                            "#arith.fastmath<contract>"
                        )

    def variable(self, loop: int) -> mlir.Value:
        found = self.indices[loop]
        assert found is not None
        return found

    def load(self, number: int) -> mlir.Value:
        """The element of an operand; a scalar itself."""
        operand = self.operands[number]
        if not isinstance(operand.type, mlir.MemRefType):
            return operand
        return emit.value("memref.load", [operand, *self.subscripts(number)], operand.type.element_type)

    def subscripts(self, number: int) -> list[mlir.Value]:
        """The subscripts of an operand in the innermost loop."""
        return [self.evaluated(expression) for expression in self.maps[number].results]

    def evaluated(self, expression: mlir.AffineExpr) -> mlir.Value:
        """A subscript as a value."""
        if isinstance(expression, mlir.AffineDimExpr):
            return self.variable(expression.position)
        if isinstance(expression, mlir.AffineConstantExpr):
            return emit.index(expression.value)
        name = {mlir.AffineAddExpr: "arith.addi", mlir.AffineMulExpr: "arith.muli"}.get(type(expression))
        if name is None:
            raise LoweringError(f"a subscript {expression}", location=source_location(self.op.location))
        return emit.same_type(name, self.evaluated(expression.lhs), self.evaluated(expression.rhs))


def is_dense(type_: mlir.Type) -> bool:
    """True if elements along the last dimension are adjacent."""
    if not isinstance(type_, mlir.MemRefType) or not type_.rank:
        return True
    strides, _ = type_.get_strides_and_offset()
    return bool(strides[-1] == 1)


def expression_uses(expression: mlir.AffineExpr, loop: int) -> bool:
    """True if a subscript depends on a loop."""
    if isinstance(expression, mlir.AffineDimExpr):
        return bool(expression.position == loop)
    if isinstance(expression, mlir.AffineConstantExpr | mlir.AffineSymbolExpr):
        return False
    return expression_uses(expression.lhs, loop) or expression_uses(expression.rhs, loop)
