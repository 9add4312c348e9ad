"""Complex arrays: a pair of real tensors in the program, one tensor with a last dimension of 2 at its boundary.

So loops, fusion, contractions, and every pass and target know real tensors only. The boundary has NumPy's own memory
layout: an argument is taken apart by two slices, and a result is put together by two stores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import same_shape
from mlirml.errors import DTypeError
from mlirml.ir.text.builder import SMALL_CONSTANT_BYTES, Body, Operand, Scalar, Value, is_uniform
from mlirml.ir.text.complex_scalars import Complex, Real, Truth
from mlirml.ir.text.dtypes import is_complex, part_dtype
from mlirml.ir.text.elements import ElementBuilder

NOT_COMPILED = "not compiled for complex numbers"


@dataclass(frozen=True)
class ComplexValue(Value):
    """A complex tensor: its real and imaginary parts, of equal shapes and dtypes."""

    re: Value = field(kw_only=True)
    im: Value = field(kw_only=True)
    memory: Value | None = field(default=None, compare=False, kw_only=True)  # the tensor that both are slices of

    @staticmethod
    def of(re: Value, im: Value) -> ComplexValue:
        """The pair as one operand."""
        dtype = np.dtype(np.complex64 if re.dtype == np.float32 else np.complex128)
        return ComplexValue("", re.shape, dtype, re=re, im=im)

    @property
    def type(self) -> str:
        raise DTypeError(f"this is {NOT_COMPILED}", help="compute real and imaginary parts apart")

    def map(self, function: Callable[[Value], Value]) -> ComplexValue:
        """Both parts through a function that keeps their dtype or gives both another one."""
        return replace(ComplexValue.of(function(self.re), function(self.im)), weak=self.weak)


def has_complex(operands: Sequence[Any]) -> bool:
    """True if a complex operand is among these."""
    return any(isinstance(x, (Value, Scalar)) and x.dtype.kind == "c" for x in operands)


def parts_of(value: Value) -> tuple[Value, ...]:
    """The real tensors that a value consists of."""
    return (value.re, value.im) if isinstance(value, ComplexValue) else (value,)


ComplexBody = Callable[[list[Complex]], "Complex | Real | Truth"]


class ComplexBuilder(ElementBuilder):
    """A `Builder` whose primitives take and give complex values too, part by part."""

    # The boundary.

    def argument(self, shape: tuple[int, ...], dtype: np.dtype, weak: bool = False) -> Value:
        if not is_complex(dtype):
            return super().argument(shape, dtype, weak)
        return replace(self.from_boundary(super().argument((*shape, 2), part_dtype(dtype))), weak=weak)

    def constant(self, array: np.ndarray, *, live: bool = False) -> Value:
        if not is_complex(array.dtype):
            return super().constant(array, live=live)
        if not live:
            parts = np.ascontiguousarray(array.real), np.ascontiguousarray(array.imag)
            if array.nbytes <= SMALL_CONSTANT_BYTES or all(map(is_uniform, parts)):
                re, im = (super(ComplexBuilder, self).constant(part.reshape(array.shape)) for part in parts)
                return ComplexValue.of(re, im)
        return self._in_memory_order(array)

    def _as_argument(self, array: np.ndarray) -> Value:
        if not is_complex(array.dtype):
            return super()._as_argument(array)
        return self.from_boundary(self.hidden_argument(array, (*array.shape, 2), part_dtype(array.dtype)))

    def from_boundary(self, memory: Value) -> ComplexValue:
        """A complex value that lies in memory."""
        rank = len(memory.shape) - 1
        sizes, steps = [*memory.shape[:-1], 1], [1] * (rank + 1)
        re, im = (
            super(ComplexBuilder, self).extract_slice(memory, [0] * rank + [i], sizes, steps, (rank,)) for i in (0, 1)
        )
        return replace(ComplexValue.of(re, im), memory=memory)

    def with_part(self, value: ComplexValue, number: int, new: Value) -> ComplexValue:
        """The value with other real (0) or imaginary (1) parts; what lies in memory stays there."""
        if value.memory is None or value.size == 0:
            return ComplexValue.of(new, value.im) if number == 0 else ComplexValue.of(value.re, new)
        rank = len(value.shape)
        place, sizes = [0] * rank + [number], [*value.shape, 1]
        return self.from_boundary(super().insert_slice(new, value.memory, place, sizes, [1] * (rank + 1)))

    def at_boundary(self, value: Value) -> Value:
        """A result as it lies in memory."""
        if not isinstance(value, ComplexValue):
            return value
        if value.memory is not None:
            return value.memory
        rank = len(value.shape)
        sizes, steps = [*value.shape, 1], [1] * (rank + 1)
        memory = super().empty((*value.shape, 2), value.re.dtype)
        for i, part in enumerate(parts_of(value)):
            memory = super().insert_slice(part, memory, [0] * rank + [i], sizes, steps)
        return memory

    def warn_of_discarded_parts(self, dtype: np.dtype) -> None:
        """NumPy's warning that complex numbers are cast to real ones, at the user's line; bfloat16 gives none."""
        place = self._location()
        if place is not None and dtype.name != "bfloat16":
            message = "Casting complex values to real discards the imaginary part"
            warnings.warn_explicit(message, np.exceptions.ComplexWarning, place.file, place.line)

    # Primitives, part by part.

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Value:
        if not is_complex(dtype):
            return super().empty(shape, dtype)
        return ComplexValue.of(*(super(ComplexBuilder, self).empty(shape, part_dtype(dtype)) for _ in range(2)))

    def filled(self, shape: Sequence[int], dtype: np.dtype, value: Any) -> Value:
        if not is_complex(dtype):
            return super().filled(shape, dtype, np.real(value) if np.iscomplexobj(value) else value)
        number, part = np.asarray(value).astype(dtype), part_dtype(dtype)
        re, im = (super(ComplexBuilder, self).filled(shape, part, x) for x in (number.real, number.imag))
        return ComplexValue.of(re, im)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        if not isinstance(value, ComplexValue):
            return super().reshape(value, shape)
        if same_shape(value.shape, shape):
            return value
        if value.memory is not None:
            return replace(self.from_boundary(super().reshape(value.memory, (*shape, 2))), weak=value.weak)
        return value.map(lambda part: super(ComplexBuilder, self).reshape(part, shape))

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        if not isinstance(value, ComplexValue):
            return super().transpose(value, permutation)
        if list(permutation) == list(range(len(value.shape))):
            return value
        return value.map(lambda part: super(ComplexBuilder, self).transpose(part, permutation))

    def extract_slice(
        self,
        value: Value,
        offsets: Sequence[int | str],
        sizes: Sequence[int],
        strides: Sequence[int],
        drop: Sequence[int] = (),
    ) -> Value:
        if not isinstance(value, ComplexValue):
            return super().extract_slice(value, offsets, sizes, strides, drop)
        return value.map(lambda part: super(ComplexBuilder, self).extract_slice(part, offsets, sizes, strides, drop))

    def insert_slice(
        self, source: Value, into: Value, offsets: Sequence[int | str], sizes: Sequence[int], strides: Sequence[int]
    ) -> Value:
        if not isinstance(into, ComplexValue):
            return super().insert_slice(source, into, offsets, sizes, strides)
        source = self.cast(source, into.dtype)
        if into.memory is not None:
            return self._insert_in_memory(source, into.memory, offsets, sizes, strides)
        parts = zip(parts_of(source), parts_of(into), strict=True)
        re, im = (super(ComplexBuilder, self).insert_slice(s, t, offsets, sizes, strides) for s, t in parts)
        return ComplexValue.of(re, im)

    def _insert_in_memory(
        self,
        source: Value,
        memory: Value,
        offsets: Sequence[int | str],
        sizes: Sequence[int],
        strides: Sequence[int],
    ) -> Value:
        """Store where the target lies: all of a source that lies in memory too, or one part after the other."""
        assert isinstance(source, ComplexValue)
        steps = [*strides, 1]
        if source.memory is not None:
            stored = super().insert_slice(source.memory, memory, [*offsets, 0], [*sizes, 2], steps)
            return self.from_boundary(stored)
        for number, part in enumerate(parts_of(source)):
            memory = super().insert_slice(part, memory, [*offsets, number], [*sizes, 1], steps)
        return self.from_boundary(memory)

    def gather(self, value: Value, shape: tuple[int, ...], index: Callable[[Body, list[str]], list[str]]) -> Value:
        if not isinstance(value, ComplexValue):
            return super().gather(value, shape, index)
        return value.map(lambda part: super(ComplexBuilder, self).gather(part, shape, index))

    def gather_at(
        self,
        value: Value,
        shape: tuple[int, ...],
        inputs: Sequence[Value],
        maps: Sequence[Sequence[int]],
        index: Callable[[Body, list[str], list[str]], list[str]],
    ) -> Value:
        if not isinstance(value, ComplexValue):
            return super().gather_at(value, shape, inputs, maps, index)
        return value.map(lambda part: super(ComplexBuilder, self).gather_at(part, shape, inputs, maps, index))

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        if isinstance(value, ComplexValue):
            if is_complex(dtype):
                same = value.dtype == dtype
                return value if same else self.numbers([value], dtype, value.shape, lambda xs: xs[0])
            if dtype == np.bool_:
                return self.numbers([value], value.dtype, value.shape, lambda xs: xs[0].is_true())
            self.warn_of_discarded_parts(dtype)
            return super().cast(value.re, dtype)
        if is_complex(dtype):
            return ComplexValue.of(
                super().cast(value, part_dtype(dtype)), super().filled(value.shape, part_dtype(dtype), 0.0)
            )
        return super().cast(value, dtype)

    def broadcast(self, operand: Operand, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        if isinstance(operand, Scalar):
            return self.filled(shape, dtype, operand.value)
        if not isinstance(operand, ComplexValue) and not is_complex(dtype):
            return super().broadcast(operand, shape, dtype)
        value = self.cast(operand, dtype)
        if same_shape(value.shape, shape) or not isinstance(value, ComplexValue):
            return super().broadcast(value, shape, dtype) if not isinstance(value, ComplexValue) else value
        return self.numbers([value], dtype, shape, lambda xs: xs[0])

    # Elementwise computations of complex numbers.

    def numbers(self, operands: Sequence[Operand], dtype: np.dtype, shape: tuple[int, ...], body: ComplexBody) -> Value:
        """Cast the operands to a complex dtype, broadcast them and apply a scalar body.

        It gives a complex number, for which one operation computes both parts, or a real one or a truth value.
        """
        part = part_dtype(dtype)
        inputs: list[Value] = []
        maps: list[list[int]] = []
        for operand in operands:
            if isinstance(operand, Value):
                if not isinstance(operand, ComplexValue):
                    self.check_narrowing(operand, part)
                for tensor in parts_of(operand):
                    value, map_ = self.squeezed(tensor, shape)
                    inputs.append(value)
                    maps.append(map_)
        block, names = Body(), iter([f"%a{i}" for i in range(len(inputs))])
        result = body([_number(block, operand, names, part) for operand in operands])
        results = [result.re, result.im] if isinstance(result, Complex) else [result]
        outs = [super(ComplexBuilder, self).empty(shape, out.dtype) for out in results]

        def write(inner: Body, *_: Any) -> Any:
            inner.lines += block.lines
            return results[0].name if len(results) == 1 else tuple(out.name for out in results)

        loops, parallel = range(len(shape)), ["parallel"] * len(shape)
        if len(outs) == 1:
            return self.generic(inputs, maps, outs[0], loops, parallel, write)
        return ComplexValue.of(*self.generic2(inputs, maps, (outs[0], outs[1]), loops, parallel, write))


def _number(block: Body, operand: Operand, names: Any, part: np.dtype) -> Complex:
    if isinstance(operand, Scalar):
        number = complex(operand.value)
        return Complex(*(Real(block, block.constant(x, part), part) for x in (number.real, number.imag)))
    if isinstance(operand, ComplexValue):
        re, im = (block.cast(next(names), operand.re.dtype, part) for _ in range(2))
    else:
        re, im = block.cast(next(names), operand.dtype, part), block.constant(0.0, part)
    return Complex(Real(block, re, part), Real(block, im, part))
