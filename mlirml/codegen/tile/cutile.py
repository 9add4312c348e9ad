"""The text of a tile kernel in cuTile Python, NVIDIA's language for CUDA Tile IR, from the `vector` dialect.

Before:
    gpu.func @k(%x: memref<300x192xf16, strided<[192, 1]>>, %y: ...) kernel attributes {mlirml.tile = {}} {
      %t = vector.transfer_read %x[%row, %column], %zero : memref<...>, vector<64x64xf16>
      %u = arith.addf %t, %t : vector<64x64xf16>
      vector.transfer_write %u, %y[%row, %column] : ...
After:
    def kernel(x0, x1):
        v4 = ct.load(x0, index=(v1, v2), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO)
        v5 = v4 + v4
        ct.store(x1, index=(v1, v2), tile=v5)

Arrays are indexed by tiles: the start of a transfer is a multiple of the tile. Functions of f16 and bf16 are computed
in f32 and rounded; arithmetic has the type of its operands. The assembler may contract `a * b + c`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlirml.codegen.math.gauss import ERF_LARGE_F32, ERF_SMALL_F32
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "tf32": "tfloat32", "i1": "bool_",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "index": "int32",
}  # fmt: skip
ARRAY_DTYPES = {**DTYPES, "i1": "int8"}
"""The element types of arrays: bytes for booleans, of which loads by the copy engine were seen to be wrong."""
_SMALL = ("f16", "bf16")
_OPERATORS = {
    "arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.addi": "+", "arith.subi": "-", "arith.muli": "*",
    "arith.andi": "&", "arith.ori": "|", "arith.xori": "^", "arith.shli": "<<", "arith.shrsi": ">>",
}  # fmt: skip
_UNSIGNED = {"arith.divui": "//", "arith.remui": "%", "arith.shrui": ">>"}
_CALLS = {
    "arith.divf": "ct.truediv({0}, {1})", "arith.negf": "-{0}", "arith.select": "ct.where({0}, {1}, {2})",
    "arith.maximumf": "ct.maximum({0}, {1}, propagate_nan=True)",
    "arith.minimumf": "ct.minimum({0}, {1}, propagate_nan=True)",
    "arith.maxnumf": "ct.maximum({0}, {1})", "arith.minnumf": "ct.minimum({0}, {1})",
    "arith.maxsi": "ct.maximum({0}, {1})", "arith.minsi": "ct.minimum({0}, {1})",
    "arith.minui": "min({0}, {1})", "math.absf": "ct.abs({0})",
}  # fmt: skip
_FUNCTIONS = {
    f"math.{name}": f"ct.{name}"
    for name in (
        "ceil", "cos", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sin", "sinh", "cosh", "sqrt", "tan", "tanh",
    )
}  # fmt: skip
_CASTS = (
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi", "arith.extsi", "arith.trunci", "arith.index_cast",
)  # fmt: skip
_COMPARISONS = {
    "arith.cmpf": {1: "{0} == {1}", 2: "{0} > {1}", 3: "{0} >= {1}", 4: "{0} < {1}", 5: "{0} <= {1}",
                   6: "({0} < {1}) | ({0} > {1})", 13: "{0} != {1}", 14: "ct.isnan({0}) | ct.isnan({1})"},
    "arith.cmpi": {0: "{0} == {1}", 1: "{0} != {1}", 2: "{0} < {1}", 3: "{0} <= {1}", 4: "{0} > {1}", 5: "{0} >= {1}",
                   6: "{0} < {1}"},
}  # fmt: skip
_FARTHEST = 4.0
"""Beyond it erf is 1 in f32."""
_POWERS = 4
"""The largest constant exponent that is a product."""
REDUCTIONS = {
    "add": "sum", "maximumf": "max", "maxnumf": "max", "maxsi": "max", "minimumf": "min", "minnumf": "min",
    "minsi": "min",
}  # fmt: skip
"""The functions that combine a tile along an axis."""


def is_elementwise(op: mlir.Operation) -> bool:
    """True if there is a text for an elementwise operation on tiles."""
    if op.name in _COMPARISONS:
        return op.attributes["predicate"].value in _COMPARISONS[op.name]
    if op.name == "math.powf":
        return _exponent(op.operands[1]) is not None
    if op.name == "math.erf":
        return element_of(op.operands[0].type) in ("f32", *_SMALL)
    return op.name in _OPERATORS or op.name in _CALLS or op.name in _FUNCTIONS or op.name in _CASTS or (
        op.name in ("arith.uitofp", "arith.extui") and element_of(op.operands[0].type) == "i1"
    )  # fmt: skip


def kernel_text(function: mlir.Operation) -> str:
    """The Python source of a kernel, a function `kernel` of its arrays and numbers."""
    return _Writer(function).text()


class _Writer:
    """The lines of a kernel so far, and the expression of each value."""

    def __init__(self, function: mlir.Operation) -> None:
        self.block = function.regions[0].blocks[0]
        self.lines: list[str] = []
        self.names: dict[mlir.Value, str] = {}
        self.depth = 1
        self.count = 0

    def text(self) -> str:
        """The source."""
        arguments = [f"x{number}" for number, _ in enumerate(self.block.arguments)]
        self.names.update(zip(self.block.arguments, arguments, strict=True))
        self.lines.append(f"def kernel({', '.join(arguments)}):")
        self.write_all(block_ops(self.block)[:-1])
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, value: mlir.Value) -> str:
        """The expression of a value: a name, or an integer that is constant."""
        return self.names[value]

    def new(self, value: mlir.Value, text: str) -> None:
        """Assign an expression to the name of a value."""
        self.names[value] = f"v{self.count}"
        self.count += 1
        self.line(f"{self.names[value]} = {text}")

    def write_all(self, ops: Sequence[mlir.Operation]) -> None:
        for op in ops:
            rule = _RULES.get(op.name)
            if rule is not None:
                rule(self, op)
            elif is_start(op):
                continue
            elif is_elementwise(op):
                self.new(op.results[0], self.elementwise(op))
            else:
                raise NoMatch(f"{op.name} in a tile kernel")

    def elementwise(self, op: mlir.Operation) -> str:
        """The expression of an elementwise operation."""
        operands = [self.name(value) for value in op.operands]
        kind = element_of(op.results[0].type)
        if op.name in _OPERATORS:
            return f"{operands[0]} {_OPERATORS[op.name]} {operands[1]}"
        if op.name in _CALLS:
            return _CALLS[op.name].format(*operands)
        if op.name in _COMPARISONS:
            return _COMPARISONS[op.name][op.attributes["predicate"].value].format(*operands)
        if op.name in _FUNCTIONS or op.name == "math.powf":
            wide = [f"ct.astype({x}, ct.float32)" for x in operands] if kind in _SMALL else operands
            if op.name == "math.powf":
                exponent = _exponent(op.operands[1])
                assert exponent is not None
                found = " * ".join([wide[0]] * exponent)
            else:
                found = f"{_FUNCTIONS[op.name]}({wide[0]})"
            return f"ct.astype({found}, ct.{DTYPES[kind]})" if kind in _SMALL else found
        return f"ct.astype({operands[0]}, ct.{DTYPES[kind]})"

    def tile_index(self, value: mlir.Value, extent: int) -> str:
        """The number of a tile whose first index is a value."""
        number = _integer(value)
        if number is not None and number % extent == 0:
            return str(number // extent)
        op = defining_op(value)
        if extent == 1:
            return self.name(value)
        if op is not None and op.name == "arith.muli":
            for one, other in (op.operands, reversed(list(op.operands))):
                if _integer(other) == extent:
                    return self.name(one)
        raise NoMatch("a transfer starts within a tile")


def is_start(op: mlir.Operation) -> bool:
    """True if the only uses of a product are the starts of transfers, which are written as numbers of tiles."""
    return op.name == "arith.muli" and all(use.owner.name.startswith("vector.transfer") for use in op.results[0].uses)


def element_of(type_: mlir.Type) -> str:
    """The name of the element type of a tile, or of a scalar."""
    return str(type_.element_type if isinstance(type_, mlir.VectorType) else type_)


def shape_of(type_: mlir.Type) -> tuple[int, ...]:
    """The shape of a tile; none for a scalar."""
    return tuple(type_.shape) if isinstance(type_, mlir.VectorType) else ()


def _integer(value: mlir.Value) -> int | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], mlir.IntegerAttr):
        return None
    return int(op.attributes["value"].value)


def _exponent(value: mlir.Value) -> int | None:
    """A small integer that a scalar, or all elements of a tile, are."""
    op = defining_op(value)
    while op is not None and op.name == "vector.broadcast":
        op = defining_op(op.operands[0])
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    if not isinstance(attribute, mlir.FloatAttr) or attribute.value not in range(1, _POWERS + 1):
        return None
    return int(attribute.value)


def _literal(attribute: mlir.Attribute) -> str:
    """A number as Python writes it."""
    number = attribute.value
    if isinstance(attribute, mlir.FloatAttr) and not math.isfinite(number):
        return "NAN" if math.isnan(number) else "INF" if number > 0 else "-INF"
    if isinstance(attribute, mlir.IntegerAttr) and str(attribute.type) == "i1":
        return str(bool(number))
    return repr(number)


def _full(attribute: mlir.Attribute, type_: mlir.Type) -> str:
    """The tile whose elements are a number."""
    return f"ct.full({shape_of(type_)}, {_literal(attribute)}, dtype=ct.{DTYPES[element_of(type_)]})"


Rule = Callable[[_Writer, mlir.Operation], None]
_RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator of the texts of these operations."""

    def add(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return add


@rule("arith.constant")
def constant(writer: _Writer, op: mlir.Operation) -> None:
    attribute, result = op.attributes["value"], op.results[0]
    if isinstance(result.type, mlir.VectorType):
        writer.new(result, _full(attribute.get_splat_value(), result.type))
    elif isinstance(result.type, mlir.IndexType):
        writer.names[result] = str(attribute.value)
    else:
        writer.names[result] = _full(attribute, result.type)


@rule("gpu.block_id")
def block_id(writer: _Writer, op: mlir.Operation) -> None:
    axis = str(op.attributes["dimension"]).partition("dim ")[2][:1]
    writer.new(op.results[0], f"ct.bid({'xyz'.index(axis)})")


@rule(*_UNSIGNED)
def unsigned(writer: _Writer, op: mlir.Operation) -> None:
    """Indices are not negative; the bits of other integers are taken as unsigned."""
    operands = [writer.name(value) for value in op.operands]
    kind = element_of(op.results[0].type)
    if kind == "index":
        writer.new(op.results[0], f"{operands[0]} {_UNSIGNED[op.name]} {operands[1]}")
        return
    left, right = (f"ct.bitcast({x}, ct.u{DTYPES[kind]})" for x in operands)
    writer.new(op.results[0], f"ct.bitcast({left} {_UNSIGNED[op.name]} {right}, ct.{DTYPES[kind]})")


@rule("math.erf")
def error_function(writer: _Writer, op: mlir.Operation) -> None:
    """x + x P(x^2) below 1, and 1 - 2^Q(x) above, as in `codegen/math/gauss.py`."""
    kind = element_of(op.results[0].type)
    x, square, least, near, far = (f"e{writer.count}{letter}" for letter in "xslnf")
    writer.line(f"{x} = ct.astype({writer.name(op.operands[0])}, ct.float32)")
    writer.line(f"{square} = {x} * {x}")
    writer.line(f"{near} = {x} + {x} * {horner(square, ERF_SMALL_F32)}")
    writer.line(f"{least} = ct.minimum(ct.abs({x}), {_FARTHEST}, propagate_nan=True) - 1.0")
    writer.line(f"{far} = ct.exp2({horner(least, ERF_LARGE_F32)}) - 1.0")
    found = f"ct.where(ct.abs({x}) < 1.0, {near}, ct.where({x} < 0.0, {far}, -{far}))"
    writer.new(op.results[0], f"ct.astype({found}, ct.{DTYPES[kind]})" if kind in _SMALL else found)


def horner(variable: str, coefficients: Sequence[float]) -> str:
    """The text of a polynomial, the coefficient of the highest power first."""
    found = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        found = f"({found} * {variable} + {coefficient!r})"
    return found


@rule("arith.bitcast")
def bitcast(writer: _Writer, op: mlir.Operation) -> None:
    writer.new(op.results[0], f"ct.bitcast({writer.name(op.operands[0])}, ct.{DTYPES[element_of(op.results[0].type)]})")


@rule("scf.for")
def loop(writer: _Writer, op: mlir.Operation) -> None:
    lower, upper, step, *inits = op.operands
    body = op.regions[0].blocks[0]
    index, *carried = body.arguments
    for argument, result, init in zip(carried, op.results, inits, strict=True):
        writer.new(argument, writer.name(init))
        writer.names[result] = writer.names[argument]
    writer.names[index] = f"i{writer.count}"
    bounds = ", ".join(writer.name(value) for value in (lower, upper, step))
    writer.line(f"for {writer.names[index]} in range({bounds}):")
    writer.depth += 1
    *inner, last = block_ops(body)
    writer.write_all(inner)
    if carried:
        names = [writer.names[argument] for argument in carried]
        writer.line(f"{', '.join(names)} = {', '.join(writer.name(value) for value in last.operands)}")
    elif not inner:
        writer.line("pass")
    writer.depth -= 1


@rule("vector.transfer_read")
def transfer_read(writer: _Writer, op: mlir.Operation) -> None:
    memory, *position = list(op.operands)[:-1]
    shape = shape_of(op.results[0].type)
    index, whole = _position(writer, position, shape)
    text = f"ct.load({writer.name(memory)}, index={index}, shape={whole}, padding_mode=ct.PaddingMode.ZERO)"
    text = text if whole == shape else f"ct.reshape({text}, {shape})"
    writer.new(op.results[0], f"{text} != 0" if is_boolean(memory) else text)


@rule("vector.transfer_write")
def transfer_write(writer: _Writer, op: mlir.Operation) -> None:
    value, memory, *position = op.operands
    shape = shape_of(value.type)
    index, whole = _position(writer, position, shape)
    tile = f"ct.astype({writer.name(value)}, ct.int8)" if is_boolean(memory) else writer.name(value)
    tile = tile if whole == shape else f"ct.reshape({tile}, {whole})"
    writer.line(f"ct.store({writer.name(memory)}, index={index}, tile={tile})")


def is_boolean(memory: mlir.Value) -> bool:
    """True for an array of booleans."""
    return str(memory.type.element_type) == "i1"


def _position(
    writer: _Writer, position: Sequence[mlir.Value], shape: tuple[int, ...]
) -> tuple[str, tuple[int, ...]]:  # fmt: skip
    """The tile's number in each dimension of an array, and its shape there."""
    whole = (*[1] * (len(position) - len(shape)), *shape)
    numbers = [writer.tile_index(value, extent) for value, extent in zip(position, whole, strict=True)]
    return f"({', '.join(numbers)},)", whole


@rule("memref.load")
def element(writer: _Writer, op: mlir.Operation) -> None:
    memory, *position = op.operands
    index = ", ".join(map(writer.name, position))
    shape = (1,) * len(position)
    load = f"ct.load({writer.name(memory)}, index=({index},), shape={shape})"
    text = f"ct.reshape({load}, ())"
    writer.new(op.results[0], f"{text} != 0" if is_boolean(memory) else text)


@rule("vector.contract")
def contract(writer: _Writer, op: mlir.Operation) -> None:
    maps = [str(attribute.value).partition("-> ")[2] for attribute in op.attributes["indexing_maps"]]
    factors = []
    for value, found, wanted in zip(op.operands, maps, ("(d0, d2)", "(d2, d1)")):
        factors.append(writer.name(value) if found == wanted else f"ct.transpose({writer.name(value)})")
    writer.new(op.results[0], f"ct.mma({factors[0]}, {factors[1]}, {writer.name(op.operands[2])})")


@rule("vector.transpose")
def transpose(writer: _Writer, op: mlir.Operation) -> None:
    axes = tuple(op.attributes["permutation"])
    writer.new(op.results[0], f"ct.permute({writer.name(op.operands[0])}, {axes})")


@rule("vector.shape_cast")
def shape_cast(writer: _Writer, op: mlir.Operation) -> None:
    writer.new(op.results[0], f"ct.reshape({writer.name(op.operands[0])}, {shape_of(op.results[0].type)})")


@rule("vector.broadcast")
def broadcast(writer: _Writer, op: mlir.Operation) -> None:
    (source,), result = op.operands, op.results[0]
    made = defining_op(source)
    if made is not None and made.name == "arith.constant" and not isinstance(source.type, mlir.VectorType):
        writer.new(result, _full(made.attributes["value"], result.type))
    else:
        writer.new(result, f"ct.broadcast_to({writer.name(source)}, {shape_of(result.type)})")


@rule("vector.multi_reduction")
def multi_reduction(writer: _Writer, op: mlir.Operation) -> None:
    """One axis combined, and the accumulator."""
    kind = str(op.attributes["kind"]).partition("<")[2].partition(">")[0]
    (axis,) = op.attributes["reduction_dims"]
    value, before = (writer.name(operand) for operand in op.operands)
    name = REDUCTIONS[kind]
    nan = ", propagate_nan=True" if kind in ("maximumf", "minimumf") else ""
    reduced = f"ct.{name}({value}, axis={axis}{nan})"
    combined = f"{reduced} + {before}" if name == "sum" else f"ct.{name}imum({reduced}, {before}{nan})"
    writer.new(op.results[0], combined)


@rule("vector.step")
def step(writer: _Writer, op: mlir.Operation) -> None:
    writer.new(op.results[0], f"ct.arange({shape_of(op.results[0].type)[0]}, dtype=ct.int32)")
