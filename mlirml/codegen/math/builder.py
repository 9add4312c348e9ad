"""Builder of straight-line arithmetic: Python expressions become the text of arith, math and llvm ops.

b = Builder(shape="16x"); x = b.argument("f32")
y = b.fma(x, x, 1.0)             ->  %1 = math.fma %0, %0, %c0 : vector<16xf32>
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import prod

from mlirml.core.dataclass import dataclass
from mlirml.targets.machine import Processor

WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
MANTISSA = {"f32": 23, "f64": 52}
_STRUCT = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


@dataclass(frozen=True, eq=False)
class Value:
    """An SSA value: `dtype` is its scalar type (`f32`, `i1`, ...). Operators build ops; `==` and others are methods."""

    builder: Builder
    name: str
    dtype: str

    def _binary(self, other: Operand, of_float: str, of_integer: str) -> Value:
        return self.builder.binary(of_float if self.is_float else of_integer, self, other)

    @property
    def is_float(self) -> bool:
        return "f" in self.dtype

    def __add__(self, other: Operand) -> Value:
        return self._binary(other, "arith.addf", "arith.addi")

    def __sub__(self, other: Operand) -> Value:
        return self._binary(other, "arith.subf", "arith.subi")

    def __mul__(self, other: Operand) -> Value:
        return self._binary(other, "arith.mulf", "arith.muli")

    def __truediv__(self, other: Operand) -> Value:
        return self.builder.binary("arith.divf", self, other)

    def __rsub__(self, other: float) -> Value:
        return self.builder.constant(other, self.dtype) - self

    def __rtruediv__(self, other: float) -> Value:
        return self.builder.constant(other, self.dtype) / self

    def __and__(self, other: Operand) -> Value:
        return self.builder.binary("arith.andi", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.builder.binary("arith.ori", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.builder.binary("arith.xori", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return self.builder.binary("arith.shli", self, other)

    def __rshift__(self, other: Operand) -> Value:
        """Arithmetic shift right, which keeps the sign."""
        return self.builder.binary("arith.shrsi", self, other)

    def __neg__(self) -> Value:
        return self.builder.op("arith.negf", self) if self.is_float else 0 - self

    def __lt__(self, other: Operand) -> Value:
        return self.builder.compare("olt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.builder.compare("ole", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.builder.compare("ogt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.builder.compare("oge", self, other)

    def equals(self, other: Operand) -> Value:
        return self.builder.compare("oeq", self, other)

    def differs(self, other: Operand) -> Value:
        """True where the values differ or one is NaN."""
        return self.builder.compare("une", self, other)


Operand = Value | float | int


class Builder:
    """Collects the lines of one function body; `shape` is empty for scalars, `16x` for `vector<16x...>`.

    The names of values begin with `prefix`. Without `f64` no 64-bit floats are used.
    """

    def __init__(
        self, shape: str = "", processor: Processor | None = None, *, f64: bool = True, prefix: str = ""
    ) -> None:
        self.shape = shape
        self.prefix = prefix
        self.processor = processor or Processor()
        self.f64 = f64
        self.arguments: list[Value] = []
        self._constants: dict[tuple[str, str], Value] = {}
        self._lines: list[str] = []
        self._count = 0

    def type(self, dtype: str) -> str:
        """The MLIR type of a value of scalar type `dtype`."""
        return f"vector<{self.shape}{dtype}>" if self.shape else dtype

    def argument(self, dtype: str) -> Value:
        value = Value(self, f"%x{len(self.arguments)}", dtype)
        self.arguments.append(value)
        return value

    def emit(self, text: str, dtype: str) -> Value:
        """Add one op: `text` is everything after the equals sign."""
        name = f"%{self.prefix}{self._count}"
        self._lines.append(f"{name} = {text}")
        self._count += 1
        return Value(self, name, dtype)

    def constant(self, value: float, dtype: str) -> Value:
        """A constant; floats are written by their bits, so that they are rounded only once."""
        return self.bits(int(value), dtype) if dtype not in WIDTHS else self.bits(float_bits(value, dtype), dtype)

    def bits(self, bits: int, dtype: str) -> Value:
        """A constant from its bits (floats) or its value (integers)."""
        literal = f"0x{bits:0{WIDTHS[dtype] // 4}X}" if dtype in WIDTHS else str(bits)
        key = (literal, dtype)
        if key not in self._constants:
            name = f"%{self.prefix}c{len(self._constants)}"
            text = f"dense<{literal}>" if self.shape else literal
            self._lines.append(f"{name} = arith.constant {text} : {self.type(dtype)}")
            self._constants[key] = Value(self, name, dtype)
        return self._constants[key]

    def value(self, operand: Operand, dtype: str) -> Value:
        return operand if isinstance(operand, Value) else self.constant(operand, dtype)

    def op(self, name: str, *operands: Value) -> Value:
        """Add an op whose operands and result share one type."""
        listed = ", ".join(v.name for v in operands)
        return self.emit(f"{name} {listed} : {self.type(operands[0].dtype)}", operands[0].dtype)

    def binary(self, name: str, left: Value, right: Operand) -> Value:
        return self.op(name, left, self.value(right, left.dtype))

    def compare(self, predicate: str, left: Value, right: Operand) -> Value:
        """A float comparison, or a signed (`slt`) or unsigned one of integers when `left` is an integer."""
        name = "arith.cmpf"
        if not left.is_float:
            name, predicate = (
                "arith.cmpi",
                {"olt": "slt", "ole": "sle", "ogt": "sgt", "oge": "sge"}.get(predicate, predicate),
            )
            predicate = {"oeq": "eq", "une": "ne"}.get(predicate, predicate)
        other = self.value(right, left.dtype)
        return self.emit(f"{name} {predicate}, {left.name}, {other.name} : {self.type(left.dtype)}", "i1")

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        dtype = yes.dtype if isinstance(yes, Value) else no.dtype if isinstance(no, Value) else "f32"
        left, right = self.value(yes, dtype), self.value(no, dtype)
        types = f"{self.type('i1')}, {self.type(dtype)}" if self.shape else dtype
        return self.emit(f"arith.select {condition.name}, {left.name}, {right.name} : {types}", dtype)

    def call(self, symbol: str, *operands: Value) -> Value:
        """A call of a function whose result has the type of its operands."""
        dtype = self.type(operands[0].dtype)
        types = ", ".join(dtype for _ in operands)
        listed = ", ".join(v.name for v in operands)
        return self.emit(f"func.call @{symbol}({listed}) : ({types}) -> {dtype}", operands[0].dtype)

    def all(self, mask: Value) -> Value:
        """True if `mask` is true in all lanes, as a scalar i1."""
        if not self.shape:
            return mask
        lanes = prod(int(n) for n in self.shape[:-1].split("x"))
        flat = mask.name
        if self.shape.count("x") > 1:
            flat = self.emit(f"vector.shape_cast {mask.name} : {self.type('i1')} to vector<{lanes}xi1>", "i1").name
        return self.emit(f"vector.reduction <and>, {flat} : vector<{lanes}xi1> into i1", "i1")

    def guarded(
        self, valid: Value, value: Value, op: str, operands: Sequence[Value], rest: Callable[..., Value] | None = None
    ) -> Value:
        """`value` where `valid`; if a lane is not, `op` is called for every lane in a loop, and its results selected.

        `rest` builds the alternative result for one lane instead of `op`.
        """
        condition, dtype, element = self.all(valid), self.type(value.dtype), value.dtype
        is_vector = self.shape.count("x") == 1
        lanes = [f"%e{i}" if is_vector else x.name for i, x in enumerate(operands)]
        one = element if is_vector else dtype
        filling = [f"%r = {op} {', '.join(lanes)} : {one}"]
        filled = "%r"
        if rest is not None and (is_vector or not self.shape):
            inner = Builder("", self.processor, f64=self.f64, prefix="r")
            filled = rest(inner, *(Value(inner, name, x.dtype) for name, x in zip(lanes, operands))).name
            filling = inner._lines
        if is_vector:
            bounds = (("c", 0), ("s", 1), ("n", self.shape[:-1]))
            filling = [
                *(f"%{name} = arith.constant {n} : index" for name, n in bounds),
                f"%all = scf.for %i = %c to %n step %s iter_args(%v = {value.name}) -> ({dtype}) {{",
                *(f"%e{i} = vector.extract {x.name}[%i] : {x.dtype} from {dtype}" for i, x in enumerate(operands)),
                *filling,
                f"%w = vector.insert {filled}, %v[%i] : {element} into {dtype}",
                f"scf.yield %w : {dtype}",
                "}",
            ]
            filled = "%all"
        if self.shape:
            types = f"{self.type('i1')}, {dtype}"
            filling.append(f"%some = arith.select {valid.name}, {value.name}, {filled} : {types}")
            filled = "%some"
        head = f"scf.if {condition.name} -> ({dtype}) {{"
        filling.append(f"scf.yield {filled} : {dtype}")
        lines = [head, f"  scf.yield {value.name} : {dtype}", "} else {", *(f"  {line}" for line in filling), "}"]
        return self.emit("\n  ".join(lines), value.dtype)

    def cast(self, name: str, value: Value, dtype: str) -> Value:
        """A conversion op such as `arith.extf`, `arith.sitofp`, `arith.bitcast`."""
        return self.emit(f"{name} {value.name} : {self.type(value.dtype)} to {self.type(dtype)}", dtype)

    def to_bits(self, value: Value) -> Value:
        return self.cast("arith.bitcast", value, f"i{WIDTHS[value.dtype]}")

    def to_bits_of(self, value: float, dtype: str) -> int:
        """The bits of a number in format `dtype`."""
        return float_bits(value, dtype)

    def from_bits(self, value: Value, dtype: str) -> Value:
        return self.cast("arith.bitcast", value, dtype)

    def apply(self, name: str, operands: Sequence[Value], dtype: str, attributes: str = "") -> Value:
        """Any op with one result, in generic form; `attributes` is `{predicate = 4 : i64}` or empty."""
        listed = ", ".join(v.name for v in operands)
        types = ", ".join(self.type(v.dtype) for v in operands)
        return self.emit(f'"{name}"({listed}) {attributes} : ({types}) -> {self.type(dtype)}', dtype)

    def unsigned_shift(self, value: Value, amount: Operand) -> Value:
        return self.binary("arith.shrui", value, amount)

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """a * b + c: fused if the CPU has it, else rounded twice."""
        factor, addend = self.value(b, a.dtype), self.value(c, a.dtype)
        return self.op("math.fma", a, factor, addend) if self.processor.has_fma else a * factor + addend

    def product_error(self, x: Value, y: Value, product: Value) -> Value:
        """x * y - product, exact: one fma, or Veltkamp's splitting and Dekker's product (1971)."""
        if self.processor.has_fma:
            return self.op("math.fma", x, y, -product)
        (x1, x2), (y1, y2) = self._halves(x), self._halves(y)
        return x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2)

    def quotient_error(self, x: Value, y: Value, quotient: Value) -> Value:
        """x - y * quotient, exact, for a quotient that is almost x/y."""
        if self.processor.has_fma:
            return self.fma(-quotient, y, x)
        product = quotient * y
        return (x - product) - self.product_error(quotient, y, product)

    def _halves(self, x: Value) -> tuple[Value, Value]:
        high = self.from_bits(self.to_bits(x) & -(1 << (27 if x.dtype == "f64" else 12)), x.dtype)
        return high, x - high

    def horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        """The polynomial with these coefficients, highest power first."""
        result = self.value(coefficients[0], x.dtype)
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, coefficient)
        return result

    def abs(self, x: Value) -> Value:
        return self.op("math.absf", x)

    def sqrt(self, x: Value) -> Value:
        return self.op("math.sqrt", x)

    def copysign(self, magnitude: Operand, sign: Value) -> Value:
        return self.op("math.copysign", self.value(magnitude, sign.dtype), sign)

    def minimum(self, x: Value, bound: float) -> Value:
        """min(x, bound) as one instruction; NaN stays NaN."""
        return self.select(x > bound, bound, x)

    def maximum(self, x: Value, bound: float) -> Value:
        """max(x, bound) as one instruction; NaN stays NaN."""
        return self.select(x < bound, bound, x)

    def scale(self, x: Value, exponent: Value) -> Value:
        """x * 2^exponent, rounded once, for x near 1 and exponents two powers beyond the format's range on each side.

        `exponent` is an i32 for f32 and an i64 for f64.
        """
        if self.processor.has_avx512 and self.shape.count("x") <= 1:
            mangled = f"v{self.shape[:-1]}" if self.shape else ""
            types = f"({self.type(x.dtype)}, {self.type(exponent.dtype)}) -> {self.type(x.dtype)}"
            name = f"llvm.ldexp.{mangled}{x.dtype}.{mangled}{exponent.dtype}"
            return self.emit(f'llvm.call_intrinsic "{name}"({x.name}, {exponent.name}) : {types}', x.dtype)
        half = exponent >> 1
        return x * self.power_of_two(half, x.dtype) * self.power_of_two(exponent - half, x.dtype)

    def scale_or_vanish(self, x: Value, exponent: Value, vanishes: Value) -> Value:
        """`scale`, or 0 where the result `vanishes`, which must be known: underflow takes a processor 100 cycles."""
        return self.select(vanishes, 0.0, self.scale(x, self.select(vanishes, 0, exponent)))

    def power_of_two(self, exponent: Value, dtype: str) -> Value:
        """2^exponent for exponents of normal numbers."""
        bias = (1 << WIDTHS[dtype] - MANTISSA[dtype] - 2) - 1
        return self.from_bits((exponent + bias) << MANTISSA[dtype], dtype)

    def function(self, symbol: str, result: Value, attributes: str = "") -> str:
        """The text of a `func.func private` with this body."""
        arguments = ", ".join(f"{v.name}: {self.type(v.dtype)}" for v in self.arguments)
        dtype = self.type(result.dtype)
        head = f"func.func private @{symbol}({arguments}) -> {dtype}{attributes} {{"
        return "\n  ".join([head, *self._lines, f"return {result.name} : {dtype}"]) + "\n}\n"


def float_bits(value: float, dtype: str) -> int:
    """The bits of `value` rounded to f16, f32 or f64."""
    write, read = _STRUCT[dtype]
    return struct.unpack(read, struct.pack(write, value))[0]
