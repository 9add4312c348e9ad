"""Loads the libraries of MLIR and LLVM in a thread, while Python traces the function and imports the compiler.

To load and link them takes a tenth of a small compilation, in which Python has nothing to do: `ctypes` lets go of the
interpreter, which an import of the bindings would hold all the time. LLVM then makes code of a small loop, which brings
its tables and its own code into memory: the first kernel takes a sixth less of its time.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from functools import cache

from mlirml.errors import MlirmlError
from mlirml.targets.cpu import vector_bits
from mlirml.targets.crew import thread_count

_BINDINGS = ("_mlir_libs", "libTorchMLIRAggregateCAPI.so")


@cache
def begin() -> None:
    """Start, once, where there is a processor for it. What cannot be loaded is reported by the import that needs it."""
    if thread_count() > 1:
        threading.Thread(target=_load, name="mlirml-preload", daemon=True).start()


def _load() -> None:
    spec = importlib.util.find_spec("torch_mlir")  # does not import it
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        try:
            ctypes.CDLL(os.path.join(folder, *_BINDINGS))
        except OSError:
            return
    from mlirml.targets.llvm_library import Context, LLVMError, host_cpu, host_features, machine_for

    try:
        with machine_for(host_cpu(), host_features(), 3) as machine, Context() as context:
            context.parse(_LOOP % vector_bits(), machine).emit()
    except (MlirmlError, LLVMError, OSError):
        return


_LOOP = """
define void @loop(ptr %%a, i64 %%n, ptr %%b) nounwind "prefer-vector-width"="%d" {
  br label %%head
head:
  %%k = phi i64 [ 0, %%0 ], [ %%next, %%body ]
  %%sum = phi <16 x float> [ zeroinitializer, %%0 ], [ %%more, %%body ]
  %%go = icmp slt i64 %%k, %%n
  br i1 %%go, label %%body, label %%exit
body:
  %%at = mul nsw i64 %%k, 16
  %%from = getelementptr float, ptr %%a, i64 %%at
  %%vector = load <16 x float>, ptr %%from, align 4
  %%to = getelementptr float, ptr %%b, i64 %%k
  %%scalar = load float, ptr %%to, align 4
  %%lane = insertelement <16 x float> poison, float %%scalar, i32 0
  %%lanes = shufflevector <16 x float> %%lane, <16 x float> poison, <16 x i32> zeroinitializer
  %%more = call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %%vector, <16 x float> %%lanes, <16 x float> %%sum)
  %%next = add nsw i64 %%k, 1
  br label %%head
exit:
  store <16 x float> %%sum, ptr %%b, align 4
  ret void
}
declare <16 x float> @llvm.fmuladd.v16f32(<16 x float>, <16 x float>, <16 x float>)
"""
