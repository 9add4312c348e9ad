"""A record: for each program of the corpus the IR after each stage, and the code made of it, in a zip file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

import mlirml as ml
from mlirml.driver.compilation import parsed, run_pipeline
from mlirml.errors import MlirmlError
from mlirml.ir.bindings import to_text
from mlirml.passes import Instrumentation
from tests.replay.corpus import Entry

PROCESSOR = "avx2,l2=1M"
"""The processor that all programs are compiled for, so that a record is the same on every machine."""
CODE = "code"
"""The name under which the artifact stands, beside the names of the stages."""
ROOT = str(Path(__file__).parents[2])
"""The folder of this checkout, of which the lines of the user's files are no part: records of two may be compared."""
Parts = dict[str, bytes]


@dataclass
class StageTexts(Instrumentation):
    """Keeps the module after each stage; after each pass, too, if `passes`."""

    passes: bool = False
    texts: dict[str, str] = field(default_factory=dict)

    def after_pass(self, stage: str, pass_name: str, module: Any, seconds: float) -> None:
        super().after_pass(stage, pass_name, module, seconds)
        if pass_name == "mlirml-verify-stage":
            self.texts[stage] = to_text(module)
        elif self.passes:
            self.texts[f"{stage}, {len(self.texts)} {pass_name}"] = to_text(module)


def parts_of(entry: Entry, passes: bool = False) -> Parts:
    """The IR of a program after each stage, and its artifact; the message of the error where there is one."""
    with ml.config.override(processor=PROCESSOR, threads=1, cache=False, progress=False):
        watch = StageTexts(passes=passes)
        parts: dict[str, bytes] = {}
        try:
            compiled = ml.compile(entry.function, entry.target, frontend=entry.frontend)  # type: ignore[arg-type]
            captured = compiled.trace(*entry.arguments)
            module = parsed(captured)
            parts["capture"] = to_text(module).replace(ROOT, "").encode()
            run_pipeline(compiled.target, module, watch=watch)
            artifact = compiled.target.codegen(module)
            places = tuple(place.replace(ROOT, "") for place in artifact.kernel_places)
            parts[CODE] = replace(artifact, kernel_places=places).to_bytes()
        except MlirmlError as error:
            parts["error"] = f"{type(error).__name__}: {error.message}".encode()
        stages = {name: text.replace(ROOT, "").encode() for name, text in watch.texts.items()}
        return {**{k: v for k, v in parts.items() if k == "capture"}, **stages, **parts}


def write(path: Path, entries: Iterable[Entry]) -> int:
    """Record programs; returns how many."""
    names: list[str] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for entry in entries:
            names.append(entry.name)
            for part, content in parts_of(entry).items():
                file.writestr(f"{entry.name}/{part}", content)
    return len(names)


def read(path: Path) -> dict[str, Parts]:
    """The parts of all programs of a record, in their order, by the name of the program."""
    found: dict[str, Parts] = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            program, _, part = name.rpartition("/")
            found.setdefault(program, {})[part] = file.read(name)
    return found


@dataclass(frozen=True)
class Difference:
    """What is not as in the record: the first part of a program that differs, and the lines that do."""

    program: str
    part: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.program}: {self.part}", *(f"    {line}" for line in self.lines)])


def compare(record: dict[str, Parts], entries: Iterable[Entry], shown: int = 20) -> Iterator[Difference]:
    """The programs that a record has and that are compiled to something else now, or are not there any more."""
    left = set(record)
    for entry in entries:
        left.discard(entry.name)
        before = record.get(entry.name)
        if before is None:
            yield Difference(entry.name, "the record does not have it")
            continue
        now = parts_of(entry)
        part = next((part for part in {**before, **now} if before.get(part) != now.get(part)), None)
        if part is not None:
            yield Difference(entry.name, part, _changed_lines(before.get(part, b""), now.get(part, b""), part, shown))
    for name in sorted(left):
        yield Difference(name, "it is in the record alone")


def _changed_lines(before: bytes, now: bytes, part: str, shown: int) -> tuple[str, ...]:
    if part == CODE:
        return (f"{len(before)} bytes before, {len(now)} now",)
    texts = (text.decode().splitlines() for text in (before, now))
    lines = [line for line in unified_diff(*texts, n=1, lineterm="") if not line.startswith(("---", "+++"))]
    return (*lines[:shown], *([f"... {len(lines) - shown} more lines"] if len(lines) > shown else []))
