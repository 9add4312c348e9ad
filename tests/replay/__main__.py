"""Record what stages make of programs, or compare it with a record: `python -m tests.replay record|compare FILE`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.replay.corpus import Entry, corpus
from tests.replay.record import compare, read, write


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare; the exit status of a comparison is 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="programs whose names start so, as `loops/`")
    parser.add_argument("--lines", type=int, default=20, help="how many lines of a difference are printed")
    options = parser.parse_args(arguments)

    def entries() -> Iterator[Entry]:
        return (entry for entry in corpus() if entry.name.startswith(options.only))

    warnings.simplefilter("ignore")
    if options.what == "record":
        print(f"{write(options.file, entries())} programs are in {options.file}")
        return 0
    record = {name: parts for name, parts in read(options.file).items() if name.startswith(options.only)}
    differ = 0
    for difference in compare(record, entries(), options.lines):
        differ += 1
        print(difference, flush=True)
    print(f"{differ} of {len(record)} programs differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
