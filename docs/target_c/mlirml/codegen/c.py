"""The function @main on memrefs as C: `void entry(void **pointers)`, with the pointers of an artifact.

A memref becomes a pointer to its first element; the strides are those of its type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mlirml.codegen.c_like import CLikePrinter, Expression, Texts, float_literal
from mlirml.errors import LoweringError, TargetError
from mlirml.ir.bindings import main_function, mlir, named_operations
from mlirml.ir.location import source_location

_DYNAMIC = mlir.ShapedType.get_dynamic_stride_or_offset()
_TYPES = {"i1": "bool", "index": "int64_t", "f32": "float", "f64": "double"}
_TYPES |= {f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}

_FORMS = {
    "arith.maximumf": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "arith.minimumf": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "arith.maxnumf": "fmax{F}({0}, {1})",
    "arith.minnumf": "fmin{F}({0}, {1})",
    "arith.maxsi": "{0} > {1} ? {0} : {1}",
    "arith.minsi": "{0} < {1} ? {0} : {1}",
    "arith.negf": "-({0})",
    "arith.remf": "fmod{F}({0}, {1})",
    "arith.select": "{0} ? {1} : {2}",
    "arith.shrui": "({T})(({U}){0} >> {1})",
    "arith.extui": "({T})({U}){0}",
    "arith.uitofp": "({T})({U}){0}",
    "math.absf": "fabs{F}({0})",
    "math.powf": "pow{F}({0}, {1})",
    "math.roundeven": "rint{F}({0})",
}
"""Expressions of operands: `T` is the type of the result, `U` the unsigned type of an operand, `F` is f for f32."""
_SIGNS = {"addf": "+", "subf": "-", "mulf": "*", "divf": "/", "divsi": "/", "remsi": "%", "shrsi": ">>"}
_BITS = {"addi": "+", "subi": "-", "muli": "*", "shli": "<<", "andi": "&", "ori": "|", "xori": "^"}
_CASTS = ("sitofp", "fptosi", "extf", "truncf", "extsi", "trunci", "index_cast")
_LIBM = ("atan", "ceil", "cos", "erf", "exp", "expm1", "floor", "log", "log1p", "sin", "sqrt", "tan", "tanh", "trunc")
_FORMS |= {f"arith.{name}": f"{{0}} {sign} {{1}}" for name, sign in _SIGNS.items()}
_FORMS |= {f"arith.{name}": f"({{T}})(({{U}}){{0}} {sign} ({{U}}){{1}})" for name, sign in _BITS.items()}
_FORMS |= {f"arith.{name}": "({T}){0}" for name in _CASTS}
_FORMS |= {f"math.{name}": f"{name}{{F}}({{0}})" for name in _LIBM}

_ORDER = ("==", "!=", "<", "<=", ">", ">=")
_PREDICATES = {
    "arith.cmpi": [
        *(f"{{0}} {sign} {{1}}" for sign in _ORDER),
        *(f"({{U}}){{0}} {sign} ({{U}}){{1}}" for sign in _ORDER[2:]),
    ],
    "arith.cmpf": [
        "false", "{0} == {1}", "{0} > {1}", "{0} >= {1}", "{0} < {1}", "{0} <= {1}", "{0} < {1} || {0} > {1}",
        "{0} == {0} && {1} == {1}", "!({0} < {1} || {0} > {1})", "!({0} <= {1})", "!({0} < {1})", "!({0} >= {1})",
        "!({0} > {1})", "{0} != {1}", "{0} != {0} || {1} != {1}", "true",
    ],
}  # fmt: skip


def program(module: mlir.Operation) -> str:
    """The text of a module after stage `lower`; raises an error at the user's line for what has no form in C."""
    return _Function(module).text()


def _expression(op: mlir.Operation, x: Texts) -> str:
    type_ = str(op.results[0].type)
    form = _PREDICATES[op.name][op.attributes["predicate"].value] if op.name in _PREDICATES else _FORMS[op.name]
    if type_ == "index" and op.name[6:] in _BITS:  # indices do not overflow
        form = f"{{0}} {_BITS[op.name[6:]]} {{1}}"
    operand = str(op.operands[0].type)
    if operand == "i1" and op.name in ("arith.extsi", "arith.sitofp"):
        x = [f"-{x[0]}"]
    if type_ == "i1" and op.name == "arith.trunci":
        x = [f"({x[0]} & 1)"]
    return form.format(*x, T=_TYPES[type_], U=_TYPES[operand].replace("int", "uint"), F="f" * (type_ == "f32"))


def _number(value: float, type_: mlir.Type) -> str:
    if not isinstance(type_, mlir.FloatType):
        return str(int(value))
    if not math.isfinite(value):
        return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
    return float_literal(value) if str(type_) == "f32" else repr(float(value))


