"""Memrefs, loops, vectors and parallel bodies on the reference target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlirml.errors import LaunchError, TargetError
from mlirml.interpreter.interpreter import interpret
from mlirml.ir import bindings as ir

BF16 = np.dtype(ml_dtypes.bfloat16)
CONTEXT = ir.make_context()


def run(signature: str, body: str, *arguments: np.ndarray, outside: str = "") -> list[np.ndarray]:
    """Run `func.func @main` with a signature and a body; `outside` is the rest of the module."""
    text = f"{outside}\nfunc.func @main{signature} {{\n{body}\n}}"
    return interpret(ir.parse(text, CONTEXT), list(arguments))


def counted(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


INDICES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in range(9))


def test_matmul_loops_change_the_argument_in_place() -> None:
    a, b, c = counted(4, 5), counted(5, 3), np.ones((4, 3), np.float32)
    run(
        "(%a: memref<4x5xf32>, %b: memref<5x3xf32>, %c: memref<4x3xf32>)",
        f"""{INDICES}
        scf.for %i = %c0 to %c4 step %c1 {{
          scf.for %j = %c0 to %c3 step %c1 {{
            %start = memref.load %c[%i, %j] : memref<4x3xf32>
            %sum = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %start) -> f32 {{
              %x = memref.load %a[%i, %k] : memref<4x5xf32>
              %y = memref.load %b[%k, %j] : memref<5x3xf32>
              %p = math.fma %x, %y, %s : f32
              scf.yield %p : f32
            }}
            memref.store %sum, %c[%i, %j] : memref<4x3xf32>
          }}
        }}
        return""",
        a, b, c,
    )  # fmt: skip
    np.testing.assert_array_equal(c, 1 + a @ b)


def test_while_counts_halvings() -> None:
    (count,) = run(
        "(%n: i64) -> i64",
        """%zero = arith.constant 0 : i64
        %one = arith.constant 1 : i64
        %0:2 = scf.while (%x = %n, %c = %zero) : (i64, i64) -> (i64, i64) {
          %more = arith.cmpi sgt, %x, %one : i64
          scf.condition(%more) %x, %c : i64, i64
        } do {
        ^bb0(%x: i64, %c: i64):
          %half = arith.shrsi %x, %one : i64
          %next = arith.addi %c, %one : i64
          scf.yield %half, %next : i64, i64
        }
        return %0#1 : i64""",
        np.int64(1000),
    )
    assert count == 9


def test_if_and_index_switch_choose_regions() -> None:
    body = """%a = arith.constant 10.0 : f32
      %b = arith.constant 20.0 : f32
      %0 = scf.if %c -> f32 {
        scf.yield %a : f32
      } else {
        scf.yield %b : f32
      }
      %1 = scf.index_switch %i -> f32
      case 2 {
        scf.yield %a : f32
      }
      default {
        scf.yield %0 : f32
      }
      return %0, %1 : f32, f32"""
    signature = "(%c: i1, %i: index) -> (f32, f32)"
    assert run(signature, body, np.True_, np.int64(5)) == [10, 10]
    assert run(signature, body, np.False_, np.int64(5)) == [20, 20]
    assert run(signature, body, np.False_, np.int64(2)) == [20, 10]


def test_parallel_loop_reduces() -> None:
    (total,) = run(
        "(%x: memref<4x5xf32>) -> f32",
        f"""{INDICES}
        %zero = arith.constant 0.0 : f32
        %0 = scf.parallel (%i, %j) = (%c0, %c1) to (%c4, %c5) step (%c1, %c2) init (%zero) -> f32 {{
          %a = memref.load %x[%i, %j] : memref<4x5xf32>
          scf.reduce(%a : f32) {{
          ^bb0(%l: f32, %r: f32):
            %s = arith.addf %l, %r : f32
            scf.reduce.return %s : f32
          }}
        }}
        return %0 : f32""",
        x := counted(4, 5),
    )
    assert total == x[:, 1::2].sum()


