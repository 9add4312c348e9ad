"""Stream stores: big results that are not read later are stored with non-temporal stores.

Before:
    scf.parallel (%i) = (%c0) to (%c4096) step (%c1) {
      scf.for %j = %c0 to %c1024 step %c1 {
        ...
        %k = arith.addi %row, %j : index                          // %row = 1024 * %i
        memref.store %v, %y[%k] : memref<4194304xf32>
      }
    }
After:
    scf.parallel (%i) = (%c0) to (%c4096) step (%c1) {
      %row_of_y = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
      scf.for %j = %c0 to %c1024 step %c1 {
        ...
        memref.store %v, %row_of_y[%j] : memref<1024xf32>
      }
      ...                                                         // up to 15 elements, to the start of a line
      scf.for %j = %head to %end step %c16 {
        %line = vector.load %row_of_y[%j] : memref<1024xf32>, vector<16xf32>
        vector.store %line, %y[%k] {alignment = 64 : i64, nontemporal = true} : memref<4194304xf32>, vector<16xf32>
      }
      ...                                                         // up to 15 elements after the last whole line
    } {mlirml.streams}

A store into a line that is not in cache reads the line first: a third to a half of all traffic is wasted. Rows are
staged in a buffer in the first-level cache, so that loops keep the form of LLVM's vectoriser, later loops over the row
read them there, and whole lines are stored consecutively. Where lines start is computed at run time, as arrays of users
are not aligned. Rows of more than 16 KB are tiled.

Only arguments of @main of at least `least_bytes` are stored so, if each element is written once and read only by the
loops over its row. On a processor with 32 MB of third-level cache results of 32 MB, beside operands of the same size,
take 0.6 to 0.8 of the time of plain stores, and those of 16 MB up to 1.4 times it.
"""

from __future__ import annotations

from mlirml.analysis.cost import bytes_of
from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.codegen.cpu.loop_schedule import ALWAYS, NEVER, STREAM
from mlirml.core.no_match import matched
from mlirml.ir.bindings import main_function, mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.pipelines.memref.nontemporal.build import build_streams
from mlirml.pipelines.memref.nontemporal.match import Stream, match_stream
from mlirml.targets.machine import Processor


@register(optional=True)
class StreamStoresPass(Pass):
    """Store results of at least `least_bytes`, and four times the L2 cache, with non-temporal stores.

    Smaller results stay in the third-level cache, from which the next call stores into them and the next reader reads.
    """

    processor: Processor = Processor()
    least_bytes: int = 24 << 20

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        if len(main.regions[0].blocks) > 1:
            return
        least = max(self.least_bytes, 4 * self.processor.l2_bytes)
        groups: list[list[Stream]] = []
        scheduled = any(STREAM in op.attributes for op in named_operations(main, COUNTED_LOOPS))
        buffers = [value for value in main.regions[0].blocks[0].arguments if isinstance(value.type, mlir.MemRefType)]
        for _, stream in matched(match_stream, buffers, 0 if scheduled else least):
            if scheduled and not is_wanted(stream, least):
                continue
            together = [group for group in groups if group[0].loops == stream.loops]
            if together:
                together[0].append(stream)
            else:
                groups.append([stream])
        for group in groups:
            build_streams(group)


def is_wanted(stream: Stream, least: int) -> bool:
    """True if the schedule of the loops asks for a stream, or leaves it to the size of the result."""
    marks = {mlir.IntegerAttr(loop.attributes[STREAM]).value for loop in stream.loops if STREAM in loop.attributes}
    if marks & {NEVER, ALWAYS}:
        return ALWAYS in marks
    return bytes_of(stream.array) >= least
