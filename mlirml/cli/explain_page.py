"""`mlirml explain --html`: a page with the IR before and after every pass that changed it, beside the user's source."""

from __future__ import annotations

import html
import re
from dataclasses import field
from difflib import SequenceMatcher
from pathlib import Path

from mlirml.cli.function import Call
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir, parse, to_text
from mlirml.passes import Instrumentation

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_TRAILER = re.compile(r" ?loc\((?:[^()]|\([^()]*\))*\)")

_STYLE = """
body { font: 13px/1.45 monospace; margin: 0; display: flex; height: 100vh }
nav { width: 17em; overflow: auto; background: #f2f2f0; padding: 1em }
nav a { display: block; color: #224; text-decoration: none; padding: 1px 0 }
main { flex: 1; overflow: auto; padding: 0 1em }
aside { width: 34%; overflow: auto; background: #fafaf8; padding: 1em; border-left: 1px solid #ccc }
h2 { font-size: 15px } table { border-collapse: collapse; width: 100%; table-layout: fixed }
td { white-space: pre; overflow: hidden; text-overflow: ellipsis; vertical-align: top; padding: 0 6px }
td:hover { white-space: pre-wrap } .old { background: #fdecea } .new { background: #e9f5e9 }
[data-line] { cursor: pointer } .lit { outline: 2px solid #d80 } aside div { white-space: pre }
"""
_SCRIPT = """
const all = selector => [...document.querySelectorAll(selector)];
document.addEventListener('mouseover', event => {
  const line = event.target.closest('[data-line]');
  all('.lit').forEach(each => each.classList.remove('lit'));
  if (line) all(`[data-line="${line.dataset.line}"]`).forEach(each => each.classList.add('lit'));
});
document.addEventListener('click', event => {
  const line = event.target.closest('main [data-line]');
  if (line) document.getElementById('line' + line.dataset.line)?.scrollIntoView({block: 'center'});
});
"""


@dataclass(frozen=True)
class IrLine:
    """A line of IR without its location, and the line of the user's file that it comes from, if known."""

    text: str
    line: int | None


@dataclass
class _Recorder(Instrumentation):
    """Keeps the module after each pass that changed it."""

    steps: list[tuple[str, str]] = field(default_factory=list)

    def after_pass(self, stage: str, pass_name: str, module: mlir.Operation, seconds: float) -> None:
        super().after_pass(stage, pass_name, module, seconds)
        text = to_text(module, locations=True)
        if _plain(text) != _plain(self.steps[-1][1]):
            self.steps.append((f"{stage}: {pass_name}", text))


def write_page(call: Call, path: Path) -> None:
    """Compile a function, and write the page of its passes."""
    captured = call.compiled.trace(*call.args, **call.kwargs)
    module = parse(captured.text)
    watch = _Recorder(steps=[("capture", to_text(module, locations=True))])
    call.compiled.target.pipeline.run(module, instrumentation=watch)
    code = getattr(call.compiled.fn, "__code__", None)
    file = code.co_filename if code is not None else ""
    path.write_text(page_of(getattr(call.compiled, "__name__", "function"), watch.steps, file), encoding="utf-8")


def page_of(name: str, steps: list[tuple[str, str]], file: str) -> str:
    """The page of IR texts with locations, by the names of the passes that made them, and of the user's file."""
    links, sections = [], []
    before: list[IrLine] = []
    for number, (title, text) in enumerate(steps):
        after = lines_of(text, file)
        shown = html.escape(title)
        links.append(f'<a href="#step{number}">{shown}</a>')
        sections.append(f'<h2 id="step{number}">{shown}</h2>\n<table>{"".join(_rows(before, after))}</table>')
        before = after
    source = Path(file).read_text(encoding="utf-8").splitlines() if file and Path(file).exists() else []
    numbered = (
        f'<div id="line{n}" data-line="{n}">{n:5} {html.escape(text)}</div>' for n, text in enumerate(source, start=1)
    )
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape(name)}</title><style>{_STYLE}</style>"
        f"<nav>{''.join(links)}</nav>\n<main>{''.join(sections)}</main>\n<aside>{''.join(numbered)}</aside>"
        f"<script>{_SCRIPT}</script>\n"
    )


def lines_of(text: str, file: str) -> list[IrLine]:
    """The lines of a module printed with locations, and the lines of `file` that they come from."""
    aliases = {match[1]: match[2] for match in map(_ALIAS.match, text.splitlines()) if match}

    def line_in_file(location: str, depth: int = 0) -> int | None:
        for found, number in _LINE.findall(location):
            if found == file:
                return int(number)
        for alias in re.findall(r"#loc\d*", location) if depth < 8 else ():
            line = line_in_file(aliases.get(alias, ""), depth + 1)
            if line is not None:
                return line
        return None

    return [
        IrLine(_TRAILER.sub("", line), line_in_file(" ".join(_TRAILER.findall(line)[-1:])))
        for line in text.splitlines()
        if not line.startswith("#loc")
    ]


def _plain(text: str) -> str:
    return "\n".join(_TRAILER.sub("", line) for line in text.splitlines() if not line.startswith("#loc"))


def _rows(before: list[IrLine], after: list[IrLine]) -> list[str]:
    """Table rows with the IR before and after, side by side; unchanged runs of lines are cut to their ends."""
    rows = []
    matcher = SequenceMatcher(None, [line.text for line in before], [line.text for line in after], autojunk=False)
    for tag, i, end_i, j, end_j in matcher.get_opcodes():
        old, new = before[i:end_i], after[j:end_j]
        if tag == "equal" and len(old) > 8:
            rows += [_row(a, b, "") for a, b in zip(old[:3], new[:3])]
            rows.append(f"<tr><td colspan=2>... {len(old) - 6} equal lines</td></tr>")
            rows += [_row(a, b, "") for a, b in zip(old[-3:], new[-3:])]
            continue
        for n in range(max(len(old), len(new))):
            left, right = (lines[n] if n < len(lines) else None for lines in (old, new))
            rows.append(_row(left, right, "" if tag == "equal" else "changed"))
    return rows


def _row(old: IrLine | None, new: IrLine | None, changed: str) -> str:
    return f"<tr>{_cell(old, 'old' if changed else '')}{_cell(new, 'new' if changed else '')}</tr>"


def _cell(line: IrLine | None, style: str) -> str:
    if line is None:
        return "<td></td>"
    link = f' data-line="{line.line}"' if line.line is not None else ""
    return f'<td class="{style}"{link}>{html.escape(line.text)}</td>'