def test_loop_that_is_not_parallel_gives_another_answer() -> None:
    # Iterations run last to first, so that the carried sum is wrong.
    x = np.ones(6, np.float32)
    run(
        "(%x: memref<6xf32>)",
        f"""{INDICES}
        scf.parallel (%i) = (%c1) to (%c6) step (%c1) {{
          %p = arith.subi %i, %c1 : index
          %a = memref.load %x[%p] : memref<6xf32>
          %b = memref.load %x[%i] : memref<6xf32>
          %s = arith.addf %a, %b : f32
          memref.store %s, %x[%i] : memref<6xf32>
          scf.reduce
        }}
        return""",
        x,
    )
    assert x.tolist() == [1, 2, 2, 2, 2, 2]


def test_forall_inserts_slices_into_its_result() -> None:
    x = counted(6, 4)
    (result,) = run(
        "(%x: tensor<6x4xf32>) -> tensor<6x4xf32>",
        """%e = tensor.empty() : tensor<6x4xf32>
        %0 = scf.forall (%i) = (0) to (6) step (2) shared_outs(%o = %e) -> tensor<6x4xf32> {
          %a = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<6x4xf32> to tensor<2x4xf32>
          %b = arith.negf %a : tensor<2x4xf32>
          scf.forall.in_parallel {
            tensor.parallel_insert_slice %b into %o[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<6x4xf32>
          }
        }
        return %0 : tensor<6x4xf32>""",
        x,
    )
    np.testing.assert_array_equal(result, -x)


PARALLEL_BODY = """func.func private @body(%lo: index, %hi: index, %x: memref<37xf32>, %y: memref<37xf32>) {
  %one = arith.constant 1 : index
  scf.for %i = %lo to %hi step %one {
    %a = memref.load %x[%i] : memref<37xf32>
    %b = memref.load %y[%i] : memref<37xf32>
    %c = arith.addf %a, %b : f32
    memref.store %c, %y[%i] : memref<37xf32>
  }
  return
}"""


@pytest.mark.parametrize("grain", [1, 16, 100])
def test_parallel_call_covers_the_range_once(grain: int) -> None:
    x, y = counted(37), np.ones(37, np.float32)
    run(
        "(%x: memref<37xf32>, %y: memref<37xf32>)",
        f"""%lo = arith.constant 3 : index
        %hi = arith.constant 37 : index
        func.call @body(%lo, %hi, %x, %y) {{mlirml.parallel_for = {grain} : i64}} :
          (index, index, memref<37xf32>, memref<37xf32>) -> ()
        return""",
        x, y, outside=PARALLEL_BODY,
    )  # fmt: skip
    np.testing.assert_array_equal(y, np.where(np.arange(37) >= 3, x + 1, 1))


def test_calls_branches_and_recursion() -> None:
    (result,) = run(
        "(%n: i64) -> i64",
        """%0 = func.call @factorial(%n) : (i64) -> i64
        return %0 : i64""",
        np.int64(6),
        outside="""func.func private @factorial(%n: i64) -> i64 {
          %one = arith.constant 1 : i64
          %last = arith.cmpi sle, %n, %one : i64
          cf.cond_br %last, ^stop(%one : i64), ^more
        ^more:
          %m = arith.subi %n, %one : i64
          %rest = func.call @factorial(%m) : (i64) -> i64
          %p = arith.muli %n, %rest : i64
          cf.br ^stop(%p : i64)
        ^stop(%r: i64):
          return %r : i64
        }""",
    )
    assert result == 720


def test_failed_assertion_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match=r"cf\.assert: sizes differ"):
        run("(%c: i1)", 'cf.assert %c, "sizes differ"\nreturn', np.False_)


def test_subviews_share_memory() -> None:
    x = counted(6, 8)
    run(
        "(%x: memref<6x8xf32>, %n: index)",
        """%0 = memref.subview %x[1, %n] [2, 3] [2, 2] : memref<6x8xf32> to memref<2x3xf32, strided<[16, 2], offset: ?>>
        %1 = memref.subview %0[1, 0] [1, 3] [1, 1] :
          memref<2x3xf32, strided<[16, 2], offset: ?>> to memref<3xf32, strided<[2], offset: ?>>
        %c = arith.constant -1.0 : f32
        %i = arith.constant 2 : index
        memref.store %c, %1[%i] : memref<3xf32, strided<[2], offset: ?>>
        return""",
        x, np.int64(3),
    )  # fmt: skip
    expected = counted(6, 8)
    expected[3, 7] = -1
    np.testing.assert_array_equal(x, expected)


