"""Pass sizes: arrays of dynamic size become pointers, and views of them with the sizes that the call passes.

Before:
    func.func @main(%x: memref<?x4xf32>, %sizes: memref<1xi64>, %y: memref<?x4xf32>)
        attributes {mlirml.dims = array<i64: 0, 0>} {
      %0 = memref.load %sizes[%c0] : memref<1xi64>
      %n = arith.index_cast %0 : i64 to index
      ...
    }
After:
    func.func @main(%x: memref<1xi8>, %sizes: memref<1xi64>, %y: memref<1xi8>) {
      %0 = memref.load %sizes[%c0] : memref<1xi64>
      %n = arith.index_cast %0 : i64 to index
      %x1 = memref.view %x[%c0][%n] : memref<1xi8> to memref<?x4xf32>
      %y1 = memref.view %y[%c0][%n] : memref<1xi8> to memref<?x4xf32>
      ...
    }

`mlirml.dims` has the number of the size for each dynamic dimension of the arguments, and then of the results.
"""  # fmt: skip

from __future__ import annotations

from mlirml.dialects.mlirml import DIMS
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, main_function, mlir, set_function_type
from mlirml.passes import Pass, register, run_upstream


@register
class PassSizesPass(Pass):
    """Replace the arguments of dynamic size by views of pointers."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        if DIMS not in main.attributes:
            return
        numbers = iter(list(main.attributes[DIMS]))
        del main.attributes[DIMS]
        body = main.regions[0].blocks[0]
        table = sizes_argument(main)
        with main.location, mlir.InsertionPoint.at_block_begin(body):
            zero = emit.index(0)
            sizes: dict[int, mlir.Value] = {}
            for argument in list(body.arguments):
                kind = argument.type
                if isinstance(kind, mlir.MemRefType) and not kind.has_static_shape:
                    count = sum(kind.is_dynamic_dim(d) for d in range(kind.rank))
                    given = [load_size(table, next(numbers), sizes) for _ in range(count)]
                    view_argument(argument, zero, given)
        for load in [use.owner.operation for use in table.uses]:
            replace_load(load, sizes)
        set_function_type(main)
        run_upstream(module, "canonicalize,cse")


def sizes_argument(main: mlir.Operation) -> mlir.Value:
    """The argument with the sizes: the last of the inputs."""
    inputs = len(main.attributes["mlirml.inputs"])
    return main.regions[0].blocks[0].arguments[inputs - 1]


def load_size(table: mlir.Value, number: int, known: dict[int, mlir.Value]) -> mlir.Value:
    """Size `number` of the table, loaded once."""
    if number not in known:
        loaded = emit.value("memref.load", [table, emit.index(number)], table.type.element_type)
        known[number] = emit.value("arith.index_cast", [loaded], mlir.IndexType.get())
    return known[number]


def replace_load(load: mlir.Operation, sizes: dict[int, mlir.Value]) -> None:
    """Replace a size that the program loads by the value at the start of the function, so that equal ones are one."""
    index = defining_op(load.operands[1]) if load.name == "memref.load" else None
    if index is None or index.name != "arith.constant":
        return
    known = sizes.get(int(mlir.IntegerAttr(index.attributes["value"]).value))
    for cast in [use.owner.operation for use in load.results[0].uses]:
        if known is not None and cast.name == "arith.index_cast" and cast.results[0] != known:
            cast.results[0].replace_all_uses_with(known)


def view_argument(argument: mlir.Value, zero: mlir.Value, sizes: list[mlir.Value]) -> None:
    """Replace an argument by a view, of these sizes, of bytes at the same address."""
    kind = argument.type
    bytes_ = mlir.MemRefType.get([1], mlir.IntegerType.get_signless(8))
    argument.set_type(bytes_)
    view = emit.create("memref.view", [argument, zero, *sizes], [kind])
    argument.replace_all_uses_except(view.results[0], view)
