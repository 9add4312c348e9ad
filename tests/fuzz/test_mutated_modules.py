"""Mutated modules and misordered passes give `mlirml-opt` a module or a diagnostic, no internal error and no crash.

`MLIRML_FUZZ=2000` runs so many other ones each time, and prints their seed; `MLIRML_FUZZ_SEED` takes it back.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mlirml.cli.opt.main import main
from tests.fuzz.fuzz_opt import ROOT, jobs, run

COUNT = int(os.environ.get("MLIRML_FUZZ", "0"))
SEED = int(os.environ.get("MLIRML_FUZZ_SEED", "0")) or (random.SystemRandom().randrange(1, 1 << 30) if COUNT else 1)


def test_mutated_modules() -> None:
    report = run(jobs(COUNT or 120, SEED))
    print(f"seed {SEED}: {report}")
    assert not report.failures, f"MLIRML_FUZZ_SEED={SEED}\n{report}"
    assert report.counts["ok"] > 0.2 * (COUNT or 120) and report.counts["diagnostic"] > 0.05 * (COUNT or 120)


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("func.func @other() { return }\n", ["--mlirml-bufferize"], "the module has no function @main"),
        ("func.func private @main()\n", ["--mlirml-swap-buffers"], "the function @main has no body"),
        ("", ["--target=cpu"], "the module has no function @main"),
        (
            "func.func @main(%x: memref<8xf32>) { return }\n",
            ["--target=vulkan"],
            "mlirml-bufferize is not made for this module: `func.func` has an argument of type memref<8xf32>",
        ),
        (
            "func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {\n"
            '  %0 = "mlirml.independent"(%x) {group = 0 : i8} : (tensor<4xf64>) -> tensor<4xf64>\n'
            "  return %0 : tensor<4xf64>\n}\n",
            ["--mlirml-bufferize"],
            "`mlirml.independent` is not removed yet: run mlirml-expand before",
        ),
        (
            "func.func @main(%x: i32) -> i32 { return %x : i32 }\n",
            ["--target=cpu"],
            "`func.func` has an argument of type i32, and @main takes arrays only",
        ),
        (
            "func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>, %c: tensor<i1>) -> tensor<4xf64> {\n"
            "  %go = tensor.extract %c[] : tensor<i1>\n"
            "  %r = scf.while (%a = %x, %b = %y) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64> {\n"
            "    scf.condition(%go) %b : tensor<4xf64>\n  } do {\n  ^bb0(%b: tensor<4xf64>):\n"
            "    scf.yield %b, %b : tensor<4xf64>, tensor<4xf64>\n  }\n"
            "  return %r : tensor<4xf64>\n}\n",
            ["--mlirml-bufferize"],
            "`scf.while` has its arrays at different positions in one of its regions: run mlirml-align-while before",
        ),
        (
            "func.func @main(%x: memref<3xf32>, %y: memref<3xf32>) {\n"
            '  "mlirml.sort"(%x, %y) : (memref<3xf32>, memref<3xf32>) -> ()\n  return\n}\n',
            ["--mlirml-lower-sort"],
            "`mlirml.sort` has no attribute `kind`",
        ),
        (
            "func.func @main(%x: memref<3xf32>, %y: memref<3xf32>) {\n"
            '  "mlirml.inverse"(%x, %y) {kind = "f32"} : (memref<3xf32>, memref<3xf32>) -> ()\n  return\n}\n',
            ["--mlirml-lower-library-calls"],
            "`mlirml.inverse`: an array has another number of dimensions than 3",
        ),
        (
            "func.func @main(%x: memref<2x3x3xf32>, %y: memref<2x9xf32>) {\n"
            '  "mlirml.eigh"(%x, %y) {kind = "f32", mode = 1} : (memref<2x3x3xf32>, memref<2x9xf32>) -> ()\n'
            "  return\n}\n",
            ["--mlirml-lower-library-calls"],
            "`mlirml.eigh`: the result has shape [2, 9], not [2, 13]",
        ),
        (
            "func.func @main(%xs: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8x4xf32> {\n"
            '  %b = "mlirml.vmap"(%y) {group = 0 : i64, size = 8 : i64} : (tensor<4xf32>) -> tensor<8x4xf32>\n'
            '  %x = "mlirml.unbatch"(%xs) {group = 0 : i64} : (tensor<8xf32>) -> f32\n'
            "  return %b : tensor<8x4xf32>\n}\n",
            ["--mlirml-expand"],
            "`mlirml.vmap` ends a request that begins after it, with `mlirml.unbatch`",
        ),
        (
            "func.func @main(%x: tensor<4xi64>, %i: tensor<i64>) -> tensor<4xi64> {\n"
            "  %c4 = arith.constant 4 : i64\n  %n = tensor.extract %i[] : tensor<i64>\n"
            "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
            "  scf.for %k = %c0 to %c1 step %c1 {\n    %ok = arith.cmpi ult, %n, %c4 : i64\n"
            '    cf.assert %ok, "0" {mlirml.check = 0 : i64, mlirml.check_base = f32}\n  }\n'
            "  return %x : tensor<4xi64>\n}\n",
            ["--mlirml-hoist-checks"],
            "`cf.assert` has `mlirml.check_base = f32`, which should be a Integer",
        ),
        (
            "#map = affine_map<(d0) -> (d0)>\nfunc.func @main(%t: tensor<i64>, %x: tensor<3xi64>) -> tensor<3xi64> {\n"
            "  %c = tensor.extract %t[] : tensor<i64>\n  %e = tensor.empty() : tensor<3xi64>\n"
            "  %0 = linalg.copy ins(%c : i64) outs(%e : tensor<3xi64>) -> tensor<3xi64>\n"
            '  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}\n'
            "      ins(%0 : tensor<3xi64>) outs(%x : tensor<3xi64>) {\n  ^bb0(%a: i64, %o: i64):\n"
            "    %s = arith.addi %a, %o : i64\n    linalg.yield %s : i64\n  } -> tensor<3xi64>\n"
            "  return %1 : tensor<3xi64>\n}\n",
            ["--mlirml-fuse=search=true"],
            "`linalg.copy` copies a i64, which is no array: write linalg.fill",
        ),
        ("func.func @main() { return }\n", ["--mlirml-lower-loops=processor=avx3"], "processor takes a processor"),
        (
            "func.func @main(%x: tensor<4xf64>, %e: f64) -> tensor<4xf64> {\n"
            "  %0 = tensor.pad %x low[-9223372036854775808] high[0] {\n"
            "  ^bb0(%i: index):\n    tensor.yield %e : f64\n  } : tensor<4xf64> to tensor<4xf64>\n"
            "  return %0 : tensor<4xf64>\n}\n",
            ["--canonicalize"],
            "`tensor.pad` has -9223372036854775808 for a size or an offset",
        ),
        (
            "func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> attributes {mlirml.writebacks = array<i128: 0>} {\n"
            "  return %x : tensor<4xf64>\n}\n",
            ["--mlirml-bufferize"],
            "has `mlirml.writebacks`, which should be a DenseI64Array",
        ),
    ],
)
def test_a_module_that_a_pass_does_not_take_is_explained(
    text: str, flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(text)
    assert main([str(path), *flags]) == 1
    said = capsys.readouterr().err
    assert message in said and "InternalError" not in said


def test_a_fused_operation_stands_after_the_number_that_it_is_filled_with(tmp_path: Path) -> None:
    text = """
