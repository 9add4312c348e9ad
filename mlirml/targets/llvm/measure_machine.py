"""Measure this machine with kernels of our own: peaks of arithmetic, bandwidths of memory, costs of calls and forks.

The kernels are written as MLIR after stage `schedule`, as the compiler's own kernels are, and lowered as these. Each
number is the best of a few runs, each of some milliseconds: other programs can only make a machine look slower.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.processes import COMPILER, native_code
from mlirml.errors import LoweringError
from mlirml.runtime import _native
from mlirml.runtime.executable import load_artifact
from mlirml.targets.machine import Processor, host_facts, host_l2_bytes, named
from mlirml.targets.measured import LEVELS, Level, MeasuredMachine, Pair, machine_key

if TYPE_CHECKING:
    from mlirml.targets.target import Target

_LEAST_NANOSECONDS = 1_000_000
_STEADY = 12
"""Passes over all probes in which none gets faster, after which no more are made."""
_SECONDS, _TOGETHER_SECONDS = 1.5, 3.0
"""The longest time for probes of one thread, and for those of all threads, which need several cores at once."""
_STEPS = 4000
"""Sequential additions in a task of the loop that measures forks."""
_ACCESSES = ("read", "write", "copy")
_SHARED = ("L3", "memory")
_UNROLLED = 8
"""Vectors that an iteration of a loop over memory reads or writes."""
_PADDING = 64
"""Elements between the results of two threads, so that they share no cache line."""
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Arithmetic:
    """Instructions of a dtype: the text of one that adds to %acc, the type it adds to, its lanes and flops."""

    dtype: str
    lanes: int
    flops: int
    operation: str
    operand: str
    accumulator: str


def measure(threads: int | None = None) -> MeasuredMachine:
    """Measure this machine with the threads that loops may use now; takes a few seconds."""
    threads = threads or _native.get_threads()
    with COMPILER:
        return _measured(named("host"), threads)


def _measured(processor: Processor, threads: int) -> MeasuredMachine:
    tasks = tuple(dict.fromkeys((1, threads)))
    found = {each.dtype: _peak_probe(each, processor, threads) for each in arithmetics(processor)}
    peaks = {dtype: [probe(count) for count in tasks] for dtype, probe in found.items() if probe is not None}
    sizes = cache_sizes()
    memory = _memory(processor, threads, sizes)
    levels = _level_probes(memory, sizes, threads)
    call, (task, forked) = _call_probe(processor), _fork_probes(processor, threads)
    alone = [*(probes[0] for probes in peaks.values()), *_of_tasks(levels, 1), call, task]
    together = [] if threads == 1 else [*(probes[1] for probes in peaks.values()), *_of_tasks(levels, threads), forked]
    sample_in_turn(alone, _SECONDS)
    sample_in_turn(together, _TOGETHER_SECONDS)

    def rates(level: str, access: str) -> Pair:
        return _pair([max(probe.rate for probe in levels[level, access, count]) for count in tasks])

    return MeasuredMachine(
        cpu=host_facts()["cpu"],
        threads=threads,
        peaks={dtype: _pair([probe.rate for probe in probes]) for dtype, probes in peaks.items()},
        levels={
            level: Level(sizes.get(level, 0), level in _SHARED, *(rates(level, access) for access in _ACCESSES))
            for level in dict.fromkeys(level for level, _, _ in levels)
        },
        call_seconds=1e-9 * call.nanoseconds,
        fork_seconds=1e-9 * max(0.0, forked.nanoseconds - task.nanoseconds) if threads > 1 else 0.0,
        key=machine_key(threads),
    )


def _of_tasks(levels: dict[tuple[str, str, int], list[Probe]], tasks: int) -> list[Probe]:
    return [probe for (_, _, count), probes in levels.items() if count == tasks for probe in probes]


def _pair(rates: Sequence[float]) -> Pair:
    """The rates of one thread and of all; all together are no slower than one, which they could leave to work alone."""
    return rates[0], max(rates)


def arithmetics(processor: Processor) -> Iterator[Arithmetic]:
    """The instructions that multiply and add on a processor."""
    bits = processor.vector_bits or 128
    for dtype, width in (("f32", 32), ("f64", 64)):
        lanes = bits // width
        vector = f"vector<{lanes}x{dtype}>"
        yield Arithmetic(dtype, lanes, 2 * lanes, f"vector.fma %a, %b, %acc : {vector}", vector, vector)
    if processor.has_bf16_pairs:
        call = 'llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%acc, %a, %b) : '
        call += "(vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>"
        yield Arithmetic("bf16", 16, 64, call, "vector<32xbf16>", "vector<16xf32>")
    if processor.vector_bits == 512 and "avx512_vnni" in host_facts()["cpu.flags"].split():
        call = 'llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%acc, %a, %b) : '
        call += "(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>"
        yield Arithmetic("i8", 16, 128, call, "vector<64xi8>", "vector<16xi32>")


def cache_sizes() -> dict[str, int]:
    """The bytes of the caches of a core and of the one that cores share, as far as Linux tells."""
    found = {"L1": 32 << 10, "L2": host_l2_bytes()}
    folder = "/sys/devices/system/cpu/cpu0/cache"
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            level, purpose, size = (_read(f"{folder}/{name}/{file}") for file in ("level", "type", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KM])", size)
        if match and purpose != "Instruction" and f"L{level}" in LEVELS:
            found[f"L{level}"] = int(match[1]) << {"K": 10, "M": 20}[match[2]]
    return found


def arithmetic_text(each: Arithmetic, chains: int, threads: int) -> str:
    """The module that repeats an instruction in independent chains, so many times in each of its tasks."""
    arguments = ", ".join(f"%from{i} = %zero" for i in range(chains))
    steps = [f"%next{i} = {each.operation.replace('%acc', f'%from{i}')}" for i in range(chains)]
    types = ", ".join([each.accumulator] * chains)
    add = "arith.addi" if "i32" in each.accumulator else "arith.addf"
    total = [f"%t1 = {add} %r#0, %r#1 : {each.accumulator}"]
    total += [f"%t{i} = {add} %t{i - 1}, %r#{i} : {each.accumulator}" for i in range(2, chains)]
    element, size = _shape(each.accumulator)[1], "x".join(map(str, _shape(each.operand)))
    body = f"""
      %a = vector.load %x[%c0] : memref<{size}>, {each.operand}
      %b = vector.load %x[%c0] : memref<{size}>, {each.operand}
      %zero = arith.constant dense<{"0" if element == "i32" else "0.0"}> : {each.accumulator}
      %r:{chains} = scf.for %k = %c0 to %n1 step %c1 iter_args({arguments}) -> ({types}) {{
        {_joined(steps)}
        scf.yield {", ".join(f"%next{i}" for i in range(chains))} : {types}
      }}
      {_joined(total)}
      %at = arith.muli %t, %padding : index
      vector.store %t{chains - 1}, %y[%at] : memref<{_PADDING * threads}x{element}>, {each.accumulator}
    """
    return _module(body, numbers=2, inputs=[size], output=f"{_PADDING * threads}x{element}")


def memory_text(access: str, processor: Processor, elements: int, threads: int, *, nontemporal: bool = False) -> str:
    """The module that reads, writes or copies each task's part of f32 arrays again and again."""
    lanes = processor.lanes(32) or 4
    vector, array = f"vector<{lanes}xf32>", f"memref<{elements}xf32>"
    hint = " {nontemporal = true}" if nontemporal else ""
    positions = [f"%p{i} = arith.addi %j, %o{i} : index" for i in range(_UNROLLED)]
    offsets = [f"%o{i} = arith.constant {i * lanes} : index" for i in range(_UNROLLED)]
    loads = [f"%v{i} = vector.load %x[%p{i}] : {array}, {vector}" for i in range(_UNROLLED)]
    stored = "%v{i}" if access == "copy" else "%value"
    stores = [f"vector.store {stored.format(i=i)}, %y[%p{i}]{hint} : {array}, {vector}" for i in range(_UNROLLED)]
    begin = f"""
      {_joined(offsets)}
      %zero = arith.constant dense<0.0> : {vector}
      %first = arith.muli %t, %n1 : index
      %last = arith.addi %first, %n1 : index
      %step = arith.constant {_UNROLLED * lanes} : index
    """
    if access == "read":
        types = ", ".join([vector] * _UNROLLED)
        outer = ", ".join(f"%i{i} = %zero" for i in range(_UNROLLED))
        inner = ", ".join(f"%k{i} = %i{i}" for i in range(_UNROLLED))
        adds = [f"%w{i} = arith.addf %k{i}, %v{i} : {vector}" for i in range(_UNROLLED)]
        total = [f"%t1 = arith.addf %r#0, %r#1 : {vector}"]
        total += [f"%t{i} = arith.addf %t{i - 1}, %r#{i} : {vector}" for i in range(2, _UNROLLED)]
        body = f"""{begin}
      %r:{_UNROLLED} = scf.for %k = %c0 to %n2 step %c1 iter_args({outer}) -> ({types}) {{
        %q:{_UNROLLED} = scf.for %j = %first to %last step %step iter_args({inner}) -> ({types}) {{
          {_joined([*positions, *loads, *adds])}
          scf.yield {", ".join(f"%w{i}" for i in range(_UNROLLED))} : {types}
        }}
        scf.yield {", ".join(f"%q#{i}" for i in range(_UNROLLED))} : {types}
      }}
      {_joined(total)}
      %at = arith.muli %t, %padding : index
      vector.store %t{_UNROLLED - 1}, %y[%at] : memref<{_PADDING * threads}xf32>, {vector}
        """
        return _module(body, numbers=3, inputs=[f"{elements}xf32"], output=f"{_PADDING * threads}xf32")
    body = f"""{begin}
      scf.for %k = %c0 to %n2 step %c1 {{
        %number = arith.index_cast %k : index to i32
        %float = arith.sitofp %number : i32 to f32
        %value = vector.broadcast %float : f32 to {vector}
        scf.for %j = %first to %last step %step {{
          {_joined([*positions, *(loads if access == "copy" else []), *stores])}
        }}
      }}
    """
    return _module(body, numbers=3, inputs=[f"{elements}xf32"] if access == "copy" else [], output=f"{elements}xf32")


