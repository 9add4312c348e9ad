"""Build operations at the current insertion point and location, by the cheapest way the bindings have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlirml.errors import InternalError
from mlirml.ir.bindings import block_ops, clone_with, mlir
from mlirml.ir.combiners import Combiner, Formula, evaluate
from mlirml.ir.location import is_unknown

Values = Sequence[mlir.Value]

FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7, "une": 13, "uno": 14}
INTEGER_PREDICATES = {
    "eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9,
}  # fmt: skip


def create(
    name: str,
    operands: Values = (),
    results: Sequence[mlir.Type] = (),
    attributes: Mapping[str, mlir.Attribute] | None = None,
    regions: int = 0,
) -> mlir.Operation:
    """Any operation; 2 us, where the op classes take 8 to 60."""
    return mlir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=dict(attributes or {}), regions=regions
    )


def value(name: str, operands: Values, result: mlir.Type, **attributes: mlir.Attribute) -> mlir.Value:
    """The one result of a new operation."""
    return create(name, operands, [result], attributes).results[0]


def same_type(name: str, *operands: mlir.Value, **attributes: mlir.Attribute) -> mlir.Value:
    """The result of an operation whose result has the type of its last operand, `arith.addf` or `arith.select`."""
    return create(name, operands, [operands[-1].type], attributes).results[0]


def compare(predicate: str, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """`arith.cmpf` or `arith.cmpi` of scalars or vectors, by the predicate's name."""
    floats = predicate in FLOAT_PREDICATES
    number = FLOAT_PREDICATES[predicate] if floats else INTEGER_PREDICATES[predicate]
    name = "arith.cmpf" if floats else "arith.cmpi"
    result = mlir.IntegerType.get_signless(1)
    if isinstance(a.type, mlir.VectorType):
        result = mlir.VectorType.get(a.type.shape, result)
    return value(name, [a, b], result, predicate=i64(number))


def i64(number: int) -> mlir.IntegerAttr:
    return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), number)


def i32(number: int) -> mlir.IntegerAttr:
    return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(32), number)


def constant(attribute: mlir.Attribute) -> mlir.Value:
    """`arith.constant` of a typed attribute."""
    return value("arith.constant", (), attribute.type, value=attribute)


def index(number: int) -> mlir.Value:
    """`arith.constant` of index type."""
    kind = mlir.IndexType.get()
    return value("arith.constant", (), kind, value=mlir.IntegerAttr.get(kind, number))


def zero(scalar_type: mlir.Type) -> mlir.Value:
    """`arith.constant 0` of an integer, index or float type."""
    return number(scalar_type, 0)


def number(scalar_type: mlir.Type, scalar: float) -> mlir.Value:
    """`arith.constant` of a scalar type."""
    return constant(number_attribute(scalar_type, scalar))


def number_attribute(scalar_type: mlir.Type, scalar: float) -> mlir.Attribute:
    """A number as the attribute of a scalar type."""
    if isinstance(scalar_type, mlir.FloatType):
        return mlir.FloatAttr.get(scalar_type, float(scalar))
    if not isinstance(scalar_type, (mlir.IntegerType, mlir.IndexType)):
        raise InternalError(f"a constant of type {scalar_type} is no scalar")  # the bindings end the process on it
    return mlir.IntegerAttr.get(scalar_type, int(scalar))


def identity(combiner: Combiner, scalar_type: mlir.Type) -> mlir.Attribute:
    """The identity of a combiner."""
    bits = mlir.IntegerType(scalar_type).width if isinstance(scalar_type, mlir.IntegerType) else 64
    return number_attribute(scalar_type, combiner.identity(bits))


def formula(described: Formula, values: Mapping[str, mlir.Value]) -> mlir.Value:
    """The value of a formula of others, all of one type."""
    scalar_type = next(iter(values.values())).type
    return evaluate(described, values, same_type, lambda constant_: number(scalar_type, constant_))


def block(op: mlir.Operation, types: Sequence[mlir.Type], region: int = 0) -> mlir.Block:
    """Append a block to a region of `op`, its arguments at `op`'s location."""
    return op.regions[region].blocks.append(*types, arg_locs=[op.location] * len(types))


def for_loop(
    lower: mlir.Value,
    upper: mlir.Value,
    step: mlir.Value,
    body: Callable[[mlir.Value, list[mlir.Value]], Values | None],
    inits: Values = (),
) -> list[mlir.Value]:
    """`scf.for`; `body(i, iter_args)` builds the loop body and returns the values to yield."""
    loop = create("scf.for", [lower, upper, step, *inits], [v.type for v in inits], regions=1)
    inner = block(loop, [mlir.IndexType.get(), *[v.type for v in inits]])
    with mlir.InsertionPoint(inner):
        arguments = list(inner.arguments)
        create("scf.yield", body(arguments[0], arguments[1:]) or ())
    return list(loop.results)


