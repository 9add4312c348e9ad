"""The kernel of packed bf16 panels with tile registers (AMX).

A tile register has 16 rows of 64 bytes. An instruction adds the product of a tile of a, 16 rows and 32 columns of bf16,
and a tile of b, 16 words of two elements adjacent along k in each of 16 columns, to a tile of 16 x 16 f32 accumulators.
Panels of b are packed as for bf16 pairs, [k / 2][columns], and panels of a as [k / 32][rows][16 words]. Along k both
are padded with zeros to a multiple of 32. Denormals are flushed to zero, and sums are rounded to nearest even, as by
the instruction for bf16 pairs. (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.)

The registers are fixed in the code: LLVM's register allocation would configure them at each call. Every thread
configures them before it multiplies and releases them afterwards, so that the result does not depend on earlier code of
the thread.
"""

from __future__ import annotations

from functools import lru_cache

from mlirml.codegen.cpu.contract.pack import exchanged
from mlirml.codegen.cpu.contract.panels import Copies, PanelKernel
from mlirml.codegen.cpu.contract.plan import TILE_K
from mlirml.codegen.cpu.contract.problem import Cast
from mlirml.codegen.cpu.contract.shared import Computed, Reader, any_view, finish, interleave, named, symbol
from mlirml.codegen.cpu.contract.tile import PackForm, Work
from mlirml.codegen.cpu.emitter import Emitter, Index, vector

_ROWS = 16
"""The rows of a tile register, and its 4-byte words per row."""


class AmxKernel(PanelKernel):
    """Emits one kernel."""

    def _product_function(self) -> tuple[str, str]:
        return product_function(self.schedule.mr, self.schedule.nr)

    def _pack_function(self, letter: str, form: PackForm) -> tuple[str, str]:
        if letter == "b":
            return super()._pack_function(letter, form)
        way, element, casts, width, _, _, whole, _, _, computed = form
        return pack_function(way, element, casts[:-1], width, whole, computed)

    def _multiply(self, work: Work, first: Index, tiles: Index, end: Index | None = None) -> None:
        self.frame.call(self._share(configure_function()), [], [])
        super()._multiply(work, first, tiles, end)
        # The system need not save released registers at a context switch.
        self.e.do('llvm.call_intrinsic "llvm.x86.tilerelease"() : () -> ()')

    def _fill_tile_from(self, a: tuple[str, Index], b: tuple[str, Index], work: Work, copies: Copies | None) -> None:
        self._call_product(a, b, self._steps(work.k_size), (), ())


def configure_function() -> tuple[str, str]:
    """The function that configures all eight registers with 16 rows of 64 bytes: name and text."""
    content = [1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[_ROWS] * 8, *[0] * 8]
    e = Emitter()
    memory = "memref<64xi8>"
    config = e.let(f"memref.alloca() {{alignment = 64 : i64}} : {memory}")
    value = e.let(f"arith.constant dense<{content}> : vector<64xi8>")
    e.do(f"vector.store {value}, {config}[{e.at(0)}] : {memory}, vector<64xi8>")
    address = _address(e, config, memory)
    e.do(f'llvm.call_intrinsic "llvm.x86.ldtilecfg"({_pointer(e, Index(((address, 1),)))}) : (!llvm.ptr) -> ()')
    return finish(e, "contract_configure_tiles", [])


def _address(e: Emitter, name: str, type_: str) -> str:
    return e.let(f"memref.extract_aligned_pointer_as_index {name} : {type_} -> index")


def _pointer(e: Emitter, address: Index) -> str:
    number = e.let(f"arith.index_cast {e.at(address)} : index to i64")
    return e.let(f"llvm.inttoptr {number} : i64 to !llvm.ptr")