def fork_text(threads: int) -> str:
    """The module that begins a parallel loop so many times, whose tasks take a few microseconds each."""
    array = f"memref<{_PADDING * threads}xf32>"
    body = f"""
      %at = arith.muli %t, %padding : index
      %steps = arith.constant {_STEPS} : index
      %one = arith.constant 1.0 : f32
      %start = memref.load %y[%at] : {array}
      %sum = scf.for %j = %c0 to %steps step %c1 iter_args(%s = %start) -> (f32) {{
        %next = arith.addf %s, %one : f32
        scf.yield %next : f32
      }}
      memref.store %sum, %y[%at] : {array}
    """
    return _module(body, numbers=2, inputs=[], output=f"{_PADDING * threads}xf32", repeats=True)


def _joined(lines: Sequence[str]) -> str:
    return "\n          ".join(lines)


def _module(body: str, *, numbers: int, inputs: Sequence[str], output: str, repeats: bool = False) -> str:
    """A module with a task that is executed for each %t; %n1, %n2, ... are the numbers after that of the tasks.

    With `repeats` the loop over the tasks is begun %n1 times.
    """
    names = ["%x" if len(inputs) == 1 else f"%x{i}" for i in range(len(inputs))]
    arguments = [("%n", f"memref<{numbers}xi64>"), *((n, f"memref<{t}>") for n, t in zip(names, inputs, strict=True))]
    arguments.append(("%y", f"memref<{output}>"))
    typed = ", ".join(f"{name}: {kind}" for name, kind in arguments)
    passed, types = ", ".join(name for name, _ in arguments), ", ".join(kind for _, kind in arguments)
    loads = [
        f"%c{i} = arith.constant {i} : index\n    %m{i} = memref.load %n[%c{i}] : memref<{numbers}xi64>\n"
        f"    %n{i} = arith.index_cast %m{i} : i64 to index"
        for i in range(numbers)
    ]
    read = "\n    ".join(loads) + ("" if numbers > 1 else "\n    %c1 = arith.constant 1 : index")
    call = f"func.call @task(%c0, %n0, {passed}) {{mlirml.parallel_for = 1 : i64}} : (index, index, {types}) -> ()"
    calls = f"scf.for %k = %c0 to %n1 step %c1 {{ {call} }}" if repeats else call
    tensors = ", ".join(f"tensor<{kind}>" for kind in (f"{numbers}xi64", *inputs))
    return f"""
  func.func private @task(%lo: index, %hi: index, {typed}) {{
    {read}
    %padding = arith.constant {_PADDING} : index
    scf.for %t = %lo to %hi step %c1 {{
      {body}
    }}
    return
  }}
  func.func @main({typed}) attributes {{
    mlirml.inputs = [{tensors}], mlirml.outputs = [tensor<{output}>], mlirml.workspace = 0 : i64
  }} {{
    {read}
    {calls}
    return
  }}
"""


