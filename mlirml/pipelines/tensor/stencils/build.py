"""Build the planned computations: for each box one `linalg.generic`, whose results are inserted into the whole."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.pipelines.tensor.stencils.graph import Box, Constant, Point, StencilGraph
from mlirml.pipelines.tensor.stencils.plan import Group, Plan, start


def build_groups(plan: Plan) -> None:
    """Replace the roots of a plan that are to be recomputed."""
    replaced: dict[mlir.Value, mlir.Value] = {}
    for group in plan.groups:
        last = group.roots[-1].owner.operation
        with last.location, mlir.InsertionPoint(last):
            results = build_group(plan, group, replaced)
        for old, new in zip(group.roots, results, strict=True):
            old.replace_all_uses_with(new)
            replaced[old] = new
    for op in reversed(plan.graph.ops):
        if len(op.results) == 1 and isinstance(op.results[0].type, mlir.RankedTensorType):
            if not op.name.startswith(("linalg.", "tensor.")) or any(True for _ in op.results[0].uses):
                continue
            op.erase()


def build_group(plan: Plan, group: Group, replaced: Mapping[mlir.Value, mlir.Value]) -> list[mlir.Value]:
    """Compute roots of one shape; `replaced` are the replacements of earlier roots."""
    wholes = [emit.empty(root.type) for root in group.roots]
    for box in group.boxes:
        parts = build_box(plan, group.roots, box, replaced)
        wholes = [
            part if whole.type == part.type else emit.insert_slice(part, whole, [low for low, _ in box])
            for part, whole in zip(parts, wholes)
        ]
    return wholes


def build_box(
    plan: Plan, roots: Sequence[mlir.Value], box: Box, replaced: Mapping[mlir.Value, mlir.Value]
) -> list[mlir.Value]:
    """A box of some roots."""
    kept, rank = plan.roots.difference(roots), len(box)
    shape = [high - low for low, high in box]
    read = list(plan.terms(roots, box).read)
    inputs = [slice_of(replaced.get(value, value), access, box) for value, access in read]
    maps = [
        mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(loop) for loop, _ in access if loop is not None])
        for _, access in read
    ]
    inits = [emit.empty(mlir.RankedTensorType.get(shape, root.type.element_type)) for root in roots]
    identity = mlir.AffineMap.get_identity(rank)

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        elements = Elements(plan.graph, box, kept, dict(zip(read, arguments)))
        return [elements.of((root, start(box)), root.type.element_type) for root in roots]

    op = emit.generic(inputs, inits, [*maps, *[identity] * len(roots)], ["parallel"] * rank, body)
    return list(op.results)


class Elements:
    """Computes elements of tensors within a body; each once."""

    def __init__(
        self, graph: StencilGraph, box: Box, kept: Container[mlir.Value], known: dict[Point, mlir.Value]
    ) -> None:
        self.graph, self.box, self.kept, self.known = graph, box, kept, known

    def of(self, point: Point, element_type: mlir.Type) -> mlir.Value:
        """An element, computed after the elements that it depends on."""
        todo = [point]
        while todo:
            found = self.graph.reduce(todo[-1], self.box, self.kept)
            missing = []
            if not isinstance(found, Constant) and found not in self.known:
                sources = list(self.graph.reads(found))
                missing = [source for source in sources if not self._is_known(source)]
                if not missing:
                    self._compute(found, sources)
            if missing:
                todo += missing
            else:
                todo.pop()
        return self._known(point, element_type)

    def _is_known(self, point: Point) -> bool:
        found = self.graph.reduce(point, self.box, self.kept)
        return isinstance(found, Constant) or found in self.known

    def _known(self, point: Point, element_type: mlir.Type) -> mlir.Value:
        found = self.graph.reduce(point, self.box, self.kept)
        if not isinstance(found, Constant):
            return self.known[found]
        if found.scalar is None:  # an uninitialized element
            return emit.zero(element_type)
        return found.scalar if isinstance(found.scalar, mlir.Value) else emit.constant(found.scalar)

    def _compute(self, point: Point, sources: Sequence[Point]) -> None:
        op = point[0].owner.operation
        block = op.regions[0].blocks[0]
        values = [self._known(source, source[0].type.element_type) for source in sources]
        known = dict(zip(block.arguments, values))
        *inner, final = block_ops(block)
        for each in inner:
            emit.body_op(each, known)
        (result,) = final.operands
        self.known[point] = known.get(result, result)


def slice_of(value: mlir.Value, access: Sequence[tuple[int | None, int]], box: Box) -> mlir.Value:
    """The slice of a tensor that a box reads; dimensions with a constant index are dropped."""
    offsets = [shift if loop is None else box[loop][0] + shift for loop, shift in access]
    sizes = [1 if loop is None else box[loop][1] - box[loop][0] for loop, _ in access]
    shape = [size for size, (loop, _) in zip(sizes, access) if loop is not None]
    return value if shape == list(value.type.shape) else emit.extract_slice(value, offsets, sizes, shape)
