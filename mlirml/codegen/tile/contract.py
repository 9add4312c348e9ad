"""Products on tensor cores as tile kernels: a block computes one tile of the result.

    sums = 0
    for step in the tiles of the depth:
        sums = vector.contract(the tile of a, the tile of b, sums)
    the results, computed from the sums

Producers of the factors (views, casts, elementwise operations) and consumers of the product are operations on tiles.
Blocks are numbered so that those that run at a time share rows and columns of the factors in the L2 cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.row_tiles import LEAST
from mlirml.analysis.traits import RESHAPES
from mlirml.codegen.gpu.contract.product import Product, has_zero_init
from mlirml.codegen.gpu.index import Base, Digit, Form, flat, form
from mlirml.codegen.gpu.kernel import Host
from mlirml.codegen.gpu.reads import read_indices
from mlirml.codegen.tile.tiles import TileKernel, Tiles
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import TILE
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, seen_through
from mlirml.passes import NoMatch

Store = tuple[mlir.Value, mlir.Value]
_ALIGNMENT = 16
"""What divides the address of each row of a factor."""
_GROUP = 16
"""The number of rows of tiles that blocks with adjacent numbers share."""
_WIDENINGS = {"arith.extf": (mlir.F16Type, mlir.BF16Type), "arith.extsi": (mlir.IntegerType,)}


@dataclass(frozen=True)
class Tile:
    """A block's tile, the bytes of its depth, and the warps that compute it."""

    rows: int
    columns: int
    depth_bytes: int
    warps: int


TILES = (Tile(128, 256, 128, 8), Tile(128, 128, 128, 4), Tile(64, 128, 128, 4), Tile(64, 64, 128, 4))
"""The tiles to choose from, largest first.

As measured on an H100 for f16: 128 x 256 at 4096 and 8192 as fast as cuBLAS, if there is one for each processor.
"""


def factor_type(host: Host, product: Product) -> mlir.Type:
    """The type in which the factors are multiplied; raises NoMatch if tensor cores do not multiply them."""
    if not host.device.tile:
        raise NoMatch("no assembler of tiles")
    operands = [product.op.operands[side.operand].type.element_type for side in product.sides]
    ops = [[op.name for op in side.ops] for side in product.sides]
    total = product.combiner.types[0]
    if operands[0] != operands[1] or ops[0] != ops[1]:
        raise NoMatch("the factors have two types")
    if isinstance(total, mlir.F32Type) and isinstance(operands[0], mlir.F32Type) and ops[0] == [] and host.choices.tf32:
        return mlir.FloatTF32Type.get()
    if len(ops[0]) == 1 and ops[0][0] in _WIDENINGS and isinstance(operands[0], _WIDENINGS[ops[0][0]]):
        if isinstance(total, mlir.F32Type):
            return operands[0]
        if isinstance(total, mlir.IntegerType) and total.width == 32 and operands[0].width == 8:
            return operands[0]
    raise NoMatch("no factors of tensor cores")


