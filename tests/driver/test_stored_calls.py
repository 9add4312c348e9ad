"""Calls that store into lists, dicts, objects and state: the results of Python, and no look at them in Python."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlirml as ml
from tests.driver.frames import frames_of


@dataclasses.dataclass
class Body:
    x: float
    v: Any
    hits: int = 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any


def into_dict(d: Any, k: Any) -> Any:
    d["x"] = d["x"] * k
    return d["x"] + 1


def into_list(items: Any, k: Any) -> Any:
    items[0], items[2] = items[2] + k, items[0]


def into_nested(tree: Any, k: Any) -> Any:
    tree[1]["a"][0] = tree[0] * k
    tree[1]["b"] = tree[1]["b"] + tree[2][1]


def into_object(body: Any, dt: Any) -> Any:
    body.x += body.v[0] * dt
    body.v = body.v * 0.5
    body.hits += 1
    return body.x


def into_list_of_objects(bodies: Any, dt: Any) -> Any:
    for body in bodies:
        body.x += body.v[0] * dt
    return bodies[0].x - bodies[1].x


def into_frozen(held: Any, k: Any) -> Any:
    held.x[0] = held.x[0] + k


def into_tuple(body: Any, k: Any) -> Any:
    body.v = body.v[1], body.v[0] + k


class Mass(NamedTuple):
    x: Any
    m: Any


def of_named_tuples(masses: Any, d: Any) -> Any:
    d["x"] = d["x"] + masses[0].x
    return sum([mass.x * mass.m for mass in masses])


def into_named(k: Any, *, d: Any, items: Any) -> Any:
    d["x"] = items[0] + k
    items[1] = d["y"]


CALLS: dict[Callable[..., Any], Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    into_dict: lambda: (({"x": 1.5, "y": np.ones(2)}, 3.0), {}),
    into_list: lambda: (([1, 2, 3], 4), {}),
    into_nested: lambda: (([2.0, {"b": np.ones(3), "a": [0.0, 1.0]}, (1.0, np.arange(3.0))], 2.0), {}),
    into_object: lambda: ((Body(1.0, np.arange(1.0, 3.0)), 0.5), {}),
    into_list_of_objects: lambda: (([Body(1.0, np.ones(1)), Body(2.0, np.ones(1) * 3)], 0.5), {}),
    into_frozen: lambda: ((Frozen([1.0, 2.0]), 2.0), {}),
    into_tuple: lambda: ((Body(1.0, (2.0, 3.0)), 0.5), {}),
    of_named_tuples: lambda: (([Mass(1.0, 2.0), Mass(np.ones(3), 3.0)], {"x": 1.0, "y": Mass(1, 2)}), {}),
    into_named: lambda: ((2.0,), {"items": [1.0, 2.0], "d": {"x": 0.0, "y": 7.0}}),
}


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = [*found.values()], [*expected.values()]
    elif dataclasses.is_dataclass(expected):
        found, expected = [*vars(found).values()], [*vars(expected).values()]
    if not isinstance(expected, (list, tuple)):
        np.testing.assert_array_equal(found, expected)
        return
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert_same(one, other)


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_items_are_those_of_python(function: Callable[..., Any]) -> None:
    compiled = ml.compile(function)
    (args, kwargs), (given, named) = CALLS[function](), CALLS[function]()
    for _ in range(4):
        expected = function(*args, **kwargs)
        result, frames = frames_of(lambda: compiled(*given, **named))
        np.testing.assert_array_equal(result, expected)
        assert_same((given, named), (args, kwargs))
    assert function is into_tuple or frames == ["<lambda>"]


@pytest.mark.parametrize("value", [3, 2.5, 1j, True, np.float32(1.5), np.int16(4), np.array(2.0), np.ones(3)])
def test_items_keep_their_types(value: Any) -> None:
    def store(items: Any, d: Any) -> Any:
        items[0], d["a"] = items[1], items[0]

    compiled = ml.compile(store)
    for _ in range(3):
        items, d = [value * 0 if value is not True else False, value], {"a": value}
        wanted, other = copy.deepcopy(items), copy.deepcopy(d)
        store(wanted, other)
        compiled(items, d)
        assert [type(x) for x in items] == [type(x) for x in wanted] and type(d["a"]) is type(other["a"])
        np.testing.assert_array_equal(items[0], wanted[0])
        np.testing.assert_array_equal(d["a"], other["a"])


def test_a_list_that_is_passed_twice_is_refused_at_each_call() -> None:
    def store(a: Any, b: Any) -> Any:
        a[0] = b[0] + 1

    compiled = ml.compile(store)
    compiled([1.0], [2.0])
    compiled([1.0], [2.0])
    items = [1.0]
    with pytest.raises(ml.ArgumentError, match="one list is passed twice"):
        compiled(items, items)
    assert items == [1.0]


def test_inner_lists_that_are_one_list_are_refused() -> None:
    def store(rows: Any) -> Any:
        rows[0][0] = rows[1][0] + 1

    compiled = ml.compile(store)
    for _ in range(2):
        rows = [[1.0], [2.0]]
        compiled(rows)
        assert rows == [[3.0], [2.0]]
    row = [1.0]
    with pytest.raises(ml.ArgumentError, match="one list is passed twice"):
        compiled([row, row])


def test_a_value_whose_end_runs_python_code_finds_whole_containers() -> None:
    d: dict[str, Any] = {}
    seen: list[Any] = []

    class Memory:
        def __init__(self) -> None:
            self.array = np.ones(2)
            self.__array_interface__ = self.array.__array_interface__

        def __del__(self) -> None:
            seen.append(d.pop("z", None))

    def store(d: Any) -> Any:
        d["x"] = d["x"] * 2
        d["y"] = d["y"] + d["z"]

    compiled = ml.compile(store)
    for i in range(3):
        d |= {"x": np.asarray(Memory()), "y": 1.0, "z": 2.0 + i}
        compiled(d)
        np.testing.assert_array_equal(d["x"], [2, 2])
        assert d["y"] == 3.0 + i
    assert seen[-1] == 4.0


def test_named_tuples_of_two_classes_are_of_two_programs() -> None:
    class Other(NamedTuple):
        m: Any
        x: Any

    compiled = ml.compile(lambda mass: mass.x - mass.m)
    for _ in range(3):
        assert compiled(Mass(5.0, 2.0)) == 3.0 and compiled(Other(5.0, 2.0)) == -3.0
    assert compiled.entries == 2


class Model:
    def __init__(self) -> None:
        self.w, self.n, self.pair, self.last = np.ones(3), 0, (1.0, 2.0), None

    def step(self, x: Any, scale: Any = 1.0) -> Any:
        self.w = self.w * 0.5 + x * scale
        self.n += 1
        self.pair = self.pair[1], self.pair[0] + self.n
        return self.w.sum()

    def in_place(self, x: Any) -> Any:
        self.w[0] += x
        self.n = self.n + 2
        return self.w * self.n


def state_of(model: Any) -> Any:
    return model.w.copy(), model.n, model.pair


@pytest.mark.parametrize("name", ["step", "in_place"])
def test_state_is_that_of_python(name: str) -> None:
    model, other = Model(), Model()
    compiled, plain = ml.compile(getattr(model, name)), getattr(other, name)
    for i in range(6):
        result, frames = frames_of(lambda i=i: compiled(float(i)))
        np.testing.assert_allclose(result, plain(float(i)))
        assert_same(state_of(model), state_of(other))
    assert "_prepared" not in frames and len(frames) < 60, frames


def test_state_that_is_set_outside_is_read_at_each_call() -> None:
    model, other = Model(), Model()
    compiled = ml.compile(model.step)
    values: list[Any] = [np.arange(3.0), np.arange(3), np.float32([1, 2, 3]), np.arange(4.0), np.arange(3.0)]
    for w in values * 2:
        for one in (model, other):
            one.w, one.pair = w.copy(), (3.0, 4)
        for x in (1.0, 2, 1.5):
            np.testing.assert_allclose(compiled(x), other.step(x))
            assert_same(state_of(model), state_of(other))


def test_named_arguments_in_any_order_with_state() -> None:
    model, other = Model(), Model()
    compiled = ml.compile(model.step)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x=1.0, scale=2.0), other.step(x=1.0, scale=2.0))
        np.testing.assert_allclose(compiled(scale=3.0, x=1.0), other.step(scale=3.0, x=1.0))
        assert_same(state_of(model), state_of(other))


def test_a_failed_call_leaves_the_state() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n, self.values = 0, np.arange(3.0)

        def take(self, i: Any) -> Any:
            self.n += 1
            return self.values[i]

    counter = Counter()
    compiled = ml.compile(counter.take)
    for i in range(3):
        assert compiled(i) == i
    for _ in range(2):
        with pytest.raises(IndexError):
            compiled(5)
    assert counter.n == 3
    assert compiled(1) == 1 and counter.n == 4


def test_state_of_a_closure_and_of_two_objects() -> None:
    total = [0.0, 0.0]

    def add(x: Any) -> Any:
        total[1] = total[1] + x
        return total[1] * 2

    compiled = ml.compile(add)
    for i in range(4):
        assert compiled(1.5) == 3.0 * (i + 1)
    assert total == [0.0, 6.0]

    def move(body: Any, dt: Any) -> Any:
        body.n = body.n + dt
        return body.n

    first, second = Model(), Model()
    moved = ml.compile(move)
    for i in range(4):
        assert moved(first, 1) == i + 1
        assert moved(second, 2) == 2 * i + 2
    assert (first.n, second.n) == (4, 8)


class Equal:
    """Objects are equal whatever their attributes are."""

    def __init__(self, n: Any) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


class Hashed(Equal):
    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("class_", [Equal, Hashed])
def test_objects_that_are_equal_are_not_the_same(class_: Any) -> None:
    read, move = ml.compile(lambda one, k: one.n * k), ml.compile(add_to)
    first, second = class_(1.0), class_(5.0)
    for i in range(1, 4):
        assert move(first, 1.0) == 1.0 + i and move(second, 2.0) == 5.0 + 2 * i
        assert (first.n, second.n) == (1.0 + i, 5.0 + 2 * i)
        assert read(first, 2.0) == 2 * first.n and read(second, 2.0) == 2 * second.n
        assert read({"a": second}["a"], 1.0) == second.n


def add_to(one: Any, k: Any) -> Any:
    one.n += k
    return one.n


def test_objects_share_one_program_and_do_not_slow_each_other() -> None:
    compiled, objects = ml.compile(add_to), [Equal(float(i)) for i in range(20)]
    for _ in range(2):
        for one in objects:
            compiled(one, 1.0)
    assert "1 signature(s) compiled" in compiled.explain()
    frames = frames_of(lambda: [compiled(one, 1.0) for one in objects])[1]
    assert "_prepared" not in frames and len(frames) < 20 * len(objects), len(frames)
    assert [one.n for one in objects] == [i + 3.0 for i in range(20)]


class Walker:
    def __init__(self, x: Any) -> None:
        self.x, self.n = np.ones(3) * x, 0

    @ml.compile
    def step(self, k: Any) -> Any:
        self.x = self.x * k + 1
        self.n += 1
        return self.x.sum()


def test_a_method_of_many_objects_is_one_program() -> None:
    walkers = [Walker(float(i)) for i in range(5)]
    for i, walker in enumerate(walkers):
        for _ in range(2):
            walker.step(2.0)
        np.testing.assert_array_equal(walker.x, np.full(3, 4.0 * i + 3))
        assert walker.n == 2
        assert f"{int(i == 0)} signature(s) compiled" in walker.step.explain()


def test_tuples_of_numbers_are_state() -> None:
    class Pair:
        def __init__(self) -> None:
            self.now, self.best = (0.0, 1.0), (0, 1.0)

        def step(self, k: Any) -> Any:
            self.now = self.now[1], self.now[0] + 1
            if k > self.best[1]:
                self.best = self.best[0] + 1, k
            return self.now[0] * k

        def swap(self) -> Any:
            self.now = self.now[1], self.now[0]
            return self.now[0]

    pair, other = Pair(), Pair()
    for name in ("step", "swap"):
        compiled, plain = ml.compile(getattr(pair, name)), getattr(other, name)
        for i in range(5):
            given = (float(i),) if name == "step" else ()
            assert compiled(*given) == plain(*given)
            assert (pair.now, pair.best) == (other.now, other.best)
        assert "1 signature(s) compiled" in compiled.explain()
        assert "_prepared" not in frames_of(partial(compiled, *given))[1]
        plain(*given)


def test_donated_arguments_beside_state() -> None:
    class Pair:
        def __init__(self) -> None:
            self.a, self.b = np.ones(3), np.zeros(2)

        def step(self, x: Any) -> Any:
            self.a, self.b = self.a * 2, self.b + 1
            return x + self.a

    pair, other = Pair(), Pair()
    compiled = ml.compile(pair.step, donate_argnums=(0,))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(np.arange(3.0)), other.step(np.arange(3.0)))
        np.testing.assert_array_equal(pair.a, other.a)
        np.testing.assert_array_equal(pair.b, other.b)


def test_long_lists_are_stored_into() -> None:
    def reverse(items: Any, k: Any) -> Any:
        for i in range(len(items) // 2):
            items[i], items[-1 - i] = items[-1 - i] + k, items[i]
        return items[0]

    compiled = ml.compile(reverse)
    for start in range(4):
        items, other = [*range(start, start + 200)], [*range(start, start + 200)]
        result, frames = frames_of(lambda items=items: compiled(items, 2))
        assert result == reverse(other, 2)
        assert items == other
    assert "_prepared" not in frames, frames
