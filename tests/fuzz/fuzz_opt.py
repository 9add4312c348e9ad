# ruff: noqa: E501, SIM115
"""Mutated modules and misordered passes for `mlirml-opt`, run in a child process that is started again if it dies.

`python -m tests.fuzz.fuzz_opt COUNT [SEED]` prints the counts and each failure. A job fails if it ends in an internal error,
kills the process or does not end; a diagnostic with exit status 1 is as good as a module.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import io
import json
import os
import random
import re
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
TARGETS = ("cpu", "reference", "vulkan", "cuda")
LIMIT = 40.0
"""Seconds that a job may take."""
UPSTREAM = (
    "canonicalize", "cse", "lower-affine", "convert-scf-to-cf", "convert-linalg-to-loops", "convert-to-llvm",
    "convert-func-to-llvm", "one-shot-bufferize", "symbol-dce", "inline", "loop-invariant-code-motion",
    "expand-strided-metadata", "reconcile-unrealized-casts",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A module as text, and the flags that it is run with."""

    name: str
    text: str
    flags: tuple[str, ...]


@dataclass
class Report:
    """How jobs ended: `counts` of ok, diagnostic, internal, crash and timeout, and the failures with what was said."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Job, str]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            ", ".join(f"{name} {self.counts[name]}" for name in ("ok", "diagnostic", "internal", "crash", "timeout"))
        ]
        for kind, job, said in self.failures:
            lines.append(
                f"{kind}: {job.name}: mlirml-opt {' '.join(job.flags)}\n    " + said.strip().replace("\n", "\n    ")
            )
        return "\n".join(lines)


# The modules that jobs start from.


@functools.cache
def modules() -> tuple[tuple[str, str], ...]:
    """Modules that MLIR accepts, with names: those of the lit tests, and some programs after each stage."""
    from mlirml.ir.bindings import make_context, mlir

    found = []
    for path in sorted(ROOT.glob("lit_tests/**/*.mlir")):
        if "Inputs" in path.parts:
            continue
        for number, text in enumerate(re.split(r"^// -----.*\n", path.read_text(), flags=re.MULTILINE)):
            try:
                mlir.Module.parse(text, make_context())
            except mlir.MLIRError:
                continue
            code = "\n".join(line for line in text.splitlines() if not line.strip().startswith("//"))
            found.append((f"{path.relative_to(ROOT)}#{number}", code + "\n"))
    return (*found, *_stages())


def _stages() -> Iterator[tuple[str, str]]:
    import numpy as np

    import mlirml as ml
    from mlirml.dialects.legality import STAGES

    def dense(x: Any, w: Any) -> Any:
        return np.maximum(np.tanh(x @ w), 0.5).sum(axis=1)

    def softmax(x: Any) -> Any:
        e = np.exp(x - np.max(x, axis=1, keepdims=True))
        return np.sort(e / np.sum(e, axis=1, keepdims=True), axis=0)

    def gather(x: Any, i: Any) -> Any:
        return np.cumsum(x[i]) * 2, ml.fori_loop(0, 3, lambda k, v: v * x[0], x)

    def nest(a: Any, b: Any) -> Any:
        for i in range(1, a.shape[0]):
            s = a[i, 0]
            for j in range(a.shape[1]):
                s += a[i - 1, j] * b[j]
            a[i, 0] = s

    x = np.ones((8, 5), np.float32)
    programs: list[tuple[Any, tuple[Any, ...]]] = [
        (dense, (x, x.T.copy())),
        (softmax, (x,)),
        (gather, (x[0].copy(), np.array([1, 2, 0]))),
        (nest, (x, x[0].copy())),
        (ml.grad(lambda w: np.sum(np.tanh(x @ w) ** 2)), (x[0].copy(),)),
        (ml.vmap(lambda v: ml.cond(v[0] > 0, lambda: v * 2, lambda: v - 1)), (x,)),
    ]
    for function, arguments in programs:
        for target in ("cpu", "vulkan"):
            compiled = ml.compile(function, target)
            for stage in STAGES:
                with contextlib.suppress(ml.errors.MlirmlError):
                    name = getattr(function, "__name__", "transformed")
                    yield f"{name} for {target} after {stage}", compiled.ir(stage, *arguments)


# Mutations of text: most keep the module one that MLIR accepts, and `mutated` looks for these.


def _lines(text: str, rng: random.Random) -> str:
    """Delete, double or swap operations."""
    lines = text.splitlines()
    inside = [n for n, line in enumerate(lines) if line.startswith("  ")]
    if not inside:
        return text
    at = rng.choice(inside)
    kind = rng.randrange(3)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        fresh = re.sub(r"^(\s*)%\w+", r"\1%fuzz", lines[at])
        lines.insert(at, fresh)
    elif at + 1 < len(lines):
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "\n".join(lines) + "\n"


def _types(text: str, rng: random.Random) -> str:
    """Another element type everywhere, or tensors for memrefs."""
    kinds = (
        "f32", "f64", "f16", "bf16", "i64", "i32", "i8", "i1", "index", "complex<f32>", "vector<4xf32>", "tensor<2xf32>",
        "f8E4M3FN", "f8E5M2", "f80", "i4", "i128", "ui8", "none", "tuple<f32, i32>", "!llvm.ptr", "!gpu.async.token",
        "!quant.any<i8:f32>", "(f32) -> f32",
    )  # fmt: skip
    there = [kind for kind in kinds if re.search(rf"(?<![\w%@]){re.escape(kind)}\b", text)]
    if rng.random() < 0.2:
        one, other = rng.choice(
            [("memref", "tensor"), ("tensor", "memref"), ("tensor<", "vector<"), ("memref<", "vector<")]
        )
        return text.replace(one, other)
    if rng.random() < 0.15:
        unranked = re.sub(r"(?<=tensor<|memref<)(?:[\d?]+x)*(?=\w+>)", "*x", text, count=rng.choice([0, 1, 2]))
        return unranked if rng.random() < 0.5 else re.sub(r"(tensor|memref)<(?:[\d?]+x)+", r"\1<", text)
    if not there:
        return text
    one, other = rng.choice(there), rng.choice(kinds)
    return re.sub(rf"(?<![\w%@.])(?<!-)((?:\d+x)*){re.escape(one)}\b(?!\w)", lambda m: m[1] + other, text)


def _sizes(text: str, rng: random.Random) -> str:
    """Another size for all dimensions of one size, or for one of them; dynamic ones, too."""
    sizes = re.findall(r"[<x](\d+)x", text)
    if not sizes:
        return text
    one, other = rng.choice(sizes), rng.choice(["?", "?", "?", "0", "1", "2", "3", "17", "4096"])
    return re.sub(rf"(?<=[<x]){one}x", f"{other}x", text, count=rng.choice([0, 0, 0, 1]))


def _numbers(text: str, rng: random.Random) -> str:
    """Another constant."""
    found = list(
        re.finditer(r"(?<=constant )-?\d+(?= :)|(?<=constant )-?\d+\.\d+e[+-]\d+|(?<=[\[,] )\d+(?=[\],])", text)
    )
    if not found:
        return text
    at = rng.choice(found)
    number = rng.choice(["0", "1", "-1", "2", "7", "1000000007", "-9223372036854775808", "9223372036854775807"])
    if "." in at[0]:
        number = rng.choice(["0.0", "-0.0", "1.0e30", "-1.0"])
    return text[: at.start()] + number + text[at.end() :]


def _attributes(text: str, rng: random.Random) -> str:
    """Drop an attribute, or give it to all that have attributes."""
    found = list(
        re.finditer(
            r"(?:mlirml|gpu|llvm|memref|func)\.\w+(?: = (?:[\w.\-]+ : \w+|array<[^>]*>|\"[^\"]*\"|\[[^\[\]]*\]))?(?:, )?",
            text,
        )
    )
    at = rng.choice(found) if found else None
    if at is None or rng.random() < 0.3:
        name = rng.choice(["mlirml.parallel", "mlirml.writebacks = array<i64: 0, 1>", "mlirml.kernels = []", "mlirml.order = 3 : i64",
                           "mlirml.dispatch", "mlirml.tiles = array<i64: 4, 4>", "mlirml.inputs = [f32]", "mlirml.workspace = \"a\""])  # fmt: skip
        return re.sub(r"^(func\.func [^{]*?|  func\.func [^{]*?) (attributes \{)?(?=[^\n]*\{$)",
                      lambda m: f"{m[1]} attributes {{{name}{', ' if m[2] else '} '}", text, count=1, flags=re.MULTILINE)  # fmt: skip
    if rng.random() < 0.4 and "=" in at[0]:
        value = rng.choice(
            ["unit", "1 : i64", "-5 : i64", '"x"', "[]", "array<i64>", "array<i64: 99>", "f32", "@nothing"]
        )
        return (
            text[: at.start()]
            + at[0].split("=")[0]
            + f"= {value}"
            + (", " if at[0].endswith(", ") else "")
            + text[at.end() :]
        )
    return text[: at.start()] + text[at.end() :]


def _functions(text: str, rng: random.Random) -> str:
    """Rename @main, or take away bodies, or add functions of another module."""
    kind = rng.randrange(5)
    if kind == 0:
        return text.replace("@main", "@other")
    if kind == 1:
        return (
            re.sub(r"@(?!main)\w+", "@main", text, count=1)
            if "@main" not in text
            else text.replace("@main", "@main_", 1)
        )
    if kind == 2:
        return re.sub(
            r"(func\.func )([^\n]*?)(?: attributes [^\n]*)? \{\n(?:.*\n)*?^(  )?\}\n",
            r"\1private \2\n",
            text,
            count=1,
            flags=re.MULTILINE,
        )
    if kind == 3:
        return "" if rng.random() < 0.3 else re.sub(r"\bfunc\.func (?!private)", "func.func private ", text)
    other = rng.choice(modules())[1]
    if "#" in text or "#" in other or "module" in text or "module" in other:
        return text
    return text + re.sub(r"@(\w+)", r"@\1_second", other)


def _operations(text: str, rng: random.Random) -> str:
    """Other operations in the place of some."""
    families = (
        ("arith.addf", "arith.mulf", "arith.subf", "arith.divf", "arith.maximumf", "arith.minimumf", "arith.remf", "math.powf"),
        ("arith.addi", "arith.muli", "arith.subi", "arith.divsi", "arith.remui", "arith.maxsi", "arith.andi", "arith.shli"),
        ("math.exp", "math.tanh", "math.sqrt", "math.erf", "math.absf", "arith.negf", "math.rsqrt", "math.tan", "math.cbrt"),
        ("scf.for", "scf.parallel", "affine.for"), ('"parallel"', '"reduction"', '"window"'),
        ("linalg.matmul", "linalg.batch_matmul", "linalg.add", "linalg.dot"), ("tensor.extract ", "memref.load "),
        (" slt,", " ult,", " eq,", " sge,"), ("linalg.fill", "linalg.copy"),
    )  # fmt: skip
    if rng.random() < 0.25:
        return _foreign(text, rng)
    found = [(one, family) for family in families for one in family if one in text]
    if not found:
        return text
    one, family = rng.choice(found)
    return text.replace(one, rng.choice(family), rng.choice([-1, 1]))


def _foreign(text: str, rng: random.Random) -> str:
    """One operation that no pass of ours knows: of a dialect that is not registered, of another one, or as a symbol."""
    made = (
        '%foreign = "no.such"() {a = 1 : i64} : () -> !no.type<x>', '"no.such"() ({ ^bb0(%u: f32): "no.end"() : () -> () }) : () -> ()',
        '"no.such"() ({}) : () -> ()', "%foreign = async.execute { async.yield }", '%foreign = "test.op"() : () -> tuple<i32, f32>',
        "%foreign = shape.const_shape [1, 2] : tensor<2xindex>", "%foreign = ub.poison : f32", "%foreign = ub.poison : tensor<3xf32>",
        "%foreign = complex.constant [1.0, 2.0] : complex<f32>", "%foreign = builtin.unrealized_conversion_cast to tensor<4xf32>",
        "%foreign = tensor.empty() : tensor<0x3xf32>", "%foreign = vector.step : vector<4xindex>", "gpu.barrier", "scf.execute_region { scf.yield }",
        "%foreign = llvm.mlir.zero : !llvm.ptr", "%foreign = sparse_tensor.has_runtime_library", "%foreign = arith.constant dense<> : tensor<0xi64>",
    )  # fmt: skip
    lines = text.splitlines()
    inside = [n for n, line in enumerate(lines) if line.startswith("  ")]
    op = rng.choice(made)
    if rng.random() < 0.15 or not inside:
        return text + rng.choice(['"no.symbol"() {sym_name = "s"} : () -> ()', "memref.global @main : memref<2xf32>", "module @main {}",
                                  "memref.global @state : memref<2xf32> = uninitialized", "func.func @loop() { call @loop() : () -> () return }"]) + "\n"  # fmt: skip
    lines.insert(rng.choice(inside), f"  {op}")
    return "\n".join(lines) + "\n"


_MUTATIONS = (_lines, _lines, _types, _sizes, _sizes, _numbers, _attributes, _functions, _operations)


def is_valid(text: str) -> bool:
    """Whether MLIR accepts a module."""
    from mlirml.ir.bindings import make_context, mlir

    try:
        context = make_context()
        context.allow_unregistered_dialects = "no." in text
        mlir.Module.parse(text, context)
    except (mlir.MLIRError, ValueError):
        return False
    return True


def mutated(text: str, rng: random.Random) -> str:
    """A mutated module: one that MLIR accepts, if one is found in some attempts and chance does not want another."""
    wanted = rng.random() < 0.93
    for _ in range(12):
        found = text
        for _ in range(rng.choice([1, 1, 2, 3])):
            found = rng.choice(_MUTATIONS)(found, rng)
        if found != text and is_valid(found) == wanted:
            return found
    return text


# The passes that they are run with.

_REQUIRED = {
    "int": ["0", "1", "4", "-3"],
    "str": ["optimize", "schedule", "x", ""],
    "float": ["0.5"],
    "bool": ["true", "false"],
    "Processor": ["scalar", "sse4.1", "avx2,l2=512K", "avx512+avx512_bf16,cores=1", "amx"],
    "Device": ["gpu", "vulkan,buffers=4", "cuda", "gpu,subgroup=32,tensor-cores=true"],
}


def _flag(name: str, rng: random.Random) -> str:
    """A pass with the options that it asks for, and sometimes others."""
    from mlirml.passes import REGISTRY, pass_options

    if name not in REGISTRY:
        return f"--{name}"
    values = []
    for option, what in pass_options(REGISTRY[name]).items():
        if what.required or rng.random() < 0.1:
            value = rng.choice(_REQUIRED[what.kind.__name__])
            values.append(f"{option}={'{' + value + '}' if what.many else value}")
    return f"--{name}" + (f"={' '.join(values)}" if values else "")


def jobs(count: int, seed: int) -> Iterator[Job]:
    """So many random jobs."""
    from mlirml.dialects.legality import STAGES
    from mlirml.passes import REGISTRY
    from mlirml.passes.files import load_passes
    from mlirml.targets.registry import get_target

    load_passes()
    names = sorted(REGISTRY)
    for number in range(count):
        rng = random.Random(seed * 1_000_003 + number)
        name, text = rng.choice(modules())
        if rng.random() < 0.85:
            text = mutated(text, rng)
        kind = rng.random()
        if kind < 0.45:
            flags = [_flag(names[number % len(names)], rng)]
        elif kind < 0.75:
            flags = [
                _flag(rng.choice(names if rng.random() < 0.75 else UPSTREAM), rng) for _ in range(rng.randint(2, 6))
            ]
        else:
            flags = [f"--target={rng.choice(TARGETS)}"]
            if rng.random() < 0.7:
                flags.append(f"--stop-after={rng.choice([*STAGES])}")
        if '"no.' in text and rng.random() < 0.9:
            flags = [
                *(flag for flag in flags if flag != "--inline"),
                "--allow-unregistered-dialect",
            ]  # MLIR's, it crashes
        if kind >= 0.75 and rng.random() < 0.2:
            steps = [str(step) for step in get_target(rng.choice(TARGETS)).pipeline.steps]
            for _ in range(rng.randint(1, 4)):
                step = steps.pop(rng.randrange(len(steps)))
                if rng.random() < 0.5:
                    steps.insert(rng.randrange(len(steps)), step)
            flags = [f"--pass-pipeline=builtin.module({','.join(steps)})", *flags[1:]]
        if rng.random() < 0.12:
            flags.append(f"--emit={rng.choice(['llvm', 'asm', 'ptx', 'spirv', 'wgsl'])}")
        yield Job(f"{seed}:{number} from {name}", text, tuple(flags))


# Running them.


def run_here(job: Job, folder: Path) -> tuple[str, str]:
    """How a job ends in this process, and what is said."""
    from mlirml.cli.opt.main import main

    path = folder / "input.mlir"
    path.write_text(job.text)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = main([str(path), *job.flags, "-o", str(folder / "output")])
    except BaseException as error:
        return "internal", f"{type(error).__name__}: {error}"
    text = said.getvalue()
    if status == 0:
        return "ok", text
    plain = status == 1 and text.strip() and "InternalError" not in text and "Traceback" not in text
    return ("diagnostic" if plain else "internal"), text


def child() -> None:
    """Read jobs as JSON, one a line, and write how they end."""
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        for line in sys.stdin:
            kind, said = run_here(Job(**json.loads(line)), Path(folder))
            answers.write(json.dumps([kind, said]) + "\n")
            answers.flush()


class Runner:
    """A child process; another one once it has died or does not answer."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.log = tempfile.TemporaryFile("w+")

    def run(self, job: Job) -> tuple[str, str]:
        """How a job ends."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.fuzz.fuzz_opt", "--child"]
            self.log.seek(0)
            self.log.truncate()
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=ROOT
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(job.__dict__) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        line = self.process.stdout.readline() if ready else ""
        if line:
            kind, said = json.loads(line)
            return kind, said
        self.stop()
        self.log.seek(0)
        return ("crash" if ready else "timeout"), self.log.read()[-1500:]

    def stop(self) -> None:
        """End the child."""
        if self.process is not None:
            with self.process:  # closes the pipes
                self.process.kill()
            self.process = None


def run(work: Sequence[Job] | Iterator[Job]) -> Report:
    """Run jobs in a child process."""
    runner, report = Runner(), Report()
    try:
        for job in work:
            kind, said = runner.run(job)
            report.counts[kind] += 1
            if kind not in ("ok", "diagnostic"):
                report.failures.append((kind, job, said))
    finally:
        runner.stop()
        runner.log.close()
    return report


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child()
    else:
        seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 30)
        print(f"seed {seed}")
        started = time.monotonic()
        report = run(jobs(int(sys.argv[1]), seed))
        print(report)
        if len(sys.argv) > 3:
            for number, (_, job, _) in enumerate(report.failures):
                (Path(sys.argv[3]) / f"{number}.mlir").write_text(f"// {' '.join(job.flags)}\n{job.text}")
        print(f"{time.monotonic() - started:.0f} s")
