"""The dispatcher runs the program of the call's exact signature and asks `miss` for every other call."""

from __future__ import annotations

import collections
import gc
import sys
import threading
import timeit
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirml.runtime import Dispatcher, Program, load_object, number_leaves

from .conftest import elementwise, emit_object
from .test_program import copy_program

Add = Callable[..., Program]
X, Y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)


class Missed(Exception):
    """Raised by `miss`, with its arguments."""


def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise Missed(args, kwargs)


def dispatcher(*args: Any, program: Program, out_tree: Any = 0, **options: Any) -> Dispatcher:
    result = Dispatcher(miss)
    assert result.add(args, {}, program, out_tree, **options)
    return result


def test_an_unknown_call_goes_to_miss() -> None:
    result = Dispatcher(lambda args, kwargs: (args, kwargs))
    assert result(1, [2], a=3) == ((1, [2]), {"a": 3})
    assert result() == ((), {})
    assert result.entries == 0


def test_a_program_without_remaining_calls_goes_to_miss(add_program: Add) -> None:
    program = add_program(8)
    assert program.remaining is None
    call = dispatcher(X, Y, program=program)
    program.remaining = 2
    for left in (1, 0):
        np.testing.assert_array_equal(call(X, Y), X + Y)
        assert program.remaining == left
    with pytest.raises(Missed):
        call(X, Y)
    np.testing.assert_array_equal(program([X, Y])[0], X + Y)
    program.remaining = None
    np.testing.assert_array_equal(call(X, Y), X + Y)


def test_remaining_calls_are_a_count(add_program: Add) -> None:
    program = add_program(8)
    with pytest.raises(ValueError, match="negative"):
        program.remaining = -1
    with pytest.raises(TypeError):
        program.remaining = "many"  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        del program.remaining


def test_errors_of_miss_come_through() -> None:
    with pytest.raises(Missed):
        Dispatcher(miss)(X)


def test_a_dispatcher_that_was_not_initialised_is_an_error() -> None:
    class Broken(Dispatcher):
        def __init__(self) -> None:
            pass

    with pytest.raises(RuntimeError, match="__init__ was not called"):
        Broken()(1)


def test_a_subclass_can_add_what_it_misses(add_program: Add) -> None:
    class Compiled(Dispatcher):
        def __init__(self) -> None:
            super().__init__(self.compile)
            self.compiled = 0

        def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.compiled += 1
            assert self.add(args, kwargs, add_program(*args[0].shape), 0)
            return self(*args, **kwargs)

    compiled = Compiled()
    for size in (8, 9, 8, 9, 10, 8):
        a = np.arange(size, dtype=np.float32)
        assert np.array_equal(compiled(a, a), a + a)
        assert np.array_equal(compiled(a, a[::-1]), a + a[::-1])
    assert (compiled.compiled, compiled.entries) == (3, 3)


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(9, np.float32),
        np.zeros((8, 1), np.float32),
        np.zeros((1, 8), np.float32),
        np.zeros(8, np.float64),
        np.zeros(8, np.int32),
        np.zeros(8, ">f4"),
        np.zeros(8, ml_dtypes.bfloat16),
        np.zeros(8, "U1"),
        np.ma.zeros(8, np.float32),
        np.zeros(8, np.float32).view(np.recarray),
        np.float32(0),
        1.0,
        None,
        [X],
        (X,),
        {"a": X},
        "text",
        object(),
    ],
)
def test_a_call_of_another_signature_misses(add_program: Add, other: Any) -> None:
    call = dispatcher(X, Y, program=add_program(8))
    with pytest.raises(Missed) as caught:
        call(X, other)
    assert caught.value.args[0][1] is other
    for args in [(X,), (X, Y, Y), (), ((X, Y),), ([X, Y],)]:
        with pytest.raises(Missed):
            call(*args)
    with pytest.raises(Missed):
        call(X, b=Y)
    assert np.array_equal(call(X, Y), X + Y)


