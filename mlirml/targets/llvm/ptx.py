"""PTX for NVIDIA's processors, by llvmlite, with libdevice if a wheel that contains it is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import llvmlite.binding as llvmlite

from mlirml.core.dataclass import dataclass
from mlirml.errors import InternalError, TargetError

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURES = {"sm_80": 80, "sm_86": 80, "sm_89": 81, "sm_90": 80, "sm_100": 86, "sm_120": 87}
"""The architectures that code is generated for, with the PTX version that each needs."""


@dataclass(frozen=True)
class Assembled:
    """The output of `ptxas`: the cubin, and for each kernel its registers, spilled bytes and shared memory."""

    cubin: bytes
    registers: dict[str, int]
    spills: dict[str, int]
    shared: dict[str, int]


def to_ptx(text: str, architecture: str = "sm_80") -> str:
    """PTX of LLVM IR text for an architecture of `ARCHITECTURES`.

    Raises `TargetError` for another architecture, or if the text calls libdevice and it is not installed.
    """
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise TargetError(f"no code for the architecture {architecture!r}; those known are {known}")
    machine = _machine(architecture)
    context = llvmlite.create_context()
    module = llvmlite.parse_assembly(text, context)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    if "@__nv_" in text:
        _link_libdevice(module, context)
    try:
        module.verify()
    except RuntimeError as error:
        raise InternalError("LLVM's verifier refuses the generated kernels", notes=(str(error),)) from None
    tuning = llvmlite.create_pipeline_tuning_options(speed_level=3)
    builder = llvmlite.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


@lru_cache(maxsize=8)
def _machine(architecture: str) -> llvmlite.TargetMachine:
    llvmlite.initialize_all_targets()
    llvmlite.initialize_all_asmprinters()
    features = f"+ptx{ARCHITECTURES[architecture]}"
    target = llvmlite.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=architecture, features=features, opt=3)


def _link_libdevice(module: llvmlite.ModuleRef, context: llvmlite.ContextRef) -> None:
    """Link the functions of libdevice that the module calls, with internal linkage, so that unused ones are removed."""
    path = libdevice()
    if path is None:
        raise TargetError(
            "the kernels call functions of libdevice, which is not installed",
            help="pip install nvidia-nvvm",
        )
    own = {function.name for function in module.functions if not function.is_declaration}
    library = llvmlite.parse_bitcode(path.read_bytes(), context)
    library.triple, library.data_layout = TRIPLE, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"


def toolkits() -> Iterator[Path]:
    """The folders of NVIDIA's wheels that may contain tools."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(folder).glob("cu*"))
        yield Path(folder) / "cuda_nvcc"


@cache
def libdevice() -> Path | None:
    """The bitcode of NVIDIA's elementary functions, if a wheel contains it."""
    found = [path for folder in toolkits() for path in folder.glob("nvvm/libdevice/libdevice.*.bc")]
    return found[0] if found else None


@cache
def assembler() -> Path | None:
    """NVIDIA's assembler `ptxas`, if a wheel contains it."""
    found = [path for folder in toolkits() for path in folder.glob("bin/ptxas")]
    return found[0] if found else None


@cache
def assembler_version() -> str:
    """The version of the assembler's package; the size of the tool and its time where no package is known."""
    for name in ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    tool = assembler()
    return "" if tool is None else f"{tool.stat().st_size} {tool.stat().st_mtime_ns}"


@cache
def assembler_major() -> int:
    """The version of CUDA that the assembler is for, 13 for 13.5; 0 where it is not known."""
    found = re.match(r"(\d+)\.", assembler_version())
    return int(found.group(1)) if found else 0


def assemble(ptx: str, architecture: str) -> Assembled:
    """Assemble PTX into a cubin; raises `InternalError` if `ptxas` rejects it, `TargetError` if `ptxas` is missing."""
    tool = assembler()
    if tool is None:
        raise TargetError("there is no `ptxas`", help="pip install nvidia-cuda-nvcc")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx)
        command = [str(tool), f"-arch={architecture}", "-O3", "-v", str(source), "-o", str(binary)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InternalError("ptxas refuses the generated PTX", notes=tuple(done.stderr.splitlines()[:6]))
        return Assembled(binary.read_bytes(), *_report(done.stderr))


def _report(text: str) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Registers, spilled bytes and shared memory of each kernel, parsed from the output of `ptxas -v`."""
    registers, spills, shared = {}, {}, {}
    for part in text.split("Compiling entry function '")[1:]:
        name = part.partition("'")[0]
        registers[name] = _number(r"Used (\d+) registers", part)
        spills[name] = _number(r"(\d+) bytes spill stores", part)
        shared[name] = _number(r"(\d+) bytes smem", part)
    return registers, spills, shared


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0
