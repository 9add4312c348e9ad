"""The whole CPU pipeline, run: random programs against the interpreter, sizes, element types, threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings

from mlirml.core.config import config
from mlirml.interpreter.interpreter import interpret
from mlirml.ir.bindings import parse
from mlirml.ir.text.dtypes import mlir_name
from mlirml.runtime import _native
from mlirml.runtime.artifact import Artifact, Buffer
from mlirml.targets.cpu import cpu_target, to_assembly
from mlirml.targets.machine import named
from tests.pipelines.programs import Array, Program, programs
from tests.targets.native import compiled, run


@settings(max_examples=25, deadline=None)
@given(program=programs(sizes=(1, 3, 17), max_ops=6))
def test_random_programs(program: Program) -> None:
    inputs = program.random_inputs()
    expected = interpret(parse(program.text()), inputs)
    for new, old in zip(run(program.text(), inputs, expected), expected, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-9)


def sum_text(shape: tuple[int, ...], kept: tuple[int, ...], kind: str = "f32", combiner: str = "arith.addf") -> str:
    """Reduce the loops that are not `kept`."""
    loops = ", ".join(f"d{k}" for k in range(len(shape)))
    out = ", ".join(f"d{k}" for k in kept)
    kinds = ", ".join('"parallel"' if k in kept else '"reduction"' for k in range(len(shape)))
    source = "tensor<" + "".join(f"{n}x" for n in shape) + f"{kind}>"
    target = "tensor<" + "".join(f"{shape[k]}x" for k in kept) + f"{kind}>"
    zero = "0.0" if "f" in kind else "0"
    return f"""func.func @main(%x: {source}) -> {target} {{
      %z = arith.constant {zero} : {kind}
      %e = tensor.empty() : {target}
      %f = linalg.fill ins(%z : {kind}) outs(%e : {target}) -> {target}
      %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({out})>],
          iterator_types = [{kinds}]}} ins(%x : {source}) outs(%f : {target}) {{
      ^bb0(%a: {kind}, %o: {kind}):
        %s = {combiner} %o, %a : {kind}
        linalg.yield %s : {kind}
      }} -> {target}
      return %r : {target}
    }}"""


SHAPES = [
    ((3_000_000,), ()),
    ((1000, 1003), (0,)),
    ((1000, 1003), (1,)),
    ((1000, 1003), ()),
    ((70_000, 16), (0,)),
    ((70_000, 16), (1,)),
    ((300_000, 3), (1,)),
    ((64, 100, 130), (1,)),
    ((64, 100, 130), (0, 2)),
    ((64, 100, 130), (2,)),
    ((5, 0, 7), (0, 2)),
    ((5, 0, 7), (1,)),
    ((1,), ()),
    ((), ()),
]


@pytest.mark.parametrize(("shape", "kept"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_as_exact_as_pairwise_ones(shape: tuple[int, ...], kept: tuple[int, ...], dtype: type) -> None:
    x = np.random.default_rng(0).random(shape).astype(dtype)
    axes = tuple(k for k in range(len(shape)) if k not in kept)
    exact = x.astype(np.longdouble).sum(axes)
    (got,) = run(sum_text(shape, kept, mlir_name(x.dtype)), [x], [np.asarray(exact.astype(dtype))])
    if x.size:
        error, numpys = (np.max(np.abs(r - exact) / np.maximum(exact, 1)) for r in (got, x.sum(axes)))
        assert error <= max(2 * numpys, 8 * np.finfo(dtype).eps)  # 128-bit vectors: few partial sums a block
    assert got.shape == exact.shape


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = _native.get_threads()
    _native.set_threads(request.param)
    yield request.param
    _native.set_threads(before)


EXPECTED: dict[str, bytes] = {}


@pytest.mark.parametrize(("shape", "kept"), [((3_000_000,), ()), ((70_000, 16), (1,)), ((1000, 1003), (1,))])
def test_sums_do_not_depend_on_the_number_of_threads(
    threads: int, shape: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    out = np.empty([shape[k] for k in kept], np.float32)
    (got,) = run(sum_text(shape, kept), [x], [out])
    assert EXPECTED.setdefault(str((shape, kept)), got.tobytes()) == got.tobytes()


def unary_text(shape: tuple[int, ...], order: tuple[int, ...], body: str, source: str, target: str) -> str:
    """`body` makes %r of %a, an empty one copies; the result's dimension k is the input's dimension order[k]."""
    loops = ", ".join(f"d{k}" for k in range(len(shape)))
    out = ", ".join(f"d{k}" for k in order)
    kinds = ", ".join(['"parallel"'] * len(shape))
    x = "tensor<" + "".join(f"{n}x" for n in shape) + f"{source}>"
    y = "tensor<" + "".join(f"{shape[k]}x" for k in order) + f"{target}>"
    return f"""func.func @main(%x: {x}) -> {y} {{
      %e = tensor.empty() : {y}
      %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({out})>],
          iterator_types = [{kinds}]}} ins(%x : {x}) outs(%e : {y}) {{
      ^bb0(%a: {source}, %o: {target}):
        {body}
        linalg.yield {"%r" if body else "%a"} : {target}
      }} -> {y}
      return %r : {y}
    }}"""


@pytest.mark.parametrize("name", ["f16", "f32", "f64", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("shape", [(40, 50), (16, 16), (5, 7), (3, 200), (200, 3), (70, 65), (1, 9)])
def test_transposes(name: str, shape: tuple[int, int]) -> None:
    dtype = np.dtype({"f": "float", "i": "int"}[name[0]] + name[1:])
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(dtype)
    add = "arith.addf" if name[0] == "f" else "arith.addi"
    for body, factor in ((f"%r = {add} %a, %a : {name}", 2), ("", 1)):
        (got,) = run(unary_text(shape, (1, 0), body, name, name), [x], [x.T])
        np.testing.assert_array_equal(got, x.T * dtype.type(factor))


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_transposes_of_four_dimensions(order: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((4, 20, 17, 33)).astype(np.float32)
    text = unary_text(x.shape, order, "%r = arith.negf %a : f32", "f32", "f32")
    (got,) = run(text, [x], [x.transpose(order)])
    np.testing.assert_array_equal(got, -x.transpose(order))


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 100_003])
def test_a_bool_result_is_a_byte(size: int) -> None:
    body = "%z = arith.constant 0.0 : f32\n%r = arith.cmpf ogt, %a, %z : f32"
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    (got,) = run(unary_text((size,), (0,), body, "f32", "i1"), [x], [x > 0])
    np.testing.assert_array_equal(got, x > 0)


@pytest.mark.parametrize(
    "text",
    [
        unary_text((100_000,), (0,), "%r = arith.mulf %a, %a : f32", "f32", "f32"),
        unary_text((100_000,), (0,), "%r = math.exp %a : f32", "f32", "f32"),
        unary_text((300, 300), (1, 0), "%r = arith.mulf %a, %a : f32", "f32", "f32"),
        sum_text((1000, 1000), (0,)),
        sum_text((1000, 1000), (1,)),
        sum_text((1000, 1000), (1,), combiner="arith.maximumf"),
        sum_text((1000, 1000), (0,), combiner="arith.maximumf"),
        sum_text((1_000_000,), (), "i32", "arith.addi"),
    ],
    ids=["product", "exp", "transpose", "sum 1", "sum 0", "max 0", "max 1", "integer sum"],
)
@pytest.mark.parametrize("level, register", [("avx512", "zmm"), ("avx2", "ymm"), ("sse4.1", "xmm")])
def test_inner_loops_are_vectorised(text: str, level: str, register: str) -> None:
    with config.override(processor=level):
        assert register in to_assembly(compiled(text), named(level))


def test_nothing_small_runs_in_parallel() -> None:
    text = unary_text((1000,), (0,), "%r = math.exp %a : f32", "f32", "f32")
    assert "mlirml_parallel_for" not in str(compiled(text))
    assert "mlirml_parallel_for" in str(compiled(text.replace("1000x", "10000000x")))


def test_the_record_needs_no_mlir_and_tells_the_pipeline() -> None:
    names = [name for name, _ in cpu_target().fingerprint()]
    assert names[0] == "target" and "pipeline.schedule" in names and "cpu.flags" in names
    assert str(cpu_target().pipeline).startswith("builtin.module(")


def test_artifacts_survive_bytes() -> None:
    artifact = Artifact(b"\x7fELF\n\n", "entry", (Buffer("f32", (2, 3)),), (Buffer("bool", ()),), 128)
    assert Artifact.from_bytes(artifact.to_bytes()) == artifact
    assert [b.nbytes for b in (*artifact.inputs, *artifact.outputs)] == [24, 1]
    with pytest.raises(ValueError, match="not a compiled mlirml program"):
        Artifact.from_bytes(b"something else")


def test_the_same_text_gives_the_same_object() -> None:
    text = sum_text((1000, 1003), (1,))
    inputs: list[Array] = [np.ones((1000, 1003), np.float32)]
    first = to_assembly(compiled(text))
    assert first == to_assembly(compiled(text))
    assert run(text, inputs, [np.empty(1003, np.float32)])[0][0] == 1000


SQUARE = """linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}} ins({0} : tensor<9xf64>) outs({1} : tensor<9xf64>) {{
      ^bb0(%in: f64, %out: f64):
        %p = arith.mulf %in, %in : f64
        linalg.yield %p : f64
      }} -> tensor<9xf64>"""


@pytest.mark.parametrize("first", [0.5, -0.5])
def test_buffers_of_branches_and_loops_are_kept_apart(first: float) -> None:
    text = f"""func.func @main(%x: tensor<9xf64>, %y: tensor<9xf64>) -> (tensor<9xf64>, tensor<9xf64>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f64
      %v = tensor.extract %x[%c0] : tensor<9xf64>
      %positive = arith.cmpf ogt, %v, %zero : f64
      %chosen = scf.if %positive -> (tensor<9xf64>) {{
        %e = tensor.empty() : tensor<9xf64>
        %a = {SQUARE.format("%x", "%e")}
        scf.yield %a : tensor<9xf64>
      }} else {{
        scf.yield %y : tensor<9xf64>
      }}
      %f = tensor.empty() : tensor<9xf64>
      %b = {SQUARE.format("%y", "%f")}
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %b) -> (tensor<9xf64>) {{
        %g = tensor.empty() : tensor<9xf64>
        %n = {SQUARE.format("%s", "%g")}
        scf.yield %n : tensor<9xf64>
      }}
      return %chosen, %r : tensor<9xf64>, tensor<9xf64>
    }}"""
    x, y = np.linspace(first, 1.5, 9), np.linspace(0.9, 1.1, 9)
    chosen, power = run(text, [x, y], [x, y])
    np.testing.assert_array_equal(chosen, x * x if first > 0 else y)
    np.testing.assert_allclose(power, y**16)
