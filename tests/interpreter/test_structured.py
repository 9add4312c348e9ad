"""Structured operations and tensors on the reference target, against NumPy."""

from __future__ import annotations

import itertools
import time

import ml_dtypes
import numpy as np
import pytest

from mlirml.errors import LaunchError, TargetError
from mlirml.interpreter import linalg as reference_linalg
from mlirml.interpreter.interpreter import interpret
from mlirml.ir import bindings as ir

CONTEXT = ir.make_context()


def run(signature: str, body: str, *arguments: np.ndarray) -> list[np.ndarray]:
    """Run `func.func @main` with a signature and a body."""
    return interpret(ir.parse(f"func.func @main{signature} {{\n{body}\n}}", CONTEXT), list(arguments))


def random(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def test_matmul_adds_to_its_init() -> None:
    a, b, c = random(5, 7), random(7, 3), random(5, 3)
    (result,) = run(
        "(%a: tensor<5x7xf32>, %b: tensor<7x3xf32>, %c: tensor<5x3xf32>) -> tensor<5x3xf32>",
        """%0 = linalg.matmul
          ins(%a, %b : tensor<5x7xf32>, tensor<7x3xf32>) outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>
        return %0 : tensor<5x3xf32>""",
        a, b, c,
    )  # fmt: skip
    np.testing.assert_allclose(result, c + a @ b, rtol=1e-6)


@pytest.mark.parametrize("element", ["f32", "f64", "i32", "i8"])
def test_contract_with_transposed_and_batched_operands(element: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8}[element]
    a, b, c = (random(*shape, dtype=np.float64) * 9 for shape in ((4, 2, 3), (5, 4, 2), (3, 2, 5)))
    a, b, c = a.astype(dtype), b.astype(dtype), c.astype(dtype)
    types = [f"tensor<{shape}x{element}>" for shape in ("4x2x3", "5x4x2", "3x2x5")]
    (result,) = run(
        f"(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> {types[2]}",
        f"""%0 = linalg.contract indexing_maps = [
          affine_map<(m, b, n, k) -> (k, b, m)>, affine_map<(m, b, n, k) -> (n, k, b)>,
          affine_map<(m, b, n, k) -> (m, b, n)>]
          ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) -> {types[2]}
        return %0 : {types[2]}""",
        a, b, c,
    )  # fmt: skip
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(result, c + np.einsum("kbm,nkb->mbn", a, b), rtol=1e-5)


def test_sum_of_products_with_a_dimension_of_one_factor_only() -> None:
    a, b = random(4, 6, dtype=np.float64), random(4, dtype=np.float64)
    (result,) = run(
        "(%a: tensor<4x6xf64>, %b: tensor<4xf64>, %c: tensor<f64>) -> tensor<f64>",
        """%0 = linalg.generic {indexing_maps = [
          affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> ()>],
          iterator_types = ["reduction", "reduction"]}
          ins(%a, %b : tensor<4x6xf64>, tensor<4xf64>) outs(%c : tensor<f64>) {
        ^bb0(%x: f64, %y: f64, %s: f64):
          %1 = arith.mulf %x, %y : f64
          %2 = arith.addf %s, %1 : f64
          linalg.yield %2 : f64
        } -> tensor<f64>
        return %0 : tensor<f64>""",
        a, b, np.zeros(()),
    )  # fmt: skip
    np.testing.assert_allclose(result, np.einsum("ij,i->", a, b), rtol=1e-12)


def test_half_precision_contraction_that_accumulates_in_f32() -> None:
    a, b = random(3, 400, dtype=np.float16), random(400, 2, dtype=np.float16)
    (result,) = run(
        "(%a: tensor<3x400xf16>, %b: tensor<400x2xf16>, %c: tensor<3x2xf32>) -> tensor<3x2xf32>",
        """%0 = linalg.matmul ins(%a, %b : tensor<3x400xf16>, tensor<400x2xf16>)
          outs(%c : tensor<3x2xf32>) -> tensor<3x2xf32>
        return %0 : tensor<3x2xf32>""",
        a, b, np.zeros((3, 2), np.float32),
    )  # fmt: skip
    np.testing.assert_allclose(result, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_conv_2d_nchw_fchw(stride: int, dilation: int) -> None:
    x, w = random(2, 3, 11, 12), random(4, 3, 3, 2)
    high, wide = ((size - (kernel - 1) * dilation - 1) // stride + 1 for size, kernel in ((11, 3), (12, 2)))
    out = f"tensor<2x4x{high}x{wide}xf32>"
    (result,) = run(
        f"(%x: tensor<2x3x11x12xf32>, %w: tensor<4x3x3x2xf32>, %o: {out}) -> {out}",
        f"""%0 = linalg.conv_2d_nchw_fchw
          {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}
          ins(%x, %w : tensor<2x3x11x12xf32>, tensor<4x3x3x2xf32>) outs(%o : {out}) -> {out}
        return %0 : {out}""",
        x, w, np.zeros((2, 4, high, wide), np.float32),
    )  # fmt: skip
    expected = np.zeros((2, 4, high, wide))
    for i, j, p, q in itertools.product(range(high), range(wide), range(3), range(2)):
        expected[:, :, i, j] += x[:, :, i * stride + p * dilation, j * stride + q * dilation] @ w[:, :, p, q].T
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_max_pooling_with_stride() -> None:
    x = random(1, 7, 9, 2)
    (result,) = run(
        "(%x: tensor<1x7x9x2xf32>, %k: tensor<3x2xf32>, %o: tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>",
        """%0 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
          ins(%x, %k : tensor<1x7x9x2xf32>, tensor<3x2xf32>) outs(%o : tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
        return %0 : tensor<1x3x4x2xf32>""",
        x, np.zeros((3, 2), np.float32), np.full((1, 3, 4, 2), -np.inf, np.float32),
    )  # fmt: skip
    for i, j in np.ndindex(3, 4):
        np.testing.assert_array_equal(result[0, i, j], x[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 2].max((0, 1)))


def test_fill_transpose_broadcast_map_and_reduce() -> None:
    x = random(3, 4)
    fill, turned, repeated, mapped, reduced = run(
        """(%x: tensor<3x4xf32>) -> (
          tensor<3x4xf32>, tensor<4x3xf32>, tensor<4x3x2xf32>, tensor<3x4xf32>, tensor<3xf32>)""",
        """%c = arith.constant 2.5 : f32
        %e0 = tensor.empty() : tensor<3x4xf32>
        %e1 = tensor.empty() : tensor<4x3xf32>
        %e2 = tensor.empty() : tensor<4x3x2xf32>
        %e3 = tensor.empty() : tensor<3xf32>
        %0 = linalg.fill ins(%c : f32) outs(%e0 : tensor<3x4xf32>) -> tensor<3x4xf32>
        %1 = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%e1 : tensor<4x3xf32>) permutation = [1, 0]
        %2 = linalg.broadcast ins(%1 : tensor<4x3xf32>) outs(%e2 : tensor<4x3x2xf32>) dimensions = [2]
        %3 = linalg.map {arith.mulf} ins(%x, %0 : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e0 : tensor<3x4xf32>)
        %z = linalg.fill ins(%c : f32) outs(%e3 : tensor<3xf32>) -> tensor<3xf32>
        %4 = linalg.reduce {arith.maximumf} ins(%x : tensor<3x4xf32>) outs(%z : tensor<3xf32>) dimensions = [1]
        return %0, %1, %2, %3, %4 :
          tensor<3x4xf32>, tensor<4x3xf32>, tensor<4x3x2xf32>, tensor<3x4xf32>, tensor<3xf32>""",
        x,
    )
    assert (fill == 2.5).all()
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(repeated, np.repeat(x.T[:, :, None], 2, 2))
    np.testing.assert_array_equal(mapped, x * np.float32(2.5))
    np.testing.assert_array_equal(reduced, np.maximum(x.max(1), np.float32(2.5)))


REDUCE = """%0 = linalg.generic {{indexing_maps = [
    affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j)>],
    iterator_types = ["reduction", "parallel", "reduction"]}}
    ins(%x : tensor<3x4x5x{0}>) outs(%o : tensor<4x{0}>) {{
  ^bb0(%a: {0}, %b: {0}):
    %1 = {1} %a, %b : {0}
    linalg.yield %1 : {0}
  }} -> tensor<4x{0}>
  return %0 : tensor<4x{0}>"""


@pytest.mark.parametrize(
    "operation, element, expected",
    [
        ("arith.addf", "f64", lambda x, o: o + x.sum((0, 2))),
        ("arith.mulf", "f64", lambda x, o: o * x.prod((0, 2))),
        ("arith.maximumf", "f64", lambda x, o: np.maximum(o, x.max((0, 2)))),
        ("arith.minnumf", "f64", lambda x, o: np.minimum(o, x.min((0, 2)))),
        ("arith.addi", "i8", lambda x, o: o + x.sum((0, 2), dtype=np.int8)),
        ("arith.muli", "i8", lambda x, o: o * x.prod((0, 2), dtype=np.int8)),
        ("arith.maxui", "i8", lambda x, o: np.maximum(o.view("u1"), x.view("u1").max((0, 2))).view("i1")),
        ("arith.minsi", "i8", lambda x, o: np.minimum(o, x.min((0, 2)))),
        ("arith.xori", "i8", lambda x, o: o ^ np.bitwise_xor.reduce(x, (0, 2))),
        ("arith.ori", "i1", lambda x, o: o | x.any((0, 2))),
        ("arith.andi", "i1", lambda x, o: o & x.all((0, 2))),
        ("arith.addi", "i1", lambda x, o: o ^ (x.sum((0, 2)) % 2 == 1)),
    ],
)
def test_reduction_over_several_dimensions(operation: str, element: str, expected) -> None:
    dtype = {"f64": np.float64, "i8": np.int8, "i1": np.bool_}[element]
    x, o = (random(3, 4, 5, dtype=np.float64) * 50), random(4, dtype=np.float64) * 50
    x, o = (x > 0, o > 0) if element == "i1" else (x.astype(dtype), o.astype(dtype))
    signature = f"(%x: tensor<3x4x5x{element}>, %o: tensor<4x{element}>) -> tensor<4x{element}>"
    (result,) = run(signature, REDUCE.format(element, operation), x, o)
    np.testing.assert_allclose(result, expected(x, o), rtol=1e-12)


def test_long_sum_of_bfloat16_is_rounded_once() -> None:
    x = np.full(1000, 1.0078125, ml_dtypes.bfloat16)
    (result,) = run(
        "(%x: tensor<1000xbf16>, %o: tensor<bf16>) -> tensor<bf16>",
        """%0 = linalg.reduce {arith.addf} ins(%x : tensor<1000xbf16>) outs(%o : tensor<bf16>) dimensions = [0]
        return %0 : tensor<bf16>""",
        x, np.zeros((), ml_dtypes.bfloat16),
    )  # fmt: skip
    assert float(result) == float(np.float64(1007.8125).astype(ml_dtypes.bfloat16))


ARGMAX = """%0:2 = linalg.generic {indexing_maps = [
    affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<6x9xf32>) outs(%v, %n : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%a: f32, %best: f32, %where: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %greater = arith.cmpf ogt, %a, %best : f32
    %1 = arith.select %greater, %a, %best : f32
    %2 = arith.select %greater, %here, %where : i64
    linalg.yield %1, %2 : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi64>"""


def test_argmax_carries_two_results() -> None:
    x = random(6, 9)
    x[2, 3] = x[2, 7] = 9
    value, where = run(
        "(%x: tensor<6x9xf32>, %v: tensor<6xf32>, %n: tensor<6xi64>) -> (tensor<6xf32>, tensor<6xi64>)",
        ARGMAX, x, np.full(6, -np.inf, np.float32), np.zeros(6, np.int64),
    )  # fmt: skip
    np.testing.assert_array_equal(value, x.max(1))
    np.testing.assert_array_equal(where, x.argmax(1))


def test_body_that_is_no_associative_chain_runs_in_order() -> None:
    x = random(3, 8, dtype=np.float64)
    (result,) = run(
        "(%x: tensor<3x8xf64>, %o: tensor<3xf64>) -> tensor<3xf64>",
        """%h = arith.constant 0.5 : f64
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x8xf64>) outs(%o : tensor<3xf64>) {
        ^bb0(%a: f64, %b: f64):
          %1 = arith.mulf %b, %h : f64
          %2 = arith.addf %1, %a : f64
          linalg.yield %2 : f64
        } -> tensor<3xf64>
        return %0 : tensor<3xf64>""",
        x, np.ones(3),
    )  # fmt: skip
    expected = np.ones(3)
    for column in x.T:
        expected = expected * 0.5 + column
    np.testing.assert_array_equal(result, expected)


def test_prefix_sum_written_through_a_map_that_repeats_elements() -> None:
    # Point (i, j) adds x[j] to out[i] for j <= i.
    x = np.arange(1.0, 6.0)
    (result,) = run(
        "(%x: tensor<5xf64>, %o: tensor<5xf64>) -> tensor<5xf64>",
        """%z = arith.constant 0.0 : f64
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]} ins(%x : tensor<5xf64>) outs(%o : tensor<5xf64>) {
        ^bb0(%a: f64, %b: f64):
          %i = linalg.index 0 : index
          %j = linalg.index 1 : index
          %before = arith.cmpi sle, %j, %i : index
          %1 = arith.select %before, %a, %z : f64
          %2 = arith.addf %b, %1 : f64
          linalg.yield %2 : f64
        } -> tensor<5xf64>
        return %0 : tensor<5xf64>""",
        x, np.zeros(5),
    )  # fmt: skip
    np.testing.assert_array_equal(result, x.cumsum())


def test_output_map_with_a_sum_of_dimensions_accumulates() -> None:
    a, b = np.arange(1.0, 5.0), np.arange(2.0, 5.0)
    (result,) = run(
        "(%a: tensor<4xf64>, %b: tensor<3xf64>, %o: tensor<6xf64>) -> tensor<6xf64>",
        """%0 = linalg.generic {indexing_maps = [
          affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i + j)>],
          iterator_types = ["reduction", "reduction"]}
          ins(%a, %b : tensor<4xf64>, tensor<3xf64>) outs(%o : tensor<6xf64>) {
        ^bb0(%x: f64, %y: f64, %s: f64):
          %1 = arith.mulf %x, %y : f64
          %2 = arith.addf %s, %1 : f64
          linalg.yield %2 : f64
        } -> tensor<6xf64>
        return %0 : tensor<6xf64>""",
        a, b, np.zeros(6),
    )  # fmt: skip
    np.testing.assert_array_equal(result, np.convolve(a, b))


def test_maps_with_reversal_division_and_constants() -> None:
    x, y = np.arange(6.0), np.arange(12.0).reshape(3, 4)
    (result,) = run(
        "(%x: tensor<6xf64>, %y: tensor<3x4xf64>, %o: tensor<6xf64>) -> tensor<6xf64>",
        """%0 = linalg.generic {indexing_maps = [affine_map<(i) -> (-i + 5)>,
            affine_map<(i) -> (i floordiv 2, i mod 4)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
            ins(%x, %y : tensor<6xf64>, tensor<3x4xf64>) outs(%o : tensor<6xf64>) {
        ^bb0(%a: f64, %b: f64, %c: f64):
          %1 = arith.subf %a, %b : f64
          linalg.yield %1 : f64
        } -> tensor<6xf64>
        return %0 : tensor<6xf64>""",
        x, y, np.zeros(6),
    )  # fmt: skip
    i = np.arange(6)
    np.testing.assert_array_equal(result, x[::-1] - y[i // 2, i % 4])


def test_gather_in_the_body_checks_its_index() -> None:
    body = """%0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%n : tensor<4xi32>) outs(%o : tensor<4x3xf32>) {
      ^bb0(%k: i32, %old: f32):
        %row = arith.index_cast %k : i32 to index
        %j = linalg.index 1 : index
        %1 = tensor.extract %x[%row, %j] : tensor<5x3xf32>
        linalg.yield %1 : f32
      } -> tensor<4x3xf32>
      return %0 : tensor<4x3xf32>"""
    signature = "(%x: tensor<5x3xf32>, %n: tensor<4xi32>, %o: tensor<4x3xf32>) -> tensor<4x3xf32>"
    x, o = random(5, 3), np.zeros((4, 3), np.float32)
    (result,) = run(signature, body, x, np.array([4, 0, 0, 2], np.int32), o)
    np.testing.assert_array_equal(result, x[[4, 0, 0, 2]])
    with pytest.raises(LaunchError, match=r"tensor\.extract: index 5 is out of bounds for dimension 0 of size 5"):
        run(signature, body, x, np.array([4, 0, 5, 2], np.int32), o)


def test_body_with_control_flow_runs_point_by_point() -> None:
    x = random(3, 4, dtype=np.float64)
    (result,) = run(
        "(%x: tensor<3x4xf64>, %o: tensor<3x4xf64>) -> tensor<3x4xf64>",
        """%z = arith.constant 0.0 : f64
        %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x4xf64>) outs(%o : tensor<3x4xf64>) {
        ^bb0(%a: f64, %b: f64):
          %positive = arith.cmpf ogt, %a, %z : f64
          %i = linalg.index 0 : index
          %1 = scf.if %positive -> f64 {
            %2 = arith.index_cast %i : index to i32
            %3 = arith.sitofp %2 : i32 to f64
            scf.yield %3 : f64
          } else {
            scf.yield %z : f64
          }
          linalg.yield %1 : f64
        } -> tensor<3x4xf64>
        return %0 : tensor<3x4xf64>""",
        x, np.zeros((3, 4)),
    )  # fmt: skip
    np.testing.assert_array_equal(result, np.where(x > 0, np.arange(3.0)[:, None], 0))


def test_large_space_is_cut_into_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_linalg, "BOX_LIMIT", 7)
    x = random(3, 4, 5, dtype=np.float64)
    signature = "(%x: tensor<3x4x5xf64>, %o: tensor<4xf64>) -> tensor<4xf64>"
    (result,) = run(signature, REDUCE.format("f64", "arith.addf"), x, np.ones(4))
    np.testing.assert_allclose(result, 1 + x.sum((0, 2)), rtol=1e-13)


def test_in_place_generic_that_reads_its_neighbour_runs_in_loop_order() -> None:
    # On memrefs the input is the output shifted by one: each point reads what the point before wrote.
    x = np.arange(1.0, 7.0)
    run(
        "(%x: memref<6xf64>)",
        """%from = memref.subview %x[0] [5] [1] : memref<6xf64> to memref<5xf64, strided<[1]>>
        %to = memref.subview %x[1] [5] [1] : memref<6xf64> to memref<5xf64, strided<[1], offset: 1>>
        linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%from : memref<5xf64, strided<[1]>>) outs(%to : memref<5xf64, strided<[1], offset: 1>>) {
        ^bb0(%a: f64, %b: f64):
          %1 = arith.addf %a, %b : f64
          linalg.yield %1 : f64
        }
        return""",
        x,
    )
    np.testing.assert_array_equal(x, np.arange(1.0, 7.0).cumsum())


def test_uninitialised_memory_shows_as_nan() -> None:
    (result,) = run(
        "(%x: tensor<3xf32>) -> tensor<3xf32>",
        """%e = tensor.empty() : tensor<3xf32>
        %0 = linalg.add ins(%x, %e : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>""",
        np.ones(3, np.float32),
    )
    assert np.isnan(result).all()


def test_softmax() -> None:
    x = random(3, 4)
    (result,) = run(
        "(%x: tensor<3x4xf32>, %o: tensor<3x4xf32>) -> tensor<3x4xf32>",
        """%0 = linalg.softmax dimension(1) ins(%x : tensor<3x4xf32>) outs(%o : tensor<3x4xf32>) -> tensor<3x4xf32>
        return %0 : tensor<3x4xf32>""",
        x, x,
    )  # fmt: skip
    np.testing.assert_allclose(result, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-6)


def test_slices_with_offsets_strides_and_dropped_dimensions() -> None:
    x, y = random(6, 1, 8), random(3, 2)
    part, row, written = run(
        """(%x: tensor<6x1x8xf32>, %y: tensor<3x2xf32>, %n: index) -> (
          tensor<3x2xf32>, tensor<?xf32>, tensor<6x1x8xf32>)""",
        """%0 = tensor.extract_slice %x[0, 0, 1] [3, 1, 2] [2, 1, 3] : tensor<6x1x8xf32> to tensor<3x2xf32>
        %1 = tensor.extract_slice %x[%n, 0, 0] [1, 1, %n] [1, 1, 1] : tensor<6x1x8xf32> to tensor<?xf32>
        %2 = tensor.insert_slice %y into %x[1, 0, %n] [3, 1, 2] [2, 1, 3] : tensor<3x2xf32> into tensor<6x1x8xf32>
        return %0, %1, %2 : tensor<3x2xf32>, tensor<?xf32>, tensor<6x1x8xf32>""",
        x, y, np.int64(4),
    )  # fmt: skip
    np.testing.assert_array_equal(part, x[0:6:2, 0, 1:5:3])
    np.testing.assert_array_equal(row, x[4, 0, :4])
    expected = x.copy()
    expected[1:6:2, 0, 4:8:3] = y
    np.testing.assert_array_equal(written, expected)


def test_slice_out_of_bounds_is_an_error_with_the_place() -> None:
    text = """func.func @main(%x: tensor<6xf32>, %n: index) -> tensor<4xf32> {
      %0 = tensor.extract_slice %x[%n] [4] [1] : tensor<6xf32> to tensor<4xf32> loc("model.py":3:5)
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(LaunchError, match=r"\[3:4:1\] is out of bounds for dimension 0 of size 6") as caught:
        interpret(ir.parse(text, CONTEXT), [np.zeros(6, np.float32), np.int64(3)])
    assert str(caught.value.location) == "model.py:3:5"


def test_reshapes_concat_pad_and_generate() -> None:
    x = random(2, 6)
    expanded, collapsed, joined, padded, made = run(
        """(%x: tensor<2x6xf32>, %n: index) -> (tensor<2x3x?xf32>, tensor<12xf32>, tensor<4x6xf32>, tensor<4x7xf32>,
          tensor<2x?xindex>)""",
        """%d = tensor.cast %x : tensor<2x6xf32> to tensor<2x?xf32>
        %0 = tensor.expand_shape %d [[0], [1, 2]] output_shape [2, 3, %n] : tensor<2x?xf32> into tensor<2x3x?xf32>
        %1 = tensor.collapse_shape %x [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>
        %2 = tensor.concat dim(0) %x, %x : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
        %c = arith.constant 7.0 : f32
        %3 = tensor.pad %x low[1, 0] high[1, 1] {
        ^bb0(%i: index, %j: index):
          tensor.yield %c : f32
        } : tensor<2x6xf32> to tensor<4x7xf32>
        %4 = tensor.generate %n {
        ^bb0(%i: index, %j: index):
          %s = arith.addi %i, %j : index
          tensor.yield %s : index
        } : tensor<2x?xindex>
        return %0, %1, %2, %3, %4 : tensor<2x3x?xf32>, tensor<12xf32>, tensor<4x6xf32>, tensor<4x7xf32>,
          tensor<2x?xindex>""",
        x, np.int64(2),
    )  # fmt: skip
    np.testing.assert_array_equal(expanded, x.reshape(2, 3, 2))
    np.testing.assert_array_equal(collapsed, x.reshape(-1))
    np.testing.assert_array_equal(joined, np.concatenate([x, x]))
    np.testing.assert_array_equal(padded, np.pad(x, ((1, 1), (0, 1)), constant_values=7))
    assert made.tolist() == [[0, 1], [1, 2]]


def test_single_elements_and_sizes() -> None:
    inserted, extracted, size, rank, few, many = run(
        "(%x: tensor<2x3xf32>, %i: index) -> (tensor<2x3xf32>, f32, index, index, tensor<2xf32>, tensor<2x2xf32>)",
        """%c = arith.constant 9.0 : f32
        %one = arith.constant 1 : index
        %0 = tensor.insert %c into %x[%one, %i] : tensor<2x3xf32>
        %1 = tensor.extract %x[%one, %i] : tensor<2x3xf32>
        %2 = tensor.dim %x, %one : tensor<2x3xf32>
        %3 = tensor.rank %x : tensor<2x3xf32>
        %4 = tensor.from_elements %c, %1 : tensor<2xf32>
        %5 = tensor.splat %c : tensor<2x2xf32>
        return %0, %1, %2, %3, %4, %5 : tensor<2x3xf32>, f32, index, index, tensor<2xf32>, tensor<2x2xf32>""",
        np.arange(6, dtype=np.float32).reshape(2, 3), np.int64(2),
    )  # fmt: skip
    assert inserted.tolist() == [[0, 1, 2], [3, 4, 9]]
    assert (extracted, size, rank) == (5, 3, 2)
    assert few.tolist() == [9, 5]
    assert many.tolist() == [[9, 9], [9, 9]]


def test_gather_scatter_and_reshape() -> None:
    x = random(4, 5, 3)
    n = np.array([[3, 1], [0, 1]], np.int64)
    gathered, scattered, reshaped = run(
        """(%x: tensor<4x5x3xf32>, %n: tensor<2x2xindex>, %s: tensor<1xi64>) -> (
          tensor<2x1x5x1xf32>, tensor<4x5x3xf32>, tensor<?xf32>)""",
        """%0 = tensor.gather %x[%n] gather_dims([0, 2]) :
          (tensor<4x5x3xf32>, tensor<2x2xindex>) -> tensor<2x1x5x1xf32>
        %1 = arith.negf %0 : tensor<2x1x5x1xf32>
        %2 = tensor.scatter %1 into %x[%n] scatter_dims([0, 2]) unique :
          (tensor<2x1x5x1xf32>, tensor<4x5x3xf32>, tensor<2x2xindex>) -> tensor<4x5x3xf32>
        %3 = tensor.reshape %x(%s) : (tensor<4x5x3xf32>, tensor<1xi64>) -> tensor<?xf32>
        return %0, %2, %3 : tensor<2x1x5x1xf32>, tensor<4x5x3xf32>, tensor<?xf32>""",
        x, n, np.array([60]),
    )  # fmt: skip
    np.testing.assert_array_equal(gathered[:, 0, :, 0], x[[3, 0], :, [1, 1]])
    expected = x.copy()
    expected[[3, 0], :, [1, 1]] *= -1
    np.testing.assert_array_equal(scattered, expected)
    np.testing.assert_array_equal(reshaped, x.reshape(-1))


def test_tensor_arguments_stay_as_they_are() -> None:
    x = np.ones(3, np.float32)
    (result,) = run(
        "(%x: tensor<3xf32>) -> tensor<3xf32>",
        """%0 = linalg.exp ins(%x : tensor<3xf32>) outs(%x : tensor<3xf32>) -> tensor<3xf32>
        return %x : tensor<3xf32>""",
        x,
    )
    assert x.tolist() == [1, 1, 1]
    assert result.tolist() == [1, 1, 1]
    assert result is not x


def test_empty_iteration_space_leaves_the_init() -> None:
    signature = "(%x: tensor<3x0xf32>, %o: tensor<3xf32>) -> tensor<3xf32>"
    body = """%0 = linalg.reduce {arith.addf} ins(%x : tensor<3x0xf32>) outs(%o : tensor<3xf32>) dimensions = [1]
      return %0 : tensor<3xf32>"""
    (result,) = run(signature, body, np.zeros((3, 0), np.float32), np.full(3, 2, np.float32))
    assert result.tolist() == [2, 2, 2]


def test_module_of_a_thousand_operations_takes_under_a_second() -> None:
    lines = [f"%{n + 1} = arith.addf %{n}, %{n} : tensor<4xf32>" for n in range(1000)]
    text = "func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n" + "\n".join(lines)
    module = ir.parse(text + "\nreturn %1000 : tensor<4xf32>\n}", CONTEXT)
    start = time.perf_counter()
    interpret(module, [np.zeros(4, np.float32)])
    assert time.perf_counter() - start < 1


def test_operation_without_a_rule_is_named_with_its_place() -> None:
    text = """func.func @main(%x: tensor<8xf32>, %o: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %0 = linalg.pack %x inner_dims_pos = [0] inner_tiles = [4] into %o : tensor<8xf32> -> tensor<2x4xf32>
        loc("model.py":7:1)
      return %0 : tensor<2x4xf32>
    }"""
    with pytest.raises(TargetError, match=r"does not run linalg\.pack") as caught:
        interpret(ir.parse(text, CONTEXT), [np.zeros(8, np.float32), np.zeros((2, 4), np.float32)])
    assert str(caught.value.location) == "model.py:7:1"
