"""The workloads in torch: on its GPU for the target `cuda`, on the CPU for others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.devices.workloads import DeviceWorkload
from benchmarks.peers.with_torch import FUNCTIONS

_PREFIXES = ("matmul", "linear_gelu", "causal_attention", "attention", "layers", "branches")


def _layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for each in w:
        x = torch.tanh(x @ each)
    return x


def _branches(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    parts = [torch.tanh(x @ each) for each in w]
    total = parts[0]
    for part in parts[1:]:
        total = torch.maximum(total, part)
    return total


_OWN = {"layers": _layers, "branches": _branches}


def version(target: str) -> str:
    """Its name, its version and the device."""
    where = torch.cuda.get_device_name(0) if _place(target) == "cuda" else "the CPU"
    return f"torch {torch.__version__} on {where}"


def _place(target: str) -> str:
    if target != "cuda":
        return "cpu"
    if not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU")
    return "cuda"


def build(workload: DeviceWorkload, arguments: Any, target: str) -> Callable[[], Any]:
    """A call that asks the device for the result and does not wait."""
    place = _place(target)
    torch.backends.cuda.matmul.allow_tf32 = workload.precision == "tf32"
    if workload.name == "digits_step":
        sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "examples"))
        from torch_digits import training_step

        return training_step("mlp", *arguments[:-1], 0.9, place)
    there = [_tensors(x, getattr(torch, workload.dtype), place) for x in arguments]
    if workload.name == "copy":
        out = torch.empty_like(there[0])
        return lambda: out.copy_(there[0])
    name = next((prefix for prefix in _PREFIXES if workload.name.startswith(prefix)), workload.name)
    function = _OWN[name] if name in _OWN else FUNCTIONS[name]

    def call() -> Any:
        with torch.inference_mode():
            return function(*there)

    return call


def _tensors(tree: Any, dtype: Any, place: str) -> Any:
    if isinstance(tree, dict):
        return {key: _tensors(value, dtype, place) for key, value in tree.items()}
    return torch.from_numpy(tree.copy()).to(place, dtype)


def synchronize(target: str) -> None:
    """Wait for the device."""
    if target == "cuda":
        torch.cuda.synchronize()


def to_numpy(result: Any) -> list[np.ndarray]:
    """The arrays of a result."""
    return [result.detach().float().cpu().numpy()]
