"""Expand math: elementary functions, and all arithmetic on f16 and bf16, become calls of small inlined functions.

Before:
    %y = math.exp %x : f32
    %z = arith.addf %a, %b : bf16
After:
    %y = func.call @mlirml.exp.f32(%x) : (f32) -> f32
    %z = func.call @mlirml.addf.bf16(%a, %b) : (bf16, bf16) -> bf16
    ...
    func.func private @mlirml.exp.f32(%x0: f32) -> f32 attributes {llvm.passthrough = ["alwaysinline"], ...} {
      %c0 = arith.constant 0x42B20000 : f32
      %0 = arith.cmpf ogt, %x0, %c0 : f32
      ...
    }

The functions are straight-line code of arithmetic, fma, select and shifts on scalars or vectors, one for each function
and type in the module. LLVM inlines all of them before it vectorises loops. Their bodies are in `codegen/math/`;
a math op without one there is left to `convert-math-to-llvm`, `convert-math-to-funcs` and `convert-math-to-libm`.

sin, cos and tan call libm for large arguments, and the float remainder for large quotients, so they branch. They stay
calls until LLVM vectorises the loop, when it takes the vector functions that the attribute
`vector-function-abi-variant` lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from mlirml.analysis.normal_tail import match_normal_tail
from mlirml.analysis.traits import FLOAT_CASTS
from mlirml.codegen.math import ELSEWHERE, EXPANSIONS, GUARDED, Builder, Value, libmvec
from mlirml.codegen.math.builder import WIDTHS
from mlirml.codegen.math.registry import ROUGH, UNROUNDED
from mlirml.codegen.math.small_floats import SMALL, extend, truncate
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.targets.machine import Processor

PREFIX = "mlirml."
CONTAINERS = ("func.func", "gpu.module")
PROMOTED = frozenset(
    f"arith.{name}"
    for name in (
        "addf", "subf", "mulf", "divf", "remf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf", "cmpf", "extf",
        "truncf", "sitofp", "uitofp", "fptosi", "fptoui", "divsi", "divui",
    )
)  # fmt: skip

MATH = tuple(
    f"math.{name}"
    for name in (
        "absf", "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clampf",
        "copysign", "cos", "cosh", "ctlz", "ctpop", "cttz", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma",
        "fpowi", "ipowi", "isfinite", "isinf", "isnan", "isnormal", "log", "log10", "log1p", "log2", "powf", "round",
        "roundeven", "rsqrt", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "trunc",
    )
)  # fmt: skip
"""All operations of the dialect."""

INTEGER_DIVISIONS = frozenset(["arith.divsi", "arith.divui"])


@register
class ExpandMathPass(Pass):
    """Expand elementary functions into arithmetic, and f16 and bf16 arithmetic into f32 with a rounding each time.

    The arithmetic is that of `processor`: fused multiply-add, x * 2^n, conversions of f16. With `libmvec`, vectorised
    loops call the vector functions of glibc if they exist. Without `f64` no function of f32 is computed in f64, and
    integers are divided by their own instructions.
    """

    processor: Processor = Processor()
    libmvec: bool = False
    f64: bool = True

    def run(self, module: mlir.Operation) -> None:
        kernels = [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "gpu.module"]
        host = self.processor
        if kernels:  # which alone have the instructions of the device
            host = replace(host, features=host.features - {"ptx"})
        expand(module, replace(self, processor=host))
        for kernel in kernels:
            expand(kernel, self)


@dataclass(frozen=True)
class Function:
    """A library function: an op and its operand and result types. `shape` is empty, or `4x16x` for vectors."""

    op: str
    operands: tuple[str, ...]
    result: str
    shape: str = ""
    predicate: int = -1

    @property
    def symbol(self) -> str:
        """`mlirml.exp.f32`, `mlirml.cmpf.2.v16xbf16`, `mlirml.truncf.f64.f16`."""
        types = list(dict.fromkeys(self.operands))
        if self.result not in (*types, "i1"):
            types.append(self.result)
        name = self.op.partition(".")[2] + (f".{self.predicate}" if self.predicate >= 0 else "")
        return PREFIX + ".".join([name, *(f"v{self.shape}{t}" if self.shape else t for t in types)])


def expand(container: mlir.Operation, options: ExpandMathPass) -> None:
    """Expand the ops of one module; the library functions are appended to it."""
    symbols: dict[str, Function] = {}
    known: dict[mlir.Type, tuple[str, str]] = {}
    ops = candidates(container)
    if options.processor.has_fma:
        ops = expand_tails(ops, symbols, known)
    for op in ops:
        function = match_function(op, known, options)
        if function is not None:
            symbols[function.symbol] = function
            replace_by_call(op, function.symbol, list(op.operands))
    for function in list(symbols.values()):
        symbols |= {needed.symbol: needed for needed in requirements(function, options)}
    block = container.regions[0].blocks[0]
    present = {op.attributes["sym_name"].value for op in block_ops(block) if "sym_name" in op.attributes}
    if symbols:
        listed = [*symbols.values()]
        text = "".join(function_text(function, options) for function in listed) + declarations(listed, options)
        library = mlir.Operation.parse(
            f"module {{\n{text}}}", source_name=ExpandMathPass.name, context=container.context
        )
        for op in block_ops(library.regions[0].blocks[0]):
            if op.attributes["sym_name"].value not in present:
                block.append(op)


def expand_tails(
    ops: Sequence[mlir.Operation], symbols: dict[str, Function], known: dict[mlir.Type, tuple[str, str]]
) -> list[mlir.Operation]:
    """Expand the expressions of normal tails, each as one function; returns the operations that are left."""
    left = []
    for op in ops:
        try:
            tail = match_normal_tail(op)
        except NoMatch:
            left.append(op)
            continue
        shape, element = shape_and_element(tail.x.type, known)
        function = Function("math.normal_tail", (element,), element, shape)
        symbols[function.symbol] = function
        replace_by_call(op, function.symbol, [tail.x])
        if not any(True for _ in tail.erfc.results[0].uses):
            left.remove(tail.erfc)
            tail.erfc.erase()
    return left


def candidates(container: mlir.Operation) -> list[mlir.Operation]:
    """The ops of a module that may be expandable, judged by name only."""
    ops = block_ops(container.regions[0].blocks[0])
    if not any(op.name == "gpu.module" or (op.name == "func.func" and is_library_function(op)) for op in ops):
        return named_operations(container, (*PROMOTED, *MATH))
    found: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        name = op.name
        if name in PROMOTED or name.startswith("math."):
            found.append(op)
        elif name in CONTAINERS and (name == "gpu.module" or is_library_function(op)) and op != container:
            return mlir.WalkResult.SKIP
        return mlir.WalkResult.ADVANCE

    container.walk(visit, mlir.WalkOrder.PRE_ORDER)
    return found


def is_library_function(op: mlir.Operation) -> bool:
    """True if `op` is a function that this pass made."""
    name: str = op.attributes["sym_name"].value
    return name.startswith(PREFIX)


def match_function(
    op: mlir.Operation, known: dict[mlir.Type, tuple[str, str]], options: ExpandMathPass
) -> Function | None:
    """The library function that replaces `op`, or None if LLVM or libm handle it well."""
    if len(op.results) != 1:
        return None
    operands = [shape_and_element(v.type, known) for v in op.operands]
    shape, result = shape_and_element(op.results[0].type, known)
    names = tuple(type_name for _, type_name in operands)
    if any(other != shape for other, _ in operands):
        return None
    key = op.name.partition(".")[2], names[0]
    if not (set(SMALL) & {*names, result}) and key not in EXPANSIONS and key not in GUARDED:
        return None
    if options.processor.converts_f16 and converts_in_one_instruction(op.name, names[0], result):
        return None
    if op.name in INTEGER_DIVISIONS and llvm_divides_well(op, names[0], options):
        return None
    predicate = op.attributes["predicate"].value if op.name == "arith.cmpf" else -1
    return Function(op.name, names, result, shape, predicate)


def converts_in_one_instruction(name: str, operand: str, result: str) -> bool:
    """True for conversions between f16 and f32, which are single F16C instructions."""
    return name in FLOAT_CASTS and {operand, result} == {"f16", "f32"}


def llvm_divides_well(op: mlir.Operation, operand_type: str, options: ExpandMathPass) -> bool:
    """True if LLVM has good code for a division: by a constant; of i64, without vector products, only by 2^n."""
    if not options.f64:
        return True
    divisor = op.operands[1].owner
    if isinstance(divisor, mlir.Block) or divisor.operation.name != "arith.constant":
        return operand_type == "i64" and not options.processor.has_avx512
    number = getattr(divisor.operation.attributes["value"], "value", None)
    is_power_of_two = isinstance(number, int) and number & (number - 1) == 0
    return operand_type != "i64" or not options.processor.has_avx512 or is_power_of_two


def shape_and_element(value_type: mlir.Type, known: dict[mlir.Type, tuple[str, str]]) -> tuple[str, str]:
    """`vector<4x16xf32>` -> (`4x16x`, `f32`); a scalar has an empty shape."""
    if value_type not in known:
        text = str(value_type)
        if text.startswith("vector<") and "[" not in text:
            shape, _, scalar = text[7:-1].rpartition("x")
            known[value_type] = (f"{shape}x", scalar)
        else:
            known[value_type] = ("", text)
    return known[value_type]


def replace_by_call(op: mlir.Operation, symbol: str, operands: Sequence[mlir.Value]) -> None:
    """Replace `op` by a call of `symbol`."""
    with op.location, mlir.InsertionPoint(op):
        callee = mlir.FlatSymbolRefAttr.get(symbol)
        result = emit.value("func.call", operands, op.results[0].type, callee=callee)
    replace_op(op, result)


def requirements(function: Function, options: ExpandMathPass) -> list[Function]:
    """The functions that `function` calls, or that replace it in vectorised loops."""
    name = function.op.partition(".")[2]
    if function.result in SMALL and (name, "f32") in GUARDED:
        wide = Function(function.op, ("f32",) * len(function.operands), "f32", function.shape)
        return [wide, *requirements(wide, options)]
    return vector_variants(function, options)


def vector_variants(function: Function, options: ExpandMathPass) -> list[Function]:
    """The vector functions that LLVM calls in vectorised loops for a scalar function that branches: two widths."""
    name = function.op.partition(".")[2]
    none = function.shape or not options.processor.vector_bits
    if none or (name, function.result) not in GUARDED or from_libmvec(function, options):
        return []
    lanes = options.processor.lanes(WIDTHS[function.result])
    sizes = [lanes, lanes // 2] if function.result == "f32" else [lanes]
    return [replace(function, shape=f"{size}x") for size in sizes]


def from_libmvec(function: Function, options: ExpandMathPass) -> list[tuple[int, str]]:
    """The lanes and names of glibc's vector functions for a scalar function."""
    name = function.op.partition(".")[2]
    if not options.libmvec or function.shape or not libmvec.provides(name, function.result):
        return []
    return list(libmvec.variants(name, function.result, len(function.operands), options.processor.vector_bits))