@native_code()
def compiled(text: str, processor: Processor) -> Any:
    """The program of a module after stage `schedule`."""
    from mlirml.ir.bindings import parse
    from mlirml.passes import Pipeline
    from mlirml.targets.cpu import target_with

    target: Target = target_with("builtin", 0, processor)
    module = parse(text)
    Pipeline(target.pipeline.stages[-1:]).run(module)
    artifact = target.codegen(module)
    specs = [[(_dtype(each.dtype), each.shape) for each in side] for side in (artifact.inputs, artifact.outputs)]
    return load_artifact(artifact, *specs)


def _shape(vector: str) -> tuple[int, str]:
    """The lanes and the element type of the text of a vector type."""
    lanes, element = vector.removeprefix("vector<").removesuffix(">").split("x")
    return int(lanes), element


def _dtype(name: str) -> np.dtype[Any]:
    from mlirml.ir.text.dtypes import from_short_name

    return np.dtype(from_short_name(name))


@dataclass
class Probe:
    """A thing to measure: `run(repeats)` does `amount` of it in each repeat; `nanoseconds` is the fastest repeat."""

    run: Callable[[int], None]
    amount: float = 1.0
    repeats: int = 1
    nanoseconds: float = float("inf")

    @property
    def rate(self) -> float:
        """The amount a second."""
        return 1e9 * self.amount / self.nanoseconds

    def calibrate(self) -> None:
        """Find the number of repeats that takes long enough for the clock, and not much longer."""
        while (taken := self.sample()) < _LEAST_NANOSECONDS:
            self.repeats = max(2 * self.repeats, int(self.repeats * _LEAST_NANOSECONDS / max(taken, 1)))

    def sample(self) -> int:
        """The nanoseconds of one run."""
        begun = _native.clock_nanoseconds()
        self.run(self.repeats)
        taken = _native.clock_nanoseconds() - begun
        self.nanoseconds = min(self.nanoseconds, taken / self.repeats)
        return taken