def test_views_of_a_byte_buffer() -> None:
    workspace = np.full(128, 0xFF, np.uint8)
    x = counted(2, 3)
    (result,) = run(
        "(%w: memref<128xi8>, %x: memref<2x3xf32>) -> f32",
        """%shift = arith.constant 64 : index
        %c1 = arith.constant 1 : index
        %v = memref.view %w[%shift][] : memref<128xi8> to memref<2x3xf32>
        memref.copy %x, %v : memref<2x3xf32> to memref<2x3xf32>
        %t = memref.reinterpret_cast %v to offset: [1], sizes: [2, 2], strides: [1, 3] :
          memref<2x3xf32> to memref<2x2xf32, strided<[1, 3], offset: 1>>
        %0 = memref.load %t[%c1, %c1] : memref<2x2xf32, strided<[1, 3], offset: 1>>
        return %0 : f32""",
        workspace, x,
    )  # fmt: skip
    assert result == x.reshape(-1)[1 + 1 + 3]
    np.testing.assert_array_equal(workspace[64:88].view(np.float32), x.reshape(-1))
    assert (workspace[:64] == 0xFF).all()


def test_reshaped_memrefs_share_memory() -> None:
    x = counted(4, 6)
    run(
        "(%x: memref<4x6xf32>)",
        f"""{INDICES}
        %e = memref.expand_shape %x [[0], [1, 2]] output_shape [4, 2, 3] : memref<4x6xf32> into memref<4x2x3xf32>
        %c = memref.collapse_shape %e [[0, 1], [2]] : memref<4x2x3xf32> into memref<8x3xf32>
        %t = memref.transpose %c (i, j) -> (j, i) : memref<8x3xf32> to memref<3x8xf32, strided<[1, 3]>>
        %v = arith.constant -1.0 : f32
        memref.store %v, %t[%c2, %c5] : memref<3x8xf32, strided<[1, 3]>>
        return""",
        x,
    )
    assert x.reshape(8, 3)[5, 2] == -1


def test_rank_zero_expands_and_collapses() -> None:
    x = np.array(3.0, np.float32)
    run(
        "(%x: memref<f32>)",
        f"""{INDICES}
        %e = memref.expand_shape %x [] output_shape [1, 1] : memref<f32> into memref<1x1xf32>
        %c = memref.collapse_shape %e [] : memref<1x1xf32> into memref<f32>
        %v = memref.load %c[] : memref<f32>
        %s = arith.addf %v, %v : f32
        memref.store %s, %e[%c0, %c0] : memref<1x1xf32>
        return""",
        x,
    )
    assert x == 6


def test_collapse_of_separated_dimensions_is_refused() -> None:
    with pytest.raises(LaunchError, match="not contiguous"):
        run(
            "(%x: memref<4x6xf32, strided<[8, 1]>>) -> memref<24xf32, strided<[?]>>",
            """%0 = memref.cast %x : memref<4x6xf32, strided<[8, 1]>> to memref<4x6xf32, strided<[?, ?]>>
            %1 = memref.collapse_shape %0 [[0, 1]] :
              memref<4x6xf32, strided<[?, ?]>> into memref<24xf32, strided<[?]>>
            return %1 : memref<24xf32, strided<[?]>>""",
            counted(4, 8)[:, :6],
        )


def test_strided_metadata_and_sizes() -> None:
    numbers = run(
        "(%x: memref<4x6xf32>) -> (index, index, index, index, index, index)",
        f"""{INDICES}
        %s = memref.subview %x[1, 1] [2, 3] [1, 2] : memref<4x6xf32> to memref<2x3xf32, strided<[6, 2], offset: 7>>
        %b, %o, %n:2, %t:2 = memref.extract_strided_metadata %s : memref<2x3xf32, strided<[6, 2], offset: 7>>
          -> memref<f32>, index, index, index, index, index
        %d = memref.dim %s, %c1 : memref<2x3xf32, strided<[6, 2], offset: 7>>
        return %o, %n#0, %n#1, %t#0, %t#1, %d : index, index, index, index, index, index""",
        counted(4, 6),
    )
    assert numbers == [7, 2, 3, 6, 2, 3]


