"""The command `mlirml`: what it prints, and what it says about mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mlirml as ml
from mlirml.cli import main
from mlirml.cli.explain import code_bytes, follow
from mlirml.cli.function import read_arguments
from mlirml.driver import cache
from mlirml.errors import ArgumentError
from mlirml.targets.measured import DeviceCosts, Level, MeasuredMachine
from mlirml.targets.registry import target_names

MODEL = """\
import numpy as np

def forward(x, p, axis=0):
    return np.sum(np.maximum(x @ p["w"] + p["b"], 0), axis=axis)

def bad(x):
    return x @ x

SIZE = 3
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path / "cache"))
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def machine(model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MeasuredMachine]:
    """A machine that was measured before, with any number of threads; the threads are as before after the test."""
    levels = {
        "L1": Level(32 << 10, False, (100e9, 200e9), (50e9, 90e9), (80e9, 160e9)),
        "memory": Level(0, True, (10e9, 15e9), (5e9, 8e9), (8e9, 12e9)),
    }
    devices = (DeviceCosts("gpu:0", 1e-5, 2e-6, 1e9, 2e9),)
    found = MeasuredMachine("AMD EPYC", 2, {"f32": (100e9, 190e9)}, levels, 1e-6, 2e-6, devices, {"version": 1})
    monkeypatch.setattr("mlirml.cli.machine.current_machine", lambda again=False: found)
    monkeypatch.setattr("mlirml.driver.profiling.run.current_machine", lambda: found)
    threads = ml.config.threads
    yield found
    ml.config.threads = threads


ARGS = "f32[6,4], {'w': f32[4,3], 'b': f32[3]}"


def spec(dtype: str, *shape: int) -> ml.TensorSpec:
    return ml.TensorSpec(shape, np.dtype(dtype))


def test_arguments_are_read_as_a_call_with_types_for_arrays() -> None:
    args, kwargs = read_arguments("f32[4,8], (i64[], {'k': [bool[2], u8[0]]}), f64[3], axis=-1, name='a'")
    assert args == (
        spec("f4", 4, 8), (spec("i8"), {"k": [spec("?", 2), spec("u1", 0)]}), spec("f8", 3),
    )  # fmt: skip
    assert kwargs == {"axis": -1, "name": "a"}


def test_python_numbers_are_weak() -> None:
    args, _ = read_arguments("int, float, bool")
    assert [(a.dtype, a.weak) for a in args] == [(np.dtype(t), True) for t in (np.int64, np.float64, np.bool_)]


