"""Random numbers by keys: the same numbers on every target and for any number of threads.

A function draws from a key, two u32, and from nothing else: the same key and shape give the same numbers. `split` and
`fold_in` make new keys of a key. See `docs/random.md`.

>>> from mlirml import random
>>> first, second = random.split(random.key(0))
>>> random.bits(first, (2,)).tolist() == random.bits(second, (2,)).tolist()
False
"""

from __future__ import annotations

from mlirml.core.exports import is_public as _is_public
from mlirml.random.continuous import *
from mlirml.random.discrete import *
from mlirml.random.keys import *
from mlirml.random.rejection import *
from mlirml.random.trials import *

__all__ = [name for name, value in globals().items() if _is_public(name, value)]
