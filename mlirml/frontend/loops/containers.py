"""Lists, dicts, sets and objects that a loop or branch changes: their contents are part of its state.

    for i in range(len(x)):         an scf.for that carries `counts["low"]`, the element of the dict, as it carries a
        if x[i] < 0:                variable
            counts["low"] += 1

The contents of containers are saved before each loop and branch, and restored before it is retraced and before its
second branch. An element that differs afterwards becomes a variable of the loop or branch.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mlirml.core.dataclass import dataclass
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.list_parts import Rows
from mlirml.frontend.positions import position
from mlirml.frontend.user_objects import is_library_class

_MOST = 4096  # limit of inspected containers: a program with more refers to objects that are not part of its state
_CONSTANTS = frozenset([bool, int, float, complex, str, bytes, type(None)])


@dataclass(frozen=True)
class Element:
    """An element of a container, as the user writes it."""

    kept: SavedContainer
    key: Any
    path: str

    def get(self, missing: Any) -> Any:
        """The current value."""
        return self.kept.items().get(self.key, missing)

    def set(self, value: Any) -> None:
        """Assign a value."""
        self.kept.put(self.key, value)

    def remove(self) -> None:
        """Delete the element, if it did not exist before the loop or branch."""
        if self.key not in self.kept.before:
            self.kept.remove(self.key)

    @property
    def name(self) -> tuple[int, Any]:
        """A key that is the same in all attempts."""
        return id(self.kept.holder), self.key


class SavedContainer:
    """A container, with its saved contents."""

    def __init__(self, holder: Any, path: str) -> None:
        self.holder, self.path = holder, path
        self.before = self.items()

    def items(self) -> dict[Any, Any]:
        """The current contents, by index, key or attribute; an element of a set is its own key."""
        raise NotImplementedError

    def put(self, key: Any, value: Any) -> None:
        """Store an element."""
        raise NotImplementedError

    def remove(self, key: Any) -> None:
        """Delete an element."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restore the saved contents."""
        raise NotImplementedError

    def at(self, key: Any) -> str:
        """The user's expression for an element."""
        return f"{self.path}[{key!r}]"

    def is_same(self) -> bool:
        """True if nothing has changed."""
        now = self.items()
        return (
            len(now) == len(self.before)
            and all(map(operator.is_, now.values(), self.before.values()))
            and all(map(_is_key, now, self.before))
        )

    def keys(self) -> tuple[Any, ...]:
        """The keys, which distinguish structures."""
        return tuple(self.items())


class _List(SavedContainer):
    def items(self) -> dict[Any, Any]:
        return dict(enumerate(self.holder))

    def put(self, key: Any, value: Any) -> None:
        if key == len(self.holder):
            self.holder.append(value)
        else:
            self.holder[key] = value

    def remove(self, key: Any) -> None:
        del self.holder[key:]

    def restore(self) -> None:
        if isinstance(self.holder, deque):
            self.holder.clear()
            self.holder.extend(self.before.values())
        else:
            self.holder[:] = self.before.values()


class Growing(SavedContainer):
    """A list that loops may append to. `grows` is set if this loop does, with the items stored into rows."""

    grows = False

    def __init__(self, holder: GrowingList, path: str) -> None:
        super().__init__(holder, path)
        self.counted = holder.counted

    @property
    def open_rows(self) -> Rows | None:
        """The saved rows, if a loop appends to them."""
        first = next(iter(self.before.values()), None)
        return first if isinstance(first, Rows) and first.writer is not None else None

    def items(self) -> dict[Any, Any]:
        parts = enumerate(self.holder.parts)
        return {_key_of(number, part): part for number, part in parts}

    def put(self, key: Any, value: Any) -> None:
        number = key[0] if isinstance(key, tuple) else key
        self.holder.parts[number : number + 1] = [value]

    def remove(self, key: Any) -> None:
        del self.holder.parts[key[0] if isinstance(key, tuple) else key :]

    def restore(self) -> None:
        self.holder.parts = list(self.before.values())


class _Dict(SavedContainer):
    def items(self) -> dict[Any, Any]:
        return dict(self.holder)

    def put(self, key: Any, value: Any) -> None:
        self.holder[key] = value

    def remove(self, key: Any) -> None:
        self.holder.pop(key, None)

    def restore(self) -> None:
        self.holder.clear()
        self.holder.update(self.before)


