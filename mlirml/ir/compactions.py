"""Operations that bring the elements under masks together: names, numbers of inputs, and the chunks of their counts.

    %c = "mlirml.mask_counts"(%mask, %init0) {kind = "i64"} : (tensor<2x40xi1>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %p = "mlirml.positions"(%mask, %c, %init1) {kind = "i64"}
        : (tensor<2x40xi1>, tensor<2x2xi64>, tensor<2x40xi64>) -> tensor<2x40xi64>
    %y = "mlirml.compress"(%mask, %c, %x, %init2) {kind = "f32"}
        : (tensor<2x40xi1>, tensor<2x2xi64>, tensor<2x40x3xf32>, tensor<2x40x3xf32>) -> tensor<2x40x3xf32>

`mlirml.mask_counts` counts the true elements of each row before each chunk of `CHUNK`, and, last, all of them. The
other two store the positions of the true elements, or the slices of `%x` at these, side by side at the beginning of
each row; what follows them there is undefined. The number of true elements is the length of what is defined.
"""

from __future__ import annotations

CHUNK = 1 << 14
"""Elements of a mask that are counted together; `kCompactionChunk` in `runtime/native/compact.h`."""
COMPACTIONS = {"mlirml.mask_counts": 1, "mlirml.positions": 2, "mlirml.compress": 3}
"""The operations, and the number of their inputs; the last operand is the init of the result."""


def counts_length(size: int) -> int:
    """The number of counts of a row of `size` elements."""
    return -(-size // CHUNK) + 1
