"""Contractions through the CPU pipeline against NumPy: every kernel, layout and element type, and many shapes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlirml as ml
from mlirml.ir.bindings import operations, parse
from mlirml.ir.text.dtypes import bfloat16, mlir_name, tensor_type
from mlirml.passes import Pipeline, parse_pipeline
from mlirml.pipelines.memref import lower_contract
from mlirml.pipelines.tensor import schedule_contract
from mlirml.runtime.executable import load_artifact
from mlirml.targets.cpu import codegen, cpu_target

Array = npt.NDArray[Any]
LEVELS = {512: "avx512", 256: "avx2", 128: "sse4.1"}


@cache
def pipeline(options: str) -> Pipeline:
    """The CPU pipeline with these options for the two passes; a kernel is for the first of them."""
    with ml.config.override(libraries=()):
        text = str(cpu_target().pipeline)
    passes = {schedule_contract.ScheduleContractPass.name: "mlirml-bufferize"}
    passes[lower_contract.LowerContractPass.name] = "mlirml-lower-loops"
    for name, following in passes.items():
        text = re.sub(rf"{name}({{[^}}]*}})?,", "", text)
        chosen = re.sub(r" kernel=\w+", "", options) if following == "mlirml-lower-loops" else options
        text = text.replace(following, f"{name}{{{chosen}}},{following}", 1)
    return parse_pipeline(text)


def options(bits: int = 512, parallel: bool = False) -> str:
    return f"processor={LEVELS[bits]}" + ("" if parallel else ",cores=1")


def run(text: str, inputs: list[Array], result: Array, passes: str, kernel: str | None = None) -> Array:
    """Compile @main of `text` and call it; `kernel` must be a part of the name of a function it calls."""
    module = parse(text)
    lowering = pipeline(passes)
    lowering.run(module, stop_after="schedule")
    if kernel is not None:
        names = [str(op.attributes["sym_name"]) for op in operations(module) if op.name == "func.func"]
        assert any(kernel in name for name in names), names
    Pipeline(lowering.stages[-1:]).run(module)
    program = load_artifact(codegen(module), [(a.dtype, a.shape) for a in inputs], [(result.dtype, result.shape)])
    (out,) = program(inputs)
    return out


def module_text(spec: str, a: Array, b: Array, out: Array, accumulate: bool = False, schedule: str = "") -> str:
    """@main with one linalg.contract of an einsum spec: on zeros, or on its third argument."""
    letters = sorted(set(spec) - set(",->"), key=spec.index)
    operands, target = spec.split("->")
    dims = ", ".join(letters)
    maps = ", ".join(f"affine_map<({dims}) -> ({', '.join(part)})>" for part in [*operands.split(","), target])
    ta, tb, tc = (tensor_type(x.shape, x.dtype) for x in (a, b, out))
    element = mlir_name(out.dtype)
    zero = "0.0" if "f" in element else "0"
    start = f"""%zero = arith.constant {zero} : {element}
      %empty = tensor.empty() : {tc}
      %start = linalg.fill ins(%zero : {element}) outs(%empty : {tc}) -> {tc}"""
    attribute = f"{{mlirml.schedule = {schedule}}}" if schedule else ""
    return f"""
    func.func @main(%a: {ta}, %b: {tb}{f", %start: {tc}" if accumulate else ""}) -> {tc} {{
      {"" if accumulate else start}
      %r = linalg.contract indexing_maps = [{maps}] {attribute} ins(%a, %b : {ta}, {tb}) outs(%start : {tc}) -> {tc}
      return %r : {tc}
    }}"""


def random(shape: tuple[int, ...], dtype: np.dtype, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def contract(
    spec: str,
    sizes: str,
    dtype: str = "float32",
    out_dtype: str | None = None,
    passes: str | None = None,
    accumulate: bool = False,
    schedule: str = "",
    kernel: str | None = None,
) -> None:
    """Compile an einsum of two operands and compare; `sizes` are those of its letters, in order of appearance."""
    kind = np.dtype(bfloat16() if dtype == "bfloat16" else dtype)
    out_kind = np.dtype(bfloat16() if out_dtype == "bfloat16" else out_dtype or kind)
    letters = sorted(set(spec) - set(",->"), key=spec.index)
    size = dict(zip(letters, map(int, sizes.split()), strict=True))
    operands, target = spec.split("->")
    shapes = [tuple(size[letter] for letter in part) for part in [*operands.split(","), target]]
    a, b, start = random(shapes[0], kind, 1), random(shapes[1], kind, 2), random(shapes[2], out_kind, 3)
    text = module_text(spec, a, b, start, accumulate, schedule)
    out = run(text, [a, b, start] if accumulate else [a, b], start, passes or options(), kernel)
    check(spec, a, b, out, start if accumulate else None)


def check(spec: str, a: Array, b: Array, out: Array, start: Array | None) -> None:
    """Integers agree modulo their width; floats within what sums of their length lose."""
    if out.dtype.kind in "iu":
        want = np.einsum(spec, a.astype(np.int64), b.astype(np.int64))
        want = want + (0 if start is None else start.astype(np.int64))
        np.testing.assert_array_equal(out, want.astype(out.dtype))
        return
    narrow = a.dtype.kind == out.dtype.kind == "f" and a.dtype.itemsize > out.dtype.itemsize
    wide = [x.astype(out.dtype if narrow else x.dtype).astype(np.float64) for x in (a, b)]
    want = np.einsum(spec, *wide) + (0 if start is None else start.astype(np.float64))
    scale = np.einsum(spec, *map(np.abs, wide)) + (0 if start is None else np.abs(start.astype(np.float64)))
    epsilon = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11}.get(out.dtype.name, 2.0**-8)
    chain = 8 if out.dtype.itemsize > 2 else 1.01
    assert out.shape == want.shape
    assert (np.abs(out.astype(np.float64) - want) <= chain * epsilon * scale).all()


MATMULS = ["mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->mn", "mk,kn->nm", "mk,nk->nm", "km,kn->nm", "km,nk->nm"]


@pytest.mark.parametrize("spec", MATMULS)
@pytest.mark.parametrize("sizes", ["5 7 11", "64 48 40", "37 400 53"])
def test_matrices_in_every_layout(spec: str, sizes: str) -> None:
    contract(spec, sizes)


@pytest.mark.parametrize("kernel", ["packed", "direct"])
@pytest.mark.parametrize("bits", LEVELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_register_tiles_of_every_width(kernel: str, bits: int, dtype: str) -> None:
    contract("mk,kn->mn", "37 41 53", dtype, passes=options(bits), schedule=f'{{kernel = "{kernel}"}}', kernel=kernel)


@pytest.mark.parametrize("bits", LEVELS)
@pytest.mark.parametrize("m", [1, 11, 13, 25])
@pytest.mark.parametrize("n", [1, 47, 49])
def test_packed_tiles_end_anywhere(bits: int, m: int, n: int) -> None:
    contract("mk,kn->mn", f"{m} 33 {n}", passes=options(bits), schedule='{kernel = "packed"}', kernel="packed")


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    spec=st.sampled_from(MATMULS),
    sizes=st.tuples(st.integers(1, 80), st.integers(1, 90), st.integers(1, 120)),
    kernel=st.sampled_from(["packed", "direct", ""]),
    bits=st.sampled_from(list(LEVELS)),
    accumulate=st.booleans(),
)
def test_any_sizes(spec: str, sizes: tuple[int, int, int], kernel: str, bits: int, accumulate: bool) -> None:
    passes = f"{options(bits)} kernel={kernel}" if kernel else options(bits)
    contract(spec, " ".join(map(str, sizes)), passes=passes, accumulate=accumulate)


def test_long_sums_are_cut_into_blocks() -> None:
    for schedule in ('{kernel = "packed"}', '{kernel = "packed", kc = 500}', '{kernel = "packed", kc = 96, mc = 16}'):
        contract("mk,kn->mn", "30 1700 50", schedule=schedule, kernel="packed")


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ("100 48 400", "_copy_f32_exact("),  # columns end inside of a panel
        ("100 48 384", "_copy_f32_exact_whole"),
        ("97 55 384", "_copy_f32_whole"),  # rounds of k are left behind the last turn
        ("130 1 500", ""),  # too few rounds for a turn
        ("770 50 390", ""),  # so many rows that packing apart costs little
        ("520 801 384", "_copy_f32"),  # three blocks in a sum, and many tiles
        ("200 3000 400", "_copy_f32"),  # out is visited for two blocks of k
    ],
)
@pytest.mark.parametrize("parallel", [False, True])
def test_panels_are_copied_while_tiles_multiply(sizes: str, name: str, parallel: bool) -> None:
    m, k, n = map(int, sizes.split())
    a, b = random((m, k), np.dtype(np.float32), 1), random((k, n), np.dtype(np.float32), 2)
    out = np.empty((m, n), np.float32)
    text = module_text("mk,kn->mn", a, b, out)
    passes = f"{options(parallel=parallel)} kernel=packed"
    module = parse(text)
    pipeline(passes).run(module, stop_after="schedule")
    assert ("_copy_" in str(module)) == bool(name)
    assert name in str(module)
    check("mk,kn->mn", a, b, run(text, [a, b], out, passes), None)


@pytest.mark.parametrize(("dtype", "packs"), [("f8", False), ("f4", True)])
@pytest.mark.parametrize(("m", "k", "n"), [(516, 530, 517), (130, 5200, 640)])
@pytest.mark.parametrize("parallel", [False, True])
def test_big_products_of_f64_read_rows_in_place(
    m: int, k: int, n: int, dtype: str, packs: bool, parallel: bool
) -> None:  # fmt: skip
    a, b = random((m, k), np.dtype(dtype), 1), random((k, n), np.dtype(dtype), 2)
    out = np.empty((m, n), dtype)
    text, passes = module_text("mk,kn->mn", a, b, out), options(parallel=parallel)
    module = parse(text)
    pipeline(passes).run(module, stop_after="schedule")
    assert ("contract_pack_squares" in str(module)) == packs
    check("mk,kn->mn", a, b, run(text, [a, b], out, passes), None)


def test_negative_zeros_add_up_as_in_numpy() -> None:
    a, b = np.full((40, 40), -0.0, np.float32), np.ones((40, 40), np.float32)
    for kernel in ("packed", "direct"):
        text = module_text("mk,kn->mn", a, b, a, schedule=f'{{kernel = "{kernel}"}}')
        out = run(text, [a, b], a, options(), kernel)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(a @ b))


@pytest.mark.parametrize("m", [1, 2, 3, 13, 64])
@pytest.mark.parametrize("k", [1, 2, 17, 100])
@pytest.mark.parametrize("n", [1, 2, 3, 16, 31])
def test_small_sizes(m: int, k: int, n: int) -> None:
    contract("mk,kn->mn", f"{m} {k} {n}")
    contract("mk,nk->mn", f"{m} {k} {n}")


@pytest.mark.parametrize(("spec", "sizes"), [("mk,kn->mn", "0 4 5"), ("k,k->", "0"), ("k,km->m", "0 5")])
def test_no_elements_give_zeros(spec: str, sizes: str) -> None:
    contract(spec, sizes)


@pytest.mark.parametrize("spec", MATMULS)
def test_results_are_added_to_out(spec: str) -> None:
    contract(spec, "19 450 23", accumulate=True)


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ("bmk,bkn->bmn", "3 17 20 9"),
        ("bhmd,bhnd->bhmn", "2 3 9 16 21"),
        ("bmhd,bnhd->bhmn", "2 9 3 16 21"),
        ("bhmn,bnhd->bmhd", "2 3 9 21 16"),
        ("bsd,df->bsf", "4 9 33 24"),
        ("sbd,df->bsf", "4 9 33 24"),
        ("bsd,bsf->df", "4 9 33 24"),
        ("bhsd,hdf->bsf", "2 3 5 20 24"),
        ("ack,kb->abc", "5 6 7 8"),
        ("amb,nba->mn", "4 19 6 18"),
        ("ncij,oc->noij", "2 12 5 7 10"),
        ("bk,bk->b", "70 33"),
        ("kb,kb->b", "33 70"),
        ("kl,kl->", "19 40"),
        ("abmk,kan->bman", "3 2 10 40 33"),
    ],
)
def test_any_number_of_batch_row_column_and_sum_dims(spec: str, sizes: str) -> None:
    contract(spec, sizes)
    contract(spec, sizes, accumulate=True)


@pytest.mark.parametrize(
    ("spec", "sizes"), [("mk,k->m", "65 70"), ("k,kn->n", "70 65"), ("k,k->", "1001"), ("k,k->", "3")]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64"])
def test_vectors(spec: str, sizes: str, dtype: str) -> None:
    contract(spec, sizes, dtype)
    contract(spec, sizes, dtype, accumulate=True)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6, 8])
def test_few_rows_keep_sums_along_k(m: int) -> None:
    contract("mk,nk->mn", f"{m} 70 37", kernel="dot")
    contract("nk,mk->nm", f"37 70 {m}", kernel="dot")
    contract("nk,km->nm", f"37 70 {m}", kernel="dot")
    contract("mk,nk->nm", f"{m} 70 37", kernel="dot")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("k", [1024, 1157, 2063])
def test_few_long_rows_are_multiplied_by_blocks_of_k(k: int, dtype: str) -> None:
    for few in (5, 8):
        contract("mk,nk->mn", f"{few} {k} 37", dtype, kernel="dot")
        contract("nk,km->nm", f"37 {k} {few}", dtype, kernel="dot")
        contract("nk,km->nm", f"37 {k} {few}", dtype, kernel="dot", accumulate=True)
        contract("bnk,bkm->bnm", f"3 13 {k} {few}", dtype, kernel="dot")


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("bits", LEVELS)
def test_few_rows_stay_in_cache_while_the_matrix_passes(m: int, bits: int) -> None:
    small_caches = f"processor={LEVELS[bits]},l2=1K,cores=1"
    contract("mk,kn->mn", f"{m} 43 301", passes=small_caches, kernel="stream")
    contract("mk,kn->mn", f"{m} 43 301", passes=small_caches, kernel="stream", accumulate=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("spec", MATMULS[:4])
def test_other_element_types(dtype: str, spec: str) -> None:
    contract(spec, "37 70 53", dtype)


@pytest.mark.parametrize(
    ("dtype", "out_dtype"),
    [
        ("int8", "int32"),
        ("int8", "int64"),
        ("int16", "int32"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float64"),
        ("float64", "float32"),
        ("float32", "float16"),
    ],
)
@pytest.mark.parametrize("sizes", ["37 70 53", "1 70 53", "8 5 6"])
def test_operands_are_converted_to_the_type_of_out(dtype: str, out_dtype: str, sizes: str) -> None:
    contract("mk,kn->mn", sizes, dtype, out_dtype)
    contract("mk,kn->mn", sizes, dtype, out_dtype, accumulate=True)


def test_unsigned_operands_are_extended_with_zeros() -> None:
    a, b = random((9, 20), np.dtype(np.uint8), 1), random((20, 17), np.dtype(np.uint8), 2)
    text = """
    func.func @main(%a: tensor<9x20xi8>, %b: tensor<20x17xi8>) -> tensor<9x17xi32> {
      %zero = arith.constant 0 : i32
      %empty = tensor.empty() : tensor<9x17xi32>
      %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<9x17xi32>) -> tensor<9x17xi32>
      %r = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>}
        ins(%a, %b : tensor<9x20xi8>, tensor<20x17xi8>) outs(%start : tensor<9x17xi32>) -> tensor<9x17xi32>
      return %r : tensor<9x17xi32>
    }"""
    out = run(text, [a, b], np.empty((9, 17), np.int32), options(), "contract_")
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("matmul", "9x20 20x17 9x17"),
        ("batch_matmul", "3x9x20 3x20x17 3x9x17"),
        ("batch_reduce_matmul", "3x9x20 3x20x17 9x17"),
        ("matvec", "9x20 20 9"),
        ("vecmat", "20 20x9 9"),
        ("batch_matvec", "3x9x20 3x20 3x9"),
        ("batch_vecmat", "3x20 3x20x9 3x9"),
        ("dot", "20 20 "),
    ],
)
def test_named_operations(op: str, shapes: str) -> None:
    specs = {
        "matmul": "mk,kn->mn",
        "batch_matmul": "bmk,bkn->bmn",
        "batch_reduce_matmul": "bmk,bkn->mn",
        "matvec": "mk,k->m",
        "vecmat": "k,kn->n",
        "batch_matvec": "bmk,bk->bm",
        "batch_vecmat": "bk,bkn->bn",
        "dot": "k,k->",
    }
    sizes = [tuple(int(n) for n in shape.split("x") if n) for shape in shapes.split(" ")]
    a, b, start = (random(shape, np.dtype(np.float32), seed) for seed, shape in enumerate(sizes))
    ta, tb, tc = (tensor_type(x.shape, x.dtype) for x in (a, b, start))
    text = f"""
    func.func @main(%a: {ta}, %b: {tb}, %c: {tc}) -> {tc} {{
      %r = linalg.{op} ins(%a, %b : {ta}, {tb}) outs(%c : {tc}) -> {tc}
      return %r : {tc}
    }}"""
    check(specs[op], a, b, run(text, [a, b, start], start, options(), "contract_"), start)


@pytest.mark.parametrize(
    ("spec", "sizes", "schedule"),
    [
        ("mk,kn->mn", "200 150 170", '{kernel = "packed", parallel = "rows", chunks = 5, mc = 24}'),
        ("mk,kn->mn", "200 500 170", '{kernel = "packed", parallel = "rows", chunks = 64, mc = 12, nc = 96}'),
        ("mk,kn->mn", "20 450 700", '{kernel = "packed", parallel = "columns", mc = 24}'),
        ("mk,kn->mn", "20 450 700", '{kernel = "direct", parallel = "columns", mc = 24}'),
        ("mk,kn->mn", "200 150 170", '{kernel = "direct", parallel = "rows", chunks = 7, mc = 24}'),
        ("bmk,bkn->bmn", "37 20 30 40", '{kernel = "packed", parallel = "outer", chunks = 5}'),
        ("bhmk,bhnk->bhmn", "5 7 20 30 40", '{parallel = "outer", chunks = 8}'),
        ("bsd,bdf->bsf", "3 70 40 50", '{kernel = "packed", parallel = "rows", chunks = 4, mc = 12}'),
        ("sbd,df->bsf", "6 50 40 50", '{kernel = "packed", parallel = "rows", chunks = 7, mc = 12}'),
        ("mk,k->m", "333 70", '{parallel = "rows"}'),
        ("nk,kf->nf", "333 70 3", '{kernel = "dot", parallel = "rows"}'),
        ("bk,bkn->bn", "9 70 300", '{kernel = "stream", parallel = "outer", chunks = 2}'),
        ("k,kn->n", "70 1000", '{kernel = "stream", parallel = "columns", nc = 96}'),
    ],
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_parallel_loops_share_nothing(spec: str, sizes: str, schedule: str, accumulate: bool) -> None:
    contract(spec, sizes, schedule=schedule, accumulate=accumulate)


def test_big_contractions_are_split_by_themselves() -> None:
    contract("mk,kn->mn", "401 403 409", passes=options(parallel=True), kernel="parallel")
    contract("bmk,bkn->bmn", "40 64 64 64", passes=options(parallel=True), kernel="parallel")


def test_slices_at_places_known_at_run_time() -> None:
    steps, rows, width = 5, 6, 20
    x, w = random((steps, rows, width), np.dtype(np.float32), 1), random((width, width), np.dtype(np.float32), 2)
    text = f"""
    func.func @main(%x: tensor<{steps}x{rows}x{width}xf32>, %w: tensor<{width}x{width}xf32>)
        -> tensor<{rows}x{width}xf32> {{
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {steps} : index
      %empty = tensor.empty() : tensor<{rows}x{width}xf32>
      %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<{rows}x{width}xf32>) -> tensor<{rows}x{width}xf32>
      %r = scf.for %t = %c0 to %n step %c1 iter_args(%h = %start) -> (tensor<{rows}x{width}xf32>) {{
        %xt = tensor.extract_slice %x[%t, 0, 0] [1, {rows}, {width}] [1, 1, 1]
          : tensor<{steps}x{rows}x{width}xf32> to tensor<{rows}x{width}xf32>
        %next = linalg.matmul ins(%xt, %w : tensor<{rows}x{width}xf32>, tensor<{width}x{width}xf32>)
          outs(%h : tensor<{rows}x{width}xf32>) -> tensor<{rows}x{width}xf32>
        scf.yield %next : tensor<{rows}x{width}xf32>
      }}
      return %r : tensor<{rows}x{width}xf32>
    }}"""
    out = run(text, [x, w], np.empty((rows, width), np.float32), options(), "contract_direct")
    want = np.einsum("tmk,kn->mn", x.astype(np.float64), w.astype(np.float64))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def test_long_sums_are_as_accurate_as_numpy() -> None:
    a, b = random((64, 4000), np.dtype(np.float32), 1), random((4000, 64), np.dtype(np.float32), 2)
    result = np.empty((64, 64), np.float32)
    out = run(module_text("mk,kn->mn", a, b, result), [a, b], result, options())
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.sqrt(np.mean((out - exact) ** 2)) <= 1.5 * np.sqrt(np.mean((a @ b - exact) ** 2))


def symmetric_text(spec: str, a: Array, out: Array, accumulate: bool = False) -> str:
    """@main with a contraction of an array with itself."""
    return module_text(spec, a, a, out, accumulate).replace("%b)", "%a)").replace("ins(%a, %b", "ins(%a, %a")


@pytest.mark.parametrize("spec", ["ik,jk->ij", "ik,jk->ji", "ki,kj->ij", "bik,bjk->bij", "ibk,jbk->ibj"])
@pytest.mark.parametrize(("sizes", "parallel"), [("96 48", False), ("131 17", False), ("200 700", True)])
@pytest.mark.parametrize("bits", LEVELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_with_the_transpose_is_symmetric(
    spec: str, sizes: str, bits: int, dtype: str, parallel: bool
) -> None:
    n, k = map(int, sizes.split())
    size = {"i": n, "j": n, "k": k, "b": 3}
    shape = tuple(size[letter] for letter in spec.split(",")[0])
    a = random(shape, np.dtype(dtype), 1)
    want = np.einsum(spec, a.astype(np.float64), a.astype(np.float64))
    result = np.empty(want.shape, dtype)
    text = symmetric_text(spec, a, result)
    out = run(text, [a, a], result, options(bits, parallel), "contract_symmetric")
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-3 if dtype == "float32" else 1e-10)
    assert np.array_equal(
        out, np.einsum("bij->bji" if spec[0] == "b" else "ibj->jbi" if "b" in spec else "ij->ji", out)
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int64"])
def test_symmetric_products_of_other_types(dtype: str) -> None:
    a = random((100, 150), np.dtype(bfloat16() if dtype == "bfloat16" else dtype), 1)
    result = np.empty((100, 100), a.dtype)
    out = run(symmetric_text("ik,jk->ij", a, result), [a, a], result, "processor=avx2", "symmetric")
    check("ik,jk->ij", a, a, out, None)


def test_a_symmetric_product_is_not_added_to_what_is_not() -> None:
    a, start = random((100, 60), np.dtype(np.float64), 1), random((100, 100), np.dtype(np.float64), 2)
    text = module_text("ik,jk->ij", a, a, start, True).replace("ins(%a, %b", "ins(%a, %a")
    out = run(text, [a, a, start], start, options())
    np.testing.assert_allclose(out, a @ a.T + start, rtol=1e-10)


@pytest.mark.parametrize("shape", [(100, 1000), (300, 200), (700, 65)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_a_matrix_times_its_transpose_is_computed_once(shape: tuple[int, int], dtype: Any) -> None:
    x = (np.random.default_rng(0).normal(size=shape) * 4).astype(dtype)
    rows = ml.compile(lambda x: x @ x.T)
    found = rows(x)
    np.testing.assert_allclose(found, x @ x.T, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-2)
    assert np.array_equal(found, found.T)
    turned = ml.compile(lambda x: 2 * (x @ x.T) + 1)
    np.testing.assert_allclose(turned(np.ascontiguousarray(x.T).T), 2 * (x @ x.T) + 1, rtol=1e-3, atol=1e-2)
    columns = ml.compile(lambda x: np.einsum("ki,kj->ji", x, x))
    np.testing.assert_allclose(columns(np.ascontiguousarray(x.T)), x @ x.T, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("shape", [(100, 70), (131, 700)])
def test_symmetric_kernels_compute_what_is_around_the_product(shape: tuple[int, int]) -> None:
    x, weights = np.random.default_rng(0).normal(size=shape), np.arange(shape[0], dtype=np.float64)

    def centred(x: Array) -> Array:
        return np.cov(x)

    def by_columns(x: Array, w: Array) -> Array:  # what follows is not symmetric
        return (2 * x) @ (2 * x).T * w - w[:, None]

    def both(x: Array) -> tuple[Array, Array]:
        product = x @ x.T
        return product, np.exp(product / 1000)

    np.testing.assert_allclose(ml.compile(centred)(x), np.cov(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ml.compile(by_columns)(x, weights), by_columns(x, weights), rtol=1e-9, atol=1e-9)
    for found, want in zip(ml.compile(both)(x), both(x), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)