def test_same_signature_in_another_layout_or_c_type_hits(add_program: Add) -> None:
    call = dispatcher(X, Y, program=add_program(8))
    wide = np.arange(16, dtype=np.float32)
    assert np.array_equal(call(wide[::2], Y), wide[::2] + 1)
    longs = copy_program(np.int64, (3,))
    assert np.array_equal(dispatcher(np.arange(3), program=longs)(np.arange(3).astype(np.longlong)), [0, 1, 2])


def test_arrays_of_no_dimension_and_numpy_scalars_are_two_signatures() -> None:
    for dtype in (np.float32, np.float64, ml_dtypes.bfloat16, np.bool_, np.longlong):
        for known, other in ((np.array(1, dtype), dtype(1)), (dtype(1), np.array(1, dtype))):
            call = dispatcher(known, program=copy_program(dtype))
            assert call(known) == 1
            with pytest.raises(Missed):
                call(other)


def test_arguments_that_the_program_refuses_go_to_miss() -> None:
    program = copy_program("f4", (8,), writebacks=[(0, 0)])
    call = dispatcher(X.copy(), program=program)
    locked = X.copy()
    locked.flags.writeable = False
    with pytest.raises(Missed) as caught:
        call(locked)
    assert caught.value.args == ((locked,), {})
    assert caught.value.__context__ is None


def test_python_scalars_are_signatures_of_their_own() -> None:
    programs = {
        float: copy_program("f8", weak=[True]),
        int: copy_program("i8", weak=[True]),
        bool: copy_program("?", weak=[True]),
    }
    call = Dispatcher(miss)
    for kind, program in programs.items():
        assert call.add((kind(1),), {}, program, 0)
    for value in (2.5, -7, True, 0, False, 1e300):
        result = call(value)
        assert result == value
        assert result.dtype == np.array(value).dtype
    for value in (1j, np.float64(1), "1", 2**63):
        with pytest.raises(Missed):
            call(value)


def test_structures_match_exactly(add_program: Add) -> None:
    example = ({"w": [X, None], "b": (Y,)},)
    call = dispatcher(*example, program=add_program(8))
    assert np.array_equal(call({"w": [X, None], "b": (Y,)}), X + Y)
    word = "".join(["w"])  # an equal key need not be the same object
    assert np.array_equal(call({word: [X, None], "b": (Y,)}), X + Y)
    for other in [
        {"b": (Y,), "w": [X, None]},
        {"w": [X], "b": (Y,)},
        {"w": (X, None), "b": (Y,)},
        {"w": [X, None], "b": [Y]},
        {"w": [X, None], "c": (Y,)},
        {"w": [None, X], "b": (Y,)},
        {"w": [X, None], "b": (Y,), "c": None},
        {"w": [X, None], b"b": (Y,)},
        {"w": [X, None], True: (Y,)},
        collections.OrderedDict(w=[X, None], b=(Y,)),
        {"w": [[X], None], "b": (Y,)},
    ]:
        with pytest.raises(Missed):
            call(other)


def test_integer_keys(add_program: Add) -> None:
    call = dispatcher({0: X, 10**30: Y}, program=add_program(8))
    assert np.array_equal(call({0: X, 10**30: Y}), X + Y)
    for other in [{0: X, 1: Y}, {False: X, 10**30: Y}, {"0": X, 10**30: Y}]:
        with pytest.raises(Missed):
            call(other)


def test_keywords(add_program: Add) -> None:
    call = Dispatcher(miss)
    assert call.add((X,), {"b": Y}, add_program(8), 0)
    assert np.array_equal(call(X, b=Y), X + Y)
    assert np.array_equal(call(*(X,), b=Y), X + Y)
    for kwargs in [{"c": Y}, {"b": Y, "c": Y}, {}]:
        with pytest.raises(Missed):
            call(X, **kwargs)
    with pytest.raises(Missed):
        call(X, Y)
    with pytest.raises(Missed):
        call(b=Y, a=X)


def test_deep_and_endless_containers_miss(add_program: Add) -> None:
    call = dispatcher(X, Y, program=add_program(8))
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = X
    for _ in range(5000):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(Missed):
            call(X, value)
        assert call.add((X, value), {}, add_program(8), 0) is False
        assert number_leaves((value,), {}) is None


