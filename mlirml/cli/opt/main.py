"""`mlirml-opt`: read MLIR, run passes in the order of their flags, write MLIR, LLVM IR or assembly."""

from __future__ import annotations

import linecache
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlirml.cli.opt.flags import Options, help_text, read_arguments
from mlirml.errors import InternalError, MlirmlError, ParseError, PipelineError

if TYPE_CHECKING:
    from mlirml.cli.opt.verify_diagnostics import Diagnostic
    from mlirml.ir.bindings import mlir
    from mlirml.passes import Instrumentation, Pipeline

_SPLIT = re.compile(r"^[ \t]*// -----[^\n]*\n", re.MULTILINE)
_NO_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_DYNAMIC = str(-(1 << 63))
_DEEPEST = 256
_STDIN = "<stdin>"


def main(arguments: list[str] | None = None) -> int:
    """Run the tool; returns the exit status."""
    try:
        return _run(read_arguments(sys.argv[1:] if arguments is None else arguments))
    except MlirmlError as error:
        _report(error)
    except BrokenPipeError:
        # Whoever reads the output has seen enough; without this Python complains again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"mlirml-opt: {error.filename}: {error.strerror}", file=sys.stderr)
    return 1


def _run(options: Options) -> int:
    if "help" in options:
        sys.stdout.write(
            f"{help_text()}\nPasses of mlirml, by the level of the IR (--list-passes has their options):\n\n"
        )
        sys.stdout.write(_passes_by_level())
    elif "version" in options:
        from mlirml.passes.reproducer import versions

        print(versions())
    elif "list-passes" in options:
        sys.stdout.write(_list_passes())
    elif "print-pipeline" in options:
        text = _read(options.input) if "run-reproducer" in options else ""
        print(_pipeline(options, text))
    else:
        return _process_file(options)
    return 0


def _process_file(options: Options) -> int:
    text = _read(options.input)
    pipeline = _pipeline(options, text)
    parts = _split(text) if "split-input-file" in options else [text]
    outputs: list[str | bytes] = []
    failed = False
    for number, part in enumerate(parts):
        job = _Job(options, pipeline, part, _dump_dir(options, number if len(parts) > 1 else None))
        failed |= not job.run()
        if job.output is not None:
            outputs.append(job.output)
    if "verify-diagnostics" not in options:
        _write(options.get("o") or "-", outputs)
    return int(failed)


def _dump_dir(options: Options, part: int | None) -> Path | None:
    """The dump folder of the input; each chunk of a split input has a folder of its own."""
    named = options.get("dump-dir")
    if named is None:
        return None
    return Path(named) if part is None else Path(named) / f"part{part}"


class _Job:
    """One module on its way through the tool."""

    def __init__(self, options: Options, pipeline: Pipeline, text: str, dump_dir: Path | None) -> None:
        self.options = options
        self.pipeline = pipeline
        self.text = text
        self.dump_dir = dump_dir
        self.file = _STDIN if options.input == "-" else options.input
        self.output: str | bytes | None = None

    def run(self) -> bool:
        """Parse, run, emit; returns whether all went well, and has said what did not."""
        from mlirml.passes import Instrumentation

        instrumentation = Instrumentation(
            print_after=self._print_after(),
            print_locations="mlir-print-debuginfo" in self.options,
            dump_dir=self.dump_dir,
            reproducer_dir=self.dump_dir,
        )
        error: MlirmlError | None = None
        try:
            self.output = self._compile(instrumentation)
        except MlirmlError as failure:
            error = self._at_input(failure)
        if "timing" in self.options:
            sys.stderr.write(instrumentation.timing_table())
        if "verify-diagnostics" in self.options:
            return self._verify(error, instrumentation)
        self._show_remarks(instrumentation)
        if error is not None:
            _report(error)
        return error is None

    def _print_after(self) -> Any:
        if "mlir-print-ir-after-all" in self.options:
            return "all"
        return "changed" if "mlir-print-ir-after-change" in self.options else "none"

    def _compile(self, instrumentation: Instrumentation) -> str | bytes:
        from mlirml.ir.bindings import make_context

        context = make_context()
        context.allow_unregistered_dialects = "allow-unregistered-dialect" in self.options
        module = _parse(self.text, self.options, context)
        try:
            self.pipeline.run(module, instrumentation=instrumentation)
            return _emit(module, self.options)
        except InternalError as error:
            from mlirml.cli.opt.form import explained

            raise explained(error, context) from error.__cause__

    def _at_input(self, error: MlirmlError) -> MlirmlError:
        """The error with the name of the input for MLIR's `-`, readable for the excerpt."""
        if error.location is not None and error.location.file == "-":
            error.location = replace(error.location, file=self.file)
            linecache.cache[self.file] = (len(self.text), None, self.text.splitlines(keepends=True), self.file)
        return error

    def _show_remarks(self, instrumentation: Instrumentation) -> None:
        for remark in instrumentation.remarks:
            if remark.severity != "remark" or "remarks" in self.options:
                place = remark.location
                if place is not None and place.file == "-":
                    remark = replace(remark, location=replace(place, file=self.file))
                print(remark, file=sys.stderr)

    def _verify(self, error: MlirmlError | None, instrumentation: Instrumentation) -> bool:
        from mlirml.cli.opt.verify_diagnostics import check

        reported = [*_diagnostics_of(error, self.file)] if error is not None else []
        for remark in instrumentation.remarks:
            reported.append(_diagnostic(remark.severity, remark.location, remark.text, self.file))
        complaints = check(self.text, reported, self.file, only_expected_remarks="remarks" not in self.options)
        for complaint in complaints:
            print(complaint, file=sys.stderr)
        return not complaints


