"""`mlirml cache`: the compiled programs on disk."""

from __future__ import annotations

import sys
from datetime import datetime

from mlirml.driver import cache


def show() -> int:
    """List the entries, the least recently used first."""
    from mlirml.cli.console import console, size, table

    found, left = list(cache.listing()), cache.unfinished()
    out = console()
    if found:
        rows = table(None, "entry", "last used", "size", "target", "made by", "state", right=("size",))
        for entry in found:
            facts = dict(entry.entries)
            rows.add_row(
                entry.path.stem[:12],
                datetime.fromtimestamp(entry.path.stat().st_mtime).isoformat(" ", "minutes"),
                size(entry.bytes),
                facts.get("target", "?"),
                _maker(facts),
                f"[red]damaged:[/] {entry.problem}" if entry.problem else "ok",
            )
        out.print(rows)
    total = sum(entry.bytes for entry in found)
    limit = size(cache.MAX_BYTES)
    count = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    out.print(f"{count}, {size(total)} of at most {limit}, in {cache.directory()}", soft_wrap=True)
    if kernels := list(cache.kernels()):
        damaged = sum(entry.problem is not None for entry in kernels)
        bytes = size(sum(entry.bytes for entry in kernels))
        out.print(f"and the code of {len(kernels)} kernels, {bytes}{f', {damaged} of them damaged' if damaged else ''}")
    if left:
        bytes = size(sum(count for _, count in left))
        what = f"{_files(len(left))} of writers that have not finished, {bytes}"
        out.print(f"{what}; `mlirml cache check --fix` removes old ones")
    return 0


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _maker(entries: dict[str, str]) -> str:
    made_by = {name: entries[name] for name in entries if name.startswith("version.")}
    if not made_by:
        return "?"
    return "this compiler" if made_by == dict(cache.versions()) else "another one"


def check(*, fix: bool) -> int:
    """Look at every entry; with `fix`, remove the damaged ones. 1 if damaged entries are left."""
    found = [*cache.listing(), *cache.kernels()]
    damaged = [entry for entry in found if entry.problem]
    for entry in damaged:
        if fix:
            entry.path.unlink(missing_ok=True)
        print(f"{'removed' if fix else 'damaged'}: {entry.path}: {entry.problem}")
    print(f"{len(found)} checked, {len(damaged)} damaged{' and removed' if fix and damaged else ''}")
    if fix and (count := cache.remove_abandoned()):
        print(f"removed {_files(count)} of writers that were killed")
    if damaged and not fix:
        print("mlirml: remove them with `mlirml cache check --fix`", file=sys.stderr)
        return 1
    return 0


def clear() -> int:
    """Remove all entries."""
    count = cache.clear()
    print(f"removed {_files(count)} from {cache.directory()}")
    return 0
