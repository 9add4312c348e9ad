"""Programs for AArch64 as executables without a libc, which `qemu-aarch64` runs.

The object of a program is linked with a few functions of the runtime, in LLVM IR, at fixed addresses, with its inputs
as data. Its first instructions call the entry, write the outputs to the standard output, and end the process.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from mlirml.runtime.artifact import Artifact
from mlirml.targets.llvm import elf
from mlirml.targets.llvm.codegen import CodegenOptions, compile_to_object
from mlirml.targets.machine import named

QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
BASE = 0x400000
_PAGE = 4096

_RUNTIME = """
define void @mlirml_parallel_for(ptr %body, i64 %lo, i64 %hi, i64 %grain, ptr %context) {
  call void %body(i64 %lo, i64 %hi, ptr %context)
  ret void
}
define void @mlirml_parallel_for_long(ptr %body, i64 %lo, i64 %hi, i64 %grain, ptr %context) {
  call void %body(i64 %lo, i64 %hi, ptr %context)
  ret void
}
define void @mlirml_poll() {
  ret void
}
define void @mlirml_check_failed(i64 %number) {
  store volatile i8 0, ptr null
  ret void
}
define i64 @mlirml_threads() {
  ret i64 1
}
define ptr @memcpy(ptr %to, ptr %from, i64 %size) {
  %r = call ptr @memmove(ptr %to, ptr %from, i64 %size)
  ret ptr %r
}
define ptr @memmove(ptr %to, ptr %from, i64 %size) {
entry:
  %is_before = icmp ult ptr %to, %from
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %body, label %end
body:
  %next = add i64 %i, 1
  %left = sub i64 %size, %next
  %at = select i1 %is_before, i64 %i, i64 %left
  %source = getelementptr i8, ptr %from, i64 %at
  %target = getelementptr i8, ptr %to, i64 %at
  %byte = load volatile i8, ptr %source
  store volatile i8 %byte, ptr %target
  br label %loop
end:
  ret ptr %to
}
define ptr @memset(ptr %to, i32 %value, i64 %size) {
entry:
  %byte = trunc i32 %value to i8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %body, label %end
body:
  %target = getelementptr i8, ptr %to, i64 %i
  store volatile i8 %byte, ptr %target
  %next = add i64 %i, 1
  br label %loop
end:
  ret ptr %to
}
"""


@cache
def runtime() -> bytes:
    """The object of the functions that programs call."""
    exports = (
        "memcpy",
        "memmove",
        "memset",
        "mlirml_poll",
        "mlirml_threads",
        "mlirml_parallel_for",
        "mlirml_check_failed",
    )
    options = CodegenOptions(level=1, processor=named("neon"), exports=(*exports, "mlirml_parallel_for_long"))
    return compile_to_object(_RUNTIME, options)


def run(
    artifact: Artifact, inputs: list[np.ndarray], outputs: list[np.ndarray], folder: Path, cpu: str
) -> list[np.ndarray]:
    """The outputs of a program in qemu, arrays like `outputs`, for a processor that qemu knows."""
    assert QEMU is not None
    assert [x.nbytes for x in outputs] == [buffer.nbytes for buffer in artifact.outputs]
    path = folder / "program"
    path.write_bytes(executable(artifact, inputs, outputs))
    path.chmod(0o700)
    done = subprocess.run([QEMU, "-cpu", cpu, str(path)], capture_output=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    at, results = 0, []
    for output in outputs:
        flat = np.frombuffer(done.stdout, output.dtype, output.size, at)
        results.append(flat.reshape(output.shape))
        at += output.nbytes
    assert at == len(done.stdout)
    return results


def executable(artifact: Artifact, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> bytes:
    """A static executable that writes the outputs for these inputs."""
    image = _Image()
    start = image.add(bytes(4096))
    symbols = image.link(elf.join([artifact.object, runtime()], [artifact.entry]))
    arrays = [image.add(np.ascontiguousarray(array).tobytes()) for array in (*inputs, *outputs)]
    workspace = [image.add(bytes(artifact.workspace_bytes))] if artifact.workspace_bytes else []
    table = image.add(struct.pack(f"<{len(arrays) + len(workspace)}Q", *arrays, *workspace))
    code = [*_move(0, table), *_move(16, symbols[artifact.entry]), 0xD63F0000 | 16 << 5]  # blr x16
    for address, output in zip(arrays[len(inputs) :], outputs, strict=True):
        code += _call(64, 1, address, output.nbytes)  # write
    code += _call(93, 0)  # exit
    words = b"".join(struct.pack("<I", word) for word in code)
    assert len(words) <= 4096
    image.put(start, words)
    return image.file(start)


def _move(register: int, value: int) -> list[int]:
    """The instructions that set a register to a number."""
    first = [0xD2800000 | (value & 0xFFFF) << 5 | register]
    return first + [0xF2800000 | part << 21 | (value >> 16 * part & 0xFFFF) << 5 | register for part in (1, 2, 3)]


def _call(number: int, *arguments: int) -> list[int]:
    """The instructions of a call of Linux."""
    moves = [word for register, value in enumerate(arguments) for word in _move(register, value)]
    return [*moves, *_move(8, number), 0xD4000001]  # svc 0


class _Image:
    """The memory of a process from `BASE` on."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, contents: bytes, alignment: int = 64) -> int:
        """The address at which some bytes are placed."""
        self.data += bytes(-len(self.data) % max(alignment, 1))
        at = BASE + len(self.data)
        self.data += contents
        return at

    def put(self, address: int, contents: bytes) -> None:
        self.data[address - BASE : address - BASE + len(contents)] = contents

    def link(self, data: bytes) -> dict[str, int]:
        """Place the sections of an object, and apply its relocations; the addresses of its symbols."""
        found = elf._read(data)
        addresses = {
            number: self.add(section.contents or bytes(section.size), section.alignment)
            for number, section in enumerate(found.sections)
            if section.flags & elf._ALLOC
        }
        values, table = [], {}
        for symbol in found.symbols:
            value = addresses.get(symbol.section, 0) + symbol.value
            assert symbol.section or not symbol.name, f"{symbol.name} is not defined"
            values.append(value)
            table[symbol.name] = value
        slots: dict[int, int] = {}
        for section in found.sections:
            if section.kind != elf._RELA or section.info not in addresses:
                continue
            for at, info, addend in struct.iter_unpack(elf._RELOCATION, section.contents):
                target = values[info >> 32] + addend
                if info & 0xFFFFFFFF in (311, 312):  # by way of the table of addresses
                    if target not in slots:
                        slots[target] = self.add(struct.pack("<Q", target), 8)
                    target = slots[target]
                self._relocate(addresses[section.info] + at, info & 0xFFFFFFFF, target)
        return table

    def _relocate(self, at: int, kind: int, target: int) -> None:
        """Relocations as in "ELF for the Arm 64-bit Architecture", section 5.7."""
        offset = at - BASE
        if kind in (257, 260):  # ABS64, PREL64
            self.data[offset : offset + 8] = struct.pack("<q", target - (at if kind == 260 else 0))
            return
        if kind == 261:  # PREL32
            self.data[offset : offset + 4] = struct.pack("<i", target - at)
            return
        (word,) = struct.unpack_from("<I", self.data, offset)
        if kind in (275, 311):  # ADR_PREL_PG_HI21, ADR_GOT_PAGE
            pages = (target // _PAGE - at // _PAGE) & 0x1FFFFF
            word |= (pages & 3) << 29 | pages >> 2 << 5
        elif kind in (277, 278, 284, 285, 286, 299, 312):  # the low 12 bits, of addresses and of loads and stores
            scale = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}[kind]
            word |= (target % _PAGE) >> scale << 10
        elif kind in (282, 283):  # JUMP26, CALL26
            word |= (target - at) >> 2 & 0x3FFFFFF
        else:
            raise AssertionError(f"relocation {kind} is not known")
        self.data[offset : offset + 4] = struct.pack("<I", word)

    def file(self, start: int) -> bytes:
        """An executable with one segment, which begins at `start`."""
        skip = _PAGE
        identity = b"\x7fELF\x02\x01\x01" + bytes(9)
        header = struct.pack("<16sHHIQQQIHHHHHH", identity, 2, 183, 1, start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        size = len(self.data)
        segment = struct.pack("<IIQQQQQQ", 1, 7, skip, BASE, BASE, size, size + _PAGE, _PAGE)
        return (header + segment).ljust(skip, b"\0") + bytes(self.data)
