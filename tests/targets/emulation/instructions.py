"""What the instructions do, as the manual "Parallel Thread Execution ISA" describes them; only those that occur."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable

import numpy as np

from tests.targets.emulation.memory import Fault
from tests.targets.emulation.ptx import UNSIGNED, Instruction, names_in
from tests.targets.emulation.threads import FLOATS, LOCAL, SIGNED, WARP, Mask, Rule, Threads

RULES: dict[str, Rule] = {}
_TYPE = re.compile(r"([subf])(\d+)(?:x2)?")
_SPACES = ("param", "global", "shared", "local")
_ROUNDINGS = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}
_DIRECTED = ("rz", "rm", "rp")
_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_LOGIC = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator of the rules of these instructions."""

    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return add


def type_of(name: str) -> tuple[str, int]:
    """The form and the width of a type."""
    if name in ("pred", "bf16"):
        return ("pred", 8) if name == "pred" else ("bf", 16)
    match = _TYPE.fullmatch(name)
    if match is None:
        raise Fault(f"there is no type {name}")
    return match[1], int(match[2])


def to_bf16(value: np.ndarray) -> np.ndarray:
    """The bits of f32 values rounded to bf16."""
    bits = np.asarray(value, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(value), 0x7FFF, rounded).astype(np.uint16)


def to_float(form: str, width: int, value: np.ndarray) -> np.ndarray:
    """Floats rounded to a form, as they are in a register."""
    return to_bf16(value) if form == "bf" else value.astype(FLOATS[width])


# Moves, memory.


@rule("mov")
def move(t: Threads, i: Instruction, mask: Mask) -> None:
    target, source = i.operands
    if i.type == "pred":
        t.put(target, t.value(source, "pred", 8, mask), mask)
        return
    width = int(i.type[1:])
    if target[0] == "{":
        names = names_in(target)
        value, each = t.bits(source, width, mask), width // len(names)
        for number, name in enumerate(names):
            t.put(name, (value >> UNSIGNED[width](each * number)).astype(UNSIGNED[each]), mask)
    elif source[0] == "{":
        names = names_in(source)
        each = width // len(names)
        parts = [
            t.bits(name, each, mask).astype(UNSIGNED[width]) << UNSIGNED[width](each * number)
            for number, name in enumerate(names)
        ]
        t.put(target, functools.reduce(operator.or_, parts), mask)
    else:
        t.put(target, t.bits(source, width, mask), mask)


@rule("cvta")
def convert_address(t: Threads, i: Instruction, mask: Mask) -> None:
    value = t.bits(i.operands[1], 64, mask)
    if "local" in i.parts:
        value = value - np.uint64(LOCAL) if "to" in i.parts else value + np.uint64(LOCAL)
    t.put(i.operands[0], value, mask)


def space_of(i: Instruction) -> str:
    """The memory that an instruction names."""
    return next((part for part in i.parts if part in _SPACES), "generic")


