"""`mlirml explain` and `mlirml ir`: a function after each stage of the compiler."""

from __future__ import annotations

import struct
import sys
import time
from collections import Counter
from dataclasses import field
from pathlib import Path

from mlirml.api import Compiled
from mlirml.cli.console import console, size, table
from mlirml.cli.function import Call
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import parallel_grain
from mlirml.driver import cache
from mlirml.errors import PipelineError
from mlirml.ir.bindings import mlir, operations, parse, to_text
from mlirml.passes import Instrumentation, Pipeline
from mlirml.runtime.artifact import Artifact


@dataclass(frozen=True)
class StageSize:
    """The size of a program after a stage. `dialects` counts the operations by dialect, the most frequent first."""

    name: str
    operations: int
    lines: int
    seconds: float
    dialects: tuple[tuple[str, int], ...]


@dataclass
class Explanation:
    """The stages of a function's compilation, with their sizes and times."""

    stages: list[StageSize] = field(default_factory=list)
    signature: str = ""
    parallel_loops: int = 0
    artifact: Artifact | None = None
    codegen_seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)
    cache_entry: str = ""
    is_cached: bool = False


def follow(compiled: Compiled, *args: object, **kwargs: object) -> Explanation:
    """Compile for these arguments (arrays or `TensorSpec`s), and look at the program after each stage."""
    result = Explanation()
    start = time.perf_counter()
    captured = compiled.trace(*args, **kwargs)
    module = parse(captured.text)
    _add(result, "capture", module.operation, time.perf_counter() - start)
    inputs, outputs = (", ".join(map(str, specs)) for specs in (captured.inputs, captured.outputs))
    result.signature = f"({inputs}) -> ({outputs})"
    watch = Instrumentation()
    for stage in compiled.target.pipeline.stages:
        start = time.perf_counter()
        Pipeline((stage,)).run(module, instrumentation=watch)
        _add(result, stage.name, module.operation, time.perf_counter() - start)
        if stage.name == "schedule":
            grains = [parallel_grain(op) for op in operations(module) if op.name == "func.call"]
            result.parallel_loops = len([g for g in grains if g is not None])
    start = time.perf_counter()
    result.artifact = compiled.target.codegen(module)
    result.codegen_seconds = time.perf_counter() - start
    result.remarks = [str(remark) for remark in watch.remarks]
    entry = cache.key_of(cache.key_entries(captured.key, compiled.target.fingerprint()))
    result.cache_entry = entry[:16]
    result.is_cached = any(found.path.stem == entry and not found.problem for found in cache.listing())
    return result


def _add(result: Explanation, stage: str, module: mlir.Operation, seconds: float) -> None:
    names = Counter(op.name.partition(".")[0] for op in operations(module))
    dialects = tuple(sorted(names.items(), key=lambda item: (-item[1], item[0])))
    result.stages.append(StageSize(stage, names.total(), to_text(module).count("\n"), seconds, dialects))


def code_bytes(elf: bytes) -> int:
    """The size of the machine code in an ELF64 relocatable object, without its data and tables."""
    table_offset = struct.unpack_from("<Q", elf, 0x28)[0]
    entry_size, count = struct.unpack_from("<HH", elf, 0x3A)
    total = 0
    for i in range(count):
        flags, _, _, length = struct.unpack_from("<QQQQ", elf, table_offset + i * entry_size + 8)
        total += length if flags & 4 else 0  # SHF_EXECINSTR
    return total


def stage_table(found: Explanation) -> object:
    """The stages as a table."""
    rows = table(None, "stage", "ops", "lines", "ms", "made of", right=("ops", "lines", "ms"))
    for stage in found.stages:
        made_of = ", ".join(f"{name} {n}" for name, n in stage.dialects if name not in ("builtin", "func"))
        rows.add_row(stage.name, f"{stage.operations:,}", f"{stage.lines:,}", f"{1e3 * stage.seconds:.1f}", made_of)
    if found.artifact is not None and found.artifact.format == "elf":
        made_of = f"{code_bytes(found.artifact.object):,} bytes of machine code"
        rows.add_row("codegen", "", "", f"{1e3 * found.codegen_seconds:.1f}", made_of)
    return rows


def explain(call: Call) -> int:
    """Print what each stage makes of the function, and where it would run."""
    found = follow(call.compiled, *call.args, **call.kwargs)
    out = console()
    name = getattr(call.compiled, "__name__", "function")
    out.print(f"[bold]{name}[/] {found.signature}", soft_wrap=True)
    out.print(stage_table(found))
    artifact = found.artifact
    assert artifact is not None
    loops = f"{found.parallel_loops} parallel loop{'' if found.parallel_loops == 1 else 's'}"
    out.print(f"runs on: target {call.compiled.target.name}, {loops}, {size(artifact.workspace_bytes)} of workspace")
    out.print(f"disk cache: entry {found.cache_entry} {'is there' if found.is_cached else 'is not there yet'}")
    for remark in found.remarks:
        out.print(remark, markup=False, soft_wrap=True)
    return 0


def print_ir(call: Call, stage: str, form: str, output: str) -> int:
    """Write the IR of the function after a stage."""
    if form != "mlir":
        if stage not in ("capture", "lower"):
            raise PipelineError(f"--emit={form} is of stage lower, not {stage}", help="leave --stage away")
        text = call.compiled.lower(*call.args, **call.kwargs).emit(form)
    else:
        text = call.compiled.ir(stage, *call.args, **call.kwargs)
    code = text if isinstance(text, bytes) else text.encode()
    if output != "-":
        Path(output).write_bytes(code)
    elif isinstance(text, bytes):
        sys.stdout.buffer.write(text)
    else:
        sys.stdout.write(text)
    return 0
