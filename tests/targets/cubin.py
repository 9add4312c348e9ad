"""What a cubin tells of its kernels: parameters, registers, the bytes of the stack that spilled registers take."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NO_BITS = 8
_REGISTERS, _FRAME, _THREADS = 0x2F, 0x11, 0x10
_PARAMETER, _PARAMETER_OF_PTX = 0x45, 0x17
_WITH_DATA = 4
_SIZE, _SIZE_SHIFT = (
    0xFFFF,
    18,
)  # in one form the size is at the end, before flags of pointers, in the other behind them


@dataclass(frozen=True)
class Kernel:
    """A kernel: the sizes of its parameters in bytes, its threads a block, registers a thread, and bytes of stack."""

    name: str
    parameters: tuple[int, ...]
    threads: tuple[int, ...]
    registers: int
    frame: int


def sections_of(image: bytes) -> dict[str, bytes]:
    """The contents of an ELF file's sections, by name."""
    (table,), (count,), (names,) = (
        struct.unpack_from(form, image, at) for form, at in (("<Q", 0x28), ("<H", 0x3C), ("<H", 0x3E))
    )
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, table + 64 * number) for number in range(count)]
    start = headers[names][4]
    found = {}
    for name, kind, _, _, offset, size, *_ in headers:
        text = image[start + name : image.index(b"\0", start + name)].decode()
        found[text] = b"" if kind == _NO_BITS else image[offset : offset + size]
    return found


def attributes_of(data: bytes) -> list[tuple[int, bytes]]:
    """The attributes of a section `.nv.info`: their numbers and data."""
    found, at = [], 0
    while at < len(data):
        form, number, size = struct.unpack_from("<BBH", data, at)
        body = data[at + 4 : at + 4 + size] if form == _WITH_DATA else b""
        found.append((number, body))
        at += 4 + len(body)
    return found


def names_of(image: bytes) -> list[str]:
    """The names of the kernels of a cubin."""
    return [text.removeprefix(".text.") for text in sections_of(image) if text.startswith(".text.")]


def parameters_of(image: bytes, name: str) -> tuple[int, ...]:
    """The sizes of a kernel's parameters in bytes."""
    own = attributes_of(sections_of(image)[f".nv.info.{name}"])
    found = []
    for number, body in own:
        if number in (_PARAMETER, _PARAMETER_OF_PTX):
            _, ordinal, _, word = struct.unpack_from("<IHHI", body)
            found.append((ordinal, word & _SIZE if number == _PARAMETER else word >> _SIZE_SHIFT))
    return tuple(size for _, size in sorted(found))


def kernel_of(image: bytes) -> Kernel:
    """The one kernel of a cubin."""
    sections = sections_of(image)
    (name,) = names_of(image)
    own = attributes_of(sections[f".nv.info.{name}"])
    common = dict(attributes_of(sections[".nv.info"]))
    threads = next((struct.unpack("<III", body) for number, body in own if number == _THREADS), ())
    stack, registers = (struct.unpack("<II", common[number])[1] for number in (_FRAME, _REGISTERS))
    return Kernel(name, parameters_of(image, name), threads, registers, stack)
