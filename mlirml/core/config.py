"""Settings of the process: read from the environment once, changed through attributes of `config`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlirml.core.dataclass import dataclass

NATIVE_MODULE = "mlirml.runtime._native"


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError(f"expected True or False, got {value!r}")


def _thread_count(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a number of threads or None, got {value!r}")
    if value < 1:
        raise ValueError(f"expected at least 1 thread, got {value}")
    return value


def _stream_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a number of streams, got {value!r}")
    if not 1 <= value <= 4:
        raise ValueError(f"expected 1 to 4 streams, got {value}")
    return value


def _path(value: Any) -> str | None:
    if value is None:
        return None
    path = os.fspath(value)
    if not isinstance(path, str) or not path:
        raise ValueError(f"expected a path or None, got {value!r}")
    return os.path.abspath(os.path.expanduser(path))


def _word(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise TypeError(f"expected a name, got {value!r}")


def _word_or_none(value: Any) -> str | None:
    return None if value is None else _word(value)


def _one_of(*choices: str) -> Callable[[Any], str]:
    """The check of a setting that is one of these texts."""
    shown = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"

    def check(value: Any) -> str:
        if value in choices:
            return str(value)
        raise ValueError(f"expected {shown}, got {value!r}")

    return check


float64_choice = _one_of("refuse", "float32")
"""Check a value of `config.float64` or `compile(float64=...)`."""


def _libraries(value: Any) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, tuple | list) else (value,)
    if all(name == "openblas" for name in names):
        return tuple(dict.fromkeys(names))
    raise ValueError(f"expected a tuple of names, of which there is 'openblas', got {value!r}")


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name != "none")


def _architecture(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"auto|off|sm_\d{2,3}", value):
        return value
    raise ValueError(f"expected 'auto', 'off' or an architecture such as 'sm_90', got {value!r}")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number of seconds, got {value!r}")
    if not 0 < value < float("inf"):
        raise ValueError(f"expected a number of seconds above 0, got {value!r}")
    return float(value)


def _processor(value: Any) -> str:
    names = r"host|x86-64(-v[234])?|sse4\.1|avx2|avx512|amx|neon|sve(256|512)?"
    if isinstance(value, str) and re.fullmatch(rf"({names})(,l2=[1-9]\d{{0,5}}[KM])?", value):
        return value
    levels = "'host', 'x86-64' ('-v2', '-v3', '-v4'), 'sse4.1', 'avx2', 'avx512', 'amx', 'neon' or 'sve'"
    raise ValueError(f"expected {levels}, and ',l2=1M' after it for the size of a cache, got {value!r}")


def _parse_switch(text: str) -> bool:
    words = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    if text.lower() not in words:
        raise ValueError("expected 0 or 1")
    return words[text.lower()]


@dataclass(frozen=True)
class _Setting:
    default: Any
    check: Callable[[Any], Any]
    variable: str | None = None
    parse: Callable[[str], Any] = str

    def initial(self) -> Any:
        text = os.environ.get(self.variable, "") if self.variable else ""
        if not text:
            return self.default
        try:
            return self.check(self.parse(text))
        except (TypeError, ValueError) as error:
            raise ValueError(f"environment variable {self.variable}={text!r}: {error}") from None


def _byte_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a number of bytes, got {value!r}")
    if value < 0:
        raise ValueError(f"a number of bytes cannot be negative, got {value}")
    return value


_SETTINGS = {
    "threads": _Setting(None, _thread_count, "MLIRML_THREADS", int),
    "cache": _Setting(True, _switch, "MLIRML_CACHE", _parse_switch),
    "cache_dir": _Setting(None, _path, "MLIRML_CACHE_DIR"),
    "dump_dir": _Setting(None, _path, "MLIRML_DUMP_DIR"),
    "target": _Setting("cpu", _word, "MLIRML_TARGET"),
    "device": _Setting(None, _word_or_none, "MLIRML_DEVICE"),
    "sync": _Setting(False, _switch, "MLIRML_SYNC", _parse_switch),
    "graphs": _Setting(True, _switch, "MLIRML_GRAPHS", _parse_switch),
    "streams": _Setting(4, _stream_count, "MLIRML_STREAMS", int),
    "processor": _Setting("host", _processor, "MLIRML_PROCESSOR"),
    "math": _Setting("builtin", _one_of("builtin", "libmvec"), "MLIRML_MATH"),
    "algebra": _Setting("reassociate", _one_of("exact", "reassociate"), "MLIRML_ALGEBRA"),
    "matmul_precision": _Setting("highest", _one_of("highest", "tf32"), "MLIRML_MATMUL_PRECISION"),
    "costs": _Setting("static", _one_of("static", "measured"), "MLIRML_COSTS"),
    "libraries": _Setting(("openblas",), _libraries, "MLIRML_LIBRARIES", _parse_names),
    "dynamic": _Setting("auto", _one_of("auto", "off"), "MLIRML_DYNAMIC"),
    "tune": _Setting("off", _one_of("off", "stored", "search"), "MLIRML_TUNE"),
    "tune_seconds": _Setting(30.0, _seconds, "MLIRML_TUNE_SECONDS", float),
    "tiles": _Setting("auto", _architecture, "MLIRML_TILES"),
    "cubins": _Setting("auto", _architecture, "MLIRML_CUBINS"),
    "float64": _Setting("refuse", float64_choice, "MLIRML_FLOAT64"),
    "deterministic": _Setting(False, _switch, "MLIRML_DETERMINISTIC", _parse_switch),
    "checks": _Setting(True, _switch, "MLIRML_CHECKS", _parse_switch),
    "checkpoint_bytes": _Setting(1 << 28, _byte_count, "MLIRML_CHECKPOINT_BYTES", int),
    "check_nan": _Setting(False, _switch, "MLIRML_CHECK_NAN", _parse_switch),
    "tracebacks": _Setting("short", _one_of("short", "full"), "MLIRML_TRACEBACKS"),
    "progress": _Setting(True, _switch, "MLIRML_PROGRESS", _parse_switch),
    "verify": _Setting(True, _switch, "MLIRML_VERIFY", _parse_switch),
    "explain": _Setting(False, _switch, "MLIRML_EXPLAIN", _parse_switch),
}


class Config:
    """The settings, checked when they are set.

    * `threads`: most threads of a parallel loop; None for every CPU that this process may run on (`MLIRML_THREADS`).
    * `cache`: keep compiled programs on disk (`MLIRML_CACHE`, 0 switches off).
    * `cache_dir`: where; None for the user's cache folder (`MLIRML_CACHE_DIR`).
    * `dump_dir`: write the IR after each pass of a compilation to this folder, over that of the one before; None for no
      dumps. A program from the disk cache runs no pass (`MLIRML_DUMP_DIR`).
    * `target`: the target of `compile` when none is named (`MLIRML_TARGET`).
    * `device`: where `put` puts arrays when no device is named; None for the first GPU, or the CPU where there is none
      (`MLIRML_DEVICE`).
    * `sync`: wait for each kernel on a GPU, so that the error of one that fails names it (`MLIRML_SYNC`).
    * `graphs`: launches and copies of which eight or more follow each other on a CUDA device are given to it as a graph
      from the third call of a program on (`MLIRML_GRAPHS`, 0 switches off).
    * `streams`: how many kernels that need not wait for each other are launched side by side on a CUDA device where no
      graph is made, 1 to 4 (`MLIRML_STREAMS`).
    * `processor`: what the target `cpu` makes code for: "host", or a named processor, whose code is the same on every
      machine: the levels of the ABI "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", also "sse4.1", "avx2", "avx512",
      "amx", and of AArch64 "neon", "sve", and "sve256" or "sve512" for registers of at least that many bits; with
      ",l2=512K" after it, for that size of a core's second-level cache; read when `compile` is called
      (`MLIRML_PROCESSOR`).
    * `math`: "builtin" for our own elementary functions, "libmvec" for glibc's vector functions in loops, with their
      accuracy of up to 4 ulp; read when `compile` is called (`MLIRML_MATH`).
    * `algebra`: "reassociate" for products of matrices in the order that costs least, sums of products without the
      products, common factors taken out, scales of channels folded into the weights of convolutions, quotients by what
      is the same in a loop as products with its reciprocal, constant factors of sums that a loop waits for applied to
      the terms, whose rounding errors stay within the bounds of sums, and chains of operations on f16 and bf16 that are
      rounded once, not after each operation; "exact" where each number, infinities and NaN too, must be that of the
      program as it is written, up to the order in which one sum is added up; integers are rewritten in both, as they
      wrap around; read when `compile` is called (`MLIRML_ALGEBRA`).
    * `matmul_precision`: "highest" for products of f32 in f32, "tf32" where their factors may be rounded to 10 bits,
      for NVIDIA's tensor cores; read when `compile` is called (`MLIRML_MATMUL_PRECISION`).
    * `costs`: "static" where passes decide by the same description of a machine everywhere, "measured" where they do so
      by what `mlirml machine` has measured of this one, if it has; read when `compile` is called (`MLIRML_COSTS`).
    * `libraries`: the libraries whose products of matrices the tuner may choose where they are faster than our kernels:
      `("openblas",)`, the one that NumPy is linked to if it is, or `()` (`docs/tuning.md`); read when `compile` is
      called (`MLIRML_LIBRARIES`, names with commas between them, or "none").
    * `dynamic`: "auto" for programs of dynamic sizes from the third size of a dimension on (`docs/sizes.md`), "off" for
      a program for each combination of sizes; read when `compile` is called, which may choose otherwise
      (`MLIRML_DYNAMIC`).
    * `tune`: "off" for the schedules of products and loops that the compiler chooses by itself, "stored" for those that
      were tuned on this machine and are in the file `tuned.sqlite` of the cache folder, "search" to tune those that are
      not there yet when they are compiled (`docs/tuning.md`); read when `compile` is called (`MLIRML_TUNE`).
    * `tune_seconds`: how long the schedules of one program are searched for (`MLIRML_TUNE_SECONDS`).
    * `tiles`: the architecture of NVIDIA's that products are assembled for as kernels of tiles: "auto", that of the
      device at hand, where `tileiras` is installed, "off", or one such as "sm_90"; read when `compile` is called
      (`MLIRML_TILES`).
    * `cubins`: the architecture of NVIDIA's that the other kernels are assembled for, beside PTX that is for all:
      "auto", that of the device at hand, where `ptxas` is installed, "off", or one such as "sm_90"; read when `compile`
      is called (`MLIRML_CUBINS`).
    * `float64`: what becomes of 64-bit floats on devices that lack them: "refuse" them, at the line of the function, or
      compute with "float32", also complex128 with complex64, so that results are of these; read when `compile` is
      called (`MLIRML_FLOAT64`).
    * `deterministic`: sums of floats at arrays of positions, as of `np.add.at`, are made in the order of the positions
      on GPUs too; otherwise in any order, which is faster, and their last bits may differ from call to call; read when
      `compile` is called (`MLIRML_DETERMINISTIC`).
    * `checks`: fail a call where an index in a loop function lies outside of its array, as array code always does;
      read when a signature is compiled (`MLIRML_CHECKS`).
    * `checkpoint_bytes`: a loop that would keep more than this for its gradient keeps the square root of it, and runs
      twice; read when `compile` is called (`MLIRML_CHECKPOINT_BYTES`).
    * `check_nan`: fail a call where an operation makes a NaN of operands without one, at its line, in gradients too;
      read when `compile` is called (`MLIRML_CHECK_NAN`).
    * `tracebacks`: "short" for errors that show the user's frames only, "full" for those of this package too
      (`MLIRML_TRACEBACKS`).
    * `progress`: tell on the standard error when compiling takes longer than two seconds (`MLIRML_PROGRESS`).
    * `verify`: verify the IR between stages (`MLIRML_VERIFY`).
    * `explain`: print on standard error what each compilation did, as `explain()` of the function tells it
      (`MLIRML_EXPLAIN`).

    The settings belong to the process, not to a thread. A wrong type raises TypeError, a wrong value ValueError, and
    an unknown name AttributeError.

    >>> with config.override(threads=2):
    ...     config.threads
    2
    """

    threads: int | None
    cache: bool
    cache_dir: str | None
    dump_dir: str | None
    target: str
    device: str | None
    sync: bool
    graphs: bool
    streams: int
    processor: str
    math: str
    algebra: str
    matmul_precision: str
    costs: str
    libraries: tuple[str, ...]
    dynamic: str
    tune: str
    tune_seconds: float
    tiles: str
    cubins: str
    float64: str
    deterministic: bool
    checks: bool
    checkpoint_bytes: int
    check_nan: bool
    tracebacks: str
    progress: bool
    verify: bool
    explain: bool

    def __init__(self) -> None:
        for name, setting in _SETTINGS.items():
            object.__setattr__(self, name, setting.initial())

    def __setattr__(self, name: str, value: Any) -> None:
        self._assign(name, _checked(name, value))

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"config.{name} cannot be deleted")

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={getattr(self, name)!r}' for name in _SETTINGS)})"

    def _assign(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        native = sys.modules.get(NATIVE_MODULE)
        if name == "threads" and native is not None:
            native.set_threads(value or 0)

    @contextmanager
    def override(self, **settings: Any) -> Iterator[Config]:
        """Change settings for a `with` block; all are checked before any is changed."""
        new = {name: _checked(name, value) for name, value in settings.items()}
        old = {name: getattr(self, name) for name in new}
        for name, value in new.items():
            self._assign(name, value)
        try:
            yield self
        finally:
            for name, value in old.items():
                self._assign(name, value)


def _checked(name: str, value: Any) -> Any:
    if name not in _SETTINGS:
        raise AttributeError(f"config has no setting {name!r}; it has {', '.join(_SETTINGS)}")
    try:
        return _SETTINGS[name].check(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"config.{name}: {error}") from None


config = Config()
