"""Sorts of rows: `mlirml.sort` and `mlirml.argsort` by the network of `bitonic.py`.

keys[row, i] = x[row, i], indices[row, i] = i       rows are padded to a power of two
sort the pairs: NaN after all numbers, equal keys by their indices
out[row, i] = keys[row, i], or indices[row, i]
"""

from __future__ import annotations

from mlirml.codegen.gpu.bitonic import lanes_of, power_above, read, sort_rows, write
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

        lanes = lanes_of(self.padded, self.type, self.index_type)

        def fill(kernel: Kernel, indices: list[Form]) -> None:
            row, first = indices[0], indices[1] * lanes
            kernel.lanes = lanes
            columns = [first + lane for lane in range(lanes)]
            elements = Elements(kernel)
            found = [elements.get(self.source, (row, kernel.clamped(column, self.length))) for column in columns]
            numbers = [emit.value("arith.index_cast", [kernel.at(column)], self.index_type) for column in columns]
            at = flat([row, first], total)
            write(kernel, kernel.argument(keys), at, [self.widened(value) for value in found])
            write(kernel, kernel.argument(order), at, numbers)

        each_element(host, "keys", [self.rows, self.padded // lanes], fill)
        sort_rows(host, [keys, order], self.rows, self.padded, self.before)
        result = self.op.results[0]
        rows, length = result.type.shape
        stored = lanes_of(length, self.type, self.index_type, result.type.element_type)
        sorted_part = order if self.op.name == "mlirml.argsort" else keys

        def store(kernel: Kernel, indices: list[Form]) -> None:
            row, first = indices[0], indices[1] * stored
            kernel.lanes = stored
            found = read(kernel, kernel.argument(sorted_part), flat([row, first], total), stored)
            at = flat([row, first], result.type.shape)
            values = [self.narrowed(value, result.type.element_type) for value in found]
            kernel.store(result, [(at + lane, value) for lane, value in enumerate(values)])

        each_element(host, "sorted", [rows, length // stored], store)

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
