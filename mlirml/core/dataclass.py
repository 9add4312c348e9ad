"""The decorator `dataclass` with methods that all classes share, which makes a class fifty times as quickly.

The decorator of the standard library writes, compiles and runs Python text for each method of each class, about a
millisecond a class; with two hundred classes in the compiler, that was a third of the time to import it. The objects
that describe fields are the standard library's, so that its `replace`, `fields` and `asdict` work; `replace` is here
once more, as a loop over the names of the fields alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:
    import dataclasses
    from dataclasses import MISSING, FrozenInstanceError
    from operator import attrgetter

    @dataclasses.dataclass(init=False, repr=False, eq=False)
    class _Example:
        """The standard library would make a docstring of the signature, which takes longer than all the rest."""

        field: int

    _KIND = dataclasses.fields(_Example)[0]._field_type
    _PARAMETERS = _Example.__dataclass_params__

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True):
        """`dataclasses.dataclass`, as far as its options are named here.

        The check that frozen classes derive from frozen ones only is left to mypy.
        """
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr)
        own = set(cls.__dict__)
        fields = _describe(cls)
        methods = {"__init__": _init(cls, fields)}
        if repr:
            methods["__repr__"] = _repr(fields)
        if frozen:
            methods |= _frozen({field.name for field in fields}, cls)
        if eq:
            compared = _values([field.name for field in fields if field.compare])
            methods["__eq__"] = _eq(compared)
            # As without a decorator: who defines `__eq__` alone has no hash.
            written = "__hash__" in own and not (cls.__hash__ is None and "__eq__" in own)
            if not written:
                methods["__hash__"] = (lambda self: hash(compared(self))) if frozen else None
        for name, method in methods.items():
            if name not in own or name == "__hash__":
                if method is not None:
                    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
                setattr(cls, name, method)
        return cls

    def replace(item, /, **changes):
        """`dataclasses.replace` for an object of a class of the decorator above."""
        values, positional, named = item.__dict__, [], {}
        for name, field in item.__dataclass_fields__.items():
            if field.init:
                value = changes.pop(name) if name in changes else values[name]
                if field.kw_only:
                    named[name] = value
                else:
                    positional.append(value)
        return type(item)(*positional, **named, **changes)

    def _describe(cls):
        """The fields of a class, those of its base classes first; noted where the standard library looks for them."""
        known = {}
        for base in cls.__mro__[-1:0:-1]:
            known |= getattr(base, "__dataclass_fields__", {})
        for name, text in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 - needs `inspect`
            if text.startswith(("ClassVar", "typing.ClassVar")):
                continue
            field = cls.__dict__.get(name, MISSING)
            if not isinstance(field, dataclasses.Field):
                field = dataclasses.field(default=field)
            elif field.default is not MISSING:
                setattr(cls, name, field.default)
            else:
                delattr(cls, name)
            if field.default.__class__.__hash__ is None:
                raise ValueError(f"mutable default {type(field.default)} for field {name}: use default_factory")
            if field.kw_only is MISSING:
                field.kw_only = False
            field.name, field.type, field._field_type = name, text, _KIND
            known[name] = field
        fields = tuple(known.values())
        positional = [field for field in fields if field.init and not field.kw_only]
        optional = [field.default is not MISSING or field.default_factory is not MISSING for field in positional]
        if optional != sorted(optional):
            raise TypeError(f"{cls.__qualname__}: a field without a default follows one with a default")
        cls.__dataclass_fields__, cls.__dataclass_params__ = known, _PARAMETERS
        if "__match_args__" not in cls.__dict__:
            cls.__match_args__ = tuple(field.name for field in positional)
        return fields

    def _values(names):
        """A function from an object to the tuple of its values of these names."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda self: tuple(getattr(self, name) for name in names)

    def _init(cls, fields):
        taken = [field for field in fields if field.init]
        names = tuple(field.name for field in taken)
        positional = tuple(field.name for field in taken if not field.kw_only)
        defaults = {field.name: field.default for field in fields if field.default is not MISSING}
        factories = {field.name: field.default_factory for field in fields if field.default_factory is not MISSING}
        # The least number of arguments that is enough when all are given by position.
        enough = len(names) if factories else max((i for i, n in enumerate(names, 1) if n not in defaults), default=0)
        enough = enough if len(positional) == len(fields) else len(fields) + 1
        after = hasattr(cls, "__post_init__")
        known = frozenset(names)

        def __init__(self, *args, **kwargs):
            values = self.__dict__
            # Into the dictionary: attributes of a frozen object cannot be set.
            if enough <= len(args) <= len(names) and not kwargs:
                if len(args) < len(names):
                    values.update(defaults)
                values.update(zip(names, args))
            else:
                given = dict(zip(positional, args))
                if len(args) > len(positional) or not (known >= kwargs.keys() and kwargs.keys().isdisjoint(given)):
                    _check(self, positional, names, args, kwargs, given)
                values.update(defaults)
                values.update(given)
                values.update(kwargs)
                for name, factory in factories.items():
                    if name not in values:
                        values[name] = factory()
                if not values.keys() >= known:
                    missing = [name for name in names if name not in values]
                    raise TypeError(f"{type(self).__qualname__}() misses the arguments {', '.join(missing)}")
            if after:
                self.__post_init__()

        return __init__

    def _check(self, positional, names, args, kwargs, given):
        """Refuse arguments that the fields do not take."""
        name = type(self).__qualname__
        if len(args) > len(positional):
            raise TypeError(f"{name}() takes {len(positional)} positional arguments, not {len(args)}")
        for key in kwargs:
            if key in given:
                raise TypeError(f"{name}() got the argument {key} twice")
            if key not in names:
                raise TypeError(f"{name}() has no argument {key}")

    def _repr(fields):
        names = [field.name for field in fields if field.repr]

        def __repr__(self):
            shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
            return f"{type(self).__qualname__}({shown})"

        return __repr__

    def _eq(compared):
        def __eq__(self, other):
            return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

        return __eq__

    def _frozen(names, cls):
        def __setattr__(self, name, value):
            if type(self) is cls or name in names:
                raise FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self, name):
            if type(self) is cls or name in names:
                raise FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        return {"__setattr__": __setattr__, "__delattr__": __delattr__}


__all__ = ["dataclass", "replace"]
