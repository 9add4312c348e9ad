"""LLVM, through the shared library of llvmlite's wheel: parse, optimise, link, emit objects and assembly.

llvmlite's own Python modules are not imported. Importing them takes four times as long as loading the library, and they
hold a lock during each call, so threads could not generate code concurrently. A `Context` and its modules belong to one
thread at a time; contexts are independent.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from types import TracebackType
from typing import Any

from mlirml.errors import InternalError, TargetError

_TEXT = ctypes.POINTER(c_char_p)
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "AddFunctionAttr": (None, (c_void_p, c_uint)),
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (None, (c_void_p,)),
    "CopyStringRepOfTargetData": (None, (c_void_p, _TEXT)),
    "CreateNewModulePassManager": (c_void_p, ()),
    "CreatePassBuilder": (c_void_p, (c_void_p, c_void_p)),
    "CreatePipelineTuningOptions": (c_void_p, ()),
    "CreateTargetMachine": (
        c_void_p,
        (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "CreateTargetMachineData": (c_void_p, (c_void_p,)),
    "DisposeFunctionsIter": (None, (c_void_p,)),
    "DisposeMemoryBuffer": (None, (c_void_p,)),
    "DisposeModule": (None, (c_void_p,)),
    "DisposeNewModulePassManger": (None, (c_void_p,)),
    "DisposePassBuilder": (None, (c_void_p,)),
    "DisposePipelineTuningOptions": (None, (c_void_p,)),
    "DisposeString": (None, (c_char_p,)),
    "DisposeTargetData": (None, (c_void_p,)),
    "DisposeTargetMachine": (None, (c_void_p,)),
    "FunctionsIterNext": (c_void_p, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetDefaultTargetTriple": (None, (_TEXT,)),
    "GetEnumAttributeKindForName": (c_uint, (c_char_p, c_size_t)),
    "GetHostCPUFeatures": (c_int, (_TEXT,)),
    "GetHostCPUName": (None, (_TEXT,)),
    "GetTargetFromTriple": (c_void_p, (c_char_p, _TEXT)),
    "GetValueName": (c_char_p, (c_void_p,)),
    "InitializeAllAsmPrinters": (None, ()),
    "InitializeAllTargetInfos": (None, ()),
    "InitializeAllTargetMCs": (None, ()),
    "InitializeAllTargets": (None, ()),
    "InitializeNativeAsmPrinter": (c_int, ()),
    "InitializeNativeTarget": (c_int, ()),
    "IsDeclaration": (c_int, (c_void_p,)),
    "LinkModules": (c_int, (c_void_p, c_void_p, _TEXT)),
    "ModuleFunctionsIter": (c_void_p, (c_void_p,)),
    "PTOSetLoopInterleaving": (None, (c_void_p, c_bool)),
    "PTOSetLoopUnrolling": (None, (c_void_p, c_bool)),
    "PTOSetLoopVectorization": (None, (c_void_p, c_bool)),
    "PTOSetSLPVectorization": (None, (c_void_p, c_bool)),
    "ParseAssembly": (c_void_p, (c_void_p, c_char_p, _TEXT)),
    "PrintModuleToString": (None, (c_void_p, _TEXT)),
    "RunNewModulePassManager": (None, (c_void_p, c_void_p, c_void_p)),
    "SetCommandLine": (None, (c_char_p, c_char_p)),
    "SetDataLayout": (None, (c_void_p, c_char_p)),
    "SetLinkage": (None, (c_void_p, c_int)),
    "SetTarget": (None, (c_void_p, c_char_p)),
    "TargetMachineEmitToMemory": (c_void_p, (c_void_p, c_void_p, c_int, _TEXT)),
    "VerifyModule": (c_bool, (c_void_p, _TEXT)),
    "buildPerModuleDefaultPipeline": (c_void_p, (c_void_p, c_int)),
}
_PASSES = (
    "AlwaysInliner", "DeadArgumentElimination", "GlobalDCE", "IPSCCP", "InstCombine", "LoopRotate", "NewGVN", "SROA",
    "SimplifyCFG",
)  # fmt: skip
_SIGNATURES.update({f"module_Add{name}Pass": (None, (c_void_p,)) for name in _PASSES})
_LONG = (
    "LinkModules", "ParseAssembly", "PrintModuleToString", "RunNewModulePassManager", "TargetMachineEmitToMemory",
    "VerifyModule",
)  # fmt: skip
"""Functions that are called without the GIL. Getting it back takes milliseconds when other threads run Python code, so
all other functions, which take microseconds, are called with the GIL held."""
_INTERNAL = 8


class LLVMError(Exception):
    """A diagnostic of LLVM about a module."""


class _Library:
    """The functions with their signatures, after the initialization of LLVM."""

    def __init__(self) -> None:
        path = _path()
        loaded = ctypes.CDLL(path)  # releases the GIL: the first time takes long
        quick = ctypes.PyDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded if name in _LONG else quick, f"LLVMPY_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        # Checks that arrays do not overlap are emitted before each inner loop: hoisted out of the outer loops, they
        # would compare the hull of all rows, which overlap if rows of one array are combined.
        self.SetCommandLine(b"mlirml", b"-hoist-runtime-checks=false")
        # A select between a loaded value and another stays a cmov, not a branch: `ids[n] = i if found else ids[n]`.
        self.SetCommandLine(b"mlirml", b"-x86-cmov-converter-force-mem-operand=false")
        # The scheduler keeps the order of more memory accesses in a block. With 1,000, LLVM's default, it takes six
        # times as long as the rest of the code generator for a block of 2,000 stores, and makes the same code of it.
        self.SetCommandLine(b"mlirml", b"-dag-maps-huge-region=200")
        self.InitializeNativeTarget()
        self.InitializeNativeAsmPrinter()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the table of signatures lacks {name}")

    def text(self, function: Any, *arguments: Any) -> str:
        """The string that a function returns through its last argument."""
        return self.checked(function, *arguments)[1]

    def checked(self, function: Any, *arguments: Any) -> tuple[Any, str]:
        """The result of a function, and the string, often an error, that it returns through its last argument."""
        out = c_char_p()
        result = function(*arguments, byref(out))
        text = (out.value or b"").decode()
        if out:
            self.DisposeString(out)
        return result, text


def _path() -> str:
    spec = importlib.util.find_spec("llvmlite")  # does not import it
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = os.path.join(folder, "binding", "libllvmlite.so")
        if os.path.exists(path):
            return path
    raise TargetError("llvmlite, which makes machine code, is not installed", help="pip install llvmlite")


_LOADING = threading.Lock()


@cache
def _loaded() -> _Library:
    return _Library()


def library() -> _Library:
    """The library, loaded at first use, and once: its options may not be set twice."""
    with _LOADING:
        return _loaded()


@cache
def host_cpu() -> str:
    """LLVM's name for this CPU."""
    lib = library()
    return lib.text(lib.GetHostCPUName)


