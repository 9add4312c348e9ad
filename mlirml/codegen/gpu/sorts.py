"""Sorts of rows: `mlirml.sort` and `mlirml.argsort` by the network of `bitonic.py`.

keys[row, i] = x[row, i], indices[row, i] = i       rows are padded to a power of two
sort the pairs: NaN after all numbers, equal keys by their indices
out[row, i] = keys[row, i], or indices[row, i]
"""

from __future__ import annotations

from mlirml.codegen.gpu.bitonic import load, power_above, sort_rows
from mlirml.codegen.gpu.combiners import Values
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.index import Form, flat
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.codegen.gpu.sizes import each_element
from mlirml.ir import emit
from mlirml.ir.bindings import mlir


def lower_sort(host: Host, op: mlir.Operation) -> None:
    """Build the kernels of a sort, whose result has its memory."""
    rows, length = op.operands[0].type.shape
    if rows and length:
        Sort(host, op, rows, length).build()


class Sort:
    """The kernels of one sort of `rows` rows of `length` elements."""

    def __init__(self, host: Host, op: mlir.Operation, rows: int, length: int) -> None:
        self.host = host
        self.op = op
        self.rows = rows
        self.length = length
        self.padded = power_above(length)
        self.source = op.operands[0]
        self.element = self.source.type.element_type
        self.unsigned = op.attributes["kind"].value.startswith("u")
        self.descending = bool(op.attributes["descending"].value)
        self.index_type = mlir.IntegerType.get_signless(32)
        self.type = self.wide()

    def wide(self) -> mlir.Type:
        """The type in which elements are compared: at least 32 bits, which all devices can store."""
        if self.element.width >= 32:
            return self.element
        return mlir.F32Type.get() if isinstance(self.element, mlir.FloatType) else self.index_type

    def build(self) -> None:
        """Fill, sort, store."""
        host, total = self.host, [self.rows, self.padded]
        keys, order = host.array(total, self.type), host.array(total, self.index_type)

        def fill(kernel: Kernel, indices: list[Form]) -> None:
            row, column = indices
            at = flat(indices, total)
            found = Elements(kernel).get(self.source, (row, kernel.clamped(column, self.length)))
            kernel.write(self.widened(found), kernel.argument(keys), at)
            number = emit.value("arith.index_cast", [kernel.at(column)], self.index_type)
            kernel.write(number, kernel.argument(order), at)

        each_element(host, "keys", total, fill)
        sort_rows(host, [keys, order], self.rows, self.padded, self.before)
        result = self.op.results[0]

        def store(kernel: Kernel, indices: list[Form]) -> None:
            at = flat(indices, total)
            by_index = self.op.name == "mlirml.argsort"
            found = load(kernel, order if by_index else keys, at)
            kernel.store(result, [(flat(indices, result.type.shape), self.narrowed(found, result.type.element_type))])

        each_element(host, "sorted", list(result.type.shape), store)

    def widened(self, value: mlir.Value) -> mlir.Value:
        """An element converted to the type that is compared."""
        if value.type == self.type:
            return value
        floats = isinstance(self.type, mlir.FloatType)
        return emit.value(
            "arith.extf" if floats else "arith.extui" if self.unsigned else "arith.extsi", [value], self.type
        )

    def narrowed(self, value: mlir.Value, type_: mlir.Type) -> mlir.Value:
        """An element or an index converted to the stored type."""
        if value.type == type_:
            return value
        if isinstance(type_, mlir.FloatType):
            return emit.value("arith.truncf", [value], type_)
        return emit.value("arith.extui" if type_.width > value.type.width else "arith.trunci", [value], type_)

    def before(self, kernel: Kernel, a: Values, b: Values) -> mlir.Value:
        """True if an element comes before another one; padding comes last."""
        less, more = self.compared(a[0], b[0]), self.compared(b[0], a[0])
        if self.descending:
            less, more = more, less
        one = emit.number(mlir.IntegerType.get_signless(1), 1)
        tie = emit.same_type("arith.xori", emit.same_type("arith.ori", less, more), one)
        earlier = emit.compare("slt", a[1], b[1])
        wins = emit.same_type("arith.ori", less, emit.same_type("arith.andi", tie, earlier))
        if self.padded == self.length:
            return wins
        end = kernel.constant(self.length, self.index_type)
        real, other = emit.compare("slt", a[1], end), emit.compare("slt", b[1], end)
        alone = emit.same_type("arith.xori", other, one)
        return emit.same_type("arith.andi", real, emit.same_type("arith.ori", alone, wins))

    def compared(self, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        """True if a key is less than another one; NaN is greater than any number."""
        if not isinstance(self.type, mlir.FloatType):
            return emit.compare("ult" if self.unsigned and self.element.width >= 32 else "slt", a, b)
        number, nan = emit.compare("ord", a, a), emit.compare("uno", b, b)
        return emit.same_type("arith.ori", emit.compare("olt", a, b), emit.same_type("arith.andi", number, nan))
