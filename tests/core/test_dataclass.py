"""`mlirml.core.dataclass` behaves as `dataclasses.dataclass`: every test makes its classes with both."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

import mlirml.core.dataclass

DECORATORS = {"ours": mlirml.core.dataclass.dataclass, "library": dataclasses.dataclass}
both = pytest.mark.parametrize("dataclass", DECORATORS.values(), ids=DECORATORS)


@mlirml.core.dataclass.dataclass(frozen=True)
class Point:
    """At the top level, where pickle finds it."""

    x: int
    tags: tuple[str, ...] = ()


def make(dataclass: Callable[..., Any], frozen: bool = True, eq: bool = True) -> Any:
    @dataclass(frozen=frozen, eq=eq)
    class Node:
        name: str
        size: int = 4
        items: list[int] = field(default_factory=list, compare=False)
        note: str = field(default="-", repr=False, kw_only=True)
        kinds: ClassVar[int] = 3

    return Node


@both
def test_arguments_by_position_name_and_default(dataclass: Callable[..., Any]) -> None:
    Node = make(dataclass)
    assert vars(Node("a")) == {"name": "a", "size": 4, "items": [], "note": "-"}
    assert vars(Node("a", 5, [1], note="n")) == {"name": "a", "size": 5, "items": [1], "note": "n"}
    assert vars(Node(size=5, name="a")) == {"name": "a", "size": 5, "items": [], "note": "-"}
    assert Node("a").items is not Node("a").items
    assert (Node.size, Node.kinds) == (4, 3)
    assert Node.__match_args__ == ("name", "size", "items")


@both
@pytest.mark.parametrize(
    "args, kwargs",
    [((), {}), (("a", 1, [], "n"), {}), (("a",), {"name": "b"}), (("a",), {"other": 1}), (("a",), {"kinds": 1})],
)
def test_wrong_arguments_are_refused(dataclass: Callable[..., Any], args: Any, kwargs: Any) -> None:
    with pytest.raises(TypeError):
        make(dataclass)(*args, **kwargs)


@both
def test_equality_and_hash_are_of_the_compared_fields(dataclass: Callable[..., Any]) -> None:
    Node = make(dataclass)
    assert Node("a", items=[1]) == Node("a", items=[2]) and Node("a") != Node("b")
    assert hash(Node("a", items=[1])) == hash(Node("a")) == hash(("a", 4, "-"))
    assert Node("a") != make(dataclass)("a"), "another class"
    assert make(dataclass, frozen=False).__hash__ is None
    Identity = make(dataclass, eq=False)
    assert Identity("a") != Identity("a") and len({Identity("a"), Identity("a")}) == 2


@both
def test_the_text_names_the_fields(dataclass: Callable[..., Any]) -> None:
    assert repr(make(dataclass)("a")).endswith("make.<locals>.Node(name='a', size=4, items=[])")


@both
def test_frozen_objects_cannot_be_changed(dataclass: Callable[..., Any]) -> None:
    node = make(dataclass)("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        node.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del node.name
    free = make(dataclass, frozen=False)("a")
    free.name = "b"
    assert free.name == "b"


@both
def test_own_methods_and_post_init_stay(dataclass: Callable[..., Any]) -> None:
    @dataclass(frozen=True)
    class Even:
        number: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "number", self.number - self.number % 2)

        def __repr__(self) -> str:
            return "even"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (Even(5).number, repr(Even(5)), Even(4) == Even(2), hash(Even(4))) == (4, "even", True, 7)


@both
def test_fields_of_base_classes_come_first(dataclass: Callable[..., Any]) -> None:
    Node = make(dataclass)

    @dataclass(frozen=True)
    class Leaf(Node):  # type: ignore[misc, valid-type]
        depth: int = 0
        size: int = 9

    assert vars(Leaf("a", 1, [2], 3)) == {"name": "a", "size": 1, "items": [2], "note": "-", "depth": 3}
    assert Leaf("a").size == 9 and Leaf("a") != Node("a")


@both
def test_the_functions_of_the_library_take_them(dataclass: Callable[..., Any]) -> None:
    Node = make(dataclass)
    assert [f.name for f in dataclasses.fields(Node)] == ["name", "size", "items", "note"]
    assert dataclasses.replace(Node("a", items=[1]), size=2) == Node("a", 2)
    assert dataclasses.asdict(Node("a")) == {"name": "a", "size": 4, "items": [], "note": "-"}
    assert dataclasses.is_dataclass(Node("a"))
    assert copy.deepcopy(Node("a", items=[1])).items == [1]


@pytest.mark.parametrize("replace", [mlirml.core.dataclass.replace, dataclasses.replace], ids=["ours", "library"])
def test_copies_with_other_fields(replace: Callable[..., Any]) -> None:
    Node = make(mlirml.core.dataclass.dataclass)
    assert vars(replace(Node("a", items=[1], note="n"), size=2)) == {"name": "a", "size": 2, "items": [1], "note": "n"}
    assert replace(Node("a"), note="m").note == "m"
    with pytest.raises(TypeError):
        replace(Node("a"), other=1)

    @mlirml.core.dataclass.dataclass(frozen=True)
    class Square:
        side: int
        area: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "area", self.side**2)

    assert replace(Square(2), side=3).area == 9


@both
def test_fields_that_make_no_sense_are_refused(dataclass: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"mutable default .* use default_factory"):

        @dataclass
        class Shared:
            items: list[int] = []  # noqa: RUF012

    with pytest.raises(TypeError, match="default"):

        @dataclass
        class Backwards:
            size: int = 4
            name: str


@both
def test_defaults_are_attributes_of_the_class_and_factories_are_not(dataclass: Callable[..., Any]) -> None:
    Node = make(dataclass)
    assert Node.note == "-" and not hasattr(Node, "items") and not hasattr(Node, "name")
    assert [f.type for f in dataclasses.fields(Node)] == ["str", "int", "list[int]", "str"]
    assert [f.kw_only for f in dataclasses.fields(Node)] == [False, False, False, True]


def test_a_class_without_docstring_gets_none() -> None:
    assert make(mlirml.core.dataclass.dataclass).__doc__ is None
    assert Point.__doc__ == "At the top level, where pickle finds it."


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(Point(1, ("a",)))) == Point(1, ("a",))
