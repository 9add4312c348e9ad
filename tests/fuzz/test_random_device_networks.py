"""Random networks on devices, against float64: products with what comes before and after them, rows, and images.

`MLIRML_FUZZ=300` runs so many programs, other ones each time; `MLIRML_FUZZ_SEED` takes a seed back. Without a GPU of
NVIDIA the kernels are executed by `tests.targets.rehearsal`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  numpy.dtype("bfloat16") needs it
import numpy as np

import mlirml as ml
from mlirml.errors import MlirmlError, TargetError
from mlirml.nn import functional as F
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.targets.drivers import on_devices_and_webgpu

pytestmark = on_devices_and_webgpu

SIZES = [1, 3, 8, 16, 17, 32, 33, 64, 65, 96, 128, 130]
OF_WEBGPU = ["float16", "bfloat16", "float32"]
DTYPES = {"float16": 3e-2, "bfloat16": 2e-1, "float32": 1e-4, "float64": 1e-10}
"""Dtypes, and the errors that results of about one may have."""


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    mean = np.mean(x, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 0.1)


def rms_norm(x: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 0.1)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    s = q @ k.T / q.shape[-1] ** 0.5
    if causal:
        s = np.where(np.tri(*s.shape, dtype=bool), s, -np.inf)
    return softmax(s) @ v


SCOPE = {
    "np": np, "F": F, "softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm, "gelu": gelu,
    "attention": attention,
}  # fmt: skip

SAME = [
    "np.tanh({})", "gelu({})", "np.maximum({}, 0)", "softmax({})", "layer_norm({})", "rms_norm({})", "{} * 0.5 + 0.25",
    "{}[::-1]", "{} - np.mean({}, axis=0)", "{} / (1 + np.exp(-{}))", "np.where({} > 0.1, {}, 0.25)",
    "np.cumsum({}, axis=-1) / {}.shape[-1]", "np.cumsum({}, axis=0) / {}.shape[0]", "np.sort({}, axis=-1)",
    "{} - np.max({}, axis=0)", "np.minimum({}, 1) + np.sqrt(np.var({}, axis=-1, keepdims=True) + 0.1)",
    "np.roll({}, 1, axis=0)",
]  # fmt: skip
"""Results of the shape of the one operand."""
ENDS = [
    "np.sum({}, axis=0) / {}.shape[0]", "np.mean({}, axis=-1)", "np.mean({})", "np.max({}, axis=-1)",
    "np.sum({} * {}, axis=-1) / {}.shape[-1]", "{}.T", "np.sum(np.abs({})) / {}.size", "np.min({}, axis=0)",
    "np.var({}, axis=0)", "{}[:, 1:]", "{}[1:, ::2]", "np.log(np.sum(np.exp({}), axis=-1))",
]  # fmt: skip


class Writer:
    """The source of a random network, whose shapes are chosen as it is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.arguments: list[tuple[int, ...]] = []
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, int]] = {}

    def argument(self, *shape: int) -> str:
        self.arguments.append(shape)
        return f"a{len(self.arguments) - 1}"

    def named(self, text: str, rows: int, columns: int) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = rows, columns
        return name

    def step(self) -> None:
        """One more matrix."""
        rng = self.rng
        name, (rows, columns) = rng.choice(list(self.shapes.items()))
        form = rng.choice(("product",) * 4 + ("same",) * 4 + ("sum", "turned", "attention", "rows", "joined"))
        if form == "product":
            width = rng.choice(SIZES)
            weights = self.argument(width, columns) + ".T" if rng.random() < 0.4 else self.argument(columns, width)
            text = f"{name} @ {weights} * {columns**-0.5:.3f}"
            if rng.random() < 0.5:
                text += f" + {self.argument(width)}"
            if rng.random() < 0.5:
                text = rng.choice(("np.tanh({})", "np.maximum({}, 0)", "gelu({})", "softmax({})")).format(text)
            if width == columns and rng.random() < 0.7:
                text += f" + {name}"
            self.named(text, rows, width)
        elif form == "same":
            template = rng.choice(SAME)
            self.named(template.replace("{}", name), rows, columns)
        elif form == "sum":
            others = [other for other, shape in self.shapes.items() if shape == (rows, columns)]
            self.named(f"0.5 * ({name} {rng.choice('+-')} {rng.choice(others)})", rows, columns)
        elif form == "turned":
            self.named(f"{name}.T", columns, rows)
        elif form == "attention":
            length = rng.choice(SIZES)
            keys, values = self.argument(length, columns), self.argument(length, columns)
            self.named(f"attention({name}, {keys}, {values}, {rng.random() < 0.5})", rows, columns)
        elif form == "rows":
            count = rng.choice(SIZES)
            indices = [rng.randrange(rows) for _ in range(count)]
            self.named(f"{name}[np.array({indices})]", count, columns)
        else:
            self.named(f"np.concatenate([{name}, {name} * 0.5])", 2 * rows, columns)

    def source(self) -> str:
        rows, columns = self.rng.choice(SIZES), self.rng.choice(SIZES)
        self.shapes[self.argument(rows, columns)] = rows, columns
        for _ in range(self.rng.randint(1, 6)):
            self.step()
        last = list(self.shapes)[-1]
        results = [last, self.rng.choice(ENDS).replace("{}", last)]
        if self.rng.random() < 0.3:
            results.append(self.rng.choice(list(self.shapes)))
        names = ", ".join(f"a{number}" for number in range(len(self.arguments)))
        body = [*self.lines, f"return {', '.join(results)}"]
        return f"def program({names}):\n" + "".join(f"    {line}\n" for line in body)