def test_allocations_start_as_poison_and_end_as_poison() -> None:
    fresh, freed = run(
        "(%x: memref<3xf32>) -> (f32, f32)",
        f"""{INDICES}
        %a = memref.alloc() {{alignment = 64 : i64}} : memref<3xf32>
        %0 = memref.load %a[%c1] : memref<3xf32>
        memref.copy %x, %a : memref<3xf32> to memref<3xf32>
        memref.dealloc %a : memref<3xf32>
        %1 = memref.load %a[%c1] : memref<3xf32>
        return %0, %1 : f32, f32""",
        counted(3),
    )
    assert np.isnan(fresh)
    assert np.isnan(freed)


def test_globals_keep_their_contents() -> None:
    (result,) = run(
        "() -> f32",
        f"""{INDICES}
        %g = memref.get_global @weights : memref<2x2xf32>
        %h = memref.get_global @weights : memref<2x2xf32>
        %v = arith.constant 8.0 : f32
        memref.store %v, %g[%c0, %c0] : memref<2x2xf32>
        %a = memref.load %h[%c0, %c0] : memref<2x2xf32>
        %b = memref.load %h[%c1, %c0] : memref<2x2xf32>
        %0 = arith.addf %a, %b : f32
        return %0 : f32""",
        outside='memref.global "private" @weights : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>',
    )
    assert result == 11


def test_atomic_updates_return_the_old_value() -> None:
    x = np.array([1, 2, 3], np.int32)
    old, older = run(
        "(%x: memref<3xi32>) -> (i32, i32)",
        f"""{INDICES}
        %v = arith.constant -5 : i32
        %0 = memref.atomic_rmw maxu %v, %x[%c1] : (i32, memref<3xi32>) -> i32
        %1 = memref.generic_atomic_rmw %x[%c2] : memref<3xi32> {{
        ^bb0(%a: i32):
          %b = arith.addi %a, %v : i32
          memref.atomic_yield %b : i32
        }}
        return %0, %1 : i32, i32""",
        x,
    )
    assert (old, older) == (2, 3)
    assert x.tolist() == [1, -5, -2]


def test_access_out_of_bounds_is_an_error() -> None:
    body = """memref.store %v, %x[%i] : memref<3xf32>
      return"""
    with pytest.raises(LaunchError, match="index -1 is out of bounds for dimension 0 of size 3"):
        run("(%x: memref<3xf32>, %i: index, %v: f32)", body, counted(3), np.int64(-1), np.float32(1))


def test_view_outside_its_buffer_is_an_error() -> None:
    with pytest.raises(LaunchError, match="reach outside the 24 bytes of the buffer"):
        run(
            "(%x: memref<6xf32>) -> memref<3xf32, strided<[1], offset: 4>>",
            """%0 = memref.reinterpret_cast %x to offset: [4], sizes: [3], strides: [1] :
              memref<6xf32> to memref<3xf32, strided<[1], offset: 4>>
            return %0 : memref<3xf32, strided<[1], offset: 4>>""",
            counted(6),
        )


def test_tensors_and_buffers_exchange_contents() -> None:
    x, y = counted(4), np.zeros(4, np.float32)
    run(
        "(%x: memref<4xf32>, %y: memref<4xf32>)",
        """%0 = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
        %1 = arith.addf %0, %0 : tensor<4xf32>
        bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
        return""",
        x, y,
    )  # fmt: skip
    assert y.tolist() == [0, 2, 4, 6]


def test_affine_loops_apply_and_conditions() -> None:
    x, y = counted(8), np.zeros(8, np.float32)
    (total,) = run(
        "(%x: memref<8xf32>, %y: memref<8xf32>, %n: index) -> f32",
        """%zero = arith.constant 0.0 : f32
        %0 = affine.for %i = max affine_map<(d0) -> (d0 - 5, 1)>(%n) to min affine_map<(d0) -> (d0, 7)>(%n) step 2
          iter_args(%s = %zero) -> f32 {
          %a = affine.load %x[%i + 1] : memref<8xf32>
          affine.if affine_set<(d0)[s0] : (d0 - 3 >= 0, s0 - d0 - 2 >= 0)>(%i)[%n] {
            affine.store %a, %y[%i mod 4] : memref<8xf32>
          }
          %t = arith.addf %s, %a : f32
          affine.yield %t : f32
        }
        affine.parallel (%i) = (6) to (min(%n, 100)) {
          affine.store %zero, %x[%i] : memref<8xf32>
        }
        return %0 : f32""",
        x, y, np.int64(8),
    )  # fmt: skip
    assert total == 4 + 6
    assert y.tolist() == [0, 6, 0, 4, 0, 0, 0, 0]
    assert x.tolist() == [0, 1, 2, 3, 4, 5, 0, 0]


