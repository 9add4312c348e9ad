"""Donated arguments: results are written into the memory of arguments that the caller has no more use for.

The captured program is the function, followed by `argument[...] = result` for each result that fits a donated argument;
the caller then gets the argument's own array for that result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mlirml.core.tree import TreeDef, flatten
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.captured import Captured
from mlirml.frontend.current import current_trace
from mlirml.frontend.namespace.numpy_namespace import retarget


class Donation:
    """A function whose results go into donated arguments, by position and by name, as far as they fit.

    `traced` gives the arguments without the static ones.
    """

    def __init__(
        self, function: Callable[..., Any], donated: Sequence[int | str], traced: Callable[..., Any], loops: bool
    ) -> None:
        self._function, self._donated, self._traced, self._loops = function, donated, traced, loops
        self._tree: TreeDef | None = None
        self._inputs: dict[int, int] = {}  # of results, the numbers of the arguments that they go into

    def function(self) -> Callable[..., Any]:
        """The function to capture; it returns the results that go into no argument."""

        def run(*args: Any, **kwargs: Any) -> Any:
            return self._run(args, kwargs)

        run.__func__ = self._function  # type: ignore[attr-defined]  # the place of definition
        return run

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state = current_trace()
        assert state is not None
        arguments = flatten(self._traced(args, kwargs))[0]
        if self._loops:
            result = state.call_loops(self._function, args, kwargs)
        else:
            result = retarget(self._function, state)(*args, **kwargs)
        leaves, self._tree = flatten(result)
        after = flatten(self._traced(args, kwargs))[0]
        if len(after) != len(arguments) or any(one is not other for one, other in zip(after, arguments)):
            return tuple(leaves)
        given = [args[p] if isinstance(p, int) else kwargs[p] for p in self._donated if self._is_given(p, args, kwargs)]
        free = [x for x in flatten(given)[0] if isinstance(x, Traced) and not x._scalar and not x._cell.written]
        # Results may be views of arguments that are stored into.
        leaves = [x._copy() if isinstance(x, Traced) and not x._scalar else x for x in leaves]
        for number, leaf in enumerate(leaves):
            fits = [a for a in free if isinstance(leaf, Traced) and (a.shape, a.dtype) == (leaf.shape, leaf.dtype)]
            if fits and not leaf._scalar:
                free.remove(next(a for a in free if a is fits[0]))
                self._inputs[number] = next(i for i, a in enumerate(state.inputs) if a is fits[0])
                fits[0]._write(leaf)
        state.donated = sorted(self._inputs.values())
        return tuple(leaf for number, leaf in enumerate(leaves) if number not in self._inputs)

    def _is_given(self, argument: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return argument < len(args) if isinstance(argument, int) else argument in kwargs

    def finished(self, captured: Captured) -> Captured:
        """The captured program with its results in the order in which the function returns them."""
        assert self._tree is not None
        written = {target: output for output, target in captured.writebacks}
        kept = iter(range(len(captured.outputs)))
        positions = tuple(
            written[self._inputs[number]] if number in self._inputs else next(kept)
            for number in range(self._tree.leaf_count())
        )
        return replace(captured, out_tree=self._tree, result_order=positions)
