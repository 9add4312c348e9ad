"""The threads of some blocks: a register is an array with an element for each thread, and control flow parts them.

Threads that are at one instruction execute it together; of several the first one in the program goes on. Those that
wait at a barrier are left out until all threads of their block that have not ended are there. (The order that a GPU
takes is another, and of no effect on programs without races.)
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence

import numpy as np

from tests.targets.emulation.memory import Fault, GlobalMemory, SharedMemory
from tests.targets.emulation.ptx import UNSIGNED, Function, Instruction, split
from tests.targets.emulation.traffic import Traffic

SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
WARP = 32
Mask = np.ndarray | None
"""The threads that execute an instruction; None for all."""
Rule = Callable[["Threads", Instruction, Mask], None]
_INTEGER = re.compile(r"-?\d+U?|-?0x[0-9A-Fa-f]+U?")
_ADDRESS = re.compile(r"\[([^+\]]+)(?:\+(-?\d+))?\]")
_STACK = 1 << 12
_ALIGNMENT = 16
STATIC, MOST_SHARED = 48 << 10, 99 << 10
"""The shared memory of a kernel that a launch does not ask for, and all that it can have on every processor."""
_OF_WARPS = ("shfl", "ldmatrix", "mma")
"""Instructions that the threads of a warp execute together: the assembler lets branches join before them."""
LOCAL = 1 << 60
"""Where local memory begins among the generic addresses."""


class Threads:
    """The state of the threads of some blocks."""

    def __init__(
        self,
        function: Function,
        blocks: np.ndarray,
        shape: tuple[tuple[int, ...], tuple[int, ...]],
        parameters: dict[str, int | np.ndarray],
        memory: GlobalMemory,
        traffic: Traffic | None = None,
        shared_bytes: int = 0,
    ) -> None:
        grid, block = shape
        self.traffic = traffic
        self.function, self.memory, self.parameters = function, memory, parameters
        self.per_block = int(np.prod(block))
        self.count = len(blocks) * self.per_block
        self.thread = np.tile(np.arange(self.per_block), len(blocks))
        self.block = np.repeat(np.arange(len(blocks)), self.per_block)
        self.warp = self.block * -(-self.per_block // WARP) + self.thread // WARP
        numbers = np.repeat(blocks, self.per_block)
        self.special: dict[str, np.ndarray] = {"%laneid": (self.thread % WARP).astype(np.uint32)}
        for name, extent in (("%ntid", block), ("%nctaid", grid)):
            self.special |= {
                f"{name}.{axis}": np.full(self.count, size, np.uint32) for axis, size in zip("xyz", extent)
            }
        for name, number, extent in (("%tid", self.thread, block), ("%ctaid", numbers, grid)):
            parts = number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])
            self.special |= {f"{name}.{axis}": part.astype(np.uint32) for axis, part in zip("xyz", parts)}
        self.registers: dict[str, np.ndarray] = {}
        own = -(-function.sizes["shared"] // _ALIGNMENT) * _ALIGNMENT
        self.at_launch = own
        if own + shared_bytes > MOST_SHARED or (not function.at_launch and own > STATIC):
            raise Fault(f"{own} bytes of shared memory, and {shared_bytes} more for the launch")
        self.shared = SharedMemory(len(blocks), own + shared_bytes)
        stack = _STACK if any(each.sizes["local"] for each in function.functions.values()) else 16
        self.local = np.full((self.count, stack), 0xFF, np.uint8)
        self.frame = 0
        self.carry: np.ndarray | int = 0
        self.copies: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self.groups = np.zeros(self.count, np.int64)  # of copies that were committed

    # Operands.

    def lanes(self, mask: Mask) -> np.ndarray:
        """The numbers of the threads that execute an instruction."""
        return np.arange(self.count) if mask is None else np.nonzero(mask)[0]

    def register(self, name: str) -> np.ndarray:
        """A register of all threads."""
        found = self.registers.get(name)
        if found is None:
            width = self.function.registers.get(name)
            if width is None:
                raise Fault(f"there is no register {name}")
            found = self.registers[name] = np.zeros(self.count, bool if width == 1 else UNSIGNED[width])
        return found

    def bits(self, operand: str, width: int, mask: Mask) -> np.ndarray:
        """The bits of an operand, as unsigned integers of a width; booleans of a predicate."""
        if operand[0] == "%":
            value = self.special[operand] if operand in self.special else self.register(operand)
            value = value if mask is None else value[mask]
            return value if value.dtype == bool else value.astype(UNSIGNED[width], copy=False)
        return np.asarray(self.number(operand, width))

    def number(self, operand: str, width: int) -> np.generic:
        """The bits of an operand that is a number, or the address of a variable."""
        if operand[:2] in ("0f", "0F"):
            single = np.array(int(operand[2:], 16), np.uint32).view(np.float32)
            return single.astype(FLOATS[width]).view(UNSIGNED[width])[()]
        if operand[:2] in ("0d", "0D"):
            return np.uint64(int(operand[2:], 16))
        if _INTEGER.fullmatch(operand):
            return UNSIGNED[width](int(operand.rstrip("U"), 0) & (1 << width) - 1)
        return UNSIGNED[width](self.symbol(operand))

    def symbol(self, name: str) -> int:
        """The address of a variable in its own space."""
        if name and name == self.function.at_launch:
            return self.at_launch
        if name in self.function.shared:
            return self.function.shared[name]
        if name in self.function.local:
            return self.function.local[name] + self.frame
        if name in self.function.constants:
            return self.memory.constant(name, self.function.constants[name])
        raise Fault(f"there is no variable {name}")

    def value(self, operand: str, form: str, width: int, mask: Mask) -> np.ndarray:
        """An operand of a form: `pred`, and `u`, `s`, `b` and `f` with a width; `bf` is bf16, as f32."""
        if form == "pred":
            return self.bits(operand, 8, mask) if operand[0] == "%" else np.asarray(bool(int(operand)))
        bits = self.bits(operand, width, mask)
        if form == "bf":
            return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return bits.view({"s": SIGNED, "f": FLOATS}.get(form, UNSIGNED)[width])

    def put(self, name: str, value: np.ndarray, mask: Mask) -> None:
        """Store into a register of the threads that execute the instruction."""
        if name == "_":
            return
        register = self.register(name)
        value = np.asarray(value)
        if register.dtype != bool:
            if value.dtype.kind == "f":
                assert value.dtype.itemsize == register.dtype.itemsize, f"a float of another width than {name}"
                value = value.view(UNSIGNED[8 * value.dtype.itemsize])
            elif value.dtype.kind == "i":
                value = value.astype(SIGNED[8 * register.dtype.itemsize]).view(register.dtype)
            value = value.astype(register.dtype, copy=False)
        register[... if mask is None else mask] = value

    def address(self, operand: str, mask: Mask) -> np.ndarray:
        """The address of each thread that executes an instruction."""
        match = _ADDRESS.fullmatch(operand.replace(" ", ""))
        assert match is not None, operand
        start = self.bits(match[1], 64, mask).astype(np.int64)
        return np.broadcast_to(start, self.lanes(mask).shape) + int(match[2] or 0)

    def note(self, space: str, lanes: np.ndarray, address: np.ndarray, size: int) -> None:
        """Count an access by some threads."""
        if self.traffic is None or space not in ("global", "shared"):
            return
        warp = self.warp[lanes]
        if space == "global":
            self.traffic.note_global(warp, address, size)
        else:
            self.traffic.note_shared(warp, self.thread[lanes] % WARP, address, size)

    def access(
        self, mask: Mask, space: str, address: np.ndarray, size: int, unit: int, values: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Load elements of `unit` bytes, or store `values`."""
        lanes = self.lanes(mask)
        if space == "generic":
            there = address >= LOCAL
            if there.any() and not there.all():
                raise Fault("generic addresses of several spaces")
            space, address = ("local", address - LOCAL) if there.any() else ("global", address)
        self.note(space, lanes, address, size)
        if space == "global":
            return self.memory.load(address, size, unit) if values is None else self.memory.store(address, values, unit)
        if space == "shared":
            block, thread = self.block[lanes], self.thread[lanes]
            if values is None:
                return self.shared.load(block, thread, address, size).view(UNSIGNED[8 * unit])
            raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(lanes), size)
            self.shared.store(block, thread, address, raw)
            return None
        if (address % size).any() or ((address < 0) | (address + size > self.local.shape[1])).any():
            raise Fault("an address outside of local memory, or a misaligned one")
        elements = self.local.view(UNSIGNED[8 * unit])
        at = lanes[:, None], (address // unit)[:, None] + np.arange(size // unit)
        if values is None:
            return elements[at]
        elements[at] = values
        return None


class Program:
    """Executes functions by the rules of their instructions."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self.rules = rules

    def run(self, threads: Threads, alive: np.ndarray | None = None) -> None:
        """Run threads from the begin of their function to its end."""
        _Flow(self, threads, alive).run()

    def execute(self, threads: Threads, instruction: Instruction, mask: Mask) -> None:
        """Execute an instruction that does not branch."""
        if instruction.name == "call":
            self.call(threads, instruction, mask)
            return
        rule = self.rules.get(instruction.name)
        if rule is None:
            raise Fault(f"there is no rule for `{instruction.text}`")
        rule(threads, instruction, mask)

    def call(self, threads: Threads, instruction: Instruction, mask: Mask) -> None:
        """Run a function of the module."""
        operands = list(instruction.operands)
        result = operands.pop(0).strip("()") if operands[0][0] == "(" else ""
        name, given = operands[0], split(operands[1].strip("()")) if len(operands) > 1 else []
        called = threads.function.functions[name]
        inner = copy.copy(threads)
        inner.function, inner.registers = called, {}
        inner.frame = threads.frame + threads.function.sizes["local"]
        if inner.frame + called.sizes["local"] > inner.local.shape[1]:
            raise Fault("the stack is full")
        inner.parameters = {own: threads.parameters[value] for (own, _), value in zip(called.parameters, given)}
        self.run(inner, np.ones(threads.count, bool) if mask is None else mask.copy())
        if result:
            threads.parameters[result] = inner.parameters[called.results[0]]


class _Flow:
    """The place of each thread in a function; `at` is that of all of them while they are together."""

    def __init__(self, program: Program, threads: Threads, alive: np.ndarray | None) -> None:
        self.program, self.threads = program, threads
        self.instructions = threads.function.instructions
        self.together = alive is None or bool(alive.all())
        self.alive = np.ones(threads.count, bool) if alive is None else alive
        self.waiting = np.zeros(threads.count, bool)
        self.places = np.zeros(threads.count, np.int64)
        self.at = 0

    def run(self) -> None:
        """Execute instructions until all threads have ended."""
        while (mask := self.next()) is not False:
            instruction = self.instructions[self.at]
            lanes = self.predicated(instruction, mask)
            if instruction.name in ("bra", "brx", "ret", "exit"):
                self.branch(instruction, mask, lanes)
            elif instruction.name == "bar":
                self.wait(mask)
            else:
                if lanes is None or lanes.any():
                    self.program.execute(self.threads, instruction, lanes)
                self.go_on(mask, self.at + 1)

    def next(self) -> Mask | bool:
        """The threads that execute the next instruction, whose place is `at`; False at the end."""
        if self.together:
            return None if self.at < len(self.instructions) else False
        able = self.alive & ~self.waiting
        parted = ""
        while True:
            places = self.places[able]
            if not places.size and (self.waiting.any() or parted):
                raise Fault(parted or "threads wait for ever at a barrier")
            if not places.size or places.min() >= len(self.instructions):
                return False
            self.at = int(places.min())
            mask = able & (self.places == self.at)
            instruction = self.instructions[self.at]
            if instruction.name not in _OF_WARPS:
                break
            # Threads wait for the others of their warp, which may be in a branch that is further on in the text.
            whole = self.has_arrived(mask)
            if not whole.all():
                parted = f"some threads of a warp execute `{instruction.text}`"
            able &= ~(mask & ~whole)
            mask &= whole
            if mask.any():
                break
        if mask.all():
            self.together = True
            return None
        return mask

    def has_arrived(self, mask: np.ndarray) -> np.ndarray:
        """True for the threads of which the whole warp, as far as it has not ended, is in a mask."""
        warp = self.threads.warp
        count = int(warp[-1]) + 1
        arrived, alive = (np.bincount(warp[each], minlength=count) for each in (mask, self.alive))
        return np.asarray((arrived == alive)[warp])

    def predicated(self, instruction: Instruction, mask: Mask) -> Mask:
        """The threads whose predicate is true."""
        if not instruction.predicate:
            return mask
        predicate = self.threads.register(instruction.predicate)
        lanes = predicate ^ instruction.negated if mask is None else mask & (predicate ^ instruction.negated)
        return None if lanes.all() else lanes

    def go_on(self, mask: Mask, place: int) -> None:
        """Let threads go on at a place."""
        if mask is None:
            self.at = place
        else:
            self.places[mask] = place

    def part(self, mask: Mask) -> np.ndarray:
        """The mask, after which each thread has a place of its own."""
        if mask is None:
            self.places[...] = self.at
            self.together = False
            return np.ones(self.threads.count, bool)
        return mask

    def branch(self, instruction: Instruction, mask: Mask, lanes: Mask) -> None:
        """Let threads go on elsewhere, or end."""
        function = self.threads.function
        if instruction.name == "brx":
            table = np.array([function.labels[label] for label in function.tables[instruction.operands[1]]])
            index = np.minimum(self.threads.bits(instruction.operands[0], 32, None), len(table) - 1)
            mask = self.part(mask)
            self.places[mask] = table[index][mask]
            return
        ends = instruction.name != "bra"
        target = len(self.instructions) if ends else function.labels[instruction.operands[-1]]
        if lanes is None and mask is None:
            self.at = target
            return
        mask = self.part(mask)
        self.places[mask] = self.at + 1
        lanes = mask if lanes is None else lanes
        self.places[lanes] = target
        if ends:
            self.alive[lanes] = False

    def wait(self, mask: Mask) -> None:
        """Let threads wait until all of their block that have not ended are there."""
        threads = self.threads
        if mask is None:
            threads.shared.time += 1
            self.at += 1
            return
        self.waiting |= mask
        self.places[mask] = self.at + 1
        blocks = len(threads.shared.time)
        there = np.bincount(threads.block[self.waiting], minlength=blocks)
        full = (there == np.bincount(threads.block[self.alive], minlength=blocks)) & (there > 0)
        threads.shared.time[full] += 1
        self.waiting &= ~full[threads.block]


def launch(
    program: Program,
    function: Function,
    shape: tuple[tuple[int, ...], tuple[int, ...]],
    arguments: Sequence[int],
    memory: GlobalMemory,
    most: int = 1 << 14,
    traffic: Traffic | None = None,
    shared_bytes: int = 0,
) -> None:
    """Run a kernel, some of its blocks at a time, and count its traffic; `shared_bytes` are those of the launch."""
    grid, block = shape
    names = [name for name, _ in function.parameters]
    total, at_once = int(np.prod(grid)), max(1, most // int(np.prod(block)))
    with np.errstate(all="ignore"):
        for first in range(0, total, at_once):
            blocks = np.arange(first, min(first + at_once, total))
            given = dict(zip(names, arguments, strict=True))
            program.run(Threads(function, blocks, shape, given, memory, traffic, shared_bytes))