def test_no_arguments() -> None:
    assert read_arguments("") == ((), {})


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("f32[4,x]", "neither a type nor a literal: x", "x"),
        ("f32[4], f33[8]", "there is no dtype 'f33'", "f33"),
        ("f32[4,-1]", "a size is a number from 0, not -1", "-1"),
        ("f32", "f32 needs a shape: f32[4,8], or f32[] for no dimensions", "f32"),
        ("f32[2], *f32[3]", "write the arguments out, without stars", "*"),
        ("f32[2], x + 1", "neither a type nor a literal: x + 1", "x + 1"),
    ],
)
def test_a_wrong_argument_is_pointed_at(text: str, message: str, marked: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read_arguments(text)
    lines = str(caught.value).splitlines()
    assert lines[0] == message
    source, carets = lines[3].partition("| ")[2], lines[4].partition("| ")[2]
    assert source == text
    assert source[carets.index("^") : carets.rindex("^") + 1] == marked


def test_broken_syntax_is_pointed_at() -> None:
    with pytest.raises(ArgumentError, match="not an argument list") as caught:
        read_arguments("f32[4], {'w' f32[4]}")
    assert "^" in str(caught.value)


def test_explain_shows_every_stage(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{model}:forward", "--args", ARGS]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("forward (f32[6,4], f32[3], f32[4,3]) -> (f32[3])\n")
    for stage in ("capture", "optimize", "schedule", "lower", "codegen"):
        assert re.search(rf"^ *{stage} ", shown, re.MULTILINE), stage
    assert "runs on: target cpu" in shown
    assert "is not there yet" in shown


def test_explain_finds_the_program_in_the_disk_cache(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mlirml.cli.function import load_function

    compiled = ml.compile(load_function(f"{model}:forward"))
    compiled(np.ones((6, 4), "f4"), {"w": np.ones((4, 3), "f4"), "b": np.ones(3, "f4")})
    assert main(["explain", f"{model}:forward", "--args", ARGS]) == 0
    assert re.search(r"entry \w{16} is there\n", capsys.readouterr().out)


def test_follow_counts_what_it_shows() -> None:
    compiled = ml.compile(lambda x: np.exp(x) + 1)
    found = follow(compiled, spec("f4", 1000))
    text = compiled.ir("capture", spec("f4", 1000))
    assert found.stages[0].lines == len(text.splitlines())
    assert found.stages[0].operations == sum(n for _, n in found.stages[0].dialects)
    assert dict(found.stages[-1].dialects).keys() == {"builtin", "llvm"}
    assert found.artifact is not None
    assert 16 < code_bytes(found.artifact.object) < len(found.artifact.object)


def test_explain_runs_on_the_reference_target(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{model}:forward", "--args", ARGS, "--target", "reference"]) == 0
    assert "runs on: target reference" in capsys.readouterr().out


def test_ir_prints_a_stage(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ir", f"{model}:forward", "--args", ARGS, "--stage", "capture"]) == 0
    assert "linalg.matmul" in capsys.readouterr().out
    assert main(["ir", f"{model}:forward", "--args", ARGS, "--stage", "lower"]) == 0
    assert "llvm.func" in capsys.readouterr().out


def test_ir_takes_static_arguments(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ir", f"{model}:forward", "--args", f"{ARGS}, 1", "--static", "2"]) == 0
    assert "tensor<6xf32>" in capsys.readouterr().out.partition("{")[2]


@pytest.mark.parametrize(("form", "sign"), [("llvm", "define"), ("asm", ".text")])
def test_ir_emits_other_forms(model: Path, tmp_path: Path, form: str, sign: str) -> None:
    output = tmp_path / "out"
    assert main(["ir", f"{model}:forward", "--args", ARGS, "--emit", form, "-o", str(output)]) == 0
    assert sign in output.read_text()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("{model}:nothing", "has no function 'nothing'"),
        ("{model}:forwrad", "= help: it has forward"),
        ("{model}:SIZE", "is a int, not a function"),
        ("{model}", "expected FILE.py:FUNCTION"),
        ("missing.py:f", "there is no file missing.py"),
    ],
)
def test_a_function_that_is_not_there(
    model: Path, capsys: pytest.CaptureFixture[str], function: str, message: str
) -> None:
    assert main(["explain", function.format(model=model)]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err


def test_a_mistake_in_the_function_is_shown_at_its_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{model}:bad", "--args", "f32[4,8]"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("mlirml.ShapeError: matmul")
    assert f"{model}:7" in shown
    assert "^^^" in shown


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [("x = 1\nx.y\n", "stopped while it was loaded: AttributeError", 2), ("def f(:\n", "cannot be read", 1)],
)
def test_a_file_that_does_not_load(
    model: Path, capsys: pytest.CaptureFixture[str], source: str, message: str, line: int
) -> None:
    model.write_text(source)
    assert main(["ir", f"{model}:f"]) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert f"model.py:{line}" in shown


def test_an_unknown_stage_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ir", f"{model}:forward", "--args", ARGS, "--stage", "optimise"]) == 1
    assert "optimize" in capsys.readouterr().err


def test_devices_lists_every_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    for name in target_names():
        assert re.search(rf"^ *{name} ", shown, re.MULTILINE)
    assert re.search(r"\d+ of \d+ cores usable", shown)


@pytest.fixture
def filled_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path))
    for count in (3, 4):
        ml.compile(lambda x: x + 1)(np.ones(count, np.float32))
    assert len(list(cache.listing())) == 2
    return tmp_path


def damage(folder: Path) -> Path:
    path = min(folder.glob("*.mlirml"))
    path.write_bytes(path.read_bytes()[:-10])
    return path


def test_cache_list_shows_the_entries(filled_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "list"]) == 0
    shown = capsys.readouterr().out
    for path in filled_cache.glob("*.mlirml"):
        assert path.stem[:12] in shown
    assert shown.count("this compiler") == 2
    assert "2 entries" in shown


def test_cache_list_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path / "nothing"))
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out.startswith("0 entries, 0 B")


