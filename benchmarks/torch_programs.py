"""Programs written for torch, run by mlirml: torch's own modules call its functions, and these call ours.

>>> import torch
>>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
>>> compiled, arguments = compiled_module(model)
>>> compiled(*arguments, np.ones((2, 3), np.float32))[0].shape
(2, 4)

An `Operand` takes the part of a tensor: torch gives each function that is called with one to its method
`__torch_function__`, which calls the function of that name here. Nothing of torch is computed.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from einops._backends import AbstractBackend

import mlirml as ml
from mlirml.nn import functional as F

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Functions by torch's names, those whose arguments differ from NumPy's."""
METHODS = frozenset([
    "chunk", "clone", "contiguous", "cumsum", "detach", "dim", "exp", "expand", "flatten", "flip", "float",
    "masked_fill", "max", "mean", "min", "narrow", "permute", "pow", "repeat", "reshape", "select", "size", "softmax",
    "split", "squeeze", "sum", "tanh", "to", "transpose", "unfold", "unsqueeze", "view",
])  # fmt: skip
_NAMES = {
    "hinge_embedding": "hinge_embedding_loss", "clip": "clamp", "mul": "multiply", "multiply": "multiply",
    "pow": "power", "linalg_norm": "norm", "__rsub__": "rsub", "sub": "subtract", "div": "divide",
}  # fmt: skip
_IGNORED = frozenset([
    "inplace", "_stacklevel", "return_indices", "size_average", "reduce", "eps_", "enable_gqa", "dtype", "out",
    "requires_grad",
])  # fmt: skip


class Extremes(NamedTuple):
    """What `torch.max` returns along a dimension."""

    values: Any
    indices: Any


class Operand:
    """An array in the place of a tensor."""

    def __init__(self, array: Any, arrays: dict[int, Any]) -> None:
        self.array = array
        self.arrays = arrays
        self.shape = torch.Size(array.shape)
        self.device = torch.device("cpu")
        self.dtype = torch.float64 if array.dtype == np.float64 else torch.float32
        self.requires_grad = self.is_nested = False

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arrays = next(x.arrays for x in _flat((*args, *(kwargs or {}).values())) if isinstance(x, Operand))
        options = {name: _array(x, arrays) for name, x in (kwargs or {}).items() if name not in _IGNORED}
        name = function.__name__
        if name == "copy_":
            arrays[id(args[0])] = args[1].array
            return args[0]
        found = _function(_NAMES.get(name, name))(*(_array(x, arrays) for x in args), **options)
        return _operand(found, arrays)

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        function = _function(name)
        return lambda *args, **kwargs: _operand(
            function(self.array, *(_array(x, self.arrays) for x in args), **kwargs), self.arrays
        )

    def __getitem__(self, index: Any) -> Any:
        return Operand(self.array[_array(index, self.arrays)], self.arrays)

    def __neg__(self) -> Any:
        return Operand(-self.array, self.arrays)

    @property
    def T(self) -> Any:
        return Operand(self.array.T, self.arrays)


def _binary(name: str) -> Callable[[Operand, Any], Operand]:
    def operate(self: Operand, other: Any) -> Operand:
        return Operand(getattr(self.array, name)(_array(other, self.arrays)), self.arrays)

    return operate


for _name in (
    "add", "sub", "mul", "truediv", "pow", "matmul", "radd", "rsub", "rmul", "rtruediv", "eq", "ne", "lt", "le", "gt",
    "ge",
):  # fmt: skip
    setattr(Operand, f"__{_name}__", _binary(f"__{_name}__"))


def _flat(values: Iterable[Any]) -> list[Any]:
    return [x for value in values for x in (_flat(value) if isinstance(value, (tuple, list)) else [value])]


def _array(value: Any, arrays: dict[int, Any]) -> Any:
    if isinstance(value, Operand):
        return value.array
    if isinstance(value, torch.Tensor):
        base = value._base
        if id(base) in arrays and value.shape == base.shape[::-1]:  # `weight.T`
            return arrays[id(base)].T
        return arrays[id(value)] if id(value) in arrays else value.detach().numpy()
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(_array(x, arrays) for x in value)
    return value


