"""Loops compute what the structured operations compute: random programs, strides, dtypes, and every way to cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mlirml as ml
from mlirml.analysis import costs
from mlirml.codegen.cpu.elementwise import rows, transpose
from mlirml.codegen.cpu.reduce import argmax as position
from mlirml.codegen.cpu.reduce import argmax_rows as position_rows
from mlirml.codegen.cpu.reduce import columns as reduce_columns
from mlirml.codegen.cpu.reduce import reduce as reduction
from mlirml.codegen.cpu.reduce import rows as reduce_rows
from mlirml.codegen.cpu.reduce import sums as reduce_sums
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import block_ops, main_function, mlir, operations, parse
from mlirml.passes import parse_pipeline
from mlirml.pipelines.bufferize import bufferize
from mlirml.pipelines.memref import lower_loops, outline_parallel, plan_buffers, widen_bools
from mlirml.pipelines.tensor import fuse
from tests.pipelines.programs import Array, Program, programs

PASSES = (bufferize, fuse, lower_loops, outline_parallel, plan_buffers, widen_bools)
LOOPS = (
    "mlirml-bufferize,mlirml-widen-bools,mlirml-lower-loops{processor=sse4.1},"
    "mlirml-plan-buffers,mlirml-outline-parallel"
)
SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


SMALL = {
    costs: {"STATIC": costs.Costs(parallel_ns=0, chunk_ns=0, cache_bytes=0)},
    position: {"BLOCK": 3},
    position_rows: {"VECTORS": 1},
    reduce_columns: {"COLUMNS_BYTES": 16, "ROWS": 2},
    reduce_rows: {"BLOCK": 3, "BLOCK_BYTES": 32},
    reduction: {"CHUNK": 4, "ROW_CHUNK": 4, "FEW": 1000},
    reduce_sums: {"STEPS": 1, "VECTORS": 1},
    rows: {"FEWEST_ROWS": 1, "SHORTEST_ROW": 1, "LONG_ROW_BYTES": 1},
    transpose: {"ROWS": 4, "COLUMNS": 3},
}


@pytest.fixture(params=["as it is", "cut small"])
def thresholds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Once with the real thresholds, once with ones so small that everything is cut and parallel."""
    if request.param == "cut small":
        for module, values in SMALL.items():
            for name, value in values.items():
                monkeypatch.setattr(module, name, value)
    yield request.param


def lowered(text: str, pipeline: str = LOOPS) -> mlir.Module:
    module = parse(text)
    parse_pipeline(pipeline).run(module)
    return module


def run_buffers(module: mlir.Module, inputs: list[Array]) -> list[Array]:
    """Interpret a bufferized @main."""
    main = next(op for op in operations(module) if op.name == "func.func" and "mlirml.outputs" in op.attributes)
    outs = []
    for attribute in main.attributes["mlirml.outputs"]:
        name = str(attribute.value.element_type)
        dtype = {"i1": "i1", "f64": "f8", "f32": "f4", "i32": "i4", "i64": "i8", "i8": "i1"}[name]
        outs.append(np.zeros(tuple(attribute.value.shape), dtype))
    size = main.attributes["mlirml.workspace"].value if "mlirml.workspace" in main.attributes else 0
    workspace = [np.full(size, 0xCD, np.uint8).view(np.int8)] if size else []
    arguments = [array if array.size else np.zeros(1, array.dtype) for array in (*inputs, *outs)]
    interpret(module, [*arguments, *workspace])
    return outs


def check(text: str, inputs: list[Array], pipeline: str = LOOPS, rtol: float = 1e-9) -> mlir.Module:
    expected = interpret(parse(text), inputs)
    module = lowered(text, pipeline)
    for new, old in zip(run_buffers(module, inputs), expected, strict=True):
        np.testing.assert_allclose(new, old, rtol=rtol, atol=rtol)
    return module


@SLOW
@given(program=programs(sizes=(1, 2, 5, 9), max_ops=5))
def test_random_programs(thresholds: str, program: Program) -> None:
    check(program.text(), program.random_inputs())


@SLOW
@given(program=programs(sizes=(0, 1, 4), max_ops=5))
def test_random_programs_with_empty_arrays(thresholds: str, program: Program) -> None:
    check(program.text(), program.random_inputs())


@SLOW
@given(program=programs(sizes=(1, 3, 6), max_ops=6))
def test_random_fused_programs(thresholds: str, program: Program) -> None:
    check(program.text(), program.random_inputs(), f"canonicalize,cse,mlirml-fuse,canonicalize,cse,{LOOPS}")