def test_cache_check_finds_and_removes_damage(filled_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "check"]) == 0
    assert "2 checked, 0 damaged" in capsys.readouterr().out
    path = damage(filled_cache)
    assert main(["cache", "list"]) == 0
    assert "damaged: the checksum does not fit" in capsys.readouterr().out
    assert main(["cache", "check"]) == 1
    assert f"damaged: {path}" in capsys.readouterr().out
    assert path.exists()
    assert main(["cache", "check", "--fix"]) == 0
    assert f"removed: {path}" in capsys.readouterr().out
    assert not path.exists()
    assert main(["cache", "check"]) == 0


def test_cache_clear_removes_all(filled_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "clear"]) == 0
    assert "removed 2 files" in capsys.readouterr().out
    assert list(filled_cache.glob("*.mlirml")) == []


def test_version_names_what_code_depends_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.match(rf"mlirml {re.escape(ml.__version__)} \(Python .*torch_mlir \d+", capsys.readouterr().out)


@pytest.mark.parametrize("arguments", [[], ["cache"], ["explain"], ["nothing"], ["cache", "list", "--fix"]])
def test_a_wrong_command_line_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: mlirml" in capsys.readouterr().err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for command in ("devices", "machine", "explain", "ir", "tune", "bench", "cache"):
        assert re.search(rf"^ +{command} ", shown, re.MULTILINE)


def test_bench_passes_its_arguments_on(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--help"]) == 0
    shown = capfd.readouterr().out
    assert "--peers" in shown and "--roofline" in shown


def test_bench_of_a_function_prints_its_kernels(
    model: Path, machine: MeasuredMachine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = ["--trace", str(tmp_path / "trace.json"), "--roofline", str(tmp_path / "roofline.svg")]
    assert main(["bench", f"{model}:forward", "--args", ARGS, *files]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("forward: target cpu") and "model.py:4" in shown and "without clocks" in shown
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert (tmp_path / "roofline.svg").read_text().startswith("<svg ")


def test_bench_of_a_function_prints_json(
    model: Path, machine: MeasuredMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", f"{model}:forward", "--args", ARGS, "--json", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["threads"] == 1 and {row["threads"] for row in found["rows"]} == {1}
    assert sum(row["flops"] for row in found["rows"]) >= 2 * 6 * 4 * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py:forwrd", "--args", ARGS], "has no function 'forwrd'"),
        (["model.py:forward", "--args", "f32[6,4]"], "missing a required argument: 'p'"),
        (["model.py:bad", "--args", "f32[6,4]"], "matmul"),
        (["model.py:forward", "--args", ARGS, "--target", "reference"], "cannot be profiled"),
        (["model.py:forward", "--args", ARGS, "--trace", "no/such/folder/t.json"], "no/such/folder/t.json"),
    ],
)
def test_bench_of_a_function_shows_mistakes(
    model: Path, machine: MeasuredMachine, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(model.parent)
    assert main(["bench", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_machine_prints_a_table_and_json(machine: MeasuredMachine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machine"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^f32 +100 +190$", shown, re.MULTILINE) and re.search(r"^memory +10 +5", shown, re.MULTILINE)
    assert "a call of a program: 1 us" in shown and "gpu:0: a launch 10 us" in shown
    assert main(["machine", "--json"]) == 0
    assert MeasuredMachine.from_dict(json.loads(capsys.readouterr().out)) == machine


def test_bench_without_a_checkout_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ml, "__file__", str(tmp_path / "mlirml" / "__init__.py"))
    assert main(["bench"]) == 1
    assert "make bench" in capsys.readouterr().err


def test_as_a_program_it_writes_nothing_into_a_closed_pipe(model: Path) -> None:
    command = f'{sys.executable} -m mlirml.cli ir {model}:forward --args "{ARGS}" --stage lower | head -1'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_the_plain_commands_load_no_tables_and_no_compiler() -> None:
    program = (
        "import sys; from mlirml.cli import main; main(['cache', 'check'])\n"
        "llvm = ['llvm'] * ('libllvmlite' in open('/proc/self/maps').read())\n"
        "print(*sorted({'rich', 'torch_mlir'} & sys.modules.keys()), *llvm)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "", "the check prints its result, then nothing heavy is loaded"
