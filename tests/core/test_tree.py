"""Pytrees: taken apart into leaves and put together again, equal structures equal, errors where they do not fit."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirml.core.tree import flatten, map_leaves, store_leaves

Pair = namedtuple("Pair", "first second")


class Careful(Pair):
    """A named tuple with a constructor of its own."""

    def __new__(cls, both: tuple[Any, Any]) -> Careful:
        return super().__new__(cls, *both)


@dataclass
class Point:
    x: Any
    y: Any = None


@dataclass(frozen=True)
class Frozen:
    value: Any
    twice: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", (self.value, self.value))


@dataclass
class Slotted:
    __slots__ = ("a",)
    a: Any


TREES: list[tuple[Any, list[Any], list[str]]] = [
    (5, [5], ["t"]),
    (None, [], []),
    ((1, [2, (3,)]), [1, 2, 3], ["t[0]", "t[1][0]", "t[1][1][0]"]),
    ({"b": 1, "a": 2}, [2, 1], ["t['a']", "t['b']"]),
    ({2: 1, 1: 2}, [2, 1], ["t[1]", "t[2]"]),
    ({"b": 1, 1: 2}, [1, 2], ["t['b']", "t[1]"]),
    (OrderedDict(b=1, a=2), [1, 2], ["t['b']", "t['a']"]),
    (Pair(1, Pair(2, None)), [1, 2], ["t.first", "t.second.first"]),
    (Careful((1, 2)), [1, 2], ["t.first", "t.second"]),
    (Point(1, {"z": 2}), [1, 2], ["t.x", "t.y['z']"]),
    (Frozen(1), [1, 1, 1], ["t.value", "t.twice[0]", "t.twice[1]"]),
    (Slotted(3), [3], ["t.a"]),
    ("text", ["text"], ["t"]),
    ({1, 2}, [{1, 2}], ["t"]),
    ([(), {}, [], None], [], []),
]


@pytest.mark.parametrize(("tree", "leaves", "paths"), TREES, ids=[repr(t[0]) for t in TREES])
def test_flatten_and_unflatten(tree: Any, leaves: list[Any], paths: list[str]) -> None:
    found, structure = flatten(tree)
    assert found == leaves
    assert structure.leaf_count() == len(leaves)
    assert structure.paths("t") == paths
    assert [eval(path, {"t": tree}) for path in paths] == leaves
    again = structure.unflatten(found)
    if not isinstance(tree, Slotted):
        assert again == tree
    assert type(again) is type(tree)
    assert flatten(again)[1] == structure
    assert hash(flatten(again)[1]) == hash(structure)


def test_other_containers_are_leaves() -> None:
    odd = defaultdict(int, a=1)
    assert flatten([odd])[0] == [odd]


def test_structures_differ_by_kind_keys_and_depth() -> None:
    trees = [
        1, None, (1,), [1], (1, 2), {"a": 1}, {"b": 1}, OrderedDict(a=1), Pair(1, 2), Point(1, 2), ((1,), 2), (1, (2,)),
        {"a": None}, (None,), {1: 1},
    ]  # fmt: skip
    structures = [flatten(tree)[1] for tree in trees]
    assert len(set(structures)) == len(trees)


def test_the_order_of_a_dict_does_not_matter_that_of_an_ordered_dict_does() -> None:
    assert flatten({"a": 1, "b": 2}) == flatten({"b": 2, "a": 1})
    assert flatten(OrderedDict(a=1, b=2))[1] != flatten(OrderedDict(b=2, a=1))[1]


def test_keys_that_do_not_sort_keep_their_order() -> None:
    tree = {"b": 1, 3: 2, "a": 3, 1: 4}
    assert flatten(tree)[0] == [1, 2, 3, 4]


def test_is_leaf_stops_the_walk() -> None:
    leaves, structure = flatten([(1, 2), {"a": (3, 4)}], is_leaf=lambda t: isinstance(t, tuple))
    assert leaves == [(1, 2), (3, 4)]
    assert structure.unflatten(["x", "y"]) == ["x", {"a": "y"}]


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_leaves_is_an_error(leaves: list[int]) -> None:
    with pytest.raises(ValueError, match="leaves than the structure takes"):
        flatten((1, 2))[1].unflatten(leaves)


def test_nested_numbers_plain_containers_only() -> None:
    structure = flatten((1, {"a": [2, None]}))[1]
    assert structure.nested(iter(range(2))) == (0, {"a": [1, None]})
    with pytest.raises(ValueError, match="Pair is no plain container"):
        flatten(Pair(1, 2))[1].nested(iter(range(2)))


def test_map_leaves() -> None:
    assert map_leaves(lambda x: x + 1, {"a": (1, 2), "b": None}) == {"a": (2, 3), "b": None}
    assert map_leaves(lambda x, y, z: x + y * z, [1, (2,)], [10, (20,)], [2, (3,)]) == [21, (62,)]
    with pytest.raises(ValueError, match="differ in structure"):
        map_leaves(lambda x, y: x, [1, 2], (1, 2))


def test_store_leaves() -> None:
    tree = [1, {"b": 2, "a": [3, (4,)]}, Point(5, None), None]
    store_leaves(tree, {0: "0", 1: "1", 3: "3", 4: "4"})
    assert tree == ["0", {"b": "3", "a": ["1", (4,)]}, Point("4", None), None]


_TREES = st.recursive(
    st.none() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@given(_TREES)
def test_any_tree_comes_back(tree: Any) -> None:
    leaves, structure = flatten(tree)
    assert structure.unflatten(leaves) == tree
    assert len(structure.paths("t")) == len(leaves) == structure.leaf_count()
    assert [eval(path, {"t": tree}) for path in structure.paths("t")] == leaves


def test_a_container_that_holds_itself_is_an_error() -> None:
    items: list[Any] = [1.0]
    items.append(items)
    entries: dict[str, Any] = {}
    entries["self"] = entries
    for tree in (items, entries, (items,)):
        with pytest.raises(RecursionError, match="a container holds itself"):
            flatten(tree)
