"""Pytrees: nested containers of arrays, taken apart into leaves and put together again."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.core.number_lists import ListOf, NumberList
from mlirml.core.sizes import Size
from mlirml.errors import ArgumentError

_NONE, _LEAF, _CONSTANT, _STATIC, _AGAIN = "none", "leaf", "constant", "static", "again"


_ENDLESS = "a container holds itself, or containers and the calls around them are nested more deeply than Python allows"


def exact(value: Any) -> Any:
    """A hashable value such that equal means the same to a function: 1, 1.0 and True differ, 0.0 and -0.0 too."""
    if type(value) is tuple:
        return tuple, tuple(map(exact, value))
    if type(value) is complex:
        return complex, value.real.hex(), value.imag.hex()
    if type(value) is Size:
        return Size, frozenset(value.terms.items())
    return type(value), value.hex() if type(value) is float else value


def exact_leaf(value: Any) -> Any:
    """As `exact`, of a leaf; objects of classes that say when they are equal are equal to themselves alone.

    Such objects may have other attributes, and their attributes may change.
    """
    return _Same(value) if has_own_equality(value) else exact(value)


def has_own_equality(value: Any) -> bool:
    """True for an object of a class that says when its objects are equal; not for those of libraries."""
    class_ = type(value)
    if getattr(class_, "__eq__") is object.__eq__ or isinstance(value, Enum):  # noqa: B009
        return False
    return class_.__module__.partition(".")[0] not in _LIBRARIES


_LIBRARIES = frozenset((*sys.stdlib_module_names, "mlirml", "ml_dtypes", "numpy")) - {"__main__"}


class _Constant:
    """A value that belongs to a structure; equal where the values are the same."""

    def __init__(self, value: Any) -> None:
        self.value, self._exact = value, exact(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and self._exact == other._exact

    def __hash__(self) -> int:
        return hash(self._exact)


@dataclass(frozen=True)
class TreeDef:
    """The structure of a pytree without its leaves; hashable, equal for equal structures.

    Containers are tuple, list, dict, OrderedDict, named tuples, dataclass instances and None, and for
    `ObjectFlattener` other objects too, each of them once. Everything else is a leaf, but for what `with_constants`
    and `ObjectFlattener` make a part of the structure, and for static fields of dataclasses (`static_field`). The
    leaves of a dict come in the order of its sorted keys, where they sort, so that dicts with the same keys are of
    one structure; `inserted` is the order of the user's dict where that is another one, in which it is built.
    """

    kind: Any
    keys: tuple[Any, ...] = ()
    children: tuple[TreeDef, ...] = ()
    inserted: tuple[Any, ...] = dataclasses.field(default=(), compare=False)

    def orders(self) -> tuple[Any, ...]:
        """The orders of insertion of all dicts, which tell equal structures apart for a function that iterates."""
        return (self.inserted, *(child.orders() for child in self.children if child.children))

    def leaf_count(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == _LEAF else sum(child.leaf_count() for child in self.children)

    def with_constants(self, values: Mapping[int, Any]) -> TreeDef:
        """The structure in which the leaves of these indices are constants; the values must be hashable."""
        return self._with_constants(itertools.count(), values) if values else self

    def _with_constants(self, numbers: Iterator[int], values: Mapping[int, Any]) -> TreeDef:
        if self.kind == _LEAF:
            number = next(numbers)
            return TreeDef(_CONSTANT, (_constant(values[number]),)) if number in values else self
        children = tuple(child._with_constants(numbers, values) for child in self.children)
        return dataclasses.replace(self, children=children)

    def with_trees(self, trees: Mapping[int, TreeDef]) -> TreeDef:
        """The structure in which the leaves of these indices are trees."""
        return self._with_trees(itertools.count(), trees)

    def _with_trees(self, numbers: Iterator[int], trees: Mapping[int, TreeDef]) -> TreeDef:
        if self.kind == _LEAF:
            return trees.get(next(numbers), self)
        return dataclasses.replace(self, children=tuple(c._with_trees(numbers, trees) for c in self.children))

    def constants(self) -> dict[int, Any]:
        """The constants by their indices among all leaves."""
        leaf = object()
        values = enumerate(self.with_leaves(itertools.repeat(leaf)))
        return {number: value for number, value in values if value is not leaf}

    def without_constants(self) -> TreeDef:
        """The structure in which constants are leaves again."""
        if self.kind == _CONSTANT:
            return TreeDef(_LEAF)
        return dataclasses.replace(self, children=tuple(child.without_constants() for child in self.children))

    def with_leaves(self, leaves: Iterable[Any]) -> list[Any]:
        """The leaves and constants in order: what the leaves are of the structure without constants."""
        return list(self._with_leaves(iter(leaves)))

    def _with_leaves(self, leaves: Iterator[Any]) -> Iterator[Any]:
        if self.kind == _LEAF:
            yield next(leaves)
        elif self.kind == _CONSTANT:
            yield self.keys[0].value
        for child in self.children:
            yield from child._with_leaves(leaves)

    def unflatten(self, leaves: list[Any]) -> Any:
        """Build the pytree again from its leaves, in the order `flatten` gave them."""
        if len(leaves) != self.leaf_count():
            more = "more" if len(leaves) > self.leaf_count() else "fewer"
            raise ValueError(f"{more} leaves than the structure takes")
        return self._build(iter(leaves), [])

    def _build(self, leaves: Iterator[Any], made: list[Any]) -> Any:
        if self.kind == _LEAF:
            return next(leaves)
        if self.kind == _NONE:
            return None
        if self.kind in (_CONSTANT, _STATIC):
            return self.keys[0].value
        if self.kind == _AGAIN:
            return made[self.keys[0]]
        if isinstance(self.kind, _Class):
            result: Any = object.__new__(self.kind.of)
            made.append(result)
            for name, child in zip(self.keys, self.children):
                object.__setattr__(result, name, child._build(leaves, made))
            return result
        values = [child._build(leaves, made) for child in self.children]
        if self.kind in (tuple, list):
            return self.kind(values)
        if self.kind in (dict, OrderedDict):
            return self._ordered(values)
        if isinstance(self.kind, type) and dataclasses.is_dataclass(self.kind):
            build = getattr(self.kind, "_mlirml_built", partial(_rebuild_dataclass, self.kind))
            return build(dict(zip(self.keys, values)))
        return self.kind._make(values)

    def _ordered(self, values: list[Any]) -> Any:
        items = dict(zip(self.keys, values))
        return {key: items[key] for key in self.inserted} if self.inserted else self.kind(items)

    def paths(self, prefix: str = "") -> list[str]:
        """A Python expression for each leaf, such as `params['w1'][0]`."""
        if self.kind == _LEAF:
            return [prefix]
        if self.kind in (_CONSTANT, _STATIC, _AGAIN):
            return []
        if not isinstance(self.kind, (type, _Class)):  # a list that is one array, or several
            if len(self.children) == 1:
                return self.children[0].paths(prefix)
            return [path for k, child in zip(self.keys, self.children) for path in child.paths(f"{prefix}[{k}]")]
        named = self.kind not in (tuple, list, dict, OrderedDict)
        own = getattr(self.kind, "_mlirml_steps", {})
        steps = [own.get(key, f".{key}") if named else f"[{key!r}]" for key in self.keys]
        return [path for step, child in zip(steps, self.children) for path in child.paths(prefix + step)]

    def classes(self) -> set[type]:
        """The classes of the dataclasses and named tuples in it."""
        own = {self.kind} if dataclasses.is_dataclass(self.kind) or hasattr(self.kind, "_fields") else set()
        return own.union(*(child.classes() for child in self.children))

    def static_values(self) -> list[Any]:
        """The values of the static fields in it, in order."""
        if self.kind == _STATIC:
            return [self.keys[0].value]
        return [value for child in self.children for value in child.static_values()]

    def key_paths(self) -> list[tuple[Any, ...]]:
        """The keys, indices and names of fields that lead to each leaf."""
        if self.kind == _LEAF:
            return [()]
        return [(key, *rest) for key, child in zip(self.keys, self.children) for rest in child.key_paths()]

    def nested(self, numbers: Iterator[int]) -> Any:
        """The structure with leaf numbers for leaves; a ValueError for a container other than tuple, list and dict."""
        if self.kind == _LEAF:
            return next(numbers)
        if self.kind == _NONE:
            return None
        if self.kind not in (tuple, list, dict):
            raise ValueError(f"{getattr(self.kind, '__name__', self.kind)} is no plain container")
        values = [child.nested(numbers) for child in self.children]
        return self._ordered(values) if self.kind is dict else self.kind(values)


@dataclass(frozen=True)
class _Class:
    """The class of an object that `ObjectFlattener` takes apart."""

    of: type


class _Same(_Constant):
    """A value that belongs to a structure; equal where it is the same object."""

    def __init__(self, value: Any) -> None:
        self.value, self._exact = value, (object, id(value))


def _constant(leaf: Any) -> _Constant:
    return _Same(leaf) if has_own_equality(leaf) else _Constant(leaf)


_STATIC_FLAG = "static"


def static_field(**options: Any) -> Any:
    """A field of a dataclass that belongs to the structure of its objects, and is no leaf: an option of a model.

    A number in such a field stays the Python number that it is in compiled functions, which are compiled anew for
    each value, and gradients have it too. `options` are those of `dataclasses.field`, which is called with the
    metadata `{"static": True}`, as JAX has it; values must be hashable.

    >>> import dataclasses, mlirml as ml, numpy as np
    >>> @dataclasses.dataclass
    ... class Power:
    ...     scale: np.ndarray
    ...     exponent: int = ml.static_field(default=2)
    >>> ml.grad(lambda power, x: power.scale * x**power.exponent)(Power(np.array(1.0), 3), 2.0)
    Power(scale=array(8.), exponent=3)
    """
    metadata = {**(options.pop("metadata", None) or {}), _STATIC_FLAG: True}
    return dataclasses.field(metadata=metadata, **options)


@functools.lru_cache(maxsize=1024)
def _fields_of(class_: Any) -> tuple[list[str], frozenset[str]]:
    """The names of the fields of a dataclass, and those that are static."""
    fields = dataclasses.fields(class_)
    return [field.name for field in fields], frozenset(f.name for f in fields if f.metadata.get(_STATIC_FLAG) is True)


def plain_fields(class_: Any) -> tuple[str, ...] | None:
    """The names of the fields of a dataclass, if they are the items of its objects' `__dict__`; else None.

    They are not where a property or a slot has one, where the class looks up attributes itself, and in subclasses of
    other containers. A named tuple has its own, unless its objects hold more than these.
    """
    if issubclass(class_, tuple):
        return class_._fields if class_.__dictoffset__ == 0 and class_.__iter__ is tuple.__iter__ else None
    names = tuple(_fields_of(class_)[0])
    is_plain = class_.__getattribute__ is object.__getattribute__ and class_.__dictoffset__ != 0
    is_plain = is_plain and not issubclass(class_, (tuple, list, dict))
    members = [
        vars(c)[name] for c in class_.__mro__ if c is not object for name in (*names, "__class__") if name in vars(c)
    ]
    return names if is_plain and not any(hasattr(type(member), "__set__") for member in members) else None


def _static_names(class_: Any) -> frozenset[str]:
    return _fields_of(class_)[1] if isinstance(class_, type) and dataclasses.is_dataclass(class_) else frozenset()


def _static(class_: type, name: str, value: Any) -> TreeDef:
    """The structure of a static field."""
    constant = _Constant(value)
    try:
        hash(constant)
    except TypeError:
        raise ArgumentError(
            f"the static field `{name}` of a {class_.__name__} holds a {type(value).__name__}, which has no hash",
            help="static fields hold numbers, strings, functions and tuples of them; use a tuple for a list",
        ) from None
    return TreeDef(_STATIC, (constant,))


def _rebuild_dataclass(cls: Any, fields: dict[str, Any]) -> Any:
    # __init__ may compute or refuse; a copy of the fields is what flatten took apart.
    result: Any = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(result, name, value)
    return result


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a pytree in order, and its structure."""
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves, is_leaf)
    except RecursionError:
        raise RecursionError(_ENDLESS) from None


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeDef:
    if tree is None:
        return TreeDef(_NONE)
    if is_leaf is None or not is_leaf(tree):
        items = _items(tree)
        if items is not None:
            return _container(tree, items, _children(items, lambda value: _flatten(value, leaves, is_leaf)))
    leaves.append(tree)
    return TreeDef(_LEAF)


