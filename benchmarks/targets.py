"""What mlirml must show, as data: each target with the figure that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import compiling, launches, tiles
from benchmarks.gradients.problems import PROBLEMS
from benchmarks.rounds import Table
from benchmarks.startup import Times
from benchmarks.threads import COMPUTE_BOUND, label


@dataclass(frozen=True)
class Target:
    """A figure with its limit; `measured` gives None where this run has not measured it."""

    text: str
    limit: float
    unit: str
    at_least: bool
    measured: Callable[[Table, Mapping[str, Times]], float | None]

    def met(self, value: float) -> bool:
        """Whether a measured figure is good enough."""
        return value >= self.limit if self.at_least else value <= self.limit

    def bound(self) -> str:
        """The limit in words."""
        return f"at {'least' if self.at_least else 'most'} {self.limit:g} {self.unit}"


_Figure = Callable[[Table, Mapping[str, Times]], float | None]


def _speed(workload: str, *peers: str) -> _Figure:
    """The best of the peers' median times over mlirml's; None unless all of them were measured."""

    def measured(table: Table, once: Mapping[str, Times]) -> float | None:
        row = table.get(workload, {})
        figures = [row.get(name) for name in ("mlirml", *peers)]
        if any(f is None or f.problem for f in figures):
            return None
        own, *others = (f.median for f in figures if f is not None)
        return min(others) / own

    return measured


def _over_value(name: str) -> _Figure:
    """The median time of a gradient over that of its function."""

    def measured(table: Table, once: Mapping[str, Times]) -> float | None:
        both = [table.get(workload, {}).get("mlirml") for workload in (name, f"{name}_value")]
        if any(f is None or f.problem for f in both):
            return None
        gradient, value = (f.median for f in both if f is not None)
        return gradient / value

    return measured


def _call(table: Table, once: Mapping[str, Times]) -> float | None:
    figures = table.get("call", {}).get("mlirml")
    return None if figures is None or figures.problem else 1e6 * figures.median


def _once(name: str, factor: float = 1e3) -> _Figure:
    """The median of the measurement of that name, or of the first whose name begins with it."""

    def measured(table: Table, once: Mapping[str, Times]) -> float | None:
        found = once.get(name) or next((times for key, times in once.items() if key.startswith(name)), None)
        return None if found is None else factor * found.median

    return measured


def _ratio(first: str, second: str) -> _Figure:
    """The median of one measurement over that of another."""

    def measured(table: Table, once: Mapping[str, Times]) -> float | None:
        return once[first].median / once[second].median if first in once and second in once else None

    return measured


def _compiles(name: str) -> tuple[tuple[str, str, str], ...]:
    """How the compilation of a workload is compared with jax.jit's: what is compared, and the two measurements."""
    theirs = compiling.label(name, "jax")
    return (
        (", both compilers imported", compiling.label(name, compiling.IMPORTED), theirs),
        (", the import of mlirml's compiler with it", compiling.label(name, "mlirml"), theirs),
        (", both imports with it", compiling.wait_label(name, "mlirml"), compiling.wait_label(name, "jax")),
    )


def _faster(text: str, workload: str, factor: float, *peers: str) -> Target:
    names = " and ".join(peers) if len(peers) < 3 else "the best of " + ", ".join(peers)
    return Target(f"{text}, against {names}", factor, "of the speed", True, _speed(workload, *peers))


COSTS = {
    "gradients_gmm10x25": 2.5, "gradients_gmm20x50": 2.5, "gradients_gmm64x25": 2.5, "gradients_lse": 2.5,
    "gradients_bundle": 2.5, "gradients_llsq": 2,
}  # fmt: skip
"""What a gradient may cost, in times its function."""

