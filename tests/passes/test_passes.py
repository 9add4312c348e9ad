"""Passes as values, pipeline text, running, failures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirml.cli.opt.main import main as mlirml_opt
from mlirml.core.config import config
from mlirml.errors import InternalError, LoweringError, PipelineError, ShapeError
from mlirml.ir.bindings import arith, make_context, mlir, operations, parse, to_text
from mlirml.passes import (
    REGISTRY,
    Instrumentation,
    Pass,
    Pipeline,
    Stage,
    Upstream,
    parse_pipeline,
    pass_options,
    pipeline_of,
    register,
    remark,
    stage,
)
from mlirml.passes.verify_stage import VerifyStagePass

TOO_FEW_OPERANDS = "'arith.addi' op expected 2 operands, but found 0"
SOURCE = """
func.func @twice_more(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32 loc("user.py":3:5)
  %1 = arith.addi %0, %a : i32 loc("user.py":4:5)
  return %1 : i32
}
"""


@dataclass(frozen=True)
class OptionsPass(Pass):
    """A pass with an option of each kind."""

    name = "mlirml-options"
    flag: bool = False
    max_ops: int = 64
    scale: float = 1.0
    mode: str = "fast"
    sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ("a",)

    def run(self, module: mlir.Operation) -> None:
        for op in operations(module):
            remark(op, self.mode)


@dataclass(frozen=True)
class FailPass(Pass):
    """A pass that fails in the way its option says."""

    name = "mlirml-fail"
    how: str

    def run(self, module: mlir.Operation) -> None:
        if self.how == "python":
            raise ZeroDivisionError("division by zero")
        if self.how == "user":
            raise ShapeError("inner dimensions differ")
        if self.how == "lowering":
            raise LoweringError("too large")
        if self.how == "invalid":
            add = next(op for op in operations(module) if op.name == "arith.addi")
            with add.location, mlir.InsertionPoint(add):
                mlir.Operation.create("arith.addi", results=[mlir.IntegerType.get_signless(32)])
        if self.how == "unlocated":
            with mlir.InsertionPoint(module.regions[0].blocks[0].operations[0].regions[0].blocks[0].operations[0]):
                one = arith.ConstantOp(mlir.IntegerType.get_signless(32), 1)
                arith.AddIOp(one, one)


@pytest.fixture(autouse=True)
def passes_for_tests() -> Iterator[None]:
    for cls in (OptionsPass, FailPass):
        register(cls)
    yield
    for cls in (OptionsPass, FailPass):
        del REGISTRY[cls.name]


def test_defaults_are_not_printed() -> None:
    assert str(OptionsPass()) == "mlirml-options"
    assert str(OptionsPass(max_ops=64)) == "mlirml-options"


def test_changed_options_are_printed_in_kebab_case() -> None:
    text = str(OptionsPass(flag=True, max_ops=3, scale=0.5, mode="very slow", sizes=(1, 2)))
    assert text == 'mlirml-options{flag=true max-ops=3 scale=0.5 mode="very slow" sizes={1,2}}'


@given(
    st.builds(
        OptionsPass,
        flag=st.booleans(),
        max_ops=st.integers(),
        scale=st.floats(allow_nan=False),
        mode=st.text(st.characters(codec="ascii", exclude_characters="'")),
        sizes=st.lists(st.integers(), max_size=4).map(tuple),
        names=st.lists(st.text(st.sampled_from('ab ,={}()"[]<>')), max_size=3).map(tuple),
    )
)
def test_a_printed_pass_parses_back_to_an_equal_one(step: OptionsPass) -> None:
    register(OptionsPass)
    assert parse_pipeline(str(step)) == Pipeline((Stage("", (step,)),))


def test_a_string_with_both_quotes_has_no_text() -> None:
    with pytest.raises(ValueError, match="a string with both"):
        str(OptionsPass(mode="'\""))


def test_an_option_of_another_type_is_refused() -> None:
    @dataclass(frozen=True)
    class BadPass(Pass):
        name = "mlirml-test-bad"
        table: dict[str, int]

    with pytest.raises(TypeError, match=r"BadPass.table: an option cannot be dict"):
        pass_options(BadPass)


def test_a_name_is_registered_once() -> None:
    @dataclass(frozen=True)
    class OtherPass(Pass):
        name = "mlirml-fail"

    with pytest.raises(ValueError, match="registered twice"):
        register(OtherPass)


PIPELINES = [
    Pipeline(()),
    Pipeline((stage("", "canonicalize"),)),
    Pipeline((stage("optimize"), stage("schedule", "cse"))),
    Pipeline((stage("optimize", "canonicalize,cse", OptionsPass(max_ops=3)), stage("", "func.func(cse,canonicalize)"))),
    Pipeline((stage("lower", Upstream("one-shot-bufferize{bufferize-function-boundaries}"), "convert-scf-to-cf"),)),
]  # fmt: skip


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_a_printed_pipeline_parses_back_to_an_equal_one(pipeline: Pipeline) -> None:
    assert parse_pipeline(str(pipeline)) == pipeline


def test_the_end_of_a_stage_is_printed_as_a_pass() -> None:
    pipeline = Pipeline((stage("optimize", "cse"), stage("lower", "canonicalize")))
    assert str(pipeline) == (
        "builtin.module(cse,mlirml-verify-stage{stage=optimize},canonicalize,mlirml-verify-stage{stage=lower})"
    )


def test_spaces_do_not_count() -> None:
    loose = " builtin.module( cse , func.func( canonicalize{ max-iterations=3   top-down=true } ) ) "
    assert str(parse_pipeline(loose)) == "builtin.module(cse,func.func(canonicalize{max-iterations=3 top-down=true}))"


def test_a_value_may_hold_braces_and_quotes() -> None:
    text = "one-shot-bufferize{dialect-filter={arith,scf} buffer-alignment=64}"
    assert str(parse_pipeline(text)) == f"builtin.module({text})"


def test_a_bare_bool_option_is_true() -> None:
    step = pipeline_of([OptionsPass(flag=True)])
    assert parse_pipeline("mlirml-options{flag}") == step


STAGE_NAMES = "capture, raise, transform, optimize, offload, schedule, lower"
MISTAKES = [
    ("cse,^canonicalise", "unknown pass `canonicalise`", "did you mean `canonicalize`?"),
    ("^mlirml-fial", "unknown pass `mlirml-fial`", "did you mean `mlirml-fail`?"),
    ("func.func(cse,^csee)", "unknown pass `csee`", "did you mean `cse`?"),
    ("^mlirml-nothing-like-it", "unknown pass `mlirml-nothing-like-it`", None),
    ("func.func(^mlirml-nothing-like-it)", "unknown pass `mlirml-nothing-like-it`", None),
    ("mlirml-options{^max-op=1}", "mlirml-options has no option `max-op`", "did you mean `max-ops`?"),
    ("mlirml-fail{^zzz=1}", "mlirml-fail has no option `zzz`", "it has how (str)"),
    ("mlirml-options{^max-ops=x}", "mlirml-options: max-ops takes int, not `x`", None),
    ("mlirml-options{^max-ops}", "mlirml-options: max-ops takes int, not no value", None),
    ("mlirml-options{^flag=yes}", "mlirml-options: flag takes bool, not `yes`", None),
    ("mlirml-options{^sizes={1,a}}", "mlirml-options: sizes takes list of int, not `{1,a}`", None),
    ("cse,^mlirml-fail", "mlirml-fail needs the option `how` (str)", None),
    ("^mlirml-verify-stage{stage=optimise}", "there is no stage `optimise`", f"the stages are {STAGE_NAMES}"),
    ("func.func(^mlirml-options)", "mlirml-options runs on the module and cannot be nested in func.func", None),
    ("^canonicalize{no-such=1}", "canonicalize: no such option no-such", None),
    ("^buffer-hoisting", "buffer-hoisting runs on func.func, not on a module", "write func.func(buffer-hoisting)"),
    ("cse,^", "expected the name of a pass or of an operation", None),
    ("func.func^(cse", "this `(` is never closed", None),
    ("cse^)", "unbalanced `)`", None),
    ("cse ^cse", "expected `,` but found `c`", None),
    ("cse^{a=1", "this `{` is never closed", None),
    ("cse{a=^{1", "this `{` is never closed", None),
    ("cse{a=^'1}", "this quote is never closed", None),
    ("cse{^=1}", "expected the name of an option", None),
    ("func.func^(cse{a=1}", "this `(` is never closed", None),
    ("func.func(cse^]", "expected `,` or `)` but found `]`", None),
]


@pytest.mark.parametrize(("marked", "message", "help"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_pointed_at(marked: str, message: str, help: str | None) -> None:
    text, position = marked.replace("^", ""), marked.index("^")
    with pytest.raises(PipelineError) as caught:
        parse_pipeline(text)
    error = caught.value
    assert (error.message, error.position, error.help) == (message, position, help)
    lines = str(error).splitlines()
    assert lines[1] == f"   {text}"
    assert lines[2].startswith(" " * (3 + position) + "^")


def test_a_stage_must_exist() -> None:
    with pytest.raises(PipelineError, match="there is no stage `optimise`"):
        stage("optimise", "cse")


def test_an_upstream_step_is_one_step() -> None:
    with pytest.raises(PipelineError, match="one pass or one nest"):
        Upstream("cse,canonicalize")
    assert Upstream("func.func( cse , canonicalize )") == Upstream("func.func(cse,canonicalize)")


def test_stages_run_in_order_and_stop_where_told() -> None:
    pipeline = Pipeline((stage("optimize", OptionsPass(mode="one")), stage("schedule", OptionsPass(mode="two"))))
    seen = pipeline.run(parse(SOURCE), stop_after="optimize")
    assert {r.text for r in seen.remarks} == {"one"}
    assert [(t.stage, t.pass_name) for t in seen.timings] == [
        ("optimize", "mlirml-options"),
        ("optimize", "mlirml-verify-stage"),
    ]
    with pytest.raises(PipelineError, match="the pipeline has no stage `scedule`") as caught:
        pipeline.run(parse(SOURCE), stop_after="scedule")
    assert caught.value.help == "did you mean `schedule`?"


def test_remarks_carry_pass_op_and_line() -> None:
    seen = Pipeline((stage("", OptionsPass(mode="hello")),)).run(parse(SOURCE))
    found = [r for r in seen.remarks if r.location and r.location.file == "user.py"]
    assert [str(r) for r in found] == [
        "user.py:3:5: remark: arith.addi: hello [mlirml-options]",
        "user.py:4:5: remark: arith.addi: hello [mlirml-options]",
    ]


def test_the_tool_shows_remarks_and_checks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text("// expected-remark@+1 {{hello}}\nfunc.func private @f()\n")
    assert mlirml_opt([str(path), "--mlirml-options=mode=hello"]) == 0
    assert capsys.readouterr().err == ""
    assert mlirml_opt([str(path), "--mlirml-options=mode=hello", "--remarks"]) == 0
    assert f"{path}:2:1: remark: func.func: hello [mlirml-options]" in capsys.readouterr().err
    assert mlirml_opt([str(path), "--mlirml-options=mode=hello", "--verify-diagnostics"]) == 0
    assert mlirml_opt([str(path), "--mlirml-options=mode=bye", "--verify-diagnostics"]) == 1
    assert capsys.readouterr().err == f'{path}:1: expected remark "hello" was not reported\n'


def test_the_timing_table_adds_up() -> None:
    seen = Pipeline((stage("optimize", "cse"), stage("", "canonicalize"))).run(parse(SOURCE))
    lines = seen.timing_table().splitlines()
    assert [line.split("%  ")[1] for line in lines[2:]] == [
        "stage optimize", "  cse", "  mlirml-verify-stage", "canonicalize", "total",
    ]  # fmt: skip
    milliseconds = [float(line.split()[0]) for line in lines[2:]]
    assert milliseconds[0] == pytest.approx(milliseconds[1] + milliseconds[2], abs=0.002)
    assert milliseconds[-1] == pytest.approx(milliseconds[0] + milliseconds[3], abs=0.002)


def test_dumps_are_numbered_and_hold_the_module(tmp_path: Path) -> None:
    module = parse(SOURCE)
    before = to_text(module)
    pipeline = Pipeline((stage("optimize", "func.func(canonicalize)", OptionsPass()),))
    pipeline.run(module, instrumentation=Instrumentation(dump_dir=tmp_path))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "000_input.mlir",
        "001_optimize_func_func_canonicalize.mlir",
        "002_optimize_mlirml-options.mlir",
        "003_optimize_mlirml-verify-stage.mlir",
    ]
    assert (tmp_path / names[0]).read_text() == before
    assert (tmp_path / names[-1]).read_text() == to_text(module)


def _failure(how: str, tmp_path: Path, kind: type[Exception]) -> Exception:
    pipeline = Pipeline((stage("optimize", "cse", FailPass(how)),))
    with pytest.raises(kind) as caught:
        pipeline.run(parse(SOURCE), instrumentation=Instrumentation(reproducer_dir=tmp_path))
    return caught.value


def test_an_error_for_the_user_passes_through_with_stage_and_pass(tmp_path: Path) -> None:
    error = _failure("user", tmp_path, ShapeError)
    assert isinstance(error, ShapeError)
    assert (error.stage, error.notes) == ("optimize", ("pass: mlirml-fail{how=user}",))
    assert list(tmp_path.iterdir()) == []


def test_a_python_exception_becomes_an_internal_error_with_reproducer(tmp_path: Path) -> None:
    error = _failure("python", tmp_path, InternalError)
    assert str(error).startswith("the pass mlirml-fail broke down: ZeroDivisionError: division by zero")
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert (tmp_path / "reproducer.mlir").exists()


def test_an_invalid_module_is_our_bug_and_names_the_line(tmp_path: Path) -> None:
    error = _failure("invalid", tmp_path, InternalError)
    assert isinstance(error, InternalError)
    assert error.message == f"the pass mlirml-fail left an invalid module: {TOO_FEW_OPERANDS}"
    assert error.location is not None
    assert (error.location.file, error.location.line, error.location.column) == ("user.py", 3, 5)


@pytest.mark.parametrize("after", ["cse", "mlirml-fail{how=python}", "mlirml-fail{how=nothing},canonicalize"])
def test_the_pass_that_left_the_module_invalid_is_named_not_a_later_one(after: str, tmp_path: Path) -> None:
    pipeline = Pipeline((stage("optimize", "canonicalize", FailPass("invalid"), after),))
    with pytest.raises(InternalError) as caught:
        pipeline.run(parse(SOURCE), instrumentation=Instrumentation(reproducer_dir=tmp_path))
    assert caught.value.message == f"the pass mlirml-fail left an invalid module: {TOO_FEW_OPERANDS}"
    assert caught.value.notes[0] == "pass: mlirml-fail{how=invalid}"
    assert "builtin.module(mlirml-fail{how=invalid})\n" in (tmp_path / "reproducer.mlir").read_text()


def test_a_lowering_error_gets_its_pass_and_reproducer(tmp_path: Path) -> None:
    error = _failure("lowering", tmp_path, LoweringError)
    assert isinstance(error, LoweringError)
    assert (error.pass_name, error.stage) == ("mlirml-fail", "optimize")
    assert error.reproducer == str(tmp_path / "reproducer.mlir")


def test_an_op_without_a_line_fails_at_the_end_of_the_stage(tmp_path: Path) -> None:
    error = _failure("unlocated", tmp_path, LoweringError)
    assert isinstance(error, LoweringError)
    assert error.message == "`arith.addi` has no source location after stage optimize"
    assert (error.op, error.pass_name) == ("arith.addi", "mlirml-verify-stage")


def test_an_upstream_failure_names_pass_op_line_and_diagnostics(tmp_path: Path) -> None:
    context = make_context()
    context.allow_unregistered_dialects = True
    module = parse(
        """
        func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
          %b = "test.unknown"(%a) : (tensor<4xf32>) -> tensor<4xf32> loc("user.py":8:3)
          return %b : tensor<4xf32>
        }
        """,
        context,
    )
    pipeline = Pipeline((stage("", "canonicalize", "one-shot-bufferize{bufferize-function-boundaries}"),))
    with pytest.raises(LoweringError) as caught:
        pipeline.run(module, instrumentation=Instrumentation(reproducer_dir=tmp_path))
    error = caught.value
    assert (error.pass_name, error.op) == ("one-shot-bufferize", "test.unknown")
    assert error.message == "op was not bufferized"
    assert any(note.startswith("see current operation: ") for note in error.notes)
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("user.py", 8)
    assert isinstance(error.__cause__, mlir.MLIRError)


@pytest.mark.parametrize("how", ["lowering", "python", "invalid"])
def test_a_reproducer_fails_in_the_same_way(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = _failure(how, tmp_path, (LoweringError, InternalError))  # type: ignore[arg-type]
    text = (tmp_path / "reproducer.mlir").read_text()
    assert f"// pipeline: builtin.module(mlirml-fail{{how={how}}})" in text
    assert mlirml_opt(["--run-reproducer", str(tmp_path / "reproducer.mlir")]) == 1
    assert str(error).splitlines()[0] in capsys.readouterr().err


def test_a_reproducer_holds_the_module_before_the_pass_that_failed(tmp_path: Path) -> None:
    module = parse("func.func @f() -> i32 { %a = arith.constant 1 : i32 %b = arith.addi %a, %a : i32 return %b : i32 }")
    pipeline = Pipeline((stage("", "canonicalize", FailPass("lowering"), "cse"),))
    with pytest.raises(LoweringError):
        pipeline.run(module, instrumentation=Instrumentation(reproducer_dir=tmp_path))
    text = (tmp_path / "reproducer.mlir").read_text()
    assert "arith.constant 2 : i32" in text
    assert "arith.addi" not in text


def test_a_reproducer_goes_to_the_dump_folder_of_config(tmp_path: Path) -> None:
    with config.override(dump_dir=str(tmp_path / "dumps")), pytest.raises(LoweringError) as caught:
        Pipeline((stage("", FailPass("lowering")),)).run(parse(SOURCE))
    assert caught.value.reproducer == str(tmp_path / "dumps" / "reproducer.mlir")


def test_a_folder_that_cannot_be_written_does_not_hide_the_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(LoweringError, match="too large") as caught:
        Pipeline((stage("", FailPass("lowering")),)).run(
            parse(SOURCE), instrumentation=Instrumentation(reproducer_dir=blocked)
        )
    assert any(note.startswith(f"no reproducer, because {blocked}") for note in caught.value.notes)
    assert caught.value.reproducer is None


def test_checks_can_be_switched_off(tmp_path: Path) -> None:
    with config.override(verify=False):
        Pipeline((stage("lower", FailPass("invalid")),)).run(parse(SOURCE))
    with pytest.raises(InternalError):
        Pipeline((stage("lower", FailPass("invalid")),)).run(
            parse(SOURCE), instrumentation=Instrumentation(reproducer_dir=tmp_path)
        )


def test_verify_stage_is_a_pass_with_a_stage() -> None:
    assert str(VerifyStagePass("lower")) == "mlirml-verify-stage{stage=lower}"
    assert REGISTRY["mlirml-verify-stage"] is VerifyStagePass


def test_a_stage_may_have_legal_dialects_of_its_own() -> None:
    pipeline = Pipeline((stage("lower", "canonicalize", legal=("arith", "func")),))
    assert str(pipeline) == "builtin.module(canonicalize,mlirml-verify-stage{stage=lower legal={arith,func}})"
    assert parse_pipeline(str(pipeline)) == pipeline
    pipeline.run(parse("func.func @main(%x: f32) -> f32 { return %x : f32 }"))
    with pytest.raises(LoweringError, match=r"`math\.exp` is not legal after stage lower"):
        pipeline.run(parse("func.func @main(%x: f32) -> f32 { %0 = math.exp %x : f32 return %0 : f32 }"))


def test_a_remark_outside_a_pipeline_is_dropped() -> None:
    context = make_context()
    module = parse(SOURCE, context)
    remark(module, "nobody listens")
    seen = Pipeline(()).run(module)
    assert seen.remarks == []


def test_an_import_of_the_bindings_door_looks_for_no_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlirml.ir.bindings

    def refuse(name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(AttributeError, match="__path__"):  # each `from mlirml.ir import ...` asks for it
        _ = mlirml.ir.bindings.__path__
