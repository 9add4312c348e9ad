"""Objects joined into one: calls between them, constants, data, hidden names, and that other tools read the result."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from mlirml.errors import LaunchError
from mlirml.runtime import load_object
from mlirml.targets.llvm.codegen import CodegenOptions, compile_to_object
from mlirml.targets.llvm.elf import join, undefined_symbols

EVERYTHING = CodegenOptions(exports=("nothing",), externals=frozenset({"entry", "other", "table", "counter"}))

CALLER = """
@text = private constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@counter = external global i64
declare i64 @other(i64, ptr)
declare double @sin(double)
define i64 @entry(i64 %i) {
  %c = load i64, ptr @counter
  %d = add i64 %c, 100
  store i64 %d, ptr @counter
  %r = call i64 @other(i64 %i, ptr @back)
  %s = add i64 %r, %d
  ret i64 %s
}
define i64 @back(i64 %i) {
  %p = getelementptr i32, ptr @text, i64 %i
  %v = load i32, ptr %p
  %w = sext i32 %v to i64
  %x = sitofp i64 %w to double
  %y = call double @sin(double %x)
  %z = fmul double %y, 1000.0
  %n = fptosi double %z to i64
  ret i64 %n
}
"""
CALLED = """
@counter = global i64 7
@room = internal global [64 x i8] zeroinitializer, align 64
define i64 @other(i64 %i, ptr %f) {
  %v = call i64 %f(i64 %i)
  store volatile i64 %v, ptr @room
  %w = load volatile i64, ptr @room
  ret i64 %w
}
"""


def objects() -> list[bytes]:
    return [compile_to_object(text, EVERYTHING) for text in (CALLER, CALLED)]


def test_joined_objects_call_each_other_and_share_data() -> None:
    data = join(objects(), ["entry"])
    assert undefined_symbols(data) == ["sin"]
    code = load_object(data)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("entry"))
    assert [entry(0), entry(2)] == [841 + 107, 141 + 207]


def test_only_exports_are_global_if_there_is_one() -> None:
    code = load_object(join(objects(), ["entry", "more"]))
    with pytest.raises(LookupError, match="other"):
        code.address("other")
    assert load_object(join(objects(), ["nothing"])).address("other")


def test_what_is_missing_stays_undefined() -> None:
    (caller, _) = objects()
    assert undefined_symbols(caller) == undefined_symbols(join([caller], ["entry"])) == ["counter", "other", "sin"]


def test_a_name_is_defined_once() -> None:
    _, called = objects()
    with pytest.raises(ValueError, match="two objects define"):
        join([called, called], ["entry"])


def test_the_order_of_the_objects_does_not_matter_to_what_they_do() -> None:
    code = load_object(join(objects()[::-1], ["entry"]))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("entry"))(0) == 841 + 107


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs binutils")
def test_other_tools_read_it(tmp_path: Path) -> None:
    file = tmp_path / "joined.o"
    file.write_bytes(join(objects(), ["entry"]))
    done = subprocess.run(["readelf", "-aW", str(file)], capture_output=True, text=True, check=True)
    assert "warning" not in (done.stdout + done.stderr).lower()
    names = {line.split()[7]: line.split()[4] for line in done.stdout.splitlines() if " FUNC " in line}
    assert names == {"entry": "GLOBAL", "back": "LOCAL", "other": "LOCAL"}


def test_a_damaged_object_is_refused_by_the_loader() -> None:
    data = join(objects(), ["entry"])
    with pytest.raises((ValueError, LaunchError)):
        load_object(data[: len(data) // 2])