def sample_in_turn(probes: Sequence[Probe], seconds: float) -> None:
    """Sample probes in turn, so that a disturbance does not meet all the samples of one, until they are steady.

    They are after some passes in which none got faster, or after so many seconds.
    """
    for probe in probes:
        probe.calibrate()
    end, steady = time.perf_counter() + seconds, 0
    while steady < _STEADY and time.perf_counter() < end:
        before = [probe.nanoseconds for probe in probes]
        for probe in probes:
            probe.sample()
        is_faster = any(0.99 * old > probe.nanoseconds for old, probe in zip(before, probes, strict=True))
        steady = 0 if is_faster else steady + 1


def _peak_probe(each: Arithmetic, processor: Processor, threads: int) -> Callable[[int], Probe] | None:
    """The probe of an instruction for a number of tasks; None where LLVM does not have it."""
    chains = 16 if processor.vector_registers == 32 else 12
    try:
        program = compiled(arithmetic_text(each, chains, threads), processor)
    except LoweringError:
        return None
    count, element = _shape(each.operand)
    operand = np.full(count, 0.5).astype(_dtype(element))
    result = np.zeros(_PADDING * threads, _dtype(_shape(each.accumulator)[1]))

    def probe(tasks: int) -> Probe:
        def run(repeats: int) -> None:
            program([np.array([tasks, repeats]), operand], [result])

        return Probe(run, tasks * chains * each.flops, 1000)

    return probe


