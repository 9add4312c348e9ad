"""Hooks of generators, and of the loops over them, whose bodies are functions that the generators call."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.optional import Optional, given
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.loops.list_hooks import ListHooks
from mlirml.frontend.loops.ranges import count_of, item_of
from mlirml.frontend.namespace.generator_functions import Generator, generator_of
from mlirml.frontend.source.generators import CONSUME
from mlirml.frontend.source.unbound import name_of
from mlirml.ir.text.builder import Check


class GeneratorHooks(ListHooks):
    """The hooks of generators."""

    def generator(self, plain: types.FunctionType, stopping: types.FunctionType, *decorators: Any) -> Any:
        """A generator function that a function defines."""
        made: Any = Generator(plain.__name__, lambda stops: stopping if stops else plain)
        for decorator in decorators[::-1]:
            made = decorator(made)
        return made

    def consumed(self, callee: Any, stops: bool) -> Callable[..., Any]:
        """The function of a generator that takes a function of an item, which ends it if it `stops`."""
        found = generator_of(self.function(callee))
        if found is None:
            with at_user_line():
                name = getattr(callee, "__name__", repr(callee))
                raise UnsupportedSyntaxError(
                    f"`{name}` is a generator in one call of the function, and none in another",
                    help="give the other function a name of its own",
                )
        generator, arguments = found
        return partial(generator.version(stops), *arguments)

    def items_of(self, callee: Any) -> Callable[..., Any]:
        """A function that gives the items of a generator as a list."""
        if generator_of(self.function(callee)) is None:
            return self.function(callee)
        function = self.consumed(callee, False)

        def call(*args: Any, **kwargs: Any) -> Any:
            items = self._new_list([], grows=True)
            function(*args, **kwargs, **{CONSUME: lambda item: items.append(item)})
            return items

        return call

    def boxed(self, value: Callable[[], Any]) -> list[Any]:
        """A list of a variable's value; of None if it has no value yet."""
        try:
            return [value()]
        except NameError as error:
            found: list[Any] = [None]
            message = f"cannot access local variable '{name_of(error)}' where it is not associated with a value"
            self._unassigned[id(found)] = found, UnboundLocalError(message)
            return found

    def unboxed(self, items: list[Any], is_optional: bool) -> Any:
        """The value in such a list, which the loop certainly has assigned unless it `is_optional`."""
        value = items[0]
        if is_optional or id(items) not in self._unassigned:
            return value
        error = self._unassigned[id(items)][1]
        if value is None:
            raise error
        return value.checked(Check("MlirmlError", str(error), raised=error)) if type(value) is Optional else value

    def present(self, value: Any) -> Any:
        """A value that is there."""
        return given(value)

    def of_python(self, callee: Any, name: str) -> None:
        """Refuse a function of the user's that has the name of `enumerate` or `zip`."""
        if callee is not getattr(builtins, name):
            with at_user_line():
                raise UnsupportedSyntaxError(
                    f"a generator is given to a function of yours with the name `{name}`",
                    help="give the function another name, and the items as a list",
                )

    def zipped(self, items: Any) -> Any:
        """An iterable that is indexed beside the items of a generator."""
        if count_of(items) is not None or isinstance(items, (list, tuple)):
            return items
        with at_user_line():
            raise UnsupportedSyntaxError(
                f"`zip` of a generator and a {type(items).__name__}",
                help="zip it with a list, range or array, or count in the loop",
            )

    def zipped_item(self, items: Any, number: Any) -> Any:
        """An item of such an iterable."""
        return self.item(items, number) if count_of(items) is None else item_of(items, number)

    def zipped_length(self, items: Any) -> Any:
        """The length of such an iterable."""
        numbers = count_of(items)
        return numbers.stop if numbers is not None else self.function(len)(items)

    def item(self, items: Any, index: Any) -> Any:
        """`items[index]`, read."""
        raise NotImplementedError