class _Set(SavedContainer):
    def items(self) -> dict[Any, Any]:
        return {item: item for item in self.holder}

    def put(self, key: Any, value: Any) -> None:
        self.holder.add(value)

    def remove(self, key: Any) -> None:
        self.holder.discard(key)

    def restore(self) -> None:
        self.holder.clear()
        self.holder.update(self.before)


class _Object(SavedContainer):
    def items(self) -> dict[Any, Any]:
        slots = {n: getattr(self.holder, n) for n in _slots(type(self.holder)) if hasattr(self.holder, n)}
        return {**slots, **getattr(self.holder, "__dict__", {})}

    def put(self, key: Any, value: Any) -> None:
        if key in _slots(type(self.holder)):
            object.__setattr__(self.holder, key, value)
        else:
            self.holder.__dict__[key] = value

    def remove(self, key: Any) -> None:
        if key in _slots(type(self.holder)):
            object.__delattr__(self.holder, key)
        else:
            self.holder.__dict__.pop(key, None)

    def restore(self) -> None:
        for key in [k for k in self.items() if k not in self.before]:
            self.remove(key)
        for key, value in self.before.items():
            self.put(key, value)

    def at(self, key: Any) -> str:
        return f"{self.path}.{key}"


class Snapshot:
    """The containers that variables reach, with their contents when this was made."""

    def __init__(self, variables: Iterable[tuple[str, Any]]) -> None:
        self._kept: dict[int, SavedContainer] = {}
        self._iterators: list[tuple[str, Iterator[Any], Any]] = []
        queue = list(variables)
        seen: set[int] = set()
        for path, value in queue:
            if type(value) in _CONSTANTS or id(value) in seen or len(self._kept) >= _MOST:
                continue
            seen.add(id(value))
            made = _made(value, path)
            if made is None:
                if isinstance(value, Iterator):
                    self._iterators.append((path, value, position(value)))
                queue += _immutable_contents(value, path)
                continue
            self._kept[id(value)] = made
            if not _CONSTANTS.issuperset(map(type, made.before.values())):
                queue += [(made.at(key), item) for key, item in made.before.items() if type(item) not in _CONSTANTS]

    def moved(self) -> list[tuple[str, Iterator[Any]]]:
        """The iterators of which items were taken, with the user's expressions for them."""
        return [(path, one) for path, one, before in self._iterators if position(one) != before]

    def restore(self) -> bool:
        """Restore the contents of all containers; True if one of them had changed."""
        changed = [kept for kept in self._kept.values() if not kept.is_same()]
        for kept in changed:
            kept.restore()
        return bool(changed)

    def is_same(self) -> bool:
        """True if no container has changed."""
        return all(kept.is_same() for kept in self._kept.values())

    @property
    def kept(self) -> list[SavedContainer]:
        """The containers."""
        return [*self._kept.values()]

    def growing(self) -> list[Growing]:
        """The lists that loops may append to."""
        return [kept for kept in self._kept.values() if isinstance(kept, Growing)]

    def elements(self) -> list[Element]:
        """The elements that have changed, and new ones."""
        found = []
        for kept in self._changed():
            if isinstance(kept, _Set):
                continue
            for key, item in kept.items().items():
                if not _is_same(item, kept.before.get(key, kept)):
                    found.append(Element(kept, key, kept.at(key)))
        return found

    def structures(self) -> dict[int, tuple[Any, ...]]:
        """The keys of the containers whose keys have changed."""
        return {id(k.holder): k.keys() for k in self._changed() if k.keys() != tuple(k.before)}

    def described(self, holder: int) -> tuple[str, tuple[Any, ...]]:
        """The user's expression for a container, and its saved keys."""
        kept = self._kept[holder]
        return kept.path, tuple(kept.before)

    def sites(self, holder: int) -> frozenset[str]:
        """The expression that creates a list, if there could be room in it for any number of items."""
        found = self._kept[holder].holder
        return found.sites() if type(found) is GrowingList else frozenset()

    def changed_sites(self) -> frozenset[str]:
        """Those of the lists that have changed."""
        return frozenset().union(*(self.sites(id(kept.holder)) for kept in self._changed()))

    def has_changed(self, value: Any) -> bool:
        """True if a list or dict in a value has changed."""
        return any(id(one) in self._kept and not self._kept[id(one)].is_same() for one in _mutable(value))

    def known(self, elements: Iterable[Element]) -> list[Element]:
        """The elements of an earlier attempt that still exist."""
        found = []
        for element in elements:
            kept = self._kept.get(id(element.kept.holder))
            if kept is not None and kept.holder is element.kept.holder and element.key in kept.before:
                found.append(Element(kept, element.key, kept.at(element.key)))
        return found

    def _changed(self) -> list[SavedContainer]:
        return [k for k in self._kept.values() if not (isinstance(k, Growing) and k.grows) and not k.is_same()]