@dataclass(frozen=True)
class Memory:
    """The programs that read, write and copy, and their arrays; the second program of an access is for large arrays."""

    programs: dict[str, list[Any]]
    arrays: tuple[Any, Any]
    small: Any

    @property
    def bytes(self) -> int:
        """The size of both arrays."""
        return int(2 * self.arrays[0].nbytes)

    def probes(self, level: str, size: int, access: str, tasks: int) -> list[Probe]:
        """The probes of an access over so many bytes of each task."""
        arrays = 2 if access == "copy" else 1
        step = _UNROLLED * 16
        most = self.arrays[0].size // tasks
        elements = max(step, min(size // 4 // arrays, most) // step * step)
        inputs = [] if access == "write" else [self.arrays[0]]
        output = self.small if access == "read" else self.arrays[1]

        def run_of(program: Any) -> Callable[[int], None]:
            def run(repeats: int) -> None:
                program([np.array([tasks, elements, repeats]), *inputs], [output])

            return run

        programs = self.programs[access] if level == "memory" else self.programs[access][:1]
        return [Probe(run_of(program), 4 * arrays * tasks * elements) for program in programs]


def _memory(processor: Processor, threads: int, sizes: dict[str, int]) -> Memory:
    elements = min(_MOST_BYTES, max(4 * max(sizes.values()), 64 << 20)) // 8
    programs = {
        access: [compiled(memory_text(access, processor, elements, threads, nontemporal=n), processor) for n in past]
        for access, past in (("read", (False,)), ("write", (False, True)), ("copy", (False, True)))
    }
    arrays = _aligned_ones(elements), _aligned_ones(elements)
    return Memory(programs, arrays, np.zeros(_PADDING * threads, np.float32))


def _aligned_ones(elements: int) -> Any:
    """An array of f32 that begins at a page, as vectors across two cache lines take twice as long."""
    raw = np.ones(elements + 1024, np.float32)
    start = -raw.ctypes.data % 4096 // 4
    return raw[start : start + elements]


def _level_probes(memory: Memory, sizes: dict[str, int], threads: int) -> dict[tuple[str, str, int], list[Probe]]:
    """The probes of each level of memory, access, and number of tasks."""
    found = {}
    for level in LEVELS:
        if level != "memory" and level not in sizes:
            continue
        for access in _ACCESSES:
            for tasks in dict.fromkeys((1, threads)):
                size = sizes[level] // 2 if level in sizes else memory.bytes // (1 if access == "copy" else 2)
                share = size // tasks if level in _SHARED else size
                found[level, access, tasks] = memory.probes(level, share, access, tasks)
    return found


def _call_probe(processor: Processor) -> Probe:
    """The probe of a call of a program that does nearly nothing."""
    program = compiled(fork_text(1), processor)
    numbers, result = np.array([1, 0]), np.zeros(_PADDING, np.float32)

    def run(repeats: int) -> None:
        for _ in range(repeats):
            program((numbers,), (result,))

    return Probe(run, 1, 1000)


def _fork_probes(processor: Processor, threads: int) -> list[Probe]:
    """The probes of a loop with one task, which is not forked, and of one with a task for each thread."""
    program, result = compiled(fork_text(threads), processor), np.zeros(_PADDING * threads, np.float32)

    def run_of(tasks: int) -> Callable[[int], None]:
        def run(repeats: int) -> None:
            program([np.array([tasks, repeats])], [result])

        return run

    return [Probe(run_of(1)), Probe(run_of(threads))]


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
