"""Every NumPy function and array method either agrees with NumPy or is refused by one of our errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.errors import CaptureError
from tests.fuzz.oracle import assert_same, cloned

X = np.array([[0.5, 0.25, 2.0], [1.5, 0.75, 3.0], [1.0, 2.0, 4.5]])
V = np.array([3.0, 1.0, 2.0])
K = np.array([2, 0, 1])
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X,), {}), ((V,), {}), ((K,), {}), ((X > 1,), {}), ((X, X), {}), ((V, V), {}), ((K, K + 1), {}), ((X, 0), {}),
    ((X, 1), {}), ((V, 2), {}), ((X,), {"axis": 0}), ((X, V), {}), ((X > 1, X), {}), ((X > 1, X, X + 1), {}),
    (([X, X],), {}), ((V, K), {}), ((X, 0, 1), {}), ((V, V, V), {}),
]  # fmt: skip
# Files, settings, objects that are no arrays, and contents that nobody knows.
LEFT_OUT = {
    "bmat", "busdaycalendar", "empty_like", "errstate", "format_parser", "frombuffer", "fromfile", "fromfunction",
    "fromiter", "fromregex", "fromstring", "from_dlpack", "frompyfunc", "genfromtxt", "get_include", "get_printoptions",
    "getbufsize", "geterr", "geterrcall", "info", "load", "loadtxt", "mask_indices", "memmap", "nditer", "nested_iters",
    "open_memmap", "printoptions", "save", "savetxt", "savez", "savez_compressed", "set_printoptions", "setbufsize",
    "seterr", "seterrcall", "show_config", "show_runtime", "test", "vectorize",
}  # fmt: skip


def names() -> Iterator[str]:
    """Every public function of NumPy and of its modules for linear algebra and Fourier transforms."""
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        for name in sorted(set(dir(module)) - LEFT_OUT):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type) and not name.startswith("_"):
                yield f"{prefix}.{name}"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What NumPy warns about is not the subject."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", list(names()))
def test_function_agrees_or_is_refused(name: str) -> None:
    function = eval(name, {"np": np})
    calls = [c for c in CALLS if _runs(function, *c) and not _refused(name, *c)]
    if not calls:
        return
    options = [kwargs for _, kwargs in calls]
    called = _in_source(f"lambda calls: [{name}(*args, **kwargs) for args, kwargs in zip(calls, options)]", options)
    given = ml.compile(called, "reference")([args for args, _ in cloned(calls)])
    expected = [function(*args, **kwargs) for args, kwargs in cloned(calls)]
    for one, other, call in zip(given, expected, calls):
        if name == "np.polydiv":  # NumPy leaves the leading zeros of the remainder out, which depends on the data
            one = one[0], one[1][len(one[1]) - len(other[1]) :]
        assert_same(one, other, f"{name} of {call}", 1e-13)


METHODS = sorted({n for n in dir(np.ndarray) if not n.startswith("_")} - {"conj", "conjugate", "dump", "tofile"})
ARGUMENTS: list[tuple[Any, ...]] = [(), (0,), (1,), (0, 1), (3, 3), (V,), (np.float32,)]


@pytest.mark.parametrize("name", METHODS)
def test_method_agrees_or_is_refused(name: str) -> None:
    if not callable(getattr(np.ndarray, name)):
        _check_method(name, f"lambda x: x.{name}", [])
        return
    for arguments in ARGUMENTS:
        _check_method(name, f"lambda x: x.{name}(*options)", arguments)


def _check_method(name: str, text: str, arguments: Any) -> None:
    method = _in_source(text, arguments)
    for x in (X, V, K, X > 1):
        theirs = x.copy()
        try:
            expected = method(theirs)
        except Exception:
            continue
        if not _is_numeric(expected):
            continue
        ours = x.copy()
        try:
            given = ml.compile(method, "reference")(ours)
        except CaptureError:
            continue
        assert_same((given, ours), (expected, theirs), f"{name}{arguments} of {x.dtype}", 1e-13)


def _in_source(text: str, options: Any) -> Any:
    """A function whose source names the NumPy function, as a user's does."""
    return eval(text, {"np": np, "options": options, "__name__": "user"})


def _runs(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether NumPy takes these arguments and gives arrays, numbers or containers of them."""
    try:
        result = function(*cloned(args), **kwargs)
    except Exception:
        return False
    return _is_numeric(result)


def _is_numeric(result: Any) -> bool:
    if isinstance(result, (list, tuple)):
        return all(map(_is_numeric, result))
    number = isinstance(result, (np.ndarray, np.generic, int, float))
    return result is None or (number and np.asarray(result).dtype.kind in "biuf")


def _refused(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        ml.compile(_in_source(f"lambda args: {name}(*args, **options)", kwargs)).trace(args)
    except CaptureError as error:
        assert error.location is not None
        return True
    return False