@lru_cache(maxsize=8)
def product_function(mr: int, nr: int) -> tuple[str, str]:
    """tile[mr][nr] = the product of two packed panels: name and text.

    Its parameters are a, the offset of its panel, the same of b, the number of words along k, and the tile.
    """
    e = Emitter()
    down, across = mr // _ROWS, nr // _ROWS
    sums = {(i, j): i * across + j for i in range(down) for j in range(across)}
    registers = {number: e.let(f"arith.constant {number} : i8") for number in range(len(sums) + down + across)}
    bases = {name: _address(e, f"%{name}", "memref<i32>") for name in ("a", "b")}
    out = _address(e, "%tile", f"memref<{mr * nr}xf32>")
    strides = {bytes: e.let(f"arith.constant {bytes} : i64") for bytes in (64, 4 * nr)}

    def move(verb: str, register: int, address: Index, stride: int) -> None:
        operands = f"{registers[register]}, {_pointer(e, address)}, {strides[stride]}"
        e.do(f'llvm.call_intrinsic "llvm.x86.{verb}64"({operands}) : (i8, !llvm.ptr, i64) -> ()')

    for number in sums.values():
        e.do(f'llvm.call_intrinsic "llvm.x86.tilezero"({registers[number]}) : (i8) -> ()')
    with e.loop(0, symbol("%size"), _ROWS, "k") as k:
        a = Index(((bases["a"], 1),)) + (symbol("%a_at") + k * mr) * 4
        b = Index(((bases["b"], 1),)) + (symbol("%b_at") + k * nr) * 4
        first_a, first_b = len(sums), len(sums) + down
        for j in range(across):
            move("tileloadd", first_b + j, b + 64 * j, 4 * nr)
        for i in range(down):
            move("tileloadd", first_a + i, a + 64 * _ROWS * i, 64)
            for j in range(across):
                operands = ", ".join(registers[n] for n in (sums[i, j], first_a + i, first_b + j))
                e.do(f'llvm.call_intrinsic "llvm.x86.tdpbf16ps"({operands}) : (i8, i8, i8) -> ()')
    for (i, j), number in sums.items():
        move("tilestored", number, Index(((out, 1),)) + 4 * (i * _ROWS * nr + j * _ROWS), 4 * nr)
    parameters = ["%a: memref<i32>", "%a_at: index", "%b: memref<i32>", "%b_at: index", "%size: index"]
    return finish(e, f"contract_tile_f32_{mr}x{nr}_bf16_tiles", [*parameters, f"%tile: memref<{mr * nr}xf32>"])


@lru_cache(maxsize=8)
def pack_function(
    way: str, source: str, casts: tuple[Cast, ...], width: int, whole: bool, computed: Computed | None = None
) -> tuple[str, str]:
    """room[k / 32][0..width][16 words] = rows of an operand: name and text.

    `way` is "squares" if rows are contiguous along k, else "rows", and `casts` are the conversions to bf16. The
    parameters are those of the function of the same name in `shared.py`.
    """
    e = Emitter()
    reader = Reader(e, source, casts, computed, zero_masked=True)
    (_pack_rows if way == "squares" else _pack_columns)(reader, width, whole)
    name = f"contract_pack_tiles_{way}_{source}{named(casts)}_{width}" + ("_whole" if whole else "")
    name += computed.mark if computed else ""
    parameters = [f"%a: memref<{source}>"]
    parameters += [f"%{name}: index" for name in ("a_at", "row_step", "k_step", "rows", "size")]
    parameters += ["%room: memref<i32>", "%room_at: index"]
    for number, (type_, _, _) in enumerate(computed.inputs if computed else ()):
        parameters += [f"%x{number}: memref<{type_}>", f"%x{number}_at: index"]
    return finish(e, name, parameters)


def _half(e: Emitter, k: Index) -> Index:
    return Index(((e.let(f"arith.shrui {e.at(k)}, {e.at(1)} : index"), 1),))


def _pack_rows(reader: Reader, width: int, whole: bool) -> None:
    """Rows contiguous along k: 32 elements of each are copied at a time. Missing rows repeat the last one."""
    e, there = reader.e, any_view(reader.e, "%room", "i32")
    size, last = symbol("%size"), symbol("%rows") - 1
    with e.loop(0, size, TILE_K, "k") as k:
        to = symbol("%room_at") + _half(e, k) * width
        with e.loop(0, width, 1, "row") as row:
            here = e.minimum(row, last)
            at = symbol("%a_at") + e.product(here, symbol("%row_step")) + k
            value = reader.load(at, here, k, TILE_K, None if whole else size - k, along_k=True)
            words = e.let(f"vector.bitcast {value} : {vector(TILE_K, 'bf16')} to {vector(_ROWS, 'i32')}")
            e.store(words, there, to + row * _ROWS, _ROWS)


def _pack_columns(reader: Reader, width: int, whole: bool) -> None:
    """Adjacent rows: pairs of columns are interleaved, and squares of 16 x 16 words transposed."""
    e, there = reader.e, any_view(reader.e, "%room", "i32")
    size = symbol("%size")
    with e.loop(0, size, TILE_K, "k") as k, e.loop(0, width, _ROWS, "square") as first:
        rows = e.minimum(_ROWS, symbol("%rows") - first)
        square = []
        for pair in range(0, TILE_K, 2):
            both = []
            for step in (pair, pair + 1):
                there_is = e.let(f"arith.cmpi slt, {e.at(k + step)}, {e.at(size)} : index")
                held = Index(((e.let(f"arith.select {there_is}, {e.at(rows)}, {e.at(0)} : index"), 1),))
                at = symbol("%a_at") + e.product(k + step, symbol("%k_step")) + first
                both.append(reader.load(at, first, k + step, _ROWS, held, along_k=False))
            square.append(interleave(e, both[0], both[1], _ROWS))
        to = symbol("%room_at") + _half(e, k) * width + first * _ROWS
        for row, words in enumerate(exchanged(e, square, _ROWS, "i32")):
            e.store(words, there, to + row * _ROWS, _ROWS)
