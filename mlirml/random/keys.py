"""Keys, and the bits that are drawn with them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.ir.text.builder import Body, Scalar
from mlirml.ir.text.dtypes import describe
from mlirml.ops.shapes.views import extents
from mlirml.random.reuse import note_eager_use, note_use
from mlirml.random.threefry import WORD, Word, both, counter, counters, enciphered

__all__ = ["bits", "fold_in", "key", "split"]

F = TypeVar("F", bound=Callable[..., Any])
_MOST = 1 << 32
_HELP = "make one of a seed, `random.key(0)`"
_NESTED: ContextVar[bool] = ContextVar("mlirml_drawing", default=False)  # in a call of another public function
_LEAVE_KEYS = ("key", "fold_in")
_ZERO = Scalar(np.uint32(0), weak=False)


def drawing(function: F) -> F:
    """Decorator of public functions: errors show the user's line, u32 arithmetic wraps silently, and a key that is used
    twice, in a compiled function or outside of any, gives a warning.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with at_user_line():
            trace = current_trace()
            if _NESTED.get():
                return function(*args, **kwargs)
            token = _NESTED.set(True)
            try:
                with nullcontext() if trace is not None else np.errstate(over="ignore", under="ignore"):
                    result = function(*args, **kwargs)
            finally:
                _NESTED.reset(token)
            if function.__name__ not in _LEAVE_KEYS:
                key = args[0] if args else kwargs.get("key")
                note_eager_use(key) if trace is None else note_use(trace, key)
            return result

    call.__module__ = "mlirml.random"
    return cast(F, call)


def as_array(x: Any) -> Any:
    """A traced array as it is, anything else as an array of the trace that is running, if any, or of NumPy."""
    trace = current_trace()
    if isinstance(x, Traced) or trace is None:
        return x if isinstance(x, Traced) else np.asarray(x)
    return trace.wrap(trace.lift(x), scalar=False) if isinstance(x, np.ndarray) else trace.array(x)


def dtype_of(name: str, dtype: Any) -> np.dtype:
    """A dtype, or an error where NumPy has none of this name."""
    try:
        found: np.dtype = np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"{name}: {dtype!r} is no dtype") from None
    return found


def dtype_in(x: Any) -> np.dtype:
    """The dtype of an array or of a Python number; one of objects or text for what is no number."""
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def known_value(x: Any) -> np.ndarray | None:
    """A parameter as an array where its value is known, else None."""
    found = x._known() if isinstance(x, Traced) else x
    return None if found is None or isinstance(found, Traced) else np.asarray(found)


def checked_key(name: str, key: Any) -> Any:
    """The key as an array; an error unless it is u32 [2]."""
    if not hasattr(key, "dtype") and not isinstance(key, (list, tuple)):
        raise DTypeError(f"{name}: a key is an array u32[2], not of type {type(key).__name__}", help=_HELP)
    key = as_array(key)
    if key.dtype == WORD and key.shape[-1:] == (2,) and len(key.shape) > 1:
        raise ShapeError(
            f"{name}: takes one key, u32[2], got {describe(key.shape, key.dtype)}",
            help="take one of them, `keys[i]`, or map over them with `ml.vmap`",
        )
    if key.dtype != WORD or key.shape != (2,):
        raise DTypeError(f"{name}: a key is u32[2], got {describe(key.shape, key.dtype)}", help=_HELP)
    return key


