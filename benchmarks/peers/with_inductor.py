"""PyTorch compiled: `torch.compile` of what the peer `torch` runs. Needs a C++ compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers import with_torch
from benchmarks.workloads import Arguments

to_numpy = with_torch.to_numpy


def version() -> str:
    """Its name and version."""
    return f"torch.compile {torch.__version__}"


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload as a PyTorch user would compile it."""
    return with_torch.build(name, arguments, threads, lambda function: torch.compile(function, dynamic=False))
