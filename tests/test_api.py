"""`compile`, `trace` and `lower`, and what a `Compiled` tells about itself."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import os
import pickle
import re
import subprocess
import sys
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlirml as ml
from mlirml.api import Compiled
from tests.fuzz.oracle import assert_same

X = np.arange(6.0).reshape(2, 3)
STAGES = ("capture", "raise", "transform", "optimize", "offload", "schedule", "lower")


def doubled(x: Any) -> Any:
    """Twice the array."""
    return 2 * x


# Making a `Compiled`.


def test_compile_is_a_function_and_a_decorator() -> None:
    @ml.compile
    def plain(x: np.ndarray) -> np.ndarray:
        return x + 1

    @ml.compile(target="reference")
    def with_options(x: np.ndarray) -> np.ndarray:
        return x + 1

    for compiled in (plain, with_options, ml.compile(lambda x: x + 1)):
        np.testing.assert_array_equal(compiled(X), X + 1)
    assert with_options.target.name == "reference"


def test_a_compiled_function_looks_like_the_function() -> None:
    compiled = ml.compile(doubled)
    assert (compiled.__name__, compiled.__doc__, compiled.__wrapped__) == ("doubled", "Twice the array.", doubled)
    assert repr(compiled) == "<mlirml.Compiled doubled for target 'cpu'>"
    assert isinstance(compiled, Compiled)


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def method(self, x: Any) -> Any:
        return x - self.factor


def power_of(x: Any, *, exponent: Any) -> Any:
    return x**exponent


@pytest.mark.parametrize(
    "fn",
    [Scale(3.0), Scale(3.0).method, functools.partial(np.add, 3.0), functools.partial(power_of, exponent=2), np.tanh],
    ids=["object", "method", "partial of a ufunc", "partial", "ufunc"],
)
def test_everything_that_can_be_called_compiles(fn: Any) -> None:
    assert_same(ml.compile(fn)(X), fn(X), "result", rtol=1e-15)


class Model:
    def __init__(self, weights: float) -> None:
        self.weights = np.full(3, weights)

    @ml.compile
    def forward(self, x: Any) -> Any:
        return x * self.weights

    @ml.compile(static_argnums=2)
    def repeated(self, x: Any, times: Any = 2) -> Any:
        for _ in range(times):
            x = self.forward(x)
        return x


class Shifted(Model):
    @ml.compile
    def forward(self, x: Any) -> Any:
        return super().forward(x) + 1


def test_methods_are_compiled_for_their_object() -> None:
    one, other = Model(2.0), Shifted(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(one.forward(X), X * 2)
        np.testing.assert_array_equal(other.forward(X), X * 3 + 1)
        np.testing.assert_array_equal(one.repeated(X, 3), X * 8)
        np.testing.assert_array_equal(other.repeated(X, times=1), X * 3 + 1)
    assert one.forward is one.forward
    one.weights[0] = 5.0
    np.testing.assert_array_equal(one.forward(X), X * [5, 2, 2])
    one.weights = np.ones(3)
    np.testing.assert_array_equal(one.forward(X), X)
    freed = weakref.ref(one)
    del one
    gc.collect()
    assert freed() is None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_an_object_have_methods_of_their_own(again: Any) -> None:
    model = Model(2.0)
    model.forward(X)
    other = again(model)
    other.weights = np.full(3, 7.0)
    np.testing.assert_array_equal(other.forward(X), X * 7)
    np.testing.assert_array_equal(model.forward(X), X * 2)


@ml.compile
def decorated(x: Any) -> Any:
    return x + 1


def test_copies_and_pickles() -> None:
    assert copy.copy(decorated) is copy.deepcopy(decorated) is pickle.loads(pickle.dumps(decorated)) is decorated
    other = pickle.loads(pickle.dumps(ml.compile(doubled, "reference")))
    assert other.target.name == "reference"
    np.testing.assert_array_equal(other(X), 2 * X)


def test_subclasses_of_arrays_are_arrays(tmp_path: Path) -> None:
    def fill(x: Any) -> Any:
        x[0] = 9
        return x + 1

    mapped = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(3,))
    compiled = ml.compile(fill)
    for _ in range(2):
        mapped[:] = 5
        result = compiled(mapped)
        assert type(result) is np.ndarray
        assert result.tolist() == [10.0, 6.0, 6.0]
        assert mapped.tolist() == [9.0, 5.0, 5.0]


# Static arguments.


def power_or_root(x: Any, n: Any, root: Any = False, axis: Any = None) -> Any:
    for _ in range(n):
        x = np.sqrt(x) if root else x * x
    return np.sum(x, axis=axis)


def test_static_arguments_reach_the_function_as_they_are() -> None:
    compiled = ml.compile(power_or_root, static_argnums=(1, 2, -1))
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((2,), {}), ((2, True), {}), ((0, False, 1), {}), ((1,), {"axis": (0, 1)}), ((), {"n": 1, "root": True}),
    ]  # fmt: skip
    for _ in range(2):
        for args, kwargs in calls:
            assert_same(compiled(X, *args, **kwargs), power_or_root(X, *args, **kwargs), "result", rtol=1e-15)
    assert compiled.entries == len(calls)
    assert f"{len(calls)} signature(s) compiled" in compiled.explain()


def test_a_static_argument_by_name_is_the_same_program() -> None:
    compiled = ml.compile(power_or_root, static_argnums=1)
    for _ in range(2):
        assert compiled(X, 2) == compiled(X, n=2)
    assert "1 signature(s) compiled" in compiled.explain()


def test_equal_static_arguments_of_other_types_differ() -> None:
    compiled = ml.compile(lambda x, k: x * 0 + (10 if k is True else 20 if type(k) is int else 30), static_argnums=1)
    for _ in range(2):
        assert [compiled(1.0, k) for k in (True, 1, 1.0)] == [10, 20, 30]


class Shape(NamedTuple):
    rows: int
    columns: int


def test_equal_static_objects_are_one_entry() -> None:
    compiled = ml.compile(lambda x, shape: x.reshape(*shape), static_argnums=1)
    for _ in range(5):
        assert compiled(X, Shape(3, 2)).shape == (3, 2)
    assert compiled.entries == 1


def test_dicts_in_another_order_are_known_natively() -> None:
    compiled = ml.compile(lambda p: {name: p[name] * 2 for name in p})
    params = {"w": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    turned = dict(reversed(params.items()))
    assert list(compiled(params)) == ["w", "b"]
    for count, given in ((2, turned), (2, params), (2, turned)):
        result = compiled(given)
        assert list(result) == list(given)
        np.testing.assert_equal(result, {name: 2 * given[name] for name in given})
        assert compiled.entries == count
        assert compiled.find((given,)) is not None


def test_the_native_dispatcher_does_not_grow_with_the_orders_of_a_dict() -> None:
    compiled = ml.compile(lambda p: p["a"] + p["b"] + p["c"] + p["d"] + p["e"])
    for names in itertools.islice(itertools.permutations("abcde"), 70):
        assert compiled({name: float(ord(name)) for name in names}) == sum(map(ord, names))
    assert compiled.entries == 64
    assert "1 signature(s) compiled" in compiled.explain()


# Results.


@dataclass
class State:
    position: Any
    steps: int


def containers(x: Any) -> Any:
    return {
        "tuple": (x, (x + 1,), ()),
        "list": [x[0], [x[0, 0]]],
        "named": Shape(x, x + 2),
        "dataclass": State(x - 1, 3),
        "ordered": OrderedDict([("b", x), ("a", 2 * x)]),
        "none": None,
        "numbers": (1, 2.5, True, np.float32(3)),
    }


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_results_are_pytrees(target: str) -> None:
    compiled = ml.compile(containers, target)
    for _ in range(2):
        result = compiled(X)
        assert_same(result, containers(X), "result")
        assert list(result["ordered"]) == ["b", "a"]


def test_results_are_arrays() -> None:
    assert type(ml.compile(np.sum)(X)) is np.ndarray
    assert ml.compile(lambda x: None)(X) is None
    assert ml.compile(lambda: np.ones(3))().tolist() == [1.0, 1.0, 1.0]


def test_out_receives_the_results() -> None:
    compiled = ml.compile(lambda x: (x + 1, {"half": x / 2}))
    first, half = np.zeros((2, 3)), np.zeros((4, 6))[::2, ::2]  # the second one is not contiguous
    for _ in range(2):
        first[...] = half[...] = 0
        result = compiled(X, out=(first, {"half": half}))
        assert result[0] is first
        assert result[1]["half"] is half
        np.testing.assert_array_equal(first, X + 1)
        np.testing.assert_array_equal(half, X / 2)


def test_out_may_be_an_argument() -> None:
    x = X.copy()
    compiled = ml.compile(lambda x: x[::-1] + 1)
    assert compiled(x, out=x) is x
    np.testing.assert_array_equal(x, X[::-1] + 1)


def test_a_parameter_called_out_is_an_argument() -> None:
    def add(x: Any, out: Any) -> Any:
        return x + out

    np.testing.assert_array_equal(ml.compile(add)(X, out=X), 2 * X)


def test_calls_with_out_run_without_a_python_frame() -> None:
    """As other calls of a known signature do; what the program refuses is explained as in the first call."""

    def both(x: Any, y: Any = 1.0, *, scale: float = 1.0) -> Any:
        return x * scale + y, x - y

    compiled, single = ml.compile(both), ml.compile(lambda x: x + 1)
    x, first, second = np.arange(6.0), np.empty(6), np.empty(6)
    compiled(x, out=(first, second), scale=2.0)
    single(x, out=first)
    frames: list[str] = []

    def seen(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            frames.append(frame.f_code.co_name)

    for k in range(3):
        x = np.arange(6.0) + k
        frames.clear()
        sys.setprofile(seen)
        result = compiled(x, out=(first, second), scale=2.0)
        sys.setprofile(None)
        assert not frames
        assert result[0] is first and result[1] is second
        np.testing.assert_array_equal(first, x * 2 + 1)
        np.testing.assert_array_equal(second, x - 1)
        assert single(x, out=second) is second
        np.testing.assert_array_equal(second, x + 1)
    assert single(x, out=x) is x and x[0] == 3.0
    assert single(x, out=None) is not x
    strided = np.zeros(12)[::2]
    assert single(x, out=strided) is strided and strided[0] == 4.0
    for out in (np.empty(5), np.empty(6, np.float32), "text", (first,)):
        with pytest.raises(ml.errors.ArgumentError, match="`out` is"):
            single(x, out=out)
    with pytest.raises(ml.errors.ArgumentError, match="`out` is"):
        compiled(x, out=[first, second], scale=2.0)
    frozen = np.empty(6)
    frozen.flags.writeable = False
    with pytest.raises((ml.errors.MlirmlError, ValueError), match="read-only"):
        single(x, out=frozen)


# What is compiled anew.


def test_python_numbers_do_not_compile_anew() -> None:
    compiled = ml.compile(lambda x, k: x * k)
    x = np.ones(3, np.float32)
    for value in (1.5, -2.0, 0.0, float("inf")):
        result = compiled(x, value)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, x * np.float32(value))
    assert compiled.entries == 1
    for other in (2, True, np.float32(2), np.array(2.0)):
        assert_same(compiled(x, other), x * other, "result")
    assert compiled.entries == 5


SCALE = np.float64(2.0)


def test_a_changed_global_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ml.compile(lambda x: x * SCALE)
    np.testing.assert_array_equal(compiled(X), 2 * X)
    for value in (3.0, 4.0):
        monkeypatch.setattr(sys.modules[__name__], "SCALE", value)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X), value * X)
    assert compiled.entries == 1
    assert compiled.explain().count("because `SCALE` is another object than when it was compiled") == 2


SCALES = [np.float64(2.0), [np.float64(3.0)]]
TRACED: list[int] = []


def test_a_changed_item_of_a_list_compiles_anew() -> None:
    rows = [np.float64(1.0)]
    compiled = ml.compile(lambda x: x * SCALES[0] * SCALES[1][0] * len(rows) + sum(rows))
    np.testing.assert_array_equal(compiled(X), 6 * X + 1)
    SCALES[1] = [np.float64(4.0)]
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), 8 * X + 1)
    rows.append(np.float64(0.5))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), 16 * X + 1.5)
    assert compiled.entries == 1
    assert compiled.explain().count("because a list that it reads holds other objects than when it was compiled") == 2


def test_a_list_that_the_function_appends_to_grows_as_in_python() -> None:
    @ml.compile
    def noted(x: np.ndarray) -> np.ndarray:
        TRACED.append(1)
        return x * 2

    for _ in range(3):
        np.testing.assert_array_equal(noted(X), 2 * X)
    assert len(TRACED) == 3
    assert "1 signature(s) compiled" in noted.explain()


def test_a_list_of_an_object_may_grow() -> None:
    """Many are there to note what happened."""

    class Model:
        def __init__(self) -> None:
            self.scale, self.losses = 2.0, [0.0]

        def step(self, x: np.ndarray) -> np.ndarray:
            return x * self.scale

    model = Model()
    step = ml.compile(model.step)
    for _ in range(3):
        np.testing.assert_array_equal(step(X), 2 * X)
        model.losses.append(1.0)
    assert step.explain().count("because") == 1


def test_a_changed_closure_variable_compiles_anew() -> None:
    def make() -> tuple[Any, Any]:
        factor = 2.0

        def change() -> None:
            nonlocal factor
            factor = 5.0

        return ml.compile(lambda x: x * factor), change

    compiled, change = make()
    np.testing.assert_array_equal(compiled(X), 2 * X)
    change()
    assert "would compile, because `factor` is another object" in compiled.explain(X)
    np.testing.assert_array_equal(compiled(X), 5 * X)


# What `explain` says.


def reasons(compiled: Compiled) -> list[str]:
    return re.findall(r"^   because (.*)$", compiled.explain(), re.MULTILINE)


def test_a_setting_tells_of_each_compilation(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = ml.compile(doubled)
    with ml.config.override(explain=True):
        compiled(X)
        compiled(X)
        compiled(X[0])
    compiled(X[0, 0])
    told = capsys.readouterr().err
    assert told.startswith("doubled: 1. (f64[2,3]) -> (f64[2,3])\n   because it is the first call\n")
    assert told.count("doubled: ") == 2


def test_explain_tells_why() -> None:
    def step(parameters: Any, x: Any, rate: Any = 0.1, *, flip: bool = False) -> Any:
        return {k: v - rate * np.mean(x) for k, v in parameters.items()}

    compiled = ml.compile(step, "reference", static_argnums=2)
    w, x = np.ones(3), np.ones((2, 3))
    assert compiled.explain() == "step: target reference, 0 signature(s) compiled"
    assert compiled.explain({"w": w}, x).endswith("this call: would compile, because it is the first call")
    compiled({"w": w}, x)
    compiled({"w": w}, x)
    compiled({"w": w.astype(np.float32)}, x)
    compiled({"w": w}, np.ones((5, 3)))
    compiled({"w": w}, x=x)
    compiled({"w": w, "b": w}, x)
    compiled({"w": w}, x, 0.5)
    compiled({"w": 1}, x)
    assert reasons(compiled) == [
        "it is the first call",
        "`parameters['w']` is f32[3], was f64[3]",
        "`x` is f64[5,3], was f64[2,3]",
        "`parameters['b']` is new",
        "static argument `rate` is 0.5, was not given",
        "`parameters['w']` is Python int, was f32[3]",
    ]
    assert compiled.explain({"w": w}, x).endswith("this call: runs signature 1")
    assert compiled.explain({"w": ml.TensorSpec((7,), np.int8)}, x).endswith(
        "this call: would compile, because `parameters['w']` is i8[7], was Python int"
    )


def test_explain_tells_from_where_and_in_what_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path))
    for source in ("compiled in", "loaded from the disk cache in"):
        compiled = ml.compile(doubled)
        compiled(X)
        lines = compiled.explain().split("\n")
        assert lines[:3] == [
            "doubled: target cpu, 1 signature(s) compiled",
            "1. (f64[2,3]) -> (f64[2,3])",
            "   because it is the first call",
        ]
        assert re.fullmatch(rf"   {source} [\d.]+ ms \(capture [\d.]+, cache lookup [\d.]+, .*load [\d.]+\)", lines[3])
        assert ("codegen" in lines[3]) == (source == "compiled in")
        assert lines[4] == "   memory of a call: 48 B of results, 0 B of workspace"
        assert re.fullmatch(
            r"   cache entry [0-9a-f]{16}: ir [0-9a-f]{16}, target cpu, .*version.llvmlite .*", lines[5]
        )
        assert len(list(tmp_path.glob(f"{lines[5].split()[2][:-1]}*.mlirml"))) == 1


def test_explain_tells_of_memory() -> None:
    compiled = ml.compile(lambda x: np.sum(np.cumsum(x @ x, axis=0) @ x))
    compiled(np.ones((512, 512), np.float32))
    (line,) = [line for line in compiled.explain().split("\n") if "memory" in line]
    assert re.fullmatch(r"   memory of a call: 4 B of results, [2-9]\.\d MiB of workspace", line)


# Stages.


def test_every_stage_prints() -> None:
    compiled = ml.compile(lambda x, y: np.tanh(x) @ y)
    texts = [compiled.ir(stage, X, X.T) for stage in STAGES]
    assert "linalg.matmul" in texts[0]
    assert "tensor<2x3xf64>" in texts[3]
    assert "memref" in texts[5]
    assert "llvm.func @entry" in texts[6]
    assert texts[6] == compiled.lower(X, X.T).as_text() == ml.lower(lambda x, y: np.tanh(x) @ y, X, X.T).as_text()
    assert compiled.entries == 0, "looking at the stages compiles nothing"


def test_stages_take_types_for_arrays() -> None:
    spec = ml.TensorSpec((2, 3), np.float64)
    assert ml.trace(doubled, spec).as_text() == ml.trace(doubled, X).as_text()
    assert ml.compile(doubled).ir("optimize", spec) == ml.compile(doubled).ir("optimize", X)


def test_trace_shows_what_was_captured() -> None:
    captured = ml.compile(doubled).trace(X)
    assert [str(s) for s in (*captured.inputs, *captured.outputs)] == ["f64[2,3]", "f64[2,3]"]
    assert captured.as_text().startswith("module {\nfunc.func @main(%arg0: tensor<2x3xf64>) -> (tensor<2x3xf64>)")
    assert "loc(" in captured.text
    assert "loc(" not in captured.key


def test_forms_of_the_lowered_program() -> None:
    lowered = ml.lower(doubled, X)
    assert lowered.emit("mlir") == lowered.as_text()
    assert re.search(r"define .*@entry\(ptr", lowered.emit("llvm"))
    assert re.search(r"^entry:", lowered.emit("asm"), re.MULTILINE)


def test_lowering_is_the_pipeline_that_is_printed() -> None:
    """The text of the pipeline, given to `mlirml-opt` with the captured module, gives the lowered module."""
    compiled = ml.compile(lambda x, y: np.sum(np.exp(x), axis=1) + y)
    arguments = (X, np.ones(2))
    command = [sys.executable, "-m", "mlirml.cli.opt", "-", f"--pass-pipeline={compiled.target.pipeline}"]
    done = subprocess.run(command, input=compiled.ir("capture", *arguments), capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == compiled.lower(*arguments).as_text()


def test_executable_is_the_program_itself() -> None:
    program = ml.compile(lambda x, p: (x * p["scale"], x)).executable(X, {"scale": 3.0})
    results = program([X, 3.0])
    np.testing.assert_array_equal(results[0], 3 * X)
    out = np.zeros((2, 3))
    assert program([X, 2.0], [out, None])[0] is out
    np.testing.assert_array_equal(out, 2 * X)


# Targets.


def test_the_target_comes_from_the_configuration() -> None:
    with ml.config.override(target="reference"):
        compiled = ml.compile(doubled)
        assert ml.lower(doubled, X).target.name == "reference"
    assert compiled.target.name == "reference"
    assert ml.compile(doubled).target.name == "cpu"
    np.testing.assert_array_equal(compiled(X), 2 * X)


def test_the_target_comes_from_the_environment() -> None:
    program = "import mlirml as ml; print(ml.compile(abs).target.name, ml.compile(abs, 'cpu').target.name)"
    environment = {**os.environ, "MLIRML_TARGET": "reference"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["reference", "cpu"]


def test_garbage_is_not_collected_while_compiling_and_is_again_afterwards() -> None:
    import gc

    seen = []

    def function(x: Any) -> Any:
        seen.append(gc.isenabled())
        return x + 1

    compiled = ml.compile(function)
    compiled(np.ones(3))
    with pytest.raises(ml.errors.ArgumentError):
        compiled(np.ones(3), out=np.ones(4))
    assert seen and not any(seen) and gc.isenabled()
    gc.disable()
    try:
        compiled(np.ones(4))
        assert not gc.isenabled(), "who switched it off wants it off"
    finally:
        gc.enable()


def test_what_a_compilation_makes_is_old_at_once() -> None:
    import gc

    compiled = ml.compile(lambda x: x + 1)
    compiled(np.ones(3))
    assert not gc.get_freeze_count() and gc.get_count()[0] < 700
    gc.freeze()
    try:
        compiled(np.ones(4))
        assert gc.get_freeze_count(), "what others have frozen stays so"
    finally:
        gc.unfreeze()