def test_affine_index_arithmetic() -> None:
    numbers = run(
        "(%i: index, %n: index) -> (index, index, index, index, index, index, index)",
        """%0 = affine.apply affine_map<(d0)[s0] -> ((d0 * 3) floordiv 2 + s0 ceildiv 4)>(%i)[%n]
        %1 = affine.min affine_map<(d0) -> (d0 mod 5, 3, d0)>(%i)
        %2 = affine.max affine_map<(d0) -> (d0 mod 5, 3, d0 - 10)>(%i)
        %3:3 = affine.delinearize_index %i into (2, 3, 4) : index, index, index
        %4 = affine.linearize_index [%3#0, %3#1, %3#2] by (2, 3, 4) : index
        return %0, %1, %2, %3#0, %3#1, %3#2, %4 : index, index, index, index, index, index, index""",
        np.int64(22), np.int64(9),
    )  # fmt: skip
    assert numbers == [33 + 3, 2, 12, 1, 2, 2, 22]


def test_vector_load_fma_store() -> None:
    x, y = counted(2, 8), np.zeros((2, 8), np.float32)
    run(
        "(%x: memref<2x8xf32>, %y: memref<2x8xf32>)",
        f"""{INDICES}
        %two = arith.constant dense<2.0> : vector<4xf32>
        %one = arith.constant 1.0 : f32
        %ones = vector.broadcast %one : f32 to vector<4xf32>
        %a = vector.load %x[%c1, %c3] : memref<2x8xf32>, vector<4xf32>
        %b = vector.fma %a, %two, %ones : vector<4xf32>
        vector.store %b, %y[%c0, %c4] : memref<2x8xf32>, vector<4xf32>
        return""",
        x, y,
    )  # fmt: skip
    np.testing.assert_array_equal(y[0, 4:], 2 * x[1, 3:7] + 1)
    assert not y[1].any()


def test_vector_load_past_the_end_of_a_row_is_an_error() -> None:
    with pytest.raises(LaunchError, match=r"vector\.load: index 8 is out of bounds for dimension 1 of size 8"):
        run(
            "(%x: memref<2x8xf32>) -> vector<4xf32>",
            f"""{INDICES}
            %a = vector.load %x[%c0, %c5] : memref<2x8xf32>, vector<4xf32>
            return %a : vector<4xf32>""",
            counted(2, 8),
        )


def test_masked_memory_access_touches_only_lanes_that_are_on() -> None:
    x, y = counted(2, 6), np.zeros((2, 6), np.float32)
    loaded, spread = run(
        "(%x: memref<2x6xf32>, %y: memref<2x6xf32>, %n: index) -> (vector<4xf32>, vector<4xf32>)",
        f"""{INDICES}
        %mask = vector.create_mask %n : vector<4xi1>
        %odd = arith.constant dense<[false, true, false, true]> : vector<4xi1>
        %else = arith.constant dense<-1.0> : vector<4xf32>
        %a = vector.maskedload %x[%c1, %c4], %mask, %else :
          memref<2x6xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        vector.maskedstore %y[%c1, %c4], %mask, %a : memref<2x6xf32>, vector<4xi1>, vector<4xf32>
        %b = vector.expandload %x[%c0, %c4], %odd, %else :
          memref<2x6xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        vector.compressstore %y[%c0, %c1], %odd, %b : memref<2x6xf32>, vector<4xi1>, vector<4xf32>
        return %a, %b : vector<4xf32>, vector<4xf32>""",
        x, y, np.int64(2),
    )  # fmt: skip
    assert loaded.tolist() == [10, 11, -1, -1]
    assert spread.tolist() == [-1, 4, -1, 5]
    assert y.tolist() == [[0, 4, 5, 0, 0, 0], [0, 0, 0, 0, 10, 11]]