@rule("ld")
def load(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    names, space = names_in(i.operands[0]), space_of(i)
    if space == "param":
        name, _, offset = i.operands[1].strip("[]").partition("+")
        assert not int(offset or 0), i.text
        value = t.parameters[name]
        if isinstance(value, np.ndarray):
            t.put(names[0], (value if mask is None else value[mask]).astype(UNSIGNED[width]), mask)
        else:
            t.put(names[0], UNSIGNED[width](value & (1 << width) - 1), mask)
        return
    found = t.access(mask, space, t.address(i.operands[1], mask), width // 8 * len(names), width // 8)
    assert found is not None
    for number, name in enumerate(names):
        column = np.ascontiguousarray(found[:, number])
        t.put(name, column.view(SIGNED[width]) if form == "s" else column, mask)


@rule("st")
def store(t: Threads, i: Instruction, mask: Mask) -> None:
    _, width = type_of(i.type)
    space = space_of(i)
    if space == "param":
        name = i.operands[0].strip("[]").partition("+")[0]
        value = t.parameters.get(name)
        if not isinstance(value, np.ndarray):
            value = t.parameters[name] = np.zeros(t.count, np.uint64)
        value[... if mask is None else mask] = t.bits(i.operands[1].strip("{}"), width, mask)
        return
    names, address = names_in(i.operands[1]), t.address(i.operands[0], mask)
    values = np.stack([np.broadcast_to(t.bits(name, width, mask), address.shape) for name in names], 1)
    t.access(mask, space, address, width // 8 * len(names), width // 8, values)


@rule("atom", "red")
def atomic(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    operands = list(i.operands) if i.name == "atom" else ["_", *i.operands]
    address = t.address(operands[1], mask)
    values, others = (
        np.broadcast_to(t.value(operand, form, width, mask), address.shape) for operand in (operands[2], operands[-1])
    )
    name = next(part for part in i.parts if part in ("add", "max", "min", "exch", "cas", "and", "or", "xor"))
    old = np.empty(len(address), values.dtype)
    for number, (value, other) in enumerate(zip(values, others, strict=True)):
        one = address[number : number + 1]
        now = old[number] = t.memory.load(one, width // 8, width // 8)[0, :1].view(values.dtype)[0]
        new = combined(name, now, value, other)
        t.memory.store(one, np.array([[new]], values.dtype).view(UNSIGNED[width]), width // 8)
    t.put(operands[0], old, mask)


def combined(name: str, now: np.generic, value: np.generic, other: np.generic) -> object:
    """What an atomic operation stores."""
    if name == "cas":
        return other if now == value else now
    if name == "exch":
        return value
    if name in _LOGIC:
        return _LOGIC[name](now, value)
    return now + value if name == "add" else (np.fmax if name == "max" else np.fmin)(now, value)


# Asynchronous copies.


@rule("cp")
def copy(t: Threads, i: Instruction, mask: Mask) -> None:
    lanes = t.lanes(mask)
    if i.parts[2] == "commit_group":
        t.groups[lanes] += 1
    elif i.parts[2] == "wait_group":
        wait_for_copies(t, lanes, int(i.operands[0]))
    else:
        target, source, size = t.address(i.operands[0], mask), t.address(i.operands[1], mask), int(i.operands[2])
        taken = np.full(target.shape, size)
        if len(i.operands) > 3:
            taken = np.broadcast_to(t.bits(i.operands[3], 32, mask), target.shape)
        if (source % size).any():
            raise Fault("a misaligned source of a copy")
        t.note("global", lanes[taken > 0], source[taken > 0], size)
        t.note("shared", lanes, target, size)
        data = np.zeros((len(target), size), np.uint8)
        if (some := taken > 0).any():
            data[some] = t.memory.load(source[some], size, 1)
        data[np.arange(size)[None, :] >= taken[:, None]] = 0
        t.shared.begin_copy(t.block[lanes], t.thread[lanes], target, size)
        t.copies.append((lanes, target, data, t.groups[lanes].copy()))


def wait_for_copies(t: Threads, lanes: np.ndarray, most: int) -> None:
    """Finish the copies of some threads but for those of their last groups."""
    rest = []
    for own, target, data, group in t.copies:
        done = np.isin(own, lanes) & (group < t.groups[own] - most)
        if done.any():
            t.shared.end_copy(t.block[own[done]], target[done], data[done])
        if not done.all():
            rest.append((own[~done], target[~done], data[~done], group[~done]))
    t.copies[:] = rest


# Arithmetic.


@rule("setp")
def compare(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    a, b = (t.value(operand, form, width, mask) for operand in i.operands[1:3])
    name = i.parts[1]
    if form not in ("f", "bf"):
        found = _COMPARISONS[name](a, b)
    else:
        unordered = np.isnan(a) | np.isnan(b)
        if name in ("nan", "num"):
            found = unordered ^ (name == "num")
        elif len(name) == 3:  # such as `ltu`
            found = _COMPARISONS[name[:2]](a, b) | unordered
        else:
            found = _COMPARISONS[name](a, b) & ~unordered
    t.put(i.operands[0], found, mask)


@rule("selp")
def select(t: Threads, i: Instruction, mask: Mask) -> None:
    _, width = type_of(i.type)
    condition = t.bits(i.operands[3], 8, mask)
    t.put(i.operands[0], np.where(condition, *(t.bits(each, width, mask) for each in i.operands[1:3])), mask)


@rule("add", "sub", "mul", "div", "fma", "mad", "max", "min", "rem", "copysign", "addc", "subc", "madc")
def arithmetic(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    operands = [t.value(operand, form, width, mask) for operand in i.operands[1:3]]
    if form in ("f", "bf"):
        directed = next((part for part in i.parts if part in _DIRECTED), "")
        if directed and width == 32:
            exact = float_arithmetic(t, i, mask, *(operand.astype(np.float64) for operand in operands))
            t.put(i.operands[0], rounded(exact, directed), mask)
            return
        if directed:
            raise Fault(f"there is no rule for `{i.text}`")
        t.put(i.operands[0], to_float(form, width, float_arithmetic(t, i, mask, *operands)), mask)
    else:
        t.put(i.operands[0], integer_arithmetic(t, i, mask, *operands), mask)


def float_arithmetic(t: Threads, i: Instruction, mask: Mask, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The result of an operation on floats."""
    if i.name in ("fma", "mad"):
        form, width = type_of(i.type)
        wide = np.longdouble if width == 64 else np.float64
        return np.asarray(a.astype(wide) * b + t.value(i.operands[3], form, width, mask))
    strict = "NaN" in i.parts
    functions: dict[str, Callable[..., np.ndarray]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "max": np.maximum if strict else np.fmax, "min": np.minimum if strict else np.fmin,
        "copysign": lambda x, y: np.copysign(y, x),
    }  # fmt: skip
    return np.asarray(functions[i.name](a, b))


def rounded(exact: np.ndarray, direction: str) -> np.ndarray:
    """The f32 values next to f64 ones: towards zero, and below or above them."""
    nearest = np.asarray(exact).astype(np.float32)
    low, high = nearest > exact, nearest < exact
    if direction == "rz":
        low, high = low & (exact > 0), high & (exact < 0)
    elif direction == "rm":
        high = np.zeros_like(high)
    else:
        low = np.zeros_like(low)
    down, up = (np.nextafter(nearest, np.float32(limit)) for limit in (-np.inf, np.inf))
    return np.where(low, down, np.where(high, up, nearest))


def integer_arithmetic(t: Threads, i: Instruction, mask: Mask, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The result of an operation on integers."""
    form, width = type_of(i.type)
    if i.name in ("add", "sub", "addc", "subc"):
        return sum_of(t, i, a, b)
    if i.name in ("mul", "mad", "madc"):
        found = product(i.parts[1], form, width, a, b)
        if i.name == "mul":
            return found
        more = t.value(i.operands[3], form, 8 * found.dtype.itemsize, mask)
        return sum_of(t, i, found, more)
    if i.name in ("max", "min"):
        return (np.maximum if i.name == "max" else np.minimum)(a, b)
    quotient = truncated(a, np.where(b == 0, 1, b).astype(a.dtype))
    return quotient if i.name == "div" else (a - quotient * b).astype(a.dtype)


def sum_of(t: Threads, i: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A sum or difference, with the carry before and after it where the instruction has them."""
    less = i.name.startswith("sub")
    takes, gives = i.name.endswith("c"), "cc" in i.parts
    if not takes and not gives:
        return a - b if less else a + b
    width = 8 * a.dtype.itemsize
    exact = [x.view(UNSIGNED[width]).astype(object) for x in (a, b)]
    carry = np.asarray(t.carry if takes else 0).astype(object)
    total = exact[0] - exact[1] - carry if less else exact[0] + exact[1] + carry
    if gives:
        t.carry = np.asarray((total < 0) | (total >= 1 << width)).astype(np.int64)
    return np.asarray(total & (1 << width) - 1, dtype=object).astype(UNSIGNED[width])


def product(part: str, form: str, width: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product: its low half, its high half, or all of it."""
    if part == "lo":
        return a * b
    if width == 64:
        exact = a.astype(object) * b.astype(object) >> 64
        return np.asarray(exact & (1 << 64) - 1, dtype=object).astype(np.uint64)
    wide = (SIGNED if form == "s" else UNSIGNED)[2 * width]
    whole = a.astype(wide) * b.astype(wide)
    return whole if part == "wide" else (whole >> wide(width)).astype(a.dtype)


def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quotients that are rounded towards zero."""
    quotient = a // b
    rest = a - quotient * b
    return np.where((rest != 0) & ((a < 0) != (b < 0)), quotient + 1, quotient).astype(a.dtype)


@rule("and", "or", "xor", "not")
def logic(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    values = [t.value(operand, form, width, mask) for operand in i.operands[1:]]
    t.put(i.operands[0], ~values[0] if i.name == "not" else _LOGIC[i.name](*values), mask)


@rule("shl", "shr")
def shift(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    value, amount = t.value(i.operands[1], form, width, mask), t.bits(i.operands[2], 32, mask).astype(np.int64)
    kept = np.minimum(amount, width - 1).astype(value.dtype)
    found = value << kept if i.name == "shl" else value >> kept
    if i.name == "shl" or form != "s":
        found = np.where(amount >= width, 0, found).astype(value.dtype)
    t.put(i.operands[0], found, mask)


@rule("shf")
def funnel_shift(t: Threads, i: Instruction, mask: Mask) -> None:
    low, high, amount = (t.bits(operand, 32, mask).astype(np.uint64) for operand in i.operands[1:4])
    both, amount = low | high << np.uint64(32), amount & np.uint64(31)
    found = both << amount >> np.uint64(32) if i.parts[1] == "l" else both >> amount
    t.put(i.operands[0], found.astype(np.uint32), mask)


@rule("abs", "neg", "sqrt", "rcp", "ex2", "lg2", "rsqrt")
def unary(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    functions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "abs": np.abs, "neg": np.negative, "sqrt": np.sqrt, "ex2": np.exp2, "lg2": np.log2,
        "rcp": lambda x: x.dtype.type(1) / x, "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    }  # fmt: skip
    value = t.value(i.operands[1], form, width, mask)
    found = np.asarray(functions[i.name](value))
    t.put(i.operands[0], found if form == "s" else to_float(form, width, found), mask)


@rule("popc", "clz")
def count_bits(t: Threads, i: Instruction, mask: Mask) -> None:
    width = int(i.type[1:])
    value = t.bits(i.operands[1], width, mask)
    if i.name == "popc":
        found = np.array([int(x).bit_count() for x in np.ravel(value)])
    else:
        found = width - np.array([int(x).bit_length() for x in np.ravel(value)])
    t.put(i.operands[0], found.astype(np.uint32).reshape(value.shape), mask)


@rule("bfe")
def extract_bits(t: Threads, i: Instruction, mask: Mask) -> None:
    form, width = type_of(i.type)
    value, first, count = t.bits(i.operands[1], width, mask), int(i.operands[2]), int(i.operands[3])
    unsigned = UNSIGNED[width]
    found = value >> unsigned(first) & unsigned((1 << count) - 1)
    if form == "s":
        sign = unsigned(1 << count - 1)
        found = (found ^ sign) - sign
    t.put(i.operands[0], found, mask)


@rule("prmt")
def permute_bytes(t: Threads, i: Instruction, mask: Mask) -> None:
    a, b, chosen = (t.bits(operand, 32, mask).astype(np.uint64) for operand in i.operands[1:4])
    both, found = a | b << np.uint64(32), np.uint64(0)
    for number in range(4):
        selector = chosen >> np.uint64(4 * number)
        byte = both >> (selector & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        sign = (byte >> np.uint64(7)) * np.uint64(255)
        byte = np.where(selector & np.uint64(8), sign, byte)
        found = found | byte << np.uint64(8 * number)
    t.put(i.operands[0], np.asarray(found).astype(np.uint32), mask)


@rule("cvt")
def convert(t: Threads, i: Instruction, mask: Mask) -> None:
    if i.parts[-2] in ("f16x2", "bf16x2"):
        halves = []
        for operand in i.operands[1:3]:
            value = t.value(operand, "f", 32, mask)
            half = to_bf16(value) if i.parts[-2] == "bf16x2" else value.astype(np.float16).view(np.uint16)
            halves.append(half.astype(np.uint32))
        t.put(i.operands[0], halves[0] << np.uint32(16) | halves[1], mask)
        return
    (form, width), (own_form, own_width) = type_of(i.parts[-2]), type_of(i.type)
    value = t.value(i.operands[1], own_form, own_width, mask)
    rounding = next((part for part in i.parts if part in _ROUNDINGS), "")
    is_float = own_form in ("f", "bf")
    if is_float and form in ("s", "u"):
        found = to_integer(_ROUNDINGS[rounding](value.astype(np.float64)), form, width, own_width)
    elif form == "f":
        found = (_ROUNDINGS[rounding](value) if rounding and is_float else value).astype(FLOATS[width])
        found = np.clip(found, 0, 1) if "sat" in i.parts else found
    elif form == "bf":
        found = to_bf16(value)
    else:
        found = value.astype((SIGNED if own_form == "s" else UNSIGNED)[width])
    t.put(i.operands[0], found, mask)


def to_integer(value: np.ndarray, form: str, width: int, own_width: int) -> np.ndarray:
    """Integers of whole floats, clamped to their range; NaN is 0, of or to 64 bits the largest power of two."""
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if form == "s" else (0, (1 << width) - 1)
    none = (1 << width - 1) * (-1 if form == "s" else 1) if 64 in (own_width, width) else 0
    exact = [none if x != x else min(max(int(x), low), high) if abs(x) != np.inf else low if x < 0 else high
             for x in np.ravel(value).tolist()]  # fmt: skip
    return np.array(exact, dtype=object).astype((SIGNED if form == "s" else UNSIGNED)[width]).reshape(value.shape)


# Operations of a warp.


def whole_warps(t: Threads, i: Instruction, mask: Mask) -> None:
    """Fail where only some threads of a warp execute an operation of all."""
    if mask is not None and (np.bincount(t.warp[mask], minlength=t.warp[-1] + 1) % np.bincount(t.warp)).any():
        raise Fault(f"some threads of a warp execute `{i.text}`")


@rule("shfl")
def shuffle(t: Threads, i: Instruction, mask: Mask) -> None:
    whole_warps(t, i, mask)
    target, _, predicate = i.operands[0].partition("|")
    value, offset = t.bits(i.operands[1], 32, None), t.bits(i.operands[2], 32, None).astype(np.int64)
    if "bfly" not in i.parts:
        raise Fault(f"there is no rule for `{i.text}`")
    other = (t.thread & ~(WARP - 1)) | (t.thread & (WARP - 1) ^ offset)
    source = np.arange(t.count) - t.thread + np.where(other < t.per_block, other, t.thread)
    lanes = t.lanes(mask)
    t.put(target, value[source][lanes], mask)
    if predicate:
        t.put(predicate, np.ones(len(lanes), bool), mask)


@rule("ldmatrix")
def load_matrix(t: Threads, i: Instruction, mask: Mask) -> None:
    whole_warps(t, i, mask)
    address, lanes = t.address(i.operands[1], None), t.lanes(mask)
    lane = lanes % WARP
    first, group, member = lanes - lane, lane // 4, lane % 4
    rows = lanes[lane // 8 < len(names_in(i.operands[0]))]
    if (address[rows] % 16).any():
        raise Fault("a misaligned row of ldmatrix")
    t.note("shared", rows, address[rows], 16)
    traffic, t.traffic = t.traffic, None  # the rows were counted
    for number, name in enumerate(names_in(i.operands[0])):
        if "trans" in i.parts:
            halves = []
            for each in (0, 1):
                place = address[first + 8 * number + 2 * member + each] + 2 * group
                half = t.access(mask, "shared", place, 2, 2)
                assert half is not None
                halves.append(half[:, 0].astype(np.uint32))
            value = halves[0] | halves[1] << np.uint32(16)
        else:
            whole = t.access(mask, "shared", address[first + 8 * number + group] + 4 * member, 4, 4)
            assert whole is not None
            value = whole[:, 0]
        t.put(name, value, mask)
    t.traffic = traffic


def multiply_doubles(t: Threads, i: Instruction, mask: Mask) -> None:
    """An 8 x 4 matrix times a 4 x 8 one in f64."""
    found, *factors, before = (names_in(operand) for operand in i.operands)
    left, right = (t.bits(name, 64, None).view(np.float64).reshape(-1, 8, 4) for (name,) in factors)
    products = (left @ right.swapaxes(1, 2)).reshape(t.count, 2)
    for number, (name, start) in enumerate(zip(found, before, strict=True)):
        total = np.broadcast_to(t.value(start, "f", 64, None), (t.count,)) + products[:, number]
        t.put(name, total[t.lanes(mask)], mask)


@rule("mma")
def multiply_matrices(t: Threads, i: Instruction, mask: Mask) -> None:
    """A 16 x k matrix times a k x 8 one, by the fragments of a warp's threads."""
    whole_warps(t, i, mask)
    if t.traffic is not None:
        t.traffic.products += len(t.lanes(mask)) // WARP
    if i.type == "f64":
        multiply_doubles(t, i, mask)
        return
    form = i.parts[-2]
    size = re.search(r"k(\d+)", i.text)
    assert size is not None
    depth = int(size[1])
    lists = [names_in(operand) for operand in i.operands]
    warps, lane = t.count // WARP, np.arange(WARP)
    group, member, each = lane // 4, lane % 4, depth // 8

    def fragments(names: list[str]) -> np.ndarray:
        raw = np.stack([t.bits(name, 32, None) for name in names], 1)
        if form == "tf32":
            wide = (raw & np.uint32(0xFFFFE000)).view(np.float32)[:, :, None]
        else:
            halves = np.ascontiguousarray(raw).view(np.uint16).reshape(t.count, len(names), 2)
            wide = halves.view(np.float16).astype(np.float32) if form == "f16" else (
                halves.astype(np.uint32) << np.uint32(16)).view(np.float32)  # fmt: skip
        return wide.reshape(warps, WARP, *wide.shape[1:])

    a, b = fragments(lists[1]), fragments(lists[2])
    left, right = np.zeros((warps, 16, depth)), np.zeros((warps, depth, 8))
    for number in range(4):
        for element in range(each):
            place = each * member + element
            left[:, group + 8 * (number % 2), place + depth // 2 * (number // 2)] = a[:, :, number, element]
            if number < 2:
                right[:, place + depth // 2 * number, group] = b[:, :, number, element]
    products = left @ right
    for number in range(4):
        before = np.broadcast_to(t.value(lists[3][number], "f", 32, None), (t.count,)).reshape(warps, WARP)
        found = before + products[:, group + 8 * (number // 2), 2 * member + number % 2]
        t.put(lists[0][number], found.astype(np.float32).reshape(-1)[t.lanes(mask)], mask)


@rule("membar", "fence")
def nothing(t: Threads, i: Instruction, mask: Mask) -> None:
    """Memory is the same for all threads at once."""