#map = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %two = arith.constant 2.0 : f32
  %full = linalg.fill ins(%two : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%0, %full : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %by: f32, %out: f32):
    %p = arith.mulf %in, %by : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
    path, out = tmp_path / "module.mlir", tmp_path / "out.mlir"
    path.write_text(text)
    assert main([str(path), "--mlirml-fuse", "-o", str(out)]) == 0
    assert out.read_text().count("linalg.generic") == 1


def test_more_launches_than_a_number_of_64_bits_can_count(tmp_path: Path) -> None:
    text = """
#map = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<9000000xf32>) -> tensor<9000000xf32> {
  %least = arith.constant -9223372036854775808 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %least to %c8 step %c1 iter_args(%y = %x) -> (tensor<9000000xf32>) {
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %g = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<9000000xf32>) outs(%y : tensor<9000000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = math.sin %out : f32
      %t = arith.addf %s, %f : f32
      %u = arith.addf %t, %in : f32
      linalg.yield %u : f32
    } -> tensor<9000000xf32>
    scf.yield %g : tensor<9000000xf32>
  }
  return %r : tensor<9000000xf32>
}
"""
    path, out = tmp_path / "module.mlir", tmp_path / "out.mlir"
    path.write_text(text)
    assert main([str(path), "--target=cuda", "-o", str(out)]) == 0
    assert f"launches = {(1 << 63) - 1}" in out.read_text()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\xff\x00", "the input is not UTF-8 text: byte 4 is 0xff"),
        (b"func.func @main() {", "ParseError"),
        (b"\x00\x01", "ParseError"),
        (b'"no.such"() : () -> ()', "ParseError"),
        (b'"builtin.module"() ({\n' * 4000, "nested too deeply"),
    ],
)
def test_an_input_that_is_no_module_is_an_error(
    data: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "module.mlir"
    path.write_bytes(data)
    assert main([str(path), "--canonicalize"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("target", ["/dev/full", "/no/such/folder/out.mlir"])
def test_an_output_that_cannot_be_written_is_an_error(target: str) -> None:
    command = [sys.executable, "-m", "mlirml.cli.opt", "-", "-o", target]
    done = subprocess.run(command, input="", capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "Traceback" not in done.stderr and done.stderr.count("\n") == 1


def test_a_full_disk_behind_standard_output_is_an_error() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "mlirml.cli.opt", "-"]
        done = subprocess.run(command, input="", stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "No space left" in done.stderr


def test_a_folder_is_no_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "Is a directory" in capsys.readouterr().err