def parallel_loop(
    lower: mlir.Value, upper: mlir.Value, step: mlir.Value, body: Callable[[mlir.Value], None]
) -> mlir.Operation:
    """A one-dimensional `scf.parallel` without reductions."""
    attributes = {"operandSegmentSizes": mlir.DenseI32ArrayAttr.get([1, 1, 1, 0])}
    loop = create("scf.parallel", [lower, upper, step], (), attributes, regions=1)
    inner = block(loop, [mlir.IndexType.get()])
    with mlir.InsertionPoint(inner):
        body(inner.arguments[0])
        create("scf.reduce")
    return loop


def conditional(
    condition: mlir.Value, then: Callable[[], Values], otherwise: Callable[[], Values], results: Sequence[mlir.Type]
) -> list[mlir.Value]:
    """`scf.if` with results of these types; both callables build their region and return the values to yield."""
    op = create("scf.if", [condition], results, regions=2)
    for number, branch in enumerate((then, otherwise)):
        with mlir.InsertionPoint(block(op, [], number)):
            create("scf.yield", branch())
    return list(op.results)


def only_element(tensor: mlir.Value) -> mlir.Value:
    """The element of a tensor of rank 0."""
    return value("tensor.extract", [tensor], tensor.type.element_type)


def memref_dim(memref: mlir.Value, dim: int) -> mlir.Value:
    return value("memref.dim", [memref, index(dim)], mlir.IndexType.get())


def segments(*sizes: int) -> mlir.DenseI32ArrayAttr:
    return mlir.DenseI32ArrayAttr.get(list(sizes))


def generic(
    inputs: Values,
    inits: Values,
    maps: Sequence[mlir.AffineMap],
    iterators: Sequence[str],
    body: Callable[[list[mlir.Value]], Values],
) -> mlir.Operation:
    """`linalg.generic`; `body` takes the block arguments and returns the values to yield."""
    results = [v.type for v in inits if isinstance(v.type, mlir.RankedTensorType)]
    attributes = {
        "indexing_maps": mlir.ArrayAttr.get([mlir.AffineMapAttr.get(m) for m in maps]),
        "iterator_types": iterator_types(iterators),
        "operandSegmentSizes": segments(len(inputs), len(inits)),
    }
    op = create("linalg.generic", [*inputs, *inits], results, attributes, regions=1)
    inner = block(op, [mlir.ShapedType(v.type).element_type for v in (*inputs, *inits)])
    with mlir.InsertionPoint(inner):
        create("linalg.yield", body(list(inner.arguments)))
    return op


def contract(
    operands: Values,
    maps: Sequence[mlir.AffineMap],
    body: Callable[[list[mlir.Value]], mlir.Value],
    attributes: Mapping[str, mlir.Attribute] | None = None,
) -> mlir.Value:
    """`linalg.contract` of two tensors into a third; `body` takes the block arguments, returns the value to yield."""
    maps_attribute = mlir.ArrayAttr.get([mlir.AffineMapAttr.get(m) for m in maps])
    return named_contraction("linalg.contract", operands, body, {"indexing_maps": maps_attribute, **(attributes or {})})


def named_contraction(
    name: str,
    operands: Values,
    body: Callable[[list[mlir.Value]], mlir.Value],
    attributes: Mapping[str, mlir.Attribute] | None = None,
) -> mlir.Value:
    """`linalg.matmul` or another named contraction of two tensors into a third, with a body as `contract` has."""
    known = {"operandSegmentSizes": segments(2, 1), **(attributes or {})}
    op = create(name, operands, [operands[2].type], known, regions=1)
    inner = block(op, [mlir.ShapedType(v.type).element_type for v in operands])
    with mlir.InsertionPoint(inner):
        create("linalg.yield", [body(list(inner.arguments))])
    return op.results[0]


def iterator_types(iterators: Sequence[str]) -> mlir.ArrayAttr:
    """`["parallel", "reduction"]` as linalg's attribute."""
    return mlir.ArrayAttr.get([mlir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in iterators])