def sizes(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as Python integers."""
    if isinstance(shape, np.ndarray) and shape.ndim == 1:
        shape = tuple(shape)
    found = extents(name, "the shape", shape if isinstance(shape, (tuple, list)) else (shape,))
    if any(n < 0 for n in found):
        raise ShapeError(f"{name}: sizes cannot be negative, got {list(found)}")
    if math.prod(found) > _MOST:
        raise ShapeError(f"{name}: one key gives 2**32 elements, not {math.prod(found)}", help="split the key")
    return found


def blocks(key: Any, shape: tuple[int, ...], form: str, at: Any = None) -> Any:
    """The enciphered counters 0, 1, 2, ... in this shape: their "high" or "low" word, the "xor" of both, or "both".

    "both" is u64, the others are u32. `at` has other counters, u32 of this shape.
    """
    dtype = np.dtype(np.uint64) if form == "both" else WORD
    trace = current_trace()
    if trace is None:
        numbers = counters(shape) if at is None else at
        high, low = enciphered(key[:1], key[1:], np.zeros(1, WORD), numbers.reshape(-1))
        return _combined(form, high, low).reshape(shape)
    if math.prod(shape) == 0:
        return trace.filled(shape, 0, dtype)

    def body(block: Body, halves: list[str]) -> str:
        k0, k1, zero, *own = (Word(block, name) for name in halves)
        number = own[0] if own else counter(block, shape, trace.builder.sizes.number)
        high, low = enciphered(k0, k1, zero, number)
        return both(block, high, low) if form == "both" else _combined(form, high, low).name

    operands = [trace.lift(key[0]), trace.lift(key[1]), _ZERO, *([] if at is None else [trace.lift(at)])]
    return trace.wrap(trace.builder.elementwise(operands, [WORD] * len(operands), dtype, shape, body))


def _combined(form: str, high: Any, low: Any) -> Any:
    if form == "both":
        return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return high if form == "high" else low if form == "low" else high ^ low


@drawing
def key(seed: Any) -> Any:
    """The key u32 [2] of an integer: its upper and its lower 32 bits.

    >>> from mlirml import random
    >>> random.key(7).tolist()
    [0, 7]
    """
    if isinstance(seed, (bool, np.bool_)) or (not isinstance(seed, (int, np.integer, np.ndarray, Traced))):
        raise DTypeError(f"key: the seed must be an integer, got {seed!r}")
    if isinstance(seed, (int, np.integer)):
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise DTypeError(f"key: the seed {seed} does not fit 64 bits")
        halves = np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], WORD)
        trace = current_trace()
        return halves if trace is None else trace.known(halves)
    if seed.dtype.kind not in "iu" or seed.shape:
        raise DTypeError(f"key: the seed must be an integer, got {describe(seed.shape, seed.dtype)}")
    kind = np.uint64 if seed.dtype.kind == "u" else np.int64
    wide: Any = seed.astype(kind) + kind(0)  # no Python integer any more
    return np.stack([(wide >> 32).astype(WORD), wide.astype(WORD)])


@drawing
def split(key: Any, num: Any = 2) -> Any:
    """New keys, u32 [num, 2] (or [*num, 2]), that are independent of each other; the old one is used up."""
    key, shape = checked_key("split", key), sizes("split", num)
    return np.stack([blocks(key, shape, "high"), blocks(key, shape, "low")], axis=-1)


@drawing
def fold_in(key: Any, data: Any) -> Any:
    """A new key u32 [2] for an integer, such as the number of an iteration."""
    key = checked_key("fold_in", key)
    if np.ndim(data) or dtype_in(data).kind not in "iu":
        raise DTypeError(f"fold_in: data must be one integer, got {data!r}")
    known = known_value(data)
    if known is not None and not 0 <= known.item() < _MOST:
        raise DTypeError(f"fold_in: data must be at least 0 and below 2**32, got {known.item()}")
    data, trace = as_array(data), current_trace()
    if trace is not None and trace.lift(data) not in trace.builder.arguments:
        data = trace.array(data)  # the number of an iteration, which is no literal that has to fit
    word = data.astype(WORD)
    if trace is None:
        return np.concatenate(enciphered(key[:1], key[1:], np.zeros(1, WORD), word.reshape(1)))
    operands = [trace.lift(key[0]), trace.lift(key[1]), _ZERO, trace.lift(word)]

    def of_word(number: int) -> Any:
        def body(block: Body, halves: list[str]) -> str:
            return enciphered(*(Word(block, name) for name in halves))[number].name

        return trace.wrap(trace.builder.elementwise(operands, [WORD] * 4, WORD, (), body))

    return np.stack([of_word(0), of_word(1)])


@drawing
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Any:
    """Random bits as unsigned integers of 8, 16, 32 or 64 bits."""
    key, shape, dtype = checked_key("bits", key), sizes("bits", shape), dtype_of("bits", dtype)
    if dtype.kind != "u":
        raise DTypeError(f"bits: the dtype must be an unsigned integer, not {dtype.name}")
    drawn = blocks(key, shape, "both" if dtype.itemsize == 8 else "xor")
    return drawn if dtype.itemsize >= 4 else drawn.astype(dtype)
