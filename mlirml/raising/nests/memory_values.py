"""Build a function on tensors from one on memrefs: the contents of memory are SSA values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, seen_through, set_function_type
from mlirml.raising.nests.rows import indices_in_source

LOADS = ("memref.load", "affine.load")
STORES = ("memref.store", "affine.store")
VIEWS = ("memref.subview", "memref.cast")
_ALLOCATIONS = ("memref.alloc", "memref.alloca")

Contents = dict[mlir.Value, mlir.Value]
"""The current contents of each array: a tensor for each memref."""
Bounds = tuple[mlir.Value, mlir.Value, mlir.Value]


def root_of(value: mlir.Value) -> mlir.Value:
    """The array that a memref is a view of."""
    return seen_through(value, VIEWS)


def stored_operands(op: mlir.Operation) -> Iterator[mlir.Value]:
    """The memrefs that an operation stores into, not counting its regions."""
    if op.name in STORES or op.name == "memref.copy":
        yield op.operands[1]
    elif op.name.startswith("linalg.") and op.operands and "operandSegmentSizes" in op.attributes:
        inputs, *_ = mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        yield from (v for v in list(op.operands)[inputs:] if isinstance(v.type, mlir.MemRefType))


def tensor_of(type_: mlir.MemRefType) -> mlir.Type:
    """The tensor type for a memref type."""
    return mlir.RankedTensorType.get(type_.shape, type_.element_type)


def to_values(function: mlir.Operation) -> None:
    """Rewrite a function that `match_function` accepts."""
    block = function.regions[0].blocks[0]
    arguments = [a for a in block.arguments if isinstance(a.type, mlir.MemRefType)]
    stored = _stored_in(function)
    with function.location:
        contents = {}
        for argument in arguments:
            type_ = argument.type
            with mlir.InsertionPoint.at_block_begin(block):
                cast = emit.create("builtin.unrealized_conversion_cast", [argument], [tensor_of(type_)])
            contents[argument] = cast.results[0]
        entered = dict(contents)
        builder = _Builder()
        builder.block(block, contents)
        final = block_ops(block)[-1]
        own = [contents[root_of(v)] if v in contents else v for v in final.operands]
        written = [a for a in arguments if a in stored]
        with final.location, mlir.InsertionPoint(final):
            emit.create("func.return", [*own, *(contents[a] for a in written)])
        final.erase()
        builder.forget()
        for argument in arguments:
            value = entered[argument]
            argument.set_type(value.type)
            value.replace_all_uses_with(argument)
            value.owner.erase()
    if written:
        pairs = [n for k, a in enumerate(written) for n in (len(own) + k, a.arg_number)]
        function.attributes["mlirml.writebacks"] = mlir.DenseI64ArrayAttr.get(pairs)
    set_function_type(function)


def _stored_in(op: mlir.Operation) -> list[mlir.Value]:
    """The outer arrays that are stored into in the regions of an operation, in the order of the stores."""
    found: dict[mlir.Value, None] = {}
    for inner in list(operations(op))[1:]:
        for value in stored_operands(inner):
            root = root_of(value)
            if not _is_inside(root, op) or op.name == "func.func":
                found[root] = None
    return list(found)


def _is_inside(value: mlir.Value, op: mlir.Operation) -> bool:
    owner = defining_op(value)
    around = owner.parent if owner is not None else value.owner.owner
    while around is not None and around.operation != op:
        around = around.operation.parent
    return around is not None


class _Builder:
    """Rewrites blocks in order; views and casts are erased at the end."""

    def __init__(self) -> None:
        self._left: list[mlir.Operation] = []

    def forget(self) -> None:
        """Erase the operations that are no longer used."""
        for op in reversed(self._left):
            op.erase()

    def block(self, block: mlir.Block, contents: Contents) -> None:
        """Rewrite a block except its terminator; `contents` has the arrays at its start, and then at its end."""
        for op in block_ops(block)[:-1]:
            with op.location, mlir.InsertionPoint(op):
                self._op(op, contents)

    def _op(self, op: mlir.Operation, contents: Contents) -> None:
        if op.name in LOADS:
            indices = _indices(op, list(op.operands)[1:])
            root, indices = _indices_in_root(op.operands[0], indices)
            self._replace(op, [emit.value("tensor.extract", [contents[root], *indices], op.results[0].type)])
        elif op.name in STORES:
            indices = _indices(op, list(op.operands)[2:])
            root, indices = _indices_in_root(op.operands[1], indices)
            new = emit.value("tensor.insert", [op.operands[0], contents[root], *indices], contents[root].type)
            contents[root] = new
            op.erase()
        elif op.name in _ALLOCATIONS:
            sizes, *_ = mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
            contents[op.results[0]] = emit.value(
                "tensor.empty", list(op.operands)[:sizes], tensor_of(op.results[0].type)
            )
            self._left.append(op)
        elif op.name in VIEWS:
            self._left.append(op)
        elif op.name == "memref.dealloc":
            op.erase()
        elif op.name == "memref.copy":
            self._put(op.operands[1], self._get(op.operands[0], contents), contents)
            op.erase()
        elif op.name == "memref.dim":
            operands = [self._get(op.operands[0], contents), op.operands[1]]
            self._replace(op, [emit.value("tensor.dim", operands, op.results[0].type)])
        elif op.name.startswith("linalg."):
            self._structured(op, contents)
        elif op.regions:
            self._regions(op, contents)

    def _replace(self, op: mlir.Operation, values: Sequence[mlir.Value]) -> None:
        for result, value in zip(op.results, values):
            result.replace_all_uses_with(value)
        op.erase()

    def _get(self, memory: mlir.Value, contents: Contents) -> mlir.Value:
        """The contents of a memref, as a tensor."""
        op = defining_op(memory)
        if op is None or op.name not in VIEWS:
            return contents[memory]
        source = self._get(op.operands[0], contents)
        if op.name == "memref.cast":
            return source
        attributes = {name: op.attributes[name] for name in _SLICE}
        operands = [source, *list(op.operands)[1:]]
        return emit.create("tensor.extract_slice", operands, [tensor_of(memory.type)], attributes).results[0]

    def _put(self, memory: mlir.Value, value: mlir.Value, contents: Contents) -> None:
        """Set the contents of a memref to a tensor."""
        op = defining_op(memory)
        if op is None or op.name not in VIEWS:
            if value.type != contents[memory].type:
                value = emit.value("tensor.cast", [value], contents[memory].type)
            contents[memory] = value
            return
        if op.name == "memref.subview":
            source = self._get(op.operands[0], contents)
            attributes = {name: op.attributes[name] for name in _SLICE}
            sizes = list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
            attributes["operandSegmentSizes"] = emit.segments(1, *sizes)
            operands = [value, source, *list(op.operands)[1:]]
            value = emit.create("tensor.insert_slice", operands, [source.type], attributes).results[0]
        self._put(op.operands[0], value, contents)

    def _structured(self, op: mlir.Operation, contents: Contents) -> None:
        """Build a structured operation on tensors for one on memrefs."""
        stored = list(stored_operands(op))
        if not stored:
            return
        operands = [self._get(v, contents) if isinstance(v.type, mlir.MemRefType) else v for v in op.operands]
        inits = operands[len(operands) - len(stored) :]
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = emit.create(op.name, operands, [v.type for v in inits], attributes, regions=len(op.regions))
        for old_region, region in zip(op.regions, new.regions):
            for block in list(old_region.blocks):
                block.append_to(region)
        for memory, result in zip(stored, new.results, strict=True):
            self._put(memory, result, contents)
        op.erase()

    # Regions carry the arrays that are stored into.

    def _regions(self, op: mlir.Operation, contents: Contents) -> None:
        stored = [root for root in _stored_in(op) if root in contents]
        build = {
            "affine.for": self._affine_for,
            "scf.for": self._scf_for,
            "affine.parallel": self._parallel,
            "scf.parallel": self._parallel,
            "scf.while": self._while,
        }.get(op.name, self._if)
        results = build(op, stored, contents)
        own = len(op.results)
        self._replace(op, results[:own])
        contents |= dict(zip(stored, results[own:], strict=True))

    def _loop(
        self,
        op: mlir.Operation,
        bounds: Sequence[mlir.Value],
        stored: Sequence[mlir.Value],
        contents: Contents,
        inits: Sequence[mlir.Value] = (),
    ) -> list[mlir.Value]:
        """An `scf.for` with the body of `op`, which has one induction variable."""
        carried = [*inits, *(contents[root] for root in stored)]
        types = [v.type for v in carried]
        attributes = {name: op.attributes[name] for name in op.attributes if name.startswith("mlirml.")}
        if op.name.endswith(".parallel"):
            attributes["mlirml.parallel"] = mlir.UnitAttr.get()
        loop = emit.create("scf.for", [*bounds, *carried], types, attributes, regions=1)
        block = op.regions[0].blocks[0]
        block.append_to(loop.regions[0])
        self._body(block, stored, contents, "scf.yield")
        return list(loop.results)

    def _body(self, block: mlir.Block, stored: Sequence[mlir.Value], contents: Contents, terminator: str) -> None:
        """Rewrite the body of a loop, which gets the stored arrays as arguments and yields them."""
        inside = dict(contents)
        for root in stored:
            inside[root] = block.add_argument(contents[root].type, block.owner.location)
        self.block(block, inside)
        final = block_ops(block)[-1]
        with final.location, mlir.InsertionPoint(final):
            emit.create(terminator, [*final.operands, *(inside[root] for root in stored)])
        final.erase()

    def _affine_for(self, op: mlir.Operation, stored: Sequence[mlir.Value], contents: Contents) -> list[mlir.Value]:
        lowers, uppers, inits = list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)
        lower = _bound("affine.max", op.attributes["lowerBoundMap"], operands[:lowers])
        upper = _bound("affine.min", op.attributes["upperBoundMap"], operands[lowers : lowers + uppers])
        step = emit.index(mlir.IntegerAttr(op.attributes["step"]).value)
        return self._loop(op, [lower, upper, step], stored, contents, operands[len(operands) - inits :])

    def _scf_for(self, op: mlir.Operation, stored: Sequence[mlir.Value], contents: Contents) -> list[mlir.Value]:
        operands = list(op.operands)
        return self._loop(op, operands[:3], stored, contents, operands[3:])

    def _parallel(self, op: mlir.Operation, stored: Sequence[mlir.Value], contents: Contents) -> list[mlir.Value]:
        """Nested loops, marked as parallel."""
        bounds = (_parallel_bounds if op.name == "scf.parallel" else _affine_parallel_bounds)(op)
        return self._nest(op, bounds, stored, contents)

    def _nest(
        self, op: mlir.Operation, bounds: Sequence[Bounds], stored: Sequence[mlir.Value], contents: Contents
    ) -> list[mlir.Value]:
        if len(bounds) == 1:
            return self._loop(op, bounds[0], stored, contents)
        carried = [contents[root] for root in stored]
        attributes = {"mlirml.parallel": mlir.UnitAttr.get()}
        loop = emit.create("scf.for", [*bounds[0], *carried], [v.type for v in carried], attributes, regions=1)
        inner = emit.block(loop, [mlir.IndexType.get(), *(v.type for v in carried)])
        body = op.regions[0].blocks[0]
        body.arguments[0].replace_all_uses_with(inner.arguments[0])
        body.erase_argument(0)
        with mlir.InsertionPoint(inner):
            inside = contents | dict(zip(stored, list(inner.arguments)[1:], strict=True))
            emit.create("scf.yield", self._nest(op, bounds[1:], stored, inside))
        return list(loop.results)

    def _while(self, op: mlir.Operation, stored: Sequence[mlir.Value], contents: Contents) -> list[mlir.Value]:
        carried = [contents[root] for root in stored]
        types = [v.type for v in carried]
        new = emit.create("scf.while", [*op.operands, *carried], [*(r.type for r in op.results), *types], regions=2)
        for region, target, terminator in zip(op.regions, new.regions, ("scf.condition", "scf.yield")):
            block = region.blocks[0]
            block.append_to(target)
            self._body(block, stored, contents, terminator)
        return list(new.results)

    def _if(self, op: mlir.Operation, stored: Sequence[mlir.Value], contents: Contents) -> list[mlir.Value]:
        condition = op.operands[0] if op.name == "scf.if" else _holds(op)
        types = [*(r.type for r in op.results), *(contents[root].type for root in stored)]
        new = emit.create("scf.if", [condition], types, regions=2)
        for region, target in zip(op.regions, new.regions):
            if region.blocks:
                inside = dict(contents)
                block = region.blocks[0]
                block.append_to(target)
                self.block(block, inside)
                final = block_ops(block)[-1]
                with final.location, mlir.InsertionPoint(final):
                    emit.create("scf.yield", [*final.operands, *(inside[root] for root in stored)])
                final.erase()
            elif types:
                with mlir.InsertionPoint(emit.block(new, [], 1)):
                    emit.create("scf.yield", [contents[root] for root in stored])
        return list(new.results)


_SLICE = ("static_offsets", "static_sizes", "static_strides", "operandSegmentSizes")


def _indices(op: mlir.Operation, indices: Sequence[mlir.Value]) -> list[mlir.Value]:
    """The indices of a load or a store."""
    if op.name.startswith("memref."):
        return list(indices)
    return _applied(mlir.AffineMapAttr(op.attributes["map"]).value, indices)


def _applied(affine: mlir.AffineMap, operands: Sequence[mlir.Value]) -> list[mlir.Value]:
    """The results of an affine map."""
    return [_result(affine, e, operands) for e in affine.results]


def _result(affine: mlir.AffineMap, e: mlir.AffineExpr, operands: Sequence[mlir.Value]) -> mlir.Value:
    if isinstance(e, mlir.AffineConstantExpr):
        return emit.index(e.value)
    if isinstance(e, mlir.AffineDimExpr):
        return operands[e.position]
    one = mlir.AffineMap.get(affine.n_dims, affine.n_symbols, [e])
    return emit.value("affine.apply", operands, mlir.IndexType.get(), map=mlir.AffineMapAttr.get(one))


def _bound(name: str, attribute: mlir.Attribute, operands: Sequence[mlir.Value]) -> mlir.Value:
    """The greatest, or the least, result of a map, as a loop bound."""
    affine = mlir.AffineMapAttr(attribute).value
    if len(affine.results) == 1:
        return _applied(affine, operands)[0]
    return emit.value(name, operands, mlir.IndexType.get(), map=mlir.AffineMapAttr.get(affine))


def _indices_in_root(memory: mlir.Value, indices: list[mlir.Value]) -> tuple[mlir.Value, list[mlir.Value]]:
    """The array of a view, and the indices in it of an element of the view."""
    op = defining_op(memory)
    while op is not None and op.name in VIEWS:
        if op.name == "memref.subview":
            indices = indices_in_source(op, op.results[0].type, indices)
        memory = op.operands[0]
        op = defining_op(memory)
    return memory, indices


def _parallel_bounds(op: mlir.Operation) -> list[Bounds]:
    count = len(op.regions[0].blocks[0].arguments)
    lowers, uppers, steps = (list(op.operands)[n * count : (n + 1) * count] for n in range(3))
    return list(zip(lowers, uppers, steps, strict=True))


def _affine_parallel_bounds(op: mlir.Operation) -> list[Bounds]:
    lowers, uppers = (mlir.AffineMapAttr(op.attributes[name]).value for name in ("lowerBoundsMap", "upperBoundsMap"))
    operands = list(op.operands)
    split = lowers.n_inputs
    bounds = []
    low, high = list(lowers.results), list(uppers.results)
    steps = [mlir.IntegerAttr(step).value for step in op.attributes["steps"]]
    low_groups, high_groups = (
        list(mlir.DenseIntElementsAttr(op.attributes[name])) for name in ("lowerBoundsGroups", "upperBoundsGroups")
    )
    for step, lows, highs in zip(steps, low_groups, high_groups, strict=True):
        first = mlir.AffineMap.get(lowers.n_dims, lowers.n_symbols, [low.pop(0) for _ in range(lows)])
        last = mlir.AffineMap.get(uppers.n_dims, uppers.n_symbols, [high.pop(0) for _ in range(highs)])
        bounds.append(
            (
                _bound("affine.max", mlir.AffineMapAttr.get(first), operands[:split]),
                _bound("affine.min", mlir.AffineMapAttr.get(last), operands[split:]),
                emit.index(step),
            )
        )
    return bounds


def _holds(op: mlir.Operation) -> mlir.Value:
    """The condition of an `affine.if`."""
    found: mlir.Value | None = None
    # The bindings lack the set of the attribute; its text is `affine_set<(d0)[s0] : (d0 - 1 >= 0, s0 == 0)>`.
    inputs, constraints = str(op.attributes["condition"])[len("affine_set<") : -len(")>")].split(" : (")
    for constraint in constraints.split(", "):
        expression, relation = constraint.rsplit(" ", 2)[:2]
        affine = mlir.AffineMapAttr.parse(f"affine_map<{inputs} -> ({expression})>").value
        number = _applied(affine, list(op.operands))[0]
        holds = emit.compare("eq" if relation == "==" else "sge", number, emit.index(0))
        found = holds if found is None else emit.same_type("arith.andi", found, holds)
    assert found is not None, "a set has a constraint, 0 == 0 where it is everything"
    return found
