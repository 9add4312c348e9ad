"""The elementwise consumer of a contraction, read as the epilogue of a kernel.

A consumer is a `linalg.generic` on memrefs after the contraction that reads each of its results once, at one point of
its loops. It can be computed tile by tile if the contraction may be reordered with all operations in between, and if
the consumer does not write an operand of the contraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.memory import Effects, after, buffer_of, conflict, effects, is_known
from mlirml.analysis.structured import is_parallel
from mlirml.codegen.cpu.contract.kernel import Epilogue
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

_NEAR = 32
"""A consumer further away than this number of operations is not found."""


@dataclass(frozen=True)
class Consumer:
    """A consumer as the kernel sees it: `operands` are its inputs without the product, then its outputs.

    `dims` has, for each of them, the loop of the product that indexes each of its dims (None for none). `keep`: the
    product itself is needed too.
    """

    op: mlir.Operation
    epilogue: Epilogue
    operands: tuple[mlir.Value, ...]
    dims: tuple[tuple[int | None, ...], ...]
    keep: bool


def match_consumer(
    op: mlir.Operation,
    taken: Sequence[mlir.Operation] = (),
    look: Callable[[mlir.Operation], Effects] = effects,
) -> Consumer:
    """The consumer of the contraction `op` on memrefs, which is not in `taken`; raises `NoMatch`.

    `look` returns the memory effects of an operation.
    """
    a, b, product = op.operands
    consumer = _next_reader(op, look)
    if consumer in taken:
        raise NoMatch("the consumer is computed by another kernel")
    if consumer.name != "linalg.generic" or len(consumer.results):
        raise NoMatch("what reads the product is no elementwise operation")
    if not is_parallel(consumer):
        raise NoMatch("what reads the product reduces")
    block = consumer.regions[0].blocks[0]
    *body, final = block_ops(block)
    operands, arguments, num_outputs = list(consumer.operands), list(block.arguments), len(final.operands)
    if any(not isinstance(value.type, mlir.MemRefType) for value in operands):
        raise NoMatch("an operand is no memref")
    count = len(operands) - num_outputs
    maps = [attribute.value for attribute in consumer.attributes["indexing_maps"]]
    if any(any(True for _ in argument.uses) for argument in arguments[count:]):
        raise NoMatch("it reads what it writes")
    positions = [number for number in range(count) if operands[number] == product]
    if len(positions) != 1 or not maps[positions[0]].is_permutation:
        raise NoMatch("it reads the product at several indices")
    position = positions[0]
    loops = [mlir.AffineDimExpr(expression).position for expression in maps[position].results]
    others = [number for number in range(len(operands)) if number != position]
    if not all(maps[number].is_permutation for number in others[-num_outputs:]):
        raise NoMatch("it does not write every element once")
    _check_aliases(operands, maps, position, count, (a, b))
    dims = tuple(projected_dims(maps[number], loops) for number in others)
    written = operands[count:]
    keep = not any(value == product for value in written) and _is_read_later(product, op, consumer)
    epilogue = read_body(body, list(final.operands), arguments, position, count)
    return Consumer(consumer, epilogue, tuple(operands[number] for number in others), dims, keep)


def _next_reader(op: mlir.Operation, look: Callable[[mlir.Operation], Effects]) -> mlir.Operation:
    """The first operation after `op` that accesses the product, if `op` may be reordered with those in between."""
    product, own = op.operands[2], look(op)
    for following in after(op, _NEAR):
        other = look(following)
        if not other.unknown and other.touches(product):
            return following
        if conflict(own, other):
            break
    raise NoMatch("nothing near reads the product")


def _check_aliases(
    operands: Sequence[mlir.Value],
    maps: Sequence[mlir.AffineMap],
    position: int,
    count: int,
    inputs: tuple[mlir.Value, mlir.Value],
) -> None:
    """Refuse operands that are written tile by tile and read by other tiles."""
    roots = [buffer_of(value) for value in operands]
    if not all(map(is_known, [*roots, *map(buffer_of, inputs)])):
        raise NoMatch("it is not known which buffers overlap")
    for out in range(count, len(operands)):
        if roots[out] in [buffer_of(value) for value in inputs]:
            raise NoMatch("it writes over an operand of the contraction")
        for other in range(len(operands)):
            same = operands[other] == operands[out] and maps[other] == maps[out] and other < count
            if other != out and roots[other] == roots[out] and not same:
                raise NoMatch("it reads other elements of what it writes")
    if any(roots[position] == roots[other] for other in range(count) if other != position):
        raise NoMatch("it reads the product at several indices")


def projected_dims(affine_map: mlir.AffineMap, loops: Sequence[int]) -> tuple[int | None, ...]:
    """The loop that each result of a map is, None for a constant 0; raises `NoMatch` for other maps."""
    found: list[int | None] = []
    for expression in affine_map.results:
        if isinstance(expression, mlir.AffineDimExpr):
            found.append(loops.index(expression.position))
        elif isinstance(expression, mlir.AffineConstantExpr) and expression.value == 0:
            found.append(None)
        else:
            raise NoMatch(f"the indexing map {affine_map} is no projection")
    return tuple(found)


def _is_read_later(product: mlir.Value, op: mlir.Operation, consumer: mlir.Operation) -> bool:
    """True if any operation but `op`, `consumer`, and fills before them may read the product."""
    owner = defining_op(product)
    if owner is None or owner.name != "memref.alloc":
        return True
    for use in product.uses:
        user = use.owner.operation
        if user in (op, consumer) or user.name == "memref.dealloc":
            continue
        if user.name == "linalg.fill" and user.block == op.block and user.is_before_in_block(op):
            continue
        return True
    return False


def read_body(
    body: Sequence[mlir.Operation],
    yields: Sequence[mlir.Value],
    arguments: Sequence[mlir.Value],
    position: int,
    count: int,
) -> Epilogue:
    """The body of an elementwise operation on vectors; argument number `position` is the product. Raises `NoMatch`."""
    names: dict[mlir.Value, str] = {arguments[position]: "%product"}
    inputs = [argument for number, argument in enumerate(arguments[:count]) if number != position]
    names |= {argument: f"%in{number}" for number, argument in enumerate(inputs)}
    lines: list[str] = []

    def name_of(value: mlir.Value) -> str:
        if value not in names:
            owner = defining_op(value)
            if owner is None or owner.name != "arith.constant":
                raise NoMatch("the consumer uses a value from outside")
            add(owner)
        return names[value]

    def add(op: mlir.Operation) -> None:
        if not op.name.startswith(("arith.", "math.")) or op.regions or len(op.results) != 1:
            raise NoMatch(f"the consumer has a {op.name}")
        operands = [name_of(value) for value in op.operands]
        types = ", ".join(_vector(value.type) for value in op.operands)
        result = f"%body{len(lines)}"
        shown = ", ".join(f"{name} = {attribute}" for name, attribute in _attributes(op))
        lines.append(
            f'{result} = "{op.name}"({", ".join(operands)}) {{{shown}}} : ({types}) -> {_vector(op.results[0].type)}'
        )
        names[op.results[0]] = result

    for op in body:
        if op.results and op.results[0] not in names:
            add(op)
    results = [name_of(value) for value in yields]
    elements = [str(argument.type) for argument in inputs]
    outputs = [str(argument.type) for argument in arguments[count:]]
    return Epilogue(tuple(elements), tuple(outputs), tuple(lines), tuple(results))


def _attributes(op: mlir.Operation) -> list[tuple[str, str]]:
    if op.name == "arith.constant":
        value = op.attributes["value"]
        text = str(value).partition(" : ")[0]
        return [("value", f"dense<{text}> : {_vector(op.results[0].type)}")]
    return [(item, str(op.attributes[item])) for item in op.attributes]


def _vector(type_: mlir.Type) -> str:
    if not isinstance(type_, mlir.FloatType | mlir.IntegerType):
        raise NoMatch(f"the consumer computes with {type_}")
    return f"vector<LANESx{type_}>"
