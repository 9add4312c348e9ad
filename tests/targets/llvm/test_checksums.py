"""Cyclic redundancy checks: loops over the bits of a byte, of which LLVM makes a table. Random ones against Python."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.targets.llvm.codegen import optimised_ir

REFLECTED = """
def checksum(data):
    crc = {init}
    for byte in data:
        {begin}
        for _ in range({steps}):
            if {low_bit}:
                crc = (crc >> 1) ^ {polynomial}
            else:
                crc = crc >> 1
            {end}
    return crc
"""
FORWARD = """
def checksum(data):
    crc = {init}
    for byte in data:
        {begin}
        for _ in range({steps}):
            if {high_bit}:
                crc = ((crc << 1) ^ {polynomial}) & {all}
            else:
                crc = (crc << 1) & {all}
            {end}
    return crc
"""


def checksum(rng: random.Random) -> Any:
    """A function with a random polynomial of a random width, that takes the data in before the bits or with them."""
    width, reflected = rng.choice((8, 12, 16, 24, 32)), rng.random() < 0.5
    form, all_ = rng.choice(("at once", "two bits", "one bit")), (1 << width) - 1
    byte = ("byte = int(byte) & 255", "byte >>= 1" if reflected else "byte = (byte << 1) & 255")
    begin, end = byte if form != "at once" else ("crc ^= int(byte)", "pass")
    if form == "at once" and not reflected:
        begin = f"crc ^= (int(byte) << {width - 8}) & {all_}"
    source = (REFLECTED if reflected else FORWARD).format(
        init=rng.choice((0, all_, rng.getrandbits(width))),
        polynomial=rng.getrandbits(width) | 1,
        steps=rng.choice((3, 4, 8, 8, 8, 16)),
        begin=begin,
        end=end,
        all=all_,
        low_bit={"at once": "crc & 1", "two bits": "(crc & 1) ^ (byte & 1)", "one bit": "(crc ^ byte) & 1"}[form],
        high_bit={
            "at once": f"crc & {1 << (width - 1)}",
            "two bits": f"((crc >> {width - 1}) & 1) ^ ((byte >> 7) & 1)",
            "one bit": f"((crc >> {width - 1}) ^ (byte >> 7)) & 1",
        }[form],
    )
    name, namespace = f"<checksum {rng.random()}>", dict[str, Any]()
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)
    return namespace["checksum"]


@pytest.mark.parametrize("seed", range(40))
def test_random_checksums(seed: int) -> None:
    rng = random.Random(seed)
    function = checksum(rng)
    dtype = rng.choice((np.uint8, np.int32, np.int64))
    data = np.array([rng.getrandbits(8) for _ in range(rng.choice((1, 5, 40)))], dtype)
    assert int(ml.compile(function)(data)) == function(data.tolist())


def crc16(data: Any) -> Any:
    crc = 0xFFFF
    for byte in data:
        bits = 0xFF & byte
        for _ in range(8):
            if (crc & 1) ^ (bits & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            bits >>= 1
    return crc


def test_a_table_replaces_the_loop_over_bits() -> None:
    data = np.frombuffer(b"123456789", np.uint8)
    program = ml.compile(crc16)
    assert program(data) == crc16(data) == 0x6F91  # the check value of CRC-16/MCRF4XX
    assert "x i64] [i64 0, i64 4489," in optimised_ir(program.lower(data).module.operation)