def test_vector_gather_and_scatter() -> None:
    x, y = counted(8), np.zeros(8, np.float32)
    (gathered,) = run(
        "(%x: memref<8xf32>, %y: memref<8xf32>) -> vector<4xf32>",
        f"""{INDICES}
        %at = arith.constant dense<[5, 0, 99, 2]> : vector<4xi32>
        %mask = arith.constant dense<[true, true, false, true]> : vector<4xi1>
        %else = arith.constant dense<-1.0> : vector<4xf32>
        %a = vector.gather %x[%c1] [%at], %mask, %else :
          memref<8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        vector.scatter %y[%c1] [%at], %mask, %a : memref<8xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
        return %a : vector<4xf32>""",
        x, y,
    )  # fmt: skip
    assert gathered.tolist() == [6, 1, -1, 3]
    assert y.tolist() == [0, 1, 0, 3, 0, 0, 6, 0]


def test_transfers_pad_permute_broadcast_and_mask() -> None:
    x, y = counted(3, 5), np.zeros((3, 5), np.float32)
    padded, turned, repeated, masked = run(
        """(%x: memref<3x5xf32>, %y: memref<3x5xf32>) -> (
          vector<2x4xf32>, vector<4x2xf32>, vector<2x3xf32>, vector<4xf32>)""",
        f"""{INDICES}
        %pad = arith.constant -1.0 : f32
        %a = vector.transfer_read %x[%c2, %c3], %pad : memref<3x5xf32>, vector<2x4xf32>
        %b = vector.transfer_read %x[%c0, %c1], %pad {{in_bounds = [true, true],
          permutation_map = affine_map<(i, j) -> (j, i)>}} : memref<3x5xf32>, vector<4x2xf32>
        %c = vector.transfer_read %x[%c1, %c0], %pad {{in_bounds = [true, true],
          permutation_map = affine_map<(i, j) -> (0, j)>}} : memref<3x5xf32>, vector<2x3xf32>
        %n = vector.create_mask %c2 : vector<4xi1>
        %d = vector.transfer_read %x[%c0, %c0], %pad, %n {{in_bounds = [true]}} : memref<3x5xf32>, vector<4xf32>
        vector.transfer_write %a, %y[%c2, %c3] : vector<2x4xf32>, memref<3x5xf32>
        vector.transfer_write %d, %y[%c0, %c0], %n {{in_bounds = [true]}} : vector<4xf32>, memref<3x5xf32>
        return %a, %b, %c, %d : vector<2x4xf32>, vector<4x2xf32>, vector<2x3xf32>, vector<4xf32>""",
        x, y,
    )  # fmt: skip
    assert padded.tolist() == [[13, 14, -1, -1], [-1, -1, -1, -1]]
    np.testing.assert_array_equal(turned, x[0:2, 1:5].T)
    np.testing.assert_array_equal(repeated, np.stack([x[1, :3]] * 2))
    assert masked.tolist() == [0, 1, -1, -1]
    assert y.tolist() == [[0, 1, 0, 0, 0], [0] * 5, [0, 0, 0, 13, 14]]


def test_transfer_that_says_in_bounds_and_is_not_is_an_error() -> None:
    with pytest.raises(LaunchError, match="is not in bounds from 3 on"):
        run(
            "(%x: tensor<5xf32>) -> vector<4xf32>",
            f"""{INDICES}
            %pad = arith.constant 0.0 : f32
            %a = vector.transfer_read %x[%c3], %pad {{in_bounds = [true]}} : tensor<5xf32>, vector<4xf32>
            return %a : vector<4xf32>""",
            counted(5),
        )


def test_transfer_write_to_a_tensor_makes_a_new_one() -> None:
    x = counted(5)
    (result,) = run(
        "(%x: tensor<5xf32>, %v: vector<2xf32>) -> tensor<5xf32>",
        f"""{INDICES}
        %0 = vector.transfer_write %v, %x[%c1] {{in_bounds = [true]}} : vector<2xf32>, tensor<5xf32>
        return %0 : tensor<5xf32>""",
        x, np.array([8, 9], np.float32),
    )  # fmt: skip
    assert result.tolist() == [0, 8, 9, 3, 4]
    assert x.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind, expected", [("add", 10 + 36), ("maximumf", 10), ("minimumf", 1), ("mul", 403200)])