def slice_op(
    name: str,
    operands: Values,
    result: mlir.Type,
    offsets: Sequence[mlir.Value | int],
    sizes: Sequence[mlir.Value | int],
    strides: Sequence[mlir.Value | int] | None = None,
) -> mlir.Value:
    """An operation on a slice, as `tensor.extract_slice` or `memref.subview`; the step is 1 by default."""
    dynamic = mlir.ShapedType.get_dynamic_size()
    fields = {"offsets": offsets, "sizes": sizes, "strides": [1] * len(sizes) if strides is None else strides}
    attributes: dict[str, mlir.Attribute] = {}
    given: list[mlir.Value] = []
    counts = [1] * len(operands)
    for field, numbers in fields.items():
        values = [number for number in numbers if not isinstance(number, int)]
        static = [number if isinstance(number, int) else dynamic for number in numbers]
        attributes[f"static_{field}"] = mlir.DenseI64ArrayAttr.get(static)
        given += values
        counts.append(len(values))
    return value(name, [*operands, *given], result, **attributes, operandSegmentSizes=segments(*counts))


def extract_slice(
    source: mlir.Value,
    offsets: Sequence[mlir.Value | int],
    sizes: Sequence[int],
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> mlir.Value:
    """A slice of static sizes; `shape` is that of the result, which may lack dimensions of size 1."""
    kind = mlir.RankedTensorType.get(list(sizes if shape is None else shape), mlir.ShapedType(source.type).element_type)
    return slice_op("tensor.extract_slice", [source], kind, offsets, sizes, strides)


def insert_slice(
    source: mlir.Value,
    into: mlir.Value,
    offsets: Sequence[mlir.Value | int],
    sizes: Sequence[mlir.Value | int] | None = None,
    strides: Sequence[int] | None = None,
) -> mlir.Value:
    """A tensor with another one stored in it, whose shape is `sizes` unless dimensions of size 1 are dropped."""
    whole = dims_of(source) if sizes is None else sizes
    return slice_op("tensor.insert_slice", [source, into], into.type, offsets, whole, strides)


def empty(tensor_type: mlir.Type) -> mlir.Value:
    """`tensor.empty` of a static tensor type."""
    return value("tensor.empty", (), tensor_type)


def empty_like(tensor: mlir.Value) -> mlir.Value:
    """`tensor.empty` of the shape and element type of a tensor, whose sizes may be dynamic."""
    sizes = [size for size in dims_of(tensor) if not isinstance(size, int)]
    return value("tensor.empty", sizes, tensor.type)


def dims_of(tensor: mlir.Value) -> list[mlir.Value | int]:
    """The sizes of a tensor, the dynamic ones as values."""
    kind = tensor.type

    def size(d: int) -> mlir.Value | int:
        if not kind.is_dynamic_dim(d):
            return int(kind.shape[d])
        return value("tensor.dim", [tensor, index(d)], mlir.IndexType.get())

    return [size(d) for d in range(kind.rank)]


def times(a: Any, b: Any) -> Any:
    """The product of two sizes, each a number or a value of type `index`."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    first, second = (index(x) if isinstance(x, int) else x for x in (a, b))
    return same_type("arith.muli", first, second)


def fill(scalar: mlir.Value, out: mlir.Value) -> mlir.Operation:
    """`linalg.fill` of a tensor or a memref."""
    results = [out.type] if isinstance(out.type, mlir.RankedTensorType) else []
    op = create("linalg.fill", [scalar, out], results, {"operandSegmentSizes": segments(1, 1)}, regions=1)
    inner = block(op, [scalar.type, mlir.ShapedType(out.type).element_type])
    with mlir.InsertionPoint(inner):
        create("linalg.yield", [inner.arguments[0]])
    return op


def body_op(op: mlir.Operation, environment: dict[mlir.Value, Any]) -> None:
    """Clone a scalar operation at the insertion point; `environment` maps its operands and is extended by its results.

    The clone has the location of the operation, or the ambient one where that is unknown (bodies of named operations).
    """
    if op.regions:
        clone_with(op, environment)
        return
    copy = op.clone().operation
    operands = copy.operands
    for position, operand in enumerate(operands):
        if operand in environment:
            operands[position] = environment[operand]
    if is_unknown(op.location):
        copy.location = mlir.Location.current
    for old, new in zip(op.results, copy.results):
        environment[old] = new


def body_again(body: mlir.Block, arguments: Values) -> list[mlir.Value]:
    """Clone a structured operation's body for these arguments at the insertion point; returns the yielded values."""
    environment = dict(zip(body.arguments, arguments, strict=True))
    *inner, final = block_ops(body)
    for op in inner:
        body_op(op, environment)
    return [environment.get(yielded, yielded) for yielded in final.operands]
