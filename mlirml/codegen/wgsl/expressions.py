"""Scalar operations as WGSL expressions: one function of the operation and its operands' texts for each."""

from __future__ import annotations

from mlirml.codegen.c_like import Expression, Texts, call, infix
from mlirml.codegen.wgsl.types import literal, unsigned, width, wrapped
from mlirml.ir.bindings import mlir


def _is_bool(type_: mlir.Type) -> bool:
    return str(type_) == "i1"


def _integer(sign: str) -> Expression:
    return lambda op, x: wrapped(f"({x[0]} {sign} {x[1]})", op.results[0].type)


def _bits(sign: str, truth: str) -> Expression:
    return lambda op, x: f"{x[0]} {truth if _is_bool(op.results[0].type) else sign} {x[1]}"


def _unsigned(form: str) -> Expression:
    """An expression of two unsigned numbers, with the result as an i32."""

    def expression(op: mlir.Operation, x: Texts) -> str:
        type_ = op.results[0].type
        first, second = (unsigned(text, type_) for text in x)
        return wrapped(f"i32({form.format(first, second)})", type_)

    return expression


def _select(op: mlir.Operation, x: Texts) -> str:
    return f"select({x[2]}, {x[1]}, {x[0]})"


def _shift(sign: str) -> Expression:
    return lambda op, x: wrapped(f"({x[0]} {sign} {unsigned(x[1], op.operands[1].type)})", op.results[0].type)


_SIGNS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6


def _compare_integers(op: mlir.Operation, x: Texts) -> str:
    number = mlir.IntegerAttr(op.attributes["predicate"]).value
    if number >= _FIRST_UNSIGNED:
        x = [unsigned(text, op.operands[0].type) for text in x]
    return f"{x[0]} {_SIGNS[number]} {x[1]}"


def _compare_floats(op: mlir.Operation, x: Texts) -> str:
    number = mlir.IntegerAttr(op.attributes["predicate"]).value
    a, b = x
    if number == 6:
        return f"({a} < {b}) || ({a} > {b})"
    if number == 7:
        return f"!({_is_nan(a)}) && !({_is_nan(b)})"
    return f"{a} {('', '==', '>', '>=', '<', '<=')[number]} {b}"


def _is_nan(text: str) -> str:
    """By the bits: implementations may evaluate `x != x` to false."""
    return f"(bitcast<u32>({text}) & 0x7fffffffu) > 0x7f800000u"


def _of_numbers(name: str) -> Expression:
    """`maxnumf`: the other operand if one is NaN."""
    return lambda op, x: _with_nans(f"{name}({x[0]}, {x[1]})", x, (x[1], x[0]))


def _or_nan(name: str) -> Expression:
    """`maximumf`: NaN if one operand is."""
    return lambda op, x: _with_nans(f"{name}({x[0]}, {x[1]})", x, x)


def _with_nans(text: str, x: Texts, instead: Texts) -> str:
    """An expression of two numbers, and the results if the first one or the second is NaN."""
    return f"select(select({text}, {instead[1]}, {_is_nan(x[1])}), {instead[0]}, {_is_nan(x[0])})"


def _from_bool(one: str, zero: str, text: str) -> str:
    return f"select({zero}, {one}, {text})"


def _extended_unsigned(op: mlir.Operation, x: Texts) -> str:
    type_ = op.operands[0].type
    return _from_bool("1i", "0i", x[0]) if _is_bool(type_) else f"i32({unsigned(x[0], type_)})"


def _extended(op: mlir.Operation, x: Texts) -> str:
    return _from_bool("-1i", "0i", x[0]) if _is_bool(op.operands[0].type) else x[0]


def _truncated(op: mlir.Operation, x: Texts) -> str:
    type_ = op.results[0].type
    return f"({x[0]} & 1i) != 0i" if _is_bool(type_) else wrapped(x[0], type_)


def _cast_index(op: mlir.Operation, x: Texts) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if _is_bool(source):
        return _extended_unsigned(op, x) if op.name.endswith("ui") else _extended(op, x)
    if width(target) < width(source):
        return _truncated(op, x)
    return _extended_unsigned(op, x) if op.name.endswith("ui") else x[0]


