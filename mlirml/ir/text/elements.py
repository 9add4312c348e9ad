"""Builder that writes rank-0 computations directly as scalar operations: no 0-d tensors, no `linalg.generic`.

A captured value is always a tensor. This builder remembers the scalar from which a 0-d tensor was made, and returns it
where the element is needed; for an i64 computed from loop variables also the equal value of type `index`.
`without_unused` erases the tensors and indices that nothing used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from mlirml.core.sizes import Extent
from mlirml.ir.text.builder import Body, Builder, Value, literal
from mlirml.ir.text.dtypes import mlir_name, tensor_type

INT64 = np.dtype(np.int64)
_ARITHMETIC = re.compile(r"(arith\.(?:addi|subi|muli)) (%[\w#]+), (%[\w#]+)\Z")
_CONSTANT = re.compile(r"arith\.constant (-?\d+)\Z")
_UNSET = "%unset"  # placeholder for the element of an empty tensor, which is never read
_NAME = re.compile(r"%\w+")


class ElementBuilder(Builder):
    """A builder that computes on scalars while `direct` is set."""

    direct = False
    checked = False  # whether indices in loops are checked

    def __init__(self, *arguments: Callable[[], object]) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.limits_of: Callable[[Value], tuple[int | None, int | None]] = lambda value: (None, None)
        self.extremes_of: Callable[[Value], tuple[int, int] | None] = lambda value: None
        self._elements: dict[str, str] = {_UNSET: _UNSET}  # the scalar that a 0-d tensor was made of
        self._indices: dict[str, str] = {}  # the same number as an `index`, of scalars of type i64
        self._numbers: dict[str, int] = {}  # constants of type i64

    # 0-d tensors and their elements.

    def element(self, value: Value) -> str:
        """The element of a tensor without dimensions."""
        known = self._elements.get(value.name) if self.direct else None
        return known or self.named(f"tensor.extract {value.name}[] : {value.type}")

    def from_element(self, name: str, dtype: np.dtype) -> Value:
        """A scalar as a tensor without dimensions."""
        kind = tensor_type((), dtype)
        value = Value(self.named(f"tensor.from_elements {name} : {kind}"), (), dtype)
        if self.direct:
            self._elements[value.name] = name
        return value

    def known_element(self, value: Value) -> str | None:
        """The scalar that a 0-d tensor was made of, if it is remembered."""
        return self._elements.get(value.name) if self.direct else None

    def element_index(self, value: Value) -> str:
        """The element of an integer tensor without dimensions as an `index`."""
        element = self.element(value)
        known = self.index_of(element) if self.direct and value.dtype == INT64 else None
        if known is not None:
            return known
        cast = "arith.index_cast" if value.dtype.kind == "i" else "arith.index_castui"
        return self.named(f"{cast} {element} : {mlir_name(value.dtype)} to index")

    def index_of(self, element: str) -> str | None:
        """The `index` that an i64 is the same number as, if there is one."""
        if element in self._numbers:
            return self.index(self._numbers[element])
        return self._indices.get(element)

    def number_of(self, index: str) -> str:
        """An `index` as an i64."""
        name = self.named(f"arith.index_cast {index} : index to i64")
        self._indices[name] = index
        return name

    def scalar(self, value: object, dtype: np.dtype) -> str:
        name = super().scalar(value, dtype)
        if dtype == INT64:
            self._numbers[name] = int(literal(value, dtype))
        return name

    # Primitives on what has no dimension.

    def check_narrowing(self, value: Value, dtype: np.dtype) -> None:
        if not self.direct or value in self.arguments:  # loops compute integers modulo their width
            super().check_narrowing(value, dtype)

    def generic(
        self,
        inputs: Sequence[Value],
        maps: Sequence[Sequence[int]],
        out: Value,
        out_map: Sequence[int],
        iterators: Sequence[str],
        body: Callable[[Body, list[str], str], str],
    ) -> Value:
        if self.direct and not iterators and not any(v.shape for v in inputs):
            block = _Direct(self)
            result = body(block, [self.element(v) for v in inputs], self.element(out))
            if not block.lines:  # lines of a complex body are written elsewhere
                return self.from_element(result, out.dtype)
        return super().generic(inputs, maps, self._written(out), out_map, iterators, body)

    def generic2(
        self,
        inputs: Sequence[Value],
        maps: Sequence[Sequence[int]],
        inits: tuple[Value, Value],
        out_map: Sequence[int],
        iterators: Sequence[str],
        body: Callable[[Body, list[str], list[str]], tuple[str, str]],
    ) -> tuple[Value, Value]:
        first, second = inits
        both = self._written(first), self._written(second)
        return super().generic2(inputs, maps, both, out_map, iterators, body)

    def _written(self, out: Value) -> Value:
        """An empty tensor that an operation names."""
        return super().empty((), out.dtype) if out.name == _UNSET else out

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Value:
        if self.direct and not shape:
            return Value(_UNSET, (), dtype)
        return super().empty(shape, dtype)

    def filled(self, shape: Sequence[int], dtype: np.dtype, value: object) -> Value:
        if self.direct and not shape:
            return self.from_element(self.scalar(value, dtype), dtype)
        return super().filled(shape, dtype, value)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        if self.direct and not value.shape and shape:
            kind = tensor_type(shape, value.dtype)
            return self.op(f"tensor.from_elements {self.element(value)} : {kind}", shape, value.dtype)
        if self.direct and value.shape and not shape and value.size:
            return self.extract_slice(value, [0] * len(value.shape), value.shape, [], range(len(value.shape)))
        return super().reshape(value, shape)

    def extract_slice(
        self,
        value: Value,
        offsets: Sequence[int | str],
        sizes: Sequence[int],
        strides: Sequence[int],
        drop: Sequence[int] = (),
    ) -> Value:
        if self.direct and value.size and len(drop) == len(value.shape) > 0:
            place = self._indices_text(offsets)
            return self.from_element(self.named(f"tensor.extract {value.name}[{place}] : {value.type}"), value.dtype)
        return super().extract_slice(value, offsets, sizes, strides, drop)

    def insert_slice(
        self, source: Value, into: Value, offsets: Sequence[int | str], sizes: Sequence[int], strides: Sequence[int]
    ) -> Value:
        if self.direct and not source.shape and into.shape:
            text = f"tensor.insert {self.element(source)} into {into.name}[{self._indices_text(offsets)}] : {into.type}"
            return self.op(text, into.shape, into.dtype)
        return super().insert_slice(source, into, offsets, sizes, strides)

    def _indices_text(self, offsets: Sequence[Extent | str]) -> str:
        return ", ".join(at if isinstance(at, str) else self.index(at) for at in offsets)

    # The end.

    def without_unused(self, used: Sequence[Value]) -> None:
        """Drop the operations whose results are not used, given the results of the program."""
        needed = {value.name.partition("#")[0] for value in used}
        kept = []
        for number in range(len(self._operations) - 1, -1, -1):
            text = self._operations[number]
            name = text[: text.find(" ")].rstrip(" =").partition(":")[0] if text.startswith("%") else ""
            if name and name not in needed and not text.endswith("{"):
                continue
            needed.update(_NAME.findall(text))
            kept.append(number)
        kept.reverse()
        self._operations = [self._operations[i] for i in kept]
        self._locations = [self._locations[i] for i in kept]


class _Direct(Body):
    """Scalar operations at the insertion point of the builder; integers are computed as `index` where possible."""

    def __init__(self, builder: ElementBuilder) -> None:
        super().__init__()
        self._builder = builder

    def op(self, text: str, result_type: str = "") -> str:
        b = self._builder
        if result_type == "i64":
            found = _ARITHMETIC.match(text)
            if found is not None:
                left, right = b.index_of(found[2]), b.index_of(found[3])
                if left is not None and right is not None:
                    return b.number_of(b.named(f"{found[1]} {left}, {right} : index"))
            number = _CONSTANT.match(text)
            if number is not None:
                return b.scalar(int(number[1]), INT64)
        return b.named(f"{text} : {result_type}" if result_type else text)