@cache
def host_features() -> str:
    """LLVM's list of the features of this CPU, sorted by name: `+avx2,-amx-tile,...`."""
    lib = library()
    return ",".join(sorted(lib.text(lib.GetHostCPUFeatures).split(","), key=lambda feature: feature[1:]))


class Machine:
    """A target machine for one CPU, with position independent code. Use it in one thread only.

    The `triple` is that of this machine where it is empty.
    """

    def __init__(self, cpu: str, features: str, level: int, triple: str = "") -> None:
        lib = self._lib = library()
        self.level = level
        if triple:
            _initialize_all()
        self.triple = triple.encode() or lib.text(lib.GetDefaultTargetTriple).encode()
        target, problem = lib.checked(lib.GetTargetFromTriple, self.triple)
        texts = (cpu.encode(), features.encode())
        if target:
            self.ref = lib.CreateTargetMachine(target, self.triple, *texts, level, b"pic", b"small", 0, 0, b"")
        if not target or not self.ref:
            raise InternalError(f"LLVM has no code generator for this machine: {problem}", stage="codegen")
        data = lib.CreateTargetMachineData(self.ref)
        self.layout = lib.text(lib.CopyStringRepOfTargetData, data).encode()
        lib.DisposeTargetData(data)
        self._builders: dict[tuple[bool, bool, bool] | None, int] = {}

    def builder(self, options: tuple[bool, bool, bool] | None = None) -> int:
        """A pass builder, made once: llvmlite leaks the callbacks of each (1.5 KB).

        `options` are the flags for loop vectorisation, SLP vectorisation and unrolling; None for LLVM's defaults.
        """
        if options not in self._builders:
            lib, tuning = self._lib, self._lib.CreatePipelineTuningOptions()
            if options is not None:
                vectorise_loops, vectorise_blocks, unroll = options
                lib.PTOSetLoopVectorization(tuning, vectorise_loops)
                lib.PTOSetLoopInterleaving(tuning, vectorise_loops)
                lib.PTOSetSLPVectorization(tuning, vectorise_blocks)
                lib.PTOSetLoopUnrolling(tuning, unroll)
            self._builders[options] = lib.CreatePassBuilder(self.ref, tuning)
            lib.DisposePipelineTuningOptions(tuning)
        return self._builders[options]

    def dispose(self) -> None:
        """Free the target machine."""
        for builder in self._builders.values():
            self._lib.DisposePassBuilder(builder)
        self._lib.DisposeTargetMachine(self.ref)


@cache
def _initialize_all() -> None:
    """Make the code generators of all architectures known; at first use, as it takes a few milliseconds."""
    lib = library()
    for name in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
        getattr(lib, f"InitializeAll{name}")()


