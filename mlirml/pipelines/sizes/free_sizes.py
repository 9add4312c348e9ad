"""Free sizes: the marked sizes of tensors become dynamic.

Before:
    func.func @main(%x: tensor<262147x4xf32>, %sizes: tensor<1xi64>) -> tensor<262147x4xf32>
        attributes {mlirml.marked_sizes = array<i64: 262147>} {
      %e = tensor.empty() : tensor<262147x4xf32>
      %y = linalg.exp ins(%x) outs(%e) -> tensor<262147x4xf32>
      return %y
    }
After:
    func.func @main(%x: tensor<?x4xf32>, %sizes: tensor<1xi64>) -> tensor<?x4xf32>
        attributes {mlirml.dims = array<i64: 0, 0>, mlirml.work_terms = [array<i64: 368, 0>]} {
      %0 = tensor.extract %sizes[%c0] : tensor<1xi64>
      %n = arith.index_cast %0 : i64 to index
      %e = tensor.empty(%n) : tensor<?x4xf32>
      %y = linalg.exp ins(%x) outs(%e) -> tensor<?x4xf32>
      return %y
    }

A size that is a product of marks and a number is a product of the sizes. `mlirml.dims` has the numbers of the sizes of
the arguments and then of the results, dimension by dimension, `mlirml.work_terms` estimates the work (`work_terms.py`).
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Sequence

from mlirml.dialects.mlirml import DIMS, SORTS
from mlirml.errors import LoweringError, SourceLocation
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, operations, replace_op, set_function_type
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import source_location
from mlirml.ir.marked_sizes import MARKS, Marks, UnknownSizeError
from mlirml.passes import Pass, register
from mlirml.pipelines.sizes.work_terms import WORK, work_terms

_NEAR = 16
_DYNAMIC = mlir.ShapedType.get_dynamic_size()
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")
_TYPED = (
    "tensor.collapse_shape",
    "tensor.extract",
    "tensor.insert",
    "tensor.from_elements",
    "tensor.cast",
    "tensor.dim",
)
_CALLS = (*SORTS, *LIBRARY_CALLS, *COMPACTIONS, "mlirml.barrier", "arith.select")
"""Operations whose sizes are those of their operands; a select is one of two arrays by a number."""
_REGIONS = (
    "scf.for",
    "scf.if",
    "scf.while",
    "scf.condition",
    "scf.yield",
    "scf.index_switch",
    "scf.parallel",
    "func.return",
)


@register
class FreeSizesPass(Pass):
    """Replace marked sizes by dynamic ones."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        if MARKS not in main.attributes:
            return
        marks = list(main.attributes[MARKS])
        del main.attributes[MARKS]
        terms = work_terms(main, Marks(marks))
        with main.context:
            main.attributes[WORK] = mlir.ArrayAttr.get([mlir.DenseI64ArrayAttr.get(list(term)) for term in terms])
        Freed(main, marks).run()