def _diagnostic(severity: str, location: Any, text: str, file: str) -> Diagnostic:
    from mlirml.cli.opt.verify_diagnostics import Diagnostic

    inside = location is not None and location.file in ("-", file)
    return Diagnostic(severity, location.line if inside else 0, text)


def _diagnostics_of(error: MlirmlError, file: str) -> list[Diagnostic]:
    from mlirml.ir.bindings import mlir
    from mlirml.ir.location import source_location

    cause = error.__cause__
    if not isinstance(cause, mlir.MLIRError) or not cause.error_diagnostics:
        notes = [_diagnostic("note", error.location, note, file) for note in error.notes]
        return [_diagnostic("error", error.location, error.message, file), *notes]
    found = []
    for each in cause.error_diagnostics:
        found.append(_diagnostic("error", source_location(each.location), each.message, file))
        found += [_diagnostic("note", source_location(n.location), n.message, file) for n in each.notes]
    return found


def _parse(text: str, options: Options, context: mlir.Context) -> mlir.Module:
    from mlirml.ir.bindings import mlir
    from mlirml.passes.run import error_from_diagnostics

    if nesting(text) > _DEEPEST:
        raise ParseError(f"the input is nested too deeply: {_DEEPEST} brackets inside of each other are the most")
    whole_file = options.input != "-" and "split-input-file" not in options
    try:
        module = mlir.Module.parseFile(options.input, context) if whole_file else mlir.Module.parse(text, context)
    except mlir.MLIRError as cause:
        error = error_from_diagnostics(cause, "the input is not valid MLIR")
        raise ParseError(error.message, location=error.location, notes=error.notes) from cause
    if _DYNAMIC in text:
        from mlirml.cli.opt.form import check_dynamic_sizes

        check_dynamic_sizes(module.operation)
    return module


def nesting(text: str) -> int:
    """The nesting depth of brackets: MLIR's parser recurses for each, until its stack overflows."""
    deepest = depth = 0
    for bracket in re.findall(r"[{}()\[\]<]|(?<!-)>", _NO_CODE.sub("", text)):
        depth = depth + 1 if bracket in "{([<" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _pipeline(options: Options, text: str) -> Pipeline:
    from mlirml.passes import parse_flag, parse_pipeline, pipeline_of

    target = options.get("target")
    if target is not None:
        pipeline = _target_pipeline(target)
    elif "run-reproducer" in options:
        from mlirml.passes.reproducer import pipeline_of_reproducer

        named = pipeline_of_reproducer(text)
        if named is None:
            raise PipelineError("the input has no `// pipeline:` line to run")
        pipeline = parse_pipeline(named)
    elif (written := options.get("pass-pipeline")) is not None:
        pipeline = parse_pipeline(written)
    else:
        pipeline = pipeline_of(step for flag in options.passes for step in parse_flag(flag))
    stop_after = options.get("stop-after")
    return pipeline if stop_after is None else pipeline.until(stop_after)


def _target_pipeline(name: str) -> Pipeline:
    from mlirml.targets.registry import get_target

    return get_target(name).pipeline


def _list_passes() -> str:
    from mlirml.passes import pass_options
    from mlirml.passes.files import passes_by_folder

    lines = []
    for purpose, passes in passes_by_folder().items():
        lines += [purpose, ""]
        for cls in passes:
            lines.append(f"--{cls.name}")
            lines.append(f"    {(cls.__doc__ or '').strip().splitlines()[0]}")
            for flag, option in pass_options(cls).items():
                default = "required" if option.required else f"default {option.show(option.default)}"
                lines.append(f"    {flag:24} {option.expects}, {default}")
        lines.append("")
    return "\n".join(lines)


def _passes_by_level() -> str:
    """The names of the passes, by the level of the IR that they work on, for `--help`."""
    from mlirml.passes.files import passes_by_folder

    paragraphs = []
    for purpose, passes in passes_by_folder().items():
        names = ", ".join(cls.name for cls in passes)
        wrapped = textwrap.fill(names, 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        paragraphs.append(f"{purpose}\n{wrapped}\n")
    return "\n".join(paragraphs)


def _emit(module: Any, options: Options) -> str | bytes:
    kind = options.get("emit") or "mlir"
    if kind == "mlir":
        from mlirml.ir.bindings import to_text

        return to_text(module, locations="mlir-print-debuginfo" in options, generic="mlir-print-op-generic" in options)
    from mlirml.targets.registry import writer_of

    text = writer_of(kind)(module.operation)
    if isinstance(text, bytes):
        return text
    return text if text.endswith("\n") else text + "\n"


def _read(file: str) -> str:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"the input is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}") from None


def _write(file: str, outputs: Sequence[str | bytes]) -> None:
    binary = b"".join(output for output in outputs if isinstance(output, bytes))
    text = "// -----\n".join(output for output in outputs if isinstance(output, str))
    if file != "-":
        Path(file).write_bytes(binary or text.encode())
    elif binary:
        sys.stdout.buffer.write(binary)
    else:
        sys.stdout.write(text)


def _split(text: str) -> list[str]:
    """The chunks between `// -----` lines, each after as many empty lines as preserve its line numbers."""
    parts = []
    start = 0
    for match in [*_SPLIT.finditer(text), None]:
        end = match.start() if match else len(text)
        parts.append("\n" * text.count("\n", 0, start) + text[start:end])
        start = match.end() if match else end
    return [part for part in parts if part.strip()]


def _report(error: MlirmlError) -> None:
    kind = type(error)
    print(f"{kind.__module__}.{kind.__name__}: {error}", file=sys.stderr)