class _Function(CLikePrinter):
    language = "C"
    counter = "int64_t"
    endless = "for (;;) {"
    expressions: ClassVar[dict[str, Expression]] = {
        "arith.constant": lambda op, x: _number(op.attributes["value"].value, op.results[0].type),
        **dict.fromkeys((*_FORMS, *_PREDICATES), _expression),
    }

    def __init__(self, module: mlir.Operation) -> None:
        super().__init__()
        self.function = main_function(module)
        self.globals = named_operations(module, ("memref.global",))

    def text(self) -> str:
        """The text of the function."""
        function = self.function
        block = function.regions[0].blocks[0]
        for position, argument in enumerate(block.arguments):
            self.pointer(argument, f"pointers[{position}]", function.location)
        self.body(block)
        head = [f"#include <{name}.h>" for name in ("math", "stdbool", "stdint")]
        return "\n".join([*head, "", "void entry(void **pointers) {", *self.lines, "}", ""])

    def type_name(self, type_: mlir.Type, location: mlir.Location) -> str:
        if str(type_) not in _TYPES:
            raise TargetError(f"C has no {type_}, which this is computed with", location=source_location(location))
        return _TYPES[str(type_)]

    def declaration(self, type_: mlir.Type, name: str, value: str | None, *, constant: bool) -> str:
        start = "" if value is None else f" = {value}"
        return f"{'const ' * constant}{_TYPES[str(type_)]} {name}{start};"

    def pointer(self, memory: mlir.Value, value: str, location: mlir.Location) -> None:
        """Declare the pointer of a memref."""
        strides, _ = memory.type.get_strides_and_offset()
        if not memory.type.has_static_shape or _DYNAMIC in strides:
            raise LoweringError("C has no arrays of dynamic sizes or strides here", location=source_location(location))
        self.values[memory] = self.name("p")
        element = self.type_name(memory.type.element_type, location)
        self.line(f"{element} *{self.values[memory]} = {value};")

    def element(self, memory: mlir.Value, indices: Sequence[str]) -> str:
        """An element of a memref."""
        strides, _ = memory.type.get_strides_and_offset()
        terms = [index if stride == 1 else f"{index} * {stride}" for index, stride in zip(indices, strides)]
        return f"{self.values[memory]}[{' + '.join(terms) or '0'}]"

    def load(self, op: mlir.Operation) -> None:
        """`memref.load`."""
        memory, *indices = op.operands
        text = self.element(memory, [self.values[index] for index in indices])
        self.values[op.results[0]] = self.let(op.results[0].type, text)

    def store(self, op: mlir.Operation) -> None:
        """`memref.store`."""
        value, memory, *indices = op.operands
        self.line(f"{self.element(memory, [self.values[index] for index in indices])} = {self.values[value]};")

    def copy(self, op: mlir.Operation) -> None:
        """`memref.copy`: a loop for each dimension."""
        source, target = op.operands
        counters = [self.name("i") for _ in source.type.shape]
        for i, size in zip(counters, source.type.shape):
            self.line(f"for (int64_t {i} = 0; {i} < {size}; {i} += 1)")
        self.line(f"  {self.element(target, counters)} = {self.element(source, counters)};")

    def view(self, op: mlir.Operation) -> None:
        """`memref.view`: an array in the bytes of another."""
        memory, offset = (self.values[operand] for operand in op.operands)
        self.pointer(op.results[0], f"(void *)({memory} + {offset})", op.location)

    def subview(self, op: mlir.Operation) -> None:
        """`memref.subview`: its pointer includes the offset."""
        source, *dynamic = op.operands
        offsets = [str(n) if n >= 0 else self.values[dynamic.pop(0)] for n in op.attributes["static_offsets"]]
        self.pointer(op.results[0], f"&{self.element(source, offsets)}", op.location)

    def reinterpret(self, op: mlir.Operation) -> None:
        """`memref.reinterpret_cast`: the offset is from the start of the memory, that of the source is subtracted."""
        source, *dynamic = op.operands
        (offset,) = op.attributes["static_offsets"]
        _, start = source.type.get_strides_and_offset()
        if start == _DYNAMIC:
            raise LoweringError("C has no pointer to the start of this", location=source_location(op.location))
        distance = str(offset - start) if offset != _DYNAMIC else f"{self.values[dynamic[0]]} - {start}"
        self.pointer(op.results[0], f"{self.values[source]} + {distance}", op.location)

    def constants(self, op: mlir.Operation) -> None:
        """`memref.get_global`: an array of constants."""
        made = next(made for made in self.globals if made.attributes["sym_name"].value == op.attributes["name"].value)
        name, type_ = self.name("c"), op.results[0].type.element_type
        numbers = np.array(mlir.DenseElementsAttr(made.attributes["initial_value"])).reshape(-1)
        listed = ", ".join(_number(number, type_) for number in numbers)
        self.line(f"static const {self.type_name(type_, op.location)} {name}[] = {{{listed}}};")
        self.pointer(op.results[0], f"(void *){name}", op.location)

    def reshape(self, op: mlir.Operation) -> None:
        """The same elements."""
        self.pointer(op.results[0], self.values[op.operands[0]], op.location)


_Function.statements = {
    "memref.load": _Function.load,
    "memref.store": _Function.store,
    "memref.copy": _Function.copy,
    "memref.view": _Function.view,
    "memref.subview": _Function.subview,
    "memref.get_global": _Function.constants,
    "memref.reinterpret_cast": _Function.reinterpret,
    **dict.fromkeys(("memref.cast", "memref.collapse_shape", "memref.expand_shape"), _Function.reshape),
}
