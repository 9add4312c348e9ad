"""`compile`, `trace` and `lower`: from a Python function and example arguments to the stages of its program."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.config import config
from mlirml.errors import ArgumentError, CaptureError, InternalError, TargetError
from mlirml.runtime import Dispatcher, Program, number_leaves
from mlirml.targets.registry import get_target, open_artifact
from mlirml.tree import TreeDef, flatten, store_leaves

if TYPE_CHECKING:
    from mlirml.capture.spec import TensorSpec
    from mlirml.capture.trace import Captured
    from mlirml.ir import mlir
    from mlirml.targets.target import Target

# MLIR contexts and LLVM's option tables are not made for several threads at once.
_COMPILER = threading.RLock()


def compile(
    fn: Callable[..., Any] | None = None, target: str | None = None, *, static_argnums: int | Sequence[int] = ()
) -> Any:
    """Compile a NumPy function to native code.

    The function is traced at its first call with arguments of new shapes or dtypes, and the program is kept, in memory
    and on disk. Arguments and results are arrays, numbers and nested containers of them (tuple, list, dict, named
    tuple, dataclass, None). Results are new NumPy arrays. Python numbers are weakly typed as in NumPy 2. Stores into
    arguments, arrays and the items of containers, are seen by the caller as with NumPy.

    Parameters:
        fn: the function; without it a decorator is returned.
        target: "cpu" or "reference"; `config.target` when not given.
        static_argnums: positions of arguments that are passed to the function as they are, such as a flag or a size.
            They must be hashable; each new value is compiled anew.

    Returns a `Compiled`.

    Raises `CaptureError` and its kinds at the first call when the function cannot be captured, `TargetError` for a
    target that is not there.

    >>> import numpy as np, mlirml as ml
    >>> double_sum = ml.compile(lambda x, y: np.sum(2 * x + y))
    >>> double_sum(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array(13.)
    """
    if fn is None:
        return partial(compile, target=target, static_argnums=static_argnums)
    return Compiled(fn, target, static_argnums)


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Captured:
    """The stage `capture` of a function for these arguments (arrays or `TensorSpec`s)."""
    return Compiled(fn).trace(*args, **kwargs)


def lower(fn: Callable[..., Any], *args: Any, target: str | None = None, **kwargs: Any) -> Lowered:
    """The stage `lower` of a function for these arguments: the module that code is generated from."""
    return Compiled(fn, target).lower(*args, **kwargs)


@dataclass
class Lowered:
    """A module after a stage."""

    module: mlir.Module = field(repr=False)
    target: Target
    stage: str

    def as_text(self) -> str:
        """The MLIR text."""
        from mlirml.ir import to_text

        return to_text(self.module)

    def emit(self, form: str) -> str:
        """The program in another form: "mlir", "llvm" (LLVM IR) or "asm" (assembly)."""
        if form == "mlir":
            return self.as_text()
        if form in ("llvm", "asm") and self.stage == "lower" and self.target.name == "cpu":
            from mlirml.targets import llvm

            return (llvm.to_llvm_ir if form == "llvm" else llvm.to_assembly)(self.module.operation)
        raise TargetError(f"target {self.target.name!r} has no form {form!r} at stage {self.stage!r}")


@dataclass
class _Build:
    """One compiled signature and how it came about."""

    captured: Captured
    treedef: TreeDef
    program: Any
    entries: list[tuple[str, str]]
    reason: str
    from_disk: bool
    seconds: dict[str, float]

    def changed_guard(self) -> str | None:
        """The name of a global or closure variable that the function read and that is another object now."""
        for holder, name, value in self.captured.guards:
            if name is None:
                if holder.cell_contents is not value:
                    return "a closure variable"
            elif holder.get(name, self) is not value:
                return f"the global `{name}`"
        return None


class Compiled(Dispatcher):
    """A function that runs as native code. Safe to call from many threads.

    `__call__(*args, **kwargs)` takes the function's arguments; `out=` (an array, or a pytree of them shaped like the
    result) receives the results instead of new arrays, unless the function has a parameter of that name.
    """

    def __init__(
        self, fn: Callable[..., Any], target: str | None = None, static_argnums: int | Sequence[int] = ()
    ) -> None:
        super().__init__(self._miss)
        if not callable(fn):
            raise ArgumentError(f"compile: expected a function, got {fn!r}")
        self.fn = fn
        self.target = get_target(config.target if target is None else target)
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self._builds: dict[Any, _Build] = {}
        self._log: list[_Build] = []
        self._takes_out = "out" in _parameter_names(fn)
        update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<mlirml.Compiled {self._name} for target {self.target.name!r}>"

    @property
    def _name(self) -> str:
        fn: Any = self.fn
        while isinstance(fn, partial):
            fn = fn.func
        return getattr(fn, "__name__", type(fn).__name__)

    # Calls that the native dispatcher does not know.

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._inlines((args, kwargs)):
            from mlirml.capture.namespace import retarget
            from mlirml.capture.trace import current_trace

            outer = current_trace()
            assert outer is not None
            return retarget(self.fn, outer)(*args, **kwargs)
        out = kwargs.pop("out", None) if "out" in kwargs and not self._takes_out else None
        call = self._call(args, kwargs)
        build = self._build(call)
        outs = None if out is None else _result_buffers(out, build.captured)
        results = self._run(build, call, outs)
        if out is None and not build.captured.replaced:
            self._remember(call, build)
        tree, count = build.captured.out_tree, build.captured.out_tree.leaf_count()
        if build.captured.replaced:
            _store_items(call, build.captured, results[count:])
        return tree.unflatten(results[:count])

    def _run(self, build: _Build, call: _Call, outs: list[Any] | None) -> Any:
        # Errors only: what is checked at each call has no words for the arguments but their numbers.
        leaves = [_leaf_array(x, s) for x, s in zip(call.leaves, call.specs)]
        try:
            return build.program(leaves, outs)
        except (TypeError, ValueError, OverflowError) as error:
            from mlirml.capture.launch import refusal

            reason = refusal(build.captured, leaves, call.paths, outs)
            raise reason or error from None

    def _inlines(self, tree: Any) -> bool:
        # A call with traced arguments belongs to the function that is being traced.
        from mlirml.capture.trace import current_trace

        if current_trace() is None:
            return False
        from mlirml.capture.array import Traced

        return any(isinstance(leaf, Traced) for leaf in flatten(tree)[0])

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        from mlirml.capture.spec import TensorSpec, spec_of

        positions = [i % len(args) if args and -len(args) <= i < len(args) else -1 for i in self.static_argnums]
        statics = {i: args[i] for i in positions if i >= 0}
        for position, value in statics.items():
            try:
                hash(value)
            except TypeError:
                raise ArgumentError(
                    f"{self._name}: static argument {position} is a {type(value).__name__}, which is not hashable"
                ) from None
        dynamic = tuple(a for i, a in enumerate(args) if i not in statics)
        leaves, treedef = flatten((dynamic, kwargs), is_leaf=lambda x: isinstance(x, TensorSpec))
        names = _argument_names(self.fn, args, kwargs, statics)
        paths = [_readable(p, names) for p in treedef.paths()]
        self._check_arguments(args, kwargs)
        specs = tuple(spec_of(leaf, path) for leaf, path in zip(leaves, paths))
        abstract = any(isinstance(leaf, TensorSpec) for leaf in leaves)
        return _Call(args, kwargs, statics, leaves, treedef, specs, paths, abstract)

    def _check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            signature = inspect.signature(self.fn)
        except (TypeError, ValueError):  # a builtin
            return
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self._name}{signature}: {error}", location=_definition(self.fn), help=None) from None

    def _build(self, call: _Call) -> _Build:
        key = call.key()
        build = self._builds.get(key)
        reason = None
        if build is not None:
            changed = build.changed_guard()
            if changed is None:
                return build
            reason = f"{changed} has another value than when the function was compiled"
        with _COMPILER:
            build = self._builds.get(key)
            if build is None or build.changed_guard() is not None:
                if reason is not None:
                    self.clear()  # programs for the old value of a variable would pile up
                build = self._compile(call, reason or self._why(call))
                self._builds[key] = build
                self._log.append(build)
        return build

    def _compile(self, call: _Call, reason: str) -> _Build:
        if call.abstract:
            raise ArgumentError(f"{self._name}: a TensorSpec has no elements to compute with", help="pass an array")
        from mlirml import cache

        start = time.perf_counter()
        captured = self._capture(call)
        seconds = {"capture": time.perf_counter() - start}
        entries = cache.key_entries(captured.key, self.target.fingerprint())
        start = time.perf_counter()
        artifact = cache.load(entries)
        seconds["cache lookup"] = time.perf_counter() - start
        from_disk = artifact is not None
        if artifact is None:
            start = time.perf_counter()
            module = _parsed(captured)
            seconds["parse"] = time.perf_counter() - start
            seconds.update(_run_pipeline(self.target, module))
            start = time.perf_counter()
            artifact = self.target.codegen(module)
            seconds["codegen"] = time.perf_counter() - start
            cache.store(entries, artifact)
        start = time.perf_counter()
        program = open_artifact(
            artifact,
            [(s.dtype, s.shape) for s in captured.inputs],
            [(s.dtype, s.shape) for s in captured.outputs],
            constants=captured.constants,
            writebacks=captured.writebacks,
            int_ranges=captured.int_ranges,
            weak=[s.weak for s in captured.inputs],
        )
        seconds["load"] = time.perf_counter() - start
        return _Build(captured, call.treedef, program, entries, reason, from_disk, seconds)

    def _capture(self, call: _Call) -> Captured:
        from mlirml.capture.trace import trace as capture

        return capture(self.fn, call.treedef, call.specs, self._name, call.statics)

    def _remember(self, call: _Call, build: _Build) -> None:
        """Let the native dispatcher recognise such calls from now on."""
        numbered = number_leaves(call.args, call.kwargs)
        if numbered is None or not isinstance(build.program, Program):
            return
        numbers_args, numbers_kwargs = numbered
        static = [n for i in call.statics for n in flatten(numbers_args[i])[0]]
        if any(flatten(call.args[i])[1].kind != "leaf" for i in call.statics):
            return
        dynamic = tuple(a for i, a in enumerate(numbers_args) if i not in call.statics)
        order = flatten((dynamic, numbers_kwargs))[0]
        tree = build.captured.out_tree
        try:
            result: Any = tree.nested(iter(range(tree.leaf_count())))
        except ValueError:
            count = tree.leaf_count()
            result = lambda outputs: tree.unflatten(outputs[:count])  # noqa: E731
        self.add(call.args, call.kwargs, build.program, result, order, static, build.captured.guards)

    # Stages.

    def trace(self, *args: Any, **kwargs: Any) -> Captured:
        """The captured module for these arguments (arrays or `TensorSpec`s); `.as_text()` prints it."""
        with _COMPILER:
            return self._capture(self._call(args, kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The module after all passes, ready for code generation."""
        return self._run_until(None, args, kwargs)

    def executable(self, *args: Any, **kwargs: Any) -> Any:
        """The loaded program for these arguments: `program(list of leaves, outs or None) -> list of outputs`."""
        return self._build(self._call(args, kwargs)).program

    def ir(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The MLIR text after a stage: capture, raise, transform, optimize, offload, schedule or lower."""
        return self._run_until(stage, args, kwargs).as_text()

    def _run_until(self, stage: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
        with _COMPILER:
            captured = self._capture(self._call(args, kwargs))
            module = _parsed(captured)
            if stage != "capture":
                _run_pipeline(self.target, module, stage)
            return Lowered(module, self.target, stage or self.target.stages[-1][0])

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """What was compiled, why, from where and in what time; with arguments, also what a call with them would do."""
        lines = [f"{self._name}: target {self.target.name}, {len(self._log)} signature(s) compiled"]
        for number, build in enumerate(self._log, 1):
            lines += _report(number, build)
        if args or kwargs:
            call = self._call(args, kwargs)
            known = self._builds.get(call.key())
            changed = known.changed_guard() if known is not None else None
            if known is not None and changed is None:
                lines.append(f"this call: runs signature {self._log.index(known) + 1}")
            else:
                why = self._why(call) if changed is None else f"{changed} changed"
                lines.append(f"this call: would compile, because {why}")
        return "\n".join(lines)

    def _why(self, call: _Call) -> str:
        """Why no known signature fits: what differs from the one most like it."""
        if not self._log:
            return "it is the first call"
        best: list[str] | None = None
        for build in self._log:
            if build.treedef != call.treedef:
                differences = ["the arguments have another structure"]
                weight = 1000
            else:
                old = build.captured.inputs
                differences = [
                    f"`{path}` is {new}, was {was}" for path, new, was in zip(call.paths, call.specs, old) if new != was
                ]
                weight = len(differences)
            if not differences:
                differences = ["a static argument has a new value"]
            if best is None or weight <= len(best):
                best = differences
        return "; ".join(best or [])


@dataclass
class _Call:
    """Arguments taken apart."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    statics: dict[int, Any]
    leaves: list[Any]
    treedef: TreeDef
    specs: tuple[TensorSpec, ...]
    paths: list[str]
    abstract: bool

    @property
    def dynamic(self) -> tuple[Any, ...]:
        return tuple(a for i, a in enumerate(self.args) if i not in self.statics)

    def key(self) -> Any:
        return self.treedef, self.specs, tuple((i, _exact(v)) for i, v in sorted(self.statics.items()))


def _exact(value: Any) -> Any:
    """A static argument such that equal means the same to the function: 1, 1.0 and True differ, 0.0 and -0.0 too."""
    if type(value) is tuple:
        return tuple, tuple(map(_exact, value))
    return type(value), value.hex() if type(value) is float else value


def _parsed(captured: Captured) -> mlir.Module:
    """The captured text as a module. MLIR's verifier runs here: what it refuses, the op records should have."""
    from mlirml.ir import mlir, parse
    from mlirml.passes.run import error_from_diagnostics

    try:
        return parse(captured.text)
    except mlir.MLIRError as error:
        found = error_from_diagnostics(error, "the captured module is not valid MLIR")
        raise InternalError(
            f"captured as invalid MLIR: {found.message}", location=found.location, notes=found.notes, stage="capture"
        ) from None


def _run_pipeline(target: Target, module: mlir.Module, stop_after: str | None = None) -> dict[str, float]:
    """Run the target's passes; the seconds that each stage took."""
    from pathlib import Path

    from mlirml.passes import Instrumentation

    watch = Instrumentation(dump_dir=Path(config.dump_dir) if config.dump_dir else None)
    target.pipeline.run(module, stop_after=stop_after, instrumentation=watch)
    seconds: dict[str, float] = {}
    for timing in watch.timings:
        seconds[timing.stage] = seconds.get(timing.stage, 0.0) + timing.seconds
    return seconds


def _leaf_array(leaf: Any, spec: TensorSpec) -> Any:
    if spec.weak or isinstance(leaf, np.ndarray):
        return leaf
    return np.asarray(leaf)


def _result_buffers(out: Any, captured: Captured) -> list[Any]:
    leaves, tree = flatten(out)
    if tree != captured.out_tree:
        raise ArgumentError("`out` must be structured like the result", help="a single array, or a pytree of arrays")
    for number, (leaf, spec) in enumerate(zip(leaves, captured.outputs)):
        if not isinstance(leaf, np.ndarray) or leaf.shape != spec.shape or leaf.dtype != spec.dtype:
            shown = f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, np.ndarray) else type(leaf).__name__
            raise ArgumentError(f"`out`: result {number} is {spec}, but the array given for it is {shown}")
    return leaves + [None] * (len(captured.outputs) - len(leaves))