_IDLE: dict[tuple[str, str, int, str], list[Machine]] = {}


@contextmanager
def machine_for(cpu: str, features: str, level: int, triple: str = "") -> Iterator[Machine]:
    """A target machine of this thread, cached for later users: making the tables of a processor takes 2 ms."""
    idle = _IDLE.setdefault((cpu, features, level, triple), [])
    try:
        machine = idle.pop()
    except IndexError:
        machine = Machine(cpu, features, level, triple)
    try:
        yield machine
    except BaseException:
        machine.dispose()
        raise
    idle.append(machine)


class Context:
    """Owns modules, and disposes of them at exit. Type names depend on what was parsed earlier in the same context."""

    def __init__(self) -> None:
        self._lib = library()
        self._modules: list[Module] = []

    def __enter__(self) -> Context:
        self._ref = self._lib.ContextCreate()
        return self

    def __exit__(
        self, exception_type: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for module in self._modules:
            if module.ref:
                self._lib.DisposeModule(module.ref)
        self._lib.ContextDispose(self._ref)

    def parse(self, text: str, machine: Machine) -> Module:
        """The module of LLVM IR text, for a machine. Raises `LLVMError`."""
        ref, problem = self._lib.checked(self._lib.ParseAssembly, self._ref, text.encode())
        if not ref:
            raise LLVMError(problem)
        module = Module(ref, machine)
        self._modules.append(module)
        return module


class Module:
    """LLVM IR for a machine."""

    def __init__(self, ref: int, machine: Machine) -> None:
        self._lib, self.ref, self.machine = library(), ref, machine
        self._lib.SetTarget(ref, machine.triple)
        self._lib.SetDataLayout(ref, machine.layout)

    def verify(self) -> None:
        """Raises `LLVMError`."""
        wrong, problem = self._lib.checked(self._lib.VerifyModule, self.ref)
        if wrong:
            raise LLVMError(problem)

    def run_passes(self, names: Iterable[str]) -> None:
        """Run these passes, by LLVM's names of their classes."""
        manager = self._lib.CreateNewModulePassManager()
        for name in names:
            getattr(self._lib, f"module_Add{name}Pass")(manager)
        self._run(manager, self.machine.builder())

    def run_default_passes(self, *, vectorise_loops: bool, vectorise_blocks: bool, unroll: bool) -> None:
        """Run the passes of the machine's optimisation level."""
        builder = self.machine.builder((vectorise_loops, vectorise_blocks, unroll))
        self._run(self._lib.buildPerModuleDefaultPipeline(builder, self.machine.level), builder)

    def _run(self, manager: int, builder: int) -> None:
        self._lib.RunNewModulePassManager(manager, self.ref, builder)
        self._lib.DisposeNewModulePassManger(manager)

    def link_in(self, other: Module) -> None:
        """Move the functions of another module of the same context into this one; the other is consumed."""
        ref, other.ref = other.ref, 0
        failed, problem = self._lib.checked(self._lib.LinkModules, self.ref, ref)
        if failed:
            raise LLVMError(problem)

    def hide(self, but: Iterable[str]) -> None:
        """Make all functions but these internal, if the module defines one of them."""
        shown, defined = set(but), self._defined()
        if shown & defined.keys():
            for name in defined.keys() - shown:
                self._lib.SetLinkage(defined[name], _INTERNAL)

    def hurry(self, names: Collection[str]) -> None:
        """Do not optimise these functions, which takes a third of the time."""
        lib = self._lib
        attributes = [lib.GetEnumAttributeKindForName(name, len(name)) for name in (b"noinline", b"optnone")]
        for name, function in self._defined().items():
            for attribute in attributes if name in names else ():
                lib.AddFunctionAttr(function, attribute)

    def _defined(self) -> dict[str, int]:
        """The functions with bodies."""
        lib, defined = self._lib, {}
        functions = lib.ModuleFunctionsIter(self.ref)
        while function := lib.FunctionsIterNext(functions):
            if not lib.IsDeclaration(function):
                defined[lib.GetValueName(function).decode()] = function
        lib.DisposeFunctionsIter(functions)
        return defined

    def emit(self, *, assembly: bool = False) -> bytes:
        """The object or the assembly. Changes the module, so it can be called once."""
        lib = self._lib
        buffer, problem = lib.checked(lib.TargetMachineEmitToMemory, self.machine.ref, self.ref, not assembly)
        if not buffer:
            raise LLVMError(problem)
        data = ctypes.string_at(lib.GetBufferStart(buffer), lib.GetBufferSize(buffer))
        lib.DisposeMemoryBuffer(buffer)
        return data

    def __str__(self) -> str:
        return self._lib.text(self._lib.PrintModuleToString, self.ref)
