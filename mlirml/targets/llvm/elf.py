"""ELF64 relocatable objects: the undefined symbols of one, and several linked into one, as `ld -r` does."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence

from mlirml.core.dataclass import dataclass

_HEADER = "<16sHHIQQQIHHHHHH"
_SECTION = "<IIQQQQIIQQ"
_SYMBOL = "<IBBHQQ"
_RELOCATION = "<QQq"
_NULL, _SYMTAB, _STRTAB, _RELA, _NOBITS = 0, 2, 3, 4, 8
_ALLOC = 2
_LOCAL, _FILE = 0, 4
_RESERVED = 0xFF00
"""Section indices from here on are special: an absolute value, a common block."""


@dataclass(frozen=True)
class _Section:
    """The fields of a section header that matter in an object."""

    name: str
    kind: int
    flags: int
    contents: bytes
    size: int
    link: int
    info: int
    alignment: int
    entry: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_local(self) -> bool:
        return self.info >> 4 == _LOCAL

    def in_section(self, section: int, *, local: bool = False) -> _Symbol:
        """The symbol with another section index."""
        info = self.info & 15 if local else self.info
        return _Symbol(self.name, info, self.other, section, self.value, self.size)


@dataclass(frozen=True)
class _Object:
    header: tuple[bytes | int, ...]
    sections: list[_Section]
    symbols: list[_Symbol]


def undefined_symbols(data: bytes) -> list[str]:
    """The names that an object leaves undefined, sorted."""
    names = {symbol.name for symbol in _read(data).symbols if symbol.section == 0 and symbol.name}
    names.discard("_GLOBAL_OFFSET_TABLE_")  # the assembler's own: a label, not a function
    return sorted(names)


def join(objects: Sequence[bytes], exports: Collection[str], names: Sequence[Mapping[str, str]] = ()) -> bytes:
    """One object of several, which may reference each other's global symbols.

    If one of `exports` is defined, only `exports` stay global, else all global symbols do. Sections that are not loaded
    (notes, names of source files) are dropped. `names` are, for each object, new names of its symbols by their names.
    """
    parts = [_read(data, new) for data, new in zip(objects, names or [{}] * len(objects), strict=True)]
    sections = [_Section("", _NULL, 0, b"", 0, 0, 0, 0, 0)]
    new_sections = []  # for each part: section index -> index in the result
    for part in parts:
        mapping = {}
        for old, section in enumerate(part.sections):
            if section.flags & _ALLOC:
                mapping[old] = len(sections)
                sections.append(section)
        new_sections.append(mapping)
    symbols, new_symbols = _joined_symbols(parts, new_sections, exports)
    table = len(sections) + sum(len(_relocations(part, mapping)) for part, mapping in zip(parts, new_sections))
    for part, mapping, symbol_index in zip(parts, new_sections, new_symbols):
        for section in _relocations(part, mapping):
            contents = b"".join(
                struct.pack(_RELOCATION, at, symbol_index[info >> 32] << 32 | info & 0xFFFFFFFF, addend)
                for at, info, addend in struct.iter_unpack(_RELOCATION, section.contents)
            )
            flags, target = section.flags, mapping[section.info]
            sections.append(_Section(section.name, _RELA, flags, contents, len(contents), table, target, 8, 24))
    first_global = next((i for i, symbol in enumerate(symbols) if not symbol.is_local), len(symbols))
    strings = _Strings()
    packed = b"".join(
        struct.pack(_SYMBOL, strings.add(s.name), s.info, s.other, s.section, s.value, s.size) for s in symbols
    )
    sections.append(_Section(".symtab", _SYMTAB, 0, packed, len(packed), table + 1, first_global, 8, 24))
    for section in (*sections, _Section(".strtab", _STRTAB, 0, b"", 0, 0, 0, 1, 0)):
        strings.add(section.name)
    sections.append(_Section(".strtab", _STRTAB, 0, strings.data, len(strings.data), 0, 0, 1, 0))
    return _write(parts[0].header, sections, strings)


def _relocations(part: _Object, new_sections: dict[int, int]) -> list[_Section]:
    """The relocation sections of sections that are loaded."""
    return [section for section in part.sections if section.kind == _RELA and section.info in new_sections]


def _joined_symbols(
    parts: Sequence[_Object], new_sections: Sequence[dict[int, int]], exports: Collection[str]
) -> tuple[list[_Symbol], list[dict[int, int]]]:
    """All symbols, the local ones first, and for each part the new indices of its symbols."""
    local = [_Symbol("", 0, 0, 0, 0, 0)]
    found: dict[str, _Symbol] = {}
    numbers: list[dict[int, int]] = []
    for part, mapping in zip(parts, new_sections):
        number = {0: 0}
        for old, symbol in enumerate(part.symbols):
            special = symbol.section == 0 or symbol.section >= _RESERVED
            if not special and symbol.section not in mapping:
                continue
            section = symbol.section if special else mapping[symbol.section]
            if not symbol.is_local:
                known = found.get(symbol.name)
                if known is None or known.section == 0:
                    found[symbol.name] = symbol.in_section(section)
                elif section:
                    raise ValueError(f"two objects define {symbol.name}")
            elif old and symbol.info & 15 != _FILE:
                number[old] = len(local)
                local.append(symbol.in_section(section))
        numbers.append(number)
    hides = any(symbol.section and symbol.name in exports for symbol in found.values())
    hidden = [
        s.in_section(s.section, local=True) for s in found.values() if hides and s.section and s.name not in exports
    ]
    known_names = {symbol.name for symbol in hidden}
    every = [*local, *hidden, *(symbol for symbol in found.values() if symbol.name not in known_names)]
    by_name = {symbol.name: at for at, symbol in enumerate(every) if at >= len(local)}
    for part, number in zip(parts, numbers):
        number.update({old: by_name[symbol.name] for old, symbol in enumerate(part.symbols) if not symbol.is_local})
    return every, numbers


class _Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = b"\0"
        self._known = {"": 0}

    def add(self, text: str) -> int:
        """The offset of `text` in the table, to which it is added if it is new."""
        if text not in self._known:
            self._known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._known[text]


def _read(data: bytes, renamed: Mapping[str, str] | None = None) -> _Object:
    renamed = renamed or {}
    header = struct.unpack_from(_HEADER, data)
    offset, count = header[6], header[12]
    raw = [struct.unpack_from(_SECTION, data, offset + i * struct.calcsize(_SECTION)) for i in range(count)]
    names = raw[header[13]][4]
    sections = []
    for name, kind, flags, _, at, size, link, info, alignment, entry in raw:
        contents = b"" if kind in (_NULL, _NOBITS) else data[at : at + size]
        sections.append(_Section(_text(data, names + name), kind, flags, contents, size, link, info, alignment, entry))
    symbols = []
    for section in sections:
        if section.kind == _SYMTAB:
            strings = raw[section.link][4]
            for offset, *fields in struct.iter_unpack(_SYMBOL, section.contents):
                name = _text(data, strings + offset)
                symbols.append(_Symbol(renamed.get(name, name), *fields))
    return _Object(header, sections, symbols)


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _write(header: tuple[bytes | int, ...], sections: Sequence[_Section], strings: _Strings) -> bytes:
    pieces, size, table = [], struct.calcsize(_HEADER), []
    for section in sections:
        gap = -size % max(section.alignment, 1)
        pieces += [b"\0" * gap, section.contents]
        at = size + gap
        table.append(
            struct.pack(
                _SECTION, strings.add(section.name), section.kind, section.flags, 0, at, section.size, section.link,
                section.info, section.alignment, section.entry,
            )
        )  # fmt: skip
        size = at + len(section.contents)
    gap = -size % 8
    identity, kind, machine, version, _, _, _, flags, *sizes = header
    new = (identity, kind, machine, version, 0, 0, size + gap, flags, *sizes[:4], len(sections), len(sections) - 1)
    return b"".join([struct.pack(_HEADER, *new), *pieces, b"\0" * gap, *table])
