"""Checks of integers in device memory, made when the host next waits for the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import CheckFailed, check_code
from mlirml.runtime.driver import Driver

SLOT_BYTES = 8


@dataclass(frozen=True)
class DeferredCheck:
    """The index of a check, which fails unless the unsigned integer of `bits` bits in its slot is below `limit`.

    `base` was added to the checked integer before the comparison.
    """

    check: int
    limit: int
    bits: int
    base: int

    def failure(self, slot: np.ndarray) -> CheckFailed | None:
        """The error of the check, given the contents of its slot; None if the check holds."""
        words = slot.view(np.uint64 if self.bits == 64 else np.uint32)
        if int(words[0]) < self.limit:
            return None
        return CheckFailed(check_code(self.check, int(words[:1].view(f"i{self.bits // 8}")[0]) - self.base))


@dataclass(frozen=True)
class Pending:
    """The deferred checks of one call: their memory, and the function that makes the user's error of a failed one."""

    checks: Sequence[DeferredCheck]
    block: Any
    explain: Callable[[CheckFailed], Exception]

    def failure(self, driver: Driver) -> Exception | None:
        """The error of the first check that fails; waits for the work before it."""
        slots = np.empty(len(self.checks) * SLOT_BYTES, np.uint8)
        driver.copy_out(slots, self.block.address)
        for number, check in enumerate(self.checks):
            failed = check.failure(slots[number * SLOT_BYTES : (number + 1) * SLOT_BYTES])
            if failed is not None:
                return self.explain(failed)
        return None
