"""Poolings as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.nn import functional as F
from mlirml.nn.modules.module import Module, of_rank

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


MaxPool2d = of_rank(MaxPool1d, 2)
MaxPool3d = of_rank(MaxPool1d, 3)


@dataclass(repr=False)
class AvgPool1d(Module):
    """`avg_pool1d` with its options."""

    kernel_size: Any = static_field()
    stride: Any = static_field(default=None)
    padding: Any = static_field(default=0)
    ceil_mode: bool = static_field(default=False)
    count_include_pad: bool = static_field(default=True)
    divisor_override: int | None = static_field(default=None)
    _rank: ClassVar[int] = 1

    def __call__(self, input: Any) -> Any:
        pool, options = getattr(F, f"avg_pool{self._rank}d"), (self.ceil_mode, self.count_include_pad)
        return pool(input, self.kernel_size, self.stride, self.padding, *options, self.divisor_override)


AvgPool2d = of_rank(AvgPool1d, 2)
AvgPool3d = of_rank(AvgPool1d, 3)


@dataclass(repr=False)
class AdaptiveAvgPool1d(Module):
    """`adaptive_avg_pool1d` to `output_size`."""

    output_size: Any = static_field()
    _rank: ClassVar[int] = 1

    def __call__(self, input: Any) -> Any:
        return getattr(F, f"adaptive_avg_pool{self._rank}d")(input, self.output_size)


AdaptiveAvgPool2d = of_rank(AdaptiveAvgPool1d, 2)
AdaptiveAvgPool3d = of_rank(AdaptiveAvgPool1d, 3)


@dataclass(repr=False)
class AdaptiveMaxPool1d(AdaptiveAvgPool1d):
    """`adaptive_max_pool1d` to `output_size`; with `return_indices` the positions of the elements, too."""

    return_indices: bool = static_field(default=False)

    def __call__(self, input: Any) -> Any:
        pool = getattr(F, f"adaptive_max_pool{self._rank}d{'_with_indices' * self.return_indices}")
        return pool(input, self.output_size)


AdaptiveMaxPool2d = of_rank(AdaptiveMaxPool1d, 2)
AdaptiveMaxPool3d = of_rank(AdaptiveMaxPool1d, 3)


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


LPPool2d = of_rank(LPPool1d, 2)
LPPool3d = of_rank(LPPool1d, 3)


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


MaxUnpool2d = of_rank(MaxUnpool1d, 2)
MaxUnpool3d = of_rank(MaxUnpool1d, 3)


@dataclass(repr=False)
class FractionalMaxPool2d(Module):
    """`fractional_max_pool2d` with its options; it is called with an array and a key."""

    kernel_size: Any = static_field()
    output_size: Any = static_field()
    _rank: ClassVar[int] = 2

    def __call__(self, input: Any, key: Any) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._rank}d")
        return pool(input, self.kernel_size, self.output_size, key=key)


FractionalMaxPool3d = of_rank(FractionalMaxPool2d, 3)
