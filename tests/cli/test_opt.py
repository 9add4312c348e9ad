"""`mlirml-opt` in this process; how it behaves as a program is in lit_tests/opt."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirml.cli.opt.flags import GROUPS, help_text, read_arguments
from mlirml.cli.opt.main import main
from mlirml.cli.opt.verify_diagnostics import Diagnostic, check, expected_in
from mlirml.dialects.legality import STAGES
from mlirml.errors import PipelineError
from mlirml.ir.bindings import parse, to_text
from mlirml.passes import REGISTRY, parse_pipeline
from mlirml.passes.files import load_passes
from mlirml.targets.registry import get_target, target_names

ROWS = """
#rows = affine_map<(i, j) -> (i, j)>
#sums = affine_map<(i, j) -> (i)>
func.func @main(%a: tensor<5x7xf32>, %b: tensor<7x3xf32>) -> (tensor<5xf32>, tensor<5x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<5x7xf32>) outs(%init : tensor<5xf32>) {
  ^body(%x: f32, %acc: f32):
    %e = math.exp %x : f32
    %s = arith.addf %acc, %e : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %other = tensor.empty() : tensor<5x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%other : tensor<5x3xf32>) -> tensor<5x3xf32>
  %product = linalg.matmul ins(%a, %b : tensor<5x7xf32>, tensor<7x3xf32>)
      outs(%start : tensor<5x3xf32>) -> tensor<5x3xf32>
  return %sum, %product : tensor<5xf32>, tensor<5x3xf32>
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.mlir"
    path.write_text(ROWS)
    return path


@pytest.mark.parametrize("name", target_names())
def test_the_printed_pipeline_of_a_target_parses_back_to_an_equal_one(name: str) -> None:
    pipeline = get_target(name).pipeline
    assert parse_pipeline(str(pipeline)) == pipeline


@pytest.mark.parametrize("name", target_names())
def test_the_printed_pipeline_fed_back_gives_the_same_module(
    name: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = parse(ROWS)
    get_target(name).pipeline.run(module)
    assert main([f"--target={name}", "--print-pipeline"]) == 0
    printed = capsys.readouterr().out.strip()
    assert main([str(source), f"--pass-pipeline={printed}"]) == 0
    by_text = capsys.readouterr().out
    assert main([str(source), f"--target={name}"]) == 0
    # The lines that kernels come from are told with the name of the file.
    assert by_text == capsys.readouterr().out == to_text(module).replace('"-:', f'"{source}:')


@pytest.mark.parametrize("name", target_names())
def test_the_same_module_comes_out_twice(name: str) -> None:
    first, second = parse(ROWS), parse(ROWS)
    for module in (first, second):
        get_target(name).pipeline.run(module)
    assert to_text(first, locations=True) == to_text(second, locations=True)


def test_the_stages_of_a_target_come_in_order() -> None:
    for name in target_names():
        names = [stage.name for stage in get_target(name).pipeline.stages]
        assert names == sorted(names, key=list(STAGES).index)


@pytest.mark.parametrize("stage", ["optimize", "schedule", "lower"])
def test_stop_after_ends_with_the_stage(stage: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = parse(ROWS)
    get_target("cpu").pipeline.run(module, stop_after=stage)
    assert main([str(source), "--target=cpu", f"--stop-after={stage}"]) == 0
    assert capsys.readouterr().out == to_text(module)


def test_every_registered_pass_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    load_passes()
    assert main(["--list-passes"]) == 0
    listed = {line[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("--")}
    assert listed == set(REGISTRY)


def test_every_flag_is_in_the_help() -> None:
    for flags in GROUPS.values():
        for flag in flags:
            assert flag.help in help_text()


def test_flags_are_read_in_every_form() -> None:
    options = read_arguments(["-", "-o", "out.mlir", "--cse", "-canonicalize=a=1 b=2", "--mlirml-x{c=3}", "--timing"])
    assert options.passes == ["cse", "canonicalize{a=1 b=2}", "mlirml-x{c=3}"]
    assert options.flags == {"o": "out.mlir", "timing": ""}
    assert options.input == "-"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target"], "--target takes a value: --target=NAME"),
        (["--timing=yes"], "--timing takes no value"),
        (["a.mlir", "b.mlir"], "one input file, not 2: a.mlir, b.mlir"),
        (["--target=cpu", "--cse"], "--target and passes as flags cannot be given together"),
        (["--emit=cobol"], "--emit=cobol: there is no such output"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments: list[str], message: str) -> None:
    with pytest.raises(PipelineError) as caught:
        read_arguments(arguments)
    assert caught.value.message == message


def test_an_unknown_target_is_an_error(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(source), "--target=cpuu"]) == 1
    assert "mlirml.TargetError: there is no target 'cpuu'" in capsys.readouterr().err


def test_each_part_of_a_split_input_has_its_dumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.mlir"
    path.write_text("func.func private @a()\n// -----\nfunc.func private @b()\n")
    assert main([str(path), "--split-input-file", "--cse", f"--dump-dir={tmp_path / 'dumps'}"]) == 0
    assert "@a" in (tmp_path / "dumps" / "part0" / "001_cse.mlir").read_text()
    assert "@b" in (tmp_path / "dumps" / "part1" / "001_cse.mlir").read_text()
    assert capsys.readouterr().out.count("// -----") == 1


def test_an_input_that_is_no_text_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "object.o"
    path.write_bytes(b"\x7fELF\xff")
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == "mlirml.ParseError: the input is not UTF-8 text: byte 4 is 0xff\n"


def test_expectations_are_read() -> None:
    text = "\n".join(
        [
            "// expected-error@+2 {{first}}",
            "// expected-note@below {{second}}",
            "op",
            "// expected-error-re@above {{n = {{[0-9]+}}!}}",
            "op // expected-remark {{third {{x}}}}",
            "// expected-warning@unknown {{fifth}}",
        ]
    )
    found = [(e.severity, e.line, e.text, e.regex) for e in expected_in(text)]
    assert found == [
        ("error", 3, "first", False),
        ("note", 3, "second", False),
        ("error", 3, "n = {{[0-9]+}}!", True),
        ("remark", 5, "third {{x}}", False),
        ("warning", 0, "fifth", False),
    ]


def test_complaints_name_both_sides() -> None:
    text = "// expected-error@+1 {{too large}}\nop\n"
    assert check(text, [Diagnostic("error", 2, "it is too large")], "f.mlir") == []
    assert check(text, [Diagnostic("error", 3, "it is too large")], "f.mlir") == [
        "f.mlir:3: unexpected error: it is too large",
        'f.mlir:1: expected error "too large" was not reported',
    ]
    assert check("", [Diagnostic("remark", 1, "by the way"), Diagnostic("note", 1, "n")], "f.mlir") == []
    assert check("", [Diagnostic("remark", 1, "by the way")], "f.mlir", only_expected_remarks=False) == [
        "f.mlir:1: unexpected remark: by the way"
    ]
