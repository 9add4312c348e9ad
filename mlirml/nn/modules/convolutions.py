"""Convolutions with their weights."""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeVar

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import static_field
from mlirml.errors import ArgumentError
from mlirml.frontend.frames import at_user_line
from mlirml.nn import functional as F
from mlirml.nn.modules.module import Module, keys_of, within

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

Self = TypeVar("Self", bound="Conv1d")
SelfTransposed = TypeVar("SelfTransposed", bound="ConvTranspose1d")


def _kernel(size: Any, rank: int) -> tuple[int, ...]:
    return tuple(size) if isinstance(size, (tuple, list)) else (size,) * rank


def _option(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(eq=False, repr=False)
class Conv1d(Module):
    """`conv1d` of [N, C, L] with `weight` [F, C / groups, K] and `bias` [F] or None.

    `padding_mode` is "zeros", or one of `F.pad`: "reflect", "replicate" or "circular".
    """

    weight: Any
    bias: Any = None
    stride: Any = static_field(default=1)
    padding: Any = static_field(default=0)
    dilation: Any = static_field(default=1)
    groups: int = static_field(default=1)
    padding_mode: str = static_field(default="zeros")
    _rank: ClassVar[int] = 1

    @classmethod
    def init(
        cls: type[Self], key: Any, inputs: int, outputs: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, dtype: Any = np.float32, padding_mode: str = "zeros",
    ) -> Self:  # fmt: skip
        """A layer with weights and biases up to 1 / sqrt(inputs / groups * elements of the kernel), as torch's."""
        first, second = keys_of(key, 2)
        shape = (outputs, inputs // groups, *_kernel(kernel_size, cls._rank))
        fan_in = math.prod(shape[1:])
        found = within(second, (outputs,), fan_in, dtype) if bias else None
        options = _option(stride), _option(padding), _option(dilation), groups, padding_mode
        return cls(within(first, shape, fan_in, dtype), found, *options)

    def __call__(self, input: Any) -> Any:
        convolve, padding = getattr(F, f"conv{self._rank}d"), self.padding
        if self.padding_mode != "zeros":
            if self.padding_mode not in ("reflect", "replicate", "circular"):
                with at_user_line():
                    raise ArgumentError(
                        f"{type(self).__name__}: padding_mode must be 'zeros', 'reflect', 'replicate' or 'circular', "
                        f"got {self.padding_mode!r}"
                    )
            input, padding = F.pad(input, self._widths(), self.padding_mode), 0
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _widths(self) -> list[int]:
        """The elements before and after each axis, the last one first, as `pad` takes them."""
        if self.padding == "valid":
            return []
        if self.padding == "same":
            extents = [
                d * (k - 1) for d, k in zip(_kernel(self.dilation, self._rank), self.weight.shape[-self._rank :])
            ]
            return [width for extent in reversed(extents) for width in (extent // 2, extent - extent // 2)]
        return [width for width in reversed(_kernel(self.padding, self._rank)) for _ in range(2)]


class Conv2d(Conv1d):
    """`conv2d` of [N, C, H, W] with `weight` [F, C / groups, KH, KW] and `bias` [F] or None."""

    _rank = 2


class Conv3d(Conv1d):
    """`conv3d` of [N, C, D, H, W] with `weight` [F, C / groups, KD, KH, KW] and `bias` [F] or None."""

    _rank = 3


@dataclass(eq=False, repr=False)
class ConvTranspose1d(Module):
    """`conv_transpose1d` of [N, C, L] with `weight` [C, F / groups, K] and `bias` [F] or None."""

    weight: Any
    bias: Any = None
    stride: Any = static_field(default=1)
    padding: Any = static_field(default=0)
    output_padding: Any = static_field(default=0)
    groups: int = static_field(default=1)
    dilation: Any = static_field(default=1)
    _rank: ClassVar[int] = 1

    @classmethod
    def init(
        cls: type[SelfTransposed], key: Any, inputs: int, outputs: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        dtype: Any = np.float32,
    ) -> SelfTransposed:  # fmt: skip
        """A layer with weights and biases up to 1 / sqrt(outputs / groups * elements of the kernel), as torch's."""
        first, second = keys_of(key, 2)
        shape = (inputs, outputs // groups, *_kernel(kernel_size, cls._rank))
        fan_in = math.prod(shape[1:])
        found = within(second, (outputs,), fan_in, dtype) if bias else None
        options = _option(stride), _option(padding), _option(output_padding), groups, _option(dilation)
        return cls(within(first, shape, fan_in, dtype), found, *options)

    def __call__(self, input: Any) -> Any:
        options = self.stride, self.padding, self.output_padding, self.groups, self.dilation
        return getattr(F, f"conv_transpose{self._rank}d")(input, self.weight, self.bias, *options)


class ConvTranspose2d(ConvTranspose1d):
    """`conv_transpose2d` of [N, C, H, W] with `weight` [C, F / groups, KH, KW] and `bias` [F] or None."""

    _rank = 2


class ConvTranspose3d(ConvTranspose1d):
    """`conv_transpose3d` of [N, C, D, H, W] with `weight` [C, F / groups, KD, KH, KW] and `bias` [F] or None."""

    _rank = 3