def _store_items(call: _Call, captured: Captured, values: Sequence[np.ndarray]) -> None:
    """Put the new items of the containers among the arguments where the function put them."""
    specs = captured.outputs[captured.out_tree.leaf_count() :]
    new = {number: spec.restored(value) for number, spec, value in zip(captured.replaced, specs, values)}
    store_leaves((call.dynamic, call.kwargs), new)


def _parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return ()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return (*parameters, "out")
    return tuple(parameters)


def _argument_names(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], statics: dict[int, Any]
) -> list[str]:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    names = [positional[i].name if i < len(positional) else f"{rest}[{i - len(positional)}]" for i in range(len(args))]
    return [n for i, n in enumerate(names) if i not in statics]


def _readable(path: str, names: list[str]) -> str:
    """`[0][2]['w']`, a path into (args, kwargs), as the user's `params['w']`."""
    which, _, rest = path[1:].partition("]")
    inner, _, tail = rest[1:].partition("]")
    if which == "0":
        return names[int(inner)] + tail
    return inner.strip("'\"") + tail


def _definition(fn: Any) -> Any:
    from mlirml.capture.trace import definition

    return definition(fn)


def _report(number: int, build: _Build) -> list[str]:
    from mlirml.cache import key_of

    source = "loaded from the disk cache" if build.from_disk else "compiled"
    total = sum(build.seconds.values())
    times = ", ".join(f"{name} {1e3 * t:.1f}" for name, t in build.seconds.items())
    inputs = ", ".join(map(str, build.captured.inputs))
    outputs = ", ".join(map(str, build.captured.outputs))
    return [
        f"{number}. ({inputs}) -> ({outputs})",
        f"   because {build.reason}",
        f"   {source} in {1e3 * total:.1f} ms ({times})",
        f"   cache entry {key_of(build.entries)[:16]}: "
        + ", ".join(
            f"{name} {value[:16]}" for name, value in build.entries if not name.startswith(("pipeline", "cpu.flags"))
        ),
    ]


__all__ = ["CaptureError", "Compiled", "Lowered", "compile", "lower", "trace"]