def test_vector_reduction(kind: str, expected: float) -> None:
    (result,) = run(
        "(%v: vector<8xf32>, %s: f32) -> f32",
        f"""%0 = vector.reduction <{kind}>, %v, %s : vector<8xf32> into f32
        return %0 : f32""",
        counted(8) + 1, np.float32(10),
    )  # fmt: skip
    assert result == expected


def test_reductions_of_masked_lanes_and_of_some_dimensions() -> None:
    v = counted(3, 4)
    masked, rows, scanned, last = run(
        "(%v: vector<3x4xf32>, %s: vector<3xf32>) -> (f32, vector<3xf32>, vector<3x4xf32>, vector<3xf32>)",
        """%m = vector.constant_mask [2] : vector<4xi1>
        %r = vector.extract %v[2] : vector<4xf32> from vector<3x4xf32>
        %0 = vector.mask %m { vector.reduction <add>, %r : vector<4xf32> into f32 } : vector<4xi1> -> f32
        %1 = vector.multi_reduction <add>, %v, %s [1] : vector<3x4xf32> to vector<3xf32>
        %2:2 = vector.scan <add>, %v, %s {inclusive = true, reduction_dim = 1 : i64} : vector<3x4xf32>, vector<3xf32>
        return %0, %1, %2#0, %2#1 : f32, vector<3xf32>, vector<3x4xf32>, vector<3xf32>""",
        v, np.ones(3, np.float32),
    )  # fmt: skip
    assert masked == v[2, :2].sum()
    np.testing.assert_array_equal(rows, 1 + v.sum(1))
    np.testing.assert_array_equal(scanned, 1 + v.cumsum(1))
    np.testing.assert_array_equal(last, 1 + v.sum(1))


def test_vector_contract_and_outerproduct() -> None:
    a, b, c = counted(2, 3), counted(4, 3), np.ones((2, 4), np.float32)
    contracted, outer = run(
        "(%a: vector<2x3xf32>, %b: vector<4x3xf32>, %c: vector<2x4xf32>) -> (vector<2x4xf32>, vector<3x3xf32>)",
        """%0 = vector.contract {indexing_maps = [
          affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
          iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
          %a, %b, %c : vector<2x3xf32>, vector<4x3xf32> into vector<2x4xf32>
        %1 = vector.extract %a[1] : vector<3xf32> from vector<2x3xf32>
        %2 = vector.extract %b[0] : vector<3xf32> from vector<4x3xf32>
        %3 = vector.outerproduct %1, %2 : vector<3xf32>, vector<3xf32>
        return %0, %3 : vector<2x4xf32>, vector<3x3xf32>""",
        a, b, c,
    )  # fmt: skip
    np.testing.assert_array_equal(contracted, 1 + a @ b.T)
    np.testing.assert_array_equal(outer, np.outer(a[1], b[0]))


def test_vector_rearrangements() -> None:
    v, w = counted(2, 4), counted(4)
    turned, cast, shuffled, mixed_up, even, odd, part, wide = run(
        """(%v: vector<2x4xf32>, %w: vector<4xf32>, %i: index) -> (vector<4x2xf32>, vector<8xf32>, vector<3xf32>,
          vector<8xf32>, vector<2xf32>, vector<2xf32>, vector<1x2xf32>, vector<2x4xf32>)""",
        """%0 = vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
        %1 = vector.shape_cast %v : vector<2x4xf32> to vector<8xf32>
        %2 = vector.shuffle %w, %w [1, 6, 0] : vector<4xf32>, vector<4xf32>
        %3 = vector.interleave %w, %w : vector<4xf32> -> vector<8xf32>
        %4, %5 = vector.deinterleave %w : vector<4xf32> -> vector<2xf32>
        %6 = vector.extract_strided_slice %v {offsets = [1, 1], sizes = [1, 2], strides = [1, 1]} :
          vector<2x4xf32> to vector<1x2xf32>
        %7 = vector.insert_strided_slice %4, %v {offsets = [1, 2], strides = [1]} : vector<2xf32> into vector<2x4xf32>
        %8 = vector.extract %w[%i] : f32 from vector<4xf32>
        %9 = vector.insert %8, %7[0, %i] : f32 into vector<2x4xf32>
        return %0, %1, %2, %3, %4, %5, %6, %9 : vector<4x2xf32>, vector<8xf32>, vector<3xf32>, vector<8xf32>,
          vector<2xf32>, vector<2xf32>, vector<1x2xf32>, vector<2x4xf32>""",
        v, w, np.int64(3),
    )  # fmt: skip
    np.testing.assert_array_equal(turned, v.T)
    np.testing.assert_array_equal(cast, v.reshape(-1))
    assert shuffled.tolist() == [1, 2, 0]
    assert mixed_up.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (even.tolist(), odd.tolist()) == ([0, 2], [1, 3])
    assert part.tolist() == [[5, 6]]
    assert wide.tolist() == [[0, 1, 2, 3], [4, 5, 0, 2]]