class Freed:
    """The function, and the sizes that are known at its start."""

    def __init__(self, main: mlir.Operation, marks: Sequence[int]) -> None:
        self.main, self.marks = main, Marks(marks)
        self.body = main.regions[0].blocks[0]
        self.table = list(self.body.arguments)[-1]
        self.sizes: dict[int, mlir.Value] = {}
        self.op = main
        self.static: set[int] | None = None

    def run(self) -> None:
        final = block_ops(self.body)[-1]
        types = [argument.type for argument in self.body.arguments] + [value.type for value in final.operands]
        dims = [number for type_ in types for size in self.shape(type_) for number in self.only(size)]
        for op in list(operations(self.main))[1:]:
            self.op = op
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        self.set_type(argument)
            self.change(op)
        self.op = self.main
        for argument in self.body.arguments:
            self.set_type(argument)
        set_function_type(self.main)
        with self.main.context:
            self.main.attributes[DIMS] = mlir.DenseI64ArrayAttr.get(dims)

    def shape(self, type_: mlir.Type) -> Sequence[int]:
        return type_.shape if isinstance(type_, mlir.RankedTensorType) else ()

    def only(self, size: int) -> tuple[int, ...]:
        """The number of the size that a dimension of an argument or a result is; none for a static one."""
        factor, numbers = self.factors(size)
        if numbers and (factor != 1 or len(numbers) != 1):
            raise self.refused("an argument or a result of a size that is not in the table")
        return numbers

    def factors(self, number: int) -> tuple[int, tuple[int, ...]]:
        try:
            return self.marks.factors(number)
        except UnknownSizeError as reason:
            raise self.refused(str(reason)) from None

    def refused(self, why: str) -> LoweringError:
        error = LoweringError(
            f"`{self.op.name}` needs static sizes: {why}",
            location=self.location(),
            help="leave the dimension out of `dynamic`, so that a program is compiled for each size",
        )
        error.op = self.op.name
        return error

    def location(self) -> SourceLocation | None:
        """The line of the operation, or of one that uses it: what a transformation adds may have none."""
        users = [use.owner.operation for result in self.op.results for use in result.uses]
        return next(filter(None, (source_location(op.location) for op in (self.op, *users))), None)

    def size(self, number: int) -> mlir.Value | int:
        """A size as a value, made at the start of the function, or as a number."""
        factor, numbers = self.factors(number)
        if not numbers:
            return number
        if number not in self.sizes:
            with self.main.location, mlir.InsertionPoint.at_block_begin(self.body):
                parts = [self.loaded(n) for n in numbers]
                total = parts[0]
                for part in parts[1:]:
                    total = emit.same_type("arith.muli", total, part)
                if factor != 1:
                    total = emit.same_type("arith.muli", total, emit.index(factor))
            self.sizes[number] = total
        return self.sizes[number]

    def loaded(self, number: int) -> mlir.Value:
        element = emit.value("tensor.extract", [self.table, emit.index(number)], self.table.type.element_type)
        return emit.value("arith.index_cast", [element], mlir.IndexType.get())

    def freed(self, type_: mlir.Type) -> mlir.Type | None:
        """The type with dynamic sizes; None for one that has none."""
        if not isinstance(type_, mlir.RankedTensorType):
            return None
        shape = [_DYNAMIC if self.factors(n)[1] else n for n in type_.shape]
        return mlir.RankedTensorType.get(shape, type_.element_type) if _DYNAMIC in shape else None

    def set_type(self, value: mlir.Value) -> None:
        type_ = self.freed(value.type)
        if type_ is not None:
            value.set_type(type_)

    def change(self, op: mlir.Operation) -> None:
        """Make the types and sizes of an operation dynamic."""
        if op.name == "arith.constant":
            self.change_constant(op)
            return
        results = [(result, type_) for result in op.results if (type_ := self.freed(result.type)) is not None]
        if op.name == "tensor.empty" or op.name == "tensor.expand_shape" or op.name in _SLICES:
            self.rebuild(op)
        elif op.name == "tensor.pad":
            self.change_pad(op, results)
        elif op.name.startswith("linalg.") or op.name in _TYPED or op.name in _REGIONS or op.name in _CALLS:
            for result, type_ in results:
                result.set_type(type_)
        elif results:
            raise self.refused("it is not made for dynamic ones")

    def change_constant(self, op: mlir.Operation) -> None:
        """A constant that is a size, or an array of one value and dynamic size."""
        value, type_ = op.attributes["value"], op.results[0].type
        if isinstance(type_, mlir.IndexType):
            size = self.size(int(mlir.IntegerAttr(value).value))
            if isinstance(size, int):
                self.check_index(size)
            else:
                replace_op(op, size)
        elif (new := self.freed(type_)) is not None:
            splat = mlir.DenseElementsAttr(value)
            if not splat.is_splat:
                raise self.refused("a constant has one")
            with op.location, mlir.InsertionPoint(op):
                out = emit.value("tensor.empty", self.dynamic(type_.shape), new)
                filled = emit.fill(emit.constant(splat.get_splat_value()), out)
            replace_op(op, filled.results[0])
        elif isinstance(type_, (mlir.IntegerType, mlir.FloatType)):
            self.check_number(op)

    def check_number(self, op: mlir.Operation) -> None:
        """Refuse a number that a pass may have computed from a mark."""
        value = op.attributes["value"]
        number = mlir.FloatAttr(value).value if isinstance(value, mlir.FloatAttr) else mlir.IntegerAttr(value).value
        for given in (number, 1 / number if number else 0):
            nearest = round(given) if abs(given) < 1 << 62 else 0
            if abs(nearest - given) <= 1e-6 * abs(given) and self.marks.is_near(abs(nearest), 1):
                raise self.refused("a number may be computed from one")

    def check_index(self, number: int) -> None:
        """Refuse an index that is no static size or one near it: a pass may have computed it from a mark."""
        if abs(number) >= self.marks.least_part and all(
            min(number % n, -number % n) > _NEAR for n in self.static_sizes()
        ):
            raise self.refused("an index may be computed from one")

    def static_sizes(self) -> set[int]:
        """The large static sizes of the arrays in the program."""
        if self.static is None:
            types = {value.type for op in operations(self.main) for value in (*op.operands, *op.results)}
            ranked = [type_ for type_ in types if isinstance(type_, mlir.RankedTensorType)]
            sizes = {n for type_ in ranked for n in type_.shape if n != _DYNAMIC}
            self.static = {n for n in sizes if n > _NEAR and not self.factors(n)[1]}
        return self.static

    def dynamic(self, shape: Sequence[int]) -> list[mlir.Value]:
        """The values of the dynamic sizes of a shape."""
        return [size for n in shape if not isinstance(size := self.size(n), int)]

    def rebuild(self, op: mlir.Operation) -> None:
        """An operation with sizes among its operands, or with marked sizes as offsets."""
        type_ = op.results[0].type
        new = self.freed(type_) or type_
        with op.location, mlir.InsertionPoint(op):
            if op.name == "tensor.empty":
                result = emit.value("tensor.empty", [*op.operands, *self.dynamic(type_.shape)], new)
            elif op.name == "tensor.expand_shape":
                sizes = [n if not self.factors(n)[1] else _DYNAMIC for n in type_.shape]
                attributes = {
                    "reassociation": op.attributes["reassociation"],
                    "static_output_shape": mlir.DenseI64ArrayAttr.get(sizes),
                }
                result = emit.value(op.name, [op.operands[0], *self.dynamic(type_.shape)], new, **attributes)
            else:
                result = self.sliced(op, new)
        replace_op(op, result)

    def sliced(self, op: mlir.Operation, type_: mlir.Type) -> mlir.Value:
        """A slice with dynamic offsets and sizes."""
        tensors = 1 if op.name == "tensor.extract_slice" else 2
        given = iter(list(op.operands)[tensors:])
        fields = []
        for name in ("offsets", "sizes", "strides"):
            numbers = list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
            fields.append([next(given) if n == _DYNAMIC else self.size(n) for n in numbers])
        return emit.slice_op(op.name, list(op.operands)[:tensors], type_, *fields)

    def change_pad(self, op: mlir.Operation, results: Sequence[tuple[mlir.Value, mlir.Type]]) -> None:
        """A padded array of dynamic sizes as a filled one, into which the other is stored."""
        block = op.regions[0].blocks[0]
        filler = block_ops(block)[-1].operands[0]
        made = defining_op(filler)
        if not results and not self.has_marks(op):
            return
        if len(op.operands) > 1 or (filler.owner == block if made is None else made.block == block):
            raise self.refused("the padding is computed")
        source, type_ = op.operands[0], op.results[0].type
        low, high = (list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("low", "high"))
        sizes = [self.size(n - a - b) for n, a, b in zip(type_.shape, low, high)]
        with op.location, mlir.InsertionPoint(op):
            out = emit.value("tensor.empty", self.dynamic(type_.shape), self.freed(type_) or type_)
            stored = emit.insert_slice(source, emit.fill(filler, out).results[0], [self.size(n) for n in low], sizes)
        replace_op(op, stored)

    def has_marks(self, pad: mlir.Operation) -> bool:
        """True if an array is padded by dynamic numbers."""
        given = (mlir.DenseI64ArrayAttr(pad.attributes[f"static_{name}"]) for name in ("low", "high"))
        return any(self.factors(n)[1] for numbers in given for n in numbers if n != _DYNAMIC)
