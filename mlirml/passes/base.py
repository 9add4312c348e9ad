"""What a pass is: a frozen dataclass whose fields are its options, known by its flag; and upstream passes as text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, overload

from mlirml.core.dataclass import dataclass
from mlirml.errors import PipelineError
from mlirml.ir.bindings import mlir
from mlirml.passes.presence import Condition
from mlirml.passes.syntax import parse_elements, quote, split_list, unquote
from mlirml.targets.machine import Device, Processor

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform


class Pass:
    """A pass over a module. Subclasses are frozen dataclasses; their fields are the options, `max_ops` -> `max-ops`.

    This class is none, so that a pass may be made by the standard library's decorator as well. `name` is the flag that
    `register` makes of the name of the class: `FusePass` is in `fuse.py`, and `mlirml-opt --mlirml-fuse` runs it. An
    option is a `bool`, `int`, `float`, `str`, a `tuple` of one of them, or one of the records of
    `mlirml.targets.machine`. `str(pass)` is pipeline text without the defaults.
    """

    name: ClassVar[str]
    when: ClassVar[Condition | None] = None
    optional: ClassVar[bool] = False

    def run(self, module: mlir.Operation) -> None:
        """Change the module (a `builtin.module` operation) in its context, in place; raise an `MlirmlError` to fail."""
        raise NotImplementedError

    def __str__(self) -> str:
        changed = [
            f"{flag}={option.show(getattr(self, option.field))}"
            for flag, option in pass_options(type(self)).items()
            if option.required or getattr(self, option.field) != option.default
        ]
        return f"{self.name}{{{' '.join(changed)}}}" if changed else self.name


@dataclass(frozen=True)
class Upstream:
    """One upstream pass as MLIR pipeline text, with options and nesting: `func.func(canonicalize,cse)`.

    The text is kept in one normal form, so that equal steps compare equal.
    """

    text: str

    def __post_init__(self) -> None:
        elements = parse_elements(self.text)
        if len(elements) != 1:
            raise PipelineError("an upstream step is one pass or one nest of passes", text=self.text, position=0)
        object.__setattr__(self, "text", str(elements[0]))

    @property
    def name(self) -> str:
        """The text without options, for timing tables and file names."""
        element = parse_elements(self.text)[0]
        return element.name if element.children is None else str(element)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Deferred:
    """A step that runs if a condition holds for the module, and that is made, and its pass imported, only then."""

    name: str
    text: str
    when: Condition | None
    make: Callable[[], Pass | Upstream]

    def __str__(self) -> str:
        return self.text


Step = Pass | Upstream | Deferred

REGISTRY: dict[str, type[Pass]] = {}


_PassClass = TypeVar("_PassClass", bound=type[Pass])


if TYPE_CHECKING:

    @overload
    @dataclass_transform(frozen_default=True)
    def register(cls: _PassClass) -> _PassClass: ...

    @overload
    def register(*, when: Condition | None = None, optional: bool = False) -> Callable[[_PassClass], _PassClass]: ...


def register(cls: Any = None, *, when: Condition | None = None, optional: bool = False) -> Any:
    """Class decorator: make a frozen dataclass of the pass, known to `mlirml-opt` and the pipeline parser.

    `when` is a condition on the operations of the module, at its simplest beginnings of their names. Where it does not
    hold the pass changes nothing, and the pipelines of targets do not run it. `mlirml.passes.files.condition_of` reads
    it from the source, so that such a pass is not imported: it is an expression of literals and the names of
    `mlirml.passes.presence`, on one line.

    An `optional` pass makes programs faster and no more: recipes verify and compute the same numbers without it, and
    with it in any order among the optional passes that it runs with (`mlirml.pipelines.selection`).
    """
    if cls is None:
        return partial(register, when=when, optional=optional)
    if "__dataclass_fields__" not in vars(cls):
        cls = dataclass(cls, frozen=True)
    if not hasattr(cls, "name"):
        cls.name = "mlirml" + re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", cls.__name__.removesuffix("Pass"))
    other = REGISTRY.get(cls.name)
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"{cls.name} is registered twice, by {other.__module__} and {cls.__module__}")
    cls.when, cls.optional = when, optional
    REGISTRY[cls.name] = cls
    return cls


@dataclass(frozen=True)
class PassOption:
    """An option of a pass: how a field is read and printed. `kind` is the scalar type, `many` means a tuple of it."""

    field: str
    kind: type
    many: bool
    required: bool
    default: Any

    @property
    def expects(self) -> str:
        """The type of its values, for help and errors: `int`, `list of int`, ..."""
        name: str = getattr(self.kind, "expects", self.kind.__name__)
        return f"list of {name}" if self.many else name

    def show(self, value: Any) -> str:
        """The value as pipeline text: `true`, `4`, `{1,2}`."""
        if self.many:
            return "{" + ",".join(_SHOW[self.kind](item) for item in value) + "}"
        return _SHOW[self.kind](value)

    def read(self, text: str | None) -> Any:
        """The value of the text after `=`; None for a bare option. Raises ValueError."""
        if text is None:
            if self.kind is bool and not self.many:
                return True
            raise ValueError("no value")
        if not self.many:
            return self._checked(_READ[self.kind](unquote(text)))
        return tuple(self._checked(_READ[self.kind](unquote(item))) for item in split_list(_unbraced(text)))

    def _checked(self, value: Any) -> Any:
        """A number, if it is one that the option takes; raises ValueError."""
        if self.field == "alignment" and not (0 < value <= 1 << 20 and value & value - 1 == 0):
            raise ValueError(f"{value} is no power of two up to {1 << 20}")
        return value


def pass_options(cls: type[Pass]) -> dict[str, PassOption]:
    """The options of a pass by flag, in the order of its fields."""
    options = {}
    for field in dataclasses.fields(cast(Any, cls)):
        # By the text of the annotation: to evaluate it takes longer than all the rest.
        text = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
        many = text.startswith("tuple[") and text.endswith(", ...]")
        kind = _KINDS.get(text.removeprefix("tuple[").removesuffix(", ...]") if many else text)
        if kind is None:
            raise TypeError(f"{cls.__name__}.{field.name}: an option cannot be {text}")
        default = field.default_factory() if callable(field.default_factory) else field.default
        required = default is dataclasses.MISSING
        options[field.name.replace("_", "-")] = PassOption(field.name, kind, many, required, default)
    return options


def _unbraced(text: str) -> str:
    return text[1:-1] if text.startswith("{") and text.endswith("}") else text


def _read_bool(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise ValueError(f"{text} is neither true nor false")
    return text in ("true", "1")


_RECORDS = (Processor, Device)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float, str, *_RECORDS)}
_READ: dict[type, Callable[[str], Any]] = {bool: _read_bool, int: int, float: float, str: str}
_READ |= {kind: kind.parse for kind in _RECORDS}
_SHOW: dict[type, Callable[[Any], str]] = {bool: lambda v: "true" if v else "false", int: str, float: repr, str: quote}
_SHOW |= dict.fromkeys(_RECORDS, str)
