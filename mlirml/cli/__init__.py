"""The command `mlirml`: devices, the stages of a function, its schedules, the disk cache, benchmarks."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mlirml.errors import MlirmlError
from mlirml.targets.registry import form_names

_BENCH = """\
Without FILE.py:FUNCTION the benchmarks of a source checkout are run, with all arguments: `mlirml bench --list`.
Arrays are made of random numbers: floats of a normal distribution, integers of 0 and 1.
"""
_SIGNATURE = """\
FILE.py:FUNCTION names a function in a file. --args gives its arguments as they would stand in a call, with a type in
the place of each array: "f32[4,8], f64[8]" (dtypes: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64; f32[] is an
array without dimensions); "int", "float" and "bool" stand for Python numbers; lists, tuples and dicts may hold them,
"axis=0" passes by name, and literals are passed as they are.

examples:
  mlirml explain model.py:forward --args "f32[64,784], {'w': f32[784,10], 'b': f32[10]}"
  mlirml ir model.py:forward --args "f32[64,784], {'w': f32[784,10], 'b': f32[10]}" --stage optimize
  mlirml tune model.py:forward --args "f32[64,784], {'w': f32[784,10], 'b': f32[10]}" --seconds 60
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 when all went well, 1 for a failure, 2 for a wrong command line."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["bench"] and not _benches_function(arguments[1:]):
        from mlirml.cli.bench import bench

        if arguments[1:] in (["-h"], ["--help"]):
            _parser(bench_help=True)
        return bench(arguments[1:])  # they are for the benchmarks, --help too
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except MlirmlError as error:
        kind = type(error)
        print(f"{kind.__module__}.{kind.__name__}: {error}", file=sys.stderr)
    except BrokenPipeError:  # `mlirml ir ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"mlirml: {error.filename}: {error.strerror}", file=sys.stderr)
    return 1


def _parser(*, bench_help: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands; with `bench_help` the help of `bench` is printed, which has two."""
    parser = argparse.ArgumentParser(
        prog="mlirml",
        description="An MLIR-based compiler for Python numeric code. See also: mlirml-opt --help",
        epilog="Exit status: 0 when all went well, 1 when something failed, 2 for a wrong command line.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print versions, and end")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = commands.add_parser("devices", help="list the targets and what they run on")
    command.set_defaults(run=_devices)

    _add_machine(commands)
    command = _function_command(commands, "explain", "show what each stage makes of a function, and where it would run")
    command.add_argument("--html", metavar="FILE", help="write a page with the IR before and after every pass")
    command.set_defaults(run=_explain)

    command = _function_command(commands, "ir", "print the IR of a function after a stage")
    command.add_argument("--stage", metavar="NAME", default="capture", help="capture (default), optimize, ..., lower")
    command.add_argument(
        "--emit", choices=("mlir", *form_names()), default="mlir", help="a form of the target, of stage lower"
    )
    command.add_argument("-o", metavar="FILE", default="-", help="write to a file")
    command.set_defaults(run=_ir)

    command = _function_command(commands, "bench", "time the kernels of a function; without one, run the benchmarks")
    command.epilog = f"{_BENCH}\n{_SIGNATURE}"
    command.add_argument("--threads", type=_threads, default=None, metavar="N", help="the threads of parallel loops")
    command.add_argument("--trace", metavar="FILE", help="write a trace for chrome://tracing or Perfetto")
    command.add_argument("--roofline", metavar="FILE", help="write the roofline picture, as SVG")
    command.add_argument("--json", action="store_true", help="print the rows as JSON")
    command.set_defaults(run=_bench)
    if bench_help:
        print(f"{command.format_help()}\nwithout FILE.py:FUNCTION:\n", flush=True)

    command = _function_command(
        commands, "tune", "search for the fastest schedules of the products and loops of a function"
    )
    command.add_argument("--seconds", metavar="N", type=_seconds, default=60.0, help="how long (default: 60)")
    command.set_defaults(run=_tune)

    _add_cache(commands)
    return parser


def _add_machine(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    """Add the command that prints this machine as measured."""
    command = commands.add_parser(
        "machine",
        help="print this machine as measured: peaks, bandwidths, costs of calls and launches",
        epilog="It is measured once, which takes a few seconds, and kept in the cache folder. Measure when the machine "
        "is idle.",
    )
    command.add_argument("--measure", action="store_true", help="measure it anew")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_machine)


def _add_cache(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    """Add the command for the disk cache, with its actions."""
    command = commands.add_parser("cache", help="list, check or clear the disk cache of compiled programs")
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = actions.add_parser("list", help="list the entries, the least recently used first")
    action.set_defaults(run=_cache("show"))
    action = actions.add_parser("check", help="look for damaged entries; exit status 1 if there are any")
    action.add_argument("--fix", action="store_true", help="remove them")
    action.set_defaults(run=_cache("check"))
    action = actions.add_parser("clear", help="remove all entries")
    action.set_defaults(run=_cache("clear"))


def _function_command(commands: argparse._SubParsersAction, name: str, what: str) -> argparse.ArgumentParser:  # type: ignore[type-arg]
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=what, description=what, epilog=_SIGNATURE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("function", metavar="FILE.py:FUNCTION")
    command.add_argument("--args", metavar="TYPES", default="", help="the arguments of the call")
    command.add_argument("--static", metavar="N,N", default="", help="positions of static arguments")
    command.add_argument("--target", metavar="NAME", default=None, help="the target (default: cpu)")
    return command


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import mlirml
        from mlirml.driver.cache import versions

        found = ", ".join(f"{name.removeprefix('version.')} {v}" for name, v in versions()[1:])
        print(f"mlirml {mlirml.__version__} (Python {sys.version.split()[0]}, {found})")
        parser.exit()


def _devices(options: argparse.Namespace) -> int:
    from mlirml.cli.devices import devices

    return devices()


def _machine(options: argparse.Namespace) -> int:
    from mlirml.cli.machine import machine

    return machine(again=options.measure, as_json=options.json)


def _explain(options: argparse.Namespace) -> int:
    from mlirml.cli.explain import explain
    from mlirml.cli.function import read_call

    call = read_call(options.function, options.args, options.static, options.target)
    if options.html is None:
        return explain(call)
    from mlirml.cli.explain_page import write_page

    write_page(call, Path(options.html))
    return 0


def _ir(options: argparse.Namespace) -> int:
    from mlirml.cli.explain import print_ir
    from mlirml.cli.function import read_call

    call = read_call(options.function, options.args, options.static, options.target)
    return print_ir(call, options.stage, options.emit, options.o)


def _bench(options: argparse.Namespace) -> int:
    from mlirml.cli.bench import bench_function

    return bench_function(options)


def _benches_function(arguments: Sequence[str]) -> bool:
    """True if the arguments of `bench` are those of a function."""
    return any(".py:" in argument and not argument.startswith("-") for argument in arguments)


def _threads(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"a number from 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text}")
    return seconds


def _tune(options: argparse.Namespace) -> int:
    from mlirml.cli.function import read_call
    from mlirml.cli.tune import tune

    return tune(read_call(options.function, options.args, options.static, options.target), options.seconds)


def _cache(action: str) -> object:
    def run(options: argparse.Namespace) -> int:
        from mlirml.cli import disk_cache
        from mlirml.core.private_folder import Untrusted

        try:
            if action == "check":
                return disk_cache.check(fix=options.fix)
            return disk_cache.show() if action == "show" else disk_cache.clear()
        except Untrusted as reason:
            print(f"mlirml: the cache is not used: {reason}", file=sys.stderr)
            return 1

    return run
