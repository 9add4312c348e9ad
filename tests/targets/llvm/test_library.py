"""The binding to LLVM: what it knows of the host, errors, linking, and two threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from mlirml.errors import InternalError, TargetError
from mlirml.targets.llvm import library as llvm_library
from mlirml.targets.llvm.library import Context, LLVMError, Machine, host_cpu, host_features, machine_for

ADD = """
define i32 @add(i32 %x) {
  %y = call i32 @other(i32 %x)
  ret i32 %y
}
declare i32 @other(i32)
"""
OTHER = (
    "define i32 @other(i32 %x) {\n  %y = mul i32 %x, 3\n  %z = mul i32 %x, 4\n  %s = add i32 %y, %z\n  ret i32 %s\n}"
)


def host(level: int = 3) -> AbstractContextManager[Machine]:
    return machine_for(host_cpu(), host_features(), level)


def test_a_machine_is_used_again_by_one_at_a_time() -> None:
    with host() as first, host() as second:
        assert first is not second
    with host() as third:
        assert third is first or third is second
    with host(level=1) as other, pytest.raises(LLVMError), host(level=1) as failed, Context() as context:
        context.parse("nothing", failed)
    with host(level=1) as again, host(level=1) as made:
        assert again is other and made is not failed


def test_the_host_is_what_llvmlite_says() -> None:
    import llvmlite.binding as llvmlite

    assert host_cpu() == llvmlite.get_host_cpu_name()
    assert host_features() == llvmlite.get_host_cpu_features().flatten()


def test_what_llvm_cannot_read_or_believe_is_an_error() -> None:
    with host() as machine, Context() as context:
        with pytest.raises(LLVMError, match="expected instruction opcode"):
            context.parse("define void @f() {\n  nothing\n}", machine)
        wrong = context.parse("define void @f(i1 %c) {\na:\n  br label %a\n}", machine)
        with pytest.raises(LLVMError, match="Entry block"):
            wrong.verify()


def test_passes_run_in_the_order_in_which_they_are_named() -> None:
    with host() as machine, Context() as context:
        module = context.parse(OTHER, machine)
        module.run_passes(["InstCombine"])
        assert "mul i32 %x, 7" in str(module)
        with pytest.raises(AttributeError, match="lacks module_AddNothingPass"):
            module.run_passes(["Nothing"])


def test_modules_are_linked_and_their_functions_hidden() -> None:
    with host() as machine, Context() as context:
        module = context.parse(ADD, machine)
        module.hide(but=["entry"])
        assert "define i32 @add" in str(module), "a module without the shown function is left alone"
        module.link_in(context.parse(OTHER, machine))
        module.hide(but=["add"])
        assert "define i32 @add" in str(module) and "define internal i32 @other" in str(module)
        assert b"add" in module.emit() and b"ret" in context.parse(OTHER, machine).emit(assembly=True)


def test_two_modules_of_the_same_name_do_not_link() -> None:
    with host() as machine, Context() as context:
        module = context.parse(OTHER, machine)
        with pytest.raises(LLVMError, match="other"):
            module.link_in(context.parse(OTHER, machine))


def test_threads_make_code_at_the_same_time() -> None:
    barrier = threading.Barrier(4)

    def make(start: threading.Barrier | None) -> bytes:
        with host() as machine, Context() as context:
            module = context.parse(OTHER, machine)
            if start is not None:
                start.wait()
            module.run_default_passes(vectorise_loops=True, vectorise_blocks=True, unroll=False)
            return module.emit()

    alone = make(None)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, [barrier] * 4)) == [alone] * 4


def test_without_the_library_there_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TargetError, match="llvmlite, which makes machine code, is not installed"):
        llvm_library._path()


def test_a_processor_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library = llvm_library.library()
    monkeypatch.setattr(library, "GetDefaultTargetTriple", lambda out: None)
    with pytest.raises(InternalError, match="no code generator"):
        Machine(host_cpu(), host_features(), 3)
