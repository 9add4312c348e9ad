"""Lower library calls: operations that libraries compute become calls of the native runtime, which calls the library.

Before:
    "mlirml.solve"(%a, %b, %x) {kind = "f64"} : (memref<2x40x40xf64>, memref<2x40x3xf64>, memref<2x40x3xf64>) -> ()
After:
    %p = memref.extract_aligned_pointer_as_index %a : memref<2x40x40xf64> -> index
    %in, %right, %out = arith.index_cast ... : index to i64
    call @mlirml_solve(%in, %right, %out, %c2, %c40, %c3, %c0, %kind) : (i64, i64, i64, i64, i64, i64, i64, i64) -> ()

The integers are the number of matrices, their rows, the columns of the last input, and the attribute `mode`. The dtype
is encoded as NumPy's letter with the size in bytes above it, as `runtime/native/lapack.h` decodes it.
"""

from __future__ import annotations

from mlirml.errors import PreconditionError
from mlirml.ir.bindings import mlir
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import source_location
from mlirml.ir.text.dtypes import from_short_name
from mlirml.passes import Pass, register
from mlirml.passes.presence import ANY_REQUEST
from mlirml.pipelines.memref.runtime_calls import Number, lower_to_calls


@register(when=ANY_REQUEST)
class LowerLibraryCallsPass(Pass):
    """Lower operations that libraries compute to calls of the native runtime."""

    def run(self, module: mlir.Operation) -> None:
        lower_to_calls(module, LIBRARY_CALLS, numbers_of)


def numbers_of(op: mlir.Operation, sizes: list[list[Number]]) -> list[Number]:
    """The sizes, the mode and the code of the dtype, which are the last arguments of the runtime function.

    Raises PreconditionError where the types of the operands are not those that the function reads and writes. Of
    dynamic sizes capture has computed those of the result.
    """
    call, kind = LIBRARY_CALLS[op.name], mlir.StringAttr(op.attributes["kind"]).value
    try:
        mode = mlir.IntegerAttr(op.attributes["mode"]).value if call.has_mode else 0
        element = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}[kind]
        if any(str(x.type.element_type) != element for x in op.operands):
            raise ValueError(f"the arrays do not have the dtype {kind}")
        shapes = [tuple(x.type.shape) for x in op.operands]
        is_complex = kind.startswith("c")
        pairs = [is_complex] * call.inputs + [call.complex_result(is_complex, mode)]
        if any(is_pair and shape[-1:] != (2,) for shape, is_pair in zip(shapes, pairs)):
            raise ValueError("an array has no last dimension of real and imaginary parts")
        *inputs, result = (shape[:-1] if is_pair else shape for shape, is_pair in zip(shapes, pairs))
        if call.rank and any(len(shape) != call.rank for shape in inputs):
            raise ValueError(f"an array has another number of dimensions than {call.rank}")
        expected = call.result(inputs, mode) if all(x.type.has_static_shape for x in op.operands) else result
        if result != expected:
            raise ValueError(f"the result has shape {list(result)}, not {list(expected)}")
    except (KeyError, ValueError) as error:
        found = f"the attribute {error} is missing or of no known value" if isinstance(error, KeyError) else str(error)
        raise PreconditionError(f"`{op.name}`: {found}", location=source_location(op.location)) from None
    dtype = from_short_name(kind)
    given = [shape[:-1] if is_pair else shape for shape, is_pair in zip(sizes[: len(inputs)], pairs)]
    return [*call.sizes(given), mode, ord(dtype.kind) | dtype.itemsize << 8]