def test_vector_bits_elements_and_steps() -> None:
    bits, mask, steps, made = run(
        "(%w: vector<2xf32>) -> (vector<2xi32>, i8, vector<4xindex>, vector<2xf32>)",
        """%0 = vector.bitcast %w : vector<2xf32> to vector<2xi32>
        %m = vector.constant_mask [3] : vector<8xi1>
        %1 = vector.bitcast %m : vector<8xi1> to vector<1xi8>
        %2 = vector.extract %1[0] : i8 from vector<1xi8>
        %3 = vector.step : vector<4xindex>
        %4:2 = vector.to_elements %w : vector<2xf32>
        %5 = vector.from_elements %4#1, %4#0 : vector<2xf32>
        return %0, %2, %3, %5 : vector<2xi32>, i8, vector<4xindex>, vector<2xf32>""",
        np.array([1, -2], np.float32),
    )
    assert bits.tolist() == [0x3F800000, 0xC0000000 - (1 << 32)]
    assert mask == 7
    assert steps.tolist() == [0, 1, 2, 3]
    assert made.tolist() == [-2, 1]


def test_bfloat16_in_memory_and_vectors() -> None:
    x, y = counted(3, 4).astype(BF16), np.zeros(4, BF16)
    run(
        "(%x: memref<3x4xbf16>, %y: memref<4xbf16>)",
        f"""{INDICES}
        %s = memref.subview %x[1, 0] [2, 4] [1, 1] : memref<3x4xbf16> to memref<2x4xbf16, strided<[4, 1], offset: 4>>
        linalg.reduce {{arith.addf}}
          ins(%s : memref<2x4xbf16, strided<[4, 1], offset: 4>>) outs(%y : memref<4xbf16>) dimensions = [0]
        %v = vector.load %y[%c0] : memref<4xbf16>, vector<4xbf16>
        %w = vector.fma %v, %v, %v : vector<4xbf16>
        vector.store %w, %y[%c0] : memref<4xbf16>, vector<4xbf16>
        return""",
        x, y,
    )  # fmt: skip
    total = counted(3, 4)[1:].sum(0)
    assert y.tolist() == (total * total + total).astype(BF16).tolist()


def test_unsigned_and_bool_arrays_stand_for_signless_integers() -> None:
    body = """%c = arith.constant dense<1> : tensor<2xi8>
      %0 = arith.addi %x, %c : tensor<2xi8>
      return %0 : tensor<2xi8>"""
    signature = "(%x: tensor<2xi8>) -> tensor<2xi8>"
    assert run(signature, body, np.array([255, 127], np.uint8))[0].view(np.uint8).tolist() == [0, 128]
    assert run(signature, body, np.array([True, False]))[0].tolist() == [2, 1]


@pytest.mark.parametrize(
    "value, message",
    [
        (np.zeros((2, 3)), "argument 0 has dtype float64"),
        (np.zeros((3, 2), np.float32), r"argument 0 has shape \[3, 2\]"),
        (np.zeros((3, 2), np.float32).T, r"argument 0 has strides \[1, 2\]"),
    ],
)
def test_arguments_must_fit(value: np.ndarray, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        run("(%x: memref<2x3xf32>)", "return", value)


def test_missing_function_and_body_are_errors() -> None:
    with pytest.raises(TargetError, match=r"does not run func\.func"):
        run("()", "func.call @elsewhere() : () -> ()\nreturn", outside="func.func private @elsewhere()")