def _float_of_unsigned(op: mlir.Operation, x: Texts) -> str:
    type_ = op.operands[0].type
    return _from_bool("1.0f", "0.0f", x[0]) if _is_bool(type_) else f"f32({unsigned(x[0], type_)})"


def _float_of_signed(op: mlir.Operation, x: Texts) -> str:
    return _from_bool("-1.0f", "0.0f", x[0]) if _is_bool(op.operands[0].type) else f"f32({x[0]})"


def _bitcast(op: mlir.Operation, x: Texts) -> str:
    name = "f32" if str(op.results[0].type) == "f32" else "i32"
    same = str(op.operands[0].type) == str(op.results[0].type)
    return x[0] if same else f"bitcast<{name}>({x[0]})"


def _copysign(op: mlir.Operation, x: Texts) -> str:
    magnitude, sign = (f"bitcast<u32>({text})" for text in x)
    return f"bitcast<f32>(({magnitude} & 0x7fffffffu) | ({sign} & 0x80000000u))"


def _position(name: str) -> Expression:
    return lambda op, x: f"i32({name}.{str(op.attributes['dimension']).removeprefix('#gpu<dim ').rstrip('>')})"


EXPRESSIONS: dict[str, Expression] = {
    "arith.constant": lambda op, x: literal(op.attributes["value"]),
    "arith.addf": infix("+"),
    "arith.subf": infix("-"),
    "arith.mulf": infix("*"),
    "arith.divf": infix("/"),
    "arith.remf": infix("%"),
    "arith.negf": lambda op, x: f"-({x[0]})",
    "arith.maximumf": _or_nan("max"),
    "arith.minimumf": _or_nan("min"),
    "arith.maxnumf": _of_numbers("max"),
    "arith.minnumf": _of_numbers("min"),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.select": _select,
    "arith.addi": _integer("+"),
    "arith.subi": _integer("-"),
    "arith.muli": _integer("*"),
    "arith.divsi": _integer("/"),
    "arith.remsi": _integer("%"),
    "arith.divui": _unsigned("{} / {}"),
    "arith.remui": _unsigned("{} % {}"),
    "arith.maxui": _unsigned("max({}, {})"),
    "arith.minui": _unsigned("min({}, {})"),
    "arith.shrui": _unsigned("{} >> {}"),
    "arith.maxsi": call("max"),
    "arith.minsi": call("min"),
    "arith.shli": _shift("<<"),
    "arith.shrsi": _shift(">>"),
    "arith.andi": _bits("&", "&&"),
    "arith.ori": _bits("|", "||"),
    "arith.xori": _bits("^", "!="),
    "arith.extui": _extended_unsigned,
    "arith.extsi": _extended,
    "arith.trunci": _truncated,
    "arith.index_cast": _cast_index,
    "arith.index_castui": _cast_index,
    "arith.sitofp": _float_of_signed,
    "arith.uitofp": _float_of_unsigned,
    "arith.fptosi": lambda op, x: wrapped(f"i32({x[0]})", op.results[0].type),
    "arith.fptoui": lambda op, x: wrapped(f"i32(u32({x[0]}))", op.results[0].type),
    "arith.bitcast": _bitcast,
    "math.absf": call("abs"),
    "math.absi": lambda op, x: wrapped(f"abs({x[0]})", op.results[0].type),
    "math.ceil": call("ceil"),
    "math.copysign": _copysign,
    "math.cos": call("cos"),
    "math.ctlz": call("countLeadingZeros"),
    "math.ctpop": call("countOneBits"),
    "math.cttz": call("countTrailingZeros"),
    "math.floor": call("floor"),
    "math.fma": call("fma"),
    "math.roundeven": call("round"),
    "math.rsqrt": call("inverseSqrt"),
    "math.sin": call("sin"),
    "math.sqrt": call("sqrt"),
    "math.tan": call("tan"),
    "math.trunc": call("trunc"),
    "gpu.thread_id": _position("thread"),
    "gpu.block_id": _position("block"),
    "gpu.grid_dim": _position("blocks"),
}