def strided(draw: st.DrawFn, sizes: tuple[int, ...]) -> tuple[str, Array]:
    """A slice of a bigger f64 tensor: its text after `%x`, and the array to slice."""
    starts = [draw(st.integers(0, 2)) for _ in sizes]
    steps = [draw(st.integers(1, 3)) for _ in sizes]
    whole = [start + (size - 1) * step + 1 for start, size, step in zip(starts, sizes, steps, strict=True)]
    shape = "".join(f"{n}x" for n in whole)
    kept = "".join(f"{n}x" for n in sizes)
    text = f"tensor.extract_slice %x {starts} {list(sizes)} {steps} : tensor<{shape}f64> to tensor<{kept}f64>"
    return text, np.random.default_rng(0).standard_normal(whole)


@SLOW
@given(data=st.data())
def test_slices_are_read_and_written_in_place(thresholds: str, data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    slice_text, x = strided(data.draw, sizes)
    order = data.draw(st.permutations(range(len(sizes))))
    letters = ", ".join(f"d{k}" for k in range(len(sizes)))
    kept = "".join(f"{n}x" for n in sizes)
    turned = "".join(f"{sizes[d]}x" for d in order)
    kind = str("tensor<" + "".join(f"{n}x" for n in x.shape) + "f64>")
    text = f"""func.func @main(%x: {kind}) -> (tensor<{turned}f64>, {kind}) {{
      %s = {slice_text}
      %e = tensor.empty() : tensor<{turned}f64>
      %r = linalg.generic {{indexing_maps = [affine_map<({letters}) -> ({letters})>,
          affine_map<({letters}) -> ({", ".join(f"d{d}" for d in order)})>],
          iterator_types = [{", ".join(['"parallel"'] * len(sizes))}]}}
          ins(%s : tensor<{kept}f64>) outs(%e : tensor<{turned}f64>) {{
      ^bb0(%a: f64, %o: f64):
        %n = arith.negf %a : f64
        linalg.yield %n : f64
      }} -> tensor<{turned}f64>
      %w = tensor.insert_slice %s into %x {slice_text.split("%x ")[1].split(" :")[0]} : tensor<{kept}f64> into {kind}
      return %r, %w : tensor<{turned}f64>, {kind}
    }}"""
    check(text, [x])


ARGMAX = """
func.func @main(%x: tensor<{m}x{n}xf32>) -> (tensor<{out}xf32>, tensor<{out}xi64>) {{
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<{out}xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<{out}xf32>) -> tensor<{out}xf32>
  %ei = tensor.empty() : tensor<{out}xi64>
  %fi = linalg.fill ins(%zero : i64) outs(%ei : tensor<{out}xi64>) -> tensor<{out}xi64>
  %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {out_map}, {out_map}],
      iterator_types = [{kinds}]}} ins(%x : tensor<{m}x{n}xf32>) outs(%f, %fi : tensor<{out}xf32>, tensor<{out}xi64>) {{
  ^bb0(%a: f32, %best: f32, %place: i64):
    %i = linalg.index {axis} : index
    %p = arith.index_cast %i : index to i64
    {better}
    %v = arith.select %greater, %a, %best : f32
    %q = arith.select %greater, %p, %place : i64
    linalg.yield %v, %q : f32, i64
  }} -> (tensor<{out}xf32>, tensor<{out}xi64>)
  return %r#0, %r#1 : tensor<{out}xf32>, tensor<{out}xi64>
}}"""


IGNORE_NAN = "%greater = arith.cmpf ogt, %a, %best : f32"
NAN_WINS = """%g = arith.cmpf ogt, %a, %best : f32
    %n = arith.cmpf uno, %a, %a : f32
    %m = arith.cmpf ord, %best, %best : f32
    %new = arith.andi %n, %m : i1
    %greater = arith.ori %g, %new : i1"""


def argmax(x: Array, axis: int, better: str) -> list[Array]:
    (m, n), out = x.shape, x.shape[1 - axis]
    out_map = f"affine_map<(i, j) -> ({'j' if axis == 0 else 'i'})>"
    kinds = '"reduction", "parallel"' if axis == 0 else '"parallel", "reduction"'
    module = lowered(ARGMAX.format(m=m, n=n, out=out, out_map=out_map, axis=axis, kinds=kinds, better=better))
    return run_buffers(module, [x])


@pytest.mark.parametrize("better", [IGNORE_NAN, NAN_WINS])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(7, 5), (1, 9), (9, 1), (20, 33)])
def test_argmax_keeps_the_first_of_equal_values(thresholds: str, axis: int, m: int, n: int, better: str) -> None:
    x = np.random.default_rng(1).integers(0, 4, (m, n)).astype(np.float32)
    values, places = argmax(x, axis, better)
    np.testing.assert_array_equal(places, x.argmax(axis))
    np.testing.assert_array_equal(values, x.max(axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_argmax_of_nan_is_its_first_place(thresholds: str, axis: int) -> None:
    x = np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32)
    x[2, 5] = x[4, 5] = x[2, 7] = np.nan
    values, places = argmax(x, axis, NAN_WINS)
    np.testing.assert_array_equal(places, x.argmax(axis))
    np.testing.assert_array_equal(values, x.max(axis))


def reduction_text(m: int, n: int, axis: int, combiner: str, init: str, kind: str) -> str:
    out = n if axis == 0 else m
    letter, kinds = ("j", '"reduction", "parallel"') if axis == 0 else ("i", '"parallel", "reduction"')
    return f"""func.func @main(%x: tensor<{m}x{n}x{kind}>) -> tensor<{out}x{kind}> {{
      %z = arith.constant {init} : {kind}
      %e = tensor.empty() : tensor<{out}x{kind}>
      %f = linalg.fill ins(%z : {kind}) outs(%e : tensor<{out}x{kind}>) -> tensor<{out}x{kind}>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({letter})>],
          iterator_types = [{kinds}]}} ins(%x : tensor<{m}x{n}x{kind}>) outs(%f : tensor<{out}x{kind}>) {{
      ^bb0(%a: {kind}, %o: {kind}):
        %s = {combiner} %o, %a : {kind}
        linalg.yield %s : {kind}
      }} -> tensor<{out}x{kind}>
      return %r : tensor<{out}x{kind}>
    }}"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("combiner", "init", "kind", "function"),
    [
        ("arith.addf", "0.0", "f32", np.add),
        ("arith.mulf", "1.0", "f64", np.multiply),
        ("arith.maximumf", "0xFF800000", "f32", np.maximum),
        ("arith.minimumf", "0x7F800000", "f32", np.minimum),
        ("arith.addi", "0", "i32", np.add),
        ("arith.muli", "1", "i64", np.multiply),
        ("arith.maxsi", "-2147483648", "i32", np.maximum),
        ("arith.minsi", "2147483647", "i32", np.minimum),
        ("arith.andi", "-1", "i32", np.bitwise_and),
        ("arith.ori", "0", "i32", np.bitwise_or),
        ("arith.xori", "0", "i64", np.bitwise_xor),
    ],
)
def test_every_combiner(thresholds: str, axis: int, combiner: str, init: str, kind: str, function: np.ufunc) -> None:
    dtype = {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8"}[kind]
    rng = np.random.default_rng(2)
    x = rng.integers(-9, 9, (13, 11)).astype(dtype) if kind[0] == "i" else rng.standard_normal((13, 11)).astype(dtype)
    (got,) = run_buffers(lowered(reduction_text(13, 11, axis, combiner, init, kind)), [x])
    np.testing.assert_allclose(got, function.reduce(x, axis), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_nan_wins_in_a_maximum(thresholds: str, axis: int) -> None:
    x = np.random.default_rng(3).standard_normal((6, 8)).astype(np.float32)
    x[2, 3] = np.nan
    (got,) = run_buffers(lowered(reduction_text(6, 8, axis, "arith.maximumf", "0xFF800000", "f32")), [x])
    np.testing.assert_array_equal(got, x.max(axis))


def test_long_sums_of_infinities_stay_infinite() -> None:
    x = np.ones((1, 5000), np.float32)
    x[0, 1234] = np.inf
    (got,) = run_buffers(lowered(reduction_text(1, 5000, 1, "arith.addf", "0.0", "f32")), [x])
    assert got[0] == np.inf


@pytest.mark.parametrize("shape", [(2, 40, 33), (40, 33), (2, 1, 33), (3, 1, 40, 1), (3, 2, 1, 33), (1, 2, 40, 33)])
def test_rows_that_share_a_mask(thresholds: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    x, mask = rng.standard_normal((3, 2, 40, 33)), rng.standard_normal(shape)

    def softmax(x: Array, mask: Array) -> Array:
        e = np.exp(x + mask - np.max(x + mask, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True) * mask

    check(str(ml.compile(softmax).ir("optimize", x, mask)), [x, mask])


def test_bools_are_bytes() -> None:
    text = """func.func @main(%x: tensor<5xi1>, %y: tensor<5xf32>) -> (tensor<5xi1>, tensor<5xf32>) {
      %e = tensor.empty() : tensor<5xi1>
      %g = tensor.empty() : tensor<5xf32>
      %zero = arith.constant 0.0 : f32
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
          affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<5xi1>, tensor<5xf32>) outs(%e, %g : tensor<5xi1>, tensor<5xf32>) {
      ^bb0(%a: i1, %b: f32, %o: i1, %q: f32):
        %p = arith.cmpf ogt, %b, %zero : f32
        %n = arith.andi %p, %a : i1
        %s = arith.select %a, %b, %zero : f32
        linalg.yield %n, %s : i1, f32
      } -> (tensor<5xi1>, tensor<5xf32>)
      return %r#0, %r#1 : tensor<5xi1>, tensor<5xf32>
    }"""
    x, y = np.array([1, 0, 1, 1, 0], np.int8), np.array([1, 2, -3, 4, -5], np.float32)
    module = lowered(text)
    mask, chosen = run_buffers(module, [x, y])
    np.testing.assert_array_equal(mask, [1, 0, 0, 1, 0])
    np.testing.assert_array_equal(chosen, [1, 0, -3, 4, 0])
    loads = [op for op in operations(module) if op.name == "memref.load"]
    assert loads and all("i1>" not in str(op.operands[0].type) for op in loads)


@pytest.mark.parametrize("shape", [(2, 3), (8, 5), (19, 40), (3, 9, 4)])
def test_rows_that_are_added_together_know_their_numbers(shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        flipped = np.flip(x, -2)
        return flipped, x + flipped, x.min(axis=-2), (x * flipped).sum(-2)

    x = np.arange(float(np.prod(shape))).reshape(shape)
    for result, expected in zip(ml.compile(f)(x), f(x)):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "size, length, together, expected",
    [(1003, 65, 1, 59), (1000, 65, 1, 50), (1000, 64, 8, 64), (1024, 64, 8, 64), (997, 64, 1, 64), (2, 1, 8, 1)],
)
def test_chunks_of_rows_leave_no_rest_where_the_number_of_rows_allows(
    size: int, length: int, together: int, expected: int
) -> None:
    assert reduction.even_length(size, length, together) == expected


def test_a_sum_over_many_rows_has_no_code_for_a_rest() -> None:
    def additions(rows: int) -> int:
        text = f"""
        func.func @main(%a: tensor<{rows}x1000xf64>) -> tensor<1000xf64> {{
          %zero = arith.constant 0.0 : f64
          %empty = tensor.empty() : tensor<1000xf64>
          %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<1000xf64>) -> tensor<1000xf64>
          %sum = linalg.reduce {{ arith.addf }} ins(%a : tensor<{rows}x1000xf64>) outs(%init : tensor<1000xf64>)
            dimensions = [0]
          return %sum : tensor<1000xf64>
        }}
        """
        return sum(op.name == "arith.addf" for op in operations(lowered(text, LOOPS)))

    assert additions(1000) <= 1 + 8 + 4, "one row of a chunk, and the sums of twenty chunks, eight at a time"
    assert additions(997) > additions(1000), "a prime number"


def test_all_chunks_of_a_long_sum_are_for_threads() -> None:
    text = """
    func.func @main(%a: tensor<983040xi64>) -> tensor<i64> {
      %init = arith.constant dense<0> : tensor<i64>
      %sum = linalg.reduce { arith.addi } ins(%a : tensor<983040xi64>) outs(%init : tensor<i64>) dimensions = [0]
      return %sum : tensor<i64>
    }
    """
    module = lowered(text, LOOPS)
    work = [
        op.name for op in block_ops(main_function(module).regions[0].blocks[0]) if op.regions or op.name == "func.call"
    ]
    assert work == ["func.call", "scf.for"], "the chunks, which threads share, and the sum of their sums"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("width", [127, 128, 255, 256, 257, 300, 1000, 1024, 4095, 4096, 4100])
def test_places_in_rows_of_several_blocks(dtype: Any, width: int) -> None:
    rng = np.random.default_rng(width)
    x = rng.integers(-3 if np.dtype(dtype).kind != "u" else 0, 4, (11, width)).astype(dtype)
    x[3] = 0
    x[4, -1] = 7
    x[5, width // 2] = 7
    if np.dtype(dtype).kind == "f":
        x[6, width // 3] = x[6, -1] = np.nan
        x[7] = np.nan
        x[8] = -np.inf
    for function in (np.argmax, np.argmin):
        assert np.array_equal(ml.compile(lambda x, f=function: f(x, axis=1))(x), function(x, axis=1))


@pytest.mark.parametrize("width", [96, 1001])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: np.argmax(np.abs(x - 2), axis=1),
        lambda x, y: np.argmin(np.where(x > y, x * y, 3.0), axis=1),
        lambda x, y: np.argmax(x[:, ::2], axis=1),
        lambda x, y: np.argmax(x + np.arange(x.shape[1]) % 3, axis=1),
        lambda x, y: np.argmax(x > y, axis=1),
        lambda x, y: np.argmin(np.sin(x), axis=1),
        lambda x, y: np.argmax(x[:, None, :] + y[None, :3, :], axis=-1),
    ],
)
def test_places_of_computed_values(function: Any, width: int) -> None:
    rng = np.random.default_rng(width)
    x, y = rng.integers(-4, 5, (2, 9, width)).astype(np.float64)
    assert np.array_equal(ml.compile(function)(x, y), function(x, y))
