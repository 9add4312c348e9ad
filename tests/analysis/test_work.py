"""The work of operations: flops by hand, and each array once."""

from __future__ import annotations

import pytest

from mlirml.analysis.work import Count, Work, work_of
from mlirml.ir.bindings import main_function, mlir, operations, parse

_MAPS = """
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#v = affine_map<(i) -> (i)>
"""


def work(body: str, name: str, arguments: str) -> tuple[Work, list[int], list[int], list[mlir.Module]]:
    """The work of the first operation of a name in a function, its bytes read and written, and the module."""
    module = parse(f"{_MAPS}\nfunc.func @main({arguments}) {{\n{body}\nreturn\n}}")
    op = next(op for op in operations(main_function(module.operation)) if op.name == name)
    found = work_of(op)
    return found, list(found.reads.values()), list(found.writes.values()), [module]


@pytest.mark.parametrize(("dtype", "width"), [("f32", 4), ("f64", 8), ("bf16", 2), ("i32", 4)])
def test_a_matmul_has_2mnk_flops_and_reads_each_matrix_once(dtype: str, width: int) -> None:
    zero = "0" if dtype == "i32" else "0.0"
    body = f"""
    %z = arith.constant {zero} : {dtype}
    %e = tensor.empty() : tensor<4x6x{dtype}>
    %f = linalg.fill ins(%z : {dtype}) outs(%e : tensor<4x6x{dtype}>) -> tensor<4x6x{dtype}>
    %r = linalg.matmul ins(%a, %b : tensor<4x5x{dtype}>, tensor<5x6x{dtype}>) outs(%f : tensor<4x6x{dtype}>)
      -> tensor<4x6x{dtype}>"""
    found, reads, writes, _ = work(body, "linalg.matmul", f"%a: tensor<4x5x{dtype}>, %b: tensor<5x6x{dtype}>")
    assert found.count == Count(2 * 4 * 5 * 6, 0) and found.dtype == dtype
    assert sorted(reads) == [20 * width, 30 * width] and writes == [24 * width]


def test_a_matmul_that_accumulates_reads_its_init() -> None:
    body = """%r = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>)
      -> tensor<4x4xf32>"""
    _, reads, writes, _ = work(body, "linalg.matmul", "%a: tensor<4x4xf32>, %c: tensor<4x4xf32>")
    assert sorted(reads) == [64, 64] and writes == [64]  # one factor, the init


def test_functions_are_counted_apart_from_flops() -> None:
    body = """
    %e = tensor.empty() : tensor<8x3xf32>
    %r = linalg.generic {indexing_maps = [#ij, #ji], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<3x8xf32>) outs(%e : tensor<8x3xf32>) {
    ^bb0(%x: f32, %o: f32):
      %1 = math.exp %x : f32
      %2 = math.fma %1, %x, %x : f32
      %3 = arith.divf %2, %x : f32
      linalg.yield %3 : f32
    } -> tensor<8x3xf32>"""
    found, reads, writes, _ = work(body, "linalg.generic", "%a: tensor<3x8xf32>")
    assert found.count == Count(3 * 24, 24) and reads == [96] and writes == [96]


def test_slices_of_one_array_are_read_once() -> None:
    body = """
    %l = tensor.extract_slice %a[0] [7] [1] : tensor<9xf32> to tensor<7xf32>
    %m = tensor.extract_slice %a[2] [7] [1] : tensor<9xf32> to tensor<7xf32>
    %e = tensor.empty() : tensor<7xf32>
    %r = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
        ins(%l, %m : tensor<7xf32>, tensor<7xf32>) outs(%e : tensor<7xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %1 = arith.addf %x, %y : f32
      linalg.yield %1 : f32
    } -> tensor<7xf32>"""
    found, reads, writes, _ = work(body, "linalg.generic", "%a: tensor<9xf32>")
    assert found.count == Count(7, 0) and reads == [36] and writes == [28]


def test_a_gather_reads_as_many_elements_as_it_takes() -> None:
    body = """
    %e = tensor.empty() : tensor<5xf32>
    %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%k : tensor<5xi64>) outs(%e : tensor<5xf32>) {
    ^bb0(%x: i64, %o: f32):
      %p = arith.index_cast %x : i64 to index
      %1 = tensor.extract %a[%p] : tensor<1000xf32>
      linalg.yield %1 : f32
    } -> tensor<5xf32>"""
    found, reads, writes, _ = work(body, "linalg.generic", "%a: tensor<1000xf32>, %k: tensor<5xi64>")
    assert found.count == Count() and sorted(reads) == [20, 40] and writes == [20]


_NEST = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c10 = arith.constant 10 : index
    scf.for %i = %c0 to %c10 step %c1 {{
      scf.for %j = %c0 to {upper} step %c1 {{
        %x = memref.load %a[%j] : memref<100xf64>
        %y = arith.mulf %x, %x : f64
        %z = arith.addf %y, %x : f64
        memref.store %z, %b[%j] : memref<100xf64>
      }}
    }}"""
_ARRAYS = "%a: memref<100xf64>, %b: memref<100xf64>, %n: index"


def test_a_loop_nest_has_its_trip_counts() -> None:
    found, reads, writes, _ = work(_NEST.format(upper="%c10"), "scf.for", _ARRAYS)
    assert found.count == Count(200, 0) and reads == [800] and writes == [800] and found.dtype == "f64"
    inner = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    scf.for %i = %c0 to %c7 step %c1 {
      %x = memref.load %a[%i] : memref<100xf64>
      memref.store %x, %b[%i] : memref<100xf64>
    }"""
    found, reads, writes, _ = work(inner, "scf.for", _ARRAYS)
    assert found.count == Count() and reads == [56] and writes == [56]


def test_flops_of_a_loop_of_unknown_length_are_not_known() -> None:
    found, reads, writes, _ = work(_NEST.format(upper="%n"), "scf.for", _ARRAYS)
    assert found.count == Count(None, 0) and reads == [800] and writes == [800]


def test_a_copy_moves_its_bytes_twice() -> None:
    body = "memref.copy %a, %b : memref<100xf64> to memref<100xf64>"
    found, reads, writes, _ = work(body, "memref.copy", _ARRAYS)
    assert found.count == Count() and reads == [800] and writes == [800]


def test_factorizations_have_the_usual_flops() -> None:
    body = '"mlirml.cholesky"(%a, %b) {kind = "f64"} : (memref<2x9x9xf64>, memref<2x9x9xf64>) -> ()'
    found, reads, writes, _ = work(body, "mlirml.cholesky", "%a: memref<2x9x9xf64>, %b: memref<2x9x9xf64>")
    assert found.count == Count(2 * 9**3 // 3, 0) and reads == [1296] and writes == [1296]
    body = '"mlirml.eigh"(%a, %b) {kind = "f64", mode = 0 : i64} : (memref<1x9x9xf64>, memref<1x10xf64>) -> ()'
    assert work(body, "mlirml.eigh", "%a: memref<1x9x9xf64>, %b: memref<1x10xf64>")[0].count == Count(None, 0)