def test_many_leaves(add_program: Add) -> None:
    count = 3000
    values = [np.float32(i) for i in range(count)]
    text = elementwise(1, "float32", [f"a{i}" for i in range(count)] + ["out"], f"%y = fadd float %x0, %x{count - 1}")
    program = Program(load_object(emit_object(text, level=0)), "entry", [("f4", ())] * count, [("f4", ())])
    call = dispatcher(values, {"x": X}, program=program, order=range(count))
    assert call(values, {"x": X}) == count - 1


@pytest.mark.parametrize("leaf", [object(), "text", collections.OrderedDict(), np.zeros(2, "O"), np.ma.zeros(2)])
def test_examples_that_cannot_be_recognised_are_not_added(add_program: Add, leaf: Any) -> None:
    call = Dispatcher(miss)
    assert call.add((X, Y, leaf), {}, add_program(8), 0, order=[0, 1]) is False
    assert call.entries == 0


class Opaque:
    """Equal to everything, which the dispatcher must not ask."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("value", "same", "others"),
    [
        ("mean", "".join(["me", "an"]), ["sum", 1, None, X]),
        (3, 3, [4, 3.0, True, "3"]),
        (10**30, 10**30 + 0, [10**30 + 1]),
        (0.0, 0.0, [-0.0, 0, float("nan")]),
        (float("nan"), float("nan"), [0.0]),
        (True, True, [False, 1]),
        (np.sum, np.sum, [np.mean]),
    ],
)
def test_static_leaves_compare_by_value(add_program: Add, value: Any, same: Any, others: list[Any]) -> None:
    call = dispatcher(X, value, Y, program=add_program(8), statics=[1])
    assert np.array_equal(call(X, same, Y), X + Y)
    for other in others:
        with pytest.raises(Missed):
            call(X, other, Y)


def test_other_static_objects_compare_by_identity(add_program: Add) -> None:
    value = Opaque()
    call = dispatcher(X, [value], Y, program=add_program(8), statics=[1])
    assert np.array_equal(call(X, [value], Y), X + Y)
    with pytest.raises(Missed):
        call(X, [Opaque()], Y)


def test_guards_compare_globals_and_cells_by_identity(add_program: Add) -> None:
    scale = [1]

    def closure() -> list[int]:
        return scale

    assert closure.__closure__ is not None
    cell, names = closure.__closure__[0], {"size": 7, "other": None}
    call = dispatcher(X, Y, program=add_program(8), guards=[(names, "size", 7), (cell, None, scale)])
    assert np.array_equal(call(X, Y), X + Y)
    names["unrelated"] = 1
    assert np.array_equal(call(X, Y), X + Y)
    for change in [lambda: names.update(size=8), lambda: names.pop("size")]:
        change()
        with pytest.raises(Missed):
            call(X, Y)
        names["size"] = 7
        assert np.array_equal(call(X, Y), X + Y)
    scale = [1]
    with pytest.raises(Missed):
        call(X, Y)


def test_guards_compare_the_items_of_lists_by_identity(add_program: Add) -> None:
    first, second = Opaque(), Opaque()
    items: list[Any] = [first, second]
    call = dispatcher(X, Y, program=add_program(8), guards=[(items, None, (first, second)), ({7: first}, 7, first)])
    assert np.array_equal(call(X, Y), X + Y)
    for other in ([first], [first, first], [second, first], [first, second, first], []):
        items[:] = other
        with pytest.raises(Missed):
            call(X, Y)
    items[:] = [first, second]
    assert np.array_equal(call(X, Y), X + Y)


@pytest.mark.parametrize("guard", [([], None, 1), ({}, None, 1.0), (5, "x", 1), (5, None, 1), ({}, "x"), 5])
def test_bad_guards_are_refused(add_program: Add, guard: Any) -> None:
    with pytest.raises(TypeError):
        Dispatcher(miss).add((X, Y), {}, add_program(8), 0, guards=[guard])


def test_a_guard_whose_lookup_clears_the_dispatcher(add_program: Add) -> None:
    class Colliding:
        def __hash__(self) -> int:
            return hash("size")

        def __eq__(self, other: object) -> bool:
            call.clear()
            return False

    call = Dispatcher(miss)
    names: dict[Any, Any] = {Colliding(): 0, "size": 7}
    assert call.add((X, Y), {}, add_program(8), 0, guards=[(names, "size", 7)])
    with pytest.raises(Missed):
        call(X, Y)
    assert call.entries == 0


def test_order_says_which_leaf_is_which_input() -> None:
    text = elementwise(8, "float32", ["a", "b", "out"], "%y = fsub float %x0, %x1")
    program = Program(load_object(emit_object(text)), "entry", [("f4", (8,))] * 2, [("f4", (8,))])
    assert np.array_equal(dispatcher(X, Y, program=program)(X, Y), X - Y)
    assert np.array_equal(dispatcher(X, Y, program=program, order=[1, 0])(X, Y), Y - X)
    assert not dispatcher(X, Y, program=program, order=[1, 1])(X, Y).any()


def test_number_leaves_numbers_in_call_order() -> None:
    numbered = number_leaves((X, {"w": [1, None], "b": (2.0, "s")}), {"z": Y, "a": [X]})
    assert numbered == ((0, {"w": [1, None], "b": (2, 3)}), {"z": 4, "a": [5]})


def two_outputs() -> Program:
    """(a + a, a * a) for f32[8]."""
    body = "%y = fmul float %x0, %x0 %t = fadd float %x0, %x0 store float %t, ptr %q1, align 1"
    text = elementwise(8, "float32", ["a", "sum", "product"], body)
    return Program(load_object(emit_object(text)), "entry", [("f4", (8,))], [("f4", (8,))] * 2)


def test_results_are_built_as_the_tree_says() -> None:
    program = two_outputs()
    tree = {"s": 0, "rest": [(1, None), {}, [], (), 0]}
    result = dispatcher(X, program=program, out_tree=tree)(X)
    assert list(result) == ["s", "rest"]
    assert np.array_equal(result["s"], X + X) and result["rest"][4] is result["s"]
    assert np.array_equal(result["rest"][0][0], X * X)
    assert result["rest"][0][1] is None and result["rest"][1:4] == [{}, [], ()]
    assert np.array_equal(dispatcher(X, program=program, out_tree=1)(X), X * X)
    assert dispatcher(X, program=program, out_tree=None)(X) is None


def test_results_may_be_built_by_a_callable() -> None:
    pair = collections.namedtuple("pair", "sum product")
    result = dispatcher(X, program=two_outputs(), out_tree=lambda outputs: pair(*outputs))(X)
    assert isinstance(result, pair) and np.array_equal(result.product, X * X)

    def fail(outputs: list[Any]) -> Any:
        raise Missed(outputs)

    with pytest.raises(Missed):
        dispatcher(X, program=two_outputs(), out_tree=fail)(X)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"out_tree": 1}, ValueError),
        ({"out_tree": -1}, ValueError),
        ({"out_tree": "x"}, TypeError),
        ({"out_tree": 0, "order": [0]}, ValueError),
        ({"out_tree": 0, "order": [0, 2]}, ValueError),
        ({"out_tree": 0, "order": [0, -1]}, ValueError),
        ({"out_tree": 0, "statics": [2]}, ValueError),
        ({"out_tree": 0, "statics": [0]}, ValueError),
    ],
)
def test_bad_entries_are_refused(add_program: Add, options: dict[str, Any], error: type[Exception]) -> None:
    call = Dispatcher(miss)
    with pytest.raises(error):
        call.add((X, Y), {}, add_program(8), **options)
    assert call.entries == 0


def test_an_example_that_does_not_fit_the_program_is_refused(add_program: Add) -> None:
    with pytest.raises(
        TypeError, match=r"argument 1: expected float32\[8\], got an array of dtype float32 and shape \(9,\)"
    ):
        Dispatcher(miss).add((X, np.zeros(9, np.float32)), {}, add_program(8), 0)
    with pytest.raises(TypeError, match="got float"):
        Dispatcher(miss).add((X, 1.0), {}, add_program(8), 0)


def test_find_and_clear(add_program: Add) -> None:
    program = add_program(8)
    call = dispatcher(X, Y, program=program)
    assert call.find((X, Y)) is program and call.find((X, Y), {}) is program
    assert call.find((X,)) is None and call.find((X,), {"b": Y}) is None
    call.clear()
    assert call.entries == 0 and call.find((X, Y)) is None
    with pytest.raises(Missed):
        call(X, Y)


def test_the_latest_of_equal_entries_wins(add_program: Add) -> None:
    call = dispatcher(X, Y, program=add_program(8))
    newer = add_program(8)
    assert call.add((X, Y), {}, newer, 0)
    assert call.find((X, Y)) is newer


def test_cycles_through_a_dispatcher_are_collected(add_program: Add) -> None:
    class Compiled(Dispatcher):
        def __init__(self) -> None:
            super().__init__(self.compile)

        def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return None

        def build(self, outputs: list[Any]) -> Any:
            return self

    compiled = Compiled()
    compiled.add((X, compiled, Y), {}, add_program(8), compiled.build, statics=[1])
    assert compiled(X, compiled, Y) is compiled
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert gone() is None


def test_calls_leak_no_references(add_program: Add) -> None:
    call = dispatcher({"a": X, "b": [Y]}, program=add_program(8), out_tree={"r": (0, 0)})
    arguments = {"a": X, "b": [Y]}
    before = [sys.getrefcount(o) for o in (X, Y, X.dtype, arguments, call)]
    for _ in range(100):
        call(arguments)
        with pytest.raises(Missed):
            call(X, arguments)
    assert [sys.getrefcount(o) for o in (X, Y, X.dtype, arguments, call)] == before


def test_eight_threads_call_one_dispatcher_while_entries_change(add_program: Add) -> None:
    arrays = {size: np.arange(size, dtype=np.float32) for size in range(1, 17)}
    programs = {size: add_program(size) for size in arrays}

    class Compiled(Dispatcher):
        def __init__(self) -> None:
            super().__init__(self.compile)

        def compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.add(args, kwargs, programs[len(args[0])], 0)
            return args[0] + args[1]

    compiled, wrong = Compiled(), []

    def work(seed: int) -> None:
        for size in np.random.default_rng(seed).integers(1, 17, 1500):
            a = arrays[int(size)]
            if not np.array_equal(compiled(a, a), a + a):
                wrong.append(size)
            if size == 16 and seed == 0:
                compiled.clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arguments_may_be_taken_apart_while_the_program_runs(add_program: Add) -> None:
    size = 1 << 18
    program = add_program(size)
    ones = np.ones(size, np.float32)
    arguments = [ones.copy(), ones.copy()]
    call = dispatcher(arguments, program=program)
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            arguments[0] = ones.copy()
            arguments[1] = ones.copy()

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(200):
            assert (call(arguments) == 2).all()
    finally:
        stop.set()
        thread.join()


def test_a_call_among_hundreds_of_signatures_is_found_as_fast(add_program: Add) -> None:
    program = add_program(8)

    def seconds(signatures: int) -> float:
        call = Dispatcher(miss)
        calls = [(X, Y, "x" * (n % 3), ["y"] * (n % 7), n) for n in range(signatures)]
        for arguments in calls:
            statics = range(2, 4 + len(arguments[3]))
            assert call.add(arguments, {}, program, 0, order=[0, 1], statics=statics)
        assert call.entries == signatures
        for arguments in calls:
            assert call.find(arguments) is program
        assert call.find((X, Y, "", [], 1000)) is None
        first, *_, last = calls
        return min(timeit.repeat(lambda: (call(*first), call(*last)), number=100, repeat=30)) / 200

    assert seconds(300) - seconds(3) < 1e-6


def test_a_failed_check_is_explained_without_another_call() -> None:
    assembly = emit_object(
        "declare void @mlirml_check_failed(i64)\n"
        "define void @entry(ptr %0) {\n  call void @mlirml_check_failed(i64 5)\n  ret void\n}\n"
    )
    program = Program(load_object(assembly), "entry", [], [])
    call = Dispatcher(miss)
    seen: list[Any] = []
    assert call.add((), {}, program, None, explain=lambda failed: (seen.append(failed.check), KeyError("five"))[1])
    with pytest.raises(KeyError, match="five"):
        call()
    assert seen == [5]