def _container(tree: Any, items: tuple[Any, list[Any], list[Any]], children: Iterable[TreeDef]) -> TreeDef:
    kind, keys, _ = items
    inserted = tuple(tree) if kind is dict and keys != list(tree) else ()
    return TreeDef(kind, tuple(keys), tuple(children), inserted)


def _children(items: tuple[Any, list[Any], list[Any]], structure: Callable[[Any], TreeDef]) -> list[TreeDef]:
    """The structures of the items of a container; those of static fields are their values."""
    kind, keys, values = items
    static = _static_names(kind)
    if not static:
        return [structure(value) for value in values]
    return [_static(kind, k, value) if k in static else structure(value) for k, value in zip(keys, values)]


def _items(tree: Any) -> tuple[Any, list[Any], list[Any]] | None:
    kind: Any = tree.__class__  # not `type`: there are sequences that are lists to a user
    if kind in (tuple, list):
        return kind, list(range(len(tree))), list(tree)
    if kind in (dict, OrderedDict):
        keys = list(tree)
        if kind is dict:
            with suppress(TypeError):  # keys of several types do not compare: keep their order of insertion
                keys = sorted(keys)
        return kind, keys, [tree[key] for key in keys]
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return kind, list(kind._fields), list(tree)
    if kind is NumberList:
        return ListOf(tree.number), [0], [tree.array]
    if dataclasses.is_dataclass(kind):
        keys = _fields_of(tree.__class__)[0]
        return kind, keys, [getattr(tree, key) for key in keys]
    return None


