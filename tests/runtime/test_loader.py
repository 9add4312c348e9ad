"""The loader places what LLVM emits and refuses everything else with a Python error."""

from __future__ import annotations

import ctypes
import gc
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from mlirml.runtime import Code, Program, load_object

from .conftest import emit_object, load_pointers

LOADABLE = (ValueError, LookupError, MemoryError)


def function(code: Code, name: str, result: type, *arguments: type) -> ctypes._CFunctionType:
    return ctypes.CFUNCTYPE(result, *arguments)(code.address(name))


def permissions(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, access = line.split()[:2]
        low, high = (int(bound, 16) for bound in bounds.split("-"))
        if low <= address < high:
            return access
    return "unmapped"


EVERYTHING = """
@counter = global i64 40
@zeroed = global [3 x i64] zeroinitializer
@shared = common global i64 0, align 32
@pointer = global ptr @counter
@table = constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
declare float @expf(float)
declare ptr @memcpy(ptr, ptr, i64)
declare double @cbrt(double)

define i64 @bump() {
  %p = load ptr, ptr @pointer
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr @counter
  %z = load i64, ptr getelementptr ([3 x i64], ptr @zeroed, i64 0, i64 2)
  store i64 %w, ptr getelementptr ([3 x i64], ptr @zeroed, i64 0, i64 2)
  store i64 %z, ptr @shared, align 32
  %r = add i64 %w, %z
  ret i64 %r
}
define double @constants(i64 %i, double %x) {
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %t = load double, ptr %p
  %y = fmul double %x, 0.1
  %z = fadd double %y, %t
  ret double %z
}
define float @outside(float %x) {
  %y = call float @expf(float %x)
  %z = fadd float %y, 1.0
  ret float %z
}
define double @outside2(double %x) {
  %y = call double @cbrt(double %x)
  %z = call double @constants(i64 1, double %y)
  ret double %z
}
define i64 @copy(ptr %to, ptr %from, i64 %n) {
  %r = call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret i64 %n
}
define ptr @address_of_outside() { ret ptr @expf }
define i32 @choose(i32 %x) {
  switch i32 %x, label %other [
    i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e i32 5, label %f i32 6, label %g ]
a: %ra = call i32 @leaf(i32 3)
   ret i32 %ra
b: %rb = call i32 @leaf(i32 1)
   ret i32 %rb
c: %rc = call i32 @leaf(i32 4)
   ret i32 %rc
d: ret i32 11
e: %re = call i32 @leaf(i32 5)
   ret i32 %re
f: ret i32 99
g: %rg = call i32 @leaf(i32 2)
   ret i32 %rg
other: ret i32 -1
}
define internal i32 @leaf(i32 %x) noinline {
  %y = mul i32 %x, %x
  ret i32 %y
}
define void @vector(ptr %p) {
  %x = load <8 x float>, ptr %p, align 4
  %y = fmul <8 x float> %x, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0>
  %z = shufflevector <8 x float> %y, <8 x float> poison,
       <8 x i32> <i32 7, i32 2, i32 5, i32 0, i32 1, i32 6, i32 3, i32 4>
  store <8 x float> %z, ptr %p, align 4
  ret void
}
"""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize(
    ("reloc", "code_model"), [("pic", "default"), ("pic", "small"), ("pic", "large"), ("static", "large")]
)
def test_everything_that_llvm_emits_runs(level: int, reloc: str, code_model: str) -> None:
    code = load_object(emit_object(EVERYTHING, reloc=reloc, code_model=code_model, level=level))
    bump = function(code, "bump", ctypes.c_int64)
    assert [bump(), bump(), bump()] == [41, 42 + 41, 43 + 42]
    assert ctypes.c_int64.from_address(code.address("shared")).value == 42
    assert code.address("shared") % 32 == 0
    constants = function(code, "constants", ctypes.c_double, ctypes.c_int64, ctypes.c_double)
    assert constants(2, 10.0) == 10.0 * 0.1 + 3.5
    assert function(code, "outside", ctypes.c_float, ctypes.c_float)(0.0) == 2.0
    assert function(code, "outside2", ctypes.c_double, ctypes.c_double)(27.0) == pytest.approx(0.3 + 2.5)
    choose = function(code, "choose", ctypes.c_int32, ctypes.c_int32)
    assert [choose(i) for i in range(8)] == [9, 1, 16, 11, 25, 99, 4, -1]
    source, target = np.arange(9.0), np.zeros(9)
    copy = function(code, "copy", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    assert copy(target.ctypes.data, source.ctypes.data, 72) == 72
    assert np.array_equal(source, target)
    values = np.ones(8, np.float32)
    function(code, "vector", None, ctypes.c_void_p)(values.ctypes.data)
    assert values.tolist() == [8, 3, 6, 1, 2, 7, 4, 5]
    expf = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(function(code, "address_of_outside", ctypes.c_void_p)())
    assert expf(0.0) == 1.0


def test_symbols_of_libmvec_are_found() -> None:
    text = """declare <4 x float> @_ZGVbN4v_expf(<4 x float>)
    define void @entry(ptr %p) {
      %x = load <4 x float>, ptr %p, align 4
      %y = call <4 x float> @_ZGVbN4v_expf(<4 x float> %x)
      store <4 x float> %y, ptr %p, align 4
      ret void }"""
    values = np.zeros(4, np.float32)
    code = load_object(emit_object(text))
    function(code, "entry", None, ctypes.c_void_p)(values.ctypes.data)
    assert np.allclose(values, 1)


def test_text_is_not_writable_and_data_not_executable() -> None:
    code = load_object(emit_object(EVERYTHING))
    assert permissions(code.address("bump")) == "r-xp"
    assert permissions(code.address("table")) == "r--p"
    assert permissions(code.address("counter")) == "rw-p"


def test_code_is_unmapped_with_its_last_user() -> None:
    code = load_object(
        emit_object(f"define void @entry(ptr %p) {{ {load_pointers(['out'])} store i64 7, ptr %out ret void }}")
    )
    address = code.address("entry")
    program = Program(code, "entry", [], [("i8", ())])
    del code
    gc.collect()
    assert program([])[0] == 7
    del program
    gc.collect()
    # The pages may have been given to somebody else since, but not as code.
    assert "x" not in permissions(address)


def test_unresolved_symbol_is_named() -> None:
    text = "declare void @no_such_function() define void @entry(ptr %p) { call void @no_such_function() ret void }"
    with pytest.raises(LookupError, match="unresolved symbol: no_such_function"):
        load_object(emit_object(text))


def test_missing_entry_is_named() -> None:
    code = load_object(emit_object("define void @entry(ptr %p) { ret void }"))
    with pytest.raises(LookupError, match="does not define other"):
        code.address("other")
    with pytest.raises(LookupError, match="does not define other"):
        Program(code, "other", [], [])


def test_thread_local_data_is_refused() -> None:
    text = "@x = thread_local global i64 1\ndefine i64 @f() { %v = load i64, ptr @x ret i64 %v }"
    with pytest.raises(ValueError, match=r"thread-local|unsupported"):
        load_object(emit_object(text))


def test_static_constructors_are_refused() -> None:
    text = """@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]
      [{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]
    define void @f() { ret void }"""
    with pytest.raises(ValueError, match="static constructors"):
        load_object(emit_object(text))


def test_absolute_addresses_out_of_reach_are_refused() -> None:
    # The small static code model puts addresses into 32 bits, which a mapping above 4 GiB does not have.
    text = "@x = dso_local global i64 5\ndefine ptr @f() { ret ptr @x }"
    with pytest.raises(ValueError, match="out of reach"):
        load_object(emit_object(text, reloc="static", code_model="small"))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"MZ" + bytes(100), bytes(64)])