def _operand(value: Any, arrays: dict[int, Any]) -> Any:
    if isinstance(value, Extremes):
        return Extremes(*(_operand(x, arrays) for x in value))
    if isinstance(value, (tuple, list)):
        return tuple(_operand(x, arrays) for x in value)
    return Operand(value, arrays) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def _function(name: str) -> Callable[..., Any]:
    found = FUNCTIONS.get(name) or getattr(F, name, None) or getattr(np, name, None)
    if found is None:
        raise NotImplementedError(f"torch.{name}")
    return found  # type: ignore[no-any-return]


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__.rstrip("_")] = function
    return function


def _axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list) else dim


def _reduction(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False: reduce(x, axis=_axes(dim), keepdims=keepdim)


def _extreme(reduce: Callable[..., Any], position: Callable[..., Any], both: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        if not isinstance(dim, int):
            return both(x, dim)
        return Extremes(reduce(x, axis=dim, keepdims=keepdim), position(x, axis=dim, keepdims=keepdim))

    return function


FUNCTIONS.update({
    "sum": _reduction(np.sum), "mean": _reduction(np.mean), "prod": _reduction(np.prod), "abs": np.abs,
    "max": _extreme(np.max, np.argmax, np.maximum), "min": _extreme(np.min, np.argmin, np.minimum),
    "argmax": _reduction(np.argmax), "argmin": _reduction(np.argmin), "cumsum": lambda x, dim: np.cumsum(x, dim),
    "cumprod": lambda x, dim: np.cumprod(x, dim), "bmm": np.matmul, "mm": np.matmul,
    "clamp": lambda x, min=None, max=None: np.clip(x, min, max),
    "logsumexp": lambda x, dim, keepdim=False: F.logsumexp(x, dim, keepdim), "flip": lambda x, *dims: np.flip(x, dims),
    "cat": lambda xs, dim=0: np.concatenate(xs, dim), "unsqueeze": np.expand_dims, "clone": np.copy,
    "squeeze": lambda x, dim: np.squeeze(x, dim) if x.shape[dim] == 1 else x, "detach": lambda x: x,
    "contiguous": lambda x: x, "to": lambda x, *options: x, "float": lambda x: x.astype(np.float32),
    "dim": lambda x: x.ndim, "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "view": lambda x, *shape: np.reshape(x, shape),
    "reshape": lambda x, *shape: np.reshape(x, shape), "permute": lambda x, *dims: np.transpose(x, dims),
    "transpose": lambda x, a, b: np.swapaxes(x, a, b), "rsub": lambda x, y: y - x,
    "expand": lambda x, *shape: np.broadcast_to(x, [n if n >= 0 else x.shape[d] for d, n in enumerate(shape)]),
    "repeat": lambda x, *counts: np.tile(x, counts), "chunk": lambda x, n, dim=0: np.array_split(x, n, dim),
    "split": lambda x, size, dim=0: np.split(x, range(size, x.shape[dim], size), dim),
    "masked_fill": lambda x, mask, value: np.where(mask, value, x), "stack": lambda xs, dim=0: np.stack(xs, dim),
    "roll": lambda x, shifts, dims: np.roll(x, shifts, dims),
    "zeros_like": lambda x: np.zeros_like(x), "einsum": lambda text, *xs: np.einsum(text, *xs),
    "batch_norm": lambda x, mean, variance, weight, bias, training, momentum, eps: F.batch_norm(
        x, mean, variance, weight, bias, training, momentum, eps
    ),
    "instance_norm": lambda x, weight=None, bias=None, eps=1e-5, **running: F.instance_norm(
        x, None, None, weight, bias, eps=eps
    ),
})  # fmt: skip


@_named
def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    return x[(builtins.slice(None),) * dim + (builtins.slice(start, start + length),)]


@_named
def select(x: Any, dim: int, index: int) -> Any:
    return x[(builtins.slice(None),) * dim + (index,)]


@_named
def flatten(x: Any, start_dim: int = 0) -> Any:
    return np.reshape(x, (*x.shape[:start_dim], -1))


@_named
def norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    return np.linalg.norm(x.reshape(-1) if dim is None else x, axis=dim, keepdims=keepdim)


@_named
def unfold(x: Any, dim: int, size: int, step: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return windows[(builtins.slice(None),) * dim + (builtins.slice(None, None, step),)]


@_named
def multi_head_attention_forward(
    query: Any, key: Any, value: Any, width: int, heads: int, weight: Any, bias: Any, bias_k: Any, bias_v: Any,
    zero: bool, dropout: float, out_weight: Any, out_bias: Any, **options: Any,
) -> tuple[Any, None]:  # fmt: skip
    """Attention [L, N, E] without masks."""
    parts = [
        np.transpose(np.reshape(F.linear(x, w, b), (*x.shape[:2], heads, -1)), (1, 2, 0, 3))
        for x, w, b in zip((query, key, value), np.split(weight, 3), np.split(bias, 3))
    ]
    found = np.transpose(F.scaled_dot_product_attention(*parts), (2, 0, 1, 3))
    return F.linear(np.reshape(found, query.shape), out_weight, out_bias), None


def _recurrent(layer: Any) -> Callable[..., Any]:
    def function(
        x: Any,
        states: Any,
        weights: Any,
        biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        both: bool,
        first: bool,
    ) -> Any:
        module = layer(*([*weights[i::4]] for i in range(4)), bidirectional=both)
        found, after = module(x if first else np.swapaxes(x, 0, 1), states)
        return found if first else np.swapaxes(found, 0, 1), *(after if isinstance(after, tuple) else (after,))

    return function


FUNCTIONS |= {"lstm": _recurrent(ml.nn.LSTM), "gru": _recurrent(ml.nn.GRU)}


def compiled_module(model: torch.nn.Module) -> tuple[Any, tuple[Any, ...]]:
    """A compiled function of the parameters, the buffers and the inputs of a module, and the first two of these.

    It returns the result, and the buffers, which a batch normalisation changes.
    """
    parameters = {name: x.detach().numpy() for name, x in model.named_parameters()}
    buffers = {name: x.detach().numpy().copy() for name, x in model.named_buffers() if x.dtype == torch.float32}

    def program(parameters: dict[str, Any], buffers: dict[str, Any], *inputs: Any) -> Any:
        given, arrays = {**parameters, **buffers}, {}
        modules = [*model.named_modules(remove_duplicate=False)]
        before = [dict(vars(module)) for _, module in modules]
        try:
            for name, module in modules:
                for group in ("_parameters", "_buffers"):
                    names = {key: f"{name}.{key}".removeprefix(".") for key in vars(module)[group]}
                    operands = {key: Operand(given[path], arrays) for key, path in names.items() if path in given}
                    vars(module)[group] = vars(module)[group] | operands
            found = model(*(Operand(x, arrays) if hasattr(x, "shape") else x for x in inputs))
        finally:
            for (_, module), attributes in zip(modules, before):
                vars(module).clear()
                vars(module).update(attributes)
        results = tuple(x.array for x in found) if isinstance(found, tuple) else found.array
        return results, buffers

    return ml.compile(program, frontend="trace"), (parameters, buffers)


class _Einops(AbstractBackend):  # type: ignore[misc]
    """What `einops` calls for operands; it finds the class by its base."""

    framework_name = "mlirml"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Operand)

    def reshape(self, x: Operand, shape: Any) -> Operand:
        return Operand(np.reshape(x.array, shape), x.arrays)

    def transpose(self, x: Operand, axes: Any) -> Operand:
        return Operand(np.transpose(x.array, axes), x.arrays)
