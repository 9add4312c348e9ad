"""Programs take any NumPy input, return fresh arrays and refuse what would give wrong results."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirml.runtime import Program, _native, load_object

from .conftest import elementwise, emit_object, load_pointers

AddProgram = Callable[..., Program]
Array = npt.NDArray[Any]


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def layouts(values: Array) -> dict[str, Array]:
    """The same values in every memory layout that NumPy knows."""
    size = values.shape[0]
    strided = np.empty((2 * size, *values.shape[1:]), values.dtype)
    strided[::2] = values
    buffer = np.empty(values.nbytes + 1, np.uint8)
    misaligned = buffer[1:].view(values.dtype).reshape(values.shape)
    misaligned[...] = values
    readonly = values.copy()
    readonly.flags.writeable = False
    backward = values[::-1].copy()[::-1]
    return {
        "plain": values,
        "strided": strided[::2],
        "fortran": np.asfortranarray(values),
        "negative": backward,
        "misaligned": misaligned,
        "readonly": readonly,
        "broadcast": np.broadcast_to(values[:1], values.shape),
    }


@pytest.mark.parametrize("layout", ["plain", "strided", "fortran", "negative", "misaligned", "readonly", "broadcast"])
def test_inputs_of_any_layout(add_program: AddProgram, layout: str) -> None:
    a, b = floats(6, 5), floats(6, 5) * 3
    x = layouts(a)[layout]
    before = x.copy()
    (result,) = add_program(6, 5)([x, b])
    assert np.array_equal(result, x + b)
    assert np.array_equal(x, before)


def test_results_are_fresh_arrays_that_own_their_memory(add_program: AddProgram) -> None:
    for size in [1, 8, 255, 256, 1000, 1 << 16, 1 << 21]:
        a = floats(size)
        program = add_program(size)
        (first,), (second,) = program([a, a]), program([a, a])
        for result in (first, second):
            assert type(result) is np.ndarray and result.base is None
            assert (
                result.flags.owndata and result.flags.c_contiguous and result.flags.writeable and result.flags.aligned
            )
            assert np.array_equal(result, a + a)
        assert not np.may_share_memory(first, second)


@pytest.mark.parametrize("size", [256, 300, 4096, 1 << 20])
def test_large_results_start_at_a_cache_line(add_program: AddProgram, size: int) -> None:
    results = [add_program(size)([floats(size), floats(size)])[0] for _ in range(5)]
    assert [result.ctypes.data % 64 for result in results] == [0] * 5


def test_results_can_be_resized_and_outlive_the_program(add_program: AddProgram) -> None:
    program = add_program(1000)
    (result,) = program([floats(1000), floats(1000)])
    want = 2 * floats(1000)
    del program
    gc.collect()
    assert np.array_equal(result, want)
    result.resize(5000, refcheck=False)
    assert np.array_equal(result[:1000], want) and not result[1000:].any()
    result.resize(10, refcheck=False)
    assert np.array_equal(result, want[:10])
    result.resize(0, refcheck=False)


def test_freed_results_are_reused_and_can_be_given_back(add_program: AddProgram) -> None:
    a = floats(1 << 20)
    program = add_program(1 << 20)
    _native.release_cached()
    address = program([a, a])[0].ctypes.data
    assert _native.cached_bytes() >= a.nbytes
    assert program([a, a])[0].ctypes.data == address
    _native.release_cached()
    assert _native.cached_bytes() == 0


def test_arrays_of_size_zero(add_program: AddProgram) -> None:
    (result,) = add_program(3, 0)([np.zeros((3, 0), np.float32)] * 2)
    assert result.shape == (3, 0) and result.dtype == np.float32


def test_arrays_and_numpy_scalars_of_no_dimension(add_program: AddProgram) -> None:
    (result,) = add_program()([np.array(1.5, np.float32), np.float32(2)])
    assert type(result) is np.ndarray and result.shape == () and result == 3.5


def copy_program(dtype: Any, shape: tuple[int, ...] = (), **options: Any) -> Program:
    """A program that copies the bytes of its only input."""
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    text = elementwise(size, "int8", ["a", "out"], "%y = add i8 %x0, 0")
    return Program(load_object(emit_object(text)), "entry", [(dtype, shape)], [(dtype, shape)], **options)


ALL_DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.longlong,
    np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype_as_array_and_scalar(dtype: Any) -> None:
    values = np.array([0, 1, 1]).astype(dtype)
    assert np.array_equal(copy_program(dtype, (3,))([values])[0], values)
    (scalar,) = copy_program(dtype)([values[1]])
    assert scalar.dtype == np.dtype(dtype) and scalar == values[1]


@pytest.mark.parametrize("dtype", ["U3", "S2", "O", "M8[s]", "m8[s]", "V8", ">f4", np.longdouble])
def test_other_dtypes_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match="dtype"):
        Program(load_object(emit_object("define void @entry(ptr %p) { ret void }")), "entry", [(dtype, ())], [])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(4, np.float32), r"argument 1: expected float32\[8\], got an array of dtype float32 and shape \(4,\)"),
        (np.zeros((8, 1), np.float32), "expected float32"),
        (np.zeros(8, np.float64), "got an array of dtype float64"),
        (np.zeros(8, ">f4"), "got an array of dtype >f4"),
        (np.float32(1), "got numpy.float32"),
        (1.0, "got float"),
        ([1.0] * 8, "got list"),
        (None, "got NoneType"),
    ],
)
def test_wrong_arguments_are_type_errors(add_program: AddProgram, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        add_program(8)([floats(8), value])


def test_wrong_counts_are_type_errors(add_program: AddProgram) -> None:
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        add_program(8)([floats(8)])
    with pytest.raises(TypeError, match="has 1 outputs, outs has 2"):
        add_program(8)([floats(8), floats(8)], [None, None])


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": [("f4", (-1,))]},
        {"inputs": [("f4", (1 << 40, 1 << 40))]},
        {"inputs": [("f4", (1,) * 70)]},
        {"inputs": ["f4"]},
        {"inputs": [("f4", (2,))], "weak": [True]},
        {"inputs": [("f4", ())], "weak": [True]},
        {"weak": [False]},
        {"workspace_bytes": -1},
        {"writebacks": [(0, 0)]},
        {"inputs": [("f4", (2,))], "outputs": [("f4", (3,))], "writebacks": [(0, 0)]},
        {"int_ranges": [(0, 0, 1, "x")]},
        {"constants": [[1, 2]]},
        {"constants": [np.zeros(2, "U1")]},
    ],
)
def test_bad_programs_are_refused(options: dict[str, Any]) -> None:
    code = load_object(emit_object("define void @entry(ptr %p) { ret void }"))
    with pytest.raises((TypeError, ValueError)):
        Program(code, "entry", **{"inputs": [], "outputs": [], **options})


def test_results_go_to_given_arrays(add_program: AddProgram) -> None:
    a, b = floats(4, 6), floats(4, 6) * 2
    for layout in ("plain", "strided", "fortran", "negative", "misaligned"):
        out = layouts(np.zeros((4, 6), np.float32))[layout]
        results = add_program(4, 6)([a, b], [out])
        assert results[0] is out
        assert np.array_equal(out, a + b)


def test_given_arrays_may_overlap_inputs(add_program: AddProgram) -> None:
    memory = np.arange(20, dtype=np.float32)
    want = memory[:10] + memory[5:15]
    out = memory[1:11]
    add_program(10)([memory[:10], memory[5:15]], [out])
    assert np.array_equal(out, want)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros(7, np.float32), TypeError, r"output 0: expected float32\[8\]"),
        (np.zeros(8, np.float64), TypeError, "got an array of dtype float64"),
        ([0.0] * 8, TypeError, "got list"),
        (np.broadcast_to(np.float32(0), (8,)), ValueError, "read-only"),
    ],
)
def test_wrong_given_arrays(add_program: AddProgram, out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        add_program(8)([floats(8), floats(8)], [out])


TWO_OUTPUTS = elementwise(
    8, "float32", ["a", "out", "other"], "%y = fadd float %x0, %x0 store float %y, ptr %q1, align 1"
)


def test_given_arrays_may_not_overlap_each_other() -> None:
    program = Program(load_object(emit_object(TWO_OUTPUTS)), "entry", [("f4", (8,))], [("f4", (8,))] * 2)
    memory = np.zeros(16, np.float32)
    with pytest.raises(ValueError, match="outputs 0 and 1 share memory"):
        program([floats(8)], [memory[:8], memory[4:12]])
    first, second = program([floats(8)], [None, memory[:8]])
    assert np.array_equal(first, 2 * floats(8)) and np.array_equal(second, first) and second.base is memory


def test_constants_are_live(add_code: Callable[[int], Any]) -> None:
    for layout in ("plain", "strided", "fortran", "negative", "misaligned"):
        constant = layouts(floats(3, 4).copy())[layout]
        program = Program(add_code(12), "entry", [("f4", (3, 4))], [("f4", (3, 4))], constants=[constant])
        a = floats(3, 4)
        assert np.array_equal(program([a])[0], a + constant)
        constant += 1
        assert np.array_equal(program([a])[0], a + constant)


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # of NumPy 2.5
def test_a_constant_that_changes_shape_in_place_stays_what_it_was(add_code: Callable[[int], Any]) -> None:
    constant = floats(12).copy()
    program = Program(add_code(12), "entry", [("f4", (12,))], [("f4", (12,))], constants=[constant])
    constant.dtype = np.dtype(np.float16)
    assert np.array_equal(program([floats(12)])[0], 2 * floats(12))


def weak_program(dtype: str, **options: Any) -> Program:
    return copy_program(dtype, weak=[True], **options)


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        ("f8", 2.5, 2.5), ("f8", 3, 3.0), ("f8", True, 1.0), ("f8", -1.0, -1.0), ("f8", float("inf"), float("inf")),
        ("i8", 7, 7), ("i8", -1, -1), ("i8", True, 1), ("i8", 2**63 - 1, 2**63 - 1), ("i8", -(2**63), -(2**63)),
        ("?", True, True), ("?", False, False),
    ],
)  # fmt: skip
def test_python_scalars(dtype: str, value: Any, want: Any) -> None:
    (result,) = weak_program(dtype)([value])
    assert result == want and result.dtype == np.dtype(dtype)


@pytest.mark.parametrize(("dtype", "value"), [("i8", 1.0), ("?", 1), ("?", 1.0), ("f8", 1j), ("f8", np.float64(1))])
def test_python_scalars_of_another_kind_are_type_errors(dtype: str, value: Any) -> None:
    if isinstance(value, np.float64):
        assert weak_program(dtype)([np.array(1.0)])[0] == 1  # an array of the dtype fits
        return
    with pytest.raises(TypeError, match="argument 0: expected"):
        weak_program(dtype)([value])


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, -(10**30)])
def test_integers_beyond_int64_overflow(value: int) -> None:
    with pytest.raises(OverflowError, match=f"Python integer {value} out of bounds for int64"):
        weak_program("i8")([value])


def test_floats_from_huge_integers_overflow() -> None:
    with pytest.raises(OverflowError):
        weak_program("f8")([10**400])


@given(
    value=st.integers(-(2**70), 2**70), dtype=st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64"])
)
def test_integer_ranges_say_what_numpy_says(value: int, dtype: str) -> None:
    info = np.iinfo(dtype)
    program = RANGED[dtype]
    try:
        np.array(0, dtype) + value
    except OverflowError as error:
        with pytest.raises(OverflowError) as caught:
            program([value])
        # NumPy has another text for what no C integer holds.
        assert str(caught.value) == f"Python integer {value} out of bounds for {dtype}"
        assert str(error) in (str(caught.value), "Python int too large to convert to C long")
        assert not info.min <= value <= info.max
    else:
        assert program([value])[0].view(np.uint64) == value % 2**64


RANGED = {
    dtype: weak_program("i8", int_ranges=[(0, np.iinfo(dtype).min, np.iinfo(dtype).max, dtype)])
    for dtype in ["int8", "uint8", "int32", "uint32", "int64", "uint64"]
}


def test_all_ranges_of_an_input_hold() -> None:
    program = weak_program("i8", int_ranges=[(0, 0, 2**64 - 1, "uint64"), (0, -128, 127, "int8")])
    assert program([100])[0] == 100
    with pytest.raises(OverflowError, match="-1 out of bounds for uint64"):
        program([-1])
    with pytest.raises(OverflowError, match="200 out of bounds for int8"):
        program([200])


@pytest.fixture
def add_into_first(add_code: Callable[[int], Any]) -> Program:
    """a += b for f32[8]."""
    spec = ("f4", (8,))
    return Program(add_code(8), "entry", [spec, spec], [spec], writebacks=[(0, 0)])


@pytest.mark.parametrize("layout", ["plain", "strided", "negative", "misaligned"])
def test_writeback_changes_the_argument(add_into_first: Program, layout: str) -> None:
    a, b = layouts(floats(8).copy())[layout], floats(8) * 4
    want = a + b
    add_into_first([a, b])
    assert np.array_equal(a, want)


def test_writeback_needs_a_writeable_argument(add_into_first: Program) -> None:
    readonly = layouts(floats(8))["readonly"]
    with pytest.raises(ValueError, match="assignment destination is read-only: argument 0"):
        add_into_first([readonly, floats(8)])


def test_writeback_needs_memory_of_its_own(add_into_first: Program) -> None:
    memory = np.arange(16, dtype=np.float32)
    before = memory.copy()
    for a, b in [(memory[:8], memory[:8]), (memory[:8], memory[4:12]), (memory[::2], memory[15:7:-1])]:
        with pytest.raises(ValueError, match="argument 0 is assigned to and shares memory with argument 1"):
            add_into_first([a, b])
        assert np.array_equal(memory, before)
    repeated = np.lib.stride_tricks.as_strided(memory[:1], (8,), (0,))
    with pytest.raises(ValueError, match="elements share memory"):
        add_into_first([repeated, floats(8)])


def test_writeback_to_interleaved_memory(add_into_first: Program) -> None:
    matrix = np.arange(16, dtype=np.float32).reshape(8, 2)
    want = matrix[:, 0] + matrix[:, 1]
    add_into_first([matrix[:, 0], matrix[:, 1]])
    assert np.array_equal(matrix[:, 0], want)


def test_writeback_apart_from_captured_arrays(add_code: Callable[[int], Any]) -> None:
    constant = floats(8).copy()
    program = Program(add_code(8), "entry", [("f4", (8,))], [("f4", (8,))], constants=[constant], writebacks=[(0, 0)])
    with pytest.raises(ValueError, match="shares memory with a captured array"):
        program([constant])
    a = np.ones(8, np.float32)
    program([a])
    assert np.array_equal(a, constant + 1)


WORKSPACE = f"""
define void @entry(ptr %p) {{
{load_pointers(["a", "out", "workspace"])}
  %address = ptrtoint ptr %workspace to i64
  %low = and i64 %address, 63
  br label %fill
fill:
  %i = phi i64 [0, %0], [%i2, %fill]
  %q = getelementptr i64, ptr %workspace, i64 %i
  %x = load i64, ptr %a
  store volatile i64 %x, ptr %q
  %i2 = add i64 %i, 1
  %m = icmp slt i64 %i2, 5000
  br i1 %m, label %fill, label %sum
sum:
  %j = phi i64 [0, %fill], [%j2, %sum]
  %s = phi i64 [%low, %fill], [%s2, %sum]
  %r = getelementptr i64, ptr %workspace, i64 %j
  %y = load volatile i64, ptr %r
  %s2 = add i64 %s, %y
  %j2 = add i64 %j, 1
  %n = icmp slt i64 %j2, 5000
  br i1 %n, label %sum, label %done
done:
  store i64 %s2, ptr %out
  ret void
}}"""


def test_calls_at_once_each_have_a_workspace() -> None:
    program = Program(load_object(emit_object(WORKSPACE)), "entry", [("i8", ())], [("i8", ())], workspace_bytes=40000)
    wrong = []

    def work(number: int) -> None:
        for i in range(300):
            value = np.array(number * 1000 + i)
            if program([value])[0] != 5000 * value:
                wrong.append(int(value))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_gil_is_released(all_threads: int) -> None:
    text = f"""
    define void @entry(ptr %p) {{
    {load_pointers(["flag"])}
      br label %wait
    wait:
      %x = load atomic volatile i64, ptr %flag monotonic, align 8
      %more = icmp eq i64 %x, 0
      br i1 %more, label %wait, label %done
    done: ret void
    }}"""
    flag = np.zeros((), np.int64)
    program = Program(load_object(emit_object(text)), "entry", [("i8", ())], [])
    thread = threading.Thread(target=program, args=([flag],))
    thread.start()
    flag[...] = 1  # never reached if the program held the lock
    thread.join(20)
    assert not thread.is_alive()