def test_no_object_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="malformed object"):
        load_object(data)


def test_other_machines_are_refused() -> None:
    data = bytearray(emit_object("define void @f() { ret void }"))
    struct.pack_into("<H", data, 18, 183)
    with pytest.raises(ValueError, match="no x86-64 relocatable file"):
        load_object(bytes(data))


def test_every_truncation_is_an_error() -> None:
    data = emit_object(EVERYTHING)
    for length in range(0, len(data) - 1, 3):
        with pytest.raises(ValueError, match="malformed object"):
            load_object(data[:length])


def test_corrupted_objects_load_or_raise() -> None:
    data = emit_object(EVERYTHING)
    generator = random.Random(7)
    refused = 0
    for _ in range(6000):
        changed = bytearray(data)
        for _ in range(generator.choice([1, 2, 8, 64])):
            changed[generator.randrange(len(data))] = generator.choice(
                [0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)]
            )
        try:
            load_object(bytes(changed))
        except LOADABLE:
            refused += 1
    assert refused > 1000


def section_headers(data: bytes) -> list[int]:
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    return [table + 64 * i for i in range(count)]


def test_hostile_section_headers_load_or_raise() -> None:
    data = emit_object(EVERYTHING)
    values = [0, 1, 7, 4095, 1 << 20, len(data), len(data) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1]
    fields = [(0, "<I"), (4, "<I"), (8, "<Q"), (24, "<Q"), (32, "<Q"), (40, "<I"), (44, "<I"), (48, "<Q"), (56, "<Q")]
    refused = 0
    for header in section_headers(data):
        for offset, layout in fields:
            for value in values:
                changed = bytearray(data)
                struct.pack_into(
                    layout, changed, header + offset, value & (0xFFFFFFFF if layout == "<I" else (1 << 64) - 1)
                )
                try:
                    load_object(bytes(changed))
                except LOADABLE:
                    refused += 1
    assert refused > 500


def relocation_fields(data: bytes) -> list[int]:
    places = []
    for header in section_headers(data):
        kind, offset, size = *struct.unpack_from("<I", data, header + 4), *struct.unpack_from("<QQ", data, header + 24)
        if kind == 4:
            places += range(offset, offset + size, 24)
    return places


def test_hostile_relocations_load_or_raise() -> None:
    data = emit_object(EVERYTHING)
    places = relocation_fields(data)
    assert len(places) > 10
    refused = 0
    for place in places:
        for offset, layout, values in [
            (0, "<Q", [1 << 20, 1 << 63, (1 << 64) - 4]),
            (8, "<I", [*range(48), 1 << 31]),
            (12, "<I", [0, 1000, (1 << 32) - 1]),
            (16, "<q", [1 << 40, -(1 << 63), (1 << 63) - 1]),
        ]:
            for value in values:
                changed = bytearray(data)
                struct.pack_into(layout, changed, place + offset, value)
                try:
                    load_object(bytes(changed))
                except LOADABLE:
                    refused += 1
    assert refused > 100
