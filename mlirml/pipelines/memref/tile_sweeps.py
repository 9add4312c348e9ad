"""Tile time loops: a loop over stencils is tiled in time and rows, so that rows stay in cache for several time steps.

Before:
    scf.for %t = %c0 to %n step %c1 {
      linalg.generic {...} ins(rows i - 1, i, i + 1 of %a) outs(row i of %b)
      linalg.generic {...} ins(rows i - 1, i, i + 1 of %b) outs(row i of %a)
    }
After:
    scf.for %start = %c0 to %n step %c16 {
      scf.for %phase = %c0 to %c2 step %c1 {
        scf.parallel (%chunk) = ... {
          scf.for %row = ... {                                // a band of rows, in skewed coordinates
            scf.for %t = %c0 to %steps step %c1 {
              %p = %row - 2 * %t
              func.call @main.sweep0.1(max(..., %p), min(..., %p + 4), ...)   // rows of the first stencil
              func.call @main.sweep0.2(max(..., %p - 1), min(..., %p + 3), ...)
            }
          }
        }
      }
    }

Each stencil lags the previous one by as many rows as it reads ahead, so that every element is computed from the
same values as before. In the first phase the chunks shrink at both ends by the rows that later time steps need of the
neighbours; the second phase computes the remaining rows around each end. The chunks of a phase are independent ("split
tiling", Krishnamoorthy et al., "Effective Automatic Parallelization of Stencil Computations", PLDI 2007).
"""

from __future__ import annotations

from mlirml.ir.bindings import main_function, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP
from mlirml.pipelines.memref.lower_loops import as_generic
from mlirml.pipelines.memref.time_tiles.build import build_tiles
from mlirml.pipelines.memref.time_tiles.match import match_time_loop
from mlirml.pipelines.memref.time_tiles.plan import plan_tiles
from mlirml.targets.machine import Processor


@register(when=PROGRAM_LOOP, optional=True)
class TileSweepsPass(Pass):
    """Tile time loops for the second-level cache, if they access more than it holds, or `least_bytes` if given."""

    processor: Processor = Processor()
    least_bytes: int = -1

    def run(self, module: mlir.Operation) -> None:
        cache = self.processor.l2_bytes
        loops = named_operations(main_function(module), ("scf.for",))
        if not loops:
            return
        for copy in named_operations(module, ("memref.copy",)):
            as_generic(copy)
        main = main_function(module)
        for number, loop in enumerate(loops):
            try:
                time = match_time_loop(loop)
                plan = plan_tiles(time, cache, cache if self.least_bytes < 0 else self.least_bytes)
            except NoMatch:
                continue
            build_tiles(time, plan, main, number)