def declarations(functions: list[Function], options: ExpandMathPass) -> str:
    """The declarations of glibc's vector functions that replace these."""
    lines = []
    for function in functions:
        for lanes, symbol in from_libmvec(function, options):
            vector = f"vector<{lanes}x{function.result}>"
            operands = ", ".join(vector for _ in function.operands)
            lines.append(f"func.func private @{symbol}({operands}) -> {vector}\n")
    return "".join(lines)


@lru_cache(maxsize=1024)
def function_text(function: Function, options: ExpandMathPass) -> str:
    """The text of the `func.func` that computes `function`."""
    b = Builder(function.shape, options.processor, f64=options.f64)
    arguments = [b.argument(kind) for kind in function.operands]
    name = function.op.partition(".")[2]
    if (name, function.operands[0]) in GUARDED:
        value, valid = GUARDED[name, function.operands[0]](b, *arguments)
        rest = None if options.f64 else ELSEWHERE.get((name, function.operands[0]))
        result = b.guarded(valid, value, function.op, arguments, rest)
    else:
        result = build(b, function, arguments)
    vectors = [(int(v.shape[:-1]), v.symbol) for v in vector_variants(function, options)]
    vectors += from_libmvec(function, options)
    if not vectors and (name, function.operands[0]) not in GUARDED:
        return b.function(function.symbol, result, attributes('"alwaysinline"'))
    letters = "v" * len(arguments)
    variants = ",".join(f"_ZGV_LLVM_N{lanes}{letters}_{function.symbol}({symbol})" for lanes, symbol in vectors)
    # LLVM's vectoriser replaces calls, so the scalar function must not be inlined before.
    vectorise = f', ["vector-function-abi-variant", "{variants}"]' if variants else ""
    return b.function(function.symbol, result, attributes(f'"noinline"{vectorise}'))