def choose_tile(host: Host, product: Product) -> Tile:
    """The largest tile of which there is one for each processor, or the one of which there are the most."""
    rows, columns = product.size(product.rows), product.size(product.columns)

    def count(tile: Tile) -> int:
        return -(-rows // tile.rows) * -(-columns // tile.columns) * product.size(product.batch)

    enough = [tile for tile in TILES if count(tile) * 8 >= host.device.processors * 7]
    fits = [tile for tile in enough if rows > tile.rows // 2 and columns > tile.columns // 2]
    return (fits or [TILES[-1]])[0]


def lower_tile_contract(host: Host, product: Product, stores: Sequence[Store]) -> None:
    """Build the kernel of a contraction; raises NoMatch if it cannot be one of tiles."""
    type_ = factor_type(host, product)
    tile = choose_tile(host, product)
    depth = depth_of(host, product, type_, tile.depth_bytes)
    with host.kernel("contract", (1,), TileKernel) as kernel:
        assert isinstance(kernel, TileKernel)
        kernel.op.attributes[TILE] = mlir.DictAttr.get({"warps": emit.i64(tile.warps)})
        TileContract(kernel, product, (tile.rows, tile.columns, depth), type_).build(stores)


def depth_of(host: Host, product: Product, type_: mlir.Type, nbytes: int) -> int:
    """The depth of a tile, of which rows have some bytes; raises NoMatch if the product is none for tensor cores."""
    sizes = [product.size(loops) for loops in (product.rows, product.columns, product.depth)]
    if min(sizes) < LEAST:
        raise NoMatch("too small for tensor cores")
    depth = nbytes // (4 if isinstance(type_, mlir.FloatTF32Type) else element_bytes(type_))
    plain = all(is_read(host, product.op.operands[side.operand]) for side in product.sides)
    if sizes[2] % depth and not plain:
        raise NoMatch("the factors beyond the end are not zero")
    return depth


def is_read(host: Host, tensor: mlir.Value) -> bool:
    """True if a factor is read from memory as it is, so that zeros are loaded beyond its end."""
    return tensor in host.buffers or seen_through(tensor, RESHAPES) in host.buffers


def is_aligned(type_: mlir.MemRefType) -> bool:
    """True if all rows of an array begin at an address that the copy engine takes."""
    strides, offset = type_.get_strides_and_offset()
    size = element_bytes(type_.element_type)
    return strides[-1] == 1 and all(number * size % _ALIGNMENT == 0 for number in (offset, *strides[:-1]))


class TileContract:
    """The kernel: the axes of its block, and the tiles of the factors; `number` is that of its column of tiles."""

    def __init__(self, kernel: TileKernel, product: Product, tile: tuple[int, int, int], type_: mlir.Type) -> None:
        self.kernel = kernel
        self.product = product
        self.tiles = Tiles(kernel)
        self.type = type_
        self.sizes = [product.size(loops) for loops in (product.rows, product.columns, product.depth)]
        self.tile = tile
        down, across, self.steps = (-(-size // extent) for size, extent in zip(self.sizes, tile, strict=True))
        batch = product.size(product.batch)
        kernel.grid = (down * across * batch, 1, 1)
        block = kernel.at(kernel.block_number())
        number, self.batch = block, Form()
        if batch > 1:
            number = self.arith("remui", block, down * across)
            self.batch = form(Digit(Base(self.arith("divui", block, down * across), batch)))
        row, column = self.raster(number, down, across)
        self.number = form(Digit(Base(column, across)))
        self.row = kernel.axis("row", self.sizes[0], tile[0], row)
        self.column = kernel.axis("column", self.sizes[1], tile[1], column)

    def arith(self, name: str, left: mlir.Value, right: mlir.Value | int) -> mlir.Value:
        """An operation on two indices."""
        operand = self.kernel.constant(right) if isinstance(right, int) else right
        return emit.same_type(f"arith.{name}", left, operand)

    def raster(self, number: mlir.Value, down: int, across: int) -> tuple[mlir.Value, mlir.Value]:
        """The tile of a block: groups of rows of tiles, and in a group one column of tiles after the other."""
        if across == 1:
            return number, self.kernel.constant(0)
        if down <= _GROUP:
            return self.arith("remui", number, down), self.arith("divui", number, down)
        first = self.arith("muli", self.arith("divui", number, _GROUP * across), _GROUP)
        high = self.arith("minui", self.arith("subi", self.kernel.constant(down), first), _GROUP)
        inside = self.arith("remui", number, _GROUP * across)
        return self.arith("addi", first, self.arith("remui", inside, high)), self.arith("divui", inside, high)

    def build(self, stores: Sequence[Store]) -> None:
        """Build the kernel."""
        store_results(self.tiles, self.product, self.compute(), stores)

    def compute(self) -> tuple[Form, ...]:
        """Compute the tile of the result, and register it at the point that is returned."""
        kernel, product = self.kernel, self.product
        total = product.combiner.types[0]
        axes = tuple(kernel.axes[index.terms[0][0].base] for index in (self.row, self.column))
        zero = kernel.filled(axes, total, 0)

        def step(k: Form, sums: list[mlir.Value]) -> list[mlir.Value]:
            depth = kernel.axis("depth", self.sizes[2], self.tile[2], kernel.at(k))
            point = product.point(self.batch, self.row, self.column, depth)
            factors = [factor(self.tiles, product, side, point, self.type) for side in (0, 1)]
            return [contract(kernel, factors, ("row", "column", "depth"), sums[0])]

        (sums,) = kernel.loop((0, self.steps, 1), step, [zero])
        kernel.order[sums] = axes
        point = product.result_indices(self.batch, self.row, self.column)
        give_result(self.tiles, product, point, sums)
        return point


def contract(kernel: TileKernel, factors: Sequence[mlir.Value], names: Sequence[str], sums: mlir.Value) -> mlir.Value:
    """The products of two tiles over an axis, added to sums; `names` are the axes of rows, columns and depth."""
    loops = {name: f"d{number}" for number, name in enumerate(names)}
    maps = [", ".join(loops[axis.name] for axis in kernel.order[value]) for value in factors]
    texts = [f"affine_map<(d0, d1, d2) -> ({text})>" for text in (*maps, "d0, d1")]
    parallel, reduction = (f"#vector.iterator_type<{kind}>" for kind in ("parallel", "reduction"))
    attributes = {
        "indexing_maps": mlir.Attribute.parse(f"[{', '.join(texts)}]"),
        "iterator_types": mlir.Attribute.parse(f"[{parallel}, {parallel}, {reduction}]"),
        "kind": mlir.Attribute.parse("#vector.kind<add>"),
    }
    return emit.value("vector.contract", [*factors, sums], sums.type, **attributes)


def factor(tiles: Tiles, product: Product, side: int, point: Sequence[Form], type_: mlir.Type) -> mlir.Value:
    """The tile of a factor, in the type of the multiplication."""
    value = product.raw(tiles, side, point)
    made = defining_op(value)
    if made is not None and made.name == "vector.transfer_read" and not is_aligned(made.operands[0].type):
        raise NoMatch("rows are not aligned")
    if len(tiles.kernel.order.get(value, ())) != 2:
        raise NoMatch("a factor does not have both of its axes")
    return tiles.kernel.as_type(value, type_)


def finish(tiles: Tiles, product: Product, point: Sequence[Form], sums: mlir.Value, stores: Sequence[Store]) -> None:
    """Store the results, computed from the sums at a point of the product's result."""
    give_result(tiles, product, point, sums)
    store_results(tiles, product, tuple(point), stores)


def give_result(tiles: Tiles, product: Product, point: Sequence[Form], sums: mlir.Value) -> None:
    """Register the tile of a product's result: its sums, and the init."""
    if not has_zero_init(product):
        before = tiles.get(product.op.operands[2], tuple(point))
        name = "arith.addi" if isinstance(product.combiner.types[0], mlir.IntegerType) else "arith.addf"
        sums = tiles.kernel.same_type(name, sums, before)
    tiles.give(product.result, tuple(point), sums)


def store_results(tiles: Tiles, product: Product, point: tuple[Form, ...], stores: Sequence[Store]) -> None:
    """Store the results, computed from the product's at a point."""
    for tensor, out in stores:
        indices = read_indices(tensor, product.result, point)
        if indices is None:
            raise NoMatch("a result reads other elements of the product")
        tiles.kernel.store(out, [(flat(indices, tensor.type.shape), tiles.get(tensor, indices))])
