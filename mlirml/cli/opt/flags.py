"""The flags of `mlirml-opt`: the table, the reading of the command line, the help text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mlirml.core.dataclass import dataclass
from mlirml.errors import PipelineError
from mlirml.targets.registry import form_names

EMIT_CHOICES = ("mlir", *form_names())


@dataclass(frozen=True)
class Flag:
    """One flag that is not a pass. A flag with a `value` name takes `--flag=VALUE`."""

    name: str
    help: str
    value: str = ""


GROUPS: dict[str, tuple[Flag, ...]] = {
    "what to run": (
        Flag("pass-pipeline", "run this pipeline: 'builtin.module(canonicalize,mlirml-fuse{max-ops=3})'", "TEXT"),
        Flag("target", "run the whole pipeline of a target", "NAME"),
        Flag("stop-after", "end after a stage of the pipeline: optimize, schedule, ...", "STAGE"),
        Flag("run-reproducer", "run the pipeline that the input names in its `// pipeline:` line"),
        Flag("emit", f"what to write: {', '.join(EMIT_CHOICES)}", "KIND"),
    ),
    "input": (
        Flag("split-input-file", "treat each part between lines `// -----` as a module of its own"),
        Flag("verify-diagnostics", "check errors and remarks against `// expected-error@+1 {{...}}` comments"),
        Flag("allow-unregistered-dialect", "accept operations of dialects that nobody knows"),
    ),
    "output": (
        Flag("o", "write to a file; `-` is standard output", "FILE"),
        Flag("mlir-print-debuginfo", "print locations"),
        Flag("mlir-print-op-generic", "print the generic form of operations"),
        Flag("mlir-print-ir-after-all", "print the module to standard error after each pass"),
        Flag("mlir-print-ir-after-change", "print the module to standard error after each pass that changed it"),
        Flag("dump-dir", "write the module after each pass to a numbered file here", "DIR"),
        Flag("timing", "print how long each pass took to standard error"),
        Flag("remarks", "print what the passes have to say, with the reasons why patterns did not apply"),
    ),
    "information": (
        Flag("print-pipeline", "print the pipeline that would run, and end"),
        Flag("list-passes", "list the passes of mlirml with their options, and end"),
        Flag("version", "print versions, and end"),
        Flag("help", "print this, and end"),
    ),
}

_FLAGS = {flag.name: flag for flags in GROUPS.values() for flag in flags}


@dataclass
class Options:
    """A command line that has been read: `flags` by name, pass flags as pipeline text in order, the input file."""

    flags: dict[str, str] = field(default_factory=dict)
    passes: list[str] = field(default_factory=list)
    input: str = "-"

    def __contains__(self, flag: str) -> bool:
        return flag in self.flags

    def get(self, flag: str) -> str | None:
        """The value of a flag; None when it is not given."""
        return self.flags.get(flag)


def read_arguments(arguments: list[str]) -> Options:
    """Read a command line; a flag that is not in the table is a pass. Raises `PipelineError` for a mistake."""
    options = Options()
    inputs: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "-" or not argument.startswith("-"):
            inputs.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        flag = _FLAGS.get("help" if name == "h" else name)
        if flag is None:
            options.passes.append(_pass_text(argument.lstrip("-")))
        elif flag.value:
            options.flags[flag.name] = value if equals else _next_value(flag, waiting)
        elif equals:
            raise PipelineError(f"--{name} takes no value")
        else:
            options.flags[flag.name] = ""
    if len(inputs) > 1:
        raise PipelineError(f"one input file, not {len(inputs)}: {', '.join(inputs)}")
    if inputs:
        options.input = inputs[0]
    _check(options)
    return options


def _next_value(flag: Flag, waiting: Iterator[str]) -> str:
    value = next(waiting, None)
    if value is None:
        raise PipelineError(f"--{flag.name} takes a value: --{flag.name}={flag.value}")
    return value


def _pass_text(argument: str) -> str:
    """`canonicalize`, `mlirml-fuse{max-ops=3}` or `mlirml-fuse=max-ops=3` as pipeline text."""
    name, equals, options = argument.partition("=")
    if not equals or "{" in name or "(" in name:
        return argument
    return f"{name}{{{options}}}"


def _check(options: Options) -> None:
    sources = [f"--{name}" for name in ("pass-pipeline", "target", "run-reproducer") if name in options]
    sources += ["passes as flags"] if options.passes else []
    if len(sources) > 1:
        raise PipelineError(f"{' and '.join(sources)} cannot be given together")
    emit = options.get("emit")
    if emit is not None and emit not in EMIT_CHOICES:
        raise PipelineError(f"--emit={emit}: there is no such output", help=f"one of {', '.join(EMIT_CHOICES)}")


def help_text() -> str:
    """The text that `--help` prints."""
    lines = [
        "usage: mlirml-opt [flags] [input.mlir | -]",
        "",
        "Read an MLIR module, run passes in the order of their flags, write the module.",
        "Passes are flags: --mlirml-fuse, --mlirml-fuse=max-ops=3, --mlirml-fuse='max-ops=3 other=1'; every upstream",
        "pass works too (--canonicalize), nested on the operation that it needs.",
    ]
    for title, flags in GROUPS.items():
        lines += ["", f"{title}:"]
        for flag in flags:
            shown = f"{'-' if len(flag.name) == 1 else '--'}{flag.name}{'=' + flag.value if flag.value else ''}"
            lines.append(f"  {shown:30} {flag.help}")
    return "\n".join([*lines, "", "Exit status: 0 when all went well, 1 when something failed.", ""])
