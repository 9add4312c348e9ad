"""KernelBench's problems, compiled as they are written, beside torch: `python -m benchmarks.kernelbench FOLDER`.

FOLDER is `KernelBench` of a checkout of github.com/ScalingIntelligence/KernelBench (Ouyang et al., "KernelBench: Can
LLMs write efficient GPU kernels?", 2025), whose files are read and not kept here. Sizes are reduced, as `REDUCED` says,
so that two cores compute each problem in well under a second. Dropout is off, as its numbers differ; all else is in the
mode that the problem has, batch normalisation in training. Results are compared with torch's in
double precision, and times are those of one thread.

    --only TEXT     files whose names contain the text
    --level LEVEL   "level1", "level2" or "level3" alone
    --inductor      `torch.compile`, too
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.linear_algebra import milliseconds
from benchmarks.torch_programs import compiled_module
from mlirml import config

REDUCED = [  # the first one that fits
    (r"batch\w*", 16),
    (r"(height|width|[hw])(_in)?|[HW]", 64),
    (r"depth|d|D", 16),
    (r"length|sequence_length|\w*_length", 2048),
    (r"in_features|out_features|hidden_size|input_size|input_features|output_features|num_classes", 1024),
    (r"features|embedding_dimension", 64),
    (r"num_heads", 8),
    (r"dim|input_shape", 8192),
    (r"dim\d", 128),
    (r"[MNKL]", 512),
    (r"[ijklbm]", 64),
]
"""The most that a number of a name may be; the sizes of channels and kernels stay."""
MODELS = [
    (r"batch_size", 4),
    (r"height|width", 224),
    (r"image_height|image_width", 64),
    (r"(hidden_)?layer_sizes|input_size|output_size", 1024),
]
"""The most in the models of level 3."""
LEVELS = ("level1", "level2", "level3")
_VOLUME = 32
"""The most points along each of three axes."""


def reduced(name: str, value: Any, most: dict[str, int]) -> Any:
    """A value of a problem, or the tuple of values of several names, made smaller."""
    if isinstance(value, list):
        return [reduced(name, x, most) for x in value]
    if isinstance(value, tuple):
        names = name.split(", ")
        return tuple(reduced(names[i] if len(names) == len(value) else name, x, most) for i, x in enumerate(value))
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return min(value, most.get(name, value))


class _Reduce(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        names = ", ".join(ast.unparse(x).strip("()") for x in node.targets[:1])
        call = ast.Call(ast.Name("_reduced", ast.Load()), [ast.Constant(names), node.value], [])
        return ast.copy_location(ast.Assign(node.targets, ast.copy_location(call, node.value)), node)


def problem(path: Path) -> dict[str, Any]:
    """The names that a file defines, with reduced sizes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [_Reduce().visit(node) if isinstance(node, ast.Assign) else node for node in tree.body]
    names = {x.id for node in tree.body for x in ast.walk(node) if isinstance(x, ast.Name)}
    limits = MODELS if path.parent.name == "level3" else REDUCED
    if path.stem == "100_HingeLoss":  # whose sizes are equal
        limits = [(r"batch_size|input_shape", 512)]
    most = {name: limit for name in names for form, limit in reversed(limits) if re.fullmatch(form, name)}
    if limits is REDUCED and {"depth", "D", "dim3"} & names:
        most |= dict.fromkeys(("height", "width", "H", "W", "dim1", "dim2", "dim3"), _VOLUME)
    namespace: dict[str, Any] = {"_reduced": lambda name, value: reduced(name, value, most), "__name__": path.stem}
    code = compile(ast.fix_missing_locations(ast.Module(body, [])), str(path), "exec")
    exec(code, namespace)
    return namespace


def converted(model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """The model itself, with its parameters, buffers and tensors that are plain attributes in another precision."""
    for module in model.modules():
        vars(module).update({k: x.to(dtype) for k, x in vars(module).items() if torch.is_tensor(x)})
    return model.to(dtype)


def measured(path: Path, inductor: bool) -> list[float]:
    """The times of mlirml, torch and if asked torch.compile in milliseconds; raises AssertionError if wrong."""
    torch.manual_seed(0)
    names = problem(path)
    model = names["Model"](*names["get_init_inputs"]())
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.eval()
    inputs = [x.float() if getattr(x, "dtype", None) == torch.bool else x for x in names["get_inputs"]()]
    for name in [*inspect.signature(model.forward).parameters][len(inputs) :]:
        if name in ("h0", "c0"):  # a state that would be drawn in each call
            inputs.append(torch.randn(names["num_layers"], names["batch_size"], names["hidden_size"]))
    compiled, arguments = compiled_module(model)
    arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in inputs]
    found, _ = compiled(*arguments, *arrays)
    with torch.no_grad():
        wide = [x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
        results = found, converted(model, torch.float64)(*wide), converted(model, torch.float32)(*inputs)
        for one, other, single in zip(*(x if isinstance(x, tuple) else (x,) for x in results), strict=True):
            exact = other.numpy()
            assert one.shape == exact.shape, f"shape {one.shape}, torch's is {exact.shape}"
            scale = max(float(np.max(np.abs(exact))), 1e-2)  # what is about zero is a sum that cancels
            error = float(np.max(np.abs(one - exact))) / scale
            theirs = float(np.max(np.abs(single.numpy() - exact))) / scale
            assert error < max(1e-4, 5 * theirs), f"differs by {error:.1e}, torch by {theirs:.1e}"
        functions: list[Callable[[], Any]] = [lambda: compiled(*arguments, *arrays), lambda: model(*inputs)]
        if inductor:
            other_model = torch.compile(model)
            functions.append(lambda: other_model(*inputs))
        return milliseconds(functions, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--level", choices=LEVELS, action="append")
    parser.add_argument("--inductor", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config.threads = 1
    print("Times in ms, and how many times as long the others take.\n")
    peers = ["torch", "torch.compile"][: 2 if options.inductor else 1]
    for level in options.level or LEVELS:
        print(f"| {level} | mlirml | {' | '.join(peers)} |\n|---|{'---|' * (1 + len(peers))}")
        ratios: list[list[float]] = []
        failed: list[str] = []
        files = sorted((options.folder / level).glob("*.py"), key=lambda path: int(path.name.split("_")[0]))
        for path in files:
            if options.only not in path.name:
                continue
            try:
                ours, *others = measured(path, options.inductor)
            except Exception as error:
                failed.append(path.stem)
                print(f"| {path.stem} | {type(error).__name__}: {str(error).splitlines()[0][:150]} |", flush=True)
                if len(options.only) > 4:
                    traceback.print_exc()
                continue
            ratios.append([other / ours for other in others])
            print(f"| {path.stem} | {ours:.4g} | {' | '.join(f'{x:.2f}' for x in ratios[-1])} |", flush=True)
        means = [f"{peer} {np.exp(np.mean(np.log(x))):.2f}" for peer, x in zip(peers, zip(*ratios))]
        below = sum(row[0] < 0.95 for row in ratios)
        print(f"\n{level}: {len(ratios)} right, {len(failed)} not ({', '.join(failed)}); geometric means: "
              f"{', '.join(means)}; {below} below 0.95 of torch\n", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
