"""`mlirml bench`: the benchmarks live in the source repository, beside the package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import mlirml


def bench(arguments: Sequence[str]) -> int:
    """Run `python -m benchmarks` of the checkout that this package is in."""
    checkout = Path(mlirml.__file__).parent.parent
    if not (checkout / "benchmarks" / "__main__.py").exists():
        print(
            "mlirml bench: the benchmarks are not part of the installed package\n"
            "   = help: get the source repository and run `make bench` there",
            file=sys.stderr,
        )
        return 1
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=checkout).returncode