class ObjectFlattener:
    """Flattens pytrees in which objects are containers of their attributes.

    `attributes` gives those of an object, or None where it is no container. Of attributes, and of what containers in
    them hold, leaves are those that `is_leaf` tells; all else is a part of the structure, as `constant` makes it, and
    so is an object without leaves, and one that `is_known` tells.
    """

    def __init__(
        self,
        attributes: Callable[[Any], Mapping[str, Any] | None],
        is_leaf: Callable[[Any], bool],
        constant: Callable[[Any], Any],
        is_known: Callable[[Any], bool] = lambda value: False,
    ) -> None:
        self.attributes, self.is_leaf, self.constant, self.is_known = attributes, is_leaf, constant, is_known
        self.leaves: list[Any] = []
        self._made: list[Any] = []
        self._known: dict[int, TreeDef] = {}

    def flatten(self, tree: Any, in_object: bool = False) -> TreeDef:
        """The structure of a pytree, whose leaves are appended to `leaves`; `in_object` if it belongs to an object."""
        if tree is None:
            return TreeDef(_NONE)
        if id(tree) in self._known:
            return self._known[id(tree)]
        if not self.is_leaf(tree):
            fields = self.attributes(tree)
            if fields is not None and self.is_known(tree):
                return TreeDef(_CONSTANT, (_Same(tree),))
            if fields is not None:
                return self._object(tree, fields)
            items = _items(tree)
            if items is not None:
                return _container(tree, items, _children(items, lambda value: self.flatten(value, in_object)))
            if in_object:
                return TreeDef(_CONSTANT, (_Same(self.constant(tree)),))
        self.leaves.append(tree)
        return TreeDef(_LEAF)

    def _object(self, one: Any, fields: Mapping[str, Any]) -> TreeDef:
        leaves, number = len(self.leaves), len(self._made)
        self._made.append(one)
        self._known[id(one)] = TreeDef(_AGAIN, (number,))
        items = type(one), list(fields), list(fields.values())
        children = tuple(_children(items, lambda value: self.flatten(value, True)))
        if len(self.leaves) > leaves:
            return TreeDef(_Class(type(one)), tuple(fields), children)
        for other in self._made[number:]:
            self._known[id(other)] = TreeDef(_CONSTANT, (_Same(other),))
        del self._made[number:]
        return self._known[id(one)]