def attributes(listed: str) -> str:
    """The attributes for internal linkage and these LLVM attributes."""
    return f" attributes {{llvm.linkage = #llvm.linkage<internal>, llvm.passthrough = [{listed}]}}"


def build(b: Builder, function: Function, arguments: list[Value]) -> Value:
    """The result of `function` on `arguments`; small floats are computed in f32 and rounded once."""
    operands = [extend(b, x) if x.dtype in SMALL else x for x in arguments]
    wide = "f32" if function.result in SMALL else function.result
    key = function.op.partition(".")[2], operands[0].dtype
    if function.op == "arith.extf":
        result = operands[0] if wide == "f32" else b.cast("arith.extf", operands[0], wide)
    elif function.op == "arith.truncf":
        result = operands[0]
    elif key in GUARDED:
        result = b.call(Function(function.op, (wide,), wide, function.shape).symbol, *operands)
    elif (recipe := EXPANSIONS.get(key)) is not None:
        if function.result in SMALL and b.f64:
            recipe = UNROUNDED.get(recipe, recipe)
        if function.result == "f16":
            recipe = ROUGH.get(recipe, recipe)
        result = recipe(b, *operands)
    else:
        predicate = f"{{predicate = {function.predicate} : i64}}" if function.predicate >= 0 else ""
        result = b.apply(function.op, operands, wide, predicate)
    return truncate(b, result, function.result) if function.result in SMALL else result
