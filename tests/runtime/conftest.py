"""Objects for the loader, made from LLVM IR text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from mlirml.runtime import Code, Program, _native, load_object

LLVM_NAMES = {
    "float32": "float",
    "float64": "double",
    "int64": "i64",
    "int8": "i8",
    "int16": "i16",
    "complex128": "i128",
}


def emit_object(text: str, *, reloc: str = "pic", code_model: str = "default", level: int = 2) -> bytes:
    """The ELF object of LLVM IR text for this CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc=reloc,
        codemodel=code_model,
    )
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_default_triple(), str(machine.target_data)
    module.verify()
    data: bytes = machine.emit_object(module)
    return data


def load_pointers(names: Sequence[str]) -> str:
    """IR that loads the pointers of `void entry(void **%p)` into the named values."""
    return "\n".join(
        f"%{name}.at = getelementptr ptr, ptr %p, i64 {i}\n%{name} = load ptr, ptr %{name}.at"
        for i, name in enumerate(names)
    )


def elementwise(count: int, dtype: Any, names: Sequence[str], body: str) -> str:
    """IR of an entry that runs `body` for each element: `%x0`, `%x1`... in, `%y` out to the last pointer."""
    element = LLVM_NAMES[np.dtype(dtype).name]
    loads = "\n".join(
        f"%q{i} = getelementptr {element}, ptr %{name}, i64 %i\n%x{i} = load {element}, ptr %q{i}, align 1"
        for i, name in enumerate(names[:-1])
    )
    return f"""
define void @entry(ptr %p) {{
{load_pointers(names)}
br label %head
head:
  %i = phi i64 [0, %0], [%next, %body]
  %more = icmp slt i64 %i, {count}
  br i1 %more, label %body, label %done
body:
  {loads}
  {body}
  %qy = getelementptr {element}, ptr %{names[-1]}, i64 %i
  store {element} %y, ptr %qy, align 1
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}"""


@pytest.fixture(scope="session")
def add_code() -> Callable[[int], Code]:
    """Code that adds two f32 arrays of a number of elements."""
    made: dict[int, Code] = {}

    def make(count: int) -> Code:
        if count not in made:
            text = elementwise(count, "float32", ["a", "b", "out"], "%y = fadd float %x0, %x1")
            made[count] = load_object(emit_object(text))
        return made[count]

    return make


@pytest.fixture
def add_program(add_code: Callable[[int], Code]) -> Callable[..., Program]:
    """`make(shape)`: the program a + b for f32 arrays of a shape."""

    def make(*shape: int, **options: Any) -> Program:
        spec = ("f4", shape)
        return Program(add_code(int(np.prod(shape))), "entry", [spec, spec], [spec], **options)

    return make


@pytest.fixture
def all_threads() -> Iterator[int]:
    """As many threads as there are CPUs; at least two, or the test is skipped. Restores the setting."""
    _native.set_threads(0)
    if _native.get_threads() < 2:
        pytest.skip("needs two CPUs")
    yield _native.get_threads()
    _native.set_threads(0)