TARGETS = (
    _faster("matmul f32 256", "matmul256", 0.9, "numpy"),
    _faster("matmul f32 1024", "matmul1024", 0.9, "numpy"),
    _faster("matmul f32 2048", "matmul2048", 0.9, "numpy"),
    _faster("matmul f32 1000x1013x977", "matmul1000x1013x977", 0.85, "numpy"),
    _faster("matmul bf16 1024", "matmul_bf16_1024", 1, "jax"),
    _faster("matrix times vector 4096", "matvec4096", 1, "numpy", "torch"),
    _faster("ten-op elementwise chain on 16M f32", "chain16m", 1.4, "jax", "inductor", "iree"),
    _faster("softmax 4096x2048", "softmax", 1.1, "torch"),
    _faster("layer norm 4096x1024", "layer_norm", 1.1, "torch"),
    _faster("sum over axis 0 of 4096x4096", "sum_axis0", 1, "numpy", "torch"),
    _faster("sum over axis 1 of 4096x4096", "sum_axis1", 1, "numpy", "torch"),
    _faster("argmax over axis 1", "argmax_axis1", 1, "numpy"),
    _faster("argmax over axis 1", "argmax_axis1", 3, "torch"),
    _faster("linear + bias + gelu 512x768x3072", "linear_gelu", 1.2, "torch"),
    _faster("convolution 3x3, 64 to 64 channels, 56x56", "conv64", 1, "torch"),
    _faster("convolution 3x3, 128 to 128 channels, 28x28", "conv128", 1, "torch"),
    _faster("depthwise convolution 3x3, 64 channels, 112x112", "conv_depthwise", 2, "torch"),
    _faster("attention, 12 heads 512x64", "attention512", 0.667, "torch"),
    _faster("attention, 16 heads 1024x64", "attention1024", 0.667, "torch"),
    _faster("causal attention, 12 heads 512x64", "causal_attention512", 0.667, "torch"),
    _faster("transformer block 128x768", "block128x768", 1, "torch", "jax"),
    _faster("triple loop of a matmul 512", "loops_matmul512", 0.9, "numpy"),
    _faster("seven loops of a convolution 3x3, 64 to 64 channels, 56x56", "loops_conv64", 0.8, "torch"),
    _faster("loops of Jacobi 2048x2048, 100 sweeps", "loops_jacobi", 1, "numba"),
    _faster("loops of softmax 4096x1024", "loops_softmax", 1, "numba"),
    _faster("loops of layer norm 4096x1024", "loops_layer_norm", 1, "numba"),
    _faster("loops of attention, 12 heads 512x64", "loops_attention", 0.667, "torch"),
    *(
        Target(f"{name.replace('_', ' of ')}, over its function", limit, "times", False, _over_value(name))
        for name, limit in COSTS.items()
    ),
    *(
        _faster(workload.name.replace("_", " of ", 1).replace("_", " "), workload.name, 1, "jax", *compilers)
        for workload in PROBLEMS
        if workload.transform
        for compilers in [() if workload.name.startswith("gradients_mlp") else ("inductor",)]
    ),
    Target("a call of a compiled add of two f32[8]", 1.5, "us", False, _call),
    *(
        Target(
            f"{name}, two threads", 1.7, "times one thread", True, _ratio(label(name, 1), label(name, 2))
        )
        for name in COMPUTE_BOUND
    ),
    Target("launch of a parallel loop", 2, "us", False, _once("parallel loop", 1e6)),
    *(
        Target(launches.label(chain, "mlirml"), 4, "us", False, _once(launches.label(chain, "mlirml"), 1e6))
        for chain in launches.CHAINS
    ),
    Target(tiles.TILES, 5, "times a thread for each element", True, _ratio(tiles.ELEMENTS, tiles.TILES)),
    *(
        Target(f"cold compile of {name}{how}", limit, "times jax.jit's", False, _ratio(ours, theirs))
        for name, limit in (("linear_gelu", 1.2), ("mlp512", 1.2), ("block128x768", 1.2), ("gradients_block", 1))
        for how, ours, theirs in _compiles(name)
    ),
    *(
        Target(
            f"cold compile of {stack}, 12 transformer blocks in ml.scan", 1.2, "times one block", False,
            _ratio(compiling.label(stack, "mlirml"), compiling.label(block, "mlirml")),
        )
        for stack, block in (("stack12", "block128x768"), ("gradients_stack12", "gradients_block"))
    ),
    *(
        Target(f"cold compile of {name}", 1000, "ms", False, _once(compiling.label(name, "mlirml")))
        for name in compiling.COMPILED
        if name.startswith("loops_")
    ),
    Target("import mlirml, over import numpy", 30, "ms", False, _once("import mlirml, over NumPy")),
    Target("cold compile of the digits forward pass", 500, "ms", False, _once("first call of digits, cold")),
    Target(
        "the same from the disk cache in a new process", 50, "ms", False,
        _once("first call of digits, from the disk cache"),
    ),
)  # fmt: skip
