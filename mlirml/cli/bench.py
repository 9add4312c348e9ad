"""`mlirml bench`: the kernels of a function in a table, or the benchmarks of the source repository."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mlirml
from mlirml.cli.function import read_call
from mlirml.core.config import config
from mlirml.core.tree import flatten
from mlirml.frontend.spec import TensorSpec


def bench(arguments: Sequence[str]) -> int:
    """Run `python -m benchmarks` of the checkout that this package is in."""
    checkout = Path(mlirml.__file__).parent.parent
    if not (checkout / "benchmarks" / "__main__.py").exists():
        print(
            "mlirml bench: the benchmarks are not part of the installed package\n"
            "   = help: get the source repository and run `make bench` there; `mlirml bench FILE.py:FUNCTION` "
            "profiles a function",
            file=sys.stderr,
        )
        return 1
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=checkout).returncode


def bench_function(options: argparse.Namespace) -> int:
    """Profile a function with arrays of random numbers, and print the table."""
    if options.threads is not None:
        config.threads = options.threads
    call = read_call(options.function, options.args, options.static, options.target)
    args, kwargs = made_arguments(call.args, call.kwargs)
    profile = call.compiled.profile(*args, **kwargs)
    if options.trace:
        profile.chrome_trace(options.trace)
    if options.roofline:
        profile.roofline(options.roofline)
    if options.json:
        json.dump(profile.as_dict(), sys.stdout, indent=1)
        print()
    else:
        print(profile)
    return 0


def made_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with an array for each `TensorSpec`: the same numbers in every process."""
    leaves, tree = flatten((args, kwargs), is_leaf=lambda leaf: isinstance(leaf, TensorSpec))
    random = np.random.default_rng(0)
    return tree.unflatten([_made(leaf, random) if isinstance(leaf, TensorSpec) else leaf for leaf in leaves])


def _made(spec: TensorSpec, random: np.random.Generator) -> Any:
    """Normally distributed floats; integers of 0 and 1, which are indices of any array; Python numbers where weak."""
    kind = spec.dtype.kind
    if kind in "biu":
        values: Any = random.integers(0, 2, spec.shape)
    else:
        values = random.standard_normal(spec.shape)
        values = values + 1j * random.standard_normal(spec.shape) if kind == "c" else values
    array = np.asarray(values).astype(spec.dtype)
    return array.item() if spec.weak else array