def function_of(source: str) -> Any:
    scope = dict(SCOPE)
    exec(compile(source, "<random network>", "exec"), scope)
    return scope["program"]


def assert_close(found: Any, expected: Any, dtype: str, message: str) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    assert found.shape == np.shape(expected), f"{message}: {found.shape}, NumPy {np.shape(expected)}"
    error = float(np.max(np.abs(found.astype(np.float64) - expected), initial=0)) / scale
    assert error <= DTYPES[dtype], f"{message}: error {error}"  # NaN is none


def check(seed: int, target: str) -> None:
    rng = random.Random(seed)
    dtype = rng.choice(OF_WEBGPU if target == "webgpu" else ["float16", "bfloat16", "float32", "float32", "float64"])
    writer = Writer(rng)
    source = writer.source()
    numbers = np.random.default_rng(seed)
    given = [numbers.uniform(-1, 1, shape).astype(dtype) for shape in writer.arguments]
    function = function_of(source)
    compiled = ml.compile(function, target)
    for count in (len(given[0]), rng.choice(SIZES), rng.choice(SIZES)):  # the third one in a program of dynamic sizes
        given[0] = numbers.uniform(-1, 1, (count, *given[0].shape[1:])).astype(dtype)
        wide = [array.astype(np.float64) for array in given]
        try:
            expected = function(*wide)
        except (ValueError, IndexError):  # the weights are for another number of rows
            break
        message = f"seed {seed}, {dtype}, {count} rows\n{source}"
        for number, (one, other) in enumerate(zip(compiled(*given), expected, strict=True)):
            assert_close(one, other, dtype, f"{message}result {number}")
        if rng.random() < 0.3:
            check_gradient(function, given, wide, target, dtype, message)


def check_gradient(function: Any, given: Any, wide: Any, target: str, dtype: str, message: str) -> None:
    """Compare the gradient with that on the CPU in float64."""

    def loss(*arguments: Any) -> Any:
        found = function(*arguments)[0]
        return np.sum(found * np.cos(np.arange(found.shape[-1])).astype(found.dtype)) / found.size

    gradient = ml.grad(loss, argnums=tuple(range(len(given))))
    for number, (one, other) in enumerate(zip(ml.compile(gradient, target)(*given), ml.compile(gradient)(*wide))):
        scale = max(float(np.max(np.abs(other), initial=0)), 1e-3)
        assert_close(one / one.dtype.type(scale), other / scale, dtype, f"{message}gradient {number}")