def with_other_name(value: Any, other: Any, variables: Iterable[tuple[str, Any]]) -> bool:
    """True if a list or dict in a value, which is another one in `other`, has a second name among variables.

    The result of a loop or branch is a new container, and a store into it would not reach the first.
    """
    found = [one for one in _mutable(value) if all(one is not same for same in _mutable(other))]
    if not found:
        return False
    named = [*variables]
    references = [item for _, item in named]
    for kept in Snapshot(named).kept:
        references += kept.items().values()
    while more := [item for one in references if type(one) is tuple for item in one]:
        references = [one for one in references if type(one) is not tuple] + more
    return any(sum(item is one for item in references) > 1 for one in found)


def is_flat_list(value: Any) -> bool:
    """True if something is a list of numbers and arrays."""
    if type(value) is GrowingList:
        return not value.has_rows and not any(map(_mutable, value.parts))
    return type(value) is list and not any(map(_mutable, value))


def _mutable(value: Any) -> list[Any]:
    """The lists and dicts in a value, except for lists that are arrays."""
    if type(value) is GrowingList:
        return [] if value.has_rows else [value, *(x for item in value.parts for x in _mutable(item))]
    if isinstance(value, tuple):
        return [x for item in value for x in _mutable(item)]
    if isinstance(value, (list, dict)):
        items = value.values() if isinstance(value, dict) else value
        return [value, *(x for item in items for x in _mutable(item))]
    return []


def _key_of(number: int, part: Any) -> Any:
    """The key of a part of a list, which tells rows of other lengths apart."""
    return (number, part.appended, part.capacity) if isinstance(part, Rows) else number


def _is_key(one: Any, other: Any) -> bool:
    return one is other or bool(one == other)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and type(one) in _CONSTANTS and repr(one) == repr(other))


def _made(value: Any, path: str) -> SavedContainer | None:
    if type(value) is GrowingList:
        return Growing(value, path)
    types_: list[tuple[Any, Callable[[Any, str], SavedContainer]]] = [
        ((list, deque), _List),
        (dict, _Dict),
        (set, _Set),
    ]
    for type_, made in types_:
        if isinstance(value, type_):
            return made(value, path)
    if isinstance(value, types.SimpleNamespace):
        return _Object(value, path)
    if isinstance(value, (types.FunctionType, types.ModuleType, type, tuple, Mapping)):
        return None
    cls = type(value)
    if is_library_class(cls) or not (hasattr(value, "__dict__") or _slots(cls)):
        return None
    return _Object(value, path)


def _slots(cls: type) -> tuple[str, ...]:
    """The attributes that objects of a class keep in slots."""
    return tuple(
        name
        for one in cls.__mro__
        if "__slots__" in vars(one)
        for name, member in vars(one).items()
        if isinstance(member, types.MemberDescriptorType)
    )


def _immutable_contents(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values reachable through an immutable object: items of tuples, free variables of functions and the like."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        for number, item in enumerate(value):
            yield (f"{path}[{number}]" if names is None else f"{path}.{names[number]}"), item
    elif isinstance(value, types.MethodType):
        yield path, value.__func__
        yield f"{path}.__self__", value.__self__
    elif isinstance(value, (types.BuiltinMethodType, types.MethodWrapperType)):
        yield f"{path}.__self__", value.__self__  # of a list, dict or set, such as `items.append`
    elif isinstance(value, functools.partial):
        for item in (value.func, *value.args, *value.keywords.values()):
            yield path, item
    elif isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                yield name, cell.cell_contents
            except ValueError:  # no value yet
                continue
