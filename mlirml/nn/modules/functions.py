"""The functions of `mlirml.nn.functional` as layers: activations, losses, distances, paddings, and other sizes.

A class of `_layer` has the parameters of its function as fields, in their order, but for the arrays that it is called
with. Arrays among the options, such as the weight of each class in a loss, are fields, numbers are static ones.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.errors import ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional as F
from mlirml.nn.define import as_array, shown
from mlirml.nn.modules.module import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "AlphaDropout", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "ChannelShuffle",
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss", "Dropout1d", "Dropout2d", "Dropout3d",
    "FeatureAlphaDropout", "Flatten", "Fold", "GaussianNLLLoss", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "HingeEmbeddingLoss", "HuberLoss", "Identity", "KLDivLoss", "L1Loss", "LeakyReLU", "LocalResponseNorm",
    "LogSigmoid", "LogSoftmax", "MSELoss", "MarginRankingLoss", "Mish", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PairwiseDistance", "PixelShuffle", "PixelUnshuffle",
    "PoissonNLLLoss", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_ARRAYS = ("weight", "pos_weight")


def _layer(name: str, function: Callable[..., Any], operands: int = 1) -> Any:
    """The layer of a function that is called with its first `operands` arguments, and a key if the function takes one.

    A function with a parameter `training` computes as in training where there is a key.
    """
    parameters = [*inspect.signature(function).parameters.values()]
    arrays, options = parameters[:operands], [p for p in parameters[operands:] if p.name not in ("key", "training")]
    random = len(options) < len(parameters) - operands
    names = [p.name for p in options]

    def call(self: Any, *operands: Any) -> Any:
        if len(operands) != len(arrays):
            raise TypeError(f"{name} is called with {', '.join(p.name for p in arrays)}")
        return function(*operands, **{option: getattr(self, option) for option in names})

    def call_with_key(self: Any, input: Any, key: Any = None) -> Any:
        given = {option: getattr(self, option) for option in names}
        return function(input, **given, training=key is not None, key=key)

    body: dict[str, Any] = {p.name: _field(p) for p in options if p.name not in _ARRAYS or p.default is not p.empty}
    more = "; with a key as in training, without one as it is otherwise" if random else ""
    body |= {
        "__annotations__": dict.fromkeys(names, "Any"),
        "__call__": call_with_key if random else call,
        "__doc__": f"`{function.__name__}` of {', '.join(f'`{p.name}`' for p in arrays)}{more}.",
        "__module__": __name__,
    }
    return dataclass(eq=False, repr=False)(type(name, (Module,), body))


def _field(parameter: inspect.Parameter) -> Any:
    if parameter.name in _ARRAYS:
        return parameter.default
    return static_field() if parameter.default is parameter.empty else static_field(default=parameter.default)


CELU = _layer("CELU", F.celu)
ELU = _layer("ELU", F.elu)
GELU = _layer("GELU", F.gelu)
GLU = _layer("GLU", F.glu)
Hardshrink = _layer("Hardshrink", F.hardshrink)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid)
Hardswish = _layer("Hardswish", F.hardswish)
Hardtanh = _layer("Hardtanh", F.hardtanh)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu)
LogSigmoid = _layer("LogSigmoid", F.log_sigmoid)
LogSoftmax = _layer("LogSoftmax", F.log_softmax)
Mish = _layer("Mish", F.mish)
RReLU = _layer("RReLU", F.rrelu)
ReLU = _layer("ReLU", F.relu)
ReLU6 = _layer("ReLU6", F.relu6)
SELU = _layer("SELU", F.selu)
SiLU = _layer("SiLU", F.silu)
Sigmoid = _layer("Sigmoid", F.sigmoid)
Softmax = _layer("Softmax", F.softmax)
Softmin = _layer("Softmin", F.softmin)
Softplus = _layer("Softplus", F.softplus)
Softshrink = _layer("Softshrink", F.softshrink)
Softsign = _layer("Softsign", F.softsign)
Tanh = _layer("Tanh", F.tanh)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
Threshold = _layer("Threshold", F.threshold)

AlphaDropout = _layer("AlphaDropout", F.alpha_dropout)
Dropout1d = _layer("Dropout1d", F.dropout1d)
Dropout2d = _layer("Dropout2d", F.dropout2d)
Dropout3d = _layer("Dropout3d", F.dropout3d)
FeatureAlphaDropout = _layer("FeatureAlphaDropout", F.feature_alpha_dropout)

ChannelShuffle = _layer("ChannelShuffle", F.channel_shuffle)
CosineSimilarity = _layer("CosineSimilarity", F.cosine_similarity, 2)
Fold = _layer("Fold", F.fold)
LocalResponseNorm = _layer("LocalResponseNorm", F.local_response_norm)
PairwiseDistance = _layer("PairwiseDistance", F.pairwise_distance, 2)
PixelShuffle = _layer("PixelShuffle", F.pixel_shuffle)
PixelUnshuffle = _layer("PixelUnshuffle", F.pixel_unshuffle)
Unfold = _layer("Unfold", F.unfold)
Upsample = _layer("Upsample", F.interpolate)

BCELoss = _layer("BCELoss", F.binary_cross_entropy, 2)
BCEWithLogitsLoss = _layer("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, 2)
CTCLoss = _layer("CTCLoss", F.ctc_loss, 4)
CosineEmbeddingLoss = _layer("CosineEmbeddingLoss", F.cosine_embedding_loss, 3)
CrossEntropyLoss = _layer("CrossEntropyLoss", F.cross_entropy, 2)
GaussianNLLLoss = _layer("GaussianNLLLoss", F.gaussian_nll_loss, 3)
HingeEmbeddingLoss = _layer("HingeEmbeddingLoss", F.hinge_embedding_loss, 2)
HuberLoss = _layer("HuberLoss", F.huber_loss, 2)
KLDivLoss = _layer("KLDivLoss", F.kl_div, 2)
L1Loss = _layer("L1Loss", F.l1_loss, 2)
MSELoss = _layer("MSELoss", F.mse_loss, 2)
MarginRankingLoss = _layer("MarginRankingLoss", F.margin_ranking_loss, 3)
MultiLabelMarginLoss = _layer("MultiLabelMarginLoss", F.multilabel_margin_loss, 2)
MultiLabelSoftMarginLoss = _layer("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, 2)
MultiMarginLoss = _layer("MultiMarginLoss", F.multi_margin_loss, 2)
NLLLoss = _layer("NLLLoss", F.nll_loss, 2)
PoissonNLLLoss = _layer("PoissonNLLLoss", F.poisson_nll_loss, 2)
SmoothL1Loss = _layer("SmoothL1Loss", F.smooth_l1_loss, 2)
SoftMarginLoss = _layer("SoftMarginLoss", F.soft_margin_loss, 2)
TripletMarginLoss = _layer("TripletMarginLoss", F.triplet_margin_loss, 3)
TripletMarginWithDistanceLoss = _layer("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, 3)


@dataclass(eq=False, repr=False)
class Softmax2d(Module):
    """`softmax` over the channels of [N, C, H, W]; N may be missing."""

    def __call__(self, input: Any) -> Any:
        return F.softmax(input, -3)


@dataclass(eq=False, repr=False)
class Identity(Module):
    """The input itself."""

    def __call__(self, input: Any) -> Any:
        return input


@dataclass(eq=False, repr=False)
class Flatten(Module):
    """The dimensions from `start_dim` to `end_dim` as one."""

    start_dim: int = static_field(default=1)
    end_dim: int = static_field(default=-1)

    def __call__(self, input: Any) -> Any:
        x = as_array(input)
        rank = max(len(x.shape), 1)
        shape = tuple(x.shape) or (1,)
        with at_user_line():
            if not (-rank <= self.start_dim < rank and -rank <= self.end_dim < rank):
                raise ShapeError(f"Flatten: {shown(x)} has no dimensions from {self.start_dim} to {self.end_dim}")
            first, last = self.start_dim % rank, self.end_dim % rank
            if first > last:
                raise ShapeError(f"Flatten: dimension {self.start_dim} of {shown(x)} is after {self.end_dim}")
            return x.reshape(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


@dataclass(eq=False, repr=False)
class Unflatten(Module):
    """Dimension `dim` as dimensions of `unflattened_size`, one of which may be -1."""

    dim: int = static_field()
    unflattened_size: tuple[int, ...] = static_field()

    def __call__(self, input: Any) -> Any:
        x = as_array(input)
        rank, sizes = len(x.shape), tuple(self.unflattened_size)
        with at_user_line():
            if not -rank <= self.dim < rank:
                raise ShapeError(f"Unflatten: {shown(x)} has no dimension {self.dim}")
            at = self.dim % rank
            if -1 in sizes:
                others = math.prod(n for n in sizes if n != -1)
                sizes = tuple(x.shape[at] // max(others, 1) if n == -1 else n for n in sizes)
            if math.prod(sizes) != x.shape[at]:
                raise ShapeError(f"Unflatten: dimension {self.dim} of {shown(x)} is not {self.unflattened_size!r}")
            return x.reshape(*x.shape[:at], *sizes, *x.shape[at + 1 :])


@dataclass(eq=False, repr=False)
class UpsamplingNearest2d(Module):
    """`interpolate` by the nearest element."""

    size: Any = static_field(default=None)
    scale_factor: Any = static_field(default=None)

    def __call__(self, input: Any) -> Any:
        return F.interpolate(input, self.size, self.scale_factor)


class UpsamplingBilinear2d(UpsamplingNearest2d):
    """`interpolate` in lines between the corners."""

    def __call__(self, input: Any) -> Any:
        return F.interpolate(input, self.size, self.scale_factor, "bilinear", align_corners=True)


@dataclass(eq=False, repr=False)
class ZeroPad1d(Module):
    """`pad` of the last dimension: `padding` elements, or a pair of numbers of them, before and after."""

    padding: Any = static_field()
    _rank: ClassVar[int] = 1
    _mode: ClassVar[str] = "constant"

    def __call__(self, input: Any) -> Any:
        x, both = as_array(input), self.padding
        with at_user_line():
            widths = tuple(both) if isinstance(both, (tuple, list)) else (both,) * (2 * self._rank)
            if len(widths) != 2 * self._rank or len(x.shape) not in (self._rank + 1, self._rank + 2):
                raise ShapeError(
                    f"{type(self).__name__}: the input must be [N, C] and {self._rank} sizes, N may be missing, and "
                    f"the padding an integer or {2 * self._rank} of them, got {shown(x)} and {both!r}"
                )
        return F.pad(x, widths, self._mode, getattr(self, "value", None))


@dataclass(eq=False, repr=False)
class ConstantPad1d(ZeroPad1d):
    """As `ZeroPad1d`, with elements `value`."""

    value: Any = static_field(default=0.0)


def _padding(base: type, name: str, rank: int, mode: str = "constant") -> Any:
    doc = f"As `{base.__name__}`, for the last {rank} dimensions{'' if mode == 'constant' else f', in mode {mode!r}'}."
    return type(name, (base,), {"_rank": rank, "_mode": mode, "__doc__": doc, "__module__": __name__})


ZeroPad2d = _padding(ZeroPad1d, "ZeroPad2d", 2)
ZeroPad3d = _padding(ZeroPad1d, "ZeroPad3d", 3)
ConstantPad2d = _padding(ConstantPad1d, "ConstantPad2d", 2)
ConstantPad3d = _padding(ConstantPad1d, "ConstantPad3d", 3)
ReflectionPad1d = _padding(ZeroPad1d, "ReflectionPad1d", 1, "reflect")
ReflectionPad2d = _padding(ZeroPad1d, "ReflectionPad2d", 2, "reflect")
ReflectionPad3d = _padding(ZeroPad1d, "ReflectionPad3d", 3, "reflect")
ReplicationPad1d = _padding(ZeroPad1d, "ReplicationPad1d", 1, "replicate")
ReplicationPad2d = _padding(ZeroPad1d, "ReplicationPad2d", 2, "replicate")
ReplicationPad3d = _padding(ZeroPad1d, "ReplicationPad3d", 3, "replicate")
CircularPad1d = _padding(ZeroPad1d, "CircularPad1d", 1, "circular")
CircularPad2d = _padding(ZeroPad1d, "CircularPad2d", 2, "circular")
CircularPad3d = _padding(ZeroPad1d, "CircularPad3d", 3, "circular")
