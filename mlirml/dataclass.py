"""The decorator `dataclass` with methods that all classes share, which makes a class twenty times as quickly.

The decorator of the standard library writes, compiles and runs Python text for each method of each class, about a
millisecond a class; with a hundred classes in the compiler, that was a third of the time to import it. Fields, their
order and defaults, `replace`, `fields` and `asdict` are still the standard library's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from dataclasses import MISSING, FrozenInstanceError
    from operator import attrgetter

    _bare = dataclasses.dataclass(init=False, repr=False, eq=False)

    def dataclass(cls=None, /, *, frozen=False, eq=True):
        """`dataclasses.dataclass`, as far as its options are named here.

        The check that frozen classes derive from frozen ones only is left to mypy.
        """
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq)
        doc, own = cls.__doc__, set(cls.__dict__)
        cls.__doc__ = doc or "-"  # else one is made of the signature, which takes as long as all the rest
        cls = _bare(cls)
        cls.__doc__ = doc
        fields = dataclasses.fields(cls)
        methods = {"__init__": _init(cls, fields), "__repr__": _repr(fields)}
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

        def __init__(self, *args, **kwargs):
            values = self.__dict__
            # Into the dictionary: attributes of a frozen object cannot be set.
            if enough <= len(args) <= len(names) and not kwargs:
                if len(args) < len(names):
                    values.update(defaults)
                values.update(zip(names, args))
            else:
                given = dict(zip(positional, args))
                _check(self, positional, names, args, kwargs, given)
                values.update(defaults)
                values.update(given)
                values.update(kwargs)
                for name, factory in factories.items():
                    if name not in values:
                        values[name] = factory()
                missing = [name for name in names if name not in values]
                if missing:
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


__all__ = ["dataclass"]
