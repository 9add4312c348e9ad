"""Poolings as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.nn import functional as F
from mlirml.nn.modules.module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


@dataclass(repr=False)
class MaxPool1d(Module):
    """`max_pool1d` with its options; with `return_indices` the positions of the elements, too."""

    kernel_size: Any = static_field()
    stride: Any = static_field(default=None)
    padding: Any = static_field(default=0)
    dilation: Any = static_field(default=1)
    ceil_mode: bool = static_field(default=False)
    return_indices: bool = static_field(default=False)
    _rank: ClassVar[int] = 1

    def __call__(self, input: Any) -> Any:
        pool = getattr(F, f"max_pool{self._rank}d{'_with_indices' * self.return_indices}")
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool2d(MaxPool1d):
    """`max_pool2d` with its options."""

    _rank = 2


class MaxPool3d(MaxPool1d):
    """`max_pool3d` with its options."""

    _rank = 3


@dataclass(repr=False)
class AvgPool1d(Module):
    """`avg_pool1d` with its options."""

    kernel_size: Any = static_field()
    stride: Any = static_field(default=None)
    padding: Any = static_field(default=0)
    ceil_mode: bool = static_field(default=False)
    count_include_pad: bool = static_field(default=True)
    _rank: ClassVar[int] = 1

    def __call__(self, input: Any) -> Any:
        pool = getattr(F, f"avg_pool{self._rank}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


@dataclass(repr=False)
class AvgPool2d(AvgPool1d):
    """`avg_pool2d` with its options."""

    divisor_override: int | None = static_field(default=None)
    _rank: ClassVar[int] = 2

    def __call__(self, input: Any) -> Any:
        pool, options = getattr(F, f"avg_pool{self._rank}d"), (self.ceil_mode, self.count_include_pad)
        return pool(input, self.kernel_size, self.stride, self.padding, *options, self.divisor_override)


class AvgPool3d(AvgPool2d):
    """`avg_pool3d` with its options."""

    _rank = 3


@dataclass(repr=False)
class AdaptiveAvgPool1d(Module):
    """`adaptive_avg_pool1d` to `output_size`."""

    output_size: Any = static_field()
    _pool: ClassVar[str] = "adaptive_avg_pool1d"

    def __call__(self, input: Any) -> Any:
        return getattr(F, self._pool)(input, self.output_size)


class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """`adaptive_avg_pool2d` to `output_size`."""

    _pool = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(AdaptiveAvgPool1d):
    """`adaptive_avg_pool3d` to `output_size`."""

    _pool = "adaptive_avg_pool3d"


@dataclass(repr=False)
class AdaptiveMaxPool1d(AdaptiveAvgPool1d):
    """`adaptive_max_pool1d` to `output_size`; with `return_indices` the positions of the elements, too."""

    return_indices: bool = static_field(default=False)
    _pool: ClassVar[str] = "adaptive_max_pool1d"

    def __call__(self, input: Any) -> Any:
        return getattr(F, self._pool + "_with_indices" * self.return_indices)(input, self.output_size)


class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """`adaptive_max_pool2d` to `output_size`."""

    _pool = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(AdaptiveMaxPool1d):
    """`adaptive_max_pool3d` to `output_size`."""

    _pool = "adaptive_max_pool3d"


@dataclass(repr=False)
class LPPool1d(Module):
    """`lp_pool1d` with its options."""

    norm_type: float = static_field()
    kernel_size: Any = static_field()
    stride: Any = static_field(default=None)
    ceil_mode: bool = static_field(default=False)
    _rank: ClassVar[int] = 1

    def __call__(self, input: Any) -> Any:
        pool = getattr(F, f"lp_pool{self._rank}d")
        return pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(LPPool1d):
    """`lp_pool2d` with its options."""

    _rank = 2


class LPPool3d(LPPool1d):
    """`lp_pool3d` with its options."""

    _rank = 3


@dataclass(repr=False)
class MaxUnpool1d(Module):
    """`max_unpool1d` with its options; it is called with the pooled array and the positions of its elements."""

    kernel_size: Any = static_field()
    stride: Any = static_field(default=None)
    padding: Any = static_field(default=0)
    _rank: ClassVar[int] = 1

    def __call__(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        unpool = getattr(F, f"max_unpool{self._rank}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(MaxUnpool1d):
    """`max_unpool2d` with its options."""

    _rank = 2


class MaxUnpool3d(MaxUnpool1d):
    """`max_unpool3d` with its options."""

    _rank = 3


@dataclass(repr=False)
class FractionalMaxPool2d(Module):
    """`fractional_max_pool2d` with its options; it is called with an array and a key."""

    kernel_size: Any = static_field()
    output_size: Any = static_field()
    _rank: ClassVar[int] = 2

    def __call__(self, input: Any, key: Any) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._rank}d")
        return pool(input, self.kernel_size, self.output_size, key=key)


class FractionalMaxPool3d(FractionalMaxPool2d):
    """`fractional_max_pool3d` with its options."""

    _rank = 3
