"""`compile`, `trace` and `lower`: from a Python function and example arguments to the stages of its program."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from mlirml.core.config import config
from mlirml.core.processes import COMPILER, sends_functions, uncollected
from mlirml.core.rooms import repeated
from mlirml.core.sizes import is_dynamic_shape
from mlirml.core.tracebacks import without_own_frames
from mlirml.core.tree import flatten, has_own_equality
from mlirml.driver import options
from mlirml.driver.argument_options import check_static, definition_of, name_of
from mlirml.driver.calls import (
    MOST_COMPARED,
    Build,
    Call,
    changed,
    check_containers,
    device_form,
    drop_program,
    flat_form,
    has_lists,
    has_short_lists,
    is_traced,
    needs_no_look,
    notes_on,
    program_input,
    reason_for,
    report,
    result_buffers,
    store_items,
    without,
)
from mlirml.driver.compilation import (
    Clock,
    Lowered,
    begin_loading,
    compiled,
    on_loops,
    opened,
    parsed,
    progress,
    remarks_of,
    run_pipeline,
    target_for,
)
from mlirml.driver.dynamic import INSTANCES, Dimensions, check_takes_sizes
from mlirml.driver.frontends import with_frontend
from mlirml.driver.recognised import FORMS, UNKNOWN, KnownCalls, packed
from mlirml.driver.signature import (
    argument_names,
    listed,
    parameters_of,
    positions_of,
    positions_of_names,
    readable,
    signature_of,
    takes_out,
)
from mlirml.driver.state import Group, State
from mlirml.errors import (
    ArgumentError,
    CaptureError,
    CheckFailed,
    LaunchError,
    MlirmlError,
)
from mlirml.frontend.current import current_trace
from mlirml.frontend.source.choose import (
    MARK,
    check_frontend,
    keeps_loops,
    takes_lists,
)
from mlirml.runtime import Dispatcher, Program
from mlirml.runtime.array import Array
from mlirml.runtime.device import device
from mlirml.runtime.device_program import DeviceProgram
from mlirml.targets.registry import get_target

if TYPE_CHECKING:
    from mlirml.driver.profiling.profile import Profile
    from mlirml.frontend.captured import Captured
    from mlirml.passes import Remark
    from mlirml.targets.target import Target

_LOG_LENGTH = 1000
_MOST_BOUND = 256
"""The methods of so many objects without a dict are kept, and with them the objects."""


def compile(
    fn: Callable[..., Any] | None = None,
    target: str | None = None,
    *,
    frontend: str = "auto",
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    explain: str | None = None,
    float64: str | None = None,
    tune: bool | str | None = None,
    pipeline: Sequence[str] | None = None,
    dynamic: Mapping[str, Sequence[Any]] | str | None = None,
) -> Any:
    """Compile a NumPy function to native code.

    The function is traced at its first call with arguments of new shapes or dtypes, and the program is kept, in memory
    and on disk. Arguments and results are arrays, numbers and nested containers of them (tuple, list, dict, named
    tuple, dataclass, None). Results are new NumPy arrays. Python numbers are weakly typed as in NumPy 2. Stores into
    arguments, arrays and the items of containers, are seen by the caller as with NumPy. A method is compiled for each
    object whose method it is, with what it reads of the object.

    Parameters:
        fn: the function; without it a decorator is returned.
        target: "cpu" for machine code of this processor, "cuda" for NVIDIA's GPUs, "vulkan" for any GPU with a Vulkan
            driver, "metal" for those of macOS, "webgpu" for WGSL that any WebGPU runs, "reference" for an
            interpreter in NumPy, which is slow and needs no code generator; `config.target` when not given.
        frontend: "loops" keeps Python's loops and branches, "trace" runs them while tracing, and "auto" keeps them in
            functions that loop over elements (`docs/loops.md`).
        static_argnums: positions of arguments that are passed to the function as they are, such as a flag or a size.
            They must be hashable, and may be passed by name; each new value is compiled anew. Strings, functions,
            dtypes and enums are static by themselves, as parts of containers too, and so is a Python integer whose
            value tracing needs, as a size or in a branch; `explain()` tells which.
        static_argnames: the same by name, also for arguments that are only passed by name.
        donate_argnums: positions of arguments that the caller has no more use for: results of the same shapes and
            dtypes are written into their memory, and are these very arrays, so that a training step needs no memory
            for new parameters. What such an argument holds after the call is not defined. On the CPU; elsewhere, for
            arguments that share memory, and for results that fit no such argument, it has no effect.
        explain: "raise" tells on standard error, at each compilation, what became of each loop: to which operation it
            was raised, or why it stays a loop.
        float64: what becomes of 64-bit floats on a device without them: "refuse" or "float32"; `config.float64` when
            not given. With "float32" arguments are rounded when they are copied there, and results are float32 arrays.
        tune: True to search for the fastest schedules of products and loops on this machine, where the file of tuned
            schedules has none yet, "stored" to use those of the file only, False for neither; `config.tune` when not
            given (`docs/tuning.md`). On the CPU.
        pipeline: the optional passes to run, in this order, by their names in `mlirml-opt`, with options as there; all
            of the recipe, `optional_passes()`, when not given. Passes of different stages run in their stages. On the
            CPU.
        dynamic: dimensions whose sizes may change without compiling anew (`docs/sizes.md`): `{"x": ("n", None)}` names
            the first of an array argument `x` with two, "auto" takes those that have had three sizes, "off" none;
            `config.dynamic` when not given. On `cpu`, `vulkan`, `cuda`.

    Returns a `Compiled`.

    Raises `ArgumentError` where an option does not fit the function, `TargetError` for a target that does not exist,
    `PipelineError` for a pass that does not exist or is not optional.
    The first call raises `CaptureError` and its subclasses where the function cannot be captured, and each call
    `IndexOutOfBoundsError`, `FailedAssertionError`, or the exception of a `raise` statement of the function.

    >>> import numpy as np, mlirml as ml
    >>> double_sum = ml.compile(lambda x, y: np.sum(2 * x + y))
    >>> double_sum(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array(13.)
    """
    if fn is None:
        given: Any = {"static_argnums": static_argnums, "static_argnames": static_argnames}
        given |= {"donate_argnums": donate_argnums, "explain": explain, "float64": float64}
        given |= {"tune": tune, "pipeline": pipeline, "dynamic": dynamic}
        return partial(compile, target=target, frontend=frontend, **given)
    given = static_argnums, explain, frontend, donate_argnums, float64, static_argnames, tune, pipeline, dynamic
    return Compiled(fn, target, *given)


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Captured:
    """The captured program of a function for these arguments, which is not run.

    Parameters:
        fn: the function, as for `compile`.
        args, kwargs: its arguments; a `TensorSpec` in the place of an array tells its shape and dtype only.

    Returns the MLIR module of stage `capture`: `.as_text()` is its text, `.inputs` and `.outputs` are the `TensorSpec`s
    of the leaves of arguments and results.

    Raises `CaptureError` and its subclasses where the function cannot be captured.

    >>> import numpy as np, mlirml as ml
    >>> program = ml.trace(lambda x: np.sum(x, axis=0), ml.TensorSpec((4, 3), np.float32))
    >>> [str(spec) for spec in program.inputs + program.outputs]
    ['f32[4,3]', 'f32[3]']
    >>> "linalg.generic" in program.as_text()
    True
    """
    return Compiled(fn).trace(*args, **kwargs)


def lower(fn: Callable[..., Any], *args: Any, target: str | None = None, **kwargs: Any) -> Lowered:
    """The stage `lower` of a function for these arguments: the module that code is generated from.

    Parameters:
        fn: the function, as for `compile`.
        args, kwargs: its arguments, arrays or `TensorSpec`s.
        target: the name of a target, as for `compile`. No device is needed.

    Returns an object with `.as_text()`, the MLIR text, and `.emit(form)`, the program as "mlir", of `cpu` as "llvm" or
    "asm", of `cuda` as "ptx", of `vulkan` as "spirv" (bytes), of `webgpu` and `metal` as "wgsl".

    Raises `CaptureError` and its subclasses where the function cannot be captured, `LoweringError` where a pass fails,
    `TargetError` for a form that the target does not have.

    >>> import numpy as np, mlirml as ml
    >>> lowered = ml.lower(lambda x: x + 1, ml.TensorSpec((4,), np.float64))
    >>> "llvm.func" in lowered.as_text(), "define" in lowered.emit("llvm")
    (True, True)
    """
    return Compiled(fn, target).lower(*args, **kwargs)


_T = TypeVar("_T")


class Compiled(Dispatcher):
    """A function that runs as native code: what `compile` returns. Safe to call from many threads.

    `__call__(*args, **kwargs)` takes the function's arguments; `out=` (an array, or a pytree of them shaped like the
    result) receives the results instead of new arrays, unless the function has a parameter of that name. `fn` is the
    function as it was given.

    >>> import numpy as np, mlirml as ml
    >>> double = ml.compile(lambda x: 2 * x)
    >>> result = np.empty(2)
    >>> double(np.array([1.0, 2.0]), out=result) is result
    True
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        target: str | None = None,
        static_argnums: int | Sequence[int] = (),
        explain: str | None = None,
        frontend: str = "auto",
        donate_argnums: int | Sequence[int] = (),
        float64: str | None = None,
        static_argnames: str | Sequence[str] = (),
        tune: bool | str | None = None,
        pipeline: Sequence[str] | None = None,
        dynamic: Any = None,
    ) -> None:
        super().__init__(self._miss, callable(fn) and not takes_out(fn))
        if not callable(fn):
            raise ArgumentError(f"compile: expected a function, got {fn!r}")
        if explain not in (None, "raise"):
            raise ArgumentError(f"compile: explain={explain!r} is not known", help='write explain="raise"')
        self._signature = signature_of(fn)
        self._takes_names = any(p.kind is p.VAR_KEYWORD for p in parameters_of(fn))
        self.fn = fn
        self._explains = explain
        check_frontend(frontend)
        self.frontend = frontend
        self.float64 = options.checked_float64(float64)
        self.target = get_target(config.target if target is None else target, self.float64)
        self.tune = options.checked_tune(tune, self.target)
        self.pipeline = options.checked_passes(pipeline)
        self.target = options.with_passes(self.target, self.pipeline)
        positions, self.static_argnames = positions_of_names(fn, self._name, static_argnames)
        positions += listed("static_argnums", static_argnums, int)
        self.static_argnums, self._static_names = positions_of(fn, self._name, "static_argnums", positions)
        self._static_names += self.static_argnames
        self.donate_argnums, self._donated_names = positions_of(fn, self._name, "donate_argnums", donate_argnums)
        if both := [i for i in self.donate_argnums if i in self.static_argnums]:
            raise ArgumentError(f"compile: argument {both[0]} is in static_argnums and in donate_argnums")
        self._dimensions = Dimensions(dynamic, self._name)
        check_takes_sizes(self._dimensions, self.target, self.pipeline, self.tune, self.donate_argnums)
        self._instances: dict[Any, Build] = {}  # of builds of dynamic sizes
        self._builds: dict[Any, Build] = {}
        self._device_forms: dict[Any, Build] = {}  # of calls of programs on devices
        self._sizes: dict[str, str] = {}  # the integers among the arguments that are static by themselves, and why
        self._packs_lists = not self.donate_argnums  # whether long lists are passed as arrays
        self._takes_lists: bool | None = None  # None before the first call with one
        self._by_layout = False  # whether the program depends on how arguments lie in memory
        self._apart: dict[Any, Captured] = {}  # what calls with overlapping arguments would be without
        self._programs: deque[Build] = deque(maxlen=MOST_COMPARED)  # shared by the same method of all objects
        self._compiled = 0
        self._log: deque[str] = deque(maxlen=_LOG_LENGTH)
        self._state = State()
        self._known = KnownCalls(self, self._state)
        self._takes_out = takes_out(fn)
        self._attribute = self._name
        self._bound: dict[Any, Compiled] = {}  # the methods of objects without a dict, by the address of the object
        update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<mlirml.Compiled {self._name} for target {self.target.name!r}>"

    @property
    def _name(self) -> str:
        return name_of(self.fn)

    # As a function: methods, copies, pickles.

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an object: compiled for this object, whose attributes the function may read."""
        if instance is None or not hasattr(type(self.fn), "__get__"):
            return self
        key: Any
        key, held = f"_compiled_{self._attribute}", getattr(instance, "__dict__", None)
        if type(held) is not dict:  # of a class, or of an object with slots
            key, held = id(instance), self._bound
            if key not in held and len(held) >= _MOST_BOUND:
                held.pop(next(iter(held)), None)
        method, bound = MethodType(self.fn, instance), held.get(key)
        if bound is None or bound.fn != method:  # equal methods are of one object; a copy of it has the old one's
            static, donated = (tuple(i - 1 for i in n if i > 0) for n in (self.static_argnums, self.donate_argnums))
            bound = held[key] = Compiled(
                method, self.target.name, static, self._explains, self.frontend, donated, self.float64,
                self.static_argnames, self.tune, self.pipeline, self._dimensions.given,
            )  # fmt: skip
            bound._attribute, bound._programs = self._attribute, self._programs
        return bound

    def __copy__(self) -> Compiled:
        return self

    def __reduce__(self) -> Any:
        fn: Any = self.fn
        if isinstance(fn, MethodType) and getattr(type(fn.__self__), self._attribute, self) is not self:
            return getattr, (fn.__self__, self._attribute)
        name = getattr(fn, "__qualname__", "")
        module = getattr(fn, "__module__", "")
        # Other processes have another `__main__`, unless multiprocessing prepares it; cloudpickle sends its functions.
        is_sent = module == "__main__" and sends_functions()
        if not is_sent and getattr(sys.modules.get(module), name, None) is self:
            return name
        given = self.static_argnums, self._explains, self.frontend, self.donate_argnums, self.float64
        given += self.static_argnames, self.tune, self.pipeline, self._dimensions.given  # type: ignore[assignment]
        return Compiled, (fn, self.target.name, *given)

    # Calls that the native dispatcher does not know.

    @without_own_frames
    @repeated
    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not kwargs and self._packs_lists and (result := self._known.with_lists(args)) is not UNKNOWN:
            return result
        if self._state.is_used:
            named = kwargs if self._takes_names else dict(sorted(kwargs.items()))
            if (result := self._known.with_state(args, named)) is not UNKNOWN:
                return result
        if self._device_forms and "out" not in kwargs:
            form, leaves = flat_form(args) if not kwargs else None, list(args)
            if form is None:
                leaves, tree = flatten((args, kwargs))
                form = device_form(leaves, tree)
            known = self._device_forms.get(form)
            if known is not None and known.program.remaining != 0 and known.changed(self.fn) is None:
                results = self._checked(known, partial(known.program, leaves))
                return known.captured.result(results)
        with uncollected():
            self._load_ahead()
            inlines = is_traced((args, kwargs))
        if inlines:
            from mlirml.frontend.namespace.numpy_namespace import retarget

            outer = current_trace()
            assert outer is not None
            if keeps_loops(self.fn, self.frontend, outer.builder.direct):
                return outer.call_loops(getattr(self.fn, MARK, self.fn), args, kwargs)
            return retarget(self.fn, outer)(*args, **kwargs)
        out = kwargs.pop("out", None) if "out" in kwargs and not self._takes_out else None
        state = self._state.group(args, kwargs)
        call, build = self._settled(state, partial(self._prepared, args, kwargs))
        outs = None if out is None else result_buffers(out, build.captured)
        if build.captured.writebacks:
            for leaf in call.leaves:
                if isinstance(leaf, Array):
                    leaf.detach()
        check_containers(call, build.captured)
        results, captured = self._run(build, call, outs), build.captured
        if captured.is_plain and not call.overlaps:
            self._known.add(call, build, partial(_failure, captured, repeats=True))
            is_for_device = isinstance(build.program, DeviceProgram) and not state.variables
            if out is None and is_for_device and needs_no_look(build):
                form = flat_form(args) if not kwargs else None
                form = form or device_form(call.leaves, flatten((args, kwargs))[1])
                if form is not None and len(self._device_forms) < FORMS:
                    self._device_forms[form] = build
        store_items(call, captured, results)
        if state.variables:
            state.write_back(call, captured)
        if self.target.device == "cpu" and any(isinstance(leaf, Array) for leaf in call.leaves):
            host = device("cpu")
            results = [Array(host, x, x.shape, x.dtype) for x in results]
        return build.captured.result(results)

    def _prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, Build]:
        call = self._call(args, kwargs)
        try:
            return call, self._build(call) if not self._dimensions or call.abstract else self._build_sized(call)
        except CaptureError as error:
            if error.sizes or error.layout or not has_short_lists(call):
                raise
        self._packs_lists = False
        return self._prepared(args, kwargs)

    def _build_sized(self, call: Call) -> Build:
        """The build for a call that may have a program of dynamic sizes; "auto" prefers one for its sizes."""
        if self._dimensions.is_automatic and call.key() in self._builds:
            return self._build(call)
        found = self._dimensions.general(call, definition_of(self.fn), self._build)
        if found is None:
            return self._dimensions.static(call, self._build)
        general, values = found
        key = (id(general.program), *values.items())
        build = self._instances.get(key)
        if build is None:
            if len(self._instances) >= INSTANCES:
                self._forget(None)
            build = self._instances[key] = self._dimensions.instance(general, values)
        return self._build(call) if self._dimensions.is_often(build) else build

    def _load_ahead(self) -> None:
        # What is found in the cache needs no compiler.
        from mlirml.driver import cache

        if not self._builds and not cache.is_there():
            begin_loading()

    def _run(self, build: Build, call: Call, out_arrays: list[Any] | None) -> Any:
        return self._checked(build, partial(self._run_unchecked, build, call, out_arrays))

    def _checked(self, build: Build, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except CheckFailed as failed:
            raise _failure(build.captured, failed) from None

    def _run_unchecked(self, build: Build, call: Call, out_arrays: list[Any] | None) -> Any:
        leaves = call.inputs
        if isinstance(build.program, Program):  # checks at each call, but has no words for the arguments
            try:
                return build.program(leaves, out_arrays)
            except (ValueError, OverflowError) as error:
                raise self._refusal(build, call, leaves, out_arrays) or error from None
        reason = self._refusal(build, call, leaves, out_arrays)
        if reason is not None:
            raise reason
        return build.program(leaves, out_arrays)

    def _refusal(self, build: Build, call: Call, leaves: list[Any], out_arrays: list[Any] | None) -> MlirmlError | None:
        from mlirml.driver.argument_errors import refusal

        return refusal(build.captured, leaves, call.input_paths(), out_arrays)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        from mlirml.frontend.spec import TensorSpec, is_static, spec_of

        self._check_arguments(args, kwargs)
        state = self._state.group(args, kwargs)
        order = () if self._takes_names or state.variables else tuple(kwargs)
        if not self._takes_names:  # in which order they are given makes no difference
            kwargs = dict(sorted(kwargs.items()))
        statics: dict[int | str, Any] = {i: args[i] for i in self.static_argnums if i < len(args)}
        statics |= {name: kwargs[name] for name in self._static_names if name in kwargs}
        if state.variables:
            from mlirml.frontend.captured import STATE

            kwargs = {**kwargs, STATE: state.items()}
        names = argument_names(self._signature, args)
        for place, value in statics.items():
            check_static(value, place if isinstance(place, str) else names[place], self.fn)
        dynamic = without(args, kwargs, statics)
        if self._packs_lists and (lists := packed(*dynamic)):
            if self._takes_lists is None:
                self._takes_lists = takes_lists(self.fn, self.frontend)
            dynamic = lists if self._takes_lists else dynamic
        leaves, treedef = flatten(dynamic, is_leaf=lambda x: isinstance(x, TensorSpec))
        paths = [readable(p, [n for i, n in enumerate(names) if i not in statics]) for p in treedef.paths()]
        paths = state.named(paths)
        constants = {i: leaf for i, leaf in enumerate(leaves) if is_static(leaf) or self._is_size(paths[i], leaf)}
        for number, leaf in constants.items():
            if not has_own_equality(leaf):
                check_static(leaf, paths[number], self.fn)
        treedef = treedef.with_constants(constants)
        named = {paths[number]: leaf for number, leaf in constants.items()}
        paths = [path for i, path in enumerate(paths) if i not in constants]
        leaves = [leaf for i, leaf in enumerate(leaves) if i not in constants]
        specs = tuple(spec_of(leaf, path) for leaf, path in zip(leaves, paths))
        abstract = any(isinstance(leaf, TensorSpec) for leaf in leaves)
        read = partial(program_input, target=self.target, name=self._name, location=definition_of(self.fn))
        inputs = leaves if abstract else [*map(read, leaves, specs, paths)]
        given = (state, args, kwargs, statics, leaves, treedef, specs, paths, names, abstract, inputs)
        call = Call(*given, constants=named, dynamic=dynamic, order=order)
        self._see_overlaps(call)
        return call

    def _is_size(self, path: str, leaf: Any) -> bool:
        """True if a leaf is a Python integer whose value tracing needs."""
        return path in self._sizes and type(leaf) in (bool, int)

    def _settled(self, state: Group, use: Callable[[], _T]) -> _T:
        """The result of `use`, which traces the function, once all state variables that its signatures hold are known.

        A garbage collection would run the callbacks of others, whose clocks and variables are none of the function's.
        """
        with uncollected():
            return state.settled(lambda: self._specialised(use))

    def _specialised(self, use: Callable[[], _T]) -> _T:
        """The result of `use`; arguments that tracing specialises on become part of the signatures from then on.

        That is how they lie in memory, and the values of Python integers that are sizes or decide a branch.
        """
        while True:
            try:
                return use()
            except CaptureError as error:
                if error.layout and not self._by_layout:
                    self._by_layout = True
                elif error.sizes - self._sizes.keys():
                    place = "" if error.location is None else f" ({replace(error.location, function='')})"
                    for path in sorted(error.sizes - self._sizes.keys()):
                        self._sizes[path] = f"`{path}` is static: {error.subject or 'a slice'} needs its value{place}"
                else:
                    raise

    def _see_overlaps(self, call: Call) -> None:
        """Find the arguments that share memory with one that is stored into, and make views of one argument of them."""
        from mlirml.driver import argument_errors as launch
        from mlirml.frontend import aliasing

        if self._by_layout:
            call.overlaps = aliasing.with_layouts(aliasing.NONE, call.inputs)
        if call.abstract or not aliasing.may_overlap(call.inputs):
            return
        with COMPILER:
            captured = self._captured_apart(call)
        stored = [target for _, target in captured.writebacks]
        if not stored:
            return
        try:
            found, inputs = aliasing.find(call.inputs, stored)
        except aliasing.NotCompiled as error:
            raise launch.overlap_refused(captured, call.inputs, call.paths, error) from None
        if found.groups:
            refused = launch.store_refused(captured, call.inputs, call.paths)
            if refused is not None:
                raise refused
            call.overlaps, call.inputs = found if not self._by_layout else aliasing.with_layouts(found, inputs), inputs

    def _captured_apart(self, call: Call) -> Captured:
        """The function captured as if its arguments did not overlap, which tells what it stores into."""
        key = call.key()
        build = self._builds.get(key)
        captured = self._apart.get(key) if build is None else build.captured
        if captured is None or changed(captured, self.fn) is not None:
            captured = self._apart[key] = self._capture(call)
        return captured

    def _check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._signature is None:
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            plain = [p.replace(annotation=p.empty) for p in self._signature.parameters.values()]
            shown = f"{self._name}{inspect.Signature(plain)}"
            raise ArgumentError(f"{shown}: {error}", location=definition_of(inspect.unwrap(self.fn))) from None

    def _build(self, call: Call) -> Build:
        key = self._dimensions.key(call)
        build = self._builds.get(key)
        reason = None
        if build is not None:
            reason = build.changed(self.fn)
            if reason is None:
                return build
        with COMPILER:
            key = self._dimensions.key(call)  # other threads may have made programs for other conditions meanwhile
            build = self._builds.get(key)
            if build is None or build.changed(self.fn) is not None:
                if reason is not None:
                    self._forget(key)
                old, build = build, self._compile(call, reason or reason_for(call, self._builds.values()))
                if old is not None and old.program is not build.program:
                    drop_program(self._programs, old)
                self._builds[key] = build
                self._dimensions.note(key, call, build.captured.conditions)
        return build

    def _forget(self, key: Any) -> None:
        """Let go of programs for the old value of a variable, which would pile up."""
        for build in self._builds.values():
            build.remembered.clear()
        self._builds.pop(key, None)
        self._instances.clear()
        self._device_forms.clear()
        self._known.clear()

    def _compile(self, call: Call, reason: str) -> Build:
        if call.abstract:
            raise ArgumentError(f"{self._name}: a TensorSpec has no elements to compute with", help="pass an array")
        with progress(self._name) as clock:
            return self._compile_timed(call, reason, clock)

    def _compile_timed(self, call: Call, reason: str, clock: Clock) -> Build:
        from mlirml.driver import cache

        captured = self._dimensions.accepted(self._apart.pop(call.key(), None) or self._capture(call))  # type: ignore[arg-type]
        clock.note("capture")
        # A program on a device has the words for its checks.
        shared = [b for b in self._programs if self.target.device == "cpu" or b.captured.checks == captured.checks]
        alike = next((build for build in shared if build.captured.runs_as(captured)), None)
        if alike is not None:  # what has changed makes no difference to the program
            return alike.for_call(call, captured)
        target = self._target_for(captured, self.tune)
        if self.tune != "off":
            clock.note("tuning")
        entries = cache.key_entries(captured.key, target.fingerprint())
        artifact, program = self._cached_program(captured, target, entries, clock)
        from_disk = program is not None
        remarks = None
        if program is None:
            begin_loading()
            artifact, watch = compiled(target, captured, clock)
            remarks = on_loops(watch)
            cache.store(entries, artifact)
            clock.note("store")
            program = opened(captured, artifact, target)
            clock.note("load")
        if target.device != "cpu":
            program.explain = partial(_failure, captured)
        self._compiled += 1
        self._log.append(report(self._compiled, captured, artifact, entries, reason, from_disk, clock))
        if config.explain:
            print(f"{self._name}: {self._log[-1]}", file=sys.stderr)
        statics = call.static_values()
        build = Build(
            self._compiled, captured, call.treedef, call.specs, call.paths, statics, program, call.overlaps, remarks
        )
        if not isinstance(self.fn, MethodType) or (target.device == "cpu" and not captured.host_functions):
            self._programs.append(build.without_objects())
        if self._explains:
            shown = [remark for remark in self._remarks(build) if remark.topic == "loops"]
            print("".join(f"{remark.shown()}\n" for remark in shown), end="", file=sys.stderr)
        return build

    def _target_for(self, captured: Captured, tune: str = "off") -> Target:
        """The target in the form that a program needs: with its tuned schedules, or for dynamic sizes.

        With "search" schedules that are not known are searched for.
        """
        target = target_for(self.target, captured)
        if tune == "off" or captured.is_dynamic:
            return target
        from mlirml.tuning.program import with_tuned_schedules

        return with_tuned_schedules(target, captured, tune, config.tune_seconds)

    def _remarks(self, build: Build) -> list[Remark]:
        """The remarks on the loops and products of a program; for one from the disk cache the passes run once more."""
        if build.remarks is None:
            build.remarks = remarks_of(self._target_for(build.captured), build.captured)
        return build.remarks

    def _cached_program(
        self, captured: Captured, target: Target, entries: list[tuple[str, str]], clock: Clock
    ) -> tuple[Any, Any]:
        """The artifact from the disk cache and its program, or None twice; one that cannot be loaded is dropped."""
        from mlirml.driver import cache

        artifact = cache.load(entries)
        clock.note("cache lookup")
        if artifact is None:
            return None, None
        try:
            program = opened(captured, artifact, target)
        except LaunchError:
            cache.drop(entries)
            return None, None
        clock.note("load")
        return artifact, program

    def _capture(self, call: Call) -> Captured:
        from mlirml.frontend.capture import capture

        def captured(loops: bool) -> Captured:
            fn, given = self.fn, (call.treedef, call.specs, self._name, call.statics, call.overlaps)
            state: Any = {
                "variables": tuple(call.state.variables),
                "python": call.state.python,
                "paths": call.paths,
                "values": call.values,
            }
            sized = any(is_dynamic_shape(spec.shape) for spec in call.specs)
            if not self.donate_argnums or call.overlaps or self.target.device != "cpu" or sized:
                return capture(fn, *given, loops, **state)
            from mlirml.driver.donation import Donation

            donation = Donation(
                fn, (*self.donate_argnums, *self._donated_names), partial(without, statics=call.statics), loops
            )
            return donation.finished(capture(donation.function(), *given, **state))

        return with_frontend(self.fn, self.frontend, has_lists(call), captured)

    # Stages.

    def trace(self, *args: Any, **kwargs: Any) -> Captured:
        """The captured module for these arguments (arrays or `TensorSpec`s); `.as_text()` prints it."""
        with COMPILER:
            state = self._state.group(args, kwargs)
            return self._settled(state, lambda: self._capture(self._call(args, kwargs)))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The module after all passes, ready for code generation."""
        return self._run_until(None, args, kwargs)

    def executable(self, *args: Any, **kwargs: Any) -> Any:
        """The loaded program for these arguments: `program(leaves, out arrays or None) -> list of outputs`."""
        return self._settled(self._state.group(args, kwargs), partial(self._prepared, args, kwargs))[1].program

    def ir(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The MLIR text after a stage: "capture", "raise", "transform", "optimize", "offload", "schedule" or "lower".

        The other arguments are those of a call, arrays or `TensorSpec`s. Raises `PipelineError` for another name.
        """
        return self._run_until(stage, args, kwargs).as_text()

    def _run_until(self, stage: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
        with COMPILER:
            captured = self.trace(*args, **kwargs)
            module = parsed(captured)
            target = self._target_for(captured, "off" if self.tune == "off" else "stored")
            if stage != "capture":
                run_pipeline(target, module, stage)
            return Lowered(module, target, stage or target.stages[-1][0])

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """The times of the program's kernels for these arguments, which are left as they are (`docs/profiling.md`)."""
        from mlirml.driver.profiling.run import profiled

        state = self._state.group(args, kwargs)
        call, build = self._settled(state, partial(self._prepared, args, kwargs))
        if is_sized := build.values is not None:
            build = self._settled(state, partial(self._compile, call, "it is profiled"))
        run = partial(profiled, self._target_for(build.captured), build, call.inputs, self._name, is_sized=is_sized)
        return self._checked(build, run)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """A report: each compilation with its reason, source and times; with arguments, also the effect of a call."""
        lines = [f"{self._name}: target {self.target.name}, {self._compiled} signature(s) compiled", *self._log]
        lines += [why for path, why in self._sizes.items() if path not in self._dimensions.notes]
        lines += self._dimensions.notes.values()
        with COMPILER:
            for build in self._builds.values():
                lines += notes_on(build, self._remarks(build))
        if args or kwargs:
            call = self._settled(self._state.group(args, kwargs), partial(self._call, args, kwargs))
            known = self._builds.get(call.key()) or self._dimensions.known(call, self._builds)
            why = reason_for(call, self._builds.values()) if known is None else known.changed(self.fn)
            runs = f"runs signature {known.number}" if known is not None else ""
            lines.append(f"this call: {runs if why is None else f'would compile, because {why}'}")
        return "\n".join(lines)


def _failure(captured: Captured, failed: CheckFailed, repeats: bool = False) -> Any:
    from mlirml.driver.argument_errors import failure, failure_or_repeat

    return (failure_or_repeat if repeats else failure)(captured, failed)


__all__ = ["CaptureError", "Compiled", "Lowered", "compile", "lower", "trace"]
