"""The functions of `np.random`, and of Python's `random`, in traced code: they draw from a stream of each call.

np.random.seed(0)               its key is drawn from NumPy's own generator before each call, so that a seed of that
f(x)                            one outside decides on the numbers of compiled functions too
np.random.seed(7)               in a compiled function: the stream is that of the seed from there on, and NumPy's
                                own generator is seeded after the call
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass, replace
from mlirml.core.tree import flatten
from mlirml.errors import CaptureError, DTypeError
from mlirml.frontend.advice import DRAW
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.current import current_trace
from mlirml.frontend.state.effects import StateChanged, StateVariable
from mlirml.random import sequences
from mlirml.random.generator import Generator
from mlirml.random.keys import drawing, key

_DRAWN = "drawn"
_WORDS = 4
"""The elements of a stream: two of the key, the number of calls, and 1 if the program has seeded it."""


@dataclass(frozen=True, eq=False)
class _Stream(StateVariable):
    """A generator of Python's or NumPy's as a state variable: a key that it draws for each call."""

    draw: Callable[[], int] = lambda: 0
    seed: Callable[[int], None] = lambda number: None

    def for_call(self) -> Any:
        """A stream for a call, one and the same until the call is done, as a call that compiles asks several times."""
        if self.holder[_DRAWN] is None:
            self.holder[_DRAWN] = self.draw(), self.draw()
        return np.array([*self.holder[_DRAWN], 0, 0], np.uint32)

    def after_call(self, value: Any) -> None:
        """Seed the generator if the program did so, by which later numbers of other programs are decided, too."""
        self.after_failure()
        if value[3]:
            self.seed(int(value[0] ^ value[1]) + int(value[2]))

    def after_failure(self) -> None:
        """Draw another key for the next call."""
        self.holder[_DRAWN] = None


def _stream(path: str, draw: Callable[[], int], seed: Callable[[int], None]) -> _Stream:
    empty = np.zeros(_WORDS, np.uint32)
    return _Stream({path: empty, _DRAWN: None}, path, path, flatten(empty)[1], draw, seed)


_NUMPY = _stream(
    "np.random",
    lambda: int(np.random.randint(0, 1 << 32, dtype=np.uint32)),
    lambda number: np.random.seed(number % 2**32),
)
_PYTHON = _stream("random", lambda: random.getrandbits(32), random.seed)


class Functions(Generator):
    """The functions of `np.random`, and the methods of `np.random.RandomState`.

    The stream is an array, which loops, branches and calls carry.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._key, self._calls = stream, stream[:2], stream[2:3]

    @drawing
    def seed(self, seed: Any = None) -> None:
        """Let the stream be that of an integer."""
        if not isinstance(seed, (int, np.integer, Traced)):
            raise DTypeError(f"seed: takes an integer in compiled code, not {type(seed).__name__}")
        self._stream[:2] = key(seed)
        self._stream[2:] = np.array([0, 1], np.uint32)

    @drawing
    def rand(self, *sizes: Any) -> Any:
        """Uniform numbers of [0, 1)."""
        return self.random(sizes or None)

    @drawing
    def randn(self, *sizes: Any) -> Any:
        """Normal numbers with mean 0 and standard deviation 1."""
        return self.standard_normal(sizes or None)

    @drawing
    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Integers of [low, high), or of [0, low)."""
        return self.integers(low, high, size, dtype)

    @drawing
    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Any:
        """Integers of [low, high], or of [1, low]."""
        low, high = (1, low) if high is None else (low, high)
        return self.integers(low, high, size, endpoint=True)

    random_sample = ranf = sample = Generator.random


class PythonFunctions:
    """Functions of `random`, whose results are Python's numbers."""

    def __init__(self, stream: Any) -> None:
        self._numbers = Functions(stream)

    def seed(self, a: Any = None) -> None:
        """Let the stream be that of an integer."""
        self._numbers.seed(a)

    def random(self) -> Any:
        """A uniform number of [0, 1)."""
        return _weak(self._numbers.random())

    def uniform(self, a: Any, b: Any) -> Any:
        """A uniform number of [a, b)."""
        return _weak(self._numbers.uniform(a, b))

    def randint(self, a: Any, b: Any) -> Any:
        """An integer of [a, b]."""
        return _weak(self._numbers.integers(a, b, endpoint=True))

    def randrange(self, start: Any, stop: Any = None, step: int = 1) -> Any:
        """A number of a range."""
        start, stop = (0, start) if stop is None else (start, stop)
        count = (stop - start + step - (1 if step > 0 else -1)) // step
        return _weak(start + step * self._numbers.integers(count))

    def choice(self, seq: Any) -> Any:
        """An item of a sequence."""
        return self._written(sequences.choice, seq)

    def shuffle(self, x: Any) -> None:
        """Put the items of a list in random order."""
        self._written(sequences.shuffle, x)

    def sample(self, population: Any, k: Any) -> Any:
        """Items of a sequence at different positions, in random order."""
        return self._written(sequences.sample, population, k)

    def choices(self, population: Any, *, k: Any = 1) -> Any:
        """Items of a sequence, of which each may be drawn more than once."""
        return self._written(sequences.choices, population, k)

    def _written(self, function: Callable[..., Any], *args: Any) -> Any:
        """A call of a function that is written in Python; an index of a list needs the loop front end."""
        trace: Any = current_trace()
        try:
            return trace.handlers.retarget(function, trace, trace._loops_memo)(self.randrange, *args)
        except CaptureError as error:
            error.subject = DRAW
            raise

    def gauss(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        """A normal number."""
        return _weak(self._numbers.normal(mu, sigma))

    normalvariate = gauss

    def expovariate(self, lambd: Any = 1.0) -> Any:
        """A number with density lambd * exp(-lambd * x)."""
        return _weak(self._numbers.exponential(1.0 / lambd))


def _weak(number: Any) -> Any:
    """A number of the program as one of Python's."""
    return type(number)(number._trace, Cell(replace(number._read(), weak=True)), scalar=True)


def functions_of(module: str) -> Any:
    """The functions of "np.random" or "random" in the program that is traced, which draw from the stream of its call.

    Where the program has none yet, `StateChanged` makes one an input of it.
    """
    stream, methods = {"np.random": (_NUMPY, Functions), "random": (_PYTHON, PythonFunctions)}[module]
    found = stream.get()
    if not isinstance(found, Traced):
        raise StateChanged([stream], [])
    return methods(found)


def random_state(seed: Any) -> Functions:
    """`np.random.RandomState(seed)`: methods on a stream of its own."""
    trace: Any = current_trace()
    found = Functions(trace.known(np.zeros(_WORDS, np.uint32)))
    found.seed(seed)
    return found
