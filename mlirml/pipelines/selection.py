"""Recipes with some of their optional passes: `ml.compile(fn, pipeline=["mlirml-fuse", ...])`.

A pass is optional if it says so where it is registered. The others run in each pipeline, in the order of the recipe,
and divide it into sections. An optional pass runs in the section that the recipe has it in, and the passes of one
section in the order in which they are given, as often as they are given. `canonicalize` and `cse`, which are in several
sections, run in the section of the pass before them in the list, or in the next one that has them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from mlirml.core.dataclass import dataclass
from mlirml.errors import PipelineError
from mlirml.passes.files import find_pass, is_optional
from mlirml.passes.syntax import Element, parse_elements
from mlirml.pipelines.recipe import Recipe


@dataclass
class _Section:
    """The optional steps between two others: those of the recipe by name, and those that were chosen."""

    known: dict[str, Element]
    chosen: list[str]


def optional_steps(stages: Recipe) -> list[str]:
    """The names of the optional passes of a recipe, in its order, with repetitions.

    >>> optional_steps((("optimize", "canonicalize,mlirml-fuse"), ("schedule", "mlirml-bufferize")))
    ['canonicalize', 'mlirml-fuse']
    """
    return [step.name for _, steps in stages for step in parse_elements(steps) if is_optional(step.name)]


def with_optional_steps(stages: Recipe, wanted: Sequence[str]) -> Recipe:
    """A recipe with these optional passes instead of its own. Raises `PipelineError` for others.

    A pass is named as in `mlirml-opt`, and has the options that the recipe gives it, but for those in its text.
    """
    sections: list[_Section] = []
    layout: list[tuple[str, list[_Section | Element]]] = []
    for stage, steps in stages:
        parts: list[_Section | Element] = []
        for element in parse_elements(steps):
            if not is_optional(element.name):
                parts.append(element)
                continue
            if not parts or not isinstance(parts[-1], _Section):
                sections.append(_Section({}, []))
                parts.append(sections[-1])
            last = parts[-1]
            assert isinstance(last, _Section)
            last.known.setdefault(element.name, element)
        layout.append((stage, parts))
    current = 0
    for text in wanted:
        element = _parsed(text)
        current = _section_of(element, text, sections, current, stages)
        sections[current].chosen.append(_with_options(sections[current].known[element.name], element))
    return tuple((stage, ",".join(_texts(parts))) for stage, parts in layout)


def _texts(parts: Sequence[_Section | Element]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, _Section):
            yield from part.chosen
        else:
            yield str(part)


def _parsed(text: str) -> Element:
    if not isinstance(text, str):
        raise PipelineError(f"a pipeline is a list of the names of passes, and has {text!r}")
    elements = parse_elements(text)
    if len(elements) != 1:
        raise PipelineError("an item of a pipeline is one pass", text=text, position=0, length=len(text))
    return elements[0]


def _section_of(element: Element, text: str, sections: Sequence[_Section], current: int, stages: Recipe) -> int:
    """The section of a pass: the one of the pass before it if that has it, else the next one, else the last."""
    having = [number for number, section in enumerate(sections) if element.name in section.known]
    if having:
        return next((number for number in having if number >= current), having[-1])
    raise _refused(element, text, stages)


def _refused(element: Element, text: str, stages: Recipe) -> PipelineError:
    name, shown = element.name, {"text": text, "position": element.position}
    run = {step.name for _, steps in stages for step in parse_elements(steps)}
    if name in run or element.children is not None:
        message = f"`{name}` is not optional: each pipeline runs it where the recipe has it"
        return PipelineError(message, help="leave it out of the list", length=len(name), **shown)  # type: ignore[arg-type]
    if find_pass(name) is not None:
        message = f"`{name}` is no part of this target's pipeline"
    else:
        message = f"unknown pass `{name}`"
    close = difflib.get_close_matches(name, optional_steps(stages), n=1, cutoff=0.7)
    help = f"did you mean `{close[0]}`?" if close else "`mlirml.optional_passes()` lists those that there are"
    return PipelineError(message, help=help, length=len(name), **shown)  # type: ignore[arg-type]


def _with_options(known: Element, given: Element) -> str:
    """A step of the recipe with some options changed; raises `PipelineError` for others than those of the pass."""
    from mlirml.passes import stage

    changed = {option.key: option for option in given.options}
    kept = [option for option in known.options if option.key not in changed]
    options = " ".join(map(str, (*kept, *given.options)))
    text = f"{given.name}{{{options}}}" if options else given.name
    stage("", text)  # refuses
    return text