class Filling:
    """Puts leaves into a pytree that `ObjectFlattener` has flattened: objects are updated, containers are rebuilt.

    In objects lists and dicts get them too. `undo` puts back what was there and has not been replaced since.
    """

    def __init__(self, leaves: Iterable[Any]) -> None:
        self._leaves = iter(leaves)
        self._puts: list[tuple[Any, Any, Any, Any]] = []

    def fill(self, value: Any, tree: TreeDef, in_object: bool = False) -> Any:
        """The pytree with its new leaves."""
        if tree.kind == _LEAF:
            return next(self._leaves)
        if isinstance(tree.kind, _Class):
            for name, child in zip(tree.keys, tree.children):
                held = vars(value) if name in getattr(value, "__dict__", ()) else value
                self._put(held, name, child)
            return value
        if not tree.children:
            return value
        if in_object and tree.kind in (list, dict, OrderedDict):
            for key, child in zip(tree.keys, tree.children):
                self._put(value, key, child)
            return value
        values = [self.fill(old, child, in_object) for old, child in zip(_items(value)[2], tree.children)]  # type: ignore
        one = TreeDef(tree.kind, tree.keys, (TreeDef(_LEAF),) * len(values), tree.inserted)
        return one.unflatten(values)

    def _put(self, holder: Any, key: Any, child: TreeDef) -> None:
        old = _held(holder, key)
        new = self.fill(old, child, True)
        if new is not old:
            self._puts.append((holder, key, old, new))
            _hold(holder, key, new)

    def undo(self) -> None:
        """Put the old leaves back."""
        for holder, key, old, new in reversed(self._puts):
            if _held(holder, key) is new:
                _hold(holder, key, old)