IMAGES = [(1, 1, 9, 7), (2, 3, 8, 8), (1, 4, 16, 16), (2, 8, 12, 10), (3, 16, 7, 9), (1, 32, 8, 8)]
OF_IMAGES = [
    "np.maximum({}, 0)", "np.tanh({})", "F.max_pool2d({}, 2)", "F.avg_pool2d({}, 3, 2, 1)", "F.max_pool2d({}, 3, 2, 1)",
    "{} - np.mean({}, axis=(0, 2, 3), keepdims=True)", "{} / np.sqrt(np.var({}, axis=(2, 3), keepdims=True) + 1)",
    "F.interpolate({}, scale_factor=2, mode='nearest')", "{}[:, :, ::-1]", "np.roll({}, 1, axis=-1)",
    "np.pad({}, ((0, 0), (0, 0), (1, 1), (0, 2)))", "softmax({})", "{} * 0.5 + 0.25",
]  # fmt: skip
"""Images from images."""


def image_source(rng: random.Random) -> tuple[str, list[tuple[int, ...]]]:
    """The source of a random network of images, and the shapes of its arguments."""
    shapes, lines = [rng.choice(IMAGES)], []
    name, like = "a0", {"a0": np.zeros(shapes[0])}
    for number in range(rng.randint(1, 5)):
        source = like[name]
        channels = source.shape[1]
        if rng.random() < 0.5:
            outputs = rng.choice((1, 3, 8, 16, 20))
            groups = channels if rng.random() < 0.25 and outputs >= channels else 1
            outputs = outputs // groups * groups
            size, stride, dilation = rng.choice((1, 2, 3, 5)), rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
            weights = (outputs, channels // groups, size, size)
            shapes += [weights, (outputs,)]
            options = f"stride={stride}, padding={rng.choice((0, 1, size // 2))}, dilation={dilation}, groups={groups}"
            first = len(shapes) - 2
            text = f"F.conv2d({name} * {float(np.prod(weights[1:])) ** -0.5:.3f}, a{first}, a{first + 1}, {options})"
            if rng.random() < 0.5:
                text = rng.choice(("np.maximum({}, 0)", "np.tanh({})", "gelu({})")).format(text)
        else:
            text = rng.choice(OF_IMAGES).replace("{}", name)
        scope = {**SCOPE, **like, **{f"a{n}": np.zeros(shape) for n, shape in enumerate(shapes)}}
        try:
            made = np.asarray(ml.compile(eval(f"lambda: {text}", scope), "reference")())
        except MlirmlError:  # the window is larger than the image
            continue
        if not made.size or made.size > 20000:
            continue
        lines.append(f"v{number} = {text}")
        others = [other for other, array in like.items() if array.shape == made.shape]
        if others and rng.random() < 0.5:
            lines.append(f"v{number} = 0.5 * (v{number} + {rng.choice(others)})")
        name = f"v{number}"
        like[name] = np.zeros(made.shape)
    names = ", ".join(f"a{number}" for number in range(len(shapes)))
    body = "".join(f"    {line}\n" for line in [*lines, f"return {name}, np.mean({name}, axis=(2, 3)), np.sum({name})"])
    return f"def program({names}):\n{body}", shapes


def check_images(seed: int, target: str) -> None:
    rng = random.Random(seed)
    dtype = rng.choice(OF_WEBGPU if target == "webgpu" else ["float16", "float32", "float32", "float64"])
    source, shapes = image_source(rng)
    numbers = np.random.default_rng(seed)
    given = [numbers.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    wide = [array.astype(np.float64) for array in given]
    function = function_of(source)
    message = f"seed {seed}, {dtype}\n{source}"
    expected = ml.compile(function)(*wide)
    for number, (one, other) in enumerate(zip(ml.compile(function, target)(*given), expected, strict=True)):
        assert_close(one, other, dtype, f"{message}result {number}")
    if rng.random() < 0.3:
        check_gradient(function, given, wide, target, dtype, message)


def check_many(check_one: Callable[[int, str], None], count: int, target: str) -> None:
    first = first_seed() if COUNT else 0
    for number in range(COUNT or count):
        try:
            check_one(first + number, target)
        except TargetError:
            assert target == "webgpu"  # 64-bit integers, and kernels of many arrays


def test_random_networks(target: str) -> None:
    check_many(check, 8, target)


def test_random_networks_of_images(target: str) -> None:
    check_many(check_images, 5, target)