def _held(holder: Any, key: Any) -> Any:
    return holder[key] if isinstance(holder, (list, dict)) else getattr(holder, key)


def _hold(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, (list, dict)):
        holder[key] = value
    else:
        object.__setattr__(holder, key, value)


def store_leaves(tree: Any, values: Mapping[int, Any]) -> None:
    """Put new leaves, by their numbers, into the lists, dicts and dataclasses of a pytree, also within new tuples."""
    _stored(tree, itertools.count(), values)


def _stored(tree: Any, numbers: Iterator[int], values: Mapping[int, Any]) -> Any:
    """The pytree with the new leaves: the same object, or another tuple."""
    items = _items(tree)
    if items is None:
        return None if tree is None else values.get(next(numbers), tree)
    kind, keys, old = items
    static = _static_names(kind)
    new = [x if key in static else _stored(x, numbers, values) for key, x in zip(keys, old)]
    changed = [(key, x) for key, x, before in zip(keys, new, old) if x is not before]
    if changed and isinstance(tree, tuple):
        return tuple(new) if kind is tuple else kind._make(new)
    for key, value in changed:
        if dataclasses.is_dataclass(tree):
            object.__setattr__(tree, key, value)
        else:
            tree[key] = value
    return tree


def shared_container(tree: Any, changed: Iterable[int]) -> Any:
    """A list, dict or dataclass that a pytree holds twice and that has one of the leaves `changed`; else None."""
    spans: dict[int, list[tuple[Any, int, int]]] = {}
    _find_spans(tree, 0, spans)
    for found in spans.values():
        if len(found) > 1 and any(first <= leaf < end for _, first, end in found for leaf in changed):
            return found[0][0]
    return None


def is_held_twice(tree: Any, container: Any) -> bool:
    """True if a pytree holds a list, dict or dataclass in two of its containers."""
    spans: dict[int, list[tuple[Any, int, int]]] = {}
    _find_spans(tree, 0, spans)
    return len(spans[id(container)]) > 1


def _find_spans(tree: Any, start: int, spans: dict[int, list[tuple[Any, int, int]]]) -> int:
    """Note for each mutable container its first leaf and the one after its last; the number of the next leaf."""
    items = _items(tree)
    if items is None:
        return start + (tree is not None)
    kind, keys, values = items
    static, end = _static_names(kind), start
    for key, value in zip(keys, values):
        end = _find_spans(value, end, spans) if key not in static else end
    if not isinstance(tree, tuple):
        spans.setdefault(id(tree), []).append((tree, start, end))
    return end


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `function` to the leaves of one or several pytrees of the same structure."""
    leaves, treedef = flatten(tree)
    rest = []
    for other in others:
        more, same = flatten(other)
        if same != treedef:
            raise ValueError("the trees differ in structure")
        rest.append(more)
    return treedef.unflatten([function(*group) for group in zip(leaves, *rest)])
